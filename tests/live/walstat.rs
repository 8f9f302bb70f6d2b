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
    if report["error"].is_string() {
        // Nothing could be read: there are no books to be closed.
        return;
    }
    let books = report["books"].as_object().expect("books");
    assert_eq!(books["unaccounted_bytes"], 0, "{books:?}");
    let parts = books.iter().filter(|(key, _)| *key != "input_bytes");
    let sum: u64 = parts.filter_map(|(_, bytes)| bytes.as_u64()).sum();
    assert_eq!(books["input_bytes"], sum, "{books:?}");
}

/// What a run of any outcome left behind.
pub struct Judged {
    /// The command line, for messages.
    script: String,
    /// Exit code.
    pub code: i32,
    /// Standard error.
    pub errors: String,
    /// The report, if there is one; its books are closed.
    pub report: Value,
}

/// Runs a command line of bash in `folder`, in which `walstat` is the program under test with
/// record types as JSON, taken for a server's directory (its newest segment is open), and `peak`
/// holds its largest memory in kB and its seconds of the processor, user and
/// system, afterwards.
pub fn judge(folder: &Path, script: &str) -> Judged {
    let own = r#"walstat() {
        /usr/bin/time -q -f '%M %U %S' -o "$PEAK" "$WALSTAT" --stats=record --format json --as pg_wal "$@"
    }"#;
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{own}\n{script}")]).current_dir(folder).env("HOME", folder);
    command.env("WALSTAT", env!("CARGO_BIN_EXE_walstat")).env("PEAK", folder.join("peak"));
    let output = command.output().expect("bash runs");
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if !report.is_null() {
        check_books(&report);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().expect("no signal");
    Judged { script: script.to_owned(), code, errors, report }
}

impl Judged {
    /// The same, after a check of the exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        let problems = &self.report["problems"];
        assert_eq!(self.code, code, "{}: {} {problems}", self.script, self.errors);
        self
    }

    /// Holds a report without problems against one over the raw segments in the folder `raw`,
    /// for the range that it has. Gives the number of records.
    #[track_caller]
    pub fn agrees_with(self, folder: &Path, raw: &str) -> u64 {
        let ours = self.exits(0);
        let script = &ours.script;
        assert_eq!(ours.report["problems"], Value::Array(Vec::new()), "{script}");
        let bound = |key: &str| ours.report["range"][key].as_str().expect("an LSN").to_owned();
        let (start, end) = (bound("start"), bound("end"));
        let want = judge(folder, &format!("walstat -s {start} -e {end} {raw}")).exits(0);
        for key in ["totals", "records"] {
            assert_eq!(ours.report[key], want.report[key], "{key} of {script}");
        }
        let count = sums(&ours.report["totals"]).0;
        assert!(count > 0, "{script}");
        count
    }

    /// A problem of this kind that names this segment.
    #[track_caller]
    pub fn has_problem(&self, kind: &str, segment: &str) {
        let all = self.report["problems"].as_array().expect("problems");
        let is = |p: &&Value| {
            p["kind"] == kind && p["segment"].as_str().is_some_and(|s| s.starts_with(segment))
        };
        assert!(all.iter().any(|p| is(&p)), "{kind} of {segment} in {all:?} of {}", self.script);
    }
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
