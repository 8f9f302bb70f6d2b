//! What is done to files, by file. Transactions mostly write few files, which are found by looking at them
//! one by one; of those that write many, all others are found by their hash.

use super::changes::{Changes, RowChange};
use hashbrown::HashMap;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;

/// What is done to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileWork {
    /// By [`RowChange`].
    changes: [Changes; 3],
    /// Bytes of all records on it that were counted.
    pub bytes: u64,
    /// Where all of its rows were taken away at once: the end of the first record that does.
    pub emptied: Option<Lsn>,
}

impl FileWork {
    pub(super) fn of(&self, change: RowChange) -> &Changes {
        &self.changes[change as usize]
    }

    /// Adds what a record does, of one kind.
    #[inline]
    pub(super) fn count(&mut self, change: RowChange, changes: Changes) {
        self.bytes += changes.bytes;
        self.changes[change as usize].add(&changes);
    }

    pub(super) fn add(&mut self, other: &FileWork) {
        for (ours, theirs) in self.changes.iter_mut().zip(&other.changes) {
            ours.add(theirs);
        }
        self.bytes += other.bytes;
        self.emptied = self.emptied.into_iter().chain(other.emptied).min();
    }
}

/// So many files are looked at one by one.
const AT_HAND: usize = 8;

/// Work by file, in the order in which the files were met.
#[derive(Debug, Clone, Default)]
pub(super) struct FileWorks {
    rows: Vec<(RelFileLocator, FileWork)>,
    /// Places of the rows behind those at hand; transactions with so many are few.
    index: Option<Box<HashMap<RelFileLocator, u32>>>,
}

impl FileWorks {
    /// What is done to a file, nothing if it is met now.
    #[inline]
    pub(super) fn of(&mut self, file: RelFileLocator) -> &mut FileWork {
        let at_hand = self.rows.iter().take(AT_HAND).position(|(known, _)| *known == file);
        let place = at_hand.unwrap_or_else(|| self.place(file));
        &mut self.rows[place].1
    }

    #[inline(never)]
    fn place(&mut self, file: RelFileLocator) -> usize {
        let next = self.rows.len();
        let place = match next {
            0..AT_HAND => next,
            // A transaction with 2³² files would have run out of memory long before.
            _ => {
                let index = self.index.get_or_insert_default();
                *index.entry(file).or_insert(next as u32) as usize
            }
        };
        if place == next {
            // Transactions may be many, each with one file.
            if next == self.rows.capacity() {
                self.rows.reserve_exact(next / 2 + 1);
            }
            self.rows.push((file, FileWork::default()));
        }
        place
    }

    /// Adds what was done later, or by another transaction.
    pub(super) fn add(&mut self, later: FileWorks) {
        if self.rows.is_empty() {
            *self = later;
        } else {
            later.rows.iter().for_each(|(file, work)| self.of(*file).add(work));
        }
    }

    /// Whether changes of one kind are of so many rows, in all files together.
    pub(super) fn have_rows(&self, min_rows: u64) -> bool {
        let rows = |change: RowChange| -> u64 {
            self.rows.iter().map(|(_, work)| work.of(change).rows).sum()
        };
        RowChange::ALL.into_iter().any(|change| rows(change) >= min_rows)
    }

    /// Forgets all of it. Few files leave their memory to the next transaction.
    pub(super) fn clear(&mut self) {
        if self.rows.capacity() > AT_HAND {
            *self = FileWorks::default();
        } else {
            self.rows.clear();
        }
    }

    /// All files with what was done to them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(RelFileLocator, FileWork)> {
        self.rows.iter()
    }

    /// The same for good.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (RelFileLocator, FileWork)> {
        self.rows.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_work_of_its_own_however_many_there_are() {
        let mut works = FileWorks::default();
        let file = |relfilenode| RelFileLocator { tablespace: 1663, database: 5, relfilenode };
        for turn in 0..3 {
            for number in 0..100 {
                works.of(file(number)).bytes += u64::from(number) + turn;
            }
        }
        let mut sum = FileWorks::default();
        sum.add(works.clone());
        sum.add(works);
        let rows: Vec<_> = sum.into_rows().map(|(file, work)| (file, work.bytes)).collect();
        let expected = (0..100).map(|number| (file(number), 2 * (3 * u64::from(number) + 3)));
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }
}
