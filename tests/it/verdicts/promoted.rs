//! What a promoted server has for itself: its directory of WAL, on a disk of its own, with what others have
//! put there; and an archive that it began as a standby. WAL made on purpose, of PostgreSQL 15, in segments
//! of 1 MB.

use super::recovered::{FIRST, SEGMENT, history, promoted, store, timeline_1, write};
use super::{check, is_green, is_noted, is_red, put, restore_verdict, told};
use crate::common::builder::Wal;
use crate::support::fixtures::fixtures;
use crate::support::patience::PATIENCE;
use crate::support::{command, finish};
use std::fs;
use std::path::Path;
use std::time::Instant;
use tempfile::TempDir;
use walstat_analyse::counters::Statistics;
use walstat_read::follow::{Follower, Happening, StartAt};
use walstat_read::input::discover::discover;
use walstat_read::scan::streamed::Wanted;

/// Timeline 1 from segment 5 on, which timeline 2 leaves in segment 9; the segments of these numbers of the
/// first are missing.
fn with_hole(missing: &[u64]) -> (TempDir, Wal) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = timeline_1(4, true);
    let second = promoted(&first, 1, 2);
    store(&second, first.at(), directory.path());
    history(directory.path(), 2, &[(1, first.at())]);
    write(&mut first, 5);
    store(&first, 0, directory.path());
    for number in missing {
        fs::remove_file(directory.path().join(name(1, *number))).expect("a segment");
    }
    fs::rename(directory.path().join(name(1, 9)), directory.path().join(name(1, 9) + ".partial"))
        .expect("a segment");
    (directory, second)
}

fn name(timeline: u32, number: u64) -> String {
    format!("{timeline:08X}{number:016X}")
}

/// It keeps the first segment of the backup that it was made from, and makes it ready for its archiver at its
/// first checkpoint; what it got by streaming it takes for archived.
#[test]
fn an_archive_that_a_standby_has_begun_has_no_wal_before_its_promotion() {
    let (directory, _) = with_hole(&[6, 7, 8]);
    let directory = directory.path();
    let note =
        "no WAL from 0/00600000 to 0/00900000: the server that archives here was a standby then";
    is_noted("its first segment", directory, note);
    // Not where a backup begins there, by its history or by what is asked.
    let backup = format!("{}.00000028.backup", name(1, FIRST));
    put(directory, &backup, b"");
    is_red("a backup", directory, "missing_segment", &name(1, 6));
    fs::remove_file(directory.join(backup)).expect("the history");
    let from = |lsn: &str| check(&["--as", "archive", "--from", lsn], directory);
    let lost = [("missing_segment".to_owned(), name(1, 6))];
    assert_eq!(told(&from("0/00500028").exits(4)), lost);
    let ran = from("0/00900028").exits(0);
    assert!(restore_verdict(&ran).0, "{}", ran.stdout);
    let ran = finish(command(&["window", "--as", "archive"]).arg(directory)).exits(1);
    assert!(ran.stdout.contains(note), "no backup is there: {}", ran.stdout);
    // What a round has seen was archived.
    let (whole, _) = with_hole(&[]);
    let state = whole.path().with_extension("state");
    let words = ["--as", "archive", "--state", &state.to_string_lossy()];
    check(&words, whole.path()).exits(0);
    (6..9).for_each(|number| fs::remove_file(whole.path().join(name(1, number))).expect("one"));
    assert_eq!(told(&check(&words, whole.path()).exits(4)), lost);
    fs::remove_file(state).expect("the state");
    assert_eq!(told(&check(&["-s", "0/00500028"], directory).exits(4)), lost, "a range");
    // Nor with more before it, nor where the hole does not end where the timeline begins, nor where somebody
    // has archived the older one from there on.
    let red = |missing: &[u64], more: &[&str]| {
        let (directory, _) = with_hole(missing);
        let bytes = fs::read(directory.path().join(name(1, FIRST))).expect("a segment");
        more.iter().for_each(|file| _ = put(directory.path(), file, &bytes));
        let lost = told(&check(&["--as", "archive"], directory.path()).exits(4));
        assert!(lost.iter().any(|(kind, _)| kind == "missing_segment"), "{missing:?}: {lost:?}");
    };
    red(&[7, 8], &[]);
    red(&[6, 7], &[]);
    red(&[6, 7, 8], &[&(name(1, 4) + ".partial")]);
    let (directory, _) = with_hole(&[6, 7, 8]);
    let whole = directory.path().join(name(1, 9));
    fs::rename(whole.with_extension("partial"), whole).expect("renamed");
    let told = told(&check(&["--as", "archive"], directory.path()).exits(4));
    assert!(told.contains(&lost[0]), "it went on: {told:?}");
}

/// `initdb -X`: the directory is called otherwise, and no `pg_control` is in sight. The rest of the timeline
/// before was recycled, and so was its status.
#[test]
fn on_a_disk_of_its_own_a_server_recycles_what_lies_before_its_timeline() {
    let (disk, mut second) = with_hole(&[6, 7]);
    let disk = disk.path();
    write(&mut second, 50);
    second.switch();
    store(&second, 9 * SEGMENT, disk);
    let status = disk.join("archive_status");
    put(&status, &format!("{}.done", name(1, FIRST)), b"");
    let ran = check(&[], disk).exits(0);
    assert!(ran.json()["notes"].to_string().contains("0/00800000: the server has recycled it"));
    check(&["--as", "archive"], disk).exits(4);
    for from in ["0/00500028", "0/00700000"] {
        check(&["--from", from], disk).exits(4);
    }
    fs::remove_file(status.join(format!("{}.done", name(1, FIRST)))).expect("a status");
    check(&[], disk).exits(4);
    put(&status, &format!("{}.done", name(1, FIRST)), b"");
    put(&status, &format!("{}.ready", name(1, 7)), b"");
    check(&[], disk).exits(4);
    fs::remove_file(status.join(format!("{}.ready", name(1, 7)))).expect("a status");
    fs::remove_file(disk.join(name(2, 10))).expect("a segment");
    let lost = [("missing_segment".to_owned(), name(2, 10))];
    assert_eq!(told(&check(&[], disk).exits(4)), lost, "of its own timeline none is recycled");
}

/// The shell says by which links it came there.
#[cfg(unix)]
#[test]
fn the_working_directory_lies_where_the_shell_says() {
    let (data, names) = super::around::data_directory(["06", "08", "09"]);
    let (wal, disk) = (data.path().join("pg_wal"), data.path().join("disk"));
    fs::rename(&wal, &disk).expect("moved");
    std::os::unix::fs::symlink(&disk, &wal).expect("a link");
    put(&disk.join("archive_status"), &format!("{}.ready", names[0]), b"");
    let at = |says: &Path, code: i32| {
        let mut call = command(&["check"]);
        finish(call.current_dir(&wal).env("PWD", says)).exits(code);
    };
    at(&wal, 0);
    at(&disk, 4);
    at(data.path(), 4);
}

/// A receiver of the new primary has begun it, and the history is not in the archive.
#[test]
fn a_partial_without_wal_needs_no_history() {
    let (directory, _) = with_hole(&[]);
    let directory = directory.path();
    is_green("as it is", directory);
    let partial = format!("{}.partial", name(3, 11));
    for content in [&[][..], &[0; SEGMENT as usize]] {
        put(directory, &partial, content);
        let notes = check(&["--as", "archive"], directory).json()["notes"].to_string();
        assert!(!notes.contains("timeline 3 verified but not counted"), "{notes}");
        is_noted(
            "nothing in it",
            directory,
            "no WAL is in it yet, and there is nothing else of timeline 3",
        );
    }
    let mut page = fs::read(directory.join(name(2, 10))).expect("a segment");
    page[4] = 3;
    put(directory, &partial, &page);
    assert!(
        told(&check(&["--as", "archive"], directory).exits(4))
            .contains(&("missing_history".to_owned(), "00000003.history".to_owned()))
    );
}

/// The history and the `.partial` are archived one after the other, and retention may take one of them.
#[test]
fn a_partial_before_the_first_timeline_needs_no_history() {
    let (directory, _) = with_hole(&[5, 6, 7, 8]);
    let directory = directory.path();
    is_green("with the history", directory);
    fs::remove_file(directory.join("00000002.history")).expect("the history");
    let partial = name(1, 9) + ".partial";
    let note = format!("{partial}: no restore_command gets it, and the WAL begins with timeline 2");
    is_noted("without it", directory, &note);
    let ran = check(&["--as", "archive"], directory);
    assert_eq!(ran.json()["input"]["timelines"], serde_json::json!([2]));
    let bytes = fs::read(directory.join(&partial)).expect("a file");
    put(directory, &partial, b"");
    is_noted("an empty one", directory, &note);
    // A backup of the older one is not restored without the history.
    put(directory, &partial, &bytes);
    let lost = ("missing_history".to_owned(), "00000002.history".to_owned());
    let backup = name(1, 9) + ".00000028.backup";
    put(directory, &backup, b"");
    assert!(told(&check(&["--as", "archive"], directory).exits(4)).contains(&lost));
    fs::remove_file(directory.join(backup)).expect("the history");
    let ran = check(&["--as", "archive", "--from", "0/00900028"], directory).exits(4);
    assert!(told(&ran).contains(&lost));
    // A whole one is of a timeline that was left.
    let (whole, _) = with_hole(&[]);
    let bytes = fs::read(whole.path().join(name(1, 8))).expect("a segment");
    put(directory, &name(1, 8), &bytes);
    assert!(
        told(&check(&["--as", "archive"], directory).exits(4))
            .contains(&("missing_history".to_owned(), "00000002.history".to_owned()))
    );
}

/// Timeline 2 where it leaves timeline 1 at the end of a segment; that one, and the place.
fn left_at_a_segments_end() -> (TempDir, Wal, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = timeline_1(4, true);
    first.switch();
    let left = first.at() / SEGMENT * SEGMENT;
    store(&promoted(&first, 1, 2), left, directory.path());
    history(directory.path(), 2, &[(1, left)]);
    (directory, first, left)
}

/// Where the older timeline was left at the end of a segment nothing in the next one is needed.
#[test]
fn a_segment_behind_a_failover_at_its_beginning_may_be_laid_away() {
    let (directory, mut first, left) = left_at_a_segments_end();
    let directory = directory.path();
    write(&mut first, 300);
    first.switch();
    store(&first, 0, directory);
    let dead = directory.join("dead");
    fs::create_dir(&dead).expect("a directory");
    for number in left / SEGMENT..first.at() / SEGMENT {
        let file = name(1, number);
        fs::rename(directory.join(&file), dead.join(&file)).expect("moved");
    }
    is_noted("laid away", directory, &name(1, left / SEGMENT));
}

/// An old primary that was stopped wrote its last checkpoint into a segment of its own, and archives that
/// when it comes back.
#[test]
fn the_last_segment_of_an_old_primary_behind_the_failover_need_not_be_filled() {
    let (directory, mut first, left) = left_at_a_segments_end();
    let directory = directory.path();
    write(&mut first, 3);
    store(&first, 0, directory);
    let last = name(1, left / SEGMENT);
    is_noted("behind the failover", directory, &format!("{last}: not filled, and it lies behind"));
    let open = ("open_segment".to_owned(), last);
    assert!(told(&check(&["--as", "archive", "-t", "1"], directory).exits(4)).contains(&open));
}

/// What the old primary wrote behind the failover is laid away by whoever tidies up: no server asks for it.
#[test]
fn what_was_left_behind_the_failover_may_be_laid_away() {
    let (directory, _) = with_hole(&[]);
    let directory = directory.path();
    let mut first = timeline_1(4, true);
    write(&mut first, 300);
    first.switch();
    let dead = directory.join("dead");
    fs::create_dir(&dead).expect("a directory");
    store(&first, 9 * SEGMENT, directory);
    fs::remove_file(directory.join(name(1, 9) + ".partial")).expect("the file");
    let behind = first.at() / SEGMENT;
    for file in (10..behind).map(|number| name(1, number)) {
        fs::rename(directory.join(&file), dead.join(&file)).expect("moved");
    }
    is_noted(
        "laid away",
        directory,
        "only where no restore_command looks: timeline 2 left that one",
    );
    let lost = told(&check(&["--as", "archive", "-t", "1"], directory).exits(4));
    assert!(lost.contains(&("missing_segment".to_owned(), name(1, 10))), "{lost:?}");
    // Not what the followed one is made of.
    for file in [name(1, 8), name(2, 10)] {
        fs::rename(directory.join(&file), dead.join(&file)).expect("moved");
        is_red("needed", directory, "missing_segment", &file);
        fs::rename(dead.join(&file), directory.join(&file)).expect("moved back");
    }
}

/// Somebody has copied an archive into the directory of a server, which goes on with the timeline that it is
/// on: segments and histories of newer ones are none of its own.
#[test]
fn a_server_is_on_the_timeline_of_its_pg_control() {
    let (data, names) = super::around::data_directory(["07", "08", "09"]);
    let wal = data.path().join("pg_wal");
    put(&wal, "00000002.history", b"1\t0/700100\tx\n");
    let mut stray = fs::read(wal.join(&names[0])).expect("a segment");
    stray.chunks_mut(8192).for_each(|page| page[4] = 2);
    put(&wal, &names[0].replacen('1', "2", 1), &stray);
    let followed = |arguments: &[&str], path: &Path| {
        let report = check(arguments, path).json();
        (report["input"]["timelines"].clone(), report["notes"].to_string())
    };
    for path in [data.path(), &wal] {
        let (timeline, notes) = followed(&[], path);
        assert_eq!(timeline, serde_json::json!([1]), "{notes}");
        assert!(notes.contains("the one that the server is on by its pg_control"), "{notes}");
        assert_eq!(followed(&["-t", "2"], path).0, serde_json::json!([2]));
        assert_eq!(followed(&["--as", "archive"], path).0, serde_json::json!([2]));
    }
    let found = discover(&[data.path().to_owned()]).expect("WAL");
    for from in [StartAt::Oldest, StartAt::Now] {
        let (mut follower, _) = Follower::begin(&found, from, &Wanted::default()).expect("WAL");
        follower.count(Statistics::default());
        let look = follower.look(Instant::now() + PATIENCE);
        assert!(look.is_at_end && look.happenings.is_empty(), "{:?}", look.happenings);
        assert_eq!(follower.timeline(), 1);
    }
    // One from which a backup is restored comes to the newest, and so does one that is told to recover.
    let asked = finish(command(&["window", "-f", "json"]).arg(data.path())).json();
    assert_eq!(asked["input"]["timelines"], serde_json::json!([2]));
    put(data.path(), "standby.signal", b"");
    assert_eq!(followed(&[], data.path()).0, serde_json::json!([2]));
}

/// A history that was fetched and could not be followed stays in `pg_wal`.
#[test]
fn a_history_alone_is_no_timeline_to_go_over_to() {
    let (later, _) = with_hole(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let copy = |name: &str| {
        let bytes = fs::read(later.path().join(name)).expect("a file");
        put(directory.path(), name, &bytes);
    };
    (FIRST..9).for_each(|number| copy(&name(1, number)));
    let found = discover(&[directory.path().to_owned()]).expect("WAL");
    let wanted = Wanted::default();
    let (mut follower, _) = Follower::begin(&found, StartAt::Oldest, &wanted).expect("WAL");
    follower.count(Statistics::default());
    let look = |follower: &mut Follower| {
        let happenings = follower.look(Instant::now() + PATIENCE).happenings;
        (happenings.len(), follower.timeline())
    };
    assert_eq!(look(&mut follower), (0, 1));
    copy("00000002.history");
    assert_eq!(look(&mut follower), (0, 1));
    copy(&name(2, 9));
    assert_eq!(look(&mut follower), (1, 2));
    // A standby that was promoted for a test, and then built anew.
    for file in [name(2, 9), "00000002.history".to_owned()] {
        fs::remove_file(directory.path().join(file)).expect("a file");
    }
    (9..=10).for_each(|number| {
        let bytes = fs::read(later.path().join(name(2, number))).expect("a file");
        put(directory.path(), &name(1, number), &bytes);
    });
    let happenings = follower.look(Instant::now() + PATIENCE).happenings;
    assert!(matches!(happenings[..], [Happening::OtherHistory { .. }]), "{happenings:?}");
    assert!(!follower.is_readable());
}

/// `barman recover` without a target: all WAL is there, and no signal. The server goes by the label alone.
#[test]
fn without_a_signal_a_server_stays_on_the_timeline_of_its_label() {
    let (archive, _) = with_hole(&[]);
    let data = tempfile::tempdir().expect("a directory");
    let base = fixtures().join("backup/base");
    let label = fs::read_to_string(base.join("backup_label")).expect("a label");
    let start = label.lines().next().expect("a line").to_owned();
    let begun = format!("START WAL LOCATION: 0/500028 (file {})", name(1, FIRST));
    put(data.path(), "backup_label", label.replace(&start, &begun).as_bytes());
    put(data.path(), "PG_VERSION", b"15\n");
    for entry in fs::read_dir(archive.path()).expect("the archive").filter_map(Result::ok) {
        let bytes = fs::read(entry.path()).expect("a file");
        put(&data.path().join("pg_wal"), &entry.file_name().to_string_lossy(), &bytes);
    }
    let says = |path: &Path| {
        let label = data.path().to_string_lossy().into_owned();
        let notes = check(&["--backup-label", &label], path).json()["notes"].to_string();
        notes.contains("recovery.signal is not in the directory: a server that is started there")
    };
    assert!(says(data.path()) && says(&data.path().join("pg_wal")));
    assert!(!says(archive.path()), "from an archive a server recovers with a signal");
    put(data.path(), "recovery.signal", b"");
    assert!(!says(data.path()));
}
