//! What a record does to a page, and which data of it an image replaced; one file a resource
//! manager, each the twin of the redo functions in `src/backend/access/`.
//!
//! Pages are rolled forward as recovery would do it. The primary's own page differs from that in
//! bits that no record carries: hints, command ids, dead index entries. Their lengths agree.

mod brin;
mod btree;
mod btree_split;
mod generic;
mod gin;
mod gin_list;
mod gist;
mod hash;
mod heap;
mod heap2;
mod index_tuple;
mod sequence;
mod spgist;

use super::page::Page;
use super::whole::Whole;
use crate::wal::block::BlockRef;
use crate::wal::payload::prune_work::{self, Work};
use crate::wal::rmgr::{
    BRIN, BTREE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SEQUENCE, SPGIST, XLOG,
};

/// A record's work on one of its blocks.
#[derive(Debug, Clone, Copy)]
struct Change<'r> {
    record: &'r Whole<'r>,
    block: &'r BlockRef,
    /// `BLCKSZ`.
    page_bytes: usize,
}

impl<'r> Change<'r> {
    /// Data of the block.
    fn data(&self) -> &'r [u8] {
        self.record.data(self.block)
    }

    /// The page as it is found: made anew, or as it was.
    fn page(&self, before: Option<Page>, special: usize) -> Option<Page> {
        if self.block.will_init { Page::new(self.page_bytes, special) } else { before }
    }
}

/// The page after `record`, from the page before it; `None` where it cannot be followed.
pub fn apply(
    record: &Whole<'_>,
    block: &BlockRef,
    before: Option<Page>,
    page_bytes: usize,
) -> Option<Page> {
    let change = Change { record, block, page_bytes };
    match (record.header.rmgr, block.fork) {
        (HEAP, 0) => heap::apply(change, before),
        (HEAP2, 0) => heap2::apply(change, before),
        (BTREE, 0) => btree::apply(change, before),
        (HASH, 0) => hash::apply(change, before),
        (GIN, 0) => gin::apply(change, before),
        (GIST, 0) => gist::apply(change, before),
        (SEQUENCE, 0) => sequence::apply(change),
        (SPGIST, 0) => spgist::apply(change, before),
        (BRIN, 0) => brin::apply(change, before),
        (GENERIC, _) => generic::apply(change, before),
        _ => None,
    }
}

/// Length of block data that was not logged because an image took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataBytes {
    /// Bytes.
    pub bytes: u16,
    /// Whether it is a guess.
    pub estimated: bool,
}

impl DataBytes {
    fn exact(bytes: usize) -> Option<DataBytes> {
        Some(DataBytes { bytes: u16::try_from(bytes).ok()?, estimated: false })
    }

    fn estimated(bytes: usize) -> Option<DataBytes> {
        Some(DataBytes { bytes: u16::try_from(bytes).ok()?, estimated: true })
    }
}

/// The data that `record` would have had for `block` without its image: `after` is the page of the
/// image, `before` that of the record before, if it is known.
pub fn data_bytes(
    record: &Whole<'_>,
    block: &BlockRef,
    after: &Page,
    before: Option<&Page>,
) -> Option<DataBytes> {
    let change = Change { record, block, page_bytes: after.size() };
    match (record.header.rmgr, block.fork) {
        (HEAP, 0) => heap::data_bytes(change, after),
        (HEAP2, 0) => heap2::data_bytes(change, after, before),
        (BTREE, 0) => btree::data_bytes(change, after, before),
        (HASH, 0) => hash::data_bytes(change, after, before),
        (GIN, 0) => gin::data_bytes(change, after, before),
        (GIST, 0) => gist::data_bytes(change, after, before),
        (SPGIST, 0) => DataBytes::exact(0),
        (BRIN, 0) => brin::data_bytes(change, after),
        (GENERIC, _) => generic::data_bytes(after, before),
        // Pages of the visibility map and those logged as a whole have no data.
        (XLOG, _) | (_, 1..) => DataBytes::exact(0),
        _ => None,
    }
}

/// Length of the data of `block` at the other wal_level, where it may be another one.
pub fn data_elsewhere(record: &Whole<'_>, block: &BlockRef, after: &Page) -> Option<u16> {
    let is_update = record.header.rmgr == HEAP && block.id == 0 && block.fork == 0;
    let change = Change { record, block, page_bytes: after.size() };
    is_update.then(|| heap::updated_elsewhere(change, after)).flatten().map(|data| data.bytes)
}

/// Rows that a record inserts into a table.
pub fn inserted_rows(record: &Whole<'_>) -> u16 {
    match record.header.rmgr {
        HEAP => heap::inserted_rows(record),
        HEAP2 => heap2::inserted_rows(record),
        _ => 0,
    }
}

/// Whether the record prunes a page; `None` if it does not freeze rows either.
pub fn prunes(record: &Whole<'_>) -> Option<bool> {
    let work = (record.header.rmgr == HEAP2).then(|| heap2::work_of(record)).flatten()?;
    (work != Work::Vacuum).then_some(work == Work::Prune)
}

/// Whether it is vacuum that prunes and freezes here, by one record for both.
pub fn is_vacuum_scan(record: &Whole<'_>) -> bool {
    record.header.rmgr == HEAP2 && prune_work::is_scan(record.header.info, record.version)
}

/// The block of a table that vacuum looks at, where only vacuum writes such a record.
pub fn vacuumed(record: &Whole<'_>) -> Option<u32> {
    let is_heap = record.header.rmgr == HEAP2 && heap2::is_vacuum(record);
    let main = || record.blocks.iter().find(|block| block.fork == 0);
    is_heap.then(main).flatten().map(|block| block.block)
}

/// Block data of a record that freezes rows, if it did not: `None` for one that does not freeze, or where
/// pruning and freezing have records of their own; `Some(None)` for one that does nothing else.
pub fn unfrozen(record: &Whole<'_>, block: &BlockRef) -> Option<Option<u16>> {
    (record.header.rmgr == HEAP2).then(|| heap2::unfrozen(record, block)).flatten()
}

/// Whether rows of `block` were looked at before the record was written.
pub fn looks_at(record: &Whole<'_>, block: &BlockRef) -> bool {
    block.fork == 0
        && match record.header.rmgr {
            HEAP => heap::looks_at(record, block),
            HEAP2 => heap2::looks_at(record, block),
            _ => false,
        }
}

/// Whether the data of `block` stay beside an image, for logical decoding.
pub fn keeps_data(record: &Whole<'_>, block: &BlockRef) -> bool {
    block.id == 0
        && match record.header.rmgr {
            HEAP => heap::keeps_data(record),
            HEAP2 => heap2::keeps_data(record),
            _ => false,
        }
}
