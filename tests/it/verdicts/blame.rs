//! The file that is wrong is named, where a record lies in two: its good copy makes the WAL whole.

use super::prepared::{back_up, restored};
use super::{NAMES, archive, check, gzip, is_green, is_red, put, segment, three, told};
use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::Rec;
use crate::common::{ALL, read, stats_apart};
use crate::support::fixtures::sample;
use crate::support::wal::plain;
use crate::support::{command, finish};
use std::fs;
use walstat_format::lsn::Lsn;

/// The end of segment 3, in which records cross into segment 4.
const EDGE: u64 = 4 << 20;

const THREE: &str = "000000010000000000000003";
const FOUR: &str = "000000010000000000000004";

/// Segments 3 to 5, with a record of so many bytes that begins `room` bytes before segment 4.
fn crossing(room: u64, bytes: usize) -> (Disk, Lsn) {
    let mut wal = Wal::new(Form::of("15"), 3);
    wal.add(&Rec::data(40));
    wal.leave_in_segment(room);
    let lsn = wal.add(&Rec::data(bytes));
    wal.add(&Rec::data(300));
    wal.leave_in_segment(0);
    wal.add(&Rec::data(300));
    wal.switch();
    (wal.finish(), lsn)
}

/// What is wrong, where the bytes at `at` are changed: one problem, of `file`.
#[track_caller]
fn names(what: &str, room: u64, bytes: usize, file: &str, change: impl Fn(&mut Disk, Lsn)) {
    let (mut disk, lsn) = crossing(room, bytes);
    change(&mut disk, lsn);
    let directory = disk.write();
    for threads in [1, 8] {
        let report = read(directory.path(), &ALL.threads(threads));
        let named: Vec<&str> = report.problems.iter().map(|p| p.segment.as_str()).collect();
        assert_eq!(named, [file], "{what}, {threads} threads: {:?}", report.problems);
    }
    let apart = stats_apart(directory.path(), &ALL).expect("a report");
    let named: Vec<&str> = apart.problems.iter().map(|p| p.segment.as_str()).collect();
    assert_eq!(named, [file], "{what}, each by itself: {:?}", apart.problems);
}

fn flip(disk: &mut Disk, at: u64) {
    disk.at(Lsn(at), 1)[0] ^= 0x10;
}

#[test]
fn a_bad_first_page_is_its_own_segments() {
    for (room, bytes) in [(24, 400), (200, 9000), (8, 100)] {
        names("zeros", room, bytes, FOUR, |disk, _| disk.page(Lsn(EDGE)).fill(0));
        for (what, at) in [("magic", 0), ("flags", 3), ("timeline", 5), ("address", 9)] {
            names(what, room, bytes, FOUR, |disk, _| flip(disk, EDGE + at));
        }
    }
}

#[test]
fn a_page_that_continues_wrongly_is_to_blame_unless_the_record_is_too_long() {
    names("rest length", 200, 3000, FOUR, |disk, _| flip(disk, EDGE + 16));
    names("no continuation", 200, 3000, FOUR, |disk, _| disk.at(Lsn(EDGE), 4)[2] &= !1);
    names("length of the record", 200, 3000, THREE, |disk, lsn| flip(disk, lsn.0));
    // By a byte, which padding may hide: the next record begins where either length says.
    for bytes in 3000..3008 {
        names("rest length by one", 200, bytes, FOUR, |disk, _| disk.at(Lsn(EDGE + 16), 1)[0] ^= 1);
    }
}

#[test]
fn a_wrong_byte_is_found_by_the_checksum() {
    names("in the first half", 200, 3000, THREE, |disk, lsn| flip(disk, lsn.0 + 100));
    names("the checksum itself", 200, 3000, THREE, |disk, lsn| flip(disk, lsn.0 + 21));
    names("the xid", 200, 3000, THREE, |disk, lsn| flip(disk, lsn.0 + 4));
    names("the last byte before", 200, 3000, THREE, |disk, _| flip(disk, EDGE - 1));
    names("the first byte after", 200, 3000, FOUR, |disk, _| flip(disk, EDGE + 40));
    names("in the second half", 200, 3000, FOUR, |disk, _| flip(disk, EDGE + 1500));
    names("on a later page", 200, 20_000, FOUR, |disk, _| flip(disk, EDGE + 8192 + 1000));
}

/// Zeros behind a page's header: the checksum tells that the record is wrong, and not where.
#[test]
fn where_either_file_may_be_wrong_both_are_spoken_of() {
    let (mut disk, _) = crossing(200, 3000);
    disk.at(Lsn(EDGE + 512), 512).fill(0);
    let report = read(disk.write().path(), &ALL);
    let [problem] = report.problems.as_slice() else { panic!("{:?}", report.problems) };
    assert!(problem.segment == THREE && problem.found.contains("goes on in the next segment"));
    let (mut disk, lsn) = crossing(5000, 3000);
    disk.at(Lsn(lsn.0 + 512), 512).fill(0);
    let report = read(disk.write().path(), &ALL);
    assert!(report.problems[0].found.starts_with("checksum"), "{:?}", report.problems);
    assert!(!report.problems[0].found.contains("next segment"), "{:?}", report.problems);
}

/// The archive ends inside of a record that goes on in files which are not there yet.
#[test]
fn files_that_a_record_fills_behind_a_damaged_one_are_as_they_should_be() {
    let mut wal = Wal::new(Form::of("15"), 3);
    wal.leave_in_segment(20_000);
    wal.add(&Rec::data(6 << 20));
    let disk = wal.finish().without(9).without(10);
    let sound = disk.write();
    is_green("as it is", sound.path());
    for number in 4..8 {
        let name = format!("00000001{number:016X}");
        let directory = disk.clone().cut(Lsn((number << 20) + 0x8A000)).write();
        is_red("cut", directory.path(), "truncated", &name);
        let mut spoiled = disk.clone();
        spoiled.page(Lsn((number << 20) + 5 * 8192)).fill(0);
        spoiled.page(Lsn((number << 20) + 6 * 8192)).fill(0);
        let told = told(&check(&["--as", "archive"], spoiled.write().path()));
        assert_eq!(told.iter().map(|(_, file)| file).collect::<Vec<_>>(), [&name], "{told:?}");
    }
}

/// A second copy is held against the rest of the record that goes through it, in however many files it lies.
#[test]
fn a_copy_of_a_part_of_a_long_record_is_compared() {
    for megabytes in [1, 2, 3, 5] {
        let mut wal = Wal::new(Form::of("15"), 3);
        wal.leave_in_segment(20_000);
        wal.add(&Rec::data(megabytes << 20));
        wal.add(&Rec::data(100));
        wal.leave_in_segment(0);
        let disk = wal.finish();
        let directory = disk.write();
        let numbers: Vec<u64> = disk.files.keys().copied().collect();
        assert_eq!(numbers.len(), megabytes + 2);
        is_green("one copy of each", directory.path());
        for number in numbers {
            let mut bytes = disk.files[&number].clone();
            let at = bytes.len() - 700;
            let at = if number == 3 + megabytes as u64 + 1 { 1000 } else { at };
            bytes[at..at + 3].iter_mut().for_each(|byte| *byte ^= 0x15);
            let copy = format!("00000001{number:016X}.gz");
            put(directory.path(), &copy, &gzip(&bytes));
            is_red(&format!("{megabytes} MB"), directory.path(), "duplicate_differs", &copy);
            // It is the other one that is wrong.
            let plain = disk.path(directory.path(), number);
            put(directory.path(), &copy, &gzip(&disk.files[&number]));
            fs::write(&plain, &bytes).expect("a segment");
            let name = format!("00000001{number:016X}");
            is_red(&format!("{megabytes} MB, plain"), directory.path(), "duplicate_differs", &name);
            fs::write(&plain, &disk.files[&number]).expect("a segment");
            fs::remove_file(directory.path().join(copy)).expect("removed");
        }
    }
}

/// Of all formats that name a file, and with the good copy of that file all is well.
#[test]
fn every_format_names_the_segment_whose_first_page_is_zeros() {
    let mut files = three();
    files[1].1[..8192].fill(0);
    let directory = archive(&files);
    is_red("zeros", directory.path(), "zero_page", NAMES[1]);
    for format in ["table", "markdown", "junit", "sarif", "github", "gitlab"] {
        let mut command = command(&["check", "--as", "archive", "-f", format]);
        let ran = finish(command.arg(directory.path()).env_remove("GITHUB_STEP_SUMMARY"));
        let ran = ran.exits(4);
        let other = [NAMES[0], NAMES[2]].into_iter().find(|name| {
            let places = ["file=", "\"uri\": \"", "\"path\": \"", "PROBLEM "];
            places.iter().any(|place| ran.stdout.contains(&format!("{place}{name}")))
        });
        assert_eq!(other, None, "{format}:\n{}", ran.stdout);
        assert!(ran.stdout.contains(NAMES[1]), "{format}:\n{}", ran.stdout);
    }
    files[1].1 = segment(1);
    is_green("the good copy", archive(&files).path());
}

/// What is done to the files of an archive, names and bytes.
type Change = dyn Fn(&mut [(String, Vec<u8>)]);

/// Whatever was wrong before it: each file that is broken as a file is told.
#[test]
fn of_bad_neighbours_each_is_told() {
    let wal = sample("pg15-mixed");
    let names: Vec<String> =
        (0x0E..=0x11).map(|number| format!("0000000100000000000000{number:02X}")).collect();
    let good: Vec<(String, Vec<u8>)> =
        names.iter().map(|name| (name.clone(), plain(&wal, name))).collect();
    let bad = |kind: &str, change: &Change| {
        let mut files = good.clone();
        change(&mut files[1..3]);
        let told = told(&check(&["--as", "archive"], archive(&files).path()));
        let expected = [1, 2].map(|index| (kind.to_owned(), names[index].clone()));
        assert_eq!(told, expected, "{kind}");
    };
    bad("truncated", &|files| files.iter_mut().for_each(|file| file.1.truncate(500_000)));
    bad("zero_page", &|files| files.iter_mut().for_each(|file| file.1.fill(0)));
    bad("page_address", &|files| {
        let [one, other] = files else { return };
        std::mem::swap(&mut one.1, &mut other.1);
    });
}

/// What is done to segments.
type Damage = dyn Fn(&mut Disk);

/// Whatever is wrong up to the end of the segment before: in the next one a record is known to begin behind
/// the page's header, or behind the rest of another record.
#[test]
fn a_first_record_that_is_wrong_behind_a_damaged_segment_is_told() {
    let ways: [(&str, &Damage); 3] = [
        ("cut", &|disk| disk.files.get_mut(&3).expect("a segment").truncate(500_000)),
        ("zeros", &|disk| disk.files.get_mut(&3).expect("a segment")[500_000..].fill(0)),
        ("a wrong length", &|disk| flip(disk, (3 << 20) + 0x2A)),
    ];
    for (room, bytes) in [(0, 300), (0, 20_000), (5000, 300), (5000, 20_000)] {
        let mut wal = Wal::new(Form::of("15"), 3);
        wal.leave_in_segment(room);
        if room > 0 {
            wal.add(&Rec::data(9000));
        }
        let first = wal.add(&Rec::data(bytes));
        wal.add(&Rec::data(300));
        wal.leave_in_segment(0);
        wal.add(&Rec::data(300));
        wal.switch();
        let good = wal.finish();
        for (way, change) in &ways {
            let blamed = |is_first_flipped: bool| {
                let mut disk = good.clone();
                change(&mut disk);
                if is_first_flipped {
                    flip(&mut disk, first.0 + 40);
                }
                blamed(&disk)
            };
            assert_eq!(blamed(false), [THREE], "{way}, {room}, {bytes}");
            assert_eq!(blamed(true), [THREE, FOUR], "{way}, {room}, {bytes}");
        }
    }
}

/// In so long a record nobody looks for the wrong byte, which lies in any of its segments.
#[test]
fn of_a_long_record_that_is_wrong_all_segments_are_told() {
    let (mut disk, _) = crossing(96, 5 << 20);
    disk.files.get_mut(&6).expect("a segment")[5000] ^= 1;
    let ran = check(&["--as", "archive"], disk.write().path()).exits(4);
    let problem = &ran.json()["problems"][0];
    assert_eq!(problem["segment"], THREE);
    let found = problem["found"].as_str().unwrap_or_default();
    assert!(found.contains("; the record goes on in the next 6 segments, up to 0/00"), "{found}");
    assert!(found.ends_with("and any of these 7 may be the wrong one"), "{found}");
}

/// Segments 3 to 6 of a server, and of a clone of it from the middle of segment `parts` on.
fn clones(parts: u64) -> (Disk, Disk) {
    let mut origin = Wal::new(Form::of("15"), 3);
    while origin.at() < (parts << 20) + (1 << 19) {
        origin.add(&Rec::data(1000));
    }
    let written_on = |bytes: usize| {
        let mut wal = origin.clone();
        while wal.at() < (6 << 20) + (1 << 19) {
            wal.add(&Rec::data(bytes));
        }
        wal.switch();
        wal.finish()
    };
    (written_on(1500), written_on(1900))
}

/// The files that are blamed, whatever the WAL is divided into.
fn blamed(disk: &Disk) -> Vec<String> {
    let directory = disk.write();
    let named = |threads: usize| -> Vec<String> {
        let report = read(directory.path(), &ALL.threads(threads));
        report.problems.iter().map(|problem| problem.segment.clone()).collect()
    };
    let (one, apart) = (named(1), stats_apart(directory.path(), &ALL).expect("a report"));
    assert_eq!(named(8), one);
    assert_eq!(apart.problems.iter().map(|it| it.segment.clone()).collect::<Vec<_>>(), one);
    let mut all = one;
    all.dedup();
    all
}

/// A segment of a clone, or of another cluster under its number, fits none of its neighbours.
#[test]
fn a_segment_of_a_clone_is_blamed_alone() {
    let (own, other) = clones(3);
    for number in [4, 5] {
        let mut mixed = own.clone();
        mixed.files.insert(number, other.files[&number].clone());
        assert_eq!(blamed(&mixed), [format!("0000000100000000000000{number:02X}")]);
        mixed.files.insert(number, own.files[&number].clone());
        assert!(blamed(&mixed).is_empty());
    }
}

/// It fits the segment before it, as far as both servers have the same past. That the others fit each other
/// tells: of two alone, and of three, nothing does.
#[test]
fn the_segment_in_which_a_clone_parts_is_blamed_where_the_others_fit() {
    let (own, other) = clones(4);
    let mut mixed = own.clone();
    mixed.files.insert(4, other.files[&4].clone());
    assert_eq!(blamed(&mixed), [FOUR]);
    let three = mixed.clone().without(6);
    assert_eq!(blamed(&three), ["000000010000000000000005"]);
    let report = read(three.write().path(), &ALL);
    let found = &report.problems[0].found;
    assert!(found.contains(&format!(", or {FOUR} is wrong from 0/004F")), "{found}");
}

/// The same where it was closed early.
#[test]
fn a_segment_that_ends_in_a_switch_of_a_clone_is_blamed() {
    let (own, _) = clones(4);
    let mut wal = Wal::new(Form::of("15"), 3);
    while wal.at() < (4 << 20) + (1 << 18) {
        wal.add(&Rec::data(1000));
    }
    wal.switch();
    let mut mixed = own;
    mixed.files.insert(4, wal.finish().files[&4].clone());
    assert_eq!(blamed(&mixed), [FOUR]);
}

/// Its records are whole, and a server replays them all: it ends where the next segment does not go on.
#[test]
fn a_restore_comes_to_the_end_of_the_segment_of_a_clone() {
    let mut wal = Wal::new(Form::of("15"), 3);
    let start = back_up(&mut wal);
    while wal.at() < (4 << 20) + (1 << 18) {
        wal.add(&Rec::data(1000));
    }
    let mut clone = wal.clone();
    clone.switch();
    while wal.at() < (6 << 20) + (1 << 19) {
        wal.add(&Rec::data(1500));
    }
    wal.switch();
    let mut mixed = wal.finish();
    mixed.files.insert(4, clone.finish().files[&4].clone());
    let (code, told) = restored(mixed.write().path(), start, &[]);
    assert!(code == Some(4) && told.starts_with("restorable to LSN 0/00500000 only"), "{told}");
    assert!(told.ends_with(&format!(": continuation in {FOUR}")), "{told}");
}

/// No server writes behind a switch.
#[test]
fn a_switch_with_a_record_behind_it_is_blamed_though_nothing_else_tells() {
    let (own, _) = clones(3);
    let mut mixed = own.without(6).without(3);
    let mut wal = Wal::new(Form::of("15"), 3);
    let place = loop {
        let lsn = wal.add(&Rec::data(1000));
        if lsn.0 > (4 << 20) + 0x2000 && lsn.0 % 8192 < 4000 && lsn.0 % 8192 > 24 {
            break lsn;
        }
    };
    let previous = wal.records[wal.records.len() - 2].0;
    let switch = Rec::switch().encode(wal.form.version, previous.0);
    mixed.at(place, switch.len()).copy_from_slice(&switch);
    assert_eq!(blamed(&mixed), [FOUR]);
}

/// Thousands of histories that contradict each other take no longer than thousands that do not: all are held
/// against one plan. Were one made for each of them, this would not end for hours.
#[test]
fn thousands_of_histories_may_contradict_each_other() {
    let directory = archive(&three());
    let count = 3_000;
    for timeline in 2..count + 2 {
        let text = format!("{}\t0/{:X}\tx\n", timeline - 1, 0x90_0000 + 8 * timeline);
        super::put(directory.path(), &format!("{timeline:08X}.history"), text.as_bytes());
    }
    let told = told(&check(&["--as", "archive"], directory.path()).exits(4));
    let histories = told.iter().filter(|(kind, _)| kind == "history").count();
    assert_eq!((histories, told.len()), (count, count));
}
