//! What lies between a record's header and its payload: block headers, image headers, origin,
//! top-level xid and the length of the main data (`DecodeXLogRecord` in
//! `src/backend/access/transam/xlogreader.c`).
//!
//! One walk gives the sums that the statistics need and hands every block reference to a
//! visitor; a visitor that looks at nothing costs nothing.

use crate::cursor::Field;
use crate::image::{HAS_HOLE, IMAGE_HEADER_BYTES, ImageFlags};
use crate::page_size::{MAX_PAGE_BYTES, is_page_size};
use crate::record_header::RECORD_HEADER_BYTES;
use crate::version::Version;
use serde::{Deserialize, Serialize};

mod mark;
pub mod needed;
pub mod places;

pub use crate::locator::RelFileLocator;
pub use mark::BlockMark;
use needed::is_place;

/// The highest block id in a record.
pub const MAX_BLOCK_ID: u8 = 32;
/// No record has more than this before its payload: 24 + 33 × 27 + 3 + 5 + 5 bytes.
pub const HEAD_BYTES_MAX: usize = 1024;

const ID_DATA_SHORT: u8 = 255;
const ID_DATA_LONG: u8 = 254;
const ID_ORIGIN: u8 = 253;
/// The id of a header that names the top-level transaction (14 and later).
pub const ID_TOPLEVEL_XID: u8 = 252;

/// Bytes of the header of main data of up to 255 bytes (`SizeOfXLogRecordDataHeaderShort`).
pub const DATA_HEADER_SHORT_BYTES: usize = 2;
/// Bytes of the header of longer main data (`SizeOfXLogRecordDataHeaderLong`).
pub const DATA_HEADER_LONG_BYTES: usize = 5;
/// Bytes of a header that names the origin.
const ORIGIN_BYTES: usize = 3;
/// Bytes of a header that names the top-level transaction.
pub const TOPLEVEL_XID_BYTES: usize = 5;
/// Bytes of a block's header (`SizeOfXLogRecordBlockHeader`), before an image's header.
pub const BLOCK_HEADER_BYTES: usize = 4;
/// Bytes of a relation and a block number in it, which end the header.
pub const PLACE_BYTES: usize = <RelFileLocator as Field>::BYTES + 4;

/// Bytes before the payload of a record of the most usual form: one block without an image, and
/// short main data.
pub(crate) const USUAL_HEAD_BYTES: usize =
    RECORD_HEADER_BYTES + BLOCK_HEADER_BYTES + PLACE_BYTES + DATA_HEADER_SHORT_BYTES;
/// The same with an image that is not compressed.
pub(crate) const ONE_IMAGE_HEAD_BYTES: usize = USUAL_HEAD_BYTES + IMAGE_HEADER_BYTES as usize;

const FORK_MASK: u8 = 0x0F;
/// What of it no fork has: there are four.
const NO_FORK: u8 = FORK_MASK & !0x03;
pub(crate) const HAS_IMAGE: u8 = 0x10;
pub(crate) const HAS_DATA: u8 = 0x20;
pub(crate) const WILL_INIT: u8 = 0x40;
const SAME_REL: u8 = 0x80;

/// A full page image as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Bytes in the WAL: hole removed, compressed.
    pub bytes: u16,
    /// Where the hole begins in the page.
    pub hole_offset: u16,
    /// Bytes of the hole where the record says it: compressed images only.
    pub hole_bytes: u16,
    /// `bimg_info`.
    pub info: u8,
}

impl Image {
    /// Whether a page has such an image, by the rules of `DecodeXLogRecord`, as far as they hold for pages of
    /// any size. A server would fill a hole beyond the page's end without a look, and one of several ways of
    /// compression is all that it writes.
    #[inline(always)]
    fn is_possible(&self, flags: ImageFlags) -> bool {
        let has_hole = self.info & HAS_HOLE != 0;
        if has_hole != (self.hole_offset != 0) || usize::from(self.bytes) > MAX_PAGE_BYTES {
            return false;
        }
        if !flags.is_compressed(self.info) {
            // What is stored is the page but for its hole.
            let bytes = usize::from(self.bytes);
            return if has_hole { self.hole_offset <= self.bytes } else { is_page_size(bytes) };
        }
        let hole_end = usize::from(self.hole_offset) + usize::from(self.hole_bytes);
        flags.compression(self.info).is_some()
            && has_hole == (self.hole_bytes != 0)
            && hole_end <= MAX_PAGE_BYTES
    }
}

/// One block that a record refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRef {
    /// Id in the record, 0 to 32; ids can have gaps.
    pub id: u8,
    /// Fork: 0 main, 1 fsm, 2 vm, 3 init.
    pub fork: u8,
    /// Redo makes the page anew.
    pub will_init: bool,
    /// The relation.
    pub relation: RelFileLocator,
    /// Block number in the fork.
    pub block: u32,
    /// Bytes of block data, the image not counted.
    pub data_bytes: u16,
    /// Where its image, or else its data, begins in the payload: the bytes after all headers.
    pub payload_at: u32,
    /// The image, if there is one.
    pub image: Option<Image>,
}

/// Sums over a record's parts, in bytes where not said otherwise: what every record is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Main data.
    pub main_data_bytes: u32,
    /// Block data.
    pub block_data_bytes: u32,
    /// Stored images.
    pub fpi_bytes: u32,
    /// How many images.
    pub fpi_count: u32,
    /// Bytes before the payload, record header included.
    pub head_bytes: u32,
}

/// Why a record with a good checksum makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum BodyFault {
    /// The headers run past the record, or do not add up to its length.
    #[error("record with invalid length")]
    Length,
    /// A block id that the release does not know.
    #[error("invalid block id {0}")]
    Id(u8),
    /// Block ids do not rise.
    #[error("out-of-order block id {0}")]
    Order(u8),
    /// The data flag and the data length contradict each other.
    #[error("data flag and data length of block {0} contradict each other")]
    Data(u8),
    /// The image header contradicts itself, or no page has such an image.
    #[error("image header of block {0} contradicts itself")]
    Image(u8),
    /// The first block says "same relation as before".
    #[error("block {0} refers to a relation before it, and there is none")]
    SameRel(u8),
    /// A fork that no relation has. A server looks up its name in a table of four, unchecked.
    #[error("invalid fork number of block {0}")]
    Fork(u8),
}

/// Reads forward through the bytes before the payload.
#[derive(Debug, Clone)]
struct HeadCursor<'a> {
    rest: &'a [u8],
}

impl<'a> HeadCursor<'a> {
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], BodyFault> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(BodyFault::Length)?;
        self.rest = rest;
        Ok(head)
    }

    #[inline(always)]
    fn u8(&mut self) -> Result<u8, BodyFault> {
        Ok(self.take::<1>()?[0])
    }

    #[inline(always)]
    fn u16(&mut self) -> Result<u16, BodyFault> {
        Ok(u16::from_le_bytes(*self.take()?))
    }

    #[inline(always)]
    fn u32(&mut self) -> Result<u32, BodyFault> {
        Ok(u32::from_le_bytes(*self.take()?))
    }
}

/// Walks over the parts of a record of `total_bytes`, of which `head` holds the first
/// [`HEAD_BYTES_MAX`] or all, and gives every block reference to `visit`.
///
/// Most records have one of three forms, which are looked at first, without a loop: short main data alone, or
/// after one block reference, number 0, to the main fork of a relation, without an image or with one that is
/// not compressed.
#[inline(always)]
pub fn walk(
    head: &[u8],
    total_bytes: u32,
    version: &Version,
    visit: impl FnMut(&BlockRef),
) -> Result<Parts, BodyFault> {
    match usual(head, total_bytes).or_else(|| one_image(head, total_bytes, version)) {
        Some((parts, block)) => {
            block.iter().for_each(visit);
            Ok(parts)
        }
        None => {
            // Field by field: whole, it would lie in memory, for the usual forms too.
            let Parts { main_data_bytes, block_data_bytes, fpi_bytes, fpi_count, head_bytes } =
                walk_any(head, total_bytes, version, visit)?;
            Ok(Parts { main_data_bytes, block_data_bytes, fpi_bytes, fpi_count, head_bytes })
        }
    }
}

/// The parts of a record without images of a usual form, and its block reference.
#[inline(always)]
fn usual(head: &[u8], total_bytes: u32) -> Option<(Parts, Option<BlockRef>)> {
    let start: &[u8; RECORD_HEADER_BYTES + DATA_HEADER_SHORT_BYTES] = head.first_chunk()?;
    let [.., id, next] = *start;
    if id == ID_DATA_SHORT {
        let (head_bytes, main_data_bytes) = (start.len() as u32, u32::from(next));
        let parts = Parts { head_bytes, main_data_bytes, ..Parts::default() };
        return (total_bytes == head_bytes + main_data_bytes).then_some((parts, None));
    }
    let start: &[u8; USUAL_HEAD_BYTES] = head.first_chunk()?;
    let (_, start_of_body) = start.split_at(RECORD_HEADER_BYTES);
    let &[id, flags, low, high, ref relation @ .., a, b, c, d, ID_DATA_SHORT, length] =
        start_of_body
    else {
        return None;
    };
    let data_bytes = u16::from_le_bytes([low, high]);
    let (head_bytes, main_data_bytes) = (start.len() as u32, u32::from(length));
    let relation = RelFileLocator::parse(relation.first_chunk()?);
    let block = u32::from_le_bytes([a, b, c, d]);
    let is_sound = id == 0
        && flags & (HAS_IMAGE | SAME_REL | FORK_MASK) == 0
        && is_place(relation.relfilenode, block)
        && (flags & HAS_DATA != 0) == (data_bytes > 0)
        && total_bytes == head_bytes + u32::from(data_bytes) + main_data_bytes;
    if !is_sound {
        return None;
    }
    let block_data_bytes = u32::from(data_bytes);
    let parts = Parts { head_bytes, main_data_bytes, block_data_bytes, ..Parts::default() };
    let (payload_at, image, fork) = (0, None, 0);
    let will_init = flags & WILL_INIT != 0;
    let block = BlockRef { id, fork, will_init, relation, block, data_bytes, payload_at, image };
    Some((parts, Some(block)))
}

/// The block reference of a record of the most usual form: its only one, without an image. The record was
/// walked over before, and has `head_bytes` before its payload: so what it says of lengths is sound.
#[inline(always)]
pub fn usual_block(head: &[u8], head_bytes: u32) -> Option<BlockRef> {
    if head_bytes as usize != USUAL_HEAD_BYTES {
        return None;
    }
    let start: &[u8; USUAL_HEAD_BYTES] = head.first_chunk()?;
    let (_, body) = start.split_at(RECORD_HEADER_BYTES);
    let &[id, flags, low, high, ref relation @ .., a, b, c, d, ID_DATA_SHORT, _] = body else {
        return None;
    };
    (id <= MAX_BLOCK_ID && flags & (HAS_IMAGE | SAME_REL) == 0).then_some(())?;
    Some(BlockRef {
        id,
        fork: flags & FORK_MASK,
        will_init: flags & WILL_INIT != 0,
        relation: RelFileLocator::parse(relation.first_chunk()?),
        block: u32::from_le_bytes([a, b, c, d]),
        data_bytes: u16::from_le_bytes([low, high]),
        payload_at: 0,
        image: None,
    })
}

/// The same of a record with one image, which is not compressed.
#[inline(always)]
fn one_image(
    head: &[u8],
    total_bytes: u32,
    version: &Version,
) -> Option<(Parts, Option<BlockRef>)> {
    let start: &[u8; ONE_IMAGE_HEAD_BYTES] = head.first_chunk()?;
    let (_, body) = start.split_at(RECORD_HEADER_BYTES);
    let (&[id, flags, low, high, b0, b1, h0, h1, info], rest) = body.split_first_chunk()?;
    let &[ref relation @ .., a, b, c, d, ID_DATA_SHORT, length] = rest else { return None };
    let data_bytes = u16::from_le_bytes([low, high]);
    let bytes = u16::from_le_bytes([b0, b1]);
    let hole_offset = u16::from_le_bytes([h0, h1]);
    let (head_bytes, main_data_bytes) = (start.len() as u32, u32::from(length));
    let block_data_bytes = u32::from(data_bytes);
    let fpi_bytes = u32::from(bytes);
    let image = Image { bytes, hole_offset, hole_bytes: 0, info };
    let relation = RelFileLocator::parse(relation.first_chunk()?);
    let block = u32::from_le_bytes([a, b, c, d]);
    let is_sound = id == 0
        && flags & (HAS_IMAGE | SAME_REL | FORK_MASK) == HAS_IMAGE
        && is_place(relation.relfilenode, block)
        && (flags & HAS_DATA != 0) == (data_bytes > 0)
        && !version.image_flags.is_compressed(info)
        && image.is_possible(version.image_flags)
        && total_bytes == head_bytes + block_data_bytes + fpi_bytes + main_data_bytes;
    if !is_sound {
        return None;
    }
    let parts = Parts { main_data_bytes, block_data_bytes, fpi_bytes, fpi_count: 1, head_bytes };
    let image = Some(image);
    let (will_init, fork, payload_at) = (flags & WILL_INIT != 0, 0, 0);
    let block = BlockRef { id, fork, will_init, relation, block, data_bytes, payload_at, image };
    Some((parts, Some(block)))
}

/// Walks over the parts of a record of any form. A call of its own, so that the loop over the
/// usual records keeps its registers.
#[inline(never)]
fn walk_any(
    head: &[u8],
    total_bytes: u32,
    version: &Version,
    mut visit: impl FnMut(&BlockRef),
) -> Result<Parts, BodyFault> {
    let mut cursor = HeadCursor { rest: head.get(RECORD_HEADER_BYTES..).ok_or(BodyFault::Length)? };
    // What is left of the record: the rest of `head`, and what `head` does not hold.
    let beyond = (total_bytes as usize).checked_sub(head.len()).ok_or(BodyFault::Length)?;
    let mut parts = Parts::default();
    let mut next_id = 0u8;
    let mut relation = None;
    while cursor.rest.len() + beyond > (parts.block_data_bytes + parts.fpi_bytes) as usize {
        let id = cursor.u8()?;
        if id <= MAX_BLOCK_ID {
            if id < next_id {
                return Err(BodyFault::Order(id));
            }
            next_id = id + 1;
            let payload_at = parts.block_data_bytes + parts.fpi_bytes;
            let block = block_ref(&mut cursor, id, payload_at, &mut relation, version)?;
            parts.block_data_bytes += u32::from(block.data_bytes);
            if let Some(image) = &block.image {
                parts.fpi_count += 1;
                parts.fpi_bytes += u32::from(image.bytes);
            }
            visit(&block);
        } else if id == ID_DATA_SHORT {
            // The main data header is the last one.
            parts.main_data_bytes = u32::from(cursor.u8()?);
            break;
        } else if id == ID_DATA_LONG {
            parts.main_data_bytes = cursor.u32()?;
            break;
        } else if id == ID_ORIGIN {
            cursor.u16()?;
        } else if id == ID_TOPLEVEL_XID && version.toplevel_xid {
            cursor.u32()?;
        } else {
            return Err(BodyFault::Id(id));
        }
    }
    let left = cursor.rest.len() + beyond;
    let blocks_payload = (parts.block_data_bytes + parts.fpi_bytes) as usize;
    if left != blocks_payload + parts.main_data_bytes as usize {
        return Err(BodyFault::Length);
    }
    parts.head_bytes = total_bytes - left as u32;
    // Ids 252 and 253 could repeat without end; no server writes that.
    if parts.head_bytes as usize > HEAD_BYTES_MAX {
        return Err(BodyFault::Length);
    }
    Ok(parts)
}

#[inline(always)]
fn block_ref(
    cursor: &mut HeadCursor<'_>,
    id: u8,
    payload_at: u32,
    relation: &mut Option<RelFileLocator>,
    version: &Version,
) -> Result<BlockRef, BodyFault> {
    let &[flags, low, high] = cursor.take()?;
    let data_bytes = u16::from_le_bytes([low, high]);
    if (flags & HAS_DATA != 0) != (data_bytes > 0) {
        return Err(BodyFault::Data(id));
    }
    if flags & NO_FORK != 0 {
        return Err(BodyFault::Fork(id));
    }
    let image = match flags & HAS_IMAGE {
        0 => None,
        _ => Some(image_header(cursor, id, version)?),
    };
    if flags & SAME_REL == 0 {
        *relation = Some(RelFileLocator::parse(cursor.take()?));
    }
    Ok(BlockRef {
        id,
        fork: flags & FORK_MASK,
        will_init: flags & WILL_INIT != 0,
        relation: relation.ok_or(BodyFault::SameRel(id))?,
        block: cursor.u32()?,
        data_bytes,
        payload_at,
        image,
    })
}

/// What stands between the block headers and the main data's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labels {
    /// The replication origin that the record came from.
    pub origin: Option<u16>,
    /// The top-level transaction: the first record of a subtransaction says it at wal_level
    /// logical.
    pub toplevel_xid: Option<u32>,
}

/// The block references of a record that was walked over before.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    headers: HeadCursor<'a>,
    relation: Option<RelFileLocator>,
    payload_at: u32,
    labels: Labels,
    version: &'static Version,
}

impl<'a> Blocks<'a> {
    /// Those of a record of which `head` holds at least the `head_bytes` before the payload.
    #[inline(always)]
    pub fn of(head: &'a [u8], head_bytes: u32, version: &'static Version) -> Blocks<'a> {
        let rest = head.get(RECORD_HEADER_BYTES..head_bytes as usize).unwrap_or_default();
        let (headers, labels) = (HeadCursor { rest }, Labels::default());
        Blocks { headers, relation: None, payload_at: 0, labels, version }
    }

    /// What stands after the last of them.
    pub fn labels(mut self) -> Labels {
        while self.next().is_some() {}
        self.labels
    }

    #[inline(always)]
    fn step(&mut self) -> Result<Option<BlockRef>, BodyFault> {
        loop {
            let id = self.headers.u8()?;
            match id {
                0..=MAX_BLOCK_ID => {
                    let (headers, relation) = (&mut self.headers, &mut self.relation);
                    let block = block_ref(headers, id, self.payload_at, relation, self.version)?;
                    let image_bytes = block.image.map_or(0, |image| u32::from(image.bytes));
                    self.payload_at += image_bytes + u32::from(block.data_bytes);
                    return Ok(Some(block));
                }
                ID_ORIGIN => self.labels.origin = Some(self.headers.u16()?),
                ID_TOPLEVEL_XID => self.labels.toplevel_xid = Some(self.headers.u32()?),
                _ => return Ok(None),
            }
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = BlockRef;

    #[inline(always)]
    fn next(&mut self) -> Option<BlockRef> {
        // Where the headers end, so do the references.
        self.step().ok().flatten()
    }
}

#[inline(always)]
fn image_header(
    cursor: &mut HeadCursor<'_>,
    id: u8,
    version: &Version,
) -> Result<Image, BodyFault> {
    let &[a, b, c, d, info] = cursor.take()?;
    let bytes = u16::from_le_bytes([a, b]);
    let hole_offset = u16::from_le_bytes([c, d]);
    let has_hole = info & HAS_HOLE != 0;
    let compressed = version.image_flags.is_compressed(info);
    let mut hole_bytes = 0;
    if compressed && has_hole {
        hole_bytes = u16::from_le_bytes(*cursor.take()?);
    }
    let image = Image { bytes, hole_offset, hole_bytes, info };
    image.is_possible(version.image_flags).then_some(image).ok_or(BodyFault::Image(id))
}

#[cfg(test)]
mod tests {
    use super::places::{Places, StoredPlace};
    use super::*;
    use crate::version::VERSIONS;
    use proptest::prelude::*;

    const V15: &Version = &VERSIONS[7];

    /// A record: 24 bytes of header, then `head`, then `payload` bytes.
    fn walk_over(head: &[u8], payload: usize) -> Result<(Parts, Vec<BlockRef>), BodyFault> {
        let mut record = vec![0u8; RECORD_HEADER_BYTES];
        record.extend_from_slice(head);
        record.resize(record.len() + payload, 0xEE);
        let mut blocks = Vec::new();
        let parts = walk(&record, record.len() as u32, V15, |b| blocks.push(*b))?;
        Ok((parts, blocks))
    }

    const REL: [u8; 12] = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];

    fn block(id: u8, flags: u8, data: u16, image: &[u8], rel: &[u8]) -> Vec<u8> {
        let mut out = vec![id, flags];
        out.extend_from_slice(&data.to_le_bytes());
        out.extend_from_slice(image);
        out.extend_from_slice(rel);
        out.extend_from_slice(&[9, 0, 0, 0]);
        out
    }

    #[test]
    fn a_record_without_a_body_is_whole() {
        let (parts, blocks) = walk_over(&[], 0).expect("24 bytes");
        assert_eq!((parts.head_bytes, blocks.len()), (24, 0));
    }

    #[test]
    fn parts_add_up_to_the_record() {
        let mut head = block(0, 0x20, 7, &[], &REL);
        head.extend(block(2, 0x80 | 0x10 | 0x02, 0, &[100, 0, 50, 0, 0x03], &[]));
        head.extend([253, 1, 0, 252, 5, 0, 0, 0, 255, 4]);
        let (parts, blocks) = walk_over(&head, 7 + 100 + 4).expect("well formed");
        assert_eq!(parts.block_data_bytes, 7);
        assert_eq!(parts.main_data_bytes, 4);
        assert_eq!((parts.fpi_bytes, parts.fpi_count), (100, 1));
        assert_eq!(parts.head_bytes as usize, 24 + head.len());
        assert_eq!((blocks[1].id, blocks[1].fork, blocks[1].block), (2, 2, 9));
        assert_eq!(blocks[1].relation, blocks[0].relation);
        assert_eq!(blocks[0].relation.relfilenode, 3);
        assert_eq!((blocks[0].payload_at, blocks[1].payload_at), (0, 7));
        let head: Vec<u8> = [vec![0; RECORD_HEADER_BYTES], head].concat();
        let labels = Blocks::of(&head, parts.head_bytes, V15).labels();
        assert_eq!(labels, Labels { origin: Some(1), toplevel_xid: Some(5) });
        let mut places = Places::of(&head, parts.head_bytes, V15);
        let seen: Vec<_> = places.by_ref().map(|place| place.has_image).collect();
        assert_eq!((seen, places.names_toplevel), (vec![false, true], true));
    }

    #[test]
    fn a_compressed_image_carries_its_hole() {
        let image = [60, 0, 50, 0, 0x01 | 0x08, 0x40, 0x1F];
        let head = block(0, 0x10, 0, &image, &REL);
        let (_, blocks) = walk_over(&head, 60).expect("lz4");
        assert_eq!(blocks[0].image.map(|i| (i.bytes, i.hole_bytes)), Some((60, 8000)));
    }

    #[test]
    fn each_contradiction_is_named() {
        let faults = [
            (vec![33], 0, BodyFault::Id(33)),
            (block(0, 0x20, 0, &[], &REL), 0, BodyFault::Data(0)),
            (block(0, 0x00, 1, &[], &REL), 1, BodyFault::Data(0)),
            (block(0, 0x80, 0, &[], &[]), 0, BodyFault::SameRel(0)),
            (block(0, 0x10, 0, &[9, 0, 0, 0, 1], &REL), 9, BodyFault::Image(0)),
            (block(0, 0x10, 0, &[9, 0, 1, 0, 0], &REL), 9, BodyFault::Image(0)),
            (block(0, 0x10, 0, &[9, 0, 0, 0, 0], &REL), 9, BodyFault::Image(0)),
            (block(0, 0x10, 0, &[9, 0, 10, 0, 1], &REL), 9, BodyFault::Image(0)),
            (block(0, 0x10, 0, &[9, 0, 5, 0, 0x0D, 9, 0], &REL), 9, BodyFault::Image(0)),
            (block(0, 0x04, 0, &[], &REL), 0, BodyFault::Fork(0)),
            (vec![255, 3], 2, BodyFault::Length),
            (vec![255, 3], 4, BodyFault::Length),
            (vec![255], 0, BodyFault::Length),
            (vec![254, 1, 0], 0, BodyFault::Length),
        ];
        for (head, payload, fault) in faults {
            assert_eq!(walk_over(&head, payload).map(|_| ()), Err(fault), "{head:?}");
        }
        let twice = [block(1, 0, 0, &[], &REL), block(1, 0, 0, &[], &REL)].concat();
        assert_eq!(walk_over(&twice, 0).map(|_| ()), Err(BodyFault::Order(1)));
    }

    proptest! {
        /// Bytes like those of a usual record, right or wrong in any place.
        #[test]
        fn usual_forms_are_walked_over_as_any(
            id in prop_oneof![9 => Just(0u8), 1 => any::<u8>()],
            flags in prop_oneof![4 => Just(0), 4 => Just(HAS_DATA), 1 => any::<u8>()],
            image in proptest::option::of((0u8..4, 0u8..2, prop_oneof![Just(2), 0u8..32])),
            data in 0u16..4,
            last in prop_oneof![9 => Just(ID_DATA_SHORT), 1 => any::<u8>()],
            main in 0u8..4,
            with_block in any::<bool>(),
            payload in 0usize..8,
        ) {
            let mut record = vec![0u8; RECORD_HEADER_BYTES];
            if with_block {
                let data = if flags == 0 { 0 } else { data };
                record.extend(match image {
                    Some((bytes, hole, info)) => {
                        block(id, flags | HAS_IMAGE, data, &[bytes, 0, hole, 0, info], &REL)
                    }
                    None => block(id, flags, data, &[], &REL),
                });
            }
            record.extend([last, main]);
            record.resize(record.len() + payload, 1);
            let (mut seen, mut expected) = (Vec::new(), Vec::new());
            let total = record.len() as u32;
            let parts = walk(&record, total, V15, |block| seen.push(*block));
            let slow = walk_any(&record, total, V15, |block| expected.push(*block));
            prop_assert_eq!(parts, slow);
            prop_assert_eq!(&seen, &expected);
            if let Ok(parts) = parts {
                let again: Vec<BlockRef> = Blocks::of(&record, parts.head_bytes, V15).collect();
                prop_assert_eq!(&again, &seen);
                let of_place = |p: StoredPlace| (p.id, p.fork, p.relation, p.block, p.has_image);
                let places: Vec<_> = Places::of(&record, parts.head_bytes, V15).map(of_place).collect();
                let of_block = |b: &BlockRef| (b.id, b.fork, b.relation, b.block, b.image.is_some());
                prop_assert_eq!(places, seen.iter().map(of_block).collect::<Vec<_>>());
                if let Some(only) = usual_block(&record, parts.head_bytes) {
                    prop_assert_eq!(seen, vec![only]);
                }
            }
        }
    }
}
