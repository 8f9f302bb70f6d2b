//! `--format table`: statistics for people, with the headings of `pg_waldump --stats`.

use super::closing;
use super::kinds;
use super::number::{UNKNOWN, counted, grouped};
use super::style::{Show, plain};
use super::time::moment;
use super::visible::visible;
use super::when_tables;
use std::io::{self, Write};
use walstat_report::model::table::{Line, RecordRow, Table, TableRow};
use walstat_report::model::view::View;
use walstat_report::model::who::{CommitBytes, TransactionSummary, Transactions};
use walstat_report::model::{Report, Sums};

/// Writes the tables that were asked for, and what has to be said about them.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    let all = &report.totals;
    if let Some(rmgrs) = &report.rmgrs {
        let lines = rmgrs.lines(all).filter(|line| line.numbers.count > 0);
        let lines = lines.chain(rmgrs.left_out(all, |count| format!("{count} more")));
        writeln!(out, "{}\n", statistics("Resource manager", lines, all, style).trim_fmt())?;
    }
    if let Some(records) = &report.records {
        writeln!(out, "{}\n", record_table(records, all, style).trim_fmt())?;
    }
    who(report, style, out)?;
    when_tables::render(report, style, out)?;
    if style.main_data {
        writeln!(
            out,
            "Main data: main data + 24 bytes a record, what pg_xlogdump up to 9.5.7 and 9.6.3 \
             called\nthe record size (BUG #14687). It leaves out block headers and block data, so \
             it is not the size.\n"
        )?;
    }
    if let Some(filters) = closing::filters(report) {
        writeln!(out, "{filters}")?;
    }
    closing::problems(&report.problems, closing::PROBLEMS_SHOWN, style.verbose, out)?;
    if !report.problems.is_empty() {
        writeln!(out)?;
    }
    closing::ratios(report, out)?;
    closing::notes(report, style, out)?;
    closing::books(view, out)
}

/// The tables of who writes the WAL.
fn who(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.totals;
    rows("Relation", &report.relations, all, style, out)?;
    rows("Table", &report.tables, all, style, out)?;
    rows("Database", &report.databases, all, style, out)?;
    rows("Tablespace", &report.tablespaces, all, style, out)?;
    rows("Fork", &report.forks, all, style, out)?;
    let blocks = report.blocks.as_ref().map(|blocks| &blocks.top);
    rows("Block", &blocks.cloned(), all, style, out)?;
    if let Some(kinds) = &report.kinds {
        writeln!(out, "{}\n", kinds::table(kinds, all, style).trim_fmt())?;
    }
    let Some(transactions) = &report.transactions else { return Ok(()) };
    writeln!(out, "{}\n", transaction_table(transactions, style).trim_fmt())?;
    writeln!(out, "{}\n", transaction_summary(&transactions.summary, style))
}

/// What each of the largest transactions wrote, when, and how it ended.
fn transaction_table(transactions: &Transactions, style: &Show) -> comfy_table::Table {
    let headings = [
        "Transaction",
        "outcome",
        "committed at",
        "N",
        "FPI size",
        "Combined size",
        "relations",
        "first record",
        "end",
    ];
    let mut table = plain(&headings);
    for row in &transactions.top.rows {
        table.add_row([
            row.xid.clone(),
            row.outcome.clone(),
            moment(row.commit_time.as_deref()),
            grouped(row.numbers.count),
            style.bytes(row.numbers.fpi_bytes),
            style.bytes(row.numbers.total_bytes),
            grouped(u64::from(row.relations)),
            row.start_lsn.clone(),
            row.end_lsn.clone(),
        ]);
    }
    if let Some(rest) = &transactions.top.left_out {
        let cells = [
            format!("{} more", grouped(rest.rows as u64)),
            String::new(),
            String::new(),
            grouped(rest.numbers.count),
            style.bytes(rest.numbers.fpi_bytes),
            style.bytes(rest.numbers.total_bytes),
        ];
        table.add_row(cells);
    }
    table
}

/// All transactions in two sentences.
fn transaction_summary(summary: &TransactionSummary, style: &Show) -> String {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_owned(), |b| style.bytes(b));
    let CommitBytes { median, p90, p99, max } = summary.bytes_per_commit;
    format!(
        "With an xid: {} committed, {} aborted with {}, {} prepared, {} open; {} folded into them.\n\
         A commit has {} (median), {} (p90), {} (p99), {} at most. Without a transaction: {}, {}.",
        grouped(summary.committed),
        grouped(summary.aborted),
        style.bytes(summary.aborted_bytes),
        grouped(summary.prepared),
        grouped(summary.open),
        counted(summary.subtransactions, "subtransaction"),
        size(median),
        size(p90),
        size(p99),
        size(max),
        counted(summary.without_transaction.count, "record"),
        style.bytes(summary.without_transaction.total_bytes),
    )
}

fn rows<R: TableRow>(
    first: &str,
    table: &Option<Table<R>>,
    all: &Sums,
    style: &Show,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(table) = table else { return Ok(()) };
    let lines = table.lines(all).chain(table.left_out(all, |count| format!("{count} more")));
    let lines = lines.map(|line| Line { label: visible(&line.label).into(), ..line });
    writeln!(out, "{}\n", statistics(first, lines, all, style).trim_fmt())
}

/// The table of record types.
pub fn record_table(records: &Table<RecordRow>, all: &Sums, style: &Show) -> comfy_table::Table {
    let more = |count| match count {
        1 => "1 more type".to_owned(),
        _ => format!("{count} more types"),
    };
    let lines = records.lines(all).chain(records.left_out(all, more));
    statistics("Type", lines, all, style)
}

fn statistics(
    first: &str,
    lines: impl Iterator<Item = Line>,
    all: &Sums,
    style: &Show,
) -> comfy_table::Table {
    let mut headings = vec![first, "N", "%"];
    // In units the columns are narrower than their headings.
    headings.extend(if style.human {
        ["Record\nsize", "%", "FPI\nsize", "%", "Combined\nsize", "%"]
    } else {
        ["Record size", "%", "FPI size", "%", "Combined size", "%"]
    });
    if style.main_data {
        headings.push("Main data");
    }
    let mut table = plain(&headings);
    for line in lines.chain([Line::total(all)]) {
        table.add_row(cells(line, style));
    }
    table
}

fn cells(line: Line, style: &Show) -> Vec<String> {
    let Line { label, numbers, shares, main_data_only_bytes } = line;
    let percent = |share: f64| format!("{share:.2}");
    let mut cells = vec![
        label,
        grouped(numbers.count),
        percent(shares.count),
        style.bytes(numbers.record_bytes),
        percent(shares.record),
        style.bytes(numbers.fpi_bytes),
        percent(shares.fpi),
        style.bytes(numbers.total_bytes),
        percent(shares.total),
    ];
    if style.main_data {
        cells.push(main_data_only_bytes.map_or(UNKNOWN.into(), |bytes| style.bytes(bytes)));
    }
    cells
}
