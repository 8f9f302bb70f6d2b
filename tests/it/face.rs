//! The face for programs gives the report that the command prints, and a check of rules finds what it finds.

use crate::support::fixtures::samples;
use crate::support::{json_of, walstat};
use walstat::Scan;

#[test]
fn the_report_is_that_of_the_command() {
    let mut count = 0;
    for path in samples().into_iter().map(|sample| sample.wal) {
        let report = Scan::paths([&path]).threads(2).report().expect("a report");
        let mut report = serde_json::to_value(&report).expect("JSON");
        let mut told = json_of(&[], &path);
        // A program has its own ways to say where the WAL lies.
        report["input"]["paths"] = told["input"]["paths"].take();
        told["input"]["paths"] = report["input"]["paths"].clone();
        for (key, value) in told.as_object().expect("an object") {
            assert!(
                report[key] == *value,
                "{}: {key}: {} and {value}",
                path.display(),
                report[key]
            );
        }
        assert_eq!(report, told, "{}", path.display());
        count += 1;
    }
    assert!(count > 10, "{count}");
}

/// Rules look at tables, images, transactions: where they are a gate, all of that has to be there.
#[test]
fn a_check_of_rules_finds_what_the_report_finds() {
    let mut findings = 0;
    for sample in samples() {
        let wal = sample.wal.to_str().expect("UTF-8");
        let told = json_of(&[], &sample.wal);
        let ran = walstat(&["check", "-f", "json", "--fail-on", "warning", wal]);
        let checked = ran.json();
        assert_eq!(checked["findings"], told["findings"], "{}", sample.name);
        assert!(checked.get("tables").is_none() && checked.get("records").is_none());
        findings += told["findings"].as_array().map_or(0, Vec::len);
    }
    assert!(findings > 10, "{findings}");
}
