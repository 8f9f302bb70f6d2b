//! The reader against its naive twin: whatever WAL a server could have written, both find the
//! same sums for every record type, the same books and the same end, on any number of threads.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::naive::{self, Naive};
use crate::common::record::{Block, Image, Rec};
use crate::common::xorshift::Xorshift;
use crate::common::{ALL, Ask, json, stats};
use crate::support::fixtures::sample;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use walstat_format::block::needed::ReferenceFault;
use walstat_format::block::{Blocks, walk};
use walstat_format::lsn::Lsn;
use walstat_format::rmgr;
use walstat_format::version::VERSIONS;
use walstat_format::version::Version;
use walstat_report::model::Report;

/// What is done next in making WAL.
#[derive(Debug, Clone)]
enum Step {
    /// So many records of any kind, from a seed.
    Records(u8, u64),
    /// A record of so many bytes of main data.
    LargeTransactions(u32),
    /// Goes on until so many times 8 bytes are left of the page.
    Leave(u8),
    /// The same, of the segment.
    LeaveInSegment(u8),
    /// Closes the segment early.
    Switch,
    /// A torn record that recovery replaced.
    Overwrite,
    /// A clean shutdown.
    Shutdown,
}

/// What lies behind the last record.
#[derive(Debug, Clone)]
enum Tail {
    Zeros,
    Stale,
    Preallocated,
    Recycled,
    /// The last file is cut, at this many thousandths.
    Cut(u64),
}

/// All that is random about an input.
#[derive(Debug, Clone)]
struct Case {
    release: usize,
    page_bits: u32,
    number: u64,
    steps: Vec<Step>,
    tail: Tail,
    without_first: bool,
    /// Start and length in thousandths of the whole.
    range: Option<(u64, u64)>,
    limit: Option<u64>,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u8..60, 1u64..).prop_map(|(count, seed)| Step::Records(count, seed)),
        2 => (1u32..300_000).prop_map(Step::LargeTransactions),
        4 => (0u8..4).prop_map(Step::Leave),
        2 => (0u8..4).prop_map(Step::LeaveInSegment),
        1 => Just(Step::Switch),
        1 => Just(Step::Overwrite),
        1 => Just(Step::Shutdown),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let tail = prop_oneof![
        Just(Tail::Zeros),
        Just(Tail::Stale),
        Just(Tail::Preallocated),
        Just(Tail::Recycled),
        (1u64..1000).prop_map(Tail::Cut),
    ];
    let steps = prop::collection::vec(step(), 1..10);
    let range = prop::option::of((0u64..1000, 1u64..1000));
    let form = (0..VERSIONS.len(), 10u32..=16, prop_oneof![1u64..5, 4090u64..4100]);
    (form, steps, tail, prop::bool::weighted(0.3), range, prop::option::weighted(0.2, 1u64..200))
        .prop_map(|((release, page_bits, number), steps, tail, without_first, range, limit)| Case {
            release,
            page_bits,
            number,
            steps,
            tail,
            without_first,
            range,
            limit,
        })
}

/// A record with any blocks, images and identifiers that the release allows.
fn any_record(random: &mut Xorshift, form: &Form) -> Rec {
    let rmgrs = [0u8, 1, 2, 9, 10, 11, 19, 128, 200];
    let rmgr = rmgrs[random.below(if form.version.custom_rmgrs { 9 } else { 7 }) as usize];
    // Neither a switch nor a shutdown by chance: those have steps of their own.
    let info = match rmgr {
        0 => 0xA0 + 0x10 * random.below(2) as u8,
        // What redo does not know is a problem.
        _ => loop {
            let info = 0x10 * random.below(16) as u8;
            if rmgr::is_replayed(rmgr, info, form.version) {
                break info;
            }
        },
    };
    let main = [0, 1, 3, 14, 200, 255, 256, 700][random.below(8) as usize];
    let mut record = Rec::new(rmgr, info, main);
    for id in 0..33 {
        let here = if random.below(20) == 0 { 8 } else { 1 };
        if id < 3 && random.below(3) == 0 || random.below(200) < here {
            let first = record.blocks.is_empty();
            record = record.block(any_block(random, id, first));
        }
    }
    record.origin = (random.below(8) == 0).then_some(3);
    record.toplevel_xid = (form.version.toplevel_xid && random.below(8) == 0).then_some(9);
    let mut record = with_needed(record, form.version);
    if record.blocks.is_empty() && record.main.is_empty() {
        record.main = vec![1];
    }
    record
}

/// The same with the blocks that redo reads, in the forks where it expects them.
fn with_needed(mut record: Rec, version: &'static Version) -> Rec {
    let needed = rmgr::needed_blocks(record.rmgr, record.info, version);
    loop {
        let bytes = record.encode(version, 0);
        let parts = walk(&bytes, bytes.len() as u32, version, |_| ()).expect("sound headers");
        match needed.fault(Blocks::of(&bytes, parts.head_bytes, version)) {
            None => return record,
            Some(ReferenceFault::Missing(id)) => {
                let at = record.blocks.iter().take_while(|block| block.id < id).count();
                record.blocks.insert(at, Block::new(id));
            }
            Some(ReferenceFault::Fork(id, _)) => {
                let is_visible = (record.rmgr, record.info & 0x70) == (rmgr::HEAP2, 0x40);
                let fork = if is_visible && id == 0 { 2 } else { 0 };
                let blocks = record.blocks.iter_mut().filter(|block| block.id == id);
                blocks.for_each(|block| block.fork = fork);
            }
            Some(fault) => panic!("{fault:?}"),
        }
    }
}

fn any_block(random: &mut Xorshift, id: u8, first: bool) -> Block {
    let mut block = Block::new(id).data([0, 0, 5, 60, 1000][random.below(5) as usize]);
    block.fork = random.below(4) as u8;
    block.will_init = random.below(4) == 0;
    if !first && random.below(2) == 0 {
        block = block.same_rel();
    }
    let apply = random.below(5) > 0;
    let image = match random.below(12) {
        0 => Image { apply, ..Image::WHOLE },
        1 => Image { bytes: 6000, hole: Some((100, 2192)), compressed: false, apply },
        2 => Image { bytes: 900, hole: None, compressed: true, apply },
        3 => Image { bytes: 400, hole: Some((200, 3000)), compressed: true, apply },
        _ => return block,
    };
    block.image(image)
}

fn take(step: &Step, wal: &mut Wal) {
    match *step {
        Step::Records(count, seed) => {
            let mut random = Xorshift::new(seed);
            for _ in 0..count {
                let record = any_record(&mut random, &wal.form);
                wal.add(&record);
            }
        }
        Step::LargeTransactions(bytes) => drop(wal.add(&Rec::data(bytes as usize))),
        Step::Leave(eights) => wal.leave(u64::from(eights) * 8),
        Step::LeaveInSegment(eights) => wal.leave_in_segment(u64::from(eights) * 8),
        Step::Switch => drop(wal.switch()),
        Step::Overwrite => {
            wal.add(&Rec::data(10));
            wal.tear(&Rec::data(150_000), 2);
            wal.overwrite();
        }
        Step::Shutdown => drop(wal.add(&Rec::shutdown())),
    }
}

/// The input, and where its last record ends.
fn build(case: &Case) -> (Disk, Lsn) {
    let form = Form::of(VERSIONS[case.release].name).pages_of(1 << case.page_bits);
    let mut wal = Wal::new(form, case.number);
    wal.add(&Rec::data(50));
    // The second segment is reached, so that the first can be left out or recycled.
    wal.leave_in_segment(24);
    case.steps.iter().for_each(|step| take(step, &mut wal));
    let written = Lsn(wal.at());
    let next_page = wal.at().next_multiple_of(form.page);
    let disk = wal.finish();
    let (last, last_start) = (disk.end().0 / form.segment - 1, disk.end().0 - form.segment);
    let disk = match case.tail {
        Tail::Zeros => disk,
        Tail::Stale if next_page < disk.end().0 && last > case.number => {
            disk.stale_from(Lsn(next_page), case.number)
        }
        Tail::Stale | Tail::Preallocated => disk.preallocated(),
        Tail::Recycled => disk.recycled(case.number),
        Tail::Cut(thousandths) => {
            let kept = 512 + (form.segment - 512) * thousandths / 1000;
            disk.cut(Lsn(last_start + kept))
        }
    };
    if case.without_first && disk.files.len() > 2 {
        (disk.without(case.number), written)
    } else {
        (disk, written)
    }
}

/// What is asked for: a range lies within what is written.
fn ask(case: &Case, disk: &Disk, written: Lsn) -> Ask {
    let end = written.0.min(disk.start().0 + disk.total());
    let whole = end - disk.start().0;
    let range = case.range.map(|(start, length)| {
        let from = disk.start().0 + whole * start / 1000;
        (Lsn(from), Lsn((from + whole * length / 1000 + 1).min(end)))
    });
    let (start, end) = range.unzip();
    Ask { start, end, limit: case.limit, ..ALL }
}

/// Rows in one form: those of the twin, by the names that the report has.
type Rows = BTreeMap<(String, String), Vec<u64>>;

fn rows_of_twin(twin: &Naive) -> Rows {
    let page = if twin.data_page == 0 { 8192 } else { twin.data_page };
    let rows = twin.rows.iter().map(|(&(id, info), s)| {
        let uncompressed = s.raw_bytes + (s.compressed_count * page).saturating_sub(s.hole_bytes);
        let headers = s.record_bytes - s.main_data_bytes - s.block_data_bytes;
        let all = vec![
            s.count,
            s.record_bytes,
            s.fpi_bytes,
            s.record_bytes + s.fpi_bytes,
            s.main_data_bytes,
            s.block_data_bytes,
            headers,
            s.fpi_count,
            s.fpi_records,
            s.fpi_count - s.fpi_check_count,
            s.fpi_check_count,
            uncompressed,
        ];
        ((rmgr::name(id).into_owned(), format!("0x{info:02X}")), all)
    });
    rows.collect()
}

fn rows_of_report(report: &Report) -> Rows {
    let rows = report.records.iter().flat_map(|table| &table.rows).map(|line| {
        let r = &line.sums;
        let all = vec![
            r.count,
            r.record_bytes,
            r.fpi_bytes,
            r.total_bytes,
            r.main_data_bytes,
            r.block_data_bytes,
            r.header_bytes,
            r.fpi_count,
            r.fpi_records,
            r.fpi_apply_count,
            r.fpi_check_count,
            r.uncompressed_fpi_bytes,
        ];
        ((line.rmgr.clone(), line.info.clone()), all)
    });
    rows.collect()
}

/// Reads `directory` on several numbers of threads and holds each against the twin.
fn compare(disk: &Disk, directory: &Path, ask: &Ask) {
    let twin = naive::read(disk, ask.start, ask.end, ask.limit);
    let one = stats(directory, ask);
    let (twin, one) = match (twin, one) {
        (Some(twin), Ok(one)) => (twin, one),
        // The twin stops at the first thing that is no record: behind a switch, that is at once.
        (None, _) => return,
        // A range inside of one record.
        (Some(twin), Err(line))
            if twin.rows.is_empty() && line.contains("no WAL record starts") =>
        {
            return;
        }
        (twin, one) => panic!("one of both finds no record: {twin:?}, {one:?}"),
    };
    assert_eq!(rows_of_report(&one), rows_of_twin(&twin), "rows");
    assert_eq!(one.books, twin.books, "books");
    assert_eq!(
        (one.ending.kind.name(), &one.ending.lsn),
        (twin.kind, &twin.end.to_string()),
        "ending"
    );
    assert!(one.problems.is_empty(), "{:?}", one.problems);
    for threads in [2, 5, 64] {
        let many = stats(directory, &ask.threads(threads)).expect("records as on one thread");
        assert_eq!(json(&many), json(&one), "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(16),
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_wal_is_read_as_the_twin_reads_it(case in case()) {
        let (disk, written) = build(&case);
        let directory = disk.write();
        compare(&disk, directory.path(), &ask(&case, &disk, written));
    }
}

/// A range that ends where the file does, in what a switch leaves unused.
#[test]
fn a_file_cut_in_the_rest_after_a_switch_is_complete_where_the_range_ends_there() {
    let case = Case {
        release: 0,
        page_bits: 10,
        number: 1,
        steps: vec![Step::LeaveInSegment(0), Step::Switch],
        tail: Tail::Cut(1),
        without_first: false,
        range: Some((26, 974)),
        limit: None,
    };
    let (disk, written) = build(&case);
    let ask = ask(&case, &disk, written);
    let (last_file, last_bytes) = disk.files.last_key_value().expect("a file");
    let file_end = last_file * disk.form.segment + last_bytes.len() as u64;
    assert_eq!(ask.end, Some(Lsn(file_end)), "the range ends with the file");
    compare(&disk, disk.write().path(), &ask);
}

/// Holds a real sample against the twin, over its range and without one.
fn compare_sample(name: &str) {
    let sample = sample(name);
    let form = Form::of(&sample.release);
    let disk = Disk::read(&sample.wal, form);
    assert!(disk.files.len() > 1, "{name}: no segments in {}", sample.wal.display());
    compare(&disk, &sample.wal, &ALL);
    let lsn = |text: &str| text.parse::<Lsn>().expect("an LSN in sample.toml");
    compare(&disk, &sample.wal, &ALL.range(lsn(&sample.start), lsn(&sample.end)));
}

#[test]
fn wal_of_9_6_is_read_as_the_twin_reads_it() {
    compare_sample("pg9.6-mixed");
}

#[test]
fn wal_of_14_with_a_cut_file_is_read_as_the_twin_reads_it() {
    compare_sample("truncated");
}

#[test]
fn wal_of_15_with_a_replaced_record_is_read_as_the_twin_reads_it() {
    compare_sample("overwrite");
}

#[test]
fn wal_of_17_with_images_for_checking_is_read_as_the_twin_reads_it() {
    compare_sample("consistency");
}
