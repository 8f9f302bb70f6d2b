//! The first file of a timeline with the records of the older one to its end, as where that one's segment was
//! stored under its name. A server reads them, and stops where the next file does not go on with them: that
//! one is intact, and so is what the records themselves say.

use super::Outcome;
use crate::input::plan::Plan;
use crate::input::problem::{Elsewhere, Problem, ProblemKind};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::page::LONG_HEADER_BYTES;
use walstat_format::segment::SegmentName;

impl<O> Outcome<O> {
    /// Drops the problems that merely follow from such a file; keeps the one that names it.
    pub(crate) fn blame_never_begun(&mut self, plan: &Plan) {
        let Some(older) = older_records(plan, &self.problems) else { return };
        let bytes = plan.geometry.segment_bytes;
        let own = plan.lineage.of_file(older.start.0 / u64::from(bytes), bytes);
        let follows = |problem: &Problem| {
            let name = SegmentName::leading(&problem.segment);
            let number = name.and_then(|name| name.number(bytes));
            name.zip(number).is_some_and(|(name, number)| {
                name.timeline == own || plan.lineage.of_file(number, bytes) == name.timeline
            })
        };
        // Its last record may lie before the place where its timeline begins.
        let file = Lsn(older.end.0 - u64::from(bytes))..older.end;
        let is_apart = |problem: &Problem| match problem.elsewhere {
            Some(Elsewhere::Apart { last, .. }) => file.contains(&last),
            _ => false,
        };
        let next = older.end..=Lsn(older.end.0.saturating_add(LONG_HEADER_BYTES as u64));
        let is_of_its_end = |problem: &Problem| match problem.kind {
            _ if is_apart(problem) => true,
            ProblemKind::Continuation | ProblemKind::PrevLink if next.contains(&begin(problem)) => {
                true
            }
            kind => {
                let leads_out = older.contains(&begin(problem)) && end(problem) >= older.end;
                kind.is_of_records() && leads_out
            }
        };
        self.problems.retain(|problem| !(is_of_its_end(problem) && follows(problem)));
    }
}

/// Where records of an older timeline stand in a file of the timeline that is followed: from the place on
/// where that begins.
pub(super) fn older_records(plan: &Plan, problems: &[Problem]) -> Option<Range<Lsn>> {
    let bytes = plan.geometry.segment_bytes;
    problems.iter().find_map(|problem| {
        let name = SegmentName::leading(&problem.segment)?;
        let begin = name.start(bytes).filter(|_| plan.is_read_to_the_end(problem))?;
        let number = name.number(bytes)?;
        let is_followed = plan.lineage.of_file(number, bytes) == name.timeline;
        is_followed.then_some(problem.lsn?..Lsn(begin.0.saturating_add(u64::from(bytes))))
    })
}

/// Where the record begins that a problem is of.
fn begin(problem: &Problem) -> Lsn {
    match problem.elsewhere {
        Some(Elsewhere::Begins { at, .. } | Elsewhere::Apart { last: at, .. }) => at,
        _ => problem.lsn.unwrap_or(Lsn(0)),
    }
}

/// Up to where it is seen.
fn end(problem: &Problem) -> Lsn {
    match problem.elsewhere {
        Some(Elsewhere::SeenAt(at) | Elsewhere::GoesOn { to: at, .. }) => at,
        _ => problem.skipped().map_or(Lsn(0), |skipped| skipped.end),
    }
}
