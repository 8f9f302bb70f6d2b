//! What it looks at: transactions that wrote a good part of all the WAL, alone or together with others that
//! did the same to the same table.
//!
//! Why it matters: the WAL of one transaction comes at once and as a whole. Standbys and the archive fall
//! behind while it runs, logical decoding keeps it in memory or in files until it commits, vacuum cannot
//! remove what died meanwhile, and what it wrote was for nothing if it is rolled back. Many that do the same
//! work to the same table may be work that is done too often. From 20 % of the bytes on it is worth a look. A
//! transaction is counted only in stretches of WAL of which it wrote a sixteenth or more, so it wrote at
//! least the bytes shown; refreshes are counted in full. The table is concluded from a sample of its records.
//! Subtransactions are counted by themselves. Loads of less than 16 MB each that only add rows are left out:
//! so a table grows. Where tables are emptied and loaded again and again, by TRUNCATE or as new tables of the
//! same name, all these loads are told together.
//!
//! What to do: that depends on what it did. Updates and deletes go into batches that commit; a partition can
//! be dropped instead of deleting its rows. Updates of the same table that come again and again often set
//! what is there already: a row that is not changed need not be written. Nor is it, where rows are deleted
//! and the same ones inserted. A load into a table with indexes writes less if they are dropped before and
//! built after it, which writes their pages. Of a table that is filled anew each time nothing is written
//! where it is UNLOGGED, and that is what is saved at most; with `wal_level = minimal`, which leaves no room
//! for standbys and archives, next to nothing where TRUNCATE and the load are one transaction. Where most of
//! its rows stay as they were, MERGE can write those that differ alone. A refresh of a materialized view
//! writes all of it, CONCURRENTLY only what differs. An index build or a rewrite is one transaction by its
//! nature: less often, or when little else is written; one ALTER TABLE with several changes writes its table
//! once. What builds indexes is counted in full as well, since CONCURRENTLY does it without a transaction
//! that its records would name. CREATE DATABASE logs each page of its template from 15 on, unless `STRATEGY =
//! FILE_COPY` says otherwise, which asks for checkpoints.
//!
//! When to ignore it: where it was done once, as a migration or a first load is.
//!
//! Reference: populating a database, in the PostgreSQL manual; `logical_decoding_work_mem`.

use super::index_cost::{bytes_of, images_of};
use super::random_index::IN_ORDER;
use super::{TABLES_NAMED, evidence, plain_finding};
use crate::advice::Rule;
use crate::advice::cures::of_large_work::{
    INDEXES, UNLOGGED, WITHOUT_INDEXES, Wording, has_indexes, indexes_there_before, is_repeated,
    wording,
};
use crate::advice::workloads::bulk_updates::{BulkUpdates, table_of};
use crate::advice::workloads::copied_databases::CopiedDatabases;
use crate::advice::workloads::refilled_tables::RefilledTables;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::large::{LargeWork, LargeWorkRow};
use crate::model::percent::percent;
use crate::model::size::whole_megabytes;
use crate::model::threshold::{MOSTLY, Threshold};
use crate::model::update::UpdateBytes;
use crate::model::who::{IndexPart, WholeTableRow};
use std::cmp::Reverse;
use walstat_analyse::ratios::ratio;
use walstat_format::ordered::OrderBy;

/// From this share of all bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);
/// A transaction with less is not large, whatever its share.
const LEAST_BYTES: u64 = 16 << 20;
/// How much of a leaf holds entries at least: of one that was split in the midst half; of one that was split
/// at its end, since entries came in order, as much as a build fills of it.
const HALF_FULL: f64 = 0.5;
const FULL: f64 = 0.9;
/// Rows are replaced where so many of them are deleted for one that is inserted, or inserted for one deleted.
const AS_MANY: f64 = 0.5;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "large-transactions",
    summary: "a transaction, or several that did the same, wrote 20 % of all bytes",
    text: include_str!("large_transactions.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let rows = works(report);
    let large = |row: &&LargeWorkRow| row.total_bytes >= LEAST_BYTES && !are_small_loads(row);
    let most = rows.iter().filter(large).max_by_key(|row| row.total_bytes);
    let most_bytes = most.map_or(0, |row| row.total_bytes);
    let refilled = RefilledTables::of(report, rows.iter().filter(may_refill));
    let refilled = refilled.filter(|found| found.bytes >= most_bytes.max(LEAST_BYTES));
    let most_bytes = refilled.as_ref().map_or(most_bytes, |found| found.bytes);
    if let Some(copied) = CopiedDatabases::of(report).filter(|copied| copied.bytes > most_bytes) {
        return of_databases(report, copied);
    }
    if let Some(refilled) = refilled {
        return of_refilled(report, &refilled);
    }
    let most = most?;
    let bytes = most.total_bytes;
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let bulk = BulkUpdates::of_work(report, most);
    let Wording { subject, mut advice, price } = wording(most, bulk);
    if let Some(xid) = &most.xid {
        let which = if is_repeated(most) { "the largest" } else { "it" };
        advice.push(format!("walstat --stats=transaction,table -x {xid} says when {which} was"));
    }
    let least = if most.work == LargeWork::Refresh { "" } else { "at least " };
    let title = format!(
        "{subject} wrote {least}{}, {} of the bytes",
        whole_megabytes(bytes),
        percent(found.share, 0)
    );
    let finding = Finding {
        evidence: evidence([
            ("work", most.work.name().into()),
            ("table", most.table.clone().into()),
            ("xid", most.xid.clone().into()),
            ("is_aborted", most.is_aborted.into()),
            ("transactions", most.transactions.into()),
            ("transaction_bytes", bytes.into()),
            ("transaction_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("index_bytes", most.index_bytes.into()),
        ]),
        advice,
        side_effects: price.into_iter().map(str::to_owned).collect(),
        source: "PostgreSQL manual, populating a database".into(),
        ..plain_finding(&RULE, title)
    };
    Some(if may_save(most) {
        Finding {
            estimate: Some(most_saved(report, most, bulk)),
            estimate_fpi_bytes: images_of_entries(report, most),
            ..finding.explaining(bytes)
        }
    } else {
        finding.spreading(bytes)
    })
}

/// Databases that were copied, which are a transaction for each of their tables.
fn of_databases(report: &Report, copied: CopiedDatabases) -> Option<Finding> {
    let CopiedDatabases { count, bytes } = copied;
    let found = RULE.share(report, bytes, report.totals.total_bytes)?;
    let title = format!(
        "copies by CREATE DATABASE wrote {}, {} of the bytes",
        whole_megabytes(bytes),
        percent(found.share, 0)
    );
    let finding = Finding {
        evidence: evidence([
            ("databases", count.into()),
            ("transaction_bytes", bytes.into()),
            ("transaction_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
        ]),
        advice: vec![
            "CREATE DATABASE … STRATEGY = FILE_COPY copies files, and logs none of it".into(),
        ],
        side_effects: vec![
            "FILE_COPY asks for checkpoints, after which pages bring images again".into(),
        ],
        source: "PostgreSQL manual, CREATE DATABASE".into(),
        ..plain_finding(&RULE, title)
    };
    Some(finding.at_most(bytes))
}

/// Tables that are emptied and loaded again and again.
fn of_refilled(report: &Report, refilled: &RefilledTables) -> Option<Finding> {
    let RefilledTables { tables, loads, bytes, index_bytes, table_bytes } = refilled;
    let found = RULE.share(report, *bytes, report.totals.total_bytes)?;
    let first: Vec<&str> = tables.iter().take(TABLES_NAMED).map(String::as_str).collect();
    let more = match tables.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = format!("{}{more}", first.join(", "));
    let title = format!(
        "{loads} loads that fill {names} anew wrote at least {}, {} of the bytes",
        whole_megabytes(*bytes),
        percent(found.share, 0)
    );
    let advice = format!("{names}: UNLOGGED, where the load can be repeated; or load less often");
    let index_share = *index_bytes as f64 / (*bytes).max(1) as f64;
    let of_indexes = (index_share >= INDEXES).then(|| indexes_there_before(index_share));
    let without_indexes = of_indexes.is_some().then(|| WITHOUT_INDEXES.to_owned());
    let side_effects = std::iter::once(UNLOGGED.to_owned()).chain(without_indexes).collect();
    let finding = Finding {
        evidence: evidence([
            ("work", LargeWork::Load.name().into()),
            ("tables", tables.clone().into()),
            ("transactions", (*loads).into()),
            ("transaction_bytes", (*bytes).into()),
            ("transaction_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
        ]),
        advice: std::iter::once(advice).chain(of_indexes).collect(),
        side_effects,
        source: "PostgreSQL manual, populating a database".into(),
        ..plain_finding(&RULE, title)
    };
    // What the same transactions did to catalogs is written all the same.
    Some(Finding { estimate: Some(*table_bytes), ..finding.explaining(*bytes) })
}

/// Whether these are loads that may fill a table anew.
fn may_refill(row: &&LargeWorkRow) -> bool {
    row.work == LargeWork::Load && !row.is_aborted && is_repeated(row)
}

/// Whether these are loads of which each is small: what is advised for large ones makes more WAL then.
fn are_small_loads(row: &LargeWorkRow) -> bool {
    let each = row.total_bytes / row.transactions.max(1);
    row.work == LargeWork::Load && !row.is_aborted && each < LEAST_BYTES
}

/// Whether what is advised may save bytes: what is done again and again may be done less, what is rolled back
/// need not be done, and a load may go without indexes. In batches the same is written at other times.
fn may_save(row: &LargeWorkRow) -> bool {
    row.is_aborted || is_repeated(row) || row.work == LargeWork::Load && has_indexes(row)
}

/// What is saved at most. Of a load with indexes it is what went into these, without what their build after
/// it writes, and of one without them all that the table wrote; so it is of updates of a whole table and of
/// rows that are replaced, since vacuum has less to do as well; of deletes and other updates their part of
/// that.
fn most_saved(report: &Report, row: &LargeWorkRow, bulk: Option<BulkUpdates>) -> u64 {
    let table = table_of(report, row).filter(|_| !row.is_aborted);
    let saved = match (row.work, table) {
        (LargeWork::Load, table) if !row.is_aborted && has_indexes(row) => {
            return table.map_or(row.index_bytes, |table| without_entries(report, row, table));
        }
        (LargeWork::Load | LargeWork::Mixed, Some(table)) => table.numbers.total_bytes,
        (LargeWork::Delete, Some(table)) => with_vacuum(row, table),
        (LargeWork::Update, Some(table)) => match bulk.filter(|bulk| bulk.are_most()) {
            Some(bulk) => bulk.table_bytes,
            None => all_updates(table),
        },
        _ => 0,
    };
    row.total_bytes.max(saved)
}

/// What a load with indexes saves at most if they are built after it: all that went into them, without what
/// the build writes. A load is counted at least: if it is most of what went into them, it is taken for all.
fn without_entries(report: &Report, row: &LargeWorkRow, table: &WholeTableRow) -> u64 {
    let bytes: u64 = table.indexes.iter().map(bytes_of).sum();
    let loaded = row.index_bytes as f64 / bytes.max(1) as f64;
    let built = built(report, table);
    if loaded >= MOSTLY {
        return bytes.max(row.index_bytes).saturating_sub(built);
    }
    row.index_bytes.saturating_sub((built as f64 * loaded) as u64)
}

/// How much of what a load with indexes wrote into these is images, if its table is known.
fn images_of_entries(report: &Report, row: &LargeWorkRow) -> Option<u64> {
    let has_entries = row.work == LargeWork::Load && !row.is_aborted && has_indexes(row);
    let table = table_of(report, row).filter(|_| has_entries)?;
    let bytes: u64 = table.indexes.iter().map(bytes_of).sum();
    let loaded = (row.index_bytes as f64 / bytes.max(1) as f64).min(1.0);
    let images: u64 = table.indexes.iter().map(images_of).sum();
    Some((images as f64 * loaded) as u64)
}

/// What building the indexes of a table writes, images of all their pages without what is free in them: at
/// least that, if pages that the load did not touch are none.
fn built(report: &Report, table: &WholeTableRow) -> u64 {
    let page_bytes = f64::from(report.data_page_bytes());
    let filled = |index: &IndexPart| {
        let is_in_order = index.rightmost_ratio.is_some_and(|ratio| ratio >= IN_ORDER);
        index.part.distinct_blocks as f64 * if is_in_order { FULL } else { HALF_FULL }
    };
    let pages: f64 = table.indexes.iter().map(filled).sum();
    let images = &report.totals;
    let compressed = ratio(images.fpi_bytes, images.uncompressed_fpi_bytes).unwrap_or(1.0).min(1.0);
    (pages * page_bytes * compressed) as u64
}

/// What all updates of a table wrote, and vacuum of it: those that are no good part of their WAL may be of
/// the same kind.
fn all_updates(table: &WholeTableRow) -> u64 {
    let UpdateBytes { hot, non_hot } = &table.update_bytes;
    hot.total_bytes + non_hot.total_bytes + table.vacuum_bytes
}

/// What deletes wrote, and vacuum after them; of the rest of the table as much as they are of its changes.
fn with_vacuum(row: &LargeWorkRow, table: &WholeTableRow) -> u64 {
    let known = row.total_bytes + table.vacuum_bytes;
    let rest = table.numbers.total_bytes.saturating_sub(known) as f64;
    let changes = table.deletes + table.inserts + table.updates;
    known + (rest * table.deletes as f64 / changes.max(1) as f64) as u64
}

/// What large transactions did; those that delete rows of a table and insert as many are one, since what one
/// of them is taken for is chance.
fn works(report: &Report) -> Vec<LargeWorkRow> {
    let mut rows: Vec<LargeWorkRow> = report.large_work.iter().flatten().cloned().collect();
    rows.order_by_key(|row| Reverse(row.total_bytes));
    let mut told: Vec<LargeWorkRow> = Vec::new();
    for row in rows {
        let same =
            told.iter_mut().find(|other| other.table == row.table && replaces(report, other));
        match same.filter(|_| replaces(report, &row)) {
            Some(other) => {
                other.work = LargeWork::Mixed;
                other.transactions += row.transactions;
                other.total_bytes += row.total_bytes;
                other.index_bytes += row.index_bytes;
            }
            None => told.push(row),
        }
    }
    told
}

/// Whether rows of its table are deleted, and as many inserted.
fn replaces(report: &Report, row: &LargeWorkRow) -> bool {
    let is_of_rows = matches!(row.work, LargeWork::Load | LargeWork::Delete | LargeWork::Mixed);
    let are_as_many = |table: &WholeTableRow| {
        let (fewer, more) = (table.inserts.min(table.deletes), table.inserts.max(table.deletes));
        fewer > 0 && fewer as f64 >= AS_MANY * more as f64 && table.updates < fewer
    };
    is_of_rows && !row.is_aborted && table_of(report, row).is_some_and(are_as_many)
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

    pub(crate) fn row(work: LargeWork, transactions: u64, bytes: u64) -> LargeWorkRow {
        LargeWorkRow {
            work,
            table: Some("public.t".into()),
            is_aborted: false,
            transactions,
            xid: Some("741".into()),
            total_bytes: bytes,
            index_bytes: 0,
            deletes: 0,
        }
    }

    pub(crate) fn found_of(row: LargeWorkRow, total: u64) -> Option<Finding> {
        let mut report = sample::report(0, total);
        report.large_work = Some(vec![row]);
        check(&report)
    }

    #[test]
    fn it_speaks_from_a_fifth_of_the_bytes_and_16_mb_on() {
        let found =
            |bytes: u64, total: u64| found_of(row(LargeWork::Mixed, 1, bytes << 20), total << 20);
        let finding = found(20, 100).expect("a finding");
        assert_eq!(finding.title, "transaction 741 wrote at least 20 MB, 20 % of the bytes");
        assert_eq!(finding.explains, Some(20 << 20));
        assert!(found(19, 100).is_none() && found(15, 20).is_none() && found(15, 15).is_none());
    }

    #[test]
    fn what_is_saved_at_most_is_said_of_what_is_done_again_and_again() {
        let most = |work, transactions, index_bytes: u64| {
            let mut row = row(work, transactions, 80 << 20);
            row.index_bytes = index_bytes << 20;
            found_of(row, 100 << 20).expect("a finding").estimate
        };
        assert_eq!(most(LargeWork::Refresh, 8, 0), Some(80 << 20));
        assert_eq!(most(LargeWork::Load, 3, 50), Some(50 << 20), "rows are written all the same");
        assert_eq!(most(LargeWork::Load, 3, 1), Some(80 << 20));
        assert_eq!(most(LargeWork::Load, 1, 50), Some(50 << 20), "without indexes");
        assert_eq!(most(LargeWork::Load, 1, 1), None);
        assert_eq!(most(LargeWork::Update, 3, 0), Some(80 << 20), "rows may not have differed");
        assert_eq!(most(LargeWork::Update, 1, 0), None, "batches write as much");
    }

    /// A report of this work on a table with one index, of 40 MB in 1,000 pages.
    fn on_a_table(works: Vec<LargeWorkRow>, change: fn(&mut WholeTableRow)) -> Finding {
        let numbers = Numbers { total_bytes: 40 << 20, ..Numbers::default() };
        let part = Part { distinct_blocks: 1000, numbers, ..Part::default() };
        let mut table = WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some("t".into()),
            numbers: Numbers { total_bytes: 90 << 20, ..Numbers::default() },
            indexes: vec![IndexPart { part, ..IndexPart::default() }],
            vacuum_bytes: 4 << 20,
            ..WholeTableRow::default()
        };
        change(&mut table);
        let mut report = sample::report(0, 100 << 20);
        (report.tables, report.large_work) = (Some(vec![table].into()), Some(works));
        check(&report).expect("a finding")
    }

    /// 63 % were promised of loads whose indexes are built after them; it were 33 %, as the build writes the
    /// pages of the index. Of a COPY with four indexes nothing was promised, and 47 % were saved.
    #[test]
    fn a_build_after_the_load_writes_the_pages_of_the_index() {
        let saved = |transactions, index_bytes: u64, change: fn(&mut WholeTableRow)| {
            let load = row(LargeWork::Load, transactions, 80 << 20);
            let load = LargeWorkRow { index_bytes: index_bytes << 20, ..load };
            on_a_table(vec![load], change).estimate
        };
        for transactions in [1, 3] {
            let random = saved(transactions, 40, |table| table.inserts = 1000);
            assert_eq!(random, Some((40 << 20) - 1000 * 8192 / 2));
        }
        let in_order = saved(1, 40, |table| table.indexes[0].rightmost_ratio = Some(1.0));
        assert_eq!(in_order, Some((40 << 20) - 1000 * 8192 / 10 * 9));
        // Counted at least, it may be all that went into the index; if it is not most of that, it is a part.
        assert_eq!(saved(1, 21, |_| {}), Some((40 << 20) - 1000 * 8192 / 2));
        assert_eq!(saved(1, 10, |_| {}), Some((10 << 20) - 1000 * 8192 / 2 / 4));
        // An index that was built in this WAL has that in its bytes.
        let built = saved(1, 30, |table| table.indexes[0].part.new_page_fpi_bytes = 10 << 20);
        assert_eq!(built, Some((30 << 20) - 1000 * 8192 / 2));
    }

    #[test]
    fn images_of_the_indexes_that_a_load_filled_are_not_spared_twice() {
        let images = |work, index_bytes: u64| {
            let load = LargeWorkRow { index_bytes: index_bytes << 20, ..row(work, 1, 80 << 20) };
            let set = |table: &mut WholeTableRow| {
                table.indexes[0].part.numbers.fpi_bytes = 16 << 20;
            };
            on_a_table(vec![load], set).estimate_fpi_bytes
        };
        assert_eq!(images(LargeWork::Load, 40), Some(16 << 20));
        assert_eq!(images(LargeWork::Load, 20), Some(8 << 20));
        assert_eq!((images(LargeWork::Load, 1), images(LargeWork::Update, 40)), (None, None));
    }

    /// Loads are counted at least, and so were what an unlogged table would save at most.
    #[test]
    fn of_an_unlogged_table_nothing_is_written() {
        let saved =
            |count| on_a_table(vec![row(LargeWork::Load, count, 60 << 20)], |_| {}).estimate;
        assert_eq!(saved(2), Some(90 << 20));
    }

    /// 71.8 % were saved where 61.5 % were promised at most: vacuum had nothing to do after it.
    #[test]
    fn deletes_leave_work_for_vacuum() {
        let saved = |change| on_a_table(vec![row(LargeWork::Delete, 6, 70 << 20)], change).estimate;
        assert_eq!(saved(|table| table.deletes = 1000), Some(90 << 20), "nobody else changes it");
        let others = |table: &mut WholeTableRow| (table.deletes, table.inserts) = (1000, 3000);
        assert_eq!(saved(others), Some((74 + 16 / 4) << 20));
    }

    /// 27 % were promised at most of 9 updates of which each had a good part of its WAL, and 72 % were saved
    /// without all 40, those that fewer checkpoints spared among them.
    #[test]
    fn updates_that_are_not_large_may_be_of_the_same_kind() {
        let saved = |change| on_a_table(vec![row(LargeWork::Update, 9, 30 << 20)], change).estimate;
        assert_eq!(saved(|_| {}), Some(30 << 20));
        let more = |table: &mut WholeTableRow| {
            table.update_bytes.hot.total_bytes = 50 << 20;
            table.update_bytes.non_hot.total_bytes = 7 << 20;
        };
        assert_eq!(saved(more), Some((50 + 7 + 4) << 20));
    }

    /// Rows that were deleted and inserted seven times were told as four loads, of which to drop the indexes.
    #[test]
    fn rows_that_are_deleted_and_inserted_are_replaced() {
        let works =
            [(LargeWork::Load, 2, 40), (LargeWork::Mixed, 1, 20), (LargeWork::Delete, 2, 15)];
        let works = works.map(|(work, count, megabytes)| row(work, count, megabytes << 20));
        let found = |change| on_a_table(works.clone().into(), change);
        let finding = found(|table| (table.inserts, table.deletes) = (1000, 1000));
        let title = "5 transactions that delete and insert rows of public.t wrote at least 75 MB";
        assert!(finding.title.starts_with(title), "{}", finding.title);
        assert!(finding.advice[0].contains("MERGE"), "{:?}", finding.advice);
        assert_eq!(finding.estimate, Some(90 << 20), "all that the table wrote");
        let finding = found(|table| (table.inserts, table.deletes) = (1000, 400));
        assert!(finding.title.starts_with("2 loads"), "{}", finding.title);
    }

    /// Six times TRUNCATE and a load of 8.6 MB wrote 87 % of the bytes, and no rule spoke.
    #[test]
    fn tables_that_are_filled_anew_are_told_however_small_each_load_is() {
        use crate::advice::workloads::refilled_tables::tests::filled;
        let finding = check(&filled(&["stage"], 6, 10, 6)).expect("a finding");
        assert_eq!(
            finding.title,
            "6 loads that fill public.stage anew wrote at least 60 MB, 60 % of the bytes"
        );
        assert!(finding.advice[0].starts_with("public.stage: UNLOGGED"), "{:?}", finding.advice);
        assert!(finding.side_effects[0].contains("emptied by a crash"));
        assert_eq!((finding.explains, finding.estimate), (Some(60 << 20), Some(66 << 20)));
        // With a primary key, only its indexes were to be dropped.
        let mut with_key = filled(&["stage"], 6, 20, 6);
        with_key.large_work.iter_mut().flatten().for_each(|row| row.index_bytes = 50 << 20);
        let finding = check(&with_key).expect("a finding");
        assert!(finding.advice[0].starts_with("public.stage: UNLOGGED"), "{:?}", finding.advice);
        assert!(finding.advice[1].contains("42 % of it: drop them before"), "{:?}", finding.advice);
        assert_eq!(finding.side_effects.len(), 2);
        // A table that only grows.
        assert_eq!(check(&filled(&["stage"], 6, 10, 1)), None);
        // None of them has a fifth of the bytes.
        let finding = check(&filled(&["a", "b", "c"], 2, 5, 2)).expect("a finding");
        let title = "6 loads that fill public.a, public.b, public.c anew wrote at least 30 MB";
        assert!(finding.title.starts_with(title), "{}", finding.title);
        // Something else is larger.
        let mut report = filled(&["stage"], 3, 10, 3);
        report
            .large_work
            .iter_mut()
            .for_each(|rows| rows.push(row(LargeWork::Update, 1, 40 << 20)));
        assert!(check(&report).expect("a finding").title.contains("an update"));
    }

    #[test]
    fn updates_of_a_whole_table_again_and_again_are_told_as_such() {
        let report = crate::advice::workloads::bulk_updates::tests::updated(150_000, 2800);
        let finding = check(&report).expect("a finding");
        assert!(finding.title.starts_with("4 updates of public.prices wrote"), "{}", finding.title);
        let told = &finding.advice[0];
        assert!(told.contains("IS DISTINCT FROM") && told.contains("about 135000 rows"), "{told}");
        assert_eq!(finding.estimate, Some(600_000 * 376), "all that the table wrote");
    }

    /// Three of them were told as one build of an index.
    #[test]
    fn databases_that_are_copied_are_told_together() {
        let mut report = crate::advice::workloads::copied_databases::tests::copied(3, 60);
        report.large_work = Some(vec![row(LargeWork::NewPages, 1, 30 << 20)]);
        let finding = check(&report).expect("a finding");
        assert!(finding.title.contains("wrote 60 MB"), "{}", finding.title);
        assert!(finding.advice[0].contains("STRATEGY = FILE_COPY"), "{:?}", finding.advice);
        assert_eq!(finding.estimate, Some(60 << 20));
        report.large_work = Some(vec![row(LargeWork::NewPages, 1, 80 << 20)]);
        assert!(check(&report).expect("a finding").title.contains("an index build"));
    }
}
