//! The segments in which a base backup ends, by its history: that is archived after them.

use std::collections::{BTreeMap, BTreeSet};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;
use walstat_read::input::input_kind::InputKind;
use walstat_read::input::label::ToldLabel;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind, none_of};

/// Those behind all that there are, though a backup begins in these: they were lost with all after them.
pub fn lost_end(plan: &Plan, labels: &[ToldLabel]) -> Option<Problem> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let timelines: BTreeSet<u32> =
        labels.iter().map(|told| told.found.label.timeline).collect_set();
    let newest = timelines.into_iter().filter_map(|it| Some((it, newest(plan, it)?)));
    let newest: BTreeMap<u32, u64> = newest.collect_map();
    let ends = labels.iter().filter_map(|told| {
        let label = told.found.label;
        let last = newest.get(&label.timeline).filter(|last| label.start.0 / bytes <= **last)?;
        Some((label.stop?, *last, told))
    });
    let (stop, last, told) = ends.max_by_key(|(stop, ..)| *stop)?;
    let number = stop.0.saturating_sub(1) / bytes;
    if number <= last || plan.taken_for() == InputKind::PgWal {
        return None;
    }
    let name = |number| {
        let timeline = told.found.label.timeline;
        SegmentName::new(timeline, number, plan.geometry.segment_bytes).to_string()
    };
    let (segment, start) = (name(number), told.found.label.start);
    let expected =
        format!("segment {segment}, in which the backup that begins at {start} ends, at {stop}");
    let found = none_of(number - last, &segment);
    let problem = Problem::of_file(ProblemKind::MissingSegment, &name(last + 1), expected, found);
    Some(Problem { lsn: Some(Lsn((last + 1).saturating_mul(bytes))), ..problem })
}

/// The newest segment of a timeline or of newer ones, or of what they have of older ones: not what these
/// wrote after it had left them.
fn newest(plan: &Plan, timeline: u32) -> Option<u64> {
    let bytes = plan.geometry.segment_bytes;
    let lineage = plan.lineage_of(timeline);
    let goes_on = |(of, number): &&(u32, u64)| {
        *of >= timeline || lineage.is_none_or(|lineage| lineage.of_file(*number, bytes) == *of)
    };
    plan.files.keys().filter(goes_on).map(|(_, number)| *number).max()
}
