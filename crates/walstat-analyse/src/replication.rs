//! How fast WAL grows, and whether a link or a standby of some rate keeps up with it.
//!
//! What has to be sent is the distance of places, by the clock of the WAL, read at whole seconds:
//! exact at each of them, and evenly spread between two times that are several seconds apart. What
//! lies before the first time and after the last counts as sent then, as in the timeline. What is
//! written is less than that: a server that switches to the next segment sends the rest of the last
//! one too.

use super::time_map::{Anchor, Interval, Tick};
use super::unused::written;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::SECOND;

/// Steps that are kept; then two neighbours become one.
const STEPS: usize = 1 << 18;

/// Seconds in which WAL grew evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GrowthStep {
    /// The first second, from 1970.
    second: i64,
    /// How many.
    seconds: i64,
    /// By how many bytes.
    bytes: u64,
}

/// How WAL grew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrowthCurve {
    first: Option<Anchor>,
    last: Option<Anchor>,
    steps: Vec<GrowthStep>,
    /// Bytes in the busiest second, and that second.
    peak: (u64, i64),
    distance: u64,
    /// Microseconds from the first to the last time.
    elapsed: i64,
    /// Where the WAL begins, if it is followed from its beginning.
    begin: Option<Lsn>,
    /// Places since the last time at which nothing was written, ascending.
    unused: Vec<Range<Lsn>>,
}

/// How far behind a link or a standby falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Bytes at the worst second's end.
    pub peak_bytes: u64,
    /// The end of that second, from 1970; `None` if it never falls behind.
    pub peak_second: Option<i64>,
    /// The first second after it at whose beginning nothing is left; `None`: not in this WAL.
    pub clear_second: Option<i64>,
}

impl GrowthCurve {
    /// The WAL begins at `lsn`, if it did not before.
    pub fn begin(&mut self, lsn: Lsn) {
        self.begin.get_or_insert(lsn);
    }

    /// What lies here does not count.
    pub(crate) fn leave_out(&mut self, unused: Range<Lsn>) {
        self.unused.push(unused);
    }

    /// Bytes that count.
    fn bytes(&self, from: u64, to: u64) -> u64 {
        written(&self.unused, Lsn(from)..Lsn(to))
    }

    /// The WAL ends at `lsn`.
    pub fn end(&mut self, lsn: Lsn) {
        if let Some(last) = self.last {
            self.push(last.time.second(), 1, self.bytes(last.lsn.0, lsn.0));
        }
    }

    /// The clock goes on.
    pub fn tick(&mut self, tick: &Tick) {
        match self.last.replace(tick.to) {
            Some(from) => self.grow(from, tick.to, tick.is_set_back),
            None => {
                let begin = self.begin.unwrap_or(tick.to.lsn);
                let bytes = self.bytes(begin.0, tick.to.lsn.0);
                self.push(tick.to.time.second(), 1, bytes);
            }
        }
        self.unused.clear();
        self.first.get_or_insert(tick.to);
    }

    fn grow(&mut self, from: Anchor, to: Anchor, is_set_back: bool) {
        let bytes = self.bytes(from.lsn.0, to.lsn.0);
        self.distance += bytes;
        let (first, last) = (from.time.second(), to.time.second());
        if !is_set_back {
            self.elapsed = self.elapsed.saturating_add(to.time.0.saturating_sub(from.time.0));
        }
        if is_set_back || first >= last {
            return self.push(first, 1, bytes);
        }
        let mut interval = Interval::new(Some(from), Some(to));
        let second_ends = interval.second_at(from.lsn.0).map_or(to.lsn.0, |(_, end)| end);
        let until = second_ends.min(to.lsn.0);
        let last_begins = interval.begin_of(last).clamp(until, to.lsn.0);
        self.push(first, 1, self.bytes(from.lsn.0, until));
        self.push(first + 1, last - first - 1, self.bytes(until, last_begins));
        self.push(last, 1, self.bytes(last_begins, to.lsn.0));
    }

    fn push(&mut self, second: i64, seconds: i64, bytes: u64) {
        if bytes == 0 || seconds <= 0 {
            return;
        }
        match self.steps.last_mut() {
            Some(last) if last.second == second && last.seconds == 1 && seconds == 1 => {
                last.bytes += bytes;
                self.peak = later(self.peak, (last.bytes, second));
            }
            _ => {
                self.peak = later(self.peak, (bytes.div_ceil(seconds as u64), second));
                self.steps.push(GrowthStep { second, seconds, bytes });
                if self.steps.len() > STEPS {
                    self.halve();
                }
            }
        }
    }

    fn halve(&mut self) {
        let join = |pair: &[GrowthStep]| match *pair {
            [a, b] if b.second >= a.second => {
                let seconds = b.second + b.seconds - a.second;
                vec![GrowthStep { second: a.second, seconds, bytes: a.bytes + b.bytes }]
            }
            _ => pair.to_vec(),
        };
        self.steps = self.steps.chunks(2).flat_map(join).collect();
    }

    /// Bytes by equal stretches of time, at most so many, and how many seconds each takes.
    pub fn stretches(&self, most: usize) -> (u64, Vec<u64>) {
        let (Some(first), Some(last)) = (self.first, self.last) else { return (0, Vec::new()) };
        let (from, to) = (first.time.second(), last.time.second().max(first.time.second()));
        let seconds = to.abs_diff(from).saturating_add(1);
        let width = seconds.div_ceil(most.max(1) as u64).max(1);
        let count = usize::try_from(seconds.div_ceil(width)).unwrap_or(0);
        let mut sums = vec![0; count];
        let place = |second: i64| usize::try_from(second.saturating_sub(from) / width as i64).ok();
        for step in &self.steps {
            let last = place(step.second.saturating_add(step.seconds - 1));
            let (Some(a), Some(b)) = (place(step.second), last) else { continue };
            let share = step.bytes / (b - a + 1) as u64;
            for sum in sums.get_mut(a..=b).unwrap_or_default() {
                *sum += share;
            }
            if let Some(sum) = sums.get_mut(b) {
                *sum += step.bytes - share * (b - a + 1) as u64;
            }
        }
        (width, sums)
    }

    /// Bytes a second on average; `None` if no time passed.
    pub fn mean_rate(&self) -> Option<f64> {
        self.rate_without(0)
    }

    /// The same where so many microseconds are no time of work.
    pub fn rate_without(&self, microseconds: i64) -> Option<f64> {
        let elapsed = self.elapsed.saturating_sub(microseconds);
        let seconds = elapsed as f64 / SECOND as f64;
        (elapsed > 0).then(|| self.distance as f64 / seconds.max(1.0))
    }

    /// Bytes in the busiest second, and that second; `None` without a clock that goes on.
    pub fn peak_second(&self) -> Option<(u64, i64)> {
        (self.peak.0 > 0).then_some(self.peak)
    }

    /// Bytes in the busiest second; `None` without a clock that goes on.
    pub fn peak_rate(&self) -> Option<u64> {
        self.peak_second().map(|(bytes, _)| bytes)
    }

    /// The smallest rate, in bytes a second, at which nothing is left at any second's end.
    pub fn never_behind_rate(&self) -> Option<u64> {
        let rates = self.steps.iter().map(|step| step.bytes.div_ceil(step.seconds as u64));
        rates.max().map(|rate| rate.max(self.peak.0))
    }

    /// How far it falls behind at so many bytes a second, counted at each second's end.
    pub fn backlog(&self, rate: u64) -> Backlog {
        let rate = i128::from(rate.max(1));
        let (mut left, mut at) = (0i128, i64::MIN);
        let mut found = Backlog::default();
        for step in &self.steps {
            // Where the clock was set back no time passes.
            let idle = if at == i64::MIN { 0 } else { step.second.saturating_sub(at).max(0) };
            if left > 0 && left <= rate * i128::from(idle) {
                found.clear_second.get_or_insert(at.saturating_add(seconds(left, rate)));
            }
            left = (left - rate * i128::from(idle)).max(0);
            let before = left;
            left = (left + i128::from(step.bytes) - rate * i128::from(step.seconds)).max(0);
            at = step.second.saturating_add(step.seconds);
            if left == 0 && before > 0 {
                // Evenly: so the rest shrinks evenly too.
                let shrinks = rate * i128::from(step.seconds) - i128::from(step.bytes);
                let after = seconds(before * i128::from(step.seconds), shrinks.max(1));
                found.clear_second.get_or_insert(step.second.saturating_add(after));
            }
            if left > i128::from(found.peak_bytes) {
                let peak_bytes = u64::try_from(left).unwrap_or(u64::MAX);
                found = Backlog { peak_bytes, peak_second: Some(at), clear_second: None };
            }
        }
        found
    }

    /// The smallest rate, in bytes a second, at which nothing is ever later than `lag` seconds.
    ///
    /// What was written up to t is there at t + lag if the rate is that of the growth from any s
    /// before to t, over the time from s to t + lag. The steepest is found among the corners of the
    /// curve's lower hull.
    pub fn max_lag_rate(&self, lag: u64) -> Option<u64> {
        let mut hull: Vec<(i128, i128)> = Vec::new();
        let (mut time, mut written, mut best) = (0i128, 0i128, 0i128);
        let mut at = self.steps.first()?.second;
        for step in &self.steps {
            time += i128::from(step.second.saturating_sub(at).max(0));
            at = step.second.saturating_add(step.seconds);
            add_corner(&mut hull, (time, written));
            time += i128::from(step.seconds);
            written += i128::from(step.bytes);
            let to = (time + i128::from(lag), written);
            let slope = |corner: &(i128, i128)| div_ceil(to.1 - corner.1, (to.0 - corner.0).max(1));
            // Along the hull the slope rises up to the tangent and falls after it.
            let tangent = hull.partition_point_pairs(|a, b| is_left_of(*a, *b, to));
            best = best.max(hull.get(tangent).map_or(0, slope));
        }
        u64::try_from(best).ok()
    }
}

/// The busier of two seconds; the first of equals.
fn later(first: (u64, i64), second: (u64, i64)) -> (u64, i64) {
    if second.0 > first.0 { second } else { first }
}

/// Whole seconds until so much is gone.
fn seconds(bytes: i128, rate: i128) -> i64 {
    i64::try_from(div_ceil(bytes, rate)).unwrap_or(i64::MAX)
}

fn div_ceil(a: i128, b: i128) -> i128 {
    (a + b - 1).div_euclid(b)
}

/// Adds the next corner of a lower convex hull.
fn add_corner(hull: &mut Vec<(i128, i128)>, next: (i128, i128)) {
    while let [.., a, b] = hull.as_slice()
        && !is_left_of(*a, *b, next)
    {
        hull.pop();
    }
    hull.push(next);
}

/// Whether `c` lies above the line from `a` through `b`.
fn is_left_of(a: (i128, i128), b: (i128, i128), c: (i128, i128)) -> bool {
    (b.0 - a.0) * (c.1 - a.1) > (b.1 - a.1) * (c.0 - a.0)
}

/// Bisection over neighbours.
trait Pairs<T> {
    /// Index of the first element whose pair with the next one does not hold, or of the last.
    fn partition_point_pairs(&self, holds: impl Fn(&T, &T) -> bool) -> usize;
}

impl<T> Pairs<T> for Vec<T> {
    fn partition_point_pairs(&self, holds: impl Fn(&T, &T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len().saturating_sub(1));
        while low < high {
            let middle = (low + high) / 2;
            match self.get(middle).zip(self.get(middle + 1)) {
                Some((a, b)) if holds(a, b) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::payload::Time;

    #[test]
    fn the_mean_is_that_of_all_time_however_often_it_is_stated() {
        let mut curve = GrowthCurve::default();
        curve.begin(Lsn(1000));
        for tenth in 0..=100 {
            let to = Anchor { lsn: Lsn(5000 + tenth * 50), time: Time(tenth as i64 * 100_000) };
            curve.tick(&Tick { to, is_set_back: false });
        }
        curve.end(Lsn(12_000));
        assert_eq!(curve.mean_rate(), Some(500.0));
        // What lies before the first time counts as sent in its second, and so at the end.
        assert_eq!(curve.peak_second(), Some((4500, 0)));
        let all: u64 = curve.steps.iter().map(|step| step.bytes).sum();
        assert_eq!(all, 11_000);
    }

    #[test]
    fn the_unused_rest_of_a_segment_is_no_growth() {
        let mut curve = GrowthCurve::default();
        curve.begin(Lsn(0));
        let mut at = 0;
        for minute in 0..5 {
            at += 500;
            let to = Anchor { lsn: Lsn(at), time: Time(minute * 60 * SECOND) };
            curve.tick(&Tick { to, is_set_back: false });
            let end = (at + 100).next_multiple_of(1 << 20);
            curve.leave_out(Lsn(at + 100)..Lsn(end));
            at = end;
        }
        curve.end(Lsn(at));
        // What lies after the last time counts in its second.
        assert_eq!(curve.peak_rate(), Some(600));
        assert_eq!(curve.mean_rate(), Some(4.0 * 600.0 / 240.0));
        let all: u64 = curve.steps.iter().map(|step| step.bytes).sum();
        assert_eq!(all, 5 * 600);
    }
}
