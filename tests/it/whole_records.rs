//! Whole records on demand: a dimension that looks at every byte of every record sees the bytes that
//! the naive twin sees, whatever pages, windows and runs a record crosses, on any number of threads,
//! through files, tars and pipes. And dimensions in order: what is settled comes in WAL order, with
//! what was lost at its place.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::naive;
use crate::common::record::{Block, HEAP, Image, Rec};
use crate::support::fixtures::{sample, sample_names};
use std::fs;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::scan::observe::Observe;

/// A record taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Apart {
    lsn: u64,
    main: Vec<u8>,
    /// Id, data, image.
    blocks: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>,
    origin: Option<u16>,
    toplevel_xid: Option<u32>,
}

/// Takes every record apart.
#[derive(Debug, Clone, Default)]
struct Parts(Vec<Apart>);

impl Observe for Parts {
    const WHOLE: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        let blocks = record.blocks().map(|block| {
            let data = record.block_data(&block).expect("all block data").into_owned();
            let image = record.image(&block).map(|image| image.bytes.into_owned());
            assert_eq!(image.is_some(), block.image.is_some(), "the image at {}", record.lsn);
            (block.id, data, image)
        });
        self.0.push(Apart {
            lsn: record.lsn.0,
            main: record.main_data().expect("all main data").into_owned(),
            blocks: blocks.collect(),
            origin: record.origin(),
            toplevel_xid: record.toplevel_xid(),
        });
    }

    fn merge(&mut self, later: Parts) {
        self.0.extend(later.0);
    }
}

/// The twin's way: by position, with plain indexing.
fn apart(lsn: Lsn, bytes: &[u8], compressed: u8) -> Apart {
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let mut apart = Apart { lsn: lsn.0, ..Apart::default() };
    let (mut at, mut payload, mut main, mut parts) = (24, 0, 0, Vec::new());
    while main == 0 && at + payload < bytes.len() {
        let id = bytes[at];
        at += 1;
        match id {
            255 => (main, at) = (number(at, 1), at + 1),
            254 => (main, at) = (number(at, 4), at + 4),
            253 => (apart.origin, at) = (Some(number(at, 2) as u16), at + 2),
            252 => (apart.toplevel_xid, at) = (Some(number(at, 4) as u32), at + 4),
            id => {
                let (flags, data) = (bytes[at], number(at + 1, 2));
                at += 3;
                let mut image = None;
                if flags & 0x10 != 0 {
                    image = Some(number(at, 2));
                    let bits = bytes[at + 4];
                    at += if bits & compressed != 0 && bits & 1 != 0 { 7 } else { 5 };
                }
                payload += data + image.unwrap_or(0);
                at += if flags & 0x80 == 0 { 16 } else { 4 };
                parts.push((id, data, image));
            }
        }
    }
    let mut take = |length: usize| {
        at += length;
        bytes[at - length..at].to_vec()
    };
    for (id, data, image) in parts {
        let image = image.map(&mut take);
        apart.blocks.push((id, take(data), image));
    }
    apart.main = take(main);
    assert_eq!(at, bytes.len());
    apart
}

fn twin(disk: &Disk) -> Vec<Apart> {
    let compressed = match disk.form.version.name {
        "9.5" | "9.6" | "10" | "11" | "12" | "13" | "14" => 0x02,
        _ => 0x1C,
    };
    let naive = naive::read(disk, None, None, None).expect("records");
    let records = naive.records.iter().zip(&naive.contents);
    records.map(|((lsn, _), bytes)| apart(*lsn, bytes, compressed)).collect()
}

fn seen<O: Observe>(paths: &[PathBuf], threads: usize, prototype: &O) -> O {
    let threads = NonZeroUsize::new(threads).expect("a thread");
    let scan = Scan { threads, ..Scan::paths(paths) };
    scan.count(prototype).expect("WAL").1.observer
}

#[track_caller]
fn assert_alike(found: &Parts, expected: &[Apart], what: &str) {
    assert_eq!(found.0.len(), expected.len(), "{what}: records");
    for (found, expected) in found.0.iter().zip(expected) {
        assert!(found == expected, "{what}: the record at {}", Lsn(expected.lsn));
    }
}

/// A tar of all segments, in an order of its own.
fn tar_of(directory: &Path) -> PathBuf {
    let path = directory.join("segments.tar");
    let mut tar = tar::Builder::new(fs::File::create(&path).expect("a file"));
    let entries = fs::read_dir(directory).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| *file != path);
    files.sort_by_key(|file| std::cmp::Reverse(file.to_string_lossy().chars().last()));
    for file in files {
        let name = file.file_name().expect("a name").to_owned();
        tar.append_path_with_name(&file, name).expect("a tar takes all");
    }
    tar.finish().expect("a tar");
    path
}

#[test]
fn every_byte_of_every_record_of_real_wal_is_seen() {
    let mut read = 0;
    for name in sample_names().into_iter().filter(|name| name != "timeline") {
        let sample = sample(&name);
        let disk = Disk::read(&sample.wal, Form::of(&sample.release));
        let whole = 1 << 20;
        if disk.files.is_empty() || disk.files.values().any(|file| file.len() > whole) {
            // Compressed, or of another segment size: the twin reads neither.
            continue;
        }
        let expected = twin(&disk);
        for threads in [1, 3] {
            let found = seen(std::slice::from_ref(&sample.wal), threads, &Parts::default());
            assert_alike(&found, &expected, &format!("{name}, {threads} threads"));
        }
        read += 1;
    }
    assert!(read >= 6, "only {read} samples were read");
}

/// WAL in which records of every kind cross pages, windows and segments.
fn crossing(release: &str) -> Disk {
    let form = Form::of(release);
    let mut wal = Wal::new(form, 2);
    let whole = Block::new(0).image(Image::WHOLE);
    let part = Image { bytes: 3000, hole: Some((200, 5192)), compressed: true, apply: true };
    for turn in 0..60u16 {
        wal.add(&Rec::new(HEAP, 0x00, 40).block(Block::new(0).data(900 + turn * 7)));
        wal.add(&Rec::new(HEAP, 0x20, 300).block(whole).block(Block::new(1).data(50).same_rel()));
        wal.add(
            &Rec::new(HEAP, 0x20, 0)
                .block(Block::new(0).image(part).data(77))
                .block(Block::new(3).data(8000)),
        );
        let labelled = Rec { origin: Some(7), ..Rec::new(HEAP, 0x10, 9000 + usize::from(turn)) };
        wal.add(&labelled.block(Block::new(2).image(part)));
        if turn % 20 == 0 {
            // Longer than a window, and than a segment: a run can be all of one record.
            wal.add(&Rec::new(HEAP, 0x00, 700_000 + usize::from(turn) * 100_000));
        }
        wal.add(&Rec::sized(40 + usize::from(turn)));
    }
    wal.finish()
}

#[test]
fn every_byte_of_records_that_cross_anything_is_seen() {
    for release in ["9.5", "14", "15", "19"] {
        let disk = crossing(release);
        assert!(disk.files.len() >= 8, "{} segments", disk.files.len());
        let (directory, expected) = (disk.write(), twin(&disk));
        let paths = [directory.path().to_owned()];
        for threads in [1, 2, 5, 64] {
            let found = seen(&paths, threads, &Parts::default());
            assert_alike(&found, &expected, &format!("{release}, {threads} threads"));
        }
        let tar = tar_of(directory.path());
        let found = seen(&[tar], 2, &Parts::default());
        assert_alike(&found, &expected, &format!("{release}, a tar"));
    }
}

/// What came in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Record(u64),
    Lost(Range<u64>),
}

/// Keeps what it has seen until it is settled.
#[derive(Debug, Clone, Default)]
struct InOrder {
    waiting: Vec<Event>,
    settled: Arc<Mutex<Vec<Event>>>,
    most: Arc<Mutex<usize>>,
}

impl Observe for InOrder {
    fn observe(&mut self, record: &Record<'_>) {
        self.waiting.push(Event::Record(record.lsn.0));
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.waiting.push(Event::Lost(range.start.0..range.end.0));
    }

    fn merge(&mut self, later: InOrder) {
        self.waiting.extend(later.waiting);
    }

    fn settle(&mut self) {
        let mut most = self.most.lock().expect("a lock");
        *most = self.waiting.len().max(*most);
        self.settled.lock().expect("a lock").append(&mut self.waiting);
    }
}

#[test]
fn what_is_settled_comes_in_the_order_of_the_wal_with_what_was_lost_at_its_place() {
    let form = Form::of("15");
    let mut wal = Wal::new(form, 1);
    while wal.at() < 12 * form.segment - 100 {
        wal.add(&Rec::sized(1500));
    }
    let lsns: Vec<u64> = wal.records.iter().map(|(lsn, _)| lsn.0).collect();
    let mut disk = wal.finish();
    // A record is damaged, two segments are missing, and the last byte of one.
    let bad = lsns.iter().position(|lsn| *lsn > 3 * form.segment + 5000).expect("a record");
    disk.at(Lsn(lsns[bad] + 100), 1)[0] ^= 1;
    let disk = disk.without(6).without(7);
    let directory = disk.write();
    for number in disk.files.keys() {
        // Else a server could be writing there, and damage would be looked at again.
        let file = fs::File::options().write(true).open(disk.path(directory.path(), *number));
        let time = std::time::SystemTime::UNIX_EPOCH;
        file.and_then(|file| file.set_modified(time)).expect("a file of the test's own");
    }
    let mut expected = Vec::new();
    let holes = [lsns[bad]..lsns[bad + 1], 6 * form.segment..8 * form.segment];
    let (mut before, mut end) = (None, 0);
    for (index, &lsn) in lsns.iter().enumerate() {
        let next = lsns.get(index + 1).copied().unwrap_or(u64::MAX);
        let starts_in_hole = holes.iter().any(|hole| hole.contains(&lsn));
        let runs_into_hole = holes[1].contains(&(next - 40)) && next > holes[1].start;
        if starts_in_hole || runs_into_hole {
            before.get_or_insert(end);
        } else {
            if let Some(from) = before.take() {
                expected.push(Event::Lost(from..lsn));
            }
            expected.push(Event::Record(lsn));
            end = next;
        }
    }
    for threads in [1, 2, 7] {
        let prototype = InOrder::default();
        let rest = seen(&[directory.path().to_owned()], threads, &prototype).waiting;
        assert!(rest.is_empty(), "{} events were never settled", rest.len());
        let settled = prototype.settled.lock().expect("a lock");
        let lost = |events: &[Event]| {
            let lost = events.iter().filter(|event| matches!(event, Event::Lost(_)));
            lost.cloned().collect::<Vec<_>>()
        };
        assert_eq!(lost(&settled), lost(&expected), "{threads} threads");
        let differs = settled.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!((differs, settled.len()), (None, expected.len()), "{threads} threads");
        let most = *prototype.most.lock().expect("a lock");
        assert!(threads == 1 || most < expected.len() / 2, "{most} of {} at once", expected.len());
    }
}
