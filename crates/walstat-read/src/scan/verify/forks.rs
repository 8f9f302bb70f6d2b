//! A record that goes on into the segment in which a timeline begins does so in two files: that timeline's
//! first one, and the older timeline's. Where it is whole with one of them, the file in which it begins is
//! right, and the other one wrong.

use super::Verifier;
use crate::input::plan::Plan;
use crate::input::problem::{Elsewhere, Problem};
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

/// Moves problems of such records, of which nothing told so far which file is wrong, to the next file of
/// `lineage`, by whose files they were found.
pub(in crate::scan) fn blame_the_next(
    problems: &mut [Problem],
    plan: &Plan,
    lineage: &Lineage,
    verifier: &Verifier<'_>,
) {
    let bytes = plan.geometry.segment_bytes;
    for problem in problems {
        let (Some(Elsewhere::GoesOn { segments: 1, .. }), Some(at)) =
            (problem.elsewhere, problem.lsn)
        else {
            continue;
        };
        let number = at.0 / u64::from(bytes);
        let next = lineage.of_file(number + 1, bytes);
        let is_named = plan.files.get(&(next, number + 1)).and_then(|files| files.first());
        if is_named.is_some_and(Segment::claims_whole_segment)
            && is_whole_elsewhere(plan, lineage.of_file(number, bytes), at, next, verifier)
        {
            problem.segment = SegmentName::new(next, number + 1, bytes).to_string();
            problem.lsn = Some(Lsn((number + 1) * u64::from(bytes)));
            problem.elsewhere = Some(Elsewhere::Begins { at, may_be_wrong: false });
        }
    }
}

/// Whether the record at `at`, in a file of `timeline`, is whole with the next file of another timeline than
/// `next`.
fn is_whole_elsewhere(
    plan: &Plan,
    timeline: u32,
    at: Lsn,
    next: u32,
    verifier: &Verifier<'_>,
) -> bool {
    let bytes = plan.geometry.segment_bytes;
    let number = at.0 / u64::from(bytes);
    let edge = Lsn((number + 1) * u64::from(bytes));
    let file = |timeline, number| plan.files.get(&(timeline, number))?.first().cloned();
    let mut others = plan.other_lineages.iter().chain([&plan.lineage]).filter(|lineage| {
        lineage.of_file(number, bytes) == timeline && lineage.of_file(number + 1, bytes) != next
    });
    others.any(|lineage| {
        let other = lineage.of_file(number + 1, bytes);
        let both = file(timeline, number).zip(file(other, number + 1));
        let Some((first, second)) = both else { return false };
        let outcome = verifier.read(&[first, second], lineage);
        let is_broken = |problem: &Problem| {
            problem.skipped().is_some_and(|skipped| skipped.start <= edge && skipped.end >= edge)
        };
        outcome.ending.lsn > edge && !outcome.problems.iter().any(is_broken)
    })
}
