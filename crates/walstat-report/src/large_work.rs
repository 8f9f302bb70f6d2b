//! Who wrote much at once: large transactions with their tables, and together those that did the same to the
//! same table.

use super::maintenance::{is_view, refreshed, views};
use super::model::Report;
use super::model::large::{LargeTransactionRow, LargeWork, LargeWorkRow};
use super::model::table::{Labelling, Table, TableRow};
use super::model::threshold::MOSTLY;
use super::model::who::{IndexPart, Part, WholeTableRow};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use walstat_analyse::large_transactions::LargeTransaction;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::kind::INDEX;

/// Large transactions that are told.
const TOLD: usize = 20;

/// A table whose builds have less is not told, as a transaction is not.
const LEAST_BUILT: u64 = 1 << 20;

/// Large transactions, and which of them wrote a table anew, row for row.
pub(crate) struct LargeFound {
    found: Vec<LargeTransaction>,
    rewrites: BTreeSet<u32>,
}

impl LargeFound {
    /// With what is known of files.
    pub(crate) fn of(found: Vec<LargeTransaction>, names: &Names) -> LargeFound {
        let rewrites = found.iter().filter(|transaction| is_rewrite(transaction, names));
        let rewrites = rewrites.map(|transaction| transaction.xid).collect();
        LargeFound { found, rewrites }
    }

    /// Bytes of rows that those wrote which wrote a table anew.
    pub(crate) fn rewritten_bytes(&self) -> u64 {
        let rewrites = self.found.iter().filter(|found| self.rewrites.contains(&found.xid));
        rewrites.map(|rewrite| rewrite.written.insert_bytes).sum()
    }
}

/// Whether more than half of what a transaction wrote went into files into which it wrote a relation anew, as
/// far as the sample tells. ALTER TABLE inserts each row again, where VACUUM FULL copies whole pages.
fn is_rewrite(transaction: &LargeTransaction, names: &Names) -> bool {
    let relations = || transaction.relations.iter();
    let anew = relations().filter(|(file, _)| names.rewritten_by(**file) == Some(transaction.xid));
    2 * anew.map(|(_, met)| met).sum::<u64>() > relations().map(|(_, met)| met).sum()
}

/// Fills in transactions with a good part of the WAL; the tables are there already.
pub(crate) fn fill(report: &mut Report, large: LargeFound) {
    let LargeFound { found, rewrites } = large;
    let tables = Tables::of(report);
    let mut told: Vec<(LargeTransactionRow, LargeWork)> = Vec::new();
    for transaction in &found {
        let table = tables.mostly_of(transaction);
        let row = row(transaction, table.filter(|t| t.name.is_some()).map(|t| tables.label_of(t)));
        let work = match work(&row, table) {
            LargeWork::Load if rewrites.contains(&transaction.xid) => LargeWork::Rewrite,
            work => work,
        };
        told.push((row, work));
    }
    let mut all: Vec<LargeWorkRow> =
        views(report).map(|view| refreshes(tables.label_of(view), view)).collect();
    let rows = report.tables.iter().flat_map(|tables| &tables.rows);
    all.extend(
        rows.filter(|row| !is_view(row)).filter_map(|row| builds(tables.label_of(row), row)),
    );
    for (row, work) in &told {
        add(&mut all, row, *work);
    }
    all.retain(|row| row.total_bytes > 0);
    all.order_by(|a, b| (Reverse(a.total_bytes), &a.xid).cmp(&(Reverse(b.total_bytes), &b.xid)));
    all.truncate(TOLD);
    report.large_work = Some(all);
    report.large_transactions = Some(told.into_iter().map(|(row, _)| row).take(TOLD).collect());
}

/// Which file belongs to which table.
struct Tables<'r> {
    labelling: Option<Labelling>,
    of_file: HashMap<&'r str, &'r WholeTableRow>,
}

impl Tables<'_> {
    fn of(report: &Report) -> Tables<'_> {
        let rows = report.tables.iter().flat_map(|tables| &tables.rows);
        let files = |row| {
            let WholeTableRow { heap, toast, indexes, .. }: &WholeTableRow = row;
            let parts = heap.iter().chain(toast).chain(indexes.iter().map(|index| &index.part));
            parts.flat_map(|part| &part.relfilenodes).map(move |file| (file.as_str(), row))
        };
        let labelling = report.tables.as_ref().map(Table::labelling);
        Tables { labelling, of_file: rows.flat_map(files).collect() }
    }

    /// How the report calls a table.
    fn label_of(&self, row: &WholeTableRow) -> String {
        self.labelling.map_or_else(|| row.label(), |labelling| labelling.label_of(row))
    }

    /// The table that more than half of what a transaction wrote belongs to, as far as the sample tells: of
    /// two that have half of it each, neither is it. Indexes of
    /// which it is not known whose they are say nothing: their entries came with rows.
    fn mostly_of(&self, transaction: &LargeTransaction) -> Option<&WholeTableRow> {
        let mut all: u64 = transaction.relations.values().sum();
        let mut times: BTreeMap<String, (u64, &WholeTableRow)> = BTreeMap::new();
        for (relation, met) in &transaction.relations {
            let Some(row) = self.of_file.get(relation.to_string().as_str()) else { continue };
            if row.is_of_kind(&[INDEX]) {
                all -= met;
                continue;
            }
            times.entry(row.full_label()).or_insert((0, row)).0 += met;
        }
        let most = times.into_values().max_by_key(|(met, _)| *met);
        most.filter(|(met, _)| 2 * met > all).map(|(_, row)| row)
    }
}

fn row(transaction: &LargeTransaction, table: Option<String>) -> LargeTransactionRow {
    let written = &transaction.written;
    LargeTransactionRow {
        xid: transaction.xid.to_string(),
        total_bytes: written.bytes,
        insert_bytes: written.insert_bytes,
        update_bytes: written.update_bytes,
        delete_bytes: written.delete_bytes,
        index_bytes: written.index_bytes,
        new_page_bytes: written.new_page_bytes,
        table,
        is_aborted: transaction.is_aborted,
    }
}

/// What a transaction did.
fn work(row: &LargeTransactionRow, table: Option<&WholeTableRow>) -> LargeWork {
    let is_most = |bytes: u64| bytes as f64 >= MOSTLY * row.total_bytes as f64;
    let LargeTransactionRow { insert_bytes, update_bytes, delete_bytes, .. } = *row;
    match table {
        Some(table) if is_view(table) => LargeWork::Refresh,
        _ if is_most(row.new_page_bytes) => LargeWork::NewPages,
        _ if is_most(delete_bytes) => LargeWork::Delete,
        // Most of what an update writes may be locks of rows and entries of indexes.
        _ if update_bytes > insert_bytes + delete_bytes => LargeWork::Update,
        _ if insert_bytes > update_bytes + delete_bytes => LargeWork::Load,
        _ => LargeWork::Mixed,
    }
}

/// All refreshes of a view, however small each was: nothing else writes to one but vacuum.
fn refreshes(label: String, view: &WholeTableRow) -> LargeWorkRow {
    // Each writes a new file, unless it deletes and inserts what differs.
    let files = view.heap.as_ref().map_or(0, |heap| heap.relfilenodes.len() as u64);
    LargeWorkRow {
        work: LargeWork::Refresh,
        table: Some(label),
        is_aborted: false,
        transactions: if view.deletes == 0 { files } else { 0 },
        xid: None,
        total_bytes: refreshed(view).0,
        index_bytes: 0,
        deletes: view.deletes,
    }
}

/// All index builds, rewrites and copies of a table, if they are large: CONCURRENTLY builds an index without
/// a transaction that its records would name.
fn builds(label: String, table: &WholeTableRow) -> Option<LargeWorkRow> {
    let WholeTableRow { heap, toast, indexes, .. } = table;
    let parts = || heap.iter().chain(toast).chain(indexes.iter().map(|index| &index.part));
    let gone = indexes.iter().filter(|index| index.is_gone);
    let beside_images = |index: &IndexPart| {
        let Part { numbers, new_page_fpi_bytes, .. } = &index.part;
        numbers.total_bytes.saturating_sub(*new_page_fpi_bytes)
    };
    // Of an index that is gone nothing was needed.
    let total_bytes = parts().map(|part| part.new_page_fpi_bytes).sum::<u64>()
        + gone.filter(|index| index.part.built_files > 0).map(beside_images).sum::<u64>();
    let is_told = table.name.is_some() && total_bytes >= LEAST_BUILT;
    is_told.then(|| LargeWorkRow {
        work: LargeWork::NewPages,
        table: Some(label),
        is_aborted: false,
        // Each builds one file of some part, or of all of them.
        transactions: parts().map(|part| part.built_files).max().unwrap_or_default().max(1),
        xid: None,
        total_bytes,
        index_bytes: 0,
        deletes: 0,
    })
}

/// Adds a transaction to those that did the same to the same table.
fn add(all: &mut Vec<LargeWorkRow>, row: &LargeTransactionRow, work: LargeWork) {
    let is_same = |other: &&mut LargeWorkRow| {
        let is_refresh = work == LargeWork::Refresh || other.is_aborted == row.is_aborted;
        work != LargeWork::Mixed
            && other.table.is_some()
            && other.table == row.table
            && other.work == work
            && is_refresh
    };
    match all.iter_mut().find(is_same) {
        // The bytes of all refreshes are there already.
        Some(same) if work == LargeWork::Refresh => {
            same.xid.get_or_insert_with(|| row.xid.clone());
        }
        // So are those of all builds, but for what is no page.
        Some(same) if work == LargeWork::NewPages && !row.is_aborted => {
            same.xid.get_or_insert_with(|| row.xid.clone());
            same.total_bytes = same.total_bytes.max(row.total_bytes);
        }
        Some(same) => {
            same.transactions += 1;
            same.total_bytes += row.total_bytes;
            same.index_bytes += row.index_bytes;
        }
        None => all.push(LargeWorkRow {
            work,
            table: row.table.clone(),
            is_aborted: row.is_aborted,
            transactions: 1,
            xid: Some(row.xid.clone()),
            total_bytes: row.total_bytes,
            index_bytes: row.index_bytes,
            deletes: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Numbers, sample};
    use walstat_analyse::large_transactions::Written;
    use walstat_format::block::RelFileLocator;

    fn file(relfilenode: u32) -> RelFileLocator {
        RelFileLocator { tablespace: 1663, database: 5, relfilenode }
    }

    fn part(files: &[u32]) -> Part {
        let relfilenodes = files.iter().map(|number| file(*number).to_string()).collect();
        Part { relfilenodes, ..Part::default() }
    }

    fn table(name: &str, kind: &str, heap: &[u32], index: u32) -> WholeTableRow {
        WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some(name.into()),
            kind: Some(kind.into()),
            heap: Some(part(heap)),
            indexes: vec![IndexPart { part: part(&[index]), ..IndexPart::default() }],
            ..WholeTableRow::default()
        }
    }

    fn transaction(xid: u32, written: Written, files: &[(u32, u64)]) -> LargeTransaction {
        let relations = files.iter().map(|(number, times)| (file(*number), *times)).collect();
        LargeTransaction { xid, written, relations, is_aborted: xid == 9 }
    }

    fn load(xid: u32, files: &[(u32, u64)]) -> LargeTransaction {
        let written = Written {
            bytes: 10 << 20,
            insert_bytes: 6 << 20,
            index_bytes: 4 << 20,
            ..Written::default()
        };
        transaction(xid, written, files)
    }

    fn filled(tables: Vec<WholeTableRow>, found: Vec<LargeTransaction>) -> Vec<LargeWorkRow> {
        let mut report = sample::report(0, 100 << 20);
        report.tables = Some(tables.into());
        fill(&mut report, LargeFound { found, rewrites: BTreeSet::new() });
        report.large_work.unwrap_or_default()
    }

    #[test]
    fn those_that_did_the_same_to_the_same_table_are_summed() {
        let tables = vec![table("orders", "r", &[10], 11), table("other", "r", &[20], 21)];
        let found = vec![
            load(5, &[(10, 3), (11, 3), (20, 1)]),
            load(6, &[(10, 1), (11, 3)]),
            // Half of it to each; and one that was rolled back.
            load(7, &[(10, 2), (20, 2)]),
            load(9, &[(10, 2)]),
        ];
        let rows = filled(tables, found);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.table.as_deref(), row.transactions, row.total_bytes >> 20))
            .collect();
        let orders = Some("public.orders");
        assert_eq!(told, [(orders, 2, 20), (None, 1, 10), (orders, 1, 10)]);
        assert_eq!(rows.iter().map(|row| row.is_aborted).collect::<Vec<_>>(), [false, false, true]);
        assert!(rows.iter().all(|row| row.work == LargeWork::Load));
        assert_eq!(rows[0].index_bytes, 8 << 20);
    }

    /// Without a data directory the WAL tells the names of new files, but not which index is of which table.
    #[test]
    fn indexes_of_unknown_tables_do_not_hide_the_table_of_a_load() {
        let stage = WholeTableRow { indexes: vec![], ..table("stage", "r", &[10, 20], 0) };
        let index = WholeTableRow { indexes: vec![], ..table("stage_k", "i", &[11, 21], 0) };
        let found = [load(5, &[(10, 2), (11, 4)]), load(6, &[(20, 2), (21, 4)])];
        let rows = filled(vec![stage, index.clone()], found.to_vec());
        let told: Vec<_> =
            rows.iter().map(|row| (row.table.as_deref(), row.transactions)).collect();
        assert_eq!(told, [(Some("public.stage"), 2)]);
        assert_eq!(filled(vec![index], found.to_vec())[0].table, None);
    }

    /// A whole table that is updated writes more locks and index entries than rows.
    #[test]
    fn updates_of_a_table_are_summed() {
        let update = |xid| {
            let bytes = 10 << 20;
            let (update_bytes, index_bytes) = (3 << 20, 5 << 20);
            let written = Written { bytes, update_bytes, index_bytes, ..Written::default() };
            transaction(xid, written, &[(10, 4)])
        };
        let rows = filled(vec![table("orders", "r", &[10], 11)], vec![update(5), update(6)]);
        let told: Vec<_> = rows.iter().map(|row| (row.work, row.transactions)).collect();
        assert_eq!(told, [(LargeWork::Update, 2)]);
    }

    /// An ALTER TABLE that wrote each row anew was told as a load, with an unlogged table as the cure.
    #[test]
    fn rows_that_are_written_anew_are_no_load() {
        let mut report = sample::report(0, 100 << 20);
        report.tables = Some(vec![table("orders", "r", &[10, 12], 11)].into());
        let found = vec![load(5, &[(12, 3), (11, 1)]), load(6, &[(12, 3)])];
        let large = LargeFound { found, rewrites: [5].into() };
        assert_eq!(large.rewritten_bytes(), 6 << 20);
        fill(&mut report, large);
        let rows = report.large_work.iter().flatten();
        let told: Vec<_> = rows.map(|row| (row.work, row.xid.as_deref())).collect();
        assert_eq!(told, [(LargeWork::Rewrite, Some("5")), (LargeWork::Load, Some("6"))]);
    }

    #[test]
    fn builds_without_a_transaction_are_told_by_what_was_built() {
        let mut built = table("orders", "r", &[10], 11);
        let of_index = |files, megabytes: u64| Part {
            new_page_fpi_bytes: megabytes << 20,
            built_files: files,
            ..part(&[11])
        };
        built.indexes = [of_index(4, 20), of_index(1, 2)]
            .map(|part| IndexPart { part, ..IndexPart::default() })
            .into();
        let one_page = WholeTableRow {
            heap: Some(Part { new_page_fpi_bytes: 8192, ..part(&[30]) }),
            ..table("small", "r", &[30], 31)
        };
        let copied = Written { bytes: 9 << 20, new_page_bytes: 9 << 20, ..Written::default() };
        let found = vec![transaction(5, copied, &[(11, 3)])];
        let told = |found: &[LargeTransaction]| {
            let rows = filled(vec![built.clone(), one_page.clone()], found.to_vec());
            let row = |row: &LargeWorkRow| {
                (row.work, row.transactions, row.xid.clone(), row.total_bytes >> 20)
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), [(LargeWork::NewPages, 4, None, 22)]);
        assert_eq!(told(&found), [(LargeWork::NewPages, 4, Some("5".into()), 22)]);
    }

    #[test]
    fn refreshes_are_all_that_was_written_to_a_view_and_nothing_else_is_one() {
        let bytes = |row, total_bytes| WholeTableRow {
            numbers: Numbers { total_bytes, ..Numbers::default() },
            ..row
        };
        let view = bytes(table("sums", "m", &[10, 12, 14], 11), 30 << 20);
        // The load is as large as the view, which it has nothing to do with.
        let orders = bytes(table("orders", "r", &[20], 21), 30 << 20);
        let rows = filled(vec![view, orders], vec![load(5, &[(20, 5)]), load(6, &[(12, 5)])]);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.work, row.table.as_deref(), row.transactions, row.total_bytes >> 20))
            .collect();
        let want = [
            (LargeWork::Refresh, Some("public.sums"), 3, 30),
            (LargeWork::Load, Some("public.orders"), 1, 10),
        ];
        assert_eq!(told, want);
    }
}
