//! B-trees: entries come, go and are merged, pages leave the tree (`btree_xlog_*` in
//! `src/backend/access/nbtree/nbtxlog.c`). Splits have a file of their own.

mod split;

use super::index_tuple::{Posting, split_first};
use super::{Before, DataBytes, Redo};
use crate::light_page::LightPage;
use crate::page::Page;
use crate::page_view::PageView;
use crate::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::cursor::{Cursor, Field, List, at};
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::data_page::btree_page::{
    BTP_DELETED, BTP_HALF_DEAD, BTP_HAS_GARBAGE, BTP_INCOMPLETE_SPLIT, BTP_LEAF, BTP_ROOT,
    PLACE_BYTES, field,
};
use walstat_format::payload::btree::{Dedup, Insert, Insertion, MarkHalfDead, Removal, opcode};

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let record = redo.record;
    if let Some(Insertion::Split { new_entry_left }) =
        Insertion::of(record.header.info, record.version)
    {
        return split::apply(redo, before, new_entry_left);
    }
    match record.info() {
        opcode::NEWROOT => new_root(redo, before),
        opcode::MARK_PAGE_HALFDEAD => half_dead(redo, before),
        opcode::UNLINK_PAGE | opcode::UNLINK_PAGE_META => unlink(redo, before),
        opcode::META_CLEANUP => None,
        _ if redo.block.will_init => None,
        _ => {
            let mut page = before?;
            change_entries(redo, &mut page)?;
            Some(page)
        }
    }
}

/// Whether an entry comes into a leaf.
pub(crate) fn is_leaf_insertion(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    let insertion = Insertion::of(record.header.info, record.version);
    !block.will_init && matches!(insertion, Some(Insertion::Leaf { .. }))
}

/// Changes the entries of a page where it lies.
pub(crate) fn change_entries(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let record = redo.record;
    let (main, data) = (record.main_data(), redo.data());
    match (Insertion::of(record.header.info, record.version), record.info()) {
        (Some(_), _) if redo.block.id != 0 => clear_flags(page, BTP_INCOMPLETE_SPLIT),
        (Some(Insertion::Leaf { splits_posting_list: true }), _) => {
            insert_into_list(page, Insert::parse(main)?.offset, data)
        }
        (Some(_), _) => page.insert(Insert::parse(main)?.offset, data),
        (None, opcode::SPLIT_R_OR_DEDUP) => {
            merge(page, Dedup::parse(main, Some(data))?.intervals)?;
            clear_flags(page, BTP_HAS_GARBAGE)
        }
        (None, opcode::VACUUM) => {
            remove(redo, page, Removal::vacuum(main, Some(data), record.version)?)
        }
        (None, opcode::DELETE) => {
            remove(redo, page, Removal::delete(main, Some(data), record.version)?)
        }
        _ => None,
    }
}

/// Puts an entry into a leaf of which the lengths are kept.
pub(crate) fn insert_light(redo: Redo<'_>, page: &mut LightPage) -> Option<()> {
    page.insert_entry(Insert::parse(redo.record.main_data())?.offset, redo.data())
}

/// Whether that is all that the record does to its page.
pub(crate) fn is_mere_insertion(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    let insertion = Insertion::of(record.header.info, record.version);
    let is_mere = insertion == Some(Insertion::Leaf { splits_posting_list: false });
    is_mere && !block.will_init && block.id == 0
}

/// Reads a field of the special space.
pub(crate) fn special<T: Field>(page: &PageView<'_>, offset: usize) -> Option<T> {
    page.field(page.special() + offset)
}

fn clear_flags(page: &mut Page, flags: u16) -> Option<()> {
    let before: u16 = special(&page.view(), field::FLAGS)?;
    page.put_u16(page.special() + field::FLAGS, before & !flags)
}

/// `P_FIRSTDATAKEY`: the first entry of all but the right-most page is its upper bound.
fn first_entry(page: &PageView<'_>) -> Option<u16> {
    Some(if special::<u32>(page, field::NEXT)? == 0 { 1 } else { 2 })
}

/// The posting list before `offset` takes the new entry's row, and the last one of the list
/// becomes the new entry's (`_bt_swap_posting`).
fn insert_into_list(page: &mut Page, offset: u16, data: &[u8]) -> Option<()> {
    let place: u16 = at(data, 0)?;
    let mut entry = data.get(2..)?.to_vec();
    let list_at = offset.checked_sub(1)?;
    let list = swapped(page.tuple(list_at)?, place, &mut entry)?;
    page.tuple_mut(list_at)?.get_mut(..list.len())?.copy_from_slice(&list);
    page.insert(offset, &entry)
}

/// A posting list into which `entry` falls; `entry` has the list's last row after it.
fn swapped(list: &[u8], place: u16, entry: &mut [u8]) -> Option<Vec<u8>> {
    let mut list = Posting::parse(list)?;
    let last = list.swap(place, *entry.first_chunk()?)?;
    entry.get_mut(..last.len())?.copy_from_slice(&last);
    list.bytes()
}

/// Merges runs of entries into posting lists; the page is written anew (`btree_xlog_dedup`).
fn merge(page: &mut Page, intervals: List<'_, (u16, u16)>) -> Option<()> {
    let mut intervals = intervals.iter().peekable();
    let mut entries = Vec::new();
    let first = first_entry(&page.view())?;
    let mut number = 1;
    while number <= page.items() {
        let tuple = page.tuple(number)?;
        let run = intervals.next_if(|(base, _)| *base == number && number >= first);
        match run {
            Some((_, count)) if count > 1 => {
                let mut list = Posting::parse(tuple)?;
                let end = number.checked_add(count)?;
                for later in number + 1..end {
                    list.merge(Posting::parse(page.tuple(later)?)?);
                }
                entries.push(list.bytes()?);
                number = end;
            }
            _ => {
                entries.push(tuple.to_vec());
                number += 1;
            }
        }
    }
    rewrite(page, &entries)
}

/// Empties the page but for its special space and adds the entries in order.
fn rewrite(page: &mut Page, entries: &[Vec<u8>]) -> Option<()> {
    let end = u16::try_from(page.special()).ok()?;
    page.set_lower(PAGE_HEADER_BYTES as u16)?;
    page.set_upper(end)?;
    entries.iter().try_for_each(|entry| page.append(entry))
}

fn remove(redo: Redo<'_>, page: &mut Page, removal: Removal<'_>) -> Option<()> {
    let mut updates = Cursor::new(removal.updates);
    for number in removal.updated.iter() {
        let count: u16 = updates.field()?;
        let places: Vec<u16> = updates.list(u32::from(count))?.iter().collect();
        let mut list = Posting::parse(page.tuple(number)?)?;
        list.remove(&places);
        page.replace(number, &list.bytes()?)?;
    }
    let deleted: Vec<u16> = removal.deleted.iter().collect();
    page.remove_all(&deleted, redo.packing())?;
    clear_flags(page, BTP_HAS_GARBAGE)
}

fn new_root(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    match redo.block.id {
        0 => {
            let mut page = Page::new(redo.page_bytes, PLACE_BYTES)?;
            append_reversed(&mut page, redo.data())?;
            let level: u32 = at(redo.record.main_data(), 4)?;
            page.put_u32(page.special() + field::LEVEL, level)?;
            let flags = BTP_ROOT | if level == 0 { BTP_LEAF } else { 0 };
            page.put_u16(page.special() + field::FLAGS, flags)?;
            Some(page)
        }
        1 => {
            let mut page = before?;
            clear_flags(&mut page, BTP_INCOMPLETE_SPLIT)?;
            Some(page)
        }
        _ => None,
    }
}

/// Adds entries that lie in the data as in the page: the last one first (`_bt_restore_page`).
fn append_reversed(page: &mut Page, data: &[u8]) -> Option<()> {
    let mut entries = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let (entry, after) = split_first(rest)?;
        entries.push(entry);
        rest = after;
    }
    entries.iter().rev().try_for_each(|entry| page.append(entry))
}

fn half_dead(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mark = MarkHalfDead::parse(redo.record.main_data())?;
    if redo.block.id == 0 {
        let mut page = Page::new(redo.page_bytes, PLACE_BYTES)?;
        page.put_u32(page.special() + field::PREV, mark.left)?;
        page.put_u32(page.special() + field::NEXT, mark.right)?;
        page.put_u16(page.special() + field::FLAGS, BTP_HALF_DEAD | BTP_LEAF)?;
        page.append(&upper_bound_without_key(mark.top_parent))?;
        return Some(page);
    }
    let mut page = before?;
    // The entry takes over its right neighbour's page, and that one's entry goes away.
    let next = mark.parent_offset.checked_add(1)?;
    let child: [u8; 4] = *page.tuple(next)?.first_chunk()?;
    page.tuple_mut(mark.parent_offset)?.get_mut(..4)?.copy_from_slice(&child);
    page.remove(next)?;
    Some(page)
}

/// The only entry of a half-dead leaf: which page goes away with it.
fn upper_bound_without_key(top_parent: u32) -> [u8; 8] {
    let [low0, low1, high0, high1] = top_parent.to_le_bytes();
    [high0, high1, low0, low1, 0, 0, 8, 0]
}

fn unlink(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let main = redo.record.main_data();
    let (left, right): (u32, u32) = at(main, 0)?;
    match redo.block.id {
        0 => {
            let keeps_xid = redo.record.version.pages.deleted_pages_keep_xid;
            // Where it does not, the primary leaves the page's content, other than recovery.
            let left_alone = before.filter(|_| !keeps_xid);
            let mut page = match left_alone {
                Some(page) => page,
                None => Page::new(redo.page_bytes, PLACE_BYTES)?,
            };
            page.put_u32(page.special() + field::PREV, left)?;
            page.put_u32(page.special() + field::NEXT, right)?;
            page.put_u16(page.special() + field::FLAGS, BTP_DELETED)?;
            if keeps_xid {
                // `BTDeletedPageData` stands where line pointers would.
                page.set_lower(PAGE_HEADER_BYTES as u16 + 8)?;
            }
            Some(page)
        }
        1 | 2 => {
            let mut page = before?;
            let (place, to) =
                if redo.block.id == 1 { (field::NEXT, right) } else { (field::PREV, left) };
            page.put_u32(page.special() + place, to)?;
            Some(page)
        }
        3 => {
            let mut page = Page::new(redo.page_bytes, PLACE_BYTES)?;
            page.put_u16(page.special() + field::FLAGS, BTP_HALF_DEAD | BTP_LEAF)?;
            page.append(&upper_bound_without_key(0))?;
            Some(page)
        }
        _ => None,
    }
}

pub(crate) fn data_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
    before: Option<Before<'_>>,
) -> Option<DataBytes> {
    let record = redo.record;
    let main = record.main_data();
    if redo.block.id != 0 {
        return DataBytes::exact(0);
    }
    match (Insertion::of(record.header.info, record.version), record.info()) {
        (Some(Insertion::Split { new_entry_left }), _) => {
            split::data_bytes(redo, after, new_entry_left)
        }
        (Some(insertion), _) => {
            let entry = after.tuple(Insert::parse(main)?.offset)?;
            let splits = insertion == Insertion::Leaf { splits_posting_list: true };
            DataBytes::exact(entry.len() + if splits { 2 } else { 0 })
        }
        (None, opcode::SPLIT_R_OR_DEDUP) => DataBytes::exact(4 * usize::from(at::<u16>(main, 0)?)),
        (None, opcode::VACUUM | opcode::DELETE) => match before {
            None => removed_bytes(redo, after, None),
            Some(before) => before
                .with_whole(|before| removed_bytes(redo, after, before.map(Page::view).as_ref())),
        },
        _ => DataBytes::exact(0),
    }
}

/// Whether the record takes entries out.
pub(crate) fn removes(record: &WholeRecord<'_>) -> bool {
    let is_insertion = Insertion::of(record.header.info, record.version).is_some();
    !is_insertion && [opcode::VACUUM, opcode::DELETE].contains(&record.info())
}

/// Line pointers that went away, and what went out of posting lists.
fn removed_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
    before: Option<&PageView<'_>>,
) -> Option<DataBytes> {
    let record = redo.record;
    let counts = match record.info() {
        opcode::VACUUM => Removal::vacuum_counts(record.main_data(), record.version),
        _ => Removal::delete_counts(record.main_data(), record.version),
    };
    let Some((deleted, updated)) = counts else {
        // Only the pages tell how many.
        return match before {
            Some(before) => {
                DataBytes::exact(2 * usize::from(before.items().checked_sub(after.items())?))
            }
            None => DataBytes::estimated(2),
        };
    };
    let plain = 2 * usize::from(deleted);
    if updated == 0 {
        return DataBytes::exact(plain);
    }
    // Of each list its number, how many rows go, and which.
    let lists = 4 * usize::from(updated);
    match before.and_then(|before| rows_gone(before, after, usize::from(deleted))) {
        Some(rows) => DataBytes::exact(plain + lists + 2 * rows),
        None => DataBytes::estimated(plain + lists + 2 * usize::from(updated)),
    }
}

/// How many rows went out of posting lists that stayed.
fn rows_gone(before: &PageView<'_>, after: &PageView<'_>, deleted: usize) -> Option<usize> {
    let entries = |page: &PageView<'_>| -> Option<Vec<Posting>> {
        (first_entry(page)?..=page.items()).map(|n| Posting::parse(page.tuple(n)?)).collect()
    };
    let (old, new) = (entries(before)?, entries(after)?);
    (old.len() == new.len() + deleted).then_some(())?;
    let mut gone = 0;
    let mut old = old.iter();
    for entry in &new {
        let was = old.find(|was| was.contains(entry))?;
        gone += was.rows().checked_sub(entry.rows())?;
    }
    Some(gone)
}
