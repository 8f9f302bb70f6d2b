//! A record that lies on several pages, of which not all were read yet; and the rest of a record that
//! began before the run.
//!
//! Only the first bytes and the state of the checksum are kept, however long the record is; all of
//! them if a dimension wants whole records.

use super::books::{Books, Heading};
use super::scope::{Head, Scope};
use serde::{Deserialize, Serialize};
use walstat_format::block::HEAD_BYTES_MAX;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RECORD_HEADER_BYTES;

/// A record that goes on after the page on which it begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pending {
    /// Where it starts.
    pub lsn: Lsn,
    /// Its length.
    pub total_bytes: u32,
    /// How much of it was seen.
    pub got: u32,
    /// Its bytes so far (as [`Heading::Incomplete`]) and the page headers between them.
    pub counts: Books,
    /// Where in it another record seems to lie that links to it: then its own length may be wrong.
    pub linked: Option<Lsn>,
    /// Whether it may be old content behind an `XLOG_SWITCH` of which too little was seen.
    pub may_be_unused: bool,
    crc: u32,
    kept: RecordBytes,
}

impl Pending {
    /// A record of which no byte was seen yet.
    pub fn begin(lsn: Lsn, total_bytes: u32, kept: RecordBytes) -> Pending {
        let (crc, counts) = (Crc32c::START, Books::default());
        let (linked, may_be_unused) = (None, false);
        Pending { lsn, total_bytes, got: 0, counts, linked, may_be_unused, crc, kept }
    }

    /// Bytes still to come.
    pub fn left(&self) -> u32 {
        self.total_bytes - self.got
    }

    /// Whether no more was seen of it than there is.
    pub(super) fn is_sound(&self) -> bool {
        self.got <= self.total_bytes
    }

    /// What is known of the record when all its bytes were seen.
    pub fn head(&self) -> Head<'_> {
        Head { bytes: &self.kept.bytes, crc: self.crc }
    }

    /// Adds the piece that lies at `lsn`.
    pub fn extend(&mut self, scope: &Scope, lsn: Lsn, piece: &[u8]) {
        if let Some(crc) = scope.crc {
            let header_left = RECORD_HEADER_BYTES.saturating_sub(self.got as usize);
            let body = piece.get(header_left..).unwrap_or_default();
            self.crc = crc.update(self.crc, body);
        }
        self.kept.add(piece);
        self.got += piece.len() as u32;
        let clipped = scope.clip(lsn, Lsn(lsn.0 + piece.len() as u64));
        self.counts.add(Heading::Incomplete, clipped);
    }

    /// Adds the bytes that another run has seen of this record.
    pub fn append(&mut self, scope: &Scope, lead: &Lead) {
        let header_left = RECORD_HEADER_BYTES.saturating_sub(self.got as usize);
        let header =
            lead.kept.bytes.get(..header_left.min(lead.kept.bytes.len())).unwrap_or_default();
        if let Some(crc) = scope.crc {
            // A record's checksum covers its header last: take these bytes out of the lead's.
            let body_bytes = u64::from(lead.got) - header.len() as u64;
            let body = lead.crc ^ Crc32c::shift(crc.update(0, header), body_bytes);
            self.crc = Crc32c::shift(self.crc, body_bytes) ^ body;
        }
        self.kept.add(&lead.kept.bytes);
        self.got += lead.got;
        self.counts.merge(&lead.books);
        let bytes = self.counts.take(Heading::Continuation, u64::MAX);
        self.counts.add(Heading::Incomplete, bytes);
    }
}

/// The bytes that are kept of a record on several pages: all, or the first ones, which include
/// everything before the payload.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecordBytes {
    bytes: Vec<u8>,
    whole: bool,
}

impl RecordBytes {
    /// Nothing yet; `whole`: keep all bytes.
    pub fn new(whole: bool) -> RecordBytes {
        RecordBytes { bytes: Vec::new(), whole }
    }

    fn add(&mut self, piece: &[u8]) {
        let room = HEAD_BYTES_MAX.saturating_sub(self.bytes.len());
        let wanted = if self.whole { piece.len() } else { room.min(piece.len()) };
        self.bytes.extend_from_slice(piece.get(..wanted).unwrap_or_default());
    }
}

/// The bytes before the first record of a run, by the page headers: the rest of a record that began
/// before the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lead {
    /// What the bytes are.
    pub books: Books,
    /// Bytes of that record that the first page announces; `None`: it announces none.
    pub announced: Option<u32>,
    /// How many of them were seen.
    pub got: u32,
    /// After the last of them.
    pub end: Lsn,
    /// A page says that recovery replaced the record.
    pub overwritten: bool,
    crc: u32,
    kept: RecordBytes,
}

impl Lead {
    /// A lead of which nothing was seen yet; `whole`: all its bytes are to be kept.
    pub fn new(whole: bool) -> Lead {
        Lead { kept: RecordBytes::new(whole), ..Lead::default() }
    }

    /// Bytes still to come.
    pub fn left(&self) -> u32 {
        self.announced.unwrap_or(0) - self.got
    }

    /// Whether no more was seen of it than there is.
    pub(super) fn is_sound(&self) -> bool {
        self.got <= self.announced.unwrap_or(0)
            && self.kept.bytes.len() as u64 <= u64::from(self.got)
    }

    /// Adds the piece that lies at `lsn`.
    pub fn extend(&mut self, scope: &Scope, lsn: Lsn, piece: &[u8]) {
        if let Some(crc) = scope.crc {
            self.crc = crc.update(self.crc, piece);
        }
        self.kept.add(piece);
        self.got += piece.len() as u32;
        self.end = Lsn(lsn.0 + piece.len() as u64);
        self.books.add(Heading::Continuation, scope.clip(lsn, self.end));
    }

    /// Adds the lead of the next run, where all of this run is lead.
    pub fn append(&mut self, scope: &Scope, next: &Lead) {
        if scope.crc.is_some() {
            self.crc = Crc32c::shift(self.crc, u64::from(next.got)) ^ next.crc;
        }
        self.kept.add(&next.kept.bytes);
        self.books.merge(&next.books);
        self.got += next.got;
        self.end = self.end.max(next.end);
        self.overwritten |= next.overwritten;
    }
}
