//! Files that change while they are read. A server removes and renames its segments; and `cp`, and what
//! compresses, write under the name that the segment is to have, so that it is not whole for a while. They
//! are waited for; what does not grow any more is told as it is, `truncated`.

use super::observer::Observer;
use super::outcome::Outcome;
use crate::input::error::InputError;
use crate::input::plan::Plan;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};
use walstat_format::ordered::CollectOrdered;

/// A server removes and renames old segments in no order, one every few milliseconds, so that for a while
/// some are missing between others. If nothing has changed after this pause, they are really missing.
pub(crate) const SETTLING: Duration = Duration::from_millis(300);

/// A file that is younger may be being written.
const YOUNG: Duration = Duration::from_secs(1);

/// Files that grow are waited for so long, all of them together.
const PATIENCE: Duration = Duration::from_secs(30);

/// When nothing is waited for any more.
pub(super) fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Whether a file is gone since it was looked for, or one that is not whole was written to: then it is waited
/// for, `until` then at most.
pub(super) fn have_changed(
    plan: &Plan,
    result: Result<&Outcome<Observer>, &InputError>,
    until: Instant,
) -> bool {
    let problems = result.map(|outcome| &outcome.problems[..]).unwrap_or_default();
    let cut = problems.iter().chain(&plan.problems).filter(|problem| is_cut(problem));
    let names: BTreeSet<&str> = cut.map(|problem| problem.segment.as_str()).collect_set();
    let is_not_whole = |segment: &&Segment| {
        segment.claims_whole_segment() && names.contains(segment.file().as_str())
    };
    has_lost_files(plan) || have_grown(&files(plan).filter(is_not_whole).collect::<Vec<_>>(), until)
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

/// Whether any of these files was written to since it was looked for, when none of them grows any more.
fn have_grown(files: &[&Segment], until: Instant) -> bool {
    let modified = || files.iter().map(|file| file.source.modified()).collect::<Vec<_>>();
    let first: Vec<_> = files.iter().map(|file| file.modified).collect();
    let mut seen = modified();
    if seen == first && !files.iter().any(|file| is_young(file)) {
        return false;
    }
    while Instant::now() < until {
        sleep(SETTLING);
        let now = modified();
        if now == seen {
            return now != first;
        }
        seen = now;
    }
    false
}

/// Whether a file was written to so shortly ago that somebody may go on.
pub(super) fn is_young(segment: &Segment) -> bool {
    let age = |time: SystemTime| time.elapsed().unwrap_or_default();
    segment.modified.is_some_and(|time| age(time) < YOUNG)
}
