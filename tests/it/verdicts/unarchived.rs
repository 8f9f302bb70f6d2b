//! Timelines of which nothing but the history was archived, before the server that had begun them died. WAL
//! made on purpose, of PostgreSQL 15, in segments of 1 MB.

use super::recovered::{FIRST, SEGMENT, history, promoted, store, timeline_1, write};
use super::{check, is_green, is_noted, is_red, put, told};
use crate::common::builder::Wal;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Timeline 1 with three places in it, in an archive of its own.
fn places() -> (TempDir, [Wal; 3]) {
    let directory = tempfile::tempdir().expect("a directory");
    let early = timeline_1(2, true);
    let mut late = early.clone();
    write(&mut late, 150);
    let mut later = late.clone();
    write(&mut later, 150);
    let mut all = later.clone();
    write(&mut all, 100);
    all.switch();
    store(&all, 0, directory.path());
    (directory, [early, late, later])
}

/// What `check` says of a restore from the begin of the archive on.
fn restored(directory: &Path) -> String {
    let ran =
        check(&["--as", "archive", "--from", &format!("0/{:X}", FIRST * SEGMENT + 40)], directory);
    let checks = ran.json()["checks"].as_array().cloned().unwrap_or_default();
    let restore = checks.iter().find(|check| check["check"] == "restore").expect("a verdict");
    restore["text"].as_str().expect("a text").to_owned()
}

fn is_short(said: &str) -> bool {
    said.contains(" only:") || said.contains(" only,")
}

fn to_the_end(wal: &Wal) -> String {
    let end = wal.at().next_multiple_of(SEGMENT);
    format!("restorable to LSN {}", walstat_format::lsn::Lsn(end))
}

/// A server that recovers to a later place follows the newest history, finds no segment of that timeline, and
/// reads those of timeline 1. So do 11, 14 and 16.
#[test]
fn a_timeline_that_left_nothing_but_its_history_is_passed_over() {
    let (directory, [early, late, later]) = places();
    let directory = directory.path();
    let third = promoted(&late, 1, 3);
    store(&third, late.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, late.at())]);
    let note = format!(
        "no segment of timeline 2, which begins at {}: a server reads those of timeline 1 in its place, \
         to {}",
        early.next(),
        late.next()
    );
    is_noted("passed over", directory, &note);
    let said = restored(directory);
    assert!(said.starts_with(&to_the_end(&third)) && !is_short(&said), "{said}");
    // And a usual promotion, or one that left no segment either.
    let fourth = promoted(&third, 3, 4);
    store(&fourth, third.at(), directory);
    history(directory, 4, &[(1, early.at()), (2, late.at()), (3, third.at())]);
    is_noted("and promoted", directory, &note);
    let said = restored(directory);
    assert!(said.starts_with(&to_the_end(&fourth)) && !is_short(&said), "{said}");
    // Twice.
    let (directory, _) = places();
    let directory = directory.path();
    let fourth = promoted(&later, 1, 4);
    store(&fourth, later.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, late.at())]);
    history(directory, 4, &[(1, early.at()), (2, late.at()), (3, later.at())]);
    is_green("two of them", directory);
    let said = restored(directory);
    assert!(said.starts_with(&to_the_end(&fourth)) && !is_short(&said), "{said}");
    // None of them left a segment.
    let (directory, _) = places();
    let directory = directory.path();
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, late.at())]);
    is_green("histories alone", directory);
    let said = restored(directory);
    let mut all = later.clone();
    write(&mut all, 100);
    assert!(said.starts_with(&to_the_end(&all)) && !is_short(&said), "{said}");
    // Its own segments are lost.
    let (directory, _) = places();
    let directory = directory.path();
    let second = promoted(&early, 1, 2);
    let third = promoted(&second, 2, 3);
    store(&third, second.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, second.at())]);
    check(&["--as", "archive"], directory).exits(4);
}

/// To find the newest timeline, a server looks whether there are histories, and reads that one's alone.
#[test]
fn a_broken_history_before_a_newer_one_without_segments_does_not_end_a_restore() {
    for has_second in [false, true] {
        let (directory, [early, ..]) = places();
        let directory = directory.path();
        let second = promoted(&early, 1, 2);
        let third = if has_second { second.at() } else { early.at() };
        if has_second {
            store(&second, early.at(), directory);
        }
        let own = [(1, early.at())];
        let newest = [own[0], (2, third)];
        history(directory, 2, &own);
        history(directory, 3, &newest);
        is_noted("as it is", directory, "no segment of timeline 3");
        let whole = restored(directory);
        assert!(!is_short(&whole), "{whole}");
        let name = "00000002.history";
        let text = fs::read(directory.join(name)).expect("a history");
        let histories = [
            Vec::new(),
            b"garbage\n".to_vec(),
            text[..4].to_vec(),
            format!("1\t0/{:X}\tx\n", early.at() + 1).into_bytes(),
            format!("1\t0/{:X}\tx\n", early.at() - SEGMENT).into_bytes(),
            format!("7\t0/{:X}\tx\n", early.at()).into_bytes(),
        ];
        for wrong in histories {
            put(directory, name, &wrong);
            let said = String::from_utf8_lossy(&wrong);
            assert_eq!(restored(directory), whole, "{has_second}: {said}");
        }
        // The newest is what is read.
        history(directory, 2, &own);
        put(directory, "00000003.history", b"garbage\n");
        let said = restored(directory);
        assert!(said.contains("a server does not start with 00000003.history"), "{said}");
    }
}

/// An older timeline's file under the name of one that begins later, and has no segment: it is what is wrong.
#[test]
fn a_file_before_its_timeline_begins_is_blamed_and_not_the_history() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    let second = promoted(&early, 1, 2);
    store(&second, early.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, second.at())]);
    let name = |timeline: u32, number: u64| format!("{timeline:08X}{number:016X}");
    let place = early.at() / SEGMENT;
    for (timeline, number) in [(1, place - 1), (2, place)] {
        let stray = name(3, number);
        fs::copy(directory.join(name(timeline, number)), directory.join(&stray)).expect("a copy");
        is_red("a copy", directory, "page_timeline", &stray);
        let said = restored(directory);
        assert!(said.starts_with(&to_the_end(&second)) && !is_short(&said), "{said}");
        fs::remove_file(directory.join(&stray)).expect("removed");
    }
}

/// By the history a server leaves the timeline too late, and reads what the older one has.
#[test]
fn where_a_wrong_history_leads_a_server_is_said() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    let second = promoted(&early, 1, 2);
    store(&second, early.at(), directory);
    history(directory, 2, &[(1, early.at() + SEGMENT)]);
    let said = restored(directory);
    let leads = "only, not to the end at";
    assert!(
        said.contains(leads)
            && said.contains("by that history a server goes on with timeline 1, to"),
        "{said}"
    );
    assert_eq!(told(&check(&["--as", "archive"], directory)).len(), 1);
}
