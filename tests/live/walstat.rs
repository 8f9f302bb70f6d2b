//! The program under test, run on a folder of WAL.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Count, record bytes and image bytes of one record type, or of all.
pub type Sums = (u64, u64, u64);

/// Standard output of a run that must end with exit code 0.
pub fn text(arguments: &[&str], wal: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walstat"));
    let output = command.args(arguments).arg(wal).output();
    let output = output.expect("walstat runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("walstat prints UTF-8")
}

/// The report of a run with record types, its books checked.
pub fn json(arguments: &[&str], wal: &Path) -> Value {
    let arguments = [&["--stats=record", "--format", "json"], arguments].concat();
    let report = serde_json::from_str(&text(&arguments, wal)).expect("JSON");
    check_books(&report);
    report
}

/// Every byte of the input has exactly one heading.
fn check_books(report: &Value) {
    let books = report["books"].as_object().expect("books");
    assert_eq!(books["unaccounted_bytes"], 0, "{books:?}");
    let parts = books.iter().filter(|(key, _)| *key != "input_bytes");
    let sum: u64 = parts.filter_map(|(_, bytes)| bytes.as_u64()).sum();
    assert_eq!(books["input_bytes"], sum, "{books:?}");
}

/// The sums of an object of the report that has them.
pub fn sums(row: &Value) -> Sums {
    let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"));
    let (record, fpi) = (number("record_bytes"), number("fpi_bytes"));
    assert_eq!(number("total_bytes"), record + fpi, "{row}");
    (number("count"), record, fpi)
}

/// The record types of a report by name, `Heap/INSERT`.
pub fn records(report: &Value) -> BTreeMap<String, Sums> {
    let rows = report["records"].as_array().expect("records");
    let name = |row: &Value, key: &str| row[key].as_str().expect("a name").to_owned();
    rows.iter()
        .map(|row| {
            let label = format!("{}/{}", name(row, "rmgr"), name(row, "record"));
            (label, sums(row))
        })
        .collect()
}
