//! The whole program: files and a stream with the fuzzer's bytes in, every form of report out.
//! The books close, two threads find what a stream finds, JSON is JSON. Not for arguments.

use super::shape::Shape;
use std::cell::RefCell;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;
use walstat::analyse::clock::Clock;
use walstat::analyse::totals::RecordTable;
use walstat::input::discover::Found;
use walstat::input::plan::Plan;
use walstat::input::probe::first_page;
use walstat::render::table::Show;
use walstat::render::{csv, json, pg_waldump, screen, table};
use walstat::report::arrange::{Sort, Top, arrange};
use walstat::report::build::{Request, build};
use walstat::report::model::{Report, Row};
use walstat::scan::outcome::{Outcome, conclude};
use walstat::scan::pages::Progress;
use walstat::scan::read::read;
use walstat::scan::record::Everything;
use walstat::scan::streamed::{self, Wanted};
use walstat::wal::crc::Crc32c;
use walstat::wal::lsn::Lsn;
use walstat::wal::segment::SegmentName;

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

fn wanted(shape: &Shape) -> Wanted<Everything> {
    Wanted {
        crc: shape.checked.then(Crc32c::detect),
        range: shape.range,
        limit: shape.limit,
        timeline: None,
        select: Everything,
    }
}

fn scan_files(files: &[PathBuf], shape: &Shape) -> Option<Scanned> {
    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
    read(files, wanted(shape), TWO, &Progress::default(), &<(RecordTable, Clock)>::default())
        .inspect_err(|error| assert!(!error.to_string().contains('\n')))
        .ok()
}

/// As standard input is read, from a file.
fn scan_stream(path: &Path, shape: &Shape) -> Option<Scanned> {
    let found = Found { streams: vec![path.to_owned()], ..Found::default() };
    let prototype = <(RecordTable, Clock)>::default();
    let (plan, stretches) =
        streamed::scan(found, wanted(shape), &Progress::default(), &prototype).ok()?;
    let outcome = conclude(&plan, stretches, prototype)?;
    Some((plan, outcome))
}

/// Builds and writes every form of report.
fn report(plan: &Plan, outcome: &Outcome<(RecordTable, Clock)>, shape: &Shape) {
    let start = Some(shape.range.0).filter(|&start| start > Lsn(0));
    for (rmgrs, records, advice) in [(true, true, true), (true, false, false), (false, true, false)]
    {
        let request = Request {
            command: if advice { "report" } else { "stats" },
            rmgrs,
            records,
            advice,
            checksums_verified: shape.checked,
            start,
        };
        let mut report = build(vec!["stream".into()], plan, outcome, &request);
        check(&report);
        assert!(shape.limit.is_none_or(|limit| report.totals.count <= limit), "over the limit");
        let text = written(|out| json::render(&report, out));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["books"]["unaccounted_bytes"], 0, "{}", value["books"]);
        if !advice {
            written(|out| csv::render(&report, out));
            written(|out| pg_waldump::render(&report, out));
        }
        arrange(&mut report, Sort::Fpi, Top { rmgrs: 3, records: 3 });
        for flag in [false, true] {
            let show = Show { human: flag, bars: flag, main_data: !flag, verbose: flag };
            written(|out| screen::render(&report, &show, out));
            written(|out| table::render(&report, &show, out));
        }
    }
}

/// The books close, and the rows of each table add up to the totals.
fn check(report: &Report) {
    assert_eq!(report.books.unaccounted_bytes, 0, "{:?} {:?}", report.books, report.problems);
    let rmgrs = report.rmgrs.iter().map(|rows| rows.iter().map(|row| row.row).collect());
    let records = report.records.iter().map(|rows| rows.iter().map(|row| row.row).collect());
    for rows in rmgrs.chain(records) {
        let rows: Vec<Row> = rows;
        let mut sum = Row::default();
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
