//! Tables: insertions, updates, deletions, locks (`heap_xlog_*` in
//! `src/backend/access/heap/heapam.c`).

use super::{DataBytes, Redo};
use crate::page::Page;
use crate::whole_record::WholeRecord;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::cursor::at;
use walstat_format::data_page::heap_tuple::{
    HeapTuple, TUPLE_HEADER_BYTES, TupleBody, field, infomask, infomask2,
};
use walstat_format::data_page::{PD_ALL_VISIBLE, field as page_field};
use walstat_format::payload::checkpoint::FIRST_NORMAL_OID;
use walstat_format::payload::heap;
use walstat_format::payload::heap::{
    Delete, INPLACE, Inplace, Insert, Lock, NewTuple, OPCODE_MASK, Update, delete_flag, infobits,
    insert_flag, update_flag,
};

/// `SizeOfHeapHeader`: what records have in place of a tuple's header.
pub(crate) const ROW_HEADER_BYTES: usize = 5;

/// Offset number of a row that moved to another partition (`MovedPartitionsOffsetNumber`).
const MOVED: (u32, u16) = (u32::MAX, 0xFFFD);

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = redo.page(before, 0)?;
    change(redo, &mut page)?;
    Some(page)
}

/// Changes the page where it lies.
pub(crate) fn change(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    match redo.record.info() & OPCODE_MASK {
        heap::INSERT => insert(redo, page, Insert::parse(main)?),
        heap::DELETE => delete(redo, page, Delete::parse(main)?),
        heap::UPDATE | heap::HOT_UPDATE => update(redo, page, Update::parse(main)?),
        heap::LOCK => lock(page, Lock::parse(main)?, Some(redo.block.block)),
        heap::CONFIRM => {
            let offset = at(main, 0)?;
            set_ctid(page, offset, (redo.block.block, offset))
        }
        INPLACE => {
            let inplace = Inplace::parse(main, redo.record.version)?;
            let tuple = page.tuple_mut(inplace.offset)?;
            let columns = usize::from(*tuple.get(field::HOFF)?);
            tuple.get_mut(columns..)?.get_mut(..redo.data().len())?.copy_from_slice(redo.data());
            Some(())
        }
        _ => None,
    }
}

fn insert(redo: Redo<'_>, page: &mut Page, insert: Insert) -> Option<()> {
    let body = TupleBody::of_record(redo.data())?;
    let (block, offset) = (redo.block.block, insert.offset);
    let xmin = redo.record.header.xid;
    add_row(page, &NewRow { block, offset, xmin, xmax: 0, body, beyond: body.beyond })?;
    if insert.flags & insert_flag::ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

/// A row that a record adds to a page.
pub(crate) struct NewRow<'a> {
    /// The page's block.
    pub(crate) block: u32,
    /// The number of its line pointer.
    pub(crate) offset: u16,
    pub(crate) xmin: u32,
    pub(crate) xmax: u32,
    pub(crate) body: TupleBody<'a>,
    /// Everything of it from byte 23 on.
    pub(crate) beyond: &'a [u8],
}

/// Adds a row.
pub(crate) fn add_row(page: &mut Page, row: &NewRow<'_>) -> Option<()> {
    let NewRow { block, offset, xmin, xmax, body, beyond } = *row;
    let mut header: Header = [0; TUPLE_HEADER_BYTES];
    put_in(&mut header, field::XMIN, xmin.to_le_bytes());
    put_in(&mut header, field::XMAX, xmax.to_le_bytes());
    put_in(&mut header, field::CTID, ctid((block, offset)));
    put_in(&mut header, field::INFOMASK2, body.infomask2.to_le_bytes());
    put_in(&mut header, field::INFOMASK, body.infomask.to_le_bytes());
    put_in(&mut header, field::HOFF, [body.hoff]);
    page.add_parts(offset, [&header, beyond])
}

fn ctid((block, offset): (u32, u16)) -> [u8; 6] {
    let [low0, low1, high0, high1] = block.to_le_bytes();
    let [a, b] = offset.to_le_bytes();
    [high0, high1, low0, low1, a, b]
}

fn delete(redo: Redo<'_>, page: &mut Page, delete: Delete<'_>) -> Option<()> {
    let has = |flag| delete.flags & flag != 0;
    let own = (redo.block.block, delete.offset);
    let header = header_mut(page, delete.offset)?;
    mark_xmax(header, delete.infobits, 0);
    if has(delete_flag::IS_SUPER) {
        put_in(header, field::XMIN, [0; 4]);
    } else {
        put_in(header, field::XMAX, delete.xmax.to_le_bytes());
    }
    put_in(
        header,
        field::CTID,
        ctid(if has(delete_flag::IS_PARTITION_MOVE) { MOVED } else { own }),
    );
    note_prunable(page, redo.record.header.xid)?;
    if has(delete_flag::ALL_VISIBLE_CLEARED) {
        clear_all_visible(page)?;
    }
    Some(())
}

fn update(redo: Redo<'_>, page: &mut Page, update: Update<'_>) -> Option<()> {
    let same_page = redo.record.block(1).is_none();
    if redo.block.id == 1 || same_page {
        old_tuple(redo, page, &update)?;
    }
    if redo.block.id == 0 {
        new_tuple(redo, page, &update)?;
    }
    Some(())
}

fn old_tuple(redo: Redo<'_>, page: &mut Page, update: &Update<'_>) -> Option<()> {
    let hot = redo.record.info() & OPCODE_MASK == heap::HOT_UPDATE;
    let new_block = redo.record.block(0)?.block;
    let header = header_mut(page, update.old_offset)?;
    mark_xmax(header, update.old_infobits, if hot { infomask2::HOT_UPDATED } else { 0 });
    put_in(header, field::XMAX, update.old_xmax.to_le_bytes());
    put_in(header, field::CTID, ctid((new_block, update.new_offset)));
    note_prunable(page, redo.record.header.xid)?;
    if update.flags & update_flag::OLD_ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

fn new_tuple(redo: Redo<'_>, page: &mut Page, update: &Update<'_>) -> Option<()> {
    let new = NewTuple::parse(update, redo.data())?;
    let row = NewRow {
        block: redo.block.block,
        offset: update.new_offset,
        xmin: redo.record.header.xid,
        xmax: update.new_xmax,
        body: new.body,
        beyond: new.body.beyond,
    };
    if (new.prefix, new.suffix) == (0, 0) {
        add_row(page, &row)?;
    } else {
        let old = HeapTuple::parse(page.tuple(update.old_offset)?)?;
        let header = usize::from(new.body.hoff).checked_sub(TUPLE_HEADER_BYTES)?;
        let beyond = new.rebuilt_from(header, old.body.data())?;
        add_row(page, &NewRow { beyond: &beyond, ..row })?;
    }
    if update.flags & update_flag::NEW_ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

/// Locks a row; `block`: its own, where a row that is only locked leads back to itself.
pub(crate) fn lock(page: &mut Page, lock: Lock, block: Option<u32>) -> Option<()> {
    let own = block.filter(|_| lock.infobits & infobits::XMAX_LOCK_ONLY != 0);
    let header = header_mut(page, lock.offset)?;
    let keep =
        if own.is_some() { 0 } else { infomask2::HOT_UPDATED & mask_in(header, field::INFOMASK2) };
    mark_xmax(header, lock.infobits, keep);
    put_in(header, field::XMAX, lock.xmax.to_le_bytes());
    if let Some(block) = own {
        put_in(header, field::CTID, ctid((block, lock.offset)));
    }
    Some(())
}

/// A tuple's header.
type Header = [u8; TUPLE_HEADER_BYTES];

fn header_mut(page: &mut Page, offset: u16) -> Option<&mut Header> {
    page.tuple_mut(offset)?.first_chunk_mut()
}

fn put_in<const N: usize>(header: &mut Header, at: usize, bytes: [u8; N]) {
    if let Some(place) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = bytes;
    }
}

fn mask_in(header: &Header, place: usize) -> u16 {
    at(header, place).unwrap_or_default()
}

/// Sets what a record says of a row's xmax (`fix_infomask_from_infobits`); `hot` is the state of
/// `HEAP_HOT_UPDATED` after it.
fn mark_xmax(header: &mut Header, bits: u8, hot: u16) {
    let set = |bit: u8, mask: u16| if bits & bit != 0 { mask } else { 0 };
    let xmax = set(infobits::XMAX_IS_MULTI, infomask::XMAX_IS_MULTI)
        | set(infobits::XMAX_LOCK_ONLY, infomask::XMAX_LOCK_ONLY)
        | set(infobits::XMAX_EXCL_LOCK, infomask::XMAX_EXCL_LOCK)
        | set(infobits::XMAX_KEYSHR_LOCK, infomask::XMAX_KEYSHR_LOCK);
    let keys = set(infobits::KEYS_UPDATED, infomask2::KEYS_UPDATED);
    let bits = mask_in(header, field::INFOMASK)
        & !(infomask::XMAX_BITS | infomask::MOVED_OFF | infomask::MOVED_IN | infomask::COMBOCID)
        | xmax;
    let bits2 = mask_in(header, field::INFOMASK2)
        & !(infomask2::KEYS_UPDATED | infomask2::HOT_UPDATED)
        | keys
        | hot;
    put_in(header, field::INFOMASK, bits.to_le_bytes());
    put_in(header, field::INFOMASK2, bits2.to_le_bytes());
    put_in(header, field::CID, [0; 4]);
}

/// Writes into the tuple of line pointer `offset`.
pub(crate) fn put(page: &mut Page, offset: u16, from: usize, bytes: &[u8]) -> Option<()> {
    page.tuple_mut(offset)?.get_mut(from..from + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

fn set_ctid(page: &mut Page, offset: u16, to: (u32, u16)) -> Option<()> {
    put(page, offset, field::CTID, &ctid(to))
}

fn clear_all_visible(page: &mut Page) -> Option<()> {
    let flags: u16 = page.field(page_field::FLAGS)?;
    page.put_u16(page_field::FLAGS, flags & !PD_ALL_VISIBLE)
}

/// Notes that a page is all-visible.
pub(crate) fn set_all_visible(page: &mut Page) -> Option<()> {
    let flags: u16 = page.field(page_field::FLAGS)?;
    page.put_u16(page_field::FLAGS, flags | PD_ALL_VISIBLE)
}

/// `PageSetPrunable`: the oldest xid of those that may leave something to prune.
fn note_prunable(page: &mut Page, xid: u32) -> Option<()> {
    let before: u32 = page.field(page_field::PRUNE_XID)?;
    // Xids wrap around: the sign of the difference tells which one is older.
    if before == 0 || (xid.wrapping_sub(before) as i32) < 0 {
        page.put_u32(page_field::PRUNE_XID, xid)?;
    }
    Some(())
}

pub(crate) fn data_bytes(redo: Redo<'_>, after: &Page, _: Option<&Page>) -> Option<DataBytes> {
    if redo.block.id != 0 {
        return DataBytes::exact(0);
    }
    let main = redo.record.main_data();
    match redo.record.info() & OPCODE_MASK {
        heap::INSERT => {
            let tuple = after.tuple(Insert::parse(main)?.offset)?;
            DataBytes::exact(ROW_HEADER_BYTES + tuple.len().checked_sub(TUPLE_HEADER_BYTES)?)
        }
        heap::UPDATE | heap::HOT_UPDATE => updated_bytes(redo, after, Update::parse(main)?),
        INPLACE => {
            let inplace = Inplace::parse(main, redo.record.version)?;
            let tuple = HeapTuple::parse(after.tuple(inplace.offset)?)?;
            DataBytes::exact(tuple.body.data().len())
        }
        _ => DataBytes::exact(0),
    }
}

/// The new row of an update leaves out what it has in common with the old one, if that is on the
/// same page, needs no image, and is not wanted whole by logical decoding (`log_heap_update`).
fn updated_bytes(redo: Redo<'_>, after: &Page, update: Update<'_>) -> Option<DataBytes> {
    let is_logical = update.flags & update_flag::CONTAINS_NEW_TUPLE != 0;
    row_bytes(redo, after, update, is_logical)
}

/// The same at the other wal_level.
pub(crate) fn data_at_other_level(redo: Redo<'_>, after: &Page) -> Option<DataBytes> {
    let opcode = redo.record.info() & OPCODE_MASK;
    let update = Update::parse(redo.record.main_data())
        .filter(|_| [heap::UPDATE, heap::HOT_UPDATE].contains(&opcode))?;
    let is_logical = update.flags & update_flag::CONTAINS_NEW_TUPLE != 0;
    let is_logical_there = !is_logical && is_decoded(redo.block.relation);
    row_bytes(redo, after, update, is_logical_there)
}

fn row_bytes(
    redo: Redo<'_>,
    after: &Page,
    update: Update<'_>,
    is_logical: bool,
) -> Option<DataBytes> {
    let tuple = after.tuple(update.new_offset)?;
    let whole = ROW_HEADER_BYTES + tuple.len().checked_sub(TUPLE_HEADER_BYTES)?;
    if is_logical || redo.record.block(1).is_some() {
        return DataBytes::exact(whole);
    }
    let new = HeapTuple::parse(tuple)?;
    let old = HeapTuple::parse(after.tuple(update.old_offset)?)?;
    let (prefix, suffix) = common(old.body.data(), new.body.data());
    let lengths = [prefix, suffix].iter().filter(|&&len| len > 0).count() * 2;
    DataBytes::exact(whole + lengths - prefix - suffix)
}

/// Fewer bytes in common are not worth the two bytes that say how many.
const SHORTEST_IN_COMMON: usize = 3;

fn common(old: &[u8], new: &[u8]) -> (usize, usize) {
    let worth = |len: usize| if len < SHORTEST_IN_COMMON { 0 } else { len };
    let prefix = worth(old.iter().zip(new).take_while(|(a, b)| a == b).count());
    let rest = old.len().min(new.len()) - prefix;
    let backwards = old.iter().rev().zip(new.iter().rev()).take(rest);
    (prefix, worth(backwards.take_while(|(a, b)| a == b).count()))
}

/// Whether rows of a relation are decoded: those of catalogs are not.
pub(crate) fn is_decoded(relation: RelFileLocator) -> bool {
    relation.relfilenode >= FIRST_NORMAL_OID
}

pub(crate) fn inserted_rows(record: &WholeRecord<'_>) -> u16 {
    u16::from(record.info() & OPCODE_MASK == heap::INSERT)
}

/// An update that moves the row looks at the page that it leaves.
pub(crate) fn looks_at(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    match record.info() & OPCODE_MASK {
        heap::UPDATE | heap::HOT_UPDATE => block.id == 1 || record.block(1).is_none(),
        heap::DELETE | heap::LOCK => true,
        _ => false,
    }
}

pub(crate) fn keeps_data(record: &WholeRecord<'_>) -> bool {
    let main = record.main_data();
    match record.info() & OPCODE_MASK {
        heap::INSERT => Insert::parse(main)
            .is_some_and(|insert| insert.flags & insert_flag::CONTAINS_NEW_TUPLE != 0),
        heap::UPDATE | heap::HOT_UPDATE => Update::parse(main)
            .is_some_and(|update| update.flags & update_flag::CONTAINS_NEW_TUPLE != 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_rows_have_in_common() {
        assert_eq!(common(b"abcdef", b"abcdef"), (6, 0));
        assert_eq!(common(b"abcXdef", b"abcYdef"), (3, 3));
        assert_eq!(common(b"abXdef", b"abYdef"), (0, 3));
        assert_eq!(common(b"abcabc", b"abcabcabc"), (6, 0));
        assert_eq!(common(b"xxabc", b"abc"), (0, 3));
        assert_eq!(common(b"", b"abc"), (0, 0));
    }
}
