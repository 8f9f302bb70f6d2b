//! The short way of most records: a change of one page of a table, or an entry into a leaf of a B-tree,
//! without an image. Neither is anything to simulate beyond its block, so most questions are not asked.

use super::{TraceBuilder, is_next};
use crate::blocks::{BEFORE, BlockNumber, ForkNumber, NEVER, Ordinal, Stamps};
use crate::level;
use crate::redo;
use crate::trace::{Entry, TracedBlock, TracedRecord, WalLevelDelta, entry_fact};
use crate::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::rmgr::HEAP;

/// The block of a record that goes the short way.
#[inline]
pub(super) fn block_of<'a>(record: &WholeRecord<'a>) -> Option<&'a BlockRef> {
    let [block] = record.blocks else { return None };
    (block.id == 0 && redo::is_plain(record, block)).then_some(block)
}

impl TraceBuilder {
    /// Takes a record whose only block is `block`.
    pub(super) fn push_plain(&mut self, record: &WholeRecord<'_>, block: &BlockRef) {
        let ordinal = self.trace.records.next_ordinal();
        let is_row = record.header.rmgr == HEAP;
        let (fork, number) = self.blocks.numbers(block);
        let facts = if is_row { facts_of_row(record, block) } else { 0 };
        let reference = self.plain_reference(record, block, (fork, number), ordinal);
        let reference = TracedBlock { facts: reference.facts | facts, ..reference };
        if facts & entry_fact::LOOKED_AT != 0 {
            self.fork = fork;
            self.refs.clear();
            self.refs.push(reference);
            self.freeze(record);
        }
        self.note_beside(record.header.xid, ordinal);
        let rows = if is_row { redo::inserted_rows(record) } else { 0 };
        if rows > 0 {
            self.finder.inserted(fork, rows);
        }
        let follows = self.end.is_some_and(|end| is_next(end, record.lsn));
        self.end = Some(record.end);
        let entry = Entry {
            lsn: record.lsn,
            bytes: record.header.total_bytes,
            fixed_bytes: record.header.total_bytes - record.parts.block_data_bytes,
            kind: record.record_type(),
            refs: 1,
            rows,
            table: if rows > 0 { fork } else { 0 },
        };
        let (refs, delta) = (&[reference], WalLevelDelta::default());
        let traced = TracedRecord { ordinal, entry: &entry, refs, effect: None, delta };
        self.trace.records.push(&traced, follows);
    }

    /// Its block, but for what only rows have.
    #[inline]
    fn plain_reference(
        &mut self,
        record: &WholeRecord<'_>,
        block: &BlockRef,
        (fork, number): (ForkNumber, BlockNumber),
        ordinal: Ordinal,
    ) -> TracedBlock {
        self.usual.note(record.record_type(), block);
        let (image_bytes, of_image) = match self.replayer.change(record, block, number) {
            Some(length) if length.hole > 0 => (length.without_hole(), entry_fact::HOLE),
            Some(length) => (length.page, 0),
            None => (self.mean_image(fork), entry_fact::IMAGE_ESTIMATED),
        };
        let stamps = Stamps { with_hints: ordinal, without_hints: ordinal, at: record.lsn };
        let before = self.blocks.stamp_anew(number, stamps);
        // A page without an image that should have one was stamped before the first record.
        let known = |stamped| if stamped == NEVER && !block.will_init { BEFORE } else { stamped };
        TracedBlock {
            block: number,
            stamped: known(before.with_hints),
            stamped_without_hints: known(before.without_hints),
            data_bytes: block.data_bytes,
            image_bytes: u16::try_from(image_bytes).unwrap_or(u16::MAX),
            stored_bytes: 0,
            facts: entry_fact::STAMPS
                | of_image
                | if block.will_init { 0 } else { entry_fact::USUAL },
        }
    }
}

/// What a change of rows says beyond its page.
fn facts_of_row(record: &WholeRecord<'_>, block: &BlockRef) -> u16 {
    let set = |holds: bool, bit: u16| if holds { bit } else { 0 };
    set(redo::keeps_data(record, block), entry_fact::KEEPS_DATA)
        | set(redo::looks_at(record, block), entry_fact::LOOKED_AT)
        | set(level::keeps_data_at_logical(record), entry_fact::KEPT_AT_LOGICAL)
}
