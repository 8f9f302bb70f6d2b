//! `--json-compat walinspect`: rows with the keys of `pg_get_wal_stats` (pg_walinspect, 15 and later), for
//! what reads those.

use serde_json::{Value, json};
use std::io::{self, Write};
use walstat_report::model::table::{Line, Table, TableRow};
use walstat_report::model::{Report, Sums};

/// Writes the rows of the dimension that was asked for.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.totals;
    let rows = match &report.records {
        Some(records) => rows(records, all),
        None => report.rmgrs.as_ref().map_or_else(Vec::new, |rmgrs| rows(rmgrs, all)),
    };
    serde_json::to_writer_pretty(&mut *out, &Value::Array(rows))?;
    writeln!(out)
}

fn rows<R: TableRow>(table: &Table<R>, all: &Sums) -> Vec<Value> {
    table.lines(all).map(row).collect()
}

fn row(line: Line) -> Value {
    let Line { label, numbers, shares, .. } = line;
    json!({
        "resource_manager/record_type": label,
        "count": numbers.count,
        "count_percentage": shares.count,
        "record_size": numbers.record_bytes,
        "record_size_percentage": shares.record,
        "fpi_size": numbers.fpi_bytes,
        "fpi_size_percentage": shares.fpi,
        "combined_size": numbers.total_bytes,
        "combined_size_percentage": shares.total,
    })
}
