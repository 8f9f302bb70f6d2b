//! A file with the bytes of another timeline's for the same segment, in which one of the two begins: it is
//! the wrong one where the next file does not go on with it.

use super::Verifier;
use crate::input::placing::Key;
use crate::input::plan::Plan;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::timeline::Lineage;
use crate::scan::outcome::Outcome;
use walstat_format::lsn::Lsn;
use walstat_format::page::LONG_HEADER_BYTES;
use walstat_format::segment::SegmentName;

/// Moves problems at the beginning of a segment to the file before it, where that is such a copy; those are
/// forgotten of which that file has one of its own.
pub(in crate::scan) fn blame_the_copied<O>(
    outcome: &mut Outcome<O>,
    plan: &Plan,
    verifier: &Verifier<'_>,
) {
    let bytes = plan.geometry.segment_bytes;
    let (mut moved, mut problems) = (Vec::new(), Vec::new());
    for problem in std::mem::take(&mut outcome.problems) {
        let before = file_before(&problem, plan);
        let copied = before.and_then(|key| Some((key, copied(plan, key, verifier)?)));
        match copied {
            Some(((timeline, number), (fork, other))) => moved.push(Problem {
                kind: ProblemKind::PageTimeline,
                segment: SegmentName::new(timeline, number, bytes).to_string(),
                lsn: Some(fork),
                elsewhere: None,
                expected: format!("the records of timeline {timeline} from {fork} on"),
                found: format!("the bytes of {other}"),
                ..problem
            }),
            None => problems.push(problem),
        }
    }
    moved.retain(|moved| !problems.iter().any(|other| other.segment == moved.segment));
    outcome.problems = problems;
    outcome.add_problems(moved);
}

/// The file before the segment at whose beginning a problem is, if it is one of what goes on there.
fn file_before(problem: &Problem, plan: &Plan) -> Option<Key> {
    let bytes = plan.geometry.segment_bytes;
    let lsn = problem.lsn?.0;
    let is_of_what_goes_on = matches!(
        problem.kind,
        ProblemKind::Continuation | ProblemKind::PrevLink | ProblemKind::OpenSegment
    );
    let begins = lsn % u64::from(bytes) <= LONG_HEADER_BYTES as u64;
    let number = (lsn / u64::from(bytes)).checked_sub(1);
    let number = number.filter(|_| is_of_what_goes_on && begins)?;
    let lineage = plan.lineage_of(SegmentName::leading(&problem.segment)?.timeline)?;
    Some((lineage.of_file(number, bytes), number))
}

/// Where the newer of two timelines begins in a segment, and the file of the other one with the same bytes.
fn copied(plan: &Plan, key: Key, verifier: &Verifier<'_>) -> Option<(Lsn, String)> {
    let (timeline, number) = key;
    let bytes = plan.geometry.segment_bytes;
    let first = |key: &Key| plan.files.get(key)?.first();
    let own = first(&key).filter(|file| file.claims_whole_segment())?;
    let mut own_digest = None;
    let lineages = plan.other_lineages.iter().chain([&plan.lineage]);
    let others = lineages.map(Lineage::timeline).filter(|other| *other != timeline);
    let mut twins = others.filter_map(|other| {
        let begin = plan.lineage_of(timeline.max(other))?.begin();
        let file = first(&(other, number)).filter(|_| begin.0 / u64::from(bytes) == number)?;
        let own = own_digest.get_or_insert_with(|| verifier.digest(own)).as_ref()?;
        (verifier.digest(file)? == *own).then(|| (begin, file.file()))
    });
    twins.next()
}
