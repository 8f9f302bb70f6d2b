//! Verifies files with a segment's name that are not counted: segments of other timelines, and the
//! places where a timeline leaves another. Each is read after the segment before it.

mod beginnings;
mod copied;
mod forks;
pub(super) mod left_open;

use super::alone::Passed;
use super::around::Around;
use super::observer::Observer;
use super::older_pages;
use super::outcome::holes::Holes;
use super::outcome::{Outcome, conclude_chain};
use super::parallel::{self, Ready};
use super::progress::Progress;
use super::scope::Scope;
use super::timeline_switches::TimelineSwitches;
use crate::input::digest::{Digest, digest};
use crate::input::history::{self, Ancestor};
use crate::input::placing::Key;
use crate::input::plan::{Chain, Plan};
use crate::input::problem::{Elsewhere, Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::timeline::{Branch, Lineage};
use beginnings::is_of_older_timelines;
pub(super) use beginnings::{
    beginning_elsewhere, beginnings, pass_over, settle_beginnings, strays_alone,
};
pub(super) use copied::blame_the_copied;
pub(super) use forks::{blame_the_fork, blame_the_last};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::LONG_HEADER_BYTES;

/// Reads segments without counting their records.
pub(super) struct Verifier<'a> {
    /// What all runs have in common.
    pub scope: Scope,
    /// Threads to read on.
    pub threads: NonZeroUsize,
    /// Bytes read.
    pub progress: &'a Progress,
    /// What was read before, by the index of the piece.
    pub passed: &'a BTreeMap<usize, Passed>,
    /// Segments that may be missing.
    pub accepted_gaps: &'a [Range<Lsn>],
}

impl Verifier<'_> {
    /// Reads some segments of one history: what is wrong in them, and where timelines begin.
    pub(super) fn read(
        &self,
        segments: &[Segment],
        lineage: &Lineage,
    ) -> Outcome<TimelineSwitches> {
        self.read_ready(segments, lineage, self.ready(segments))
    }

    /// The same in a plan of which it is settled where timelines begin.
    pub(super) fn read_in(
        &self,
        plan: &Plan,
        segments: &[Segment],
        lineage: &Lineage,
    ) -> Outcome<TimelineSwitches> {
        let (mut ready, nothing) =
            (self.ready(segments), Observer::new(TimelineSwitches::default()));
        older_pages::set_aside(&mut ready, plan, segments, lineage, &self.scope, &nothing);
        self.read_ready(segments, lineage, ready)
    }

    /// Length and checksum of a file's bytes; `None` where they cannot be read again.
    pub(super) fn digest(&self, file: &Segment) -> Option<Digest> {
        let passed = self.passed.get(&file.piece).map(|passed| passed.digest.clone());
        passed.or_else(|| digest(&file.source, self.scope.geometry.segment_bytes))
    }

    /// Those that were read before.
    fn ready(&self, segments: &[Segment]) -> Ready {
        let passed = |segment: &Segment| {
            let passed = self.passed.get(&segment.piece)?;
            Some((segment.number, (passed.run.clone(), None)))
        };
        segments.iter().filter_map(passed).collect()
    }

    fn read_ready(
        &self,
        segments: &[Segment],
        lineage: &Lineage,
        ready: Ready,
    ) -> Outcome<TimelineSwitches> {
        let Verifier { scope, accepted_gaps, .. } = self;
        let geometry = &scope.geometry;
        let chain = Chain {
            geometry,
            segments,
            lineage,
            accepted_gaps,
            unfilled: &[],
            is_for_crash: false,
            is_standbys: false,
        };
        let prototype = Observer::new(TimelineSwitches::default());
        let Verifier { scope, threads, progress, .. } = self;
        let runs = parallel::scan(segments, ready, scope, *threads, progress, &prototype);
        conclude_chain(&chain, runs, prototype).map(|seen| seen.into_inner().unwrap_or_default())
    }
}

/// What is wrong with segments that are not counted.
#[derive(Debug, Default)]
pub(super) struct Verified {
    pub problems: Vec<Problem>,
    /// Where segments are missing.
    pub holes: Holes,
}

/// What is wrong with all segments that are not counted.
pub(super) fn others(plan: &Plan, verifier: &Verifier<'_>) -> Verified {
    let mut verified = Verified::default();
    if verifier.scope.limit.is_some() {
        return verified;
    }
    let counted: BTreeSet<Key> = plan.segments.iter().map(|s| (s.timeline, s.number)).collect_set();
    for lineage in &plan.other_lineages {
        timeline(plan, lineage, &counted, verifier, &mut verified);
    }
    for branch in &plan.branches {
        // One whose own history says nothing is known by that of the timeline that is followed.
        let own = plan.lineage_of(branch.child);
        let is_unknown = own.is_some_and(|own| own.parent().is_none());
        let known = is_unknown.then(|| plan.lineage.until(branch.child)).flatten();
        match branch_point(plan, branch, known.as_ref().or(own), verifier) {
            Ok(_) => verified.problems.extend(strays(plan, branch)),
            Err(problem) => verified.problems.push(problem),
        }
    }
    verified
}

/// Files of a timeline for segments before the one in which it begins, by its history.
fn early_files<'p>(plan: &'p Plan, branch: &Branch) -> impl Iterator<Item = &'p Segment> {
    let Branch { child, at, .. } = *branch;
    let first = at.0 / u64::from(plan.geometry.segment_bytes);
    plan.files.range((child, 0)..(child, first)).filter_map(|(_, files)| files.first())
}

/// Problems of such files, where the records do not contradict the history.
fn strays(plan: &Plan, branch: &Branch) -> Vec<Problem> {
    let Branch { child, at, .. } = *branch;
    let bytes = u64::from(plan.geometry.segment_bytes);
    let files = early_files(plan, branch);
    let problem = |file: &Segment| {
        let expected = format!("no segment of timeline {child}, which begins at {at}");
        let found = "a file named for an earlier one".to_owned();
        let problem = Problem::of_file(ProblemKind::PageTimeline, &file.file(), expected, found);
        Problem { lsn: Some(Lsn(file.number.saturating_mul(bytes))), ..problem }
    };
    files.filter(|file| file.claims_whole_segment()).map(problem).collect()
}

/// Adds what is wrong with the segments of a timeline that are not counted: of another timeline than the one
/// that is followed, or of an ancestor after the place where it was left.
fn timeline(
    plan: &Plan,
    lineage: &Lineage,
    counted: &BTreeSet<Key>,
    verifier: &Verifier<'_>,
    verified: &mut Verified,
) {
    let bytes = plan.geometry.segment_bytes;
    let timeline = lineage.timeline();
    let own = plan.files.range((timeline, 0)..=(timeline, u64::MAX));
    let numbers = own.map(|((_, number), _)| *number);
    let ours = |number: &u64| {
        lineage.of_file(*number, bytes) == timeline
            && !counted.contains(&(timeline, *number))
            && !plan.is_replaced_partial(&(timeline, *number))
    };
    let numbers: Vec<u64> = numbers.filter(ours).collect();
    let Some(&first) = numbers.first() else { return };
    let context = before(plan, lineage, first);
    let target = Lsn(first * u64::from(bytes));
    let own = numbers.iter().filter_map(|number| file(plan, timeline, *number));
    let own: Vec<Segment> = own.collect();
    let segments: Vec<Segment> = context.into_iter().chain(own.iter().cloned()).collect();
    let outcome = verifier.read_in(plan, &segments, lineage);
    let reaches = |problem: &Problem| {
        let end = problem.skipped().map(|skipped| skipped.end);
        match problem.lsn {
            // Seen in ours, and the segment before it is blamed.
            _ if matches!(problem.elsewhere, Some(Elsewhere::SeenAt(at)) if at >= target) => true,
            Some(lsn) => lsn >= target || end > Some(target) || is_hole(problem),
            None => own.iter().any(|segment| segment.file() == problem.segment),
        }
    };
    let file_at = |lsn: Lsn| own.iter().find(|file| file.number == lsn.0 / u64::from(bytes));
    let newer = outcome.of_newer_timelines(lineage).filter_map(|problem| {
        let segment = problem.lsn.and_then(file_at)?.file();
        Some(Problem { segment, ..problem })
    });
    let newer: Vec<Problem> = newer.collect();
    let mut problems = outcome.problems;
    problems.retain(|problem| !newer.iter().any(|newer| is_behind(newer, problem, bytes)));
    problems.extend(newer);
    blame_the_last(&mut problems, plan, lineage, verifier);
    blame_the_fork(&mut problems, plan, lineage);
    verified.problems.extend(problems.into_iter().filter(reaches));
    verified.holes.extend(outcome.holes);
}

/// Whether a problem is that a segment does not go on with the file before it, in which another one is: the
/// segment is what it should be.
fn is_behind(file: &Problem, problem: &Problem, segment_bytes: u32) -> bool {
    let bytes = u64::from(segment_bytes);
    let next = file.lsn.map(|lsn| lsn.0 / bytes + 1);
    let begins = |lsn: Lsn| lsn.0 % bytes <= LONG_HEADER_BYTES as u64;
    matches!(problem.kind, ProblemKind::PrevLink | ProblemKind::Continuation)
        && problem.lsn.is_some_and(|lsn| begins(lsn) && Some(lsn.0 / bytes) == next)
}

fn is_hole(problem: &Problem) -> bool {
    problem.kind == ProblemKind::MissingSegment
}

/// The nearest segment before `number` in this history, and those before it in which the record begins that
/// goes through it. A `.partial` of which a newer timeline has the whole segment is none of them, where
/// nothing is before it: a server archives it last, so that it outlives the segments of its timeline.
fn before(plan: &Plan, lineage: &Lineage, number: u64) -> Vec<Segment> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let adjacent = Around { plan, lineage }.before(number);
    let is_left_over =
        |segment: &Segment| plan.is_replaced_partial(&(segment.timeline, segment.number));
    let nearest = lineage.spans().rev().find_map(|(timeline, span)| {
        // The segment in which a newer timeline begins is that one's.
        let end = (span.end.0 / bytes).min(number);
        let from = (span.start.0 / bytes).min(end);
        let own = plan.files.range((timeline, from)..(timeline, end)).rev();
        own.filter_map(|(_, files)| files.first()).find(|file| !is_left_over(file)).cloned()
    });
    match nearest {
        None if adjacent.iter().all(is_left_over) => Vec::new(),
        nearest if adjacent.is_empty() => nearest.into_iter().collect(),
        _ => adjacent,
    }
}

/// The file that is read for a segment.
fn file(plan: &Plan, timeline: u32, number: u64) -> Option<Segment> {
    plan.files.get(&(timeline, number))?.first().cloned()
}

/// What the records say of a history: that it is right, nothing, or that it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Proof {
    Right,
    Unknown,
    Wrong,
}

/// Whether a timeline begins where the last of its `ancestors` ends, whatever the plan takes for them.
/// Without segments of the timeline nothing tells.
pub(super) fn proof(
    plan: &Plan,
    timeline: u32,
    ancestors: &[Ancestor],
    verifier: &Verifier<'_>,
) -> Proof {
    let lineage = Lineage::from_ancestors(timeline, ancestors);
    let parent = lineage.parent().filter(|_| plan.lineage_of(timeline).is_some());
    let Some(parent) = parent else { return Proof::Unknown };
    let branch = Branch { child: timeline, parent, at: lineage.begin(), history: timeline };
    match branch_point(plan, &branch, Some(&lineage), verifier) {
        Ok(true) => Proof::Right,
        Ok(false) => Proof::Unknown,
        Err(_) => Proof::Wrong,
    }
}

/// Checks that a timeline begins where a history file says it does; `false`: nothing tells. `lineage`: that
/// of the timeline, if there are segments of it.
fn branch_point(
    plan: &Plan,
    branch: &Branch,
    lineage: Option<&Lineage>,
    verifier: &Verifier<'_>,
) -> Result<bool, Problem> {
    let (range_start, range_end) = (verifier.scope.start, verifier.scope.end);
    if !(range_start..range_end).contains(&branch.at) {
        return Ok(false);
    }
    let begun = |file: &&Segment| {
        lineage.is_none_or(|lineage| !is_of_older_timelines(plan, file, lineage, verifier))
    };
    let early = early_files(plan, branch).filter(begun).last();
    match (early, begins_there(plan, branch, lineage, verifier)) {
        (None, result) | (Some(_), result @ Ok(true)) => result,
        // Nothing proves that the history is right, and not the name of that segment.
        (Some(segment), _) => {
            let found = format!("{}, a segment that begins earlier", segment.file());
            Err(other_branch(branch, found))
        }
    }
}

/// The problem of a history that the records, or other files, contradict.
fn other_branch(branch: &Branch, found: String) -> Problem {
    let Branch { child, parent, at, history } = *branch;
    let expected = format!("timeline {child}, which leaves timeline {parent} at {at}");
    let file = history::name_of(history);
    let problem = Problem::of_file(ProblemKind::History, &file, expected, found);
    Problem { lsn: Some(at), ..problem }
}

/// The same by the records around the place.
fn begins_there(
    plan: &Plan,
    branch: &Branch,
    lineage: Option<&Lineage>,
    verifier: &Verifier<'_>,
) -> Result<bool, Problem> {
    let Branch { child, parent, at, .. } = *branch;
    let number = at.0 / u64::from(plan.geometry.segment_bytes);
    let (Some(lineage), Some(own)) = (lineage, file(plan, child, number)) else {
        return Ok(false);
    };
    // The record may begin or end in a neighbour.
    let around = [number.checked_sub(1), Some(number), number.checked_add(1)];
    let around = around.into_iter().flatten();
    let segments: Vec<Segment> = around
        .filter_map(|near| file(plan, lineage.of_file(near, plan.geometry.segment_bytes), near))
        .collect();
    let outcome = verifier.read(&segments, lineage);
    // Damage at this place is reported as such, and WAL that ends before it says nothing.
    // Nor does a file that is cut, or is another one, from somewhere before it on.
    let is_broken_before = |problem: &Problem| {
        problem.segment == own.file() && problem.lsn.is_some_and(|lsn| lsn <= at)
    };
    let mut problems = outcome.problems.iter();
    let covered = problems.any(|problem| problem.touches(at) || is_broken_before(problem));
    // At the first byte of a page its header comes first.
    let first = plan.geometry.first_byte(at);
    if covered || outcome.observer.has_lost(first) || outcome.ending.lsn <= first {
        return Ok(false);
    }
    // Its own history may be missing.
    if lineage.begin() == at
        && let Some(problem) = never_begins(&own, lineage, verifier)
    {
        return Err(problem);
    }
    // Its file ends before the place, and the next one tells.
    let begin = number * u64::from(plan.geometry.segment_bytes);
    let ends_before = |problem: &Problem| match problem.elsewhere {
        Some(Elsewhere::Apart { last, .. }) => (begin..at.0).contains(&last.0),
        _ => false,
    };
    if outcome.problems.iter().any(ends_before) {
        return Ok(false);
    }
    let checked = outcome.observer.check(parent, child, at, &plan.geometry);
    checked.map(|()| true).map_err(|found| other_branch(branch, found))
}

/// The problem of a file with records of an older timeline behind the place where its own begins, and none
/// that begins it.
fn never_begins(segment: &Segment, lineage: &Lineage, verifier: &Verifier<'_>) -> Option<Problem> {
    let alone = verifier.read(std::slice::from_ref(segment), lineage);
    let (lsn, page) = alone.last_page?;
    let (begin, own) = (lineage.begin(), segment.timeline);
    let is_older_to_the_end = page < lineage.of_page(lsn) && lineage.of_page(lsn) == own;
    // Its last one may be an XLOG_SWITCH, in the page that was copied from the older timeline, or before it.
    let other = alone.last.filter(|last| last.lsn >= begin || last.header.is_switch());
    let found = match other.filter(|_| alone.observer.begin_of(own).is_none()) {
        _ if is_older_to_the_end => format!("timeline {page} to the end"),
        Some(last) => format!("timeline {page} up to {}", last.lsn),
        None => return None,
    };
    let expected = format!("timeline {own} from {begin} on");
    let problem = Problem::of_file(ProblemKind::PageTimeline, &segment.file(), expected, found);
    Some(Problem { lsn: Some(begin), ..problem })
}
