//! Real records with one thing changed in each, and the checksum made right: recovery ends at them, or reads
//! what is not there, so no archive with one is sound.

use super::check;
use crate::common::builder::{Form, Wal};
use crate::common::changed::Stretch;
use crate::common::one_change::{
    self, Change, bare, insert_at_0, insert_at_5000, insert_into_file_0, insert_marked,
    insert_of_image_marked, insert_of_other_id, insert_to_be_compared, insert_unmarked,
    insert_with_broken_image, insert_with_short_image, leaf_of_other_id, of, put, put_offset,
    split_unmarked,
};
use crate::common::record::{Block, Image, Rec};
use crate::support::Ran;
use crate::support::fixtures::sample;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::{BTREE, HEAP, HEAP2, MULTIXACT, RELMAP, STANDBY, TRANSACTION, XLOG};

/// What is there in the place of an image.
const NO_IMAGE: &str = "none that is restored";

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

/// A segment of a sample with a change of one record, and where that lies.
fn with_change(sample_name: &str, change: Change) -> (TempDir, Lsn) {
    let sample = sample(sample_name);
    let plain = unpacked(&sample.wal);
    let release = &sample.release;
    let mut stretches = (0..).map_while(|index| Stretch::read(plain.path(), release, index, 1));
    let changed = stretches.find_map(|stretch| stretch.with(change));
    let (disk, lsn) = changed.unwrap_or_else(|| panic!("no such record in {sample_name}"));
    (disk.write(), lsn)
}

#[track_caller]
fn is_told(what: &str, sample_name: &str, change: Change, expected: (&str, &str)) {
    let (directory, lsn) = with_change(sample_name, change);
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
    let expected = "a reference to block 0, which redo of Heap/INSERT reads";
    let expected = (expected, "none of that id");
    is_told("another id", "pg15-mixed", insert_of_other_id, expected);
    is_told("another id", "pg9.5-mixed", insert_of_other_id, expected);
    let expected = "a reference to block 0, which redo of Btree/INSERT_LEAF reads";
    is_told("another id", "pg12-mixed", leaf_of_other_id, (expected, "none of that id"));
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
    let expected = ("the relation file of block 0", "file number 0");
    is_told("no file", "pg15-mixed", insert_into_file_0, expected);
}

#[test]
fn offset_numbers_that_no_page_has() {
    let update: Change = |bytes, places| {
        of(bytes, HEAP, 0x40)?;
        put_offset(bytes, places, 12, 5000)
    };
    let leaf: Change = |bytes, places| {
        of(bytes, BTREE, 0x00)?;
        put_offset(bytes, places, 0, 5000)
    };
    let found = "offset number 5000, which no page has";
    let rows: [(&str, &str, Change); 2] =
        [("Heap/INSERT", "pg15-mixed", insert_at_5000), ("Heap/HOT_UPDATE", "pg11-mixed", update)];
    for (name, sample, change) in rows {
        let expected = format!("an offset number of 1 to 2048 in a record {name}");
        is_told(name, sample, change, (&expected, found));
    }
    // Both mean wherever there is room, the latter in an index.
    for (sample, change) in [("pg15-mixed", insert_at_0 as Change), ("pg17-mixed", leaf)] {
        let (directory, _) = with_change(sample, change);
        assert_eq!(check(&["--as", "archive"], directory.path()).code, Some(0), "{sample}");
    }
    let none: Change = |bytes, places| {
        of(bytes, HEAP, 0x10)?;
        put_offset(bytes, places, 4, 0)
    };
    let expected = "an offset number of 1 to 2048 in a record Heap/DELETE";
    is_told("0", "pg18-workload", none, (expected, "offset number 0, which no page has"));
}

/// `block with WILL_INIT flag in WAL record must be zeroed by redo routine`, and the other way round.
#[test]
fn blocks_that_are_marked_to_be_made_anew_and_are_not() {
    let read = |name: &str| {
        format!("block 0 without the flag WILL_INIT: redo of {name} reads it as it is")
    };
    let made = |id: u8, name: &str| {
        format!("block {id} with the flag WILL_INIT: redo of {name} makes it anew")
    };
    for sample in ["pg9.5-mixed", "pg12-mixed", "pg15-mixed", "pg18-workload"] {
        is_told("marked", sample, insert_marked, (&read("Heap/INSERT"), "WILL_INIT"));
    }
    let expected = read("Heap/INSERT");
    is_told("with an image", "pg15-mixed", insert_of_image_marked, (&expected, "WILL_INIT"));
    for sample in ["pg9.5-mixed", "pg15-mixed"] {
        let expected = made(0, "Heap/INSERT+INIT");
        is_told("not marked", sample, insert_unmarked, (&expected, "none"));
    }
    let expected = made(1, "Btree/SPLIT_R");
    is_told("the second block", "pg15-mixed", split_unmarked, (&expected, "none"));
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
        is_told(name, sample, change, (&expected, "less: redo reads on after its end"));
    }
}

#[test]
fn images_that_give_no_page() {
    let expected = "an image of block 0 of a record Heap/INSERT that unpacks to a page";
    let broken = (expected, "one that cannot be unpacked");
    is_told("packed", "pg15-mixed", insert_with_broken_image, broken);
    let short = (expected, "one that unpacks to 8191 bytes, its hole included");
    is_told("a shorter hole", "pg15-mixed", insert_with_short_image, short);
    let expected = ("an image of block 0, which redo of Heap/INSERT restores", NO_IMAGE);
    is_told("compared", "pg15-mixed", insert_to_be_compared, expected);
    is_told("compared", "pg11-mixed", insert_to_be_compared, expected);
    let unapplied: Change = |bytes, places| {
        of(bytes, XLOG, 0xB0)?;
        let block = places.blocks.first().filter(|block| !block.image.is_empty())?;
        bytes[block.flags + 7] &= !one_change::APPLIED;
        Some(())
    };
    let expected = "an image of block 0, which redo of XLOG/FPI restores";
    is_told("not replayed", "pg15-mixed", unapplied, (expected, NO_IMAGE));
}

/// The problems of WAL with an insertion whose block has an image of these packed bytes.
fn told_of_image(release: &str, packed: Vec<u8>, hole: Option<(u16, u16)>, is_zstd: bool) -> Ran {
    let bytes = u16::try_from(packed.len()).expect("less than a page");
    let image = Image { bytes, hole, compressed: true, apply: true };
    let insert = Rec { payload: packed, ..Rec::insert(3).block(Block::new(0).image(image)) };
    let mut wal = Wal::new(Form::of(release), 5);
    wal.add(&Rec::begins(1, 1));
    wal.add(&insert);
    wal.add(&Rec::data(40));
    wal.switch();
    let directory = wal.finish().write();
    if !is_zstd {
        return check(&["--as", "archive"], directory.path());
    }
    let named: Change = |bytes, places| {
        of(bytes, HEAP, 0x00)?;
        let info = places.blocks.first()?.flags + 7;
        bytes[info] = bytes[info] & !0x1C | 0x10;
        Some(())
    };
    let stretch = Stretch::read(directory.path(), release, 0, 1);
    let (disk, _) = stretch.and_then(|it| it.with(named)).expect("an insertion");
    check(&["--as", "archive"], disk.write().path())
}

/// A page in a frame of Zstandard, and the same with bytes changed in its only block.
#[test]
fn an_image_of_zstd_is_unpacked() {
    let page: Vec<u8> =
        (0..8192_u32).flat_map(|it| (it * it / 7).to_le_bytes()).take(8192).collect();
    let whole = zstd::bulk::compress(&page, 3).expect("zstd");
    assert_eq!(told_of_image("15", whole.clone(), None, true).code, Some(0));
    let mut broken = whole;
    let middle = broken.len() / 2;
    broken[middle..].fill(0xFF);
    let ran = told_of_image("15", broken, None, true);
    assert!(ran.stdout.contains("one that cannot be unpacked"), "{}", ran.stdout);
}

/// What pglz makes of two bytes and so many references of 273 bytes.
fn references(count: usize) -> Vec<u8> {
    let mut packed = vec![0b1111_1100, b'a', b'a'];
    for index in 0..count {
        if index % 8 == 6 {
            packed.push(0xFF);
        }
        packed.extend([0x0F, 1, 255]);
    }
    packed
}

/// A server takes of the last reference what there is room for, from 12 on.
#[test]
fn the_last_reference_of_pglz_may_go_over_the_end() {
    let packed = references(30);
    let hole = |bytes: u16| (bytes > 0).then_some((100, bytes));
    let of_hole = |release, bytes| told_of_image(release, packed.clone(), hole(bytes), false);
    for (release, bytes, found) in [
        ("15", 0, None),
        ("15", 272, None),
        ("15", 273, Some(8465)),
        ("12", 100, None),
        ("11", 0, None),
        ("11", 100, Some(8292)),
        ("9.5", 100, Some(8292)),
    ] {
        let ran = of_hole(release, bytes);
        let told = |bytes: i32| format!("one that unpacks to {bytes} bytes, its hole included");
        assert_eq!(
            ran.code,
            Some(if found.is_some() { 4 } else { 0 }),
            "{release}, {bytes}: {}",
            ran.stdout
        );
        assert!(found.is_none_or(|it| ran.stdout.contains(&told(it))), "{release}: {}", ran.stdout);
    }
}

/// A server copies a negative number of bytes, and ends by signal 11.
#[test]
fn a_hole_lies_within_its_page() {
    // 7919 bytes.
    let packed = references(29);
    let with_hole_at = |offset| told_of_image("15", packed.clone(), Some((offset, 273)), false);
    assert_eq!(with_hole_at(7919).code, Some(0));
    let ran = with_hole_at(7920);
    assert_eq!(ran.code, Some(4), "{}", ran.stdout);
    assert!(ran.stdout.contains("hole goes on after the end of the page"), "{}", ran.stdout);
}

/// A record of each type whose data are a byte fewer than redo reads, and just enough.
#[test]
fn structures_that_redo_reads_are_whole() {
    for (release, name, rmgr, info, bytes) in [
        ("15", "XLOG/NEXTOID", XLOG, 0x30, 4),
        ("11", "XLOG/PARAMETER_CHANGE", XLOG, 0x60, 24),
        ("15", "XLOG/PARAMETER_CHANGE", XLOG, 0x60, 28),
        ("9.5", "Storage/TRUNCATE", 2, 0x20, 16),
        ("15", "Storage/TRUNCATE", 2, 0x20, 20),
        ("16", "CLOG/TRUNCATE", 3, 0x10, 12),
        ("18", "CLOG/TRUNCATE", 3, 0x10, 16),
        ("14", "Database/CREATE", 4, 0x00, 16),
        ("15", "Database/CREATE_WAL_LOG", 4, 0x10, 8),
        ("15", "Tablespace/DROP", 5, 0x10, 4),
        ("17", "MultiXact/ZERO_MEM_PAGE", MULTIXACT, 0x10, 8),
        ("18", "CommitTs/TRUNCATE", 18, 0x10, 12),
        ("15", "ReplicationOrigin/DROP", 19, 0x10, 2),
        ("12", "Database/DROP", 4, 0x10, 8),
    ] {
        for is_short in [true, false] {
            let mut wal = Wal::new(Form::of(release), 5);
            wal.add(&Rec::begins(1, 1));
            let bytes = bytes - usize::from(is_short);
            let lsn = wal.add(&Rec { xid: 0, ..Rec::new(rmgr, info, bytes) });
            wal.add(&Rec::data(40));
            wal.switch();
            let ran = check(&["--as", "archive"], wal.finish().write().path());
            let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
            let told = problems.iter().find(|problem| problem["lsn"] == lsn.to_string());
            let expected = format!("the data that redo of {name} reads");
            assert_eq!(
                told.map(|it| it["expected"].as_str()),
                is_short.then_some(Some(&*expected))
            );
        }
    }
}

/// Of a database that is dropped its tablespaces, of one that is made its path.
#[test]
fn lists_of_databases_and_tablespaces() {
    let list = |count: u32, there: usize| {
        let numbers = std::iter::repeat_n([7; 4], there).flatten();
        let both = [5_u32.to_le_bytes(), count.to_le_bytes()];
        both.into_iter().flatten().chain(numbers).collect::<Vec<u8>>()
    };
    let path = |text: &[u8]| [&[7; 4], text].concat();
    let rows = [
        ("15", "Database/DROP", 4, 0x20, list(2, 2), true),
        ("15", "Database/DROP", 4, 0x20, list(3, 2), false),
        ("13", "Database/DROP", 4, 0x10, list(3, 2), false),
        ("12", "Database/DROP", 4, 0x10, list(3, 2), true),
        ("15", "Tablespace/CREATE", 5, 0x00, path(b"/somewhere\0"), true),
        ("15", "Tablespace/CREATE", 5, 0x00, path(b"/somewhere"), false),
    ];
    for (release, name, rmgr, info, main, is_well) in rows {
        let mut wal = Wal::new(Form::of(release), 5);
        wal.add(&Rec::begins(1, 1));
        wal.add(&Rec { xid: 0, main, ..Rec::new(rmgr, info, 0) });
        wal.add(&Rec::data(40));
        wal.switch();
        let ran = check(&["--as", "archive"], wal.finish().write().path());
        assert_eq!(ran.code, Some(if is_well { 0 } else { 4 }), "{release} {name}: {}", ran.stdout);
        let told = ran.stdout.contains(&format!("the data that redo of {name} reads"));
        assert_eq!(told, !is_well, "{release} {name}: {}", ran.stdout);
    }
}

/// Redo does nothing with a record of these types, or looks at it as a hot standby only.
#[test]
fn what_redo_does_not_read_may_be_missing() {
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.add(&Rec::begins(1, 1));
    for (rmgr, info) in [(XLOG, 0x20), (HEAP2, 0x70), (21, 0x00), (HEAP, 0x30)] {
        wal.add(&Rec { xid: 0, ..Rec::new(rmgr, info, 1) });
    }
    wal.switch();
    assert_eq!(check(&["--as", "archive"], wal.finish().write().path()).code, Some(0));
}

/// Redo reads a checkpoint, or which record was overwritten, from main data that end before.
#[test]
fn records_that_end_before_what_redo_reads_of_them() {
    for (name, info, bytes) in [("CHECKPOINT_ONLINE", 0x10, 3), ("OVERWRITE_CONTRECORD", 0xD0, 9)] {
        let mut wal = Wal::new(Form::of("15"), 5);
        wal.add(&Rec::begins(1, 1));
        (0..20).for_each(|_| _ = wal.add(&Rec::data(40)));
        let lsn = wal.add(&Rec { xid: 0, ..Rec::new(XLOG, info, bytes) });
        wal.add(&Rec::data(40));
        wal.switch();
        let ran = check(&["--as", "archive"], wal.finish().write().path());
        let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
        let told = problems.iter().find(|problem| problem["lsn"] == lsn.to_string());
        let told = told.unwrap_or_else(|| panic!("{name}: {}", ran.stdout));
        let expected = format!("the data that redo of XLOG/{name} reads");
        assert_eq!((&told["kind"], &told["expected"]), (&"record_body".into(), &expected.into()));
    }
}
