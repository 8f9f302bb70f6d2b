//! What it looks at: the share of HOT updates in all heap updates, from 1,000 updates on; where that is high,
//! the share in each table that has 20 % of the bytes and more, since small tables that are updated as often
//! lift the average.
//!
//! Why it matters: an update that is not HOT writes an entry into every index of the table,
//! each of them a record and, after a checkpoint, an image.
//!
//! Where tables are counted, the worst are named, each with its own cure. Their updates are divided into
//! those that changed an indexed column, which free room in the page does not help, and those that found no
//! room in their page. Of an update that stayed in its page and was not HOT it is known that it changed an
//! indexed column. Of one that went to another page the WAL does not tell: it is taken for as likely as among
//! those that had room. The cost of an update with its index entries is shown beside that of a HOT one. At
//! most these entries are saved, and, where room was missing, the lock of the row before it is moved; page
//! images of the table are written in any case.
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
use crate::model::table::TableRow;
use crate::model::threshold::{MIN_UPDATES, Speaks, Threshold, Unit};
use crate::model::who::WholeTableRow;
use serde_json::{Value, json};
use std::cmp::Reverse;
use walstat_names::catalog::row::CATALOG_SCHEMA_NAME;

/// Below this share of HOT updates, index maintenance is worth a look.
const THRESHOLD: Threshold =
    Threshold { speaks: Speaks::Below, chen: 0.70, strict: 0.85, relaxed: 0.50, unit: Unit::Ratio };

/// A table with this share of the bytes is judged by itself: 20 %.
const CONSIDERABLE: f64 = 0.2;

/// So many updates of a sort tell what one costs.
const SAMPLE: u64 = 100;

/// A record of Heap/LOCK without an image: 24 bytes of header, 20 of its block, 2 and 8 of its own.
const LOCK_BYTES: f64 = 54.0;

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
    let is_low = |ratio: &f64| *ratio < threshold && report.ratios.updates >= MIN_UPDATES;
    let all = report.ratios.hot_ratio.filter(is_low);
    let not_hot =
        |row: &WholeTableRow| if is_ours(row) { row.updates - row.hot_updates } else { 0 };
    let tables: Vec<&WholeTableRow> = match all {
        Some(_) => worst_tables(report, not_hot).into_iter().map(|(row, ..)| row).collect(),
        None => dear_tables(report, threshold),
    };
    let title = match (all, tables.first()) {
        (Some(ratio), _) => format!("only {} of the updates are HOT", percent(ratio, 1)),
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
        advice: match tables.as_slice() {
            [] => cures_of_any(&split),
            tables => tables.iter().map(|row| cure(report, row)).collect(),
        },
        side_effects: side_effects(&split),
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, title)
    };
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

/// The share of a table's updates that are HOT.
fn hot_share(row: &WholeTableRow) -> f64 {
    row.hot_updates as f64 / row.updates.max(1) as f64
}

/// Tables below the threshold that make a good part of the bytes, the largest first: the average of all is
/// high where small tables are updated as often as they are.
fn dear_tables(report: &Report, threshold: f64) -> Vec<&WholeTableRow> {
    let least = CONSIDERABLE * report.totals.total_bytes as f64;
    let is_dear = |row: &&WholeTableRow| {
        row.updates >= MIN_UPDATES
            && hot_share(row) < threshold
            && row.numbers.total_bytes as f64 >= least
    };
    let mut rows: Vec<&WholeTableRow> =
        our_rows(report).filter(|row| row.database.is_some()).filter(is_dear).collect();
    rows.sort_by_key(|row| (Reverse(row.numbers.total_bytes), row.label()));
    rows
}

/// Of catalogs nobody sets the fillfactor or drops an index.
fn is_ours(row: &WholeTableRow) -> bool {
    row.schema.as_deref() != Some(CATALOG_SCHEMA_NAME)
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

    /// What helps a table that has these.
    fn cures(&self) -> Vec<String> {
        self.choose(ITS_INDEXES.to_owned(), ROOM.to_owned())
    }

    /// What helps, what cures more first; both where nothing is known.
    fn choose(&self, indexes: String, room: String) -> Vec<String> {
        let is_known = *self != Split::default();
        let indexes = Some(indexes).filter(|_| !is_known || self.has_indexed());
        let room = Some(room).filter(|_| !is_known || self.has_use_of_room());
        let mut cures: Vec<String> = indexes.into_iter().chain(room).collect();
        if self.no_room + self.unknown > self.indexed {
            cures.reverse();
        }
        cures
    }

    /// Whether anybody changes an indexed column, as far as is known.
    fn has_indexed(&self) -> bool {
        let all = self.indexed + self.no_room + self.unknown;
        self.indexed > 0.0 && self.indexed >= LEAST_SHARE * all
    }
}

fn split_of(rows: &[&WholeTableRow]) -> Split {
    let mut all = Split::default();
    rows.iter().for_each(|row| all.add(Split::of(row)));
    all
}

/// What helps a table, what cures more first, and why its updates are not HOT.
fn cure(report: &Report, row: &WholeTableRow) -> String {
    let split = Split::of(row);
    let not_hot = row.updates - row.hot_updates;
    let (label, price) = (label(report, row), prices_told(report, row));
    let (cures, causes) = (split.cures().join("; "), causes(row));
    format!("{label}: {cures}: of {not_hot} updates that were not HOT {causes}{price}")
}

/// Why the updates of a table are not HOT.
fn causes(row: &WholeTableRow) -> String {
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
    causes.join(", ")
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

/// Bytes that HOT updates of these tables would have saved at most: how many of them a page has room for, and
/// which indexes can be dropped, nobody knows. `None` where it is not known what an update costs.
fn saved(report: &Report, rows: &[&WholeTableRow]) -> Option<u64> {
    if is_partly_seen(&report.input.filters) {
        return None;
    }
    let sum: f64 = rows.iter().map(|row| saved_of(row)).sum();
    Some(sum.round() as u64).filter(|sum| *sum > 0)
}

/// The same of one: index entries of updates that its cures may make HOT; where it is room that they want,
/// the lock of the row before it is moved, and what its own record has more than that of a HOT one. The image
/// of the page that the row leaves stands with that lock, and comes all the same.
fn saved_of(row: &WholeTableRow) -> f64 {
    let split = Split::of(row);
    let moved = if split.has_use_of_room() { split.no_room + split.unknown } else { 0.0 };
    let changed = if split.has_indexed() { split.indexed } else { 0.0 };
    let (hot, non_hot) = (&row.update_bytes.hot, &row.update_bytes.non_hot);
    if non_hot.updates == 0 {
        return 0.0;
    }
    let each = |bytes: u64, updates: u64| bytes as f64 / updates.max(1) as f64;
    let index = each(non_hot.index_bytes, non_hot.updates);
    let lock = each(non_hot.lock_bytes, non_hot.updates).min(LOCK_BYTES);
    let more = each(non_hot.heap_bytes, non_hot.updates) - each(hot.heap_bytes, hot.updates);
    let more = if hot.updates >= SAMPLE { more.max(0.0) } else { 0.0 };
    (moved + changed) * index + moved * (lock + more)
}

/// Cures that may be of any table.
const ROOM: &str =
    "fillfactor = 90, unless it is lower already, and one rewrite after that (VACUUM FULL)";
const INDEXES: &str = "drop indexes on columns that updates change, where queries can do without: an \
                       update of such a column is never HOT";
/// The same of a table.
const ITS_INDEXES: &str =
    "drop indexes on columns that updates change, where queries can do without";

/// What helps where no table was counted, what cures more first.
fn cures_of_any(split: &Split) -> Vec<String> {
    let room = format!("of tables that are updated a lot: {ROOM}");
    split.choose(INDEXES.to_owned(), room)
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
        let not_hot = "of 1800 updates that were not HOT";
        let full = told(1800).concat();
        let why = format!("{not_hot} about 1800 found no room in their page");
        assert_eq!(full, format!("public.orders: {ROOM}: {why}"));
        let indexed = told(0).concat();
        let why = format!("{not_hot} 1800 changed an indexed column");
        assert_eq!(indexed, format!("public.orders: {ITS_INDEXES}: {why}"));
        // Of 500 that had room 300 changed an indexed column; so did 900 of the 1500 others.
        let both = told(1500).concat();
        let causes = "about 1200 changed an indexed column, about 600 found no room in their page";
        let cures = format!("{ITS_INDEXES}; {ROOM}");
        assert_eq!(both, format!("public.orders: {cures}: {not_hot} {causes}"));
        // Of 1,400 that had room 1,200 changed one: room would cure a twentieth.
        let few = told(600).concat();
        assert!(few.contains(ITS_INDEXES) && !few.contains(ROOM), "{few}");
    }

    /// 41,348 of 80,000 updates of an indexed column left their page, and none was HOT: room would not
    /// have made one of them HOT.
    #[test]
    fn where_no_update_that_had_room_was_hot_room_is_not_advised() {
        let row = WholeTableRow { updates: 80_000, updates_new_page: 41_348, ..Default::default() };
        let split = Split::of(&row);
        assert_eq!(split, Split { indexed: 80_000.0, ..Split::default() });
        assert!(!split.has_use_of_room());
        assert!(split.cures().iter().all(|cure| !cure.contains("fillfactor")));
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
            (row.update_bytes.hot.updates, row.update_bytes.hot.heap_bytes) =
                (hot_updates, 90 * 200);
            let costs = &mut row.update_bytes.non_hot;
            (costs.updates, costs.heap_bytes) = (2000 - hot_updates, 100 * 1800);
            (costs.index_bytes, costs.lock_bytes) = (270_000, 1_800_000);
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding")
        };
        let finding = found(200, Filters::default());
        let price = "; 390 bytes of WAL each, a HOT one 90";
        assert!(finding.advice.iter().any(|line| line.ends_with(price)), "{:?}", finding.advice);
        // Of 1,000 that had room 200 were HOT: so would 200 of the others have been, without their locks
        // (54 bytes and no image) and 10 bytes of their own; no update would have had an index entry.
        let saved = Some(270_000 + 200 * (54 + 10));
        assert_eq!((finding.explains, finding.estimate), (saved, saved));
        let few = found(99, Filters::default());
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

    /// A table with so many bytes and 1,000 updates, of which so many are HOT.
    fn table(name: &str, megabytes: u64, hot_updates: u64, updates_new_page: u64) -> WholeTableRow {
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
    fn each_table_has_its_own_cure() {
        let mut report = sample::report(0, 100 << 20);
        (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.3), 2000);
        let rows = vec![table("accounts", 30, 300, 700), table("users", 40, 0, 0)];
        report.tables = Some(rows.into());
        let advice = check(&report).expect("a finding").advice;
        assert!(advice[0].contains("users: drop indexes") && !advice[0].contains("fillfactor"));
        assert!(advice[1].contains("accounts: fillfactor") && !advice[1].contains("drop"));
        assert_eq!(advice.len(), 2);
    }
}
