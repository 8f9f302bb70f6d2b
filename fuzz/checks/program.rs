//! The whole program: files and a stream with the fuzzer's bytes in, every form of report out.
//! The books close, two threads find what a stream finds, JSON is JSON. Not for arguments.

use super::shape::Shape;
use std::cell::RefCell;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;
use walstat::render::style::Show;
use walstat::render::{csv, html, json, pg_waldump, screen, table};
use walstat_analyse::clock::Clock;
use walstat_analyse::dimension::Dimension;
use walstat_analyse::select::Filters;
use walstat_analyse::totals::RecordTable;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::Scan;
use walstat_read::input::discover::{Found, Stream};
use walstat_read::input::plan::Plan;
use walstat_read::input::probe::first_page;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::streamed::Wanted;
use walstat_report::build::{Counted, Request, build};
use walstat_report::model::table::{Sort, Top};
use walstat_report::model::{CommandName, Report, Sums};

type Scanned = (Plan, Outcome<(RecordTable, Clock)>);

/// The smallest that a server can have.
const SEGMENT_BYTES: u32 = 1 << 20;

thread_local! {
    static DIRECTORY: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Fails if the bytes show something wrong.
pub fn run(data: &[u8]) {
    let shape = Shape::of(data, Some(SEGMENT_BYTES));
    DIRECTORY.with_borrow_mut(|directory| {
        let directory = directory.get_or_insert_with(|| TempDir::new().expect("a directory"));
        let files = write(directory.path(), data, &shape);
        let from_files = scan_files(&files, &shape);
        let stream = directory.path().join("stream");
        let from_stream = scan_stream(&stream, &shape);
        for (plan, outcome) in from_files.iter().chain(&from_stream) {
            report(plan, outcome, &shape);
        }
        if let (true, Some((_, files)), Some((_, stream))) =
            (!is_raw(data) && is_told_by_pages(&shape), &from_files, &from_stream)
        {
            let sum = |outcome: &Outcome<(RecordTable, Clock)>| outcome.observer.0.sum(|_| true);
            assert_eq!(sum(files), sum(stream), "{:?} {:?}", files.problems, stream.problems);
        }
        files.iter().chain([&stream]).for_each(|path| fs::remove_file(path).expect("removed"));
    });
}

/// Whether the bytes are also taken as they are.
fn is_raw(data: &[u8]) -> bool {
    data.first() == Some(&u8::MAX)
}

/// Whether a stream, which has no names, says as much as files do: no segment is missing and each
/// begins with the page that belongs there.
fn is_told_by_pages(shape: &Shape) -> bool {
    let size = u64::from(SEGMENT_BYTES);
    let own = |(number, bytes): (u64, &Option<Vec<u8>>)| {
        let page = bytes.as_deref().and_then(|bytes| first_page(bytes).ok());
        page.is_some_and(|page| {
            Some(page.header.address.0) == number.checked_mul(size)
                && page.header.timeline == shape.timeline
                && page.header.magic == shape.geometry.version.magic
                && page.long == shape.geometry.long_header()
        })
    };
    (shape.first..).zip(&shape.segments).all(own)
}

/// Writes the segments as files, and the same as a stream; bytes that are no shape at all too.
fn write(directory: &Path, data: &[u8], shape: &Shape) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut stream = Vec::new();
    for (index, segment) in shape.segments.iter().enumerate() {
        let Some(bytes) = segment else { continue };
        let number = shape.first.saturating_add(index as u64);
        let name = SegmentName::new(shape.timeline, number, SEGMENT_BYTES).to_string();
        files.push(write_file(&directory.join(name), bytes));
        stream.extend_from_slice(bytes);
    }
    if is_raw(data) {
        let name = SegmentName::new(shape.timeline, shape.first ^ 1, SEGMENT_BYTES).to_string();
        files.push(write_file(&directory.join(name), data));
        stream = data.to_vec();
    }
    write_file(&directory.join("stream"), &stream);
    files
}

/// The time is set back: a file that was just written is one that a server may be writing.
fn write_file(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).expect("a file");
    let file = File::options().write(true).open(path).expect("the file");
    file.set_modified(SystemTime::UNIX_EPOCH).expect("its time");
    path.to_owned()
}

fn wanted(shape: &Shape) -> Wanted {
    Wanted {
        crc: shape.checked.then(Crc32c::detect),
        range: shape.range.0..shape.range.1,
        map_files: true,
        limit: shape.limit,
        timeline: None,
        ..Wanted::default()
    }
}

fn scan_files(files: &[PathBuf], shape: &Shape) -> Option<Scanned> {
    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
    let scan = Scan { wanted: wanted(shape), threads: TWO, ..Scan::paths(files.iter().cloned()) };
    scan.count(&<(RecordTable, Clock)>::default())
        .inspect_err(|error| assert!(!error.to_string().contains('\n')))
        .ok()
}

/// As standard input is read, from a file.
fn scan_stream(path: &Path, shape: &Shape) -> Option<Scanned> {
    let mut found = Found::default();
    found.streams.push(Stream { path: path.to_owned(), root: 0 });
    let scan = Scan { wanted: wanted(shape), ..Scan::paths([path]) };
    scan.count_found(found, &<(RecordTable, Clock)>::default()).ok()
}

/// Builds and writes every form of report.
fn report(plan: &Plan, outcome: &Outcome<(RecordTable, Clock)>, shape: &Shape) {
    let start = Some(shape.range.0).filter(|&start| start > Lsn(0));
    for (command, dimensions) in [
        (CommandName::Report, &[Dimension::Rmgr, Dimension::Record][..]),
        (CommandName::Stats, &[Dimension::Rmgr]),
        (CommandName::Stats, &[Dimension::Record]),
    ] {
        let request = Request {
            command,
            dimensions: dimensions.iter().copied().collect(),
            checksums_verified: shape.checked,
            start,
            filters: Filters::default(),
        };
        let counted = Counted::from(&outcome.observer);
        let draft = build(vec!["stream".into()], plan, outcome, counted, &request);
        let mut view = draft.conclude();
        check(&view.report);
        let count = view.report.totals.count;
        assert!(shape.limit.is_none_or(|limit| count <= limit), "over the limit");
        let text = written(|out| json::render(&view.report, out));
        let back: Report = serde_json::from_str(&text).expect("a report reads back");
        assert_eq!(back, view.report);
        if command == CommandName::Stats {
            written(|out| csv::render(&view.report, out));
            written(|out| pg_waldump::render(&view, out));
        }
        view.report.arrange(Sort::Fpi, Top { rmgrs: 3, buckets: 3, cycles: 3, others: 3 });
        for flag in [false, true] {
            let show = Show { human: flag, bars: flag, main_data: !flag, verbose: flag, width: 60 };
            written(|out| screen::render(&view, &show, out));
            written(|out| html::render(&view, &show, out));
            written(|out| table::render(&view, &show, out));
        }
    }
}

/// The books close, and the rows of each table add up to the totals.
fn check(report: &Report) {
    assert_eq!(report.books.unaccounted_bytes, 0, "{:?} {:?}", report.books, report.problems);
    let rmgrs = report.rmgrs.iter().map(|table| table.rows.iter().map(|row| row.sums).collect());
    let records =
        report.records.iter().map(|table| table.rows.iter().map(|row| row.sums).collect());
    for rows in rmgrs.chain(records) {
        let rows: Vec<Sums> = rows;
        let mut sum = Sums::default();
        rows.iter().for_each(|row| sum.add(row));
        assert_eq!((sum.count, sum.total_bytes), (report.totals.count, report.totals.total_bytes));
        assert_eq!(sum.record_bytes + sum.fpi_bytes, report.totals.total_bytes);
    }
}

fn written(render: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&mut out).expect("memory takes everything");
    String::from_utf8(out).expect("UTF-8")
}
