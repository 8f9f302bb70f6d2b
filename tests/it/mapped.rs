//! Mapped files say what files say that are read: of all samples, with any number of threads, and of a file
//! that becomes shorter while it is mapped.

use crate::support::fixtures::{sample, samples};
use std::fs::{self, File, OpenOptions};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tempfile::TempDir;
use walstat_analyse::totals::RecordTable;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::scan::observe::Observe;

/// What a scan says, whatever was counted.
fn said<O: Observe>(wal: &Path, threads: usize, map_files: bool, prototype: &O) -> (String, O) {
    let mut scan = Scan::paths([wal]);
    scan.threads = NonZeroUsize::new(threads).expect("some threads");
    scan.wanted.map_files = map_files;
    let (_, outcome) = scan.count(prototype).expect("WAL");
    let said = format!(
        "{:?} {:?} {:?} {:?}",
        outcome.books, outcome.problems, outcome.ending, outcome.counted_end
    );
    (said, outcome.observer)
}

/// A copy of WAL in files that were written long ago: others are not mapped.
fn old_copy(wal: &Path) -> TempDir {
    let copy = TempDir::new().expect("a directory");
    for entry in fs::read_dir(wal).expect("a directory") {
        let from = entry.expect("an entry").path();
        let to = copy.path().join(from.file_name().expect("a name"));
        fs::copy(&from, &to).expect("a copy");
        make_old(&OpenOptions::new().write(true).open(&to).expect("the copy"));
    }
    copy
}

fn make_old(file: &File) {
    file.set_modified(UNIX_EPOCH).expect("a time set");
}

#[test]
fn mapped_files_say_the_same() {
    for sample in samples() {
        let copy = old_copy(&sample.wal);
        let counted = |threads, map_files| {
            let (said, table) = said(copy.path(), threads, map_files, &RecordTable::default());
            (said, table.rows().map(|row| format!("{row:?}")).collect::<Vec<_>>())
        };
        let read = counted(1, false);
        assert!(!read.1.is_empty());
        for threads in [1, 3] {
            assert_eq!(counted(threads, true), read, "{}", sample.name);
        }
    }
}

/// Cuts a file off as soon as a record is seen.
#[derive(Clone)]
struct Cuts {
    file: PathBuf,
    to: u64,
    records: u64,
}

impl Observe for Cuts {
    fn observe(&mut self, _: &Record<'_>) {
        if self.records == 0 {
            let file = OpenOptions::new().write(true).open(&self.file).expect("the file");
            file.set_len(self.to).expect("a shorter file");
            make_old(&file);
        }
        self.records += 1;
    }

    fn merge(&mut self, later: Cuts) {
        self.records += later.records;
    }
}

#[test]
fn a_file_that_becomes_shorter_is_read_as_what_is_left_of_it() {
    // In a page, and at its end; nothing is left after the first windows.
    for to in [600 << 10, (600 << 10) + 100, 8192] {
        for threads in [1, 2] {
            let copy = old_copy(&sample("consistency").wal);
            let entries = fs::read_dir(copy.path()).expect("a directory");
            let files = entries.map(|entry| entry.expect("an entry").path());
            let file = files.min().expect("a segment");
            let cuts = Cuts { file, to, records: 0 };
            let (while_mapped, mapped) = said(copy.path(), threads, true, &cuts);
            let (afterwards, read) = said(copy.path(), threads, false, &cuts);
            assert_eq!(while_mapped, afterwards, "{to} bytes, {threads} threads");
            assert_eq!(mapped.records, read.records);
            assert!(afterwards.contains("Truncated"), "{afterwards}");
        }
    }
}
