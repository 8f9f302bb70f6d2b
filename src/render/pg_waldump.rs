//! `--format pg_waldump`: the text of `pg_waldump --stats`, byte for byte, as the release that
//! wrote the WAL prints it.

use std::io::{self, Write};
use walstat_report::model::Sums;
use walstat_report::model::table::{Line, percent};
use walstat_report::model::view::View;

/// Writes the table of record types if there is one, else that of resource managers. What the
/// tool prints on standard error is in `view.official` and left to the caller.
pub fn render(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let View { report, official, .. } = view;
    if let Some((line, false)) = &official.skip_line {
        writeln!(out, "{line}")?;
    }
    if report.totals.count == 0 && official.silent_if_empty {
        return Ok(());
    }
    if let Some(line) = &official.range_line {
        writeln!(out, "{line}")?;
    }
    headings(out)?;
    let all = &report.totals;
    if let Some(records) = &report.records {
        records.lines(all).try_for_each(|line| table_row(out, &line))?;
    } else if let Some(rmgrs) = &report.rmgrs {
        rmgrs.lines(all).try_for_each(|line| table_row(out, &line))?;
    }
    total(out, all)
}

fn headings(out: &mut dyn Write) -> io::Result<()> {
    let line = |out: &mut dyn Write, texts: [&str; 9]| {
        let [label, n, a, record, b, fpi, c, combined, d] = texts;
        writeln!(
            out,
            "{label:<27} {n:>20} {a:>8} {record:>20} {b:>8} {fpi:>20} {c:>8} {combined:>20} {d:>8}"
        )
    };
    let texts =
        ["Type", "N", "(%)", "Record size", "(%)", "FPI size", "(%)", "Combined size", "(%)"];
    line(out, texts)?;
    line(out, texts.map(|text| &"-------------"[..text.len()]))
}

fn table_row(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    let Line { label, numbers: row, shares, .. } = line;
    writeln!(
        out,
        "{label:<27} {:>20} ({:>6.2}) {:>20} ({:>6.2}) {:>20} ({:>6.2}) {:>20} ({:>6.2})",
        row.count,
        shares.count,
        row.record_bytes,
        shares.record,
        row.fpi_bytes,
        shares.fpi,
        row.total_bytes,
        shares.total,
    )
}

fn total(out: &mut dyn Write, all: &Sums) -> io::Result<()> {
    let (none, rule) = ("", "--------");
    writeln!(
        out,
        "{none:<27} {rule:>20} {none:>8} {rule:>20} {none:>8} {rule:>20} {none:>8} {rule:>20}"
    )?;
    let part = |bytes| format!("[{:.2}%]", percent(bytes, all.total_bytes));
    writeln!(
        out,
        "{:<27} {:>20} {none:>8} {:>20} {:<9}{:>20} {:<9}{:>20} [100%]",
        "Total",
        all.count,
        all.record_bytes,
        part(all.record_bytes),
        all.fpi_bytes,
        part(all.fpi_bytes),
        all.total_bytes,
    )
}
