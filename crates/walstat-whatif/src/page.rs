//! A data page that is rolled forward: header, line pointers, tuples, special space, and the
//! few operations by which all access methods change one (`src/backend/storage/page/bufpage.c`).
//!
//! What a record does with the page is said elsewhere, one file a resource manager. Every
//! operation returns `None` where the page cannot be what the record takes it for; it is not
//! followed any further then.

use super::page_view::{PageView, item_at};
use std::ops::Range;
use walstat_format::cursor::{Field, at};
use walstat_format::data_page::{
    ITEM_ID_BYTES, Item, ItemState, LAYOUT_VERSION, MAX_PAGE_BYTES,
    PAGE_HEADER_BYTES as HEADER_BYTES, field,
};

/// Which way tuples are packed: the order does not change their lengths, but what a codec
/// makes of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// As they lay.
    ByPlace,
    /// By line pointer number, the first one highest, unless they already lie so.
    ByItem,
}

/// The bytes of a page. Its parts lie in order when a record comes to it, but a line pointer may lead
/// anywhere, into the header too: so every place is checked where it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    bytes: Vec<u8>,
}

impl Page {
    /// A page made of its bytes; `None` if they are no page, or a corrupt one: a server logs what it has.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Page> {
        Some(Page { bytes }).filter(Page::is_sound)
    }

    /// Whether the parts of the page lie one after the other, or nothing is in it yet (`PageIsVerified`).
    pub(crate) fn is_sound(&self) -> bool {
        let parts = [self.lower(), self.upper(), self.special()];
        let [lower, upper, special] = parts;
        let is_in_order = [HEADER_BYTES, lower, upper, special, self.size()].is_sorted();
        let is_page = (HEADER_BYTES..=MAX_PAGE_BYTES).contains(&self.size());
        is_page && (is_in_order || parts == [0; 3])
    }

    /// A new page of `size` bytes, `special` of them at its end kept for the access method.
    pub(crate) fn new(size: usize, special: usize) -> Option<Page> {
        Page::new_in(Vec::new(), size, special)
    }

    /// The same, in the memory of `bytes`.
    pub(crate) fn new_in(mut bytes: Vec<u8>, size: usize, special: usize) -> Option<Page> {
        bytes.clear();
        bytes.resize(size, 0);
        let mut page = Page::from_bytes(bytes)?;
        let end = u16::try_from(size.checked_sub(special)?).ok()?;
        page.set_lower(HEADER_BYTES as u16)?;
        page.set_upper(end)?;
        page.put_u16(field::SPECIAL, end)?;
        page.put_u16(field::PAGESIZE_VERSION, u16::try_from(size).ok()? | LAYOUT_VERSION)?;
        Some(page).filter(Page::is_sound)
    }

    /// Its bytes, of which it is made.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes from `at` on, to be changed.
    pub(crate) fn bytes_mut(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(at..at.checked_add(len)?)
    }

    /// Size of the page.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The number at `offset`.
    pub(crate) fn field<T: Field>(&self, offset: usize) -> Option<T> {
        at(&self.bytes, offset)
    }

    /// Writes 16 bits at `at`.
    pub(crate) fn put_u16(&mut self, at: usize, value: u16) -> Option<()> {
        self.put(at, &value.to_le_bytes())
    }

    /// Writes 32 bits at `at`.
    pub(crate) fn put_u32(&mut self, at: usize, value: u32) -> Option<()> {
        self.put(at, &value.to_le_bytes())
    }

    /// Writes bytes at `at`.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        self.bytes_mut(at, bytes.len())?.copy_from_slice(bytes);
        Some(())
    }

    /// The page, to be read only.
    pub(crate) fn view(&self) -> PageView<'_> {
        PageView::of(&self.bytes)
    }

    /// `pd_lower`: line pointers end here.
    pub(crate) fn lower(&self) -> usize {
        self.view().lower()
    }

    /// `pd_upper`: tuples begin here.
    pub(crate) fn upper(&self) -> usize {
        self.view().upper()
    }

    /// `pd_special`: the special space begins here.
    pub(crate) fn special(&self) -> usize {
        self.view().special()
    }

    /// Sets `pd_lower`.
    pub(crate) fn set_lower(&mut self, lower: u16) -> Option<()> {
        self.put_u16(field::LOWER, lower)
    }

    /// Sets `pd_upper`.
    pub(crate) fn set_upper(&mut self, upper: u16) -> Option<()> {
        self.put_u16(field::UPPER, upper)
    }

    /// How many line pointers there are.
    pub(crate) fn items(&self) -> u16 {
        self.view().items()
    }

    /// Line pointer `number`, from 1.
    pub(crate) fn item(&self, number: u16) -> Option<Item> {
        self.view().item(number)
    }

    /// Sets line pointer `number`.
    pub(crate) fn set_item(&mut self, number: u16, item: Item) -> Option<()> {
        self.put(item_at(number)?, &item.bits().to_le_bytes())
    }

    /// The tuple of line pointer `number`.
    pub(crate) fn tuple(&self, number: u16) -> Option<&[u8]> {
        self.view().tuple(number)
    }

    /// The tuple of line pointer `number`, to be changed.
    pub(crate) fn tuple_mut(&mut self, number: u16) -> Option<&mut [u8]> {
        let item = self.item(number)?;
        let from = usize::from(item.offset);
        self.bytes.get_mut(from..from + usize::from(item.bytes)).filter(|_| item.has_storage())
    }

    /// Adds a tuple under a number that is free, or the next one (`PageAddItem`, overwriting).
    pub(crate) fn add(&mut self, number: u16, tuple: &[u8]) -> Option<()> {
        self.add_parts(number, [tuple])
    }

    /// The same of a tuple in parts.
    pub(crate) fn add_parts<const N: usize>(
        &mut self,
        number: u16,
        parts: [&[u8]; N],
    ) -> Option<()> {
        if self.item(number).is_some_and(|item| item.state != ItemState::Unused) {
            return None;
        }
        (number <= self.items() + 1).then_some(())?;
        self.place(number, parts)
    }

    /// Adds a tuple under a number; those from there on move up (`PageAddItem` of an index).
    pub(crate) fn insert(&mut self, number: u16, tuple: &[u8]) -> Option<()> {
        let last = self.items();
        (number >= 1 && number <= last + 1).then_some(())?;
        self.grow_to(last + 1)?;
        let from = item_at(number)?;
        self.shift(from..item_at(last + 1)?, from + ITEM_ID_BYTES)?;
        self.set_item(number, Item::UNUSED)?;
        self.place(number, [tuple])
    }

    /// Adds a tuple behind the last one.
    pub(crate) fn append(&mut self, tuple: &[u8]) -> Option<()> {
        self.place(self.items() + 1, [tuple])
    }

    fn place<const N: usize>(&mut self, number: u16, parts: [&[u8]; N]) -> Option<()> {
        self.grow_to(number)?;
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let upper = self.upper().checked_sub(bytes.next_multiple_of(8))?;
        (upper >= self.lower() && upper <= self.size()).then_some(())?;
        let offset = u16::try_from(upper).ok()?;
        let mut rest = self.bytes.get_mut(upper..upper + bytes.next_multiple_of(8))?;
        // What a copy of a shorter tuple leaves is part of the page.
        if let Some(end) = rest.last_chunk_mut() {
            *end = [0; 8];
        }
        for part in parts {
            let (own, after) = rest.split_at_mut_checked(part.len())?;
            own.copy_from_slice(part);
            rest = after;
        }
        self.set_upper(offset)?;
        let bytes = u16::try_from(bytes).ok()?;
        self.set_item(number, Item { offset, bytes, state: ItemState::Normal })
    }

    fn grow_to(&mut self, number: u16) -> Option<()> {
        let end = item_at(number)? + ITEM_ID_BYTES;
        if end > self.lower() {
            (end <= self.upper()).then_some(())?;
            self.set_lower(u16::try_from(end).ok()?)?;
        }
        Some(())
    }

    /// Cuts free line pointers off the end; at least `keep` stay.
    pub(crate) fn cut_unused(&mut self, keep: u16) -> Option<()> {
        let mut last = self.items();
        while last > keep && self.item(last)?.state == ItemState::Unused {
            last -= 1;
        }
        self.set_lower((HEADER_BYTES + ITEM_ID_BYTES * usize::from(last)) as u16)
    }

    /// Packs the tuples at the end of the page (`PageRepairFragmentation`).
    pub(crate) fn pack(&mut self, packing: Packing) -> Option<()> {
        let mut stored = Vec::with_capacity(self.items().into());
        for number in 1..=self.items() {
            let item = self.item(number)?;
            match item.state {
                ItemState::Unused => self.set_item(number, Item::UNUSED)?,
                ItemState::Redirect => {}
                _ if item.bytes > 0 => stored.push((number, item)),
                _ => {}
            }
        }
        self.pack_items(stored, packing)
    }

    fn pack_items(&mut self, mut stored: Vec<(u16, Item)>, packing: Packing) -> Option<()> {
        if packing == Packing::ByPlace {
            stored.sort_by_key(|(_, item)| std::cmp::Reverse(item.offset));
        }
        if lie_in_order(&stored, self.special()) {
            return self.move_up(&stored);
        }
        let before = self.bytes.clone();
        let mut upper = self.special();
        for (number, item) in stored {
            let from = usize::from(item.offset);
            let len = usize::from(item.bytes).next_multiple_of(8);
            upper = upper.checked_sub(len)?;
            let tuple = before.get(from..from + len)?;
            self.put(upper, tuple)?;
            self.set_item(number, Item { offset: u16::try_from(upper).ok()?, ..item })?;
        }
        (upper >= self.lower()).then_some(())?;
        self.set_upper(u16::try_from(upper).ok()?)
    }

    /// The same of items each of which lies below the one before: they are moved where they are.
    fn move_up(&mut self, stored: &[(u16, Item)]) -> Option<()> {
        let mut upper = self.special();
        for &(number, item) in stored {
            let from = usize::from(item.offset);
            let len = usize::from(item.bytes).next_multiple_of(8);
            upper = upper.checked_sub(len)?;
            if from != upper {
                self.shift(from..from + len, upper)?;
            }
            self.set_item(number, Item { offset: u16::try_from(upper).ok()?, ..item })?;
        }
        (upper >= self.lower()).then_some(())?;
        self.set_upper(u16::try_from(upper).ok()?)
    }

    /// Removes an item of an index; those behind it move down (`PageIndexTupleDelete`).
    pub(crate) fn remove(&mut self, number: u16) -> Option<()> {
        let item = self.item(number)?;
        let (last, from) = (self.items(), item_at(number)?);
        self.shift(from + ITEM_ID_BYTES..item_at(last)? + ITEM_ID_BYTES, from)?;
        self.set_lower((HEADER_BYTES + ITEM_ID_BYTES * usize::from(last - 1)) as u16)?;
        self.close(item.offset, usize::from(item.bytes).next_multiple_of(8))
    }

    /// Removes the tuple of an item whose number stays (`PageIndexTupleDeleteNoCompact`).
    pub(crate) fn remove_tuple(&mut self, number: u16) -> Option<()> {
        let item = self.item(number)?;
        self.set_item(number, Item::UNUSED)?;
        self.cut_unused(0)?;
        self.close(item.offset, usize::from(item.bytes).next_multiple_of(8))
    }

    /// Moves the tuples below `offset` up by `len`.
    fn close(&mut self, offset: u16, len: usize) -> Option<()> {
        let upper = self.upper();
        let from = usize::from(offset);
        self.shift(upper..from, upper + len)?;
        self.set_upper(u16::try_from(upper + len).ok()?)?;
        self.shift_items(offset, len as i32)
    }

    /// Copies bytes of the page to another place in it; `None` where either is none.
    fn shift(&mut self, from: Range<usize>, to: usize) -> Option<()> {
        let len = from.end.checked_sub(from.start)?;
        (from.end.max(to + len) <= self.size()).then_some(())?;
        self.bytes.copy_within(from, to);
        Some(())
    }

    /// Adds `by` to the place of every tuple up to `offset`.
    fn shift_items(&mut self, offset: u16, by: i32) -> Option<()> {
        for number in 1..=self.items() {
            let item = self.item(number)?;
            if item.has_storage() && item.offset <= offset {
                let offset = u16::try_from(i32::from(item.offset) + by).ok()?;
                self.set_item(number, Item { offset, ..item })?;
            }
        }
        Some(())
    }

    /// Removes several items, ascending (`PageIndexMultiDelete`).
    pub(crate) fn remove_all(&mut self, numbers: &[u16], packing: Packing) -> Option<()> {
        if numbers.len() <= 2 {
            return numbers.iter().rev().try_for_each(|&number| self.remove(number));
        }
        let mut gone = numbers.iter().copied().peekable();
        let mut kept = Vec::with_capacity(self.items().into());
        for number in 1..=self.items() {
            if gone.next_if_eq(&number).is_none() {
                kept.push(self.item(number)?);
            }
        }
        gone.peek().is_none().then_some(())?;
        self.set_lower((HEADER_BYTES + ITEM_ID_BYTES * kept.len()) as u16)?;
        let numbered: Vec<(u16, Item)> = (1..).zip(kept).collect();
        self.pack_items(numbered, packing)
    }

    /// Puts another tuple, of any length, in the place of one (`PageIndexTupleOverwrite`).
    pub(crate) fn replace(&mut self, number: u16, tuple: &[u8]) -> Option<()> {
        let item = self.item(number)?;
        let old = usize::from(item.bytes).next_multiple_of(8);
        let new = tuple.len().next_multiple_of(8);
        let (from, upper) = (usize::from(item.offset), self.upper());
        let room = old + upper.checked_sub(self.lower())?;
        (new <= room).then_some(())?;
        let shifted = upper + old - new;
        self.shift(upper..from, shifted)?;
        self.set_upper(u16::try_from(shifted).ok()?)?;
        self.shift_items(item.offset, old as i32 - new as i32)?;
        let moved = self.item(number)?;
        self.set_item(number, Item { bytes: u16::try_from(tuple.len()).ok()?, ..moved })?;
        self.put(moved.offset.into(), tuple)
    }
}

/// Whether the first item ends at `end` or before, and each one after it where the one before begins.
fn lie_in_order(stored: &[(u16, Item)], mut end: usize) -> bool {
    stored.iter().all(|(_, item)| {
        let from = usize::from(item.offset);
        let is_below = from + usize::from(item.bytes).next_multiple_of(8) <= end;
        end = from;
        is_below
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{any_bytes, any_number, any_page};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn page(lengths: &[usize]) -> Page {
        let mut page = Page::new(512, 16).expect("a page");
        for (index, &len) in lengths.iter().enumerate() {
            page.append(&vec![index as u8 + 1; len]).expect("room");
        }
        page
    }

    fn tuples(page: &Page) -> Vec<Vec<u8>> {
        (1..=page.items()).map(|n| page.tuple(n).unwrap_or_default().to_vec()).collect()
    }

    #[test]
    fn tuples_are_aligned_and_found_again() {
        let page = page(&[5, 16]);
        assert_eq!((page.lower(), page.upper(), page.items()), (32, 512 - 16 - 24, 2));
        assert_eq!(tuples(&page), [vec![1; 5], vec![2; 16]]);
        assert_eq!(page.view().hole(), 32..472);
    }

    #[test]
    fn a_number_in_use_is_refused_and_a_free_one_taken() {
        let mut page = page(&[8, 8]);
        assert_eq!(page.add(1, &[9; 8]), None);
        page.set_item(1, Item::UNUSED).expect("there");
        page.pack(Packing::ByPlace).expect("packed");
        assert_eq!(page.upper(), 512 - 16 - 8);
        assert_eq!(page.add(1, &[9; 8]), Some(()));
        assert_eq!(tuples(&page), [vec![9; 8], vec![2; 8]]);
        assert_eq!(page.add(4, &[9; 8]), None);
    }

    #[test]
    fn an_index_inserts_and_removes_between() {
        let mut page = page(&[8, 16, 8, 24]);
        page.insert(2, &[7; 8]).expect("room");
        assert_eq!(tuples(&page), [vec![1; 8], vec![7; 8], vec![2; 16], vec![3; 8], vec![4; 24]]);
        page.remove_all(&[1, 3, 4], Packing::ByPlace).expect("there");
        assert_eq!(tuples(&page), [vec![7; 8], vec![4; 24]]);
        assert_eq!((page.lower(), page.upper()), (32, 512 - 16 - 32));
        page.remove_all(&[1], Packing::ByPlace).expect("there");
        assert_eq!(tuples(&page), [vec![4; 24]]);
        assert_eq!(page.remove(2), None);
    }

    #[test]
    fn an_item_is_replaced_by_a_longer_or_shorter_one() {
        for len in [8, 16, 32] {
            let mut page = page(&[8, 16, 8]);
            page.replace(2, &vec![9; len]).expect("room");
            assert_eq!(tuples(&page), [vec![1; 8], vec![9; len], vec![3; 8]]);
            assert_eq!(page.upper(), 512 - 16 - 16 - len);
        }
    }

    #[test]
    fn free_numbers_at_the_end_are_cut() {
        let mut page = page(&[8, 8, 8]);
        page.set_item(2, Item::UNUSED).expect("there");
        page.set_item(3, Item::UNUSED).expect("there");
        page.cut_unused(0).expect("cut");
        assert_eq!(page.items(), 1);
        page.set_item(1, Item::UNUSED).expect("there");
        page.cut_unused(1).expect("cut");
        assert_eq!(page.items(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut page = page(&[8]);
        assert_eq!(page.append(&[0; 500]), None);
        assert_eq!(page.item(0), None);
        assert_eq!(page.tuple(2), None);
        assert_eq!(page.remove_all(&[1, 1, 1], Packing::ByItem), None);
        assert!(Page::from_bytes(vec![0; 23]).is_none());
    }

    #[test]
    fn a_corrupt_header_is_no_page() {
        let with = |at: usize, value: u16| {
            let mut page = page(&[8, 8]);
            page.put_u16(at, value).expect("a header");
            Page::from_bytes(page.into_bytes()).is_some()
        };
        assert!(with(field::LOWER, 32) && with(field::LOWER, 32 + 2));
        assert!(Page::from_bytes(vec![0; 8192]).is_some(), "a new one");
        for lower in [0, 23, 481, 60_000] {
            assert!(!with(field::LOWER, lower), "pd_lower {lower}");
        }
        for upper in [0, 31, 497, 65_535] {
            assert!(!with(field::UPPER, upper), "pd_upper {upper}");
        }
        for special in [0, 479, 513, 65_535] {
            assert!(!with(field::SPECIAL, special), "pd_special {special}");
        }
    }

    #[test]
    fn half_a_line_pointer_is_none() {
        let mut page = page(&[8, 8]);
        page.set_lower(24 + 2 * 4 + 2).expect("a header");
        assert_eq!((page.items(), page.item(3), page.remove(3)), (2, None, None));
    }

    #[test]
    fn an_item_that_lies_elsewhere_is_not_replaced() {
        let mut page = page(&[8, 8]);
        let item = Item { state: ItemState::Normal, offset: 30_000, bytes: 8 };
        page.set_item(2, item).expect("there");
        assert_eq!(page.replace(2, &[1; 16]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn no_operation_panics(
            bytes in any_page(),
            operations in vec((0u8..9, any_number(), any_bytes(0..60)), 1..6),
        ) {
            // Whatever the header says: a record may have changed it before.
            let mut page = Page { bytes };
            for (operation, number, data) in operations {
                let packing = if data.len() % 4 == 0 { Packing::ByItem } else { Packing::ByPlace };
                let _ = match operation {
                    0 => page.add(number, &data),
                    1 => page.insert(number, &data),
                    2 => page.append(&data),
                    3 => page.cut_unused(number),
                    4 => page.pack(packing),
                    5 => page.remove(number),
                    6 => page.remove_tuple(number),
                    7 => page.remove_all(&[number, number.saturating_add(2), 9, 11], packing),
                    _ => page.replace(number, &data),
                };
                page.view().length().without_hole();
            }
        }
    }
}
