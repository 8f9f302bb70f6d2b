//! Where replay would begin in a server's own directory: how much that is, and whether the WAL is there.

use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::control::{self, Control};
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// How much WAL up to `end` the standby whose data directory this is would replay again after a crash: it
/// begins at its own restart point, which may lie far before the checkpoints of its primary.
pub(crate) fn of_standby(plan: &Plan, end: Lsn) -> Option<u64> {
    let control = control::read(plan.data_directory_read.as_deref()?).ok()?;
    let is_own = control.system_identifier == plan.geometry.system_identifier;
    let bytes = end.0.checked_sub(control.checkpoint.redo.0)?;
    (is_own && control.state.is_standby()).then_some(bytes)
}

/// The segment that replay begins in by the `pg_control` of the data directory, if it is older than all that
/// there are: `could not locate a valid checkpoint record`. A server that runs may have a newer one by now.
pub fn lost_start(plan: &Plan) -> Option<Problem> {
    let control = control::begins_by(plan.data_directory_read.as_deref()?)?;
    if control.system_identifier != plan.geometry.system_identifier {
        return None;
    }
    let redo = control.checkpoint.redo;
    let number = redo.0 / u64::from(plan.geometry.segment_bytes);
    let first = plan.files.keys().map(|(_, number)| *number).min()?;
    let timeline = control.checkpoint.timeline;
    let name = SegmentName::new(timeline, number, plan.geometry.segment_bytes).to_string();
    let expected = format!("segment {name}, in which replay begins at {redo}, as pg_control says");
    let kind = ProblemKind::MissingSegment;
    let problem = Problem::of_file(kind, &name, expected, "no such file".to_owned());
    (number < first).then_some(Problem { lsn: Some(redo), ..problem })
}

/// The segment with the last checkpoint by a `pg_control`, if the WAL, which was read after it, ends before
/// that: `could not locate a valid checkpoint record`.
pub fn lost_checkpoint(plan: &Plan, control: &Control, end: Lsn) -> Option<Problem> {
    let (lsn, bytes) = (control.checkpoint_lsn, plan.geometry.segment_bytes);
    let timeline = control.checkpoint.timeline;
    let number = lsn.0 / u64::from(bytes);
    let is_there = plan.files.keys().any(|(_, there)| *there == number);
    let is_lost = if timeline == plan.timeline { end <= lsn } else { !is_there };
    if control.system_identifier != plan.geometry.system_identifier || !is_lost {
        return None;
    }
    let name = SegmentName::new(timeline, number, bytes).to_string();
    // A server that runs may have begun it after the directory was listed.
    let wal = plan.data_directory_read.as_ref().map(|it| it.join(plan.version().wal_directory));
    if !is_there && control.state.runs() && wal.is_some_and(|wal| wal.join(&name).exists()) {
        return None;
    }
    let expected = format!("the checkpoint at {lsn} that pg_control names");
    let (kind, found) = if is_there {
        (ProblemKind::OpenSegment, format!("WAL that ends at {end}"))
    } else {
        (ProblemKind::MissingSegment, "no such file".to_owned())
    };
    let problem = Problem::of_file(kind, &name, expected, found);
    Some(Problem { lsn: Some(lsn), ..problem })
}
