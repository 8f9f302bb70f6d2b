//! The file of a state: written whole or not at all, used by one round at a time, and believed in nothing.

use super::{Archive, counts, until};
use crate::support::fixtures::sample;
use crate::support::signals;
use crate::support::wal::plain;
use std::fs;
use std::process::Stdio;

/// A round is refused in one line, and the state stays as it was.
#[track_caller]
fn is_refused(archive: &Archive, arguments: &[&str], words: &str) {
    let before = fs::read(archive.path("state")).ok();
    let ran = archive.check(&[&["--state", "state"], arguments].concat()).exits(2);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    assert_eq!(fs::read(archive.path("state")).ok(), before);
    assert!(!archive.path("state.lock").exists());
}

#[test]
fn what_is_no_state_is_refused() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let state = fs::read(archive.path("state")).expect("a state");
    let mut newer = state.clone();
    newer[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut of_newer_parts = state.clone();
    of_newer_parts[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut changed = state.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    for (bytes, words) in [
        (&b""[..], "no state"),
        (b"garbage", "no state"),
        (&state[..state.len() / 2], "cut off"),
        (&state[..17], "cut off"),
        (&newer, "layout 4294967295"),
        (&of_newer_parts, ".4294967295, expected"),
        (&changed, "damaged"),
        (&[&state[..], b"x"].concat(), "cut off"),
    ] {
        fs::write(archive.path("state"), bytes).expect("a file");
        is_refused(&archive, &[], words);
    }
    fs::remove_file(archive.path("state")).expect("a file");
    fs::create_dir(archive.path("state")).expect("a directory");
    is_refused(&archive, &[], "directory");
}

#[test]
fn a_state_of_another_cluster_is_refused() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let other = sample("pg16-workload");
    for name in archive_names(&archive) {
        archive.remove(&name);
    }
    let name = &other.segments()[0];
    archive.put(name, &plain(&other, name));
    is_refused(&archive, &[], "the state is of WAL with");
}

/// The first round met a segment without a first page alone, which does not tell its cluster.
#[test]
fn a_state_learns_the_cluster_from_the_first_segment_that_tells() {
    let archive = Archive::with(1);
    let name = archive_names(&archive).remove(0);
    let whole = fs::read(archive.file(&name)).expect("a segment");
    let mut broken = whole.clone();
    broken[..40].fill(0);
    for (bytes, code) in [(&broken, Some(4)), (&whole, Some(0)), (&broken, Some(4))] {
        archive.put(&name, bytes);
        let (with_state, report) = archive.round(&[]);
        let alone = archive.check(&["-f", "json"]);
        assert_eq!((with_state, alone.code), (code, code), "{report}");
        assert_eq!(report["problems"], alone.json()["problems"]);
    }
}

fn archive_names(archive: &Archive) -> Vec<String> {
    let entries = fs::read_dir(archive.path("archive")).expect("the archive");
    entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect()
}

#[test]
fn options_that_count_something_else_are_refused() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let refused = "and this one has --as archive";
    is_refused(&archive, &["--no-verify-checksums"], refused);
    is_refused(&archive, &["--rmgr", "Heap"], refused);
    is_refused(&archive, &["--fail-on", "warning"], refused);
    for option in ["--start", "--end"] {
        is_refused(&archive, &[option, "0/700000"], "it takes no");
    }
    is_refused(&archive, &["--since", "-2h"], "it takes no --since");
    is_refused(&archive, &["--limit", "5"], "it takes no --limit");
    is_refused(&archive, &["--relation", "public.orders"], "tablespace/database/relfilenode");
    archive.check(&["--recheck", "5%"]).exits(2);
    archive.check(&["--state", "state", "--recheck", "500%"]).exits(2);
    // Others do not matter.
    let (code, report) = archive.round(&["--max-fpi-ratio", "1", "-j", "1", "--no-mmap", "-v"]);
    assert_eq!((code, counts(&report)), (Some(0), [3, 0, 0]));
}

#[test]
fn limits_of_rules_and_tables_are_judged_as_without_a_state() {
    let archive = Archive::with(10);
    let limits = ["--fail-on", "warning", "--max-fpi-ratio", "10%", "-f", "json"];
    let whole = archive.check(&limits);
    let state = [&limits[..], &["--state", "state"]].concat();
    for _ in 0..2 {
        let round = archive.check(&state);
        assert_eq!(round.code, whole.code);
        for key in ["checks", "findings", "totals", "books"] {
            assert_eq!(round.json()[key], whole.json()[key], "{key}");
        }
    }
}

#[test]
fn a_state_is_no_input_and_no_output() {
    let archive = Archive::with(3);
    let segment = "archive/000000010000000000000007";
    let ran = archive.check(&["--state", segment]).exits(2);
    assert!(ran.stderr.contains("expected another file for --state"), "{}", ran.stderr);
    let both = |archive: &Archive| {
        let ran = archive.check(&["--state", "state", "-f", "json", "-o", "state"]).exits(2);
        assert!(ran.stderr.contains("is an input"), "{}", ran.stderr);
    };
    both(&archive);
    assert!(!archive.path("state").exists());
    archive.round(&[]);
    both(&archive);
    for lock in ["state.lock", "./state.lock"] {
        let ran = archive.check(&["--state", "state", "-o", lock]).exits(2);
        assert!(ran.stderr.contains("is an input"), "{}", ran.stderr);
    }
    let (code, _) = archive.round(&[]);
    assert_eq!(code, Some(0));
}

#[test]
fn what_cannot_be_read_as_wal_leaves_the_state_as_it_was() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let before = fs::read(archive.path("state")).expect("a state");
    for name in archive_names(&archive) {
        archive.remove(&name);
    }
    archive.check(&["--state", "state"]).exits(3);
    assert_eq!(fs::read(archive.path("state")).expect("a state"), before);
    let (_, report) = Archive::with(3).round(&[]);
    assert_eq!(counts(&report), [0, 3, 0]);
}

/// What others put in the place of the lock, in a directory that all may write to.
#[cfg(unix)]
#[test]
fn a_lock_is_no_link_and_no_pipe() {
    use std::os::unix::fs::PermissionsExt;
    let archive = Archive::with(3);
    fs::set_permissions(archive.here.path(), fs::Permissions::from_mode(0o1777)).expect("its mode");
    let refused = |words: &str| {
        let ran = archive.check(&["--state", "state"]).exits(2);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(ran.stderr.contains("expected another file for --state"), "{}", ran.stderr);
        fs::remove_file(archive.path("state.lock")).expect("it stays");
    };
    std::os::unix::fs::symlink(archive.path("victim"), archive.path("state.lock")).expect("a link");
    refused("the symbolic link state.lock");
    assert!(!archive.path("victim").exists());
    let made = std::process::Command::new("mkfifo").arg(archive.path("state.lock")).status();
    assert!(made.expect("mkfifo starts").success());
    refused("is a named pipe");
}

/// The lock of another round, as long as it is held.
#[test]
fn two_rounds_do_not_use_one_state_at_a_time() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let lock = fs::File::create(archive.path("state.lock")).expect("a lock");
    lock.lock().expect("locked");
    let ran = archive.check(&["--state", "state"]).exits(2);
    assert!(ran.stderr.contains("another check is using this state file"), "{}", ran.stderr);
    let ran = archive.check(&["--state", "state", "-f", "nagios"]).exits(3);
    assert!(ran.stdout.starts_with("WALSTAT UNKNOWN - state: another check"), "{}", ran.stdout);
    drop(lock);
    // One that was killed leaves the file, and no lock.
    let (code, report) = archive.round(&[]);
    assert_eq!((code, counts(&report)), (Some(0), [3, 0, 0]));
    assert!(!archive.path("state.lock").exists());
}

/// A state can say anything: none of it makes the program panic, or be green.
#[test]
fn numbers_in_a_state_are_not_believed() {
    let archive = Archive::with(3);
    archive.round(&[]);
    let state = fs::read(archive.path("state")).expect("a state");
    // Magic and two versions; then length and checksum of what follows.
    let plain = zstd::decode_all(&state[24 + 12..]).expect("zstd");
    let mut random = crate::common::xorshift::Xorshift::new(7);
    for _ in 0..60 {
        let mut changed = plain.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len() as u64) as usize;
            changed[at] = random.next() as u8;
        }
        let body = zstd::encode_all(changed.as_slice(), 1).expect("zstd");
        let head = [
            &state[..24],
            &(body.len() as u64).to_le_bytes(),
            &crc32c::crc32c(&body).to_le_bytes(),
        ];
        fs::write(archive.path("state"), [&head.concat()[..], &body].concat()).expect("a file");
        let ran = archive.check(&["--state", "state"]);
        assert!([Some(0), Some(2), Some(4)].contains(&ran.code), "{:?}: {}", ran.code, ran.stderr);
    }
}

/// A round that is ended has remembered what it was done with, and the next one goes on from there.
#[cfg(unix)]
#[test]
fn a_round_that_is_ended_keeps_what_it_has_done() {
    use std::os::unix::process::ExitStatusExt;
    let archive = Archive::with(12);
    archive.round(&[]);
    // A pipe that nobody writes to, among the paths: the round reads the new segments, and then waits there.
    let sample = sample("pg15-mixed");
    for name in &sample.segments()[12..16] {
        archive.put(name, &plain(&sample, name));
    }
    for (signal, code) in [("TERM", 15), ("INT", 2)] {
        let mut child = signals::none_ignored(&archive.command(&["--state", "state", "-"]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("walstat");
        // It is locked, and then it reads; how far it comes is not known.
        until("the state is locked", || archive.path("state.lock").exists());
        std::thread::sleep(std::time::Duration::from_millis(300));
        let begun = std::time::Instant::now();
        signals::send(&child, signal);
        // Its end would end the round, too.
        let stdin = child.stdin.take();
        let status = child.wait().expect("its end");
        drop(stdin);
        assert_eq!(status.signal(), Some(code));
        println!("ended within {:?}", begun.elapsed());
        assert!(!archive.path("state.lock").exists());
    }
    let (code, report) = archive.round(&[]);
    let [known, read, _] = counts(&report);
    assert_eq!((code, known + read), (Some(0), 16));
    assert!(known >= 12, "{known} known");
}

/// However soon a signal comes, the lock is not left behind: it is there no longer than somebody removes it.
#[cfg(unix)]
#[test]
fn a_round_that_is_ended_at_once_leaves_no_lock() {
    let archive = Archive::with(1);
    for delay in 0..60 {
        let mut child = signals::none_ignored(&archive.command(&["--state", "state", "-"]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("walstat");
        std::thread::sleep(std::time::Duration::from_micros(250 * delay));
        signals::send(&child, "TERM");
        let stdin = child.stdin.take();
        child.wait().expect("its end");
        drop(stdin);
        assert!(!archive.path("state.lock").exists(), "{delay}");
    }
}

/// Most rules look at what a round does not count unless they are asked for: nothing is said of any of them
/// then, rather than of some.
#[test]
fn findings_are_told_where_rules_are_asked_for() {
    let archive = Archive::with(3);
    let (_, report) = archive.round(&[]);
    assert!(report["findings"].is_null(), "{}", report["findings"]);
    assert!(archive.check(&["-f", "json"]).json()["findings"].is_array());
}
