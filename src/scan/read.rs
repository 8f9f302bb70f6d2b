//! From paths to the result of a scan: what a program that uses the library calls.

use super::ending::EndingKind;
use super::outcome::{Outcome, conclude};
use super::pages::Progress;
use super::record::{Observe, Select};
use super::streamed::{self, Wanted};
use super::{ending, parallel};
use crate::input::discover::discover;
use crate::input::plan::{InputError, Plan, plan};
use crate::wal::lsn::Lsn;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Reads the WAL at `paths` on up to `threads` threads and counts it in the dimension `O`.
///
/// # Errors
///
/// When there is nothing to count: see [`InputError`]. What is wrong in the WAL itself is in
/// the outcome's problems.
pub fn read<S: Select + Clone, O: Observe>(
    paths: &[PathBuf],
    wanted: Wanted<S>,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<(Plan, Outcome<O>), InputError> {
    let (start, _) = wanted.range;
    let found = discover(paths)?;
    let (plan, outcome) = if found.streams.is_empty() {
        let plan = plan(found, wanted.timeline)?;
        read_files(plan, wanted, threads, progress)?
    } else {
        let (plan, stretches) = streamed::scan(found, wanted, progress)?;
        let outcome = conclude(&plan, stretches).ok_or_else(|| no_record(&plan, start))?;
        (plan, outcome)
    };
    if start > Lsn(0) && outcome.first.is_none() {
        return Err(no_record(&plan, start));
    }
    Ok((plan, outcome))
}

/// Reads files. If a server was writing there meanwhile, the place where it overtook the
/// reading is the end.
fn read_files<S: Select + Clone, O: Observe>(
    mut plan: Plan,
    mut wanted: Wanted<S>,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<(Plan, Outcome<O>), InputError> {
    let begun = SystemTime::now();
    let (start, end) = wanted.range;
    plan.clip(start, end)?;
    let outcome = read_once(&plan, wanted.clone(), threads, progress)?;
    let Some(overtaken) = overtaken(&plan, &outcome, begun) else { return Ok((plan, outcome)) };
    wanted.range = (start, overtaken);
    plan.clip(start, overtaken)?;
    let mut outcome = read_once(&plan, wanted, threads, progress)?;
    outcome.ending = ending::Ending { kind: EndingKind::IncompleteRecord, lsn: outcome.ending.lsn };
    Ok((plan, outcome))
}

fn read_once<S: Select, O: Observe>(
    plan: &Plan,
    wanted: Wanted<S>,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<Outcome<O>, InputError> {
    let (start, _) = wanted.range;
    let scope = wanted.scope(plan.geometry);
    let stretches = parallel::scan(&plan.segments, &scope, threads, progress);
    conclude(plan, stretches).ok_or_else(|| no_record(plan, start))
}

/// The first problem in a file that was written to since just before the reading began.
fn overtaken<O>(plan: &Plan, outcome: &Outcome<O>, begun: SystemTime) -> Option<Lsn> {
    const CLOCKS_DIFFER_BY: Duration = Duration::from_millis(100);
    let since = begun.checked_sub(CLOCKS_DIFFER_BY)?;
    let segment_bytes = u64::from(plan.geometry.segment_bytes);
    let first = outcome.problems.iter().filter_map(|problem| problem.lsn).min()?;
    let written = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata.and_then(|m| m.modified()).is_ok_and(|modified| modified >= since)
    };
    // A record that was torn begins in the segment before the one being written, at most.
    let number = first.0 / segment_bytes;
    let near = plan.segments.iter().filter(|s| (number..=number + 1).contains(&s.number));
    near.map(|segment| segment.source.path()).any(|path| written(path)).then_some(first)
}

fn no_record(plan: &Plan, start: Lsn) -> InputError {
    let path = plan.segments.first().map(|segment| segment.source.path().clone());
    let path = path.unwrap_or_default();
    let (first, last) = plan.bounds();
    match start > Lsn(0) {
        true => InputError::NothingInRange { path, start },
        false => InputError::NoRecord { path, first, last },
    }
}
