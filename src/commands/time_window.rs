//! `--since` and `--until`: finds the part of the WAL of a span of time, without reading the rest.

use crate::args::moment::Moment;
use crate::args::source::RangeArgs;
use crate::failure::Failure;
use jiff::tz::TimeZone;
use std::ops::Range;
use std::path::PathBuf;
use walstat_analyse::time_search::{EVER, Part, Segments};
use walstat_analyse::time_span::{Places, PlacesFound, TimeSpan};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_read::Scan;
use walstat_read::input::discover::Found;
use walstat_read::input::listed::presumed;
use walstat_read::input::placing::place;
use walstat_read::input::plan::plan;
use walstat_read::input::storage;
use walstat_read::scan::streamed::Wanted;
use walstat_report::build::rfc3339;

/// First and last time of a part of the WAL.
type Span = Option<(Time, Time)>;

/// The part of the WAL of a span of time.
#[derive(Debug)]
pub struct TimeWindow {
    /// The span, for the filter.
    pub span: TimeSpan,
    /// The range that its records lie in: only this is read.
    pub range: Range<Lsn>,
    /// First and last time in all of the WAL, if that is known.
    there: Span,
}

const NO_TIME: &str = "no record has a time, which --since and --until need";

impl TimeWindow {
    /// Why no record was selected: which times there are in the WAL.
    pub fn nothing_selected(&self) -> String {
        let times = self.there.and_then(|(first, last)| rfc3339(first).zip(rfc3339(last)));
        match times {
            Some((first, last)) => {
                format!("no record of that time; there is WAL from {first} to {last}")
            }
            None if self.span.places.is_empty() => NO_TIME.to_owned(),
            None => "no record of that time is among those that are asked for".to_owned(),
        }
    }
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
    let asked = AskedTimes { args, zone };
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
struct AskedTimes<'a> {
    args: &'a RangeArgs,
    zone: TimeZone,
}

impl AskedTimes<'_> {
    /// Whether it depends on the last time in the WAL.
    fn is_relative(&self) -> bool {
        [self.args.since, self.args.until].into_iter().flatten().any(Moment::is_relative)
    }

    /// The times; `last`: the last one in the WAL.
    fn times(&self, last: Option<Time>) -> Result<Range<Time>, Failure> {
        let or_failure = |moment: Moment, time: Option<Time>| {
            time.ok_or_else(|| Failure::Usage(format!("{moment}: is out of range")))
        };
        let since = match self.args.since {
            None => EVER.start,
            Some(moment) => or_failure(moment, moment.time(&self.zone, last))?,
        };
        let until = match self.args.until {
            None => EVER.end,
            Some(moment) => or_failure(moment, moment.time_after(since, &self.zone, last))?,
        };
        if until <= since {
            return Err(Failure::Usage("--until is not after --since".to_owned()));
        }
        Ok(since..until)
    }

    /// The same; `last` has to be known if they depend on it.
    fn times_in(&self, last: Option<Time>, found: &Found) -> Result<Range<Time>, Failure> {
        if self.is_relative() && last.is_none() {
            let path = found.paths.first().map(|path| path.display().to_string());
            return Err(Failure::Beside { path: path.unwrap_or_default(), reason: NO_TIME.into() });
        }
        self.times(last)
    }
}

/// The window of WAL in tars, which are read once more to find it.
fn in_streams(
    asked: &AskedTimes<'_>,
    found: &Found,
    range: Range<Lsn>,
) -> Result<TimeWindow, Failure> {
    if found.streams.iter().any(|stream| !storage::is_file(&stream.path)) {
        let text =
            "--since and --until read the WAL twice: expected files or directories, not a pipe";
        return Err(Failure::Usage(text.to_owned()));
    }
    let there = |times: Range<Time>| -> Result<PlacesFound, Failure> {
        let timeline = asked.args.timeline;
        let range = range.clone();
        let wanted = Wanted { crc: None, range, timeline, ..Wanted::default() };
        let scan = Scan { wanted, ..Scan::paths(Vec::<PathBuf>::new()) };
        let (_, seen) = scan.count_found(found.again()?, &Places::of(times))?;
        Ok(seen.observer.finish())
    };
    let span = if asked.is_relative() { there(EVER)?.span } else { None };
    let times = asked.times_in(span.map(|(_, last)| last), found)?;
    let PlacesFound { places, span: there, .. } = there(times.clone())?;
    Ok(TimeWindow { span: TimeSpan { times, places: places.into() }, range, there })
}

/// The window of WAL in files: only those segments are read that are needed to find it.
fn in_files(
    asked: &AskedTimes<'_>,
    found: &Found,
    range: Range<Lsn>,
) -> Result<TimeWindow, Failure> {
    let mut found = presumed(found);
    found.judge_plain_histories();
    let found = &found;
    let mut plan = plan(found, place(found)?, asked.args.timeline)?;
    plan.clip(&range)?;
    let mut segments = Segments::new(&plan, range);
    let last = if asked.is_relative() { segments.latest() } else { None };
    let times = asked.times_in(last, found)?;
    let Part { range, places, there } = segments.find(&times);
    let there = there.or_else(|| if places.is_empty() { segments.span() } else { None });
    Ok(TimeWindow { span: TimeSpan { times, places: places.into() }, range, there })
}
