//! Which timeline's file to read for which segment, and of which timeline a page must be.

use super::history::{Ancestor, Histories};
use std::collections::BTreeSet;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// A history: a timeline and its ancestors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lineage {
    /// Ancestors and the timeline itself, oldest first.
    stages: Vec<Stage>,
}

/// A timeline, and where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage {
    /// The timeline.
    pub timeline: u32,
    /// Where it branched off; 0 for the oldest.
    pub begin: Lsn,
}

impl Lineage {
    /// The lineage of `timeline`; without a history file it has no ancestors.
    pub fn of(timeline: u32, histories: &Histories) -> Lineage {
        Lineage::from_ancestors(timeline, histories.ancestors(timeline).unwrap_or_default())
    }

    /// The lineage of one of the ancestors.
    pub fn until(&self, timeline: u32) -> Option<Lineage> {
        let last = self.stages.iter().position(|stage| stage.timeline == timeline)?;
        Some(Lineage { stages: self.stages.iter().take(last + 1).copied().collect() })
    }

    /// The same as a history says it in the place of which something else was taken.
    pub(crate) fn that_is_wrong(timeline: u32, histories: &Histories) -> Option<Lineage> {
        let ancestors = histories.corrected(timeline)?;
        Some(Lineage::from_ancestors(timeline, ancestors))
    }

    /// The lineage that a history tells of.
    pub fn from_ancestors(timeline: u32, ancestors: &[Ancestor]) -> Lineage {
        let begins = [Lsn(0)].into_iter().chain(ancestors.iter().map(|ancestor| ancestor.end));
        let timelines = ancestors.iter().map(|ancestor| ancestor.timeline).chain([timeline]);
        let stage = |(timeline, begin)| Stage { timeline, begin };
        Lineage { stages: timelines.zip(begins).map(stage).collect() }
    }

    /// The timeline whose file a server reads for a segment: the newest one that has begun before
    /// the segment's end. Such a file begins with a copy of the older one's bytes.
    pub fn of_file(&self, number: u64, segment_bytes: u32) -> u32 {
        let begun = |stage: &&Stage| stage.begin.0 / u64::from(segment_bytes) <= number;
        self.stages.iter().rev().find(begun).map_or(0, |stage| stage.timeline)
    }

    /// The same of a server that has come to `timeline` only and knows nothing of those after it: where it
    /// looks for a segment once more (`XLogReadDetermineTimeline` in
    /// `src/backend/access/transam/xlogutils.c`).
    pub fn of_file_until(&self, timeline: u32, number: u64, segment_bytes: u32) -> u32 {
        let until = self.stages.iter().position(|stage| stage.timeline == timeline);
        let begun = |stage: &&Stage| stage.begin.0 / u64::from(segment_bytes) <= number;
        let stages = self.stages.iter().take(until.map_or(usize::MAX, |last| last + 1));
        stages.rev().find(begun).map_or(0, |stage| stage.timeline)
    }

    /// The timeline of the page at `lsn`: the page in which a timeline begins still names the older
    /// one.
    pub fn of_page(&self, lsn: Lsn) -> u32 {
        let begun = |stage: &&Stage| stage.begin <= lsn;
        self.stages.iter().rev().find(begun).map_or(0, |stage| stage.timeline)
    }

    /// The timeline itself.
    pub fn timeline(&self) -> u32 {
        self.stages.last().map_or(0, |stage| stage.timeline)
    }

    /// The timeline that it left.
    pub fn parent(&self) -> Option<u32> {
        self.spans().rev().nth(1).map(|(timeline, _)| timeline)
    }

    /// Where the timeline itself began.
    pub fn begin(&self) -> Lsn {
        self.stages.last().map_or(Lsn(0), |stage| stage.begin)
    }

    /// All timelines with where they go from and to, the oldest first; the last one has no end.
    ///
    /// Recovery to an earlier place than the time before writes a history in which the newer timeline begins
    /// before the one that it names as its parent. To a server a place belongs to the newest timeline that
    /// has begun there (`tliOfPointInHistory` in `src/backend/access/transam/timeline.c`), so none belongs to
    /// that parent.
    pub fn spans(&self) -> impl DoubleEndedIterator<Item = (u32, Range<Lsn>)> + use<> {
        let mut end = Lsn::MAX;
        let mut spans = Vec::new();
        for stage in self.stages.iter().rev() {
            if stage.begin < end {
                spans.push((stage.timeline, stage.begin..end));
                end = stage.begin;
            }
        }
        spans.into_iter().rev()
    }

    /// Where the history leaves a timeline: the first place at which a newer one has begun.
    pub fn leaves(&self, timeline: u32) -> Option<Lsn> {
        let place = self.stages.iter().position(|stage| stage.timeline == timeline)?;
        self.stages.iter().skip(place + 1).map(|stage| stage.begin).min()
    }

    /// Where each timeline leaves the one before it.
    fn branches(&self) -> impl Iterator<Item = (u32, Ancestor)> + use<> {
        let parents = self.spans().map(|(timeline, span)| Ancestor { timeline, end: span.end });
        self.spans().skip(1).map(|(child, _)| child).zip(parents)
    }

    /// Whether `timeline` is part of the history.
    pub fn has(&self, timeline: u32) -> bool {
        self.stages.iter().any(|stage| stage.timeline == timeline)
    }
}

/// The newest timeline whose history is complete: timeline 1, one with a history file, the only one there is,
/// that of the backup which is to be restored, `begins_on`, or one that the `latest` goes on from. If there
/// is none, the oldest.
pub(crate) fn newest_complete(
    present: &BTreeSet<u32>,
    histories: &Histories,
    begins_on: Option<u32>,
    latest: Option<&Lineage>,
) -> Option<u32> {
    let oldest = *present.first()?;
    let complete = |t: &&u32| {
        [1, oldest].contains(t)
            || begins_on == Some(**t)
            || histories.ancestors(**t).is_some()
            || latest.is_some_and(|latest| latest.has(**t))
    };
    present.iter().rev().find(complete).copied()
}

/// The newest timeline after those that there are segments of, as far as histories follow each other: a
/// server looks for them one by one, and never comes to a timeline without a history.
pub(crate) fn latest_without_segments(
    present: &BTreeSet<u32>,
    histories: &Histories,
) -> Option<Lineage> {
    let oldest = *present.first()?;
    let mut got = present.iter().rev().filter(|it| **it == oldest || histories.is_got(**it));
    let next = got.next()?.checked_add(1)?;
    let there = (next..=u32::MAX).take_while(|timeline| histories.is_got(*timeline));
    let latest = there.last().filter(|timeline| histories.ancestors(*timeline).is_some());
    latest.map(|timeline| Lineage::of(timeline, histories))
}

/// Timelines whose history is needed and missing. A server looks for the newest timeline one by one,
/// and gives up where a history is missing. In its own directory it looks for none: there `is_servers`, and
/// timelines that others had in between are none of its business.
pub(crate) fn without_history(
    present: &BTreeSet<u32>,
    histories: &Histories,
    is_servers: bool,
) -> Vec<u32> {
    let (Some(&oldest), Some(&newest)) = (present.first(), present.last()) else {
        return Vec::new();
    };
    let named = histories.all().map(|(timeline, _)| timeline).collect_set();
    // A history without segments may be of an abandoned timeline. Where thousands are missing, the
    // numbers were not given out one by one.
    let Some(second) = oldest.max(1).checked_add(1) else { return Vec::new() };
    let missing = |timeline: &u32| !named.contains(timeline) && !histories.has(*timeline);
    if is_servers {
        return present.range(second..).copied().filter(missing).take(MISSING_MAX).collect();
    }
    (second..=newest).filter(missing).take(MISSING_MAX).collect()
}

/// How many missing histories are reported.
const MISSING_MAX: usize = 100;

/// A branch: where a timeline leaves another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch {
    /// The newer timeline.
    pub child: u32,
    /// The older one.
    pub parent: u32,
    /// Where.
    pub at: Lsn,
    /// The timeline whose history says so.
    pub history: u32,
}

/// All branches that the histories of the timelines present tell of, each place once.
pub(crate) fn branches(present: &BTreeSet<u32>, histories: &Histories) -> Vec<Branch> {
    let mut all: Vec<Branch> = Vec::new();
    let mut known = BTreeSet::new();
    for (history, ancestors) in histories.all().filter(|(t, _)| present.contains(t)) {
        let lineage = Lineage::from_ancestors(history, ancestors);
        for (child, Ancestor { timeline: parent, end: at }) in lineage.branches() {
            if known.insert((child, parent, at)) {
                all.push(Branch { child, parent, at, history });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn histories() -> Histories {
        let mut histories = Histories::default();
        histories.add(2, Ok("1\t0/250000\tx"), "00000002.history");
        histories.add(3, Ok("1\t0/250000\tx\n2\t0/400000\tx"), "00000003.history");
        histories
    }

    #[test]
    fn a_segment_is_read_from_the_timeline_that_had_begun_in_it() {
        let lineage = Lineage::of(3, &histories());
        let files = [0, 1, 2, 3, 4, 5].map(|number| lineage.of_file(number, MB as u32));
        assert_eq!(files, [1, 1, 2, 2, 3, 3]);
        let files = [1, 2, 3, 4].map(|number| lineage.of_file_until(1, number, MB as u32));
        assert_eq!(files, [1; 4]);
        let files = [1, 2, 3, 4].map(|number| lineage.of_file_until(2, number, MB as u32));
        assert_eq!(files, [1, 2, 2, 2]);
        assert!(!lineage.has(4));
        assert_eq!(lineage.begin(), Lsn(4 * MB));
    }

    #[test]
    fn the_page_of_a_switch_is_of_the_older_timeline() {
        let lineage = Lineage::of(3, &histories());
        let pages = [0x24E000, 0x250000, 0x252000, 0x3FE000, 0x400000].map(Lsn);
        assert_eq!(pages.map(|lsn| lineage.of_page(lsn)), [1, 2, 2, 2, 3]);
        assert_eq!(Lineage::of(7, &histories()).of_page(Lsn(5)), 7);
    }

    #[test]
    fn the_newest_timeline_with_a_history_is_followed() {
        let of_backup = |present: &[u32], begins_on| {
            newest_complete(&present.iter().copied().collect(), &histories(), begins_on, None)
        };
        let newest = |present: &[u32]| of_backup(present, None);
        assert_eq!(of_backup(&[1, 2, 4], Some(4)), Some(4), "it needs no history");
        assert_eq!(newest(&[1, 2, 3]), Some(3));
        assert_eq!(newest(&[1, 2, 4]), Some(2));
        assert_eq!(newest(&[5]), Some(5));
        assert_eq!(newest(&[4, 5]), Some(4));
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn a_history_is_needed_from_the_second_timeline_on() {
        let in_place = |present: &[u32], is_servers| {
            without_history(&present.iter().copied().collect(), &histories(), is_servers)
        };
        assert_eq!(in_place(&[1, 6, 8], true), [6, 8]);
        let missing = |present: &[u32]| in_place(present, false);
        assert_eq!(missing(&[1, 2, 3]), [0u32; 0]);
        assert_eq!(missing(&[3, 4, 6]), [4, 5, 6]);
        assert_eq!(missing(&[5]), [0u32; 0]);
        assert_eq!(missing(&[u32::MAX]), [0u32; 0]);
        assert_eq!(missing(&[1, u32::MAX]).len(), MISSING_MAX);
    }

    #[test]
    fn a_history_that_is_missing_after_many_others_is_missed() {
        let mut histories = Histories::default();
        for timeline in (2..=150).filter(|timeline| *timeline != 140) {
            histories.add(timeline, Ok("1\t0/250000\tx"), "a history");
        }
        assert_eq!(without_history(&(1..=150).collect(), &histories, false), [140]);
    }

    /// Recovery to an earlier place each time, or to the same one.
    #[test]
    fn a_timeline_that_begins_before_its_parent_leaves_the_one_that_goes_there() {
        let mut histories = Histories::default();
        let text = "1\t0/500000\n2\t0/300000\n3\t0/300000\n4\t0/700000";
        histories.add(5, Ok(text), "00000005.history");
        let lineage = Lineage::of(5, &histories);
        let spans: Vec<_> =
            lineage.spans().map(|(timeline, span)| (timeline, span.start.0)).collect();
        assert_eq!(spans, [(1, 0), (4, 0x30_0000), (5, 0x70_0000)]);
        assert_eq!(
            [1, 2, 4, 5].map(|it| lineage.leaves(it).map(|at| at.0 >> 20)),
            [Some(3), Some(3), Some(7), None]
        );
        assert_eq!((lineage.parent(), lineage.begin()), (Some(4), Lsn(0x70_0000)));
        let told = branches(&BTreeSet::from([1, 4, 5]), &histories);
        let told: Vec<_> = told.iter().map(|b| (b.parent, b.child, b.at.0)).collect();
        assert_eq!(told, [(1, 4, 0x30_0000), (4, 5, 0x70_0000)]);
        let pages = [0x2F_E000, 0x30_0000, 0x60_0000, 0x70_0000].map(Lsn);
        assert_eq!(pages.map(|lsn| lineage.of_page(lsn)), [1, 4, 4, 5]);
    }

    #[test]
    fn each_branch_is_told_once() {
        let branches = branches(&BTreeSet::from([1, 2, 3]), &histories());
        let told: Vec<_> = branches.iter().map(|b| (b.parent, b.child, b.at.0)).collect();
        assert_eq!(told, [(1, 2, 0x250000), (2, 3, 0x400000)]);
    }
}
