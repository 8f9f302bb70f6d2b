//! `--since` and `--until`: from times to places, without reading what lies outside.

use super::Failure;
use super::moment::Moment;
use super::source_args::RangeArgs;
use crate::analyse::time_span::{Places, Stamps, TimeSpan};
use crate::input::discover::Found;
use crate::input::placing::place;
use crate::input::plan::{Plan, Segment, plan};
use crate::report::build::rfc3339;
use crate::scan::pages::Progress;
use crate::scan::read::read_found;
use crate::scan::record::{Everything, Observe};
use crate::scan::seek::look;
use crate::scan::streamed::Wanted;
use crate::wal::lsn::Lsn;
use crate::wal::payload::{SECOND, Time};
use jiff::tz::TimeZone;
use std::num::NonZeroUsize;
use std::ops::Range;

/// Up to so many segments all are read: then no clock, however odd, hides a commit.
const FEW: usize = 64;
/// A backend looks at its clock that long before it writes, at most, in microseconds.
const LATE: i64 = SECOND;
/// So many bytes of a segment mostly hold a time.
const BEGINNING: u64 = 64 << 10;

/// First and last time of a stretch of WAL.
type Span = Option<(Time, Time)>;

/// What a span of time comes to.
#[derive(Debug)]
pub struct Window {
    /// The span, for the filter.
    pub span: TimeSpan,
    /// Where its records lie: only there is read.
    pub range: (Lsn, Lsn),
    /// First and last time of all.
    there: Span,
}

impl Window {
    /// Why nothing was selected: what there is.
    pub fn nothing_selected(&self) -> String {
        nothing(self.there)
    }
}

fn nothing(there: Span) -> String {
    let times = there.and_then(|(first, last)| rfc3339(first).zip(rfc3339(last)));
    times.map_or_else(
        || "no record states a time, expected some for --since and --until".to_owned(),
        |(first, last)| format!("no record of that time; there is WAL from {first} to {last}"),
    )
}

/// The window of the span that was asked for; `None`: none was.
pub fn window(
    args: &RangeArgs,
    found: &Found,
    range: (Lsn, Lsn),
) -> Result<Option<Window>, Failure> {
    if args.since.is_none() && args.until.is_none() {
        return Ok(None);
    }
    // What can be told without the WAL is told before it is read.
    let zone = args.tz.as_ref().map_or(TimeZone::UTC, |zone| zone.zone.clone());
    let asked = Asked { args, zone };
    if !asked.is_relative() {
        asked.times(None)?;
    }
    match found.streams.is_empty() {
        true => in_files(&asked, found, range),
        false => in_streams(&asked, found, range),
    }
    .map(Some)
}

/// What was asked for.
struct Asked<'a> {
    args: &'a RangeArgs,
    zone: TimeZone,
}

impl Asked<'_> {
    /// Whether the last time of the WAL tells.
    fn is_relative(&self) -> bool {
        [self.args.since, self.args.until].into_iter().flatten().any(Moment::is_relative)
    }

    /// The times; `last`: the last one in the WAL.
    fn times(&self, last: Option<Time>) -> Result<Range<Time>, Failure> {
        let time = |moment: Option<Moment>, open: i64| match moment {
            None => Ok(Time(open)),
            Some(moment) => moment
                .time(&self.zone, last)
                .ok_or_else(|| Failure::Usage(format!("{moment}: is out of all years"))),
        };
        let times = time(self.args.since, i64::MIN)?..time(self.args.until, i64::MAX)?;
        match times.is_empty() {
            true => Err(Failure::Usage("--until is not after --since".to_owned())),
            false => Ok(times),
        }
    }

    /// The same where `there` is the span of the WAL at the first path.
    fn times_in(&self, there: Span, found: &Found) -> Result<Range<Time>, Failure> {
        if self.is_relative() && there.is_none() {
            let path = found.paths.first().map(|path| path.display().to_string());
            return Err(Failure::Beside { path: path.unwrap_or_default(), reason: nothing(None) });
        }
        self.times(there.map(|(_, last)| last))
    }
}

/// What passes by is let pass twice, if it comes again.
fn in_streams(asked: &Asked<'_>, found: &Found, range: (Lsn, Lsn)) -> Result<Window, Failure> {
    if found.streams.iter().any(|stream| !stream.path.is_file()) {
        let text = "--since and --until read twice: expected files or directories, not a pipe";
        return Err(Failure::Usage(text.to_owned()));
    }
    let threads = NonZeroUsize::MIN;
    let there = |times: Range<Time>| -> Result<(Vec<Range<Lsn>>, Span), Failure> {
        let timeline = asked.args.timeline;
        let wanted = Wanted { crc: None, range, limit: None, timeline, select: Everything };
        let places = Places::of(times);
        let again = found.again()?;
        let (_, seen) = read_found(again, wanted, threads, &Progress::default(), &places)?;
        Ok(seen.observer.finish())
    };
    let last = match asked.is_relative() {
        true => there(Time(i64::MIN)..Time(i64::MAX))?.1,
        false => None,
    };
    let times = match last {
        Some(_) => asked.times_in(last, found)?,
        None => asked.times(None)?,
    };
    let (places, there) = there(times.clone())?;
    Ok(Window { span: TimeSpan { times, places: places.into() }, range, there })
}

/// Files are looked into where it is needed.
fn in_files(asked: &Asked<'_>, found: &Found, range: (Lsn, Lsn)) -> Result<Window, Failure> {
    let mut plan = plan(found, place(found)?, asked.args.timeline)?;
    plan.clip(range.0, range.1)?;
    let all = Segments { plan: &plan, range };
    let count = plan.segments.len();
    let last = if asked.is_relative() { all.latest() } else { None };
    let times = match asked.is_relative() {
        true => asked.times_in(last.map(|last| (last, last)), found)?,
        false => asked.times(None)?,
    };
    let (chosen, (places, seen)) = match count > FEW {
        true => {
            let chosen = all.choose(&times);
            let places = all.places_at_edges(&chosen, &times);
            (chosen, (places, None))
        }
        false => (0..count, all.places(0..count, &times)),
    };
    let there = seen.or_else(|| if places.is_empty() { all.span() } else { None });
    let range = all.range_of(&chosen);
    Ok(Window { span: TimeSpan { times, places: places.into() }, range, there })
}

/// The segments of a range, to be looked into.
struct Segments<'a> {
    plan: &'a Plan,
    range: (Lsn, Lsn),
}

impl Segments<'_> {
    fn look<O: Observe>(&self, segments: Range<usize>, end: Lsn, prototype: &O) -> O {
        let segments = self.plan.segments.get(segments).unwrap_or_default();
        look(self.plan, segments, end.min(self.range.1), prototype)
    }

    /// Where the beginning of a segment ends.
    fn beginning(&self, segment: &Segment) -> Lsn {
        Lsn(segment.number * u64::from(self.plan.geometry.segment_bytes) + BEGINNING)
    }

    /// What states its time in a segment; `end`: how far is looked.
    fn stamps(&self, segment: &Segment, end: Lsn) -> Stamps {
        let segment = std::slice::from_ref(segment);
        look(self.plan, segment, end.min(self.range.1), &Stamps::default())
    }

    /// The range of some segments: where nothing is left out it goes as far as was asked for.
    fn range_of(&self, chosen: &Range<usize>) -> (Lsn, Lsn) {
        let bytes = u64::from(self.plan.geometry.segment_bytes);
        let start = |index: usize| self.plan.segments.get(index).map(|s| Lsn(s.number * bytes));
        let first = start(chosen.start).filter(|_| chosen.start > 0);
        let end = start(chosen.end);
        (first.unwrap_or(self.range.0).max(self.range.0), end.unwrap_or(self.range.1))
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
                match self.first(middle).is_some_and(|first| first.0 < time) {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let from = before(times.start.0.saturating_sub(LATE), 0);
        let until = before(times.end.0.saturating_add(LATE), from);
        let from = from.saturating_sub(1);
        from..until.max(from + 1)
    }

    /// The places of the times in some segments, and the span that was seen on the way.
    fn places(&self, chosen: Range<usize>, times: &Range<Time>) -> (Vec<Range<Lsn>>, Span) {
        // The clock goes on to the first time after them.
        let next = self.plan.segments.get(chosen.end);
        let is_told = |end: &Lsn| next.is_some_and(|next| self.stamps(next, *end).first.is_some());
        let end = next.map(|next| self.beginning(next)).filter(is_told).unwrap_or(Lsn::MAX);
        let after = chosen.end + usize::from(next.is_some());
        let found = self.look(chosen.start..after, end, &Places::of(times.clone()));
        found.finish()
    }

    /// The places of the times in many segments: only at the edges it is not clear where the span
    /// begins and ends.
    fn places_at_edges(&self, chosen: &Range<usize>, times: &Range<Time>) -> Vec<Range<Lsn>> {
        let of = |index: usize| self.places(index..index + 1, times).0;
        let mut firsts = chosen.clone().map(of);
        let start = firsts.find_map(|places| places.first().map(|places| places.start));
        let mut lasts = chosen.clone().rev().map(of);
        let end = lasts.find_map(|places| places.last().map(|places| places.end));
        start.zip(end).map(|(start, end)| start..end).into_iter().collect()
    }
}
