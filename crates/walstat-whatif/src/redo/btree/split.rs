//! Splits of B-tree pages (`btree_xlog_split` in `src/backend/access/nbtree/nbtxlog.c`).

use super::{append_reversed, first_entry, rewrite, special, swapped};
use crate::page::Page;
use crate::page_view::PageView;
use crate::redo::index_tuple::split_first;
use crate::redo::{DataBytes, Redo};
use walstat_format::data_page::btree_page::{BTP_INCOMPLETE_SPLIT, BTP_LEAF, PLACE_BYTES, field};
use walstat_format::payload::btree::Split;

/// Blocks of the record.
const LEFT: u8 = 0;
const RIGHT: u8 = 1;
const OLD_RIGHT: u8 = 2;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>, new_entry_left: bool) -> Option<Page> {
    let split = Split::parse(redo.record.main_data(), redo.record.version)?;
    match redo.block.id {
        LEFT => left(redo, before?, &split, new_entry_left),
        RIGHT => right(redo, &split),
        OLD_RIGHT => {
            let mut page = before?;
            let right = redo.record.block(RIGHT)?.block;
            page.put_u32(page.special() + field::PREV, right)?;
            Some(page)
        }
        _ => {
            let mut page = before?;
            let flags: u16 = special(&page.view(), field::FLAGS)?;
            page.put_u16(page.special() + field::FLAGS, flags & !BTP_INCOMPLETE_SPLIT)?;
            Some(page)
        }
    }
}

/// The new page has the entries as data, in the order in which they lie.
fn right(redo: Redo<'_>, split: &Split) -> Option<Page> {
    let record = redo.record;
    let right = record.block(RIGHT)?;
    let mut page = Page::new(redo.page_bytes, PLACE_BYTES)?;
    append_reversed(&mut page, record.data(right))?;
    let place = page.special();
    page.put_u32(place + field::PREV, record.block(LEFT)?.block)?;
    page.put_u32(place + field::NEXT, record.block(OLD_RIGHT).map_or(0, |old| old.block))?;
    page.put_u32(place + field::LEVEL, split.level)?;
    page.put_u16(place + field::FLAGS, if split.level == 0 { BTP_LEAF } else { 0 })?;
    Some(page)
}

fn left(redo: Redo<'_>, page: Page, split: &Split, new_entry_left: bool) -> Option<Page> {
    let mut rest = redo.data();
    let mut new_entry = Vec::new();
    let mut list = None;
    if new_entry_left || split.posting != 0 {
        let (entry, after) = split_first(rest)?;
        (new_entry, rest) = (entry.to_vec(), after);
    }
    if split.posting != 0 {
        let number = split.new_item.checked_sub(1)?;
        list = Some((number, swapped(page.tuple(number)?, split.posting, &mut new_entry)?));
    }
    let bound = match rest {
        // Up to 11 the left page's upper bound is the right one's first entry.
        [] => {
            let right = right(redo, split)?;
            right.tuple(first_entry(&right.view())?)?.to_vec()
        }
        _ => split_first(rest)?.0.to_vec(),
    };
    let mut entries = vec![bound];
    for number in first_entry(&page.view())?..split.first_right {
        if new_entry_left && number == split.new_item {
            entries.push(new_entry.clone());
        }
        entries.push(match &list {
            Some((at, list)) if *at == number => list.clone(),
            _ => page.tuple(number)?.to_vec(),
        });
    }
    if new_entry_left && split.new_item == split.first_right {
        entries.push(new_entry);
    }
    finish_left(redo, page, &entries)
}

fn finish_left(redo: Redo<'_>, mut page: Page, entries: &[Vec<u8>]) -> Option<Page> {
    rewrite(&mut page, entries)?;
    let place = page.special();
    page.put_u32(place + field::NEXT, redo.record.block(RIGHT)?.block)?;
    let flags: u16 = special(&page.view(), field::FLAGS)?;
    // A root that is split is none any more.
    page.put_u16(place + field::FLAGS, flags & BTP_LEAF | BTP_INCOMPLETE_SPLIT)?;
    Some(page)
}

/// The left page's upper bound, if the release logs it, and the new entry if it went left, or
/// into a posting list that did.
pub(crate) fn data_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
    new_entry_left: bool,
) -> Option<DataBytes> {
    let record = redo.record;
    if redo.block.id != LEFT {
        return DataBytes::exact(0);
    }
    let split = Split::parse(record.main_data(), record.version)?;
    let aligned = |tuple: &[u8]| tuple.len().next_multiple_of(8);
    let bound = if split.logs_bound(record.header.info, record.version) {
        aligned(after.tuple(1)?)
    } else {
        0
    };
    let was_rightmost = record.block(OLD_RIGHT).is_none();
    // Entries of the old page began at 1 if it was the right-most one; those of the left one
    // begin at 2.
    let moved = split.new_item.checked_add(u16::from(was_rightmost))?;
    let entry = match (new_entry_left, split.posting) {
        (true, _) => aligned(after.tuple(moved)?),
        (false, 0) => 0,
        (false, _) => {
            let right = right(redo, &split)?;
            aligned(right.tuple(first_entry(&right.view())?)?)
        }
    };
    DataBytes::exact(bound + entry)
}
