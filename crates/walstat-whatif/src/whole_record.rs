//! A record parsed from one contiguous piece of bytes, as the simulator needs it.

use std::ops::Range;
use walstat_format::block::{
    BlockRef, Blocks as Walk, BodyFault, DATA_HEADER_LONG_BYTES, DATA_HEADER_SHORT_BYTES,
    ID_TOPLEVEL_XID, Parts, TOPLEVEL_XID_BYTES, usual_block, walk,
};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_format::record_header::{RECORD_HEADER_BYTES, RecordHeader};
use walstat_format::rmgr::RecordType;
use walstat_format::version::Version;

/// The block references of a record; made to be used again for the next one.
pub(crate) type Blocks = Vec<BlockRef>;

/// A record whose bytes are all at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeRecord<'a> {
    /// Where it starts.
    pub(crate) lsn: Lsn,
    /// After its last byte and the padding.
    pub(crate) end: Lsn,
    /// The 24 bytes before everything else.
    pub(crate) header: RecordHeader,
    /// Sums over its parts.
    pub(crate) parts: Parts,
    /// The release that wrote it.
    pub(crate) version: &'static Version,
    /// The blocks it refers to.
    pub(crate) blocks: &'a [BlockRef],
    bytes: &'a [u8],
}

impl<'a> WholeRecord<'a> {
    /// Takes the record at `place` apart: from its start to after the padding.
    pub(crate) fn parse(
        bytes: &'a [u8],
        place: Range<Lsn>,
        version: &'static Version,
        blocks: &'a mut Blocks,
    ) -> Result<WholeRecord<'a>, BodyFault> {
        let head: &[u8; RECORD_HEADER_BYTES] = bytes.first_chunk().ok_or(BodyFault::Length)?;
        let header = RecordHeader::parse(head);
        blocks.clear();
        let parts = walk(bytes, header.total_bytes, version, |block| blocks.push(*block))?;
        let (lsn, end) = (place.start, place.end);
        Ok(WholeRecord { lsn, end, header, parts, version, blocks, bytes })
    }

    /// A record that the scan has walked over, whose bytes are `bytes`.
    pub(crate) fn of(
        record: &Record<'_>,
        bytes: &'a [u8],
        blocks: &'a mut Blocks,
    ) -> WholeRecord<'a> {
        let Record { lsn, header, parts, version, .. } = *record;
        blocks.clear();
        match usual_block(bytes, parts.head_bytes) {
            Some(block) => blocks.push(block),
            None => list_blocks(bytes, parts.head_bytes, version, blocks),
        }
        WholeRecord { lsn, end: record.end.aligned(), header, parts, version, blocks, bytes }
    }

    /// Its type, as the release's own tool counts it.
    pub(crate) fn record_type(&self) -> RecordType {
        RecordType::of(self.header.rmgr, self.header.info, self.version)
    }

    /// Whether it says to which top-level transaction it belongs.
    pub(crate) fn has_toplevel_xid(&self) -> bool {
        let head = self.bytes.get(..self.parts.head_bytes as usize).unwrap_or_default();
        let main_header = main_header_bytes(self.parts.main_data_bytes as usize);
        // Most records have none, which one byte tells.
        let place = head.len().checked_sub(main_header + TOPLEVEL_XID_BYTES);
        if place.and_then(|place| head.get(place)) != Some(&ID_TOPLEVEL_XID) {
            return false;
        }
        Walk::of(head, self.parts.head_bytes, self.version).labels().toplevel_xid.is_some()
    }

    /// The high half of `xl_info`, which belongs to the resource manager.
    pub(crate) fn info(&self) -> u8 {
        self.header.info & 0xF0
    }

    /// The block with this id.
    pub(crate) fn block(&self, id: u8) -> Option<&'a BlockRef> {
        self.blocks.iter().find(|block| block.id == id)
    }

    /// Main data.
    pub(crate) fn main_data(&self) -> &'a [u8] {
        let from = self.header.total_bytes - self.parts.main_data_bytes;
        self.bytes.get(from as usize..).unwrap_or_default()
    }

    /// Data of a block, the image not counted.
    pub(crate) fn data(&self, block: &BlockRef) -> &'a [u8] {
        let image_bytes = block.image.map_or(0, |image| u32::from(image.bytes));
        self.slice(block.payload_at + image_bytes, block.data_bytes)
    }

    /// The stored bytes of a block's image; empty if there is none.
    pub(crate) fn image(&self, block: &BlockRef) -> &'a [u8] {
        self.slice(block.payload_at, block.image.map_or(0, |image| image.bytes))
    }

    fn slice(&self, at: u32, bytes: u16) -> &'a [u8] {
        let from = (self.parts.head_bytes + at) as usize;
        self.bytes.get(from..from + usize::from(bytes)).unwrap_or_default()
    }
}

/// Bytes of the header before so much main data.
pub(crate) fn main_header_bytes(main_bytes: usize) -> usize {
    match main_bytes {
        0 => 0,
        1..=255 => DATA_HEADER_SHORT_BYTES,
        _ => DATA_HEADER_LONG_BYTES,
    }
}

/// Lists the blocks of a record of any form. Not a part of the loop over the usual ones.
#[inline(never)]
fn list_blocks(bytes: &[u8], head_bytes: u32, version: &'static Version, blocks: &mut Blocks) {
    for block in Walk::of(bytes, head_bytes, version) {
        blocks.push(block);
    }
}
