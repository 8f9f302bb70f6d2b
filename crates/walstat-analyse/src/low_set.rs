//! Sets of numbers of which most are low: of files, and of what was done to them.

use crate::block_set::BlockSet;
use serde::{Deserialize, Serialize};

/// A set of numbers: of the first 64, which most transactions are about, a bit each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LowSet<const FEW: usize> {
    /// The first ones.
    pub(crate) first: u64,
    /// All others.
    others: BlockSet<FEW>,
}

impl<const FEW: usize> LowSet<FEW> {
    /// Adds a number.
    #[inline(always)]
    pub(crate) fn insert(&mut self, number: u32) {
        match 1u64.checked_shl(number) {
            Some(bit) => self.first |= bit,
            None => self.others.insert(number),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.first.count_ones()) + self.others.len()
    }

    /// All of them, in no order that means anything, some of them twice.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        bits(self.first).chain(self.others())
    }

    /// Those beyond the first 64, likewise.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + '_ {
        self.others.iter()
    }

    /// The same, each once, if they are few.
    pub(crate) fn few_others(&self) -> Option<&[u32]> {
        self.others.few()
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: LowSet<FEW>) {
        self.first |= other.first;
        self.others.merge(other.others);
    }
}

impl<const FEW: usize> FromIterator<u32> for LowSet<FEW> {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = LowSet::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// The numbers of bits, ascending.
pub(crate) fn bits(mut left: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros();
        left &= left.checked_sub(1)?;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_file_counts_once_whatever_its_number() {
        let lists: [&[u32]; 4] = [&[], &[0, 63, 0], &[63, 64, 65, 66, 64], &[5, 1000, 100_000]];
        for a in lists {
            for b in lists {
                let [mut set, other] = [a, b].map(|list| {
                    let mut set = LowSet::<2>::default();
                    list.iter().for_each(|file| set.insert(*file));
                    set
                });
                set.merge(other);
                let all: BTreeSet<u32> = a.iter().chain(b).copied().collect();
                assert_eq!(set.len(), all.len() as u64, "{a:?} {b:?}");
                assert_eq!(set.iter().collect::<BTreeSet<_>>(), all);
            }
        }
    }
}
