//! What it looks at: the share of HOT updates in all heap updates, from 1,000 updates on.
//!
//! Why it matters: an update that is not HOT writes an entry into every index of the table,
//! each of them a record and, after a checkpoint, an image.
//!
//! Where tables are counted, the worst are named, and their updates told apart: rows that found no
//! room in their page (room helps), and rows that stayed in it and were not HOT all the same,
//! because an indexed column changed (room does not help). What an update costs with its index
//! entries is told beside what a HOT one costs, and what room would have saved where both are known.
//!
//! What to do: leave room in the pages (`fillfactor`), so that the new row finds place beside
//! the old one; do not index columns that are updated often.
//!
//! When to ignore it: the updated columns have to be indexed. It is never critical, because that
//! may be the case.
//!
//! Reference: Chen 2017: 44 % at fillfactor 100, 81 % at 90.

use super::{CHEN_2017, evidence, plain_finding, says_little, worst_tables};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::filters::Filters;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
use crate::model::table::TableRow;
use crate::model::threshold::{MIN_UPDATES, Speaks, Threshold, Unit};
use crate::model::who::WholeTableRow;
use serde_json::json;

/// Below this share of HOT updates, index maintenance is worth a look.
const THRESHOLD: Threshold =
    Threshold { speaks: Speaks::Below, chen: 0.70, strict: 0.85, relaxed: 0.50, unit: Unit::Ratio };

/// So many updates of a sort tell what one costs.
const SAMPLE: u64 = 100;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "hot-ratio",
    summary: "less than 70 % of the updates are HOT",
    text: include_str!("hot_ratio.rs"),
    threshold: THRESHOLD,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let ratio = report.ratios.hot_ratio?;
    let updates = report.ratios.updates;
    let threshold = RULE.limit(report);
    if ratio >= threshold || says_little(report) || updates < MIN_UPDATES {
        return None;
    }
    let tables = worst_tables(report, |row| row.updates - row.hot_updates);
    let named = |(row, ..): &(&WholeTableRow, u64, f64)| {
        json!({
            "table": row.label(),
            "updates": row.updates,
            "hot_updates": row.hot_updates,
            "updates_new_page": row.updates_new_page,
            "bytes_per_hot_update": row.bytes_per_hot_update,
            "bytes_per_non_hot_update": row.bytes_per_non_hot_update,
        })
    };
    let mut advice: Vec<String> = tables.iter().map(|(row, ..)| cause(report, row)).collect();
    advice.extend(cures(report));
    Some(Finding {
        severity: Severity::Warning,
        evidence: evidence([
            ("hot_ratio", ratio.into()),
            ("threshold", threshold.into()),
            ("updates", updates.into()),
            ("tables", tables.iter().map(named).collect()),
        ]),
        advice,
        side_effects: vec![
            "tables with fillfactor 90 take about a tenth more space and cache".into(),
            "the rewrite (VACUUM FULL, CLUSTER) locks the table and writes WAL itself".into(),
        ],
        ignore_when: "the updated columns have to be indexed".into(),
        estimate: saved(report),
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, format!("only {} of the updates are HOT", percent(ratio, 1)))
    })
}

/// Updates that stayed in their page and were not HOT: an indexed column changed. Of those that
/// went to another page the WAL does not tell whether one did.
fn indexed(row: &WholeTableRow) -> u64 {
    row.updates.saturating_sub(row.hot_updates + row.updates_new_page)
}

/// Why the updates of a table are not HOT.
fn cause(report: &Report, row: &WholeTableRow) -> String {
    let mut causes = Vec::new();
    if row.updates_new_page > 0 {
        causes.push(format!("{} updates found no room in their page", row.updates_new_page));
    }
    if indexed(row) > 0 {
        let updates = if causes.is_empty() { " updates" } else { "" };
        // Of a row that went to another page the record does not tell.
        let more = if causes.is_empty() { "" } else { ", as some of those may have" };
        causes.push(format!("{}{updates} changed an indexed column{more}", indexed(row)));
    }
    format!("{}: {}{}", row.label(), causes.join(", "), prices_told(report, row))
}

/// Whether filters leave out records that belong to an update: of indexes, pruning, locks.
fn is_partly_seen(filters: &Filters) -> bool {
    let a_relation_alone = filters.relation.is_some() && filters.table != Some(true);
    let a_place = filters.block.is_some() || filters.fork.is_some();
    let a_kind = !filters.rmgr.is_empty() || !filters.record.is_empty();
    a_relation_alone || a_place || a_kind || filters.fullpage == Some(true)
}

/// What a HOT update of a table costs, and any other, where there were enough of them.
fn prices(report: &Report, row: &WholeTableRow) -> (Option<f64>, Option<f64>) {
    if is_partly_seen(&report.input.filters) {
        return (None, None);
    }
    let costs = &row.update_bytes;
    let hot = row.bytes_per_hot_update.filter(|_| costs.hot.updates >= SAMPLE);
    let non_hot = row.bytes_per_non_hot_update.filter(|_| costs.non_hot.updates >= SAMPLE);
    (hot, non_hot)
}

fn prices_told(report: &Report, row: &WholeTableRow) -> String {
    match prices(report, row) {
        (_, None) => String::new(),
        (None, Some(non_hot)) => format!("; {non_hot:.0} bytes of WAL each"),
        (Some(hot), Some(non_hot)) => {
            format!("; {non_hot:.0} bytes of WAL each, a HOT one {hot:.0}")
        }
    }
}

/// Bytes that HOT updates would have saved where rows found no room; `None` where it is not known
/// what one costs.
fn saved(report: &Report) -> Option<u64> {
    let rows = report.tables.iter().flat_map(|tables| &tables.rows);
    let saved = rows.filter_map(|row| {
        let (hot, non_hot) = prices(report, row);
        Some((non_hot? - hot?).max(0.0) * row.updates_new_page as f64)
    });
    saved.reduce(|sum, more| sum + more).map(|bytes| bytes.round() as u64).filter(|sum| *sum > 0)
}

/// What helps: room in the pages where rows leave them, fewer indexes where they stay.
fn cures(report: &Report) -> Vec<String> {
    let rows = report.tables.as_ref().map_or(&[][..], |tables| &tables.rows);
    let sum = |amount: fn(&WholeTableRow) -> u64| rows.iter().map(amount).sum::<u64>();
    let (moved, indexed) = (sum(|row| row.updates_new_page), sum(indexed));
    let is_known = moved + indexed > 0;
    let room = "fillfactor: 90 on tables that are updated a lot (then rewrite them once)";
    let indexes = "indexes on columns that updates change: each keeps an update from being HOT";
    let mut cures = Vec::new();
    if !is_known || moved > 0 {
        cures.push(room.to_owned());
    }
    if !is_known || indexed > 0 {
        cures.push(indexes.to_owned());
    }
    if indexed > moved {
        cures.reverse();
    }
    cures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

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
    fn it_tells_rows_that_found_no_room_from_changes_of_indexed_columns() {
        let told = |updates_new_page| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.1), 2000);
            let row = WholeTableRow {
                database: Some(5),
                schema: Some("public".into()),
                name: Some("orders".into()),
                updates: 2000,
                hot_updates: 200,
                updates_new_page,
                ..WholeTableRow::default()
            };
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding").advice
        };
        let full = told(1800);
        assert_eq!(full[0], "public.orders: 1800 updates found no room in their page");
        assert!(full.len() == 2 && full[1].starts_with("fillfactor"), "{full:?}");
        let indexed = told(0);
        assert_eq!(indexed[0], "public.orders: 1800 updates changed an indexed column");
        assert!(indexed.len() == 2 && indexed[1].starts_with("indexes"), "{indexed:?}");
        let both = told(600);
        assert!(both.len() == 3 && both[1].starts_with("indexes"), "{both:?}");
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
                bytes_per_hot_update: Some(90.0),
                bytes_per_non_hot_update: Some(390.4),
                ..WholeTableRow::default()
            };
            row.update_bytes.hot.updates = hot_updates;
            row.update_bytes.non_hot.updates = 2000 - hot_updates;
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding")
        };
        let finding = found(200, Filters::default());
        let price = "; 390 bytes of WAL each, a HOT one 90";
        assert!(finding.advice[0].ends_with(price), "{:?}", finding.advice);
        assert_eq!(finding.estimate, Some(300_400));
        let few = found(99, Filters::default());
        assert_eq!(few.estimate, None);
        assert!(few.advice[0].ends_with("; 390 bytes of WAL each"), "{:?}", few.advice);
        // Without the records of its indexes nobody knows what an update costs.
        let heap = found(200, Filters { rmgr: vec!["Heap".into()], ..Filters::default() });
        assert_eq!(heap.estimate, None);
        assert!(!heap.advice[0].contains("each"), "{:?}", heap.advice);
    }
}
