//! Tables: insertions, updates, deletions, locks (`heap_xlog_*` in
//! `src/backend/access/heap/heapam.c`).

use super::{Change, DataBytes};
use crate::analyse::whatif::level;
use crate::analyse::whatif::page::Page;
use crate::analyse::whatif::whole::Whole;
use crate::wal::block::BlockRef;
use crate::wal::cursor::at;
use crate::wal::data_page::heap_tuple::{HeapTuple, TUPLE_HEADER_BYTES, TupleBody};
use crate::wal::payload::heap::{
    self, Delete, INPLACE, Inplace, Insert, Lock, NewTuple, OPCODE_MASK, Update, delete_flag,
    infobits, insert_flag, update_flag,
};

/// `SizeOfHeapHeader`: what records have in place of a tuple's header.
pub const RECORD_HEADER_BYTES: usize = 5;

/// Places in a tuple's header.
mod place {
    pub const XMIN: usize = 0;
    pub const XMAX: usize = 4;
    pub const COMMAND: usize = 8;
    pub const CTID: usize = 12;
    pub const INFOMASK2: usize = 18;
    pub const INFOMASK: usize = 20;
    pub const HOFF: usize = 22;
}

/// `HEAP_XMAX_BITS | HEAP_MOVED`.
const XMAX_BITS: u16 = 0xDCD0;
const XMAX_LOCK_ONLY: u16 = 0x0080;
const COMBO_COMMAND: u16 = 0x0020;
const KEYS_UPDATED: u16 = 0x2000;
const HOT_UPDATED: u16 = 0x4000;

/// Bits of `pd_flags` and the place of it and of `pd_prune_xid`.
const PAGE_FLAGS_AT: usize = 10;
const PRUNE_XID_AT: usize = 20;
pub const ALL_VISIBLE: u16 = 0x0004;

/// Offset number of a row that moved to another partition (`MovedPartitionsOffsetNumber`).
const MOVED: (u32, u16) = (u32::MAX, 0xFFFD);

pub fn apply(change: Change<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = change.page(before, 0)?;
    let main = change.record.main_data();
    match change.record.info() & OPCODE_MASK {
        heap::INSERT => insert(change, &mut page, Insert::parse(main)?)?,
        heap::DELETE => delete(change, &mut page, Delete::parse(main)?)?,
        heap::UPDATE | heap::HOT_UPDATE => update(change, &mut page, Update::parse(main)?)?,
        heap::LOCK => lock(&mut page, Lock::parse(main)?, Some(change.block.block))?,
        heap::CONFIRM => {
            let offset = at(main, 0)?;
            set_ctid(&mut page, offset, (change.block.block, offset))?;
        }
        INPLACE => {
            let inplace = Inplace::parse(main, change.record.version)?;
            let tuple = page.tuple_mut(inplace.offset)?;
            let columns = usize::from(*tuple.get(22)?);
            tuple
                .get_mut(columns..)?
                .get_mut(..change.data().len())?
                .copy_from_slice(change.data());
        }
        _ => return None,
    }
    Some(page)
}

fn insert(change: Change<'_>, page: &mut Page, insert: Insert) -> Option<()> {
    let body = TupleBody::of_record(change.data())?;
    let place = (change.block.block, insert.offset);
    add_row(page, insert.offset, (body, body.beyond), (change.record.header.xid, 0), place)?;
    if insert.flags & insert_flag::ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

/// Adds a row under a number. `beyond`: everything of it from byte 23 on.
pub fn add_row(
    page: &mut Page,
    number: u16,
    (body, beyond): (TupleBody<'_>, &[u8]),
    (xmin, xmax): (u32, u32),
    place: (u32, u16),
) -> Option<()> {
    let mut header: Header = [0; TUPLE_HEADER_BYTES];
    put_in(&mut header, place::XMIN, xmin.to_le_bytes());
    put_in(&mut header, place::XMAX, xmax.to_le_bytes());
    put_in(&mut header, place::CTID, ctid(place));
    put_in(&mut header, place::INFOMASK2, body.infomask2.to_le_bytes());
    put_in(&mut header, place::INFOMASK, body.infomask.to_le_bytes());
    put_in(&mut header, place::HOFF, [body.hoff]);
    page.add_parts(number, [&header, beyond])
}

fn ctid((block, offset): (u32, u16)) -> [u8; 6] {
    let [low0, low1, high0, high1] = block.to_le_bytes();
    let [a, b] = offset.to_le_bytes();
    [high0, high1, low0, low1, a, b]
}

fn delete(change: Change<'_>, page: &mut Page, delete: Delete<'_>) -> Option<()> {
    let has = |flag| delete.flags & flag != 0;
    let own = (change.block.block, delete.offset);
    let header = header_mut(page, delete.offset)?;
    mark_xmax(header, delete.infobits, 0);
    if has(delete_flag::IS_SUPER) {
        put_in(header, place::XMIN, [0; 4]);
    } else {
        put_in(header, place::XMAX, delete.xmax.to_le_bytes());
    }
    put_in(
        header,
        place::CTID,
        ctid(if has(delete_flag::IS_PARTITION_MOVE) { MOVED } else { own }),
    );
    note_prunable(page, change.record.header.xid)?;
    if has(delete_flag::ALL_VISIBLE_CLEARED) {
        clear_all_visible(page)?;
    }
    Some(())
}

fn update(change: Change<'_>, page: &mut Page, update: Update<'_>) -> Option<()> {
    let same_page = change.record.block(1).is_none();
    if change.block.id == 1 || same_page {
        old_tuple(change, page, &update)?;
    }
    if change.block.id == 0 {
        new_tuple(change, page, &update)?;
    }
    Some(())
}

fn old_tuple(change: Change<'_>, page: &mut Page, update: &Update<'_>) -> Option<()> {
    let hot = change.record.info() & OPCODE_MASK == heap::HOT_UPDATE;
    let new_block = change.record.block(0)?.block;
    let header = header_mut(page, update.old_offset)?;
    mark_xmax(header, update.old_infobits, if hot { HOT_UPDATED } else { 0 });
    put_in(header, place::XMAX, update.old_xmax.to_le_bytes());
    put_in(header, place::CTID, ctid((new_block, update.new_offset)));
    note_prunable(page, change.record.header.xid)?;
    if update.flags & update_flag::OLD_ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

fn new_tuple(change: Change<'_>, page: &mut Page, update: &Update<'_>) -> Option<()> {
    let new = NewTuple::parse(update, change.data())?;
    let xids = (change.record.header.xid, update.new_xmax);
    let place = (change.block.block, update.new_offset);
    if (new.prefix, new.suffix) == (0, 0) {
        add_row(page, update.new_offset, (new.body, new.body.beyond), xids, place)?;
    } else {
        let old = HeapTuple::parse(page.tuple(update.old_offset)?)?;
        let header = usize::from(new.body.hoff).checked_sub(TUPLE_HEADER_BYTES)?;
        let beyond = new.beyond(header, old.body.data())?;
        add_row(page, update.new_offset, (new.body, &beyond), xids, place)?;
    }
    if update.flags & update_flag::NEW_ALL_VISIBLE_CLEARED != 0 {
        clear_all_visible(page)?;
    }
    Some(())
}

/// Locks a row; `block`: its own, where a row that is only locked leads back to itself.
pub fn lock(page: &mut Page, lock: Lock, block: Option<u32>) -> Option<()> {
    let own = block.filter(|_| lock.infobits & infobits::XMAX_LOCK_ONLY != 0);
    let header = header_mut(page, lock.offset)?;
    let keep = if own.is_some() { 0 } else { HOT_UPDATED & mask_in(header, place::INFOMASK2) };
    mark_xmax(header, lock.infobits, keep);
    put_in(header, place::XMAX, lock.xmax.to_le_bytes());
    if let Some(block) = own {
        put_in(header, place::CTID, ctid((block, lock.offset)));
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
    let xmax = set(infobits::XMAX_IS_MULTI, 0x1000)
        | set(infobits::XMAX_LOCK_ONLY, XMAX_LOCK_ONLY)
        | set(infobits::XMAX_EXCL_LOCK, 0x0040)
        | set(infobits::XMAX_KEYSHR_LOCK, 0x0010);
    let keys = set(infobits::KEYS_UPDATED, KEYS_UPDATED);
    let infomask = mask_in(header, place::INFOMASK) & !(XMAX_BITS | COMBO_COMMAND) | xmax;
    let infomask2 = mask_in(header, place::INFOMASK2) & !(KEYS_UPDATED | HOT_UPDATED) | keys | hot;
    put_in(header, place::INFOMASK, infomask.to_le_bytes());
    put_in(header, place::INFOMASK2, infomask2.to_le_bytes());
    put_in(header, place::COMMAND, [0; 4]);
}

/// Writes into the tuple of line pointer `offset`.
pub fn put(page: &mut Page, offset: u16, from: usize, bytes: &[u8]) -> Option<()> {
    page.tuple_mut(offset)?.get_mut(from..from + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

fn set_ctid(page: &mut Page, offset: u16, to: (u32, u16)) -> Option<()> {
    put(page, offset, place::CTID, &ctid(to))
}

fn clear_all_visible(page: &mut Page) -> Option<()> {
    let flags: u16 = page.field(PAGE_FLAGS_AT)?;
    page.put_u16(PAGE_FLAGS_AT, flags & !ALL_VISIBLE)
}

/// Notes that a page is all-visible.
pub fn set_all_visible(page: &mut Page) -> Option<()> {
    let flags: u16 = page.field(PAGE_FLAGS_AT)?;
    page.put_u16(PAGE_FLAGS_AT, flags | ALL_VISIBLE)
}

/// `PageSetPrunable`: the oldest xid of those that may leave something to prune.
fn note_prunable(page: &mut Page, xid: u32) -> Option<()> {
    let before: u32 = page.field(PRUNE_XID_AT)?;
    // Xids wrap around: the sign of the difference tells which one is older.
    if before == 0 || (xid.wrapping_sub(before) as i32) < 0 {
        page.put_u32(PRUNE_XID_AT, xid)?;
    }
    Some(())
}

pub fn data_bytes(change: Change<'_>, after: &Page) -> Option<DataBytes> {
    if change.block.id != 0 {
        return DataBytes::exact(0);
    }
    let main = change.record.main_data();
    match change.record.info() & OPCODE_MASK {
        heap::INSERT => {
            let tuple = after.tuple(Insert::parse(main)?.offset)?;
            DataBytes::exact(RECORD_HEADER_BYTES + tuple.len().checked_sub(TUPLE_HEADER_BYTES)?)
        }
        heap::UPDATE | heap::HOT_UPDATE => updated_bytes(change, after, Update::parse(main)?),
        INPLACE => {
            let inplace = Inplace::parse(main, change.record.version)?;
            let tuple = HeapTuple::parse(after.tuple(inplace.offset)?)?;
            DataBytes::exact(tuple.body.data().len())
        }
        _ => DataBytes::exact(0),
    }
}

/// The new row of an update leaves out what it has in common with the old one, if that is on the
/// same page, needs no image, and is not wanted whole by logical decoding (`log_heap_update`).
fn updated_bytes(change: Change<'_>, after: &Page, update: Update<'_>) -> Option<DataBytes> {
    let is_logical = update.flags & update_flag::CONTAINS_NEW_TUPLE != 0;
    row_bytes(change, after, update, is_logical)
}

/// The same at the other wal_level.
pub fn updated_elsewhere(change: Change<'_>, after: &Page) -> Option<DataBytes> {
    let opcode = change.record.info() & OPCODE_MASK;
    let update = Update::parse(change.record.main_data())
        .filter(|_| [heap::UPDATE, heap::HOT_UPDATE].contains(&opcode))?;
    let is_logical = update.flags & update_flag::CONTAINS_NEW_TUPLE != 0;
    let is_elsewhere = !is_logical && level::is_decoded(change.block.relation);
    row_bytes(change, after, update, is_elsewhere)
}

fn row_bytes(
    change: Change<'_>,
    after: &Page,
    update: Update<'_>,
    is_logical: bool,
) -> Option<DataBytes> {
    let tuple = after.tuple(update.new_offset)?;
    let whole = RECORD_HEADER_BYTES + tuple.len().checked_sub(TUPLE_HEADER_BYTES)?;
    if is_logical || change.record.block(1).is_some() {
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

pub fn inserted_rows(record: &Whole<'_>) -> u16 {
    u16::from(record.info() & OPCODE_MASK == heap::INSERT)
}

/// An update that moves the row looks at the page that it leaves.
pub fn looks_at(record: &Whole<'_>, block: &BlockRef) -> bool {
    match record.info() & OPCODE_MASK {
        heap::UPDATE | heap::HOT_UPDATE => block.id == 1 || record.block(1).is_none(),
        heap::DELETE | heap::LOCK => true,
        _ => false,
    }
}

pub fn keeps_data(record: &Whole<'_>) -> bool {
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
