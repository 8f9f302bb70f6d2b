//! What lengths need of a page of a table or a B-tree, in few bytes: its header, its line pointers, and of
//! each row or entry what says how long it is, whether it is frozen, or where it leads. The page that is made
//! of it again has zeros in the place of all else.

use super::page::Page;
use walstat_format::cursor::{Cursor, at};
use walstat_format::data_page::btree_page::PLACE_BYTES;
use walstat_format::data_page::heap_tuple::{TUPLE_HEADER_BYTES, field};
use walstat_format::data_page::index_tuple::{AM_RESERVED, HEADER_BYTES, INFO_AT};
use walstat_format::data_page::{ITEM_ID_BYTES, Item, PAGE_HEADER_BYTES, field as page_field};

/// Above it, the last two bytes of a page name another access method (`MAX_BT_CYCLE_ID`).
const CYCLE_ID_MAX: u16 = 0xFF7F;

/// In a line pointer, in the place of the offset: all bytes of the entry follow.
const WHOLE: u16 = 1;

/// A page of which the lengths are kept: size, header, special space, then the items.
#[derive(Debug)]
pub(crate) struct LeanPage(Box<[u8]>);

/// What the page belongs to, as its special space tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Table,
    BTree,
}

impl Kind {
    fn of(special: &[u8]) -> Option<Kind> {
        match special.len() {
            0 => Some(Kind::Table),
            PLACE_BYTES => {
                let last: u16 = at(special, PLACE_BYTES - 2)?;
                (last <= CYCLE_ID_MAX).then_some(Kind::BTree)
            }
            _ => None,
        }
    }
}

/// What is kept of a row. Of rows that follow each other it is mostly the same, and then kept once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Row {
    /// The line pointer, without the offset.
    pointer: u32,
    xmax: u32,
    /// From `t_infomask2` to `t_hoff`.
    flags: [u8; 5],
}

impl Row {
    fn of(pointer: u32, tuple: &[u8]) -> Option<Row> {
        let header: &[u8; TUPLE_HEADER_BYTES] = tuple.first_chunk()?;
        Some(Row { pointer, xmax: at(header, field::XMAX)?, flags: *header.last_chunk()? })
    }

    fn put(self, room: &mut Vec<u8>, count: u8) {
        if count > 0 {
            let [a, b, c, d] = self.pointer.to_le_bytes();
            let [e, f, g, h] = self.xmax.to_le_bytes();
            let [i, j, k, l, m] = self.flags;
            room.extend_from_slice(&[count, a, b, c, d, e, f, g, h, i, j, k, l, m]);
        }
    }

    fn take(from: &mut Cursor<'_>) -> Option<(u8, Row)> {
        let (count, pointer) = from.field()?;
        let row = Row { pointer, xmax: from.field()?, flags: *from.take(5)?.first_chunk()? };
        Some((count, row))
    }
}

impl LeanPage {
    /// Of a page; `None`: all of it has to be kept. `room` is memory to work in.
    pub(crate) fn of(page: &Page, room: &mut Vec<u8>) -> Option<LeanPage> {
        let bytes = page.bytes();
        let (lower, upper, special) = (page.lower(), page.upper(), page.special());
        (PAGE_HEADER_BYTES <= lower && lower <= upper && upper <= special).then_some(())?;
        let own = bytes.get(special..)?;
        room.clear();
        room.extend_from_slice(&u16::try_from(page.size()).ok()?.to_le_bytes());
        room.extend_from_slice(bytes.get(..PAGE_HEADER_BYTES)?);
        room.extend_from_slice(own);
        let mut stored = 0;
        let (pointers, _) = bytes.get(PAGE_HEADER_BYTES..lower)?.as_chunks::<ITEM_ID_BYTES>();
        let items = pointers.iter().map(|pointer| {
            let item = Item::of(u32::from_le_bytes(*pointer));
            if !item.has_storage() {
                return Some((item, &[][..]));
            }
            let from = usize::from(item.offset);
            let tuple = bytes.get(from..from + usize::from(item.bytes))?;
            stored += tuple.len().next_multiple_of(8);
            let is_inside = from >= upper && from + tuple.len() <= special;
            is_inside.then_some((Item { offset: 0, ..item }, tuple))
        });
        match Kind::of(own)? {
            Kind::Table => put_rows(items, room)?,
            Kind::BTree => put_entries(items, room)?,
        }
        // Else the same bytes belong to two.
        (stored <= special - upper).then(|| LeanPage(room.as_slice().into()))
    }

    /// Bytes of an image of the page, which leaves out the hole.
    pub(crate) fn image_bytes(&self) -> Option<usize> {
        let mut from = Cursor::new(&self.0);
        let size: u16 = from.field()?;
        let (lower, upper): (u16, u16) = at(from.rest(), page_field::LOWER)?;
        size.checked_sub(upper.checked_sub(lower)?).map(usize::from)
    }

    /// The page, in the memory of `bytes`.
    pub(crate) fn page(&self, mut bytes: Vec<u8>) -> Option<Page> {
        let mut from = Cursor::new(&self.0);
        let size = usize::from(from.field::<u16>()?);
        bytes.clear();
        bytes.resize(size, 0);
        let mut page = Page::from_bytes(bytes)?;
        page.put(0, from.take(PAGE_HEADER_BYTES)?)?;
        let own = from.take(size.checked_sub(page.special())?)?;
        page.put(page.special(), own)?;
        match Kind::of(own)? {
            Kind::Table => take_rows(&mut from, &mut page)?,
            Kind::BTree => take_entries(&mut from, &mut page)?,
        }
        Some(page)
    }
}

fn put_rows<'p>(
    items: impl Iterator<Item = Option<(Item, &'p [u8])>>,
    room: &mut Vec<u8>,
) -> Option<()> {
    let (mut same, mut count) = (Row::default(), 0);
    for item in items {
        let (item, tuple) = item?;
        let pointer = item.bits();
        let row = match item.has_storage() {
            true => Row::of(pointer, tuple)?,
            false => Row { pointer, ..Row::default() },
        };
        if row != same || count == u8::MAX {
            same.put(room, count);
            (same, count) = (row, 0);
        }
        count += 1;
    }
    same.put(room, count);
    Some(())
}

fn take_rows(from: &mut Cursor<'_>, page: &mut Page) -> Option<()> {
    let (mut number, mut upper) = (0, page.special());
    while !from.rest().is_empty() {
        let (count, row) = Row::take(from)?;
        let item = Item::of(row.pointer);
        for _ in 0..count {
            number += 1;
            if let Some(item) = placed(item, &mut upper, page, number)? {
                let header: &mut [u8; TUPLE_HEADER_BYTES] = item.first_chunk_mut()?;
                *header.get_mut(field::XMAX..)?.first_chunk_mut()? = row.xmax.to_le_bytes();
                *header.last_chunk_mut()? = row.flags;
            }
        }
    }
    Some(())
}

fn put_entries<'p>(
    items: impl Iterator<Item = Option<(Item, &'p [u8])>>,
    room: &mut Vec<u8>,
) -> Option<()> {
    for item in items {
        let (item, tuple) = item?;
        if !item.has_storage() {
            room.extend_from_slice(&item.bits().to_le_bytes());
            continue;
        }
        let header: &[u8; HEADER_BYTES] = tuple.first_chunk()?;
        // A posting list, or an entry that leads to another page.
        if at::<u16>(header, INFO_AT)? & AM_RESERVED != 0 {
            room.extend_from_slice(&Item { offset: WHOLE, ..item }.bits().to_le_bytes());
            room.extend_from_slice(tuple);
        } else {
            let kept = u128::from(u64::from_le_bytes(*header)) << 32 | u128::from(item.bits());
            let kept: [u8; 16] = kept.to_le_bytes();
            room.extend_from_slice(kept.first_chunk::<{ ITEM_ID_BYTES + HEADER_BYTES }>()?);
        }
    }
    Some(())
}

fn take_entries(from: &mut Cursor<'_>, page: &mut Page) -> Option<()> {
    let (mut number, mut upper) = (0, page.special());
    while !from.rest().is_empty() {
        let item = Item::of(from.field()?);
        number += 1;
        if let Some(entry) = placed(item, &mut upper, page, number)? {
            let kept = if item.offset == WHOLE { entry.len() } else { HEADER_BYTES };
            entry.get_mut(..kept)?.copy_from_slice(from.take(kept)?);
        }
    }
    Some(())
}

/// Sets a line pointer, and finds room for its item below `upper` if it has one.
fn placed<'p>(
    mut item: Item,
    upper: &mut usize,
    page: &'p mut Page,
    number: u16,
) -> Option<Option<&'p mut [u8]>> {
    let bytes = usize::from(item.bytes);
    if item.has_storage() {
        *upper = upper.checked_sub(bytes.next_multiple_of(8))?;
        item.offset = u16::try_from(*upper).ok()?;
    }
    page.set_item(number, item)?;
    Some(if item.has_storage() { Some(page.bytes_mut(*upper, bytes)?) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::data_page::ItemState;

    fn lean(page: &Page) -> Option<LeanPage> {
        LeanPage::of(page, &mut Vec::new())
    }

    /// Lengths and states of all items.
    fn items(page: &Page) -> Vec<(ItemState, u16)> {
        (1..=page.items())
            .filter_map(|n| page.item(n))
            .map(|item| (item.state, item.bytes))
            .collect()
    }

    fn row(len: usize, xmax: u8, columns: u8) -> Vec<u8> {
        let mut row = vec![columns; len];
        row[..TUPLE_HEADER_BYTES].fill(0);
        row[field::XMAX] = xmax;
        row[field::HOFF] = 24;
        row
    }

    #[test]
    fn rows_keep_their_lengths_and_flags_and_lose_their_columns() {
        let mut page = Page::new(8192, 0).expect("a page");
        for number in 0..100 {
            page.append(&row(61, 0, number)).expect("room");
        }
        page.append(&row(61, 7, 1)).expect("room");
        page.append(&row(40, 7, 1)).expect("room");
        page.set_item(3, Item { state: ItemState::Redirect, offset: 9, bytes: 0 }).expect("there");
        page.set_item(4, Item::DEAD).expect("there");
        let lean = lean(&page).expect("a table's");
        assert!(lean.0.len() < 120, "{}", lean.0.len());
        assert_eq!(lean.image_bytes(), Some(8192 - page.hole().len()));
        let again = lean.page(vec![1; 9000]).expect("a page");
        assert_eq!(again.bytes().get(..PAGE_HEADER_BYTES), page.bytes().get(..PAGE_HEADER_BYTES));
        assert_eq!((items(&again), again.hole()), (items(&page), page.hole()));
        assert_eq!(again.item(3), page.item(3));
        assert_eq!(again.tuple(1), Some(&row(61, 0, 0)[..]));
        assert_eq!(again.tuple(101), Some(&row(61, 7, 0)[..]));
    }

    #[test]
    fn entries_keep_where_they_lead_and_posting_lists_all() {
        let mut page = Page::new(8192, PLACE_BYTES).expect("a page");
        page.put_u32(page.special() + 4, 77).expect("there");
        let entry = |row: u8, info: u16| {
            let [low, high] = info.to_le_bytes();
            [[0, 0, row, 0, 1, 0, low, high], [9; 8]].concat()
        };
        page.append(&entry(1, 16)).expect("room");
        page.append(&entry(2, 16)).expect("room");
        page.append(&entry(3, 16 | AM_RESERVED)).expect("room");
        let again = lean(&page).and_then(|lean| lean.page(Vec::new())).expect("a B-tree's");
        assert_eq!(items(&again), items(&page));
        assert_eq!(again.tuple(2).and_then(<[u8]>::first_chunk::<8>), entry(2, 16).first_chunk());
        assert_eq!(again.tuple(3), page.tuple(3));
        assert_eq!(again.bytes().get(page.special()..), page.bytes().get(page.special()..));
    }

    #[test]
    fn other_pages_and_nonsense_stay_whole() {
        assert!(lean(&Page::new(8192, 8).expect("a page")).is_none());
        let mut gist = Page::new(8192, PLACE_BYTES).expect("a page");
        gist.put_u16(8190, 0xFF81).expect("there");
        assert!(lean(&gist).is_none());
        let mut page = Page::new(8192, 0).expect("a page");
        page.append(&row(61, 0, 0)).expect("room");
        page.append(&row(61, 0, 0)).expect("room");
        assert!(lean(&page).is_some());
        let first = page.item(1).expect("there");
        page.set_item(2, Item { bytes: 100, ..first }).expect("there");
        assert!(lean(&page).is_none(), "it reaches beyond the page");
    }
}
