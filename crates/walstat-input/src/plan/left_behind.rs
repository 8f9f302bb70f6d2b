//! Segments of an older timeline from behind the place where it was left, moved to another directory by
//! whoever tidies up after a failover: no restore asks for them, so they are noted and not missing.

use super::Plan;
use crate::names::first_of;
use crate::problem::{Problem, ProblemKind};
use crate::timeline::Lineage;
use walstat_format::segment::SegmentName;

impl Plan {
    /// Tells of them in a note; they are not missing.
    pub(super) fn tell_left_behind(&mut self) {
        let bytes = self.geometry.segment_bytes;
        let lineages: Vec<&Lineage> = self.latest.iter().chain([&self.lineage]).collect();
        let is_behind = |problem: &Problem| {
            let name = SegmentName::leading(&problem.segment);
            let name = name.filter(|_| problem.kind == ProblemKind::MissingSegment);
            let key = name.and_then(|name| Some((name.timeline, name.number(bytes)?)));
            key.is_some_and(|(timeline, number)| {
                lineages.iter().all(|lineage| {
                    let left = lineage.leaves(timeline);
                    left.is_some_and(|at| number.saturating_mul(u64::from(bytes)) >= at.0)
                })
            })
        };
        let problems = std::mem::take(&mut self.problems).into_iter();
        let (behind, others): (Vec<Problem>, Vec<Problem>) = problems.partition(is_behind);
        self.problems = others;
        let files: Vec<String> = behind.into_iter().map(|problem| problem.segment).collect();
        self.notes.extend(first_of(&files).map(|files| {
            format!(
                "{files}: not missing, though only where no restore_command looks: timeline {} left that one \
                 before",
                self.timeline
            )
        }));
    }
}
