//! Segments that are not filled because their timeline was left, and that were archived as they stood:
//! nothing is lost.

use crate::input::plan::Plan;
use crate::input::probe::NotWal;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

/// Takes out the problems of such files, and says what they are.
pub(in crate::scan) fn forgive(problems: &mut Vec<Problem>, plan: &mut Plan) {
    let mut notes = Vec::new();
    problems.retain(|problem| {
        let note = why(problem, plan);
        notes.extend(note.as_ref().map(|note| format!("{}: {note}", problem.segment)));
        note.is_none()
    });
    plan.notes.extend(notes);
}

/// Why a file that is not filled is no loss, if it is none.
fn why(problem: &Problem, plan: &Plan) -> Option<String> {
    let is_open = problem.kind == ProblemKind::OpenSegment;
    let name = SegmentName::leading(&problem.segment).filter(|_| is_open)?;
    let key = (name.timeline, name.number(plan.geometry.segment_bytes)?);
    let file = plan.files.get(&key)?.iter().find(|file| file.file() == problem.segment)?;
    let branches = plan.branches.iter().filter(|branch| branch.parent == file.timeline);
    let newest = plan.branch_point.filter(|_| file.timeline == plan.timeline);
    let mut left_at = branches.map(|branch| branch.at).chain(newest);
    left_at.find_map(|at| {
        if problem.lsn.is_some_and(|lsn| ends_there(file, lsn, at, plan)) {
            return Some(format!(
                "not filled, and a newer timeline begins where it ends, at {at}: so a standby with \
                 archive_mode = always archives it"
            ));
        }
        if is_prepared(file, at, plan) {
            let text = "only zeros, and the timeline was left before it: a server makes segments ready so, \
                        and none asks for it";
            return Some(text.to_owned());
        }
        is_behind(file, at, plan).then(|| {
            format!(
                "not filled, and it lies behind {at}, where a newer timeline left its own: as an old primary \
                 archives what it had left"
            )
        })
    })
}

/// Whether the records of a file end where its timeline is left, and there is nothing of that behind it: a
/// standby that goes on with the newer one archives what it has received of the older (`WalReceiverMain` in
/// `src/backend/replication/walreceiver.c`).
fn ends_there(file: &Segment, lsn: Lsn, left_at: Lsn, plan: &Plan) -> bool {
    let is_last = rest(file.timeline, file.number + 1, plan).next().is_none();
    let ends = plan.geometry.first_byte(left_at) == plan.geometry.first_byte(lsn);
    is_last && ends && !is_empty(file)
}

/// Whether there are only zeros in a file of a timeline that was left where a segment begins, and of which
/// there is nothing else from there on: a server makes such segments ready in recovery.
fn is_prepared(file: &Segment, Lsn(left_at): Lsn, plan: &Plan) -> bool {
    let bytes = u64::from(plan.geometry.segment_bytes);
    file.timeline != plan.timeline
        && left_at.is_multiple_of(bytes)
        && left_at / bytes <= file.number
        && rest(file.timeline, left_at / bytes, plan).all(is_empty)
}

/// Whether a file is the last of a timeline that was left before it begins, with something in it.
fn is_behind(file: &Segment, Lsn(left_at): Lsn, plan: &Plan) -> bool {
    let bytes = u64::from(plan.geometry.segment_bytes);
    file.timeline != plan.timeline
        && !is_empty(file)
        && left_at <= file.number.saturating_mul(bytes)
        && rest(file.timeline, file.number + 1, plan).next().is_none()
}

/// The files of a timeline from a segment on.
fn rest(timeline: u32, from: u64, plan: &Plan) -> impl Iterator<Item = &Segment> {
    plan.files.range((timeline, from)..=(timeline, u64::MAX)).flat_map(|(_, files)| files)
}

fn is_empty(file: &Segment) -> bool {
    file.first_page.as_ref().err() == Some(&NotWal::Zeros)
}
