//! What walstat says of an input: the only place that knows how it is called.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use walstat::Scan;
use walstat_analyse::dimension::Dimensions;
use walstat_report::assemble::{self, Gathered, ReportOptions, assemble, whole_request};
use walstat_report::build::Request;
use walstat_report::known::Known;
use walstat_report::model::CommandName;

/// What an input is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All that is promised is there.
    Green,
    /// It is not.
    Red,
}

/// What the program is given to read.
pub enum Input {
    /// A file or folder.
    Path(PathBuf),
    /// Standard input.
    Pipe(Vec<u8>),
}

/// What the input is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// `--as archive`.
    Archive,
    /// `--as pg_wal`.
    PgWal,
    /// Whatever the program makes of it.
    Whatever,
}

/// The program's answer.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code in a word.
    pub verdict: Verdict,
    /// In a line: exit code, ending, problems or the error.
    pub text: String,
    /// All of the report.
    pub report: String,
    /// `input.taken_for`, if there is a report.
    pub taken_for: Option<String>,
}

/// One call in so many goes through the program itself, as do all pipes; the others through the library,
/// which says the same without the start of a process.
const THROUGH_THE_PROGRAM: usize = 16;

/// Asks `walstat check`. `number`: of the case.
pub fn ask(input: Input, taken_for: InputKind, number: usize) -> Answer {
    // The number of threads makes no difference: both are met with.
    let threads = if number.is_multiple_of(4) { 2 } else { 1 };
    let is_sample = number.is_multiple_of(THROUGH_THE_PROGRAM);
    match input {
        Input::Path(path) if !is_sample && under_test().is_none() => {
            ask_library(path, taken_for, threads)
        }
        input => ask_program(input, taken_for, &threads.to_string()),
    }
}

/// What the library says of what the command counts for a check; the command makes an exit code of it.
fn ask_library(path: PathBuf, taken_for: InputKind, threads: usize) -> Answer {
    let scan = Scan::paths([path]).threads(threads);
    let scan = match taken_for {
        InputKind::Archive => scan.taken_for(walstat::InputKind::Archive),
        InputKind::PgWal => scan.taken_for(walstat::InputKind::PgWal),
        InputKind::Whatever => scan,
    };
    match walstat_read::Scan::from(scan).count(&assemble::overview()) {
        Ok((plan, scanned)) => {
            let code = if scanned.problems.is_empty() { 0 } else { 4 };
            let gathered = Gathered::of(Vec::new(), plan, scanned, Known::default());
            let request =
                Request { dimensions: Dimensions::new(), ..whole_request(CommandName::Check) };
            let report = assemble(gathered, &request, &ReportOptions::default()).conclude().report;
            answer(code, &serde_json::to_value(report).expect("JSON"), "")
        }
        Err(error) => answer(3, &Value::Null, &error.to_string()),
    }
}

fn ask_program(input: Input, taken_for: InputKind, threads: &str) -> Answer {
    let (mut command, bytes) = call(input, taken_for, threads);
    let mut child = command.spawn().expect("walstat runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    // The program need not read to the end.
    let feeder = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    let output = child.wait_with_output().expect("walstat ends");
    feeder.join().expect("the feeder ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked"), "{command:?}: {errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match output.status.code() {
        Some(code @ (0 | 3 | 4)) => answer(code, &report, &errors),
        _ => panic!("{command:?}: {output:?}"),
    }
}

fn answer(code: i32, report: &Value, errors: &str) -> Answer {
    let verdict = if code == 0 { Verdict::Green } else { Verdict::Red };
    let text = format!("exit {code}: {} {}", said(report), errors.trim());
    let taken_for = report["input"]["taken_for"].as_str().map(str::to_owned);
    Answer { verdict, text, report: report.to_string(), taken_for }
}

fn call(input: Input, taken_for: InputKind, threads: &str) -> (Command, Vec<u8>) {
    let mut command = Command::new(program());
    command.args(["check", "--format", "json", "--threads", threads]);
    match taken_for {
        InputKind::Archive => command.args(["--as", "archive"]),
        InputKind::PgWal => command.args(["--as", "pg_wal"]),
        InputKind::Whatever => &mut command,
    };
    let bytes = match input {
        Input::Path(path) => {
            command.arg(path);
            Vec::new()
        }
        Input::Pipe(bytes) => {
            command.arg("-");
            bytes
        }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command, bytes)
}

/// Another build that is to be asked.
fn under_test() -> Option<PathBuf> {
    std::env::var_os("WALSTAT_UNDER_TEST").map(PathBuf::from)
}

/// The program under test: the one just built, unless `WALSTAT_UNDER_TEST` names another.
fn program() -> PathBuf {
    under_test().unwrap_or_else(|| env!("CARGO_BIN_EXE_walstat").into())
}

/// How it ends, and the problems.
fn said(report: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let problems = report["problems"].as_array().cloned().unwrap_or_default();
    let problem =
        |p: &Value| format!("{} {} {}", text(&p["kind"]), text(&p["segment"]), text(&p["lsn"]));
    let problems: Vec<String> = problems.iter().take(3).map(problem).collect();
    format!("ends {}; {}", text(&report["ending"]["kind"]), problems.join(", "))
}
