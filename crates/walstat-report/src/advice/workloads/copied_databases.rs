//! Databases that were made by writing each page of their template into the WAL (`STRATEGY = WAL_LOG`).

use crate::model::Report;
use crate::model::who::{Part, WholeTableRow};
use std::collections::{BTreeMap, BTreeSet};
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

/// A template has some fifty catalogs with pages: whose database has that many new ones was copied.
const CATALOGS: u64 = 20;

/// All of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::advice) struct CopiedDatabases {
    /// How many.
    pub(in crate::advice) count: u64,
    /// What copying them wrote.
    pub(in crate::advice) bytes: u64,
}

impl CopiedDatabases {
    /// Those of a report; `None` if there is none, or their catalogs are not known.
    pub(in crate::advice) fn of(report: &Report) -> Option<CopiedDatabases> {
        let databases = copied_databases(report);
        let rows = report.tables.iter().flat_map(|tables| &tables.rows);
        let copied = rows.filter(|row| databases.contains(&row.database));
        let (count, bytes) = (times_made(report), copied.map(copied_bytes).sum());
        (bytes > 0).then_some(CopiedDatabases { count, bytes })
    }
}

/// Databases whose catalogs were copied, as far as they are known.
pub(in crate::advice) fn copied_databases(report: &Report) -> BTreeSet<Option<u32>> {
    if times_made(report) == 0 {
        return BTreeSet::new();
    }
    let mut catalogs: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for row in report.tables.iter().flat_map(|tables| &tables.rows) {
        let is_catalog = row.schema.as_deref() == Some(CATALOG_SCHEMA_NAME);
        *catalogs.entry(row.database).or_default() +=
            u64::from(is_catalog && copied_bytes(row) > 0);
    }
    let copied = catalogs.into_iter().filter(|(_, catalogs)| *catalogs >= CATALOGS);
    copied.map(|(database, _)| database).collect()
}

/// How many databases were made by copying pages.
fn times_made(report: &Report) -> u64 {
    let records = report.records.iter().flat_map(|records| &records.rows);
    let made = records.filter(|row| row.rmgr == "Database" && row.record == "CREATE_WAL_LOG");
    made.map(|row| row.sums.count).sum()
}

/// What the new pages of a table and all that belongs to it wrote, with their records.
pub(in crate::advice) fn copied_bytes(row: &WholeTableRow) -> u64 {
    let parts =
        row.heap.iter().chain(&row.toast).chain(row.indexes.iter().map(|index| &index.part));
    let new_pages = |part: &Part| {
        let numbers = &part.numbers;
        let times = numbers.total_bytes as f64 / numbers.fpi_bytes.max(1) as f64;
        (part.new_page_fpi_bytes as f64 * times) as u64
    };
    parts.map(new_pages).sum()
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::model::table::RecordRow;
    use crate::model::{Numbers, Sums, sample};

    /// A report of 100 MB on which so many databases were made, one of them with so many catalogs of 1 MB.
    pub(crate) fn copied(count: u64, catalogs: usize) -> Report {
        let mut report = sample::report(0, 100 << 20);
        let sums = Sums { count, ..Sums::default() };
        let (rmgr, record, info) = ("Database".into(), "CREATE_WAL_LOG".into(), "0x10".into());
        report.records = Some(vec![RecordRow { rmgr, record, info, sums }].into());
        let numbers = Numbers { fpi_bytes: 1 << 20, total_bytes: 1 << 20, ..Numbers::default() };
        let heap = Some(Part { numbers, new_page_fpi_bytes: 1 << 20, ..Part::default() });
        let schema = Some(CATALOG_SCHEMA_NAME.into());
        let database = Some(5);
        let row = WholeTableRow { database, schema, numbers, heap, ..WholeTableRow::default() };
        report.tables = Some(vec![row; catalogs].into());
        report
    }

    #[test]
    fn a_rewrite_of_catalogs_is_no_copy() {
        let of = |count, catalogs| CopiedDatabases::of(&copied(count, catalogs));
        assert_eq!(of(3, 60), Some(CopiedDatabases { count: 3, bytes: 60 << 20 }));
        assert_eq!((of(3, 19), of(0, 60)), (None, None));
    }
}
