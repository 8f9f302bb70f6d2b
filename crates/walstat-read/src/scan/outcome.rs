//! The result of a scan, out of all its runs: every byte accounted for, the ending named, missing
//! segments reported, and files checked against what their names say they hold.

mod filename_check;
pub mod holes;
mod impossible;
mod neighbours;
mod never_begun;
mod unfetched;
mod verified;

use super::books::{Books, Heading};
use super::claims::Claims;
use super::damage::{Cause, Gap};
use super::ending::{self, Ending, EndingKind};
use super::observe::Observe;
use super::observer::Observer;
use super::run::{Last, Run};
use crate::input::plan::{Chain, Plan};
use crate::input::problem::{Problem, ProblemKind};
use holes::Holes;
use std::collections::BTreeSet;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_format::page::{LONG_HEADER_BYTES, PageFault};
use walstat_format::segment::NAME_DIGITS;

/// The result of a scan.
#[derive(Debug)]
pub struct Outcome<O> {
    /// Everything that is not in a counted record.
    pub books: Books,
    /// Bytes of the input, second copies included.
    pub input_bytes: u64,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What records say that may be impossible.
    pub claims: Claims,
    /// Where reading first met damage.
    pub first_damage: Option<Lsn>,
    /// How the WAL ends.
    pub ending: Ending,
    /// Segments that end here or before are full. What lies behind is the end of the WAL, or was not
    /// looked at.
    pub whole_to: Lsn,
    /// Behind the last record: the first page of each segment that is not the one that belongs there.
    pub bad_pages: Vec<Lsn>,
    /// The first segment that is not full, where it cannot be told whether the directory is an archive
    /// (in which it would be a problem) or a server's own.
    pub open: Option<String>,
    /// The last valid record.
    pub last: Option<Last>,
    /// Place and timeline of the last page that is whole.
    pub last_page: Option<(Lsn, u32)>,
    /// The first valid record in the range, before any filter.
    pub first: Option<Lsn>,
    /// After the last counted record.
    pub counted_end: Option<Lsn>,
    /// Commits that the filters left out.
    pub filtered_commits: u64,
    /// The part of the range asked for that the WAL does not cover.
    pub uncovered: Option<Problem>,
    /// SHA-1s in pgBackRest's names that do not hold, of segments that are whole: no problems.
    pub checksums_alone: Vec<Problem>,
    /// What is wrong with files that no server asks for, each a `.partial`: no problems.
    pub unfetched: Vec<Problem>,
    /// Where segments are missing.
    pub holes: Holes,
    /// What was counted.
    pub observer: O,
}

impl<O> Outcome<O> {
    /// The same, with what was counted turned into something else.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> Outcome<P> {
        Outcome {
            books: self.books,
            input_bytes: self.input_bytes,
            problems: self.problems,
            claims: self.claims,
            first_damage: self.first_damage,
            ending: self.ending,
            whole_to: self.whole_to,
            bad_pages: self.bad_pages,
            open: self.open,
            last: self.last,
            last_page: self.last_page,
            first: self.first,
            counted_end: self.counted_end,
            filtered_commits: self.filtered_commits,
            uncovered: self.uncovered,
            checksums_alone: self.checksums_alone,
            unfetched: self.unfetched,
            holes: self.holes,
            observer: change(self.observer),
        }
    }
}

/// Makes the result of a scan out of its runs, which lie before and after missing segments; what was
/// counted goes into `observer`, an empty one. `None` if there is no WAL in any of them.
pub fn conclude(plan: &Plan, runs: Vec<Run>, observer: Observer) -> Option<Outcome<Observer>> {
    if !runs.iter().any(Run::has_wal) {
        return None;
    }
    let mut outcome = conclude_chain(&plan.chain(), runs, observer);
    outcome.input_bytes += plan.duplicate_bytes;
    outcome.books.add(Heading::Duplicate, plan.duplicate_bytes);
    // A missing segment is told once: the plan knows of one that lies under a name that nobody asks for.
    let lost = |problem: &Problem| {
        (problem.kind == ProblemKind::MissingSegment).then(|| problem.segment.clone())
    };
    let told: BTreeSet<String> = outcome.problems.iter().filter_map(lost).collect_set();
    // So is a file with the pages of an older timeline, of which no page was read.
    let is_older = |problem: &&Problem| problem.kind == ProblemKind::PageTimeline;
    let older = outcome.problems.iter().filter(is_older).map(|problem| called(problem).to_owned());
    let older: BTreeSet<String> = older.collect_set();
    let new = |problem: &&Problem| {
        lost(problem).is_none_or(|segment| !told.contains(&segment))
            && !(is_older(problem) && older.contains(called(problem)))
    };
    let (accepted, others): (Vec<_>, Vec<_>) = plan
        .problems
        .iter()
        .filter(new)
        .cloned()
        .partition(|problem| holes::accepts(plan, problem));
    outcome.problems.extend(others);
    outcome.holes.accepted.extend(accepted);
    outcome.sort_problems();
    if plan.branch_point == Some(outcome.ending.lsn) {
        outcome.ending.kind = EndingKind::TimelineSwitch;
    }
    Some(outcome)
}

/// The same for any chain of segments: only what is wrong in them.
pub(crate) fn conclude_chain(
    chain: &Chain<'_>,
    runs: Vec<Run>,
    observer: Observer,
) -> Outcome<Observer> {
    let live = runs.iter().rposition(Run::has_wal);
    let begin = runs.first().map_or(Lsn(0), |run| run.start);
    let mut outcome = Outcome::new(begin, observer);
    let mut before: Option<Lsn> = None;
    for (index, run) in runs.into_iter().enumerate() {
        let missed = |end: &Lsn| {
            *end < run.start
                && (live.is_some_and(|live| index <= live)
                    || filename_check::is_missing_before(&outcome, chain, *end, &run))
        };
        match before.filter(missed) {
            Some(end) if run.begins_anew() => {
                outcome.holes.add_before_reset(chain, end..run.start);
            }
            Some(end) if chain.unfilled.iter().any(|hole| hole.range == (end..run.start)) => {
                outcome.holes.add_unfilled(chain, end..run.start);
            }
            Some(end) => outcome.problems.extend(outcome.holes.add(chain, end..run.start)),
            None => {}
        }
        let is_first = before.replace(run.end).is_none();
        let place = live.map_or(std::cmp::Ordering::Greater, |live| index.cmp(&live));
        outcome.take(chain, run, place, is_first);
    }
    filename_check::check(&mut outcome, chain);
    outcome.judge_types(chain);
    let last = outcome.last.map_or(Lsn(0), |last| last.lsn);
    neighbours::blame_one(&mut outcome.problems, chain, last);
    for problem in &mut outcome.problems {
        if let (true, Some(lsn)) = (problem.segment.is_empty(), problem.lsn) {
            problem.segment = unfetched::file_at(chain, lsn);
        }
    }
    verified::blame_the_next(&mut outcome.problems, chain);
    if chain.is_for_crash {
        outcome.forgive_servers();
    }
    outcome.set_unfetched_aside(chain);
    outcome.sort_problems();
    outcome
}

impl Outcome<Observer> {
    /// Adds a run; `place`: whether the WAL ends before it, in it or after it. Where records follow in a
    /// later run, a gap at its end is damage.
    fn take(&mut self, chain: &Chain<'_>, mut run: Run, place: std::cmp::Ordering, is_first: bool) {
        let (closed, last) = (place.is_lt(), place.is_eq());
        run.end_of_input(chain.geometry);
        let ending = ending::name(&run, chain.geometry, chain.is_standbys);
        if last {
            self.ending = ending;
            self.whole_to = filename_check::whole_to(&run, chain.geometry);
            self.bad_pages = run.gap.iter().flat_map(Gap::bad_pages).collect();
            self.last = run.last;
            self.last_page = run.last_page;
        }
        if let Some(gap) = run.lead_gap.take() {
            if begins_in_switch(&run, &gap, chain) {
                run.books.add(Heading::Switch, gap.counts.total());
            } else {
                run.gap_is_damage(&gap, run.first, chain.geometry);
            }
        }
        if let Some(gap) = run.gap.take() {
            let cut_by_missing = gap.cause == Cause::Cut && gap.seen_at == run.end;
            match () {
                // The missing segment is the problem, not the record that runs into it.
                () if closed && cut_by_missing => {
                    run.books.add(Heading::Damaged, gap.counts.total());
                }
                () if closed || ending.kind == EndingKind::Damage => {
                    run.gap_is_damage(&gap, None, chain.geometry);
                }
                () => run.books.merge(&gap.counts),
            }
        }
        self.books.merge(&run.lead.books);
        self.books.merge(&run.books);
        self.input_bytes += run.input_bytes;
        filename_check::say_once(&mut run.problems, chain.geometry);
        let damage = run.problems.iter().filter(|problem| problem.kind != ProblemKind::WalLevel);
        let damage = damage.filter_map(|problem| problem.lsn).min();
        self.first_damage = self.first_damage.or(damage);
        self.problems.append(&mut run.problems);
        // Runs lie before and after missing segments.
        self.claims.append(run.claims, None);
        self.first = self.first.or(run.first_in_range);
        self.counted_end = run.counted_end.or(self.counted_end);
        self.filtered_commits += run.filtered_commits;
        if is_first {
            // Taken as it is: where there is only one run, a copy would double the memory.
            self.observer = run.observer;
        } else {
            self.observer.merge(run.observer);
        }
    }
}

/// What a problem's file is called, to know it again: a page of another timeline is told of the segment,
/// and of the file as it is packed.
fn called(problem: &Problem) -> &str {
    let segment = problem.segment.get(..NAME_DIGITS);
    segment.filter(|_| problem.kind == ProblemKind::PageTimeline).unwrap_or(&problem.segment)
}

impl<O> Outcome<O> {
    /// What ends a restore: problems, and holes that are none. No backup is restored across them.
    pub fn in_the_way(&self) -> Vec<Problem> {
        let holes = self.holes.accepted.iter().chain(&self.holes.unfilled);
        self.problems.iter().chain(holes).cloned().collect()
    }

    /// The result before any run was added; the WAL begins at `begin`.
    pub fn new(begin: Lsn, observer: O) -> Outcome<O> {
        Outcome {
            books: Books::default(),
            input_bytes: 0,
            problems: Vec::new(),
            claims: Claims::default(),
            first_damage: None,
            ending: Ending::at(EndingKind::Zeroed, begin),
            whole_to: begin,
            bad_pages: Vec::new(),
            open: None,
            last: None,
            last_page: None,
            first: None,
            counted_end: None,
            filtered_commits: 0,
            uncovered: None,
            checksums_alone: Vec::new(),
            unfetched: Vec::new(),
            holes: Holes::default(),
            observer,
        }
    }

    /// Removes what is wrong only where a base backup is restored: a server that recovers from a crash has
    /// its tables.
    fn forgive_servers(&mut self) {
        self.problems.retain(|problem| problem.kind != ProblemKind::WalLevel);
    }

    /// Holds what was read against the range asked for: where it ends with that, it is no end of the WAL,
    /// whether or not what follows was at hand; and what it does not cover is noted.
    pub(crate) fn hold_against(&mut self, plan: &Plan, range: &Range<Lsn>) {
        let Range { start, end } = *range;
        let first = plan.bounds().start;
        let last = self.ending.lsn;
        if last >= end && [EndingKind::Switch, EndingKind::Shutdown].contains(&self.ending.kind) {
            self.ending.kind = EndingKind::Complete;
        }
        let covered = first <= start || start == Lsn(0);
        if covered && (end == Lsn::MAX || last >= end || self.whole_to >= end) {
            return;
        }
        let place = if covered { last } else { start };
        let to = if end == Lsn::MAX { "the end".to_owned() } else { end.to_string() };
        let hole = plan.end_in_hole.as_ref().map(|hole| {
            let (from, to) = (hole.start, Lsn(hole.end.0 - 1));
            match (plan.segment_name(from), plan.segment_name(to)) {
                (from, to) if from == to => format!("; {from} is missing"),
                (from, to) => format!("; {from} to {to} are missing"),
            }
        });
        let found = format!("{first} to {last}{}", hole.unwrap_or_default());
        let expected = format!("WAL from {start} to {to}");
        let segment = plan.segment_name(place);
        let kind = ProblemKind::RangeNotCovered;
        let problem = Problem::of_file(kind, &segment, expected, found);
        self.uncovered = Some(Problem { lsn: Some(place), ..problem });
    }

    /// Sets SHA-1s aside that do not hold where nothing else is wrong with the file: pgBackRest's
    /// `archive-get` does not compare them, and what a server reads is whole.
    pub(crate) fn set_checksums_alone_aside(&mut self) {
        let is_of_sha1 = |problem: &Problem| problem.kind == ProblemKind::ArchiveChecksum;
        let name = |problem: &Problem| problem.segment.get(..NAME_DIGITS).map(str::to_owned);
        let others = self.problems.iter().filter(|problem| !is_of_sha1(problem));
        let broken: BTreeSet<_> = others.map(name).collect_set();
        let is_alone =
            |problem: &mut Problem| is_of_sha1(problem) && !broken.contains(&name(problem));
        self.checksums_alone.extend(self.problems.extract_if(.., is_alone));
    }

    /// Adds problems that were found elsewhere, except those that it has already.
    pub(crate) fn add_problems(&mut self, problems: Vec<Problem>) {
        let identity = |problem: &Problem| (problem.kind, problem.lsn, called(problem).to_owned());
        let mut known: BTreeSet<_> = self.problems.iter().map(identity).collect_set();
        self.problems
            .extend(problems.into_iter().filter(|problem| known.insert(identity(problem))));
        self.sort_problems();
    }

    fn sort_problems(&mut self) {
        // The order does not depend on that in which files were looked at.
        self.problems.order_by(|a, b| {
            let order = |problem: &Problem| (problem.lsn, problem.kind.name());
            order(a).cmp(&order(b)).then_with(|| a.segment.cmp(&b.segment))
        });
    }
}

/// Whether the range begins in the rest of a segment after an `XLOG_SWITCH`: nothing but zero pages up
/// to the first record of the next segment.
fn begins_in_switch(run: &Run, gap: &Gap, chain: &Chain<'_>) -> bool {
    let segment = u64::from(chain.geometry.segment_bytes);
    let first = run.first.map_or(0, |first| first.lsn.0);
    let zeros = gap.counts.get(Heading::Zero) + gap.counts.get(Heading::PageHeader);
    gap.cause == Cause::Page(PageFault::Zero)
        && !gap.start.0.is_multiple_of(segment)
        && run.lead.books.total() == 0
        && zeros == gap.counts.total()
        && first % segment == LONG_HEADER_BYTES as u64
}
