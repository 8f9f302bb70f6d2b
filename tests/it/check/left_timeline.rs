//! Backups of a timeline that a newer one left before they were consistent: a server that follows the newest
//! one ends with FATAL. Archive and backups are of a real server (`tests/fixtures/archives/README.md`).

use super::restore::sentence;
use crate::support::fixtures::fixtures;
use crate::support::{command, finish};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn archive_and_backups() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let packed = fs::File::open(fixtures().join("archives/left-during-backup.tar.zst"))
        .expect("the fixture");
    let mut tar = tar::Archive::new(zstd::Decoder::new(packed).expect("zstd"));
    tar.unpack(folder.path()).expect("a tar");
    folder
}

fn restored(folder: &Path, label: &str, words: &[&str], code: i32) -> String {
    let mut call = command(&["check", "--as", "archive", "--backup-label"]);
    let ran = finish(call.arg(folder.join(label)).args(words).arg(folder.join("archive")));
    sentence(&ran.exits(code))
}

const HISTORY: &str = "archive/000000010000000000000009.00000028.backup";

#[test]
fn a_standbys_backup_of_a_timeline_that_was_left_before_its_minimum_recovery_point_is_refused() {
    let folder = archive_and_backups();
    let said = restored(folder.path(), "ba", &[], 1);
    assert_eq!(
        said,
        "not restorable: timeline 2 leaves timeline 1 before 0/00A00000, the backup's minimum recovery \
         point: \"requested timeline 2 does not contain minimum recovery point\""
    );
    restored(folder.path(), "ba", &["-t", "1"], 0);
}

#[test]
fn a_backup_that_ended_behind_the_place_where_its_timeline_was_left_is_refused() {
    let folder = archive_and_backups();
    let said = restored(folder.path(), "bp", &[], 1);
    assert!(said.starts_with("not restorable: the end of the backup is not in the WAL"), "{said}");
    let said = restored(folder.path(), HISTORY, &[], 1);
    assert!(said.ends_with("ends: \"WAL ends before end of online backup\""), "{said}");
    restored(folder.path(), HISTORY, &["-t", "1"], 0);
    let mut window = command(&["window", "-f", "json", "--as", "archive"]);
    let told = finish(window.arg(folder.path().join("archive"))).exits(0).json();
    let rows = told["window"]["backups"].as_array().expect("backups");
    let usable = |start: &str| {
        let row = rows.iter().find(|row| row["start_lsn"] == start);
        row.unwrap_or_else(|| panic!("{told}"))["usable"].as_bool()
    };
    assert_eq!((usable("0/00900028"), usable("0/00B000D8")), (Some(false), Some(true)));
}
