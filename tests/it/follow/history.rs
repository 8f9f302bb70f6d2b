//! Whose WAL lies in a folder: what was lost, what is another course of the same cluster, what is neither.

use super::{Ends, begin, ends, look};
use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::Rec;
use crate::support::patience::PATIENCE;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_read::Scan;
use walstat_read::follow::{Follower, Happening, StartAt};

const FIRST: u64 = 3;

/// Segments `FIRST` to `last`, each ended by a switch; `size` tells one course from another.
fn course(last: u64, size: usize) -> Disk {
    let mut wal = Wal::new(Form::of("15"), FIRST);
    wal.add(&Rec::shutdown());
    for number in FIRST..=last {
        for _ in 0..200 {
            wal.add(&Rec::sized(size));
        }
        assert_eq!(wal.at() / wal.form.segment, number);
        wal.switch();
    }
    wal.finish()
}

/// The records of some of these segments.
fn records(disk: &Disk, numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let folder = TempDir::new().expect("a directory");
    numbers.into_iter().for_each(|number| disk.write_segment(folder.path(), number));
    Scan::paths([folder.path()]).count(&Ends::default()).expect("WAL").1.observer.0
}

fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a directory") {
        fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
}

/// A server's directory with half of the first segment, and others that it has prepared.
fn half_written(disk: &Disk, prepared: std::ops::RangeInclusive<u64>) -> TempDir {
    let folder = TempDir::new().expect("a directory");
    fs::create_dir(folder.path().join("archive_status")).expect("a directory");
    for number in prepared {
        fs::write(disk.path(folder.path(), number), vec![0; disk.form.segment as usize])
            .expect("written");
    }
    let half = [&disk.files[&FIRST][..20 * 8192], &vec![0; (1 << 20) - 20 * 8192]].concat();
    fs::write(disk.path(folder.path(), FIRST), half).expect("written");
    folder
}

fn until_told(follower: &mut Follower) -> Vec<Happening> {
    let begun = Instant::now();
    loop {
        let told = look(follower);
        if !told.is_empty() {
            return told;
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// As a checkpoint does it while a follower is stopped: its segment gets a later name, and is written over up
/// to some page; one that was prepared is made anew.
#[test]
fn what_a_checkpoint_recycles_while_nobody_looks_is_lost_whatever_became_of_it() {
    let disk = course(9, 2000);
    for overwritten in [0, 5, 40] {
        let folder = half_written(&disk, FIRST + 1..=9);
        let path = |number: u64| disk.path(folder.path(), number);
        let mut follower = begin(folder.path(), StartAt::Oldest);
        assert_eq!(look(&mut follower), []);
        let (at, before) = (follower.position(), ends(&mut follower));
        fs::rename(path(FIRST), path(9)).expect("renamed");
        let mut recycled = OpenOptions::new().write(true).open(path(9)).expect("a segment");
        recycled.write_all(&disk.files[&9][..overwritten * 8192]).expect("written");
        (FIRST + 1..7).for_each(|number| fs::remove_file(path(number)).expect("removed"));
        fs::remove_file(path(8)).expect("removed");
        (7..=8).for_each(|number| disk.write_segment(folder.path(), number));
        let told = until_told(&mut follower);
        let [Happening::Lost { from, .. }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(*from, at);
        assert!(follower.is_readable());
        let counted = ends(&mut follower);
        let later = records(&disk, 7..=9);
        let after = &counted[before.len()..];
        assert_eq!(after, &later[..after.len()], "{overwritten}");
        assert!(after.len() >= records(&disk, 7..=8).len());
    }
}

/// The position is where a segment begins: what lies before it may not be there to tell.
#[test]
fn a_segment_of_another_course_is_not_counted_though_the_one_before_is_gone() {
    let (ours, other) = (course(6, 2000), course(6, 2008));
    for before in [6, 5] {
        let folder = TempDir::new().expect("a directory");
        (FIRST..=5).for_each(|number| ours.write_segment(folder.path(), number));
        let mut follower = begin(folder.path(), StartAt::Oldest);
        assert_eq!(look(&mut follower), []);
        assert_eq!(follower.position(), Lsn(6 << 20));
        let counted = ends(&mut follower);
        clear(folder.path());
        (before..=6).for_each(|number| other.write_segment(folder.path(), number));
        let told = look(&mut follower);
        assert!(matches!(told.as_slice(), [Happening::OtherHistory { .. }]), "{told:?}");
        assert_eq!(look(&mut follower), []);
        assert!(!follower.is_readable());
        assert_eq!((ends(&mut follower), follower.lost_bytes()), (counted, 0));
        clear(folder.path());
        ours.write_segment(folder.path(), 6);
        let told = look(&mut follower);
        assert!(matches!(told.as_slice(), [Happening::Back { .. }]), "{told:?}");
        assert_eq!(ends(&mut follower), records(&ours, FIRST..=6));
    }
}

/// Goes on as with a state: the record that was counted last is known, and was not read.
#[test]
fn a_start_behind_a_segment_asks_for_its_last_record() {
    let (ours, other) = (course(6, 2000), course(6, 2008));
    let folder = TempDir::new().expect("a directory");
    (FIRST..=5).for_each(|number| ours.write_segment(folder.path(), number));
    let mut follower = begin(folder.path(), StartAt::Oldest);
    look(&mut follower);
    let (last, position) = (follower.last(), follower.position());
    for (disk, is_same) in [(&other, false), (&ours, true)] {
        for before in [FIRST, 6] {
            clear(folder.path());
            (before..=6).for_each(|number| disk.write_segment(folder.path(), number));
            let mut follower = begin(folder.path(), StartAt::Before { position, timeline: 1 });
            follower.go_on(disk.start(), 0, last);
            let told = look(&mut follower);
            assert_eq!(told.is_empty(), is_same, "{before} {told:?}");
            assert_eq!(follower.is_readable(), is_same);
            assert_eq!(ends(&mut follower).is_empty(), !is_same);
        }
    }
}

#[test]
fn an_older_copy_put_back_is_told_at_once() {
    let disk = course(6, 2000);
    let folder = TempDir::new().expect("a directory");
    let put = |last: u64| (FIRST..=last).for_each(|of| disk.write_segment(folder.path(), of));
    put(6);
    let mut follower = begin(folder.path(), StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    clear(folder.path());
    put(4);
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::OtherHistory { .. }]), "{told:?}");
    assert!(!follower.is_readable());
    put(6);
    let told = look(&mut follower);
    assert!(matches!(told.as_slice(), [Happening::Back { .. }]), "{told:?}");
    assert_eq!(ends(&mut follower), records(&disk, FIRST..=6));
}

/// An archive that is cleaned up has lost nothing that was not counted.
#[test]
fn segments_that_were_counted_may_go() {
    let disk = course(7, 2000);
    let folder = TempDir::new().expect("a directory");
    (FIRST..=5).for_each(|number| disk.write_segment(folder.path(), number));
    let mut follower = begin(folder.path(), StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    clear(folder.path());
    assert_eq!(look(&mut follower), []);
    (6..=7).for_each(|number| disk.write_segment(folder.path(), number));
    assert_eq!(look(&mut follower), []);
    assert_eq!(ends(&mut follower), records(&disk, FIRST..=7));
}

#[test]
fn what_lies_before_a_missing_segment_at_the_start_is_told() {
    let disk = course(8, 2000);
    let folder = TempDir::new().expect("a directory");
    for number in [3, 4, 6, 7] {
        disk.write_segment(folder.path(), number);
    }
    let mut follower = begin(folder.path(), StartAt::Oldest);
    let (from, to) = (Lsn(3 << 20), Lsn(6 << 20));
    assert_eq!(look(&mut follower), [Happening::Skipped { from, to }]);
    disk.write_segment(folder.path(), 8);
    assert_eq!(look(&mut follower), []);
    assert_eq!(ends(&mut follower), records(&disk, 6..=8));
}

/// Damage of which one look reads a part only: what is valid behind it is not written off.
#[test]
fn damage_longer_than_a_look_is_passed_in_several() {
    let mut wal = Wal::new(Form::of("15"), FIRST);
    wal.add(&Rec::shutdown());
    for _ in 0..3000 {
        wal.add(&Rec::sized(1000));
    }
    let mut disk = wal.finish();
    let bad = Lsn((FIRST << 20) + 5 * 8192)..Lsn((FIRST << 20) + 100 * 8192);
    let length = (bad.end.0 - bad.start.0) as usize;
    disk.from(bad.start)[..length].fill(0x55);
    let folder = disk.write();
    let (_, outcome) = Scan::paths([folder.path()]).count(&Ends::default()).expect("WAL");
    let mut follower = begin(folder.path(), StartAt::Oldest);
    let (begun, mut told) = (Instant::now(), Vec::new());
    while told.is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        // The time is up with the first pages.
        told = follower.look(Instant::now()).happenings;
        std::thread::sleep(Duration::from_millis(5));
    }
    let [Happening::Damaged { from, to, found }] = told.as_slice() else { panic!("{told:?}") };
    assert!(*from <= bad.start && *to >= bad.end && to.0 < bad.end.0 + 2 * 8192, "{told:?}");
    assert!(!found.is_empty());
    assert_eq!(follower.lost_bytes(), to.0 - from.0);
    assert_eq!(look(&mut follower), []);
    let counted = ends(&mut follower);
    assert_eq!(counted, outcome.observer.0[..counted.len()]);
    assert!(counted.len() + 20 > outcome.observer.0.len());
}

/// A standby receives into recycled segments.
#[test]
fn old_content_behind_the_last_record_is_not_behind() {
    let mut wal = Wal::new(Form::of("15"), FIRST);
    wal.add(&Rec::shutdown());
    for _ in 0..1000 {
        wal.add(&Rec::sized(2000));
    }
    let end = Lsn(wal.at());
    let stale = wal.finish().stale_from(end, FIRST);
    let folder = stale.write();
    fs::create_dir(folder.path().join("archive_status")).expect("a directory");
    let mut follower = begin(folder.path(), StartAt::Oldest);
    assert_eq!(look(&mut follower), []);
    assert_eq!((follower.position(), follower.behind_bytes()), (end, 0));
    assert!(!follower.is_held_up().expect("WAL"));
    // A record of which the end is missing is behind.
    let mut wal = Wal::new(Form::of("15"), FIRST);
    wal.add(&Rec::shutdown());
    let begun = wal.add(&Rec::sized(60_000));
    let mut disk = wal.finish();
    disk.from(Lsn((FIRST << 20) + 5 * 8192)).fill(0);
    let folder = disk.write();
    fs::create_dir(folder.path().join("archive_status")).expect("a directory");
    let mut follower = begin(folder.path(), StartAt::Oldest);
    look(&mut follower);
    assert_eq!(follower.position(), begun);
    assert_eq!(follower.behind_bytes(), (FIRST << 20) + 4 * 8192 - begun.0);
}
