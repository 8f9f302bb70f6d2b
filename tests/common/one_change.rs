//! One thing changed in a real record, and the checksum made right again: recovery ends at it.

use super::changed::Places;
use walstat_format::rmgr::{BTREE, HEAP};

/// What is changed in a record, of which the places are known; `None`: it is not one of those that are meant.
pub type Change = fn(&mut [u8], &Places) -> Option<()>;

/// The bit in `bimg_info` of an image that is replayed (`BKPIMAGE_APPLY`).
pub const APPLIED: u8 = 0x02;

/// Puts a value at a place of the record.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

/// Only records of this type.
pub fn of(bytes: &[u8], rmgr: u8, info: u8) -> Option<()> {
    (bytes[17] == rmgr && bytes[16] & 0xF0 == info).then_some(())
}

/// Only those without an image.
pub fn bare(places: &Places) -> Option<()> {
    places.blocks.iter().all(|block| block.image.is_empty()).then_some(())
}

/// An offset number at this place of the main data.
pub fn put_offset(bytes: &mut [u8], places: &Places, at: usize, offset: u16) -> Option<()> {
    bare(places)?;
    put(bytes, places.main.start + at, &offset.to_le_bytes())
}

/// The id of the first block.
fn put_id(bytes: &mut [u8], places: &Places, id: u8) -> Option<()> {
    put(bytes, places.blocks.first()?.flags - 1, &[id])
}

/// An insertion whose block has another id than the one that redo reads.
pub fn insert_of_other_id(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    put_id(bytes, places, 5)
}

/// The same of an entry of a B-tree.
pub fn leaf_of_other_id(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, BTREE, 0x00)?;
    put_id(bytes, places, 5)
}

/// An insertion at an offset number that no page has.
pub fn insert_at_5000(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    put_offset(bytes, places, 0, 5000)
}

/// The same at 0: redo puts the row wherever there is room.
pub fn insert_at_0(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    put_offset(bytes, places, 0, 0)
}

/// An insertion into file 0, which is none.
pub fn insert_into_file_0(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    // A server makes the file for an image.
    bare(places)?;
    put(bytes, places.blocks.first()?.relation? + 8, &[0; 4])
}

/// An insertion whose block redo would compare with an image of it, which is not there.
pub fn insert_to_be_compared(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    bare(places)?;
    bytes[16] |= 0x02;
    Some(())
}

/// Where `bimg_info` of the image of block 0 is, if that is compressed and replayed, with the bits of 15 and
/// later.
fn packed_image(bytes: &[u8], places: &Places) -> Option<usize> {
    const COMPRESSED: u8 = 0x1C;
    let block = places.blocks.first().filter(|block| !block.image.is_empty())?;
    let info = bytes[block.flags + 7];
    (info & COMPRESSED != 0 && info & APPLIED != 0).then_some(block.flags + 7)
}

/// An image in an insertion that cannot be unpacked.
pub fn insert_with_broken_image(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    packed_image(bytes, places)?;
    let image = places.blocks.first()?.image.clone();
    bytes.get_mut(image.start + image.len() / 2..image.end)?.fill(0xFF);
    Some(())
}

/// One that unpacks to a byte less than a page.
pub fn insert_with_short_image(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    let info = packed_image(bytes, places)?;
    (bytes[info] & 1 != 0).then_some(())?;
    // The length of the hole stands behind it.
    bytes[info + 1] = bytes[info + 1].checked_sub(1)?;
    Some(())
}

/// In a block's flags: redo makes the page anew (`BKPBLOCK_WILL_INIT`).
const WILL_INIT: u8 = 0x40;

/// An insertion into a page that is there, whose block is marked to be made anew.
pub fn insert_marked(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    bare(places)?;
    bytes[places.blocks.first()?.flags] |= WILL_INIT;
    Some(())
}

/// The same beside an image of the block.
pub fn insert_of_image_marked(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x00)?;
    let block = places.blocks.first().filter(|block| !block.image.is_empty())?;
    bytes[block.flags] |= WILL_INIT;
    Some(())
}

/// An insertion into a new page, whose block is not marked so.
pub fn insert_unmarked(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, HEAP, 0x80)?;
    bytes[places.blocks.first()?.flags] &= !WILL_INIT;
    Some(())
}

/// A split of a B-tree page whose right half is not marked to be made anew.
pub fn split_unmarked(bytes: &mut [u8], places: &Places) -> Option<()> {
    of(bytes, BTREE, 0x40).or_else(|| of(bytes, BTREE, 0x30))?;
    bytes[places.blocks.get(1)?.flags] &= !WILL_INIT;
    Some(())
}
