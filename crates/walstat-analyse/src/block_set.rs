//! Sets of numbers, of blocks above all: nothing on the heap for a few, compressed for many.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

/// A set of numbers; up to `FEW` of them are kept as they are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct BlockSet<const FEW: usize = 4>(Numbers<FEW>);

#[derive(Debug, Clone)]
enum Numbers<const FEW: usize> {
    /// The first `len` of `numbers`; the one met last comes first.
    Few { len: u8, numbers: [u32; FEW] },
    /// More of them.
    Many(Box<Many>),
}

#[derive(Debug, Clone, Default)]
struct Many {
    /// Numbers that were added recently, each at the index of its lowest bits: adding one of them again
    /// changes nothing.
    recent: [u32; RECENT],
    /// Numbers that are not in `all` yet, in no order, some of them twice: sorted and added together,
    /// each costs a third of what it costs alone.
    waiting: Vec<u32>,
    all: RoaringBitmap,
}

/// A set as it is written.
#[derive(Serialize, Deserialize)]
enum Written {
    /// The numbers.
    Few(Vec<u32>),
    /// The bitmap in its own form.
    Many(Vec<u8>),
}

impl<const FEW: usize> From<BlockSet<FEW>> for Written {
    fn from(mut set: BlockSet<FEW>) -> Written {
        set.settle();
        match set.0 {
            Numbers::Few { len, numbers } => {
                Written::Few(numbers.into_iter().take(usize::from(len)).collect())
            }
            Numbers::Many(many) => {
                let mut bytes = Vec::new();
                // Writing to memory cannot fail.
                let written = many.all.serialize_into(&mut bytes);
                debug_assert!(written.is_ok());
                Written::Many(bytes)
            }
        }
    }
}

impl<const FEW: usize> TryFrom<Written> for BlockSet<FEW> {
    type Error = std::io::Error;

    fn try_from(written: Written) -> Result<BlockSet<FEW>, std::io::Error> {
        let mut set = BlockSet::default();
        match written {
            Written::Few(numbers) => numbers.into_iter().for_each(|number| set.insert(number)),
            Written::Many(bytes) => {
                let all = RoaringBitmap::deserialize_from(bytes.as_slice())?;
                // `recent` must hold only numbers that are in `all`, or inserting one would be skipped.
                let recent = [all.min().unwrap_or_default(); RECENT];
                if !all.is_empty() {
                    set.0 = Numbers::Many(Box::new(Many { recent, all, ..Many::default() }));
                }
            }
        }
        Ok(set)
    }
}

/// So many numbers are remembered as recent.
const RECENT: usize = 16;
/// So many numbers wait at least, and at most.
const WAITING: (usize, usize) = (16, 4096);

impl Many {
    #[inline(always)]
    fn insert(&mut self, number: u32) {
        let recent = &mut self.recent[number as usize % RECENT];
        if *recent != number {
            *recent = number;
            self.wait(number);
        }
    }

    fn wait(&mut self, number: u32) {
        if self.waiting.len() == self.waiting.capacity() {
            self.end_waiting();
            // Not more than a quarter of all, so that memory stays with `all`.
            let most = usize::try_from(self.all.len() / 4).unwrap_or(usize::MAX);
            self.waiting.reserve_exact(most.clamp(WAITING.0, WAITING.1));
        }
        self.waiting.push(number);
    }

    fn end_waiting(&mut self) {
        self.waiting.sort_unstable();
        self.waiting.dedup();
        let ascending = self.waiting.drain(..);
        // They ascend, so it cannot fail.
        if let Ok(more) = RoaringBitmap::from_sorted_iter(ascending) {
            self.all |= more;
        }
    }
}

impl<const FEW: usize> Default for BlockSet<FEW> {
    fn default() -> Self {
        BlockSet(Numbers::Few { len: 0, numbers: [0; FEW] })
    }
}

impl<const FEW: usize> BlockSet<FEW> {
    /// Adds a number. The same one again costs next to nothing.
    #[inline(always)]
    pub fn insert(&mut self, number: u32) {
        match &mut self.0 {
            Numbers::Many(many) => many.insert(number),
            Numbers::Few { len, numbers } if *len > 0 && numbers.first() == Some(&number) => {}
            Numbers::Few { .. } => self.insert_another(number),
        }
    }

    #[inline(never)]
    fn insert_another(&mut self, number: u32) {
        let Numbers::Few { len, numbers } = &mut self.0 else { return };
        let used = usize::from(*len);
        if let Some(place) = numbers.iter().take(used).position(|known| *known == number) {
            numbers.swap(0, place);
        } else if let Some(free) = numbers.get_mut(used) {
            *free = number;
            numbers.swap(0, used);
            *len += 1;
        } else {
            // `recent` must hold only numbers that are in `all`, and its default is 0.
            let all = numbers.iter().copied().chain([number]).collect();
            let many = Many { recent: [number; RECENT], all, ..Many::default() };
            self.0 = Numbers::Many(Box::new(many));
        }
    }

    /// Takes no more memory than it needs.
    pub fn settle(&mut self) {
        if let Numbers::Many(many) = &mut self.0 {
            many.end_waiting();
            many.waiting = Vec::new();
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Numbers::Few { len, .. } => u64::from(*len),
            Numbers::Many(many) => {
                let waiting: RoaringBitmap = many.waiting.iter().collect();
                many.all.union_len(&waiting)
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, each once, if they are few.
    pub fn few(&self) -> Option<&[u32]> {
        match &self.0 {
            Numbers::Few { len, numbers } => numbers.get(..usize::from(*len)),
            Numbers::Many(_) => None,
        }
    }

    /// All of them, in no order that means anything, some of them twice.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (few, many) = match &self.0 {
            Numbers::Few { len, numbers } => (numbers.get(..usize::from(*len)), None),
            Numbers::Many(many) => (None, Some(many)),
        };
        let many = many.map(|many| many.waiting.iter().copied().chain(&many.all));
        few.into_iter().flatten().copied().chain(many.into_iter().flatten())
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Numbers::Many(many), Numbers::Many(mut theirs)) => {
                theirs.end_waiting();
                many.all |= theirs.all;
            }
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
        for blocks in
            [&[][..], &[0], &[7, 7, 7], &[1, 2, 1, 3, 2, 1], &[5, 4, 3, 2, 1, 0, 5, u32::MAX]]
        {
            let unique: BTreeSet<_> = blocks.iter().collect();
            assert_eq!(set(blocks).len(), unique.len() as u64, "{blocks:?}");
        }
    }

    #[test]
    fn many_numbers_count_once_each_in_any_order() {
        let mut set = BlockSet::<4>::default();
        let mut unique = BTreeSet::new();
        for turn in 0..50_000u32 {
            let number = turn.wrapping_mul(2_654_435_761) >> 12;
            let number = if turn % 3 == 0 { number % 100 } else { number };
            set.insert(number);
            unique.insert(number);
            if turn % 9999 == 0 {
                assert_eq!(set.len(), unique.len() as u64);
            }
        }
        set.settle();
        assert_eq!(set.len(), unique.len() as u64);
        assert_eq!(set.iter().collect::<BTreeSet<_>>(), unique);
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
