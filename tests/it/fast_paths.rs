//! The fast paths against their slow twins: the checksum instructions against the table, the loop
//! over usual records against one step a record, with checksums and without. Whatever the WAL is,
//! sound or damaged, all of them see the same.

use crate::common::builder::{Form, Wal};
use crate::common::disk::Disk;
use crate::common::record::{Block, Image, Rec};
use crate::support::fixtures::samples;
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::path::Path;
use walstat_analyse::clock::Clock;
use walstat_analyse::totals::{RecordTable, Totals};
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::RecordType;
use walstat_read::Scan;
use walstat_read::input::problem::Problem;
use walstat_read::scan::books::Books;
use walstat_read::scan::ending::Ending;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::streamed::Wanted;

/// Which way through the reader.
#[derive(Debug, Clone, Copy)]
struct Way {
    crc: Option<Crc32c>,
    /// A limit that is never reached: the loop over usual records is not entered.
    slow: bool,
    threads: usize,
}

impl Way {
    /// As the command reads on one thread.
    fn usual() -> Way {
        Way { crc: Some(Crc32c::detect()), slow: false, threads: 1 }
    }

    /// Nothing that is there for speed.
    fn naive() -> Way {
        Way { crc: Some(Crc32c::portable()), slow: true, threads: 1 }
    }

    /// The ways that verify checksums.
    fn verifying() -> [Way; 5] {
        let usual = Way::usual();
        let portable = Way { crc: Some(Crc32c::portable()), ..usual };
        let stepping = Way { slow: true, ..usual };
        [usual, portable, stepping, Way { threads: 3, ..usual }, Way { threads: 3, ..portable }]
    }

    /// The ways that do not.
    fn trusting() -> [Way; 3] {
        let fast = Way { crc: None, ..Way::usual() };
        [fast, Way { slow: true, ..fast }, Way { threads: 3, ..fast }]
    }
}

/// Everything that a scan tells.
#[derive(Debug, PartialEq)]
struct Seen {
    rows: Vec<(RecordType, Totals)>,
    data_page_bytes: Option<u32>,
    clock: Clock,
    books: Books,
    ending: Ending,
    problems: Vec<Problem>,
    ends: (Option<Lsn>, Option<Lsn>),
    input_bytes: u64,
}

fn see(directory: &Path, way: Way) -> Option<Seen> {
    let wanted = Wanted {
        crc: way.crc,
        range: Lsn(0)..Lsn::MAX,
        map_files: !way.slow,
        limit: way.slow.then_some(u64::MAX),
        timeline: None,
        ..Wanted::default()
    };
    let threads = NonZeroUsize::new(way.threads).expect("at least one thread");
    let scan = Scan { wanted, threads, ..Scan::paths([directory]) };
    let see = |observer: Observer| {
        let (_, outcome) = scan.count_in(scan.found().ok()?, &observer).ok()?;
        Some(Seen::of(outcome.map(|seen| seen.into_inner().expect("what was counted"))))
    };
    let prototype = <(RecordTable, Clock)>::default();
    let (at_once, batched) =
        (see(Observer::at_once(prototype.clone())), see(Observer::new(prototype)));
    assert_eq!(at_once, batched, "records handed on at once and in batches");
    at_once
}

impl Seen {
    fn of(outcome: Outcome<(RecordTable, Clock)>) -> Seen {
        let (table, clock) = outcome.observer;
        Seen {
            rows: table.rows().map(|(record, totals)| (record, *totals)).collect(),
            data_page_bytes: table.page_bytes(),
            clock,
            books: outcome.books,
            ending: outcome.ending,
            problems: outcome.problems,
            ends: (outcome.first, outcome.counted_end),
            input_bytes: outcome.input_bytes,
        }
    }

    fn records(&self) -> u64 {
        self.rows.iter().map(|(_, totals)| totals.count).sum()
    }
}

#[test]
fn samples_are_read_alike_on_every_way() {
    for sample in samples() {
        let naive = see(&sample.wal, Way::naive()).expect("records");
        assert!(naive.records() > 0, "{}", sample.name);
        for way in Way::verifying() {
            assert_eq!(see(&sample.wal, way).as_ref(), Some(&naive), "{}, {way:?}", sample.name);
        }
    }
}

#[test]
fn sound_samples_are_read_alike_without_checksums() {
    let mut sound = 0;
    for sample in samples() {
        let naive = see(&sample.wal, Way::naive()).expect("records");
        if naive.problems.is_empty() {
            sound += 1;
            for way in Way::trusting() {
                let seen = see(&sample.wal, way);
                assert_eq!(seen.as_ref(), Some(&naive), "{}, {way:?}", sample.name);
            }
        }
    }
    assert!(sound >= 12, "only {sound} samples are sound");
}

/// An image that leaves the main data behind it among the bytes that are kept of a record.
const SMALL: Image = Image { bytes: 700, hole: Some((60, 3000)), compressed: true, apply: true };

/// No server writes the end of a transaction with an image, but whoever reads one must not depend on
/// its way.
#[test]
fn main_data_behind_an_image_is_read_alike_on_every_way() {
    for before in (6800..8200).step_by(200) {
        let end = Rec::new(1, 0x10, 200).block(Block { image: Some(SMALL), ..Block::new(0) });
        let disk = write("9.6", &[Rec::new(10, 0, before), end, Rec::new(10, 0, 30)]);
        let directory = disk.write();
        let naive = see(directory.path(), Way::naive()).expect("records");
        for way in Way::verifying() {
            assert_eq!(see(directory.path(), way).as_ref(), Some(&naive), "{before}, {way:?}");
        }
    }
}

/// The LSN of a page in an image is the place of the record, where the record before it was the last
/// to change the page. With what stands around it, it may look like the header of a record that
/// follows.
#[test]
fn what_lies_in_a_record_is_no_record_on_any_way() {
    let before = Rec::data(6000);
    let mut wal = Wal::new(Form::of("15"), 3);
    wal.add(&before);
    let lsn = wal.add(&Rec::data(3000));
    let link = [&25_000_000u32.to_le_bytes()[..], &[0; 4], &lsn.0.to_le_bytes(), &[0; 8]].concat();
    for at in 1000..1008 {
        let mut record = Rec::data(3000);
        record.main[at..at + link.len()].copy_from_slice(&link);
        let directory = write("15", &[before.clone(), record, Rec::data(30)]).write();
        for way in [&Way::verifying()[..], &[Way::naive()]].concat() {
            let seen = see(directory.path(), way).expect("records");
            assert_eq!((seen.records(), seen.problems), (3, Vec::new()), "{at}, {way:?}");
        }
    }
}

/// A record of a usual form or of any other.
fn record() -> impl Strategy<Value = Rec> {
    let image = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Image::WHOLE)),
        1 => Just(Some(SMALL)),
    ];
    let block = (0u16..40, image, any::<bool>(), 0u8..3);
    let blocks = prop_oneof![
        3 => Just(0usize).boxed(), 5 => Just(1).boxed(), 2 => (2usize..5).boxed(),
    ];
    let blocks = blocks.prop_flat_map(move |count| prop::collection::vec(block.clone(), count));
    let main = prop_oneof![8 => 1usize..40, 2 => 200usize..300, 1 => 0usize..3000];
    (prop::sample::select(vec![1u8, 9, 10, 11]), 0u8..8, main, blocks, 0u8..10).prop_map(
        |(rmgr, slot, main, blocks, other)| {
            let mut record = Rec::new(rmgr, slot << 4, main);
            for (index, (data, image, same, fork)) in blocks.into_iter().enumerate() {
                let mut block = Block { fork, image, ..Block::new(index as u8).data(data) };
                if same && index > 0 {
                    block = block.same_rel();
                }
                record = record.block(block);
            }
            record.origin = (other == 0).then_some(3);
            record.long_length = other == 1;
            record
        },
    )
}

fn write(release: &str, records: &[Rec]) -> Disk {
    let mut wal = Wal::new(Form::of(release), 3);
    records.iter().for_each(|record| _ = wal.add(record));
    wal.finish()
}

fn releases() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["9.6", "13", "15", "19"])
}

/// Few cases: each is read many times over.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 24,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_sound_wal_is_read_alike_on_every_way(
        release in releases(),
        records in prop::collection::vec(record(), 2..600),
    ) {
        let disk = write(release, &records);
        let directory = disk.write();
        let naive = see(directory.path(), Way::naive()).expect("records");
        prop_assert_eq!(naive.records(), records.len() as u64);
        for way in Way::verifying().into_iter().chain(Way::trusting()) {
            let seen = see(directory.path(), way);
            prop_assert_eq!(seen.as_ref(), Some(&naive), "{:?}", way);
        }
    }

    #[test]
    fn any_damaged_wal_is_read_alike_on_every_way(
        release in releases(),
        records in prop::collection::vec(record(), 2..400),
        at in any::<prop::sample::Index>(),
        bit in 0u32..8,
    ) {
        let mut disk = write(release, &records);
        let start = disk.start();
        let written = records.iter().map(|record| record.total(disk.form.version)).sum::<usize>();
        let at = at.index(written.min(disk.form.segment as usize));
        disk.from(start)[at] ^= 1 << bit;
        let directory = disk.write();
        let naive = see(directory.path(), Way::naive());
        for way in Way::verifying() {
            prop_assert_eq!(&see(directory.path(), way), &naive, "byte {}, {:?}", at, way);
        }
        // Without checksums as much is found as the rest of the checks leaves, on every way.
        let [fast, others @ ..] = Way::trusting();
        let trusting = see(directory.path(), fast);
        for way in others {
            prop_assert_eq!(&see(directory.path(), way), &trusting, "byte {}, {:?}", at, way);
        }
    }
}
