//! Entries of indexes (`IndexTupleData` in `src/include/access/itup.h`): B-tree, hash and GiST
//! pages and the records about them have them in this form.

use super::heap_tuple::ItemPointer;
use crate::wal::cursor::at;

/// Bytes before the null bitmap or the key.
const HEADER_BYTES: usize = 8;
/// Bytes before the key where there is a null bitmap: `MAXALIGN` of header and bitmap.
const HEADER_WITH_NULLS_BYTES: usize = 16;
const SIZE_MASK: u16 = 0x1FFF;
/// The access method's own bit; a B-tree's entry without a row of its own, or a posting list.
const AM_RESERVED: u16 = 0x2000;
const HAS_NULLS: u16 = 0x8000;

/// An entry of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexTuple<'a> {
    /// `t_tid`: the row, or what the access method keeps there (a child page, a count).
    pub tid: ItemPointer,
    /// `t_info`: length and flags.
    pub info: u16,
    /// All of the entry, header included.
    pub bytes: &'a [u8],
}

impl<'a> IndexTuple<'a> {
    /// Reads the entry at the start of `bytes`, which may go on after it; `None` where they are
    /// shorter than the entry says it is.
    pub fn parse(bytes: &'a [u8]) -> Option<IndexTuple<'a>> {
        let tid = ItemPointer::parse(bytes)?;
        let info: u16 = at(bytes, 6)?;
        let bytes = bytes.get(..usize::from(info & SIZE_MASK))?;
        (bytes.len() >= HEADER_BYTES).then_some(IndexTuple { tid, info, bytes })
    }

    /// Whether one of its columns is null.
    pub fn has_nulls(&self) -> bool {
        self.info & HAS_NULLS != 0
    }

    /// Whether the access method marked it.
    pub fn is_marked(&self) -> bool {
        self.info & AM_RESERVED != 0
    }

    /// The columns, and what the access method has after them.
    pub fn key(&self) -> &'a [u8] {
        let from = if self.has_nulls() { HEADER_WITH_NULLS_BYTES } else { HEADER_BYTES };
        self.bytes.get(from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_knows_its_length() {
        let bytes = [0, 0, 5, 0, 2, 0, 16, 0x20, 1, 2, 3, 4, 5, 6, 7, 8, 0xEE];
        let tuple = IndexTuple::parse(&bytes).expect("16 bytes");
        assert_eq!(tuple.tid, ItemPointer { block: 5, offset: 2 });
        assert_eq!(tuple.key(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(tuple.is_marked() && !tuple.has_nulls());
        assert_eq!(IndexTuple::parse(&bytes[..15]), None);
    }

    #[test]
    fn nulls_move_the_key() {
        let mut bytes = [0u8; 24];
        bytes[6..8].copy_from_slice(&(24u16 | 0x8000).to_le_bytes());
        bytes[16] = 9;
        let tuple = IndexTuple::parse(&bytes).expect("24 bytes");
        assert_eq!((tuple.has_nulls(), tuple.key()[0]), (true, 9));
    }

    #[test]
    fn shorter_than_its_header_is_no_entry() {
        assert_eq!(IndexTuple::parse(&[0, 0, 0, 0, 0, 0, 7, 0]), None);
        assert_eq!(IndexTuple::parse(&[0; 7]), None);
    }
}
