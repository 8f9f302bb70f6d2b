//! `walstat check --state`: a round reads what is new, and has the verdict of a check that reads everything.

mod gaps;
mod paper;
mod rounds;
mod state_file;

use crate::support::fixtures::sample;
use crate::support::patience::PATIENCE;
use crate::support::wal::plain;
use crate::support::{Ran, command, finish};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// An archive in a directory of the test's own, with a state beside it.
struct Archive {
    here: TempDir,
}

impl Archive {
    /// No segment yet.
    fn empty() -> Archive {
        let archive = Archive { here: tempfile::tempdir().expect("a directory") };
        fs::create_dir(archive.path("archive")).expect("a directory");
        archive
    }

    /// The first segments of the PostgreSQL 15 sample, as they are.
    fn with(segments: usize) -> Archive {
        let archive = Archive::empty();
        let sample = sample("pg15-mixed");
        for name in sample.segments().into_iter().take(segments) {
            archive.put(&name, &plain(&sample, &name));
        }
        archive
    }

    /// A place beside the archive.
    fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    /// A file of the archive.
    fn file(&self, name: &str) -> PathBuf {
        self.path("archive").join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.file(name), bytes).expect("a file in the archive");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.file(name)).expect("it was there");
    }

    /// Changes a byte in the middle of a file.
    fn damage(&self, name: &str) {
        let mut bytes = fs::read(self.file(name)).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.put(name, &bytes);
    }

    /// A call of `walstat check` on the archive, beside it.
    fn command(&self, arguments: &[&str]) -> Command {
        let words = [&["check", "--as", "archive", "archive"], arguments].concat();
        let mut command = command(&words);
        command.current_dir(self.here.path());
        command
    }

    fn check(&self, arguments: &[&str]) -> Ran {
        finish(&mut self.command(arguments))
    }

    /// A round with the state: its JSON.
    fn round(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let ran = self.check(&[&["--state", "state", "-f", "json"], arguments].concat());
        let json = ran.json();
        (ran.code, json)
    }
}

/// `known`, `read` and `rechecked` segments of a round.
fn counts(report: &Value) -> [u64; 3] {
    let count = |key: &str| report["state"][key].as_u64().expect(key);
    [count("known_segments"), count("read_segments"), count("rechecked_segments")]
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not so after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
