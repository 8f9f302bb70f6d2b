//! `walstat follow` where something cannot be read or written, or does not go as it should.

use super::{Following, gzip, plain_folder};
use crate::support::fixtures::sample;
use crate::support::patience::PATIENCE;
use crate::support::wal::plain;
use crate::support::{WALSTAT, command};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner's right");
}

/// The program as somebody who may not read everything; `None`: there is no way to become that here.
fn unprivileged(beside: &TempDir, unreadable: &Path) -> Option<Command> {
    mode(unreadable, 0o000);
    if fs::read_dir(unreadable).is_err() && fs::File::open(unreadable).is_err() {
        return Some(Command::new(WALSTAT));
    }
    let has_setpriv = Command::new("setpriv").arg("--version").output();
    if !has_setpriv.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: run by root, and there is no setpriv to become nobody");
        return None;
    }
    // Nobody may not be able to enter the build directory.
    let program = beside.path().join("walstat");
    // Another thread that starts a program meanwhile would inherit the copy, open for writing.
    let copied = Command::new("cp").arg(WALSTAT).arg(&program).status().expect("cp starts");
    assert!(copied.success());
    mode(beside.path(), 0o755);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
    Some(command)
}

/// What can be read is counted once, however often the rest is tried.
#[test]
fn a_segment_that_cannot_be_read_has_nothing_counted_twice() {
    let folder = plain_folder("pg15-mixed", 0..5);
    let names: Vec<_> = {
        let entries = fs::read_dir(folder.path()).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        names.sort();
        names
    };
    mode(folder.path(), 0o755);
    let beside = TempDir::new().expect("a directory");
    let Some(mut command) = unprivileged(&beside, &names[4]) else { return };
    command.args(["follow", "-f", "ndjson", "--every", "100ms"]).arg(folder.path());
    let following = Following::spawn(command, TempDir::new().expect("a directory"));
    let first = following.line(|_| true);
    assert_eq!(first["up"], false);
    let (begun, count) = (following.text("out").lines().count(), first["count"].clone());
    following.line(|_| following.text("out").lines().count() > begun + 5);
    let last = following.end("TERM").expect("a line");
    assert_eq!((&last["count"], &last["position_lsn"]), (&count, &first["position_lsn"]));
    mode(&names[4], 0o644);
    super::is_as_stats(&last, folder.path());
}

/// A list of which only a part could be made is none.
#[test]
fn a_folder_inside_that_cannot_be_read_is_told_until_it_can() {
    let folder = plain_folder("pg15-mixed", 0..3);
    mode(folder.path(), 0o755);
    let (beside, closed) = (TempDir::new().expect("a directory"), folder.path().join("closed"));
    fs::create_dir(&closed).expect("a directory");
    let Some(mut command) = unprivileged(&beside, &closed) else { return };
    fs::remove_dir(&closed).expect("removed");
    command.args(["follow", "-f", "ndjson", "--every", "100ms"]).arg(folder.path());
    let following = Following::spawn(command, TempDir::new().expect("a directory"));
    following.line(|line| line["up"] == true);
    fs::create_dir(&closed).expect("a directory");
    mode(&closed, 0o000);
    following.line(|line| line["up"] == false);
    let count = following.text("out").lines().count();
    following.line(|_| following.text("out").lines().count() > count + 10);
    let told = |event: &str| following.text("out").matches(event).count();
    assert_eq!((told("folder_unreadable"), told("folder_back")), (1, 0));
    mode(&closed, 0o755);
    super::add_segments(&sample("pg15-mixed"), folder.path(), 3..5);
    following.line(|line| line["happenings"].to_string().contains("folder_back"));
    let last = following.end("TERM").expect("a line");
    assert_eq!((&last["up"], &last["lost_bytes"]), (&true.into(), &0.into()));
    super::is_as_stats(&last, folder.path());
}

/// What ends it does not take away what came before.
#[test]
fn what_came_before_an_error_is_told() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let aside = folder.path().with_extension("aside");
    let path = folder.path().to_str().expect("text");
    let command = command(&["follow", path, "-f", "ndjson", "--every", "1h"]);
    let mut following = Following::spawn(command, TempDir::new().expect("a directory"));
    following.line(|_| true);
    fs::rename(folder.path(), &aside).expect("renamed");
    fs::write(folder.path(), b"no folder").expect("written");
    let ended = following.child.wait().expect("it ends");
    fs::remove_file(folder.path()).expect("removed");
    fs::rename(&aside, folder.path()).expect("renamed");
    assert_eq!(ended.code(), Some(3));
    assert_eq!(following.text("out").lines().count(), 2, "{}", following.text("out"));
}

/// The right to read is what is missing, for all commands.
#[test]
fn a_pg_wal_that_may_not_be_read_is_told() {
    let folder = TempDir::new().expect("a directory");
    let wal = folder.path().join("pg_wal");
    fs::create_dir(&wal).expect("a directory");
    mode(folder.path(), 0o755);
    let beside = TempDir::new().expect("a directory");
    for words in [&["--stats"][..], &["check"], &["follow"]] {
        let Some(mut command) = unprivileged(&beside, &wal) else { return };
        let ran = command.args(words).arg(folder.path()).output().expect("it runs");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(3), "{said}");
        assert!(said.contains("pg_wal: Permission denied"), "{said}");
    }
    mode(&wal, 0o755);
}

fn wait_for(following: &Following, text: &str) {
    let begun = Instant::now();
    while !following.text("err").contains(text) {
        assert!(begun.elapsed() < PATIENCE, "{}", following.text("err"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// As a disk that is full for a while does it.
#[test]
fn what_cannot_be_written_for_a_while_is_told_once_and_tried_again() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let [there, away] = ["there", "away"].map(|name| beside.path().join(name));
    fs::create_dir(&there).expect("a directory");
    let file = |name: &str| there.join(name).to_str().expect("text").to_owned();
    let [state, lines, prom] = ["state", "lines", "prom"].map(file);
    let words = ["--state", &state, "-f", "ndjson", "-o", &lines, "-f", "openmetrics", "-o", &prom];
    let following = Following::begin(folder.path(), &words);
    // All was written once where there is a second line.
    following.line(|_| following.text("out").lines().count() > 1);
    fs::rename(&there, &away).expect("renamed");
    let said = ["state", "lines", "prom"];
    for name in said {
        wait_for(&following, &format!("{name}: "));
    }
    let count = following.text("out").lines().count();
    following.line(|_| following.text("out").lines().count() > count + 3);
    fs::rename(&away, &there).expect("renamed");
    for name in said {
        wait_for(&following, &format!("{name}: can be written again"));
    }
    let text = following.text("err");
    assert_eq!(text.matches("it is tried again each time").count(), 3, "{text}");
    following.end("TERM");
    // What cannot be written at all is an error at once.
    fs::remove_dir_all(&there).expect("removed");
    let mut following = Following::begin(folder.path(), &["-o", &lines]);
    assert_eq!(following.child.wait().expect("it ends").code(), Some(3));
}

/// How many lines of a file tell that the folder was gone.
fn told_gone(lines: &Path) -> usize {
    fs::read_to_string(lines).unwrap_or_default().matches("\"folder_gone\"").count()
}

/// A line that cannot be written takes nothing with it, neither where it is tried again nor where the program
/// is ended before.
#[test]
fn what_happens_while_a_file_cannot_be_written_is_told_once_it_can() {
    for is_killed in [false, true] {
        let folder = plain_folder("pg15-mixed", 0..2);
        let wal = folder.path().join("wal");
        fs::create_dir(&wal).expect("a directory");
        super::add_segments(&sample("pg15-mixed"), &wal, 0..2);
        let beside = TempDir::new().expect("a directory");
        let [there, away] = ["there", "away"].map(|name| beside.path().join(name));
        fs::create_dir(&there).expect("a directory");
        let (lines, state) = (there.join("lines"), beside.path().join("state"));
        let [file, state] = [&lines, &state].map(|path| path.to_str().expect("text").to_owned());
        let words = ["--state", &state, "-f", "ndjson", "-o", &file];
        let mut following = Following::begin(&wal, &words);
        following.line(|_| following.text("out").lines().count() > 1);
        fs::rename(&there, &away).expect("renamed");
        wait_for(&following, "lines: ");
        fs::rename(&wal, folder.path().join("aside")).expect("renamed");
        following.line(|line| line["happenings"].to_string().contains("folder_gone"));
        let count = following.text("out").lines().count();
        following.line(|_| following.text("out").lines().count() > count + 2);
        fs::rename(folder.path().join("aside"), &wal).expect("renamed");
        if is_killed {
            following.child.kill().expect("killed");
            following.child.wait().expect("it ends");
        }
        fs::rename(&away, &there).expect("renamed");
        if is_killed {
            following = Following::begin(&wal, &words);
            following.line(|_| following.text("out").lines().count() > 1);
        } else {
            wait_for(&following, "lines: can be written again");
        }
        following.end("TERM");
        assert_eq!(told_gone(&lines), 1, "killed: {is_killed}");
    }
}

/// What is in the state was told: here standard output takes nothing for a while.
#[test]
fn the_state_is_written_after_everything_else() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let [state, counters] = ["state", "counters"].map(|name| beside.path().join(name));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let words = ["follow", &text(folder.path()), "--every", "100ms", "--state", &text(&state)];
    let outputs = ["-f", "openmetrics", "-o", &text(&counters), "-f", "ndjson"];
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    // All that a pipe takes.
    writer.write_all(&[b' '; 1 << 16]).expect("there is room");
    let mut command = command(&[&words[..], &outputs].concat());
    let child = command.stdout(writer).spawn().expect("it starts");
    drop(command);
    let following = Following { child, folder: beside };
    let begun = Instant::now();
    let wait = || {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    };
    while !counters.exists() {
        wait();
    }
    assert!(!state.exists());
    while !state.exists() {
        wait();
        let _ = reader.read(&mut [0; 4096]).expect("it can be read");
    }
    drop(following);
}

/// Each writing would have the archive listed anew.
#[test]
fn a_state_in_the_folder_that_is_followed_is_refused() {
    let folder = plain_folder("pg15-mixed", 0..1);
    let (path, state) = (folder.path().to_str().expect("text"), folder.path().join("state"));
    let words = ["follow", path, "--state", state.to_str().expect("text")];
    let ran = crate::support::walstat(&words).exits(2);
    assert!(ran.stdout.is_empty() && !state.exists());
    assert!(!folder.path().join("state.lock").exists());
}

/// Whatever link it is called by.
#[test]
fn two_do_not_use_one_state_by_two_names() {
    let folder = plain_folder("pg15-mixed", 0..2);
    let beside = TempDir::new().expect("a directory");
    let [state, link] = ["state", "link"].map(|name| beside.path().join(name));
    std::os::unix::fs::symlink("state", &link).expect("a link");
    let second = |name: &Path| {
        let name = name.to_str().expect("text");
        let mut second = Following::begin(folder.path(), &["--state", name]);
        wait_for(&second, "another follow is using this state file");
        assert_eq!(second.child.wait().expect("it ends").code(), Some(2));
    };
    for (one, other) in [(&state, &link), (&link, &state)] {
        // Before there is a state, and when there is.
        _ = fs::remove_file(&state);
        let first = Following::begin(folder.path(), &["--state", one.to_str().expect("text")]);
        first.line(|_| true);
        _ = fs::remove_file(&state);
        second(other);
        let begun = Instant::now();
        while !state.exists() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        second(other);
        first.end("TERM");
    }
}

/// As `pg_receivewal --compress` begins a segment.
#[test]
fn a_folder_with_the_beginning_of_a_compressed_segment_is_waited_for() {
    let sample = sample("pg15-mixed");
    let name = &sample.segments()[0];
    let folder = TempDir::new().expect("a directory");
    let packed = gzip(&plain(&sample, name));
    let partial = folder.path().join(format!("{name}.gz.partial"));
    fs::write(&partial, &packed[..20]).expect("written");
    let following = Following::begin(folder.path(), &[]);
    wait_for(&following, "no WAL yet, waiting for it");
    fs::write(&partial, &packed).expect("written");
    fs::rename(&partial, folder.path().join(format!("{name}.gz"))).expect("renamed");
    super::is_as_stats(&following.line(|line| line["count"] != 0), folder.path());
    following.end("TERM");
}
