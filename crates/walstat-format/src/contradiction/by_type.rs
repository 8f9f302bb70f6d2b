//! Tables of what redo does with records, by type and release.

use crate::payload::heap::INIT_PAGE;
use crate::rmgr::FLAGGED;
use crate::version::{Release, Version};

/// How many types there are: resource managers, and the high half of `xl_info`.
pub(super) const TYPES: usize = 1 << 12;

/// A type by its resource manager and the high half of `xl_info`.
pub(super) const fn type_index(rmgr: u8, info: u8) -> usize {
    (rmgr as usize) << 4 | (info >> 4) as usize
}

/// Of a type that has a flag beside it, which redo masks, the one without it.
pub(super) const fn without_flag(at: usize) -> Option<usize> {
    const FLAG: usize = type_index(0, INIT_PAGE);
    let mut flagged = 0;
    while flagged < FLAGGED.len() {
        if at & FLAG != 0 && at >> 4 == FLAGGED[flagged] as usize {
            return Some(at & !FLAG);
        }
        flagged += 1;
    }
    None
}

/// What redo of a type does.
pub(super) struct Row<T> {
    pub rmgr: u8,
    pub info: u8,
    /// `None`: 9.5. Up to the next row of its type.
    pub since: Option<Release>,
    pub what: T,
}

/// Rows, those of one type together and by release.
pub(super) struct Table<T, const N: usize> {
    pub rows: [Row<T>; N],
    /// Where those of a type end; 0: it has none.
    ends: [u8; TYPES],
}

impl<T, const N: usize> Table<T, N> {
    pub(super) const fn new(rows: [Row<T>; N]) -> Table<T, N> {
        let mut ends = [0; TYPES];
        let mut row = 0;
        while row < N {
            ends[type_index(rows[row].rmgr, rows[row].info)] = row as u8 + 1;
            row += 1;
        }
        Table { rows, ends }
    }

    /// What is said of a type; where it has no row, of that without the flag which redo does not look at.
    pub(super) fn find(&self, rmgr: u8, info: u8, version: &Version) -> Option<&T> {
        let at = type_index(rmgr, info);
        let found = self.row_of(at, version);
        found.or_else(|| self.row_of(without_flag(at)?, version))
    }

    /// Whether a type has rows.
    pub(super) fn has(&self, rmgr: u8, info: u8) -> bool {
        self.ends[type_index(rmgr, info)] > 0
    }

    fn row_of(&self, at: usize, version: &Version) -> Option<&T> {
        let rows = self.rows.get(..usize::from(self.ends[at]))?;
        let mut of_type = rows.iter().rev().take_while(|row| type_index(row.rmgr, row.info) == at);
        of_type.find(|row| row.since.is_none_or(|since| version.since(since))).map(|row| &row.what)
    }

    /// Whether rows of one type stand together, by release.
    #[cfg(test)]
    pub(super) fn is_sorted(&self) -> bool {
        let types: Vec<_> = self.rows.iter().map(|row| (row.rmgr, row.info)).collect();
        let mut once = types.clone();
        once.dedup();
        once.sort_unstable();
        let by_release = self.rows.is_sorted_by(|earlier, later| {
            (earlier.rmgr, earlier.info) != (later.rmgr, later.info) || earlier.since < later.since
        });
        by_release && once.windows(2).all(|pair| pair[0] != pair[1])
    }
}
