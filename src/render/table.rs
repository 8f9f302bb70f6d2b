//! `--format table`: statistics for people, with the headings of `pg_waldump --stats`.

use super::number::{grouped, human_bytes};
use crate::report::model::{Report, Row, Shares};
use comfy_table::{CellAlignment, Table, presets};
use std::io::{self, Write};

/// How to show a report to people.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Bytes as `3.42 MB` rather than as digits.
    pub human: bool,
    /// Bars may be drawn.
    pub bars: bool,
    /// Add the column of main data and headers alone.
    pub main_data: bool,
    /// Say more.
    pub verbose: bool,
}

impl Show {
    /// Bytes in the form asked for.
    pub fn bytes(&self, bytes: u64) -> String {
        if self.human { human_bytes(bytes) } else { bytes.to_string() }
    }
}

/// Writes the tables that were asked for, and what has to be said about them.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    if let Some(rmgrs) = &report.rmgrs {
        let rows = rmgrs.iter().filter(|line| line.row.count > 0);
        let rows = rows.map(|line| (line.rmgr.clone(), &line.row, &line.shares));
        let more = report
            .more_rmgrs
            .as_ref()
            .map(|more| (format!("{} more", more.rows), &more.row, &more.shares));
        let table = statistics("Resource manager", rows.chain(more), report, style);
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    if let Some(records) = &report.records {
        let table = record_table(report, records, style);
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    if style.main_data {
        writeln!(
            out,
            "Main data: main data + 24 bytes a record, what pg_xlogdump up to 9.5.7 and 9.6.3 \
             called\nthe record size (BUG #14687). It leaves out block headers and block data, so \
             it is not the size.\n"
        )?;
    }
    super::screen::closing(report, style, out)
}

/// The table of record types.
pub fn record_table(
    report: &Report,
    records: &[crate::report::model::RecordRow],
    style: &Show,
) -> Table {
    let rows = records
        .iter()
        .map(|line| (format!("{}/{}", line.rmgr, line.record), &line.row, &line.shares));
    let more = report
        .more_records
        .as_ref()
        .map(|more| (format!("{} more types", more.rows), &more.row, &more.shares));
    statistics("Type", rows.chain(more), report, style)
}

fn statistics<'r>(
    first: &str,
    rows: impl Iterator<Item = (String, &'r Row, &'r Shares)>,
    report: &Report,
    style: &Show,
) -> Table {
    let mut headings = vec![first, "N", "%"];
    // In units the columns are narrower than their headings.
    headings.extend(match style.human {
        true => ["Record\nsize", "%", "FPI\nsize", "%", "Combined\nsize", "%"],
        false => ["Record size", "%", "FPI size", "%", "Combined size", "%"],
    });
    if style.main_data {
        headings.push("Main data");
    }
    let mut table = plain(&headings);
    for (label, row, shares) in rows {
        table.add_row(cells(label, row, shares, style));
    }
    let all = &report.totals;
    table.add_row(cells("Total".into(), all, &Shares::of(all, all), style));
    table
}

fn cells(label: String, row: &Row, shares: &Shares, style: &Show) -> Vec<String> {
    let percent = |share: f64| format!("{share:.2}");
    let mut cells = vec![
        label,
        grouped(row.count),
        percent(shares.count),
        style.bytes(row.record_bytes),
        percent(shares.record),
        style.bytes(row.fpi_bytes),
        percent(shares.fpi),
        style.bytes(row.total_bytes),
        percent(shares.total),
    ];
    if style.main_data {
        cells.push(style.bytes(row.main_data_only_bytes()));
    }
    cells
}

/// A table without lines: the first column to the left, all others to the right.
pub fn plain(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headings.iter().copied());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
