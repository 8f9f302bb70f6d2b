//! Timelines of which nothing but the history was archived, before the server that had begun them died. WAL
//! made on purpose, of PostgreSQL 15, in segments of 1 MB.

use super::prepared::begun_by_checkpoint;
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
    let from = format!("0/{:X}", FIRST * SEGMENT + 40);
    super::restore(&check(&["--as", "archive", "--from", &from], directory))
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
    // The first one to the place of the last one, or behind it, and another one to an earlier one.
    for first in [late.at(), later.at()] {
        let (directory, _) = places();
        let directory = directory.path();
        let fourth = promoted(&late, 1, 4);
        store(&fourth, late.at(), directory);
        history(directory, 2, &[(1, first)]);
        history(directory, 3, &[(1, first), (2, early.at())]);
        history(directory, 4, &[(1, first), (2, early.at()), (3, late.at())]);
        is_green("to earlier places", directory);
        let said = restored(directory);
        assert!(said.starts_with(&to_the_end(&fourth)) && !is_short(&said), "{said}");
    }
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

/// The first file of the newer one begins with a page of timeline 1, so that one is what it left.
#[test]
fn it_is_passed_over_though_the_newer_one_is_damaged_where_it_begins() {
    let (directory, [early, late, _]) = places();
    let directory = directory.path();
    let third = promoted(&late, 1, 3);
    store(&third, late.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, late.at())]);
    let name = format!("00000003{:016X}", late.at() / SEGMENT);
    let mut bytes = fs::read(directory.join(&name)).expect("the first file");
    bytes[(late.at() % SEGMENT) as usize..].fill(0);
    put(directory, &name, &bytes);
    is_red("zeros", directory, "zero_hole", &name);
    let said = restored(directory);
    assert!(said.starts_with(&format!("restorable to LSN {}", late.next())), "{said}");
}

/// `pg_receivewal` writes it while the timeline is new: nobody fetches it, and where the timeline before went
/// on in a file of its number, a server reads that. So does 12.
#[test]
fn a_timeline_with_nothing_but_a_partial_is_not_followed_into_it() {
    let (directory, [_, late, _]) = places();
    let directory = directory.path();
    let second = promoted(&late, 1, 2);
    let number = late.at() / SEGMENT;
    store(&second, late.at(), directory);
    history(directory, 2, &[(1, late.at())]);
    for entry in fs::read_dir(directory).expect("the archive").filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("00000002") && !name.ends_with(".history") {
            let is_first = name == format!("00000002{number:016X}");
            let partial = directory.join(format!("{name}.partial"));
            let done = if is_first {
                fs::rename(entry.path(), partial)
            } else {
                fs::remove_file(entry.path())
            };
            done.expect("a file");
        }
    }
    let read = format!("a server reads 00000001{number:016X} in its place, to its end");
    is_noted("a .partial alone", directory, &read);
    let mut all = timeline_1(2, true);
    write(&mut all, 400);
    let said = restored(directory);
    assert!(said.starts_with(&to_the_end(&all)) && !is_short(&said), "{said}");
    // Whoever asks for the timeline has it counted.
    check(&["--as", "archive", "-t", "2"], directory).exits(0);
}

/// A server that looks for the newest timeline never comes to one behind a history that is missing.
#[test]
fn a_stray_file_of_a_timeline_without_a_history_hides_no_newer_one() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    history(directory, 2, &[(1, early.at())]);
    let begin = format!("0/{:X}", (early.at() / SEGMENT + 2) * SEGMENT + 40);
    let words = ["--as", "archive", "--from", &begin];
    let alone = super::restore(&check(&words, directory));
    assert!(alone.contains("00000002.history exists"), "{alone}");
    let first = format!("{FIRST:016X}");
    let bytes = fs::read(directory.join(format!("00000001{first}"))).expect("a segment");
    put(directory, &format!("00000003{first}"), &bytes);
    assert_eq!(super::restore(&check(&words, directory)), alone);
}

/// Files of timeline 1 under the name of a newer one that left nothing but its history: it is passed over
/// with them as without, up to where a server asks for one of them.
#[test]
fn stray_files_of_a_timeline_without_segments_are_blamed_alone() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    history(directory, 2, &[(1, early.at())]);
    let whole = restored(directory);
    let segment = |number: u64| {
        fs::read(directory.join(format!("00000001{number:016X}"))).expect("a segment")
    };
    let fork = early.at() / SEGMENT;
    // Before the place where it begins; there; and the content of another segment behind it.
    for (number, content) in [(FIRST, FIRST), (fork, fork), (fork + 1, FIRST)] {
        let name = format!("00000002{number:016X}");
        put(directory, &name, &segment(content));
        is_red("a stray", directory, "page_timeline", &name);
        let said = restored(directory);
        match number {
            FIRST => assert_eq!(said, whole),
            _ if content == number => {}
            _ => {
                assert!(said.contains("only, not to the end at") && said.contains(&name), "{said}")
            }
        }
        fs::remove_file(directory.join(name)).expect("a file");
    }
    is_green("without them", directory);
}

/// Where it is missed in the history that is followed, it is missed, whatever else lies under the name of its
/// timeline.
#[test]
fn a_stray_file_hides_no_missing_segment() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    let second = promoted(&early, 1, 2);
    let third = promoted(&second, 2, 3);
    store(&second, early.at(), directory);
    store(&third, second.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, second.at())]);
    is_green("as it is", directory);
    let lost = format!("00000002{:016X}", early.at() / SEGMENT);
    fs::remove_file(directory.join(&lost)).expect("a segment");
    let from = format!("00000003{:016X}", second.at() / SEGMENT + 1);
    let bytes = fs::read(directory.join(from)).expect("a segment");
    put(directory, &format!("00000002{:016X}", second.at() / SEGMENT + 1), &bytes);
    let ran = check(&["--as", "archive"], directory).exits(4);
    assert!(told(&ran).contains(&("missing_segment".to_owned(), lost)), "{:?}", told(&ran));
}

/// It reads the newest one whatever timeline a backup is of (`syntax error in history file`).
#[test]
fn a_server_does_not_start_with_a_history_that_it_refuses() {
    let (directory, [early, ..]) = places();
    let directory = directory.path();
    let second = begun_by_checkpoint(&early, 1, 2);
    store(&second, early.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    let start = early.next();
    let label = format!(
        "START WAL LOCATION: {start} (file 00000002{:016X})\nCHECKPOINT LOCATION: {start}\nBACKUP METHOD: \
         streamed\nBACKUP FROM: primary\nSTART TIME: 2026-01-01 00:00:00 UTC\nLABEL: x\nSTART TIMELINE: 2\n",
        early.at() / SEGMENT
    );
    let label = put(&directory.join("base"), "backup_label", label.as_bytes());
    let words = ["--as", "archive", "--backup-label", label.to_str().expect("a path")];
    let refused = |text: &str| {
        put(directory, "00000002.history", text.as_bytes());
        let said = super::restore(&check(&words, directory));
        said.contains("a server does not start with it")
    };
    assert!(!refused(&format!("1\t{}\tx\n", early.next())));
    assert!(refused("x\t0/900128\tx\n"));
    assert!(refused("7\t0/900128\tx\n"));
    assert!(!refused(""), "to a server, all is of timeline 2");
}

/// A server of 10 made a segment ready in recovery, was promoted at its begin, and archived it.
#[test]
fn a_segment_of_zeros_behind_the_end_of_a_left_timeline_is_noted() {
    let mut wal = timeline_1(2, true);
    wal.leave_in_segment(0);
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let second = promoted(&wal, 1, 2);
    store(&wal, 0, directory);
    store(&second, wal.at(), directory);
    history(directory, 2, &[(1, wal.at())]);
    let name = format!("00000001{:016X}", wal.at() / SEGMENT);
    put(directory, &name, &vec![0; SEGMENT as usize]);
    is_noted(
        "zeros",
        directory,
        &format!("{name}: only zeros, and the timeline was left before it"),
    );
    is_green("zeros", directory);
    put(directory, &name, &vec![1; SEGMENT as usize]);
    check(&["--as", "archive"], directory).exits(4);
}

/// Asked for such a timeline, a server gets its history, and reads what there is of the older one. So do 12
/// and 15.
#[test]
fn a_timeline_that_left_nothing_but_its_history_is_followed_where_it_is_asked_for() {
    let (directory, [early, late, later]) = places();
    let directory = directory.path();
    let third = promoted(&late, 1, 3);
    store(&third, late.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, early.at()), (2, late.at())]);
    let from = format!("0/{:X}", FIRST * SEGMENT + 40);
    let asked =
        |timeline| check(&["--as", "archive", "--from", &from, "--timeline", timeline], directory);
    let mut all = later;
    write(&mut all, 100);
    let said = super::restore(&asked("2").exits(0));
    assert!(said.starts_with(&to_the_end(&all)) && !is_short(&said), "{said}");
    assert!(
        asked("4").exits(3).stderr.contains("no segment of timeline 4; there is timeline 1, 3")
    );
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

/// A standby with `archive_mode = always` that follows another one to a newer timeline archives the segment
/// in which it left the older one under its full name.
#[test]
fn the_segment_in_which_a_timeline_was_left_need_not_be_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let first = timeline_1(2, true);
    let left = first.at();
    let second = promoted(&first, 1, 2);
    store(&first, 0, directory);
    history(directory, 2, &[(1, left)]);
    let note = "not filled, and a newer timeline begins where it ends";
    is_noted("the newer one has no segments yet", directory, note);
    store(&second, left, directory);
    is_noted("it has", directory, note);
    let ran = check(&["--as", "archive", "-t", "1"], directory);
    assert_eq!((told(&ran), ran.code), (vec![], Some(0)), "{}", ran.stderr);
    // Where something is missing before that place it is no end, nor where the older one goes on.
    let name = format!("00000001{:016X}", left / SEGMENT);
    let sound = fs::read(directory.join(&name)).expect("the last segment");
    let mut bytes = sound.clone();
    bytes[(left % SEGMENT) as usize - 18_000..].fill(0);
    put(directory, &name, &bytes);
    is_red("zeros before it", directory, "open_segment", &name);
    put(directory, &name, &sound);
    let mut later = timeline_1(4, false);
    later.switch();
    store(&later, left + SEGMENT, directory);
    let told = told(&check(&["--as", "archive"], directory).exits(4));
    assert!(told.iter().any(|(_, file)| *file == name), "{told:?}");
}

/// An archive of timeline 1, which goes on behind the place where timeline 2 left it, and of that one, with
/// so many records; the number of the segment in which that is, and of the one in which timeline 2 ends.
fn failed_over(records: usize) -> (TempDir, u64, u64) {
    let early = timeline_1(2, true);
    let mut lost = early.clone();
    write(&mut lost, 300);
    lost.switch();
    let mut newer = promoted(&early, 1, 2);
    write(&mut newer, records);
    newer.switch();
    let directory = tempfile::tempdir().expect("a directory");
    store(&lost, 0, directory.path());
    store(&newer, early.at(), directory.path());
    history(directory.path(), 2, &[(1, early.at())]);
    (directory, early.at() / SEGMENT, newer.at() / SEGMENT)
}

/// Retention took the segment in which timeline 2 begins; the server's own pg_wal has the `.partial` of the
/// other one, and the archive what that one wrote after it.
#[test]
fn a_partial_where_a_timeline_was_left_leaves_nothing_missing() {
    let (directory, fork, _) = failed_over(300);
    let folder = directory.path();
    let name = |timeline: u32, number: u64| folder.join(format!("{timeline:08X}{number:016X}"));
    assert!(name(1, fork + 1).exists() && name(2, fork + 1).exists());
    for number in FIRST..fork {
        fs::remove_file(name(1, number)).expect("removed");
    }
    fs::rename(name(1, fork), name(1, fork).with_extension("partial")).expect("renamed");
    is_green("with all of the newer timeline", folder);
    fs::remove_file(name(2, fork)).expect("removed");
    is_green("without its first segment", folder);
    // Where it is not known that it was left there, the segment is missing.
    fs::remove_file(folder.join("00000002.history")).expect("removed");
    assert!(!told(&check(&["--as", "archive"], folder)).is_empty());
}

/// The host of an old primary comes back, and archives what its timeline wrote behind the place where it was
/// left: nobody fetches that, and what retention takes of the newer one is taken from the old end.
#[test]
fn late_segments_of_a_timeline_that_was_left_do_not_make_older_ones_missing() {
    let (directory, fork, last) = failed_over(600);
    let folder = directory.path();
    let state = folder.with_extension("state");
    let round = || check(&["--as", "archive", "--state", state.to_str().expect("a path")], folder);
    assert_eq!(told(&round()), []);
    let remove = |timeline: u32, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let name = format!("{timeline:08X}{number:016X}");
            fs::remove_file(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    };
    remove(1, FIRST..fork);
    remove(2, fork..fork + 3);
    assert!(folder.join(format!("00000001{fork:016X}")).exists() && fork + 4 < last);
    assert_eq!(told(&round()), []);
    // The newest one was there.
    let newest =
        (fork..=last).rev().find(|number| folder.join(format!("00000002{number:016X}")).exists());
    let newest = newest.expect("a segment");
    remove(2, newest..newest + 1);
    let missing = ("missing_segment".to_owned(), format!("00000002{newest:016X}"));
    assert_eq!(told(&round()), [missing]);
    fs::remove_file(state).expect("the state");
}
