//! The versions of one row by who made them. A table that is truncated again and again has thousands, of
//! which one counts at a moment: it is among the last that were made before, so the search begins there.

use walstat_format::record_header::FIRST_NORMAL_XID;

/// Half of all xids are older than one, half are newer.
const HALF: u32 = 1 << 31;

/// Where versions lie, each with who made it.
#[derive(Debug, Clone)]
pub(super) struct ByXmin<P> {
    /// Ascending.
    usual: Vec<(u32, P)>,
    /// Those that are frozen. They count whatever their xids are, which may be older than half of all others.
    frozen: Vec<(u32, P)>,
}

impl<P> Default for ByXmin<P> {
    fn default() -> ByXmin<P> {
        ByXmin { usual: Vec::new(), frozen: Vec::new() }
    }
}

impl<P: Copy + Ord> ByXmin<P> {
    pub(super) fn insert(&mut self, xmin: u32, is_frozen: bool, place: P) {
        let list = if is_frozen { &mut self.frozen } else { &mut self.usual };
        if let Err(at) = list.binary_search(&(xmin, place)) {
            list.insert(at, (xmin, place));
        }
    }

    pub(super) fn remove(&mut self, xmin: u32, place: P) {
        for list in [&mut self.usual, &mut self.frozen] {
            if let Ok(at) = list.binary_search(&(xmin, place)) {
                list.remove(at);
            }
        }
    }

    /// Those that are frozen.
    pub(super) fn frozen(&self) -> impl Iterator<Item = (u32, P)> {
        self.frozen.iter().copied()
    }

    /// Of the others those of one transaction.
    pub(super) fn made_by(&self, xid: u32) -> impl Iterator<Item = (u32, P)> {
        self.between(xid, xid).iter().copied()
    }

    /// Of the others those that were made up to an xid, the newest first; `None`: all, in no order of age.
    pub(super) fn until(&self, newest: Option<u32>) -> impl Iterator<Item = (u32, P)> {
        // Xids turn over: the oldest one may be a larger number. Those of initdb are older still.
        let oldest = newest.map_or(0, |newest| newest.wrapping_add(HALF));
        let ranges = match newest {
            None => [(0, u32::MAX), (1, 0), (1, 0)],
            Some(newest) if oldest <= newest => {
                [(oldest.max(FIRST_NORMAL_XID), newest), (1, 0), (0, FIRST_NORMAL_XID - 1)]
            }
            Some(newest) => {
                [(FIRST_NORMAL_XID, newest), (oldest, u32::MAX), (0, FIRST_NORMAL_XID - 1)]
            }
        };
        let ranges = ranges.into_iter().map(|(from, to)| self.between(from, to));
        ranges.flat_map(|range| range.iter().rev().copied())
    }

    fn between(&self, from: u32, to: u32) -> &[(u32, P)] {
        let begin = self.usual.partition_point(|(xmin, _)| *xmin < from);
        let end = self.usual.partition_point(|(xmin, _)| *xmin <= to);
        self.usual.get(begin..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_moment_comes_first_also_where_xids_turn_over() {
        let mut versions = ByXmin::default();
        for xmin in [900, 1, 700, 4_000_000_000, 800] {
            versions.insert(xmin, false, 'a');
        }
        versions.insert(800, false, 'b');
        versions.insert(2_000_000_000, true, 'f');
        let until = |versions: &ByXmin<char>, newest| {
            versions.until(newest).map(|(xmin, _)| xmin).collect::<Vec<_>>()
        };
        assert_eq!(until(&versions, Some(850)), [800, 800, 700, 4_000_000_000, 1]);
        assert_eq!(until(&versions, Some(4_000_000_001)), [4_000_000_000, 1]);
        assert_eq!(until(&versions, Some(2_000_000_000)), [900, 800, 800, 700, 1]);
        assert_eq!(until(&versions, None).len(), 6);
        assert_eq!(versions.made_by(800).collect::<Vec<_>>(), [(800, 'a'), (800, 'b')]);
        versions.remove(800, 'a');
        versions.remove(2_000_000_000, 'f');
        assert_eq!(until(&versions, Some(850)), [800, 700, 4_000_000_000, 1]);
        assert_eq!(versions.frozen().count(), 0);
    }
}
