//! Formats that machines collect line by line: NDJSON and OpenMetrics hold what the JSON holds.

use crate::support::fixtures::{sample, samples};
use crate::support::{json_of, walstat};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Every dimension with the list of its rows in the JSON.
const LISTS: [(&str, &str); 14] = [
    ("rmgr", "/rmgrs"),
    ("record", "/records"),
    ("relation", "/relations"),
    ("table", "/tables"),
    ("database", "/databases"),
    ("tablespace", "/tablespaces"),
    ("fork", "/forks"),
    ("block", "/blocks/top"),
    ("transaction", "/transactions/top"),
    ("timeline", "/timeline/buckets"),
    ("checkpoint", "/checkpoints"),
    ("recovery", "/recovery/cycles"),
    ("replication", "/replication"),
    ("commit", "/commits"),
];

#[test]
fn ndjson_has_the_rows_of_json_of_every_dimension() {
    for sample in ["pg9.5-mixed", "pg16-workload", "pg19-mixed"].map(sample) {
        for (dimension, list) in LISTS {
            let stats = format!("--stats={dimension}");
            let json = json_of(&[&stats], &sample.wal);
            let rows = json.pointer(list).expect("the list");
            let rows = rows.as_array().cloned().unwrap_or_else(|| vec![rows.clone()]);
            let wal = sample.wal.to_str().expect("UTF-8");
            let text = walstat(&[&stats, "-f", "ndjson", wal]).exits(0).stdout;
            let lines: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let table = list[1..].split('/').next().expect("a name");
            let wanted: Vec<Value> = rows
                .into_iter()
                .map(|mut row| {
                    row["table"] =
                        if dimension == "relation" { row["table"].clone() } else { table.into() };
                    row
                })
                .collect();
            assert_eq!(lines, wanted, "{} {dimension}", sample.name);
        }
    }
}

/// What `promtool check metrics` says of a text; `None` where it is not installed.
fn promtool(text: &str) -> Option<(bool, String)> {
    let run = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut run = match run {
        Ok(run) => run,
        Err(error) if std::env::var_os("WALSTAT_REQUIRE_LIVE").is_none() => {
            eprintln!("SKIPPED: metrics are not held against promtool, which is missing: {error}");
            return None;
        }
        Err(error) => panic!("promtool (Debian: prometheus) is required here: {error}"),
    };
    run.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("promtool reads");
    let run = run.wait_with_output().expect("promtool runs");
    let said = [run.stdout, run.stderr].concat();
    Some((run.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// Whether `promtool` has nothing to say of a text, if it is there.
pub fn is_sound(text: &str) -> bool {
    promtool(text).is_none_or(|(is_sound, said)| {
        eprintln!("{said}");
        is_sound && said.is_empty()
    })
}

/// The samples of a family: labels as they stand there, and the value.
pub fn family_of_text<'t>(text: &'t str, name: &str) -> Vec<(&'t str, u64)> {
    let samples = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let is_it = labels.is_empty() || labels.starts_with('{');
        is_it.then(|| (labels, value.parse().expect("a count")))
    });
    samples.collect()
}

#[test]
fn metrics_are_those_of_the_json_and_every_family_adds_up() {
    let all = "--stats=rmgr,record,relation,table,database,tablespace,fork";
    for sample in samples() {
        let wal = sample.wal.to_str().expect("UTF-8");
        for arguments in [&["--top", "3", all][..], &[]] {
            let ran = walstat(&[arguments, &["-f", "openmetrics", wal]].concat());
            let json = json_of(arguments, &sample.wal);
            let text = ran.stdout;
            assert!(text.ends_with("# EOF\n"), "{}", sample.name);
            assert!(is_sound(&text), "{}", sample.name);
            let total = json["totals"]["total_bytes"].as_u64().expect("a count");
            assert_eq!(
                family_of_text(&text, "walstat_total_bytes"),
                [("", total)],
                "{}",
                sample.name
            );
            let families =
                ["rmgr", "record_type", "table", "relation", "database", "tablespace", "fork"];
            for of in families {
                let samples = family_of_text(&text, &format!("walstat_{of}_total_bytes"));
                let sum: u64 = samples.iter().map(|(_, value)| value).sum();
                let is_there =
                    !arguments.is_empty() || ["rmgr", "record_type", "table"].contains(&of);
                assert_eq!(sum, if is_there { total } else { 0 }, "{} {of}", sample.name);
            }
            for row in json["rmgrs"].as_array().into_iter().flatten() {
                let labels = format!("{{rmgr={}}}", row["rmgr"]);
                let wanted = row["fpi_bytes"].as_u64().expect("a count");
                let samples = family_of_text(&text, "walstat_rmgr_fpi_bytes");
                assert!(samples.contains(&(&*labels, wanted)), "{} {row}", sample.name);
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_in_the_format() {
    let text = walstat(&["-f", "openmetrics", "Cargo.toml"]).exits(3).stdout;
    assert_eq!(family_of_text(&text, "walstat_up"), [("", 0)]);
    assert!(text.ends_with("# EOF\n"));
    assert!(is_sound(&text));
    let ran = walstat(&["-f", "ndjson", "Cargo.toml"]).exits(3);
    let answer: Value = serde_json::from_str(ran.stdout.trim_end()).expect("one line of JSON");
    assert_eq!(answer["command"], "report");
    assert!(answer["error"].as_str().is_some_and(|line| line.contains("Cargo.toml")), "{answer}");
}

#[test]
fn json_for_readers_of_walinspect_has_its_keys_and_our_numbers() {
    for (stats, list) in [("--stats", "rmgrs"), ("--stats=record", "records")] {
        let sample = sample("pg15-mixed");
        let wal = sample.wal.to_str().expect("UTF-8");
        let words = [stats, "-f", "json", "--json-compat", "walinspect", wal];
        let rows: Value = serde_json::from_str(&walstat(&words).exits(0).stdout).expect("JSON");
        let json = json_of(&[stats], &sample.wal);
        let (rows, own) = (rows.as_array().expect("rows"), json[list].as_array().expect("rows"));
        assert_eq!(rows.len(), own.len());
        for (row, own) in rows.iter().zip(own) {
            for (theirs, ours) in [
                ("record_size", "record_bytes"),
                ("fpi_size", "fpi_bytes"),
                ("combined_size", "total_bytes"),
            ] {
                assert_eq!(row[theirs], own[ours], "{row}");
            }
            assert!(row["resource_manager/record_type"].is_string(), "{row}");
        }
        let share: f64 =
            rows.iter().filter_map(|row| row["combined_size_percentage"].as_f64()).sum();
        assert!((share - 100.0).abs() < 1e-6, "{share}");
    }
    walstat(&["--json-compat", "walinspect", "."]).exits(2);
}
