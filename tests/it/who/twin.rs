//! The naive twin: takes every record apart by position and adds up.

use super::{json, number, rows};
use crate::common::builder::Form;
use crate::common::disk::Disk;
use crate::common::naive;
use crate::support::fixtures::{sample, sample_names};
use std::collections::{BTreeMap, BTreeSet};

/// Tablespace, database, relfilenode, fork.
type Key = (u64, u64, u64, u64);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Row {
    count: u64,
    record_bytes: u64,
    fpi_bytes: u64,
    refs: u64,
    data: u64,
    blocks: BTreeSet<u64>,
    hint: u64,
    new_page: u64,
    inserts: u64,
    updates: u64,
    hot: u64,
    elsewhere: u64,
    deletes: u64,
    locks: u64,
    vacuum: u64,
}

struct Block {
    id: u8,
    key: Key,
    number: u64,
    data: u64,
    image: Option<u64>,
}

fn little(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The blocks of a record, and its main data.
fn apart(bytes: &[u8], compressed: u8) -> (Vec<Block>, &[u8]) {
    let (mut at, mut payload, mut main) = (24, 0, 0);
    let (mut blocks, mut relation) = (Vec::new(), (0, 0, 0));
    while at + payload < bytes.len() {
        let id = bytes[at];
        at += 1;
        match id {
            255 => (main, at) = (little(bytes, at, 1), at + 1),
            254 => (main, at) = (little(bytes, at, 4), at + 4),
            253 => at += 2,
            252 => at += 4,
            id => {
                let (flags, data) = (bytes[at], little(bytes, at + 1, 2));
                at += 3;
                let mut image = None;
                if flags & 0x10 != 0 {
                    image = Some(little(bytes, at, 2));
                    let bits = bytes[at + 4];
                    at += if bits & compressed != 0 && bits & 1 != 0 { 7 } else { 5 };
                }
                if flags & 0x80 == 0 {
                    let of = |place| little(bytes, at + place, 4);
                    relation = (of(0), of(4), of(8));
                    at += 12;
                }
                let (tablespace, database, file) = relation;
                let key = (tablespace, database, file, u64::from(flags & 15));
                blocks.push(Block { id, key, number: little(bytes, at, 4), data, image });
                at += 4;
                payload += (data + image.unwrap_or(0)) as usize;
            }
        }
        if id >= 254 {
            break;
        }
    }
    (blocks, &bytes[bytes.len() - main as usize..])
}

fn count(rows: &mut BTreeMap<Key, Row>, bytes: &[u8], compressed: u8) {
    let (blocks, main) = apart(bytes, compressed);
    let (info, rmgr) = (bytes[16] & 0xF0, bytes[17]);
    let Some(first) = blocks.first() else { return };
    let images: u64 = blocks.iter().filter_map(|block| block.image).sum();
    let data: u64 = blocks.iter().map(|block| block.data).sum();
    let row = rows.entry(first.key).or_default();
    row.count += 1;
    row.record_bytes += bytes.len() as u64 - images - data;
    for block in &blocks {
        let row = rows.entry(block.key).or_default();
        row.record_bytes += block.data;
        row.refs += 1;
        row.data += block.data;
        row.blocks.insert(block.number);
        row.fpi_bytes += block.image.unwrap_or(0);
        row.hint += u64::from(block.image.is_some() && (rmgr, info) == (0, 0xA0));
        let new = block.image.is_some() && rmgr == 0 && [0xB0, 0xC0].contains(&info);
        row.new_page += u64::from(new);
    }
    let Some(heap) = blocks.iter().find(|block| block.key.3 == 0) else { return };
    let row = rows.entry(heap.key).or_default();
    match (rmgr, info & 0x70) {
        (10, 0x00) => row.inserts += 1,
        (10, 0x10) => row.deletes += 1,
        (10, 0x20) => {
            row.updates += 1;
            let old = blocks.iter().find(|block| block.id == 1 && block.key.3 == 0);
            row.elsewhere += u64::from(old.is_some_and(|old| old.number != heap.number));
        }
        (10, 0x40) => (row.updates, row.hot) = (row.updates + 1, row.hot + 1),
        (10, 0x60) | (9, 0x60) => row.locks += 1,
        (9, 0x10..=0x40) => row.vacuum += 1,
        (9, 0x50) => row.inserts += little(main, 2, 2),
        _ => {}
    }
}

fn assert_same(found: &serde_json::Value, row: &Row, what: &str) {
    let expected = [
        ("count", row.count),
        ("record_bytes", row.record_bytes),
        ("fpi_bytes", row.fpi_bytes),
        ("block_refs", row.refs),
        ("block_data_bytes", row.data),
        ("distinct_blocks", row.blocks.len() as u64),
        ("hint_fpi_count", row.hint),
        ("new_page_fpi_count", row.new_page),
        ("inserts", row.inserts),
        ("updates", row.updates),
        ("hot_updates", row.hot),
        ("updates_new_page", row.elsewhere),
        ("deletes", row.deletes),
        ("locks", row.locks),
        ("vacuum_records", row.vacuum),
    ];
    for (key, expected) in expected {
        assert_eq!(number(found, key), expected, "{what}: {key} of {found}");
    }
}

#[test]
fn relations_are_those_of_the_twin() {
    let mut read = 0;
    for name in sample_names().into_iter().filter(|name| name != "timeline") {
        let sample = sample(&name);
        let disk = Disk::read(&sample.wal, Form::of(&sample.release));
        if disk.files.is_empty() || disk.files.values().any(|file| file.len() > 1 << 20) {
            // Compressed, or of another segment size: the twin reads neither.
            continue;
        }
        let old = ["9.5", "9.6", "10", "11", "12", "13", "14"].contains(&&*sample.release);
        let mut expected = BTreeMap::new();
        for bytes in &naive::read(&disk, None, None, None).expect("records").contents {
            count(&mut expected, bytes, if old { 0x02 } else { 0x1C });
        }
        let report = json(&sample.wal, &["--stats=relation"]);
        let found: Vec<_> =
            rows(&report, "relations").iter().filter(|row| !row["fork"].is_null()).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        for row in found {
            let forks = ["main", "fsm", "vm", "init"];
            let fork = forks.iter().position(|fork| row["fork"] == *fork).expect("a fork");
            let of = |key| number(row, key);
            let key = (of("tablespace"), of("database"), of("relfilenode"), fork as u64);
            assert_same(row, &expected[&key], &name);
        }
        read += 1;
    }
    assert!(read >= 6, "only {read} samples were read");
}
