//! What every command that reads WAL does first: discover, scan, put together.

use super::Failure;
use super::args::SourceArgs;
use super::progress;
use crate::analyse::clock::Clock;
use crate::analyse::select::Filters;
use crate::analyse::totals::RecordTable;
use crate::input::discover::discover;
use crate::input::plan::{Plan, plan};
use crate::scan;
use crate::scan::outcome::Outcome as Scanned;
use crate::scan::pages::Progress;
use crate::scan::record::{Everything, Observe, Select};
use crate::scan::streamed::Wanted;
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What is counted for every command.
pub type Statistics = (RecordTable, Clock);

/// WAL that was read.
#[derive(Debug)]
pub struct Read<O = Statistics> {
    /// The paths, as they were given.
    pub paths: Vec<String>,
    /// What there was to read.
    pub plan: Plan,
    /// What was read.
    pub scanned: Scanned<O>,
}

/// Reads the WAL and counts it in copies of `prototype`; without filters the loop is compiled for
/// that.
pub fn read<O: Observe>(
    source: &SourceArgs,
    filters: &Filters,
    prototype: &O,
) -> Result<Read<O>, Failure> {
    let range = range(source)?;
    let paths = paths(source)?;
    let (plan, scanned) = match filters.is_empty() {
        true => count(source, &paths, range, Everything, prototype),
        false => count(source, &paths, range, filters.clone(), prototype),
    }?;
    let paths = paths.iter().map(|path| path.display().to_string()).collect();
    Ok(Read { paths, plan, scanned })
}

fn range(source: &SourceArgs) -> Result<(Lsn, Lsn), Failure> {
    let start = source.range.start.unwrap_or_default();
    let end = source.range.end.unwrap_or(Lsn::MAX);
    if end <= start {
        return Err(Failure::Usage(format!("--end {end} is not behind --start {start}")));
    }
    Ok((start, end))
}

/// The paths given, or the current directory if it holds WAL.
fn paths(source: &SourceArgs) -> Result<Vec<PathBuf>, Failure> {
    if !source.paths.is_empty() {
        return Ok(source.paths.clone());
    }
    let here = PathBuf::from(".");
    match discover(std::slice::from_ref(&here)).and_then(|found| plan(found, None)) {
        Ok(_) => Ok(vec![here]),
        Err(_) => Err(Failure::Usage(
            "no PATH given, and the current directory holds no WAL; try 'walstat --help'".into(),
        )),
    }
}

fn count<S: Select + Clone, O: Observe>(
    source: &SourceArgs,
    paths: &[PathBuf],
    range: (Lsn, Lsn),
    select: S,
    prototype: &O,
) -> Result<(Plan, Scanned<O>), Failure> {
    let wanted = Wanted {
        crc: (!source.no_verify_checksums).then(Crc32c::detect),
        range,
        limit: source.range.limit.filter(|&limit| limit > 0),
        timeline: source.range.timeline,
        select,
    };
    let threads = source.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let read = Progress::default();
    let total = || bytes_of(paths, source.range.timeline, range);
    let result = progress::shown(source.progress, total, &read, || {
        scan::read::read(paths, wanted, threads, &read, prototype)
    });
    Ok(result?)
}

/// Bytes that there are to read, whole segments where a file is compressed. `None` if something
/// is a stream: looking at it would take its bytes away.
fn bytes_of(paths: &[PathBuf], timeline: Option<u32>, (start, end): (Lsn, Lsn)) -> Option<u64> {
    let at_rest = |path: &PathBuf| path.is_dir() || path.is_file();
    let found = paths.iter().all(at_rest).then(|| discover(paths).ok())??;
    let files_only = found.streams.is_empty();
    let mut plan = files_only.then(|| plan(found, timeline).ok())??;
    plan.clip(start, end).ok()?;
    let whole = u64::from(plan.geometry.segment_bytes);
    Some(plan.segments.iter().map(|s| s.raw_bytes.unwrap_or(whole).min(whole)).sum())
}
