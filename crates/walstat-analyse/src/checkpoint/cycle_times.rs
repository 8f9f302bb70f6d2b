//! The part of a checkpoint cycle that depends on the clock: how its images and its WAL are spread over
//! its time, and how long its checkpoint took.
//!
//! The time at a place is known only when a later record states one. So a cycle that is over waits
//! for that, and is looked at when the next cycles end. Few may wait, since their images take memory.

use super::Cycle;
use super::decay::{ImagePlaces, exponent};
use crate::time_map::{Tick, TimeMap, is_gap};
use std::collections::VecDeque;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// Fewer times in a cycle say nothing of how it went.
const TIMES: usize = 10;

/// So many cycles wait for a time; then the oldest does without.
const WAITING: usize = 4;

/// How a cycle went, by its time rather than its WAL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByTime {
    /// Shares of the image bytes in the first tenth, quarter and half of its time; `None` without
    /// images.
    pub images: Option<[f64; 3]>,
    /// The exponent e for which the share of its time is about that of its WAL to the power of e: 1 is
    /// evenly written, more is a burst at the beginning.
    pub pace: f64,
}

/// A cycle that is over.
#[derive(Debug, Clone)]
struct Waiting {
    index: usize,
    images: ImagePlaces,
}

/// Looks at the cycles that are over as soon as their times are known.
#[derive(Debug, Clone, Default)]
pub(super) struct CycleTimes {
    /// The clock since the first cycle that waits.
    clock: TimeMap,
    waiting: VecDeque<Waiting>,
}

impl CycleTimes {
    /// The clock goes on.
    pub(super) fn tick(&mut self, tick: &Tick) {
        self.clock.push(tick.to);
    }

    /// What the clock shows last.
    pub(super) fn now(&self) -> Option<Time> {
        self.clock.last().map(|anchor| anchor.time)
    }

    /// The cycle at `index`, the last one of `cycles`, is over. Those before it are looked at whose
    /// times are known.
    pub(super) fn add(&mut self, cycles: &mut [Cycle], index: usize, images: ImagePlaces) {
        self.waiting.push_back(Waiting { index, images });
        while self.waiting.len() > WAITING || self.knows_first(cycles) {
            if let Some(waiting) = self.waiting.pop_front() {
                self.look(cycles, &waiting);
            }
        }
        let first = self.waiting.front().and_then(|waiting| cycles.get(waiting.index));
        if let Some(cycle) = first {
            self.clock.forget_before(cycle.start);
        }
    }

    /// Whether the clock has gone on over the cycle that waits longest, and its checkpoint's record.
    fn knows_first(&self, cycles: &[Cycle]) -> bool {
        let first = self.waiting.front().and_then(|waiting| cycles.get(waiting.index));
        first.zip(self.clock.last()).is_some_and(|(cycle, last)| {
            let record = cycle.checkpoint.as_ref().map_or(cycle.end, |ended| ended.lsn);
            last.lsn > cycle.end.max(record)
        })
    }

    /// The clock goes no further.
    pub(super) fn finish(mut self, cycles: &mut [Cycle]) {
        while let Some(waiting) = self.waiting.pop_front() {
            self.look(cycles, &waiting);
        }
    }

    fn look(&self, cycles: &mut [Cycle], waiting: &Waiting) {
        let Some(cycle) = cycles.get_mut(waiting.index) else { return };
        cycle.by_time = by_time(&self.clock, &waiting.images, cycle.start..cycle.end);
        cycle.took = self.took(cycle);
    }

    /// Microseconds from the beginning of a cycle's checkpoint to its record.
    fn took(&self, cycle: &Cycle) -> Option<u64> {
        let ended = cycle.checkpoint.as_ref().filter(|ended| !ended.seen.is_shutdown)?;
        let (from, to) = self.clock.around(ended.lsn);
        let (from, to) = from.zip(to)?;
        let end = self.clock.at(ended.lsn).filter(|_| !is_gap(from.time, to.time))?;
        Some(u64::try_from(end.0.saturating_sub(ended.seen.says.time.0)).unwrap_or(0))
    }
}

fn by_time(clock: &TimeMap, images: &ImagePlaces, range: Range<Lsn>) -> Option<ByTime> {
    let (from, to) = (clock.at(range.start)?, clock.at(range.end)?);
    if to <= from || clock.count_in(&range) < TIMES {
        return None;
    }
    let elapsed = i128::from(to.0) - i128::from(from.0);
    // The first place after so many of so many parts of its time.
    let place = |parts: i128, of: i128| {
        let is_before = |lsn: Lsn| {
            let time = clock.at(lsn).unwrap_or(from);
            (i128::from(time.0) - i128::from(from.0)) * of < elapsed * parts
        };
        first_not(&range, is_before)
    };
    let share = |of: i128| images.share_before(place(1, of));
    let length = (range.end.0 - range.start.0) as f64;
    let written = |tenth: i128| (place(tenth, 10).0 - range.start.0) as f64 / length;
    let shares = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(written);
    Some(ByTime {
        images: share(10).zip(share(4)).zip(share(2)).map(|((a, b), c)| [a, b, c]),
        pace: 1.0 / exponent(&shares),
    })
}

/// The first place of `range` that is not before, or its end.
fn first_not(range: &Range<Lsn>, is_before: impl Fn(Lsn) -> bool) -> Lsn {
    let (mut low, mut high) = (range.start.0, range.end.0);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(Lsn(middle)) { low = middle + 1 } else { high = middle }
    }
    Lsn(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_map::Anchor;
    use walstat_format::payload::SECOND;

    /// A clock that shows x seconds at the place x^power · 1,000.
    fn clock(power: f64) -> TimeMap {
        let mut clock = TimeMap::default();
        for second in 0..=100 {
            let place = (f64::from(second).powf(power) * 1000.0) as u64;
            clock.push(Anchor { lsn: Lsn(place), time: Time(i64::from(second) * SECOND) });
        }
        clock
    }

    #[test]
    fn the_pace_is_that_of_the_wal() {
        for power in [0.5, 1.0, 2.0] {
            let end = Lsn((100f64.powf(power) * 1000.0) as u64);
            let found =
                by_time(&clock(power), &ImagePlaces::default(), Lsn(0)..end).expect("times");
            assert!((found.pace - 1.0 / power).abs() < 0.01, "{power}: {found:?}");
            assert_eq!(found.images, None);
        }
    }

    #[test]
    fn images_are_divided_by_time() {
        let mut images = ImagePlaces::default();
        // At 5, 20, 40 and 90 s.
        for place in [5_000, 20_000, 40_000, 90_000] {
            images.add(Lsn(place), 100);
        }
        let found = by_time(&clock(1.0), &images, Lsn(0)..Lsn(100_000)).expect("times");
        assert_eq!(found.images, Some([0.25, 0.5, 0.75]));
    }

    #[test]
    fn without_times_nothing_is_told() {
        assert_eq!(by_time(&TimeMap::default(), &ImagePlaces::default(), Lsn(0)..Lsn(100)), None);
        assert_eq!(by_time(&clock(1.0), &ImagePlaces::default(), Lsn(0)..Lsn(5_000)), None);
    }
}
