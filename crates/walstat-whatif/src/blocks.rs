//! The blocks that the WAL refers to: a number for each, and when it was last stamped.
//!
//! A table of about 32 bytes a block; relations, of which there are few, are numbered first.

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::lsn::Lsn;

/// The number of a block in order of first reference.
pub(crate) type BlockNumber = u32;
/// The number of a relation's fork in order of first reference.
pub(crate) type ForkNumber = u32;

/// Ordinal of a record, from [`FIRST`].
pub(crate) type Ordinal = u32;
/// Before all that is known.
pub(crate) const NEVER: Ordinal = 0;
/// Before the first record, and after the redo point that was in force there.
pub(crate) const BEFORE: Ordinal = 1;
/// The first record.
pub(crate) const FIRST: Ordinal = 2;

/// When a block was stamped last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamps {
    /// Where changes of hint bits are logged.
    pub(crate) with_hints: Ordinal,
    /// Where they are not.
    pub(crate) without_hints: Ordinal,
    /// Where the record of the later one starts.
    pub(crate) at: Lsn,
}

/// What is kept of a fork.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fork {
    /// Images seen.
    pub(crate) images: u64,
    /// Their bytes without holes, not compressed.
    pub(crate) image_bytes: u64,
    /// Blocks up to the last one seen.
    blocks: u32,
}

/// So many of the blocks and forks that were looked up last are found at once: records of a table and of its
/// indexes take turns.
const RECENT: usize = 8;

/// All blocks and forks seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    forks: Vec<Fork>,
    fork_numbers: HashMap<(RelFileLocator, u8), ForkNumber>,
    /// By their forks and blocks, which are in `keys`.
    numbers: HashTable<BlockNumber>,
    keys: Vec<u64>,
    stamps: Vec<Stamps>,
    hasher: DefaultHashBuilder,
    recent_forks: [Option<(RelFileLocator, u8, ForkNumber)>; RECENT],
    recent_blocks: [Option<(u64, BlockNumber)>; RECENT],
}

impl Blocks {
    /// The number of a block's fork.
    pub(crate) fn fork_of(&mut self, block: &BlockRef) -> ForkNumber {
        let slot = (block.relation.relfilenode as usize + usize::from(block.fork)) % RECENT;
        if let Some(Some((relation, fork, number))) = self.recent_forks.get(slot)
            && *relation == block.relation
            && *fork == block.fork
        {
            return *number;
        }
        let next = self.forks.len() as ForkNumber;
        let (relation, fork) = (block.relation, block.fork);
        let number = *self.fork_numbers.entry((relation, fork)).or_insert(next);
        if number == next {
            self.forks.push(Fork::default());
        }
        if let Some(recent) = self.recent_forks.get_mut(slot) {
            *recent = Some((relation, fork, number));
        }
        number
    }

    /// The number of a block in its fork.
    pub(crate) fn number(&mut self, fork: ForkNumber, block: u32) -> BlockNumber {
        let key = u64::from(fork) << 32 | u64::from(block);
        let slot = fork as usize % RECENT;
        if let Some(Some((recent, number))) = self.recent_blocks.get(slot)
            && *recent == key
        {
            return *number;
        }
        let number = self.look_up(key);
        if let Some(fork) = self.forks.get_mut(fork as usize) {
            fork.blocks = fork.blocks.max(block.saturating_add(1));
        }
        if let Some(recent) = self.recent_blocks.get_mut(slot) {
            *recent = Some((key, number));
        }
        number
    }

    fn look_up(&mut self, key: u64) -> BlockNumber {
        let Blocks { numbers, keys, hasher, .. } = self;
        let key_of = |number: &BlockNumber| keys.get(*number as usize).copied().unwrap_or_default();
        let hash = hasher.hash_one(key);
        let is_it = |number: &BlockNumber| key_of(number) == key;
        let next = keys.len() as BlockNumber;
        match numbers.entry(hash, is_it, |number| hasher.hash_one(key_of(number))) {
            Entry::Occupied(found) => return *found.get(),
            Entry::Vacant(free) => _ = free.insert(next),
        }
        keys.push(key);
        self.stamps.push(Stamps::default());
        next
    }

    /// When the block was stamped last.
    pub(crate) fn stamps(&self, number: BlockNumber) -> Stamps {
        self.stamps.get(number as usize).copied().unwrap_or_default()
    }

    /// Stamps a block.
    pub(crate) fn stamp(&mut self, number: BlockNumber, stamps: Stamps) {
        if let Some(slot) = self.stamps.get_mut(number as usize) {
            *slot = stamps;
        }
    }

    /// Stamps a block, and says when it was stamped before.
    #[inline]
    pub(crate) fn stamp_anew(&mut self, number: BlockNumber, stamps: Stamps) -> Stamps {
        let slot = self.stamps.get_mut(number as usize);
        slot.map_or_else(Stamps::default, |slot| std::mem::replace(slot, stamps))
    }

    /// A fork.
    pub(crate) fn fork(&self, number: ForkNumber) -> Option<&Fork> {
        self.forks.get(number as usize)
    }

    /// A fork, to be added to.
    pub(crate) fn fork_mut(&mut self, number: ForkNumber) -> Option<&mut Fork> {
        self.forks.get_mut(number as usize)
    }

    /// Forgets the blocks of a fork that is cut off: the next ones in their place are new.
    pub(crate) fn truncate(&mut self, relation: RelFileLocator, fork: u8, left: u32) {
        let Some(number) = self.fork_numbers.get(&(relation, fork)).copied() else { return };
        let Some(seen) = self.forks.get_mut(number as usize) else { return };
        let gone = left..seen.blocks.max(left);
        seen.blocks = seen.blocks.min(left);
        let key = |block: u32| u64::from(number) << 32 | u64::from(block);
        let known: Vec<BlockNumber> = if gone.len() < self.keys.len() {
            gone.filter_map(|block| self.find(key(block))).collect()
        } else {
            let range = key(gone.start)..key(gone.end);
            let keys = (0..).zip(&self.keys);
            keys.filter(|(_, key)| range.contains(key)).map(|(number, _)| number).collect()
        };
        known.into_iter().for_each(|block| self.stamp(block, Stamps::default()));
    }

    fn find(&self, key: u64) -> Option<BlockNumber> {
        let is_it = |number: &BlockNumber| self.keys.get(*number as usize) == Some(&key);
        self.numbers.find(self.hasher.hash_one(key), is_it).copied()
    }

    /// Forgets a relation whose files are gone: later files of the same name are another relation's.
    pub(crate) fn forget(&mut self, relation: RelFileLocator) {
        for fork in 0..4 {
            self.fork_numbers.remove(&(relation, fork));
        }
        self.recent_forks = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(relfilenode: u32, fork: u8, block: u32) -> BlockRef {
        BlockRef {
            id: 0,
            fork,
            will_init: false,
            relation: RelFileLocator { tablespace: 1663, database: 5, relfilenode },
            block,
            data_bytes: 0,
            payload_at: 0,
            image: None,
        }
    }

    fn number(blocks: &mut Blocks, reference: &BlockRef) -> BlockNumber {
        let fork = blocks.fork_of(reference);
        blocks.number(fork, reference.block)
    }

    #[test]
    fn a_block_keeps_its_number() {
        let mut blocks = Blocks::default();
        let all = [block(1, 0, 7), block(1, 2, 7), block(2, 0, 7), block(2, 0, 8)];
        let first: Vec<_> = all.iter().map(|b| number(&mut blocks, b)).collect();
        let again: Vec<_> = all.iter().map(|b| number(&mut blocks, b)).collect();
        assert_eq!((first.clone(), first), (again, vec![0, 1, 2, 3]));
    }

    #[test]
    fn blocks_that_are_cut_off_are_new_when_they_come_again() {
        let mut blocks = Blocks::default();
        let stamps = Stamps { with_hints: 5, without_hints: 4, at: Lsn(80) };
        for place in [0, 2] {
            let number = number(&mut blocks, &block(1, 1, place));
            blocks.stamp(number, stamps);
        }
        blocks.truncate(block(1, 1, 0).relation, 1, 1);
        let mut of = |place| {
            let number = number(&mut blocks, &block(1, 1, place));
            blocks.stamps(number)
        };
        assert_eq!((of(0), of(2)), (stamps, Stamps::default()));
    }

    #[test]
    fn a_relation_that_went_away_is_another_one() {
        let mut blocks = Blocks::default();
        let before = number(&mut blocks, &block(1, 0, 7));
        blocks.stamp(before, Stamps { with_hints: 5, without_hints: 4, at: Lsn(80) });
        blocks.forget(block(1, 0, 7).relation);
        let after = number(&mut blocks, &block(1, 0, 7));
        assert_ne!(before, after);
        assert_eq!(blocks.stamps(after), Stamps::default());
        assert_eq!(blocks.stamps(before).with_hints, 5);
    }
}
