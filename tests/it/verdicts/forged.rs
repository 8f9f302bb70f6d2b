//! Records whose checksums are right and that no server can have written: recovery ends at them, or worse.
//! WAL made on purpose, of all releases.

use super::{check, told as told_by};
use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, HEAP, Image, Rec, XLOG};
use crate::common::{ALL, read};
use crate::support::{Ran, command, finish};
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_format::version::VERSIONS;
use walstat_read::input::problem::ProblemKind;

/// An archive of a segment with this record among others, and where it lies.
fn with(release: &str, record: &Rec) -> (TempDir, Lsn) {
    let mut wal = Wal::new(Form::of(release), 5);
    wal.add(&Rec::begins(1, 1));
    (0..20).for_each(|_| _ = wal.add(&Rec::data(40)));
    let lsn = wal.add(record);
    (0..20).for_each(|_| _ = wal.add(&Rec::data(40)));
    wal.switch();
    (wal.finish().write(), lsn)
}

/// What each command makes of it that reads all records.
fn ran(directory: &TempDir) -> [(&'static str, Ran); 4] {
    let of = |words: &[&str]| finish(command(words).arg(directory.path()));
    [
        ("check", check(&["--as", "archive"], directory.path())),
        ("report", of(&["-f", "json", "-j", "2"])),
        ("stats", of(&["--stats=record", "-f", "json", "-r", "Heap"])),
        ("window", of(&["window", "-f", "json"])),
    ]
}

#[track_caller]
fn is_judged(what: &str, release: &str, record: &Rec, is_possible: bool) {
    let (directory, lsn) = with(release, record);
    let problems = read(directory.path(), &ALL).problems;
    let told: Vec<_> = problems.iter().map(|it| (it.kind, it.lsn.clone())).collect();
    let expected = (ProblemKind::RecordBody, Some(lsn.to_string()));
    let expected = if is_possible { vec![] } else { vec![expected] };
    assert_eq!(told, expected, "{what}, {release}");
    // One release for what is the same in all.
    if is_possible || release != "15" {
        return;
    }
    for (command, ran) in ran(&directory) {
        let what = format!("{what}, {command}: {}", ran.stderr);
        let expected = ("record_body".to_owned(), "000000010000000000000005".to_owned());
        assert_eq!((told_by(&ran), ran.code), (vec![expected], Some(4)), "{what}");
    }
}

/// A resource manager, `xl_info`, and the first and the last release whose redo takes it; none: no release.
type Known = (u8, u8, Option<(&'static str, &'static str)>);

/// `heap_redo: unknown op code 48`, and its like. Redo masks the flag for a page that is made anew, and that
/// of transactions; `xlog_redo` and `generic_redo` pass over what they do not know.
const OP_CODES: [Known; 17] = [
    (0, 0xC0, Some(("9.5", "19"))),
    (1, 0xE0, Some(("14", "19"))),
    (1, 0x70, None),
    (2, 0x30, None),
    (4, 0x20, Some(("15", "19"))),
    (8, 0x20, Some(("9.6", "19"))),
    (8, 0x30, None),
    (9, 0x40, Some(("9.5", "18"))),
    (10, 0x30, Some(("11", "19"))),
    (10, 0x90, Some(("9.5", "19"))),
    (11, 0xE0, Some(("11", "19"))),
    (11, 0xF0, None),
    (12, 0x20, Some(("10", "19"))),
    (14, 0x70, Some(("13", "18"))),
    (17, 0x60, None),
    (17, 0xA0, Some(("9.5", "19"))),
    (18, 0x20, Some(("9.5", "13"))),
];

/// With all blocks that any redo function reads, where it expects them.
fn with_blocks(record: Rec) -> Rec {
    let is_visible = (record.rmgr, record.info) == (9, 0x40);
    (0..8).fold(record, |record, id| {
        let fork = if is_visible && id == 0 { 2 } else { 0 };
        let own = Block { fork, ..Block::new(id) };
        record.block(own)
    })
}

#[test]
fn an_op_code_that_the_release_does_not_have_is_a_problem() {
    let place = |name: &str| VERSIONS.iter().position(|version| version.name == name);
    for version in &VERSIONS {
        for (rmgr, info, known) in OP_CODES {
            let is_known = known.is_some_and(|(first, last)| {
                (place(first)..=place(last)).contains(&place(version.name))
            });
            let what = format!("resource manager {rmgr}, info 0x{info:02X}");
            // Only what is told of the type is asked here: as a transaction's end it would need its data.
            let record = Rec { xid: 0, ..Rec::new(rmgr, info, 64) };
            is_judged(&what, version.name, &with_blocks(record), is_known);
        }
    }
    let record = Rec::new(20, 0x50, 40);
    ["9.6", "15", "19"].into_iter().for_each(|name| is_judged("generic", name, &record, true));
    let record = Rec::new(128, 0x50, 40);
    ["15", "19"].into_iter().for_each(|name| is_judged("an extension", name, &record, true));
}

/// One record is told, by any number of threads: the one at this place.
#[track_caller]
fn one_is_told(wal: Wal, lsn: Lsn) -> serde_json::Value {
    let directory = wal.finish().write();
    let problems = ["1", "2"].map(|threads| {
        let ran = check(&["-j", threads], directory.path()).exits(4);
        assert_eq!(told_by(&ran).len(), 1, "{}", ran.stdout);
        let problem = ran.json()["problems"][0].clone();
        assert_eq!(problem["lsn"], lsn.to_string());
        problem
    });
    let [problem, _] = problems;
    problem
}

/// One that goes on in the next page is found as well, and so is one of many, once.
#[test]
fn an_unknown_op_code_is_found_wherever_its_record_lies() {
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.add(&Rec::data(40));
    wal.leave(48);
    let long = Rec::new(HEAP, 0x30, 60).block(Block::new(0).data(9000));
    let unknown = Rec { rmgr: 9, info: 0x60, ..long };
    wal.add(&unknown);
    let lsn = wal.add(&Rec { rmgr: 2, info: 0x40, ..unknown.clone() });
    (0..300).for_each(|_| _ = wal.add(&Rec { rmgr: 2, info: 0x40, ..unknown.clone() }));
    wal.switch();
    one_is_told(wal, lsn);
}

/// The rules of `DecodeXLogRecord` for images, and two that it does not ask: a server copies what lies
/// beyond the page, and takes the name of a fork from beyond a table of four.
#[test]
fn a_block_that_cannot_be_is_a_problem() {
    let heap = |block: Block| Rec::insert(40).block(block);
    let image = |image: Image| heap(Block::new(0).image(image));
    let hole = |at, bytes| Image { bytes: 8192 - bytes, hole: Some((at, bytes)), ..Image::WHOLE };
    let packed = |hole| Image { bytes: 900, hole, compressed: true, apply: true };
    let rows = [
        ("an image", true, image(Image::WHOLE)),
        ("a hole", true, image(hole(100, 4000))),
        ("a hole up to the end", true, image(hole(4192, 4000))),
        ("a packed image", true, image(packed(Some((100, 4000))))),
        ("a packed image without a hole", true, image(packed(None))),
        ("a fork", true, Rec::data(40).block(Block { fork: 3, ..Block::new(0) })),
        ("no fork", false, heap(Block { fork: 4, ..Block::new(0) })),
        (
            "no fork, with an image",
            false,
            image(Image::WHOLE).block(Block { fork: 15, ..Block::new(1) }),
        ),
        ("a hole beyond the page", false, image(hole(4193, 4000))),
        ("a packed page with a hole beyond it", false, image(packed(Some((20_000, 20_000))))),
        ("no hole in half a page and a bit", false, image(Image { bytes: 4100, ..Image::WHOLE })),
        (
            "a packed image that is longer than any page",
            false,
            image(Image { bytes: 40_000, ..packed(None) }),
        ),
        ("a hole of nothing", false, image(packed(Some((100, 0))))),
        ("blocks that do not ascend", false, heap(Block::new(1)).block(Block::new(1))),
        ("a block too many", false, heap(Block::new(33))),
        ("the relation of none", false, heap(Block::new(0).same_rel())),
    ];
    for version in &VERSIONS {
        for (what, is_possible, record) in &rows {
            is_judged(what, version.name, record, *is_possible);
        }
    }
}

/// `failed to locate backup block with ID 0` (`XLogReadBufferForRedoExtended`), and what comes of a block
/// that no relation has, or that has no rows.
#[test]
fn a_record_without_the_blocks_that_redo_reads_is_a_problem() {
    let of = |fork, id| Block { fork, ..Block::new(id) };
    let image = |block: Block| Rec::new(XLOG, 0xB0, 0).block(block.image(Image::WHOLE));
    // The header of a row, which redo reads.
    let row = |fork| Block { fork, ..Block::new(0).data(5) };
    let no_block = Block { number: u32::MAX, ..row(0) };
    let no_file = Block { relation: Some([1663, 5, 0]), ..row(0) };
    let visible = |map: Block, table: Block| Rec::new(9, 0x40, 8).block(map).block(table);
    // Of leaves, with the new entry and the high key.
    let split = Rec { main: vec![0; 12], ..Rec::new(11, 0x30, 0) };
    let split = split.block(Block::new(0).data(16));
    let rows = [
        ("an insertion", true, Rec::insert(3).block(Block::new(0))),
        (
            "an insertion with an image",
            true,
            Rec::insert(3).block(Block::new(0).image(Image::WHOLE)),
        ),
        ("a block that nobody reads", true, Rec::insert(3).block(of(0, 0)).block(of(0, 7))),
        // As minor releases of 2026 do.
        ("the map beside the table", true, Rec::insert(3).block(of(0, 0)).block(of(2, 1))),
        ("an insertion without its block", false, Rec::insert(3)),
        ("a block of another id", false, Rec::insert(3).block(Block::new(5))),
        ("the number of no block", false, Rec::insert(3).block(no_block)),
        ("the number of no block, with an image", false, image(no_block)),
        ("relation file 0", false, Rec::insert(3).block(no_file)),
        ("a row in the free space map", false, Rec::insert(3).block(row(1))),
        ("a row in the visibility map", false, Rec::insert(3).block(row(2))),
        ("an entry in the fork of unlogged relations", false, Rec::new(11, 0, 2).block(of(3, 0))),
        ("an image of the free space map", true, image(of(1, 0))),
        ("an image of a fork of unlogged relations", true, image(of(3, 0))),
        ("an unlogged sequence", true, Rec::new(15, 0, 40).block(of(3, 0))),
        ("a split", true, split.clone().block(Block::new(1))),
        ("a split without its right page", false, split),
    ];
    for version in &VERSIONS {
        for (what, is_possible, record) in &rows {
            is_judged(what, version.name, record, *is_possible);
        }
        if version.name != "19" {
            is_judged("visible", version.name, &visible(of(2, 0), of(0, 1)), true);
            is_judged("visible, in the table", version.name, &visible(of(0, 0), of(0, 1)), false);
            is_judged("visible, in the map", version.name, &visible(of(2, 0), of(2, 1)), false);
        }
    }
}

/// A server goes on in the next segment after a record of this type, whatever is in it
/// (`XLogDecodeNextRecord`), and finds that nothing there links to it.
#[test]
fn a_switch_with_data_is_a_problem() {
    let switch = Rec { xid: 0, ..Rec::new(XLOG, 0x40, 16) };
    for version in &VERSIONS {
        is_judged("a switch with data", version.name, &switch, false);
    }
    let (directory, lsn) = with("15", &switch);
    let ran = check(&["--as", "archive", "--from", "0/500028"], directory.path()).exits(4);
    let expected = format!("restorable to LSN {lsn} only, not to the end");
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.add(&Rec::data(40));
    wal.leave(48);
    let lsn = wal.add(&Rec { xid: 0, ..Rec::new(XLOG, 0x40, 9000) });
    (0..300).for_each(|_| _ = wal.add(&switch));
    wal.switch();
    let problem = one_is_told(wal, lsn);
    assert_eq!(problem["expected"], "an XLOG_SWITCH without data");
}

/// Of many such records of a type the first one is told, wherever it lies.
#[test]
fn the_first_of_many_is_told() {
    let mut wal = Wal::new(Form::of("15"), 5);
    wal.add(&Rec::data(40));
    wal.leave(48);
    let lsn = wal.add(&Rec::insert(60).block(Block::new(2).data(9000)));
    (0..300).for_each(|_| _ = wal.add(&Rec::insert(3)));
    wal.switch();
    let problem = one_is_told(wal, lsn);
    assert_eq!(problem["expected"], "a reference to block 0, which redo of Heap/INSERT reads");
}
