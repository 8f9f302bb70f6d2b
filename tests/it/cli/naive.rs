//! A slow and simple reading of one segment of PostgreSQL 15, written from `xlogrecord.h` and
//! nothing else: what filters are held against. Checks no checksum and knows no other release.

use std::collections::BTreeSet;

const PAGE: usize = 8192;

/// One block reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Tablespace, database, relfilenode.
    pub relation: [u32; 3],
    /// 0 main, 1 fsm, 2 vm, 3 init.
    pub fork: u8,
    /// Number of the block.
    pub number: u32,
}

/// One record.
#[derive(Debug, Clone)]
pub struct Record {
    pub total_bytes: u32,
    pub fpi_bytes: u32,
    pub xid: u32,
    pub rmgr: u8,
    pub info: u8,
    pub images: u32,
    pub blocks: Vec<Block>,
}

/// All records that lie in the segment as a whole, in order, up to a switch or the first zeros.
pub fn records(segment: &[u8]) -> Vec<Record> {
    let stream = without_page_headers(segment);
    let mut at = u32_at(segment, 16) as usize;
    let mut records = Vec::new();
    loop {
        at = at.next_multiple_of(8);
        let length = stream.get(at..at + 4).map_or(0, |bytes| u32_at(bytes, 0) as usize);
        let Some(bytes) = stream.get(at..at + length).filter(|bytes| bytes.len() >= 24) else {
            return records;
        };
        let record = record(bytes);
        at += length;
        let switch = record.rmgr == 0 && record.info & 0xF0 == 0x40;
        records.push(record);
        if switch {
            return records;
        }
    }
}

fn without_page_headers(segment: &[u8]) -> Vec<u8> {
    let bodies = segment.chunks(PAGE).enumerate();
    bodies.flat_map(|(index, page)| &page[if index == 0 { 40 } else { 24 }..]).copied().collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn record(bytes: &[u8]) -> Record {
    let (mut at, mut data) = (24, 0);
    let mut record = Record {
        total_bytes: u32_at(bytes, 0),
        xid: u32_at(bytes, 4),
        info: bytes[16],
        rmgr: bytes[17],
        fpi_bytes: 0,
        images: 0,
        blocks: Vec::new(),
    };
    while bytes.len() - at > data {
        at += match bytes[at] {
            255 => {
                data += usize::from(bytes[at + 1]);
                2
            }
            254 => {
                data += u32_at(bytes, at + 1) as usize;
                5
            }
            253 => 3,
            252 => 5,
            _ => block(&bytes[at..], &mut record, &mut data),
        };
    }
    assert_eq!(bytes.len() - at, data, "the headers tell where the data begins");
    record
}

/// Takes one block reference in; `data` grows by what belongs to it. Returns the length of its
/// header.
fn block(header: &[u8], record: &mut Record, data: &mut usize) -> usize {
    let flags = header[1];
    *data += u16_at(header, 2) as usize;
    let mut at = 4;
    if flags & 0x10 != 0 {
        let (length, info) = (u16_at(header, 4), header[8]);
        record.fpi_bytes += length;
        record.images += 1;
        *data += length as usize;
        let (hole, compressed) = (info & 0x01 != 0, info & 0x1C != 0);
        at += if hole && compressed { 7 } else { 5 };
    }
    let relation = if flags & 0x80 != 0 {
        record.blocks.last().expect("the same relation as a block before").relation
    } else {
        at += 12;
        [12, 8, 4].map(|back| u32_at(header, at - back))
    };
    record.blocks.push(Block { relation, fork: flags & 0x0F, number: u32_at(header, at) });
    at + 4
}

/// Up to `count` of the values, spread over all of them.
pub fn some_of<T: Ord + Clone>(values: BTreeSet<T>, count: usize) -> Vec<T> {
    let step = values.len().div_ceil(count).max(1);
    values.into_iter().step_by(step).collect()
}
