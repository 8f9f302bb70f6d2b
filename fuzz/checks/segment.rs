//! Pages of one to three segments: the books close, and any division into runs gives what one
//! run gives. Segments have a few pages only, so that a short input crosses many borders. Not for
//! files, names and archives: those are the targets `program` and `archive`.

use super::shape::{SEGMENTS, Shape};
use std::path::PathBuf;
use std::sync::Arc;
use walstat_analyse::clock::Clock;
use walstat_analyse::totals::RecordTable;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::input::input_kind::InputKind;
use walstat_read::input::names::Standing;
use walstat_read::input::plan::Plan;
use walstat_read::input::probe::NotWal;
use walstat_read::input::segment::Segment;
use walstat_read::input::source::{Bytes, Source};
use walstat_read::scan::books::Heading;
use walstat_read::scan::ending::EndingKind;
use walstat_read::scan::observe::Select;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::outcome::{Outcome, conclude};
use walstat_read::scan::pages::Pages;
use walstat_read::scan::progress::Progress;
use walstat_read::scan::reader::{Flow, Reader};
use walstat_read::scan::run::Run;
use walstat_read::scan::scope::Scope;
use walstat_read::scan::streamed::Wanted;

type Statistics = (RecordTable, Clock);

/// Lets resource managers with an even id pass.
#[derive(Debug)]
struct Even;

impl Select for Even {
    fn accepts(&self, record: &Record<'_>) -> bool {
        record.header.rmgr.is_multiple_of(2)
    }
}

/// Fails if the bytes show something wrong.
pub fn run(data: &[u8]) {
    let shape = Shape::of(data, None);
    let size = u64::from(shape.geometry.segment_bytes);
    if shape.first.checked_add(SEGMENTS as u64).and_then(|end| end.checked_mul(size)).is_none() {
        // No plan has segments there.
        return;
    }
    let (start, end) = shape.range;
    let wanted = Wanted {
        crc: shape.checked.then(Crc32c::detect),
        range: start..end,
        limit: shape.limit,
        select: shape.filter.then(|| Arc::new(Even) as _),
        ..Wanted::default()
    };
    let scope = wanted.scope(shape.geometry);
    let mut plan = Plan::new(shape.geometry);
    plan.timeline = shape.timeline;
    plan.segments = segments(&shape);
    if plan.clip(&(start..end)).is_err() {
        return;
    }
    let whole = read(&plan, &shape, &scope, 0, false);
    if let Some(whole) = &whole {
        check(&shape, whole);
    }
    if scope.limit.is_some() || (end < Lsn::MAX && !whole.as_ref().is_some_and(is_sound)) {
        // A limit makes one run of it. And one run reads on behind the end of the range while a
        // gap is open, to tell damage from the end; a run that begins in the gap cannot know.
        return;
    }
    // A bit for each border between two segments: there a run ends.
    for (cuts, from_right) in [(1, false), (2, false), (3, false), (3, true)] {
        let parts = read(&plan, &shape, &scope, cuts, from_right);
        match (&whole, parts) {
            (Some(whole), Some(parts)) => compare(whole, &parts),
            (None, None) => {}
            (whole, _) => panic!("WAL only {}", if whole.is_some() { "whole" } else { "divided" }),
        }
    }
}

fn segments(shape: &Shape) -> Vec<Segment> {
    let present = shape.segments.iter().enumerate().filter(|(_, bytes)| bytes.is_some());
    let segment = |(index, _)| Segment {
        number: shape.first + index as u64,
        timeline: shape.timeline,
        raw_bytes: None,
        modified: None,
        sha1: None,
        named: true,
        standing: Standing::Aside,
        taken_for: InputKind::Copy,
        compressed: false,
        first_page: Err(NotWal::Zeros),
        piece: index,
        source: Source::Streamed(PathBuf::from(format!("segment {index}")).into(), None),
    };
    present.map(segment).collect()
}

/// Reads all segments. Runs end where a segment is missing and where `cuts` has a bit; they are
/// joined from the left, or those of one stretch from the right.
fn read(
    plan: &Plan,
    shape: &Shape,
    scope: &Scope,
    cuts: u8,
    from_right: bool,
) -> Option<Outcome<Statistics>> {
    let follow = |a: &Segment, b: &Segment| a.number + 1 == b.number;
    let uncut = |_: &Segment, b: &Segment| cuts >> (b.number - shape.first - 1) & 1 == 0;
    let mut joined = Vec::new();
    for stretch in plan.segments.chunk_by(follow) {
        let runs = stretch.chunk_by(uncut).map(|task| read_run(task, shape, scope));
        let run = match from_right {
            false => runs.reduce(|before, run| before.join(run, scope)),
            true => runs.rev().reduce(|behind, run| run.join(behind, scope)),
        };
        joined.extend(run);
    }
    let outcome = conclude(plan, joined, Observer::default())?;
    Some(outcome.map(|seen| seen.into_inner().unwrap_or_default()))
}

fn read_run(task: &[Segment], shape: &Shape, scope: &Scope) -> Run {
    let size = u64::from(shape.geometry.segment_bytes);
    let start = task.first().map_or(0, |segment| segment.number * size);
    let end = Lsn(start + task.len() as u64 * size);
    let progress = Progress::default();
    let mut pages = Pages::new(scope, &progress);
    let mut reader = Reader::new(scope, Lsn(start), end, Observer::new(Statistics::default()));
    for segment in task {
        let content = shape.segments[(segment.number - shape.first) as usize].as_deref();
        let from = pages.first_page_in_range(segment);
        let rest = content.and_then(|bytes| bytes.get(from as usize..)).unwrap_or_default();
        let mut bytes = Bytes::Read(Box::new(rest));
        if pages.push_bytes(segment, from, &mut bytes, &mut reader) == Flow::Done {
            break;
        }
    }
    reader.finish()
}

fn is_sound(outcome: &Outcome<Statistics>) -> bool {
    outcome.problems.is_empty() && outcome.ending.kind == EndingKind::Complete
}

/// Every byte that was read stands under one heading or in a counted record.
fn check(shape: &Shape, outcome: &Outcome<Statistics>) {
    let totals = outcome.observer.0.sum(|_| true);
    assert_eq!(
        outcome.books.total() + totals.total_bytes,
        outcome.input_bytes,
        "{:?} {totals:?} {:?}",
        outcome.books,
        outcome.problems
    );
    let there: u64 = shape.segments.iter().flatten().map(|bytes| bytes.len() as u64).sum();
    assert!(outcome.input_bytes <= there, "more bytes counted than there are");
    let everything = shape.range == (Lsn(0), Lsn::MAX) && shape.limit.is_none();
    assert!(!everything || outcome.input_bytes == there, "{} of {there}", outcome.input_bytes);
    // A limit is one of each stretch here: `program` has what divides it.
    let one_stretch = shape.segments.iter().all(Option::is_some);
    assert!(!one_stretch || shape.limit.is_none_or(|limit| totals.count <= limit));
    assert!(
        totals.fpi_bytes + totals.main_data_bytes + totals.block_data_bytes <= totals.total_bytes
    );
    let damaged = outcome.books.get(Heading::Damaged) > 0;
    assert!(!damaged || !outcome.problems.is_empty(), "damage without a problem");
    let skipped: u64 = outcome.problems.iter().map(|problem| problem.skipped_bytes).sum();
    assert!(skipped <= outcome.books.get(Heading::Damaged), "{:?}", outcome.problems);
}

fn compare(whole: &Outcome<Statistics>, parts: &Outcome<Statistics>) {
    assert_eq!(parts.problems, whole.problems);
    assert_eq!(parts.ending, whole.ending);
    assert_eq!(parts.books, whole.books);
    assert_eq!(parts.input_bytes, whole.input_bytes);
    assert_eq!(
        (parts.first, parts.counted_end, parts.first_damage),
        (whole.first, whole.counted_end, whole.first_damage)
    );
    let ((table, clock), (whole_table, whole_clock)) = (&parts.observer, &whole.observer);
    assert!(table.rows().eq(whole_table.rows()), "other totals");
    assert_eq!((table.page_bytes(), clock), (whole_table.page_bytes(), whole_clock));
}
