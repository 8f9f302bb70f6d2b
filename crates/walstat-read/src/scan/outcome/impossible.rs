//! Records that are whole and say what cannot be, where a server stops: that they replace another record than
//! the torn one before them, that they are of another timeline than their place, that they are of a type
//! which its release does not have, that they change other blocks than redo of their type reads, or that they
//! switch to the next segment and have data.

use super::Outcome;
use super::never_begun::older_records;
use super::unfetched::file_at;
use crate::input::plan::{Chain, Plan};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::timeline::Lineage;
use crate::scan::claims::Replacing;
use std::ops::Range;
use walstat_format::block::needed::ReferenceFault;
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::payload::timeline::Switch;
use walstat_format::rmgr::{self, RecordType};
use walstat_format::version::Version;

impl<O> Outcome<O> {
    /// Adds the problems of such records. All others are known by then: what stands after damage, or after a
    /// wrong history, proves nothing.
    pub(crate) fn judge_claims(&mut self, plan: &Plan) {
        let (claims, known) = (&self.claims, &self.problems);
        let page = plan.geometry.page_bytes;
        let replacing = claims.replacing.iter().filter(|it| it.is_mismatched(page));
        let replacing = replacing.filter_map(|it| wrong_replacement(it, known));
        let are_histories_right = !known
            .iter()
            .any(|it| matches!(it.kind, ProblemKind::History | ProblemKind::MissingHistory));
        let older = older_records(plan, known);
        let is_older = |lsn: Lsn| older.as_ref().is_some_and(|records| records.contains(&lsn));
        let timelines =
            claims.timelines.iter().filter(|(lsn, _)| are_histories_right && !is_older(*lsn));
        let begin = begin_of_oldest(plan);
        let timelines = timelines.filter(|(lsn, switch)| {
            !(begin.contains(lsn) && switch.to <= plan.lineage.of_page(*lsn))
        });
        let timelines =
            timelines.filter_map(|(lsn, switch)| wrong_timeline(&plan.lineage, *lsn, *switch));
        let newer = self.of_newer_timelines(&plan.lineage);
        let mut problems: Vec<Problem> = replacing.chain(timelines).chain(newer).collect();
        for problem in &mut problems {
            let file = |lsn| file_at(&plan.chain(), lsn);
            problem.segment = problem.lsn.map(file).unwrap_or_default();
        }
        self.add_problems(problems);
    }

    /// The problems of records that say they are of a newer timeline than all that a lineage has: whatever
    /// the histories say, no file of those has one.
    pub(crate) fn of_newer_timelines(&self, lineage: &Lineage) -> impl Iterator<Item = Problem> {
        let told = self.claims.timelines.iter();
        let newer = told.filter(|(_, switch)| switch.to > lineage.timeline());
        newer.filter_map(|(lsn, switch)| wrong_timeline(lineage, *lsn, *switch))
    }

    /// Adds those of types that the release does not have, switches with data, and those whose references
    /// are not what redo asks for.
    pub(super) fn judge_types(&mut self, chain: &Chain<'_>) {
        let version = chain.geometry.version;
        let unknown = self.claims.unknown.iter();
        let unknown =
            unknown.map(|((rmgr, info), lsn)| unknown_type(version.name, *lsn, *rmgr, *info));
        let long_switch = self.claims.long_switch.map(long_switch);
        let wrong = self.claims.wrong_references.iter();
        let wrong = wrong.map(|((rmgr, info), (lsn, fault))| {
            wrong_reference(*lsn, RecordType::of(*rmgr, *info, version), version, *fault)
        });
        self.problems.extend(unknown.chain(long_switch).chain(wrong));
    }
}

/// `mismatching overwritten LSN` (`VerifyOverwriteContrecord` in
/// `src/backend/access/transam/xlogrecovery.c`).
fn wrong_replacement(it: &Replacing, known: &[Problem]) -> Option<Problem> {
    let torn = it.torn?;
    let is_between = |lsn: Lsn| (torn..it.lsn).contains(&lsn);
    if known.iter().filter_map(|problem| problem.lsn).any(is_between) {
        return None;
    }
    let expected = format!("a record that replaces the torn one at {torn}");
    Some(problem(it.lsn, expected, format!("one that replaces a record at {}", it.says)))
}

/// `unexpected timeline ID in checkpoint record` (`checkTimeLineSwitch` and `xlog_redo` there). The timeline
/// before is looked at where one begins, and nowhere else: there the history is held against it.
fn wrong_timeline(lineage: &Lineage, lsn: Lsn, Switch { from, to }: Switch) -> Option<Problem> {
    let expected = lineage.of_page(lsn);
    (to != expected).then(|| {
        let expected = format!("a record of timeline {expected}");
        let before = if from == to { String::new() } else { format!(", after timeline {from}") };
        problem(lsn, expected, format!("one of timeline {to}{before}"))
    })
}

/// The first segment of the oldest timeline that the history knows of. It may begin with records of any older
/// one, unless that is the first of all.
fn begin_of_oldest(plan: &Plan) -> Range<Lsn> {
    let oldest = plan.lineage.spans().next().map(|(timeline, _)| timeline).filter(|it| *it != 1);
    let first = oldest.and_then(|it| plan.files.range((it, 0)..=(it, u64::MAX)).next());
    let first = first.and_then(|(_, files)| files.first());
    first.map_or(Lsn(0)..Lsn(0), |file| plan.chain().span(file))
}

/// A server writes none (`CopyXLogRecordToWAL` in `src/backend/access/transam/xlog.c`). One that reads it
/// goes on in the next segment (`XLogDecodeNextRecord` in `src/backend/access/transam/xlogreader.c`), whose
/// records link to others than this one.
fn long_switch(lsn: Lsn) -> Problem {
    let found = "one with data, after which a server reads nothing more of the segment";
    problem(lsn, "an XLOG_SWITCH without data".to_owned(), found.to_owned())
}

/// `heap2_redo: unknown op code 224`, in the redo function of each resource manager: it ends recovery.
fn unknown_type(release: &str, lsn: Lsn, rmgr: u8, info: u8) -> Problem {
    let name = rmgr::name(rmgr);
    let expected = format!("an op code that {name} has in PostgreSQL {release}");
    problem(lsn, expected, format!("unknown op code {info} (0x{info:02X})"))
}

/// `failed to locate backup block with ID 0` (`XLogReadBufferForRedoExtended` in
/// `src/backend/access/transam/xlogutils.c`), or what comes of blocks that no relation has.
fn wrong_reference(
    lsn: Lsn,
    record: RecordType,
    version: &Version,
    fault: ReferenceFault,
) -> Problem {
    let redo = format!("redo of {}/{}", rmgr::name(record.rmgr), record.name(version));
    let (expected, found) = match fault {
        ReferenceFault::Missing(id) => {
            (format!("a reference to block {id}, which {redo} reads"), "none of that id".to_owned())
        }
        ReferenceFault::Fork(id, fork) => {
            let fork = Fork::of(fork).map_or("", Fork::name);
            let expected = format!("block {id} in the fork that {redo} changes");
            (expected, format!("one in the fork {fork}"))
        }
        ReferenceFault::Block(id) => {
            (format!("the number of block {id}"), format!("{} (InvalidBlockNumber)", u32::MAX))
        }
        ReferenceFault::Relation(id) => {
            (format!("the relation file of block {id}"), "file number 0".to_owned())
        }
    };
    problem(lsn, expected, found)
}

/// The segment is looked up by the LSN.
fn problem(lsn: Lsn, expected: String, found: String) -> Problem {
    let problem = Problem::of_file(ProblemKind::RecordBody, "", expected, found);
    Problem { lsn: Some(lsn), ..problem }
}
