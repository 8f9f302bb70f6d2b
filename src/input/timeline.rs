//! Which timeline's file to read for which segment.

use super::history::Ancestor;
use crate::wal::lsn::Lsn;
use std::collections::{BTreeMap, BTreeSet};

/// The history that is followed: a timeline and its ancestors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Ancestors and the timeline itself, oldest first, each with its end.
    stages: Vec<Ancestor>,
}

impl Lineage {
    /// The lineage of `timeline`; without a history file it has no ancestors.
    pub fn of(timeline: u32, histories: &BTreeMap<u32, Vec<Ancestor>>) -> Lineage {
        let mut stages = histories.get(&timeline).cloned().unwrap_or_default();
        stages.push(Ancestor { timeline, end: Lsn::MAX });
        Lineage { stages }
    }

    /// The timelines, newest first, whose file for the segment `[start, end)` may hold WAL of
    /// this history. A segment in which a timeline ended exists on both; the newer one has a
    /// copy of the older one's bytes.
    pub fn files_for(&self, start: Lsn) -> impl Iterator<Item = u32> {
        let reaches = move |stage: &&Ancestor| stage.end > start;
        let oldest = self.stages.iter().position(|stage| reaches(&stage)).unwrap_or(0);
        // Timelines that begin behind the segment have no file for it.
        self.stages.iter().skip(oldest).rev().map(|stage| stage.timeline)
    }

    /// Whether `timeline` is part of the history.
    pub fn has(&self, timeline: u32) -> bool {
        self.stages.iter().any(|stage| stage.timeline == timeline)
    }
}

/// The newest timeline whose history is complete: the first one, one with a history file, or
/// the only ones there are. Without any, the oldest.
pub fn newest_complete(
    present: &BTreeSet<u32>,
    histories: &BTreeMap<u32, Vec<Ancestor>>,
) -> Option<u32> {
    let oldest = *present.first()?;
    let complete = |t: &&u32| **t == 1 || histories.contains_key(t) || **t == oldest;
    present.iter().rev().find(complete).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histories() -> BTreeMap<u32, Vec<Ancestor>> {
        let first = Ancestor { timeline: 1, end: Lsn(0x250) };
        let second = Ancestor { timeline: 2, end: Lsn(0x430) };
        BTreeMap::from([(2, vec![first]), (3, vec![first, second])])
    }

    #[test]
    fn a_segment_is_looked_for_on_the_newest_timeline_first() {
        let lineage = Lineage::of(3, &histories());
        let files = |start| lineage.files_for(Lsn(start)).collect::<Vec<_>>();
        assert_eq!(files(0x100), [3, 2, 1]);
        assert_eq!(files(0x300), [3, 2]);
        assert_eq!(files(0x500), [3]);
        assert!(!lineage.has(4));
    }

    #[test]
    fn the_newest_timeline_with_a_history_is_followed() {
        let newest =
            |present: &[u32]| newest_complete(&present.iter().copied().collect(), &histories());
        assert_eq!(newest(&[1, 2, 3]), Some(3));
        assert_eq!(newest(&[1, 2, 4]), Some(2));
        assert_eq!(newest(&[5]), Some(5));
        assert_eq!(newest(&[4, 5]), Some(4));
        assert_eq!(newest(&[]), None);
    }
}
