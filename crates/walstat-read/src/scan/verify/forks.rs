//! A record that goes on into the segment in which a timeline begins does so in two files: that timeline's
//! first one, and the older timeline's. Where it is whole with one of them, the files before are right, and
//! the other one is wrong.

use super::Verifier;
use crate::input::plan::Plan;
use crate::input::problem::{Elsewhere, Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

/// Moves problems of such records, of which nothing told so far which file is wrong, to the last file that
/// they lie in by `lineage`, by whose files they were found.
pub(in crate::scan) fn blame_the_last(
    problems: &mut [Problem],
    plan: &Plan,
    lineage: &Lineage,
    verifier: &Verifier<'_>,
) {
    let bytes = plan.geometry.segment_bytes;
    for problem in problems {
        let (Some(Elsewhere::GoesOn { segments, .. }), Some(at)) = (problem.elsewhere, problem.lsn)
        else {
            continue;
        };
        let first = at.0 / u64::from(bytes);
        let last = first + u64::from(segments);
        let timeline = lineage.of_file(last, bytes);
        let blamed = plan.files.get(&(timeline, last)).and_then(|files| files.first());
        if blamed.is_some_and(Segment::claims_whole_segment)
            && is_whole_elsewhere(plan, lineage, first..=last, verifier)
        {
            problem.segment = SegmentName::new(timeline, last, bytes).to_string();
            problem.lsn = Some(Lsn(last * u64::from(bytes)));
            problem.elsewhere = Some(Elsewhere::Begins { at, may_be_wrong: false });
        }
    }
}

/// No record that begins a timeline is longer: an end of recovery, or a shutdown checkpoint.
const BEGIN_BYTES_MAX: u64 = 256;

/// Moves problems of records that go on into a next segment, and stand where a timeline begins by `lineage`,
/// to the file in which they begin: it has the older timeline's record there.
pub(in crate::scan) fn blame_the_fork(problems: &mut [Problem], plan: &Plan, lineage: &Lineage) {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let forks: BTreeMap<Lsn, u32> =
        lineage.spans().map(|(timeline, span)| (span.start, timeline)).collect_map();
    for problem in problems {
        let (Some(Elsewhere::Begins { at, .. })
        | Some(Elsewhere::Apart { last: at, goes_on: true, .. })) = problem.elsewhere
        else {
            continue;
        };
        let Some(&timeline) = forks.get(&at) else { continue };
        let number = at.0 / bytes;
        let is_there = plan.files.contains_key(&(timeline, number));
        if is_there && bytes - at.0 % bytes > BEGIN_BYTES_MAX {
            let name = SegmentName::new(timeline, number, plan.geometry.segment_bytes);
            problem.kind = ProblemKind::PageTimeline;
            problem.segment = name.to_string();
            problem.lsn = Some(at);
            problem.elsewhere = None;
            problem.expected = format!("the record with which timeline {timeline} begins");
            problem.found = "a record that goes on in the next segment".to_owned();
        }
    }
}

/// Whether the record that lies in so many segments is whole where another timeline's file is read for the
/// last of them, and the same files for the others.
fn is_whole_elsewhere(
    plan: &Plan,
    lineage: &Lineage,
    numbers: RangeInclusive<u64>,
    verifier: &Verifier<'_>,
) -> bool {
    let bytes = plan.geometry.segment_bytes;
    let last = *numbers.end();
    let edge = Lsn(last * u64::from(bytes));
    let is_same = |other: &Lineage, number: u64| {
        other.of_file(number, bytes) == lineage.of_file(number, bytes)
    };
    let mut others = plan.other_lineages.iter().chain([&plan.lineage]).filter(|other| {
        !is_same(other, last) && numbers.clone().all(|it| it == last || is_same(other, it))
    });
    others.any(|other| {
        let file =
            |number| plan.files.get(&(other.of_file(number, bytes), number))?.first().cloned();
        let files: Option<Vec<Segment>> = numbers.clone().map(file).collect();
        let Some(files) = files else { return false };
        let outcome = verifier.read(&files, other);
        // What is wrong in a `.partial` was set aside.
        let mut problems = outcome.problems.iter().chain(&outcome.unfetched);
        outcome.ending.lsn > edge && !problems.any(|it| it.touches(edge))
    })
}
