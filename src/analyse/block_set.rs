//! Sets of numbers, of blocks above all: nothing on the heap for a few, compressed for many.

use roaring::RoaringBitmap;

/// A set of numbers; up to `FEW` of them are kept as they are.
#[derive(Debug, Clone)]
pub struct BlockSet<const FEW: usize = 4>(Numbers<FEW>);

#[derive(Debug, Clone)]
enum Numbers<const FEW: usize> {
    /// The first `len` of `numbers`; the one added last comes first.
    Few { len: u8, numbers: [u32; FEW] },
    /// More of them.
    Many(Box<Many>),
}

#[derive(Debug, Clone)]
struct Many {
    /// The one added last.
    last: u32,
    all: RoaringBitmap,
}

impl<const FEW: usize> Default for BlockSet<FEW> {
    fn default() -> Self {
        BlockSet(Numbers::Few { len: 0, numbers: [0; FEW] })
    }
}

impl<const FEW: usize> BlockSet<FEW> {
    /// Adds a number. The same one again costs next to nothing.
    #[inline(always)]
    pub fn insert(&mut self, block: u32) {
        match &mut self.0 {
            Numbers::Many(many) if many.last == block => {}
            Numbers::Few { len, numbers } if *len > 0 && numbers.first() == Some(&block) => {}
            _ => self.insert_another(block),
        }
    }

    #[inline(never)]
    fn insert_another(&mut self, block: u32) {
        match &mut self.0 {
            Numbers::Many(many) => {
                many.last = block;
                many.all.insert(block);
            }
            Numbers::Few { len, numbers } => {
                let used = usize::from(*len);
                if let Some(place) = numbers.iter().take(used).position(|number| *number == block) {
                    numbers.swap(0, place);
                } else if let Some(free) = numbers.get_mut(used) {
                    *free = block;
                    numbers.swap(0, used);
                    *len += 1;
                } else {
                    let all = numbers.iter().copied().chain([block]).collect();
                    self.0 = Numbers::Many(Box::new(Many { last: block, all }));
                }
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Numbers::Few { len, .. } => u64::from(*len),
            Numbers::Many(many) => many.all.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (few, many) = match &self.0 {
            Numbers::Few { len, numbers } => (numbers.get(..usize::from(*len)), None),
            Numbers::Many(many) => (None, Some(&many.all)),
        };
        few.into_iter().flatten().copied().chain(many.into_iter().flatten())
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Numbers::Many(many), Numbers::Many(theirs)) => many.all |= theirs.all,
            (_, Numbers::Few { len, numbers }) => {
                numbers.iter().take(usize::from(len)).for_each(|block| self.insert(*block));
            }
            (Numbers::Few { len, numbers }, Numbers::Many(mut theirs)) => {
                theirs.all.extend(numbers.iter().take(usize::from(*len)));
                self.0 = Numbers::Many(theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn set(blocks: &[u32]) -> BlockSet {
        let mut set = BlockSet::<4>::default();
        blocks.iter().for_each(|block| set.insert(*block));
        set
    }

    #[test]
    fn each_number_counts_once() {
        for blocks in [&[][..], &[0], &[7, 7, 7], &[1, 2, 1, 3, 2, 1], &[5, 4, 3, 2, 1, 0, 5, u32::MAX]] {
            let unique: BTreeSet<_> = blocks.iter().collect();
            assert_eq!(set(blocks).len(), unique.len() as u64, "{blocks:?}");
        }
    }

    #[test]
    fn merging_is_the_union_whatever_the_sizes() {
        let lists: [&[u32]; 4] = [&[], &[1, 2], &[2, 3, 4], &[9, 8, 7, 6, 5, 4, 3]];
        for a in lists {
            for b in lists {
                let mut merged = set(a);
                merged.merge(set(b));
                let union: BTreeSet<_> = a.iter().chain(b).collect();
                assert_eq!(merged.len(), union.len() as u64, "{a:?} {b:?}");
                merged.insert(100);
                assert_eq!(merged.len(), union.len() as u64 + 1);
            }
        }
    }
}
