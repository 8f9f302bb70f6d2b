//! What every command that reads WAL does first: discover, scan, put together.

use super::progress::ProgressDisplay;
use crate::args::source::SourceArgs;
use crate::commands::time_window;
use crate::commands::time_window::TimeWindow;
use crate::failure::Failure;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use walstat_analyse::counters::Counters;
use walstat_analyse::select::Filters;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_read::Scan;
use walstat_read::input::discover::{Found, discover_known};
use walstat_read::input::error::InputError;
use walstat_read::input::known_files::KnownFiles;
use walstat_read::input::plan::Plan;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::streamed::Wanted;

/// WAL that was read.
#[derive(Debug)]
pub struct Read<O = Counters> {
    /// The paths, as they were given.
    pub paths: Vec<String>,
    /// The segments that were read.
    pub plan: Plan,
    /// The result of the scan.
    pub scanned: Outcome<O>,
    /// The filters that were on, with the span of time that was asked for.
    pub filters: Filters,
}

/// Reads the WAL that was found at the paths, and counts what `prototype` counts. `accepted_gaps`: segments
/// that may be missing.
pub fn read_found(
    source: &SourceArgs,
    found: Found,
    filters: &Filters,
    accepted_gaps: Vec<Range<Lsn>>,
    prototype: &Counters,
) -> Result<Read, Failure> {
    let window = window(source, &found)?;
    let (mut scan, filters) = scan_in(source, window.as_ref(), filters)?;
    scan.wanted.accepted_gaps = accepted_gaps;
    let read = read_by(&scan, found, window, filters, &prototype.observer())?;
    Ok(read.map(Counters::of))
}

impl<O> Read<O> {
    /// The same, with what was counted turned into something else.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> Read<P> {
        let Read { paths, plan, scanned, filters } = self;
        Read { paths, plan, scanned: scanned.map(change), filters }
    }
}

/// The part of the WAL with the records of `--since` and `--until`; `None`: neither was given.
pub fn window(source: &SourceArgs, found: &Found) -> Result<Option<TimeWindow>, Failure> {
    time_window::window(&source.range, found, range(source)?)
}

/// Reads the WAL of a time window, or of the range that was asked for.
pub fn read_in(
    source: &SourceArgs,
    found: Found,
    window: Option<TimeWindow>,
    filters: &Filters,
    prototype: &Observer,
) -> Result<Read<Observer>, Failure> {
    let (scan, filters) = scan_in(source, window.as_ref(), filters)?;
    read_by(&scan, found, window, filters, prototype)
}

fn read_by(
    scan: &Scan,
    found: Found,
    window: Option<TimeWindow>,
    filters: Filters,
    prototype: &Observer,
) -> Result<Read<Observer>, Failure> {
    let (paths, named) = (found.paths.clone(), names_of(&found.paths));
    let (plan, scanned) = scan.count_in(found, prototype)?;
    if let Some(window) = window.filter(|_| scanned.counted_end.is_none()) {
        return Err(nothing_in(&window, &paths));
    }
    Ok(Read { paths: named, plan, scanned, filters })
}

/// The scan of a time window, or of the range that was asked for; and its filters, with that of the
/// window.
pub fn scan_in(
    source: &SourceArgs,
    window: Option<&TimeWindow>,
    filters: &Filters,
) -> Result<(Scan, Filters), Failure> {
    let range = match window {
        Some(window) => window.range.clone(),
        None => range(source)?,
    };
    let span = window.map(|window| window.span.clone());
    let filters = Filters { span, ..filters.clone() };
    Ok((scan(source, range, &filters), filters))
}

/// Why nothing was selected of a span of time.
pub fn nothing_in(window: &TimeWindow, paths: &[PathBuf]) -> Failure {
    let path = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    Failure::Beside { path, reason: window.nothing_selected() }
}

/// Paths as text, to be shown.
pub fn names_of(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// The range that was asked for.
pub fn range(source: &SourceArgs) -> Result<Range<Lsn>, Failure> {
    let start = source.range.start.unwrap_or_default();
    match source.range.end {
        Some(end) if end <= start => {
            Err(Failure::Usage(format!("--end {end} is not after --start {start}")))
        }
        None if start == Lsn::MAX => {
            Err(Failure::Usage(format!("--start {start} is the last LSN there is")))
        }
        end => Ok(start..end.unwrap_or(Lsn::MAX)),
    }
}

/// What lies at the paths given, or in the current directory if it holds WAL.
pub fn found(source: &SourceArgs) -> Result<Found, Failure> {
    found_known(source, Arc::default())
}

/// The same, where some files were read before.
pub fn found_known(source: &SourceArgs, known: Arc<KnownFiles>) -> Result<Found, Failure> {
    if !source.paths.is_empty() {
        return Ok(discover_known(&source.paths, source.taken_for, known)?);
    }
    discover_known(&[PathBuf::from(".")], source.taken_for, known).map_err(|error| match error {
        InputError::NoSegments { .. } => Failure::Usage(
            "no PATH given, and the current directory holds no WAL; try 'walstat --help'".into(),
        ),
        other => other.into(),
    })
}

/// The scan of all WAL, whatever the range is.
pub fn all(source: &SourceArgs) -> Scan {
    let mut scan = scan(source, Lsn(0)..Lsn::MAX, &Filters::default());
    scan.wanted.limit = None;
    scan
}

/// The scan that the arguments ask for, of a range and with filters of its own.
pub fn scan(source: &SourceArgs, range: Range<Lsn>, filters: &Filters) -> Scan {
    let cores = || std::thread::available_parallelism().ok();
    Scan {
        paths: source.paths.clone(),
        taken_for: source.taken_for,
        wanted: Wanted {
            crc: (!source.no_verify_checksums).then(Crc32c::detect),
            map_files: !source.no_mmap,
            range,
            limit: source.range.limit.filter(|&limit| limit > 0),
            timeline: source.range.timeline,
            select: (!filters.is_empty()).then(|| Arc::new(filters.clone()) as _),
            accepted_gaps: Vec::new(),
        },
        threads: source.threads.or_else(cores).unwrap_or(NonZeroUsize::MIN),
        watch: ProgressDisplay::when(source.progress),
    }
}
