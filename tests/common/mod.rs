//! What the tests of reading share: WAL made on purpose, a naive twin of the reader, and the
//! library called as the command line calls it.

pub mod builder;
pub mod catalog_changes;
pub mod changed;
pub mod disk;
pub mod naive;
pub mod one_change;
pub mod record;
pub mod whole;
pub mod xorshift;

use std::num::NonZeroUsize;
use std::path::Path;
use walstat_analyse::clock::Clock;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::select::Filters;
use walstat_analyse::totals::RecordTable;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_read::Scan;
use walstat_read::input::error::InputError;
use walstat_read::input::plan::Plan;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::progress::Progress;
use walstat_read::scan::streamed::{Wanted, pass_files};
use walstat_report::build::{Counted, Request, build};
use walstat_report::model::{Books, CommandName, RecordRow, Report};

/// What to read, and how.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// `--start`.
    pub start: Option<Lsn>,
    /// `--end`.
    pub end: Option<Lsn>,
    /// `--limit`.
    pub limit: Option<u64>,
    /// `--threads`.
    pub threads: usize,
    /// `--timeline`.
    pub timeline: Option<u32>,
}

/// Everything, on one thread.
pub const ALL: Ask = Ask { start: None, end: None, limit: None, threads: 1, timeline: None };

impl Ask {
    /// The same on so many threads.
    pub fn threads(self, threads: usize) -> Ask {
        Ask { threads, ..self }
    }

    /// The same over `[start, end)`.
    pub fn range(self, start: Lsn, end: Lsn) -> Ask {
        Ask { start: Some(start), end: Some(end), ..self }
    }
}

/// What is counted.
type Counts = (RecordTable, Clock);

fn wanted(ask: &Ask) -> Wanted {
    Wanted {
        crc: Some(Crc32c::detect()),
        range: ask.start.unwrap_or_default()..ask.end.unwrap_or(Lsn::MAX),
        map_files: true,
        limit: ask.limit,
        timeline: ask.timeline,
        ..Wanted::default()
    }
}

/// Reads a directory as `walstat --stats=record` does. `Err`: the one line that it ends with.
pub fn stats(directory: &Path, ask: &Ask) -> Result<Report, String> {
    let threads = NonZeroUsize::new(ask.threads).expect("at least one thread");
    let scan = Scan { wanted: wanted(ask), threads, ..Scan::paths([directory]) };
    report(scan.count(&Counts::default()), ask)
}

/// The same, each segment read by itself, as in a stream or for a partial result.
pub fn stats_apart(directory: &Path, ask: &Ask) -> Result<Report, String> {
    let prototype = Observer::new(Counts::default());
    let scan = Scan { wanted: wanted(ask), ..Scan::paths([directory]) };
    let mut found = scan.found().map_err(|error| error.to_string())?;
    let passed = pass_files(&mut found, &scan.wanted, &Progress::default(), &prototype);
    let scanned = scan.count_passed(found, passed, &prototype);
    let counts = |seen: Observer| seen.into_inner().expect("what was counted");
    report(scanned.map(|(plan, outcome)| (plan, outcome.map(counts))), ask)
}

fn report(
    scanned: Result<(Plan, Outcome<Counts>), InputError>,
    ask: &Ask,
) -> Result<Report, String> {
    let (plan, outcome) = scanned.map_err(|error| error.to_string())?;
    let request = Request {
        command: CommandName::Stats,
        dimensions: Dimensions::from([Dimension::Record]),
        checksums_verified: true,
        start: ask.start,
        filters: Filters::default(),
    };
    let counted = Counted::from(&outcome.observer);
    Ok(build(Vec::new(), &plan, &outcome, counted, &request).report)
}

/// Reads a directory and holds the books against the files.
#[track_caller]
pub fn read(directory: &Path, ask: &Ask) -> Report {
    let report = stats(directory, ask).unwrap_or_else(|error| panic!("{error}"));
    assert_closed(&report.books);
    report
}

/// Every byte stands under one heading.
#[track_caller]
pub fn assert_closed(books: &Books) {
    assert_eq!(books.unaccounted_bytes, 0, "{books:?}");
    assert_eq!(sum(books), books.input_bytes, "{books:?}");
}

/// The bytes under all headings.
pub fn sum(books: &Books) -> u64 {
    let Books {
        input_bytes: _,
        record_bytes,
        fpi_bytes,
        filtered_bytes,
        padding_bytes,
        page_header_bytes,
        continuation_bytes,
        switch_bytes,
        overwritten_bytes,
        incomplete_bytes,
        stale_bytes,
        zero_bytes,
        duplicate_bytes,
        damaged_bytes,
        unaccounted_bytes: _,
    } = *books;
    let counted = record_bytes + fpi_bytes + filtered_bytes;
    let around = padding_bytes + page_header_bytes + continuation_bytes + switch_bytes;
    let rest = overwritten_bytes + incomplete_bytes + stale_bytes + zero_bytes;
    counted + around + rest + duplicate_bytes + damaged_bytes
}

/// The row of one record type.
#[track_caller]
pub fn row<'r>(report: &'r Report, rmgr: &str, record: &str) -> &'r RecordRow {
    let rows = report.records.as_ref().expect("rows by record");
    let found = rows.rows.iter().find(|row| row.rmgr == rmgr && row.record == record);
    found.unwrap_or_else(|| panic!("no {rmgr}/{record} in {rows:?}"))
}

/// The kinds of all problems.
pub fn kinds(report: &Report) -> Vec<&'static str> {
    report.problems.iter().map(|problem| problem.kind.name()).collect()
}

/// Everything that a program sees of a report.
pub fn json(report: &Report) -> serde_json::Value {
    serde_json::to_value(report).expect("a report is JSON")
}
