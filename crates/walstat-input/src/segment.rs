//! A segment of the plan: which one it is, how much of it its name says the file holds, and where its
//! bytes are.

use super::input_kind::InputKind;
use super::names::{Standing, compression_suffix, file_name};
use super::probe::{FirstPage, NotWal};
use super::source::Source;
use super::suffixes::{self, Suffix};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;

/// One file of a segment.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Segment number: LSN divided by the segment size.
    pub number: u64,
    /// Timeline of the file.
    pub timeline: u32,
    /// Length of the file if it is not compressed, bytes.
    pub raw_bytes: Option<u64>,
    /// When the file was last written to, before the reading began.
    pub modified: Option<SystemTime>,
    /// SHA-1 of the uncompressed segment, if the file's name has it.
    pub sha1: Option<Arc<str>>,
    /// Whether the file's name says which segment it is, and not its first page.
    pub named: bool,
    /// How much of the segment the file has to hold, by its name.
    pub standing: Standing,
    /// What the directory where it lies is taken for.
    pub taken_for: InputKind,
    /// Its first page, or why it is none.
    pub first_page: Result<FirstPage, NotWal>,
    /// Whether its bytes come compressed.
    pub compressed: bool,
    /// Where its bytes are.
    pub source: Source,
    /// Index of the piece that it was made from.
    pub piece: usize,
}

/// Whatever still copies a file into place writes to it at least this often.
const AT_REST: Duration = Duration::from_secs(10);

impl Segment {
    /// The file's name, to be shown.
    pub fn file(&self) -> String {
        file_name(self.source.path())
    }

    /// Whether a tool unpacks it where it is fetched, by its name.
    pub fn is_to_be_unpacked(&self) -> bool {
        compression_suffix(&self.file()).is_some()
    }

    /// Whether it is empty, and the tool that unpacks it takes that for an empty file.
    pub fn is_unpacked_to_nothing(&self) -> bool {
        let takes_nothing = |suffix| suffixes::of(suffix).is_some_and(Suffix::takes_nothing);
        self.raw_bytes == Some(0) && compression_suffix(&self.file()).is_some_and(takes_nothing)
    }

    /// Whether the file has to hold a whole segment, by its name.
    pub fn claims_whole_segment(&self) -> bool {
        self.standing <= Standing::Unusual
    }

    /// Where the record ends that goes on in it, as its first page says; `None`: there is none.
    pub fn lead_end(&self, geometry: &Geometry) -> Option<Lsn> {
        let begin = Lsn(self.number * u64::from(geometry.segment_bytes));
        let header = &self.first_page.as_ref().ok()?.header;
        let goes_on = header.continues() && header.address == begin;
        goes_on.then(|| geometry.advance(begin, u64::from(header.remaining)))
    }

    /// Whether a `restore_command` that fetches the other files fetches this one, too.
    pub fn is_asked_for(&self) -> bool {
        self.standing == Standing::Full
    }

    /// Whether nobody writes to the file any more, as far as can be told: it is in no server's own directory,
    /// and is not being received.
    pub fn is_at_rest(&self) -> bool {
        let age = self.modified.and_then(|time| time.elapsed().ok());
        self.taken_for != InputKind::PgWal
            && self.standing != Standing::Partial
            && age.is_some_and(|age| age >= AT_REST)
    }

    /// Whether it has to be filled with records to its end: in an archive, under a segment's full name.
    pub fn must_be_full(&self) -> bool {
        self.claims_whole_segment() && self.taken_for == InputKind::Archive
    }
}
