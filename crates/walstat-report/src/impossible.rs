//! Records that are whole and say what cannot be, where a server stops: that they replace another record than
//! the torn one before them, or that they are of another timeline than their place.

use std::ops::Range;
use walstat_analyse::counters::RestoreInput;
use walstat_analyse::replay_points::Replacing;
use walstat_format::lsn::Lsn;
use walstat_format::payload::timeline::Switch;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// The problems of such records, ascending. `known`: those that are told already, which come first: what
/// stands after damage, or after a wrong history, proves nothing.
pub fn impossible(plan: &Plan, (backups, reach): &RestoreInput, known: &[Problem]) -> Vec<Problem> {
    let page = plan.geometry.page_bytes;
    let replacing = reach.replacing().iter().filter(|it| it.is_mismatched(page));
    let replacing = replacing.filter_map(|it| wrong_replacement(plan, it, known));
    let are_histories_right = !known
        .iter()
        .any(|it| matches!(it.kind, ProblemKind::History | ProblemKind::MissingHistory));
    let timelines = backups.timelines.iter().filter(|_| are_histories_right);
    let timelines = timelines.filter_map(|(lsn, switch)| wrong_timeline(plan, *lsn, *switch));
    let mut problems: Vec<Problem> = replacing.chain(timelines).collect();
    problems.sort_by_key(|problem| problem.lsn);
    problems
}

/// `mismatching overwritten LSN` (`VerifyOverwriteContrecord` in
/// `src/backend/access/transam/xlogrecovery.c`).
fn wrong_replacement(plan: &Plan, it: &Replacing, known: &[Problem]) -> Option<Problem> {
    let torn = it.torn?;
    let is_between = |lsn: Lsn| (torn..it.lsn).contains(&lsn);
    let is_known = known.iter().filter_map(|problem| problem.lsn).any(is_between);
    if is_known || !is_without_holes(plan, torn..it.lsn) {
        return None;
    }
    let expected = format!("a record that replaces the torn one at {torn}");
    Some(problem(plan, it.lsn, expected, format!("one that replaces a record at {}", it.says)))
}

/// Whether all segments of a range are there.
fn is_without_holes(plan: &Plan, range: Range<Lsn>) -> bool {
    let number = |lsn: Lsn| lsn.0 / u64::from(plan.geometry.segment_bytes);
    let (first, last) = (number(range.start), number(range.end));
    let is_inside = |number: u64| (first..=last).contains(&number);
    let there = plan.segments.iter().filter(|segment| is_inside(segment.number)).count() as u64;
    there == last - first + 1
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
        problem(plan, lsn, expected, format!("one of timeline {to}, after timeline {from}"))
    })
}

fn problem(plan: &Plan, lsn: Lsn, expected: String, found: String) -> Problem {
    let segment = plan.segment_name(lsn);
    let problem = Problem::of_file(ProblemKind::RecordBody, &segment, expected, found);
    Problem { lsn: Some(lsn), ..problem }
}
