//! `--format pg_waldump`: the text of `pg_waldump --stats`, byte for byte, as the release that
//! wrote the WAL prints it.

use crate::report::model::{Report, Row, Shares, percent};
use std::io::{self, Write};

/// Writes the table of record types if there is one, else that of resource managers. What the
/// tool prints on standard error is in `report.official` and left to the caller.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let official = &report.official;
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
    if let Some(records) = &report.records {
        for line in records {
            let label = format!("{}/{}", line.rmgr, line.record);
            table_row(out, &label, &line.row, &line.shares)?;
        }
    } else if let Some(rmgrs) = &report.rmgrs {
        for line in rmgrs {
            table_row(out, &line.rmgr, &line.row, &line.shares)?;
        }
    }
    total(out, &report.totals)
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

fn table_row(out: &mut dyn Write, label: &str, row: &Row, shares: &Shares) -> io::Result<()> {
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

fn total(out: &mut dyn Write, all: &Row) -> io::Result<()> {
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
