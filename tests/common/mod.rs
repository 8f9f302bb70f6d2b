//! What the tests of reading share: WAL made on purpose, a naive twin of the reader, and the
//! library called as the command line calls it.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part of this")]

pub mod builder;
pub mod disk;
pub mod lessons;
pub mod naive;
pub mod record;
pub mod whole;
pub mod xorshift;

use std::num::NonZeroUsize;
use std::path::Path;
use walstat::analyse::clock::Clock;
use walstat::analyse::dimension::{Dimension, Dimensions};
use walstat::analyse::select::Filters;
use walstat::analyse::totals::RecordTable;
use walstat::input::discover::discover;
use walstat::input::error::InputError;
use walstat::input::plan::Plan;
use walstat::report::build::{Counted, Request, build};
use walstat::report::model::{Books, CommandName, RecordRow, Report};
use walstat::scan::outcome::Outcome;
use walstat::scan::pages::Progress;
use walstat::scan::read::{read as scan, read_passed};
use walstat::scan::record::Everything;
use walstat::scan::streamed::{Wanted, pass_files};
use walstat::wal::crc::Crc32c;
use walstat::wal::lsn::Lsn;

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

fn wanted(ask: &Ask) -> Wanted<Everything> {
    Wanted {
        crc: Some(Crc32c::detect()),
        range: (ask.start.unwrap_or_default(), ask.end.unwrap_or(Lsn::MAX)),
        limit: ask.limit,
        timeline: ask.timeline,
        select: Everything,
    }
}

/// Reads a directory as `walstat --stats=record` does. `Err`: the one line that it ends with.
pub fn stats(directory: &Path, ask: &Ask) -> Result<Report, String> {
    let threads = NonZeroUsize::new(ask.threads).expect("at least one thread");
    let (progress, prototype) = (Progress::default(), Counts::default());
    report(scan(&[directory.to_owned()], wanted(ask), threads, &progress, &prototype), ask)
}

/// The same, each segment read by itself, as in a stream or for a partial result.
pub fn stats_apart(directory: &Path, ask: &Ask) -> Result<Report, String> {
    let (progress, prototype) = (Progress::default(), Counts::default());
    let mut found = discover(&[directory.to_owned()]).map_err(|error| error.to_string())?;
    let passed = pass_files(&mut found, &wanted(ask), &progress, &prototype);
    let one = NonZeroUsize::MIN;
    report(read_passed(found, passed, wanted(ask), one, &progress, &prototype), ask)
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
