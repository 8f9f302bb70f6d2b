//! The view of a record that every dimension sees, and what a dimension is.

use super::body::Body;
use crate::wal::block::places::{StoredPlace, places};
use crate::wal::block::{BlockMark, BlockRef, Blocks, Image, Parts};
use crate::wal::lsn::Lsn;
use crate::wal::record::RecordHeader;
use crate::wal::rmgr::RecordType;
use crate::wal::version::Version;
use std::borrow::Cow;
use std::ops::Range;

/// One valid record, borrowed from the window at hand.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// After its last byte, not rounded up.
    pub end: Lsn,
    /// The 24 bytes before everything else.
    pub header: RecordHeader,
    /// Sums over its parts.
    pub parts: Parts,
    /// The release that wrote it.
    pub version: &'static Version,
    /// Its bytes.
    pub body: Body<'a>,
}

/// A full page image as it is stored, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage<'a> {
    /// What its header says.
    pub header: Image,
    /// As stored: hole removed, compressed.
    pub bytes: Cow<'a, [u8]>,
}

/// What follows the headers is there for every record if the dimension asks for whole records
/// ([`Observe::WHOLE`]). Else it is `None` where a record goes on after the window at hand, but for
/// its first 1,024 bytes.
impl<'a> Record<'a> {
    /// Its type, as the release's own tool counts it.
    #[inline(always)]
    pub fn record_type(&self) -> RecordType {
        RecordType::of(self.header.rmgr, self.header.info, self.version)
    }

    /// The blocks that it refers to, in the order of their ids.
    #[inline(always)]
    pub fn blocks(&self) -> Blocks<'a> {
        Blocks::of(self.body.head, self.parts.head_bytes, self.version)
    }

    /// The mark of its block, if it refers to one block, without an image, and has the commonest form.
    /// Costs next to nothing.
    #[inline(always)]
    pub fn block_mark(&self) -> Option<BlockMark> {
        BlockMark::of(self.body.head, &self.parts)
    }

    /// Calls `visit` with the place of every block that it refers to, and whether there is an image:
    /// less work than [`Record::blocks`].
    #[inline(always)]
    pub fn for_each_place(&self, visit: impl FnMut(&StoredPlace, bool)) {
        places(self.body.head, self.parts.head_bytes, self.version, visit);
    }

    /// The replication origin that it came from.
    pub fn origin(&self) -> Option<u16> {
        self.blocks().labels().origin
    }

    /// The top-level transaction of the one in its header, where it says so.
    pub fn toplevel_xid(&self) -> Option<u32> {
        self.blocks().labels().toplevel_xid
    }

    /// Its main data; empty if it has none.
    #[inline]
    pub fn main_data(&self) -> Option<Cow<'a, [u8]>> {
        let length = self.parts.main_data_bytes;
        self.body.get((self.header.total_bytes - length) as usize, length as usize)
    }

    /// The first bytes of its main data, which cost nothing, if it has no other payload: all of them,
    /// or of a record that crosses a page at least 1,000.
    #[inline(always)]
    pub fn main_data_start(&self) -> &'a [u8] {
        let from = self.header.total_bytes - self.parts.main_data_bytes;
        // Behind images and data of blocks it depends on the way of reading how much is at hand.
        let start = self.body.head.get(from as usize..).filter(|_| from == self.parts.head_bytes);
        start.unwrap_or_default()
    }

    /// The data of one of its blocks; empty if it has none.
    pub fn block_data(&self, block: &BlockRef) -> Option<Cow<'a, [u8]>> {
        let image_bytes = block.image.map_or(0, |image| u32::from(image.bytes));
        let from = self.parts.head_bytes + block.payload_at + image_bytes;
        self.body.get(from as usize, usize::from(block.data_bytes))
    }

    /// The image of one of its blocks; `None` if it has none.
    pub fn image(&self, block: &BlockRef) -> Option<StoredImage<'a>> {
        let header = block.image?;
        let from = self.parts.head_bytes + block.payload_at;
        let bytes = self.body.get(from as usize, usize::from(header.bytes))?;
        Some(StoredImage { header, bytes })
    }
}

/// A dimension of the statistics: sees every selected record once, in LSN order within a run;
/// runs are merged in WAL order.
///
/// It is made from a prototype, configured and empty: each run is counted by a copy of it. What is
/// merged must not depend on how the WAL was divided into runs.
pub trait Observe: Send + Clone {
    /// Whether it needs all bytes of every record. Only then are those of records kept that go on
    /// after a window or a run.
    const WHOLE: bool = false;

    /// Whether it keeps records as they are until nothing earlier can come any more. Runs are shorter
    /// then.
    const KEEPS: bool = false;

    /// Takes note of a record.
    fn observe(&mut self, record: &Record<'_>);

    /// Takes note of a record that the filters left out.
    #[inline(always)]
    fn passed_over(&mut self, _record: &Record<'_>) {}

    /// Takes note that records are missing here, after what it has seen: damage, or segments that
    /// are not there. Not told of what lies before the first record. The range may be empty where
    /// all that is known is that two records do not link.
    fn lost(&mut self, _range: Range<Lsn>) {}

    /// Adds what the run after this one has seen.
    fn merge(&mut self, later: Self);

    /// Told now and then while the scan goes on: what it has seen begins with the first record of
    /// the scan, and nothing earlier can come any more. So it may hand on what is final, in WAL
    /// order, and forget it. (Where a server was writing, the scan is begun anew from the prototype,
    /// and what was handed on is void.)
    fn settle(&mut self) {}

    /// Takes as little memory as it can until it is merged: many may be waiting.
    fn shrink(&mut self) {}
}

/// Counts nothing: for who only wants to know whether the WAL is sound.
impl Observe for () {
    #[inline(always)]
    fn observe(&mut self, _: &Record<'_>) {}

    fn merge(&mut self, _later: ()) {}
}

/// Two dimensions are one: the set asked for is a type, known before the scan.
impl<A: Observe, B: Observe> Observe for (A, B) {
    const WHOLE: bool = A::WHOLE || B::WHOLE;
    const KEEPS: bool = A::KEEPS || B::KEEPS;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.0.observe(record);
        self.1.observe(record);
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.0.passed_over(record);
        self.1.passed_over(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range.clone());
        self.1.lost(range);
    }

    fn merge(&mut self, later: Self) {
        self.0.merge(later.0);
        self.1.merge(later.1);
    }

    fn settle(&mut self) {
        self.0.settle();
        self.1.settle();
    }

    fn shrink(&mut self) {
        self.0.shrink();
        self.1.shrink();
    }
}

/// A dimension that may not be asked for. All runs of a scan have it, or none.
impl<O: Observe> Observe for Option<O> {
    const WHOLE: bool = O::WHOLE;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if let Some(dimension) = self {
            dimension.observe(record);
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if let Some(dimension) = self {
            dimension.passed_over(record);
        }
    }

    fn lost(&mut self, range: Range<Lsn>) {
        if let Some(dimension) = self {
            dimension.lost(range);
        }
    }

    fn merge(&mut self, later: Self) {
        if let (Some(dimension), Some(later)) = (self, later) {
            dimension.merge(later);
        }
    }

    fn settle(&mut self) {
        if let Some(dimension) = self {
            dimension.settle();
        }
    }

    fn shrink(&mut self) {
        if let Some(dimension) = self {
            dimension.shrink();
        }
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
