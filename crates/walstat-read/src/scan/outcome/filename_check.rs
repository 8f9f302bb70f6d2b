//! Files whose records end before the segment does. In an archive, a file with a segment's full name
//! has to be full: the server archives a segment when it has finished it. In a server's own directory
//! the newest segment may be unfinished; elsewhere it cannot be told.

use super::Outcome;
use crate::input::input_kind::InputKind;
use crate::input::names::Standing;
use crate::input::plan::Chain;
use crate::input::probe::NotWal;
use crate::input::problem::{Problem, ProblemKind};
use crate::input::segment::Segment;
use crate::scan::damage::{Cause, Gap};
use crate::scan::ending::EndingKind;
use crate::scan::run::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::{Geometry, PageFault};

/// Up to where segments are full of records; `run`: the last one with WAL. The last record may go on
/// after that, whether or not its rest is valid.
pub(super) fn whole_to(run: &Run, geometry: &Geometry) -> Lsn {
    match &run.gap {
        None if run.range_end.is_some() => Lsn::MAX,
        None => run.end,
        Some(gap) => broken_from(gap, geometry),
    }
}

/// From where on something is wrong. If a record is wrong only in the next segment, that is where this
/// segment ends, not where the record begins.
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

/// Whether a segment behind a damaged one is filled by a record that goes on after it, as its own pages say:
/// then its file is as it should be, wherever that record ends.
fn is_filled<O>(outcome: &Outcome<O>, chain: &Chain<'_>, segment: &Segment) -> bool {
    let Range { start, end } = chain.span(segment);
    start > outcome.whole_to
        && segment.lead_end(chain.geometry) > Some(end)
        && !outcome.bad_pages.iter().any(|page| (start..end).contains(page))
}

/// Whether segments are missing between `end` and `next`, a run without WAL: the WAL went on into them,
/// or there is a file after them that has to be full.
pub(super) fn is_missing_before<O>(
    outcome: &Outcome<O>,
    chain: &Chain<'_>,
    end: Lsn,
    next: &Run,
) -> bool {
    let must_be_full = |segment: &Segment| {
        let start = chain.span(segment).start;
        (next.start..next.end).contains(&start) && segment.must_be_full()
    };
    outcome.last.is_some() && outcome.whole_to >= end || chain.segments.iter().any(must_be_full)
}

/// Reports segments that have to be full and are not, and files that lie in the place of a segment and
/// cannot replace it, like a `.partial`.
pub(super) fn check<O>(outcome: &mut Outcome<O>, chain: &Chain<'_>) {
    let mut problems = Vec::new();
    let told = Reported::of(&outcome.problems);
    for segment in chain.segments {
        let Range { start, end } = chain.span(segment);
        if end <= outcome.whole_to || !segment.claims_whole_segment() {
            continue;
        }
        match &segment.first_page {
            _ if told.has(segment, start..end) => {}
            _ if is_filled(outcome, chain, segment) => {}
            _ if segment.must_be_full() => problems.push(open_segment(outcome, segment, start)),
            // Not zeros, and no page of WAL, old or new.
            Err(reason) if start >= outcome.whole_to && *reason != NotWal::Zeros => {
                let (expected, found) = ("a WAL segment".to_owned(), reason.to_string());
                let problem =
                    Problem::of_file(ProblemKind::NotWal, &segment.file(), expected, found);
                problems.push(Problem { lsn: Some(start), ..problem });
            }
            _ if segment.taken_for == InputKind::Copy => {
                outcome.open.get_or_insert_with(|| segment.file());
            }
            _ => {}
        }
    }
    problems.extend(misplaced(outcome, chain, &told));
    problems.extend(stand_ins(outcome, chain));
    outcome.problems.extend(problems);
}

/// Files with valid records after them that begin with zeros, or with another segment's first page, where
/// what is told of the WAL is the first such file alone. Not where a server writes: it may have made such a
/// file ready after its first page was looked at, and filled it before it was read.
fn misplaced<O>(outcome: &Outcome<O>, chain: &Chain<'_>, told: &Reported) -> Vec<Problem> {
    let after = outcome.last.map_or(Lsn(0), |last| last.lsn);
    let fault = |segment: &Segment| {
        let Range { start, end } = chain.span(segment);
        let is_written = segment.taken_for == InputKind::PgWal;
        let is_whole = segment.claims_whole_segment() && !is_written;
        if end > after || !is_whole || told.has(segment, start..end) {
            return None;
        }
        let fault = match &segment.first_page {
            Err(NotWal::Zeros) => PageFault::Zero,
            Ok(page) if page.header.address != start => {
                PageFault::Address { found: page.header.address }
            }
            _ => return None,
        };
        Some(Cause::Page(fault).problem_of(&segment.file(), start, chain.geometry))
    };
    chain.segments.iter().filter_map(fault).collect()
}

/// What has been reported: problems of which files, and of records at which places.
struct Reported {
    files: BTreeSet<String>,
    places: BTreeSet<Lsn>,
}

impl Reported {
    fn of(problems: &[Problem]) -> Reported {
        // A SHA-1 says nothing of what is wrong, and may be the wrong one.
        let problems = problems.iter().filter(|it| it.kind != ProblemKind::ArchiveChecksum);
        let (records, files): (Vec<_>, Vec<_>) =
            problems.partition(|problem| problem.segment.is_empty());
        Reported {
            files: files.into_iter().map(|problem| problem.segment.clone()).collect(),
            places: records.into_iter().filter_map(|problem| problem.lsn).collect(),
        }
    }

    /// Whether a problem of this file, or of a record in it, has been reported.
    fn has(&self, segment: &Segment, range: Range<Lsn>) -> bool {
        self.places.range(range).next().is_some() || self.files.contains(&segment.file())
    }
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

/// Files like a `.partial` in the place of a segment with more WAL after it: a restore stops there.
fn stand_ins<O>(outcome: &Outcome<O>, chain: &Chain<'_>) -> Vec<Problem> {
    let goes_on = |segment: &&Segment| {
        let start = chain.span(segment).start;
        segment.is_asked_for() && (segment.must_be_full() || start < outcome.ending.lsn)
    };
    let last = chain.segments.iter().rfind(goes_on).map_or(0, |segment| segment.number);
    let first = chain.segments.iter().find(|segment| segment.is_asked_for());
    let first = first.map_or(0, |segment| segment.number);
    // A file under an unusual name before all segments may be a leftover; a `.partial` was to become a
    // segment.
    let counts =
        |segment: &&Segment| segment.standing == Standing::Partial || segment.number > first;
    let stand_in =
        |segment: &&Segment| segment.named && !segment.is_asked_for() && segment.number < last;
    let problem = |segment: &Segment| {
        let start = chain.span(segment).start;
        let name = chain.segment_name(start);
        let (expected, found) = (format!("segment {name}"), format!("only {}", segment.file()));
        let problem = Problem::of_file(ProblemKind::MissingSegment, &name, expected, found);
        Problem { lsn: Some(start), ..problem }
    };
    chain.segments.iter().filter(stand_in).filter(counts).map(problem).collect()
}

/// A file that is cut off or unreadable is reported as a file, and by the record that is lost in it: keeps
/// only the record's problem, which says more, and copies to it how the file is fetched. Of a record that
/// runs through several such files the others are told.
pub(super) fn say_once(problems: &mut Vec<Problem>, geometry: &Geometry) {
    let file_faults = [ProblemKind::Truncated, ProblemKind::Unreadable];
    let place = |problem: &Problem| {
        let number = problem.lsn?.0 / u64::from(geometry.segment_bytes);
        Some((problem.kind.name(), number))
    };
    let of_records: BTreeSet<_> = problems
        .iter()
        .filter(|problem| problem.segment.is_empty() && file_faults.contains(&problem.kind))
        .filter_map(place)
        .collect_set();
    let of_files = problems.iter().filter(|problem| !problem.segment.is_empty());
    let of_files: BTreeMap<_, _> =
        of_files.filter_map(|problem| Some((place(problem)?, problem.fetched))).collect_map();
    for problem in problems.iter_mut().filter(|problem| problem.segment.is_empty()) {
        let fetched = place(problem).and_then(|place| of_files.get(&place));
        problem.fetched = fetched.copied().unwrap_or(problem.fetched);
    }
    problems.retain(|problem| {
        let said = place(problem).is_some_and(|place| of_records.contains(&place));
        problem.segment.is_empty() || !said
    });
}
