//! `--since` and `--until`: finds the part of the WAL of a span of time, without reading the rest.

use crate::args::moment::Moment;
use crate::args::source::RangeArgs;
use crate::failure::Failure;
use jiff::tz::TimeZone;
use std::ops::Range;
use std::path::PathBuf;
use walstat_analyse::time_span::{Places, Stamps, TimeSpan};
use walstat_format::lsn::Lsn;
use walstat_format::payload::{SECOND, Time};
use walstat_read::Scan;
use walstat_read::input::discover::Found;
use walstat_read::input::placing::place;
use walstat_read::input::plan::{Plan, plan};
use walstat_read::input::segment::Segment;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::seek::look;
use walstat_read::scan::streamed::Wanted;
use walstat_report::build::rfc3339;

/// Up to so many segments, all are read: then no commit is missed, even if the clock was set back.
const FEW: usize = 64;
/// A backend takes a record's time at most that long before it writes the record, in microseconds.
const LATE: i64 = SECOND;
/// So many bytes at the start of a segment usually hold a record with a time.
const BEGINNING: u64 = 64 << 10;

/// First and last time of a part of the WAL.
type Span = Option<(Time, Time)>;

/// The part of the WAL of a span of time.
#[derive(Debug)]
pub struct TimeWindow {
    /// The span, for the filter.
    pub span: TimeSpan,
    /// The range that its records lie in: only this is read.
    pub range: Range<Lsn>,
    /// First and last time in all of the WAL.
    there: Span,
}

impl TimeWindow {
    /// Why no record was selected: which times there are in the WAL.
    pub fn nothing_selected(&self) -> String {
        nothing(self.there)
    }
}

fn nothing(there: Span) -> String {
    let times = there.and_then(|(first, last)| rfc3339(first).zip(rfc3339(last)));
    times.map_or_else(
        || "no record has a time, which --since and --until need".to_owned(),
        |(first, last)| format!("no record of that time; there is WAL from {first} to {last}"),
    )
}

/// The window of `--since` and `--until`; `None`: neither was given.
pub fn window(
    args: &RangeArgs,
    found: &Found,
    range: Range<Lsn>,
) -> Result<Option<TimeWindow>, Failure> {
    if args.since.is_none() && args.until.is_none() {
        return Ok(None);
    }
    // Mistakes that show without the WAL are reported before it is read.
    let zone = args.tz.as_ref().map_or(TimeZone::UTC, |zone| zone.zone.clone());
    let asked = Asked { args, zone };
    if !asked.is_relative() {
        asked.times(None)?;
    }
    let window = if found.streams.is_empty() {
        in_files(&asked, found, range)
    } else {
        in_streams(&asked, found, range)
    };
    window.map(Some)
}

/// What was asked for.
struct Asked<'a> {
    args: &'a RangeArgs,
    zone: TimeZone,
}

impl Asked<'_> {
    /// Whether it depends on the last time in the WAL.
    fn is_relative(&self) -> bool {
        [self.args.since, self.args.until].into_iter().flatten().any(Moment::is_relative)
    }

    /// The times; `last`: the last one in the WAL.
    fn times(&self, last: Option<Time>) -> Result<Range<Time>, Failure> {
        let time = |moment: Option<Moment>, open: i64| match moment {
            None => Ok(Time(open)),
            Some(moment) => moment
                .time(&self.zone, last)
                .ok_or_else(|| Failure::Usage(format!("{moment}: is out of range"))),
        };
        let times = time(self.args.since, i64::MIN)?..time(self.args.until, i64::MAX)?;
        if times.is_empty() {
            return Err(Failure::Usage("--until is not after --since".to_owned()));
        }
        Ok(times)
    }

    /// The times; `there`: first and last time in the WAL.
    fn times_in(&self, there: Span, found: &Found) -> Result<Range<Time>, Failure> {
        if self.is_relative() && there.is_none() {
            let path = found.paths.first().map(|path| path.display().to_string());
            return Err(Failure::Beside { path: path.unwrap_or_default(), reason: nothing(None) });
        }
        self.times(there.map(|(_, last)| last))
    }
}

/// The window of WAL in tars, which are read once more to find it.
fn in_streams(asked: &Asked<'_>, found: &Found, range: Range<Lsn>) -> Result<TimeWindow, Failure> {
    if found.streams.iter().any(|stream| !stream.path.is_file()) {
        let text =
            "--since and --until read the WAL twice: expected files or directories, not a pipe";
        return Err(Failure::Usage(text.to_owned()));
    }
    let there = |times: Range<Time>| -> Result<(Vec<Range<Lsn>>, Span), Failure> {
        let timeline = asked.args.timeline;
        let range = range.clone();
        let wanted = Wanted { crc: None, range, limit: None, timeline, select: None };
        let scan = Scan { wanted, ..Scan::paths(Vec::<PathBuf>::new()) };
        let (_, seen) = scan.count_found(found.again()?, &Places::of(times))?;
        Ok(seen.observer.finish())
    };
    let last = if asked.is_relative() { there(Time(i64::MIN)..Time(i64::MAX))?.1 } else { None };
    let times = match last {
        Some(_) => asked.times_in(last, found)?,
        None => asked.times(None)?,
    };
    let (places, there) = there(times.clone())?;
    Ok(TimeWindow { span: TimeSpan { times, places: places.into() }, range, there })
}

/// The window of WAL in files: only those segments are read that are needed to find it.
fn in_files(asked: &Asked<'_>, found: &Found, range: Range<Lsn>) -> Result<TimeWindow, Failure> {
    let mut plan = plan(found, place(found)?, asked.args.timeline)?;
    plan.clip(&range)?;
    let all = Segments { plan: &plan, range };
    let count = plan.segments.len();
    let last = if asked.is_relative() { all.latest() } else { None };
    let times = if asked.is_relative() {
        asked.times_in(last.map(|last| (last, last)), found)?
    } else {
        asked.times(None)?
    };
    let (chosen, (places, seen)) = if count > FEW {
        let chosen = all.choose(&times);
        let places = all.places_at_edges(&chosen, &times);
        (chosen, (places, None))
    } else {
        (0..count, all.places(0..count, &times))
    };
    let there = seen.or_else(|| if places.is_empty() { all.span() } else { None });
    let range = all.range_of(&chosen);
    Ok(TimeWindow { span: TimeSpan { times, places: places.into() }, range, there })
}

/// The segments of a range, to be looked into.
struct Segments<'a> {
    plan: &'a Plan,
    range: Range<Lsn>,
}

impl Segments<'_> {
    fn look<O: Observe>(&self, segments: Range<usize>, end: Lsn, prototype: &O) -> O {
        let segments = self.plan.segments.get(segments).unwrap_or_default();
        look(self.plan, segments, end.min(self.range.end), prototype)
    }

    /// The end of the part at a segment's start in which a time is looked for first.
    fn beginning(&self, segment: &Segment) -> Lsn {
        Lsn(segment.number * u64::from(self.plan.geometry.segment_bytes) + BEGINNING)
    }

    /// The records with a time in a segment, up to `end`.
    fn stamps(&self, segment: &Segment, end: Lsn) -> Stamps {
        let segment = std::slice::from_ref(segment);
        look(self.plan, segment, end.min(self.range.end), &Stamps::default())
    }

    /// The range of the `chosen` segments; if these are the first or the last ones, it goes as far as
    /// was asked for.
    fn range_of(&self, chosen: &Range<usize>) -> Range<Lsn> {
        let bytes = u64::from(self.plan.geometry.segment_bytes);
        let start = |index: usize| self.plan.segments.get(index).map(|s| Lsn(s.number * bytes));
        let first = start(chosen.start).filter(|_| chosen.start > 0);
        let end = start(chosen.end);
        first.unwrap_or(self.range.start).max(self.range.start)..end.unwrap_or(self.range.end)
    }

    /// The first time that is stated in the segments from `index` on.
    fn first(&self, index: usize) -> Option<Time> {
        let first = |segment: &Segment| {
            let first = self.stamps(segment, self.beginning(segment)).first;
            first.or_else(|| self.stamps(segment, Lsn::MAX).first)
        };
        self.plan.segments.iter().skip(index).find_map(first)
    }

    /// The last time of all: the latest of the last segment that has one.
    fn latest(&self) -> Option<Time> {
        let latest = |segment: &Segment| self.stamps(segment, Lsn::MAX).latest;
        self.plan.segments.iter().rev().find_map(latest)
    }

    fn span(&self) -> Span {
        self.first(0).zip(self.latest())
    }

    /// The segments that may hold records of the times: by the first time in each, found by
    /// bisection.
    fn choose(&self, times: &Range<Time>) -> Range<usize> {
        if self.first(0).is_none() {
            return 0..self.plan.segments.len();
        }
        let before = |time: i64, from: usize| {
            let (mut low, mut high) = (from, self.plan.segments.len());
            while low < high {
                let middle = (low + high) / 2;
                if self.first(middle).is_some_and(|first| first.0 < time) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let from = before(times.start.0.saturating_sub(LATE), 0);
        let until = before(times.end.0.saturating_add(LATE), from);
        let from = from.saturating_sub(1);
        from..until.max(from + 1)
    }

    /// The ranges of records of these times in some segments, and the first and last time seen in them.
    fn places(&self, chosen: Range<usize>, times: &Range<Time>) -> (Vec<Range<Lsn>>, Span) {
        // Reads on to the first time after them.
        let next = self.plan.segments.get(chosen.end);
        let is_told = |end: &Lsn| next.is_some_and(|next| self.stamps(next, *end).first.is_some());
        let end = next.map(|next| self.beginning(next)).filter(is_told).unwrap_or(Lsn::MAX);
        let after = chosen.end + usize::from(next.is_some());
        let found = self.look(chosen.start..after, end, &Places::of(times.clone()));
        found.finish()
    }

    /// The same in many segments, of which only the first and last ones are read: those between have
    /// only records of these times.
    fn places_at_edges(&self, chosen: &Range<usize>, times: &Range<Time>) -> Vec<Range<Lsn>> {
        let of = |index: usize| self.places(index..index + 1, times).0;
        let mut firsts = chosen.clone().map(of);
        let start = firsts.find_map(|places| places.first().map(|places| places.start));
        let mut lasts = chosen.clone().rev().map(of);
        let end = lasts.find_map(|places| places.last().map(|places| places.end));
        start.zip(end).map(|(start, end)| start..end).into_iter().collect()
    }
}
