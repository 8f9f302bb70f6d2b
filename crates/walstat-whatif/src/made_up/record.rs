//! Records byte for byte, of one block.

use crate::page::Page;
use crate::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::image::ImageFlags;
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::rmgr::HEAP;
use walstat_format::version::{VERSIONS, Version};

/// PostgreSQL 16, which freezes rows of pages with images by records of their own.
const VERSION: &Version = &VERSIONS[8];

/// A record in bytes.
pub(crate) struct Bytes {
    bytes: Vec<u8>,
    lsn: Lsn,
    blocks: Vec<BlockRef>,
}

impl Bytes {
    /// A record about one block of a table: with the page as an image, or with data.
    pub(crate) fn new(
        rmgr_and_info: (u8, u8),
        block: u32,
        image: Option<&Page>,
        data: &[u8],
        main: &[u8],
    ) -> Bytes {
        const HAS_IMAGE: u8 = 0x10;
        const HAS_DATA: u8 = 0x20;
        let (rmgr, info) = rmgr_and_info;
        let image = image.map(Page::bytes).unwrap_or_default();
        let flags = if image.is_empty() { 0 } else { HAS_IMAGE };
        let flags = flags | if data.is_empty() { 0 } else { HAS_DATA };
        let mut bytes = vec![0; RECORD_HEADER_BYTES];
        (bytes[4], bytes[16], bytes[17]) = (7, info, rmgr);
        bytes.extend([0, flags]);
        bytes.extend((data.len() as u16).to_le_bytes());
        if !image.is_empty() {
            bytes.extend((image.len() as u16).to_le_bytes());
            bytes.extend([0, 0, applied(VERSION.image_flags)]);
        }
        let locator_and_block = [1663u32, 5, 20_000, block];
        bytes.extend(locator_and_block.iter().flat_map(|number| number.to_le_bytes()));
        if !main.is_empty() {
            bytes.extend([255, main.len() as u8]);
        }
        bytes.extend([image, data, main].concat());
        let total = bytes.len() as u32;
        bytes[..4].copy_from_slice(&total.to_le_bytes());
        Bytes { bytes, lsn: Lsn(0), blocks: Vec::new() }
    }

    /// An insertion of the row under this number.
    pub(crate) fn insert(number: u16, image: Option<&Page>, row: &[u8]) -> Bytes {
        let [low, high] = number.to_le_bytes();
        let data = if image.is_none() { row } else { &[] };
        Bytes::new((HEAP, 0), 3, image, data, &[low, high, 0])
    }

    /// The same record somewhere in the WAL.
    pub(crate) fn at(self, lsn: u64) -> Bytes {
        Bytes { lsn: Lsn(lsn), ..self }
    }

    /// The record taken apart.
    pub(crate) fn parse(&mut self) -> WholeRecord<'_> {
        let end = Lsn(self.lsn.0 + (self.bytes.len() as u64).next_multiple_of(8));
        WholeRecord::parse(&self.bytes, self.lsn..end, VERSION, &mut self.blocks)
            .expect("a whole record")
    }
}

/// The flag of an image that recovery puts in place.
fn applied(flags: ImageFlags) -> u8 {
    let only = |bit: &u8| flags.is_applied(*bit) && !flags.is_compressed(*bit);
    [0x02u8, 0x04, 0x10].into_iter().find(only).expect("a flag")
}
