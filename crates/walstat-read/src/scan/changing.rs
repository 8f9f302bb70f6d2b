//! Files that change while they are read. A server removes and renames its segments; and `cp`, and what
//! compresses, write under the name that the segment is to have, so that it is not whole for a while. They
//! are waited for; what nobody writes any more is told as it is, `truncated`. One that was begun since the
//! paths were looked at first is left out: there is always a next one where an archiver is never idle.

use super::observer::Observer;
use super::outcome::Outcome;
use crate::input::discover::Found;
use crate::input::error::InputError;
use crate::input::plan::Plan;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::storage;
use crate::input::writers::is_open_for_writing;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

/// A server removes and renames old segments in no order, one every few milliseconds, so that for a while
/// some are missing between others. If nothing has changed after this pause, they are really missing.
pub(crate) const SETTLING: Duration = Duration::from_millis(300);

/// A file that is younger may be being written.
const YOUNG: Duration = Duration::from_secs(1);

/// How long is waited yet, for all files and holes together. What is read meanwhile does not count.
#[derive(Debug)]
pub(super) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Patience {
        Patience(Duration::from_secs(30))
    }
}

impl Patience {
    /// Waits a moment, unless that was done often enough; whether it has.
    pub(super) fn waits(&mut self) -> bool {
        let Some(left) = self.0.checked_sub(SETTLING) else { return false };
        self.0 = left;
        sleep(SETTLING);
        true
    }
}

/// The numbers of segments between which others are missing.
pub(super) fn holes(plan: &Plan) -> Vec<(u64, u64)> {
    let pairs = plan.segments.windows(2).filter_map(|pair| match pair {
        [before, after] => Some((before.number, after.number)),
        _ => None,
    });
    pairs.filter(|(before, after)| before + 1 < *after).collect()
}

/// Whether somebody may be adding files there, or taking them away: a file or a directory is younger than a
/// second.
pub(super) fn is_live(plan: &Plan) -> bool {
    let is_young_directory = |path: &Path| storage::modified(path).is_some_and(is_recent);
    plan.segments.iter().any(is_young) || plan.directories.paths().any(is_young_directory)
}

/// Whether a file with a problem is gone since it was looked for, or one that is not whole was written to:
/// then it is waited for.
pub(super) fn have_changed(
    plan: &Plan,
    result: Result<&Outcome<Observer>, &InputError>,
    patience: &mut Patience,
) -> bool {
    let lost: BTreeSet<u64> =
        files(plan).filter(|file| is_lost(file)).map(|file| file.number).collect_set();
    let Ok(outcome) = result else { return !lost.is_empty() };
    let problems = || outcome.problems.iter().chain(&plan.problems);
    let concerns_lost = |problem: &Problem| {
        // A hole is told of its first segment.
        if problem.kind == ProblemKind::MissingSegment {
            return true;
        }
        let name = SegmentName::leading(&problem.segment);
        let number = name.and_then(|name| name.number(plan.geometry.segment_bytes));
        // The record may have begun in the one before, or go on in the next one.
        number.is_some_and(|number| {
            lost.range(number.saturating_sub(1)..=number + 1).next().is_some()
        })
    };
    if !lost.is_empty() && problems().any(concerns_lost) {
        return true;
    }
    let not_whole = not_whole(plan, outcome);
    have_grown(&not_whole, patience)
}

/// The files that are cut off.
fn not_whole<'p>(plan: &'p Plan, outcome: &Outcome<Observer>) -> Vec<&'p Segment> {
    let problems = outcome.problems.iter().chain(&plan.problems);
    let cut = problems.filter(|problem| is_cut(problem));
    let names: BTreeSet<&str> = cut.map(|problem| problem.segment.as_str()).collect_set();
    let is_it = |segment: &&Segment| {
        segment.claims_whole_segment() && names.contains(segment.file().as_str())
    };
    files(plan).filter(is_it).collect()
}

/// Segments that somebody has begun to write since the paths were looked at first.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Those of which there was something then.
    known: Option<BTreeSet<(u32, u64)>>,
    begun: BTreeSet<SegmentName>,
}

impl Begun {
    /// Takes note of what there is, the first time.
    pub(super) fn see(&mut self, plan: &Plan) {
        self.known.get_or_insert_with(|| plan.files.keys().copied().collect_set());
    }

    /// Adds those that are not whole and newer than what there was of their timelines; whether there are
    /// any.
    pub(super) fn add(
        &mut self,
        plan: &Plan,
        result: Result<&Outcome<Observer>, &InputError>,
    ) -> bool {
        let (Ok(outcome), Some(known)) = (result, &self.known) else { return false };
        let newest = |timeline: u32| {
            known.range((timeline, 0)..=(timeline, u64::MAX)).next_back().map(|(_, number)| *number)
        };
        let not_whole = not_whole(plan, outcome).into_iter();
        let new = not_whole
            .filter(|file| newest(file.timeline).is_some_and(|newest| newest < file.number));
        let bytes = plan.geometry.segment_bytes;
        let names = new.map(|file| SegmentName::new(file.timeline, file.number, bytes));
        let before = self.begun.len();
        self.begun.extend(names);
        self.begun.len() > before
    }

    /// Leaves them out of what was found anew.
    pub(super) fn leave_out(&self, found: &mut Found) {
        if !self.begun.is_empty() {
            found.leave_out_begun(&self.begun);
        }
    }
}

/// Whether a problem may be that its file is not whole.
pub(super) fn is_cut(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Truncated | ProblemKind::Unreadable)
}

/// Whether a file is not any more where it was found.
pub(super) fn is_lost(file: &Segment) -> bool {
    file.source.is_file() && file.source.modified().is_none()
}

fn files(plan: &Plan) -> impl Iterator<Item = &Segment> {
    plan.files.values().flatten().filter(|segment| segment.source.is_file())
}

/// Whether any of these files was written to since it was found, when nobody writes to them any more: has
/// one of them open, or has just written. What compresses does so in bursts, seconds apart.
fn have_grown(files: &[&Segment], patience: &mut Patience) -> bool {
    let modified = || files.iter().map(|file| file.source.modified()).collect::<Vec<_>>();
    let first: Vec<_> = files.iter().map(|file| file.modified).collect();
    let mut seen = modified();
    let paths = files.iter().map(|file| file.source.path());
    let is_open = |path: &Path| !storage::is_elsewhere(path) && is_open_for_writing(path);
    let are_open = || paths.clone().any(is_open);
    let mut were_open = are_open();
    if seen == first && !were_open && !files.iter().any(|file| is_young(file)) {
        return false;
    }
    // Times of files may be those of another clock, and lie in the future.
    let mut unchanged = Instant::now();
    while patience.waits() {
        let now = modified();
        if now != seen {
            unchanged = Instant::now();
            seen.clone_from(&now);
        }
        let is_open = are_open();
        were_open |= is_open;
        let are_recent = || now.iter().flatten().copied().any(is_recent);
        if !is_open && (unchanged.elapsed() >= YOUNG || !are_recent()) {
            return now != first || were_open;
        }
    }
    false
}

/// Whether a file was written to so shortly ago that somebody may go on.
pub(super) fn is_young(segment: &Segment) -> bool {
    segment.modified.is_some_and(is_recent)
}

fn is_recent(time: SystemTime) -> bool {
    time.elapsed().unwrap_or_default() < YOUNG
}
