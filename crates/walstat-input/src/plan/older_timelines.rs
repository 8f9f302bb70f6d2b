//! Files under the names of timelines whose first pages are of older ones.

use super::{Key, Plan};
use crate::discover::Found;
use crate::input_kind::InputKind;
use crate::problem::{Problem, ProblemKind};
use crate::segment::Segment;
use crate::timeline::Lineage;
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

/// The timelines of the files; and problems of files that are named for one that was never begun, or of
/// which there is nothing: all of its files begin with pages of older timelines, and it does not follow on
/// the others, as a server numbers them, or its records are not in them.
pub(super) fn present(
    files: &BTreeMap<Key, Vec<Segment>>,
    found: &Found,
) -> (BTreeSet<u32>, Vec<Problem>) {
    let histories = &found.histories;
    let is_older = |timeline: u32, file: &Segment| {
        file.first_page.as_ref().is_ok_and(|page| page.header.timeline < timeline)
    };
    let mut present = BTreeSet::new();
    for ((timeline, _), files) in files {
        let follows = *timeline == 1
            || histories.has(*timeline)
            || present.contains(&timeline.saturating_sub(1))
            || histories.has(timeline.saturating_sub(1));
        let is_stray = found.strays.contains(timeline);
        if !is_stray && (follows || files.iter().any(|file| !is_older(*timeline, file))) {
            present.insert(*timeline);
        }
    }
    // The segment in which a timeline begins, alone: there is nothing that it should follow on.
    if present.is_empty() {
        present.extend(files.keys().map(|(timeline, _)| *timeline));
    }
    let others = files.iter().filter(|((timeline, _), _)| !present.contains(timeline));
    let others = others.flat_map(|((timeline, _), files)| {
        files.iter().filter(|file| file.claims_whole_segment()).map(|file| (*timeline, file))
    });
    let problem = |(timeline, file): (u32, &Segment)| {
        let page = file.first_page.as_ref().ok()?;
        let start = Lsn(file.number.saturating_mul(u64::from(page.long.segment_bytes)));
        Some(wrong_timeline(file, start, timeline, page.header.timeline))
    };
    let problems = others.filter_map(problem).collect();
    (present, problems)
}

impl Plan {
    /// Reports segments whose first page is of another timeline than the history says.
    pub(super) fn check_first_pages(&mut self) {
        let bytes = self.geometry.segment_bytes;
        let lineages: BTreeMap<u32, &Lineage> = self
            .other_lineages
            .iter()
            .chain([&self.lineage])
            .map(|lineage| (lineage.timeline(), lineage))
            .collect_map();
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        let mut problems = Vec::new();
        for ((timeline, number), files) in &self.files {
            let first = *first.entry(*timeline).or_insert(*number);
            let start = Lsn(number * u64::from(bytes));
            let Some(lineage) = lineages.get(timeline) else { continue };
            // Where the history is missing, the first segment may begin on an older timeline.
            let known = *timeline == 1 || *number > first || lineage.begin() > Lsn(0);
            let theirs = lineage.of_file(*number, bytes) == *timeline;
            for file in files.iter().filter(|_| known && theirs) {
                let Ok(page) = &file.first_page else { continue };
                let (found, expected) = (page.header.timeline, lineage.of_page(start));
                let is_wrong =
                    page.header.address == start && found != expected && found <= *timeline;
                if is_wrong && !(found < expected && self.is_made_ready(file)) {
                    problems.push(wrong_timeline(file, start, expected, found));
                }
            }
        }
        self.problems.extend(problems);
    }

    /// Whether a server has made a file ready for what it writes next: in its own directory, and none behind
    /// it is written. After a recovery it may be the older timeline's file of the same number, which it had
    /// read ahead (`RemoveNonParentXlogFiles` in `src/backend/access/transam/xlog.c`).
    fn is_made_ready(&self, file: &Segment) -> bool {
        let bytes = u64::from(self.geometry.segment_bytes);
        let is_written = |(&(timeline, number), files): (&Key, &Vec<Segment>)| {
            files.iter().filter_map(|file| file.first_page.as_ref().ok()).any(|page| {
                page.header.address.0 == number * bytes && page.header.timeline == timeline
            })
        };
        let behind = (file.timeline, file.number.saturating_add(1))..=(file.timeline, u64::MAX);
        file.taken_for == InputKind::PgWal && !self.files.range(behind).any(is_written)
    }

    /// Whether a problem is that the first file of a timeline has the records of an older one to its end: a
    /// server reads them all.
    pub fn is_read_to_the_end(&self, problem: &Problem) -> bool {
        let name = SegmentName::leading(&problem.segment);
        let begins = |name: SegmentName| {
            let (lsn, begin) = (problem.lsn?, name.start(self.geometry.segment_bytes)?);
            let begins_there =
                || self.lineage_of(name.timeline).is_some_and(|it| it.begin() == lsn);
            Some(lsn > begin || lsn == begin && begins_there())
        };
        problem.kind == ProblemKind::PageTimeline
            && problem.skipped_bytes == 0
            && name.and_then(begins).unwrap_or(false)
    }
}

fn wrong_timeline(file: &Segment, start: Lsn, expected: u32, found: u32) -> Problem {
    let (expected, found) = (format!("timeline {expected}"), format!("timeline {found}"));
    let problem = Problem::of_file(ProblemKind::PageTimeline, &file.file(), expected, found);
    Problem { lsn: Some(start), ..problem }
}
