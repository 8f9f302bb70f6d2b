//! `walstat diff`: what changed adds up, from paths and from reports alike.

use crate::support::{fixtures::sample, walstat};
use serde_json::Value;
use std::path::Path;

const NUMBERS: [&str; 5] = ["count", "record_bytes", "fpi_bytes", "total_bytes", "fpi_count"];

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    let ran = walstat(arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

fn number(row: &Value, side: &str, key: &str) -> i64 {
    row[side][key].as_i64().unwrap_or_else(|| panic!("{side}.{key} of {row}"))
}

#[test]
fn changes_are_after_less_before_and_rows_add_up() {
    let (before, after) = (sample("pg15-mixed").wal, sample("pg19-mixed").wal);
    let diff = json(&["diff", text(&before), text(&after), "-f", "json"]);
    let report = |path| json(&[text(path), "-f", "json"]);
    let (left, right) = (report(&before), report(&after));
    for key in NUMBERS {
        assert_eq!(diff["totals"]["before"][key], left["totals"][key]);
        assert_eq!(diff["totals"]["after"][key], right["totals"][key]);
        let totals = &diff["totals"];
        let change = number(totals, "change", key);
        assert_eq!(change, number(totals, "after", key) - number(totals, "before", key));
        for table in ["rmgrs", "records", "tables"] {
            let rows = diff[table].as_array().expect("rows");
            let sum: i64 = rows.iter().map(|row| number(row, "change", key)).sum();
            assert_eq!(sum, change, "{table}.{key}");
        }
    }
    let records = diff["records"].as_array().expect("rows");
    let sizes: Vec<i64> =
        records.iter().map(|row| number(row, "change", "total_bytes").abs()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
}

#[test]
fn a_report_that_was_written_is_as_good_as_the_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let (before, after) = (sample("pg15-mixed").wal, sample("pg19-mixed").wal);
    let file = directory.path().join("before.json");
    walstat(&[text(&before), "-f", "json", "-o", text(&file)]).exits(0);
    let direct = json(&["diff", text(&before), text(&after), "-f", "json"]);
    let read = json(&["diff", text(&file), text(&after), "-f", "json"]);
    assert_eq!(direct, read);
    for format in ["table", "markdown"] {
        let told = |path| walstat(&["diff", path, text(&after), "-f", format]).exits(0).stdout;
        assert_eq!(told(text(&before)), told(text(&file)));
    }
}

/// What does not depend on how long the WAL is.
#[test]
fn ratios_stand_side_by_side() {
    let (before, after) = (sample("pg15-mixed").wal, sample("pg19-mixed").wal);
    let diff = json(&["diff", text(&before), text(&after), "-f", "json"]);
    for (side, path) in [("before", &before), ("after", &after)] {
        let report = json(&[text(path), "-f", "json"]);
        for key in ["fpi_ratio", "hot_ratio", "bytes_per_commit"] {
            assert!(report["ratios"][key].is_number(), "{key}");
            assert_eq!(diff[side][key], report["ratios"][key], "{side}.{key}");
        }
    }
    for format in ["table", "markdown"] {
        let told = walstat(&["diff", text(&before), text(&after), "-f", format]).exits(0).stdout;
        for line in ["bytes a commit", "images of all bytes", "HOT of all updates"] {
            assert!(told.contains(line), "{line}: {told}");
        }
    }
}

#[test]
fn growth_fails_and_nothing_else_does() {
    let (small, large) = (sample("pg15-mixed").wal, sample("pg19-mixed").wal);
    let total =
        |path| json(&[text(path), "-f", "json"])["totals"]["total_bytes"].as_u64().expect("bytes");
    let (small, large) =
        if total(&small) < total(&large) { (small, large) } else { (large, small) };
    let (small, large) = (text(&small), text(&large));
    walstat(&["diff", small, large, "--fail-on-growth"]).exits(1);
    walstat(&["diff", large, small, "--fail-on-growth"]).exits(0);
    walstat(&["diff", small, small, "--fail-on-growth"]).exits(0);
    walstat(&["diff", small, large]).exits(0);
    walstat(&["diff", small, small, "--fail-on-growth=commit"]).exits(0);
}

#[test]
fn what_is_no_report_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let wal = sample("pg15-mixed").wal;
    let write = |content: &str| {
        let file = directory.path().join("other.json");
        std::fs::write(&file, content).expect("written");
        file
    };
    for (content, words) in [
        ("{\"schema\": \"9.0\", \"command\": \"report\"}", "expected 1.0"),
        ("{\"schema\": \"1.0\", \"command\": \"names\"}", "expected a report"),
        ("{\"schema\": \"1.0\", \"command\": \"report\", \"error\": \"x\"}", "could not be read"),
        ("{\"schema\": \"1.0\", \"command\": \"report\"}", "found no report"),
        ("{nonsense", "found no JSON"),
    ] {
        let file = write(content);
        let ran = walstat(&["diff", text(&file), text(&wal), "-f", "json"]).exits(3);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{answer}");
    }
}
