//! Timelines of servers that recovered to a point in time, were promoted, or had their archive cleaned up;
//! and records that say what cannot be. WAL made on purpose, of PostgreSQL 15, in segments of 1 MB.

use super::prepared::{back_up, restored};
use super::{check, gzip, is_green, is_noted, is_of_no_use, is_red, put, told};
use crate::common::builder::{Form, Wal};
use crate::common::record::Rec;
use crate::support::{command, finish};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use walstat_format::rmgr::TABLESPACE;

/// The number of the first segment.
pub(super) const FIRST: u64 = 5;
pub(super) const SEGMENT: u64 = 1 << 20;

/// Timeline 1, up to the beginning of a segment, or into its middle.
pub(super) fn timeline_1(segments: u64, is_into: bool) -> Wal {
    let mut wal = Wal::new(Form::of("15"), FIRST);
    (0..segments).for_each(|_| wal.leave_in_segment(0));
    if is_into {
        write(&mut wal, 30);
    }
    wal
}

/// So many records, of 9 kB.
pub(super) fn write(wal: &mut Wal, records: usize) {
    (0..records).for_each(|_| _ = wal.add(&Rec::sized(9000)));
}

/// A timeline that leaves another one where that stands, and ends with a whole segment.
pub(super) fn promoted(wal: &Wal, from: u32, to: u32) -> Wal {
    let mut wal = wal.clone();
    wal.form.timeline = to;
    wal.add(&Rec::begins(to, from));
    write(&mut wal, 150);
    wal.switch();
    wal
}

/// Writes all segments of a timeline, from that of `begin` on.
pub(super) fn store(wal: &Wal, begin: u64, directory: &Path) {
    let disk = wal.clone().finish();
    let numbers: Vec<u64> = disk.files.keys().copied().collect();
    let own = numbers.iter().filter(|number| **number >= begin / SEGMENT);
    own.for_each(|number| disk.write_segment(directory, *number));
}

pub(super) fn history(directory: &Path, timeline: u32, ancestors: &[(u32, u64)]) {
    let line = |(timeline, end): &(u32, u64)| format!("{timeline}\t0/{end:X}\tx\n");
    let text: String = ancestors.iter().map(line).collect();
    put(directory, &format!("{timeline:08X}.history"), text.as_bytes());
}

/// Timeline 1 with two places in it, the earlier one first, in an archive of its own.
fn two_places() -> (TempDir, Wal, Wal) {
    let directory = tempfile::tempdir().expect("a directory");
    let early = timeline_1(2, true);
    let mut late = early.clone();
    write(&mut late, 100);
    let mut all = late.clone();
    write(&mut all, 100);
    all.switch();
    store(&all, 0, directory.path());
    (directory, early, late)
}

/// The timelines of which `window` says something, those of the followed history first.
fn in_window(directory: &Path) -> Vec<u64> {
    let ran = finish(command(&["window", "-f", "json", "--as", "archive"]).arg(directory));
    let rows = ran.json()["window"]["timelines"].as_array().cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row["timeline"].as_u64()).collect()
}

/// Without `recovery_target_timeline` a server follows the newest timeline, and writes a history in which
/// that one is the parent, though it stops before the parent begins. So do 12 to 18, and they restore all.
#[test]
fn recovery_to_an_earlier_place_than_the_time_before_is_sound() {
    let (directory, early, late) = two_places();
    let directory = directory.path();
    store(&promoted(&late, 1, 2), late.at(), directory);
    let third = promoted(&early, 1, 3);
    store(&third, early.at(), directory);
    history(directory, 2, &[(1, late.at())]);
    history(directory, 3, &[(1, late.at()), (2, early.at())]);
    is_green("earlier", directory);
    assert_eq!(in_window(directory), [1, 3, 2]);
    // And then a usual promotion.
    store(&promoted(&third, 3, 4), third.at(), directory);
    history(directory, 4, &[(1, late.at()), (2, early.at()), (3, third.at())]);
    is_green("and promoted", directory);
}

/// The same where it names another place in the segment: a server asks for the same files.
#[test]
fn a_place_near_the_one_where_a_timeline_begins_is_a_note_though_another_ancestor_is_named() {
    let (directory, early, late) = two_places();
    let directory = directory.path();
    let third = promoted(&early, 1, 3);
    store(&third, early.at(), directory);
    store(&promoted(&third, 3, 4), third.at(), directory);
    history(directory, 2, &[(1, late.at())]);
    history(directory, 4, &[(1, late.at()), (2, early.at()), (3, third.at())]);
    history(directory, 3, &[(1, late.at()), (2, early.at() + 0x8000)]);
    is_noted("another place", directory, "00000003.history");
    // A line is lost in the newest one.
    history(directory, 3, &[(1, late.at()), (2, early.at())]);
    history(directory, 4, &[(1, late.at()), (3, third.at())]);
    is_red("a lost line", directory, "history", "00000004.history");
}

/// Two timelines, and two that were begun one after the other where the second one ends, without segments of
/// the first of these.
fn left_at_once() -> (TempDir, [(u32, u64); 3]) {
    let directory = tempfile::tempdir().expect("a directory");
    let early = timeline_1(2, true);
    let mut first = early.clone();
    first.switch();
    store(&first, 0, directory.path());
    let second = promoted(&early, 1, 2);
    store(&second, early.at(), directory.path());
    store(&promoted(&second, 2, 4), second.at(), directory.path());
    let ancestors = [(1, early.at()), (2, second.at()), (3, second.at())];
    (1..=3).for_each(|count| history(directory.path(), count as u32 + 1, &ancestors[..count]));
    (directory, ancestors)
}

/// A server that restores to the newest timeline reads the newest history alone: 10 and 11 restore all.
#[test]
fn of_a_timeline_without_segments_the_history_is_blamed_that_is_cut_or_names_another_segment() {
    let (directory, [first, second, _]) = left_at_once();
    let folder = directory.path();
    is_green("as they are", folder);
    let name = "00000003.history";
    let whole = fs::read(folder.join(name)).expect("the history");
    for end in [whole.len() / 2 - 6, whole.len() / 2 - 1, whole.len() / 2] {
        put(folder, name, &whole[..end]);
        is_red("cut", folder, "history", name);
    }
    for wrong in [second.1 - SEGMENT, second.1 + SEGMENT, second.1 + 0x1000] {
        history(folder, 3, &[first, (2, wrong)]);
        is_red("another place", folder, "history", name);
    }
}

/// A timeline that was begun and has no segments: two newer histories agree on where it left timeline 1, and
/// a server reads the newest of them alone.
#[test]
fn of_a_timeline_without_segments_the_history_that_two_newer_ones_contradict_is_blamed() {
    let (directory, early, late) = two_places();
    let directory = directory.path();
    let third = promoted(&early, 1, 3);
    store(&third, early.at(), directory);
    store(&promoted(&third, 3, 4), third.at(), directory);
    history(directory, 2, &[(1, late.at())]);
    history(directory, 3, &[(1, late.at()), (2, early.at())]);
    history(directory, 4, &[(1, late.at()), (2, early.at()), (3, third.at())]);
    is_green("as they are", directory);
    history(directory, 2, &[(1, late.at() - SEGMENT)]);
    is_red("one of three", directory, "history", "00000002.history");
    let ran = check(&["--as", "archive", "--from", "0/500028"], directory).exits(4);
    let checks = ran.json()["checks"].to_string();
    let end = promoted(&third, 3, 4).at().next_multiple_of(SEGMENT);
    let said = format!("restorable to LSN {} on timeline 4;", walstat_format::lsn::Lsn(end));
    assert!(checks.contains(&said), "{said} {checks}");
}

/// It leads to the same files.
#[test]
fn a_history_that_is_wrong_where_no_server_minds_does_not_end_a_restore() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let first = timeline_1(3, false);
    let border = first.at();
    let mut third = first.clone();
    third.form.timeline = 3;
    third.add(&Rec::begins(3, 1));
    write(&mut third, 20);
    let fourth = promoted(&third, 3, 4);
    store(&first, 0, directory);
    store(&fourth, third.at(), directory);
    history(directory, 2, &[(1, border)]);
    history(directory, 3, &[(1, border), (2, border)]);
    history(directory, 4, &[(1, border), (2, border), (3, third.at())]);
    is_green("as it is", directory);
    history(directory, 4, &[(1, border + 16 * SEGMENT), (2, border), (3, third.at())]);
    is_red("later", directory, "history", "00000004.history");
    let ran = check(&["--as", "archive", "--from", "0/500028"], directory).exits(4);
    let (passes, said) = super::restore_verdict(&ran);
    let end = walstat_format::lsn::Lsn(fourth.at().next_multiple_of(SEGMENT));
    assert!(passes && said.starts_with(&format!("restorable to LSN {end}")), "{said}");
}

#[test]
fn recovery_to_the_same_place_again_is_sound() {
    let (directory, early, _) = two_places();
    let directory = directory.path();
    let places = [(1, early.at()), (2, early.at()), (3, early.at())];
    for timeline in [2, 3, 4] {
        store(&promoted(&early, 1, timeline), early.at(), directory);
        history(directory, timeline, &places[..timeline as usize - 1]);
    }
    is_green("the same place", directory);
}

/// Three timelines, each of which leaves the one before; where timelines 2 and 3 begin.
fn one_after_the_other(directory: &Path) -> [u64; 2] {
    let first = timeline_1(3, true);
    let second = promoted(&first, 1, 2);
    let mut left = second.clone();
    write(&mut left, 40);
    let third = promoted(&left, 2, 3);
    store(&first, 0, directory);
    store(&left, first.at(), directory);
    store(&third, left.at(), directory);
    let begins = [first.at(), left.at()];
    history(directory, 2, &[(1, begins[0])]);
    history(directory, 3, &[(1, begins[0]), (2, begins[1])]);
    fs::remove_file(directory.join(format!("00000001{:016X}", begins[0] / SEGMENT))).expect("left");
    fs::remove_file(directory.join(format!("00000002{:016X}", begins[1] / SEGMENT))).expect("left");
    begins
}

/// A newer history that is wrong of an older timeline, or of which one it leaves: it is what is wrong, and no
/// segment.
#[test]
fn a_history_that_is_wrong_of_its_ancestors_is_blamed_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let [second, third] = one_after_the_other(directory);
    is_green("as it is", directory);
    let wrong = [
        vec![(1, second + SEGMENT), (2, third)],
        vec![(1, second + 2 * SEGMENT), (2, third)],
        vec![(1, third)],
        vec![(1, third), (2, third)],
        vec![(1, third), (2, third + 64)],
        vec![(1, third), (2, second)],
    ];
    for ancestors in wrong {
        history(directory, 3, &ancestors);
        is_red(&format!("{ancestors:?}"), directory, "history", "00000003.history");
    }
    // The segments of timeline 2 are found where timeline 1 has none.
    history(directory, 3, &[(1, second - SEGMENT), (2, third)]);
    is_green("a segment too early", directory);
    // Both say the same.
    for timeline in [2, 3] {
        let ancestors = [(1, second + SEGMENT), (2, third)];
        history(directory, timeline, &ancestors[..timeline as usize - 1]);
    }
    let told = told(&check(&["--as", "archive"], directory));
    let histories = ["00000002.history", "00000003.history"].map(str::to_owned);
    let blamed = told.iter().map(|(kind, file)| (kind.as_str(), file)).collect::<Vec<_>>();
    assert_eq!(blamed.len(), 2, "{told:?}");
    for history in &histories {
        assert!(blamed.contains(&("history", history)), "{told:?}");
    }
}

/// A timeline that leaves the first, though its history says that it leaves the second.
#[test]
fn a_history_that_names_another_parent_is_blamed_alone() {
    let (directory, early, late) = two_places();
    let directory = directory.path();
    store(&promoted(&early, 1, 2), early.at(), directory);
    store(&promoted(&late, 1, 3), late.at(), directory);
    history(directory, 2, &[(1, early.at())]);
    history(directory, 3, &[(1, late.at())]);
    is_green("as it is", directory);
    for ancestors in [
        vec![(1, early.at()), (2, late.at())],
        vec![(1, early.at()), (2, late.at() + 64)],
        vec![(1, early.at()), (2, late.at() - 64)],
        vec![(2, late.at())],
    ] {
        history(directory, 3, &ancestors);
        is_red(&format!("{ancestors:?}"), directory, "history", "00000003.history");
    }
}

/// `pg_archivecleanup` before 17 leaves histories of backups.
#[test]
fn a_backup_of_a_timeline_without_segments_was_removed() {
    let (directory, _, late) = two_places();
    let directory = directory.path();
    let second = promoted(&late, 1, 2);
    history(directory, 2, &[(1, late.at())]);
    let all = fs::read_dir(directory).expect("the archive").flatten();
    let segments = all.filter(|entry| entry.path().extension().is_none());
    segments.for_each(|entry| fs::remove_file(entry.path()).expect("a segment"));
    store(&second, late.at() + SEGMENT, directory);
    let backup = |name: &str| put(directory, &format!("{name}.00000028.backup"), b"START WAL");
    backup("000000010000000000000006");
    backup("000000010000000000000005");
    is_of_no_use(
        "of the timeline before",
        directory,
        "000000010000000000000006.00000028.backup: the WAL",
    );
    history(directory, 3, &[(1, late.at()), (2, second.at())]);
    backup("00000003000000000000000A");
    is_red("of a timeline that is lost", directory, "missing_segment", "00000003000000000000000A");
}

/// A server fills the rest of the segment in which it begins a timeline with copies of the page before
/// (`XLogFileCopy`), until it writes there.
#[test]
fn a_server_that_was_promoted_just_now_is_sound() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = timeline_1(2, true);
    history(directory.path(), 2, &[(1, place.at())]);
    let before = place.clone().finish();
    (FIRST..FIRST + 2).for_each(|number| before.write_segment(directory.path(), number));
    let mut wal = place.clone();
    wal.form.timeline = 2;
    wal.add(&Rec::begins(2, 1));
    let mut disk = wal.finish();
    let page = place.at() as usize % SEGMENT as usize / 8192 * 8192;
    let segment = disk.files.get_mut(&(FIRST + 2)).expect("the segment");
    let old = before.files[&(FIRST + 2)][page..page + 8192].to_vec();
    segment[page + 8192..].chunks_mut(8192).for_each(|rest| rest.copy_from_slice(&old));
    disk.write_segment(directory.path(), FIRST + 2);
    let ran = check(&["--as", "pg_wal"], directory.path());
    assert_eq!((told(&ran), ran.code), (vec![], Some(0)), "{}", ran.stderr);
}

/// Recovery takes the first number after all histories in the archive; in its own directory a server looks
/// for none.
#[test]
fn a_server_need_not_have_histories_of_timelines_that_it_never_had() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = timeline_1(2, true);
    store(&place, 0, directory.path());
    store(&promoted(&place, 1, 3), place.at(), directory.path());
    history(directory.path(), 3, &[(1, place.at())]);
    let ran = check(&["--as", "pg_wal"], directory.path());
    assert_eq!((told(&ran), ran.code), (vec![], Some(0)), "{}", ran.stderr);
    // In an archive it finds none after a gap.
    let missing = ("missing_history".to_owned(), "00000002.history".to_owned());
    let told = told(&check(&["--as", "archive"], directory.path()));
    assert!(told.contains(&missing), "{told:?}");
}

/// Timelines 1, 2 and 3, of which the third one begins with a segment.
fn three_timelines() -> (TempDir, [u64; 2]) {
    three_timelines_after(&timeline_1(2, true))
}

/// The same, where this is on timeline 1.
fn three_timelines_after(first: &Wal) -> (TempDir, [u64; 2]) {
    let directory = tempfile::tempdir().expect("a directory");
    let second = promoted(first, 1, 2);
    store(first, 0, directory.path());
    let open = format!("00000001{:016X}", first.at() / SEGMENT);
    fs::remove_file(directory.path().join(open)).expect("the segment that was left");
    store(&second, first.at(), directory.path());
    store(&promoted(&second, 2, 3), second.at(), directory.path());
    history(directory.path(), 2, &[(1, first.at())]);
    history(directory.path(), 3, &[(1, first.at()), (2, second.at())]);
    (directory, [first.at(), second.at()])
}

#[test]
fn a_history_that_lost_a_line_is_blamed_and_no_segment() {
    let (directory, [first, _]) = three_timelines();
    is_green("as it should be", directory.path());
    history(directory.path(), 3, &[(1, first)]);
    is_red("a line less", directory.path(), "history", "00000003.history");
}

/// `mismatching overwritten LSN`, which ends recovery.
#[test]
fn a_record_that_replaces_another_one_than_was_torn_is_a_problem() {
    for is_wrong in [false, true] {
        let mut wal = timeline_1(1, true);
        wal.tear(&Rec::sized(30_000), 1);
        if is_wrong {
            wal.misname_torn();
        }
        let lsn = wal.overwrite();
        write(&mut wal, 10);
        wal.switch();
        let directory = tempfile::tempdir().expect("a directory");
        store(&wal, 0, directory.path());
        if is_wrong {
            let name = format!("00000001{:016X}", lsn.0 / SEGMENT);
            is_red("another place", directory.path(), "record_body", &name);
        } else {
            is_green("its place", directory.path());
        }
    }
}

/// `unexpected timeline ID 7 (should be 1) in checkpoint record`. At the timeline before no server looks
/// where none begins.
#[test]
fn a_checkpoint_of_another_timeline_than_its_place_is_a_problem() {
    for (timeline, before, is_wrong) in [(7, 7, true), (1, 2, false)] {
        let mut wal = timeline_1(1, true);
        wal.add(&Rec::begins(timeline, before));
        write(&mut wal, 10);
        wal.switch();
        let directory = tempfile::tempdir().expect("a directory");
        store(&wal, 0, directory.path());
        let name = "000000010000000000000006";
        match is_wrong {
            true => is_red("a checkpoint", directory.path(), "record_body", name),
            false => is_green("a checkpoint", directory.path()),
        }
        let report = check(&["--as", "archive"], directory.path()).json();
        let found = report["problems"][0]["found"].as_str();
        assert_eq!(found, is_wrong.then_some("one of timeline 7"));
        let ran = finish(command(&["window", "-f", "json"]).arg(directory.path()));
        assert_eq!(told(&ran).len(), usize::from(is_wrong), "{}", ran.stdout);
    }
}

/// A server that follows the latest timeline looks for histories one by one, up to the first that it does not
/// get, and reads the last. `check` and `window` say the same of it.
#[test]
fn a_history_that_is_missed_ends_the_search_for_the_latest_timeline() {
    let mut first = timeline_1(1, true);
    let start = first.next();
    let mut end = Rec { xid: 0, ..Rec::new(0, 0x50, 8) };
    end.main.copy_from_slice(&start.0.to_le_bytes());
    first.add(&end);
    write(&mut first, 30);
    let early = first.next();
    write(&mut first, 100);
    let (directory, [_, third]) = three_timelines_after(&first);
    let (start, early, late) =
        (start.to_string(), early.to_string(), format!("0/{:X}", third + 0x10000));
    let window = |words: &[&str]| {
        let mut call = command(&["window", "-f", "json", "--as", "archive"]);
        finish(call.args(words).arg(directory.path())).json()["window"].clone()
    };
    let why =
        |words: &[&str]| window(words)["backups"][0]["why"].as_str().unwrap_or_default().to_owned();
    let said = |words: &[&str]| {
        let words = [&["--as", "archive", "--from", &start], words].concat();
        super::restore(&check(&words, directory.path()))
    };
    let is_reached = |target: &str| {
        let row = window(&["--target", target])["target"].clone();
        (row["reachable"].as_bool(), row["why"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(why(&[]), "");
    assert_eq!(is_reached(&late).0, Some(true));
    let second = directory.path().join("00000002.history");
    let text = fs::read(&second).expect("a history");
    let is_gone: [&dyn Fn(); 2] = [
        &|| fs::remove_file(&second).expect("removed"),
        // Nothing can be read there.
        &|| std::os::unix::fs::symlink("/proc/self/mem", &second).expect("a link"),
    ];
    for goes in is_gone {
        goes();
        for said in [why(&[]), said(&[])] {
            assert!(said.contains("restorable on timeline 1 only, not on timeline 3"), "{said}");
            assert!(said.contains("recovery_target_timeline = '3'"), "{said}");
        }
        assert_eq!(why(&["-t", "3"]), "");
        assert!(said(&["-t", "3"]).starts_with("restorable to LSN"), "{}", said(&["-t", "3"]));
        assert_eq!(is_reached(&early).0, Some(true));
        let (is_reached, why) = is_reached(&late);
        assert!(is_reached == Some(false) && why.contains("timeline = '3'"), "{why}");
    }
    fs::remove_file(&second).expect("removed");
    put(directory.path(), "00000002.history", &text);
    put(directory.path(), "00000003.history", b"garbage");
    for said in [why(&[]), said(&[])] {
        assert!(said.contains("a server does not start with 00000003.history"), "{said}");
    }
    assert_eq!(why(&["-t", "2"]), "");
}

/// `recovery target timeline 3 does not exist`: a server asks for the history of the timeline that it is told
/// to follow, and reads it, whatever else is packed beside it.
#[test]
fn a_timeline_is_followed_where_a_server_gets_its_history() {
    let mut first = timeline_1(1, true);
    let start = first.next();
    let mut end = Rec { xid: 0, ..Rec::new(0, 0x50, 8) };
    end.main.copy_from_slice(&start.0.to_le_bytes());
    first.add(&end);
    write(&mut first, 130);
    let (directory, [first, second]) = three_timelines_after(&first);
    let directory = directory.path();
    let (start, name) = (start.to_string(), "00000003.history");
    let restore = |words: &[&str]| {
        let ran = check(&[&["--as", "archive", "--from", &start], words].concat(), directory);
        let mut call = command(&["window", "-f", "json", "--as", "archive"]);
        let window = finish(call.args(words).arg(directory)).json()["window"].clone();
        let verdict = super::restore_verdict(&ran);
        assert_eq!(window["backups"][0]["usable"], verdict.0, "{window}");
        verdict
    };
    assert!(restore(&["-t", "3"]).0);
    let text = fs::read(directory.join(name)).expect("a history");
    put(directory, &format!("{name}.gz"), &gzip(&text));
    assert!(restore(&["-t", "3"]).0, "beside it");
    let other_place = format!("1\t0/{first:X}\tx\n2\t0/{:X}\tx\n", second + SEGMENT);
    for text in ["", "garbage", &other_place] {
        put(directory, name, text.as_bytes());
        for words in [&[][..], &["-t", "3"]] {
            let (passes, said) = restore(words);
            assert!(!passes && said.contains("in 00000003.history, its history"), "{said}");
        }
        assert!(restore(&["-t", "2"]).0);
    }
    fs::remove_file(directory.join(name)).expect("removed");
    let (passes, said) = restore(&["-t", "3"]);
    let expected = "asked for timeline 3 does not get its history, 00000003.history (found only";
    assert!(!passes && said.contains(expected), "{said}");
    // Of an older one it only asks whether it is there.
    put(directory, name, &text);
    history(directory, 2, &[(1, first + SEGMENT)]);
    let (passes, said) = restore(&[]);
    assert!(passes, "{said}");
    check(&["--as", "archive"], directory).exits(4);
}

/// Timeline 1, and timeline 2, which left it in segment 7 and fills three more; with the segments of both.
fn side_by_side() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let early = timeline_1(2, true);
    let mut first = early.clone();
    write(&mut first, 350);
    first.switch();
    let mut second = early.clone();
    second.form.timeline = 2;
    second.add(&Rec::begins(2, 1));
    write(&mut second, 10);
    // Nothing lies where it does on timeline 1.
    second.add(&Rec::data(100));
    write(&mut second, 400);
    second.switch();
    store(&first, 0, directory.path());
    store(&second, early.at(), directory.path());
    history(directory.path(), 2, &[(1, early.at())]);
    directory
}

/// `unexpected timeline ID 1 in WAL segment`: the file after it is right.
#[test]
fn a_segment_of_the_older_timeline_under_a_newer_name_is_blamed_alone() {
    for number in [8, 9] {
        let directory = side_by_side();
        is_green("side by side", directory.path());
        let of = |timeline: u32| directory.path().join(format!("{timeline:08X}{number:016X}"));
        fs::copy(of(1), of(2)).expect("a copy");
        let name = format!("00000002{number:016X}");
        is_red("under the other's name", directory.path(), "page_timeline", &name);
        // Through a tar, and night after night, it is told alike.
        let tar = tempfile::NamedTempFile::new().expect("a file");
        let mut builder = tar::Builder::new(tar.reopen().expect("the file"));
        builder.append_dir_all("wal", directory.path()).expect("all of it");
        builder.finish().expect("a tar");
        let expected = vec![("page_timeline".to_owned(), name.clone())];
        assert_eq!(told(&check(&["--as", "archive"], tar.path())), expected);
        let state = directory.path().with_extension("state");
        let state = state.to_str().expect("a path");
        for _ in 0..2 {
            let ran = check(&["--as", "archive", "--state", state], directory.path());
            assert_eq!(told(&ran), expected, "{}", ran.stderr);
        }
        let ran = check(&["--as", "archive", "-t", "1"], directory.path());
        assert_eq!(told(&ran), expected, "where the other timeline is followed: {}", ran.stderr);
        fs::remove_file(state).expect("the state");
    }
}

fn window_notes(directory: &Path) -> String {
    let ran = finish(command(&["window", "-f", "json", "--as", "archive"]).arg(directory));
    ran.json()["notes"].to_string()
}

/// Before 12 a server stays on the timeline of the backup unless it is told to follow another one.
#[test]
fn before_12_a_server_has_to_be_told_to_follow_another_timeline() {
    for (release, is_told) in [("11", true), ("12", false)] {
        let mut wal = Wal::new(Form::of(release), FIRST);
        let start = back_up(&mut wal);
        write(&mut wal, 30);
        let directory = tempfile::tempdir().expect("a directory");
        store(&promoted(&wal, 1, 2), 0, directory.path());
        history(directory.path(), 2, &[(1, wal.at())]);
        let (code, said) = restored(directory.path(), start, &[]);
        assert_eq!(code, Some(0), "{said}");
        let told = "; with recovery_target_timeline = '2' or 'latest' in recovery.conf: before 12";
        assert_eq!(said.contains(told), is_told, "{release}: {said}");
        let notes = window_notes(directory.path());
        let told =
            "backups are restored to timeline 2 with recovery_target_timeline = '2' or 'latest'";
        assert_eq!(notes.contains(told), is_told, "{release}: {notes}");
    }
}

/// As where somebody tried a restore and it archived a segment: what the server wrote since is not restored.
#[test]
fn what_an_older_timeline_has_since_is_told() {
    let fork = timeline_1(1, true);
    let mut older = fork.clone();
    write(&mut older, 400);
    older.switch();
    let directory = tempfile::tempdir().expect("a directory");
    store(&older, 0, directory.path());
    store(&promoted(&fork, 1, 2), fork.at(), directory.path());
    history(directory.path(), 2, &[(1, fork.at())]);
    let end = walstat_format::lsn::Lsn(older.at().next_multiple_of(SEGMENT));
    let said = format!(
        "timeline 2 is followed, which left it at {}: a restore does not have what timeline 1 wrote from \
         there on to {end} at most",
        walstat_format::lsn::Lsn(fork.at())
    );
    is_noted("an older timeline goes on", directory.path(), &said);
    let ran = check(&["--as", "archive", "-t", "2"], directory.path());
    assert!(!ran.stdout.contains("a restore does not have"), "{}", ran.stdout);
}

/// As in the archive of a cluster that `pg_upgrade` has made: `pg_resetwal` begins the WAL anew, some
/// segments on.
#[test]
fn segments_that_pg_resetwal_leaves_out_are_not_missing() {
    let written = |number: u64| {
        let mut wal = Wal::new(Form::of("15"), number);
        let start = back_up(&mut wal);
        write(&mut wal, 150);
        wal.switch();
        (wal, start)
    };
    let ((before, early), (after, late)) = (written(FIRST), written(FIRST + 4));
    let directory = tempfile::tempdir().expect("a directory");
    store(&before, 0, directory.path());
    store(&after, 0, directory.path());
    let (end, begin) = (0x70_0000, (FIRST + 4) * SEGMENT);
    let said = format!("no WAL from 0/{end:08X} to 0/{begin:08X}, where pg_resetwal");
    is_noted("between two beginnings", directory.path(), &said);
    let (code, told) = restored(directory.path(), late, &[]);
    assert!(code == Some(0) && told.starts_with("restorable to LSN 0/00B00000"), "{told}");
    let (code, told) = restored(directory.path(), early, &[]);
    assert!(code == Some(1) && told.contains(&format!("0/{end:08X} only")), "{told}");
    let window = finish(command(&["window", "-f", "json"]).arg(directory.path())).exits(0).json();
    let rows = window["window"]["backups"].as_array().expect("backups");
    let reaches: Vec<&Value> = rows.iter().map(|row| &row["reaches"]).collect();
    assert_eq!(reaches, ["0/00700000", "0/00B00000"], "{window}");
    // Behind the beginning segments may be missing.
    fs::remove_file(directory.path().join(format!("00000001{:016X}", FIRST + 4))).expect("one");
    is_red(
        "the first one is gone",
        directory.path(),
        "missing_segment",
        "000000010000000000000007",
    );
}

/// A server that is restored makes it again, and ends with FATAL where its directory is not there.
#[test]
fn the_directory_of_a_tablespace_that_was_made_since_is_named() {
    let mut wal = timeline_1(0, false);
    let created = |path: &[u8]| {
        let main = [&[1, 0x40, 0, 0], path, &[0]].concat();
        let mut record = Rec::new(TABLESPACE, 0x00, main.len());
        record.main.copy_from_slice(&main);
        record
    };
    wal.add(&created(b"/srv/before"));
    let start = back_up(&mut wal);
    // Within the data directory, from 15 on.
    wal.add(&created(b""));
    let lsn = wal.add(&created(b"/srv/fast"));
    wal.add(&created(b"/srv/slow"));
    write(&mut wal, 150);
    wal.switch();
    let directory = tempfile::tempdir().expect("a directory");
    store(&wal, 0, directory.path());
    let from = start.to_string();
    let notes = check(&["--as", "archive", "--from", &from], directory.path()).exits(0).json();
    let notes = notes["notes"].to_string();
    let told = format!(
        "CREATE TABLESPACE at {lsn}: a server that is restored ends there with FATAL where"
    );
    let told = format!("{told} /srv/fast, /srv/slow is no directory");
    assert!(notes.contains(&told), "{notes}");
    let notes = window_notes(directory.path());
    assert!(notes.contains(&told), "{notes}");
    is_green("nobody asks for a restore", directory.path());
    let notes = check(&["--as", "archive"], directory.path()).json()["notes"].to_string();
    assert!(!notes.contains("CREATE TABLESPACE"), "{notes}");
}
