//! All runs of a scan put together: the books closed, the ending named, what is missing said.

use super::books::{Books, Heading};
use super::damage::{Cause, Gap};
use super::ending::{self, Ending, EndingKind};
use super::record::Observe;
use super::run::Run;
use crate::input::plan::Plan;
use crate::input::problem::{Problem, ProblemKind};
use crate::wal::lsn::Lsn;
use crate::wal::page::{LONG_HEADER_BYTES, PageFault};

/// The result of a scan.
#[derive(Debug)]
pub struct Outcome<O> {
    /// Everything that is not in a counted record.
    pub books: Books,
    /// Bytes of the input, second copies included.
    pub input_bytes: u64,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Where reading first met damage.
    pub first_damage: Option<Lsn>,
    /// How the WAL ends.
    pub ending: Ending,
    /// The first valid record in the range, before any filter.
    pub first: Option<Lsn>,
    /// Behind the last counted record.
    pub counted_end: Option<Lsn>,
    /// Commits that the filters left out.
    pub filtered_commits: u64,
    /// What was counted.
    pub observer: O,
}

/// Puts the stretches of a scan together, into `observer`, an empty one. `None` if there is no WAL
/// in any of them.
pub fn conclude<O: Observe>(
    plan: &Plan,
    stretches: Vec<Run<O>>,
    observer: O,
) -> Option<Outcome<O>> {
    let live = stretches.iter().rposition(Run::has_wal)?;
    let mut outcome = Outcome {
        books: Books::default(),
        input_bytes: plan.duplicate_bytes,
        problems: plan.problems.clone(),
        first_damage: None,
        ending: Ending { kind: EndingKind::Complete, lsn: Lsn(0) },
        first: None,
        counted_end: None,
        filtered_commits: 0,
        observer,
    };
    outcome.books.add(Heading::Duplicate, plan.duplicate_bytes);
    let mut before: Option<Lsn> = None;
    for (index, run) in stretches.into_iter().enumerate() {
        if let Some(end) = before.filter(|&end| index <= live && end < run.start) {
            outcome.problems.push(missing(plan, end, run.start));
        }
        before = Some(run.end);
        outcome.take(plan, run, index < live, index == live);
    }
    for problem in &mut outcome.problems {
        if let (true, Some(lsn)) = (problem.segment.is_empty(), problem.lsn) {
            problem.segment = plan.segment_name(lsn);
        }
    }
    outcome.problems.sort_by_key(|problem| problem.lsn);
    if plan.branch_point == Some(outcome.ending.lsn) {
        outcome.ending.kind = EndingKind::TimelineSwitch;
    }
    Some(outcome)
}

impl<O: Observe> Outcome<O> {
    /// Adds a stretch. `closed`: records follow in a later one, so an open end is damage;
    /// `last`: the WAL ends in this one.
    fn take(&mut self, plan: &Plan, mut run: Run<O>, closed: bool, last: bool) {
        let version = plan.version();
        run.end_of_input();
        if last {
            self.ending = ending::name(&run, &plan.geometry);
        }
        if let Some(gap) = run.lead_gap.take() {
            match begins_in_switch(&run, &gap, plan) {
                true => run.books.add(Heading::Switch, gap.counts.total()),
                false => run.gap_is_damage(&gap, version),
            }
        }
        if let Some(gap) = run.gap.take() {
            let cut_by_missing = gap.cause == Cause::Cut && gap.seen_at == run.end;
            match () {
                // The missing segment is the problem, not the record that runs into it.
                () if closed && cut_by_missing => {
                    run.books.add(Heading::Damaged, gap.counts.total());
                }
                () if closed || self.ends_in_damage(last) => run.gap_is_damage(&gap, version),
                () => run.books.merge(&gap.counts),
            }
        }
        self.books.merge(&run.lead.books);
        self.books.merge(&run.books);
        self.input_bytes += run.input_bytes;
        let damage = run.problems.iter().filter_map(|problem| problem.lsn).min();
        self.first_damage = self.first_damage.or(damage);
        self.problems.append(&mut run.problems);
        self.first = self.first.or(run.first_in_range);
        self.counted_end = run.counted_end.or(self.counted_end);
        self.filtered_commits += run.filtered_commits;
        self.observer.merge(run.observer);
    }
}

impl<O> Outcome<O> {
    fn ends_in_damage(&self, last: bool) -> bool {
        last && self.ending.kind == EndingKind::Damage
    }
}

/// Whether a range begins in the rest of a segment behind a switch: nothing but zero pages up
/// to the first record of the next segment.
fn begins_in_switch<O>(run: &Run<O>, gap: &Gap, plan: &Plan) -> bool {
    let segment = u64::from(plan.geometry.segment_bytes);
    let first = run.first.map_or(0, |first| first.lsn.0);
    let zeros = gap.counts.get(Heading::Zero) + gap.counts.get(Heading::PageHeader);
    gap.cause == Cause::Page(PageFault::Zero)
        && !gap.start.0.is_multiple_of(segment)
        && run.lead.books.total() == 0
        && zeros == gap.counts.total()
        && first % segment == LONG_HEADER_BYTES as u64
}

/// Segments that should lie between two stretches and do not.
fn missing(plan: &Plan, from: Lsn, to: Lsn) -> Problem {
    let count = (to.0 - from.0) / u64::from(plan.geometry.segment_bytes);
    let first = plan.segment_name(from);
    let found = match count {
        1 => "no such file".to_owned(),
        _ => format!("none of {count} segments, up to {}", plan.segment_name(Lsn(to.0 - 1))),
    };
    Problem {
        kind: ProblemKind::MissingSegment,
        segment: first.clone(),
        lsn: Some(from),
        expected: format!("segment {first}"),
        found,
        skipped_bytes: 0,
    }
}
