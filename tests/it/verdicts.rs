//! A verdict is green exactly where PostgreSQL restores, and blames the file whose good copy makes the
//! archive whole. What a real server makes of such archives is held in `live/verdicts.rs`.

mod archivers;
pub(crate) mod around;
mod aside;
mod being_copied;
mod blame;
mod contradicting;
mod copied;
mod forged;
mod in_its_place;
mod level;
mod order;
mod packing;
mod prepared;
mod promoted;
mod reach;
mod recovered;
mod redo_reads;
mod salvage;
mod timelines;
mod unarchived;

use crate::support::fixtures::sample;
use crate::support::wal::{plain, put};
use crate::support::{Ran, command, finish};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Three segments in a row, each of them full of records.
const NAMES: [&str; 3] =
    ["000000010000000000000007", "000000010000000000000008", "000000010000000000000009"];

fn segment(index: usize) -> Vec<u8> {
    plain(&sample("pg15-mixed"), NAMES[index])
}

/// An archive of these files.
fn archive<N: AsRef<str>>(files: &[(N, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory for the test");
    files.iter().for_each(|(name, bytes)| _ = put(directory.path(), name.as_ref(), bytes));
    directory
}

/// A tar of these files, in this order.
fn tar_of<N: AsRef<str>, B: AsRef<[u8]>>(files: &[(N, B)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let bytes = bytes.as_ref();
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name.as_ref(), bytes).expect("a vector takes everything");
    }
    tar.into_inner().expect("a vector takes everything")
}

/// An archive of a tar of these files.
fn in_tar<N: AsRef<str>>(files: &[(N, Vec<u8>)]) -> TempDir {
    archive(&[("wal.tar", tar_of(files))])
}

/// A tar of all that lies in a directory.
fn tar_of_all(directory: &Path) -> TempDir {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all(".", directory).expect("all of it");
    archive(&[("wal.tar", tar.into_inner().expect("a vector takes everything"))])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, bytes).expect("a vector takes everything");
    gzip.finish().expect("gzip ends")
}

/// The three segments under their names.
fn three() -> Vec<(String, Vec<u8>)> {
    NAMES.iter().enumerate().map(|(index, name)| ((*name).to_owned(), segment(index))).collect()
}

fn check(arguments: &[&str], path: &Path) -> Ran {
    let mut command = command(&["check", "-f", "json"]);
    finish(command.args(arguments).arg(path).env_remove("GITHUB_STEP_SUMMARY"))
}

/// What `check` says of the restore, and whether it passes.
fn restore_verdict(ran: &Ran) -> (bool, String) {
    let checks = ran.json()["checks"].as_array().cloned().unwrap_or_default();
    let restore = checks.iter().find(|check| check["check"] == "restore").expect("a verdict");
    (restore["verdict"] == "pass", restore["text"].as_str().expect("a text").to_owned())
}

fn restore(ran: &Ran) -> String {
    restore_verdict(ran).1
}

/// Kind and file of each problem.
fn told(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
    problems.iter().map(|problem| (text(&problem["kind"]), text(&problem["segment"]))).collect()
}

/// An archive that is all right, on disk and in a tar.
#[track_caller]
fn is_green(what: &str, directory: &Path) {
    is_green_as_it_lies(what, directory);
    if directory.is_dir() {
        let tar = tar_of_all(directory);
        is_green_as_it_lies(&format!("{what}, in a tar"), &tar.path().join("wal.tar"));
    }
}

/// The same where it lies: of a tar not all is known that is read on disk.
#[track_caller]
fn is_green_as_it_lies(what: &str, path: &Path) {
    let ran = check(&["--as", "archive"], path);
    assert_eq!((told(&ran), ran.code), (vec![], Some(0)), "{what}: {}", ran.stderr);
}

/// The same, where this is noted, once.
#[track_caller]
fn is_noted(what: &str, directory: &Path, text: &str) {
    is_green(what, directory);
    let notes = check(&["--as", "archive"], directory).json()["notes"].clone();
    let told = notes.as_array().into_iter().flatten();
    let told = told.filter(|note| note.as_str().is_some_and(|note| note.contains(text)));
    assert_eq!(told.count(), 1, "{what}: {notes}");
}

/// An archive that is whole, and from which none of the backups that it names can be restored.
#[track_caller]
fn is_of_no_use(what: &str, directory: &Path, text: &str) {
    let ran = check(&["--as", "archive"], directory);
    assert_eq!((told(&ran), ran.code), (vec![], Some(1)), "{what}: {}", ran.stderr);
    let report = ran.json();
    assert!(report["notes"].to_string().contains(text), "{what}: {}", report["notes"]);
    assert!(restore(&ran).contains("can be restored"));
}

/// An archive in which this is wrong and nothing else, on disk and in a tar.
#[track_caller]
fn is_red(what: &str, directory: &Path, kind: &str, file: &str) {
    is_red_as_it_lies(what, directory, kind, file);
    if directory.is_dir() {
        let tar = tar_of_all(directory);
        is_red_as_it_lies(&format!("{what}, in a tar"), &tar.path().join("wal.tar"), kind, file);
    }
}

/// The same where it lies.
#[track_caller]
fn is_red_as_it_lies(what: &str, path: &Path, kind: &str, file: &str) {
    let ran = check(&["--as", "archive"], path);
    let expected = vec![(kind.to_owned(), file.to_owned())];
    assert_eq!((told(&ran), ran.code), (expected, Some(4)), "{what}: {}", ran.stderr);
}
