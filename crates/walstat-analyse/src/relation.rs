//! Who writes the WAL: bytes by fork of a relation, what was done to its rows, how keys came into
//! its leaves. Databases, tablespaces and forks are sums of these rows.
//!
//! A record with several blocks is divided: images, block data and references go to their own
//! block, header and main data to the first one's. So the rows add up to all records. Names are not
//! known here.

use super::amounts::Amounts;
use super::block_set::BlockSet;
use super::fork_table::{ForkKey, ForkTable};
use super::leaf::Leaves;
use super::operation::{Operations, Substance};
use super::sparse_column::{Handle, SparseColumn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::block::{BlockMark, BlockRef, Image};
use walstat_format::payload::btree::Insertion;
use walstat_format::payload::heap::{OPCODE_MASK, Update};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// All relations that records refer to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Relations {
    table: ForkTable<Row>,
    operations: SparseColumn<Operations>,
    substances: SparseColumn<Substance>,
    images: SparseColumn<Images>,
    leaves: SparseColumn<Leaves>,
    without_block: Amounts,
    streak: Streak,
}

/// Consecutive records of the same type on the same block, without images. They are added to their
/// relation when another record comes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Streak {
    rmgr: u8,
    info: u8,
    mark: BlockMark,
    count: u64,
    total_bytes: u64,
    block_data_bytes: u64,
}

/// What is kept of each fork.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Row {
    amounts: Amounts,
    block_refs: u64,
    block_data_bytes: u64,
    blocks: BlockSet,
    operations: Handle,
    substance: Handle,
    images: Handle,
    leaves: Handle,
}

sums! {
    /// Images that no change of a row or of a key made.
    #[derive(Serialize, Deserialize)]
    pub struct Images {
        /// Images for hint bits.
        hint_count,
        /// Their bytes.
        hint_bytes,
        /// Images of new pages: index builds, rewrites, copies.
        new_page_count,
        /// Their bytes.
        new_page_bytes,
    }
}

/// What is known of one fork.
#[derive(Debug)]
pub struct Relation<'a> {
    /// Which one; `None`: records without a block.
    pub key: Option<ForkKey>,
    /// Its share of the records.
    pub amounts: Amounts,
    /// References to its blocks.
    pub block_refs: u64,
    /// Their data.
    pub block_data_bytes: u64,
    /// Distinct blocks of it.
    pub distinct_blocks: u64,
    /// Images of a special reason.
    pub images: Images,
    /// What was done to its rows.
    pub operations: Operations,
    /// What its records carry besides the change.
    pub substance: Substance,
    /// Insertions into its leaves, if it is seen to be a B-tree.
    pub leaves: Option<&'a Leaves>,
}

/// Forks taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// Their share of the records.
    pub amounts: Amounts,
    /// References to their blocks.
    pub block_refs: u64,
    /// Distinct blocks of them.
    pub distinct_blocks: u64,
}

/// Whether images of a record have a reason of their own.
#[derive(Clone, Copy, PartialEq)]
enum ImageReason {
    Usual,
    Hint,
    NewPage,
}

fn image_reason(record: &Record<'_>) -> ImageReason {
    match (record.header.rmgr, record.header.rmgr_info()) {
        (rmgr::XLOG, xlog::FPI_FOR_HINT) => ImageReason::Hint,
        (rmgr::XLOG, xlog::FPI | xlog::FPI_MULTI) => ImageReason::NewPage,
        _ => ImageReason::Usual,
    }
}

impl Relations {
    /// How many forks there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no record refers to a block.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// All forks, in no order that means anything; the records without a block last, if there are
    /// any.
    pub fn rows(&self) -> impl Iterator<Item = Relation<'_>> {
        let without = Relation::without_block(self.without_block);
        let rows = self.table.iter().map(|(key, row)| self.relation(*key, row));
        rows.chain((self.without_block.count > 0).then_some(without))
    }

    /// The row of this number, in the order of [`Relations::rows`].
    pub fn row(&self, number: usize) -> Option<Relation<'_>> {
        match self.table.row(number) {
            Some((key, row)) => Some(self.relation(*key, row)),
            None => (number == self.len() && self.without_block.count > 0)
                .then(|| Relation::without_block(self.without_block)),
        }
    }

    fn relation(&self, key: ForkKey, row: &Row) -> Relation<'_> {
        Relation {
            key: Some(key),
            amounts: row.amounts,
            block_refs: row.block_refs,
            block_data_bytes: row.block_data_bytes,
            distinct_blocks: row.blocks.len(),
            images: self.images.get(row.images).copied().unwrap_or_default(),
            operations: self.operations.get(row.operations).copied().unwrap_or_default(),
            substance: self.substances.get(row.substance).copied().unwrap_or_default(),
            leaves: self.leaves.get(row.leaves),
        }
    }

    /// Sums by what `group` says of a fork, in its order; the records without a block at `None`,
    /// if there are any.
    pub fn by<G: Ord>(&self, group: impl Fn(&ForkKey) -> G) -> BTreeMap<Option<G>, Group> {
        let mut groups: BTreeMap<Option<G>, Group> = BTreeMap::new();
        for row in self.rows() {
            groups.entry(row.key.as_ref().map(&group)).or_default().add(&row);
        }
        groups
    }

    /// Counts a record with its mark, if it has one; whether it goes on with the streak of those before.
    #[inline(always)]
    pub fn take(&mut self, record: &Record<'_>, mark: Option<BlockMark>) -> bool {
        let goes_on = mark.is_some_and(|mark| self.streak.takes(record, mark));
        if !goes_on {
            self.another(record, mark);
        }
        goes_on
    }

    /// Counts a record that ends the streak; `mark`: what one can be told by that goes on with its own.
    #[inline(never)]
    fn another(&mut self, record: &Record<'_>, mark: Option<BlockMark>) {
        self.end_streak();
        let RecordHeader { rmgr, info, total_bytes, .. } = record.header;
        if let Some(mark) = mark
            && Streak::may_begin_with(record)
        {
            self.streak = Streak { rmgr, info, mark, ..Streak::default() };
            self.streak.add(record);
            return;
        }
        let parts = &record.parts;
        // Never 0: a header has 24 bytes.
        let mut own = total_bytes - parts.block_data_bytes - parts.fpi_bytes;
        let mut heap = rmgr == rmgr::HEAP || rmgr == rmgr::HEAP2;
        for block in record.blocks() {
            self.block(record, &block, std::mem::take(&mut own), &mut heap);
        }
        if own > 0 {
            self.without_block.count += 1;
            self.without_block.record_bytes += u64::from(own);
        }
        if rmgr == rmgr::BTREE {
            self.btree(record);
        }
    }

    /// Adds the records of the streak to their relation.
    fn end_streak(&mut self) {
        let Streak { rmgr, info, mark, count, total_bytes, block_data_bytes } = self.streak;
        if count == 0 {
            return;
        }
        self.streak.count = 0;
        let row = self.table.value(ForkKey { relation: mark.relation(), fork: mark.fork() });
        row.amounts.count += count;
        row.amounts.record_bytes += total_bytes;
        row.block_refs += count;
        row.block_data_bytes += block_data_bytes;
        row.blocks.insert(mark.block());
        if mark.fork() == 0 && rmgr == rmgr::HEAP {
            self.operations.value(&mut row.operations).count_alike(info & OPCODE_MASK, count);
        }
        if mark.fork() == 0 && rmgr == rmgr::BTREE {
            self.leaves.value(&mut row.leaves).insert(mark.block(), count);
        }
    }

    /// Counts a reference; `own`: header and main data, for the first block of the record. The
    /// heap's main fork is that of the first main-fork block: marks in the visibility map have the
    /// map's block before it.
    #[inline(always)]
    fn block(&mut self, record: &Record<'_>, block: &BlockRef, own: u32, heap: &mut bool) {
        let row = self.table.value(ForkKey::of(block));
        row.block_refs += 1;
        row.block_data_bytes += u64::from(block.data_bytes);
        row.blocks.insert(block.block);
        row.amounts.count += u64::from(own > 0);
        row.amounts.record_bytes += u64::from(own) + u64::from(block.data_bytes);
        if *heap && block.fork == 0 {
            *heap = false;
            self.operations.value(&mut row.operations).count(record, block);
            if let Some(substance) = Substance::of(record) {
                self.substances.value(&mut row.substance).add(&substance);
            }
        }
        if let Some(image) = &block.image {
            row.amounts.fpi_count += 1;
            row.amounts.fpi_bytes += u64::from(image.bytes);
            let reason = image_reason(record);
            if reason != ImageReason::Usual {
                self.images.value(&mut row.images).count(image, reason);
            }
        }
    }

    #[inline(never)]
    fn btree(&mut self, record: &Record<'_>) {
        let Some(block) = record.blocks().find(|block| block.fork == 0) else { return };
        let row = self.table.value(ForkKey::of(&block));
        self.leaves.value(&mut row.leaves).observe(record);
    }
}

impl Streak {
    /// Counts a record if it goes on with the streak.
    #[inline(always)]
    fn takes(&mut self, record: &Record<'_>, mark: BlockMark) -> bool {
        let goes_on = record.header.rmgr == self.rmgr
            && record.header.info == self.info
            && mark == self.mark
            && record.parts.main_data_bytes <= Update::BYTES
            && self.count > 0;
        if goes_on {
            self.add(record);
        }
        goes_on
    }

    #[inline(always)]
    fn add(&mut self, record: &Record<'_>) {
        self.count += 1;
        self.total_bytes += u64::from(record.header.total_bytes);
        self.block_data_bytes += u64::from(record.parts.block_data_bytes);
    }

    /// Whether a streak may begin with a record: nothing of it counts but its type and its block, if it has
    /// only one.
    fn may_begin_with(record: &Record<'_>) -> bool {
        let RecordHeader { rmgr, info, .. } = record.header;
        let is_leaf =
            || matches!(Insertion::of(info, record.version), Some(Insertion::Leaf { .. }));
        record.parts.main_data_bytes <= Update::BYTES
            && (rmgr == rmgr::HEAP || rmgr == rmgr::BTREE && is_leaf())
    }
}

impl Relation<'_> {
    fn without_block(amounts: Amounts) -> Relation<'static> {
        Relation {
            key: None,
            amounts,
            block_refs: 0,
            block_data_bytes: 0,
            distinct_blocks: 0,
            images: Images::default(),
            operations: Operations::default(),
            substance: Substance::default(),
            leaves: None,
        }
    }
}

impl Group {
    /// Adds a fork.
    pub fn add(&mut self, row: &Relation<'_>) {
        self.amounts.add(&row.amounts);
        self.block_refs += row.block_refs;
        self.distinct_blocks += row.distinct_blocks;
    }
}

impl Images {
    fn count(&mut self, image: &Image, reason: ImageReason) {
        let (count, bytes) = match reason {
            ImageReason::Usual => return,
            ImageReason::Hint => (&mut self.hint_count, &mut self.hint_bytes),
            ImageReason::NewPage => (&mut self.new_page_count, &mut self.new_page_bytes),
        };
        *count += 1;
        *bytes += u64::from(image.bytes);
    }
}

impl Observe for Relations {
    // Main data stands after the images, where a window may end.
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.take(record, record.block_mark());
    }

    fn merge(&mut self, mut later: Relations) {
        self.end_streak();
        later.end_streak();
        let Relations { table, mut operations, mut substances, mut images, mut leaves, .. } = later;
        for (key, row) in table.into_rows() {
            let ours = self.table.value(key);
            ours.amounts.add(&row.amounts);
            ours.block_refs += row.block_refs;
            ours.block_data_bytes += row.block_data_bytes;
            ours.blocks.merge(row.blocks);
            if let Some(theirs) = operations.take(row.operations) {
                self.operations.value(&mut ours.operations).add(&theirs);
            }
            if let Some(theirs) = substances.take(row.substance) {
                self.substances.value(&mut ours.substance).add(&theirs);
            }
            if let Some(theirs) = images.take(row.images) {
                self.images.value(&mut ours.images).add(&theirs);
            }
            if let Some(theirs) = leaves.take(row.leaves) {
                self.leaves.value(&mut ours.leaves).merge(theirs);
            }
        }
        self.without_block.add(&later.without_block);
    }

    fn settle(&mut self) {
        self.end_streak();
        self.leaves.values_mut().for_each(Leaves::settle);
        self.table.values_mut().for_each(|row| row.blocks.settle());
    }

    fn shrink(&mut self) {
        self.end_streak();
        self.table.values_mut().for_each(|row| row.blocks.settle());
        self.table.shrink();
        self.operations.shrink();
        self.substances.shrink();
        self.images.shrink();
        self.leaves.shrink();
    }
}
