//! A whole record in one piece, taken apart: what the simulator looks at.

use crate::wal::block::{BlockRef, BodyFault, Parts, walk};
use crate::wal::lsn::Lsn;
use crate::wal::record::{RECORD_HEADER_BYTES, RecordHeader};
use crate::wal::rmgr::RecordType;
use crate::wal::version::Version;

/// A block reference and where its payload lies in the record.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// The reference.
    pub block: BlockRef,
    image_at: usize,
    data_at: usize,
}

/// Where the parts of a record lie; made to be used again for the next one.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    blocks: Vec<Placed>,
    main_at: usize,
}

/// A record whose bytes are all at hand.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// The 24 bytes before everything else.
    pub header: RecordHeader,
    /// Sums over its parts.
    pub parts: Parts,
    /// The release that wrote it.
    pub version: &'static Version,
    bytes: &'a [u8],
    layout: &'a Layout,
}

impl<'a> Whole<'a> {
    /// Takes the record at `lsn` apart.
    pub fn parse(
        bytes: &'a [u8],
        lsn: Lsn,
        version: &'static Version,
        layout: &'a mut Layout,
    ) -> Result<Whole<'a>, BodyFault> {
        let head: &[u8; RECORD_HEADER_BYTES] = bytes.first_chunk().ok_or(BodyFault::Length)?;
        let header = RecordHeader::parse(head);
        layout.blocks.clear();
        let parts = walk(bytes, header.total_bytes, version, |block| {
            layout.blocks.push(Placed { block: *block, image_at: 0, data_at: 0 });
        })?;
        let mut at = parts.head_bytes as usize;
        for placed in &mut layout.blocks {
            placed.image_at = at;
            at += placed.block.image.map_or(0, |image| usize::from(image.bytes));
            placed.data_at = at;
            at += usize::from(placed.block.data_bytes);
        }
        layout.main_at = at;
        Ok(Whole { lsn, header, parts, version, bytes, layout })
    }

    /// Its type, as the release's own tool counts it.
    pub fn record_type(&self) -> RecordType {
        RecordType::of(self.header.rmgr, self.header.info, self.version)
    }

    /// The blocks it refers to.
    pub fn blocks(&self) -> &'a [Placed] {
        &self.layout.blocks
    }

    /// The block with this id.
    pub fn block(&self, id: u8) -> Option<&'a Placed> {
        self.layout.blocks.iter().find(|placed| placed.block.id == id)
    }

    /// Main data.
    pub fn main_data(&self) -> &'a [u8] {
        self.bytes.get(self.layout.main_at..).unwrap_or_default()
    }

    /// Data of a block, the image not counted.
    pub fn data(&self, placed: &Placed) -> &'a [u8] {
        self.slice(placed.data_at, placed.block.data_bytes)
    }

    /// The stored bytes of a block's image; empty if there is none.
    pub fn image(&self, placed: &Placed) -> &'a [u8] {
        self.slice(placed.image_at, placed.block.image.map_or(0, |image| image.bytes))
    }

    fn slice(&self, at: usize, bytes: u16) -> &'a [u8] {
        self.bytes.get(at..at + usize::from(bytes)).unwrap_or_default()
    }
}
