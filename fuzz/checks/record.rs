//! One record and the small texts: whatever the bytes are, no parser panics, and what a parser
//! accepts adds up. Not for pages and what crosses them: that is the target `segment`.

use walstat_format::block::{HEAD_BYTES_MAX, MAX_BLOCK_ID, Parts, walk};
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::{Geometry, LongHeader, PageHeader};
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::xact;
use walstat_format::record_header::{RECORD_HEADER_BYTES, RecordHeader};
use walstat_format::rmgr;
use walstat_format::rmgr::RecordType;
use walstat_format::segment::SegmentName;
use walstat_format::version::{VERSIONS, Version};
use walstat_read::input::history;
use walstat_read::input::names::FileName;
use walstat_read::input::probe::first_page;
use walstat_read::input::recognise::recognise;

/// Fails if the bytes show something wrong.
pub fn run(data: &[u8]) {
    // A slice of its own, so that a byte read behind it is seen.
    let bytes = data.to_vec().into_boxed_slice();
    for version in &VERSIONS {
        body(&bytes, version);
        header(&bytes, version);
    }
    checksums(&bytes);
    pages(&bytes);
    payloads(&bytes);
    texts(&String::from_utf8_lossy(&bytes));
}

/// The parts of a record add up to it, and its first bytes tell as much as all of them.
fn body(bytes: &[u8], version: &Version) {
    let mut blocks = Vec::new();
    let result = walk(bytes, bytes.len() as u32, version, |block| blocks.push(*block));
    let Ok(parts) = result else { return };
    assert_eq!(bytes.len() as u64, sum(&parts), "{parts:?}");
    let data: u64 = blocks.iter().map(|block| u64::from(block.data_bytes)).sum();
    assert_eq!(data, u64::from(parts.block_data_bytes), "{blocks:?}");
    let images = || blocks.iter().filter_map(|block| block.image);
    let fpi: u64 = images().map(|image| u64::from(image.bytes)).sum();
    assert_eq!((fpi, images().count() as u32), (u64::from(parts.fpi_bytes), parts.fpi_count));
    assert!(blocks.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert!(blocks.iter().all(|block| block.id <= MAX_BLOCK_ID));
    if bytes.len() > HEAD_BYTES_MAX {
        let head = walk(&bytes[..HEAD_BYTES_MAX], bytes.len() as u32, version, |_| ());
        assert_eq!(head, Ok(parts), "only {HEAD_BYTES_MAX} bytes are kept of a crossing record");
    }
}

fn sum(parts: &Parts) -> u64 {
    let sizes = [parts.head_bytes, parts.main_data_bytes, parts.block_data_bytes, parts.fpi_bytes];
    sizes.into_iter().map(u64::from).sum()
}

/// What the header check accepts is what it says that it accepts.
fn header(bytes: &[u8], version: &Version) {
    let Some(head) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else { return };
    let header = RecordHeader::parse(head);
    let lsn = Lsn(header.previous.0.rotate_left(u32::from(header.info)));
    for previous in [None, Some(lsn), Some(header.previous)] {
        match header.check(version, lsn, previous) {
            Ok(()) => {
                assert!(header.total_bytes as usize >= RECORD_HEADER_BYTES);
                assert!(version.has_rmgr(header.rmgr));
                assert!(previous.is_none_or(|previous| previous == header.previous));
            }
            Err(fault) => assert_ne!(fault.found(), fault.expected(version)),
        }
    }
    let record = RecordType::of(header.rmgr, header.info, version);
    assert!(record.slot < 16 && !record.name(version).is_empty());
    assert!(!rmgr::name(header.rmgr).is_empty());
    assert!(!header.is_switch() || header.total_bytes as usize == RECORD_HEADER_BYTES);
}

/// The fast checksums agree with the portable one, whole and in pieces.
fn checksums(bytes: &[u8]) {
    let (fast, slow) = (Crc32c::detect(), Crc32c::portable());
    let checksum = slow.record(bytes);
    assert_eq!(fast.record(bytes), checksum);
    let at = bytes.first().map_or(0, |&byte| bytes.len() * usize::from(byte) / 256);
    let (a, b) = bytes.split_at(at);
    let whole = slow.update(Crc32c::START, bytes);
    let first = fast.update(Crc32c::START, a);
    assert_eq!(fast.update(first, b), whole);
    assert_eq!(Crc32c::shift(first, b.len() as u64) ^ fast.update(0, b), whole);
    assert_eq!(fast.verified(bytes), slow.verified(bytes));
    let chained = chain(bytes);
    let verified = slow.verified(&chained);
    assert_eq!(fast.verified(&chained), verified);
    assert!(verified <= chained.len());
}

/// The bytes as records one behind the other, with lengths that are possible and right
/// checksums, up to one that does not fit.
fn chain(bytes: &[u8]) -> Box<[u8]> {
    let mut bytes = bytes.to_vec().into_boxed_slice();
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..)
        && rest.len() >= RECORD_HEADER_BYTES
    {
        let wanted = usize::from(u16::from_le_bytes([rest[0], rest[1]])) % 1500;
        let total = RECORD_HEADER_BYTES + wanted;
        rest[..4].copy_from_slice(&(total as u32).to_le_bytes());
        let Some(record) = rest.get_mut(..total) else { break };
        let spoiled = record[4] == 0xFF;
        let checksum = Crc32c::portable().record(record) ^ u32::from(spoiled);
        record[20..24].copy_from_slice(&checksum.to_le_bytes());
        at += total.next_multiple_of(8);
    }
    bytes
}

fn pages(bytes: &[u8]) {
    let _ = first_page(bytes);
    let Some(header) = PageHeader::parse(bytes) else { return };
    assert!(!header.continues() || header.info & 1 == 1);
    let long = LongHeader::parse(bytes);
    for version in &VERSIONS {
        let geometry = Geometry {
            version,
            system_identifier: long.map_or(0, |long| long.system_identifier),
            segment_bytes: 1 << 20,
            page_bytes: 8192,
        };
        for timelines in [(0, u32::MAX), (header.timeline, header.timeline), (2, 1)] {
            match geometry.check(&header, bytes, header.address, timelines) {
                Ok(()) => assert_eq!(header.magic, version.magic),
                Err(fault) => assert!(!fault.found().is_empty()),
            }
        }
    }
}

fn payloads(bytes: &[u8]) {
    for version in &VERSIONS {
        let _ = Checkpoint::parse(bytes, version.checkpoint);
    }
    for info in [0x00, 0x20, 0x30, 0xC0] {
        assert_eq!(xact::end_time(info, bytes).is_some(), bytes.len() >= 8);
    }
}

fn texts(text: &str) {
    if let Ok(ancestors) = history::parse(u32::MAX, text) {
        assert!(ancestors.windows(2).all(|pair| pair[0].timeline < pair[1].timeline));
    }
    for text in text.lines().chain([text]) {
        let _ = FileName::parse(text);
        let _ = recognise(text.as_bytes(), text);
        if let Ok(lsn) = text.parse::<Lsn>() {
            assert_eq!(lsn.to_string().parse(), Ok(lsn));
            assert_eq!(lsn.unpadded().to_string().parse(), Ok(lsn));
        }
        let Some(name) = SegmentName::parse(text) else { continue };
        assert_eq!(name.to_string(), text);
        for bits in 20..=30 {
            let bytes = 1 << bits;
            if let Some(number) = name.number(bytes) {
                assert_eq!(SegmentName::new(name.timeline, number, bytes), name);
                assert_eq!(name.start(bytes).map(|lsn| lsn.0 / u64::from(bytes)), Some(number));
            }
        }
    }
}
