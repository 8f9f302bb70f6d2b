//! Inputs that once were findings of the fuzz targets in `fuzz/`: each goes through the check
//! that found it, without the fuzzer. What each was is told in `tests/fixtures/fuzz/README.md`.

#[path = "../../fuzz/checks/mod.rs"]
mod checks;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Runs all inputs whose names begin with `target`, and names those that fail.
#[track_caller]
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("tests/fixtures/fuzz can be read")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.strip_prefix(target).is_some_and(|rest| rest.starts_with('-')))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no input of the target {target} in {}", folder.display());
    let failing = names.into_iter().filter(|name| {
        let data = fs::read(folder.join(name)).expect("an input");
        catch_unwind(|| check(&data)).is_err()
    });
    let failing: Vec<String> = failing.collect();
    assert!(failing.is_empty(), "fail again: {failing:?}");
}

#[test]
fn records_and_texts() {
    replay("record", checks::record::run);
}

#[test]
fn pages_and_runs() {
    replay("segment", checks::segment::run);
}

/// There was no finding yet: what holds of the samples of all codecs holds.
#[test]
fn compressed_and_archived_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/codecs");
    let entries: Vec<_> =
        fs::read_dir(&folder).expect("tests/fixtures/codecs can be read").collect();
    assert!(entries.len() > 40, "only {} samples in {}", entries.len(), folder.display());
    for entry in entries {
        checks::archive::run(&fs::read(entry.expect("an entry").path()).expect("a sample"));
    }
}

#[test]
fn the_whole_program() {
    replay("program", checks::program::run);
}
