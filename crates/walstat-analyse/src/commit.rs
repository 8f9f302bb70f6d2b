//! Commits: how many a second, and how many writes to disk that takes.
//!
//! Seconds are those of the commits' own times, whatever the order in the WAL.

use super::time_map::{COMPLETE, extend_span};
use std::collections::BTreeMap;
use walstat_format::payload::{SECOND, Time};

/// What a write to disk takes if nobody says, in microseconds: a solid-state disk of a server.
pub const SYNC_TIME: u32 = 1000;
/// The times within a second are kept of so many seconds, the last ones.
const OPEN: usize = 64;
/// Counts are kept of so many seconds; then those long past are only ranked.
const COUNTED: usize = 1 << 15;

/// Commits of one second.
#[derive(Debug, Clone, Default)]
struct Second {
    commits: u64,
    /// Writes to disk, where commits close to each other share one; without those in `times`.
    syncs: u64,
    /// Microseconds in the second.
    times: Vec<u32>,
}

impl Second {
    /// Counts the writes to disk: each serves the commits that come while it goes on.
    fn close(&mut self, sync_time: u32) {
        self.times.sort_unstable();
        let mut until = 0;
        for time in std::mem::take(&mut self.times) {
            if self.syncs == 0 || time >= until {
                self.syncs += 1;
                until = time.saturating_add(sync_time);
            }
        }
    }
}

/// Commits, while the WAL is read.
#[derive(Debug, Clone)]
pub struct Commits {
    sync_time: u32,
    span: Option<(Time, Time)>,
    commits: u64,
    seconds: BTreeMap<i64, Second>,
    /// The second at hand.
    now: Option<(i64, Second)>,
    /// How many of the seconds keep their times.
    open: usize,
    /// How many seconds long past had so many commits.
    ranks: BTreeMap<u64, u64>,
    peak: Option<(u64, i64)>,
    most_syncs: u64,
}

/// Commits of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pressure {
    /// How many.
    pub commits: u64,
    /// Earliest and latest.
    pub span: Option<(Time, Time)>,
    /// Seconds from the one to the other, both counted.
    pub seconds: u64,
    /// Commits a second; `None` without any.
    pub per_second: Option<PerSecond>,
    /// Writes to disk in the busiest second, commits close to each other sharing one.
    pub syncs_low: u64,
    /// Writes to disk in the busiest second, one for each commit.
    pub syncs_high: u64,
}

/// Commits a second, seconds without any counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSecond {
    /// On average.
    pub mean: f64,
    /// In half of the seconds no more.
    pub median: u64,
    /// In 99 of 100 seconds no more.
    pub p99: u64,
    /// In the busiest second.
    pub peak: u64,
    /// That second, from 1970; the first of equals.
    pub peak_second: i64,
}

impl Commits {
    /// None yet; `sync_time`: what a write to disk takes, in microseconds.
    pub fn new(sync_time: u32) -> Commits {
        Commits {
            sync_time,
            span: None,
            commits: 0,
            seconds: BTreeMap::new(),
            now: None,
            open: 0,
            ranks: BTreeMap::new(),
            peak: None,
            most_syncs: 0,
        }
    }

    /// Adds so many commits of one time.
    pub fn add(&mut self, time: Time, count: u64) {
        if count == 0 {
            return;
        }
        self.commits += count;
        extend_span(&mut self.span, time);
        let second = time.second();
        if self.now.as_ref().is_none_or(|(now, _)| *now != second) {
            self.go_to(second);
        }
        if let Some((_, row)) = &mut self.now {
            row.commits += count;
            row.times.push(time.0.rem_euclid(SECOND) as u32);
        }
    }

    fn go_to(&mut self, second: i64) {
        if let Some((second, row)) = self.now.take() {
            self.open += usize::from(!row.times.is_empty());
            self.seconds.insert(second, row);
        }
        if self.open > OPEN {
            self.close_before(second - OPEN as i64 / 2);
        }
        if self.seconds.len() > COUNTED {
            self.rank(i64::MIN, second - COMPLETE);
            self.rank(second + COMPLETE, i64::MAX);
        }
        let row = self.seconds.remove(&second).unwrap_or_default();
        self.now = Some((second, row));
    }

    fn close_before(&mut self, second: i64) {
        self.open = 0;
        for (at, row) in &mut self.seconds {
            if *at < second { row.close(self.sync_time) } else { self.open += 1 }
        }
        // Clocks that jump could leave all of them open.
        if self.open > OPEN / 2 {
            self.seconds.values_mut().for_each(|row| row.close(self.sync_time));
            self.open = 0;
        }
    }

    /// Keeps of the seconds in `[from, until)` only how busy they were.
    fn rank(&mut self, from: i64, until: i64) {
        let mut ranked = self.seconds.split_off(&from);
        let mut after = ranked.split_off(&until);
        self.seconds.append(&mut after);
        for (second, mut row) in ranked {
            row.close(self.sync_time);
            *self.ranks.entry(row.commits).or_default() += 1;
            self.most_syncs = self.most_syncs.max(row.syncs);
            let is_earlier = |(most, at): (u64, i64)| row.commits == most && second < at;
            if self.peak.is_none_or(|peak| row.commits > peak.0 || is_earlier(peak)) {
                self.peak = Some((row.commits, second));
            }
        }
    }

    /// Nothing follows.
    pub fn finish(mut self) -> Pressure {
        self.seconds.extend(self.now.take());
        self.rank(i64::MIN, i64::MAX);
        let seconds = self
            .span
            .map_or(0, |(first, last)| last.second().abs_diff(first.second()).saturating_add(1));
        let per_second = self.peak.map(|(peak, peak_second)| PerSecond {
            mean: self.commits as f64 / seconds as f64,
            median: self.percentile(50, seconds),
            p99: self.percentile(99, seconds),
            peak,
            peak_second,
        });
        Pressure {
            commits: self.commits,
            span: self.span,
            seconds,
            per_second,
            syncs_low: self.most_syncs,
            syncs_high: self.peak.map_or(0, |(peak, _)| peak),
        }
    }

    /// The ⌈percent·seconds/100⌉-th smallest number of commits in a second.
    fn percentile(&self, percent: u64, seconds: u64) -> u64 {
        let busy: u64 = self.ranks.values().sum();
        let rank = (u128::from(percent) * u128::from(seconds)).div_ceil(100);
        let mut passed = u128::from(seconds.saturating_sub(busy));
        if rank <= passed {
            return 0;
        }
        for (commits, count) in &self.ranks {
            passed += u128::from(*count);
            if rank <= passed {
                return *commits;
            }
        }
        self.ranks.keys().last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure(times: impl IntoIterator<Item = i64>) -> Pressure {
        let mut commits = Commits::new(1000);
        times.into_iter().for_each(|time| commits.add(Time(time), 1));
        commits.finish()
    }

    #[test]
    fn seconds_without_commits_count() {
        // 10 seconds: 3, 1, and eight times none.
        let found = pressure([5_900_000, 5_000_000, 5_000_500, 14_999_999]);
        assert_eq!((found.commits, found.seconds), (4, 10));
        let per_second = found.per_second.expect("commits");
        assert_eq!((per_second.mean, per_second.median, per_second.p99), (0.4, 0, 3));
        assert_eq!((per_second.peak, per_second.peak_second), (3, 5));
        assert_eq!((found.syncs_low, found.syncs_high), (2, 3));
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let commits = |second: i64| (0..second).map(move |i| second * SECOND + i);
        let found = pressure((1..=100).flat_map(commits));
        let per_second = found.per_second.expect("commits");
        assert_eq!((per_second.median, per_second.p99, per_second.peak), (50, 99, 100));
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(pressure([]), Pressure::default());
    }

    #[test]
    fn a_long_time_is_ranked_as_a_short_one() {
        // More than are counted one by one.
        const LONG: i64 = 40_000;
        const { assert!(LONG as usize > COUNTED) };
        let times = |second: i64| (0..=second % 7).map(move |i| second * SECOND + i * 10_000);
        let found = pressure((0..LONG).flat_map(times));
        let mut counts: Vec<u64> = (0..LONG as u64).map(|second| second % 7 + 1).collect();
        counts.sort_unstable();
        let per_second = found.per_second.expect("commits");
        assert_eq!(found.commits, counts.iter().sum::<u64>());
        assert_eq!((per_second.median, per_second.p99), (counts[19_999], counts[39_599]));
        assert_eq!((per_second.peak, per_second.peak_second, found.syncs_low), (7, 6, 7));
    }
}
