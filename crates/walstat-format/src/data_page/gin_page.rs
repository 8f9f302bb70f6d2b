//! Pages of GIN indexes (`src/include/access/ginblock.h`): the access method's own part at their end
//! (`GinPageOpaqueData`), and what lies in trees of rows. The same in all releases from 9.5 on.

use super::ITEM_POINTER_BYTES;

/// Bytes of that part.
pub const SPECIAL_BYTES: usize = 8;
/// Bytes of an entry of an inner page of a tree of rows (`PostingItem`): a block, and a row's place.
pub const POSTING_ITEM_BYTES: usize = 4 + ITEM_POINTER_BYTES;
/// Bytes of a segment of a leaf of rows (`GinPostingList`) before its packed rows: the first row's place, and
/// how many bytes they are.
pub const POSTING_LIST_HEADER_BYTES: usize = ITEM_POINTER_BYTES + 2;

/// Where the fields of that part lie in it.
pub mod field {
    /// `rightlink`: the page to the right.
    pub const RIGHT: usize = 0;
    /// `maxoff`: how many items the page has, of some kinds of pages.
    pub const COUNT: usize = 4;
    /// `flags`.
    pub const FLAGS: usize = 6;
}

/// Bits of the flags.
pub mod flag {
    /// Of a tree of rows.
    pub const DATA: u16 = 0x01;
    /// A leaf.
    pub const LEAF: u16 = 0x02;
    /// The page has left the tree.
    pub const DELETED: u16 = 0x04;
    /// Of the list of pending entries.
    pub const LIST: u16 = 0x10;
    /// The parent has no entry for the right half of a split yet.
    pub const INCOMPLETE_SPLIT: u16 = 0x40;
    /// A leaf of a tree of rows in which these are compressed.
    pub const COMPRESSED: u16 = 0x80;
}
