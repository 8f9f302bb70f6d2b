//! Files that change while they are read. A server removes and renames its segments; and `cp`, and what
//! compresses, write under the name that the segment is to have, so that it is not whole for a while. They
//! are waited for; what does not grow any more is cut off.

use super::observer::Observer;
use super::outcome::Outcome;
use crate::input::error::InputError;
use crate::input::plan::Plan;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::stamp::CLOCK_TICK;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, SystemTime};
use walstat_format::ordered::CollectOrdered;

/// A server removes and renames old segments in no order, one every few milliseconds, so that for a while
/// some are missing between others. If nothing has changed after this pause, they are really missing.
pub(crate) const SETTLING: Duration = Duration::from_millis(300);

/// A file that grows is waited for so many pauses: half a minute.
const PAUSES_MAX: usize = 100;

/// Whether a file is gone since it was looked for, or one that is not whole was written to: then it is waited
/// for.
pub(super) fn have_changed(plan: &Plan, result: Result<&Outcome<Observer>, &InputError>) -> bool {
    let problems = result.map(|outcome| &outcome.problems[..]).unwrap_or_default();
    let cut = problems.iter().chain(&plan.problems).filter(|problem| is_cut(problem));
    let names: BTreeSet<&str> = cut.map(|problem| problem.segment.as_str()).into_set();
    let is_not_whole = |segment: &&Segment| names.contains(segment.file().as_str());
    has_lost_files(plan) || files(plan).filter(is_not_whole).any(has_grown)
}

/// Whether a problem may be that its file is not whole.
pub(super) fn is_cut(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Truncated | ProblemKind::Unreadable)
}

/// Whether a file of the plan is not there any more.
pub(super) fn has_lost_files(plan: &Plan) -> bool {
    files(plan).any(|segment| segment.source.modified().is_none())
}

fn files(plan: &Plan) -> impl Iterator<Item = &Segment> {
    plan.files.values().flatten().filter(|segment| segment.source.is_file())
}

/// Whether a file was written to since it was looked for, when it does not grow any more.
fn has_grown(segment: &Segment) -> bool {
    let mut seen = segment.source.modified();
    if seen == segment.modified && !is_young(segment) {
        return false;
    }
    for _ in 0..PAUSES_MAX {
        sleep(SETTLING);
        let now = segment.source.modified();
        if now == seen {
            break;
        }
        seen = now;
    }
    seen != segment.modified
}

/// Whether a file was written to so shortly before it was looked for that somebody may go on.
pub(super) fn is_young(segment: &Segment) -> bool {
    let age = |time: SystemTime| time.elapsed().unwrap_or_default();
    segment.modified.is_some_and(|time| age(time) < 50 * CLOCK_TICK)
}
