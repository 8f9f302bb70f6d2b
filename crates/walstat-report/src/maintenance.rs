//! What maintenance wrote: rows of the model, of what the report has already.

use super::model::who::WholeTableRow;
use super::model::{ByteCause, Maintenance, MaintenanceRow, Report, Why};
use std::cmp::Reverse;
use walstat_analyse::ratios::ratio;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::row::kind::MATERIALIZED_VIEW;

/// A row for each kind of work that wrote anything, most first; `None` where causes are not told.
/// `vacuum_fpi_bytes` are images of vacuum.
pub(crate) fn rows(report: &Report, vacuum_fpi_bytes: u64) -> Option<Vec<MaintenanceRow>> {
    let causes = report.why.as_ref()?;
    let row_of = |cause| causes.iter().find(|row| row.cause == cause);
    let bytes_of = |cause| row_of(cause).map_or(0, |row| row.bytes);
    let refreshed = views(report).map(refreshed);
    let refreshed =
        refreshed.fold((0, 0), |(all, images), (bytes, fpi)| (all + bytes, images + fpi));
    let new_pages = bytes_of(ByteCause::NewPageImages);
    let new_page_images = row_of(ByteCause::NewPageImages).map_or(0, |row| row.fpi_bytes);
    let backup = report.when.as_ref().map_or(0, |when| when.backup_fpi_bytes);
    let row = |(work, bytes, fpi_bytes): (Maintenance, u64, u64)| MaintenanceRow {
        work,
        label: work.text().to_owned(),
        bytes,
        fpi_bytes,
        share: ratio(bytes, report.totals.total_bytes),
    };
    let all = [
        (Maintenance::Vacuum, bytes_of(ByteCause::Vacuum), vacuum_fpi_bytes),
        (Maintenance::NewPages, new_pages, new_page_images),
        (Maintenance::Refresh, refreshed.0, refreshed.1),
        (Maintenance::Backup, backup, backup),
    ];
    let mut rows: Vec<_> = all.into_iter().filter(|(_, bytes, _)| *bytes > 0).map(row).collect();
    rows.order_by_key(|row| Reverse(row.bytes));
    Some(rows)
}

/// Counts rows that were written anew with their table, so many bytes, as a rewrite: by their records they
/// are inserted rows.
pub(crate) fn count_rewrites(report: &mut Report, bytes: u64) {
    let total_bytes = report.totals.total_bytes;
    let Some(causes) = report.why.as_mut().filter(|_| bytes > 0) else { return };
    let mut moved = 0;
    for row in causes.iter_mut().filter(|row| row.cause == ByteCause::Rows) {
        moved = bytes.min(row.bytes);
        row.bytes -= moved;
    }
    for row in causes.iter_mut().filter(|row| row.cause == ByteCause::NewPageImages) {
        row.bytes += moved;
    }
    causes.iter_mut().for_each(|row| row.share = ratio(row.bytes, total_bytes));
    Why::sort(causes);
}

/// Materialized views: nothing but a refresh changes their rows.
pub(crate) fn views(report: &Report) -> impl Iterator<Item = &WholeTableRow> {
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    tables.filter(|row| is_view(row))
}

/// Whether a row is a materialized view's.
pub(crate) fn is_view(row: &WholeTableRow) -> bool {
    row.is_of_kind(&[MATERIALIZED_VIEW])
}

/// What refreshes of a view wrote, and their images: all but vacuum.
pub(crate) fn refreshed(view: &WholeTableRow) -> (u64, u64) {
    let bytes = view.numbers.total_bytes.saturating_sub(view.vacuum_bytes);
    (bytes, view.numbers.fpi_bytes.saturating_sub(view.vacuum_fpi_bytes).min(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::when::Overview;
    use crate::model::{Numbers, sample};

    #[test]
    fn each_work_has_its_bytes_and_what_did_nothing_has_no_row() {
        let mut report = sample::report(0, 1000);
        assert_eq!(rows(&report, 0), None);
        let why = |cause: ByteCause, bytes| Why {
            cause,
            label: cause.text().to_owned(),
            bytes,
            fpi_bytes: 0,
            share: None,
        };
        report.why = Some(vec![why(ByteCause::Vacuum, 400), why(ByteCause::NewPageImages, 0)]);
        report.when = Some(Overview { backup_fpi_bytes: 500, ..Overview::default() });
        let view = |kind: &str| WholeTableRow {
            kind: Some(kind.into()),
            numbers: Numbers { total_bytes: 90, fpi_bytes: 30, ..Numbers::default() },
            vacuum_bytes: 40,
            vacuum_fpi_bytes: 25,
            ..WholeTableRow::default()
        };
        report.tables = Some(vec![view("m"), view("r")].into());
        let found = rows(&report, 300).expect("rows");
        let told = found.iter().map(|row| (row.work, row.bytes, row.fpi_bytes, row.share));
        let want = [
            (Maintenance::Backup, 500, 500, Some(0.5)),
            (Maintenance::Vacuum, 400, 300, Some(0.4)),
            (Maintenance::Refresh, 50, 5, Some(0.05)),
        ];
        assert_eq!(told.collect::<Vec<_>>(), want);
    }

    /// Of a server of 13 a rewrite was 70 % of the bytes, and 8 % was told.
    #[test]
    fn rows_that_are_written_anew_are_a_rewrite() {
        let why = |cause: ByteCause, bytes, fpi_bytes| {
            let (label, share) = (cause.text().to_owned(), ratio(bytes, 1000));
            Why { cause, label, bytes, fpi_bytes, share }
        };
        let mut report = sample::report(0, 1000);
        let rows = why(ByteCause::Rows, 640, 0);
        let pages = why(ByteCause::NewPageImages, 80, 80);
        let other = why(ByteCause::Other, 280, 0);
        report.why = Some(vec![rows, pages, other.clone()]);
        count_rewrites(&mut report, 600);
        let want = [why(ByteCause::NewPageImages, 680, 80), why(ByteCause::Rows, 40, 0), other];
        assert_eq!(report.why, Some(want.into()));
        let found = super::rows(&report, 0).expect("rows");
        let told = found.iter().map(|row| (row.work, row.bytes, row.fpi_bytes));
        assert_eq!(told.collect::<Vec<_>>(), [(Maintenance::NewPages, 680, 80)]);
    }
}
