//! The blocks that records refer to most often: how often, and by which types of record. Every block
//! takes a row of about 70 bytes, so this is counted only where it was asked for.

use super::amounts::Amounts;
use super::fork_table::{ForkKey, ForkTable};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use walstat_format::block::{BlockRef, RelFileLocator, walk};
use walstat_format::by_key;
use walstat_format::record::Record;
use walstat_format::rmgr::RecordType;
use walstat_read::scan::observe::Observe;

/// All blocks that records refer to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HotBlocks {
    forks: ForkTable<()>,
    /// By number of the fork and of the block.
    #[serde(serialize_with = "by_key::map")]
    rows: HashMap<(u32, u32), Row>,
    without_block: Amounts,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Row {
    amounts: Amounts,
    kinds: Kinds,
}

/// References by kind of record: the first two in the row itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Kinds {
    first: [Kind; 2],
    /// Rarely used: a pointer takes a third of the room of an empty list.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<Kind>>>,
}

/// References from records of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// The type.
    pub record: RecordType,
    /// How many.
    pub refs: u32,
}

impl Default for Kind {
    fn default() -> Kind {
        Kind { record: RecordType { rmgr: 0, slot: 0 }, refs: 0 }
    }
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotBlock {
    /// The fork.
    pub key: ForkKey,
    /// Its number in the fork.
    pub block: u32,
    /// References to it.
    pub refs: u64,
    /// Its share of the records.
    pub amounts: Amounts,
    /// What refers to it, most first.
    pub kinds: Vec<Kind>,
}

impl Kinds {
    fn add(&mut self, kind: Kind) {
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        let mut all = self.first.iter_mut().chain(more);
        let place = all.find(|known| known.refs == 0 || known.record == kind.record);
        match place {
            Some(place) => {
                place.record = kind.record;
                place.refs = place.refs.saturating_add(kind.refs);
            }
            None => self.more.get_or_insert_default().push(kind),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Kind> + '_ {
        let more = self.more.iter().flat_map(|more| more.iter());
        self.first.iter().chain(more).filter(|kind| kind.refs > 0).copied()
    }
}

impl HotBlocks {
    /// How many distinct blocks there are.
    pub fn distinct(&self) -> u64 {
        self.rows.len() as u64
    }

    /// The files that they are of, one for each fork.
    pub fn files(&self) -> impl Iterator<Item = RelFileLocator> {
        self.forks.iter().map(|(key, ())| key.relation)
    }

    /// Records without a block.
    pub fn without_block(&self) -> Amounts {
        self.without_block
    }

    /// The blocks with the most references, the most first; 0: all.
    pub fn hottest(&self, top: usize) -> Vec<HotBlock> {
        let refs = |row: &Row| row.kinds.iter().map(|kind| u64::from(kind.refs)).sum::<u64>();
        let mut order: Vec<_> = self
            .rows
            .iter()
            .filter_map(|((fork, block), row)| {
                Some((Reverse(refs(row)), *self.forks.key(*fork)?, *block, row))
            })
            .collect();
        let place = |entry: &(Reverse<u64>, ForkKey, u32, &Row)| (entry.0, entry.1, entry.2);
        if top > 0 && top < order.len() {
            order.select_nth_unstable_by_key(top, place);
            order.truncate(top);
        }
        order.sort_unstable_by_key(place);
        let hot = |(Reverse(refs), key, block, row): (_, _, _, &Row)| {
            let mut kinds: Vec<Kind> = row.kinds.iter().collect();
            kinds.sort_unstable_by_key(|kind| (Reverse(kind.refs), kind.record));
            HotBlock { key, block, refs, amounts: row.amounts, kinds }
        };
        order.into_iter().map(hot).collect()
    }

    /// Their shares of all records.
    pub fn amounts(&self) -> Amounts {
        let mut amounts = Amounts::default();
        self.rows.values().for_each(|row| amounts.add(&row.amounts));
        amounts
    }

    fn block(&mut self, block: &BlockRef, own: u32, record: RecordType) {
        let fork = self.forks.number(ForkKey::of(block));
        let row = self.rows.entry((fork, block.block)).or_default();
        row.amounts.count += u64::from(own > 0);
        row.amounts.record_bytes += u64::from(own) + u64::from(block.data_bytes);
        if let Some(image) = block.image {
            row.amounts.fpi_count += 1;
            row.amounts.fpi_bytes += u64::from(image.bytes);
        }
        row.kinds.add(Kind { record, refs: 1 });
    }
}

impl Observe for HotBlocks {
    #[inline(never)]
    fn observe(&mut self, record: &Record<'_>) {
        let (parts, total_bytes) = (&record.parts, record.header.total_bytes);
        // Header and main data, for the first block; never 0.
        let mut own = total_bytes - parts.block_data_bytes - parts.fpi_bytes;
        let record_type = record.record_type();
        let walked = walk(record.body.head, total_bytes, record.version, |block| {
            self.block(block, std::mem::take(&mut own), record_type);
        });
        // Whoever has a record has walked over it before: it cannot fail.
        debug_assert!(walked.is_ok());
        if own > 0 {
            self.without_block.count += 1;
            self.without_block.record_bytes += u64::from(own);
        }
    }

    fn merge(&mut self, later: HotBlocks) {
        let forks: Vec<u32> = later.forks.iter().map(|(key, ())| self.forks.number(*key)).collect();
        for ((fork, block), row) in later.rows {
            let Some(fork) = forks.get(fork as usize) else { continue };
            let ours = self.rows.entry((*fork, block)).or_default();
            ours.amounts.add(&row.amounts);
            row.kinds.iter().for_each(|kind| ours.kinds.add(kind));
        }
        self.without_block.add(&later.without_block);
    }
}
