//! GiST indexes (`gistRedo*` in `src/backend/access/gist/gistxlog.c`).

use super::index_tuple::size;
use super::{DataBytes, Redo};
use crate::page::Page;
use walstat_format::cursor::{Cursor, at};
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::data_page::gist_page::{PAGE_ID, SPECIAL_BYTES, field, flag};
use walstat_format::payload::gist;
use walstat_format::payload::gist::opcode;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let record = redo.record;
    let main = record.main_data();
    if record.info() == opcode::PAGE_SPLIT && redo.block.id > 0 {
        return split_page(redo);
    }
    let mut page = redo.page(before, SPECIAL_BYTES)?;
    match (record.info(), redo.block.id) {
        (opcode::CREATE_INDEX, 0) => {}
        (opcode::PAGE_UPDATE, 0) => update(redo, &mut page)?,
        (opcode::PAGE_UPDATE, 1) | (opcode::PAGE_SPLIT, 0) => {
            let flags: u16 = page.field(page.special() + field::FLAGS)?;
            page.put_u16(page.special() + field::FLAGS, flags & !flag::FOLLOW_RIGHT)?;
        }
        (opcode::DELETE, 0) => {
            let numbers: Vec<u16> = gist::deleted(main, record.version)?.iter().collect();
            page.remove_all(&numbers, redo.packing())?;
        }
        (opcode::PAGE_DELETE, 0) => {
            // The xid from which on it may be used again stands where line pointers would.
            page.set_lower(PAGE_HEADER_BYTES as u16 + 8)?;
        }
        (opcode::PAGE_DELETE, 1) => page.remove(at(main, 8)?)?,
        _ => return None,
    }
    Some(page)
}

fn update(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let (deleted, inserted): (u16, u16) = at(redo.record.main_data(), 0)?;
    let mut cursor = Cursor::new(redo.data());
    let numbers: Vec<u16> = cursor.list::<u16>(u32::from(deleted))?.iter().collect();
    let mut rest = cursor.rest();
    if let ([number], 1) = (numbers.as_slice(), inserted) {
        return page.replace(*number, entry(&mut rest)?);
    }
    page.remove_all(&numbers, redo.packing())?;
    (0..inserted).try_for_each(|_| page.append(entry(&mut rest)?))
}

/// Takes the next entry; entries follow each other as long as they say they are.
fn entry<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = size(rest)?;
    let (entry, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    (bytes > 0).then_some(entry)
}

fn split_page(redo: Redo<'_>) -> Option<Page> {
    let mut page = Page::new(redo.page_bytes, SPECIAL_BYTES)?;
    let count: u32 = at(redo.data(), 0)?;
    let mut rest = redo.data().get(4..)?;
    (0..count).try_for_each(|_| page.append(entry(&mut rest)?))?;
    let was_leaf = gist::split_was_leaf(redo.record.main_data())?;
    let flags = if was_leaf && redo.block.block != 0 { flag::LEAF } else { 0 };
    page.put_u16(page.special() + field::FLAGS, flags)?;
    page.put_u16(page.special() + field::PAGE_ID, PAGE_ID)?;
    Some(page)
}

pub(crate) fn data_bytes(redo: Redo<'_>, after: &Page, before: Option<&Page>) -> Option<DataBytes> {
    if (redo.record.info(), redo.block.id) != (opcode::PAGE_UPDATE, 0) {
        return DataBytes::exact(0);
    }
    let (deleted, inserted): (u16, u16) = at(redo.record.main_data(), 0)?;
    let numbers = 2 * usize::from(deleted);
    if (deleted, inserted) == (1, 1) {
        return match before.and_then(|before| replaced(before, after)) {
            Some(bytes) => DataBytes::exact(numbers + bytes),
            None => DataBytes::estimated(numbers + after.tuple(1)?.len()),
        };
    }
    let first = after.items().checked_sub(inserted)? + 1;
    let mut bytes = numbers;
    for number in first..=after.items() {
        bytes += after.tuple(number)?.len();
    }
    DataBytes::exact(bytes)
}

/// Length of the one entry that differs.
fn replaced(before: &Page, after: &Page) -> Option<usize> {
    let mut numbers = 1..=after.items();
    let number = numbers.find(|&number| before.tuple(number) != after.tuple(number))?;
    after.tuple(number).map(<[u8]>::len)
}
