//! The blocks that the WAL refers to: a number for each, and when it was last stamped.
//!
//! A table of 32 bytes a block; relations, of which there are few, are numbered first.

use crate::wal::block::{BlockRef, RelFileLocator};
use crate::wal::lsn::Lsn;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of a block in order of first reference.
pub type BlockNumber = u32;
/// The number of a relation's fork in order of first reference.
pub type ForkNumber = u32;

/// Ordinal of a record, from [`FIRST`].
pub type Ordinal = u32;
/// Before all that is known.
pub const NEVER: Ordinal = 0;
/// Before the first record, and after the redo point that was in force there.
pub const BEFORE: Ordinal = 1;
/// The first record.
pub const FIRST: Ordinal = 2;

/// Mixes the bits of one small key: fork and block.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // An odd constant near 2^64 / golden ratio; the swap brings the good bits down.
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed.swap_bytes();
    }
}

/// A map with keys of one or two integers.
pub type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// When a block was stamped last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// Where changes of hint bits are logged.
    pub with_hints: Ordinal,
    /// Where they are not.
    pub without_hints: Ordinal,
    /// Where the record of the later one starts.
    pub at: Lsn,
}

/// What is kept of a fork.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The relation.
    pub relation: RelFileLocator,
    /// Fork number: 0 main, 1 fsm, 2 vm, 3 init.
    pub fork: u8,
    /// Images seen.
    pub images: u64,
    /// Their bytes without holes, not compressed.
    pub image_bytes: u64,
}

/// All blocks and forks seen.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    forks: Vec<Fork>,
    fork_numbers: KeyMap<(u32, u32, u32, u8), ForkNumber>,
    numbers: KeyMap<u64, BlockNumber>,
    stamps: Vec<Stamps>,
    last: Option<(RelFileLocator, u8, ForkNumber)>,
}

impl Blocks {
    /// The number of a block's fork.
    pub fn fork_of(&mut self, block: &BlockRef) -> ForkNumber {
        if let Some((relation, fork, number)) = self.last
            && relation == block.relation
            && fork == block.fork
        {
            return number;
        }
        let RelFileLocator { tablespace, database, relfilenode } = block.relation;
        let key = (tablespace, database, relfilenode, block.fork);
        let next = self.forks.len() as ForkNumber;
        let number = *self.fork_numbers.entry(key).or_insert(next);
        if number == next {
            let (relation, fork) = (block.relation, block.fork);
            self.forks.push(Fork { relation, fork, ..Fork::default() });
        }
        self.last = Some((block.relation, block.fork, number));
        number
    }

    /// The number of a block in its fork.
    pub fn number(&mut self, fork: ForkNumber, block: u32) -> BlockNumber {
        let next = self.stamps.len() as BlockNumber;
        let key = u64::from(fork) << 32 | u64::from(block);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.stamps.push(Stamps::default());
        }
        number
    }

    /// When the block was stamped last.
    pub fn stamps(&self, number: BlockNumber) -> Stamps {
        self.stamps.get(number as usize).copied().unwrap_or_default()
    }

    /// Stamps a block.
    pub fn stamp(&mut self, number: BlockNumber, stamps: Stamps) {
        if let Some(slot) = self.stamps.get_mut(number as usize) {
            *slot = stamps;
        }
    }

    /// A fork.
    pub fn fork(&self, number: ForkNumber) -> Option<&Fork> {
        self.forks.get(number as usize)
    }

    /// A fork, to be added to.
    pub fn fork_mut(&mut self, number: ForkNumber) -> Option<&mut Fork> {
        self.forks.get_mut(number as usize)
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// Whether none was seen.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    /// Forgets a relation whose files are gone: should they come again, they are others.
    pub fn forget(&mut self, relation: RelFileLocator) {
        let RelFileLocator { tablespace, database, relfilenode } = relation;
        for fork in 0..4 {
            self.fork_numbers.remove(&(tablespace, database, relfilenode, fork));
        }
        self.last = None;
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
        assert_eq!(blocks.len(), 4);
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
