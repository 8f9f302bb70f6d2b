//! Changes of BRIN indexes (`src/include/access/brin_xlog.h`): record types.

/// Bits of `xl_info` that hold the opcode; 0x80 says that the page is made anew.
pub const OPCODE_MASK: u8 = 0x70;

/// Opcodes.
pub mod opcode {
    /// The metapage of a new index.
    pub const CREATE_INDEX: u8 = 0x00;
    /// A range gets its entry.
    pub const INSERT: u8 = 0x10;
    /// A range's entry moves.
    pub const UPDATE: u8 = 0x20;
    /// A range's entry changes in its place.
    pub const SAMEPAGE_UPDATE: u8 = 0x30;
    /// The range map gets a page.
    pub const REVMAP_EXTEND: u8 = 0x40;
    /// A range loses its entry (10 and later).
    pub const DESUMMARIZE: u8 = 0x50;
}
