//! `walstat check` and `walstat whatif` in the formats of the report: each says what their JSON says.

use super::collected::{family_of_text, is_sound};
use crate::support::fixtures::{Sample, sample};
use crate::support::walstat;
use serde_json::Value;

/// The calls, the list of the JSON that they were asked for, its name, and the key of a row's name.
const CALLS: [(&[&str], &str, &str, &str); 2] = [
    (
        &["check", "--max-fpi-ratio", "1%", "--min-hot-ratio", "0.1", "--fail-on", "critical"],
        "/checks",
        "checks",
        "check",
    ),
    (&["whatif", "--checkpoint-every", "2x,4x"], "/whatif/scenarios", "scenarios", "id"),
];

fn said(call: &[&str], format: &str, sample: &Sample) -> String {
    let wal = sample.wal.to_str().expect("UTF-8");
    let ran = walstat(&[call, &["-f", format, wal]].concat());
    assert!([Some(0), Some(1)].contains(&ran.code), "{}: {}", ran.call, ran.stderr);
    ran.stdout
}

fn rows(call: &[&str], list: &str, sample: &Sample) -> Vec<Value> {
    let json: Value = serde_json::from_str(&said(call, "json", sample)).expect("JSON");
    let rows = json.pointer(list).and_then(Value::as_array).expect("a list").clone();
    assert!(rows.len() >= 3, "{rows:?}");
    rows
}

#[test]
fn lines_and_columns_are_the_rows_of_the_json() {
    let sample = sample("pg15-mixed");
    for (call, list, table, name) in CALLS {
        let mut rows = rows(call, list, &sample);
        // What the processor took is measured anew each time.
        let without_time = |row: &mut Value| {
            let row = row.as_object_mut().expect("a row");
            let _ = ["cpu_seconds", "side_effects"].map(|key| row.remove(key));
        };
        let text = said(call, "csv", &sample);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headings = reader.headers().expect("headings").clone();
        let names = reader.records().map(|row| row.expect("a row")[0].to_owned());
        assert_eq!(&headings[0], name);
        assert_eq!(
            names.collect::<Vec<_>>(),
            rows.iter().map(|row| row[name].as_str().expect("a name")).collect::<Vec<_>>()
        );
        for row in &mut rows {
            row["table"] = table.into();
            without_time(row);
        }
        let lines = said(call, "ndjson", &sample);
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .map(|mut line| {
                without_time(&mut line);
                line
            })
            .collect();
        assert!(lines == rows, "{table}");
    }
}

#[test]
fn pages_and_notes_name_every_row() {
    let sample = sample("pg15-mixed");
    for (call, list, _, name) in CALLS {
        let rows = rows(call, list, &sample);
        for (format, open) in [("markdown", "\n| "), ("html", "<td>")] {
            let text = said(call, format, &sample);
            for row in &rows {
                let name = row[name].as_str().expect("a name");
                assert!(text.contains(&format!("{open}{name}")), "{format}: no {name} in\n{text}");
            }
        }
    }
}

#[test]
fn metrics_have_a_sample_a_row() {
    let sample = sample("pg15-mixed");
    for ((call, list, _, name), (family, label)) in CALLS
        .into_iter()
        .zip([("walstat_check_passed", "check"), ("walstat_whatif_predicted_bytes", "scenario")])
    {
        let text = said(call, "openmetrics", &sample);
        assert!(is_sound(&text), "{text}");
        for row in rows(call, list, &sample) {
            let labels = format!("{{{label}={}}}", row[name]);
            let value = match row["verdict"].as_str() {
                Some("skipped") => continue,
                Some(verdict) => u64::from(verdict == "pass"),
                None => row["predicted_bytes"].as_u64().expect("bytes"),
            };
            let samples = family_of_text(&text, family);
            assert!(samples.contains(&(&*labels, value)), "{labels} {value} in {samples:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_in_them() {
    for command in ["check", "whatif"] {
        let text = walstat(&[command, "-f", "openmetrics", "Cargo.toml"]).exits(3).stdout;
        assert!(text.contains("\nwalstat_up 0\n") && is_sound(&text), "{text}");
        let line = walstat(&[command, "-f", "ndjson", "Cargo.toml"]).exits(3).stdout;
        let answer: Value = serde_json::from_str(line.trim_end()).expect("a line");
        assert_eq!(answer["command"], command);
        for format in ["csv", "markdown", "html"] {
            assert_eq!(walstat(&[command, "-f", format, "Cargo.toml"]).exits(3).stdout, "");
        }
    }
}
