//! Databases that were made by writing each page of their template into the WAL (`STRATEGY = WAL_LOG`).

use crate::model::Report;
use crate::model::who::{Part, WholeTableRow};
use std::collections::BTreeMap;
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

/// A template has some fifty catalogs with pages: whose database has that many new ones was copied.
const CATALOGS: u64 = 20;

/// All of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopiedDatabases {
    /// How many.
    pub(super) count: u64,
    /// What copying them wrote.
    pub(super) bytes: u64,
}

impl CopiedDatabases {
    /// Those of a report; `None` if there is none, or their catalogs are not known.
    pub(super) fn of(report: &Report) -> Option<CopiedDatabases> {
        let records = report.records.iter().flat_map(|records| &records.rows);
        let made = records.filter(|row| row.rmgr == "Database" && row.record == "CREATE_WAL_LOG");
        let count = made.map(|row| row.sums.count).sum();
        let mut databases: BTreeMap<Option<u32>, (u64, u64)> = BTreeMap::new();
        for row in report.tables.iter().flat_map(|tables| &tables.rows) {
            let (bytes, catalogs) = databases.entry(row.database).or_default();
            let copied = copied_bytes(row);
            let is_catalog = row.schema.as_deref() == Some(CATALOG_SCHEMA_NAME);
            *bytes += copied;
            *catalogs += u64::from(is_catalog && copied > 0);
        }
        let copied = databases.values().filter(|(_, catalogs)| *catalogs >= CATALOGS);
        let bytes = copied.map(|(bytes, _)| bytes).sum();
        (count > 0 && bytes > 0).then_some(CopiedDatabases { count, bytes })
    }
}

/// What the new pages of a table and all that belongs to it wrote, with their records.
fn copied_bytes(row: &WholeTableRow) -> u64 {
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
pub(super) mod tests {
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
        let row = WholeTableRow { database: Some(5), schema, heap, ..WholeTableRow::default() };
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
