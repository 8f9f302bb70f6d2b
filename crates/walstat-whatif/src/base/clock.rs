//! The clock of the base's commits: when records were written, and how long checkpoints took.

use super::Base;
use crate::base_checkpoint::{BaseCheckpoint, CauseReading};
use crate::blocks::Ordinal;
use crate::pace::shown::segments_of;
use walstat_analyse::checkpoint::cause::Cause;
use walstat_format::payload::Time;

/// How long the checkpointer sleeps between two looks (`CheckpointWriteDelay`), microseconds.
pub(crate) const NAP_MICROS: i64 = 100_000;

/// When a record was written: between two commits, by how many records lie between. `None` where there is no
/// commit; before the first one and after the last one their times.
pub(crate) fn time_at(commits: &[(Ordinal, Time)], ordinal: Ordinal) -> Option<Time> {
    let after = commits.partition_point(|(commit, _)| *commit < ordinal);
    let later = commits.get(after);
    let earlier = after.checked_sub(1).and_then(|index| commits.get(index));
    let (Some((from, begun)), Some((to, ended))) = (earlier, later) else {
        return earlier.or(later).map(|(_, time)| *time);
    };
    let part = f64::from(ordinal - from) / f64::from((to - from).max(1));
    let passed = ended.0.saturating_sub(begun.0).max(0) as f64 * part;
    Some(Time(begun.0.saturating_add(passed as i64)))
}

/// How much time had passed at each commit, from the first one on: a clock that was set back stands still
/// meanwhile; microseconds.
pub(super) fn passed(commits: &[(Ordinal, Time)]) -> Vec<i64> {
    let mut before = commits.first().map_or(0, |(_, time)| time.0);
    let mut passed = 0_i64;
    let each = commits.iter().map(|(_, time)| {
        passed = passed.saturating_add(time.0.saturating_sub(before).max(0));
        before = time.0;
        passed
    });
    each.collect()
}

impl Base {
    /// The first record of the range that was written so many microseconds after a record, or before it.
    pub(crate) fn moved_by_clock(&self, ordinal: Ordinal, micros: i64) -> Ordinal {
        let near = self.commits.partition_point(|(commit, _)| *commit < ordinal);
        let Some(passed) = self.passed.get(near).filter(|_| micros != 0) else { return ordinal };
        let wanted = passed.saturating_add(micros);
        let moved = self.passed.partition_point(|passed| *passed < wanted);
        self.commits.get(moved).map_or(self.last, |(commit, _)| commit + 1)
    }

    /// How long nobody committed after a checkpoint began; microseconds.
    pub(crate) fn silence_after(&self, own: &BaseCheckpoint) -> i64 {
        self.next_commit(own.first).map_or(0, |next| next.0.saturating_sub(own.time.0))
    }

    /// The longest that the server took for a checkpoint by volume that was behind its schedule, so that it
    /// never slept on the way; microseconds. `None` where it kept up with each: one that does is written out
    /// when its part of the distance is, or two naps later.
    pub(crate) fn unpaced_checkpoint(&self) -> Option<i64> {
        let longest = self.behind_schedule().filter(|(_, late)| *late > 2 * NAP_MICROS);
        longest.map(|(took, _)| took).max()
    }

    /// The same where it may have slept, and been late for that.
    pub(crate) fn longest_checkpoint(&self) -> Option<i64> {
        self.behind_schedule().map(|(took, _)| took).max()
    }

    /// How long checkpoints by volume took for which more than their part of the distance was written, and
    /// how much of that after it was; microseconds.
    fn behind_schedule(&self) -> impl Iterator<Item = (i64, i64)> {
        let target = self.version.pacing.completion_target;
        let scheduled = segments_of(self).map(|segments| segments * self.geometry.segment);
        let scheduled = scheduled.map(|bytes| bytes as f64 * target);
        let took = move |own: &BaseCheckpoint| {
            let written = own.ended?.0.saturating_sub(own.redo.0) as f64;
            let part = scheduled.filter(|bytes| written > *bytes)? / written;
            let begun = time_at(&self.commits, own.first)?;
            let ended = time_at(&self.commits, own.record?)?;
            let took = ended.0.saturating_sub(begun.0);
            let by_volume = own.moved_by(CauseReading::Likely) == Some(Cause::Wal);
            by_volume.then_some((took, (took as f64 * (1.0 - part)) as i64))
        };
        self.own_checkpoints().filter_map(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::lsn::Lsn;

    #[test]
    fn between_commits_time_goes_by_records() {
        let commits = [(10, Time(1_000)), (20, Time(2_000)), (30, Time(1_500))];
        let at = |ordinal| time_at(&commits, ordinal).map(|time| time.0);
        assert_eq!([5, 10, 15, 20].map(at), [1_000, 1_000, 1_500, 2_000].map(Some));
        // A clock that was set back stands still.
        assert_eq!([25, 40].map(at), [2_000, 1_500].map(Some));
        assert_eq!(time_at(&[], 5), None);
    }

    /// Ten megabytes a second; a checkpoint after each ten segments of 1 MB is to take nine tenths of that.
    #[test]
    fn a_checkpoint_that_ends_a_nap_after_its_part_kept_up() {
        let (_, mut base) = crate::made_up::base(&[]);
        base.segments = Some(10);
        base.commits = (0..=200).map(|n| (n * 10, Time(i64::from(n) * 10_000))).collect();
        let megabytes = |n: f64| Lsn((n * f64::from(1 << 20)) as u64);
        let took = |base: &mut Base, seconds: f64| {
            let begun = BaseCheckpoint::begun(megabytes(10.0), 100, Time(100_000));
            let record = Some(100 + (seconds * 1_000.0) as Ordinal);
            let ended = Some(megabytes(10.0 + 10.0 * seconds));
            (base.start, base.end) = (megabytes(9.0), megabytes(30.0));
            let mut own = BaseCheckpoint { record, ended, ..begun };
            own.settle(Cause::Wal);
            base.checkpoints = vec![own];
            (base.unpaced_checkpoint(), base.longest_checkpoint())
        };
        let target = base.version.pacing.completion_target;
        let kept_up = target + 0.15;
        let behind = target + 0.25;
        assert_eq!(took(&mut base, target - 0.1), (None, None));
        assert_eq!(took(&mut base, kept_up), (None, Some((kept_up * 1e6) as i64)));
        assert_eq!(
            took(&mut base, behind),
            (Some((behind * 1e6) as i64), Some((behind * 1e6) as i64))
        );
    }

    #[test]
    fn a_record_is_moved_by_the_time_that_passed_where_the_clock_was_set_back() {
        let (_, mut base) = crate::made_up::base(&[]);
        let times = [1_000, 2_000, 500, 1_500, 2_500].map(Time);
        base.commits = (1..).map(|number| number * 10).zip(times).collect();
        base.passed = passed(&base.commits);
        base.last = 60;
        assert_eq!(base.passed, [0, 1_000, 1_000, 2_000, 3_000]);
        let moved = |ordinal, micros| base.moved_by_clock(ordinal, micros);
        assert_eq!([moved(20, 1_000), moved(30, 1_000), moved(30, -1_000)], [41, 41, 11]);
        assert_eq!([moved(40, 2_000), moved(40, 0), moved(60, 1_000)], [60, 40, 60]);
    }
}
