//! Recovery with a transaction that is prepared in the segment in which a newer timeline begins: a server
//! reads its state once more, from the file of the older timeline, which `restore_command` was not asked for.

use super::is_noted;
use super::recovered::{FIRST, SEGMENT, history, promoted, store, timeline_1, write};
use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, Rec};
use crate::support::{command, finish};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::{TRANSACTION, XLOG};

/// `PREPARE TRANSACTION` of this transaction, without a name.
fn prepare(xid: u32) -> Rec {
    let mut record = Rec { xid, ..Rec::new(TRANSACTION, 0x10, 72) };
    record.main.fill(0);
    record.main[8..12].copy_from_slice(&xid.to_le_bytes());
    record
}

/// `COMMIT PREPARED` of it.
fn commit_prepared(xid: u32) -> Rec {
    let mut record = Rec { xid: 0, ..Rec::new(TRANSACTION, 0xB0, 16) };
    record.main[8..12].copy_from_slice(&0x10_u32.to_le_bytes());
    record.main[12..16].copy_from_slice(&xid.to_le_bytes());
    record
}

/// Begins a backup that ends at once; where it begins.
pub(super) fn back_up(wal: &mut Wal) -> Lsn {
    let start = wal.next();
    let mut end = Rec { xid: 0, ..Rec::new(XLOG, 0x50, 8) };
    end.main.copy_from_slice(&start.0.to_le_bytes());
    wal.add(&end);
    start
}

/// `XLOG/END_OF_RECOVERY`, with which a timeline begins where a server was promoted.
fn end_of_recovery(timeline: u32, before: u32) -> Rec {
    let mut record = Rec { xid: 0, ..Rec::new(XLOG, 0x90, 16) };
    record.main[8..12].copy_from_slice(&timeline.to_le_bytes());
    record.main[12..16].copy_from_slice(&before.to_le_bytes());
    record
}

/// An archive of timeline 1, which goes on, and of timeline 2, which leaves it where it stands.
fn archive(fork: &Wal, newer: &Wal) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut older = fork.clone();
    write(&mut older, 150);
    older.switch();
    store(&older, 0, directory.path());
    store(newer, fork.at(), directory.path());
    history(directory.path(), 2, &[(1, fork.at())]);
    directory
}

fn window(directory: &Path, words: &[&str]) -> Value {
    let mut call = command(&["window", "-f", "json", "--as", "archive"]);
    finish(call.args(words).arg(directory)).json()["window"].clone()
}

/// Whether an LSN can be reached, and why or why not.
fn reached(directory: &Path, lsn: Lsn, words: &[&str]) -> (bool, String) {
    let target = lsn.to_string();
    let row = window(directory, &[&["--target", &target], words].concat())["target"].clone();
    let why = row["why"].as_str().expect("a reason").to_owned();
    (row["reachable"].as_bool().expect("a verdict"), why)
}

#[test]
fn the_state_of_a_prepared_transaction_is_looked_for_in_the_file_of_its_timeline() {
    let mut wal = timeline_1(1, true);
    back_up(&mut wal);
    let at = wal.add(&prepare(701));
    let target = wal.add(&Rec::data(40));
    let ended = wal.clone();
    write(&mut wal, 5);
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    let [older, newer] = [1, 2].map(|timeline| format!("{timeline:08X}00000000{:08X}", FIRST + 1));
    let (is_reached, why) = reached(directory.path(), target, &[]);
    let told = format!(
        "transaction 701, prepared at {at}, is read again from pg_wal/{older}, where restore_command has put \
         {newer} only"
    );
    assert!(!is_reached && why.contains(&told), "{why}");
    assert!(why.contains("on timeline 1 it can be reached (-t 1)"), "{why}");
    let (is_reached, why) = reached(directory.path(), target, &["-t", "1"]);
    assert!(is_reached, "{why}");
    // Neither before it is prepared nor after it has ended, and not the file of another segment.
    let (is_reached, why) = reached(directory.path(), at, &["--target-exclusive"]);
    assert!(is_reached, "{why}");
    let mut wal = ended;
    let end = wal.add(&commit_prepared(701));
    let target = wal.add(&Rec::data(40));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    assert!(reached(directory.path(), target, &[]).0 && reached(directory.path(), end, &[]).0);
    assert!(!reached(directory.path(), end, &["--target-exclusive"]).0);
    let mut wal = timeline_1(1, true);
    back_up(&mut wal);
    wal.add(&prepare(701));
    wal.leave_in_segment(0);
    let target = wal.add(&Rec::data(40));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    assert!(reached(directory.path(), target, &[]).0, "of an earlier segment");
}

/// It lies in a file of a backup that begins after it.
#[test]
fn what_was_prepared_before_the_backup_is_found() {
    let mut wal = timeline_1(1, true);
    wal.add(&prepare(701));
    back_up(&mut wal);
    let target = wal.add(&Rec::data(40));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    let (is_reached, why) = reached(directory.path(), target, &[]);
    assert!(is_reached, "{why}");
}

/// The record goes on in the segment in which the newer timeline begins. Whichever thread reads it.
#[test]
fn the_end_of_a_state_may_be_what_is_missing() {
    let mut wal = timeline_1(3, true);
    back_up(&mut wal);
    wal.leave_in_segment(48);
    wal.add(&prepare(701));
    let target = wal.add(&Rec::data(40));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    for threads in ["-j1", "-j4"] {
        let (is_reached, why) = reached(directory.path(), target, &[threads]);
        assert!(!is_reached && why.contains("transaction 701"), "{threads}: {why}");
    }
}

/// Where a timeline begins with a checkpoint, a hot standby reads all states before it has come to it.
#[test]
fn a_hot_standby_ends_at_a_shutdown_checkpoint() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    wal.add(&prepare(701));
    let fork = wal.next();
    let by_checkpoint = promoted(&wal, 1, 2);
    let mut by_promotion = wal.clone();
    by_promotion.form.timeline = 2;
    by_promotion.add(&end_of_recovery(2, 1));
    write(&mut by_promotion, 150);
    by_promotion.switch();
    let late = Lsn((FIRST + 1) * SEGMENT + SEGMENT / 2);
    for (newer, is_well) in [(by_checkpoint, false), (by_promotion, true)] {
        let directory = archive(&wal, &newer);
        let (is_reached, why) = reached(directory.path(), late, &[]);
        assert_eq!(is_reached, is_well, "{why}");
        let backup = window(directory.path(), &[])["backups"][0].clone();
        assert_eq!(backup["start_lsn"], start.to_string());
        assert_eq!(backup["usable"], is_well, "{backup}");
        let told = format!("redo of the shutdown checkpoint at {fork} ends a hot standby");
        let why_not = backup["why"].as_str().unwrap_or_default();
        assert_eq!(why.contains(&told) && why_not.contains(&told), !is_well, "{why}, {why_not}");
    }
}

/// What `check` says of a restore from an LSN, and the exit code.
pub(super) fn restored(directory: &Path, start: Lsn, words: &[&str]) -> (Option<i32>, String) {
    let mut call = command(&["check", "-f", "json", "--as", "archive", "--from"]);
    let ran = finish(call.arg(start.to_string()).args(words).arg(directory));
    (ran.code, super::restore(&ran))
}

/// `check` says the same of it as `window`.
#[test]
fn check_knows_where_a_hot_standby_ends() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    wal.add(&prepare(701));
    let fork = wal.next();
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    for threads in ["-j1", "-j4"] {
        let (code, told) = restored(directory.path(), start, &[threads]);
        let why = format!(
            "restorable to LSN {fork} only: redo of the shutdown checkpoint at {fork} ends a hot standby \
             with FATAL: transaction 701"
        );
        assert!(code == Some(1) && told.contains(&why), "{told}");
    }
    // It is the only one that the WAL tells of; or there is none.
    let ran = super::check(&["--as", "archive"], directory.path()).exits(1);
    let told = super::restore(&ran);
    assert!(told.starts_with("no backup can be restored to the end: the newest"), "{told}");
    let mut wal = timeline_1(1, true);
    wal.add(&prepare(701));
    let without = archive(&wal, &promoted(&wal, 1, 2));
    is_noted("none", without.path(), "a backup from the beginning of this WAL is restorable to");
    // On the timeline itself, from a backup after it, and by a promotion.
    let (code, told) = restored(directory.path(), start, &["-t", "1"]);
    assert_eq!(code, Some(0), "{told}");
    let mut wal = timeline_1(1, true);
    wal.add(&prepare(701));
    let start = back_up(&mut wal);
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    assert_eq!(restored(directory.path(), start, &[]).0, Some(0));
}

/// The WAL breaks off before the newer timeline has begun in its segment.
#[test]
fn check_knows_where_a_server_does_not_open() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    wal.add(&prepare(701));
    write(&mut wal, 5);
    let broken = wal.next();
    wal.add(&Rec::data(40));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    let path = directory.path().join(format!("00000002{:016X}", FIRST + 1));
    let mut bytes = fs::read(&path).expect("a segment");
    bytes[(broken.0 % SEGMENT) as usize + 30] ^= 1;
    fs::write(&path, bytes).expect("a segment");
    let (code, told) = restored(directory.path(), start, &[]);
    assert!(
        code == Some(4) && told.contains("and end there with FATAL: transaction 701"),
        "{told}"
    );
    let backup = window(directory.path(), &[])["backups"][0].clone();
    assert_eq!(backup["usable"], false, "{backup}");
}

/// A server would not open before the commit of this transaction, so there is no target.
#[test]
fn events_have_no_target_at_which_a_server_does_not_open() {
    let with = |is_ended: bool| {
        let mut wal = timeline_1(1, true);
        back_up(&mut wal);
        wal.add(&prepare(701));
        if is_ended {
            wal.add(&commit_prepared(701));
        }
        wal.add(&Rec { xid: 702, ..Rec::insert(3).block(Block::new(0).data(40)) });
        let commit = wal.add(&Rec { xid: 702, ..Rec::new(TRANSACTION, 0x00, 8) });
        (archive(&wal, &promoted(&wal, 1, 2)), commit)
    };
    let events = |directory: &Path, words: &[&str]| {
        let mut call = command(&["events", "--min-rows", "1", "-f", "json", "--as", "archive"]);
        let report = finish(call.args(words).arg(directory)).json();
        (report["events"][0]["recovery_target"].clone(), report["notes"].to_string())
    };
    let (directory, commit) = with(false);
    for threads in ["-j1", "-j4"] {
        let (target, notes) = events(directory.path(), &[threads]);
        assert_eq!(target["recovery_target_lsn"], Value::Null, "{target}");
        let told = format!("it would stop at {commit}, and end there with FATAL: transaction 701");
        assert!(notes.contains("1 event has no recovery target") && notes.contains(&told));
    }
    let mut call = command(&["events", "--min-rows", "1", "--as", "archive"]);
    let shown = finish(call.arg(directory.path())).stdout;
    assert!(shown.contains("# no lines: it would stop at") && !shown.contains("recovery_target"));
    let place = commit.to_string();
    let (target, _) = events(directory.path(), &["-t", "1"]);
    assert_eq!(target["recovery_target_lsn"], place);
    let (directory, commit) = with(true);
    let (target, notes) = events(directory.path(), &[]);
    assert_eq!(target["recovery_target_lsn"], commit.to_string());
    assert!(!notes.contains("no recovery target"), "{notes}");
}

/// Redo of `PREPARE` wrote the state to a file.
#[test]
fn before_10_nothing_is_read_again() {
    let mut wal = Wal::new(Form::of("9.6"), FIRST);
    write(&mut wal, 10);
    back_up(&mut wal);
    wal.add(&prepare(701));
    let directory = archive(&wal, &promoted(&wal, 1, 2));
    let backup = window(directory.path(), &[])["backups"][0].clone();
    assert_eq!(backup["usable"], true, "{backup}");
}

/// A standby was promoted and thrown away: only its history is in the archive. From 16 on the new timeline
/// goes on from that one, and the states are read again as its history has it.
#[test]
fn a_newer_history_without_segments_keeps_a_server_from_opening() {
    for (release, is_well) in [("15", true), ("16", false), ("18", false)] {
        let mut wal = Wal::new(Form::of(release), FIRST);
        let start = back_up(&mut wal);
        let fork = wal.add(&Rec::data(40));
        wal.leave_in_segment(0);
        let mut ended = wal.clone();
        let at = wal.add(&prepare(701));
        ended.add(&prepare(701));
        ended.add(&commit_prepared(701));
        let of = |mut wal: Wal, has_history: bool| {
            write(&mut wal, 5);
            wal.switch();
            let directory = tempfile::tempdir().expect("a directory");
            store(&wal, 0, directory.path());
            if has_history {
                history(directory.path(), 2, &[(1, fork.0)]);
            }
            directory
        };
        let directory = of(wal.clone(), true);
        let (code, told) = restored(directory.path(), start, &[]);
        assert_eq!(code, Some(if is_well { 0 } else { 1 }), "{release}: {told}");
        let [newer, older] = [2, 1].map(|it| format!("{it:08X}00000000{:08X}", FIRST + 1));
        let why = format!(
            "transaction 701, prepared at {at}, is read again from pg_wal/{newer}, where restore_command has \
             put {older} only; with recovery_target_timeline = '1' it opens"
        );
        assert_eq!(told.contains(&why), !is_well, "{told}");
        assert_eq!(window(directory.path(), &[])["backups"][0]["usable"], is_well);
        // On the timeline itself, without the history, and where it has ended.
        assert_eq!(restored(directory.path(), start, &["-t", "1"]).0, Some(0));
        assert_eq!(restored(of(wal, false).path(), start, &[]).0, Some(0));
        assert_eq!(restored(of(ended, true).path(), start, &[]).0, Some(0));
    }
}

/// The timeline is that of the backup, whatever a record before its start told of an older one.
#[test]
fn where_a_timeline_began_does_not_have_to_be_known_before_the_backup() {
    let second = promoted(&timeline_1(1, true), 1, 2);
    let mut third = promoted(&second, 2, 3);
    third.leave_in_segment(0);
    let start = back_up(&mut third);
    third.add(&prepare(701));
    write(&mut third, 5);
    third.switch();
    let directory = tempfile::tempdir().expect("a directory");
    let begins = [timeline_1(1, true).at(), second.at()];
    store(&second, begins[0], directory.path());
    store(&third, begins[1], directory.path());
    history(directory.path(), 2, &[(1, begins[0])]);
    history(directory.path(), 3, &[(1, begins[0]), (2, begins[1])]);
    let (code, told) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(0), "{told}");
    let lost = format!("00000003{:016X}", begins[1] / SEGMENT);
    fs::remove_file(directory.path().join(lost)).expect("a segment");
    let (code, told) = restored(directory.path(), start, &[]);
    assert!(code == Some(4) && told.starts_with("restorable to LSN"), "{told}");
    assert!(!told.contains("only"), "{told}");
}

/// A server asks for every file in which the last record goes on.
#[test]
fn a_file_of_a_wrong_size_in_which_the_last_record_goes_on_ends_a_server() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    let last = wal.add(&Rec::sized(2_500_000));
    write(&mut wal, 5);
    wal.switch();
    let newest = wal.at().div_ceil(SEGMENT) - 1;
    assert!(newest > last.0 / SEGMENT + 1, "not over three files");
    let directory = tempfile::tempdir().expect("a directory");
    store(&wal, 0, directory.path());
    let path = directory.path().join(format!("00000001{newest:016X}"));
    let whole = fs::read(&path).expect("a segment");
    let (code, told) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(0), "{told}");
    for bytes in [0, 1, 100_000] {
        fs::write(&path, &whole[..bytes]).expect("a segment");
        for threads in ["-j1", "-j4"] {
            let (code, told) = restored(directory.path(), start, &[threads]);
            let gone = "once that file is gone: a server ends with FATAL at its wrong size";
            let ends = format!("restorable to LSN {last} only");
            assert!(code == Some(4) && told.contains(gone) && told.starts_with(&ends), "{told}");
        }
    }
    // Without it, the WAL ends there.
    fs::remove_file(&path).expect("a segment");
    let (code, told) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(0), "{told}");
}

/// A place that is a segment too early is no matter but for that: by it, the state is in a file of the newer
/// timeline.
#[test]
fn a_state_is_looked_for_as_the_history_says() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    let at = wal.add(&prepare(701));
    wal.leave_in_segment(0);
    let newer = promoted(&wal, 1, 2);
    let directory = archive(&wal, &newer);
    let (code, told) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(0), "{told}");
    history(directory.path(), 2, &[(1, at.0 + 0x8000)]);
    let (code, told) = restored(directory.path(), start, &[]);
    let why = format!("transaction 701, prepared at {at}, is read again from pg_wal/00000002");
    assert!(code == Some(1) && told.contains(&why), "{told}");
    // Whichever is prepared after it.
    let mut newer = newer;
    newer.add(&prepare(702));
    newer.switch();
    let directory = archive(&wal, &newer);
    history(directory.path(), 2, &[(1, at.0 + 0x8000)]);
    let (code, told) = restored(directory.path(), start, &[]);
    assert!(code == Some(1) && told.contains(&why), "{told}");
}

/// From 15 on it reads ahead of what it replays, and ends at a page of a timeline that it does not know.
#[test]
fn a_backup_that_ends_shortly_before_a_page_of_an_unknown_timeline_may_not_be_consistent() {
    for (release, is_ahead) in [("14", false), ("15", true)] {
        let mut wal = Wal::new(Form::of(release), FIRST);
        let start = back_up(&mut wal);
        wal.leave_in_segment(0);
        let far = wal.add(&Rec::data(40));
        write(&mut wal, 5);
        wal.switch();
        let directory = tempfile::tempdir().expect("a directory");
        store(&wal, 0, directory.path());
        let path = directory.path().join(format!("00000001{:016X}", FIRST + 1));
        let mut bytes = fs::read(&path).expect("a segment");
        bytes[4] = 33;
        fs::write(&path, bytes).expect("a segment");
        let (_, told) = restored(directory.path(), start, &[]);
        let is_far = far.0 - start.0 > 512 * 1024;
        let is_said = told.contains("not restorable with recovery_prefetch");
        assert_eq!((is_far, is_said), (true, false), "{release}: {told}");
        assert_eq!(told.contains("reads ahead (recovery_prefetch)"), is_ahead, "{told}");
    }
    // The backup ends right before it, with an XLOG_SWITCH.
    let mut wal = Wal::new(Form::of("15"), FIRST);
    write(&mut wal, 5);
    let start = back_up(&mut wal);
    wal.switch();
    write(&mut wal, 5);
    wal.switch();
    let directory = tempfile::tempdir().expect("a directory");
    store(&wal, 0, directory.path());
    let path = directory.path().join(format!("00000001{:016X}", FIRST + 1));
    let mut bytes = fs::read(&path).expect("a segment");
    bytes[4] = 33;
    fs::write(&path, bytes).expect("a segment");
    let (_, told) = restored(directory.path(), start, &[]);
    assert!(told.starts_with("not restorable with recovery_prefetch"), "{told}");
    assert_eq!(window(directory.path(), &[])["backups"][0]["usable"], false);
}

/// From 15 on it asks for the next file while it replays what comes before.
#[test]
fn a_target_shortly_before_a_file_that_ends_a_server_may_not_be_reached() {
    for (release, is_ahead) in [("14", false), ("15", true)] {
        let mut wal = Wal::new(Form::of(release), FIRST);
        let start = back_up(&mut wal);
        write(&mut wal, 20);
        let early = wal.add(&Rec::data(40));
        write(&mut wal, 60);
        let late = wal.add(&Rec::data(40));
        wal.leave_in_segment(0);
        write(&mut wal, 5);
        wal.switch();
        let directory = tempfile::tempdir().expect("a directory");
        store(&wal, 0, directory.path());
        let path = directory.path().join(format!("00000001{:016X}", FIRST + 1));
        let whole = fs::read(&path).expect("a segment");
        fs::write(&path, &whole[..5000]).expect("a segment");
        assert!(early > start);
        for (target, is_near) in [(early, false), (late, true)] {
            let (is_reached, why) = reached(directory.path(), target, &[]);
            let is_said = why.contains("recovery_prefetch = off gets there");
            assert_eq!((is_reached, is_said), (true, is_ahead && is_near), "{release}: {why}");
        }
    }
}

/// A timeline that leaves another one where that stands, with a shutdown checkpoint as a server writes it.
pub(super) fn begun_by_checkpoint(wal: &Wal, from: u32, to: u32) -> Wal {
    let mut wal = wal.clone();
    wal.form.timeline = to;
    let mut begin = Rec::begins(to, from);
    begin.main[..8].copy_from_slice(&wal.next().0.to_le_bytes());
    wal.add(&begin);
    write(&mut wal, 150);
    wal.switch();
    wal
}

/// A hot standby reads the history of the timeline that it has come to, and nobody else does.
#[test]
fn a_broken_older_history_ends_a_hot_standby_that_reads_a_state() {
    for is_prepared in [false, true] {
        let mut wal = timeline_1(1, true);
        let start = back_up(&mut wal);
        if is_prepared {
            wal.add(&prepare(701));
        }
        wal.leave_in_segment(0);
        let second = begun_by_checkpoint(&wal, 1, 2);
        let third = begun_by_checkpoint(&second, 2, 3);
        let directory = archive(&wal, &second);
        store(&third, second.at(), directory.path());
        history(directory.path(), 3, &[(1, wal.at()), (2, second.at())]);
        let (code, told) = restored(directory.path(), start, &[]);
        assert_eq!(code, Some(0), "{told}");
        fs::write(directory.path().join("00000002.history"), "garbage").expect("a history");
        let (code, told) = restored(directory.path(), start, &[]);
        let is_ended = told.contains("again it reads 00000002.history");
        assert_eq!((code, is_ended), (Some(4), is_prepared), "{told}");
    }
}

/// So it does at the checkpoint with which the older timeline was shut down, before it was left.
#[test]
fn a_broken_older_history_ends_a_hot_standby_where_its_timeline_was_shut_down() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    wal.add(&prepare(701));
    wal.leave_in_segment(0);
    let mut second = wal.clone();
    second.form.timeline = 2;
    second.add(&end_of_recovery(2, 1));
    write(&mut second, 30);
    let mut shutdown = Rec::begins(2, 2);
    shutdown.main[..8].copy_from_slice(&second.next().0.to_le_bytes());
    let at = second.add(&shutdown);
    let directory = archive(&wal, &second);
    store(&promoted(&second, 2, 3), second.at(), directory.path());
    history(directory.path(), 3, &[(1, wal.at()), (2, second.at())]);
    let (code, told) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(0), "{told}");
    fs::write(directory.path().join("00000002.history"), "garbage").expect("a history");
    let (code, told) = restored(directory.path(), start, &[]);
    let is_it =
        told.contains(&format!("redo of the shutdown checkpoint at {at} ends a hot standby"));
    assert_eq!((code, is_it), (Some(4), true), "{told}");
}

/// To a server, all there ever was is of the timeline whose history is empty: it finds what was prepared
/// there.
#[test]
fn an_empty_older_history_ends_a_hot_standby_where_the_state_is_of_another_timeline() {
    for is_of_second in [false, true] {
        let mut wal = timeline_1(1, true);
        let start = back_up(&mut wal);
        if !is_of_second {
            wal.add(&prepare(701));
        }
        wal.leave_in_segment(0);
        let mut second = wal.clone();
        second.form.timeline = 2;
        second.add(&Rec::begins(2, 1));
        if is_of_second {
            second.add(&prepare(701));
        }
        write(&mut second, 150);
        second.switch();
        let third = begun_by_checkpoint(&second, 2, 3);
        let directory = archive(&wal, &second);
        store(&third, second.at(), directory.path());
        history(directory.path(), 3, &[(1, wal.at()), (2, second.at())]);
        let (code, told) = restored(directory.path(), start, &[]);
        assert_eq!(code, Some(0), "{told}");
        fs::write(directory.path().join("00000002.history"), "").expect("a history");
        let (code, told) = restored(directory.path(), start, &[]);
        let is_ended = told.contains("again it reads 00000002.history");
        assert_eq!((code, is_ended), (Some(4), !is_of_second), "{told}");
    }
}
