//! Changes of hash indexes (`src/include/access/hash_xlog.h`): record types, and what of the main
//! data moved between releases. Logged since 10.

use crate::cursor::{Cursor, List, at};
use crate::version::{Release, Version};

/// Opcodes, in `xl_info & 0xF0`.
pub mod opcode {
    /// The metapage of a new index.
    pub const INIT_META_PAGE: u8 = 0x00;
    /// The first bitmap of overflow pages.
    pub const INIT_BITMAP_PAGE: u8 = 0x10;
    /// An entry is inserted.
    pub const INSERT: u8 = 0x20;
    /// A bucket gets an overflow page.
    pub const ADD_OVFL_PAGE: u8 = 0x30;
    /// A new bucket is made, to split an old one.
    pub const SPLIT_ALLOCATE_PAGE: u8 = 0x40;
    /// A page of a bucket that is split: always an image.
    pub const SPLIT_PAGE: u8 = 0x50;
    /// A split is done.
    pub const SPLIT_COMPLETE: u8 = 0x60;
    /// Entries move to an earlier page of the bucket.
    pub const MOVE_PAGE_CONTENTS: u8 = 0x70;
    /// The same, and the page becomes free.
    pub const SQUEEZE_PAGE: u8 = 0x80;
    /// Entries are deleted.
    pub const DELETE: u8 = 0x90;
    /// Entries that a split left behind are deleted.
    pub const SPLIT_CLEANUP: u8 = 0xA0;
    /// The number of entries is set.
    pub const UPDATE_META_PAGE: u8 = 0xB0;
    /// Dead entries make room for a new one.
    pub const VACUUM_ONE_PAGE: u8 = 0xC0;
}

/// Line pointers that a `VACUUM_ONE_PAGE` deletes; `None` if the main data is too short.
pub fn vacuumed<'a>(main_data: &'a [u8], version: &Version) -> Option<List<'a, u16>> {
    // Up to 11 after the table, for conflicts; later after an xid and, from 16 on, a flag, which
    // fits into padding.
    let count_at = if version.since(Release::V12) { 4 } else { 12 };
    let count: u16 = at(main_data, count_at)?;
    Cursor::new(main_data.get(count_at + 4..)?).list(u32::from(count))
}

/// Bytes of `HashMetaPageData`: a head, 98 counts of overflow pages, and the bitmaps' places.
pub fn meta_bytes(page_bytes: usize, version: &Version) -> usize {
    const HEAD_BYTES: usize = 52;
    const SPLIT_POINTS: usize = 98;
    let bitmaps = if version.since(Release::V11) { (page_bytes / 8).min(1024) } else { 128 };
    (HEAD_BYTES + 4 * SPLIT_POINTS + 4 * bitmaps).next_multiple_of(8)
}
