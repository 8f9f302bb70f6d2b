//! Changes of SP-GiST indexes (`src/include/access/spgxlog.h`): record types, and what of the main
//! data moved between releases.

use crate::cursor::{Cursor, List, at};
use crate::version::{Release, Version};

/// Opcodes, in `xl_info & 0xF0`.
pub mod opcode {
    /// Metapage and roots of a new index (up to 11).
    pub const CREATE_INDEX: u8 = 0x00;
    /// A leaf entry is added.
    pub const ADD_LEAF: u8 = 0x10;
    /// A list of leaf entries moves to another page.
    pub const MOVE_LEAFS: u8 = 0x20;
    /// An inner entry gets a node.
    pub const ADD_NODE: u8 = 0x30;
    /// An inner entry is split.
    pub const SPLIT_TUPLE: u8 = 0x40;
    /// A list of leaf entries becomes an inner entry with several.
    pub const PICKSPLIT: u8 = 0x50;
    /// Vacuum of a leaf page.
    pub const VACUUM_LEAF: u8 = 0x60;
    /// Vacuum of a root that is a leaf.
    pub const VACUUM_ROOT: u8 = 0x70;
    /// Old redirections go away.
    pub const VACUUM_REDIRECT: u8 = 0x80;
}

/// Redirections that a `VACUUM_REDIRECT` makes placeholders; `None` if the main data is too short.
pub fn redirects<'a>(main_data: &'a [u8], version: &Version) -> Option<List<'a, u16>> {
    let count: u16 = at(main_data, 0)?;
    // A flag and its padding came with 16.
    let from = if version.since(Release::V16) { 10 } else { 8 };
    Cursor::new(main_data.get(from..)?).list(u32::from(count))
}
