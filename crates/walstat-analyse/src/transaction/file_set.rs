//! Which relations a transaction is about, by their numbers.

use crate::block_set::BlockSet;
use serde::{Deserialize, Serialize};

/// A set of numbers of files: of the first ones, which most transactions are about, a bit each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FileSet {
    first: u64,
    others: BlockSet<2>,
}

impl FileSet {
    /// Adds a file.
    #[inline(always)]
    pub(super) fn insert(&mut self, file: u32) {
        match 1u64.checked_shl(file) {
            Some(bit) => self.first |= bit,
            None => self.others.insert(file),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.first.count_ones()) + self.others.len()
    }

    /// All of them, in no order that means anything, some of them twice.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut left = self.first;
        let first = std::iter::from_fn(move || {
            let file = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(file)
        });
        first.chain(self.others.iter())
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: FileSet) {
        self.first |= other.first;
        self.others.merge(other.others);
    }
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
                    let mut set = FileSet::default();
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
