//! Changes of GiST indexes (`src/include/access/gistxlog.h`): record types, and what of the main
//! data moved between releases.

use crate::cursor::{Cursor, List, at};
use crate::version::{Release, Version};

/// Opcodes, in `xl_info & 0xF0`.
pub mod opcode {
    /// Entries are deleted, inserted or replaced.
    pub const PAGE_UPDATE: u8 = 0x00;
    /// Dead entries make room (12 and later).
    pub const DELETE: u8 = 0x10;
    /// A page is split into several.
    pub const PAGE_SPLIT: u8 = 0x30;
    /// The root of a new index (up to 11).
    pub const CREATE_INDEX: u8 = 0x50;
    /// An empty page leaves the tree (12 and later).
    pub const PAGE_DELETE: u8 = 0x60;
}

/// Line pointers that a `DELETE` deletes; `None` if the main data is too short.
pub fn deleted<'a>(main_data: &'a [u8], version: &Version) -> Option<List<'a, u16>> {
    let count: u16 = at(main_data, 4)?;
    // A flag and its padding came with 16.
    let from = if version.since(Release::V16) { 8 } else { 6 };
    Cursor::new(main_data.get(from..)?).list(u32::from(count))
}

/// Whether the page that a `PAGE_SPLIT` splits was a leaf; `None` if the main data is too short.
pub fn split_was_leaf(main_data: &[u8]) -> Option<bool> {
    // After the right link, padding and the NSN.
    at(main_data, 16)
}
