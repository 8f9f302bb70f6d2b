//! Real records with one thing changed in each, and the checksum made right: recovery ends at them, or reads
//! what is not there, so no archive with one is sound.

use super::check;
use crate::common::changed::{Places, Stretch};
use crate::support::fixtures::sample;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Resource managers.
const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const MULTIXACT: u8 = 6;
const RELMAP: u8 = 7;
const STANDBY: u8 = 8;
const HEAP2: u8 = 9;
const HEAP: u8 = 10;
const BTREE: u8 = 11;

/// What is changed in a record, of which the places are known; `None`: it is not one of those that are meant.
type Change = fn(&mut Vec<u8>, &Places) -> Option<()>;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

/// Only records of this type.
fn of(bytes: &[u8], rmgr: u8, info: u8) -> Option<()> {
    (bytes[17] == rmgr && bytes[16] & 0xF0 == info).then_some(())
}

/// Only those without an image.
fn bare(places: &Places) -> Option<()> {
    places.blocks.iter().all(|block| block.image.is_empty()).then_some(())
}

/// The segments of a folder, unpacked.
fn unpacked(folder: &Path) -> TempDir {
    let plain = tempfile::tempdir().expect("a directory for the test");
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let bytes = fs::read(&path).expect("a file");
        match name.strip_suffix(".zst") {
            Some(name) => {
                let bytes = zstd::decode_all(bytes.as_slice()).expect("zstd");
                fs::write(plain.path().join(name), bytes).expect("a segment");
            }
            None => fs::write(plain.path().join(name), bytes).expect("a segment"),
        }
    }
    plain
}

#[track_caller]
fn is_told(what: &str, sample_name: &str, change: Change, expected: (&str, &str)) {
    let sample = sample(sample_name);
    let plain = unpacked(&sample.wal);
    let release = &sample.release;
    let stretches = (0..).map_while(|index| Stretch::read(plain.path(), release, index, 1));
    let changed = stretches.into_iter().find_map(|stretch| stretch.with(change));
    let (disk, lsn) = changed.unwrap_or_else(|| panic!("{what}: no such record in {sample_name}"));
    let directory = disk.write();
    let ran = check(&["--as", "archive"], directory.path());
    let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
    let at = |problem: &serde_json::Value| problem["lsn"] == lsn.to_string();
    let told: Vec<_> = problems.iter().filter(|problem| at(problem)).collect();
    assert_eq!((told.len(), ran.code), (1, Some(4)), "{what}: {}", ran.stdout);
    assert_eq!(told[0]["kind"], "record_body", "{what}");
    let text = (told[0]["expected"].as_str(), told[0]["found"].as_str());
    assert_eq!(text, (Some(expected.0), Some(expected.1)), "{what}");
}

#[test]
fn other_blocks_than_those_that_redo_reads() {
    let insert: Change = |bytes, places| {
        of(bytes, HEAP, 0x00)?;
        put(bytes, places.blocks.first()?.flags - 1, &[5])
    };
    let expected = "a reference to block 0, which redo of Heap/INSERT reads";
    is_told("another id", "pg15-mixed", insert, (expected, "none of that id"));
    is_told("another id", "pg9.5-mixed", insert, (expected, "none of that id"));
    let delete: Change = |bytes, places| {
        of(bytes, HEAP, 0x10)?;
        bare(places)?;
        bytes[places.blocks.first()?.flags] |= 2;
        Some(())
    };
    let expected = ("block 0 in the fork that redo of Heap/DELETE changes", "one in the fork vm");
    is_told("a fork", "pg17-mixed", delete, expected);
    let leaf: Change = |bytes, places| {
        of(bytes, BTREE, 0x00)?;
        put(bytes, places.blocks.first()?.number, &[0xFF; 4])
    };
    let expected = ("the number of block 0", "4294967295 (InvalidBlockNumber)");
    is_told("no block", "pg12-mixed", leaf, expected);
    let file: Change = |bytes, places| {
        of(bytes, HEAP2, 0x10)?;
        put(bytes, places.blocks.first()?.relation? + 8, &[0; 4])
    };
    is_told("no file", "pg15-mixed", file, ("the relation file of block 0", "file number 0"));
}

/// Offset number 5000 at this place of the main data.
fn to_5000(bytes: &mut [u8], places: &Places, at: usize) -> Option<()> {
    bare(places)?;
    put(bytes, places.main.start + at, &5000_u16.to_le_bytes())
}

#[test]
fn offset_numbers_that_no_page_has() {
    let insert: Change = |bytes, places| {
        of(bytes, HEAP, 0x00)?;
        to_5000(bytes, places, 0)
    };
    let update: Change = |bytes, places| {
        of(bytes, HEAP, 0x40)?;
        to_5000(bytes, places, 12)
    };
    let leaf: Change = |bytes, places| {
        of(bytes, BTREE, 0x00)?;
        to_5000(bytes, places, 0)
    };
    let found = "offset number 5000, which no page has";
    let rows: [(&str, &str, Change); 3] = [
        ("Heap/INSERT", "pg15-mixed", insert),
        ("Heap/HOT_UPDATE", "pg11-mixed", update),
        ("Btree/INSERT_LEAF", "pg17-mixed", leaf),
    ];
    for (name, sample, change) in rows {
        let expected = format!("an offset number of 1 to 2048 in a record {name}");
        is_told(name, sample, change, (&expected, found));
    }
    let none: Change = |bytes, places| {
        of(bytes, HEAP, 0x10)?;
        bare(places)?;
        put(bytes, places.main.start + 4, &[0, 0])
    };
    let expected = "an offset number of 1 to 2048 in a record Heap/DELETE";
    is_told("0", "pg18-workload", none, (expected, "offset number 0, which no page has"));
}

#[test]
fn lists_that_are_longer_than_the_data() {
    let subxacts: Change = |bytes, places| {
        of(bytes, TRANSACTION, 0x80)?;
        let xinfo = bytes.get(places.main.start + 8..)?.first_chunk()?;
        let xinfo = u32::from_le_bytes(*xinfo);
        // Subtransactions, after the database where there is one.
        let at = places.main.start + if xinfo & 1 != 0 { 20 } else { 12 };
        (xinfo & 2 != 0).then_some(())?;
        put(bytes, at, &1_000_000_u32.to_le_bytes())
    };
    let relations: Change = |bytes, places| {
        of(bytes, TRANSACTION, 0x80)?;
        let xinfo = bytes.get(places.main.start + 8..)?.first_chunk()?;
        let xinfo = u32::from_le_bytes(*xinfo);
        let at = places.main.start + if xinfo & 1 != 0 { 20 } else { 12 };
        (xinfo & 6 == 4).then_some(())?;
        put(bytes, at, &999_u32.to_le_bytes())
    };
    let running: Change = |bytes, places| {
        of(bytes, STANDBY, 0x10)?;
        put(bytes, places.main.start, &70_000_u32.to_le_bytes())
    };
    let multixact: Change = |bytes, places| {
        of(bytes, MULTIXACT, 0x20)?;
        put(bytes, places.main.start + 8, &50_u32.to_le_bytes())
    };
    let map: Change = |bytes, places| {
        of(bytes, RELMAP, 0x00)?;
        put(bytes, places.main.start + 8, &511_u32.to_le_bytes())
    };
    let rows: Change = |bytes, places| {
        of(bytes, HEAP2, 0x50)?;
        put(bytes, places.main.start + 2, &60_000_u16.to_le_bytes())
    };
    let pruned: Change = |bytes, places| {
        of(bytes, HEAP2, 0x10)?;
        bare(places)?;
        put(bytes, places.main.start + 4, &60_000_u16.to_le_bytes())
    };
    for (name, sample, change) in [
        ("Transaction/COMMIT", "pg15-mixed", subxacts),
        ("Transaction/COMMIT", "pg15-mixed", relations),
        ("Standby/RUNNING_XACTS", "pg13-mixed", running),
        ("MultiXact/CREATE_ID", "pg15-mixed", multixact),
        ("RelMap/UPDATE", "pg16-workload", map),
        ("Heap2/MULTI_INSERT", "pg16-workload", rows),
        ("Heap2/PRUNE", "pg15-mixed", pruned),
    ] {
        let expected = format!("the data that a record {name} says it has");
        is_told(name, sample, change, (&expected, "less: its lists go on after its end"));
    }
}

#[test]
fn images_that_give_no_page() {
    // Compressed and replayed, as the bits are from 15 on.
    const COMPRESSED: u8 = 0x1C;
    const APPLY: u8 = 0x02;
    /// Where its `bimg_info` is, if there is an image of block 0.
    fn info(places: &Places) -> Option<usize> {
        let block = places.blocks.first().filter(|block| !block.image.is_empty())?;
        Some(block.flags + 7)
    }
    let packed: Change = |bytes, places| {
        of(bytes, HEAP, 0x00)?;
        let flags = bytes[info(places)?];
        (flags & COMPRESSED != 0 && flags & APPLY != 0).then_some(())?;
        let image = places.blocks.first()?.image.clone();
        bytes.get_mut(image.start + image.len() / 2..image.end)?.fill(0xFF);
        Some(())
    };
    let expected = "an image of block 0 of a record Heap/INSERT that unpacks to a page";
    is_told("packed", "pg15-mixed", packed, (expected, "one that cannot be unpacked"));
    let hole: Change = |bytes, places| {
        of(bytes, HEAP, 0x00)?;
        let at = info(places)?;
        (bytes[at] & COMPRESSED != 0 && bytes[at] & 1 != 0).then_some(())?;
        // Its length stands behind it: a byte less than the page needs.
        bytes[at + 1] = bytes[at + 1].checked_sub(1)?;
        Some(())
    };
    let found = "one that unpacks to 8191 bytes, its hole included";
    is_told("a shorter hole", "pg15-mixed", hole, (expected, found));
    let unapplied: Change = |bytes, places| {
        of(bytes, XLOG, 0xB0)?;
        bytes[info(places)?] &= !APPLY;
        Some(())
    };
    let expected = "an image of block 0, which redo of XLOG/FPI restores";
    is_told("not replayed", "pg15-mixed", unapplied, (expected, "no image that is replayed"));
}
