//! The access method's own part at the end of a hash index's page (`HashPageOpaqueData` in
//! `src/include/access/hash.h`); logged since 10.

/// Bytes of that part.
pub const SPECIAL_BYTES: usize = 16;
/// `HASHO_PAGE_ID`: names the access method.
pub const PAGE_ID: u16 = 0xFF80;

/// Where the fields of that part lie in it.
pub mod field {
    /// `hasho_prevblkno`: the page before in the bucket.
    pub const PREVIOUS: usize = 0;
    /// `hasho_nextblkno`: the page after it.
    pub const NEXT: usize = 4;
    /// `hasho_bucket`.
    pub const BUCKET: usize = 8;
    /// `hasho_flag`.
    pub const FLAGS: usize = 12;
    /// `hasho_page_id`.
    pub const PAGE_ID: usize = 14;
}

/// Bits of the flags.
pub mod flag {
    /// A page that was added to a bucket.
    pub const OVERFLOW: u16 = 0x01;
    /// A map of the pages that were added.
    pub const BITMAP: u16 = 0x04;
    /// The first page of the index.
    pub const META: u16 = 0x08;
}
