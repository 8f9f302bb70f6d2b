//! Kinds of transactions add up, and say of transactions what the transactions themselves say.

use super::{NUMBERS, json, number, numbers, rows, sum};
use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, HEAP, Rec, TRANSACTION};
use crate::support::fixtures::{sample, sample_names};
use serde_json::Value;
use std::collections::BTreeSet;

/// Rows of records without a transaction.
fn is_maintenance(row: &Value) -> bool {
    row["kind"] == "none"
}

#[test]
fn kinds_are_the_transactions_and_all_other_records_of_every_fixture() {
    let (mut told, mut unclear_ones) = (0, 0);
    for name in sample_names() {
        let report = json(&sample(&name).wal, &["--stats=kind,transaction"]);
        let kinds = rows(&report, "kinds");
        assert_eq!(sum(kinds), NUMBERS.map(|key| number(&report["totals"], key)), "{name}");
        let summary = &report["transactions"]["summary"];
        let (maintenance, kinds): (Vec<&Value>, Vec<&Value>) =
            kinds.iter().partition(|row| is_maintenance(row));
        let without = numbers(&summary["without_transaction"]);
        assert_eq!(sum(maintenance), without, "{name}: without a transaction");
        for key in ["transactions", "aborted"] {
            let all: u64 = kinds.iter().map(|row| number(row, key)).sum();
            assert_eq!(all, number(summary, key), "{name}: {key}");
        }
        // Of those aborted ones that may belong to another one it is said so.
        let top = rows(&report["transactions"], "top");
        let is_unclear = |row: &&Value| row["outcome"] == "aborted" && row["top_level"] != true;
        let unclear = top.iter().filter(is_unclear).count() as u64;
        let maybe: u64 = kinds.iter().map(|row| number(row, "maybe_savepoints")).sum();
        assert_eq!(maybe, unclear, "{name}: maybe savepoints");
        let notes = report["notes"].to_string();
        assert_eq!(notes.contains("may be savepoints"), maybe > 0, "{name}: {notes}");
        unclear_ones += unclear;
        told += kinds.len();
    }
    assert!(unclear_ones > 10, "{unclear_ones} aborted transactions of which it is not known");
    assert!(told > 100, "{told} kinds in all fixtures");
}

/// Of two that insert the same key at once with ON CONFLICT, one takes its row back (`XLH_DELETE_IS_SUPER`).
#[test]
fn an_insertion_that_is_taken_back_deletes_nothing() {
    const DELETE: u8 = 0x10;
    const IS_SUPER: u8 = 0x08;
    let mut wal = Wal::new(Form::of("15"), 1);
    let delete = |xid, flags| {
        let main = vec![0, 0, 0, 0, 1, 0, 0, flags];
        Rec { xid, main, ..Rec::new(HEAP, DELETE, 0) }.block(Block::new(0))
    };
    let insert = |xid| Rec { xid, ..Rec::new(HEAP, 0x00, 3) }.block(Block::new(0).data(10));
    let commit = |xid| Rec { xid, main: vec![1; 8], ..Rec::new(TRANSACTION, 0x00, 0) };
    for record in [
        insert(700),
        delete(700, IS_SUPER),
        commit(700),
        // The next row of the same block is one that there was.
        delete(701, IS_SUPER),
        delete(701, 0),
        commit(701),
    ] {
        wal.add(&record);
    }
    let folder = wal.finish().write();
    let report = json(folder.path(), &["--stats=kind"]);
    let told: BTreeSet<&str> =
        rows(&report, "kinds").iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(told, BTreeSet::from(["DELETE 1663/5/16384", "INSERT 1663/5/16384"]));
}

#[test]
fn no_two_kinds_are_the_same_and_each_is_what_its_name_says() {
    for name in sample_names() {
        let report = json(&sample(&name).wal, &["--stats=kind"]);
        let mut known = BTreeSet::new();
        for row in rows(&report, "kinds") {
            let operations = row["operations"].to_string();
            let key = (row["database"].to_string(), row["maintenance"].to_string(), operations);
            assert!(known.insert(key), "{name}: twice: {row}");
            let of_transactions = number(row, "transactions") > 0;
            assert_eq!(is_maintenance(row), !of_transactions, "{name}: {row}");
            assert_eq!(row["median_bytes"].is_u64(), of_transactions, "{name}: {row}");
            assert!(row["p99_bytes"].as_u64() >= row["median_bytes"].as_u64(), "{name}: {row}");
            let kind = row["kind"].as_str().expect("a name");
            let operations = row["operations"].as_array().expect("a list");
            if of_transactions && !operations.is_empty() {
                for operation in operations {
                    let word = operation["operation"].as_str().expect("a word").to_uppercase();
                    let place = operation["table"].as_str().or(operation["relation"].as_str());
                    let place = place.expect("a table or its file");
                    assert!(kind.contains(&word) && kind.contains(place), "{name}: {row}");
                }
            }
        }
    }
}

#[test]
fn the_table_for_people_has_every_kind_on_a_line_and_its_total() {
    let wal = sample("pg15-mixed").wal;
    let report = json(&wal, &["--stats=kind"]);
    let path = wal.to_str().expect("a path");
    let ran = crate::support::walstat(&["--stats=kind", "--top", "0", "--bytes", "raw", path]);
    let text = ran.exits(0).stdout;
    let lines: Vec<&str> = text.lines().take_while(|line| !line.starts_with("Total")).collect();
    assert_eq!(lines.len(), 1 + rows(&report, "kinds").len(), "{text}");
    let metrics =
        crate::support::walstat(&["--stats=kind", "-f", "openmetrics", path]).exits(0).stdout;
    let family = metrics.lines().filter(|line| line.starts_with("walstat_kind_total_bytes{"));
    let bytes: f64 = family
        .map(|line| {
            line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a value")
        })
        .sum();
    assert_eq!(bytes as u64, number(&report["totals"], "total_bytes"));
}
