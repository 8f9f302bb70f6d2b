//! A name is a promise: what a file under a segment's full name must hold, where its records end
//! before it does. What may be open is decided by where it lies.

use super::damage::{Cause, Gap};
use super::ending::EndingKind;
use super::outcome::Outcome;
use super::run::Run;
use crate::input::plan::{Chain, Segment};
use crate::input::probe::NotWal;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::taken_for::TakenFor;
use crate::wal::lsn::Lsn;
use crate::wal::page::Geometry;

/// Up to where segments are whole, after the last stretch with WAL: those that end here or before
/// are full of records, however the last of them goes on.
pub fn whole_to<O>(run: &Run<O>, geometry: &Geometry) -> Lsn {
    match &run.gap {
        None if run.range_end.is_some() => Lsn::MAX,
        None => run.end,
        Some(gap) => broken_from(gap, geometry),
    }
}

/// From where on something is wrong: not where a record begins, if it fails only after its segment.
fn broken_from(gap: &Gap, geometry: &Geometry) -> Lsn {
    let segment = u64::from(geometry.segment_bytes);
    let end = Lsn((gap.start.0 / segment + 1).saturating_mul(segment));
    let crosses = gap.start.0.saturating_add(u64::from(gap.record_bytes.unwrap_or(0))) > end.0;
    match &gap.cause {
        _ if gap.seen_at > gap.start => gap.seen_at,
        Cause::Checksum { .. } | Cause::Body(_) | Cause::Header(_) if crosses => end,
        _ => gap.start,
    }
}

/// Whether segments are missed that should lie between `end` and `next`, a stretch without WAL:
/// the WAL went on into them, or files after them promise that it did.
pub fn goes_on<O, P>(outcome: &Outcome<O>, chain: &Chain<'_>, end: Lsn, next: &Run<P>) -> bool {
    let held = |segment: &Segment| {
        let (start, _) = chain.span(segment);
        (next.start..next.end).contains(&start) && segment.must_be_full()
    };
    outcome.last.is_some() && outcome.whole_to >= end || chain.segments.iter().any(held)
}

/// Says what is open and must not be, and what stands in for a segment and cannot.
pub fn hold<O>(outcome: &mut Outcome<O>, chain: &Chain<'_>) {
    let mut problems = Vec::new();
    for segment in chain.segments {
        let (start, end) = chain.span(segment);
        if end <= outcome.whole_to || !segment.is_promised() {
            continue;
        }
        match &segment.first_page {
            _ if is_told(outcome, segment, start, end) => {}
            _ if segment.must_be_full() => problems.push(open_segment(outcome, segment, start)),
            // Neither written nor recycled: what is this?
            Err(reason) if start >= outcome.whole_to && *reason != NotWal::Zeros => {
                let (expected, found) = ("a WAL segment".to_owned(), reason.to_string());
                let problem =
                    Problem::of_file(ProblemKind::NotWal, &segment.file(), expected, found);
                problems.push(Problem { lsn: Some(start), ..problem });
            }
            _ if segment.taken_for == TakenFor::Copy => {
                outcome.open.get_or_insert_with(|| segment.file());
            }
            _ => {}
        }
    }
    problems.extend(stand_ins(outcome, chain));
    outcome.problems.extend(problems);
}

/// Whether something was said of a file that tells that it is broken.
fn is_told<O>(outcome: &Outcome<O>, segment: &Segment, start: Lsn, end: Lsn) -> bool {
    outcome.problems.iter().any(|problem| match problem.segment.is_empty() {
        false => problem.segment == segment.file(),
        true => problem.lsn.is_some_and(|lsn| (start..end).contains(&lsn)),
    })
}

fn open_segment<O>(outcome: &Outcome<O>, segment: &Segment, start: Lsn) -> Problem {
    let at = outcome.ending.lsn.max(start);
    let found = match (&segment.first_page, outcome.ending.kind) {
        (Err(reason), _) if start >= outcome.whole_to => reason.to_string(),
        (Ok(page), _) if start >= outcome.whole_to && page.header.address != start => {
            format!("the content of {}", page.header.address)
        }
        (_, EndingKind::Zeroed) => format!("zeros from {at} on"),
        (_, EndingKind::Shutdown) => format!("nothing after the checkpoint of a shutdown, at {at}"),
        (_, EndingKind::Recycled) => format!("old content from {at} on"),
        (_, EndingKind::IncompleteRecord) => format!("a record that is not whole, at {at}"),
        _ => format!("no record at {at}"),
    };
    let expected = "records up to the segment's end, or an XLOG_SWITCH".to_owned();
    let problem = Problem::of_file(ProblemKind::OpenSegment, &segment.file(), expected, found);
    Problem { lsn: Some(at), ..problem }
}

/// Files that are not the full segment, and more follows: nobody restores over them.
fn stand_ins<O>(outcome: &Outcome<O>, chain: &Chain<'_>) -> Vec<Problem> {
    let goes_on = |segment: &&Segment| {
        let (start, _) = chain.span(segment);
        segment.is_promised() && (segment.must_be_full() || start < outcome.ending.lsn)
    };
    let last = chain.segments.iter().rfind(goes_on).map_or(0, |segment| segment.number);
    let stand_in =
        |segment: &&Segment| segment.named && !segment.is_promised() && segment.number < last;
    let problem = |segment: &Segment| {
        let (start, _) = chain.span(segment);
        let name = chain.segment_name(start);
        let (expected, found) = (format!("segment {name}"), format!("only {}", segment.file()));
        let problem = Problem::of_file(ProblemKind::MissingSegment, &name, expected, found);
        Problem { lsn: Some(start), ..problem }
    };
    chain.segments.iter().filter(stand_in).map(problem).collect()
}

/// What is wrong with a file is said of the file, and of the records in it that are lost: once is
/// enough, where the records tell more.
pub fn say_once(problems: &mut Vec<Problem>) {
    let file_faults = [ProblemKind::Truncated, ProblemKind::Unreadable];
    let of_records: Vec<(ProblemKind, u64, u64)> = problems
        .iter()
        .filter(|problem| problem.segment.is_empty() && file_faults.contains(&problem.kind))
        .filter_map(|problem| {
            let lsn = problem.lsn?.0;
            Some((problem.kind, lsn, lsn.saturating_add(problem.skipped_bytes)))
        })
        .collect();
    problems.retain(|problem| {
        let lsn = problem.lsn.map_or(0, |lsn| lsn.0);
        let said = |(kind, from, to): &(ProblemKind, u64, u64)| {
            problem.kind == *kind && (*from..=*to).contains(&lsn)
        };
        problem.segment.is_empty() || !of_records.iter().any(said)
    });
}
