//! What helps a table whose updates are not HOT: why they are not, what to do about it, and its price.

use crate::advice::rules::{LEAST_SHARE, label};
use crate::advice::workloads::non_hot_updates::{
    Split, index_images_of_moved, prices, rows_of_page, tenths_for,
};
use crate::model::Report;
use crate::model::percent::percent;
use crate::model::who::WholeTableRow;

/// Pages to which so many updates each found no room were to be pruned.
const OFTEN: f64 = 8.0;
/// And so many times as many as where each row is updated once.
const ONCE_TIMES: f64 = 1.2;

/// What helps a table, what cures more first, and why its updates are not HOT.
pub(in crate::advice) fn cure(report: &Report, row: &WholeTableRow, share: String) -> String {
    let split = Split::of(row);
    let not_hot = row.updates - row.hot_updates;
    let (label, price) = (label(report, row), prices_told(report, row));
    let room =
        if is_never_pruned(report, row) { SNAPSHOTS.to_owned() } else { room_for(report, row) };
    let mut cures = split.choose(ITS_INDEXES.to_owned(), room);
    cures.extend(wants_room_then(report, row).then(|| {
        let moved = row.updates_new_page;
        format!("then {}, since {moved} of them left their page", room_for(report, row))
    }));
    let (cures, causes) = (cures.join("; "), causes(row));
    format!("{label}{share}: {cures}: of {not_hot} updates that were not HOT {causes}{price}")
}

/// Whether only an index is to be dropped, and rows that found no room in their page would bring a good part
/// of the bytes as images of the other indexes all the same.
fn wants_room_then(report: &Report, row: &WholeTableRow) -> bool {
    let split = Split::of(row);
    let total = report.totals.total_bytes as f64;
    let is_dear = index_images_of_moved(row) >= LEAST_SHARE * total;
    split.has_indexed() && !split.has_use_of_room() && is_dear
}

/// Whether a fillfactor is among what helps a table.
fn wants_room(report: &Report, row: &WholeTableRow) -> bool {
    let is_first = Split::of(row).advises_room() && !is_never_pruned(report, row);
    is_first || wants_room_then(report, row)
}

/// Whether dead rows stay in its pages: each was updated several times, and none was pruned. Where one
/// statement updates each row once, half of the pages have the old rows and half the new ones, which is no
/// reason to prune.
fn is_never_pruned(report: &Report, row: &WholeTableRow) -> bool {
    let blocks = row.heap.as_ref().map_or(0, |heap| heap.distinct_blocks);
    let costs = &row.update_bytes;
    let pruned = costs.hot.prune_bytes + costs.non_hot.prune_bytes + row.vacuum_bytes;
    let each = row.updates_new_page as f64 / blocks.max(1) as f64;
    let once = rows_of_page(report, row) / 2.0;
    pruned == 0 && blocks > 0 && each >= OFTEN && each >= ONCE_TIMES * once
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

fn prices_told(report: &Report, row: &WholeTableRow) -> String {
    match prices(report, row) {
        (_, None) => String::new(),
        (None, Some(non_hot)) => format!("; {non_hot:.0} bytes of WAL each without images"),
        (Some(hot), Some(non_hot)) => {
            format!("; {non_hot:.0} bytes of WAL each without images, a HOT one {hot:.0}")
        }
    }
}

/// Cures that may be of any table.
pub(in crate::advice) const ROOM: &str =
    "fillfactor = 90, unless it is lower already, and one rewrite after that (VACUUM FULL)";
const INDEXES: &str = "drop indexes on columns that updates change, where queries can do without: an \
                       update of such a column is never HOT";
/// The same of a table.
const ITS_INDEXES: &str =
    "drop indexes on columns that updates change, where queries can do without";
/// What helps a table whose dead rows stay in its pages.
const SNAPSHOTS: &str = "end old transactions before anything else: none of its pages was pruned, so an \
                         old snapshot may keep dead rows in them (idle in transaction in pg_stat_activity, \
                         pg_replication_slots, pg_prepared_xacts, hot_standby_feedback)";

/// Room for a row at least, of a table.
fn room_for(report: &Report, row: &WholeTableRow) -> String {
    ROOM.replace("90", &(100 - 10 * tenths_for(report, row)).to_string())
}

/// What helps where no table was counted, what cures more first.
pub(in crate::advice) fn cures_of_any(split: &Split) -> Vec<String> {
    let room = format!("of tables that are updated a lot: {ROOM}");
    split.choose(INDEXES.to_owned(), room)
}

/// What the cures cost.
pub(in crate::advice) fn side_effects(
    report: &Report,
    tables: &[&WholeTableRow],
    split: &Split,
) -> Vec<String> {
    let (drops_indexes, room) = match tables {
        // The usual fillfactor is advised.
        [] => (split.advises_indexes(), split.advises_room().then_some(1)),
        tables => {
            let roomy = tables.iter().filter(|row| wants_room(report, row));
            (
                tables.iter().any(|row| Split::of(row).advises_indexes()),
                roomy.map(|row| tenths_for(report, row)).max(),
            )
        }
    };
    let mut prices = Vec::new();
    if drops_indexes {
        prices.push("queries that use an index are slow without it".into());
    }
    if let Some(most) = room {
        let (fillfactor, more) = (100 - 10 * most, most as f64 / (10 - most) as f64);
        prices.push(format!(
            "tables with room in their pages take more space and cache: with fillfactor {fillfactor} about \
             {} more",
            percent(more, 0)
        ));
        prices.push(
            "the rewrite (VACUUM FULL, CLUSTER) locks the table and writes WAL itself".into(),
        );
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::hot_ratio::RULE;
    use crate::advice::rules::hot_ratio::tests::{moved, table};
    use crate::model::finding::Finding;
    use crate::model::who::{IndexPart, Part};
    use crate::model::{Numbers, sample};

    fn check(report: &Report) -> Option<Finding> {
        (RULE.check)(report)
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
        assert!(
            split
                .choose(ITS_INDEXES.to_owned(), ROOM.to_owned())
                .iter()
                .all(|cure| !cure.contains("fillfactor"))
        );
        let full = WholeTableRow { updates_new_page: 79_950, ..row };
        assert_eq!(Split::of(&full).unknown, 79_950.0);
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

    /// 84,000 updates of 1,908 pages beside a transaction that was idle: fillfactor saved 6 %, its end 45 %.
    #[test]
    fn where_nothing_was_pruned_an_old_snapshot_is_the_reason() {
        let is_old = |finding: Finding| finding.advice[0].contains("an old snapshot");
        assert!(is_old(moved(0, 100)));
        assert!(!is_old(moved(1, 100)), "pages were pruned");
        assert!(!is_old(moved(0, 200)), "none was to be pruned yet");
    }

    /// Of 25,000 updates none was HOT; without the index 38.5 % were saved, with fillfactor 60 too 62.5 %.
    #[test]
    fn where_rows_found_no_room_beside_an_index_both_are_told() {
        let found = |updates_new_page| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.0), 1000);
            let numbers = Numbers { fpi_count: 100, fpi_bytes: 20 << 20, ..Numbers::default() };
            let index = Part { numbers, ..Part::default() };
            let mut row = table("u", 40, 0, updates_new_page);
            row.indexes = vec![IndexPart { part: index, ..IndexPart::default() }];
            report.tables = Some(vec![row].into());
            check(&report).expect("a finding")
        };
        // Each brings an image of its own, until all have come.
        let both = found(50);
        let then = "then fillfactor = 90, unless it is lower already, and one rewrite after that (VACUUM \
                    FULL), since 50 of them left their page";
        assert!(both.advice[0].contains(then), "{:?}", both.advice);
        assert_eq!(both.side_effects.len(), 3);
        let indexes = found(49);
        assert!(!indexes.advice[0].contains("fillfactor"), "{:?}", indexes.advice);
        assert_eq!(indexes.side_effects.len(), 1);
    }

    #[test]
    fn the_price_of_room_is_that_of_the_fillfactor() {
        let price = |row_bytes: u64| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.3), 1000);
            let heap = Some(Part { block_data_bytes: 700 * row_bytes, ..Part::default() });
            report.tables =
                Some(vec![WholeTableRow { heap, ..table("acct", 40, 300, 700) }].into());
            check(&report).expect("a finding").side_effects.concat()
        };
        assert!(price(90).contains("with fillfactor 90 about 11 % more"), "{}", price(90));
        assert!(price(8000).contains("with fillfactor 50 about 100 % more"), "{}", price(8000));
    }

    /// One table was to have fillfactor 90, and another one, of long rows, to lose an index: the price was
    /// that of fillfactor 50.
    #[test]
    fn prices_are_of_what_is_advised() {
        let heap = |row_bytes: u64| Part { block_data_bytes: 700 * row_bytes, ..Part::default() };
        let moved = |name| WholeTableRow { heap: Some(heap(90)), ..table(name, 40, 300, 700) };
        let stayed = WholeTableRow { heap: Some(heap(8000)), ..table("s", 40, 0, 0) };
        let price = |tables: Vec<WholeTableRow>| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.3), 2000);
            report.tables = Some(tables.into());
            check(&report).expect("a finding").side_effects.concat()
        };
        let (indexes, room) = ("queries that use an index", "with fillfactor 90 about 11 % more");
        let both = price(vec![moved("a"), stayed.clone()]);
        assert!(both.contains(indexes) && both.contains(room), "{both}");
        let of_index = price(vec![stayed]);
        assert!(of_index.contains(indexes) && !of_index.contains("fillfactor"), "{of_index}");
        // Dead rows stay in its pages: neither is advised.
        let mut never_pruned = moved("q");
        never_pruned.heap.iter_mut().for_each(|heap| heap.distinct_blocks = 10);
        assert_eq!(price(vec![never_pruned.clone()]), "");
        // Each row of ten pages was updated once, and went into one of ten others.
        never_pruned.heap.iter_mut().for_each(|heap| heap.distinct_blocks = 20);
        assert!(price(vec![never_pruned]).contains("fillfactor"));
    }

    #[test]
    fn room_is_for_a_row_at_least() {
        let mut report = sample::report(0, 100 << 20);
        let room = |report: &Report, row_bytes: u64| {
            let heap = Some(Part { block_data_bytes: 700 * row_bytes, ..Part::default() });
            room_for(report, &WholeTableRow { heap, ..table("acct", 40, 300, 700) })
        };
        assert!(room(&report, 1600).starts_with("fillfactor = 80,") && room(&report, 90) == ROOM);
        assert!(room(&report, 8000).starts_with("fillfactor = 50,"));
        // 700 rows were moved to another page, and 300,000 written anew with their table.
        let heap = Some(Part { block_data_bytes: 300_700 * 150, ..Part::default() });
        let anew = WholeTableRow { heap, inserts: 300_000, ..table("acct", 40, 300, 700) };
        assert!(room_for(&report, &anew) == ROOM);
        report.input.data_page_bytes = Some(32_768);
        assert!(room(&report, 1600) == ROOM && room(&report, 8000).starts_with("fillfactor = 70,"));
    }
}
