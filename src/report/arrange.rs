//! The rows of a report's tables in the order and number asked for.

use super::model::{More, RecordRow, Report, RmgrRow, Row, Shares};
use std::cmp::{Ordering, Reverse};

/// What rows are ordered by; largest first, names from A to Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// All bytes.
    Bytes,
    /// Records.
    Count,
    /// Image bytes.
    Fpi,
    /// Name.
    Name,
}

/// What both kinds of rows have.
trait Named {
    fn name(&self) -> (&str, &str);
    fn row(&self) -> &Row;
}

impl Named for RmgrRow {
    fn name(&self) -> (&str, &str) {
        (&self.rmgr, "")
    }
    fn row(&self) -> &Row {
        &self.row
    }
}

impl Named for RecordRow {
    fn name(&self) -> (&str, &str) {
        (&self.rmgr, &self.record)
    }
    fn row(&self) -> &Row {
        &self.row
    }
}

/// How many rows of each table are kept; 0 keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Top {
    /// Of resource managers.
    pub rmgrs: usize,
    /// Of record types.
    pub records: usize,
}

/// Orders the rows of all tables and keeps the first ones.
pub fn arrange(report: &mut Report, sort: Sort, top: Top) {
    let all = report.totals;
    if let Some(rows) = &mut report.rmgrs {
        rows.sort_by(|a, b| compare(a, b, sort));
        report.more_rmgrs = cut(rows, top.rmgrs, &all);
    }
    if let Some(rows) = &mut report.records {
        rows.sort_by(|a, b| compare(a, b, sort));
        report.more_records = cut(rows, top.records, &all);
    }
}

fn compare(a: &impl Named, b: &impl Named, sort: Sort) -> Ordering {
    let key = |row: &Row| match sort {
        Sort::Bytes => row.total_bytes,
        Sort::Count => row.count,
        Sort::Fpi => row.fpi_bytes,
        Sort::Name => 0,
    };
    let by_key = Reverse(key(a.row())).cmp(&Reverse(key(b.row())));
    by_key.then_with(|| a.name().cmp(&b.name()))
}

fn cut(rows: &mut Vec<impl Named>, top: usize, all: &Row) -> Option<More> {
    if top == 0 || rows.len() <= top {
        return None;
    }
    let rest = rows.split_off(top);
    let mut row = Row::default();
    rest.iter().for_each(|r| row.add(r.row()));
    Some(More { rows: rest.len(), row, shares: Shares::of(&row, all) })
}

impl Row {
    /// Adds `other`.
    pub fn add(&mut self, other: &Row) {
        self.count += other.count;
        self.record_bytes += other.record_bytes;
        self.fpi_bytes += other.fpi_bytes;
        self.total_bytes += other.total_bytes;
        self.main_data_bytes += other.main_data_bytes;
        self.block_data_bytes += other.block_data_bytes;
        self.header_bytes += other.header_bytes;
        self.fpi_count += other.fpi_count;
        self.fpi_records += other.fpi_records;
        self.fpi_apply_count += other.fpi_apply_count;
        self.fpi_check_count += other.fpi_check_count;
        self.uncompressed_fpi_bytes += other.uncompressed_fpi_bytes;
    }
}
