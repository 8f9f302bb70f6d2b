//! What `walstat check` says: the only place that knows how it is called.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

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
pub enum TakenFor {
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

/// Asks `walstat check`. `threads`: `--threads`.
pub fn ask(input: Input, taken_for: TakenFor, threads: &str) -> Answer {
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
    let verdict = match output.status.code() {
        Some(0) => Verdict::Green,
        Some(3 | 4) => Verdict::Red,
        _ => panic!("{command:?}: {output:?}"),
    };
    let code = output.status.code().unwrap_or_default();
    let text = format!("exit {code}: {} {}", said(&report), errors.trim());
    let taken_for = report["input"]["taken_for"].as_str().map(str::to_owned);
    Answer { verdict, text, report: report.to_string(), taken_for }
}

fn call(input: Input, taken_for: TakenFor, threads: &str) -> (Command, Vec<u8>) {
    let mut command = Command::new(program());
    command.args(["check", "--format", "json", "--threads", threads]);
    match taken_for {
        TakenFor::Archive => command.args(["--as", "archive"]),
        TakenFor::PgWal => command.args(["--as", "pg_wal"]),
        TakenFor::Whatever => &mut command,
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

/// The program under test: the one just built, unless `WALSTAT_UNDER_TEST` names another.
fn program() -> PathBuf {
    let named = std::env::var_os("WALSTAT_UNDER_TEST").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_walstat").into())
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
