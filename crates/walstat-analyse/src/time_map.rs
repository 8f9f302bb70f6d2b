//! The WAL's clock: from a place in the WAL to a time.
//!
//! Transactions state when they ended or were prepared, in microseconds. Between two of those times
//! the clock is interpolated by place; before the first and after the last it stands still. It never
//! goes back: a time before one already seen does not move it, for a backend looks at its clock some
//! time before it has written its record. Only a time long before starts it anew: then the server's
//! clock was set back. Checkpoints, restore points and ends of recovery state times too; they serve
//! where transactions leave a gap.
//!
//! Knows times only, not what was written at them: that is [`super::course`].

use super::deferred_log::{Chunk, Event, PlacedEvent};
use super::unused::written;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::{SECOND, Time};

/// A clock that shows so much less than before was set back.
const SET_BACK: i64 = 60 * SECOND;
/// Where transactions state no time for so long, other times serve.
pub const GAP: i64 = 10 * SECOND;
/// So many times in one gap are kept, the first ones.
const GAP_TIMES: usize = 10_000;
/// So many places are kept, at most; then every second one is forgotten.
const PLACES: usize = 1 << 16;

/// Seconds so long past are complete: no record states a time before.
pub(crate) const COMPLETE: i64 = 3600;

/// Extends a span from the first to the last of something, as far as another one needs it.
pub(crate) fn extend_span<T: Copy + Ord>(span: &mut Option<(T, T)>, value: T) {
    let (first, last) = span.unwrap_or((value, value));
    *span = Some((first.min(value), last.max(value)));
}

/// A place whose time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Where.
    pub lsn: Lsn,
    /// When.
    pub time: Time,
}

/// The clock goes on to an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// To where.
    pub to: Anchor,
    /// Whether it was set back: up to here it stood still.
    pub is_set_back: bool,
}

/// Where little is known of when: the longer stretches between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockGaps {
    /// How many are longer than [`GAP`].
    pub stretches: u64,
    /// How many bytes were written in them.
    pub bytes: u64,
    /// The longest, in microseconds, and when it begins.
    pub longest: Option<(i64, Time)>,
    /// Bytes written before the first time and after the last.
    pub flat: u64,
    /// Bytes written in all.
    pub all: u64,
}

impl ClockGaps {
    /// Whether it is known how much was written in a second: most of the WAL has a time near it.
    pub fn knows_seconds(&self) -> bool {
        (self.bytes + self.flat) * 2 <= self.all
    }

    fn pass(&mut self, from: Anchor, to: Anchor, bytes: u64) {
        if !is_gap(from.time, to.time) {
            return;
        }
        self.stretches += 1;
        self.bytes += bytes;
        let elapsed = to.time.0.saturating_sub(from.time.0);
        if self.longest.is_none_or(|(longest, _)| elapsed > longest) {
            self.longest = Some((elapsed, from.time));
        }
    }
}

/// Makes the clock from the times in the log.
#[derive(Debug, Clone, Default)]
pub struct ClockBuilder {
    last: Option<Anchor>,
    /// Times stated since by others than transactions.
    others: Vec<Anchor>,
    /// Where the WAL begins: a checkpoint may have begun before.
    begin: Option<Lsn>,
    /// What it shows, thinned.
    pub map: TimeMap,
    /// How often it was set back.
    pub set_back: u64,
    thin: ClockGaps,
    /// Places since the last time at which nothing was written, ascending.
    unused: Vec<Range<Lsn>>,
    /// Earliest and latest time that a counted record states.
    pub stated: Option<(Time, Time)>,
}

impl ClockBuilder {
    /// The WAL begins at `lsn`, if it did not before.
    pub fn begin(&mut self, lsn: Lsn) {
        self.begin.get_or_insert(lsn);
    }

    /// Takes note of a time that an event states.
    pub fn event(&mut self, placed: &PlacedEvent) {
        let (lsn, time) = match &placed.event {
            Event::Unused => return self.unused.push(placed.lsn..placed.end),
            Event::Checkpoint(seen) => (seen.says.redo, seen.says.time),
            Event::EndOfRecovery(end) => (placed.lsn, end.time),
            Event::Overwrite(time) | Event::RestorePoint(time) => (placed.lsn, *time),
            _ => return,
        };
        // Transactions have stated times since the checkpoint began.
        let is_open = self.last.is_none_or(|last| lsn > last.lsn && time > last.time);
        let goes_on = self.others.last().is_none_or(|last| lsn > last.lsn && time > last.time);
        if is_open && goes_on && self.others.len() < GAP_TIMES {
            self.others.push(Anchor { lsn, time });
        }
    }

    /// How the clock goes on over a chunk.
    pub(crate) fn ticks(&mut self, chunk: &Chunk) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for mark in &chunk.marks {
            if mark.is_counted() {
                extend_span(&mut self.stated, mark.time);
            }
            let to = Anchor { lsn: chunk.mark_lsn(mark), time: mark.time };
            let is_set_back = match self.last {
                Some(last) if to.time.0 < last.time.0.saturating_sub(SET_BACK) => true,
                Some(last) if to.time <= last.time => continue,
                _ => false,
            };
            self.set_back += u64::from(is_set_back);
            self.fill_gap(to, &mut ticks);
            self.tick(Tick { to, is_set_back }, &mut ticks);
        }
        ticks
    }

    /// What others say between the last anchor and `to`, if that is a gap.
    fn fill_gap(&mut self, to: Anchor, ticks: &mut Vec<Tick>) {
        if self.others.is_empty() {
            return;
        }
        let others = std::mem::take(&mut self.others);
        let is_gap = self.last.is_none_or(|from| is_gap(from.time, to.time));
        let begin = self.begin.unwrap_or_default();
        let between = |other: &Anchor| (begin..to.lsn).contains(&other.lsn) && other.time < to.time;
        for other in others.into_iter().filter(|other| is_gap && between(other)) {
            self.tick(Tick { to: other, is_set_back: false }, ticks);
        }
    }

    fn tick(&mut self, tick: Tick, ticks: &mut Vec<Tick>) {
        let from = self.last.replace(tick.to);
        let begin = from.map_or(self.begin.unwrap_or(tick.to.lsn), |from| from.lsn);
        let bytes = written(&self.unused, begin..tick.to.lsn);
        self.unused.retain(|unused| unused.end > tick.to.lsn);
        self.thin.all += bytes;
        match from {
            Some(from) => self.thin.pass(from, tick.to, bytes),
            None => self.thin.flat += bytes,
        }
        self.map.push(tick.to);
        ticks.push(tick);
    }

    /// How the clock goes on after the last transaction.
    pub(crate) fn last_ticks(&mut self) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for to in std::mem::take(&mut self.others) {
            self.tick(Tick { to, is_set_back: false }, &mut ticks);
        }
        ticks
    }

    /// Where it is thin, in WAL that ends at `end`.
    pub fn thin(&self, end: Lsn) -> ClockGaps {
        let last = self.last.map(|last| last.lsn).or(self.begin).unwrap_or(end);
        let bytes = written(&self.unused, last..end);
        ClockGaps { flat: self.thin.flat + bytes, all: self.thin.all + bytes, ..self.thin }
    }

    /// The first and the last time of any record.
    pub fn span(&self) -> Option<(Time, Time)> {
        let shown = self.map.span();
        match (shown, self.stated) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (shown, stated) => shown.or(stated),
        }
    }
}

/// Places and times, to look up: all that the clock went through, or, where they were more than
/// 65,536, some of them at even distances, never fewer than 32,768.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeMap {
    anchors: Vec<Anchor>,
    /// The last one, kept or not.
    last: Option<Anchor>,
    /// Of so many one is kept, as a power of two.
    thinned: u32,
    /// How many came since the one kept last.
    since: u64,
}

impl TimeMap {
    /// Adds the next place.
    pub fn push(&mut self, anchor: Anchor) {
        self.last = Some(anchor);
        self.since += 1;
        if self.since >> self.thinned == 0 && !self.anchors.is_empty() {
            return;
        }
        self.since = 0;
        if self.anchors.len() == PLACES {
            self.thinned += 1;
            let mut keeps = false;
            self.anchors.retain(|_| {
                keeps = !keeps;
                keeps
            });
        }
        self.anchors.push(anchor);
    }

    /// The last place, kept or not.
    pub fn last(&self) -> Option<Anchor> {
        self.last
    }

    /// The places that are known before and after one: at it counts as before.
    pub fn around(&self, lsn: Lsn) -> (Option<Anchor>, Option<Anchor>) {
        let after = self.anchors.partition_point(|anchor| anchor.lsn <= lsn);
        let from = after.checked_sub(1).and_then(|before| self.anchors.get(before));
        let last = self.last.filter(|last| last.lsn > lsn);
        (from.copied(), self.anchors.get(after).copied().or(last))
    }

    /// The time at a place; `None` without any time.
    pub fn at(&self, lsn: Lsn) -> Option<Time> {
        match self.around(lsn) {
            (Some(from), Some(to)) => Some(interpolated(from, to, lsn)),
            // After the last place, which need not be among those that are kept.
            (Some(_), None) => self.last.map(|last| last.time),
            (None, to) => to.map(|anchor| anchor.time),
        }
    }

    /// How many places in a range are known.
    pub(crate) fn count_in(&self, range: &Range<Lsn>) -> usize {
        let before = |lsn: Lsn| self.anchors.partition_point(|anchor| anchor.lsn < lsn);
        before(range.end).saturating_sub(before(range.start))
    }

    /// Forgets what is not needed to tell the times from a place on.
    pub(crate) fn forget_before(&mut self, lsn: Lsn) {
        let after = self.anchors.partition_point(|anchor| anchor.lsn <= lsn);
        self.anchors.drain(..after.saturating_sub(1));
        if self.anchors.len() < PLACES / 2 {
            (self.thinned, self.since) = (0, 0);
        }
    }

    /// The last time known before a place.
    pub fn before(&self, lsn: Lsn) -> Option<Time> {
        let after = self.anchors.partition_point(|anchor| anchor.lsn <= lsn);
        let from = after.checked_sub(1).and_then(|before| self.anchors.get(before));
        from.map(|anchor| anchor.time)
    }

    /// The earliest and the latest time that it shows.
    pub fn span(&self) -> Option<(Time, Time)> {
        let times = || self.anchors.iter().chain(&self.last).map(|anchor| anchor.time);
        times().min().zip(times().max())
    }
}

/// Whether two times are so far apart that little is known of what lies between them.
pub fn is_gap(from: Time, to: Time) -> bool {
    to.0.saturating_sub(from.0) > GAP
}

/// The time at `lsn` between two anchors; at those and outside of them, theirs.
pub(crate) fn interpolated(from: Anchor, to: Anchor, lsn: Lsn) -> Time {
    if lsn <= from.lsn || to.time <= from.time {
        return from.time;
    }
    if lsn >= to.lsn {
        return to.time;
    }
    let elapsed = i128::from(to.time.0) - i128::from(from.time.0);
    let (passed, all) = (lsn.0 - from.lsn.0, to.lsn.0 - from.lsn.0);
    let since = elapsed * i128::from(passed) / i128::from(all);
    Time(from.time.0.saturating_add(since as i64))
}

/// Places between two anchors, by whole seconds.
#[derive(Debug, Clone)]
pub struct Interval {
    from: Option<Anchor>,
    to: Option<Anchor>,
    /// The second at hand holds the places in `[since, until)`.
    second: i64,
    since: u64,
    until: u64,
}

impl Interval {
    /// Between two anchors. Without the first, the clock stands at the second one's time, and the
    /// other way round.
    pub fn new(from: Option<Anchor>, to: Option<Anchor>) -> Interval {
        Interval { from, to, second: 0, since: 0, until: 0 }
    }

    /// The same from its beginning.
    pub fn again(&self) -> Interval {
        Interval::new(self.from, self.to)
    }

    /// The second at a place, and where the next one begins. `None` without any anchor.
    #[inline]
    pub(crate) fn second_at(&mut self, lsn: u64) -> Option<(i64, u64)> {
        if !(self.since..self.until).contains(&lsn) {
            self.look_up(lsn)?;
        }
        Some((self.second, self.until))
    }

    /// The places at which it is a time of `times`; `None` where the clock stands still.
    pub fn places(&self, times: &Range<Time>) -> Option<Range<Lsn>> {
        let (from, to) = self.from.zip(self.to)?;
        (to.time > from.time && to.lsn > from.lsn).then(|| {
            let place = |time: Time| Lsn(first_lsn_at(from, to, time.0));
            place(times.start)..place(times.end)
        })
    }

    /// The first place at which it is the beginning of `second` or later.
    pub(crate) fn begin_of(&self, second: i64) -> u64 {
        match (self.from, self.to) {
            (Some(from), Some(to)) if to.time > from.time => {
                first_lsn_at(from, to, second.saturating_mul(SECOND))
            }
            _ => 0,
        }
    }

    #[inline(never)]
    fn look_up(&mut self, lsn: u64) -> Option<()> {
        let (from, to) = match (self.from, self.to) {
            (Some(from), Some(to)) if to.time > from.time && to.lsn > from.lsn => {
                // Mostly both lie in one second: then every place does.
                if from.time.second() == to.time.second() {
                    (self.second, self.since, self.until) = (from.time.second(), 0, u64::MAX);
                    return Some(());
                }
                (from, to)
            }
            (from, to) => {
                self.second = from.or(to)?.time.second();
                (self.since, self.until) = (0, u64::MAX);
                return Some(());
            }
        };
        self.second = interpolated(from, to, Lsn(lsn)).second();
        self.since = lsn;
        self.until = first_lsn_at(from, to, (self.second + 1).saturating_mul(SECOND));
        Some(())
    }
}

/// The first place at which it is `time` or later.
fn first_lsn_at(from: Anchor, to: Anchor, time: i64) -> u64 {
    if time > to.time.0 {
        return u64::MAX;
    }
    let elapsed = i128::from(to.time.0) - i128::from(from.time.0);
    let wanted = i128::from(time) - i128::from(from.time.0);
    let distance = i128::from(to.lsn.0 - from.lsn.0);
    // Rounded up: the time at a place is rounded down.
    let passed = (wanted * distance + elapsed - 1) / elapsed;
    from.lsn.0.saturating_add(u64::try_from(passed).unwrap_or(0))
}
