//! Hash indexes (`hash_xlog_*` in `src/backend/access/hash/hash_xlog.c`; logged since 10).

use super::index_tuple::split_first;
use super::{DataBytes, Redo};
use crate::page::Page;
use walstat_format::cursor::{Cursor, at};
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::data_page::hash_page::{PAGE_ID, SPECIAL_BYTES, field, flag};
use walstat_format::payload::hash;
use walstat_format::payload::hash::opcode;

const NONE: u32 = u32::MAX;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let record = redo.record;
    let main = record.main_data();
    match (record.info(), redo.block.id) {
        (opcode::INIT_META_PAGE, 0) => meta_page(redo),
        (opcode::INIT_BITMAP_PAGE, 0) => bitmap(redo, at(main, 0)?),
        (opcode::ADD_OVFL_PAGE, 3) => bitmap(redo, at(main, 0)?),
        (opcode::ADD_OVFL_PAGE, 0) => {
            let previous = record.block(1)?.block;
            new_page(redo, previous, at(redo.data(), 0)?, flag::OVERFLOW)
        }
        (opcode::SPLIT_ALLOCATE_PAGE, 1) => {
            let bucket: u32 = at(main, 0)?;
            new_page(redo, bucket, bucket, at(main, 6)?)
        }
        (opcode::SQUEEZE_PAGE, 2) => new_page(redo, NONE, NONE, 0),
        _ => {
            let mut page = before?;
            change_page(redo, &mut page)?;
            Some(page)
        }
    }
}

fn change_page(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let record = redo.record;
    let (main, data) = (record.main_data(), redo.data());
    let set = |page: &mut Page, place: usize, to: u32| page.put_u32(page.special() + place, to);
    match (record.info(), redo.block.id) {
        (opcode::INSERT, 0) => page.insert(at(main, 0)?, data),
        (opcode::ADD_OVFL_PAGE, 1) => set(page, field::NEXT, record.block(0)?.block),
        (opcode::SPLIT_ALLOCATE_PAGE, 0) => {
            set(page, field::PREVIOUS, at(main, 0)?)?;
            page.put_u16(page.special() + field::FLAGS, at(main, 4)?)
        }
        (opcode::SPLIT_COMPLETE, id @ 0..=1) => {
            page.put_u16(page.special() + field::FLAGS, at(main, 2 * usize::from(id))?)
        }
        (opcode::MOVE_PAGE_CONTENTS, 1) => add_moved(page, data, at(main, 0)?),
        (opcode::SQUEEZE_PAGE, 1) => {
            add_moved(page, data, at(main, 8)?)?;
            if at::<bool>(main, 11)? { set(page, field::NEXT, at(main, 4)?) } else { Some(()) }
        }
        (opcode::MOVE_PAGE_CONTENTS, 2) | (opcode::DELETE, 1) => {
            let numbers: Vec<u16> = walstat_format::cursor::List::over(data).iter().collect();
            page.remove_all(&numbers, redo.packing())
        }
        (opcode::VACUUM_ONE_PAGE, 0) => {
            let numbers: Vec<u16> = hash::vacuumed(main, record.version)?.iter().collect();
            page.remove_all(&numbers, redo.packing())
        }
        (opcode::SQUEEZE_PAGE, 3) => set(page, field::NEXT, at(main, 4)?),
        (opcode::SQUEEZE_PAGE, 4) => set(page, field::PREVIOUS, at(main, 0)?),
        // Numbers in the metapage and bits of a bitmap: nothing that has a length. And the bucket
        // that is only locked.
        _ => Some(()),
    }
}

/// Entries that come over from another page: their numbers, then the entries.
fn add_moved(page: &mut Page, data: &[u8], count: u16) -> Option<()> {
    let mut cursor = Cursor::new(data);
    let numbers = cursor.list::<u16>(u32::from(count))?;
    let mut rest = cursor.rest();
    for number in numbers.iter() {
        let (entry, after) = split_first(rest)?;
        page.insert(number, entry)?;
        rest = after;
    }
    Some(())
}

fn new_page(redo: Redo<'_>, previous: u32, bucket: u32, flags: u16) -> Option<Page> {
    let mut page = Page::new(redo.page_bytes, SPECIAL_BYTES)?;
    let special = page.special();
    page.put_u32(special + field::PREVIOUS, previous)?;
    page.put_u32(special + field::NEXT, NONE)?;
    page.put_u32(special + field::BUCKET, bucket)?;
    page.put_u16(special + field::FLAGS, flags)?;
    page.put_u16(special + field::PAGE_ID, PAGE_ID)?;
    Some(page)
}

/// All bits set: every page that the bitmap stands for is in use.
fn bitmap(redo: Redo<'_>, bytes: u16) -> Option<Page> {
    let mut page = new_page(redo, NONE, NONE, flag::BITMAP)?;
    page.bytes_mut(PAGE_HEADER_BYTES, bytes.into())?.fill(0xFF);
    page.set_lower(PAGE_HEADER_BYTES as u16 + bytes)?;
    Some(page)
}

fn meta_page(redo: Redo<'_>) -> Option<Page> {
    let mut page = new_page(redo, NONE, NONE, flag::META)?;
    let bytes = hash::meta_bytes(redo.page_bytes, redo.record.version);
    page.set_lower(u16::try_from(PAGE_HEADER_BYTES + bytes).ok()?)?;
    Some(page)
}

pub(crate) fn data_bytes(redo: Redo<'_>, after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    let record = redo.record;
    let main = record.main_data();
    match (record.info(), redo.block.id) {
        (opcode::INSERT, 0) => DataBytes::exact(after.tuple(at(main, 0)?)?.len()),
        (opcode::ADD_OVFL_PAGE, 2 | 4) | (opcode::SQUEEZE_PAGE, 5 | 6) => DataBytes::exact(4),
        (opcode::SPLIT_ALLOCATE_PAGE, 2) => {
            // Masks and the number of overflow pages, 8 bytes each, if they redo.
            let flags: u8 = at(main, 8)?;
            DataBytes::exact(8 * (flags & 3).count_ones() as usize)
        }
        (opcode::MOVE_PAGE_CONTENTS, 1) => moved_bytes(after, before, at(main, 0)?),
        (opcode::SQUEEZE_PAGE, 1) => moved_bytes(after, before, at(main, 8)?),
        (opcode::MOVE_PAGE_CONTENTS, 2) => DataBytes::exact(2 * usize::from(at::<u16>(main, 0)?)),
        (opcode::DELETE, 1) => match before {
            Some(before) => {
                DataBytes::exact(2 * usize::from(before.items().checked_sub(after.items())?))
            }
            None => DataBytes::estimated(2),
        },
        _ => DataBytes::exact(0),
    }
}

fn moved_bytes(after: &Page, before: Option<&Page>, count: u16) -> Option<DataBytes> {
    let numbers = 2 * usize::from(count);
    match before {
        _ if count == 0 => DataBytes::exact(0),
        Some(before) => DataBytes::exact(numbers + before.upper().checked_sub(after.upper())?),
        None => {
            let stored = after.special().checked_sub(after.upper())?;
            let each = stored / usize::from(after.items()).max(1);
            DataBytes::estimated(numbers + each * usize::from(count))
        }
    }
}
