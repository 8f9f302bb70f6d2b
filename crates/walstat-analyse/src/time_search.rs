//! Finds the segments of a span of time by a look into the beginnings of segments.
//!
//! A segment's first commits say from when it is. Where these times ascend, the span lies between two of
//! them. Where they do not, the clock was set, and all segments are read; so they are where a segment
//! beside the span holds a commit of it. Only a clock that is set forward and back again within one
//! segment is not noticed.

use crate::time_map::Anchor;
use crate::time_span::{Places, PlacesFound, Stamps};
use std::collections::BTreeSet;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::{SECOND, Time};
use walstat_read::input::plan::Plan;
use walstat_read::input::segment::Segment;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::seek::look;

/// Up to so many bytes of segments, all are read.
const FEW_BYTES: u64 = 16 << 20;
/// A backend takes a record's time at most that long before it writes the record, in microseconds.
const MICROS_LATE: i64 = SECOND;
/// How much is read at the start of a segment to find a record with a time: the first number first, the
/// second where the first held none.
const BEGINNINGS: [u64; 2] = [8 << 10, 64 << 10];
/// The beginnings of so many segments are looked into, at even distances; then those between, by
/// bisection.
const LOOKS_MAX: usize = 1024;

/// So many segments beside each other are looked into for a time, before it is given up.
const TRIES_MAX: usize = 8;

/// All times.
pub const EVER: Range<Time> = Time(i64::MIN)..Time(i64::MAX);

/// The segments of a range, to be looked into.
pub struct Segments<'a> {
    plan: &'a Plan,
    range: Range<Lsn>,
    /// So many segments hold WAL; those after them wait to be written.
    count: usize,
    /// The first times of segments, ascending by segment.
    firsts: Vec<First>,
    /// Segments that were looked into without finding one.
    silent: BTreeSet<usize>,
}

/// The first time in a segment.
#[derive(Debug, Clone, Copy)]
struct First {
    segment: usize,
    /// The time, and where its record ends.
    at: Anchor,
}

/// Where records of a span of time lie.
pub struct Part {
    /// All of them, and commits before and after them: only this is read.
    pub range: Range<Lsn>,
    /// Where the clock shows such a time.
    pub places: Vec<Range<Lsn>>,
    /// First and last time in the WAL, if it is known now.
    pub there: Option<(Time, Time)>,
}

/// Segments among which the span begins or ends.
struct Edge {
    segments: Range<usize>,
    /// Which part of them is read.
    range: Range<Lsn>,
}

/// The places in a range, its middle first. One that tells nothing is mostly among others that do not, as
/// where a table was filled by one transaction: so those far from it are next, each twice as far.
fn outwards(range: Range<usize>) -> impl Iterator<Item = usize> {
    let middle = range.start.midpoint(range.end);
    let steps = std::iter::successors(Some(1_usize), |step| step.checked_mul(2));
    let steps = steps.take_while({
        let length = range.len();
        move |step| *step < length
    });
    let far = steps.flat_map(move |step| [middle.checked_add(step), middle.checked_sub(step)]);
    let far = std::iter::once(Some(middle)).chain(far).flatten();
    let inside = range.clone();
    far.filter(move |at| inside.contains(at)).chain(range)
}

impl<'a> Segments<'a> {
    /// Those of a plan that lie in a range.
    pub fn new(plan: &'a Plan, range: Range<Lsn>) -> Segments<'a> {
        let mut all =
            Segments { plan, range, count: 0, firsts: Vec::new(), silent: BTreeSet::new() };
        // A segment that waits to be written bears the address of what it was before.
        let is_written = |segment: &Segment| {
            let start = all.start_of(segment);
            segment.first_page.as_ref().is_ok_and(|page| page.header.address == start)
        };
        all.count = plan.segments.iter().rposition(is_written).map_or(0, |last| last + 1);
        if !all.are_few() {
            all.firsts = if plan.is_presumed() { all.ends() } else { all.at_even_distances() };
        }
        all
    }

    fn at_even_distances(&mut self) -> Vec<First> {
        let step = self.count.div_ceil(LOOKS_MAX).max(1);
        (0..self.count).step_by(step).filter_map(|at| self.look_at(at)).collect()
    }

    /// Only the first and the last one, where each look is a request to an object store: the others are
    /// found by bisection.
    fn ends(&mut self) -> Vec<First> {
        let first = (0..self.count).take(TRIES_MAX).find_map(|at| self.look_at(at));
        let last = (0..self.count).rev().take(TRIES_MAX).find_map(|at| self.look_at(at));
        let last = last.filter(|last| first.is_some_and(|first| first.segment < last.segment));
        first.into_iter().chain(last).collect()
    }

    /// Where records of these times lie.
    pub fn find(&mut self, times: &Range<Time>) -> Part {
        for (time, more) in [(times.start, -MICROS_LATE), (times.end, MICROS_LATE)] {
            self.narrow(time, more);
        }
        self.in_part(times).unwrap_or_else(|| self.in_all(times))
    }

    /// The last time of all.
    pub fn latest(&self) -> Option<Time> {
        let latest = |segments| self.look(segments, self.range.clone(), &Stamps::default()).latest;
        if self.are_few() || !self.is_steady() {
            return latest(0..self.count);
        }
        (0..self.count).rev().find_map(|index| latest(index..index + 1))
    }

    /// First and last time of all.
    pub fn span(&self) -> Option<(Time, Time)> {
        // Before the first commit that was found a checkpoint may state a time.
        let first = self.firsts.first()?;
        let until_then = self.range.start..first.at.lsn;
        let seen = self.look(0..first.segment + 1, until_then, &Places::of(EVER)).finish();
        let earliest = seen.span.map_or(first.at.time, |(earliest, _)| earliest);
        self.latest().map(|latest| (earliest, latest))
    }

    fn are_few(&self) -> bool {
        self.count as u64 * u64::from(self.plan.geometry.segment_bytes) <= FEW_BYTES
    }

    fn start_of(&self, segment: &Segment) -> Lsn {
        Lsn(segment.number * u64::from(self.plan.geometry.segment_bytes))
    }

    /// Where a segment starts, if it is there.
    fn start(&self, index: usize) -> Option<Lsn> {
        self.plan.segments.get(index).map(|segment| self.start_of(segment))
    }

    /// Counts the records of some segments that lie in a range.
    fn look<O: Observe>(&self, segments: Range<usize>, range: Range<Lsn>, prototype: &O) -> O {
        let segments = self.plan.segments.get(segments).unwrap_or_default();
        let range = range.start.max(self.range.start)..range.end.min(self.range.end);
        look(self.plan, segments, range, prototype)
    }

    /// The first time of a segment, if its beginning states one.
    fn first_of(&self, segment: usize) -> Option<First> {
        let start = self.start(segment)?;
        BEGINNINGS.into_iter().find_map(|bytes| {
            let beginning = start..Lsn(start.0 + bytes);
            let stamps: Stamps = self.look(segment..segment + 1, beginning, &Stamps::default());
            stamps.first.map(|at| First { segment, at })
        })
    }

    /// The same, once: one that states none is not asked again.
    fn look_at(&mut self, segment: usize) -> Option<First> {
        if self.silent.contains(&segment) {
            return None;
        }
        let first = self.first_of(segment);
        if first.is_none() {
            self.silent.insert(segment);
        }
        first
    }

    /// Looks into more segments around a time, until no two remain between.
    fn narrow(&mut self, time: Time, more: i64) {
        loop {
            let place = self.place(time, more);
            let before = place.checked_sub(1).and_then(|before| self.firsts.get(before));
            let low = before.map_or(0, |before| before.segment + 1);
            let high = self.firsts.get(place).map_or(self.count, |after| after.segment);
            if self.firsts.is_empty() || low >= high {
                return;
            }
            let found = outwards(low..high).find_map(|at| {
                let is_enough = self.silent.len() >= LOOKS_MAX;
                if is_enough { None } else { self.look_at(at) }
            });
            let Some(found) = found else { return };
            self.firsts.insert(place, found);
            if !self.is_steady() {
                return;
            }
        }
    }

    /// Whether the first times ascend.
    fn is_steady(&self) -> bool {
        let ascends = |pair: &[First]| match pair {
            [a, b] => b.at.time.0 >= a.at.time.0.saturating_sub(MICROS_LATE),
            _ => true,
        };
        self.firsts.windows(2).all(ascends)
    }

    fn in_all(&self, times: &Range<Time>) -> Part {
        let found = self.look(0..self.count, self.range.clone(), &Places::of(times.clone()));
        let PlacesFound { places, span, .. } = found.finish();
        Part { range: self.range.clone(), places, there: span }
    }

    /// The same by a look at the segments around both ends of the span. `None`: all have to be read.
    fn in_part(&self, times: &Range<Time>) -> Option<Part> {
        if self.firsts.is_empty() || !self.is_steady() {
            return None;
        }
        let range = self.range_of(times);
        let mut found = Vec::new();
        for Edge { segments, range: part } in self.edges(times) {
            let seen = self.look(segments, part, &Places::of(times.clone())).finish();
            let is_inside = |(first, last): &(Lsn, Lsn)| range.start <= *first && *last < range.end;
            if seen.is_set_back || !seen.stated.iter().all(is_inside) {
                return None;
            }
            found.push(seen.places);
        }
        let places = match found.as_slice() {
            // Between both edges there is nothing but the span.
            [first, last] => {
                let ends = first.first().zip(last.last());
                ends.map(|(first, last)| first.start..last.end).into_iter().collect()
            }
            _ => found.concat(),
        };
        Some(Part { range, places, there: None })
    }

    /// From the last segment that begins before the span to the first commit after it.
    fn range_of(&self, times: &Range<Time>) -> Range<Lsn> {
        let begin = self.before(times.start, -MICROS_LATE).map(|first| first.segment);
        let begin = begin.filter(|first| *first > 0).and_then(|first| self.start(first));
        let end = self.after(times.end, MICROS_LATE).map(|first| first.at.lsn);
        let Range { start, end: last } = self.range;
        begin.map_or(start, |begin| begin.max(start))..end.map_or(last, |end| end.min(last))
    }

    /// The segments around the beginning of the span and around its end, or around all of it.
    fn edges(&self, times: &Range<Time>) -> Vec<Edge> {
        let begin = |first: Option<First>| first.map_or(0, |first| first.segment);
        let end = |first: Option<First>| first.map_or(self.count, |first| first.segment + 1);
        let edge = |segments: Range<usize>, end: Option<Lsn>| Edge {
            range: self.start(segments.start).unwrap_or_default()..end.unwrap_or(Lsn::MAX),
            segments,
        };
        let from = begin(self.before(times.start, -MICROS_LATE));
        let after = self.after(times.end, MICROS_LATE);
        let (until, last) = (end(after), after.map(|first| first.at.lsn));
        let inside = self.after(times.start, MICROS_LATE);
        let still = begin(self.before(times.end, -MICROS_LATE));
        match (times.start.0 > i64::MIN, times.end.0 < i64::MAX) {
            (true, true) if still < end(inside) => vec![edge(from..until, last)],
            (with_begin, with_end) => {
                let begin = || edge(from..end(inside), inside.map(|first| first.at.lsn));
                let end = || edge(still..until, last);
                let begin = with_begin.then(begin);
                begin.into_iter().chain(with_end.then(end)).collect()
            }
        }
    }

    /// The last segment that begins before a time and so much.
    fn before(&self, time: Time, more: i64) -> Option<First> {
        let place = self.place(time, more);
        place.checked_sub(1).and_then(|before| self.firsts.get(before)).copied()
    }

    /// The first segment that begins at a time and so much, or later.
    fn after(&self, time: Time, more: i64) -> Option<First> {
        self.firsts.get(self.place(time, more)).copied()
    }

    fn place(&self, time: Time, more: i64) -> usize {
        let time = time.0.saturating_add(more);
        self.firsts.partition_point(|first| first.at.time.0 < time)
    }
}
