//! What it looks at: the share of HOT updates in all heap updates, from 1,000 updates on; where that is high,
//! the share in each table that has 20 % of the bytes and more, since small tables that are updated as often
//! lift the average. A table whose updates that are not HOT would save 15 % of the bytes as HOT ones is worth
//! a look whatever their share. One that large transactions update a good part of at a time is not: no usual
//! fillfactor leaves room for most rows of a page, and `large-transactions` covers these.
//!
//! Why it matters: an update that is not HOT writes an entry into every index of the table,
//! each of them a record and, after a checkpoint, an image.
//!
//! Where tables are counted, the worst are named, each with its own cure. Their updates are divided into
//! those that changed an indexed column, which free room in the page does not help, and those that found no
//! room in their page. Of an update that stayed in its page and was not HOT it is known that it changed an
//! indexed column. Of one that went to another page the WAL does not tell: it is taken for as likely as
//! among those that had room. The cost of an update with its index entries is shown beside that of a HOT
//! one, both without images, of which the first change after a checkpoint has most. At most these entries
//! are saved, with what vacuum writes of them; and, where room was missing, the lock of the row before it is
//! moved, and as much of the images of the table as is free in a page: an image leaves that out.
//!
//! No room in a page that was updated again and again and never pruned has another reason: rows that are dead
//! stay while an old snapshot sees them. That of a transaction that is idle, of a standby with
//! hot_standby_feedback, of a replication slot or a prepared transaction is to be ended then, and no
//! fillfactor helps.
//!
//! What to do: do not index columns that are updated often; leave room in the pages (`fillfactor`), so that
//! the new row finds place beside the old one, unless it is less than 90 already, which no WAL tells. What
//! cures more comes first, and room is advised only where it cures a tenth of them, or where without an index
//! rows would find none. It is never critical: the updated columns may have to be indexed.
//!
//! When to ignore it: where the updated columns have to be indexed.
//!
//! Reference: Chen 2017: 44 % at fillfactor 100, 81 % at 90.

use super::{
    CHEN_2017, LEAST_SHARE, Line, autovacuum_off, evidence, label, plain_finding, says_little,
    worst_tables,
};
use crate::advice::Rule;
use crate::advice::cures::of_updates::{cure, cures_of_any, side_effects};
use crate::advice::workloads::bulk_updates::BulkUpdates;
use crate::advice::workloads::non_hot_updates::{saved, saved_of, saved_of_updates, split_of};
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
use crate::model::table::TableRow;
use crate::model::threshold::{MIN_UPDATES, Speaks, Threshold, Unit};
use crate::model::who::WholeTableRow;
use serde_json::{Value, json};
use std::cmp::Reverse;
use walstat_analyse::ratios::ratio;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

/// Below this share of HOT updates, index maintenance is worth a look.
const THRESHOLD: Threshold =
    Threshold { speaks: Speaks::Below, chen: 0.70, strict: 0.85, relaxed: 0.50, unit: Unit::Ratio };
/// A table with this share of the bytes is judged by itself: 20 %.
const CONSIDERABLE: f64 = 0.2;
/// So is one whose updates would save this share of the bytes as HOT ones, if more than a few are not HOT.
const WORTH_ROOM: f64 = 0.15;
/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "hot-ratio",
    summary: "less than 70 % of the updates are HOT",
    text: include_str!("hot_ratio.rs"),
    threshold: THRESHOLD,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    if says_little(report) {
        return None;
    }
    let threshold = RULE.limit(report);
    let (updates, ratio) = without_bulk(report);
    let is_low = |ratio: &f64| *ratio < threshold && updates >= MIN_UPDATES;
    let all = ratio.filter(is_low);
    let tables: Vec<&WholeTableRow> = match all {
        Some(_) => tables_of_most(report),
        None => dear_tables(report, threshold),
    };
    let title = match (all, tables.first()) {
        (Some(ratio), _) => format!("only {} of the updates are HOT", percent(ratio, 1)),
        (None, Some(row)) if hot_share(row) >= threshold => format!(
            "{} of the updates of {} are not HOT, and write {} of the bytes",
            percent(1.0 - hot_share(row), 0),
            label(report, row),
            percent(
                row.update_bytes.non_hot.total_bytes as f64 / report.totals.total_bytes as f64,
                0
            )
        ),
        (None, Some(row)) => {
            let share = percent(hot_share(row), 0);
            format!("{}: only {share} of the updates are HOT", label(report, row))
        }
        (None, None) => return None,
    };
    // Where the share of all is low, so may be that of tables that are too small to be named.
    let judged = if all.is_some() { our_rows(report).collect() } else { tables.clone() };
    let split = split_of(&judged);
    let finding = Finding {
        severity: Severity::Warning,
        evidence: evidence([
            ("hot_ratio", report.ratios.hot_ratio.into()),
            ("threshold", threshold.into()),
            ("updates", report.ratios.updates.into()),
            ("tables", tables.iter().map(|row| named(report, row)).collect()),
        ]),
        side_effects: side_effects(report, &tables, &split),
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, title)
    };
    let cures = match tables.as_slice() {
        [] => cures_of_any(&split),
        [row] => vec![cure(report, row, String::new())],
        tables => tables.iter().map(|row| cure(report, row, share_told(report, row))).collect(),
    };
    let vacuum = autovacuum_off(report).filter(|_| split.no_room + split.unknown > 0.0);
    let finding = finding.advising(cures.into_iter().map(Line::from).chain(vacuum));
    Some(match saved(report, &judged) {
        Some(bytes) => finding.at_most(bytes),
        None => finding,
    })
}

/// The numbers of a table.
fn named(report: &Report, row: &WholeTableRow) -> Value {
    json!({
        "table": label(report, row),
        "updates": row.updates,
        "hot_updates": row.hot_updates,
        "updates_new_page": row.updates_new_page,
        "bytes_per_hot_update": row.bytes_per_hot_update,
        "bytes_per_non_hot_update": row.bytes_per_non_hot_update,
        "total_bytes": row.numbers.total_bytes,
    })
}

/// All updates but those of tables that are updated as a whole: how many, and the share of HOT ones.
fn without_bulk(report: &Report) -> (u64, Option<f64>) {
    let tables = report.tables.iter().flat_map(|tables| &tables.rows);
    let bulk: Vec<&WholeTableRow> = tables.filter(|row| is_bulk(report, row)).collect();
    let (updates, hot_ratio) = (report.ratios.updates, report.ratios.hot_ratio);
    let hot = (hot_ratio.unwrap_or_default() * updates as f64).round() as u64;
    let left = updates.saturating_sub(bulk.iter().map(|row| row.updates).sum());
    let hot = hot.saturating_sub(bulk.iter().map(|row| row.hot_updates).sum());
    if bulk.is_empty() { (updates, hot_ratio) } else { (left, ratio(hot, left)) }
}

/// The tables with most updates that are not HOT, by what these would save; by their number where nobody
/// knows what they cost.
fn tables_of_most(report: &Report) -> Vec<&WholeTableRow> {
    let is_priced = our_rows(report).any(|row| saved_of(report, row) > 0.0);
    let amount = |row: &WholeTableRow| match is_ours(report, row) {
        false => 0,
        true if is_priced => saved_of(report, row) as u64,
        true => row.updates - row.hot_updates,
    };
    worst_tables(report, amount).into_iter().map(|(row, ..)| row).collect()
}

/// The share of a table's updates that are HOT.
fn hot_share(row: &WholeTableRow) -> f64 {
    row.hot_updates as f64 / row.updates.max(1) as f64
}

/// Tables below the threshold that make a good part of the bytes, and those whose updates would save as much
/// as HOT ones; what saves most first. The average of all is high where small tables are updated as often as
/// they are.
fn dear_tables(report: &Report, threshold: f64) -> Vec<&WholeTableRow> {
    let total = report.totals.total_bytes as f64;
    // Smaller images alone are no reason where nearly all updates are HOT.
    let saves = |row: &WholeTableRow| {
        let are_few = hot_share(row) > 1.0 - LEAST_SHARE;
        let saved = if are_few { saved_of_updates(row) } else { saved_of(report, row) };
        saved >= WORTH_ROOM * total
    };
    let is_large = |row: &WholeTableRow| row.numbers.total_bytes as f64 >= CONSIDERABLE * total;
    let is_dear = |row: &&WholeTableRow| {
        row.updates >= MIN_UPDATES && (saves(row) || hot_share(row) < threshold && is_large(row))
    };
    let mut rows: Vec<&WholeTableRow> =
        our_rows(report).filter(|row| row.database.is_some()).filter(is_dear).collect();
    let saved = |row: &WholeTableRow| Reverse(saved_of(report, row) as u64);
    rows.order_by_key(|row| (saved(row), Reverse(row.numbers.total_bytes), row.label()));
    rows
}

/// Of catalogs nobody sets the fillfactor or drops an index; where one transaction updates most rows of a
/// page, no usual fillfactor leaves room for them.
fn is_ours(report: &Report, row: &WholeTableRow) -> bool {
    row.schema.as_deref() != Some(CATALOG_SCHEMA_NAME) && !is_bulk(report, row)
}

fn is_bulk(report: &Report, row: &WholeTableRow) -> bool {
    BulkUpdates::of_table(report, row).is_some_and(|bulk| bulk.are_most())
}

/// The tables that somebody can do something about.
fn our_rows(report: &Report) -> impl Iterator<Item = &WholeTableRow> {
    report.tables.iter().flat_map(|tables| &tables.rows).filter(|row| is_ours(report, row))
}

/// How much of all bytes a table would save at most, where several would.
fn share_told(report: &Report, row: &WholeTableRow) -> String {
    let share = saved_of(report, row) / report.totals.total_bytes.max(1) as f64;
    if share > 0.0 { format!(" (−{} at most)", percent(share, 0)) } else { String::new() }
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::advice::cures::of_updates::ROOM;
    use crate::model::filters::Filters;
    use crate::model::update::UpdateCost;
    use crate::model::who::Part;
    use crate::model::{Numbers, sample};

    #[test]
    fn it_speaks_below_the_threshold_and_above_the_least_volume_only() {
        let found = |hot, updates, total| {
            let mut report = sample::report(0, total);
            report.ratios.hot_ratio = hot;
            report.ratios.updates = updates;
            check(&report).is_some()
        };
        assert!(found(Some(0.44), 1000, 100 << 20));
        assert!(!found(Some(0.44), 999, 100 << 20));
        assert!(!found(Some(0.70), 1000, 100 << 20));
        assert!(!found(Some(0.44), 1000, 10 << 20));
        assert!(!found(None, 0, 100 << 20));
    }

    #[test]
    fn it_tells_what_updates_cost_and_what_room_would_save() {
        let found = |hot_updates, filters| {
            let mut report = sample::report(0, 100 << 20);
            report.input.filters = filters;
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.1), 2000);
            let mut row = WholeTableRow {
                database: Some(5),
                name: Some("orders".into()),
                updates: 2000,
                hot_updates,
                updates_new_page: 1000,
                ..WholeTableRow::default()
            };
            let costs = &mut row.update_bytes.hot;
            (costs.updates, costs.heap_bytes) = (hot_updates, 90 * 200);
            costs.total_bytes = 90 * hot_updates;
            let costs = &mut row.update_bytes.non_hot;
            // Most of what each costs is an image.
            let updates = 2000 - hot_updates;
            (costs.total_bytes, costs.fpi_bytes) = (9390 * updates, 9000 * updates);
            (costs.updates, costs.heap_bytes) = (2000 - hot_updates, 100 * 1800);
            (costs.index_bytes, costs.lock_bytes) = (270_000, 1_800_000);
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding")
        };
        let finding = found(200, Filters::default());
        let price = "; 390 bytes of WAL each without images, a HOT one 90";
        assert!(finding.advice.iter().any(|line| line.ends_with(price)), "{:?}", finding.advice);
        // Of 1,000 that had room 200 were HOT: so would 200 of the others have been, without their locks
        // (54 bytes and no image) and 10 bytes of their own; no update would have had an index entry.
        let saved = Some(270_000 + 200 * (54 + 10));
        assert_eq!((finding.explains, finding.estimate), (saved, saved));
        let few = found(99, Filters::default());
        assert!(
            few.advice.iter().any(|line| line.ends_with("; 390 bytes of WAL each without images")),
            "{:?}",
            few.advice
        );
        // Without the records of its indexes nobody knows what an update costs.
        let heap = found(200, Filters { rmgr: vec!["Heap".into()], ..Filters::default() });
        assert_eq!(heap.explains, None);
        assert!(!heap.advice.concat().contains("each"), "{:?}", heap.advice);
    }

    /// A table with so many bytes and 1,000 updates, of which so many are HOT.
    pub(crate) fn table(
        name: &str,
        megabytes: u64,
        hot_updates: u64,
        updates_new_page: u64,
    ) -> WholeTableRow {
        let numbers = Numbers { total_bytes: megabytes << 20, ..Numbers::default() };
        WholeTableRow {
            database: Some(5),
            schema: Some("public".into()),
            name: Some(name.into()),
            numbers,
            updates: 1000,
            hot_updates,
            updates_new_page,
            ..WholeTableRow::default()
        }
    }

    #[test]
    fn a_table_that_makes_many_bytes_is_judged_by_itself() {
        let found = |rows: Vec<WholeTableRow>| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.89), 3000);
            report.tables = Some(rows.into());
            check(&report)
        };
        let others = [table("tellers", 7, 1000, 0), table("branches", 7, 1000, 0)];
        let beside = |row: WholeTableRow| found([&[row], &others[..]].concat());
        let finding = beside(table("accounts", 75, 664, 336)).expect("a finding");
        assert_eq!(finding.title, "public.accounts: only 66 % of the updates are HOT");
        assert_eq!(finding.advice.len(), 1);
        assert!(finding.advice[0].starts_with(&format!("public.accounts: {ROOM}")));
        assert!(beside(table("accounts", 19, 664, 336)).is_none());
        assert!(beside(table("accounts", 75, 700, 300)).is_none());
    }

    #[test]
    fn a_table_is_judged_by_what_its_updates_cost_not_by_their_share_alone() {
        let found = |index_bytes: u64| {
            let mut row = table("acct", 40, 720, 280);
            row.update_bytes.non_hot = UpdateCost {
                updates: 280,
                index_bytes: index_bytes << 20,
                total_bytes: index_bytes << 20,
                ..UpdateCost::default()
            };
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.75), 2000);
            report.tables = Some(vec![table("accounts", 30, 300, 700), row].into());
            check(&report).expect("a finding")
        };
        let finding = found(25);
        let title = "28 % of the updates of public.acct are not HOT, and write 25 % of the bytes";
        assert_eq!(finding.title, title);
        let first = &finding.advice[0];
        assert!(first.starts_with("public.acct (−25 % at most): fillfactor"), "{first}");
        assert_eq!(finding.advice.len(), 2);
        assert_eq!((found(16).advice.len(), found(14).advice.len()), (2, 1));
    }

    /// A table of which each row was moved, with images of half of its bytes.
    pub(crate) fn moved(prune_bytes: u64, distinct_blocks: u64) -> Finding {
        let mut row = table("acct", 80, 0, 1000);
        let numbers = Numbers { fpi_bytes: 40 << 20, ..Numbers::default() };
        // Rows of 500 bytes.
        let block_data_bytes = 1000 * 480;
        row.heap = Some(Part { numbers, distinct_blocks, block_data_bytes, ..Part::default() });
        let non_hot = &mut row.update_bytes.non_hot;
        (non_hot.updates, non_hot.index_bytes) = (1000, 20 << 20);
        (row.update_bytes.hot.prune_bytes, row.vacuum_bytes) = (prune_bytes, 3 << 20);
        let mut report = sample::report(0, 100 << 20);
        (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.0), 1000);
        if prune_bytes == 0 {
            row.vacuum_bytes = 0;
        }
        report.tables = Some(vec![row].into());
        check(&report).expect("a finding")
    }

    /// With fillfactor 90 a server wrote 39.0 % less where 35.8 % were promised at most.
    #[test]
    fn room_in_pages_is_left_out_of_their_images() {
        // Entries, what vacuum wrote of them, and a tenth of the images.
        assert_eq!(moved(1, 1000).estimate, Some((20 + 3 + 4) << 20));
    }

    /// 94.7 % of the updates were HOT; images of indexes of the rest were a half of the bytes, and room saved
    /// 45 %.
    #[test]
    fn a_few_updates_that_are_dear_are_worth_room() {
        let found = |index_megabytes: u64| {
            let mut row = table("u", 90, 950, 50);
            let heap = Numbers { fpi_bytes: 80 << 20, ..Numbers::default() };
            row.heap = Some(Part { numbers: heap, ..Part::default() });
            let non_hot = &mut row.update_bytes.non_hot;
            (non_hot.updates, non_hot.index_bytes) = (50, index_megabytes << 20);
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.95), 1000);
            report.tables = Some(vec![row].into());
            check(&report)
        };
        let finding = found(16).expect("a finding");
        assert!(finding.advice[0].starts_with("public.u: fillfactor = 90"), "{:?}", finding.advice);
        // With what images are smaller by, it would be 22 %.
        assert_eq!(found(14), None);
    }

    #[test]
    fn updates_of_a_whole_table_are_not_cured_by_room() {
        let report = crate::advice::workloads::bulk_updates::tests::updated(150_000, 2800);
        assert!(check(&report).is_none());
        let few = crate::advice::workloads::bulk_updates::tests::updated(20_000, 4000);
        assert!(check(&few).is_some());
    }
}
