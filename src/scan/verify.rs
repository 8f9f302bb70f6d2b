//! Files that promise to be segments and are not counted: other timelines, and the places where a
//! timeline leaves another. Each is read in its chain, after the segment before it.

use super::outcome::{Outcome, conclude_chain};
use super::pages::Progress;
use super::parallel::{self, Ready};
use super::record::Everything;
use super::run::Run;
use super::scope::Scope;
use super::turns::Turns;
use crate::input::history;
use crate::input::placing::Key;
use crate::input::plan::{Chain, Plan, Segment};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::timeline::{Branch, Lineage};
use crate::wal::lsn::Lsn;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// Reads chains of segments without counting what is in them.
pub struct Verifier<'a> {
    /// What all runs have in common.
    pub scope: Scope<Everything>,
    /// Threads to read on.
    pub threads: NonZeroUsize,
    /// Bytes read.
    pub progress: &'a Progress,
    /// The runs of what came through streams, by the index of the piece.
    pub passed: BTreeMap<usize, Run<Turns>>,
}

impl Verifier<'_> {
    /// What is wrong in a chain, and where timelines begin in it.
    pub fn read(&self, segments: &[Segment], lineage: &Lineage) -> Outcome<Turns> {
        let chain = Chain { geometry: &self.scope.geometry, segments, lineage };
        let passed = |segment: &Segment| {
            let run = self.passed.get(&segment.piece)?;
            Some((segment.number, run.clone()))
        };
        let ready: Ready<Turns> = segments.iter().filter_map(passed).collect();
        let prototype = Turns::default();
        let Verifier { scope, threads, progress, .. } = self;
        let runs = parallel::scan(segments, ready, scope, *threads, progress, &prototype);
        conclude_chain(&chain, runs, prototype)
    }
}

/// What is wrong with everything that is not counted.
pub fn others(plan: &Plan, verifier: &Verifier<'_>) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for lineage in &plan.other_lineages {
        problems.extend(timeline(plan, lineage, verifier));
    }
    for branch in &plan.branches {
        problems.extend(branch_point(plan, branch, verifier));
    }
    problems
}

/// What is wrong with the segments of a timeline that is not followed, and those of the one that is
/// which lie after the end of its history.
fn timeline(plan: &Plan, lineage: &Lineage, verifier: &Verifier<'_>) -> Vec<Problem> {
    let bytes = plan.geometry.segment_bytes;
    let timeline = lineage.timeline();
    let counted: BTreeSet<Key> = plan.segments.iter().map(|s| (s.timeline, s.number)).collect();
    let own = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
    let numbers = own.map(|((_, number), _)| *number);
    let ours = |number: &u64| {
        lineage.of_file(*number, bytes) == timeline && !counted.contains(&(timeline, *number))
    };
    let numbers: Vec<u64> = numbers.filter(ours).collect();
    let Some(&first) = numbers.first() else { return Vec::new() };
    let context = before(plan, lineage, first);
    let target = Lsn(first * u64::from(bytes));
    let own = numbers.iter().filter_map(|number| file(plan, timeline, *number));
    let segments: Vec<Segment> = context.into_iter().chain(own).collect();
    let outcome = verifier.read(&segments, lineage);
    let reaches = |problem: &Problem| {
        let end = problem.lsn.map(|lsn| Lsn(lsn.0.saturating_add(problem.skipped_bytes)));
        match problem.lsn {
            Some(lsn) => lsn >= target || end > Some(target) || is_hole(problem),
            None => segments.iter().skip(1).any(|segment| segment.file() == problem.segment),
        }
    };
    outcome.problems.into_iter().filter(reaches).collect()
}

fn is_hole(problem: &Problem) -> bool {
    problem.kind == ProblemKind::MissingSegment
}

/// The nearest segment before `number` that this history has.
fn before(plan: &Plan, lineage: &Lineage, number: u64) -> Option<Segment> {
    let bytes = plan.geometry.segment_bytes;
    let keys = plan.files.keys().filter(|(timeline, before)| {
        *before < number && lineage.of_file(*before, bytes) == *timeline
    });
    let (timeline, before) = keys.max_by_key(|(_, before)| *before)?;
    file(plan, *timeline, *before)
}

/// The file that stands for a segment.
fn file(plan: &Plan, timeline: u32, number: u64) -> Option<Segment> {
    plan.files.get(&(timeline, number))?.first().cloned()
}

/// Whether the first segment of a timeline holds what a history says of its beginning.
fn branch_point(plan: &Plan, branch: &Branch, verifier: &Verifier<'_>) -> Option<Problem> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let number = branch.at.0 / bytes;
    let (range_start, range_end) = (verifier.scope.start, verifier.scope.end);
    if !(range_start..range_end).contains(&branch.at) || verifier.scope.limit.is_some() {
        return None;
    }
    let Branch { child, parent, at, history } = *branch;
    let early = plan.files.range((child, 0)..(child, number)).next_back();
    let problem = |found: String| {
        let expected = format!("timeline {child}, which leaves timeline {parent} at {at}");
        let file = history::name_of(history);
        let problem = Problem::of_file(ProblemKind::History, &file, expected, found);
        Some(Problem { lsn: Some(at), ..problem })
    };
    if let Some(segment) = early.and_then(|(_, files)| files.first()) {
        return problem(format!("{}, a segment before that", segment.file()));
    }
    file(plan, child, number)?;
    let lineage = plan.lineage_of(child)?;
    // The record may begin or end in a neighbour.
    let around = [number.checked_sub(1), Some(number), number.checked_add(1)];
    let around = around.into_iter().flatten();
    let segments: Vec<Segment> = around
        .filter_map(|near| file(plan, lineage.of_file(near, plan.geometry.segment_bytes), near))
        .collect();
    let outcome = verifier.read(&segments, lineage);
    // What is damaged or not yet written there is said elsewhere.
    let covered = outcome.problems.iter().any(|problem| {
        let end = problem.lsn.map(|lsn| lsn.0.saturating_add(problem.skipped_bytes));
        problem.lsn.is_some_and(|lsn| lsn <= at) && end.is_some_and(|end| end >= at.0)
    });
    if covered || outcome.ending.lsn <= at {
        return None;
    }
    let held = outcome.observer.hold(parent, child, at, &plan.geometry);
    held.err().and_then(problem)
}
