//! Whether a server that is started finds, in its own directory, the WAL at which replay has to begin.

use walstat_format::segment::SegmentName;
use walstat_read::input::control;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// Files with which a server begins elsewhere than its `pg_control` says, or with WAL from an archive.
const FROM_ELSEWHERE: [&str; 4] =
    ["backup_label", "recovery.signal", "standby.signal", "recovery.conf"];

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
