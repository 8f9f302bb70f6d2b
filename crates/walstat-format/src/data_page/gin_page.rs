//! The access method's own part at the end of a GIN index's page (`GinPageOpaqueData` in
//! `src/include/access/ginblock.h`), the same in all releases from 9.5 on.

/// Bytes of that part.
pub const SPECIAL_BYTES: usize = 8;

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
