//! How many rows of who writes the WAL are kept, and in which order.

use super::args::StatsArgs;
use super::stats::most_rows;
use crate::analyse::finished::{Order, ROWS_MAX};
use crate::report::model::table::Sort;

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
