//! Sums over rows.

use super::{WHO, json, number, numbers, rows, sum};
use crate::support::fixtures::{sample, sample_names};
use serde_json::Value;

#[test]
fn every_table_adds_up_to_the_totals() {
    for name in sample_names() {
        let report = json(&sample(&name).wal, &[WHO]);
        let totals = numbers(&report["totals"]);
        for table in ["relations", "tables", "databases", "tablespaces", "forks"] {
            assert_eq!(sum(rows(&report, table)), totals, "{name}: {table}");
            let identity = |row: &Value| match table {
                "tables" => row["database"].is_null(),
                "forks" => row["fork"].is_null(),
                "tablespaces" => row["tablespace"].is_null(),
                _ => row["database"].is_null(),
            };
            let without = rows(&report, table).iter().filter(|row| identity(row)).count();
            assert_eq!(without, 1, "{name}: {table}");
        }
        let transactions = &report["transactions"];
        let without = &transactions["summary"]["without_transaction"];
        assert_eq!(sum(rows(&report, "transactions").iter().chain([without])), totals, "{name}");
        let blocks = &report["blocks"];
        let without = &blocks["summary"]["without_block"];
        assert_eq!(sum(rows(&report, "blocks").iter().chain([without])), totals, "{name}");
        summaries_hold(&report, &name);
    }
}

fn summaries_hold(report: &Value, name: &str) {
    let of = |table: &str, key: &str| -> u64 {
        rows(report, table).iter().filter_map(|row| row[key].as_u64()).sum()
    };
    let blocks = &report["blocks"]["summary"];
    let distinct = number(blocks, "distinct_blocks");
    assert_eq!(rows(report, "blocks").len() as u64, distinct, "{name}");
    for table in ["relations", "databases", "tablespaces", "forks"] {
        assert_eq!(of(table, "distinct_blocks"), distinct, "{name}: {table}");
        assert_eq!(of(table, "block_refs"), of("blocks", "block_refs"), "{name}: {table}");
    }
    let summary = &report["transactions"]["summary"];
    assert_eq!(number(summary, "transactions"), rows(report, "transactions").len() as u64);
    let outcomes = ["committed", "aborted", "prepared", "open"];
    for outcome in outcomes {
        let found = rows(report, "transactions").iter().filter(|row| row["outcome"] == outcome);
        assert_eq!(number(summary, outcome), found.count() as u64, "{name}: {outcome}");
    }
    assert_eq!(number(summary, "committed"), number(&report["ratios"], "commits"), "{name}");
    let mut sizes: Vec<u64> = rows(report, "transactions")
        .iter()
        .filter(|row| row["outcome"] == "committed")
        .map(|row| number(row, "total_bytes"))
        .collect();
    sizes.sort_unstable();
    for (key, percent) in [("median", 50), ("p90", 90), ("p99", 99), ("max", 100)] {
        let rank = (percent * sizes.len()).div_ceil(100).max(1) - 1;
        assert_eq!(
            summary["bytes_per_commit"][key].as_u64(),
            sizes.get(rank).copied(),
            "{name}: {key}"
        );
    }
    parts_add_up(report, name);
}

/// The parts of a table are the table.
fn parts_add_up(report: &Value, name: &str) {
    for row in rows(report, "tables").iter().filter(|row| !row["database"].is_null()) {
        let indexes = row["indexes"].as_array().expect("a list");
        let parts = [&row["heap"], &row["toast"]].into_iter().filter(|part| !part.is_null());
        assert_eq!(sum(parts.chain(indexes)), numbers(row), "{name}: {row}");
    }
}

/// Chunks of large values are rows of the TOAST table, which has a row of its own among the relations.
#[test]
fn chunks_of_a_table_are_the_rows_of_its_toast_table() {
    let mut both = [0, 0];
    for name in sample_names() {
        let wal = sample(&name).wal;
        let report = walstat::Scan::paths([&wal]).report().expect("a report");
        let tables = report.tables.expect("tables").rows;
        let told = json(&wal, &["--stats=relation"]);
        let is_known = |row: &&Value| row["kind"] == "t" && row["table"]["oid"] != row["oid"];
        let toast = || rows(&told, "relations").iter().filter(is_known);
        let of = |key: &str| -> u64 { toast().map(|row| number(row, key)).sum() };
        let found = [
            tables.iter().map(|row| row.toast_inserts).sum::<u64>(),
            tables.iter().map(|row| row.toast_deletes).sum(),
        ];
        assert_eq!(found, [of("inserts"), of("deletes")], "{name}");
        both.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
    }
    assert!(both.iter().all(|sum| *sum > 0), "{both:?}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for name in sample_names() {
        let sample = sample(&name);
        let one = json(&sample.wal, &[WHO, "-j", "1"]);
        for threads in ["2", "5"] {
            let other = json(&sample.wal, &[WHO, "-j", threads]);
            for table in ["relations", "tables", "forks", "blocks", "transactions", "names"] {
                assert_eq!(other[table], one[table], "{name}, {threads} threads: {table}");
            }
        }
    }
}

#[test]
fn rows_are_cut_and_summaries_are_not() {
    let wal = sample("pg15-mixed").wal;
    let all = json(&wal, &[WHO, "--top", "0"]);
    let cut = json(&wal, &[WHO, "--top", "3"]);
    for table in ["relations", "tables", "blocks", "transactions"] {
        assert_eq!(rows(&cut, table), &rows(&all, table)[..3], "{table}");
    }
    assert_eq!(cut["transactions"]["summary"], all["transactions"]["summary"]);
    assert_eq!(cut["blocks"]["summary"], all["blocks"]["summary"]);
    let by_count = json(&wal, &["--stats=transaction", "--sort", "count", "--top", "5"]);
    let counts: Vec<u64> =
        rows(&by_count, "transactions").iter().map(|row| number(row, "count")).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b) && counts.len() == 5, "{counts:?}");
}
