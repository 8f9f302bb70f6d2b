//! How many rows of a table are kept and shown, and in which order.

use crate::args::values::TOP_DEFAULT;
use crate::args::{Format, StatsArgs};
use walstat_analyse::finished_transactions::{Order, ROWS_MAX};
use walstat_report::model::table::Sort;

/// Record types in the report without `--stats`.
const TOP_IN_REPORT: usize = 8;

/// How many rows of a table a format shows; 0: all.
pub fn rows_shown(args: &StatsArgs, format: Format) -> usize {
    let usual = match format {
        Format::Json | Format::Ndjson | Format::Csv | Format::PgWaldump => 0,
        Format::Table if !args.asks_for_statistics() => TOP_IN_REPORT,
        Format::Table | Format::Markdown | Format::Html | Format::Openmetrics => TOP_DEFAULT,
    };
    args.tables.top.unwrap_or(usual)
}

/// How many rows of a table are shown at most in any format; 0: all.
pub fn most_rows(args: &StatsArgs) -> usize {
    let shown = args.outputs.formats().map(|format| rows_shown(args, format));
    shown.max_by_key(|rows| rows.wrapping_sub(1)).unwrap_or(0)
}

/// How many transactions are kept as rows.
pub fn rows(args: &StatsArgs) -> usize {
    // A partial result is shown later, in whatever format.
    let shown = if args.partial { args.tables.top.unwrap_or(0) } else { most_rows(args) };
    match shown {
        0 => ROWS_MAX,
        rows => rows,
    }
}

/// Which transactions come first.
pub fn order(sort: Sort) -> Order {
    match sort {
        Sort::Bytes => Order::Bytes,
        Sort::Count => Order::Count,
        Sort::Fpi => Order::Fpi,
        Sort::Name => Order::Xid,
    }
}
