//! Records that are whole and say what cannot be, where a server stops: that they replace another record than
//! the torn one before them, that they are of another timeline than their place, or that they are of a type
//! which its release does not have.

use super::Outcome;
use crate::input::plan::{Chain, Plan};
use crate::input::problem::{Problem, ProblemKind};
use crate::scan::claims::Replacing;
use walstat_format::lsn::Lsn;
use walstat_format::payload::timeline::Switch;
use walstat_format::rmgr;

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
        let timelines = claims.timelines.iter().filter(|_| are_histories_right);
        let timelines = timelines.filter_map(|(lsn, switch)| wrong_timeline(plan, *lsn, *switch));
        let mut problems: Vec<Problem> = replacing.chain(timelines).collect();
        for problem in &mut problems {
            problem.segment = problem.lsn.map(|lsn| plan.segment_name(lsn)).unwrap_or_default();
        }
        self.add_problems(problems);
    }

    /// Adds those of types that the release does not have.
    pub(super) fn judge_types(&mut self, chain: &Chain<'_>) {
        let release = chain.geometry.version.name;
        let unknown = self.claims.unknown.iter();
        let unknown = unknown.map(|((rmgr, info), lsn)| unknown_type(release, *lsn, *rmgr, *info));
        self.problems.extend(unknown);
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
fn wrong_timeline(plan: &Plan, lsn: Lsn, Switch { from, to }: Switch) -> Option<Problem> {
    let lineage = &plan.lineage;
    // Without a history, its first segment may begin with any older one.
    let is_known = lineage.parent().is_some() || lineage.timeline() == 1;
    let expected = lineage.of_page(lsn);
    let is_possible = if is_known { to == expected } else { to <= expected };
    (!is_possible).then(|| {
        let expected = format!("a record of timeline {expected}");
        problem(lsn, expected, format!("one of timeline {to}, after timeline {from}"))
    })
}

/// `heap2_redo: unknown op code 224`, in the redo function of each resource manager: it ends recovery.
fn unknown_type(release: &str, lsn: Lsn, rmgr: u8, info: u8) -> Problem {
    let name = rmgr::name(rmgr);
    let expected = format!("an op code that {name} has in PostgreSQL {release}");
    problem(lsn, expected, format!("unknown op code {info} (0x{info:02X})"))
}

/// The segment is looked up by the LSN.
fn problem(lsn: Lsn, expected: String, found: String) -> Problem {
    let problem = Problem::of_file(ProblemKind::RecordBody, "", expected, found);
    Problem { lsn: Some(lsn), ..problem }
}
