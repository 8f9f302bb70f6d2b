//! Updates of a good part of a table in one transaction: room in the pages does not help these, since there
//! is none for all rows of a page at once.

use crate::advice::rules::label;
use crate::model::Report;
use crate::model::large::{LargeWork, LargeWorkRow};
use crate::model::table::TableRow;
use crate::model::threshold::MOSTLY;
use crate::model::who::WholeTableRow;
use std::cell::OnceCell;
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::data_page::heap_tuple::ROW_BYTES_MIN;

/// A transaction that updates this share of the rows in the pages that it touches wants more room than any
/// usual fillfactor leaves.
const BULK: f64 = 0.25;

/// Large transactions that updated one table.
#[derive(Debug, Clone, Copy)]
pub(in crate::advice) struct BulkUpdates {
    /// How many rows each updated, about.
    pub(in crate::advice) rows_each: u64,
    /// The share of all updates of the table that they made.
    pub(in crate::advice) share: f64,
    /// All that the table wrote.
    pub(in crate::advice) table_bytes: u64,
    is_bulk: bool,
}

impl BulkUpdates {
    /// Of a table; `None` if no large transaction updated it.
    pub(in crate::advice) fn of_table(
        report: &Report,
        table: &WholeTableRow,
    ) -> Option<BulkUpdates> {
        // Whether its database belongs to its name depends on all tables, so that is asked of few.
        let (short, whole) = (table.label(), OnceCell::new());
        let is_of_table = |work: &&LargeWorkRow| {
            let name = work.table.as_deref().filter(|name| name.ends_with(&short));
            name.is_some_and(|name| name == whole.get_or_init(|| label(report, table)))
        };
        let works = report.large_work.iter().flatten();
        let work = works.filter(is_update).find(is_of_table)?;
        BulkUpdates::measured(report, work, table)
    }

    /// Those that a row tells of; `None` if its table is not known.
    pub(in crate::advice) fn of_work(report: &Report, work: &LargeWorkRow) -> Option<BulkUpdates> {
        let table = table_of(report, work).filter(|_| is_update(&work))?;
        BulkUpdates::measured(report, work, table)
    }

    fn measured(
        report: &Report,
        work: &LargeWorkRow,
        table: &WholeTableRow,
    ) -> Option<BulkUpdates> {
        let costs = &table.update_bytes;
        let all = costs.hot.total_bytes + costs.non_hot.total_bytes;
        if table.updates == 0 || all == 0 {
            return None;
        }
        let share = (work.total_bytes as f64 / all as f64).min(1.0);
        let rows_each = share * table.updates as f64 / work.transactions.max(1) as f64;
        let heap = table.heap.as_ref()?;
        let row_bytes =
            ROW_BYTES_MIN as u64 + heap.block_data_bytes / (table.updates + table.inserts);
        let page_bytes =
            u64::from(report.data_page_bytes()).saturating_sub(PAGE_HEADER_BYTES as u64);
        let room = (heap.distinct_blocks * page_bytes / row_bytes) as f64;
        // Each may have left old rows in pages of their own.
        let others = (work.transactions.max(1) - 1) as f64 * rows_each;
        let is_bulk = rows_each >= BULK * (room - others).max(rows_each);
        let table_bytes = table.numbers.total_bytes;
        Some(BulkUpdates { rows_each: rows_each.round() as u64, share, table_bytes, is_bulk })
    }

    /// Whether they are most of the updates of the table, and room in its pages would not help them.
    pub(in crate::advice) fn are_most(&self) -> bool {
        self.is_bulk && self.share >= MOSTLY
    }
}

/// The table that a row is about; `None` if it is not known.
pub(in crate::advice) fn table_of<'r>(
    report: &'r Report,
    work: &LargeWorkRow,
) -> Option<&'r WholeTableRow> {
    let name = work.table.as_ref()?;
    let tables = report.tables.as_ref()?;
    let labelling = tables.labelling();
    tables.rows.iter().find(|table| labelling.label_of(*table) == *name)
}

fn is_update(work: &&LargeWorkRow) -> bool {
    work.work == LargeWork::Update && !work.is_aborted
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::model::update::{UpdateBytes, UpdateCost};
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

    /// A table of 150,000 rows in so many pages, which four transactions updated: `rows` each, 376 bytes a
    /// row.
    pub(crate) fn updated(rows: u64, pages: u64) -> Report {
        let total_bytes = 4 * rows * 376;
        let heap =
            Part { distinct_blocks: pages, block_data_bytes: 4 * rows * 58, ..Part::default() };
        let non_hot =
            UpdateCost { updates: 4 * rows, total_bytes, index_bytes: 1, ..Default::default() };
        let table = WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some("prices".into()),
            numbers: Numbers { total_bytes, ..Numbers::default() },
            updates: 4 * rows,
            updates_new_page: 4 * rows,
            update_bytes: UpdateBytes { non_hot, ..Default::default() },
            heap: Some(heap),
            ..WholeTableRow::default()
        };
        let work = LargeWorkRow {
            work: LargeWork::Update,
            table: Some("public.prices".into()),
            is_aborted: false,
            transactions: 4,
            xid: Some("741".into()),
            total_bytes: total_bytes / 10 * 9,
            index_bytes: total_bytes / 2,
            deletes: 0,
        };
        let mut report = sample::report(0, total_bytes / 9 * 10);
        (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.0), 4 * rows);
        report.tables = Some(vec![table].into());
        report.large_work = Some(vec![work]);
        report
    }

    fn found(report: &Report) -> BulkUpdates {
        let tables = report.tables.iter().flat_map(|tables| &tables.rows);
        let mut found = tables.into_iter().filter_map(|row| BulkUpdates::of_table(report, row));
        found.next().expect("updates")
    }

    #[test]
    fn many_rows_of_each_page_are_bulk_and_few_are_not() {
        // All rows, and as many old ones.
        let all = found(&updated(150_000, 2800));
        assert!(all.are_most() && all.rows_each == 135_000, "{all:?}");
        // Where nothing is vacuumed, each leaves its old rows.
        assert!(found(&updated(150_000, 7900)).are_most());
        assert!(!found(&updated(20_000, 4000)).are_most());
        // Pages of 32 kB have room for four times as many rows.
        let mut wide = updated(150_000, 7900);
        wide.input.data_page_bytes = Some(32_768);
        assert!(!found(&wide).are_most());
        let mut report = updated(150_000, 2800);
        report.large_work.iter_mut().flatten().for_each(|work| work.total_bytes /= 2);
        assert!(!found(&report).are_most(), "less than half of the updates");
    }
}
