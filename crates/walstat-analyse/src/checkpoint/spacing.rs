//! How far checkpoints are apart, in time and in segments, and what is regular about it.

use super::Cycles;
use super::server::Server;
use crate::time_map::{Anchor, TimeMap};
use walstat_format::lsn::Lsn;
use walstat_format::payload::{SECOND, Time};
use walstat_format::version::Version;

/// `checkpoint_timeout` is that many seconds at least.
pub const SHORTEST_TIMEOUT: i64 = 30;
/// The least distance of two checkpoints by checkpoint_timeout, as the WAL shows it: its times are cut to
/// whole seconds.
pub const SOONEST_BY_CLOCK: i64 = SHORTEST_TIMEOUT - 1;
/// Timeouts that people set, in seconds: one distance of that length says something already.
const USUAL_TIMEOUTS: [i64; 12] = [30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 86_400];
/// This many checkpoints under load are enough to conclude that max_wal_size began them.
const LOADS: usize = 3;
/// So many at one distance are no coincidence.
const HABIT: usize = 4;
/// A checkpoint that is not in a hurry takes at least that share of the time to the next one, ...
const SPREAD: f64 = 0.2;
/// ... and at least so many seconds.
const LEAST_SPREAD: f64 = 2.0;

/// What is known about when and where a checkpoint began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    /// Seconds since the checkpoint before began.
    pub seconds: Option<i64>,
    /// Segments that were begun since.
    pub segments: Option<u64>,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Where in its segment the redo point lies, from 0 to 1.
    pub in_segment: f64,
    /// Its segment had begun at least so many seconds before, while no other one went on.
    pub seconds_in_segment: i64,
    /// It took at least so long, in seconds.
    pub took: f64,
    /// The second of its minute in which it began.
    pub of_minute: i64,
    /// Whether the server may have been started since the one before: then its clock began anew.
    pub after_start: bool,
    /// Seconds since the record of the one before.
    pub since_before_ended: Option<i64>,
    /// Seconds since the first time that is stated after the one before began.
    pub since_first_write: Option<i64>,
    /// Whether nothing happened since the one before: the clock begins none then, nor does the volume.
    pub is_idle: bool,
    /// Bytes that were written while it went on.
    pub meanwhile: u64,
    /// Whether it began right after the record of the one before: it may have waited for that.
    pub is_queued: bool,
    /// Whether the next one began right after its record: it may have had to hurry for that.
    pub is_hurried: bool,
    /// Whether others went on to write: the next one came too soon for the clock.
    pub goes_on: bool,
    /// Bytes that were written before the clock may begin the next one, where no record tells of a next one.
    pub written_soon: u64,
}

/// So much is written from one checkpoint to the next if nothing happens: its record, two snapshots of
/// what is running, a page header, and from 17 on the record that marks its redo point. The least
/// that a transaction writes is more.
fn nothing(version: &Version) -> u64 {
    if version.pacing.marks_redo { 288 } else { 256 }
}

/// The checkpointer is woken up when a segment is full: so many seconds later volume begins none, unless
/// another one was going on.
const SECONDS_LATE: i64 = 2;
/// Whoever asks for a checkpoint waits for it; so much is written meanwhile by others.
const MEANWHILE: u64 = 64 << 10;
/// A checkpoint by volume takes most of the distance to the next one; with less than this part of it written
/// meanwhile it did not take its time, ...
const FAST: f64 = 0.05;
/// ... and with more than this part it did. (Of 218 by volume 213 took more, of 219 that were asked for none
/// took as much as the first.)
const PACED: f64 = 0.1;
/// A checkpoint that waited for the one before begins so near to that one's record.
const QUEUED: u64 = 256 << 10;

/// Whether nothing of importance was written since the redo point before.
fn is_idle(found: &Cycles, before: Option<Lsn>, redo: Lsn, version: &Version) -> bool {
    before.is_some_and(|before| found.written(before, redo) <= nothing(version))
}

/// Whether a checkpoint that waited for the end of another one begins as near to it.
fn is_near(found: &Cycles, from: Lsn, to: Lsn) -> bool {
    found.written(from, to) < QUEUED
}

impl Facts {
    /// Those of the checkpoint that a cycle begins with; `None` without its record.
    pub(super) fn of(
        found: &Cycles,
        index: usize,
        server: &Server,
        clock: &TimeMap,
    ) -> Option<Facts> {
        let (cycles, segment_bytes) = (&found.cycles, server.segment_bytes);
        let cycle = cycles.get(index)?;
        let redo = cycle.redo?;
        let ended = cycle.checkpoint.as_ref().filter(|ended| !ended.seen.is_shutdown)?;
        let time = ended.seen.says.time;
        let before = index.checked_sub(1).and_then(|before| cycles.get(before));
        let before = before.filter(|_| !ended.since.lost);
        let seconds = before.and_then(|cycle| {
            let began = cycle.checkpoint.as_ref()?.seen.says.time;
            Some(time.second() - began.second()).filter(|seconds| *seconds >= 0)
        });
        let segment = |lsn: u64| lsn / segment_bytes.max(1);
        let segments = before.and_then(|cycle| {
            let before = cycle.redo.or(cycle.checkpoint.as_ref().map(|c| c.seen.says.redo))?;
            segment(redo.0).checked_sub(segment(before.0))
        });
        let since = |at: Time| at.0.saturating_sub(time.0) as f64 / SECOND as f64;
        let earliest = clock.before(ended.lsn);
        let ended_before = before.and_then(|cycle| cycle.checkpoint.as_ref());
        let ended_lsn = ended_before.map(|before| before.lsn);
        let ended_at = ended_lsn.and_then(|lsn| clock.at(lsn));
        let next = cycles.get(index + 1);
        let next_redo = next.and_then(|next| next.redo);
        let seconds_since = |at: Time| time.second() - at.second();
        let first_write = before.and_then(|before| clock.around(before.start).1);
        let first_write = first_write.filter(|anchor| anchor.lsn < redo);
        Some(Facts {
            seconds,
            segments,
            segment_bytes,
            in_segment: (redo.0 % segment_bytes.max(1)) as f64 / segment_bytes.max(1) as f64,
            seconds_in_segment: seconds_in_segment(redo, segment_bytes, ended_lsn, clock),
            // Its time is cut to whole seconds.
            took: earliest.map_or(0.0, |at| since(at) - 1.0).max(0.0),
            of_minute: time.second().rem_euclid(60),
            after_start: ended_before.is_none_or(|before| before.seen.is_shutdown),
            since_before_ended: ended_at.map(seconds_since),
            since_first_write: first_write.map(|anchor| seconds_since(anchor.time)),
            is_idle: server.version.pacing.skips_idle
                && before.is_some_and(|before| is_idle(found, before.redo, redo, server.version)),
            meanwhile: found.written(redo, ended.lsn),
            is_queued: ended_before
                .is_some_and(|before| redo >= before.lsn && is_near(found, before.lsn, redo)),
            is_hurried: next_redo
                .is_some_and(|next| next <= ended.lsn || is_near(found, ended.lsn, next)),
            goes_on: next.and_then(|next| next.checkpoint.as_ref()).is_some_and(|next| {
                next.seen.says.time.second() - time.second() < SOONEST_BY_CLOCK
            }),
            written_soon: written_soon(found, index, time, clock),
        })
    }

    /// Those of a checkpoint so many seconds and segments after another one, for tests.
    #[cfg(test)]
    pub(super) fn sample(seconds: i64, segments: u64, in_segment: f64, took: f64) -> Facts {
        let segment_bytes = 16 << 20;
        Facts {
            seconds: Some(seconds),
            segments: Some(segments),
            segment_bytes,
            in_segment,
            seconds_in_segment: 0,
            took,
            of_minute: 17,
            after_start: false,
            since_before_ended: None,
            since_first_write: None,
            is_idle: false,
            meanwhile: 0,
            is_queued: false,
            is_hurried: false,
            goes_on: false,
            written_soon: 0,
        }
    }

    /// The same, as the last one, with so much written soon after it.
    #[cfg(test)]
    pub(super) fn with_written_soon(self, written_soon: u64) -> Facts {
        Facts { written_soon, ..self }
    }

    /// The same, with so much written while it went on, and others that write on.
    #[cfg(test)]
    pub(super) fn with_meanwhile(self, meanwhile: u64) -> Facts {
        Facts { meanwhile, goes_on: true, ..self }
    }

    /// The same, as it is under load: others wrote while it went on.
    #[cfg(test)]
    pub(super) fn under_load(self) -> Facts {
        Facts { meanwhile: 1 << 20, ..self }
    }

    /// The same, begun in this second of a minute.
    #[cfg(test)]
    pub(super) fn begun_at(self, of_minute: i64) -> Facts {
        Facts { of_minute, ..self }
    }

    /// Whether it began too long after its segment for one by volume.
    pub(super) fn is_late_in_segment(&self) -> bool {
        self.seconds_in_segment >= SECONDS_LATE
    }

    /// Whether WAL was written while it went on, which somebody did who did not wait for it.
    pub(super) fn is_under_load(&self) -> bool {
        self.meanwhile >= MEANWHILE
    }

    /// Whether it came too soon for the clock, in another segment, while others wrote.
    fn is_by_load(&self) -> bool {
        self.is_too_soon_for_the_clock()
            && self.segments.is_some_and(|segments| segments > 0)
            && self.is_under_load()
            && !self.is_late_in_segment()
    }

    /// Bytes that were written while it went on, where it was done at once although others went on to write.
    pub(super) fn done_at_once(&self, distance: u64) -> Option<u64> {
        let is_fast = (self.meanwhile as f64) < distance as f64 * FAST;
        // After the last one of all, where so much was soon written as one that takes its time has meanwhile.
        let goes_on = self.goes_on || self.written_soon as f64 >= distance as f64 * PACED;
        let is_alone = !self.is_hurried && goes_on;
        (is_fast && is_alone && self.is_too_soon_for_the_clock()).then_some(self.meanwhile)
    }

    /// Whether it took its time, as none does that somebody waits for, and came too soon for the clock.
    pub(super) fn is_paced_by_volume(&self, distance: u64) -> bool {
        self.meanwhile as f64 >= distance as f64 * PACED
            && self.is_too_soon_for_the_clock()
            && self.segments.is_some_and(|segments| segments > 0)
            && !self.is_late_in_segment()
    }

    /// Whether it took its time while others wrote, as none does that somebody waits for.
    pub(super) fn is_paced(&self, distance: u64) -> bool {
        let most = (distance as f64 * PACED).max(MEANWHILE as f64);
        self.meanwhile as f64 >= most && self.took >= LEAST_SPREAD
    }

    fn is_too_soon_for_the_clock(&self) -> bool {
        self.seconds.is_some_and(|seconds| seconds < SOONEST_BY_CLOCK)
    }

    /// Whether people set such a timeout: it begins up to some seconds late, if the machine is busy.
    fn is_usual(&self) -> bool {
        let near = |timeout: &i64| {
            self.seconds.is_some_and(|seconds| (timeout - 1..=timeout + 2).contains(&seconds))
        };
        USUAL_TIMEOUTS.iter().any(near)
    }

    /// Whether it began with a minute, as one that a clock of its own asks for.
    fn began_with_minute(&self) -> bool {
        self.of_minute <= 2
    }

    /// Whether neither the clock nor the volume can have begun it, whatever the settings.
    pub(super) fn excludes_all(&self) -> bool {
        self.seconds.is_some_and(|seconds| seconds < SOONEST_BY_CLOCK) && self.segments == Some(0)
    }

    /// Whether it took its time, as one by time does, and none that somebody asks for.
    pub(super) fn is_spread(&self) -> bool {
        let seconds = self.seconds.unwrap_or(0) as f64;
        self.took >= (seconds * SPREAD).max(LEAST_SPREAD)
    }

    /// Whether its redo point lies at the beginning of a segment: one by volume begins when a segment
    /// is full, as soon as the server gets to it.
    pub(super) fn began_with_segment(&self) -> bool {
        self.in_segment < if self.is_slow() { 0.1 } else { 0.25 }
    }

    /// Whether WAL was written so slowly that one by volume begins at the beginning of a segment.
    pub(super) fn is_slow(&self) -> bool {
        let per_second = |(segments, seconds): (u64, i64)| segments as f64 / seconds.max(1) as f64;
        self.segments.zip(self.seconds).map(per_second).is_some_and(|rate| rate <= 0.5)
    }
}

/// How many seconds before a redo point its segment began, at least; 0 where a checkpoint went on then, whose
/// record lies at `before`.
fn seconds_in_segment(redo: Lsn, segment_bytes: u64, before: Option<Lsn>, clock: &TimeMap) -> i64 {
    let begun = Lsn(redo.0 - redo.0 % segment_bytes.max(1));
    let times = clock.around(begun).1.zip(clock.before(redo));
    let is_free = before.is_none_or(|record| record < begun);
    let seconds = |(from, to): (Anchor, Time)| to.0.saturating_sub(from.time.0) / SECOND;
    times.filter(|_| is_free).map_or(0, seconds).max(0)
}

/// Bytes that were written after a checkpoint begun then, before the clock may begin the next one; 0 where a
/// record tells of a next one.
fn written_soon(found: &Cycles, index: usize, begun: Time, clock: &TimeMap) -> u64 {
    let is_last = found.cycles.get(index + 1).is_none_or(|next| next.checkpoint.is_none());
    let own = found.cycles.get(index).filter(|_| is_last);
    let Some((own, last)) = own.zip(found.cycles.last()) else { return 0 };
    let mut soon = own.start.0..last.end.0;
    while soon.start < soon.end {
        let middle = soon.end - (soon.end - soon.start) / 2;
        let is_soon = clock
            .at(Lsn(middle))
            .is_some_and(|time| time.second() - begun.second() < SOONEST_BY_CLOCK);
        if is_soon {
            soon.start = middle;
        } else {
            soon.end = middle - 1;
        }
    }
    found.written(own.start, Lsn(soon.start))
}

/// What is regular about a range's checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Spacing {
    /// Distances in seconds, ascending.
    seconds: Vec<i64>,
    /// Those of checkpoints that took their time, ascending.
    spread: Vec<i64>,
    /// Distances in segments of those that began with one, ascending.
    at_segments: Vec<u64>,
    /// How many there are, and how many of them began with a segment.
    began: (usize, usize),
    /// The longest distance in segments, of those that did not wait for the one before if there are any.
    longest: u64,
    /// How many are too close for the clock, and had others write while they went on.
    under_load: usize,
    /// The shortest distance of those, in segments.
    least_under_load: Option<u64>,
    /// How many did not begin with a minute, of those at a distance that people set.
    off_minute: usize,
    /// The distance in seconds that is met most often, twice at least.
    pub timeout: Option<i64>,
    /// The same in segments, three times at least.
    pub segments: Option<u64>,
}

impl Spacing {
    /// Of these checkpoints.
    pub(super) fn of<'f>(facts: impl Iterator<Item = &'f Facts>) -> Spacing {
        let mut spacing = Spacing::default();
        let mut longest_queued = 0;
        for facts in facts {
            spacing.seconds.extend(facts.seconds.filter(|seconds| *seconds >= SOONEST_BY_CLOCK));
            let spread = facts.seconds.filter(|_| facts.is_spread());
            spacing.spread.extend(spread);
            let longest = if facts.is_queued { &mut longest_queued } else { &mut spacing.longest };
            *longest = (*longest).max(facts.segments.unwrap_or(0));
            if facts.is_by_load() {
                spacing.under_load += 1;
                let least = spacing.least_under_load.into_iter().chain(facts.segments).min();
                spacing.least_under_load = least;
            }
            spacing.off_minute += usize::from(facts.is_usual() && !facts.began_with_minute());
            let began = facts.began_with_segment();
            spacing.began.0 += 1;
            spacing.began.1 += usize::from(began);
            spacing.at_segments.extend(facts.segments.filter(|count| began && *count > 0));
        }
        if spacing.longest == 0 {
            spacing.longest = longest_queued;
        }
        spacing.seconds.sort_unstable();
        spacing.spread.sort_unstable();
        spacing.at_segments.sort_unstable();
        spacing.timeout = most_frequent(&spacing.seconds, |seconds| spacing.near(seconds), 2);
        spacing.segments = most_frequent(&spacing.at_segments, |count| spacing.same(count), 3);
        spacing
    }

    /// The longest distance, bytes.
    pub(super) fn longest_bytes(&self, facts: &Facts) -> u64 {
        self.longest.saturating_mul(facts.segment_bytes)
    }

    /// How many distances in seconds are like this one, but for one second.
    fn near(&self, seconds: i64) -> usize {
        within(&self.seconds, &(seconds - 1), &(seconds + 1)).len()
    }

    fn same(&self, segments: u64) -> usize {
        within(&self.at_segments, &segments, &segments).len()
    }

    /// Whether the clock may have begun it.
    pub(super) fn may_be_time(&self, facts: &Facts) -> bool {
        // Nothing before it: anything may be.
        let Some(seconds) = facts.seconds else { return true };
        if facts.is_idle {
            return false;
        }
        let is_early = self.timeout.is_some_and(|timeout| seconds < timeout - 1);
        seconds >= SOONEST_BY_CLOCK && !is_early
    }

    /// Whether the volume may have begun it.
    pub(super) fn may_be_wal(&self, facts: &Facts) -> bool {
        if facts.is_late_in_segment() {
            return false;
        }
        let Some(segments) = facts.segments else { return true };
        // The setting may have been lowered: then there are others of the same distance.
        let is_habit = facts.began_with_segment() && self.same(segments) >= 2;
        let is_enough = match self.segments {
            Some(regular) => segments >= regular,
            // A request waits while a checkpoint goes on, for nearly as long again.
            None => segments.saturating_mul(2) >= self.longest,
        };
        // Under load each begins late, some more than others.
        let is_as_others = self.under_load >= LOADS
            && self.least_under_load.is_some_and(|least| segments.saturating_mul(2) >= least);
        segments > 0 && (is_enough || is_habit || is_as_others || facts.is_queued)
    }

    /// How many, this one included, came too soon for the clock while others wrote; `None` if this one
    /// did not.
    pub(super) fn load_support(&self, facts: &Facts) -> Option<usize> {
        (facts.is_by_load() && self.under_load >= LOADS).then_some(self.under_load)
    }

    /// Whether so many are as far apart as people set `checkpoint_timeout` to, and did not all begin with
    /// a minute as cron does: the server's own clock begins them.
    pub(super) fn is_habit_of_time(&self, facts: &Facts) -> bool {
        let near = facts.seconds.map_or(0, |seconds| self.near(seconds));
        facts.is_usual() && near >= HABIT && near * 2 >= self.seconds.len() && self.off_minute > 0
    }

    /// Whether most begin anywhere in a segment, as those by volume do not.
    pub(super) fn begins_anywhere(&self) -> bool {
        self.began.1 * 2 < self.began.0
    }

    /// Whether the distance in segments is known from which on the volume begins a checkpoint.
    pub(super) fn knows_volume(&self) -> bool {
        self.segments.is_some()
    }

    /// Whether the distance in time is one at which checkpoints take their time: nobody who asks for
    /// one waits so.
    pub(super) fn is_timeout(&self, facts: &Facts) -> bool {
        let near = |seconds| within(&self.spread, &(seconds - 1), &(seconds + 1));
        facts.seconds.is_some_and(|seconds| !near(seconds).is_empty())
    }

    /// How many are as far apart in time, this one included; 1 if only the distance is usual.
    pub(super) fn time_support(&self, facts: &Facts) -> Option<usize> {
        let seconds = facts.seconds?;
        match self.near(seconds) {
            0 | 1 => facts.is_usual().then_some(1),
            count => Some(count),
        }
    }

    /// How many are as far apart in segments, this one included.
    pub(super) fn wal_support(&self, facts: &Facts) -> Option<usize> {
        let segments = facts.segments?;
        Some(self.same(segments)).filter(|count| *count > 0)
    }
}

/// Those of ascending values that lie from `least` to `most`.
fn within<'a, T: Ord>(values: &'a [T], least: &T, most: &T) -> &'a [T] {
    let from = values.partition_point(|value| value < least);
    let to = values.partition_point(|value| value <= most);
    values.get(from..to).unwrap_or_default()
}

/// The value that `count` finds most often, if it does so often enough; the smallest of equals.
fn most_frequent<T: Copy>(values: &[T], count: impl Fn(T) -> usize, least: usize) -> Option<T> {
    let mut best: Option<(usize, T)> = None;
    for value in values {
        let count = count(*value);
        if count >= least && best.is_none_or(|(most, _)| count > most) {
            best = Some((count, *value));
        }
    }
    best.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_a_segment_began_is_told_by_what_was_committed_in_it() {
        const SEGMENT: u64 = 100;
        let mut clock = TimeMap::default();
        for (lsn, second) in [(190, 1), (205, 2), (250, 5), (280, 9)] {
            clock.push(Anchor { lsn: Lsn(lsn), time: Time(second * SECOND) });
        }
        let since = |redo, before: Option<u64>| {
            seconds_in_segment(Lsn(redo), SEGMENT, before.map(Lsn), &clock)
        };
        assert_eq!([since(210, None), since(260, None), since(290, None)], [0, 3, 7]);
        // While another one goes on, a request waits.
        assert_eq!([since(290, Some(150)), since(290, Some(220))], [7, 0]);
        // Nothing is known of what was written before any commit.
        assert_eq!(since(195, None), 0);
    }
}
