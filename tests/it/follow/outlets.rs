//! What becomes of places that `walstat follow` writes to, where not all of them can be written.

use super::{Following, add_segments, plain_folder};
use crate::support::command;
use crate::support::fixtures::sample;
use crate::support::patience::PATIENCE;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// What a program says, once it has ended.
fn said(following: &mut Following, code: i32) -> String {
    let ended = following.child.wait().expect("it ends");
    let said = following.text("err");
    assert_eq!(ended.code(), Some(code), "{said}");
    said
}

/// Two folders that can be renamed, and so be away for a while.
fn two_folders() -> (TempDir, [std::path::PathBuf; 2]) {
    let beside = TempDir::new().expect("a directory");
    let folders = ["one", "two"].map(|name| beside.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).expect("a directory"));
    (beside, folders)
}

/// A run by hand with the state alone forgot what a service had kept for its file.
#[test]
fn what_is_owed_to_a_file_outlives_a_run_without_it() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let wal = folder.path().join("wal");
    fs::create_dir(&wal).expect("a directory");
    add_segments(&sample("pg15-mixed"), &wal, 0..2);
    let (beside, [there, _]) = two_folders();
    let (away, state) = (beside.path().join("away"), beside.path().join("state"));
    let lines = there.join("lines");
    let words = ["--state", text(&state), "-f", "ndjson", "-o", text(&lines)];
    let mut service = Following::begin(&wal, &words);
    service.line(|_| service.text("out").lines().count() > 1);
    fs::rename(&there, &away).expect("renamed");
    fs::rename(&wal, folder.path().join("aside")).expect("renamed");
    service.line(|line| line["happenings"].to_string().contains("folder_gone"));
    let count = service.text("out").lines().count();
    // The state of a telling after it is written.
    service.line(|_| service.text("out").lines().count() > count + 2);
    service.child.kill().expect("killed");
    service.child.wait().expect("it ends");
    fs::rename(folder.path().join("aside"), &wal).expect("renamed");
    fs::rename(&away, &there).expect("renamed");
    let by_hand = Following::begin(&wal, &words[..2]);
    by_hand.line(|_| by_hand.text("out").lines().count() > 1);
    by_hand.end("TERM");
    let again = Following::begin(&wal, &words);
    again.line(|_| again.text("out").lines().count() > 1);
    again.end("TERM");
    let told = fs::read_to_string(&lines).expect("text");
    assert_eq!(told.matches("\"folder_gone\"").count(), 1, "{told}");
}

/// A disk that is full takes a part of a line.
#[test]
fn lines_on_standard_output_begin_anew_after_half_a_line() {
    // Their lines leave more of the last one behind than the standard library keeps in its buffer.
    let folder = plain_folder("pg15-mixed", 0..8);
    let beside = TempDir::new().expect("a directory");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    // What there is no room for is an error, as with a disk.
    rustix::io::ioctl_fionbio(&writer, true).expect("it takes what it can");
    let words = ["follow", text(folder.path()), "-f", "ndjson", "--every", "100ms"];
    let mut command = command(&words);
    let errors = fs::File::create(beside.path().join("err")).expect("a file");
    let child = command.stdout(writer).stderr(errors).spawn().expect("it starts");
    drop(command);
    let following = Following { child, folder: beside };
    let begun = Instant::now();
    let wait_for = |wanted: &str| {
        while !following.text("err").contains(wanted) {
            assert!(begun.elapsed() < PATIENCE, "{}", following.text("err"));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("standard output: Resource temporarily unavailable");
    // As long as anything is read the program has room.
    let mut told = vec![0; 1 << 16];
    let read = reader.read(&mut told).expect("it can be read");
    told.truncate(read);
    wait_for("standard output: can be written again");
    following.send("TERM");
    reader.read_to_end(&mut told).expect("it can be read");
    let told = String::from_utf8(told).expect("text");
    let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    // Nothing but the beginning of a line may stand before the next one.
    let begins = |line: &str| line.matches("\"system_identifier\"").count();
    let lines: Vec<(bool, usize)> =
        told.lines().map(|line| (is_whole(line), begins(line))).collect();
    assert!(lines.iter().any(|(is_whole, _)| !is_whole), "no line was cut: {lines:?}");
    assert!(lines.iter().all(|(_, begins)| *begins == 1), "{lines:?}");
    assert!(lines.iter().filter(|(is_whole, _)| *is_whole).count() > 2, "{lines:?}");
}

/// With a full disk nobody heard that the state was not written either.
#[test]
fn all_that_cannot_be_written_at_the_end_is_told() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let (_beside, [one, two]) = two_folders();
    let (lines, state) = (one.join("lines"), two.join("state"));
    // Nothing is told between the beginning and the end.
    let words = ["follow", text(folder.path()), "--every", "1h", "--state", text(&state)];
    let outputs = ["-f", "ndjson", "-o", text(&lines)];
    let command = command(&[&words[..], &outputs].concat());
    let mut following = Following::spawn(command, TempDir::new().expect("a directory"));
    let begun = Instant::now();
    while !state.exists() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    [one, two].iter().for_each(|folder| fs::remove_dir_all(folder).expect("removed"));
    following.send("TERM");
    let said = said(&mut following, 3);
    assert!(said.contains(text(&lines)) && said.contains(text(&state)), "{said}");
    assert!(!said.contains("tried again"), "{said}");
}

#[test]
fn where_something_cannot_be_written_at_all_the_others_are_told_once() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let [lines, prom] = ["lines", "prom"].map(|name| beside.path().join("missing").join(name));
    let words = ["-f", "ndjson", "-o", text(&lines), "-f", "openmetrics", "-o", text(&prom)];
    let mut following = Following::begin(folder.path(), &words);
    let said = said(&mut following, 3);
    assert!(said.contains(text(&lines)) && said.contains(text(&prom)), "{said}");
    assert!(!said.contains("tried again"), "{said}");
    assert_eq!(following.text("out").lines().count(), 1, "{}", following.text("out"));
}
