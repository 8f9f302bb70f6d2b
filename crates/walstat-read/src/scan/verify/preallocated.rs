//! Segments that a server has made ready in recovery for a timeline that it then left, and archived with
//! nothing in them.

use crate::input::plan::Plan;
use crate::input::probe::NotWal;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use walstat_format::lsn::Lsn;

/// Takes out the problems of such files, and says what they are.
pub(in crate::scan) fn forgive(problems: &mut Vec<Problem>, plan: &mut Plan) {
    let forgiven = problems.extract_if(.., |problem| is_it(problem, plan));
    let notes: Vec<String> = forgiven.map(|problem| note(&problem)).collect();
    plan.notes.extend(notes);
}

/// Whether a problem is that there are only zeros in a file of a timeline that another one has left where a
/// segment begins, and of which there is nothing else from there on.
fn is_it(problem: &Problem, plan: &Plan) -> bool {
    let file = plan.files.values().flatten().find(|file| file.file() == problem.segment);
    let Some(file) = file.filter(|_| problem.kind == ProblemKind::OpenSegment) else {
        return false;
    };
    let (timeline, bytes) = (file.timeline, u64::from(plan.geometry.segment_bytes));
    let is_left_before = |at: Lsn| {
        let from = (timeline, at.0 / bytes);
        let mut after = plan.files.range(from..=(timeline, u64::MAX)).flat_map(|(_, files)| files);
        at.0.is_multiple_of(bytes) && at.0 / bytes <= file.number && after.all(is_empty)
    };
    let mut branches = plan.branches.iter().filter(|branch| branch.parent == timeline);
    timeline != plan.timeline && branches.any(|branch| is_left_before(branch.at))
}

fn is_empty(file: &Segment) -> bool {
    file.first_page.as_ref().err() == Some(&NotWal::Zeros)
}

fn note(problem: &Problem) -> String {
    format!(
        "{}: only zeros, and the timeline was left before it: a server makes segments ready so, and none \
         asks for it",
        problem.segment
    )
}
