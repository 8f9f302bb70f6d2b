//! Restore readiness, on a base backup and the archive that a real server made for it.

use super::archive::check;
use crate::common::builder::{Form, Wal};
use crate::common::changed::{Places, Stretch};
use crate::common::one_change::{of, put};
use crate::common::record::Rec;
use crate::support::fixtures::{fixtures, sample};
use crate::support::{Ran, command, finish};
use crate::ways::tar_of;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use walstat_format::rmgr::XLOG;

fn backup() -> PathBuf {
    fixtures().join("backup")
}

fn label() -> PathBuf {
    backup().join("base/backup_label")
}

fn history() -> PathBuf {
    backup().join("archive/000000010000000000000008.00000028.backup")
}

/// The archive's segments from `first` to `last` (last two digits), copied.
fn segments(first: u32, last: u32) -> Vec<PathBuf> {
    (first..=last)
        .map(|n| backup().join(format!("archive/0000000100000000000000{n:02X}.zst")))
        .collect()
}

fn restore(paths: &[PathBuf], label: &Path) -> Ran {
    let mut command = check(&[] as &[&str]);
    command.arg("--backup-label").arg(label).args(paths);
    finish(&mut command)
}

pub(super) fn sentence(ran: &Ran) -> String {
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("restore: "));
    line.unwrap_or_else(|| panic!("no sentence on the restore:\n{}", ran.stdout)).to_owned()
}

/// A label that differs from the real one.
fn changed(directory: &tempfile::TempDir, from: &str, to: &str) -> PathBuf {
    let text = fs::read_to_string(history()).expect("the history file");
    assert!(text.contains(from), "{from} is not in\n{text}");
    let path = directory.path().join("changed.backup");
    fs::write(&path, text.replace(from, to)).expect("a label");
    path
}

#[test]
fn a_backup_with_all_its_wal_is_restorable_to_the_end() {
    for label in [label(), history(), backup().join("base")] {
        let ran = restore(&[backup().join("archive")], &label).exits(0);
        let want = "restorable to LSN 0/00B00000 (time 2026-11-21T09:13:33.459891Z)";
        assert_eq!(sentence(&ran), want);
    }
    // What lies before the backup is not needed.
    restore(&segments(8, 10), &label()).exits(0);
    // The end of the backup is enough.
    let ran = restore(&segments(8, 8), &label()).exits(0);
    assert!(sentence(&ran).starts_with("restorable to LSN 0/00900000"), "{}", sentence(&ran));
}

/// A server that was recovered to a point in time has its target in `postgresql.auto.conf` ever after,
/// and so have its backups.
#[test]
fn a_target_in_the_backups_own_settings_is_said() {
    let base = tempfile::tempdir().expect("a directory");
    fs::copy(label(), base.path().join("backup_label")).expect("the label");
    let notes = |target: &str| {
        fs::write(base.path().join("postgresql.auto.conf"), target).expect("settings");
        let ran = restore(&[backup().join("archive")], base.path()).exits(0);
        let note = "end a restore before the end of the WAL, or with FATAL: ";
        let told =
            ran.stdout.split_once(note).and_then(|(_, told)| told.split_once("; take them out"));
        told.map(|(targets, _)| targets.to_owned())
    };
    assert_eq!(notes("recovery_target_xid = 800").as_deref(), Some("recovery_target_xid = '800'"));
    assert_eq!(notes("recovery_target_xid = ''"), None);
    let other = notes("recovery_target_timeline = 2");
    assert_eq!(other.as_deref(), Some("recovery_target_timeline = '2'"));
    // That of the archive.
    assert_eq!(notes("recovery_target_timeline = 1"), None);
    assert_eq!(notes("recovery_target_timeline = current"), None);
}

#[test]
fn wal_that_begins_behind_the_start_fails() {
    let ran = restore(&segments(9, 10), &label()).exits(1);
    let want = "not restorable: the WAL begins at 0/00900000, the backup needs it from 0/00800028";
    assert_eq!(sentence(&ran), want);
}

#[test]
fn wal_that_ends_before_the_start_fails() {
    let ran = restore(&segments(6, 7), &label()).exits(1);
    assert!(sentence(&ran).starts_with("not restorable: the WAL ends at "), "{}", sentence(&ran));
}

#[test]
fn a_gap_behind_the_start_is_damage_and_limits_the_restore() {
    let paths = [segments(8, 8), segments(10, 10)].concat();
    let ran = restore(&paths, &label()).exits(4);
    let want = "restorable to LSN 0/00900000 only, not to the end at 0/00B00000: missing_segment in \
                000000010000000000000009";
    assert_eq!(sentence(&ran), want);
}

#[test]
fn a_gap_before_the_start_is_damage_but_not_the_restores() {
    let paths = [segments(6, 6), segments(8, 10)].concat();
    let ran = restore(&paths, &label()).exits(4);
    assert!(sentence(&ran).starts_with("restorable to LSN 0/00B00000 (time"), "{}", sentence(&ran));
}

/// Zeros in the segment before the one in which the backup starts. A record that begins still earlier is lost
/// with it, and the one that goes on into the backup's segment ends before the start.
#[test]
fn damage_that_ends_just_before_the_start_is_not_the_restores() {
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.leave_in_segment(4000);
    wal.add(&Rec::sized(9000));
    wal.leave_in_segment(80);
    wal.add(&Rec::sized(400));
    let start = wal.add(&Rec::data(40));
    wal.switch();
    let mut disk = wal.finish();
    disk.files.get_mut(&6).expect("the segment").fill(0);
    let directory = disk.write();
    let ran =
        finish(check(&["--as", "archive", "--from", &start.to_string()]).arg(directory.path()));
    let restored = sentence(&ran.exits(4));
    assert!(restored.starts_with("restorable to LSN 0/00800000; only"), "{restored}");
}

/// Damage in which a torn record begins, so that the one that replaces it seems to name another: a server
/// stops at the damage, or before it.
#[test]
fn damage_before_a_torn_record_is_where_a_restore_ends() {
    let mut wal = Wal::new(Form::of("16"), 5);
    let start = wal.add(&Rec::data(40));
    wal.leave_in_segment(200_000);
    let damaged = wal.add(&Rec::sized(30_000));
    wal.tear(&Rec::data(40_000), 3);
    wal.overwrite();
    wal.add(&Rec::data(9));
    wal.switch();
    let mut disk = wal.finish();
    let number = damaged.0 >> 20;
    let from = (damaged.0 % (1 << 20)).next_multiple_of(8192) as usize;
    disk.files.get_mut(&number).expect("the segment")[from..from + 4 * 8192].fill(0xFF);
    let restored = || {
        let directory = disk.write();
        let mut check = check(&["--as", "archive", "--from", &start.to_string()]);
        sentence(&finish(check.arg(directory.path())).exits(4))
    };
    let expected = format!("restorable to LSN {damaged}");
    assert!(restored().starts_with(&expected), "{}", restored());
}

#[test]
fn a_missing_start_between_others_is_damage() {
    let paths = [segments(6, 7), segments(9, 10)].concat();
    let ran = restore(&paths, &label()).exits(4);
    let want =
        "not restorable: segment 000000010000000000000008 with the backup's 0/00800028 is missing";
    assert_eq!(sentence(&ran), want);
}

#[test]
fn another_cluster_is_told_by_pg_control_or_by_the_checkpoint() {
    let other = [sample("pg15-mixed").wal];
    let ran = restore(&other, &label()).exits(1);
    assert!(
        sentence(&ran).contains("of cluster 7710550395683285183, the WAL of cluster "),
        "{}",
        sentence(&ran)
    );
    let ran = restore(&other, &history()).exits(1);
    assert!(sentence(&ran).contains("no checkpoint record at 0/00800060"), "{}", sentence(&ran));
}

/// Its history is archived after them.
#[test]
fn the_segments_in_which_a_backup_ends_are_missing_where_they_are_not_there() {
    let directory = tempfile::tempdir().expect("a directory");
    for segment in segments(6, 8) {
        fs::copy(&segment, directory.path().join(segment.file_name().expect("a name")))
            .expect("a file copied");
    }
    let text = fs::read_to_string(history()).expect("the history file");
    let later = text.replace(
        "STOP WAL LOCATION: 0/800100 (file 000000010000000000000008)",
        "STOP WAL LOCATION: 0/900100 (file 000000010000000000000009)",
    );
    assert_ne!(text, later);
    let path = directory.path().join(history().file_name().expect("a name"));
    fs::write(&path, text).expect("a file");
    finish(check(&["--as", "archive"]).arg(directory.path())).exits(0);
    fs::write(&path, later).expect("a file");
    let ran = finish(check(&["--as", "archive"]).arg(directory.path())).exits(4);
    let want = "000000010000000000000009, in which the backup that begins at 0/00800028 ends";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

/// As after pg_upgrade with the same archive_command.
#[test]
fn of_two_clusters_in_an_archive_the_backups_is_restored() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut other = Wal::new(Form::of("16"), 64);
    (0..12).for_each(|_| other.leave_in_segment(0));
    let other = other.finish();
    other.files.keys().for_each(|number| other.write_segment(directory.path(), *number));
    for segment in segments(8, 10) {
        let name = segment.file_stem().expect("a name").to_owned();
        let packed = fs::File::open(&segment).expect("a segment");
        let bytes = zstd::decode_all(packed).expect("zstd");
        fs::write(directory.path().join(name), bytes).expect("a file");
    }
    let paths = [directory.path().to_owned()];
    let ran = restore(&paths, &label()).exits(4);
    assert!(sentence(&ran).starts_with("restorable to LSN 0/00B"), "{}", sentence(&ran));
    assert!(ran.stdout.contains("other_release"), "{}", ran.stdout);
}

#[test]
fn another_timeline_or_redo_point_is_another_backup() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = [backup().join("archive")];
    for (from, to, words) in [
        (
            "START TIMELINE: 1",
            "START TIMELINE: 2",
            "the backup is of timeline 2, the WAL at 0/00800060 of timeline 1",
        ),
        (
            "START WAL LOCATION: 0/800028",
            "START WAL LOCATION: 0/800000",
            "begins at 0/00800028, the backup's label says 0/00800000",
        ),
    ] {
        let ran = restore(&archive, &changed(&directory, from, to)).exits(1);
        assert!(sentence(&ran).contains(words), "{}", sentence(&ran));
    }
}

/// A server reads no history of a backup, and the WAL says where this one ends.
#[test]
fn where_a_backup_ends_is_what_the_wal_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = changed(&directory, "STOP WAL LOCATION: 0/800100", "STOP WAL LOCATION: 0/F00000");
    let ran = restore(&[backup().join("archive")], &path).exits(0);
    assert!(sentence(&ran).starts_with("restorable to LSN 0/00B00000"), "{}", sentence(&ran));
}

/// The full backup that is made of an incremental one begins where that does.
#[test]
fn the_history_of_an_incremental_backup_tells_what_wal_it_needs() {
    let directory = tempfile::tempdir().expect("a directory");
    let lines = "INCREMENTAL FROM LSN: 0/600028\nINCREMENTAL FROM TLI: 1\n";
    let path = changed(&directory, "STOP TIMELINE: 1\n", &format!("STOP TIMELINE: 1\n{lines}"));
    let ran = restore(&[backup().join("archive")], &path).exits(0);
    assert!(sentence(&ran).starts_with("restorable to LSN 0/00B00000"), "{}", sentence(&ran));
    assert!(sentence(&ran).contains("pg_combinebackup makes a full one"), "{}", sentence(&ran));
}

/// `sscanf` takes more than what a server writes.
#[test]
fn an_lsn_of_a_label_is_read_as_a_server_reads_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = [backup().join("archive")];
    for lsn in ["0x0/0x800060", "0X0/800060", "+0/ 00800060", "0x/800060"] {
        let path = changed(&directory, "LOCATION: 0/800060", &format!("LOCATION: {lsn}"));
        let ran = restore(&archive, &path).exits(0);
        assert!(sentence(&ran).starts_with("restorable to LSN 0/00B00000"), "{lsn}");
    }
    for lsn in ["0 /800060", "0/x800060", "800060"] {
        let path = changed(&directory, "LOCATION: 0/800060", &format!("LOCATION: {lsn}"));
        restore(&archive, &path).exits(3);
    }
}

/// Up to 14 a server goes by the checkpoint that the label names, up to 10 by its timeline, too.
#[test]
fn older_releases_take_from_a_label_where_its_checkpoint_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("of.backup");
    let judged = |release: &str, checkpoint: &str, start: &str, timeline: u32| {
        let text = format!(
            "START WAL LOCATION: {start} (file 0000000{timeline}0000000000000009)\n\
             STOP WAL LOCATION: 0/B00000 (file 00000001000000000000000A)\n\
             CHECKPOINT LOCATION: {checkpoint}\nBACKUP METHOD: streamed\nBACKUP FROM: master\n"
        );
        fs::write(&path, text).expect("a label");
        let ran = restore(&[sample(&format!("pg{release}-mixed")).wal], &path);
        (ran.code, sentence(&ran))
    };
    for (release, checkpoint, redo) in
        [("10", "0/951CC8", "0/951C90"), ("14", "0/A40F00", "0/A40EC8")]
    {
        let whole = judged(release, checkpoint, redo, 1);
        assert_eq!(whole.0, Some(0), "{release}: {}", whole.1);
        for start in ["0/700028", "0/900008", checkpoint, "0/A60000"] {
            assert_eq!(judged(release, checkpoint, start, 1), whole, "{release}: {start}");
        }
        let other = judged(release, checkpoint, redo, 2);
        assert_eq!(other == whole, release == "10", "{release}: {}", other.1);
    }
}

/// As a server says it of the checkpoint with which recovery begins, and of no other.
#[test]
fn the_checkpoint_of_a_backup_has_a_next_transaction() {
    let plain = tempfile::tempdir().expect("a directory");
    let packed = fs::read(&segments(8, 8)[0]).expect("a segment");
    let segment = zstd::decode_all(packed.as_slice()).expect("zstd");
    fs::write(plain.path().join("000000010000000000000008"), segment).expect("a segment");
    let stretch = Stretch::read(plain.path(), "15", 0, 1).expect("records");
    let without_xid = |bytes: &mut [u8], places: &Places| {
        of(bytes, XLOG, 0x10)?;
        put(bytes, places.main.start + 24, &[0; 8])
    };
    let (disk, _) = stretch.with(without_xid).expect("a checkpoint");
    let ran = restore(&[disk.write().path().to_owned()], &label()).exits(1);
    assert!(sentence(&ran).ends_with("\"invalid next transaction ID\""), "{}", sentence(&ran));
}

#[test]
fn without_the_end_of_the_backup_it_is_not_consistent() {
    let mut command = check(&["--end", "0/8000D8"]);
    command.arg("--backup-label").arg(label()).arg(backup().join("archive"));
    let ran = finish(&mut command).exits(1);
    assert!(
        sentence(&ran).contains("the end of the backup is not in the WAL"),
        "{}",
        sentence(&ran)
    );
}

#[test]
fn from_an_lsn_only_wholeness_is_asked() {
    for (from, code, words) in [
        ("0/900028", 0, "restorable to LSN 0/00B00000 (time "),
        ("0/100028", 1, "the WAL begins at 0/00600000, the backup needs it from 0/00100028"),
        ("0/B00028", 1, "the WAL ends at 0/00B00000, before the backup's 0/00B00028"),
    ] {
        let mut command = check(&["--from", from]);
        let ran = finish(command.arg(backup().join("archive"))).exits(code);
        assert!(sentence(&ran).contains(words), "{}", sentence(&ran));
    }
}

#[test]
fn what_is_no_label_is_said() {
    let archive = [backup().join("archive")];
    for file in ["Cargo.toml", "nowhere"] {
        let ran = restore(&archive, Path::new(file)).exits(3);
        assert!(ran.stderr.starts_with(&format!("walstat: {file}: ")), "{}", ran.stderr);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
    }
}

/// A server says the end of the last whole record, which is not where the missing segment begins.
#[test]
fn the_end_is_that_of_the_last_whole_record() {
    let sample = sample("pg15-mixed");
    let names = ["000000010000000000000007", "000000010000000000000008"];
    let paths = names.map(|name| sample.segment(name));
    let mut command = check(&["--from", "0/700028"]);
    let ran = finish(command.args(&paths)).exits(0);
    let told = sentence(&ran);
    let end = told.strip_prefix("restorable to LSN ").and_then(|rest| rest.split(' ').next());
    let end = end.unwrap_or_else(|| panic!("{told}"));
    assert!(("0/008F0000".."0/00900000").contains(&end), "{told}");
    assert!(told.contains("(time 2026-"), "{told}");

    // With a hole after them it is the same end.
    let third = sample.segment("00000001000000000000000A");
    let mut command = check(&["--from", "0/700028"]);
    let ran = finish(command.args(&paths).arg(third)).exits(4);
    assert!(
        sentence(&ran).contains(&format!("restorable to LSN {end} (time")),
        "{}",
        sentence(&ran)
    );
}

/// What only a `.partial` has, no server asks for.
#[test]
fn a_partial_segment_is_not_restored() {
    let sample = sample("pg15-mixed");
    let mut command = check(&["--from", "0/1500028"]);
    let ran = finish(command.arg(&sample.wal)).exits(0);
    let told = sentence(&ran);
    assert!(told.starts_with("restorable to LSN 0/016F"), "{told}");
}

#[test]
fn a_label_is_found_in_the_tar_of_a_base_backup() {
    let base = copied_base();
    let read = |name: &str| fs::read(base.path().join(name)).expect("a file of the backup");
    let (label, control) = (read("backup_label"), read("global/pg_control"));
    let members: [(&str, &[u8]); 3] =
        [("./PG_VERSION", b"15\n"), ("./backup_label", &label), ("./global/pg_control", &control)];
    let tar = tar_of(&members);
    let packed = zstd::encode_all(tar.as_slice(), 1).expect("a vector takes all");
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [("base.tar", tar), ("base.tar.zst", packed)] {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("a tar");
        let ran = restore(&[backup().join("archive")], &path).exits(0);
        assert!(sentence(&ran).starts_with("restorable to LSN 0/00B00000"), "{name}");
    }
    let other = directory.path().join("other.tar");
    fs::write(&other, tar_of(&members[..1])).expect("a tar");
    let ran = restore(&[backup().join("archive")], &other).exits(3);
    assert!(ran.stderr.contains("no backup_label in this tar"), "{}", ran.stderr);
}

/// Nobody restores a tar that is cut off, one without `pg_control`, or one of another cluster; but a label
/// may be packed alone.
#[test]
fn the_tar_of_a_backup_is_whole_and_of_the_cluster() {
    let base = copied_base();
    let read = |name: &str| fs::read(base.path().join(name)).expect("a file of the backup");
    let (label, control) = (read("backup_label"), read("global/pg_control"));
    let mut other = control.clone();
    other[0] ^= 1;
    let checksum = crc32c::crc32c(&other[..288]).to_le_bytes();
    other[288..292].copy_from_slice(&checksum);
    let label = ("backup_label", label.as_slice());
    let version: (&str, &[u8]) = ("PG_VERSION", b"15\n");
    let whole = tar_of(&[label, version, ("global/pg_control", &control)]);
    let tars = [
        (whole[..1600].to_vec(), "not restorable: the backup's pg_control: the tar"),
        (
            tar_of(&[label, version]),
            "not restorable: the backup's pg_control: it is not in the tar",
        ),
        (
            tar_of(&[label, version, ("global/pg_control", &other)]),
            "not restorable: the backup is of cluster",
        ),
    ];
    for (tar, told) in tars {
        let said = sentence(&restored_from_tar(&tar).exits(1));
        assert!(said.starts_with(told), "{said}");
    }
    for tar in [tar_of(&[label]), whole] {
        restored_from_tar(&tar).exits(0);
    }
}

/// What is said of a backup that is this tar.
fn restored_from_tar(tar: &[u8]) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("base.tar");
    fs::write(&path, tar).expect("a tar");
    restore(&[backup().join("archive")], &path)
}

/// The base backup, of which a test may change files.
fn copied_base() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("global")).expect("a folder");
    for file in ["backup_label", "global/pg_control"] {
        fs::copy(backup().join("base").join(file), folder.path().join(file)).expect("a copy");
    }
    folder
}

/// `pg_basebackup` writes it last: where it was killed before, there is none. Zeros are what a crash of the
/// file system leaves of it.
#[test]
fn a_backup_without_its_pg_control_is_not_restorable() {
    let folder = copied_base();
    let archive = [backup().join("archive")];
    let path = folder.path().join("global/pg_control");
    fs::remove_file(&path).expect("removed");
    restore(&archive, folder.path()).exits(0);
    fs::write(folder.path().join("PG_VERSION"), "15\n").expect("a file");
    let refused = || {
        let ran = restore(&archive, folder.path()).exits(1);
        let said = sentence(&ran);
        assert!(said.starts_with("not restorable: the backup's pg_control: "), "{said}");
    };
    refused();
    fs::write(&path, [0; 8192]).expect("zeros");
    refused();
}

/// Somebody may keep the label and pg_control alone: only of a data directory more is asked.
#[test]
fn a_backup_without_other_files_that_a_server_needs_is_not_restorable() {
    let folder = copied_base();
    let archive = [backup().join("archive")];
    let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("a file");
    let refused = |what: &str| {
        let said = sentence(&restore(&archive, folder.path()).exits(1));
        assert_eq!(said, format!("not restorable: the backup's {what}"));
    };
    put("PG_VERSION", "15\n");
    restore(&archive, folder.path()).exits(0);
    fs::create_dir_all(folder.path().join("base/1")).expect("a folder");
    refused("global/pg_filenode.map: no such file");
    put("global/pg_filenode.map", "");
    let directories = [
        "pg_commit_ts",
        "pg_logical/mappings",
        "pg_logical/snapshots",
        "pg_notify",
        "pg_replslot",
        "pg_subtrans",
        "pg_tblspc",
    ];
    for directory in directories {
        fs::create_dir_all(folder.path().join(directory)).expect("a folder");
    }
    refused("pg_twophase: no such directory, which may be empty and has to be there");
    fs::create_dir(folder.path().join("pg_twophase")).expect("a folder");
    restore(&archive, folder.path()).exits(0);
    put("PG_VERSION", "14\n");
    refused("PG_VERSION: another release than 15, that of pg_control");
    fs::remove_file(folder.path().join("PG_VERSION")).expect("removed");
    refused("PG_VERSION: no such file");
}

/// No server makes it; and one that goes on loses its WAL, where the backup's leads to it.
#[cfg(unix)]
#[test]
fn a_backup_without_a_directory_of_wal_of_its_own_is_spoken_of() {
    let folder = copied_base();
    let archive = [backup().join("archive")];
    let wal = folder.path().join("pg_wal");
    let said = || restore(&archive, folder.path()).exits(0).stdout;
    assert!(!said().contains("pg_wal"), "a label alone");
    fs::write(folder.path().join("PG_VERSION"), "15\n").expect("a file");
    assert!(said().contains("the backup has no directory pg_wal"), "{}", said());
    std::os::unix::fs::symlink("/nowhere", &wal).expect("a link");
    assert!(said().contains("a link to /nowhere, where no directory is"), "{}", said());
    fs::remove_file(&wal).expect("removed");
    std::os::unix::fs::symlink(&archive[0], &wal).expect("a link");
    assert!(said().contains("writes there, and removes WAL there"), "{}", said());
}

/// A server takes from the backup's own pg_wal what the archive lacks.
#[test]
fn wal_in_the_backup_itself_is_spoken_of() {
    let folder = copied_base();
    let own = folder.path().join("pg_wal");
    fs::create_dir(&own).expect("a folder");
    let segment = segments(8, 8).remove(0);
    let bytes = zstd::decode_all(&fs::read(segment).expect("a segment")[..]).expect("zstd");
    fs::write(own.join("000000010000000000000008"), bytes).expect("a segment");
    let note =
        "the backup's own pg_wal has 000000010000000000000008, which a server takes from there";
    let rest = segments(9, 10);
    let ran = restore(&rest, folder.path()).exits(1);
    assert!(sentence(&ran).starts_with("not restorable"), "{}", sentence(&ran));
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    let ran = restore(&[&rest[..], std::slice::from_ref(&own)].concat(), folder.path()).exits(0);
    assert!(!ran.stdout.contains("own pg_wal"), "{}", ran.stdout);
    // A copy of the whole directory has segments that its server had made ready for later.
    let [eighth, later] = ["08", "0B"].map(|it| own.join(format!("0000000100000000000000{it}")));
    fs::copy(&eighth, &later).expect("a copy");
    let ran = restore(&rest, folder.path()).exits(1);
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    fs::write(&later, vec![0; 1 << 20]).expect("zeros");
    let ran = restore(&rest, folder.path()).exits(1);
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    fs::remove_file(later).expect("the copy");
    // As `pg_receivewal` has it of the newest one: no server asks for that.
    let received = tempfile::tempdir().expect("a folder");
    let partial = received.path().join("000000010000000000000008.partial");
    fs::copy(own.join("000000010000000000000008"), &partial).expect("a copy");
    let ran = restore(&[&[partial], &rest[..]].concat(), folder.path());
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    let ran = restore(&segments(8, 10), folder.path()).exits(0);
    assert!(!ran.stdout.contains("own pg_wal"), "{}", ran.stdout);
}

/// A backup of a standby, taken soon after a switchover, has the newest timeline's first segment before the
/// archive has it. A server takes that rather than the older timeline's, which the archive has.
#[test]
fn wal_in_the_backup_is_taken_where_it_is_of_a_newer_timeline() {
    let archive = tempfile::tempdir().expect("a folder");
    for segment in segments(8, 9) {
        let name = segment.file_name().expect("a name");
        fs::copy(&segment, archive.path().join(name)).expect("a copy");
    }
    let history = archive.path().join("00000002.history");
    fs::write(history, "1\t0/900028\tno recovery target specified\n").expect("a history");
    let folder = copied_base();
    let own = folder.path().join("pg_wal");
    fs::create_dir(&own).expect("a folder");
    for name in ["000000010000000000000008", "000000010000000000000009", "000000020000000000000009"]
    {
        fs::write(own.join(name), "").expect("a segment");
    }
    let said = || restore(&[archive.path().to_owned()], folder.path()).stdout;
    assert!(said().contains("own pg_wal has 000000020000000000000009, which"), "{}", said());
    // The backup's timeline may be one of which the archive has nothing yet.
    let label = folder.path().join("backup_label");
    let text = fs::read_to_string(&label).expect("a label").replace("TIMELINE: 1", "TIMELINE: 3");
    let text = text.replace("file 000000010000000000000008", "file 000000030000000000000008");
    fs::write(&label, text).expect("a label");
    fs::write(own.join("00000003.history"), "1\t0/7F0000\tx\n").expect("a history");
    fs::write(own.join("000000030000000000000008"), "").expect("a segment");
    assert!(said().contains("own pg_wal has 000000030000000000000008, which"), "{}", said());
}

/// pgBackRest, Barman and `pg_basebackup -Ft` make a directory with the data directory or a tar of it.
#[test]
fn the_directory_of_a_backup_is_as_its_tool_makes_it() {
    let text = fs::read(label()).expect("the label");
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    tar.append_data(&mut header, "backup_label", &text[..]).expect("a tar");
    let control = fs::read(backup().join("base/global/pg_control")).expect("pg_control");
    header.set_size(control.len() as u64);
    tar.append_data(&mut header, "global/pg_control", &control[..]).expect("a tar");
    let tar = tar.into_inner().expect("a tar");
    let packed = zstd::encode_all(&text[..], 1).expect("zstd");
    for (file, bytes) in [
        ("pg_data/backup_label.zst", &packed),
        ("data/backup_label", &text),
        ("base.tar", &tar),
        ("data/base.tar", &tar),
        ("tar_partitions/backup_label.tar", &tar),
        ("backup_label.tar", &tar),
    ] {
        let made = tempfile::tempdir().expect("a folder");
        let path = made.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        restore(&[backup().join("archive")], made.path()).exits(0);
        // What lies in the data directory is noted.
        let signal = path.with_file_name("standby.signal");
        fs::write(signal, "").expect("a file");
        let said = restore(&[backup().join("archive")], made.path()).stdout;
        assert_eq!(said.contains("standby.signal"), file == "data/backup_label", "{file}: {said}");
        // By the label itself, too, and by who asks how far the backup can be restored.
        if file == "data/backup_label" {
            let said = restore(&[backup().join("archive")], &path).stdout;
            assert!(said.contains("standby.signal is in the backup"), "{said}");
            for given in [made.path(), &path] {
                let mut window = command(&["window", "--backup-label"]);
                let ran = finish(window.arg(given).arg(backup().join("archive"))).exits(0);
                assert!(ran.stdout.contains("standby.signal is in the backup"), "{}", ran.stdout);
            }
        }
    }
    let none = tempfile::tempdir().expect("a folder");
    let ran = restore(&[backup().join("archive")], none.path()).exits(3);
    assert!(ran.stderr.contains("no backup_label in this directory"), "{}", ran.stderr);
}

#[test]
fn a_label_that_a_server_refuses_is_refused() {
    let text = fs::read_to_string(label()).expect("the label");
    let of_windows = text.replace('\n', "\r\n");
    let trailing = text.replacen(")\n", ") \n", 1);
    // A backup history file says the same, and where the backup ended.
    let of_history = fs::read_to_string(history()).expect("a backup history file");
    let texts = [(format!("\n{text}"), 1), (of_windows, 1), (trailing, 1), (of_history, 2)];
    for (text, line) in texts {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("backup_label");
        fs::write(&path, text).expect("a label");
        let ran = restore(&[backup().join("archive")], &path).exits(3);
        assert!(ran.stderr.contains(&format!("line {line} is")), "{}", ran.stderr);
        assert!(ran.stderr.contains("a server refuses the file"), "{}", ran.stderr);
    }
}

#[test]
fn an_incremental_backup_is_restored_by_nobody_as_it_is() {
    let folder = copied_base();
    let path = folder.path().join("backup_label");
    let text = fs::read_to_string(&path).expect("the label");
    let lines = "INCREMENTAL FROM LSN: 0/500000\nINCREMENTAL FROM TLI: 1\n";
    fs::write(&path, format!("{text}{lines}")).expect("a label");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(1);
    assert!(sentence(&ran).contains("pg_combinebackup"), "{}", sentence(&ran));
}

#[test]
fn a_backup_with_a_broken_pg_control_is_not_restorable() {
    let folder = copied_base();
    let path = folder.path().join("global/pg_control");
    let mut bytes = fs::read(&path).expect("pg_control");
    bytes[40] ^= 1;
    fs::write(&path, bytes).expect("pg_control");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(1);
    assert!(sentence(&ran).starts_with("not restorable: the backup's pg_control: found checksum"));
}

/// A record that goes on in it is broken: the file in which that begins is named, and not this one, which the
/// server fetches to read it.
#[test]
fn a_file_of_a_wrong_size_in_which_a_broken_record_goes_on_has_to_go_too() {
    let directory = tempfile::tempdir().expect("a directory");
    for path in segments(8, 10) {
        let mut bytes = zstd::decode_all(&fs::read(&path).expect("a segment")[..]).expect("zstd");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        if name.ends_with("0A") {
            bytes[44..60].iter_mut().for_each(|byte| *byte ^= 0x55);
            bytes.push(b'x');
        }
        fs::write(directory.path().join(name), bytes).expect("a copy");
    }
    let said = sentence(&restore(&[directory.path().to_owned()], &label()));
    let file = "00000001000000000000000A";
    let gone = format!("once {file} is gone: a server ends with FATAL at its wrong size");
    assert!(
        said.contains("checksum in 000000010000000000000009") && said.contains(&gone),
        "{said}"
    );
    let mut window = command(&["window", "-f", "json", "--backup-label"]);
    let ran = finish(window.arg(label()).arg(directory.path())).exits(4).json();
    let why = ran["window"]["backups"][0]["why"].to_string();
    assert!(why.contains(&format!("{file}, in which a broken record goes on")), "{why}");
}

/// `archive file "…" has wrong size` is FATAL, whatever a tool has unpacked; where the tool fails, recovery
/// ends there.
#[test]
fn a_file_of_a_wrong_size_has_to_go_before_anything_is_restored() {
    let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("zstd");
    let cut = |bytes: &[u8]| bytes[..bytes.len() - 9].to_vec();
    let short = |bytes: &[u8]| bytes[..1_000_000].to_vec();
    let long = |bytes: &[u8]| [bytes, b"x"].concat();
    type Change<'c> = &'c dyn Fn(&[u8]) -> Vec<u8>;
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let ways: [(&str, Change<'_>, Change<'_>, bool); 9] = [
        ("", &|all| all.to_vec(), &short, true),
        ("", &|all| all.to_vec(), &long, true),
        ("", &|all| all.to_vec(), &packed, true),
        (".zst", &packed, &|all| packed(&short(all)), true),
        (".zst", &packed, &|all| packed(&long(all)), true),
        (".zst", &packed, &|all| packed(&packed(all)), true),
        (".zst", &packed, &|all| cut(&packed(all)), false),
        (".zst", &packed, &|all| half(&packed(all)), false),
        (".zst", &packed, &|_| Vec::new(), false),
    ];
    for (index, (suffix, whole, wrong, is_fatal)) in ways.into_iter().enumerate() {
        let directory = tempfile::tempdir().expect("a directory");
        for path in segments(8, 10) {
            let bytes = zstd::decode_all(&fs::read(&path).expect("a segment")[..]).expect("zstd");
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let bytes = if name.ends_with("0A") { wrong(&bytes) } else { whole(&bytes) };
            fs::write(directory.path().join(format!("{name}{suffix}")), bytes).expect("a copy");
        }
        let said = sentence(&restore(&[directory.path().to_owned()], &label()));
        assert!(said.contains("only"), "{index}: {said}");
        assert_eq!(said.contains("once that file is gone"), is_fatal, "{index}: {said}");
        let mut window = command(&["window", "-f", "json", "--backup-label"]);
        let ran = finish(window.arg(label()).arg(directory.path())).exits(4).json();
        let backup = &ran["window"]["backups"][0];
        assert_eq!(backup["usable"], !is_fatal, "{index}: {backup}");
        let why = backup["why"].to_string();
        assert_eq!(why.contains("once that file is gone"), is_fatal, "{index}: {backup}");
    }
}

/// `restore_command` takes the one in place.
#[test]
fn a_bad_copy_below_the_archive_does_not_end_a_restore() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("old")).expect("a directory");
    for path in segments(8, 10) {
        let mut bytes = zstd::decode_all(&fs::read(&path).expect("a segment")[..]).expect("zstd");
        let name = path.file_stem().expect("a name");
        fs::write(directory.path().join(name), &bytes).expect("a copy");
        if name.to_string_lossy().ends_with("09") {
            bytes[300_000..300_008].fill(b'X');
            fs::write(directory.path().join("old").join(name), bytes).expect("a copy");
        }
    }
    let ran = restore(&[directory.path().to_owned()], &label()).exits(4);
    assert!(ran.stdout.contains("duplicate_differs"), "{}", ran.stdout);
    assert!(!sentence(&ran).contains("only"), "{}", sentence(&ran));
}

/// Whichever of both a server gets, it comes to the place where they differ. Of when that is nothing is said
/// where it is not known.
#[test]
fn a_bad_copy_in_another_path_is_good_up_to_where_it_is_broken() {
    type Change = fn(&mut [u8]);
    let changes: [(&str, Change); 4] = [
        ("in its middle", |bytes| bytes[300_000..300_008].fill(b'X')),
        ("its first page", |bytes| bytes[..40].fill(0)),
        ("a page", |bytes| bytes[81_920..90_112].fill(0)),
        ("its rest was never written", |bytes| bytes[524_288..].fill(0)),
    ];
    for (what, change) in changes {
        let [good, bad] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        for path in segments(8, 10) {
            let packed = fs::read(&path).expect("a segment");
            let mut bytes = zstd::decode_all(&packed[..]).expect("zstd");
            let name = path.file_stem().expect("a name");
            fs::write(good.path().join(name), &bytes).expect("a copy");
            if name.to_string_lossy().ends_with("09") {
                change(&mut bytes);
            }
            fs::write(bad.path().join(name), bytes).expect("a copy");
        }
        let alone = sentence(&restore(&[bad.path().to_owned()], &label()));
        let until = |said: &str| said.split(" only").next().unwrap_or_default().to_owned();
        let both = [good.path().to_owned(), bad.path().to_owned()];
        let said = sentence(&restore(&both, &label()).exits(4));
        assert!(said.contains(" only, not to the end"), "{what}: {said}");
        assert!(until(&alone).starts_with(&until(&said)), "{what}: {said}, {alone}");
    }
}

/// A label of another backup than the files beside it are of.
#[test]
fn a_label_whose_checkpoint_pg_control_does_not_know_is_refused() {
    let folder = copied_base();
    let path = folder.path().join("backup_label");
    let text = fs::read_to_string(&path).expect("the label");
    let line = text.lines().find(|line| line.starts_with("CHECKPOINT")).expect("its checkpoint");
    fs::write(&path, text.replace(line, "CHECKPOINT LOCATION: 0/900060")).expect("a label");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(1);
    let sentence = sentence(&ran);
    assert!(sentence.contains("0/00900060, which its pg_control does not know"), "{sentence}");
}

/// Label and `pg_control` of a backup that is taken from a standby, consistent from `point` on.
fn of_standby(point: u64) -> (Vec<u8>, Vec<u8>) {
    let text = fs::read_to_string(label()).expect("the label");
    // As PostgreSQL 15 has it: the place with its timeline, and the checksum of all before it.
    let mut control = fs::read(backup().join("base/global/pg_control")).expect("pg_control");
    control[136..144].copy_from_slice(&point.to_le_bytes());
    control[144..148].copy_from_slice(&1_u32.to_le_bytes());
    // It is in recovery.
    control[16..20].copy_from_slice(&5_u32.to_le_bytes());
    let checksum = crc32c::crc32c(&control[..288]);
    control[288..292].copy_from_slice(&checksum.to_le_bytes());
    (text.replace("FROM: primary", "FROM: standby").into_bytes(), control)
}

/// Within the WAL, and beyond its end.
const POINTS: [(u64, i32); 2] = [(0x00A0_0000, 0), (0x00C0_0000, 1)];

/// Where a backup of a standby is consistent, its pg_control alone says.
#[test]
fn a_backup_of_a_standby_needs_the_wal_up_to_its_minimum_recovery_point() {
    for (point, code) in POINTS {
        let folder = copied_base();
        let (label, control) = of_standby(point);
        fs::write(folder.path().join("backup_label"), label).expect("a label");
        fs::write(folder.path().join("global/pg_control"), control).expect("pg_control");
        let ran = restore(&[backup().join("archive")], folder.path()).exits(code);
        let is_short = sentence(&ran).contains("consistent from 0/00C00000 on");
        assert_eq!(is_short, code == 1, "{}", sentence(&ran));
    }
}

/// `pg_basebackup -F tar` puts it behind everything else, and `tar` where the folder has it.
#[test]
fn the_same_of_one_that_is_a_tar() {
    let large = vec![7; 3_000_000];
    for (point, code) in POINTS {
        let (label, control) = of_standby(point);
        let [label, control]: [(&str, &[u8]); 2] =
            [("backup_label", &label), ("global/pg_control", &control)];
        let rest: (&str, &[u8]) = ("base/1/1249", &large);
        let (last, first) = (tar_of(&[label, rest, control]), tar_of(&[control, rest, label]));
        let zstd = zstd::encode_all(last.as_slice(), 1).expect("a vector takes all");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&last).expect("a vector takes all");
        let gzip = gzip.finish().expect("a vector takes all");
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [
            ("base.tar", last),
            ("other.tar", first),
            ("base.tar.zst", zstd),
            ("base.tar.gz", gzip),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a tar");
            let ran = restore(&[backup().join("archive")], &path).exits(code);
            let is_short = sentence(&ran).contains("consistent from 0/00C00000 on");
            assert_eq!(is_short, code == 1, "{name}: {}", sentence(&ran));
            let mut window = command(&["window", "-f", "json", "--backup-label"]);
            let told = finish(window.arg(&path).arg(backup().join("archive"))).json();
            let rows = told["window"]["backups"].as_array().cloned().unwrap_or_default();
            let row = rows.iter().find(|row| row["consistent_from"] == format!("0/{point:08X}"));
            let row = row.unwrap_or_else(|| panic!("{name}: {told}"));
            assert_eq!(row["usable"], code == 0, "{name}: {row}");
        }
    }
}

/// Nobody restores a tar that ends before it, nor one with a broken one.
#[test]
fn the_tar_of_a_standbys_backup_has_its_pg_control() {
    let (label, control) = of_standby(POINTS[0].0);
    let mut broken = control.clone();
    broken[40] ^= 1;
    let label = ("backup_label", label.as_slice());
    let control = ("global/pg_control", control.as_slice());
    let whole = tar_of(&[label, ("PG_VERSION", b"15\n"), control]);
    let tars = [
        (whole[..whole.len() - 9000].to_vec(), "not restorable: the backup's pg_control: the tar"),
        (
            tar_of(&[label, ("global/pg_control", &broken)]),
            "not restorable: the backup's pg_control: found checksum",
        ),
        (tar_of(&[label]), "not known to be restorable"),
    ];
    for (tar, told) in tars {
        let said = sentence(&restored_from_tar(&tar).exits(1));
        assert!(said.starts_with(told), "{said}");
    }
}

/// The label alone does not say where it is consistent, nor does the WAL of the primary.
#[test]
fn the_label_of_a_standbys_backup_is_not_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(label()).expect("the label");
    let path = folder.path().join("backup_label");
    fs::write(&path, text.replace("FROM: primary", "FROM: standby")).expect("a label");
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).expect("a folder");
    for segment in segments(8, 9) {
        let name = segment.file_name().expect("a name").to_owned();
        fs::copy(&segment, archive.join(name)).expect("a copy");
    }
    let ran = restore(&[archive], &path).exits(1);
    assert!(sentence(&ran).starts_with("not known to be restorable"), "{}", sentence(&ran));
}

/// `backup_label contains data inconsistent with control file`.
#[test]
fn a_label_of_a_standby_in_a_backup_of_a_primary_is_said() {
    let folder = copied_base();
    let path = folder.path().join("backup_label");
    let text = fs::read_to_string(&path).expect("the label");
    fs::write(&path, text.replace("FROM: primary", "FROM: standby")).expect("a label");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(1);
    assert!(sentence(&ran).contains("its pg_control that it was not"), "{}", sentence(&ran));
}

/// `syntax error in history file`: the server reads the newest, and does not start.
#[test]
fn a_newest_history_that_is_broken_ends_every_restore_to_the_latest_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    for segment in segments(8, 10) {
        let name = segment.file_name().expect("a name").to_owned();
        fs::copy(&segment, folder.path().join(name)).expect("a copy");
    }
    fs::write(folder.path().join("00000002.history"), "").expect("a history");
    let ran = restore(&[folder.path().to_owned()], &label()).exits(4);
    assert!(sentence(&ran).contains("does not start with 00000002.history"), "{}", sentence(&ran));
}

/// A promotion that archives its history first leaves a timeline without segments.
#[test]
fn the_latest_timeline_has_to_go_on_from_the_wal() {
    let folder = tempfile::tempdir().expect("a folder");
    for segment in segments(8, 10) {
        let name = segment.file_name().expect("a name").to_owned();
        fs::copy(&segment, folder.path().join(name)).expect("a copy");
    }
    let with_history = |text: &str| {
        fs::write(folder.path().join("00000002.history"), text).expect("a history");
        restore(&[folder.path().to_owned()], &label())
    };
    with_history("1\t0/00A00000\tno recovery target specified\n").exits(0);
    let ran = with_history("1\t0/00600000\tbefore the backup\n").exits(1);
    let said = sentence(&ran);
    assert!(said.contains("00000002.history") && said.contains("timeline = '1'"), "{said}");
}

#[test]
fn a_restore_verifies_every_checksum() {
    let mut command = check(&["--no-verify-checksums"]);
    command.arg("--backup-label").arg(label()).arg(backup().join("archive"));
    let ran = finish(&mut command).exits(2);
    assert!(ran.stderr.contains("take no --no-verify-checksums"), "{}", ran.stderr);
}

/// What a standby's backup brings along: with it the server waits for a primary, or for each commit's time.
#[test]
fn what_keeps_a_restored_server_from_opening_is_noted() {
    let folder = copied_base();
    let noted = |words: &str| {
        let ran = restore(&[backup().join("archive")], folder.path()).exits(0);
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    };
    let conf = folder.path().join("postgresql.auto.conf");
    fs::write(&conf, "recovery_min_apply_delay = '1h'\n").expect("settings");
    noted("the backup's settings hold each commit back: recovery_min_apply_delay = '1h'");
    fs::write(&conf, "recovery_min_apply_delay = '0ms'\n").expect("settings");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(0);
    assert!(!ran.stdout.contains("hold each commit back"), "{}", ran.stdout);
    fs::write(&conf, "archive_cleanup_command = 'pg_archivecleanup /a %r'\n").expect("settings");
    noted("have a restored server run archive_cleanup_command = 'pg_archivecleanup /a %r': set");
    fs::write(&conf, "archive_cleanup_command = ''\n").expect("settings");
    let ran = restore(&[backup().join("archive")], folder.path()).exits(0);
    assert!(!ran.stdout.contains("archive_cleanup"), "{}", ran.stdout);
    fs::write(folder.path().join("standby.signal"), "").expect("a file");
    noted("standby.signal is in the backup");
    fs::write(folder.path().join("postmaster.pid"), "47\n").expect("a file");
    noted("postmaster.pid is in the backup");
}

/// A server that was stopped beside the archive ends in WAL that only its own pg_wal has.
#[test]
fn the_end_of_a_server_beside_the_archive_is_in_its_own_wal() {
    let folder = copied_base();
    fs::remove_file(folder.path().join("backup_label")).expect("the label");
    let main = folder.path().join("main");
    fs::create_dir_all(main.join("pg_wal/archive_status")).expect("folders");
    fs::rename(folder.path().join("global"), main.join("global")).expect("moved");
    fs::write(main.join("PG_VERSION"), "15\n").expect("a file");
    fs::create_dir(folder.path().join("wal")).expect("a folder");
    for (numbers, place) in [(6..=7, "wal"), (8..=10, "main/pg_wal")] {
        for path in segments(*numbers.start(), *numbers.end()) {
            let packed = fs::read(&path).expect("a segment");
            let bytes = zstd::decode_all(&packed[..]).expect("zstd");
            let to = folder.path().join(place).join(path.file_stem().expect("a name"));
            fs::write(to, bytes).expect("a copy");
        }
    }
    for place in ["", "wal", "main"] {
        finish(check::<&str>(&[]).arg(folder.path().join(place))).exits(0);
    }
    // It keeps an old segment for its archiver, and recycles those behind, up to where recovery begins.
    let [sixth, eighth] = ["06", "08"].map(|it| format!("0000000100000000000000{it}"));
    fs::rename(folder.path().join("wal").join(&sixth), main.join("pg_wal").join(&sixth))
        .expect("moved");
    let ready = main.join(format!("pg_wal/archive_status/{sixth}.ready"));
    fs::write(ready, "").expect("a status");
    for place in [&main, &main.join("pg_wal")] {
        let ran = finish(check::<&str>(&[]).arg(place)).exits(0);
        assert!(ran.stdout.contains("0/00800000: the server has recycled it"), "{}", ran.stdout);
    }
    // Not where somebody else removed them, nor of a backup, nor where an archive lacks them.
    let status = main.join("pg_wal/archive_status/000000010000000000000007.ready");
    fs::write(&status, "").expect("a status");
    finish(check::<&str>(&[]).arg(&main)).exits(4);
    fs::remove_file(status).expect("the status");
    fs::copy(label(), main.join("backup_label")).expect("a label");
    finish(check::<&str>(&[]).arg(&main)).exits(4);
    fs::remove_file(main.join("backup_label")).expect("the label");
    let packed = folder.path().join("packed");
    fs::create_dir(&packed).expect("a folder");
    for path in [segments(6, 6), segments(8, 10)].concat() {
        fs::copy(&path, packed.join(path.file_name().expect("a name"))).expect("a copy");
    }
    finish(check::<&str>(&[]).args([&packed, &main])).exits(4);
    fs::remove_dir_all(packed).expect("the archive");
    fs::remove_dir_all(folder.path().join("wal")).expect("the archive");
    fs::remove_file(main.join("pg_wal").join(eighth)).expect("a segment");
    finish(check::<&str>(&[]).arg(folder.path())).exits(4);
}

/// `barman recover` to a target: it lies below, and `restore_command` gets it from there.
#[test]
fn where_wal_lies_in_a_recovered_directory_is_said() {
    let folder = copied_base();
    fs::write(folder.path().join("PG_VERSION"), "15\n").expect("a file");
    let below = folder.path().join("barman_wal");
    fs::create_dir(&below).expect("a folder");
    for path in segments(8, 9) {
        let packed = fs::read(&path).expect("a segment");
        let bytes = zstd::decode_all(&packed[..]).expect("zstd");
        fs::write(below.join(path.file_stem().expect("a name")), bytes).expect("a copy");
    }
    let ran = finish(check::<&str>(&[]).arg(folder.path())).exits(3);
    let said = format!("there are some in {}", below.display());
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
}

/// No restore_command looks into it: what the archive has lost is missing, and what only the backup has is no
/// gap in the archive.
#[test]
fn the_wal_of_a_base_backup_beside_the_archive_is_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let [archive, own] = ["wal", "tuesday/pg_wal"].map(|name| folder.path().join(name));
    for name in ["wal", "tuesday/pg_wal", "tuesday/global"] {
        fs::create_dir_all(folder.path().join(name)).expect("a folder");
    }
    fs::write(folder.path().join("tuesday/PG_VERSION"), "15\n").expect("a file");
    fs::copy(label(), folder.path().join("tuesday/backup_label")).expect("a label");
    let put = |numbers: std::ops::RangeInclusive<u32>, directory: &Path| {
        for path in segments(*numbers.start(), *numbers.end()) {
            let packed = fs::read(&path).expect("a segment");
            let bytes = zstd::decode_all(&packed[..]).expect("zstd");
            fs::write(directory.join(path.file_stem().expect("a name")), bytes).expect("a copy");
        }
    };
    put(8..=10, &archive);
    put(6..=6, &own);
    let both = [folder.path().to_owned()];
    let ran = restore(&both, &label()).exits(0);
    assert!(ran.stdout.contains("it is the WAL of the backup tuesday alone"), "{}", ran.stdout);
    put(9..=9, &own);
    fs::remove_file(archive.join("000000010000000000000009")).expect("a segment");
    let ran = restore(&both, &label()).exits(4);
    assert!(sentence(&ran).contains("0/00900000 only"), "{}", sentence(&ran));
    // All of it in one tar, and read in parts.
    let tar = tempfile::tempdir().expect("a folder");
    fs::create_dir(own.join("archive_status")).expect("a folder");
    let all = tar.path().join("all.tar");
    let whole = tar::Builder::new(fs::File::create(&all).expect("a tar"));
    { whole }.append_dir_all(".", folder.path()).expect("a tar of all");
    let ran = restore(std::slice::from_ref(&all), &label()).exits(4);
    assert!(sentence(&ran).contains("0/00900000 only"), "{}", sentence(&ran));
    assert!(ran.stdout.contains("tuesday/pg_wal: not read"), "{}", ran.stdout);
    let part = tar.path().join("part");
    let in_parts = [&archive, &own].map(|it| fs::read_dir(it).expect("a folder").flatten());
    let in_parts = in_parts.into_iter().flatten().map(|file| file.path());
    let in_parts = in_parts.filter(|path| path.is_file());
    finish(command(&["--partial", "-o"]).arg(&part).args(in_parts)).exits(0);
    let merged = finish(command(&["merge", "-f", "json"]).arg(&part).arg(folder.path())).exits(4);
    let of_all = finish(command(&["-f", "json"]).arg(folder.path())).exits(4);
    for key in ["/problems", "/notes/0", "/totals"] {
        assert_eq!(merged.json().pointer(key), of_all.json().pointer(key), "{key}");
    }
    fs::remove_dir(own.join("archive_status")).expect("the folder");
    fs::rename(&archive, tar.path().join("wal")).expect("moved");
    let whole = tar::Builder::new(fs::File::create(tar.path().join("tuesday.tar")).expect("a tar"));
    let packed = { whole }.append_dir_all(".", folder.path().join("tuesday"));
    packed.expect("a tar of the backup");
    let ran = restore(&[tar.path().to_owned()], &label()).exits(4);
    assert!(sentence(&ran).contains("0/00900000 only"), "{}", sentence(&ran));
    assert!(ran.stdout.contains("tuesday.tar/pg_wal: not read"), "{}", ran.stdout);
    fs::rename(tar.path().join("wal"), &archive).expect("moved back");
    // Where there is nothing else, or it is asked for, it is read.
    let ran = restore(&[archive.clone(), own.clone()], &label());
    assert!(
        !sentence(&ran).contains("missing_segment in 000000010000000000000009"),
        "{}",
        sentence(&ran)
    );
    fs::remove_dir_all(archive).expect("the archive");
    let ran = finish(command(&["-f", "json"]).arg(folder.path()));
    assert_eq!(ran.json()["input"]["segments"], 2, "{}", ran.stderr);
}
