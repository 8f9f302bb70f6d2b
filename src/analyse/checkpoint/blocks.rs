//! Sets of blocks, compressed: two bytes a block and less.

use roaring::RoaringBitmap;

/// Blocks, by the number of their file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocks {
    files: Vec<RoaringBitmap>,
    len: u64,
}

impl Blocks {
    /// Adds a block; whether it is new.
    #[inline]
    pub fn insert(&mut self, file: u32, block: u32) -> bool {
        let file = file as usize;
        if file >= self.files.len() {
            self.files.resize_with(file + 1, RoaringBitmap::new);
        }
        let is_new = self.files.get_mut(file).is_some_and(|blocks| blocks.insert(block));
        self.len += u64::from(is_new);
        is_new
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Both together.
    fn pairs<'a>(
        &'a self,
        other: &'a Blocks,
    ) -> impl Iterator<Item = (&'a RoaringBitmap, &'a RoaringBitmap)> {
        self.files.iter().zip(&other.files)
    }

    /// How many are in both.
    pub fn intersection_len(&self, other: &Blocks) -> u64 {
        self.pairs(other).map(|(a, b)| a.intersection_len(b)).sum()
    }

    /// How many are in one of the two or in both.
    pub fn union_len(&self, other: &Blocks) -> u64 {
        self.len + other.len - self.intersection_len(other)
    }

    /// How many are not in `other`.
    pub fn difference_len(&self, other: &Blocks) -> u64 {
        self.len - self.intersection_len(other)
    }

    /// Takes those away that are in `other`.
    pub fn remove_all(&mut self, other: &Blocks) {
        for (ours, theirs) in self.files.iter_mut().zip(&other.files) {
            *ours -= theirs;
        }
        self.count();
    }

    /// Adds those of `other`.
    pub fn add_all(&mut self, other: Blocks) {
        if self.len == 0 {
            *self = other;
            return;
        }
        if other.files.len() > self.files.len() {
            self.files.resize_with(other.files.len(), RoaringBitmap::new);
        }
        for (ours, theirs) in self.files.iter_mut().zip(other.files) {
            *ours |= theirs;
        }
        self.count();
    }

    fn count(&mut self) {
        self.len = self.files.iter().map(RoaringBitmap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pairs: &[(u32, u32)]) -> Blocks {
        let mut blocks = Blocks::default();
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
