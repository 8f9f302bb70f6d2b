//! `--since` and `--until`: from times to places, without reading what lies outside.

use super::Failure;
use super::moment::Moment;
use super::source_args::RangeArgs;
use crate::analyse::time_span::{Places, Stamps, Stated, TimeSpan};
use crate::input::discover::Found;
use crate::input::placing::place;
use crate::input::plan::{Plan, Segment, plan};
use crate::scan::record::{Everything, Observe};
use crate::scan::seek::look;
use crate::wal::lsn::Lsn;
use crate::wal::payload::{SECOND, Time};
use jiff::tz::TimeZone;
use std::ops::Range;

/// Up to so many segments all are read: then no clock, however odd, hides a commit.
const FEW: usize = 64;
/// A backend looks at its clock that long before it writes, at most, in microseconds.
const LATE: i64 = SECOND;

/// What a span of time comes to.
#[derive(Debug)]
pub struct Window {
    /// The span, for the filter.
    pub span: TimeSpan,
    /// Where its records lie: only there is read.
    pub range: (Lsn, Lsn),
    /// First and last time that were seen, for who finds nothing.
    pub there: Option<(Time, Time)>,
}

/// The window of the span that was asked for; `None`: none was.
pub fn window(args: &RangeArgs, found: &Found, range: (Lsn, Lsn)) -> Result<Option<Window>, Failure> {
    if args.since.is_none() && args.until.is_none() {
        return Ok(None);
    }
    if !found.streams.is_empty() {
        let text = "--since and --until read twice: give a directory or segments, not a stream or tar";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut plan = plan(found, place(found)?, args.timeline)?;
    plan.clip(range.0, range.1)?;
    let zone = args.tz.as_ref().map_or(TimeZone::UTC, |zone| zone.zone.clone());
    let times = times(args, &zone, &plan)?;
    let segments = plan.segments.as_slice();
    let chosen = match segments.len() > FEW {
        true => choose(&plan, segments, &times),
        false => 0..segments.len(),
    };
    let (places, there) = places(&plan, segments, &chosen, &times);
    let bytes = u64::from(plan.geometry.segment_bytes);
    let inside = segments.get(chosen).unwrap_or_default();
    let start = inside.first().map_or(range.0, |first| Lsn(first.number * bytes));
    let end = inside.last().map_or(range.1, |last| Lsn((last.number + 1) * bytes));
    let span = TimeSpan { times, places: places.into() };
    let range = (start.max(range.0), end.min(range.1));
    Ok(Some(Window { span, range, there }))
}

/// The times asked for.
fn times(args: &RangeArgs, zone: &TimeZone, plan: &Plan) -> Result<Range<Time>, Failure> {
    let is_relative = [args.since, args.until].into_iter().flatten().any(Moment::is_relative);
    let last = if is_relative { latest(plan) } else { None };
    let time = |moment: Option<Moment>, open: i64| match moment {
        None => Ok(Time(open)),
        Some(moment) => moment.time(zone, last).ok_or_else(|| {
            Failure::Usage(format!("{moment}: no record states a time, or it is out of all years"))
        }),
    };
    let times = time(args.since, i64::MIN)?..time(args.until, i64::MAX)?;
    match times.is_empty() {
        true => Err(Failure::Usage("--until is not after --since".to_owned())),
        false => Ok(times),
    }
}

/// The latest time of the last segment that has one.
fn latest(plan: &Plan) -> Option<Time> {
    let stamps = |segment: &Segment| {
        look(plan, std::slice::from_ref(segment), Stated, None, &Stamps::default()).latest
    };
    plan.segments.iter().rev().find_map(stamps)
}

/// The segments that may hold records of the times: by the first time in each, found by bisection.
fn choose(plan: &Plan, segments: &[Segment], times: &Range<Time>) -> Range<usize> {
    let first = |from: usize| {
        let stamps = |segment: &Segment| {
            look(plan, std::slice::from_ref(segment), Stated, Some(1), &Stamps::default()).first
        };
        segments.iter().skip(from).find_map(stamps)
    };
    let before = |time: i64| {
        let (mut low, mut high) = (0, segments.len());
        while low < high {
            let middle = (low + high) / 2;
            match first(middle).is_some_and(|first| first.0 < time) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    };
    let from = before(times.start.0.saturating_sub(LATE)).saturating_sub(1);
    let until = before(times.end.0.saturating_add(LATE)).max(from + 1);
    from..until
}

/// The places of the times in the chosen segments, and the span that was seen on the way.
fn places(
    plan: &Plan,
    segments: &[Segment],
    chosen: &Range<usize>,
    times: &Range<Time>,
) -> (Vec<Range<Lsn>>, Option<(Time, Time)>) {
    let prototype = Places::of(times.clone());
    let all = |range: Range<usize>| {
        let inside = segments.get(range.clone()).unwrap_or_default();
        let mut found = look(plan, inside, Everything, None, &prototype);
        // The clock goes on to the first time after them.
        if let Some(next) = segments.get(range.end) {
            let next = std::slice::from_ref(next);
            found.merge(look(plan, next, Stated, Some(1), &prototype));
        }
        found.finish()
    };
    let whole = segments.len() <= FEW || chosen.len() <= 2;
    if whole {
        return all(chosen.clone());
    }
    // Only at the edges it is not clear where the span begins and ends.
    let (begin, there) = all(chosen.start..chosen.start + 1);
    let (end, later) = all(chosen.end - 1..chosen.end);
    let start = begin.first().map_or(Lsn(0), |places| places.start);
    let end = end.last().map_or(Lsn::MAX, |places| places.end);
    let there = there.zip(later).map(|((first, _), (_, last))| (first, last));
    (vec![start..end], there)
}
