//! Sets of blocks, compressed: two bytes a block and less.

use hashbrown::HashMap;
use roaring::RoaringBitmap;

/// Blocks by the number of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TouchedBlocks {
    files: HashMap<u32, RoaringBitmap>,
    len: u64,
}

impl TouchedBlocks {
    /// Adds a block; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, file: u32, block: u32) -> bool {
        let is_new = self.files.entry(file).or_default().insert(block);
        self.len += u64::from(is_new);
        is_new
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many are in both.
    pub(super) fn intersection_len(&self, other: &TouchedBlocks) -> u64 {
        let of_file = |(file, ours): (&u32, &RoaringBitmap)| {
            other.files.get(file).map_or(0, |theirs| ours.intersection_len(theirs))
        };
        self.files.iter().map(of_file).sum()
    }

    /// How many are in one of the two or in both.
    pub(super) fn union_len(&self, other: &TouchedBlocks) -> u64 {
        self.len + other.len - self.intersection_len(other)
    }

    /// How many are not in `other`.
    pub(super) fn difference_len(&self, other: &TouchedBlocks) -> u64 {
        self.len - self.intersection_len(other)
    }

    /// Takes those away that are in `other`.
    pub(super) fn remove_all(&mut self, other: &TouchedBlocks) {
        self.files.retain(|file, ours| {
            other.files.get(file).into_iter().for_each(|theirs| *ours -= theirs);
            !ours.is_empty()
        });
        self.count();
    }

    /// Adds those of `other`.
    pub(super) fn add_all(&mut self, other: TouchedBlocks) {
        if self.len == 0 {
            *self = other;
            return;
        }
        for (file, theirs) in other.files {
            *self.files.entry(file).or_default() |= theirs;
        }
        self.count();
    }

    fn count(&mut self) {
        self.len = self.files.values().map(RoaringBitmap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pairs: &[(u32, u32)]) -> TouchedBlocks {
        let mut blocks = TouchedBlocks::default();
        pairs.iter().for_each(|(file, block)| {
            blocks.insert(*file, *block);
        });
        blocks
    }

    #[test]
    fn sets_are_counted_by_file_and_block() {
        let mut a = blocks(&[(0, 1), (0, 2), (3, 1), (0, 1)]);
        let b = blocks(&[(0, 2), (1, 1)]);
        assert_eq!((a.len(), b.len()), (3, 2));
        assert_eq!((a.union_len(&b), b.union_len(&a)), (4, 4));
        assert_eq!((a.difference_len(&b), b.difference_len(&a)), (2, 1));
        let mut c = a.clone();
        c.remove_all(&b);
        assert_eq!(c, blocks(&[(0, 1), (3, 1)]));
        a.add_all(b);
        assert_eq!(a.len(), 4);
    }
}
