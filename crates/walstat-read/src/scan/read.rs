//! From the files that were found to the result of a scan; again, where a server was writing meanwhile.

use super::alone::{Counted, Passed};
use super::changing::{Begun, Patience, have_changed, holes, is_cut, is_live, is_lost, is_young};
use super::copies;
use super::ending::EndingKind;
use super::observer::Observer;
use super::older_pages;
use super::outcome::{Outcome, conclude};
use super::parallel::{self, Ready};
use super::progress::Progress;
use super::run::Run;
use super::streamed::{self, Wanted};
use super::verify::{self, Proof, Verified, Verifier};
use crate::input::discover::Found;
use crate::input::error::{InputError, is_lack};
use crate::input::history::Ancestor;
use crate::input::listed::look_into;
use crate::input::placing::place;
use crate::input::plan::{Plan, plan};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::input::source::Source;
use crate::input::stamp::CLOCK_TICK;
use crate::input::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// Reads the WAL that was found, on up to `threads` threads. Each run of segments is counted by a copy
/// of `prototype`, a dimension that is configured and empty.
///
/// # Errors
///
/// When there is nothing to count: see [`InputError`]. What is wrong in the WAL itself is in
/// the outcome's problems.
pub fn read_found(
    mut found: Found,
    wanted: Wanted,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &Observer,
) -> Result<(Plan, Outcome<Observer>), InputError> {
    look_into(&mut found, &wanted.range);
    let streamed = streamed::pass(&mut found, &wanted, progress, prototype);
    if let Some(path) = streamed.unordered {
        return Err(InputError::Unordered { path });
    }
    let mut passed = Some(streamed.passed);
    let mut recall = |_: &Found| passed.take().unwrap_or_default();
    read_passed(found, &mut recall, wanted, threads, progress, prototype)
}

/// The same for WAL of which some segments were read before: those that `recall` knows of what was found, by
/// the index of the piece. It is asked again where files are looked for again.
///
/// # Errors
///
/// As those of [`read_found`].
pub(crate) fn read_passed(
    mut found: Found,
    recall: &mut dyn FnMut(&Found) -> BTreeMap<usize, Passed>,
    wanted: Wanted,
    threads: NonZeroUsize,
    progress: &Progress,
    prototype: &Observer,
) -> Result<(Plan, Outcome<Observer>), InputError> {
    let range = wanted.range.clone();
    let passed = recall(&found);
    let mut reading = Reading { wanted, threads, progress, prototype, passed };
    // What came through a stream does not come again.
    let tries_max = if found.streams.is_empty() && !found.is_merged { TRIES_MAX } else { 0 };
    let (mut tries, mut seen, mut patience) = (0, Vec::new(), Patience::default());
    let mut begun = Begun::default();
    let (plan, mut outcome) = loop {
        let mut plan = reading.plan_of(&mut found, range.start)?;
        begun.see(&plan);
        let holes = holes(&plan);
        if holes != seen && tries_max > 0 && is_live(&plan) && patience.waits() {
            seen = holes;
            found = again(&found, &range)?;
            reading.passed = recall(&found);
            continue;
        }
        let start = reading.wanted.range.start;
        reading.wanted.range.start = plan.begin.map_or(start, |begin| begin.max(start));
        plan.clip(&range)?;
        enough_descriptors(&plan, threads)?;
        let result = reading.read(&mut plan);
        tries += 1;
        // A server removes and renames segments while they are read, and `archive_command` writes one that is
        // not whole before it has ended: look again what there is.
        let sound = result.as_ref().is_ok_and(|outcome| is_sound(outcome, &plan));
        let mut is_other = || {
            begun.add(&plan, result.as_ref()) || have_changed(&plan, result.as_ref(), &mut patience)
        };
        if sound || tries >= tries_max || !is_other() {
            break (plan, result?);
        }
        found = again(&found, &range)?;
        begun.leave_out(&mut found);
        reading.passed = recall(&found);
    };
    progress.fail_if_lacking()?;
    found.fail_if_given_up()?;
    if range.start > Lsn(0) && outcome.first.is_none() {
        return Err(no_record(&plan, range.start));
    }
    outcome.set_checksums_alone_aside();
    outcome.judge_claims(&plan);
    outcome.blame_never_begun(&plan);
    let verifier = reading.verifier(&plan, &[]);
    verify::blame_the_copied(&mut outcome, &plan, &verifier);
    outcome.set_unfetched_aside(&plan.chain());
    if reading.wanted.limit.is_none() {
        outcome.hold_against(&plan, &range);
    }
    Ok((plan, outcome))
}

/// The same paths as they are now.
fn again(found: &Found, range: &Range<Lsn>) -> Result<Found, InputError> {
    let mut found = found.again()?;
    look_into(&mut found, range);
    Ok(found)
}

/// Whether every thread can have a file open: else what cannot be opened would pass for damage.
fn enough_descriptors(plan: &Plan, threads: NonZeroUsize) -> Result<(), InputError> {
    let files = plan.segments.iter().filter(|segment| {
        segment.source.is_file() && !storage::is_elsewhere(segment.source.path())
    });
    let mut open = Vec::new();
    for segment in files.take(threads.get()) {
        let path = segment.source.path();
        match storage::open(path) {
            Err(error) if is_lack(&error) => return Err(InputError::io(path, error)),
            // What is wrong with the file itself is told when it is read.
            file => open.push(file),
        }
    }
    Ok(())
}

/// How often WAL is looked for and read again if files disappear or grow meanwhile.
const TRIES_MAX: u32 = 10;

/// Whether nothing is damaged, and all files could be read to their ends.
fn is_sound(outcome: &Outcome<Observer>, plan: &Plan) -> bool {
    let mut problems = outcome.problems.iter().chain(&plan.problems);
    outcome.first_damage.is_none() && !problems.any(is_cut)
}

/// What is asked, and what came through streams.
struct Reading<'a> {
    wanted: Wanted,
    threads: NonZeroUsize,
    progress: &'a Progress,
    prototype: &'a Observer,
    passed: BTreeMap<usize, Passed>,
}

impl Reading<'_> {
    /// Of histories of one name that differ, follows the one that the records prove; where they prove none
    /// or several, the first of those by content. In which order they were found, and where, says nothing.
    fn settle_histories(&self, found: &mut Found) -> Result<(), InputError> {
        let rivals: Vec<(u32, BTreeSet<Vec<Ancestor>>)> =
            found.histories.rivals().map(|(timeline, rivals)| (timeline, rivals.clone())).collect();
        if rivals.is_empty() && found.histories.contradicting().is_empty() {
            return Ok(());
        }
        // Which file is which segment does not depend on histories: one plan does for all of them.
        let plan = self.plan(found)?;
        let bytes = u64::from(plan.geometry.segment_bytes);
        let present = plan.files.keys().map(|(timeline, _)| *timeline).collect();
        found.histories.mend_outvoted(&present, bytes);
        for (timeline, rivals) in rivals {
            let (_, best) = self.proven(&plan, timeline, rivals);
            found.histories.follow(timeline, best);
        }
        // Where a history contradicts that of a newer timeline, the records may tell which is wrong.
        for (newer, timeline) in found.histories.contradicting() {
            let ancestors = |of| found.histories.ancestors(of).unwrap_or_default().to_vec();
            let (own, mut before) = (ancestors(timeline), ancestors(newer));
            before.pop();
            let rivals = BTreeSet::from([own.clone(), before]);
            let (proof, best) = self.proven(&plan, timeline, rivals);
            // Places that no server minds are settled where the segments are known.
            let is_near = |(one, other): (&Ancestor, &Ancestor)| {
                one.timeline == other.timeline && one.end.0 / bytes == other.end.0 / bytes
            };
            let are_near =
                |other: &[Ancestor]| other.len() == own.len() && own.iter().zip(other).all(is_near);
            let is_other = proof == Proof::Right && best != own && !are_near(&best);
            found.histories.follow(timeline, own);
            if let Some(end) = best.last().filter(|_| is_other) {
                found.histories.correct(timeline, *end);
            }
        }
        Ok(())
    }

    /// The one of several histories of a timeline that the records prove, and how well they do.
    fn proven(
        &self,
        plan: &Plan,
        timeline: u32,
        rivals: BTreeSet<Vec<Ancestor>>,
    ) -> (Proof, Vec<Ancestor>) {
        let verifier = self.verifier(plan, &[]);
        let proven = rivals
            .into_iter()
            .map(|ancestors| (verify::proof(plan, timeline, &ancestors, &verifier), ancestors));
        proven.min().unwrap_or((Proof::Unknown, Vec::new()))
    }

    /// The plan of what was found, with its histories; `from`: where the range that is asked for begins.
    fn plan_of(&self, found: &mut Found, from: Lsn) -> Result<Plan, InputError> {
        found.fail_if_given_up()?;
        found.pass_over_read();
        found.judge_plain_histories();
        self.settle_histories(found)?;
        let mut plan = self.plan(found)?;
        self.correct_histories(&mut plan, found)?;
        plan.accept(&self.wanted.accepted_gaps, from)?;
        Ok(plan)
    }

    fn plan(&self, found: &Found) -> Result<Plan, InputError> {
        plan(found, place(found)?, self.wanted.timeline)
    }

    /// Corrects histories that name another place than the one where the timeline begins, or than those where
    /// its ancestors do, and the plan with them.
    fn correct_histories(&self, plan: &mut Plan, found: &mut Found) -> Result<(), InputError> {
        if self.wanted.limit.is_some() {
            return Ok(());
        }
        let verifier = self.verifier(plan, &[]);
        let strays = verify::strays_alone(plan, &verifier);
        if !strays.is_empty() {
            found.strays = strays;
            *plan = self.plan(found)?;
        }
        let mut begins = verify::beginnings(plan, &found.histories, &verifier);
        if verify::pass_over(plan, &mut found.histories, &begins) {
            *plan = self.plan(found)?;
            begins = verify::beginnings(plan, &found.histories, &verifier);
        }
        let is_settled = verify::settle_beginnings(plan, &mut found.histories, &begins);
        let wrong = verify::beginning_elsewhere(plan, &begins);
        let wrong = wrong.into_iter().filter(|(timeline, end)| {
            found.histories.ancestors(*timeline).and_then(<[Ancestor]>::last) != Some(end)
        });
        let wrong: Vec<_> = wrong.collect();
        wrong.iter().for_each(|(timeline, end)| found.histories.correct(*timeline, *end));
        let begins: BTreeMap<u32, Ancestor> =
            begins.into_iter().map(|(timeline, begin)| (timeline, begin.end)).collect_map();
        let are_others_corrected = found.histories.correct_ancestors(&begins);
        if is_settled || !wrong.is_empty() || are_others_corrected {
            *plan = self.plan(found)?;
        }
        Ok(())
    }

    fn verifier<'v>(&'v self, plan: &Plan, accepted_gaps: &'v [Range<Lsn>]) -> Verifier<'v> {
        let verified = Wanted { select: None, ..self.wanted.clone() };
        Verifier {
            scope: verified.scope_of(plan),
            threads: self.threads,
            progress: self.progress,
            passed: &self.passed,
            accepted_gaps,
        }
    }

    /// Reads the segments of the plan, and verifies all other files with a segment's full name.
    fn read(&mut self, plan: &mut Plan) -> Result<Outcome<Observer>, InputError> {
        self.forgive_aside(plan);
        let accepted_gaps = plan.accepted_gaps.clone();
        let verifier = self.verifier(plan, &accepted_gaps);
        copies::resolve(plan, &verifier);
        let Verified { mut problems, holes } = verify::others(plan, &verifier);
        verify::left_open::forgive(&mut problems, plan);
        let mut outcome = self.read_live(plan)?;
        verify::left_open::forgive(&mut outcome.problems, plan);
        let verifier = self.verifier(plan, &accepted_gaps);
        verify::blame_the_last(&mut outcome.problems, plan, &plan.lineage, &verifier);
        verify::blame_the_fork(&mut outcome.problems, plan, &plan.lineage);
        outcome.add_problems(problems);
        outcome.holes.extend(holes);
        outcome.tell_what_lies_there(plan);
        outcome.forget_holes_before_misnamed(plan);
        Ok(outcome)
    }

    /// Removes "cut off" problems of files that need not hold a whole segment: for what came through a
    /// stream it was not known when it was read.
    fn forgive_aside(&mut self, plan: &Plan) {
        for segment in
            plan.files.values().flatten().filter(|segment| !segment.claims_whole_segment())
        {
            if let Some(passed) = self.passed.get_mut(&segment.piece) {
                let cut = |problem: &Problem| problem.kind == ProblemKind::Truncated;
                passed.run.problems.retain(|problem| problem.segment.is_empty() || !cut(problem));
            }
        }
    }

    /// Reads what is counted. If a server was writing there meanwhile, the place where it had not
    /// finished writing looks like damage, but is gone when it is read again: then the WAL ends there.
    /// What is still there is damage.
    fn read_live(&mut self, plan: &mut Plan) -> Result<Outcome<Observer>, InputError> {
        let Range { start, end } = self.wanted.range;
        let outcome = self.read_once(plan, end)?;
        let Some(damage) = outcome.first_damage else { return Ok(outcome) };
        let settled = !is_being_written(plan, damage) && !was_just_written(plan, damage);
        // What came through a stream does not come again.
        let streamed = plan.segments.iter().any(|s| matches!(s.source, Source::Streamed(..)));
        if settled || streamed || files_at(plan, damage).any(is_lost) {
            return Ok(outcome);
        }
        // A write within the last tick of the file system's clock leaves no trace: look again.
        std::thread::sleep(CLOCK_TICK);
        self.forget_at(plan, damage);
        let seen = outcome.last.map_or(Lsn(0), |last| last.lsn);
        let outcome = self.read_once(plan, end)?;
        let moved = outcome.first_damage.filter(|&again| again != damage);
        let Some(moved) = moved.filter(|&moved| may_be_overtaken(plan, moved, seen)) else {
            return Ok(outcome);
        };
        plan.clip(&(start..moved))?;
        // What was read before was read beyond that place, too.
        self.passed.clear();
        let mut outcome = self.read_once(plan, moved)?;
        outcome.ending.kind = EndingKind::IncompleteRecord;
        Ok(outcome)
    }

    /// What was read before is read again at a place.
    fn forget_at(&mut self, plan: &Plan, lsn: Lsn) {
        for segment in files_at(plan, lsn) {
            self.passed.remove(&segment.piece);
        }
    }

    /// What a segment gave that was read before. What is packed is small, and may be asked for again; and so
    /// may its run, to verify others with.
    fn take(&mut self, segment: &Segment) -> Option<(Run, Option<Counted>)> {
        let Passed { run, counted, .. } = self.passed.get_mut(&segment.piece)?;
        let counted = match counted {
            Counted::Plain(_) => std::mem::replace(counted, Counted::Taken),
            Counted::Packed(packed) => Counted::Packed(packed.clone()),
            Counted::Taken => return None,
        };
        Some((run.clone(), Some(counted)))
    }

    fn read_once(&mut self, plan: &Plan, end: Lsn) -> Result<Outcome<Observer>, InputError> {
        let start = self.wanted.range.start;
        let wanted = Wanted { range: start..end, ..self.wanted.clone() };
        let scope = wanted.scope_of(plan);
        let passed = |segment: &Segment| Some((segment.number, self.take(segment)?));
        let mut ready: Ready = plan.segments.iter().filter_map(passed).collect();
        let Reading { threads, progress, prototype, .. } = *self;
        let (segments, lineage) = (&plan.segments, &plan.lineage);
        older_pages::set_aside(&mut ready, plan, segments, lineage, &scope, prototype);
        let runs = parallel::scan(&plan.segments, ready, &scope, threads, progress, prototype);
        conclude(plan, runs, prototype.clone()).ok_or_else(|| no_record(plan, start))
    }
}

/// Whether a server may have overtaken the reading at `lsn`: it writes in order, so whatever comes
/// before a record that was `seen` earlier is there by now. Segments in an archive are never written
/// piece by piece, except while they are being copied.
fn may_be_overtaken(plan: &Plan, lsn: Lsn, seen: Lsn) -> bool {
    let number = lsn.0 / u64::from(plan.geometry.segment_bytes);
    lsn > seen && !plan.segments.iter().any(|s| s.number >= number && s.must_be_full())
}

/// The files in which a record at `lsn` can lie: its own segment's and the next one's.
fn files_at(plan: &Plan, lsn: Lsn) -> impl Iterator<Item = &Segment> {
    let number = lsn.0 / u64::from(plan.geometry.segment_bytes);
    let near = plan.segments.iter().filter(move |s| (number..=number + 1).contains(&s.number));
    near.filter(|segment| segment.source.is_file())
}

/// Whether a file at `lsn` was written to since the plan was made.
fn is_being_written(plan: &Plan, lsn: Lsn) -> bool {
    files_at(plan, lsn).any(|segment| segment.source.modified() != segment.modified)
}

/// Whether a file at `lsn` was written to so shortly before the plan was made that a later write may
/// have the same modification time.
fn was_just_written(plan: &Plan, lsn: Lsn) -> bool {
    files_at(plan, lsn).any(is_young)
}

fn no_record(plan: &Plan, start: Lsn) -> InputError {
    let path = plan.segments.first().map(|segment| segment.source.path().to_owned());
    let path = path.unwrap_or_default();
    let Range { start: first, end: last } = plan.bounds();
    if start > Lsn(0) {
        InputError::NothingInRange { path, start, first, last }
    } else {
        InputError::NoRecord { path, first, last }
    }
}
