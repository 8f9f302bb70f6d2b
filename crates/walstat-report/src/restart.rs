//! Where replay would begin in a server's own directory: how much that is, and whether the WAL is there.

use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::control;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// Files with which a server begins elsewhere than its `pg_control` says, or with WAL from an archive.
const FROM_ELSEWHERE: [&str; 4] =
    ["backup_label", "recovery.signal", "standby.signal", "recovery.conf"];

/// How much WAL up to `end` the standby whose data directory this is would replay again after a crash: it
/// begins at its own restart point, which may lie far before the checkpoints of its primary.
pub(crate) fn of_standby(plan: &Plan, end: Lsn) -> Option<u64> {
    let control = control::read(plan.data_directory.as_deref()?).ok()?;
    let is_own = control.system_identifier == plan.geometry.system_identifier;
    let bytes = end.0.checked_sub(control.checkpoint.redo.0)?;
    (is_own && control.state.is_standby()).then_some(bytes)
}

/// The segment that replay begins in by the `pg_control` of the data directory, if it is older than all that
/// there are: `could not locate a valid checkpoint record`. A server that runs may have a newer one by now.
pub fn lost_start(plan: &Plan) -> Option<Problem> {
    let directory = plan.data_directory.as_deref()?;
    let control = control::read(directory).ok()?;
    let is_other = control.system_identifier != plan.geometry.system_identifier;
    if is_other || FROM_ELSEWHERE.iter().any(|name| directory.join(name).exists()) {
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
