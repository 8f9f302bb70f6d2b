//! Files that are being written while the archive is read: what is not whole yet is waited for.

use super::{NAMES, archive, check, gzip, segment, three};
use crate::support::fixtures::fixtures;
use crate::support::{command, finish};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Less than it waits for a file that somebody writes to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than the program takes to find that a file is not whole.
const WRITTEN_FOR: Duration = Duration::from_millis(1500);

/// Writes a file bit by bit while `work` is done, and for so long that it is not whole when it is read first.
fn while_written<T>(path: &Path, bytes: &[u8], work: impl FnOnce() -> T) -> T {
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    fs::write(path, first).expect("a new file");
    let mut file = OpenOptions::new().append(true).open(path).expect("the file");
    let is_begun = AtomicBool::new(false);
    let told = &is_begun;
    thread::scope(|scope| {
        // It has the file open to its last byte, and no longer.
        scope.spawn(move || {
            let begun = Instant::now();
            let mut parts = rest[..rest.len() - 1].chunks(rest.len() / 1000 + 1);
            while begun.elapsed() < WRITTEN_FOR {
                told.store(true, Ordering::Release);
                parts.next().map_or(Ok(()), |part| file.write_all(part)).expect("written");
                thread::sleep(Duration::from_millis(5));
            }
            parts.for_each(|part| file.write_all(part).expect("written"));
            file.write_all(&rest[rest.len() - 1..]).expect("written");
        });
        while !is_begun.load(Ordering::Acquire) {
            thread::yield_now();
        }
        work()
    })
}

#[test]
fn a_segment_that_is_being_copied_is_waited_for() {
    let whole = three();
    for is_packed in [false, true] {
        let pack = |bytes: Vec<u8>| if is_packed { gzip(&bytes) } else { bytes };
        let suffix = if is_packed { ".gz" } else { "" };
        let files = whole.iter().map(|(name, bytes)| (name.clone() + suffix, pack(bytes.clone())));
        let mut files: Vec<(String, Vec<u8>)> = files.collect();
        let (name, last) = files.pop().expect("three");
        let directory = archive(&files);
        let path = directory.path().join(&name);
        let report = |ran: crate::support::Ran| {
            let report = ran.exits(0).json();
            assert_eq!(report["input"]["segments"], 3, "{name}: {report}");
        };
        report(while_written(&path, &last, || check(&["--as", "archive"], directory.path())));
        let stats = || finish(command(&["-f", "json", "--as", "archive"]).arg(directory.path()));
        report(while_written(&path, &last, stats));
    }
}

/// So is what `gzip` makes of a segment that is still there.
#[test]
fn a_segment_that_is_being_packed_in_its_place_is_waited_for() {
    let files = three();
    let directory = archive(&files);
    let (plain, packed) =
        (directory.path().join(NAMES[1]), directory.path().join(format!("{}.gz", NAMES[1])));
    let ran = while_written(&packed, &gzip(&segment(1)), || {
        check(&["--as", "archive"], directory.path())
    });
    assert_eq!(ran.exits(0).json()["input"]["segments"], 3);
    fs::remove_file(plain).expect("as gzip does");
}

/// What compresses well writes in bursts, seconds apart.
#[test]
fn a_segment_that_somebody_has_open_is_waited_for() {
    let mut files = three();
    let (name, last) = files.pop().expect("three");
    let directory = archive(&files);
    let mut file = fs::File::create(directory.path().join(&name)).expect("a new file");
    let (first, rest) = last.split_at(last.len() / 3);
    file.write_all(first).expect("written");
    thread::sleep(Duration::from_millis(1100));
    let ran = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(2 * WRITTEN_FOR);
            file.write_all(rest).expect("written");
        });
        check(&["--as", "archive"], directory.path())
    });
    assert_eq!(ran.exits(0).json()["input"]["segments"], 3);
}

/// An archiver that is never idle has always one that is not whole.
#[test]
fn a_segment_that_was_begun_since_is_left_out() {
    let names = ["07", "08", "09", "0A"].map(|end| format!("0000000100000000000000{end}"));
    let [first, second, third, fourth] = names.each_ref().map(|name| {
        let packed = fs::read(fixtures().join(format!("backup/archive/{name}.zst")));
        zstd::decode_all(packed.expect("a segment").as_slice()).expect("zstd")
    });
    let directory = archive(&[(names[0].clone(), first), (names[1].clone(), second)]);
    let place = |index: usize| directory.path().join(&names[index]);
    let is_checked = AtomicBool::new(false);
    let ran = while_written(&place(2), &third, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                let bytes = || fs::metadata(place(2)).map_or(0, |it| it.len());
                while bytes() < third.len() as u64 {
                    thread::sleep(Duration::from_millis(5));
                }
                let mut file = fs::File::create(place(3)).expect("a new file");
                while !is_checked.load(Ordering::Acquire) {
                    file.write_all(&fourth[..4096]).expect("written");
                    thread::sleep(Duration::from_millis(200));
                }
            });
            let ran = check(&["--as", "archive"], directory.path());
            is_checked.store(true, Ordering::Release);
            ran
        })
    });
    let report = ran.exits(0).json();
    assert_eq!(report["input"]["segments"], 3, "{report}");
    let note = format!("{}: not read: it was begun while", names[3]);
    assert!(report["notes"].to_string().contains(&note), "{report}");
}

/// One that nobody writes any more is cut off.
#[test]
fn a_copy_that_was_given_up_is_cut_off() {
    let mut files = three();
    files[2].1.truncate(1 << 19);
    let directory = archive(&files);
    // Of another machine, whose clock is ahead.
    let file = OpenOptions::new().append(true).open(directory.path().join(NAMES[2]));
    let later = SystemTime::now() + Duration::from_secs(3600);
    file.and_then(|file| file.set_modified(later)).expect("its time");
    let begun = Instant::now();
    let ran = check(&["--as", "archive"], directory.path()).exits(4);
    assert!(begun.elapsed() < PATIENCE, "nobody writes to it");
    let problem = &ran.json()["problems"][0];
    assert_eq!((&problem["kind"], &problem["segment"]), (&"truncated".into(), &NAMES[2].into()));
    fs::write(directory.path().join(NAMES[2]), segment(2)).expect("the whole one");
    check(&["--as", "archive"], directory.path()).exits(0);
}
