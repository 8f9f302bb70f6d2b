//! Kinds of transactions: what they did, how many there were, how large they are.

use super::number::{UNKNOWN, grouped};
use super::style::{Show, plain};
use super::visible::visible;
use walstat_report::model::Sums;
use walstat_report::model::kind::KindRow;
use walstat_report::model::table::{Line, Table};

/// The table of `--stats=kind`.
pub fn table(kinds: &Table<KindRow>, all: &Sums, style: &Show) -> comfy_table::Table {
    let headings = [
        "Kind",
        "transactions",
        "aborted",
        "N",
        "FPI size",
        "Combined size",
        "%",
        "each",
        "p50",
        "p99",
    ];
    let mut table = plain(&headings);
    let rows = kinds.lines(all).zip(kinds.rows.iter().map(Some));
    let left_out = kinds.left_out(all, |count| format!("{} more", grouped(count as u64)));
    for (line, row) in rows.chain(left_out.map(|line| (line, None))) {
        table.add_row(cells(&line, row, style));
    }
    table.add_row(cells(&Line::total(all), None, style));
    table
}

fn cells(line: &Line, row: Option<&KindRow>, style: &Show) -> [String; 10] {
    let Line { label, numbers, shares, .. } = line;
    let row = row.filter(|row| row.transactions > 0);
    let count = |of: fn(&KindRow) -> u64| row.map_or(UNKNOWN.into(), |row| grouped(of(row)));
    let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN.into(), |bytes| style.bytes(bytes));
    let each = row.and_then(|row| row.bytes_per_transaction);
    [
        visible(label).into_owned(),
        count(|row| row.transactions),
        count(|row| row.aborted),
        grouped(numbers.count),
        style.bytes(numbers.fpi_bytes),
        style.bytes(numbers.total_bytes),
        format!("{:.2}", shares.total),
        bytes(each.map(|bytes| bytes.round() as u64)),
        bytes(row.and_then(|row| row.median_bytes)),
        bytes(row.and_then(|row| row.p99_bytes)),
    ]
}
