//! The formats and the order of rows: all of them tell the same numbers.

use crate::support::fixtures::{Sample, sample, samples};
use crate::support::{json_of, number, walstat};
use serde_json::Value;
use std::collections::BTreeSet;

/// Samples that differ: the oldest and the newest release, small ones between them.
const FEW: [&str; 5] = ["pg9.5-mixed", "consistency", "livedir", "pg16-workload", "pg19-mixed"];

fn wal(sample: &Sample) -> &str {
    sample.wal.to_str().expect("UTF-8")
}

/// The rows of a CSV result, each a list of heading and field.
fn csv_rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text.as_bytes());
    let headings = reader.headers().expect("headings").clone();
    let rows =
        reader.records().map(|row| row.expect("a row of as many fields as there are headings"));
    let pair = |row: csv::StringRecord| {
        headings.iter().zip(row.iter()).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    };
    rows.map(pair).collect()
}

#[test]
fn csv_has_the_rows_of_json() {
    for sample in FEW.map(sample) {
        for (dimension, table) in [("--stats", "rmgrs"), ("--stats=record", "records")] {
            let json = json_of(&[dimension], &sample.wal);
            let rows = json[table].as_array().expect("rows");
            let csv = csv_rows(&walstat(&[dimension, "-f", "csv", wal(&sample)]).exits(0).stdout);
            assert_eq!(csv.len(), rows.len(), "{} {table}", sample.name);
            for (csv, json) in csv.iter().zip(rows) {
                assert_eq!(
                    csv.len(),
                    json.as_object().expect("an object").len(),
                    "{}: {json}",
                    sample.name
                );
                for (key, field) in csv {
                    let value = &json[key];
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    assert_eq!(*field, text, "{} {table} {key} of {json}", sample.name);
                }
            }
        }
    }
}

#[test]
fn json_has_the_keys_and_types_of_the_contract() {
    for sample in samples() {
        let json = json_of(&[], &sample.wal);
        for key in ["walstat", "schema", "command"] {
            assert!(json[key].is_string(), "{}: {key} is {}", sample.name, json[key]);
        }
        for key in ["system_identifier", "postgres", "magic"] {
            assert!(json["input"][key].is_string(), "{}: input.{key}", sample.name);
        }
        assert_eq!(json["command"], "report");
        assert_eq!(json["input"]["postgres"], sample.release.as_str(), "{}", sample.name);
        assert_eq!(json["input"]["checksums_verified"], true);
        for list in ["problems", "findings", "notes", "rmgrs", "records"] {
            assert!(json[list].is_array(), "{}: {list}", sample.name);
        }
        let lsns = [&json["range"]["start"], &json["range"]["end"], &json["ending"]["lsn"]];
        assert!(lsns.into_iter().all(is_lsn), "{}: {:?}", sample.name, lsns);
        for key in ["first_time", "last_time"] {
            let time =
                json["range"][key].as_str().unwrap_or_else(|| panic!("{}: {key}", sample.name));
            assert!(
                time.len() == "2026-11-21T04:40:57.000000Z".len() && time.ends_with('Z'),
                "{key}: {time}"
            );
        }
        let stats = json_of(&["--stats"], &sample.wal);
        assert!(stats.get("records").is_none(), "a dimension that was not asked for is not there");
        assert!(stats["rmgrs"].is_array());
        assert_eq!(stats["command"], "stats");
    }
}

/// `0/0197E1F0`: the low half padded.
fn is_lsn(value: &Value) -> bool {
    let parts = value.as_str().and_then(|text| text.split_once('/'));
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    parts.is_some_and(|(high, low)| low.len() == 8 && !high.is_empty() && hex(low) && hex(high))
}

#[test]
fn threads_change_nothing() {
    for name in ["pg15-mixed", "timeline", "truncated", "livedir"] {
        let sample = sample(name);
        let one = json_of(&["-j", "1"], &sample.wal);
        for threads in ["2", "3", "64", "18446744073709551615"] {
            assert_eq!(json_of(&["-j", threads], &sample.wal), one, "{name}, {threads} threads");
        }
    }
}

#[test]
fn unverified_checksums_change_no_number_and_are_told() {
    let sample = sample("pg15-mixed");
    let verified = json_of(&["--stats=all"], &sample.wal);
    let trusting = json_of(&["--stats=all", "--no-verify-checksums"], &sample.wal);
    for key in ["totals", "books", "records", "ending"] {
        assert_eq!(trusting[key], verified[key], "{key}");
    }
    assert_eq!(trusting["input"]["checksums_verified"], false);
    let told = walstat(&["--no-verify-checksums", "--stats", wal(&sample)]).exits(0).stdout;
    assert!(told.contains("not verified") && !told.contains("every checksum verified"), "{told}");
}

/// The names in the first column of a table for people, above its total.
fn labels(text: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| !line.starts_with("Type ")).skip(1);
    let rows = rows.take_while(|line| !line.starts_with("Total"));
    rows.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// The records of a report as labels, in the order that the keys give; largest first, then by name.
fn ordered(json: &Value, key: &str) -> Vec<String> {
    let mut rows: Vec<(i128, String)> = json["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().expect("a text").to_owned();
            let value = if key.is_empty() { 0 } else { -number(row, key) };
            (value, format!("{}/{}", text("rmgr"), text("record")))
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, label)| label).collect()
}

#[test]
fn rows_come_in_the_order_asked_for() {
    let sample = sample("pg16-workload");
    let json = json_of(&["--stats=record"], &sample.wal);
    for (sort, key) in
        [("bytes", "total_bytes"), ("count", "count"), ("fpi", "fpi_bytes"), ("name", "")]
    {
        let told = walstat(&["--stats=record", "--sort", sort, "--top", "0", wal(&sample)])
            .exits(0)
            .stdout;
        assert_eq!(labels(&told), ordered(&json, key), "--sort {sort}");
        let top = json_of(&["--stats=record", "--sort", sort, "--top", "5"], &sample.wal);
        let rows = top["records"].as_array().expect("records");
        assert_eq!(rows.len(), 5, "--top 5 --sort {sort}");
        assert_eq!(ordered(&top, key), ordered(&json, key)[..5], "--top 5 --sort {sort}");
        assert_eq!(top["totals"], json["totals"], "--top changes no sum");
        // Without --top too, in every format but the official tool's.
        let all = json_of(&["--stats=record", "--sort", sort], &sample.wal);
        assert_eq!(in_order(&all), ordered(&json, key), "JSON, --sort {sort}");
        let csv = walstat(&["--stats=record", "-f", "csv", "--sort", sort, wal(&sample)]).exits(0);
        let label = |row: &Vec<(String, String)>| format!("{}/{}", row[0].1, row[1].1);
        let csv: Vec<String> = csv_rows(&csv.stdout).iter().map(label).collect();
        assert_eq!(csv, ordered(&json, key), "CSV, --sort {sort}");
    }
    let tool = |sort| ["--stats=record", "-f", "pg_waldump", "--sort", sort, wal(&sample)];
    assert_eq!(walstat(&tool("name")).stdout, walstat(&tool("bytes")).stdout);
}

/// The records of a report as labels, as they come.
fn in_order(json: &Value) -> Vec<String> {
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let rows = json["records"].as_array().expect("records");
    rows.iter().map(|row| format!("{}/{}", text(row, "rmgr"), text(row, "record"))).collect()
}

#[test]
fn one_thing_is_no_plural() {
    let sample = sample("pg15-mixed");
    let lsn = "0/00700028";
    let told = walstat(&["-s", lsn, "-n", "1", wal(&sample)]).exits(0).stdout;
    assert!(told.contains(" unaccounted; 1 record, every"), "{told}");
    let types = json_of(&["--stats=record"], &sample.wal)["records"].as_array().map_or(0, Vec::len);
    let all_but_one = (types - 1).to_string();
    let told = walstat(&["--stats=record", "--top", &all_but_one, wal(&sample)]).exits(0).stdout;
    assert!(told.lines().any(|line| line.starts_with("1 more type ")), "{told}");
}

#[test]
fn json_and_csv_have_all_rows_unless_told_otherwise() {
    let sample = sample("pg15-mixed");
    let all = json_of(&["--stats=record"], &sample.wal)["records"].as_array().map_or(0, Vec::len);
    assert!(all > 20, "{all} types do not show the difference");
    for (top, rows) in [("0", all), ("7", 7), ("1000000", all)] {
        let json = json_of(&["--stats=record", "--top", top], &sample.wal);
        assert_eq!(json["records"].as_array().map_or(0, Vec::len), rows, "--top {top}");
        let csv =
            walstat(&["--stats=record", "-f", "csv", "--top", top, wal(&sample)]).exits(0).stdout;
        assert_eq!(csv_rows(&csv).len(), rows, "--top {top}");
    }
    let told = walstat(&["--stats=record", wal(&sample)]).exits(0).stdout;
    let more = format!("{} more types", all - 20);
    assert!(told.lines().any(|line| line.starts_with(&more)), "no line \"{more}\" in\n{told}");
    let whole = walstat(&["--stats=record", "--top", "0", wal(&sample)]).exits(0).stdout;
    assert_eq!(labels(&whole).len(), all);
    assert!(!whole.contains("more types"));
}

#[test]
fn sizes_are_digits_or_units_as_asked_and_digits_in_a_pipe() {
    let sample = sample("pg16-workload");
    let table = |bytes: &[&str]| {
        let text = walstat(&[&["--stats"], bytes, &[wal(&sample)]].concat()).exits(0).stdout;
        text.lines().find(|line| line.starts_with("Total")).expect("a total").to_owned()
    };
    let json = json_of(&["--stats"], &sample.wal);
    let total = json["totals"]["total_bytes"].to_string();
    assert!(table(&[]).contains(&total), "{}", table(&[]));
    assert!(table(&["--bytes", "raw"]).contains(&total));
    let human = table(&["--bytes", "human"]);
    assert!(!human.contains(&total) && human.contains(" MB"), "{human}");
    assert_eq!(json_of(&["--stats", "--bytes", "human"], &sample.wal), json, "JSON is always raw");
}

#[test]
fn the_size_that_the_tool_showed_before_bug_14687_stands_beside_the_right_one() {
    let sample = sample("pg16-workload");
    let json = json_of(&["--stats"], &sample.wal);
    let plain = walstat(&["--stats", wal(&sample)]).exits(0).stdout;
    let beside = walstat(&["--stats", "--show-main-data", wal(&sample)]).exits(0).stdout;
    assert!(!plain.contains("14687") && beside.contains("14687"), "{beside}");
    let old = number(&json, "totals.main_data_bytes") + 24 * number(&json, "totals.count");
    let total = beside.lines().find(|line| line.starts_with("Total")).expect("a total");
    let words: BTreeSet<&str> = total.split_whitespace().collect();
    for size in [old, number(&json, "totals.record_bytes")] {
        assert!(words.contains(size.to_string().as_str()), "{size} is not in: {total}");
    }
}

#[test]
fn no_table_line_ends_in_blanks() {
    let sample = sample("pg16-workload");
    for form in [&["--stats=all"][..], &[], &["--stats", "--show-main-data"]] {
        let ran = walstat(&[form, &[wal(&sample)]].concat()).exits(0);
        for line in ran.stdout.lines() {
            assert_eq!(line, line.trim_end(), "{}", ran.call);
        }
    }
}

/// The first screen adds up to everything and says whether its numbers can be trusted.
#[test]
fn the_report_tells_causes_that_add_up_to_all_bytes() {
    for sample in FEW.map(sample) {
        let json = json_of(&[], &sample.wal);
        let causes = json["why"].as_array().expect("why");
        let sum: i128 = causes.iter().map(|cause| number(cause, "bytes")).sum();
        assert_eq!(sum, number(&json, "totals.total_bytes"), "{}", sample.name);
        let told = walstat(&[wal(&sample)]).exits(0).stdout;
        for block in ["PostgreSQL ", "WHY", "WHAT TO DO", "BOOKS"] {
            assert!(
                told.lines().any(|line| line.starts_with(block)),
                "{}: no {block}\n{told}",
                sample.name
            );
        }
        assert!(told.contains(" 0 unaccounted"), "{}\n{told}", sample.name);
    }
}

#[test]
fn markdown_has_the_numbers_and_escapes_names() {
    for sample in FEW.map(sample) {
        let json = json_of(&["--stats=rmgr,table,relation"], &sample.wal);
        let ran = walstat(&["--stats=rmgr,table,relation", "-f", "markdown", wal(&sample)]);
        let total = json["totals"]["total_bytes"].to_string();
        assert!(ran.stdout.starts_with("# WAL of PostgreSQL "), "{}", ran.stdout);
        let totals = ran.stdout.lines().filter(|line| line.starts_with("| Total |"));
        let totals: Vec<&str> = totals.collect();
        assert_eq!(totals.len(), 3, "{}", ran.stdout);
        assert!(totals.iter().all(|line| line.contains(&format!("| {total} |"))), "{totals:?}");
        // Every line of a table has as many cells as its heading.
        let mut cells = 0;
        for line in ran.stdout.lines() {
            let found = line.replace("\\|", "").matches('|').count();
            assert!(cells == 0 || found == 0 || found == cells, "{}: {line}", sample.name);
            cells = found;
        }
    }
    let report = walstat(&["-f", "markdown", wal(&sample("pg15-mixed"))]).exits(0).stdout;
    for heading in ["## Why", "## Tables", "## When", "## What to do", "## Record types"] {
        assert!(report.contains(&format!("\n{heading}\n")), "{heading}: {report}");
    }
}
