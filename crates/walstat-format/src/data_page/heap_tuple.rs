//! Rows of tables as they lie in a page (`HeapTupleHeaderData` in
//! `src/include/access/htup_details.h`), and the part of them that records carry.

use super::ITEM_ID_BYTES;
use crate::cursor::{Cursor, at};

/// Bytes of the fixed header (`SizeofHeapTupleHeader`); the null bitmap follows.
pub const TUPLE_HEADER_BYTES: usize = 23;
/// The least that a row takes of its page: its header, aligned, and its line pointer
/// (`MaxHeapTuplesPerPage`).
pub const ROW_BYTES_MIN: usize = TUPLE_HEADER_BYTES.next_multiple_of(8) + ITEM_ID_BYTES;

/// Where the fields of the header lie, from the start of the row.
pub mod field {
    /// `t_xmin`.
    pub const XMIN: usize = 0;
    /// `t_xmax`.
    pub const XMAX: usize = 4;
    /// `t_cid`: the command within the transaction.
    pub const CID: usize = 8;
    /// `t_ctid`: the row's own place, or that of its newer version.
    pub const CTID: usize = 12;
    /// `t_infomask2`.
    pub const INFOMASK2: usize = 18;
    /// `t_infomask`.
    pub const INFOMASK: usize = 20;
    /// `t_hoff`: where the columns begin.
    pub const HOFF: usize = 22;
}

/// Bits of `t_infomask2`, `HEAP_` left out of their names.
pub mod infomask2 {
    /// How many columns the row has (`HEAP_NATTS_MASK`).
    pub const NATTS_MASK: u16 = 0x07FF;
    /// A key column changed, or the row is deleted.
    pub const KEYS_UPDATED: u16 = 0x2000;
    /// A newer version lies in the same page, and no index leads to it.
    pub const HOT_UPDATED: u16 = 0x4000;
}

/// Bits of `t_infomask`, `HEAP_` left out of their names.
pub mod infomask {
    /// There is a null bitmap.
    pub const HAS_NULL: u16 = 0x0001;
    /// The row's oid ends the header (before 12).
    pub const HAS_OID: u16 = 0x0008;
    /// xmax locks for key share.
    pub const XMAX_KEYSHR_LOCK: u16 = 0x0010;
    /// `t_cid` stands for two commands: one that inserted the row, one that deleted it.
    pub const COMBOCID: u16 = 0x0020;
    /// xmax only locks for update: all there was before 9.3.
    pub const XMAX_EXCL_LOCK: u16 = 0x0040;
    /// xmax did not delete, it only locked.
    pub const XMAX_LOCK_ONLY: u16 = 0x0080;
    /// The inserting transaction is known to have committed.
    pub const XMIN_COMMITTED: u16 = 0x0100;
    /// The inserting transaction is known to have aborted.
    pub const XMIN_INVALID: u16 = 0x0200;
    /// Both: older than every running transaction.
    pub const XMIN_FROZEN: u16 = XMIN_COMMITTED | XMIN_INVALID;
    /// The deleting transaction is known to have committed.
    pub const XMAX_COMMITTED: u16 = 0x0400;
    /// Nobody deletes the row.
    pub const XMAX_INVALID: u16 = 0x0800;
    /// xmax is a multixact.
    pub const XMAX_IS_MULTI: u16 = 0x1000;
    /// The row is a newer version of another.
    pub const UPDATED: u16 = 0x2000;
    /// A vacuum of before 9.0 moved the row away.
    pub const MOVED_OFF: u16 = 0x4000;
    /// A vacuum of before 9.0 moved the row here.
    pub const MOVED_IN: u16 = 0x8000;
    /// All that says something of xmax (`HEAP_XMAX_BITS`).
    pub const XMAX_BITS: u16 = XMAX_COMMITTED
        | XMAX_INVALID
        | XMAX_IS_MULTI
        | XMAX_KEYSHR_LOCK
        | XMAX_EXCL_LOCK
        | XMAX_LOCK_ONLY;
}

/// What page and record have of a row: three fields of its header, and all from byte 23 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleBody<'a> {
    /// `t_infomask2`: number of columns and flags.
    pub infomask2: u16,
    /// `t_infomask`: flags.
    pub infomask: u16,
    /// `t_hoff`: where the columns begin, from the start of the row.
    pub hoff: u8,
    /// From byte 23 of the row to its end.
    pub beyond: &'a [u8],
}

impl<'a> TupleBody<'a> {
    /// Reads the 5 bytes that records have in place of a header (`xl_heap_header`), and takes the
    /// rest for the row; `None` where the header does not fit the row.
    pub fn of_record(bytes: &'a [u8]) -> Option<TupleBody<'a>> {
        let mut cursor = Cursor::new(bytes);
        let (infomask2, infomask) = cursor.field()?;
        let hoff = cursor.field()?;
        TupleBody { infomask2, infomask, hoff, beyond: cursor.rest() }.checked()
    }

    /// The body, if the null bitmap and the header's end lie inside of it.
    pub(crate) fn checked(self) -> Option<TupleBody<'a>> {
        let TupleBody { infomask2, infomask, hoff, beyond } = self;
        column_bytes(infomask2, infomask, hoff, beyond.len()).map(|_| self)
    }

    /// How many columns the row has.
    pub fn column_count(&self) -> u16 {
        self.infomask2 & infomask2::NATTS_MASK
    }

    /// The columns.
    pub fn data(&self) -> &'a [u8] {
        let header = usize::from(self.hoff).saturating_sub(TUPLE_HEADER_BYTES);
        self.beyond.get(header..).unwrap_or_default()
    }

    /// The row's oid where it is part of the header (before 12).
    pub fn header_oid(&self) -> Option<u32> {
        let end = usize::from(self.hoff).checked_sub(TUPLE_HEADER_BYTES)?;
        let has_oid = self.infomask & infomask::HAS_OID != 0;
        at(self.beyond, end.checked_sub(4)?).filter(|_| has_oid)
    }
}

/// Bytes of the columns of a row that has so many from byte 23 on; `None` if the null bitmap and the header's
/// end do not lie inside of it.
pub fn column_bytes(infomask2: u16, infomask: u16, hoff: u8, beyond: usize) -> Option<usize> {
    let header = usize::from(hoff).checked_sub(TUPLE_HEADER_BYTES)?;
    let bitmap = match infomask & infomask::HAS_NULL {
        0 => 0,
        _ => usize::from(infomask2 & infomask2::NATTS_MASK).div_ceil(8),
    };
    let oid = if infomask & infomask::HAS_OID != 0 { 4 } else { 0 };
    let is_sound = bitmap + oid <= header && hoff.is_multiple_of(8);
    beyond.checked_sub(header).filter(|_| is_sound)
}

/// A row as it lies in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapTuple<'a> {
    /// `t_xmin`: who inserted it.
    pub xmin: u32,
    /// `t_xmax`: who deleted or locked it; a multixact if the flags say so.
    pub xmax: u32,
    /// The rest.
    pub body: TupleBody<'a>,
}

impl<'a> HeapTuple<'a> {
    /// Reads a row; `None` for bytes that cannot be one.
    pub fn parse(bytes: &'a [u8]) -> Option<HeapTuple<'a>> {
        let (header, beyond) = bytes.split_at_checked(TUPLE_HEADER_BYTES)?;
        let body = TupleBody {
            infomask2: at(header, field::INFOMASK2)?,
            infomask: at(header, field::INFOMASK)?,
            hoff: at(header, field::HOFF)?,
            beyond,
        };
        Some(HeapTuple {
            xmin: at(header, field::XMIN)?,
            xmax: at(header, field::XMAX)?,
            body: body.checked()?,
        })
    }
}

#[cfg(any(test, feature = "sample"))]
pub mod sample {
    //! A row for the tests of what reads one.

    use super::infomask;

    /// A row as it lies in a page, with `bits` of `t_infomask` and an oid in its header if they
    /// say so.
    pub fn row(xmin: u32, xmax: u32, bits: u16, oid: u32, data: &[u8]) -> Vec<u8> {
        let hoff = if bits & infomask::HAS_OID != 0 { 32 } else { 24 };
        let mut bytes = Vec::new();
        bytes.extend(xmin.to_le_bytes());
        bytes.extend(xmax.to_le_bytes());
        bytes.extend(7u32.to_le_bytes());
        bytes.extend([1, 0, 2, 0, 3, 0]);
        bytes.extend(30u16.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.push(hoff);
        bytes.resize(usize::from(hoff), 0);
        if hoff == 32 {
            bytes[28..].copy_from_slice(&oid.to_le_bytes());
        }
        bytes.extend(data);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::sample::row;
    use super::*;

    #[test]
    fn fields_lie_where_the_server_puts_them() {
        let bytes = row(5, 6, infomask::XMIN_COMMITTED, 0, b"columns");
        let tuple = HeapTuple::parse(&bytes).expect("a row");
        assert_eq!((tuple.xmin, tuple.xmax), (5, 6));
        assert_eq!((tuple.body.column_count(), tuple.body.data()), (30, &b"columns"[..]));
        assert_eq!(tuple.body.header_oid(), None);
    }

    #[test]
    fn before_12_the_oid_ends_the_header() {
        let bytes = row(5, 6, infomask::HAS_OID, 16384, b"columns");
        let tuple = HeapTuple::parse(&bytes).expect("a row");
        assert_eq!(tuple.body.header_oid(), Some(16384));
        assert_eq!(tuple.body.data(), b"columns");
    }

    #[test]
    fn records_carry_all_but_the_first_fields() {
        let bytes = row(5, 6, infomask::HAS_OID, 16384, b"columns");
        let record = [&bytes[18..23], &bytes[23..]].concat();
        let from_page = HeapTuple::parse(&bytes).map(|tuple| tuple.body);
        assert_eq!(TupleBody::of_record(&record), from_page);
        assert_eq!(TupleBody::of_record(&record[..4]), None);
        assert_eq!(TupleBody::of_record(&record[..13]), None);
    }

    #[test]
    fn a_null_bitmap_must_fit() {
        let mut bytes = row(5, 6, infomask::HAS_NULL, 0, b"");
        // 30 columns need 4 bytes, and only one is left before the columns.
        assert_eq!(HeapTuple::parse(&bytes), None);
        bytes[18] = 8;
        assert!(HeapTuple::parse(&bytes).is_some_and(|tuple| tuple.body.column_count() == 8));
    }

    #[test]
    fn bytes_that_cannot_be_a_row_are_refused() {
        let sound = row(5, 6, 0, 0, b"columns");
        assert!(HeapTuple::parse(&sound).is_some());
        assert!(HeapTuple::parse(&sound[..22]).is_none());
        for hoff in [0, 22, 25, 31, 248] {
            let mut bytes = sound.clone();
            bytes[22] = hoff;
            assert!(HeapTuple::parse(&bytes).is_none(), "{hoff}");
        }
    }
}
