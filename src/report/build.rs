//! Results of a scan → the model. Every number of a report is computed here or below, once.

use super::advice;
use super::model::{self, Report};
use crate::analyse::clock::Clock;
use crate::analyse::ratios::{self, Ratios, ratio};
use crate::analyse::totals::{RecordTable, Totals};
use crate::analyse::why;
use crate::input::plan::Plan;
use crate::input::problem::Problem;
use crate::scan::books::Heading;
use crate::scan::outcome::Outcome;
use crate::wal::lsn::Lsn;
use crate::wal::payload::Time;
use crate::wal::rmgr;
use crate::wal::version::Version;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// `report`, `stats` or `check`.
    pub command: &'static str,
    /// Sums by resource manager.
    pub rmgrs: bool,
    /// Sums by record type.
    pub records: bool,
    /// Causes and findings.
    pub advice: bool,
    /// Every checksum was verified.
    pub checksums_verified: bool,
    /// Start of the range, if it was given.
    pub start: Option<Lsn>,
}

/// Data pages if no image tells their size: the default of every release.
const DEFAULT_DATA_PAGE_BYTES: u32 = 8192;

/// Fills the model from a scan that counted just what a report needs.
pub fn build(
    paths: Vec<String>,
    plan: &Plan,
    outcome: &Outcome<(RecordTable, Clock)>,
    request: &Request,
) -> Report {
    build_from(paths, plan, outcome, &outcome.observer, request)
}

/// The same from a scan that counted other things too: `(table, clock)` is the part of it.
pub fn build_from<O>(
    paths: Vec<String>,
    plan: &Plan,
    outcome: &Outcome<O>,
    (table, clock): &(RecordTable, Clock),
    request: &Request,
) -> Report {
    let totals = table.sum(|_| true);
    let page_bytes = table.page_bytes().unwrap_or(DEFAULT_DATA_PAGE_BYTES);
    let books = close_books(outcome, &totals);
    let start = outcome.first.or(request.start).unwrap_or(plan.bounds().0);
    let commits = ratios::commits(table);
    let range_bytes = outcome.ending.lsn.0.saturating_sub(start.0);
    let ratios = ratios_of(table, &totals, page_bytes, commits, range_bytes);
    let row = |totals: &Totals| row_of(totals, page_bytes);
    let version = plan.version();
    let mut report = Report {
        walstat: env!("CARGO_PKG_VERSION"),
        schema: model::SCHEMA,
        command: request.command,
        input: input(paths, plan, request),
        range: range(start, outcome.ending.lsn, clock),
        books,
        totals: row(&totals),
        ratios,
        why: request.advice.then(|| why_rows(table, &totals)),
        rmgrs: request.rmgrs.then(|| rmgr_rows(table, version, row)),
        records: request.records.then(|| record_rows(table, version, row)),
        ending: ending(plan, outcome),
        problems: outcome.problems.iter().map(|p| problem(plan, p)).collect(),
        findings: None,
        notes: notes(table, &totals, request),
        checked: None,
        more_rmgrs: None,
        more_records: None,
        official: official(version, request, plan, outcome),
        elapsed_seconds: 0.0,
    };
    if request.advice {
        report.findings = Some(advice::findings(&report));
    }
    report
}

fn input(paths: Vec<String>, plan: &Plan, request: &Request) -> model::Input {
    model::Input {
        paths,
        segments: plan.segments.len(),
        timelines: plan.timelines.clone(),
        system_identifier: plan.geometry.system_identifier.to_string(),
        postgres: plan.version().name,
        magic: format!("0x{:04X}", plan.version().magic),
        segment_bytes: plan.geometry.segment_bytes,
        page_bytes: plan.geometry.page_bytes,
        checksums_verified: request.checksums_verified,
        other_files: plan.other_files.clone(),
    }
}

fn range(start: Lsn, end: Lsn, clock: &Clock) -> model::Range {
    model::Range {
        start: start.to_string(),
        end: end.to_string(),
        first_time: clock.first.and_then(rfc3339),
        last_time: clock.last.and_then(rfc3339),
    }
}

/// RFC 3339, UTC, microseconds; `None` for a time outside the years that can be written.
fn rfc3339(time: Time) -> Option<String> {
    let timestamp = jiff::Timestamp::from_microsecond(time.0).ok()?;
    Some(format!("{timestamp:.6}"))
}

fn close_books<O>(outcome: &Outcome<O>, totals: &Totals) -> model::Books {
    let get = |heading| outcome.books.get(heading);
    let accounted = outcome.books.total() + totals.total_bytes;
    model::Books {
        input_bytes: outcome.input_bytes,
        record_bytes: totals.record_bytes(),
        fpi_bytes: totals.fpi_bytes,
        filtered_bytes: get(Heading::Filtered),
        padding_bytes: get(Heading::Padding),
        page_header_bytes: get(Heading::PageHeader),
        continuation_bytes: get(Heading::Continuation),
        switch_bytes: get(Heading::Switch),
        overwritten_bytes: get(Heading::Overwritten),
        incomplete_bytes: get(Heading::Incomplete),
        stale_bytes: get(Heading::Stale),
        zero_bytes: get(Heading::Zero),
        duplicate_bytes: get(Heading::Duplicate),
        damaged_bytes: get(Heading::Damaged),
        unaccounted_bytes: outcome.input_bytes.wrapping_sub(accounted) as i64,
    }
}

fn row_of(totals: &Totals, page_bytes: u32) -> model::Row {
    model::Row {
        count: totals.count,
        record_bytes: totals.record_bytes(),
        fpi_bytes: totals.fpi_bytes,
        total_bytes: totals.total_bytes,
        main_data_bytes: totals.main_data_bytes,
        block_data_bytes: totals.block_data_bytes,
        header_bytes: totals.header_bytes(),
        fpi_count: totals.fpi_count,
        fpi_records: totals.fpi_records,
        fpi_apply_count: totals.fpi_apply_count(),
        fpi_check_count: totals.fpi_check_count,
        uncompressed_fpi_bytes: totals.uncompressed_fpi_bytes(page_bytes),
    }
}

fn ratios_of(
    table: &RecordTable,
    totals: &Totals,
    page_bytes: u32,
    commits: u64,
    range_bytes: u64,
) -> model::Ratios {
    let ratios = Ratios::of(table, totals, page_bytes);
    model::Ratios {
        fpi_ratio: ratios.fpi_ratio,
        fpi_record_ratio: ratios.fpi_record_ratio,
        hot_ratio: ratios.hot_ratio,
        write_amplification: ratios.write_amplification,
        bytes_per_commit: ratio(range_bytes, commits),
        compression_ratio: ratios.compression_ratio,
        commits,
    }
}

fn why_rows(table: &RecordTable, totals: &Totals) -> Vec<model::Why> {
    let causes = why::causes(table).into_iter();
    let mut rows: Vec<model::Why> = causes
        .map(|(cause, bytes)| model::Why {
            cause: cause.key(),
            label: cause.label(),
            bytes,
            share: ratio(bytes, totals.total_bytes),
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    rows
}

/// Every built-in resource manager of the release, and those of extensions that have records.
pub fn rmgr_rows(
    table: &RecordTable,
    version: &Version,
    row: impl Fn(&Totals) -> model::Row,
) -> Vec<model::RmgrRow> {
    let ids = (0..=u8::MAX).map(|id| (id, table.sum(|record| record.rmgr == id)));
    let all = row(&table.sum(|_| true));
    ids.filter(|(id, totals)| *id <= version.rmgr_max || totals.count > 0)
        .map(|(id, totals)| {
            let row = row(&totals);
            let shares = model::Shares::of(&row, &all);
            model::RmgrRow { rmgr: rmgr::name(id).into(), id, row, shares }
        })
        .collect()
}

/// Every record type that has records.
pub fn record_rows(
    table: &RecordTable,
    version: &Version,
    row: impl Fn(&Totals) -> model::Row,
) -> Vec<model::RecordRow> {
    let all = row(&table.sum(|_| true));
    let rows = table.rows().map(|(record, totals)| {
        let row = row(totals);
        model::RecordRow {
            rmgr: rmgr::name(record.rmgr).into(),
            record: record.name(version).into(),
            info: format!("0x{:02X}", record.info()),
            shares: model::Shares::of(&row, &all),
            row,
        }
    });
    rows.collect()
}

fn ending<O>(plan: &Plan, outcome: &Outcome<O>) -> model::Ending {
    let ending = outcome.ending;
    // A position at the very end of a segment is told as part of that segment.
    let inside = Lsn(ending.lsn.0.saturating_sub(1)).max(plan.bounds().0);
    model::Ending {
        kind: ending.kind,
        lsn: ending.lsn.to_string(),
        segment: plan.segment_name(inside),
        text: format!("{}.", ending.kind.sentence()),
    }
}

fn problem(plan: &Plan, problem: &Problem) -> model::Problem {
    let segment_bytes = u64::from(plan.geometry.segment_bytes);
    model::Problem {
        kind: problem.kind,
        segment: problem.segment.clone(),
        lsn: problem.lsn.map(|lsn| lsn.to_string()),
        offset: problem.lsn.map(|lsn| lsn.0 % segment_bytes),
        expected: problem.expected.clone(),
        found: problem.found.clone(),
        skipped_bytes: problem.skipped_bytes,
    }
}

fn notes(table: &RecordTable, totals: &Totals, request: &Request) -> Vec<String> {
    let mut notes = Vec::new();
    if !request.checksums_verified {
        notes.push("checksums were not verified".to_owned());
    }
    if totals.compressed_count > 0 && table.page_bytes().is_none() {
        notes.push(format!(
            "no image tells the size of data pages; uncompressed_fpi_bytes takes {DEFAULT_DATA_PAGE_BYTES}"
        ));
    }
    notes
}

/// The lines around the official tool's table. See `pg_waldump.c` of each release.
fn official<O>(
    version: &Version,
    request: &Request,
    plan: &Plan,
    outcome: &Outcome<O>,
) -> model::Official {
    let tool = version.tool;
    let text = |lsn: Lsn| match tool.padded_lsn {
        true => lsn.to_string(),
        false => lsn.unpadded().to_string(),
    };
    let first = outcome.first;
    let range_line = match (first, outcome.counted_end) {
        (Some(first), Some(end)) if tool.range_line => {
            Some(format!("WAL statistics between {} and {}:", text(first), text(end)))
        }
        _ => None,
    };
    let segment_bytes = u64::from(plan.geometry.segment_bytes);
    let skipped = |(start, first): (Lsn, Lsn)| {
        if first <= start || start.0.is_multiple_of(segment_bytes) {
            return None;
        }
        let bytes = first.0 - start.0;
        let unit = if bytes == 1 && tool.singular_byte { "byte" } else { "bytes" };
        let (start, first) = (text(start), text(first));
        let line =
            format!("first record is after {start}, at {first}, skipping over {bytes} {unit}");
        let prefix = if tool.skip_on_stderr { "pg_waldump: " } else { "" };
        Some((format!("{prefix}{line}"), tool.skip_on_stderr))
    };
    model::Official {
        range_line,
        skip_line: request.start.zip(first).and_then(skipped),
        silent_if_empty: tool.range_line,
    }
}
