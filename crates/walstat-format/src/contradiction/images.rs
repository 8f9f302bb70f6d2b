//! Images that are missing, or do not unpack to a page.

use super::{BlockFault, Contradiction};
use crate::block::BlockRef;
use crate::image::unpacked::{Unpacked, unpacked};
use crate::page_size::is_page_size;
use crate::payload::{gin, hash, xlog};
use crate::record::Record;
use crate::record_header::CHECK_CONSISTENCY;
use crate::rmgr::{GIN, HASH, XLOG};
use crate::version::Release;

/// An image that is missing, or does not unpack to a page (`RestoreBlockImage` in
/// `src/backend/access/transam/xlogreader.c`).
pub(super) fn wrong_image(record: &Record<'_>, block: &BlockRef) -> Option<Contradiction> {
    let (id, flags) = (block.id, record.version.image_flags);
    let Some(image) = block.image.filter(|image| flags.is_applied(image.info)) else {
        let is_compared = record.header.info & CHECK_CONSISTENCY != 0 && block.image.is_none();
        let is_wanted = is_compared && record.version.since(Release::V10);
        return (is_wanted || wants_image(record, id))
            .then_some(Contradiction::Block(id, BlockFault::NoImage));
    };
    let compression = flags.compression(image.info)?;
    let hole_bytes = usize::from(image.hole_bytes);
    let (least, most) = match unpacked(compression, &record.image(block)?.bytes) {
        Unpacked::Bytes(bytes) => (bytes, bytes),
        // Up to 11 an image that unpacks to more than the page is refused.
        Unpacked::Room(least, most) if record.version.since(Release::V12) => (least, most),
        Unpacked::Room(_, most) => (most, most),
        Unpacked::Unknown => return None,
        Unpacked::Nothing => return Some(Contradiction::Block(id, BlockFault::Image(None))),
    };
    let (least, most) = (least.saturating_add(hole_bytes), most.saturating_add(hole_bytes));
    let page = least.checked_next_power_of_two();
    let Some(page) = page.filter(|page| *page <= most && is_page_size(*page)) else {
        return Some(Contradiction::Block(id, BlockFault::Image(u32::try_from(most).ok())));
    };
    // The server copies what is behind the hole without a look at how much that is.
    let hole_end = usize::from(image.hole_offset) + hole_bytes;
    (hole_end > page).then_some(Contradiction::Block(id, BlockFault::Hole))
}

/// A type of which redo ends where there is no image of some blocks.
pub(super) struct Wanted {
    pub rmgr: u8,
    pub info: u8,
    /// From this release on it does without.
    until: Option<Release>,
    /// Of blocks with a lower id.
    below: u8,
}

const fn wanted(rmgr: u8, info: u8, until: Option<Release>, below: u8) -> Wanted {
    Wanted { rmgr, info, until, below }
}

const ALL: u8 = u8::MAX;

/// `xlog_redo`, `ginRedoSplit`, `ginRedoVacuumPage`, `hash_xlog_split_page`.
pub(super) const WANTED: [Wanted; 6] = [
    wanted(XLOG, xlog::FPI, None, ALL),
    wanted(XLOG, xlog::FPI_FOR_HINT, Some(Release::V15), ALL),
    wanted(XLOG, xlog::FPI_MULTI, Some(Release::V12), ALL),
    wanted(GIN, gin::opcode::SPLIT, None, 3),
    wanted(GIN, gin::opcode::VACUUM_PAGE, None, 1),
    wanted(HASH, hash::opcode::SPLIT_PAGE, None, 1),
];

/// Whether redo ends where there is no image of the block of this id.
fn wants_image(record: &Record<'_>, id: u8) -> bool {
    let (rmgr, info) = (record.header.rmgr, record.header.rmgr_info());
    WANTED.iter().any(|wanted| {
        (wanted.rmgr, wanted.info) == (rmgr, info)
            && id < wanted.below
            && wanted.until.is_none_or(|until| !record.version.since(until))
    })
}
