//! Archives to be checked: copies of the PostgreSQL 15 sample, whole or spoiled on purpose.

use crate::support::fixtures::sample;
use crate::support::wal::plain;
use crate::support::{Ran, command, finish};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An archive in a directory of the test's own.
pub struct Archive {
    directory: tempfile::TempDir,
}

impl Archive {
    /// All segments of the sample, compressed as they are.
    pub fn whole() -> Archive {
        Archive::of_first(usize::MAX)
    }

    /// The first segments of the sample, where any WAL will do and it is read many times.
    pub fn of_first(segments: usize) -> Archive {
        let archive = Archive { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir(archive.path()).expect("a directory for the archive");
        let sample = sample("pg15-mixed");
        for name in sample.segments().into_iter().take(segments) {
            let from = sample.segment(&name);
            let to = archive.path().join(from.file_name().expect("a name"));
            fs::copy(from, &to).expect("a copy");
            age(&to);
        }
        archive
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("archive")
    }

    /// A place beside it, which is also the tests' current directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Takes a segment away.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(format!("{name}.zst"))).expect("the segment was there");
    }

    /// Replaces a segment by its plain bytes, changed.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = plain(&sample("pg15-mixed"), name);
        change(&mut bytes);
        self.remove(name);
        self.put(name, &bytes);
    }

    /// Puts a file into the archive.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::write(&path, bytes).expect("a file in the archive");
        age(&path);
    }

    /// Runs `walstat check archive` beside it.
    pub fn check(&self, arguments: &[&str]) -> Ran {
        self.check_with(arguments, |_| {})
    }

    /// The same, the call being changed before.
    pub fn check_with(
        &self,
        arguments: &[&str],
        change: impl FnOnce(&mut std::process::Command),
    ) -> Ran {
        let mut command = check(arguments);
        command.arg("archive").current_dir(self.directory.path());
        change(&mut command);
        finish(&mut command)
    }
}

/// A call of `walstat check` in which nothing of a CI server's environment is left.
pub fn check<A: AsRef<OsStr>>(arguments: &[A]) -> std::process::Command {
    let mut all: Vec<&OsStr> = vec!["check".as_ref()];
    all.extend(arguments.iter().map(AsRef::as_ref));
    let mut command = command(&all);
    command.env_remove("GITHUB_STEP_SUMMARY").env_remove("CI");
    command
}

/// An archived file was not written to just now, as a live one is.
fn age(path: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().write(true).open(path).expect("the file");
    file.set_modified(hour_ago).expect("a file's time");
}
