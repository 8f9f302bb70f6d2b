//! The blocks that the WAL refers to: a number for each, and when it was last stamped.
//!
//! About 20 bytes a block; relations, of which there are few, are numbered first. Neighbours lie together, so
//! that the table of where they lie is small, and mostly in the processor's cache.

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

/// So many of the blocks that were looked up last are found at once: records of a table and of its
/// indexes take turns.
const RECENT: usize = 8;

/// So many blocks that follow each other in a fork lie together: their numbers are one cache line.
const STRETCH_BLOCKS: u32 = 16;

/// The numbers of blocks that follow each other, and what tells them apart from others: both are looked at
/// together.
#[derive(Debug, Clone)]
struct Stretch {
    key: u64,
    numbers: [BlockNumber; STRETCH_BLOCKS as usize],
}

/// In a stretch, a block that was not seen yet.
const UNSEEN: BlockNumber = BlockNumber::MAX;

/// A block that was looked up.
#[derive(Debug, Clone, Copy)]
struct Recent {
    relation: RelFileLocator,
    fork: u8,
    block: u32,
    fork_number: ForkNumber,
    number: BlockNumber,
}

impl Recent {
    #[inline]
    fn is(&self, block: &BlockRef) -> bool {
        self.block == block.block && self.fork == block.fork && self.relation == block.relation
    }
}

/// All blocks and forks seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    forks: Vec<Fork>,
    fork_numbers: HashMap<(RelFileLocator, u8), ForkNumber>,
    /// Places in `stretches`, by forks and first blocks.
    places: HashTable<u32>,
    stretches: Vec<Stretch>,
    /// By block number.
    stamps: Vec<Stamps>,
    hasher: DefaultHashBuilder,
    /// By relation and fork.
    recent: [Option<Recent>; RECENT],
}

impl Blocks {
    /// The numbers of a block's fork, and of the block.
    #[inline]
    pub(crate) fn numbers(&mut self, block: &BlockRef) -> (ForkNumber, BlockNumber) {
        match self.recent.get(slot_of(block)) {
            Some(Some(recent)) if recent.is(block) => (recent.fork_number, recent.number),
            _ => self.look_up_both(block),
        }
    }

    #[inline(never)]
    fn look_up_both(&mut self, block: &BlockRef) -> (ForkNumber, BlockNumber) {
        let fork_number = self.fork_of(block);
        let number = self.look_up(fork_number, block.block);
        if let Some(fork) = self.forks.get_mut(fork_number as usize) {
            fork.blocks = fork.blocks.max(block.block.saturating_add(1));
        }
        let BlockRef { relation, fork, block: place, .. } = *block;
        if let Some(recent) = self.recent.get_mut(slot_of(block)) {
            *recent = Some(Recent { relation, fork, block: place, fork_number, number });
        }
        (fork_number, number)
    }

    /// The number of a block's fork.
    pub(crate) fn fork_of(&mut self, block: &BlockRef) -> ForkNumber {
        if let Some(Some(recent)) = self.recent.get(slot_of(block))
            && (recent.relation, recent.fork) == (block.relation, block.fork)
        {
            return recent.fork_number;
        }
        let next = self.forks.len() as ForkNumber;
        let number = *self.fork_numbers.entry((block.relation, block.fork)).or_insert(next);
        if number == next {
            self.forks.push(Fork::default());
        }
        number
    }

    fn look_up(&mut self, fork: ForkNumber, block: u32) -> BlockNumber {
        let next = self.stamps.len() as BlockNumber;
        let place = self.stretch_of(fork, block);
        let stretch = self.stretches.get_mut(place);
        let Some(number) = stretch.and_then(|own| own.numbers.get_mut(within(block))) else {
            return next;
        };
        if *number == UNSEEN {
            *number = next;
            self.stamps.push(Stamps::default());
        }
        *number
    }

    /// The place of the stretch with a block.
    fn stretch_of(&mut self, fork: ForkNumber, block: u32) -> usize {
        let Blocks { places, hasher, stretches, .. } = self;
        let key = stretch_key(fork, block);
        let key_of = |place: &u32| stretches.get(*place as usize).map_or(0, |own| own.key);
        let next = stretches.len() as u32;
        match places.entry(
            hasher.hash_one(key),
            |place| key_of(place) == key,
            |place| hasher.hash_one(key_of(place)),
        ) {
            Entry::Occupied(found) => return *found.get() as usize,
            Entry::Vacant(free) => _ = free.insert(next),
        }
        stretches.push(Stretch { key, numbers: [UNSEEN; STRETCH_BLOCKS as usize] });
        next as usize
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
        let known: Vec<BlockNumber> = if gone.len() < self.stretches.len() {
            gone.filter_map(|block| self.find(number, block)).collect()
        } else {
            let range = stretch_key(number, gone.start)..=stretch_key(number, u32::MAX);
            let stretches = self.stretches.iter();
            let own = stretches.filter(|own| range.contains(&own.key)).flat_map(|own| {
                let first = own.key as u32 * STRETCH_BLOCKS;
                (first..=first | (STRETCH_BLOCKS - 1)).zip(&own.numbers)
            });
            let cut = own.filter(|(block, number)| gone.contains(block) && **number != UNSEEN);
            cut.map(|(_, number)| *number).collect()
        };
        known.into_iter().for_each(|block| self.stamp(block, Stamps::default()));
        self.recent = Default::default();
    }

    fn find(&self, fork: ForkNumber, block: u32) -> Option<BlockNumber> {
        let key = stretch_key(fork, block);
        let is_it = |place: &u32| {
            let stretch = self.stretches.get(*place as usize);
            stretch.is_some_and(|stretch| stretch.key == key)
        };
        let place = *self.places.find(self.hasher.hash_one(key), is_it)?;
        let number = *self.stretches.get(place as usize)?.numbers.get(within(block))?;
        (number != UNSEEN).then_some(number)
    }

    /// Forgets a relation whose files are gone: later files of the same name are another relation's.
    pub(crate) fn forget(&mut self, relation: RelFileLocator) {
        for fork in 0..4 {
            self.fork_numbers.remove(&(relation, fork));
        }
        self.recent = Default::default();
    }
}

/// Where a block is kept that was looked up.
#[inline]
fn slot_of(block: &BlockRef) -> usize {
    (block.relation.relfilenode as usize + usize::from(block.fork)) % RECENT
}

/// What tells apart stretches: the fork, and which one of it.
fn stretch_key(fork: ForkNumber, block: u32) -> u64 {
    u64::from(fork) << 32 | u64::from(block / STRETCH_BLOCKS)
}

/// The place of a block in its stretch.
fn within(block: u32) -> usize {
    (block % STRETCH_BLOCKS) as usize
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
        blocks.numbers(reference).1
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
