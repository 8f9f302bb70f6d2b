//! What entries of indexes have in common (`IndexTupleData` in `src/include/access/itup.h`): those of B-tree,
//! hash and GiST pages, and of the records about them.

use super::ITEM_POINTER_BYTES;

/// Bytes before the null bitmap or the key.
pub const HEADER_BYTES: usize = 8;
/// Where `t_info` lies, behind the row's place: length and flags.
pub const INFO_AT: usize = ITEM_POINTER_BYTES;
/// Bits of `t_info` with the length of the entry.
pub const SIZE_MASK: u16 = 0x1FFF;
/// The access method's own bit; a B-tree's entry without a row of its own, or a posting list.
pub const AM_RESERVED: u16 = 0x2000;
