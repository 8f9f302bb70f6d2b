//! Tables that are filled anew again and again: emptied by TRUNCATE and loaded, or dropped, made and loaded.

use crate::model::Report;
use crate::model::large::LargeWorkRow;
use crate::model::who::WholeTableRow;
use std::collections::BTreeMap;

/// Those with large loads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::advice) struct RefilledTables {
    /// How the report calls them, in the order of their loads.
    pub(in crate::advice) tables: Vec<String>,
    /// How many loads.
    pub(in crate::advice) loads: u64,
    /// Bytes that these wrote at least.
    pub(in crate::advice) bytes: u64,
    /// Bytes of them that went into indexes.
    pub(in crate::advice) index_bytes: u64,
    /// All that the tables wrote.
    pub(in crate::advice) table_bytes: u64,
}

/// What one table had.
#[derive(Debug, Clone, Copy, Default)]
struct Files {
    count: u64,
    table_bytes: u64,
}

impl RefilledTables {
    /// Those that loads filled; `None` if none of them was filled anew.
    pub(in crate::advice) fn of<'r>(
        report: &Report,
        loads: impl Iterator<Item = &'r LargeWorkRow>,
    ) -> Option<RefilledTables> {
        let loads: Vec<(&str, &LargeWorkRow)> =
            loads.filter_map(|load| Some((load.table.as_deref()?, load))).collect();
        let tables = report.tables.as_ref().filter(|_| !loads.is_empty())?;
        let labelling = tables.labelling();
        let mut files: BTreeMap<String, Files> = BTreeMap::new();
        for row in &tables.rows {
            let label = labelling.label_of(row);
            if loads.iter().any(|(name, _)| *name == label) {
                files.entry(label).or_default().add(row);
            }
        }
        let mut found = RefilledTables::default();
        for (name, load) in loads {
            let of_table = files.get(name).copied().unwrap_or_default();
            if of_table.are_of(load) {
                found.tables.push(name.to_owned());
                found.loads += load.transactions;
                found.bytes += load.total_bytes;
                found.index_bytes += load.index_bytes;
                found.table_bytes += of_table.table_bytes;
            }
        }
        (found.loads > 0).then_some(found)
    }
}

impl Files {
    fn add(&mut self, row: &WholeTableRow) {
        self.count += row.heap.as_ref().map_or(0, |heap| heap.relfilenodes.len() as u64);
        self.table_bytes += row.numbers.total_bytes;
    }

    /// Whether there is a file for every other load at least: TRUNCATE begins a new one, as a new table does,
    /// and a load may be several transactions.
    fn are_of(&self, load: &LargeWorkRow) -> bool {
        self.count > 1 && 2 * self.count >= load.transactions
    }
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::model::large::LargeWork;
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

    /// A report of 100 MB in which each of these tables had so many loads of so many megabytes, into so many
    /// files.
    pub(crate) fn filled(names: &[&str], loads: u64, megabytes: u64, files: u64) -> Report {
        let total_bytes = loads * (megabytes << 20);
        let load = |name: &&str| LargeWorkRow {
            work: LargeWork::Load,
            table: Some(format!("public.{name}")),
            is_aborted: false,
            transactions: loads,
            xid: Some("741".into()),
            total_bytes,
            index_bytes: 0,
            deletes: 0,
        };
        let table = |name: &&str| WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some((*name).into()),
            numbers: Numbers { total_bytes: total_bytes / 10 * 11, ..Numbers::default() },
            heap: Some(Part {
                relfilenodes: (0..files).map(|file| format!("1663/5/{file}")).collect(),
                ..Part::default()
            }),
            ..WholeTableRow::default()
        };
        let mut report = sample::report(0, 100 << 20);
        report.tables = Some(names.iter().map(table).collect::<Vec<_>>().into());
        report.large_work = Some(names.iter().map(load).collect());
        report
    }

    fn found(report: &Report) -> Option<RefilledTables> {
        RefilledTables::of(report, report.large_work.iter().flatten())
    }

    #[test]
    fn a_table_is_filled_anew_where_it_has_a_file_for_most_loads() {
        let loads = |files| found(&filled(&["stage"], 6, 10, files)).map(|found| found.loads);
        assert_eq!([1, 2, 3, 7].map(loads), [None, None, Some(6), Some(6)]);
        // Of those dropped and made again that nobody can tell from others of the same name.
        let mut report = filled(&["stage"], 6, 10, 1);
        let row = report.tables.iter().flat_map(|tables| &tables.rows).next().cloned();
        report.tables = Some(vec![row.expect("a table"); 6].into());
        let found = found(&report).expect("tables");
        assert_eq!((found.tables.len(), found.table_bytes), (1, 6 * (66 << 20)));
    }
}
