//! What it looks at: the share of HOT updates in all heap updates, from 1,000 updates on.
//!
//! Why it matters: an update that is not HOT writes an entry into every index of the table,
//! each of them a record and, after a checkpoint, an image.
//!
//! Where tables are counted, the worst are named, and their updates told apart: those that changed an
//! indexed column, which room in the page does not cure, and those that found no room. Of an update that
//! stayed in its page and was not HOT it is known that it changed an indexed column. Of one that went to
//! another page the WAL does not tell: it is taken for as likely as among those that had room. What an update
//! costs with its index entries is told beside what a HOT one costs, and what room would have saved where
//! both are known.
//!
//! What to do: do not index columns that are updated often; leave room in the pages (`fillfactor`), so that
//! the new row finds place beside the old one, unless it is less than 90 already, which no WAL tells. What
//! cures more comes first, and room is advised only where it cures a tenth of them. It is never critical:
//! the updated columns may have to be indexed.
//!
//! When to ignore it: where the updated columns have to be indexed.
//!
//! Reference: Chen 2017: 44 % at fillfactor 100, 81 % at 90.

use super::{CHEN_2017, LEAST_SHARE, evidence, label, plain_finding, says_little, worst_tables};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::filters::Filters;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
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
    let not_hot = |row: &WholeTableRow| row.updates - row.hot_updates;
    let tables = worst_tables(report, |row| if is_ours(row) { not_hot(row) } else { 0 });
    let named = |(row, ..): &(&WholeTableRow, u64, f64)| {
        json!({
            "table": label(report, row),
            "updates": row.updates,
            "hot_updates": row.hot_updates,
            "updates_new_page": row.updates_new_page,
            "bytes_per_hot_update": row.bytes_per_hot_update,
            "bytes_per_non_hot_update": row.bytes_per_non_hot_update,
        })
    };
    let split = split_of_all(report);
    let names: Vec<String> = tables.iter().map(|(row, ..)| label(report, row)).collect();
    let mut advice = cures(&split, &names.join(", "));
    advice.extend(tables.iter().map(|(row, ..)| cause(report, row)));
    let finding = Finding {
        severity: Severity::Warning,
        evidence: evidence([
            ("hot_ratio", ratio.into()),
            ("threshold", threshold.into()),
            ("updates", updates.into()),
            ("tables", tables.iter().map(named).collect()),
        ]),
        advice,
        side_effects: side_effects(&split),
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, format!("only {} of the updates are HOT", percent(ratio, 1)))
    };
    let by_room = saved(report).filter(|_| split.has_use_of_room());
    Some(match by_room.into_iter().chain(index_bytes(report)).max() {
        Some(bytes) => finding.explaining(bytes),
        None => finding,
    })
}

/// Of catalogs nobody sets the fillfactor or drops an index.
fn is_ours(row: &WholeTableRow) -> bool {
    row.schema.as_deref() != Some("pg_catalog")
}

/// The tables that somebody can do something about.
fn our_rows(report: &Report) -> impl Iterator<Item = &WholeTableRow> {
    report.tables.iter().flat_map(|tables| &tables.rows).filter(|row| is_ours(row))
}

/// Updates that are not HOT, by what would cure them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Split {
    /// They changed an indexed column.
    indexed: f64,
    /// They found no room in their page, and changed no indexed column.
    no_room: f64,
    /// They found no room; whether they changed an indexed column, nobody knows.
    unknown: f64,
}

impl Split {
    /// Of a table. An update that stayed in its page and was not HOT changed an indexed column; among
    /// those that left it for want of room as many did as among those that had room.
    fn of(row: &WholeTableRow) -> Split {
        let had_room = row.updates.saturating_sub(row.updates_new_page);
        let stayed = had_room.saturating_sub(row.hot_updates) as f64;
        let moved = row.updates_new_page as f64;
        if moved > 0.0 && had_room < SAMPLE {
            return Split { indexed: stayed, no_room: 0.0, unknown: moved };
        }
        let share = stayed / had_room.max(1) as f64;
        let indexed = stayed + moved * share;
        Split { indexed, no_room: moved * (1.0 - share), unknown: 0.0 }
    }

    fn add(&mut self, other: Split) {
        self.indexed += other.indexed;
        self.no_room += other.no_room;
        self.unknown += other.unknown;
    }

    /// Whether room cures a good part of them, or may.
    fn has_use_of_room(&self) -> bool {
        let moved = self.no_room + self.unknown;
        moved > 0.0 && moved >= LEAST_SHARE * (moved + self.indexed)
    }

    /// Whether anybody changes an indexed column, as far as is known.
    fn has_indexed(&self) -> bool {
        let all = self.indexed + self.no_room + self.unknown;
        self.indexed > 0.0 && self.indexed >= LEAST_SHARE * all
    }
}

fn split_of_all(report: &Report) -> Split {
    let mut all = Split::default();
    our_rows(report).for_each(|row| all.add(Split::of(row)));
    all
}

/// Why the updates of a table are not HOT.
fn cause(report: &Report, row: &WholeTableRow) -> String {
    let Split { indexed, no_room, unknown } = Split::of(row);
    let causes = [
        (indexed, "changed an indexed column"),
        (no_room, "found no room in their page"),
        (unknown, "found no room in their page, and may have changed an indexed column"),
    ];
    let about = if row.updates_new_page > 0 { "about " } else { "" };
    let causes = causes.iter().filter(|(updates, _)| updates.round() > 0.0);
    let causes: Vec<String> =
        causes.map(|(updates, what)| format!("{about}{updates:.0} {what}")).collect();
    let not_hot = row.updates - row.hot_updates;
    let told = causes.join(", ");
    let (label, price) = (label(report, row), prices_told(report, row));
    format!("{label}: of {not_hot} updates that were not HOT {told}{price}")
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

/// Bytes that HOT updates would have saved at most where room would cure it: how many of them a page has room
/// for, nobody knows, nor whose images would come all the same. `None` where it is not known what one costs.
fn saved(report: &Report) -> Option<u64> {
    let saved = our_rows(report).filter_map(|row| {
        let (hot, non_hot) = prices(report, row);
        Some((non_hot? - hot?).max(0.0) * Split::of(row).no_room)
    });
    saved.reduce(|sum, more| sum + more).map(|bytes| bytes.round() as u64).filter(|sum| *sum > 0)
}

/// Bytes that updates that were not HOT wrote into indexes; `None` where that is not known.
fn index_bytes(report: &Report) -> Option<u64> {
    let sum: u64 = our_rows(report).map(|row| row.update_bytes.non_hot.index_bytes).sum();
    (sum > 0 && !is_partly_seen(&report.input.filters)).then_some(sum)
}

/// What helps, what cures more first; both where no table was counted.
fn cures(split: &Split, tables: &str) -> Vec<String> {
    let of = if tables.is_empty() { String::new() } else { format!(" of {tables}") };
    let whose = if tables.is_empty() { "tables that are updated a lot" } else { tables };
    let room = format!(
        "fillfactor = 90 for {whose}, unless it is lower already; rewritten once after that (VACUUM FULL)"
    );
    let indexes = format!(
        "drop indexes{of} on columns that updates change, where queries can do without: an update of such \
         a column is never HOT"
    );
    let is_known = *split != Split::default();
    let mut cures = Vec::new();
    if !is_known || split.has_indexed() {
        cures.push(indexes);
    }
    if !is_known || split.has_use_of_room() {
        cures.push(room);
    }
    if split.no_room + split.unknown > split.indexed {
        cures.reverse();
    }
    cures
}

/// What the cures cost.
fn side_effects(split: &Split) -> Vec<String> {
    if *split != Split::default() && !split.has_use_of_room() {
        return vec!["queries that use an index are slow without it".into()];
    }
    vec![
        "tables with fillfactor 90 take about a tenth more space and cache".into(),
        "the rewrite (VACUUM FULL, CLUSTER) locks the table and writes WAL itself".into(),
    ]
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
        let not_hot = "public.orders: of 1800 updates that were not HOT";
        let full = told(1800);
        assert!(full.len() == 2 && full[0].starts_with("fillfactor"), "{full:?}");
        assert_eq!(full[1], format!("{not_hot} about 1800 found no room in their page"));
        let indexed = told(0);
        assert!(indexed.len() == 2 && indexed[0].starts_with("drop indexes"), "{indexed:?}");
        assert_eq!(indexed[1], format!("{not_hot} 1800 changed an indexed column"));
        // Of 500 that had room 300 changed an indexed column; so did 900 of the 1500 others.
        let both = told(1500);
        let causes = "about 1200 changed an indexed column, about 600 found no room in their page";
        assert!(both.len() == 3 && both[0].starts_with("drop indexes"), "{both:?}");
        assert_eq!(both[2], format!("{not_hot} {causes}"));
        // Of 1,400 that had room 1,200 changed one: room would cure a twentieth.
        let few = told(600);
        assert!(few.len() == 2 && few[0].starts_with("drop indexes"), "{few:?}");
    }

    /// 41,348 of 80,000 updates of an indexed column left their page, and none was HOT: room would not
    /// have made one of them HOT.
    #[test]
    fn where_no_update_that_had_room_was_hot_room_is_not_advised() {
        let row = WholeTableRow { updates: 80_000, updates_new_page: 41_348, ..Default::default() };
        let split = Split::of(&row);
        assert_eq!(split, Split { indexed: 80_000.0, ..Split::default() });
        assert!(!split.has_use_of_room());
        assert!(cures(&split, "u").iter().all(|cure| !cure.contains("fillfactor")));
        let full = WholeTableRow { updates_new_page: 79_950, ..row };
        assert_eq!(Split::of(&full).unknown, 79_950.0);
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
        assert!(finding.advice.iter().any(|line| line.ends_with(price)), "{:?}", finding.advice);
        // Of 1,000 that had room 200 were HOT: so would 200 of the others have been.
        assert_eq!((finding.explains, finding.estimate), (Some(60_080), None));
        let few = found(99, Filters::default());
        assert_eq!(few.explains, None);
        assert!(
            few.advice.iter().any(|line| line.ends_with("; 390 bytes of WAL each")),
            "{:?}",
            few.advice
        );
        // Without the records of its indexes nobody knows what an update costs.
        let heap = found(200, Filters { rmgr: vec!["Heap".into()], ..Filters::default() });
        assert_eq!(heap.explains, None);
        assert!(!heap.advice.concat().contains("each"), "{:?}", heap.advice);
    }
}
