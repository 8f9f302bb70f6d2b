//! The access method's own part at the end of a GiST index's page (`GISTPageOpaqueData` in
//! `src/include/access/gist.h`), the same in all releases from 9.5 on.

/// Bytes of that part.
pub const SPECIAL_BYTES: usize = 16;
/// `GIST_PAGE_ID`: names the access method.
pub const PAGE_ID: u16 = 0xFF81;

/// Where the fields of that part lie in it.
pub mod field {
    /// `flags`.
    pub const FLAGS: usize = 12;
    /// `gist_page_id`.
    pub const PAGE_ID: usize = 14;
}

/// Bits of the flags.
pub mod flag {
    /// A leaf.
    pub const LEAF: u16 = 0x01;
    /// `F_FOLLOW_RIGHT`: the parent has no entry for the page to the right yet.
    pub const FOLLOW_RIGHT: u16 = 0x08;
}
