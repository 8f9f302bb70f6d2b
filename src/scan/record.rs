//! The view of a record that every dimension sees, and what a dimension is.

use crate::wal::block::{BlockRef, Parts, walk};
use crate::wal::lsn::Lsn;
use crate::wal::record::RecordHeader;
use crate::wal::rmgr::RecordType;
use crate::wal::version::Version;

/// One valid record, borrowed from the window at hand.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// Behind its last byte, not rounded up.
    pub end: Lsn,
    /// The 24 bytes before everything else.
    pub header: RecordHeader,
    /// Sums over its parts.
    pub parts: Parts,
    /// The release that wrote it.
    pub version: &'static Version,
    /// Its first bytes: all of them, or at least everything before the payload of a record
    /// that crosses a page.
    pub head: &'a [u8],
}

impl<'a> Record<'a> {
    /// Its type, as the release's own tool counts it.
    #[inline(always)]
    pub fn record_type(&self) -> RecordType {
        RecordType::of(self.header.rmgr, self.header.info, self.version)
    }

    /// Calls `visit` for every block that the record refers to.
    #[inline]
    pub fn for_each_block(&self, visit: impl FnMut(&BlockRef)) {
        // The reader has walked over it before: it cannot fail.
        let walked = walk(self.head, self.header.total_bytes, self.version, visit);
        debug_assert!(walked.is_ok());
    }

    /// The main data of a record without blocks, as far as the first 1024 bytes of a record
    /// that crosses a page hold it: all of it for transactions and checkpoints up to that size.
    #[inline(always)]
    pub fn main_data_without_blocks(&self) -> &'a [u8] {
        let from = self.parts.head_bytes as usize;
        let payload = self.header.total_bytes - self.parts.head_bytes;
        if payload != self.parts.main_data_bytes {
            return &[];
        }
        self.head.get(from..).unwrap_or_default()
    }
}

/// A dimension of the statistics: sees every selected record once, in LSN order within a run;
/// runs are merged in WAL order.
pub trait Observe: Send + Clone {
    /// Takes note of a record.
    fn observe(&mut self, record: &Record<'_>);
    /// Adds what the run behind this one has seen.
    fn merge(&mut self, later: Self);
    /// Takes as little memory as it can until it is merged: many may be waiting.
    fn shrink(&mut self) {}
}

/// Two dimensions are one: the set asked for is a type, known before the scan.
impl<A: Observe, B: Observe> Observe for (A, B) {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.0.observe(record);
        self.1.observe(record);
    }

    fn merge(&mut self, later: Self) {
        self.0.merge(later.0);
        self.1.merge(later.1);
    }

    fn shrink(&mut self) {
        self.0.shrink();
        self.1.shrink();
    }
}

/// Which records are counted.
pub trait Select: Sync {
    /// Whether the filters let the record pass.
    fn accepts(&self, record: &Record<'_>) -> bool;
}

/// No filter.
#[derive(Debug, Clone, Copy)]
pub struct Everything;

impl Select for Everything {
    #[inline(always)]
    fn accepts(&self, _: &Record<'_>) -> bool {
        true
    }
}
