//! Nothing in the input makes the reader panic, run on or lose a byte: real and built WAL, cut
//! off, with bits turned over, bytes overwritten and pages swapped, the same in every run. The
//! books are closed each time, and one thread and many give the same report.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::{Block, Image, Rec};
use crate::common::xorshift::Xorshift;
use crate::common::{ALL, assert_closed, json, stats};
use crate::support::fixtures::sample;
use crate::support::patience::PATIENCE;
use std::time::Instant;
use walstat_format::lsn::Lsn;

/// Reads spoiled WAL. That there is nothing to read is a fine answer too.
#[track_caller]
fn survives(disk: &Disk, what: &str) {
    let directory = disk.write();
    let begun = Instant::now();
    let one = stats(directory.path(), &ALL);
    if let Ok(report) = &one {
        assert_closed(&report.books);
        assert_eq!(report.books.input_bytes, disk.total(), "{what}: all bytes are read");
    }
    let many = stats(directory.path(), &ALL.threads(64));
    assert_eq!(many.as_ref().map(json), one.as_ref().map(json), "{what}: threads");
    assert!(begun.elapsed() < PATIENCE, "{what} took {:?}", begun.elapsed());
}

/// Three short segments with records of all sizes, each ended by a switch.
fn built(release: &str, page: u64) -> Disk {
    let mut wal = Wal::new(Form::of(release).pages_of(page), 5);
    let image = Image { bytes: 500, hole: Some((60, 1000)), compressed: true, apply: true };
    for _ in 0..3 {
        for size in [1, 30, 255, 256, 3000, 20_000] {
            wal.add(&Rec::data(size));
            wal.add(&Rec::insert(size).block(Block::new(0).data(20).image(image)));
        }
        wal.leave(8);
        wal.add(&Rec::data(90));
        wal.switch();
    }
    wal.add(&Rec::data(10));
    wal.finish()
}

/// Built WAL, and two segments of real WAL.
fn inputs() -> Vec<(&'static str, Disk)> {
    let sample = sample("consistency");
    let mut real = Disk::read(&sample.wal, Form::of(&sample.release));
    while real.files.len() > 2 {
        real.files.pop_last();
    }
    vec![
        ("9.5, 1 kB pages", built("9.5", 1024)),
        ("16, 8 kB pages", built("16", 8192)),
        ("19, 64 kB pages", built("19", 65536)),
        ("consistency", real),
    ]
}

/// A place in the part of a random segment where the records are, more often than not.
fn place(random: &mut Xorshift, disk: &Disk) -> Lsn {
    let index = random.below(disk.files.len() as u64) as usize;
    let number = *disk.files.keys().nth(index).expect("a segment");
    let within = if random.below(4) == 0 { disk.form.segment } else { 60_000 };
    Lsn(number * disk.form.segment + random.below(within))
}

#[test]
fn files_cut_off_anywhere_are_read() {
    let mut random = Xorshift::new(11);
    for (name, disk) in inputs() {
        for _ in 0..12 {
            let lsn = place(&mut random, &disk);
            survives(&disk.clone().cut(lsn), &format!("{name}, cut at {lsn}"));
        }
        for bytes in [0, 1, 23, 24, 39, 40, 41, 64] {
            let lsn = Lsn(disk.end().0 - disk.form.segment + bytes);
            survives(&disk.clone().cut(lsn), &format!("{name}, cut at {lsn}"));
        }
    }
}

#[test]
fn bits_turned_over_are_survived() {
    let mut random = Xorshift::new(12);
    for (name, disk) in inputs() {
        for round in 0..20 {
            let mut spoiled = disk.clone();
            for _ in 0..=round {
                let lsn = place(&mut random, &disk);
                spoiled.at(lsn, 1)[0] ^= 1 << random.below(8);
            }
            survives(&spoiled, &format!("{name}, {round} bits"));
        }
    }
}

#[test]
fn bytes_overwritten_are_survived() {
    let mut random = Xorshift::new(13);
    for (name, disk) in inputs() {
        for round in 0..20 {
            let mut spoiled = disk.clone();
            let lsn = place(&mut random, &disk);
            let room = spoiled.from(lsn).len() as u64;
            let bytes = (1 + random.below(20_000)).min(room) as usize;
            let fill = [0, 0xFF, 0x01][round % 3];
            for byte in spoiled.at(lsn, bytes) {
                *byte = if round % 4 == 0 { random.next() as u8 } else { fill };
            }
            survives(&spoiled, &format!("{name}, {bytes} bytes at {lsn}"));
        }
    }
}

#[test]
fn pages_swapped_are_survived() {
    let mut random = Xorshift::new(14);
    for (name, disk) in inputs() {
        for round in 0..15 {
            let mut spoiled = disk.clone();
            let (one, other) = (place(&mut random, &disk), place(&mut random, &disk));
            let first = spoiled.page(one).to_vec();
            let second = spoiled.page(other).to_vec();
            spoiled.page(one).copy_from_slice(&second);
            if round % 2 == 0 {
                spoiled.page(other).copy_from_slice(&first);
            }
            survives(&spoiled, &format!("{name}, pages of {one} and {other}"));
        }
    }
}
