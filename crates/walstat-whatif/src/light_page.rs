//! The parts of a table's or B-tree's page that decide how long records and images are, in few bytes: where
//! its parts begin, its line pointers, and of each row or entry what says how long it is, whether it is
//! frozen, or where it leads. What is the same of items that follow each other is kept once.
//!
//! It is taken from an image as it is stored, and changed where it lies. The page that is made of it, for
//! records that need one, has zeros in the place of all else.

pub(crate) mod entries;
pub(crate) mod rows;

use super::page::Page;
use super::page_view::{PageLength, PageView};
use entries::Entries;
use rows::Rows;
use walstat_format::cursor::at;
use walstat_format::data_page::btree_page::PLACE_BYTES;
use walstat_format::data_page::{ITEM_ID_BYTES, Item, ItemState, PAGE_HEADER_BYTES};

/// Above it, the last two bytes of a page name another access method (`MAX_BT_CYCLE_ID`).
const CYCLE_ID_MAX: u16 = 0xFF7F;

/// A page of which the lengths are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LightPage {
    extent: Extent,
    items: Items,
}

/// Where the parts of a page begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    size: u16,
    lower: u16,
    upper: u16,
    special: u16,
}

/// What a page has items of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Items {
    Table(Rows),
    BTree(Box<Entries>),
}

/// What is made of images, one after the other, in memory that is used again.
#[derive(Debug)]
pub(crate) struct LightRoom {
    rows: LightPage,
    entries: LightPage,
}

impl Default for LightRoom {
    fn default() -> LightRoom {
        let extent = Extent { size: 0, lower: 0, upper: 0, special: 0 };
        LightRoom {
            rows: LightPage { extent, items: Items::Table(Rows::default()) },
            entries: LightPage { extent, items: Items::BTree(Box::default()) },
        }
    }
}

impl LightRoom {
    /// What is kept of a page; `None`: all of it has to be.
    pub(crate) fn read(&mut self, page: &PageView<'_>) -> Option<&LightPage> {
        let extent = Extent::of(page)?;
        let own = page.bytes(page.special(), page.size())?;
        let light = match own.len() {
            0 => &mut self.rows,
            PLACE_BYTES if at::<u16>(own, PLACE_BYTES - 2)? <= CYCLE_ID_MAX => &mut self.entries,
            _ => return None,
        };
        light.extent = extent;
        let pointers = Pointers::of(page, &extent)?;
        match &mut light.items {
            Items::Table(rows) => rows.read(&pointers)?,
            Items::BTree(entries) => entries.read(&pointers, own)?,
        }
        Some(light)
    }
}

impl LightPage {
    /// A table's page without rows.
    pub(crate) fn table(size: usize) -> Option<LightPage> {
        let (size, lower) = (u16::try_from(size).ok()?, PAGE_HEADER_BYTES as u16);
        let extent = Extent { size, lower, upper: size, special: size };
        Some(LightPage { extent, items: Items::Table(Rows::default()) })
    }

    /// Becomes the same as another, in its own memory if that fits.
    pub(crate) fn become_like(&mut self, other: &LightPage) {
        self.extent = other.extent;
        match (&mut self.items, &other.items) {
            (Items::Table(rows), Items::Table(others)) => rows.become_like(others),
            (Items::BTree(entries), Items::BTree(others)) => entries.become_like(others),
            (items, others) => *items = others.clone(),
        }
    }

    /// How long it is.
    pub(crate) fn length(&self) -> PageLength {
        let Extent { size, lower, upper, .. } = self.extent;
        PageLength { page: size.into(), hole: upper.saturating_sub(lower).into() }
    }

    /// Bytes that it takes beside its place; counted as a whole page where it is more.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let bytes = match &self.items {
            Items::Table(rows) => rows.bytes(),
            Items::BTree(entries) => size_of::<Entries>() + entries.bytes(),
        };
        bytes.min(self.extent.size.into())
    }

    /// How many line pointers there are.
    pub(crate) fn items(&self) -> u16 {
        self.extent.items()
    }

    /// The page, in the memory of `bytes`.
    pub(crate) fn page(&self, bytes: Vec<u8>) -> Option<Page> {
        let Extent { size, lower, upper, special } = self.extent;
        let mut page = Page::new_in(bytes, size.into(), usize::from(size.checked_sub(special)?))?;
        page.set_lower(lower)?;
        page.set_upper(upper)?;
        if let Items::BTree(entries) = &self.items {
            page.put(special.into(), entries.place())?;
        }
        let places = Places::of(&mut page)?;
        match &self.items {
            Items::Table(rows) => rows.write(places)?,
            Items::BTree(entries) => entries.write(places)?,
        }
        Some(page)
    }

    /// Puts an entry in before those from `number` on (`PageAddItem` of an index).
    pub(crate) fn insert_entry(&mut self, number: u16, entry: &[u8]) -> Option<()> {
        let last = self.extent.items();
        (number >= 1 && number <= last + 1).then_some(())?;
        self.extent.grow(last + 1, entry.len())?;
        match &mut self.items {
            Items::BTree(entries) => entries.insert(usize::from(number - 1), entry),
            Items::Table(_) => None,
        }
    }
}

impl Extent {
    fn of(page: &PageView<'_>) -> Option<Extent> {
        let (lower, upper, special) = (page.lower(), page.upper(), page.special());
        (PAGE_HEADER_BYTES <= lower && lower <= upper && upper <= special).then_some(())?;
        let size = u16::try_from(page.size()).ok()?;
        Some(Extent { size, lower: lower as u16, upper: upper as u16, special: special as u16 })
    }

    /// How many line pointers there are.
    fn items(&self) -> u16 {
        self.lower.saturating_sub(PAGE_HEADER_BYTES as u16) / ITEM_ID_BYTES as u16
    }

    /// Makes room for an item of so many bytes, and for its line pointer if that is a new one.
    #[inline]
    fn grow(&mut self, number: u16, bytes: usize) -> Option<()> {
        let end = PAGE_HEADER_BYTES + ITEM_ID_BYTES * usize::from(number);
        let lower = end.max(self.lower.into());
        let upper = usize::from(self.upper).checked_sub(bytes.next_multiple_of(8))?;
        (lower <= upper).then_some(())?;
        (self.lower, self.upper) = (lower as u16, upper as u16);
        Some(())
    }

    /// Only so many line pointers stay.
    fn cut(&mut self, items: u16) {
        self.lower = (PAGE_HEADER_BYTES + ITEM_ID_BYTES * usize::from(items)) as u16;
    }

    /// The items take so many bytes, and lie at the end.
    fn pack(&mut self, stored: usize) -> Option<()> {
        let upper = usize::from(self.special).checked_sub(stored)?;
        (upper >= self.lower.into()).then_some(())?;
        self.upper = upper as u16;
        Some(())
    }
}

/// In a line pointer, the bits of the offset.
const OFFSET: u32 = 0x7FFF;

/// A line pointer as it lies in the page.
type Pointer = [u8; ITEM_ID_BYTES];

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
    #[inline]
    fn of(pointer: u32) -> Shape {
        let item = Item::of(pointer);
        let bytes = usize::from(item.bytes);
        let room = bytes.next_multiple_of(8);
        Shape { pointer: pointer & !OFFSET, has_storage: item.has_storage(), bytes, room }
    }
}

/// The line pointer, without the offset, of an item that is there.
fn normal(bytes: usize) -> Option<u32> {
    let bytes = u16::try_from(bytes).ok()?;
    Some(Item { state: ItemState::Normal, offset: 0, bytes }.bits())
}

/// Line pointers of a page and the bytes that they lead to.
struct Pointers<'p> {
    pointers: &'p [Pointer],
    /// From the first item on to the last one's end.
    stored: &'p [u8],
    upper: usize,
}

impl<'p> Pointers<'p> {
    fn of(page: &PageView<'p>, extent: &Extent) -> Option<Pointers<'p>> {
        let (pointers, _) = page.bytes(PAGE_HEADER_BYTES, extent.lower.into())?.as_chunks();
        let stored = page.bytes(extent.upper.into(), extent.special.into())?;
        Some(Pointers { pointers, stored, upper: extent.upper.into() })
    }

    /// A stored item; `None`: it lies elsewhere.
    #[inline(always)]
    fn item(&self, pointer: u32, shape: &Shape) -> Option<&'p [u8]> {
        let from = ((pointer & OFFSET) as usize).checked_sub(self.upper)?;
        self.stored.get(from..from + shape.bytes)
    }

    /// Whether no byte belongs to two of the items, if they lie within the page and take so many.
    fn have_room(&self, stored: usize) -> Option<()> {
        (stored <= self.stored.len()).then_some(())
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
    fn next(&mut self, shape: &Shape) -> Option<&mut [u8]> {
        let at = self.free.len().checked_sub(shape.room)?;
        let (free, own) = std::mem::take(&mut self.free).split_at_mut_checked(at)?;
        self.free = free;
        let offset = (self.start + at) as u32 & OFFSET;
        *self.pointers.next()? = (shape.pointer | offset).to_le_bytes();
        own.get_mut(..shape.bytes)
    }
}

/// Puts other numbers in the place of those that are there; memory far too large is given back.
fn refill<T: Copy>(own: &mut Vec<T>, others: &[T]) {
    own.clear();
    if own.capacity() > 2 * others.len() + 8 {
        own.shrink_to(others.len());
    }
    own.reserve_exact(others.len());
    own.extend_from_slice(others);
}

#[cfg(test)]
mod tests;
