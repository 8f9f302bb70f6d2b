//! Where a server leaves the WAL that is judged, and goes on with other WAL.

use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};
use walstat_read::input::segment::Segment;

/// What a server does where a segment is missing that an older timeline has too: it takes that one, and goes
/// on with what the newer timeline left (`XLogFileReadAnyTLI` in
/// `src/backend/access/transam/xlogrecovery.c`).
pub(super) fn astray(problem: &Problem, plan: &Plan) -> Option<String> {
    let bytes = plan.geometry.segment_bytes;
    if problem.is_read_to_the_end(bytes) {
        let older = &problem.found;
        return Some(format!("; a server reads {older} of that file, and comes no farther"));
    }
    let name = SegmentName::leading(&problem.segment)?;
    let number = name.number(bytes)?;
    let is_there = |timeline: u32, number: u64| {
        let files = plan.files.get(&(timeline, number));
        files.is_some_and(|files| files.iter().any(Segment::is_asked_for))
    };
    let begun = plan.lineage.spans().filter(|(timeline, span)| {
        *timeline < name.timeline && span.start.0 / u64::from(bytes) <= number
    });
    let older =
        begun.map(|(timeline, _)| timeline).filter(|older| is_there(*older, number)).max()?;
    // Behind the place where a later timeline begins, its first segment is no help.
    let begins = plan.lineage.spans().find(|(timeline, _)| *timeline == name.timeline)?.1.start;
    let is_first = begins.0 / u64::from(bytes) == number;
    let is_astray = problem.kind == ProblemKind::MissingSegment && is_first;
    is_astray.then(|| {
        let after = (number..).find(|number| !is_there(older, *number)).unwrap_or(number);
        format!(
            "; a server takes {} in its place and goes on with timeline {older}, to {} at most",
            SegmentName::new(older, number, bytes),
            Lsn(after.saturating_mul(u64::from(bytes)))
        )
    })
}
