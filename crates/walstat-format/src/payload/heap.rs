//! Changes of single rows (`xl_heap_*` in `src/include/access/heapam_xlog.h`): which row of which
//! block, by whom, and the row itself where the record carries it.
//!
//! Rows are found by their place alone; which table it is stands in the block reference.

use super::invalidation::Invalidation;
use crate::cursor::Cursor;
use crate::data_page::heap_tuple::TupleBody;
use crate::version::{Release, Version};

/// Bits of `xl_info` that hold the opcode, for Heap and Heap2.
pub const OPCODE_MASK: u8 = 0x70;
/// The bit of `xl_info` that says that the page is made anew.
pub const INIT_PAGE: u8 = 0x80;
/// A row is inserted.
pub const INSERT: u8 = 0x00;
/// A row is deleted.
pub const DELETE: u8 = 0x10;
/// A row is updated.
pub const UPDATE: u8 = 0x20;
/// Tables are truncated (11 and later; for logical decoding only).
pub const TRUNCATE: u8 = 0x30;
/// A row is updated without a change of an indexed column, in the same page.
pub const HOT_UPDATE: u8 = 0x40;
/// A speculative insertion (`ON CONFLICT`) is confirmed.
pub const CONFIRM: u8 = 0x50;
/// A row is locked.
pub const LOCK: u8 = 0x60;
/// A row is overwritten where it stands.
pub const INPLACE: u8 = 0x70;

/// Bits of the flags byte of an insertion, multi-insertions included.
pub mod insert_flag {
    /// The page was all-visible.
    pub const ALL_VISIBLE_CLEARED: u8 = 0x01;
    /// The row is in the record even beside an image, for logical decoding.
    pub const CONTAINS_NEW_TUPLE: u8 = 0x08;
}

/// Bits of the flags byte of an update.
pub mod update_flag {
    /// The old row's page was all-visible.
    pub const OLD_ALL_VISIBLE_CLEARED: u8 = 0x01;
    /// The new row's page was all-visible.
    pub const NEW_ALL_VISIBLE_CLEARED: u8 = 0x02;
    /// The old row is in the record (replica identity FULL).
    pub const CONTAINS_OLD_TUPLE: u8 = 0x04;
    /// The old row's key is in the record.
    pub const CONTAINS_OLD_KEY: u8 = 0x08;
    /// The new row is in the record even beside an image, for logical decoding.
    pub const CONTAINS_NEW_TUPLE: u8 = 0x10;
    /// The new row begins as the old one does.
    pub const PREFIX_FROM_OLD: u8 = 0x20;
    /// The new row ends as the old one does.
    pub const SUFFIX_FROM_OLD: u8 = 0x40;
}

/// Bits of the flags byte of a deletion.
pub mod delete_flag {
    /// The page was all-visible.
    pub const ALL_VISIBLE_CLEARED: u8 = 0x01;
    /// The old row is in the record (replica identity FULL).
    pub const CONTAINS_OLD_TUPLE: u8 = 0x02;
    /// The old row's key is in the record.
    pub const CONTAINS_OLD_KEY: u8 = 0x04;
    /// A speculative insertion is taken back.
    pub const IS_SUPER: u8 = 0x08;
    /// The row moves to another partition.
    pub const IS_PARTITION_MOVE: u8 = 0x10;
}

/// Bits by which a record says what became of a row's xmax (`XLHL_*`).
pub mod infobits {
    /// It is a multixact.
    pub const XMAX_IS_MULTI: u8 = 0x01;
    /// It only locks.
    pub const XMAX_LOCK_ONLY: u8 = 0x02;
    /// It locks exclusively.
    pub const XMAX_EXCL_LOCK: u8 = 0x04;
    /// It locks against changes of the key.
    pub const XMAX_KEYSHR_LOCK: u8 = 0x08;
    /// A key column changed, or the row is deleted.
    pub const KEYS_UPDATED: u8 = 0x10;
}

/// A row is inserted; the row is the data of block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insert {
    /// Its line pointer.
    pub offset: u16,
    /// [`insert_flag`].
    pub flags: u8,
}

impl Insert {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<Insert> {
        let mut cursor = Cursor::new(main_data);
        Some(Insert { offset: cursor.field()?, flags: cursor.field()? })
    }
}

/// A row is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The row's new xmax.
    pub xmax: u32,
    /// Its line pointer in block 0.
    pub offset: u16,
    /// [`infobits`].
    pub infobits: u8,
    /// [`delete_flag`].
    pub flags: u8,
    /// The old row or its key, as [`TupleBody::of_record`] reads it; empty unless asked for.
    pub old: &'a [u8],
}

impl<'a> Delete<'a> {
    /// Bytes of the main data before the old row.
    pub const BYTES: u32 = 8;

    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<Delete<'a>> {
        let mut cursor = Cursor::new(main_data);
        let xmax = cursor.field()?;
        let (offset, (infobits, flags)) = cursor.field()?;
        Some(Delete { xmax, offset, infobits, flags, old: cursor.rest() })
    }
}

/// A row is updated: the new one is in block 0, the old one in block 1, or in block 0 too if
/// there is no block 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update<'a> {
    /// The old row's new xmax.
    pub old_xmax: u32,
    /// The old row's line pointer.
    pub old_offset: u16,
    /// [`infobits`] of the old row.
    pub old_infobits: u8,
    /// [`update_flag`].
    pub flags: u8,
    /// The new row's xmax: lockers of the old one go on with it.
    pub new_xmax: u32,
    /// The new row's line pointer.
    pub new_offset: u16,
    /// The old row or its key, as [`TupleBody::of_record`] reads it; empty unless asked for.
    pub old: &'a [u8],
}

impl<'a> Update<'a> {
    /// Bytes of the main data before the old row; no other change of a row has as many.
    pub const BYTES: u32 = 14;

    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<Update<'a>> {
        let mut cursor = Cursor::new(main_data);
        let old_xmax = cursor.field()?;
        let (old_offset, (old_infobits, flags)) = cursor.field()?;
        let (new_xmax, new_offset) = cursor.field()?;
        let old = cursor.rest();
        Some(Update { old_xmax, old_offset, old_infobits, flags, new_xmax, new_offset, old })
    }
}

/// The new row of an update, from the data of block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTuple<'a> {
    /// Bytes of columns at the start that are those of the old row.
    pub prefix: u16,
    /// The same at the end.
    pub suffix: u16,
    /// Header and what lies between prefix and suffix: [`TupleBody::data`] lacks both.
    pub body: TupleBody<'a>,
}

impl<'a> NewTuple<'a> {
    /// Reads the data of block 0; `None` if it is too short.
    pub fn parse(update: &Update<'_>, block_data: &'a [u8]) -> Option<NewTuple<'a>> {
        let mut cursor = Cursor::new(block_data);
        let mut length = |flag| match update.flags & flag {
            0 => Some(0),
            _ => cursor.field(),
        };
        let prefix = length(update_flag::PREFIX_FROM_OLD)?;
        let suffix = length(update_flag::SUFFIX_FROM_OLD)?;
        let body = TupleBody::of_record(cursor.rest())?;
        Some(NewTuple { prefix, suffix, body })
    }

    /// The new row from byte 23 on, put together again: `header` bytes up to its columns, then these, as far
    /// as the record has them, between what they share with `old`, the columns of the old row. `None` where
    /// that is too short.
    pub fn rebuilt_from(&self, header: usize, old: &[u8]) -> Option<Vec<u8>> {
        let start = old.get(..usize::from(self.prefix))?;
        let end = old.len().checked_sub(usize::from(self.suffix))?;
        Some([self.body.beyond.get(..header)?, start, self.body.data(), old.get(end..)?].concat())
    }
}

/// A row is locked (`LOCK`), or the newer version of a locked one (Heap2 `LOCK_UPDATED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// The row's new xmax.
    pub xmax: u32,
    /// Its line pointer in block 0.
    pub offset: u16,
    /// [`infobits`].
    pub infobits: u8,
}

impl Lock {
    /// Bytes of the main data, from 9.6 on.
    pub const BYTES: u32 = 8;

    /// Reads the main data; `None` if it is too short. A byte of flags follows from 9.6 on.
    pub fn parse(main_data: &[u8]) -> Option<Lock> {
        let mut cursor = Cursor::new(main_data);
        let xmax = cursor.field()?;
        let (offset, infobits) = cursor.field()?;
        Some(Lock { xmax, offset, infobits })
    }
}

/// A row is overwritten; its columns are the data of block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inplace {
    /// Its line pointer.
    pub offset: u16,
}

impl Inplace {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8], version: &Version) -> Option<Inplace> {
        let mut cursor = Cursor::new(main_data);
        let offset = cursor.field()?;
        if version.since(Release::V18) {
            // Two bytes of padding, database, tablespace, a flag and three bytes of padding; then what
            // caches have to forget.
            cursor.take(14)?;
            cursor.counted_list::<Invalidation>()?;
        }
        Some(Inplace { offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn places_and_flags_are_read() {
        assert_eq!(Insert::parse(&[5, 0, 8]), Some(Insert { offset: 5, flags: 8 }));
        assert_eq!(Insert::parse(&[5, 0]), None);
        let delete = Delete::parse(&[1, 0, 0, 0, 5, 0, 0x10, 2, b'o']).expect("9 bytes");
        assert_eq!((delete.xmax, delete.offset, delete.infobits), (1, 5, 0x10));
        assert_eq!((delete.flags, delete.old), (2, &b"o"[..]));
        assert_eq!(Delete::parse(&[0; 7]), None);
        // 7 bytes in 9.5, 8 later.
        let lock = Some(Lock { xmax: 1, offset: 5, infobits: 4 });
        assert_eq!(Lock::parse(&[1, 0, 0, 0, 5, 0, 4]), lock);
        assert_eq!(Lock::parse(&[1, 0, 0, 0, 5, 0, 4, 1]), lock);
        assert_eq!(Lock::parse(&[0; 6]), None);
    }

    const UPDATE: [u8; 14] = [1, 0, 0, 0, 5, 0, 0x10, 0x60, 2, 0, 0, 0, 6, 0];

    #[test]
    fn an_update_takes_from_the_old_row() {
        let update = Update::parse(&UPDATE).expect("14 bytes");
        assert_eq!((update.old_xmax, update.old_offset), (1, 5));
        assert_eq!((update.new_xmax, update.new_offset), (2, 6));
        assert!(update.old.is_empty());
        let data = [&[3, 0, 4, 0, 2, 0, 0, 0, 24, 0xEE][..], b"XY"].concat();
        let new = NewTuple::parse(&update, &data).expect("a row");
        assert_eq!(new.rebuilt_from(0, b"abcdefgh").as_deref(), Some(&b"abcXYefgh"[..]));
        assert_eq!(new.rebuilt_from(0, b"abc"), None);
        assert_eq!(NewTuple::parse(&update, &data[..8]), None);
        assert_eq!(Update::parse(&UPDATE[..13]), None);
    }

    #[test]
    fn an_update_can_carry_all_of_the_new_row() {
        let update = Update { flags: 0, ..Update::parse(&UPDATE).expect("14 bytes") };
        let data = [&[2, 0, 0, 0, 24, 0xEE][..], b"XY"].concat();
        let new = NewTuple::parse(&update, &data).expect("a row");
        assert_eq!(new.rebuilt_from(0, b"").as_deref(), Some(&b"XY"[..]));
    }

    #[test]
    fn from_18_on_an_overwritten_row_has_invalidations() {
        let mut data = vec![5u8, 0];
        let old = Inplace { offset: 5 };
        assert_eq!(Inplace::parse(&data, &VERSIONS[9]), Some(old));
        assert_eq!(Inplace::parse(&data, &VERSIONS[10]), None);
        data.resize(16, 0);
        data.extend([1, 0, 0, 0]);
        data.extend([0xFE; 16]);
        assert_eq!(Inplace::parse(&data, &VERSIONS[10]), Some(old));
        assert_eq!(Inplace::parse(&data[..data.len() - 1], &VERSIONS[10]), None);
    }
}
