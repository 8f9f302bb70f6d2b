//! Tests of what becomes of WAL that changes while it is read.

use super::*;
use crate::settings::Change;
use std::any::Any;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use walstat_analyse::select::Filters;
use walstat_read::Watch;
use walstat_read::scan::progress::Progress;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pg15-mixed");
/// Its segments, and those of the latter half.
const SEGMENTS: usize = 18;
const LATER: Range<usize> = 10..SEGMENTS;
/// Records of a transaction, which lie in all of them.
const COMMITS: &str = "Transaction/COMMIT";

/// Takes segments away when so many readings are over, as an archive is trimmed.
#[derive(Debug)]
struct Trimmed {
    archive: TempDir,
    segments: Range<usize>,
    after: usize,
    readings: AtomicUsize,
}

#[derive(Debug)]
struct Watching(Arc<Trimmed>);

/// Dropped when a reading is over.
struct Reading(Arc<Trimmed>);

impl Watch for Watching {
    fn begin(&self, _: Option<u64>, _: Arc<Progress>) -> Box<dyn Any> {
        Box::new(Reading(Arc::clone(&self.0)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Trimmed { archive, segments, after, readings } = &*self.0;
        if readings.fetch_add(1, Ordering::Relaxed) + 1 == *after {
            let removed = segments_in(archive.path()).into_iter().enumerate();
            let removed = removed.filter(|(index, _)| segments.contains(index));
            removed.for_each(|(_, path)| fs::remove_file(path).expect("it is there"));
        }
    }
}

fn segments_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"));
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "zst");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_segment).collect();
    found.sort();
    found
}

/// Asks about an archive from which segments are taken away after a reading.
fn asked(
    segments: Range<usize>,
    after: usize,
    change: Change,
    wanted: impl Fn(&mut Scan),
) -> String {
    let archive = tempfile::tempdir().expect("a folder");
    for segment in segments_in(Path::new(FIXTURE)) {
        let name = segment.file_name().expect("a name");
        fs::copy(&segment, archive.path().join(name)).expect("copied");
    }
    let mut scan = Scan::paths([archive.path()]);
    let trimmed = Trimmed { archive, segments, after, readings: AtomicUsize::new(0) };
    let watching = Watching(Arc::new(trimmed));
    let trimmed = Arc::clone(&watching.0);
    scan.watch = Some(Arc::new(watching));
    wanted(&mut scan);
    let told = match WhatIf::new(scan).run(vec![Scenario::of([change])]) {
        Ok(predicted) => format!("{} bytes", predicted.base.bytes()),
        Err(error) => error.to_string(),
    };
    assert!(trimmed.readings.load(Ordering::Relaxed) >= after || after == usize::MAX, "{told}");
    told
}

fn is_changed(told: &str) -> bool {
    told.ends_with("the WAL changed while it was read")
}

#[test]
fn wal_that_is_shorter_when_it_is_read_again_is_noticed() {
    let lz4 = || Change::Compression(Some(Compression::Lz4));
    assert_eq!(segments_in(Path::new(FIXTURE)).len(), SEGMENTS);
    let whole = asked(LATER, usize::MAX, lz4(), |_| {});
    assert!(whole.ends_with(" bytes"), "{whole}");
    let shorter = asked(LATER, 1, lz4(), |_| {});
    assert!(is_changed(&shorter), "{shorter}");
}

#[test]
fn a_range_that_is_shorter_when_what_is_around_it_is_read_is_noticed() {
    let from_the_third = |scan: &mut Scan| scan.wanted.range = Lsn(8 << 20)..Lsn::MAX;
    let off = || Change::FullPageWrites(false);
    let whole = asked(LATER, usize::MAX, off(), from_the_third);
    let shorter = asked(LATER, 1, off(), from_the_third);
    let with_a_hole = asked(6..7, 1, off(), from_the_third);
    assert!(is_changed(&shorter) && is_changed(&with_a_hole), "{shorter} {with_a_hole}");
    // What lies before a range only makes it more certain.
    assert_eq!(asked(0..1, 1, off(), from_the_third), whole);
}

#[test]
fn selected_records_that_went_away_are_noticed() {
    let commits = |scan: &mut Scan| {
        let filters = Filters { records: vec![COMMITS.to_owned()], ..Filters::default() };
        scan.wanted.select = Some(Arc::new(filters));
    };
    let off = || Change::FullPageWrites(false);
    assert!(asked(LATER, usize::MAX, off(), commits).ends_with(" bytes"));
    for gone in [LATER, 0..4] {
        let told = asked(gone.clone(), 1, off(), commits);
        assert!(is_changed(&told), "{gone:?}: {told}");
    }
}
