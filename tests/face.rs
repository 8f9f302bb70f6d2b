//! The face for programs gives the report that the command prints.

mod support;

use support::fixtures::samples;
use support::json_of;
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
