//! Changes of GIN indexes (`src/include/access/ginxlog.h`): record types and main data.

use crate::cursor::at;

/// Opcodes, in `xl_info & 0xF0`.
pub mod opcode {
    /// Metapage and root of a new index (up to 11).
    pub const CREATE_INDEX: u8 = 0x00;
    /// A tree of rows begins.
    pub const CREATE_PTREE: u8 = 0x10;
    /// An entry is inserted, or rows into a leaf of rows.
    pub const INSERT: u8 = 0x20;
    /// A page is split: always images.
    pub const SPLIT: u8 = 0x30;
    /// Vacuum of a page of keys: always an image.
    pub const VACUUM_PAGE: u8 = 0x40;
    /// A page leaves a tree of rows.
    pub const DELETE_PAGE: u8 = 0x50;
    /// The metapage changes, and the last page of the pending list.
    pub const UPDATE_META_PAGE: u8 = 0x60;
    /// A page of pending entries.
    pub const INSERT_LISTPAGE: u8 = 0x70;
    /// Pages of the pending list become free.
    pub const DELETE_LISTPAGE: u8 = 0x80;
    /// Vacuum of a leaf of rows.
    pub const VACUUM_DATA_LEAF_PAGE: u8 = 0x90;
}

/// Bits of the flags of an insertion and of a split.
pub mod flag {
    /// Of a tree of rows, not of keys (`GIN_INSERT_ISDATA`).
    pub const IS_DATA: u8 = 0x01;
    /// Of a leaf (`GIN_INSERT_ISLEAF`).
    pub const IS_LEAF: u8 = 0x02;
    /// The root is split (`GIN_SPLIT_ROOT`).
    pub const SPLIT_ROOT: u8 = 0x04;
}

/// What is done to a segment of a leaf of rows (`ginxlogRecompressDataLeaf`).
pub mod segment_action {
    /// It goes (`GIN_SEGMENT_DELETE`).
    pub const DELETE: u8 = 1;
    /// A new one comes before it (`GIN_SEGMENT_INSERT`).
    pub const INSERT: u8 = 2;
    /// A new one comes in its place (`GIN_SEGMENT_REPLACE`).
    pub const REPLACE: u8 = 3;
    /// Rows are added to it (`GIN_SEGMENT_ADDITEMS`).
    pub const ADD_ITEMS: u8 = 4;
}

/// What is inserted where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insert {
    /// Into a tree of rows, not of keys.
    pub is_data: bool,
    /// Into a leaf.
    pub is_leaf: bool,
}

impl Insert {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<Insert> {
        let flags: u16 = at(main_data, 0)?;
        let has = |flag: u8| flags & u16::from(flag) != 0;
        Some(Insert { is_data: has(flag::IS_DATA), is_leaf: has(flag::IS_LEAF) })
    }
}

/// A page leaves a tree of rows: block 0, its parent 1, its left sibling 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletePage {
    /// Its entry in the parent.
    pub parent_offset: u16,
    /// Its right sibling.
    pub right: u32,
}

impl DeletePage {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<DeletePage> {
        Some(DeletePage { parent_offset: at(main_data, 0)?, right: at(main_data, 4)? })
    }
}

/// The metapage changes, and with it the last page of the pending list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateMeta {
    /// Entries that are added there.
    pub tuples: u32,
}

impl UpdateMeta {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<UpdateMeta> {
        // After the index, the metadata and two block numbers.
        Some(UpdateMeta { tuples: at(main_data, 80)? })
    }
}
