//! Tables: insertions, updates, deletions, locks (`heap_xlog_*` in
//! `src/backend/access/heap/heapam.c`).

use super::table_page::{NewRow, TablePage, ctid, put_in};
use super::{Before, DataBytes, Redo};
use crate::light_page::rows::Header;
use crate::page::Page;
use crate::page_view::PageView;
use crate::whole_record::WholeRecord;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::cursor::at;
use walstat_format::data_page::PD_ALL_VISIBLE;
use walstat_format::data_page::heap_tuple::{
    HeapTuple, TUPLE_HEADER_BYTES, TupleBody, field, infomask, infomask2,
};
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
#[inline]
pub(crate) fn change(redo: Redo<'_>, page: &mut impl TablePage) -> Option<()> {
    let main = redo.record.main_data();
    match redo.record.info() & OPCODE_MASK {
        heap::INSERT => insert(redo, page, Insert::parse(main)?),
        heap::DELETE => delete(redo, page, Delete::parse(main)?),
        heap::UPDATE | heap::HOT_UPDATE => update(redo, page, Update::parse(main)?),
        heap::LOCK => lock(page, Lock::parse(main)?, Some(redo.block.block)),
        heap::CONFIRM => {
            let offset = at(main, 0)?;
            let own = ctid((redo.block.block, offset));
            page.change_row(offset, |header| put_in(header, field::CTID, own))
        }
        INPLACE => page.overwrite(Inplace::parse(main, redo.record.version)?.offset, redo.data()),
        _ => None,
    }
}

fn insert(redo: Redo<'_>, page: &mut impl TablePage, insert: Insert) -> Option<()> {
    let body = TupleBody::of_record(redo.data())?;
    let (block, offset) = (redo.block.block, insert.offset);
    page.add_row(&NewRow { block, offset, xmin: redo.record.header.xid, xmax: 0, body })?;
    if insert.flags & insert_flag::ALL_VISIBLE_CLEARED != 0 {
        page.change_flags(PD_ALL_VISIBLE, 0)?;
    }
    Some(())
}

fn delete(redo: Redo<'_>, page: &mut impl TablePage, delete: Delete<'_>) -> Option<()> {
    let has = |flag| delete.flags & flag != 0;
    let own = (redo.block.block, delete.offset);
    page.change_row(delete.offset, |header| {
        mark_xmax(header, delete.infobits, 0);
        if has(delete_flag::IS_SUPER) {
            put_in(header, field::XMIN, [0; 4]);
        } else {
            put_in(header, field::XMAX, delete.xmax.to_le_bytes());
        }
        let leads = if has(delete_flag::IS_PARTITION_MOVE) { MOVED } else { own };
        put_in(header, field::CTID, ctid(leads));
    })?;
    page.note_prunable(redo.record.header.xid)?;
    if has(delete_flag::ALL_VISIBLE_CLEARED) {
        page.change_flags(PD_ALL_VISIBLE, 0)?;
    }
    Some(())
}

fn update(redo: Redo<'_>, page: &mut impl TablePage, update: Update<'_>) -> Option<()> {
    let same_page = redo.record.block(1).is_none();
    if redo.block.id == 1 || same_page {
        old_tuple(redo, page, &update)?;
    }
    if redo.block.id == 0 {
        new_tuple(redo, page, &update)?;
    }
    Some(())
}

fn old_tuple(redo: Redo<'_>, page: &mut impl TablePage, update: &Update<'_>) -> Option<()> {
    let hot = redo.record.info() & OPCODE_MASK == heap::HOT_UPDATE;
    let new_block = redo.record.block(0)?.block;
    page.change_row(update.old_offset, |header| {
        mark_xmax(header, update.old_infobits, if hot { infomask2::HOT_UPDATED } else { 0 });
        put_in(header, field::XMAX, update.old_xmax.to_le_bytes());
        put_in(header, field::CTID, ctid((new_block, update.new_offset)));
    })?;
    page.note_prunable(redo.record.header.xid)?;
    if update.flags & update_flag::OLD_ALL_VISIBLE_CLEARED != 0 {
        page.change_flags(PD_ALL_VISIBLE, 0)?;
    }
    Some(())
}

fn new_tuple(redo: Redo<'_>, page: &mut impl TablePage, update: &Update<'_>) -> Option<()> {
    let new = NewTuple::parse(update, redo.data())?;
    let row = NewRow {
        block: redo.block.block,
        offset: update.new_offset,
        xmin: redo.record.header.xid,
        xmax: update.new_xmax,
        body: new.body,
    };
    if (new.prefix, new.suffix) == (0, 0) {
        page.add_row(&row)?;
    } else {
        page.add_update(&row, &new, update.old_offset)?;
    }
    if update.flags & update_flag::NEW_ALL_VISIBLE_CLEARED != 0 {
        page.change_flags(PD_ALL_VISIBLE, 0)?;
    }
    Some(())
}

/// Locks a row; `block`: its own, where a row that is only locked leads back to itself.
pub(crate) fn lock(page: &mut impl TablePage, lock: Lock, block: Option<u32>) -> Option<()> {
    let own = block.filter(|_| lock.infobits & infobits::XMAX_LOCK_ONLY != 0);
    page.change_row(lock.offset, |header| {
        let hot_bit = infomask2::HOT_UPDATED & mask_in(header, field::INFOMASK2);
        mark_xmax(header, lock.infobits, if own.is_some() { 0 } else { hot_bit });
        put_in(header, field::XMAX, lock.xmax.to_le_bytes());
        if let Some(block) = own {
            put_in(header, field::CTID, ctid((block, lock.offset)));
        }
    })
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

pub(crate) fn data_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
    _: Option<Before<'_>>,
) -> Option<DataBytes> {
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
fn updated_bytes(redo: Redo<'_>, after: &PageView<'_>, update: Update<'_>) -> Option<DataBytes> {
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
    row_bytes(redo, &after.view(), update, is_logical_there)
}

fn row_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
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
