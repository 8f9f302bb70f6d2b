//! `walstat window` on stored WAL: the base backup with its archive, timelines, and WAL without a backup.
//! What real servers do with such targets is held in the live tests.

use crate::support::fixtures::{fixtures, sample};
use crate::support::wal::plain;
use crate::support::{Ran, command, finish, walstat};
use serde_json::Value;
use std::io::Seek;
use std::path::{Path, PathBuf};

fn archive() -> PathBuf {
    fixtures().join("backup/archive")
}

fn window(paths: &[&Path], more: &[&str]) -> Ran {
    let paths = paths.iter().map(|path| path.to_str().expect("a path"));
    let words: Vec<&str> =
        ["window", "-f", "json"].into_iter().chain(more.iter().copied()).collect();
    walstat(&words.into_iter().chain(paths).collect::<Vec<&str>>())
}

fn told(ran: &Ran) -> Value {
    let report: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr));
    assert_eq!(report["command"], "window");
    report["window"].clone()
}

#[test]
fn the_backup_of_an_archive_is_known_from_its_history() {
    let ran = window(&[&archive()], &[]).exits(0);
    let window = told(&ran);
    let backup = &window["backups"][0];
    assert_eq!(window["backups"].as_array().map(Vec::len), Some(1), "{window}");
    assert_eq!(backup["label"], "pg_basebackup base backup");
    assert_eq!(backup["start_lsn"], "0/00800028");
    assert_eq!(backup["consistent_from"], "0/00800100");
    assert_eq!(backup["usable"], true);
    assert_eq!(backup["reaches"], "0/00B00000");
    assert_eq!(backup["start_time"], "2026-11-21T09:13:32.000000Z");
    let timeline = &window["timelines"][0];
    assert_eq!(timeline["last_time"], "2026-11-21T09:13:33.459891Z");
    assert_eq!((&timeline["last_xid"], &timeline["ends_by"]), (&"728".into(), &"switch".into()));
    assert!(window["target"].is_null() && window["gaps"].as_array().is_some_and(Vec::is_empty));
}

/// What a backup's directory says of it counts beside what its history in the archive does.
#[test]
fn the_directory_of_a_backup_is_judged_also_where_the_archive_has_its_history() {
    let base = fixtures().join("backup/base");
    let window_of = |directory: &Path| {
        let label = directory.to_str().expect("a path");
        window(&[&archive()], &["--backup-label", label])
    };
    let rows = told(&window_of(&base).exits(0))["backups"].clone();
    assert_eq!((&rows[0]["usable"], &rows[1]), (&true.into(), &Value::Null), "{rows}");
    let copy = tempfile::tempdir().expect("a directory");
    crate::support::catalogs::copy_tree(&base, copy.path());
    let control = copy.path().join("global/pg_control");
    let mut bytes = std::fs::read(&control).expect("pg_control");
    bytes[40] ^= 1;
    std::fs::write(&control, bytes).expect("written");
    let rows = told(&window_of(copy.path()).exits(1))["backups"].clone();
    let why = rows[0]["why"].to_string();
    assert!(rows[1].is_null() && why.contains("the backup's pg_control"), "{rows}");
}

/// However the history of a backup is given: as a file, in a tar, on standard input.
#[test]
fn the_label_of_a_backup_is_told_however_its_history_is_given() {
    let whole = told(&window(&[&archive()], &["--target", "xid:728"]).exits(0));
    let mut files: Vec<PathBuf> = std::fs::read_dir(archive())
        .expect("an archive")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let here = tempfile::tempdir().expect("a directory");
    let tar = here.path().join("wal.tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&tar).expect("a file"));
    builder.append_dir_all("wal", archive()).expect("packed");
    builder.finish().expect("packed");
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    for paths in [&files[..], &[&tar]] {
        for target in [&["--target", "xid:728"][..], &[]] {
            let window = told(&window(paths, target).exits(0));
            assert_eq!(window["backups"], whole["backups"], "{paths:?}");
            assert!(target.is_empty() || window["target"] == whole["target"], "{window}");
        }
    }
    let mut command = command(&["window", "-f", "json", "-"]);
    let ran = finish(command.stdin(std::fs::File::open(&tar).expect("the tar"))).exits(0);
    assert_eq!(told(&ran)["backups"], whole["backups"]);
}

/// The backups of the archive and another one that begins with its own.
fn backups_beside(taken_from: &str, timeline: u32) -> Value {
    let label = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "START WAL LOCATION: 0/800028 (file {timeline:08X}0000000000000008)\nCHECKPOINT LOCATION: 0/800060\n\
         BACKUP METHOD: streamed\nBACKUP FROM: {taken_from}\nSTART TIMELINE: {timeline}\n"
    );
    std::fs::write(label.path(), text).expect("a label");
    let label = label.path().to_str().expect("UTF-8");
    told(&window(&[&archive()], &["--backup-label", label]))["backups"].clone()
}

/// A standby begins its backups at the checkpoint from which it would start, as the primary's may, too.
#[test]
fn a_backup_of_a_standby_is_another_than_the_primarys_that_begins_with_it() {
    let rows = backups_beside("standby", 1);
    let primary = told(&window(&[&archive()], &[]))["backups"][0].clone();
    let rows = rows.as_array().expect("backups");
    assert_eq!((rows.len(), &rows[0]), (2, &primary));
    let of_standby = [&rows[1]["start_lsn"], &rows[1]["stop_lsn"], &rows[1]["consistent_from"]];
    assert_eq!(of_standby, [&primary["start_lsn"], &Value::Null, &Value::Null]);
    let why = rows[1]["why"].to_string();
    assert!(rows[1]["usable"] == false && why.contains("not known to be restorable"), "{why}");
}

/// Two timelines have the same places, and a backup may begin at the same one on each.
#[test]
fn a_backup_of_another_timeline_is_another_one_that_begins_at_the_same_place() {
    let rows = backups_beside("primary", 2);
    let alone = told(&window(&[&archive()], &[]))["backups"][0].clone();
    let rows = rows.as_array().expect("backups");
    assert_eq!((rows.len(), &rows[0]), (2, &alone));
    assert_eq!((&rows[0]["usable"], &rows[1]["usable"]), (&true.into(), &false.into()));
    let why = rows[1]["why"].to_string();
    assert!(why.contains("the backup is of timeline 2"), "{why}");
}

#[test]
fn each_target_is_reached_or_it_is_said_why_not() {
    let last = "2026-11-21T09:13:33.459891Z";
    for (target, code, words) in [
        ("xid:728", 0, "ends transaction 728"),
        ("xid:9999", 1, "no record is of transaction 9999"),
        ("0/00AD4508", 0, "is the last that is replayed"),
        ("0/00C00000", 1, "the WAL ends at 0/00B00000"),
        (
            "0/00700028",
            1,
            "stop at 0/00800028, before 0/00800100, where the oldest usable backup is consistent",
        ),
        ("2026-11-21 09:13:33.459890", 0, "ends the first transaction after it"),
        (last, 1, "no transaction ends after it: the last end is of 2026-11-21T09:13:33.459891Z"),
        // Nothing ends while the backup is taken, so a server stops right after it.
        ("2020-01-01", 0, "; but the backup ended at 2026-11-21T09:13:3"),
        ("name:nothing", 1, "no restore point has this name"),
    ] {
        let ran = window(&[&archive()], &["--target", target]).exits(code);
        let target = &told(&ran)["target"];
        assert_eq!(target["reachable"], code == 0, "{target}");
        assert!(target["why"].as_str().is_some_and(|why| why.contains(words)), "{target}");
        assert_eq!(target["backup_start_lsn"].is_null(), code == 1, "{target}");
    }
}

/// A history of a backup that begins and ends with a checkpoint of the PostgreSQL 15 sample.
fn backup_history(directory: &Path, segment: &str, [redo, checkpoint, stop]: [u32; 3], time: &str) {
    let file = format!("{segment}.{:08X}.backup", redo & 0xF_FFFF);
    let text = format!(
        "START WAL LOCATION: 0/{redo:X} (file {segment})\nSTOP WAL LOCATION: 0/{stop:X} (file {segment})\n\
         CHECKPOINT LOCATION: 0/{checkpoint:X}\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
         START TIME: {time} UTC\nLABEL: x\nSTART TIMELINE: 1\nSTOP TIME: {time} UTC\n"
    );
    std::fs::write(directory.join(file), text).expect("a history");
}

#[test]
fn a_time_is_reached_from_the_newest_backup_that_ended_before_it() {
    let directory = tempfile::tempdir().expect("a folder");
    let sample = sample("pg15-mixed");
    for name in sample.segments() {
        std::fs::write(directory.path().join(&name), plain(&sample, &name)).expect("a copy");
    }
    let (old, new) = ("0/009423B0", "0/00E4D580");
    let histories = |time: [&str; 2]| {
        let places = [0x94_23B0, 0x94_23E8, 0x94_2460];
        backup_history(directory.path(), "000000010000000000000009", places, time[0]);
        let places = [0xE4_D580, 0xE4_D5B8, 0xE4_D640];
        backup_history(directory.path(), "00000001000000000000000E", places, time[1]);
    };
    let target = |time: &str| {
        let target = format!("2026-11-21 04:40:{time}");
        told(&window(&[directory.path()], &["--target", &target]).exits(0))["target"].clone()
    };
    // Both ended in the second of the target: which transactions they have, the WAL tells.
    histories(["2026-11-21 04:40:57"; 2]);
    for (time, start) in [("57.75", old), ("57.85", old), ("57.9", new)] {
        let target = target(time);
        assert_eq!(target["backup_start_lsn"], start, "{time}: {target}");
        assert!(target["why"].as_str().is_some_and(|why| !why.contains("; but")), "{target}");
    }
    let too_late = target("57.5");
    assert_eq!(too_late["backup_start_lsn"], old);
    let why = too_late["why"].as_str().expect("why");
    assert!(why.contains("0/00942460, contains the transaction that ends at 0/00720CD8"), "{why}");
    histories(["2026-11-21 04:40:57", "2026-11-21 04:40:58"]);
    assert_eq!(target("57.9")["backup_start_lsn"], old, "the newer one ended after it");
}

/// A server reads none: what is sound stays so.
#[test]
fn a_damaged_history_of_a_backup_is_no_damage() {
    let directory = tempfile::tempdir().expect("a folder");
    let mut history = PathBuf::new();
    for entry in std::fs::read_dir(archive()).expect("the archive").flatten() {
        let path = directory.path().join(entry.file_name());
        std::fs::copy(entry.path(), &path).expect("a copy");
        if path.extension().is_some_and(|suffix| suffix == "backup") {
            history = path;
        }
    }
    let sound = std::fs::read_to_string(&history).expect("a history");
    let cut = sound.find("060\n").expect("its checkpoint");
    for damaged in [
        sound.clone(),
        sound[..cut].to_owned(),
        sound.replace("0/800060", "0/800061"),
        sound.replace("STOP WAL LOCATION: 0/", "STOP WAL LOCATION: 1/"),
        sound.replace("STOP WAL LOCATION: 0/800100", "STOP WAL LOCATION: 0/8FF100"),
    ] {
        std::fs::write(&history, &damaged).expect("a history");
        let mut call = command(&["check", "--as", "archive"]);
        finish(call.arg(directory.path()).env_remove("GITHUB_STEP_SUMMARY")).exits(0);
        let backups = told(&window(&[directory.path()], &[]).exits(0))["backups"].clone();
        let [row] = backups.as_array().map_or(&[][..], Vec::as_slice) else {
            panic!("{damaged}: {backups}")
        };
        assert_eq!(row["start_lsn"], "0/00800028", "{damaged}");
        assert_eq!(row["consistent_from"], "0/00800100", "{damaged}");
    }
}

/// `recovery_target_inclusive = off` stops before what is named, and at a time that something ends at.
#[test]
fn a_target_that_is_not_inclusive_is_stopped_before() {
    let stops = |target: &str, more: &[&str]| {
        let words = [&["--target", target], more].concat();
        let target = told(&window(&[&archive()], &words))["target"].clone();
        (target["stops_before_lsn"].as_str().map(str::to_owned), target["inclusive"] == true)
    };
    let off = ["--target-exclusive"];
    let end = "2026-11-21T09:13:33.459891Z";
    assert_eq!(stops(end, &[]), (None, true), "nothing ends later");
    let (Some(before), false) = stops(end, &off) else { panic!("it can be reached") };
    assert_eq!(stops("xid:728", &off), (Some(before.clone()), false));
    assert_eq!(stops(&before, &off), (Some(before.clone()), false));
    let (Some(after), true) = stops("xid:728", &[]) else { panic!("it can be reached") };
    assert_eq!(stops(&before, &[]), (Some(after.clone()), true));
    assert!(before < after, "{before} {after}");
    window(&[&archive()], &off).exits(2);
}

#[test]
fn what_may_lie_in_a_gap_is_not_said_to_be_nowhere() {
    let directory = tempfile::tempdir().expect("a folder");
    for name in ["08.zst", "0A.zst", "08.00000028.backup"] {
        let file = archive().join(format!("0000000100000000000000{name}"));
        std::fs::copy(&file, directory.path().join(file.file_name().expect("a name")))
            .expect("a copy");
    }
    for target in ["name:nothing", "2026-12-01", "xid:9999"] {
        let target = &told(&window(&[directory.path()], &["--target", target]).exits(4))["target"];
        let why = target["why"].as_str().expect("why");
        let says = why.starts_with("it may lie in the gap at 0/00900000 (missing_segment)");
        assert!(says && target["reachable"] == false, "{why}");
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    for name in ["pg15-mixed", "timeline"] {
        let wal = sample(name).wal;
        for target in ["0/00700000", "xid:730", "name:here", "2026-11-21 04:40:57.9"] {
            let one = window(&[&wal], &["--target", target, "-j", "1"]);
            for threads in ["2", "5"] {
                let many = window(&[&wal], &["--target", target, "-j", threads]);
                assert_eq!((many.code, &many.stdout), (one.code, &one.stdout), "{name} {target}");
            }
        }
    }
}

#[test]
fn each_timeline_has_its_end_and_restore_points_are_told() {
    let window_of = |name: &str, more: &[&str]| told(&window(&[&sample(name).wal], more));
    let both = window_of("timeline", &[]);
    let rows = both["timelines"].as_array().expect("timelines");
    assert_eq!(rows.len(), 2, "{both}");
    assert_eq!(rows[0]["end_lsn"], rows[1]["start_lsn"]);
    assert_eq!(rows[0]["ends_by"], "timeline_switch");
    // The older one alone goes on where the newer one left it.
    let old = window_of("timeline", &["-t", "1"]);
    let rows = old["timelines"].as_array().expect("timelines");
    let numbers: Vec<&Value> = rows.iter().map(|row| &row["timeline"]).collect();
    assert_eq!(numbers, [1, 2], "{old}");
    let points = &window_of("pg15-mixed", &[])["restore_points"];
    assert_eq!((&points[0]["name"], &points[0]["lsn"]), (&"here".into(), &"0/01187E58".into()));
}

/// A target that only the timeline which is not followed has.
#[test]
fn a_target_of_another_timeline_is_told_where_it_is() {
    let wal = sample("timeline").wal;
    let ran = window(&[&wal], &["-t", "1", "--target", "xid:735"]).exits(1);
    let why = told(&ran)["target"]["why"].to_string();
    assert!(why.contains("no record is of transaction 735"), "{why}");
    assert!(why.contains("on timeline 2 it can be reached (-t 2)"), "{why}");
    let ran = window(&[&wal], &["-t", "1", "--target", "xid:99999"]).exits(1);
    let why = told(&ran)["target"]["why"].to_string();
    assert!(!why.contains("on timeline"), "{why}");
}

/// Servers before 13 do not fail where a target is not reached.
#[test]
fn what_a_server_does_short_of_the_target_is_that_of_its_release() {
    for (name, does) in [
        ("pg12-mixed", "recovery would replay all of the WAL, and the server would open after it"),
        ("pg13-mixed", "recovery would end before the target and fail"),
    ] {
        let wal = sample(name).wal;
        let report = walstat(&["--stats=checkpoint", "-f", "json", wal.to_str().expect("UTF-8")]);
        let report = report.exits(0).json();
        let rows = report["checkpoints"].as_array().expect("checkpoints").iter();
        let online = rows.filter(|row| row["kind"] == "online").nth(1).expect("a checkpoint");
        let place = |key: &str| online[key].as_str().expect("an LSN").to_owned();
        let label = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "START WAL LOCATION: {} (file 00000001000000000000000D)\nCHECKPOINT LOCATION: {}\n\
             BACKUP METHOD: pg_start_backup\nBACKUP FROM: standby\nSTART TIMELINE: 1\n",
            place("redo_lsn"),
            place("checkpoint_lsn")
        );
        std::fs::write(label.path(), text).expect("a label");
        let label = label.path().to_str().expect("UTF-8");
        let ran = window(&[&wal], &["--backup-label", label, "--target", "xid:99999"]).exits(1);
        let why = told(&ran)["target"]["why"].to_string();
        assert!(why.contains(&format!("no record is of transaction 99999; {does}")), "{why}");
    }
}

/// A tar on standard input has gone by when the other timeline would be read.
#[test]
fn a_timeline_that_a_pipe_cannot_tell_is_spoken_of() {
    let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
    tar.append_dir_all("wal", &sample("timeline").wal).expect("a tar");
    let mut tar = tar.into_inner().expect("a tar");
    tar.rewind().expect("a file");
    let ran = finish(command(&["window", "-f", "json", "-t", "1", "-"]).stdin(tar));
    let report = ran.json();
    let rows = report["window"]["timelines"].as_array().expect("timelines");
    assert_eq!(rows.len(), 1, "{report}");
    let note = "timeline 2 is left out: a pipe can be read only once";
    assert!(
        report["notes"].as_array().is_some_and(|notes| notes.contains(&note.into())),
        "{report}"
    );
}

#[test]
fn without_a_backup_nothing_can_be_restored() {
    let wal = sample("pg15-mixed").wal;
    let ran = window(&[&wal], &["--target", "name:here"]).exits(1);
    let target = &told(&ran)["target"];
    assert_eq!(target["why"], "no backup is known: --backup-label names one");
    let label = fixtures().join("backup/base/backup_label");
    let label = label.to_str().expect("a path");
    // Its checkpoint is not in this WAL, which is of another cluster.
    let ran = window(&[&wal], &["--backup-label", label]).exits(1);
    assert_eq!(told(&ran)["backups"][0]["usable"], false);
}

#[test]
fn a_segment_that_is_missing_is_a_gap_which_targets_behind_it_are_not_reached_over() {
    let names = ["08.zst", "0A.zst", "08.00000028.backup"];
    let files = names.map(|name| archive().join(format!("0000000100000000000000{name}")));
    let directory = tempfile::tempdir().expect("a folder");
    for file in &files {
        std::fs::copy(file, directory.path().join(file.file_name().expect("a name")))
            .expect("a copy");
    }
    let ran = window(&[directory.path()], &["--target", "xid:728"]).exits(4);
    let window = told(&ran);
    let gap = &window["gaps"][0];
    assert_eq!((&gap["start_lsn"], &gap["end_lsn"]), (&"0/00900000".into(), &"0/00A00000".into()));
    assert_eq!(window["target"]["reachable"], false);
    let why = window["target"]["why"].as_str().expect("why");
    assert!(why.contains("the WAL is good to 0/00900000 only: missing_segment"), "{why}");
    assert_eq!(window["backups"][0]["usable"], true, "it is consistent before the gap");
}

/// A server follows the latest timeline, as `check --backup-label` says.
#[test]
fn a_history_of_a_timeline_that_leaves_before_the_backup_is_in_the_way() {
    let directory = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(archive()).expect("the archive") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name");
        std::fs::copy(&path, directory.path().join(name)).expect("a copy");
    }
    window(&[directory.path()], &[]).exits(0);
    let history = directory.path().join("00000002.history");
    std::fs::write(history, "1\t0/700000\tx\n").expect("written");
    let ran = window(&[directory.path()], &[]).exits(1);
    let why = told(&ran)["backups"][0]["why"].to_string();
    assert!(why.contains("follows timeline 2, which has no segments"), "{why}");
    window(&[directory.path()], &["--timeline", "1"]).exits(0);
}

#[test]
fn what_makes_no_sense_is_usage_and_what_cannot_be_read_says_so() {
    let wal = archive();
    for words in [["--target", "soon"], ["--target", "xid:x"], ["--start", "0/1"], ["--limit", "5"]]
    {
        let ran = window(&[&wal], &words).exits(2);
        assert_eq!(ran.stdout, "", "{words:?}");
    }
    let ran = window(&[Path::new("/nowhere")], &[]).exits(3);
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(answer["command"] == "window" && answer["error"].is_string(), "{answer}");
    let path = wal.to_str().expect("a path");
    let ran = walstat(&["window", "--target", "xid:728", path]).exits(0);
    for words in
        ["xid:728 can be reached", "TIMELINE", "BACKUP", "recovery replays all before 0/00AD"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

/// 9.6 knows no `recovery_target_lsn`.
#[test]
fn an_lsn_is_no_target_of_a_release_that_knows_none() {
    let wal = sample("pg9.6-mixed").wal;
    let bare = told(&window(&[&wal], &[]));
    let commit = bare["timelines"][0]["last_commit_lsn"].as_str().expect("a commit");
    for exclusive in [&[][..], &["--target-exclusive"]] {
        let asked = [&["--target", commit], exclusive].concat();
        let target = told(&window(&[&wal], &asked).exits(1))["target"].clone();
        let why = target["why"].as_str().expect("why");
        assert!(why.contains("PostgreSQL 9.6 knows no recovery_target_lsn"), "{target}");
        assert!(target["stops_before_lsn"].is_null() && target["reachable"] == false, "{target}");
    }
}
