//! What every command that reads WAL does first: discover, scan, put together.

use super::Failure;
use super::progress;
use super::source_args::SourceArgs;
use super::span::{self, Window};
use crate::analyse::select::Filters;
use crate::input::discover::{Found, discover_as};
use crate::input::plan::Plan;
use crate::scan;
use crate::scan::outcome::Outcome as Scanned;
use crate::scan::pages::Progress;
use crate::scan::record::{Everything, Observe, Select};
use crate::scan::streamed::{Passed, Wanted};
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use crate::report::whole::Statistics;

/// WAL that was read.
#[derive(Debug)]
pub struct Read<O = Statistics> {
    /// The paths, as they were given.
    pub paths: Vec<String>,
    /// What there was to read.
    pub plan: Plan,
    /// What was read.
    pub scanned: Scanned<O>,
    /// The filters that were on, with the span of time that was asked for.
    pub filters: Filters,
}

impl<O> Read<O> {
    /// The same with something made of what was counted.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> Read<P> {
        let Read { paths, plan, scanned, filters } = self;
        Read { paths, plan, scanned: scanned.map(change), filters }
    }
}

/// Reads the WAL and counts it in copies of `prototype`; without filters the loop is compiled for
/// that.
pub fn read<O: Observe>(
    source: &SourceArgs,
    filters: &Filters,
    prototype: &O,
) -> Result<Read<O>, Failure> {
    range(source)?;
    read_found(source, found(source)?, filters, prototype)
}

/// The same of what lies at its paths, which was found before.
pub fn read_found<O: Observe>(
    source: &SourceArgs,
    found: Found,
    filters: &Filters,
    prototype: &O,
) -> Result<Read<O>, Failure> {
    let window = window(source, &found)?;
    read_in(source, found, window, filters, prototype)
}

/// Where the records lie of the span of time that was asked for; `None`: none was.
pub fn window(source: &SourceArgs, found: &Found) -> Result<Option<Window>, Failure> {
    span::window(&source.range, found, range(source)?)
}

/// Reads what lies in a window, or in the range that was asked for.
pub fn read_in<O: Observe>(
    source: &SourceArgs,
    found: Found,
    window: Option<Window>,
    filters: &Filters,
    prototype: &O,
) -> Result<Read<O>, Failure> {
    let range = match &window {
        Some(window) => window.range,
        None => range(source)?,
    };
    let span = window.as_ref().map(|window| window.span.clone());
    let filters = Filters { span, ..filters.clone() };
    let (given, paths) = (found.paths.clone(), named(&found));
    let (plan, scanned) = match filters.is_empty() {
        true => count(source, found, wanted(source, range, Everything), prototype),
        false => count(source, found, wanted(source, range, filters.clone()), prototype),
    }?;
    if let Some(window) = window.filter(|_| scanned.counted_end.is_none()) {
        return Err(nothing_in(&window, &given));
    }
    Ok(Read { paths, plan, scanned, filters })
}

fn nothing_in(window: &Window, paths: &[PathBuf]) -> Failure {
    let path = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    Failure::Beside { path, reason: window.nothing_selected() }
}

/// Reads all there is, whatever the range is.
pub fn read_all<O: Observe>(
    source: &SourceArgs,
    found: Found,
    prototype: &O,
) -> Result<Read<O>, Failure> {
    let paths = named(&found);
    let wanted = wanted(source, (Lsn(0), Lsn::MAX), Everything);
    let (plan, scanned) = count(source, found, Wanted { limit: None, ..wanted }, prototype)?;
    Ok(Read { paths, plan, scanned, filters: Filters::default() })
}

fn named(found: &Found) -> Vec<String> {
    found.paths.iter().map(|path| path.display().to_string()).collect()
}

/// The range that was asked for.
pub fn range(source: &SourceArgs) -> Result<(Lsn, Lsn), Failure> {
    let start = source.range.start.unwrap_or_default();
    let end = source.range.end.unwrap_or(Lsn::MAX);
    if end <= start {
        return Err(Failure::Usage(format!("--end {end} is not after --start {start}")));
    }
    Ok((start, end))
}

/// What lies at the paths given, or in the current directory if it holds WAL.
pub fn found(source: &SourceArgs) -> Result<Found, Failure> {
    if !source.paths.is_empty() {
        return Ok(discover_as(&source.paths, source.taken_for)?);
    }
    let here = [PathBuf::from(".")];
    let found = discover_as(&here, source.taken_for).ok().filter(Found::holds_wal);
    found.ok_or_else(|| {
        Failure::Usage(
            "no PATH given, and the current directory holds no WAL; try 'walstat --help'".into(),
        )
    })
}

/// What a scan of the source is to look for.
pub fn wanted<S>(source: &SourceArgs, range: (Lsn, Lsn), select: S) -> Wanted<S> {
    Wanted {
        crc: (!source.no_verify_checksums).then(Crc32c::detect),
        range,
        limit: source.range.limit.filter(|&limit| limit > 0),
        timeline: source.range.timeline,
        select,
    }
}

fn threads(source: &SourceArgs) -> NonZeroUsize {
    let threads = source.threads.or_else(|| std::thread::available_parallelism().ok());
    threads.unwrap_or(NonZeroUsize::MIN)
}

fn count<S: Select + Clone, O: Observe>(
    source: &SourceArgs,
    found: Found,
    wanted: Wanted<S>,
    prototype: &O,
) -> Result<(Plan, Scanned<O>), Failure> {
    let (read, threads) = (Progress::default(), threads(source));
    let total = found.bytes_in(wanted.range.0, wanted.range.1);
    let result = progress::shown(
        source.progress,
        || total,
        &read,
        || scan::read::read_found(found, wanted, threads, &read, prototype),
    );
    Ok(result?)
}

/// Counts what was found and read elsewhere.
pub fn count_passed<S: Select + Clone, O: Observe>(
    source: &SourceArgs,
    found: Found,
    passed: BTreeMap<usize, Passed<O>>,
    select: S,
    prototype: &O,
) -> Result<(Plan, Scanned<O>), Failure> {
    let wanted = wanted(source, range(source)?, select);
    let progress = Progress::default();
    let threads = threads(source);
    Ok(scan::read::read_passed(found, passed, wanted, threads, &progress, prototype)?)
}
