//! The parts of a table's or B-tree's page that decide how long records and images are, in few bytes: its
//! header, its line pointers, and of each row or entry what says how long it is, whether it is frozen, or
//! where it leads. The page that is made of it again has zeros in the place of all else.

use super::page::Page;
use walstat_format::cursor::{Cursor, at};
use walstat_format::data_page::btree_page::PLACE_BYTES;
use walstat_format::data_page::heap_tuple::{TUPLE_HEADER_BYTES, field};
use walstat_format::data_page::index_tuple::{AM_RESERVED, HEADER_BYTES, INFO_AT};
use walstat_format::data_page::{ITEM_ID_BYTES, Item, PAGE_HEADER_BYTES, field as page_field};

/// Above it, the last two bytes of a page name another access method (`MAX_BT_CYCLE_ID`).
const CYCLE_ID_MAX: u16 = 0xFF7F;

/// A page of which the lengths are kept: size, header, special space, then the items. What is the same of
/// items that follow each other is kept once.
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

impl LeanPage {
    /// Of a page; `None`: all of it has to be kept. `room` is memory to work in.
    pub(crate) fn of(page: &Page, room: &mut Vec<u8>) -> Option<LeanPage> {
        let items = Items::of(page)?;
        let own = page.bytes().get(page.special()..)?;
        room.clear();
        room.extend_from_slice(&u16::try_from(page.size()).ok()?.to_le_bytes());
        room.extend_from_slice(page.bytes().get(..PAGE_HEADER_BYTES)?);
        room.extend_from_slice(own);
        match Kind::of(own)? {
            Kind::Table => put_rows(&items, room)?,
            Kind::BTree => put_entries(&items, room)?,
        }
        Some(LeanPage(room.as_slice().into()))
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
        let places = Places::of(&mut page)?;
        match Kind::of(own)? {
            Kind::Table => take_rows(from.rest(), places)?,
            Kind::BTree => take_entries(from, places)?,
        }
        Some(page)
    }
}

/// In a line pointer, the bits of the offset.
const OFFSET: u32 = 0x7FFF;

/// A line pointer as it lies in the page.
type Pointer = [u8; ITEM_ID_BYTES];

/// So many items are told by one count at most.
const RUN_MAX: usize = u8::MAX as usize;

/// What a line pointer says beyond where its item lies: mostly the same as the one before it says.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    /// The line pointer, without the offset.
    pointer: u32,
    has_storage: bool,
    bytes: usize,
    /// The same with what is left free after it.
    room: usize,
}

impl Shape {
    fn of(pointer: u32) -> Shape {
        let item = Item::of(pointer);
        let bytes = usize::from(item.bytes);
        let room = bytes.next_multiple_of(8);
        Shape { pointer: pointer & !OFFSET, has_storage: item.has_storage(), bytes, room }
    }
}

/// Line pointers of a page and the bytes that they lead to.
struct Items<'p> {
    bytes: &'p [u8],
    pointers: &'p [Pointer],
    upper: usize,
    special: usize,
}

impl<'p> Items<'p> {
    fn of(page: &'p Page) -> Option<Items<'p>> {
        let bytes = page.bytes();
        let (lower, upper, special) = (page.lower(), page.upper(), page.special());
        (PAGE_HEADER_BYTES <= lower && lower <= upper && upper <= special).then_some(())?;
        let (pointers, _) = bytes.get(PAGE_HEADER_BYTES..lower)?.as_chunks();
        Some(Items { bytes, pointers, upper, special })
    }

    /// The first bytes of a stored item; `None`: it is too short, or lies elsewhere.
    #[inline(always)]
    fn header<const BYTES: usize>(&self, pointer: u32, shape: &Shape) -> Option<&'p [u8; BYTES]> {
        let from = (pointer & OFFSET) as usize;
        if from < self.upper || from + shape.bytes > self.special || shape.bytes < BYTES {
            return None;
        }
        self.bytes.get(from..)?.first_chunk()
    }

    /// Whether no byte belongs to two of the items, if they lie within the page and take so many.
    fn have_room(&self, stored: usize) -> Option<()> {
        (stored <= self.special - self.upper).then_some(())
    }
}

/// Where the items of a page that is made anew come to lie: each below the one before.
struct Places<'p> {
    pointers: std::slice::IterMut<'p, Pointer>,
    /// What is free: it begins at `start`.
    free: &'p mut [u8],
    start: usize,
}

impl<'p> Places<'p> {
    /// Those of a page with nothing but a header.
    fn of(page: &'p mut Page) -> Option<Places<'p>> {
        let (start, special) = (page.lower(), page.special());
        let items = page.bytes_mut(PAGE_HEADER_BYTES, special.checked_sub(PAGE_HEADER_BYTES)?)?;
        let (pointers, free) = items.split_at_mut_checked(start.checked_sub(PAGE_HEADER_BYTES)?)?;
        let (pointers, _) = pointers.as_chunks_mut();
        Some(Places { pointers: pointers.iter_mut(), free, start })
    }

    /// Sets the next line pointer, to an item without storage.
    fn set(&mut self, pointer: u32) -> Option<()> {
        *self.pointers.next()? = pointer.to_le_bytes();
        Some(())
    }

    /// Sets the next line pointer; its item's bytes.
    #[inline(always)]
    fn next(&mut self, shape: &Shape) -> Option<&mut [u8]> {
        let at = self.free.len().checked_sub(shape.room)?;
        let (free, own) = std::mem::take(&mut self.free).split_at_mut_checked(at)?;
        self.free = free;
        let offset = (self.start + at) as u32 & OFFSET;
        *self.pointers.next()? = (shape.pointer | offset).to_le_bytes();
        own.get_mut(..shape.bytes)
    }
}

/// What is kept of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Row {
    /// The line pointer, without the offset.
    pointer: u32,
    xmax: u32,
    /// From `t_infomask2` to `t_hoff`.
    flags: u64,
}

/// Bytes of rows that are the same: how many, and one of them.
const ROWS_BYTES: usize = 14;
/// Bytes of the flags, which end a row's header.
const FLAGS_BYTES: usize = TUPLE_HEADER_BYTES - field::INFOMASK2;

impl Row {
    #[inline(always)]
    fn of(items: &Items<'_>, pointer: u32, shape: &Shape) -> Option<Row> {
        let header: &[u8; TUPLE_HEADER_BYTES] = items.header(pointer, shape)?;
        let end = u64::from_le_bytes(*header.last_chunk()?);
        let flags = end >> (8 * (size_of::<u64>() - FLAGS_BYTES));
        Some(Row { pointer: shape.pointer, xmax: at(header, field::XMAX)?, flags })
    }

    /// So many of it, packed.
    fn put(self, count: u8, room: &mut Vec<u8>) -> Option<()> {
        let Row { pointer, xmax, flags } = self;
        let head = u128::from(xmax) << 40 | u128::from(pointer) << 8 | u128::from(count);
        let all = (u128::from(flags) << 72 | head).to_le_bytes();
        room.extend_from_slice(all.first_chunk::<ROWS_BYTES>()?);
        Some(())
    }

    fn unpack(bytes: &[u8; ROWS_BYTES]) -> (u8, Row) {
        let mut all = [0; size_of::<u128>()];
        all[..ROWS_BYTES].copy_from_slice(bytes);
        let all = u128::from_le_bytes(all);
        let (pointer, xmax, flags) = ((all >> 8) as u32, (all >> 40) as u32, (all >> 72) as u64);
        (all as u8, Row { pointer, xmax, flags })
    }

    #[inline(always)]
    fn write(self, tuple: &mut [u8]) -> Option<()> {
        let header: &mut [u8; TUPLE_HEADER_BYTES] = tuple.first_chunk_mut()?;
        *header.get_mut(field::XMAX..)?.first_chunk_mut()? = self.xmax.to_le_bytes();
        let flags = self.flags.to_le_bytes();
        *header.last_chunk_mut()? = *flags.first_chunk::<FLAGS_BYTES>()?;
        Some(())
    }
}

fn put_rows(items: &Items<'_>, room: &mut Vec<u8>) -> Option<()> {
    let (mut rest, mut stored) = (items.pointers, 0);
    while let Some(first) = rest.first() {
        let pointer = u32::from_le_bytes(*first);
        let shape = Shape::of(pointer);
        let (row, count) = if shape.has_storage {
            let row = Row::of(items, pointer, &shape)?;
            (row, same_rows(items, rest, &shape, row)?)
        } else {
            (Row { pointer, ..Row::default() }, same_pointers(rest, first))
        };
        stored += count * shape.room;
        row.put(count as u8, room)?;
        rest = rest.get(count..)?;
    }
    items.have_room(stored)
}

/// How many of the first rows are the same.
#[inline(always)]
fn same_rows(items: &Items<'_>, rest: &[Pointer], shape: &Shape, row: Row) -> Option<usize> {
    let mut count = 0;
    for pointer in rest.iter().take(RUN_MAX) {
        let pointer = u32::from_le_bytes(*pointer);
        if pointer & !OFFSET != shape.pointer || Row::of(items, pointer, shape)? != row {
            break;
        }
        count += 1;
    }
    Some(count)
}

/// How many of the first line pointers are the same.
fn same_pointers(rest: &[Pointer], first: &Pointer) -> usize {
    rest.iter().take(RUN_MAX).take_while(|pointer| *pointer == first).count()
}

fn take_rows(from: &[u8], mut places: Places<'_>) -> Option<()> {
    let (runs, _) = from.as_chunks();
    for run in runs {
        let (count, row) = Row::unpack(run);
        let shape = Shape::of(row.pointer);
        for _ in 0..count {
            if shape.has_storage {
                row.write(places.next(&shape)?)?;
            } else {
                places.set(row.pointer)?;
            }
        }
    }
    Some(())
}

/// Bytes of an entry that say where it leads (`ItemPointerData`); two others end its header.
const LEADS_BYTES: usize = INFO_AT;

/// Where entries lead.
type Leads = [[u8; LEADS_BYTES]; RUN_MAX];

fn put_entries(items: &Items<'_>, room: &mut Vec<u8>) -> Option<()> {
    let mut leads: Leads = [[0; LEADS_BYTES]; RUN_MAX];
    let (mut rest, mut stored) = (items.pointers, 0);
    while let Some(first) = rest.first() {
        let pointer = u32::from_le_bytes(*first);
        let shape = Shape::of(pointer);
        let count = if !shape.has_storage {
            let count = same_pointers(rest, first);
            put_run(room, count, pointer, 0);
            count
        } else {
            let header: &[u8; HEADER_BYTES] = items.header(pointer, &shape)?;
            let info = at(header, INFO_AT)?;
            if is_whole(info) {
                put_run(room, 1, shape.pointer, info);
                let from = (pointer & OFFSET) as usize;
                room.extend_from_slice(items.bytes.get(from..from + shape.bytes)?);
                1
            } else {
                let count = same_entries(items, rest, &shape, info, &mut leads)?;
                put_run(room, count, shape.pointer, info);
                room.extend_from_slice(leads.get(..count)?.as_flattened());
                count
            }
        };
        stored += count * shape.room;
        rest = rest.get(count..)?;
    }
    items.have_room(stored)
}

/// How many of the first entries have the line pointer and the last two bytes of the header in common, and
/// where they lead.
#[inline(always)]
fn same_entries(
    items: &Items<'_>,
    rest: &[Pointer],
    shape: &Shape,
    info: u16,
    leads: &mut Leads,
) -> Option<usize> {
    let mut count = 0;
    for (pointer, place) in rest.iter().zip(leads) {
        let pointer = u32::from_le_bytes(*pointer);
        if pointer & !OFFSET != shape.pointer {
            break;
        }
        let header: &[u8; HEADER_BYTES] = items.header(pointer, shape)?;
        if at::<u16>(header, INFO_AT)? != info {
            break;
        }
        *place = *header.first_chunk()?;
        count += 1;
    }
    Some(count)
}

/// What entries have in common, after how many they are.
fn put_run(room: &mut Vec<u8>, count: usize, pointer: u32, info: u16) {
    let [a, b, c, d] = pointer.to_le_bytes();
    let [e, f] = info.to_le_bytes();
    room.extend_from_slice(&[count as u8, a, b, c, d, e, f]);
}

/// Whether all of an entry is kept: a posting list, or one that leads to another page.
fn is_whole(info: u16) -> bool {
    info & AM_RESERVED != 0
}

fn take_entries(mut from: Cursor<'_>, mut places: Places<'_>) -> Option<()> {
    while !from.rest().is_empty() {
        let (count, (pointer, info)): (u8, (u32, u16)) = from.field()?;
        let shape = Shape::of(pointer);
        let kept = match (shape.has_storage, is_whole(info)) {
            (false, _) => 0,
            (true, true) => shape.bytes,
            (true, false) => LEADS_BYTES,
        };
        let mut own = from.take(usize::from(count) * kept)?;
        for _ in 0..count {
            if kept == 0 {
                places.set(pointer)?;
                continue;
            }
            let entry = places.next(&shape)?;
            let (leads, rest) = own.split_at_checked(kept)?;
            own = rest;
            if kept == LEADS_BYTES {
                let header: &mut [u8; HEADER_BYTES] = entry.first_chunk_mut()?;
                *header.first_chunk_mut()? = *leads.first_chunk::<LEADS_BYTES>()?;
                *header.last_chunk_mut()? = info.to_le_bytes();
            } else {
                entry.copy_from_slice(leads);
            }
        }
    }
    Some(())
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
    fn more_entries_than_one_count_tells_come_back_with_the_dead_ones_between() {
        let mut page = Page::new(8192, PLACE_BYTES).expect("a page");
        for number in 0..300u16 {
            let [low, high] = number.to_le_bytes();
            let info = if number == 290 { 17 } else { 16 };
            page.append(&[[0, 0, low, high, 1, 0, info, 0], [0; 8]].concat()).expect("room");
        }
        let dead = page.item(270).map(|item| Item { state: ItemState::Dead, ..item });
        page.set_item(270, dead.expect("there")).expect("there");
        let lean = lean(&page).expect("a B-tree's");
        assert!(lean.0.len() < 300 * 7, "{}", lean.0.len());
        assert_eq!(lean.page(Vec::new()), Some(page));
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
