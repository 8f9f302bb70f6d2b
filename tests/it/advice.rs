//! What the advice is made of, on WAL that servers wrote: what maintenance wrote adds up, and findings come
//! in the order of what they save.

use crate::support::fixtures::{Sample, samples};
use crate::support::walstat;
use serde_json::Value;

/// The report of a sample.
fn report(sample: &Sample, words: &[&str]) -> Value {
    let wal = sample.wal.to_str().expect("a path");
    walstat(&[&["-f", "json", wal], words].concat()).json()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn rows<'r>(report: &'r Value, table: &str) -> &'r [Value] {
    report[table].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Bytes of record types whose names these are.
fn bytes_of(report: &Value, names: &[&str]) -> u64 {
    let is_one = |row: &&Value| {
        let of = [&row["rmgr"], &row["record"]].map(|name| name.as_str().unwrap_or_default());
        names.contains(&of.join("/").as_str())
    };
    rows(report, "records").iter().filter(is_one).map(|row| number(&row["total_bytes"])).sum()
}

/// Up to 16 vacuum prunes by records of statements, so its bytes lie between two sums.
#[test]
fn what_vacuum_wrote_is_what_its_records_come_to() {
    // Of all releases: no name means one thing in one and another in the other.
    let of_vacuum = [
        "Heap2/FREEZE_PAGE",
        "Heap2/CLEANUP_INFO",
        "Heap2/VACUUM",
        "Heap2/PRUNE_VACUUM_SCAN",
        "Heap2/PRUNE_VACUUM_CLEANUP",
        "Heap2/VISIBLE",
        "Btree/VACUUM",
        "Btree/MARK_PAGE_HALFDEAD",
        "Btree/UNLINK_PAGE",
        "Btree/UNLINK_PAGE_META",
        "Btree/META_CLEANUP",
        "Gin/VACUUM_PAGE",
        "Gin/VACUUM_DATA_LEAF_PAGE",
        "Gin/DELETE_PAGE",
        "Gist/PAGE_DELETE",
        "SPGist/VACUUM_LEAF",
        "SPGist/VACUUM_ROOT",
        "SPGist/VACUUM_REDIRECT",
    ];
    let (mut vacuumed, mut pruned) = (0, 0);
    for sample in samples() {
        let report = report(&sample, &[]);
        let vacuum = rows(&report, "why").iter().find(|row| row["cause"] == "vacuum");
        let bytes = vacuum.map_or(0, |row| number(&row["bytes"]));
        let least = bytes_of(&report, &of_vacuum);
        let pruning = bytes_of(&report, &["Heap2/PRUNE", "Heap2/CLEAN"]);
        if number(&report["totals"]["fpi_check_bytes"]) == 0
            && number(&report["totals"]["fpi_check_count"]) == 0
        {
            assert!((least..=least + pruning).contains(&bytes), "{}: {bytes} {least}", sample.name);
            pruned += bytes - least;
        }
        let tables: u64 =
            rows(&report, "tables").iter().map(|row| number(&row["vacuum_bytes"])).sum();
        // A record of vacuum that names no block (up to 13) belongs to no table.
        let without_block = bytes_of(&report, &["Heap2/CLEANUP_INFO"]);
        assert_eq!(tables + without_block, bytes, "{}", sample.name);
        let maintenance = rows(&report, "maintenance").iter().find(|row| row["work"] == "vacuum");
        assert_eq!(maintenance.map_or(0, |row| number(&row["bytes"])), bytes, "{}", sample.name);
        let images = maintenance.map_or(0, |row| number(&row["fpi_bytes"]));
        let of_tables = rows(&report, "tables").iter().map(|row| number(&row["vacuum_fpi_bytes"]));
        assert_eq!(of_tables.sum::<u64>(), images, "{}", sample.name);
        vacuumed += bytes;
    }
    assert!(vacuumed > 0 && pruned > 0, "{vacuumed} {pruned}");
}

#[test]
fn what_saves_more_is_told_before_what_saves_less() {
    let mut compared = 0;
    for sample in samples() {
        let report = report(&sample, &["--ruleset", "strict"]);
        let of = |certainty: &str, key: &str| -> Vec<u64> {
            let findings = rows(&report, "findings").iter();
            let of = findings.filter(|finding| finding["certainty"] == certainty);
            let same_price = of.filter(|finding| finding["side_effects"] == serde_json::json!([]));
            same_price.map(|finding| number(&finding[key])).collect()
        };
        for saved in [of("computed", "estimate"), of("possible", "explains")] {
            assert!(saved.is_sorted_by(|a, b| a >= b), "{}: {saved:?}", sample.name);
            compared += saved.len();
        }
        // What saves nothing comes last.
        let ends =
            rows(&report, "findings").iter().map(|finding| finding["certainty"] == "nothing");
        assert!(ends.is_sorted(), "{}: {}", sample.name, report["findings"]);
    }
    assert!(compared > 2, "{compared}");
}
