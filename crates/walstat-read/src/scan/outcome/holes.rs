//! Where segments are missing: those that may be, since somebody said so, and those that may not.

use super::Outcome;
use crate::input::plan::{Chain, Plan, WhyUnfilled};
use crate::input::problem::{Problem, ProblemKind, none_of};
use crate::input::segment::Segment;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

/// Where segments are missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holes {
    /// Each with the timeline whose history it is a hole in.
    all: Vec<(u32, Range<Lsn>)>,
    /// What would be a problem, had it not been accepted.
    pub accepted: Vec<Problem>,
    /// Those that are no problem though nobody has accepted them: no file is lost in them.
    pub unfilled: Vec<Problem>,
    /// Behind which the WAL begins anew (`pg_resetwal`).
    pub before_reset: Vec<Range<Lsn>>,
}

impl Holes {
    /// Adds a hole; returns what is a problem in it.
    pub(super) fn add(&mut self, chain: &Chain<'_>, hole: Range<Lsn>) -> Vec<Problem> {
        self.all.push((chain.lineage.timeline(), hole.clone()));
        let problem = |part: Range<Lsn>| missing(chain, part.start, part.end);
        let parts = parts(&hole, chain.accepted_gaps).into_iter().map(problem);
        let (accepted, problems) = parts.partition(|part| is_in(part, chain.accepted_gaps));
        self.accepted.extend(accepted);
        problems
    }

    /// Adds a hole that no file is lost in.
    pub(super) fn add_unfilled(&mut self, chain: &Chain<'_>, hole: Range<Lsn>) {
        self.unfilled.push(missing(chain, hole.start, hole.end));
        self.all.push((chain.lineage.timeline(), hole));
    }

    /// The same where the WAL begins anew behind it: there need not have been any segment.
    pub(super) fn add_before_reset(&mut self, chain: &Chain<'_>, hole: Range<Lsn>) {
        self.add_unfilled(chain, hole.clone());
        self.before_reset.push(hole);
    }

    /// Adds those that were found elsewhere.
    pub(in crate::scan) fn extend(&mut self, others: Holes) {
        self.all.extend(others.all);
        self.accepted.extend(others.accepted);
        self.unfilled.extend(others.unfilled);
        self.before_reset.extend(others.before_reset);
    }

    /// Adds segments that were there once and are not any more, where no hole tells of them; returns what
    /// is a problem. Behind the newest segment there is no hole to be seen.
    pub(crate) fn add_lost(&mut self, plan: &Plan, lost: &BTreeSet<(u32, u64)>) -> Vec<Problem> {
        let bytes = plan.geometry.segment_bytes;
        // What a server has recycled was there; what none has archived was not.
        let is_told_of = |hole: &Range<Lsn>| {
            let never = WhyUnfilled::NeverArchived;
            !plan.unfilled.iter().any(|it| it.why == never && it.range == *hole)
        };
        let is_told = |(timeline, number): (u32, u64)| {
            let start = Lsn(number.saturating_mul(u64::from(bytes)));
            self.all.iter().filter(|(_, hole)| is_told_of(hole)).any(|(history, hole)| {
                let lineage = plan.lineage_of(*history);
                hole.contains(&start)
                    && lineage.is_some_and(|lineage| lineage.of_file(number, bytes) == timeline)
            })
        };
        let mut ranges: Vec<(u32, Range<u64>)> = Vec::new();
        for (timeline, number) in lost.iter().copied().filter(|key| !is_told(*key)) {
            match ranges.last_mut() {
                Some((before, range)) if *before == timeline && range.end == number => {
                    range.end += 1;
                }
                _ => ranges.push((timeline, number..number.saturating_add(1))),
            }
        }
        let problems = ranges.into_iter().flat_map(|(timeline, range)| {
            let at = |number: u64| Lsn(number.saturating_mul(u64::from(bytes)));
            let parts = parts(&(at(range.start)..at(range.end)), &plan.accepted_gaps);
            parts.into_iter().map(move |part| gone(timeline, &part, bytes))
        });
        let (accepted, problems) = problems.partition(|part| is_in(part, &plan.accepted_gaps));
        self.accepted.extend::<Vec<_>>(accepted);
        problems
    }
}

impl<O> Outcome<O> {
    /// Removes the problems of missing segments under whose names something lies that is no WAL, a named pipe
    /// or a directory: that was told of each.
    pub(in crate::scan) fn tell_what_lies_there(&mut self, plan: &Plan) {
        let bytes = plan.geometry.segment_bytes;
        let is_no_wal = |problem: &&Problem| problem.kind == ProblemKind::NotWal;
        let names = self.problems.iter().filter(is_no_wal).map(|problem| problem.segment.as_str());
        // Under its very name: a copy under another one, as an encrypted one has, leaves the segment missing.
        let own = |file| SegmentName::leading(file).filter(|name| name.to_string() == *file);
        let names = names.filter_map(own);
        let there = names.filter_map(|name| Some((name.timeline, name.number(bytes)?)));
        let there: BTreeSet<(u32, u64)> = there.collect_set();
        let number = |lsn: Lsn| lsn.0 / u64::from(bytes);
        let holes = self.holes.all.iter().flat_map(|(history, hole)| {
            parts(hole, &plan.accepted_gaps).into_iter().map(|part| (*history, part))
        });
        let told = holes.filter_map(|(history, hole)| {
            let lineage = plan.lineage_of(history)?;
            let key = |number: u64| (lineage.of_file(number, bytes), number);
            let mut missing = number(hole.start)..number(hole.end);
            let (timeline, first) = key(missing.start);
            // A hole may be wide.
            let is_told = missing.end - missing.start <= there.len() as u64
                && missing.all(|number| there.contains(&key(number)));
            is_told.then(|| SegmentName::new(timeline, first, bytes).to_string())
        });
        let told: BTreeSet<String> = told.collect_set();
        self.problems.retain(|problem| {
            problem.kind != ProblemKind::MissingSegment || !told.contains(&problem.segment)
        });
    }
}

impl<O> Outcome<O> {
    /// Removes the problems of segments that would be missing before files which alone say, by their names,
    /// that the timeline had come so far: their pages are of a newer one, or of a segment before the hole.
    /// Not where they are missing in another history as well.
    pub(in crate::scan) fn forget_holes_before_misnamed(&mut self, plan: &Plan) {
        let bytes = plan.geometry.segment_bytes;
        let number = |lsn: Lsn| lsn.0 / u64::from(bytes);
        let mut explained = BTreeMap::new();
        for (history, hole) in &self.holes.all {
            let Some(lineage) = plan.lineage_of(*history) else { continue };
            let key = |lsn: Lsn| (lineage.of_file(number(lsn), bytes), number(lsn));
            let (timeline, after) = key(hole.end);
            let later = plan.files.range((timeline, after)..=(timeline, u64::MAX));
            let later: Vec<&Segment> = later.flat_map(|(_, files)| files).collect();
            let is_misnamed = |file: &&Segment| {
                file.first_page.as_ref().is_ok_and(|page| {
                    let Lsn(begin) = page.header.address;
                    page.header.timeline > timeline
                        || begin < hole.start.0 && begin.is_multiple_of(u64::from(bytes))
                })
            };
            let are_misnamed = !later.is_empty() && later.iter().all(is_misnamed);
            for part in parts(hole, &plan.accepted_gaps) {
                let (timeline, first) = key(part.start);
                let name = SegmentName::new(timeline, first, bytes).to_string();
                *explained.entry(name).or_insert(true) &= are_misnamed;
            }
        }
        self.problems.retain(|problem| {
            problem.kind != ProblemKind::MissingSegment
                || explained.get(&problem.segment) != Some(&true)
        });
    }
}

/// Whether a problem is that of a segment of which there is nothing, and may be.
pub(super) fn accepts(plan: &Plan, problem: &Problem) -> bool {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let number = problem.lsn.map(|lsn| lsn.0 / bytes);
    let is_there = || plan.files.keys().any(|(_, there)| Some(*there) == number);
    problem.kind == ProblemKind::MissingSegment
        && is_in(problem, &plan.accepted_gaps)
        && !is_there()
}

fn is_in(problem: &Problem, gaps: &[Range<Lsn>]) -> bool {
    problem.lsn.is_some_and(|lsn| gaps.iter().any(|gap| gap.contains(&lsn)))
}

/// A hole divided where accepted gaps begin and end: each part is in one, or in none.
fn parts(hole: &Range<Lsn>, gaps: &[Range<Lsn>]) -> Vec<Range<Lsn>> {
    let bounds = gaps.iter().flat_map(|gap| [gap.start, gap.end]);
    let inside = bounds.filter(|bound| hole.start < *bound && *bound < hole.end);
    let bounds: BTreeSet<Lsn> = inside.chain([hole.start, hole.end]).collect_set();
    let bounds: Vec<Lsn> = bounds.into_iter().collect();
    bounds.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?)).collect()
}

/// The segments that are missing between two runs.
fn missing(chain: &Chain<'_>, from: Lsn, to: Lsn) -> Problem {
    let count = (to.0 - from.0) / u64::from(chain.geometry.segment_bytes);
    let found = none_of(count, &chain.segment_name(Lsn(to.0 - 1)));
    problem(&chain.segment_name(from), from, found)
}

/// Segments that were there.
fn gone(timeline: u32, range: &Range<Lsn>, segment_bytes: u32) -> Problem {
    let bytes = u64::from(segment_bytes);
    let name = |lsn: Lsn| SegmentName::new(timeline, lsn.0 / bytes, segment_bytes).to_string();
    let found = match (range.end.0 - range.start.0) / bytes {
        0 | 1 => "no such file, and there was one".to_owned(),
        count => {
            let last = name(Lsn(range.end.0 - 1));
            format!("none of {count} segments that there were, up to {last}")
        }
    };
    problem(&name(range.start), range.start, found)
}

fn problem(name: &str, lsn: Lsn, found: String) -> Problem {
    let expected = format!("segment {name}");
    let problem = Problem::of_file(ProblemKind::MissingSegment, name, expected, found);
    Problem { lsn: Some(lsn), ..problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_divided_where_a_gap_begins_or_ends() {
        let range = |from, to| Lsn(from)..Lsn(to);
        for (gaps, want) in [
            (vec![], vec![range(10, 20)]),
            (vec![range(0, 10), range(20, 30)], vec![range(10, 20)]),
            (vec![range(10, 20)], vec![range(10, 20)]),
            (vec![range(0, 15)], vec![range(10, 15), range(15, 20)]),
            (
                vec![range(12, 14), range(13, 90)],
                vec![range(10, 12), range(12, 13), range(13, 14), range(14, 20)],
            ),
        ] {
            assert_eq!(parts(&range(10, 20), &gaps), want, "{gaps:?}");
        }
    }
}
