//! Tests of the table, and of all of `redo` with pages and records of which nothing has to be right.

use super::*;
use crate::made_up::{any_bytes, any_page};
use crate::page_replayer::PageReplayer;
use crate::whole_record::Blocks;
use proptest::collection::vec;
use proptest::prelude::*;
use walstat_format::cursor::at;
use walstat_format::data_page::field;
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::version::{VERSIONS, Version};

#[test]
fn each_resource_manager_has_one_row_and_finds_it() {
    for row in &TABLE {
        assert!(std::ptr::eq(ROWS[usize::from(row.rmgr)], row));
    }
    let rows = ROWS.iter().filter(|row| row.rmgr != NOT_FOLLOWED.rmgr);
    assert_eq!(rows.count(), TABLE.len());
}

/// A block of a record.
#[derive(Debug, Clone)]
struct AnyBlock {
    will_init: bool,
    fork: u8,
    data: Vec<u8>,
    image: Option<Vec<u8>>,
    /// Whether its image leaves out what lies between line pointers and items.
    has_hole: bool,
}

/// A record as the scan would hand it on: its own parts add up, and nothing else has to be right.
#[derive(Debug, Clone)]
struct AnyRecord {
    version: &'static Version,
    bytes: Vec<u8>,
}

fn any_block() -> impl Strategy<Value = AnyBlock> {
    let fork = prop_oneof![9 => Just(0u8), 1 => 1u8..4];
    let image = prop::option::weighted(0.2, any_page());
    (prop::bool::weighted(0.1), fork, any_bytes(0..50), image, any::<bool>()).prop_map(
        |(will_init, fork, data, image, has_hole)| AnyBlock {
            will_init,
            fork,
            data,
            image,
            has_hole,
        },
    )
}

fn any_record() -> impl Strategy<Value = AnyRecord> {
    let rmgr = (0..TABLE.len()).prop_map(|place| TABLE[place].rmgr);
    let version = (0..VERSIONS.len()).prop_map(|place| &VERSIONS[place]);
    (rmgr, (0u8..16).prop_map(|info| info << 4), version, vec(any_block(), 1..5), any_bytes(0..60))
        .prop_map(|(rmgr, info, version, blocks, main)| {
            let bytes = record_bytes((rmgr, info), version, &blocks, &main);
            AnyRecord { version, bytes }
        })
}

fn record_bytes(
    (rmgr, info): (u8, u8),
    version: &Version,
    blocks: &[AnyBlock],
    main: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0; RECORD_HEADER_BYTES];
    (bytes[4], bytes[16], bytes[17]) = (7, info, rmgr);
    let mut payload = Vec::new();
    for (id, block) in (0u8..).zip(blocks) {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(block.image.is_some(), 0x10)
            | flag(!block.data.is_empty(), 0x20)
            | flag(block.will_init, 0x40);
        bytes.extend([id, block.fork | flags]);
        bytes.extend((block.data.len() as u16).to_le_bytes());
        if let Some(page) = &block.image {
            let (hole, stored) = stored(page, block.has_hole);
            bytes.extend((stored.len() as u16).to_le_bytes());
            bytes.extend(hole.to_le_bytes());
            bytes.push(applied(version) | u8::from(hole > 0));
            payload.extend(stored);
        }
        bytes.extend([1663u32, 5, 20_000, id.into()].map(u32::to_le_bytes).as_flattened());
        payload.extend(&block.data);
    }
    bytes.extend([255, main.len() as u8]);
    bytes.extend(payload);
    bytes.extend(main);
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    bytes
}

/// Where the hole of an image begins, 0 for none; and the image, as a server stores it.
fn stored(page: &[u8], has_hole: bool) -> (u16, Vec<u8>) {
    let part = |place| at::<u16>(page, place).expect("a header");
    let (lower, upper) = (part(field::LOWER), part(field::UPPER));
    let is_hole = lower >= 24 && lower < upper && usize::from(upper) <= page.len();
    match has_hole && is_hole {
        true => (lower, [&page[..lower.into()], &page[upper.into()..]].concat()),
        false => (0, page.to_vec()),
    }
}

/// The flag of an image that recovery puts in place.
fn applied(version: &Version) -> u8 {
    let flags = version.image_flags;
    let only = |bit: &u8| flags.is_applied(*bit) && !flags.is_compressed(*bit);
    [0x02u8, 0x04, 0x10].into_iter().find(only).unwrap_or(0)
}

/// All that is asked of a record and of the page of one of its blocks.
fn ask(record: &WholeRecord<'_>, block: &BlockRef, replayer: &PageReplayer) {
    let number = block.id.into();
    replayer.length(number).map(|length| length.without_hole());
    if let Some(page) = replayer.page(number) {
        data_at_other_level(record, block, page);
    }
    let _ = (prunes(record), is_vacuum_scan(record), vacuumed(record), unfrozen(record, block));
    let _ = (looks_at(record, block), keeps_data(record, block), inserted_rows(record));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_page_and_no_record_make_it_panic(
        first in any_page(),
        has_hole: bool,
        is_light: bool,
        records in vec(any_record(), 1..8),
    ) {
        let mut replayer = PageReplayer::within(100_000).light(is_light);
        let block = AnyBlock { will_init: false, fork: 0, data: vec![], image: Some(first), has_hole };
        let blocks = vec![block; 4];
        for rmgr in [XLOG, HEAP] {
            let bytes = record_bytes((rmgr, 0xB0), &VERSIONS[8], &blocks, &[0; 8]);
            roll(&mut replayer, &AnyRecord { version: &VERSIONS[8], bytes });
            records.iter().for_each(|record| roll(&mut replayer, record));
        }
    }
}

fn roll(replayer: &mut PageReplayer, record: &AnyRecord) {
    let mut room = Blocks::new();
    let end = Lsn(record.bytes.len() as u64);
    let record = WholeRecord::parse(&record.bytes, Lsn(0)..end, record.version, &mut room)
        .expect("a whole record");
    for block in record.blocks {
        replayer.roll(&record, block, block.id.into(), |image, before| {
            data_bytes(&record, block, image, before);
        });
        ask(&record, block, replayer);
        assert!(replayer.is_counted());
    }
}
