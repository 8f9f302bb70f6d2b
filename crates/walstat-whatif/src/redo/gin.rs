//! GIN indexes (`ginRedo*` in `src/backend/access/gin/ginxlog.c`): the tree of keys, the trees of
//! rows, the list of pending entries. Leaves of rows are rewritten by [`leaf`].

mod leaf;

use super::index_tuple::size;
use super::{DataBytes, Redo};
use crate::page::Page;
use walstat_format::cursor::at;
use walstat_format::data_page::gin_page::{POSTING_ITEM_BYTES, SPECIAL_BYTES, field, flag};
use walstat_format::payload::gin::{DeletePage, Insert, UpdateMeta, opcode};

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let record = redo.record;
    let main = record.main_data();
    match (record.info(), redo.block.id) {
        (opcode::CREATE_PTREE, 0) => {
            let mut page = new_page(redo, flag::DATA | flag::LEAF | flag::COMPRESSED)?;
            let bytes: u32 = at(main, 0)?;
            leaf::set(&mut page, main.get(4..)?.get(..bytes as usize)?)?;
            Some(page)
        }
        (opcode::INSERT_LISTPAGE, 0) => {
            let mut page = new_page(redo, flag::LIST)?;
            append_all(&mut page, redo.data())?;
            Some(page)
        }
        (opcode::DELETE_LISTPAGE, 1..) => {
            // Recovery makes the page anew; the primary leaves its content.
            let mut page = before?;
            page.put_u16(page.special() + field::FLAGS, flag::DELETED)?;
            Some(page)
        }
        (opcode::CREATE_INDEX, 1) => new_page(redo, flag::LEAF),
        // The metapage is always written as a whole.
        (_, 0) if redo.block.will_init => None,
        _ => {
            let mut page = before?;
            change_page(redo, &mut page)?;
            Some(page)
        }
    }
}

fn new_page(redo: Redo<'_>, flags: u16) -> Option<Page> {
    let mut page = Page::new(redo.page_bytes, SPECIAL_BYTES)?;
    page.put_u32(page.special() + field::RIGHT, u32::MAX)?;
    page.put_u16(page.special() + field::FLAGS, flags)?;
    Some(page)
}

fn change_page(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let record = redo.record;
    let main = record.main_data();
    match (record.info(), redo.block.id) {
        (opcode::INSERT, 0) => insert(redo, page, Insert::parse(main)?),
        (opcode::INSERT, 1) | (opcode::SPLIT, 3) => {
            let flags: u16 = page.field(page.special() + field::FLAGS)?;
            page.put_u16(page.special() + field::FLAGS, flags & !flag::INCOMPLETE_SPLIT)
        }
        (opcode::VACUUM_DATA_LEAF_PAGE, 0) => leaf::recompress(page, redo.data()),
        (opcode::DELETE_PAGE, 0) => {
            let flags: u16 = page.field(page.special() + field::FLAGS)?;
            page.put_u16(page.special() + field::FLAGS, flags | flag::DELETED)
        }
        (opcode::DELETE_PAGE, 1) => remove_item(page, DeletePage::parse(main)?.parent_offset),
        (opcode::DELETE_PAGE, 2) => {
            page.put_u32(page.special() + field::RIGHT, DeletePage::parse(main)?.right)
        }
        (opcode::UPDATE_META_PAGE, 1) => match UpdateMeta::parse(main)?.tuples {
            0 => Some(()),
            _ => append_all(page, redo.data()),
        },
        _ => None,
    }
}

fn append_all(page: &mut Page, data: &[u8]) -> Option<()> {
    let mut rest = data;
    while !rest.is_empty() {
        let bytes = size(rest).filter(|&bytes| bytes > 0)?;
        let (entry, after) = rest.split_at_checked(bytes)?;
        page.append(entry)?;
        rest = after;
    }
    Some(())
}

fn insert(redo: Redo<'_>, page: &mut Page, insert: Insert) -> Option<()> {
    let data = redo.data();
    match (insert.is_data, insert.is_leaf) {
        (true, true) => leaf::recompress(page, data),
        (true, false) => add_item(page, at(data, 0)?, data.get(2..)?),
        (false, _) => {
            let number: u16 = at(data, 0)?;
            if at::<bool>(data, 2)? {
                page.remove(number)?;
            }
            page.insert(number, data.get(4..)?)
        }
    }
}

/// Where entry `number` of an inner page of a tree of rows lies.
fn item_at(number: u16) -> Option<usize> {
    let index = usize::from(number).checked_sub(1)?;
    Some(leaf::DATA_AT + index * POSTING_ITEM_BYTES)
}

/// Where so many of them end.
fn items_end(count: u16) -> usize {
    leaf::DATA_AT + usize::from(count) * POSTING_ITEM_BYTES
}

fn add_item(page: &mut Page, number: u16, item: &[u8]) -> Option<()> {
    let count: u16 = page.field(page.special() + field::COUNT)?;
    let from = item_at(number)?;
    let moved = page.bytes().get(from..items_end(count))?.to_vec();
    page.put(from, item.get(..POSTING_ITEM_BYTES)?)?;
    page.put(from + POSTING_ITEM_BYTES, &moved)?;
    set_count(page, count.checked_add(1)?)
}

fn remove_item(page: &mut Page, number: u16) -> Option<()> {
    let count: u16 = page.field(page.special() + field::COUNT)?;
    let from = item_at(number)?;
    let moved = page.bytes().get(from + POSTING_ITEM_BYTES..items_end(count))?.to_vec();
    page.put(from, &moved)?;
    set_count(page, count.checked_sub(1)?)
}

fn set_count(page: &mut Page, count: u16) -> Option<()> {
    page.put_u16(page.special() + field::COUNT, count)?;
    page.set_lower(u16::try_from(items_end(count)).ok()?)
}

/// Offset and a flag before an entry of the tree of keys.
const ENTRY_HEADER_BYTES: usize = 4;

pub(crate) fn data_bytes(redo: Redo<'_>, after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    let main = redo.record.main_data();
    match (redo.record.info(), redo.block.id) {
        (opcode::INSERT, 0) => {
            let insert = Insert::parse(main)?;
            match (insert.is_data, insert.is_leaf) {
                (true, true) => leaf::data_bytes(after, before),
                (true, false) => DataBytes::exact(2 + POSTING_ITEM_BYTES),
                (false, _) => entry_bytes(after, before),
            }
        }
        (opcode::VACUUM_DATA_LEAF_PAGE, 0) => leaf::data_bytes(after, before),
        (opcode::UPDATE_META_PAGE, 1) => {
            let tuples = UpdateMeta::parse(main)?.tuples;
            let first = after.items().checked_sub(u16::try_from(tuples).ok()?)? + 1;
            let mut bytes = 0;
            for number in first..=after.items() {
                bytes += after.tuple(number)?.len();
            }
            DataBytes::exact(bytes)
        }
        _ => DataBytes::exact(0),
    }
}

/// The entry that is new, or another one than before.
fn entry_bytes(after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    let is_new = |before: &Page, number: u16| before.tuple(number) != after.tuple(number);
    let number = before.and_then(|before| (1..=after.items()).find(|&n| is_new(before, n)));
    match number {
        Some(number) => DataBytes::exact(ENTRY_HEADER_BYTES + after.tuple(number)?.len()),
        None => {
            let stored = after.special().checked_sub(after.upper())?;
            let each = stored / usize::from(after.items()).max(1);
            DataBytes::estimated(ENTRY_HEADER_BYTES + each)
        }
    }
}
