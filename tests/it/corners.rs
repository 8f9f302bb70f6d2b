//! Corners for which there is no real sample: records across page and segment edges, lengths at
//! their limits, every kind of block header, switches at odd places, every ending, and (in
//! `ranges`) ranges that begin and end anywhere. In all of them the books are closed, any number of
//! threads gives the same report, and the naive twin agrees where nothing is damaged.

mod ranges;

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::{Block, HEAP, Image, Rec, XLOG};
use crate::common::{ALL, Ask, json, kinds, naive, read, row};
use std::fs;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::version::VERSIONS;
use walstat_report::model::{Report, Sums};

/// Reads on one thread and on many, which must agree.
#[track_caller]
fn read_in(directory: &Path, ask: &Ask) -> Report {
    let one = read(directory, ask);
    assert_eq!(json(&read(directory, &ask.threads(64))), json(&one), "as many threads as segments");
    one
}

/// Reads sound WAL: without a problem, and as the twin does.
#[track_caller]
fn sound(disk: &Disk, ask: &Ask) -> Report {
    let report = read_in(disk.write().path(), ask);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let twin = naive::read(disk, ask.start, ask.end, ask.limit).expect("records");
    assert_eq!(report.books, twin.books);
    assert_eq!(
        (report.ending.kind.name(), report.ending.lsn.as_str()),
        (twin.kind, twin.end.to_string().as_str())
    );
    report
}

/// Reads all of a sound WAL, in which every record must be counted.
#[track_caller]
fn whole(wal: Wal) -> Report {
    let count = wal.records.len() as u64;
    let bytes: usize = wal.records.iter().map(|(_, bytes)| bytes).sum();
    let report = sound(&wal.finish(), &ALL);
    assert_eq!((report.totals.count, report.totals.total_bytes), (count, bytes as u64));
    report
}

#[track_caller]
fn ends(report: &Report, kind: &str, lsn: u64) {
    assert_eq!((report.ending.kind.name(), &report.ending.lsn), (kind, &Lsn(lsn).to_string()));
}

/// WAL with one record at its head.
fn begun(form: Form) -> Wal {
    let mut wal = Wal::new(form, 3);
    wal.add(&Rec::data(40));
    wal
}

// ---- pages and segments ----

#[test]
fn a_record_header_is_read_across_a_page_edge() {
    for (index, version) in VERSIONS.iter().enumerate() {
        let page = [1024, 8192, 65536][index % 3];
        let mut wal = begun(Form::of(version.name).pages_of(page));
        for room in [8, 16, 24, 32] {
            wal.leave(room);
            wal.add(&Rec::data(100));
            wal.leave(room);
            wal.add(&Rec::data(1));
        }
        whole(wal);
    }
}

#[test]
fn a_record_may_end_with_the_last_byte_of_a_page_or_segment() {
    for page in [1024, 2048, 4096, 8192, 16384, 32768, 65536] {
        let mut wal = begun(Form::of("16").pages_of(page));
        wal.leave(0);
        wal.add(&Rec::data(100));
        wal.leave(0);
        wal.leave_in_segment(0);
        wal.add(&Rec::data(3));
        whole(wal);
    }
}

#[test]
fn a_record_header_is_read_across_a_segment_edge() {
    let mut wal = begun(Form::of("9.5"));
    for room in [8, 16, 24] {
        wal.leave_in_segment(room);
        wal.add(&Rec::data(100));
    }
    whole(wal);
}

#[test]
fn a_record_may_be_longer_than_two_segments() {
    for page in [1024, 8192, 65536] {
        let mut wal = begun(Form::of("14").pages_of(page));
        let lengths = [1_100_000, 2_600_000];
        for bytes in lengths {
            wal.add(&Rec::data(bytes));
            wal.add(&Rec::data(5));
        }
        let report = whole(wal);
        let data = row(&report, "Heap2", "NEW_CID").sums;
        assert_eq!(data.main_data_bytes, 40 + 3_700_000 + 10);
    }
}

#[test]
fn segments_of_other_sizes_are_read() {
    let form = Form { segment: 4 << 20, ..Form::of("12") };
    let mut wal = begun(form);
    wal.leave_in_segment(16);
    wal.add(&Rec::data(1000));
    assert_eq!(whole(wal).input.segment_bytes, 4 << 20);
}

#[test]
fn positions_beyond_four_gigabytes_are_read() {
    let mut wal = Wal::new(Form::of("18"), 4095);
    wal.add(&Rec::data(40));
    wal.leave_in_segment(8);
    wal.add(&Rec::data(40));
    let at = wal.at();
    assert!(at > 1 << 32);
    ends(&whole(wal), "zeroed", at);
}

// ---- the parts of a record ----

/// `XLOG/NOOP`, of which nobody asks anything.
fn noop(main_bytes: usize) -> Rec {
    Rec::new(XLOG, 0x20, main_bytes)
}

#[test]
fn lengths_at_their_limits_are_read() {
    let mut wal = begun(Form::of("15"));
    for main in [1, 255, 256, 65535, 65536] {
        wal.add(&noop(main));
    }
    wal.add(&Rec { long_length: true, ..noop(5) });
    wal.add(&Rec::new(HEAP, 0x20, 0).block(Block::new(0).data(65535)));
    // No page is longer than that.
    let image = Image { bytes: 32768, hole: None, compressed: true, apply: true };
    wal.add(&Rec::new(HEAP, 0x20, 3).block(Block::new(0).data(1).image(image)));
    let report = whole(wal);
    let noops = row(&report, "XLOG", "NOOP").sums;
    let main = 1 + 255 + 256 + 65535 + 65536 + 5;
    assert_eq!((noops.count, noops.main_data_bytes, noops.block_data_bytes), (6, main, 0));
    assert_eq!(noops.header_bytes, 6 * 24 + 2 * 2 + 4 * 5);
    let updates = row(&report, "Heap", "UPDATE").sums;
    assert_eq!((updates.block_data_bytes, updates.fpi_bytes), (65536, 32768));
}

/// A second block with every combination of image, hole, compression, use, data, relation, init
/// and fork, and what it adds to the sums.
fn combinations() -> Vec<Block> {
    let mut blocks = Vec::new();
    for bits in 0..256u32 {
        let on = |bit: u32| bits & 1 << bit != 0;
        let hole = on(1).then_some((64, 2048));
        let bytes = match (on(1), on(2)) {
            (false, false) => 8192,
            (true, false) => 8192 - 2048,
            _ => 777,
        };
        let image = Image { bytes, hole, compressed: on(2), apply: on(3) };
        let mut block = Block::new(4).data(if on(4) { 17 } else { 0 });
        block.image = on(0).then_some(image);
        block.fork = if on(5) { 2 } else { 0 };
        block.will_init = on(6);
        blocks.push(if on(7) { block.same_rel() } else { block });
    }
    blocks
}

#[test]
fn every_combination_in_a_block_header_is_read() {
    for release in ["9.5", "10", "15", "19"] {
        let mut wal = begun(Form::of(release));
        let mut expected = Sums::default();
        for block in combinations() {
            wal.add(&noop(8).block(Block::new(1).data(2)).block(block));
            expected.count += 1;
            expected.block_data_bytes += 2 + u64::from(block.data);
            let Some(image) = block.image else { continue };
            let hole = image.hole.map_or(0, |(_, length)| u64::from(length));
            expected.fpi_records += 1;
            expected.fpi_bytes += u64::from(image.bytes);
            expected.fpi_check_count += u64::from(!image.apply && !release.starts_with('9'));
            expected.uncompressed_fpi_bytes +=
                if image.compressed { 8192 - hole } else { u64::from(image.bytes) };
        }
        let report = whole(wal);
        let found = row(&report, "XLOG", "NOOP").sums;
        assert_eq!(found.count, 256);
        assert_eq!(found.block_data_bytes, expected.block_data_bytes, "{release}");
        assert_eq!((found.fpi_count, found.fpi_records), (128, expected.fpi_records));
        assert_eq!(found.fpi_bytes, expected.fpi_bytes, "{release}");
        assert_eq!(found.fpi_check_count, expected.fpi_check_count, "{release}");
        assert_eq!(found.fpi_apply_count, 128 - expected.fpi_check_count, "{release}");
        assert_eq!(found.uncompressed_fpi_bytes, expected.uncompressed_fpi_bytes, "{release}");
    }
}

#[test]
fn a_record_may_have_33_blocks_and_gaps_between_their_ids() {
    let mut wal = begun(Form::of("13"));
    let all = (0..33).fold(Rec::new(HEAP, 0x10, 4), |rec, id| rec.block(Block::new(id).data(9)));
    wal.add(&all);
    let gaps = [0, 1, 3, 32].into_iter();
    wal.add(&gaps.fold(Rec::new(HEAP, 0x10, 0), |rec, id| rec.block(Block::new(id).data(9))));
    assert_eq!(row(&whole(wal), "Heap", "DELETE").sums.block_data_bytes, 37 * 9);
}

#[test]
fn origins_are_read_in_all_releases() {
    for version in &VERSIONS {
        let mut wal = begun(Form::of(version.name));
        wal.add(&Rec { origin: Some(7), ..noop(4) });
        let report = whole(wal);
        assert_eq!(row(&report, "XLOG", "NOOP").sums.header_bytes, 24 + 3 + 2);
    }
}

/// Whether a record is believed: it stands between others that are.
fn is_believed(release: &str, record: &Rec, problem: &str) -> bool {
    let mut wal = begun(Form::of(release));
    let lsn = wal.add(record);
    wal.leave(0);
    wal.add(&Rec::data(4));
    let around = wal.records.len() as u64 - 1;
    let report = read_in(wal.finish().write().path(), &ALL);
    if report.problems.is_empty() {
        return true;
    }
    assert_eq!(kinds(&report), [problem], "{release}");
    assert_eq!(report.problems[0].lsn, Some(lsn.to_string()));
    assert_eq!(report.totals.count, around, "{release}: the records around it are counted");
    false
}

#[test]
fn resource_managers_are_those_of_the_release() {
    let known = |release: &str, rmgr| is_believed(release, &Rec::new(rmgr, 0x00, 4), "rmgr");
    for (release, highest, custom) in [
        ("9.5", 19, false),
        ("9.6", 21, false),
        ("14", 21, false),
        ("15", 21, true),
        ("19", 21, true),
    ] {
        assert!(known(release, highest), "{release}");
        assert!(!known(release, highest + 1), "{release}");
        assert!(!known(release, 127), "{release}");
        assert_eq!(known(release, 128), custom, "{release}");
        assert_eq!(known(release, 255), custom, "{release}");
    }
}

#[test]
fn the_toplevel_xid_is_known_from_14_on() {
    let record = Rec { toplevel_xid: Some(700), ..noop(4) };
    for (release, known) in [("9.5", false), ("13", false), ("14", true), ("19", true)] {
        assert_eq!(is_believed(release, &record, "record_body"), known, "{release}");
    }
}

/// No page has a hole where its header is.
const HOLE_AT_0: Image = Image { bytes: 100, hole: Some((0, 9)), compressed: true, apply: true };

#[test]
fn a_sound_checksum_does_not_make_nonsense_a_record() {
    let nonsense = [
        Rec::new(HEAP, 0, 4).block(Block::new(33)),
        Rec::new(HEAP, 0, 4).block(Block::new(1)).block(Block::new(1)),
        Rec::new(HEAP, 0, 4).block(Block::new(2)).block(Block::new(1)),
        Rec::new(HEAP, 0, 4).block(Block::new(0).same_rel()),
        Rec::new(HEAP, 0, 4).block(Block::new(0).image(HOLE_AT_0)),
    ];
    for record in &nonsense {
        assert!(!is_believed("17", record, "record_body"), "{record:?}");
    }
}

// ---- switches and replaced records ----

/// Records, a switch, and either nothing or a record in the next segment.
#[track_caller]
fn switch_behind(mut wal: Wal) {
    wal.switch();
    let end = wal.at();
    ends(&whole(wal.clone()), "switch", end);
    wal.add(&Rec::data(9));
    let end = wal.at();
    ends(&whole(wal), "zeroed", end);
}

#[test]
fn a_switch_may_stand_anywhere_in_a_page() {
    for (release, room) in [("9.5", 0), ("10", 8), ("11", 16), ("14", 24), ("19", 32), ("10", 4000)]
    {
        let mut wal = begun(Form::of(release));
        wal.leave(room);
        switch_behind(wal);
    }
}

#[test]
fn a_switch_may_stand_at_the_end_of_a_segment() {
    for (release, room) in [("9.6", 0), ("10", 8), ("11", 16), ("13", 24), ("19", 32), ("18", 4000)]
    {
        let mut wal = begun(Form::of(release));
        wal.leave_in_segment(room);
        switch_behind(wal);
    }
}

#[test]
fn a_switch_in_the_first_record_empties_the_segment() {
    let mut wal = Wal::new(Form::of("15"), 8);
    wal.switch();
    wal.add(&Rec::data(9));
    let books = whole(wal).books;
    assert_eq!(books.switch_bytes, (1 << 20) - 40 - 24);
}

#[test]
fn a_replaced_record_is_no_damage() {
    for (release, room) in [("9.6", 2000), ("14", 8), ("18", 16), ("19", 24)] {
        let mut wal = begun(Form::of(release));
        wal.leave(room);
        wal.tear(&Rec::data(40_000), 3);
        let torn = room + 2 * (8192 - 24);
        wal.overwrite();
        wal.add(&Rec::data(9));
        let report = whole(wal);
        assert_eq!(report.books.overwritten_bytes, torn, "{release}");
        assert_eq!(row(&report, "XLOG", "OVERWRITE_CONTRECORD").sums.count, 1, "{release}");
    }
}

#[test]
fn a_record_may_be_replaced_in_the_next_segment() {
    let mut wal = begun(Form::of("16"));
    wal.leave_in_segment(96);
    wal.tear(&Rec::data(40_000), 1);
    wal.overwrite();
    wal.add(&Rec::data(9));
    assert_eq!(whole(wal).books.overwritten_bytes, 96);
}

// ---- endings ----

#[test]
fn wal_that_fills_its_last_segment_is_complete() {
    let mut wal = begun(Form::of("17"));
    wal.leave_in_segment(0);
    let end = wal.at();
    ends(&whole(wal), "complete", end);
}

#[test]
fn a_shutdown_has_a_name_whatever_follows_it() {
    let mut wal = begun(Form::of("17"));
    wal.add(&Rec::shutdown());
    let end = wal.at();
    let disk = wal.finish();
    ends(&sound(&disk, &ALL), "shutdown", end);
    ends(&sound(&disk.clone().preallocated(), &ALL), "shutdown", end);
    ends(&sound(&disk.recycled(3), &ALL), "shutdown", end);
}

#[test]
fn zeros_end_wal() {
    let mut wal = begun(Form::of("9.5"));
    ends(&whole(wal.clone()), "zeroed", wal.at());
    wal.leave(0);
    let end = wal.at();
    let disk = wal.finish();
    ends(&sound(&disk, &ALL), "zeroed", end);
    let report = sound(&disk.preallocated(), &ALL);
    ends(&report, "zeroed", end);
    assert_eq!(report.books.zero_bytes, (2 << 20) - 8192);
}

#[test]
fn a_zero_page_follows_a_full_segment() {
    let mut wal = begun(Form::of("9.5"));
    wal.leave_in_segment(0);
    let end = wal.at();
    let disk = wal.finish().preallocated();
    ends(&sound(&disk, &ALL), "zeroed", end);
}

#[test]
fn old_content_ends_wal() {
    for room in [0, 64] {
        let mut wal = begun(Form::of("16"));
        wal.leave_in_segment(0);
        wal.add(&Rec::data(300));
        wal.leave(room);
        let (end, next_page) = (wal.at(), wal.at().next_multiple_of(8192));
        let report = sound(&wal.finish().stale_from(Lsn(next_page), 3), &ALL);
        ends(&report, "recycled", end);
        assert_eq!(report.books.stale_bytes, (1 << 20) - 8192);
        assert_eq!(report.books.zero_bytes, room);
    }
}

#[test]
fn a_recycled_segment_follows_a_full_one() {
    let mut wal = begun(Form::of("16"));
    wal.leave_in_segment(0);
    let end = wal.at();
    ends(&sound(&wal.finish().recycled(3), &ALL), "recycled", end);
}

#[test]
fn a_file_may_end_anywhere() {
    let mut wal = begun(Form::of("16"));
    wal.leave(0);
    let page_edge = wal.at();
    let inside = wal.add(&Rec::data(10_000)).0;
    let disk = wal.finish();
    let cut = |lsn| sound(&disk.clone().cut(Lsn(lsn)), &ALL);
    ends(&cut(page_edge), "partial_page", page_edge);
    ends(&cut(page_edge + 10), "partial_page", page_edge);
    ends(&cut(inside + 20), "partial_page", inside);
    ends(&cut(inside + 9000), "partial_page", inside);
    ends(&cut(page_edge + 8192), "incomplete_record", inside);
}

#[test]
fn a_record_may_be_incomplete_in_every_way() {
    let mut wal = begun(Form::of("16"));
    wal.leave_in_segment(0);
    wal.leave(200);
    let lsn = wal.add(&Rec::data(20_000));
    let next_page = Lsn(lsn.0.next_multiple_of(8192));
    let disk = wal.finish();
    let mut zero = disk.clone();
    zero.from(next_page).fill(0);
    let report = sound(&zero, &ALL);
    ends(&report, "incomplete_record", lsn.0);
    assert_eq!(report.books.incomplete_bytes, 200);
    ends(&sound(&disk.stale_from(next_page, 3), &ALL), "incomplete_record", lsn.0);

    let mut wal = begun(Form::of("16"));
    wal.leave_in_segment(200);
    let lsn = wal.add(&Rec::data(20_000));
    ends(&sound(&wal.finish().without(4), &ALL), "incomplete_record", lsn.0);
}

#[test]
fn a_last_record_over_two_sectors_may_be_torn() {
    let mut wal = begun(Form::of("16"));
    let lsn = wal.add(&Rec::data(3000));
    let mut disk = wal.finish();
    disk.at(Lsn(lsn.0 + 1024), 2000).fill(0);
    let report = read_in(disk.write().path(), &ALL);
    ends(&report, "incomplete_record", lsn.0);
    assert!(report.problems.is_empty());
}

/// A sector is written whole or not at all: of the header of the last record one may be there and
/// the next one not.
#[test]
fn the_header_of_a_last_record_over_two_sectors_may_be_torn() {
    for there in [8, 16] {
        let mut wal = begun(Form::of("16"));
        while wal.next().0 % 512 != 512 - there {
            wal.add(&Rec::data(1));
        }
        let lsn = wal.add(&Rec::data(300));
        let mut disk = wal.finish();
        disk.at(Lsn(lsn.0 + there), 500).fill(0);
        let report = read_in(disk.write().path(), &ALL);
        ends(&report, "incomplete_record", lsn.0);
        assert!(report.problems.is_empty(), "{there}: {:?}", report.problems);
    }
}

#[test]
fn a_last_record_in_one_sector_is_not_torn_but_damaged() {
    let mut wal = begun(Form::of("16"));
    let lsn = wal.add(&Rec::data(100));
    let mut disk = wal.finish();
    disk.at(Lsn(lsn.0 + 60), 1)[0] ^= 1;
    let report = read_in(disk.write().path(), &ALL);
    ends(&report, "damage", lsn.0);
    assert_eq!(kinds(&report), ["checksum"]);
}

#[test]
fn a_timeline_ends_where_a_newer_one_branches_off() {
    let mut wal = begun(Form::of("16"));
    wal.add(&Rec::data(100));
    let end = wal.at();
    let directory = wal.finish().write();
    let line = format!("1\t{}\tno recovery target specified\n", Lsn(end));
    fs::write(directory.path().join("00000002.history"), line).expect("a history file");
    let report = read_in(directory.path(), &Ask { timeline: Some(1), ..ALL });
    ends(&report, "timeline_switch", end);
}
