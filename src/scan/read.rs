//! From paths to the result of a scan: what a program that uses the library calls.

use super::ending::EndingKind;
use super::outcome::{Outcome, conclude};
use super::pages::Progress;
use super::parallel;
use super::record::{Observe, Select};
use super::streamed::{self, Wanted};
use crate::input::discover::discover;
use crate::input::plan::{InputError, Plan, Segment, plan};
use crate::wal::lsn::Lsn;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Reads the WAL at `paths` on up to `threads` threads and counts it in copies of
/// `prototype`, a dimension that is configured and empty.
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
    prototype: &O,
) -> Result<(Plan, Outcome<O>), InputError> {
    let (start, _) = wanted.range;
    let (mut tries, mut seen) = (0, None);
    let (plan, outcome) = loop {
        let found = discover(paths)?;
        if !found.streams.is_empty() {
            let (plan, stretches) = streamed::scan(found, wanted, progress, prototype)?;
            let outcome = conclude(&plan, stretches, prototype.clone());
            let outcome = outcome.ok_or_else(|| no_record(&plan, start))?;
            break (plan, outcome);
        }
        let mut plan = plan(found, wanted.timeline)?;
        let there = has_holes(&plan).then(|| segments_of(&plan));
        if there.is_some() && there != seen && is_live(&plan) && tries < TRIES_MAX {
            (tries, seen) = (tries + 1, there);
            std::thread::sleep(SETTLING);
            continue;
        }
        let result = read_files(&mut plan, wanted.clone(), threads, progress, prototype);
        tries += 1;
        // A server removes and renames segments while they are read: look again what there is.
        let sound = result.as_ref().is_ok_and(|outcome| outcome.first_damage.is_none());
        if sound || tries >= TRIES_MAX || !has_lost_files(&plan) {
            break (plan, result?);
        }
    };
    if start > Lsn(0) && outcome.first.is_none() {
        return Err(no_record(&plan, start));
    }
    Ok((plan, outcome))
}

/// How often a directory is looked at whose files go away.
const TRIES_MAX: u32 = 10;

/// A server removes old segments in no order, one every few milliseconds, so that for a while some
/// are missing between others. Where nothing changes for this long, they are missing.
const SETTLING: Duration = Duration::from_millis(200);

/// Timelines and numbers of the segments.
fn segments_of(plan: &Plan) -> Vec<(u32, u64)> {
    plan.segments.iter().map(|segment| (segment.timeline, segment.number)).collect()
}

fn has_holes(plan: &Plan) -> bool {
    plan.segments.windows(2).any(|pair| matches!(pair, [a, b] if a.number + 1 < b.number))
}

/// Whether a server may be writing there: a file is younger than a second.
fn is_live(plan: &Plan) -> bool {
    plan.segments.iter().any(is_young)
}

/// Whether a file of the plan is not there any more.
fn has_lost_files(plan: &Plan) -> bool {
    plan.segments.iter().any(|segment| segment.source.modified().is_none())
}

/// Reads files. If a server was writing there meanwhile, the place where it overtook the
/// reading is the end.
fn read_files<S: Select + Clone, O: Observe>(
    plan: &mut Plan,
    mut wanted: Wanted<S>,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &O,
) -> Result<Outcome<O>, InputError> {
    let (start, end) = wanted.range;
    plan.clip(start, end)?;
    let mut outcome = read_once(plan, wanted.clone(), threads, progress, prototype)?;
    let Some(mut damage) = outcome.first_damage else { return Ok(outcome) };
    if has_lost_files(plan) {
        return Ok(outcome);
    }
    if !is_being_written(plan, damage) {
        if !was_just_written(plan, damage) {
            return Ok(outcome);
        }
        // A write within the last tick of the file system's clock leaves no trace: look again.
        std::thread::sleep(CLOCK_TICK);
        outcome = read_once(plan, wanted.clone(), threads, progress, prototype)?;
        match outcome.first_damage {
            Some(again) if again == damage && !is_being_written(plan, damage) => {
                return Ok(outcome);
            }
            Some(again) => damage = again,
            None => return Ok(outcome),
        }
    }
    wanted.range = (start, damage);
    plan.clip(start, damage)?;
    let mut outcome = read_once(plan, wanted, threads, progress, prototype)?;
    outcome.ending.kind = EndingKind::IncompleteRecord;
    Ok(outcome)
}

/// More than a tick of the clock that file systems take their times from.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// The files in which a record at `lsn` can lie: its own segment's and the next one's.
fn files_at(plan: &Plan, lsn: Lsn) -> impl Iterator<Item = &Segment> {
    let number = lsn.0 / u64::from(plan.geometry.segment_bytes);
    plan.segments.iter().filter(move |s| (number..=number + 1).contains(&s.number))
}

/// Whether a file at `lsn` was written to since the plan was made.
fn is_being_written(plan: &Plan, lsn: Lsn) -> bool {
    files_at(plan, lsn).any(|segment| segment.source.modified() != segment.modified)
}

/// Whether a file at `lsn` was written to so shortly before the plan was made that a later
/// write may bear the same time.
fn was_just_written(plan: &Plan, lsn: Lsn) -> bool {
    files_at(plan, lsn).any(is_young)
}

fn is_young(segment: &Segment) -> bool {
    let age = |time: SystemTime| time.elapsed().unwrap_or_default();
    segment.modified.is_some_and(|time| age(time) < 50 * CLOCK_TICK)
}

fn read_once<S: Select + Clone, O: Observe>(
    plan: &Plan,
    wanted: Wanted<S>,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &O,
) -> Result<Outcome<O>, InputError> {
    let (start, _) = wanted.range;
    let scope = wanted.scope(plan.geometry);
    let stretches = parallel::scan(&plan.segments, &scope, threads, progress, prototype);
    conclude(plan, stretches, prototype.clone()).ok_or_else(|| no_record(plan, start))
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
