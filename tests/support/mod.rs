//! What the tests of the command share: the fixtures, unpacked once, and a way to run the real
//! program. Judges nothing itself.

pub mod catalogs;
pub mod fixtures;
pub mod missing;
pub mod month;
pub mod patience;
pub mod pgbackrest;
pub mod server_log;
#[cfg(unix)]
pub mod signals;
pub mod wal;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program under test.
pub const WALSTAT: &str = env!("CARGO_BIN_EXE_walstat");

/// What a finished program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it was called, for messages.
    pub call: String,
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A call of the program with the arguments given, in an environment that no test depends on.
pub fn command<A: AsRef<OsStr>>(arguments: &[A]) -> Command {
    let mut command = Command::new(WALSTAT);
    command.args(arguments).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command
}

/// Runs the program to its end.
pub fn walstat<A: AsRef<OsStr>>(arguments: &[A]) -> Ran {
    finish(&mut command(arguments))
}

/// Runs `command` to its end. A panic fails the test at once, whatever it is about.
pub fn finish(command: &mut Command) -> Ran {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let call = words.join(" ").replace(WALSTAT, "walstat");
    let output = command.output().unwrap_or_else(|error| panic!("{call} does not start: {error}"));
    let Output { status, stdout, stderr } = output;
    let text = |bytes| {
        String::from_utf8(bytes).unwrap_or_else(|_| panic!("{call}: the output is not UTF-8"))
    };
    let ran = Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr), call };
    assert!(!ran.stderr.contains("panicked"), "{} panicked:\n{}", ran.call, ran.stderr);
    ran
}

impl Ran {
    /// The same, after a check of the exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        let Ran { call, stdout, stderr, .. } = &self;
        let head: String = stdout.chars().take(2000).collect();
        assert_eq!(self.code, Some(code), "exit code of {call}\nstderr: {stderr}\nstdout: {head}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: no JSON: {error}\n{}", self.call, self.stderr))
    }
}

/// Runs the program with `arguments` on `path` and reads its JSON; the exit code must be 0.
#[track_caller]
pub fn json_of(arguments: &[&str], path: &Path) -> serde_json::Value {
    let mut call: Vec<&OsStr> = vec!["--format".as_ref(), "json".as_ref()];
    call.extend(arguments.iter().map(OsStr::new));
    call.push(path.as_os_str());
    walstat(&call).exits(0).json()
}

/// A number in a JSON object, by its path of keys.
#[track_caller]
pub fn number(value: &serde_json::Value, path: &str) -> i128 {
    let found = path.split('.').fold(value, |value, key| &value[key]);
    let number = found.as_i64().map(i128::from).or_else(|| found.as_u64().map(i128::from));
    number.unwrap_or_else(|| panic!("{path} is {found}, not an integer"))
}

/// The first line in which two texts differ, for messages that can be read.
pub fn first_difference(got: &str, want: &str) -> String {
    let none = "(no such line)";
    let (mut got, mut want) = (got.lines(), want.lines());
    for number in 1.. {
        match (got.next(), want.next()) {
            (None, None) => return "only the line ends differ".to_owned(),
            (a, b) if a == b => {}
            (a, b) => {
                return format!(
                    "line {number}\n  got:  {}\n  want: {}",
                    a.unwrap_or(none),
                    b.unwrap_or(none)
                );
            }
        }
    }
    unreachable!("texts have an end")
}
