//! Places without a valid record.
//!
//! A [`Gap`] opens where the next record should be and is not. If a valid record follows, it
//! was damage; if nothing follows, it was the end (see [`super::ending`]).

use super::books::Books;
use crate::input::problem::{Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use walstat_format::block::BodyFault;
use walstat_format::lsn::Lsn;
use walstat_format::page::PageFault;
use walstat_format::record_header::HeaderFault;
use walstat_format::version::Version;

/// Why there is no valid record at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The page is not the one that belongs there.
    Page(PageFault),
    /// The bytes cannot be a record header.
    Header(HeaderFault),
    /// The checksum is right, but the parts do not add up to the record's length.
    Body(BodyFault),
    /// The record's checksum fails.
    Checksum {
        /// As computed.
        found: u32,
        /// As the record says.
        expected: u32,
    },
    /// The page does not continue the record, or continues a record that did not begin before it.
    Continuation {
        /// `xlp_rem_len` of the page, if it says that it continues a record.
        found: Option<u32>,
        /// Bytes still to come of the record begun earlier.
        expected: Option<u32>,
    },
    /// The file ends inside a page or a record, or before the segment is full.
    Cut,
    /// The bytes cannot be read: an I/O error, a damaged compressed file.
    Unreadable(String),
}

/// A part of the WAL without a valid record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where the record should be.
    pub start: Lsn,
    /// Where the reason was seen: the record itself, or a later page.
    pub seen_at: Lsn,
    /// The reason.
    pub cause: Cause,
    /// Length of the record at `start`, if its header is plausible.
    pub record_bytes: Option<u32>,
    /// What the bytes are, if the WAL ends here.
    pub counts: Books,
    /// Whether old content follows in the segment where the gap starts.
    pub stale_follows: bool,
    /// Whether a valid record of this WAL lies in it, on a page whose header is wrong.
    pub record_follows: bool,
}

impl Gap {
    /// The problem to report for this gap, if a record follows it.
    pub fn problem(&self, version: &Version) -> Problem {
        let (expected, found) = self.cause.texts(self.seen_at, version);
        let is_here = self.seen_at == self.start;
        let found = if is_here { found } else { format!("{found} at {}", self.seen_at) };
        Problem {
            kind: self.cause.kind(),
            segment: String::new(),
            lsn: Some(self.start),
            expected,
            found,
            skipped_bytes: self.counts.total(),
        }
    }
}

impl Cause {
    /// The kind of problem.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Cause::Page(PageFault::Zero) => ProblemKind::ZeroPage,
            Cause::Page(PageFault::Magic { .. }) => ProblemKind::PageMagic,
            Cause::Page(PageFault::Flags { .. }) => ProblemKind::PageFlags,
            Cause::Page(PageFault::Foreign { .. }) => ProblemKind::ForeignSegment,
            Cause::Page(PageFault::Address { .. } | PageFault::Left { .. }) => {
                ProblemKind::PageAddress
            }
            Cause::Page(PageFault::Timeline { .. }) => ProblemKind::PageTimeline,
            Cause::Header(HeaderFault::Length { found: 0 }) => ProblemKind::ZeroHole,
            Cause::Header(HeaderFault::Length { .. } | HeaderFault::Overlap { .. }) => {
                ProblemKind::RecordLength
            }
            Cause::Header(HeaderFault::Rmgr { .. }) => ProblemKind::Rmgr,
            Cause::Header(HeaderFault::Previous { .. }) => ProblemKind::PrevLink,
            Cause::Body(_) => ProblemKind::RecordBody,
            Cause::Checksum { .. } => ProblemKind::Checksum,
            Cause::Continuation { .. } => ProblemKind::Continuation,
            Cause::Cut => ProblemKind::Truncated,
            Cause::Unreadable(_) => ProblemKind::Unreadable,
        }
    }

    /// What was expected and what was found at `lsn`.
    fn texts(&self, lsn: Lsn, version: &Version) -> (String, String) {
        match self {
            Cause::Page(fault) => (fault.expected(lsn), fault.found()),
            Cause::Header(fault) => (fault.expected(version), fault.found()),
            Cause::Body(fault) => ("parts that add up to the record".into(), fault.to_string()),
            Cause::Checksum { found, expected } => {
                (format!("checksum 0x{expected:08X}"), format!("checksum 0x{found:08X}"))
            }
            Cause::Continuation { found, expected } => {
                let text = |left: &Option<u32>| match left {
                    Some(bytes) => format!("a page that continues a record by {bytes} bytes"),
                    None => "a page that continues no record".into(),
                };
                (text(expected), text(found))
            }
            Cause::Cut => ("the rest of the segment".into(), "end of file".into()),
            Cause::Unreadable(text) => ("readable bytes".into(), text.clone()),
        }
    }
}
