//! A data page that is only read: in one piece, or as an image stores it, without its hole.

use walstat_format::cursor::{Field, at};
use walstat_format::data_page::restore::StoredPage;
use walstat_format::data_page::{ITEM_ID_BYTES, Item, PAGE_HEADER_BYTES, field};
use walstat_format::lsn::Lsn;

/// The bytes of a page that are there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageView<'p> {
    size: usize,
    /// From its first byte on.
    head: &'p [u8],
    /// Up to its last one.
    tail: &'p [u8],
}

/// How long a page is, and how much of it an image may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLength {
    /// `BLCKSZ`.
    pub(crate) page: usize,
    /// Bytes between line pointers and tuples, if the page is of the standard layout.
    pub(crate) hole: usize,
}

impl PageLength {
    /// Bytes of an image, which leaves out the hole.
    pub(crate) fn without_hole(self) -> usize {
        self.page - self.hole
    }
}

impl<'p> PageView<'p> {
    /// All of a page.
    pub(crate) fn of(bytes: &'p [u8]) -> PageView<'p> {
        PageView { size: bytes.len(), head: bytes, tail: &[] }
    }

    /// A page as it is stored.
    pub(crate) fn of_stored(stored: &StoredPage<'p>) -> PageView<'p> {
        PageView { size: stored.size(), head: stored.before_hole, tail: stored.after_hole }
    }

    /// Size of the page.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Some of its bytes, if they lie on one side of the hole.
    #[inline]
    pub(crate) fn bytes(&self, from: usize, to: usize) -> Option<&'p [u8]> {
        let tail = self.size - self.tail.len();
        match from.checked_sub(tail) {
            Some(from) => self.tail.get(from..to.checked_sub(tail)?),
            None => self.head.get(from..to),
        }
    }

    /// The number at `offset`.
    pub(crate) fn field<T: Field>(&self, offset: usize) -> Option<T> {
        T::read(self.bytes(offset, offset + T::BYTES)?)
    }

    fn header(&self, offset: usize) -> usize {
        at::<u16>(self.head, offset).map_or(0, usize::from)
    }

    /// `pd_lower`: line pointers end here.
    pub(crate) fn lower(&self) -> usize {
        self.header(field::LOWER)
    }

    /// `pd_upper`: tuples begin here.
    pub(crate) fn upper(&self) -> usize {
        self.header(field::UPPER)
    }

    /// `pd_special`: the special space begins here.
    pub(crate) fn special(&self) -> usize {
        self.header(field::SPECIAL)
    }

    /// `pd_lsn`: the end of the last record that stamped the page.
    pub(crate) fn lsn(&self) -> Option<Lsn> {
        // Two numbers, the high one first.
        let (high, low): (u32, u32) = at(self.head, field::LSN)?;
        Some(Lsn(u64::from(high) << 32 | u64::from(low)))
    }

    /// The bytes that an image leaves out, if the page is of the standard layout.
    pub(crate) fn hole(&self) -> std::ops::Range<usize> {
        let (lower, upper) = (self.lower(), self.upper());
        if lower >= PAGE_HEADER_BYTES && upper > lower && upper <= self.size {
            lower..upper
        } else {
            0..0
        }
    }

    /// How long it is.
    pub(crate) fn length(&self) -> PageLength {
        PageLength { page: self.size, hole: self.hole().len() }
    }

    /// How many line pointers there are.
    pub(crate) fn items(&self) -> u16 {
        (self.lower().saturating_sub(PAGE_HEADER_BYTES) / ITEM_ID_BYTES) as u16
    }

    /// All line pointers, if they lie before the hole.
    pub(crate) fn line_pointers(&self) -> impl Iterator<Item = Item> + 'p {
        let end = PAGE_HEADER_BYTES + ITEM_ID_BYTES * usize::from(self.items());
        let (pointers, _) = self.bytes(PAGE_HEADER_BYTES, end).unwrap_or_default().as_chunks();
        pointers.iter().map(|pointer| Item::of(u32::from_le_bytes(*pointer)))
    }

    /// Line pointer `number`, from 1.
    pub(crate) fn item(&self, number: u16) -> Option<Item> {
        let offset = item_at(number)?;
        (offset + ITEM_ID_BYTES <= self.lower()).then_some(())?;
        Some(Item::of(self.field(offset)?))
    }

    /// The tuple of line pointer `number`.
    pub(crate) fn tuple(&self, number: u16) -> Option<&'p [u8]> {
        let item = self.item(number).filter(|item| item.has_storage())?;
        let from = usize::from(item.offset);
        self.bytes(from, from + usize::from(item.bytes))
    }
}

/// Where line pointer `number` lies.
pub(crate) fn item_at(number: u16) -> Option<usize> {
    let index = usize::from(number).checked_sub(1)?;
    Some(PAGE_HEADER_BYTES + ITEM_ID_BYTES * index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Page;

    #[test]
    fn a_page_says_the_same_with_its_hole_and_without() {
        let mut page = Page::new(1024, 16).expect("a page");
        page.append(&[7; 40]).expect("room");
        page.append(&[8; 9]).expect("room");
        page.put_u32(page.special(), 77).expect("there");
        page.put_u32(4, 9).expect("there");
        let (bytes, hole) = (page.bytes(), page.view().hole());
        let stored = StoredPage {
            before_hole: &bytes[..hole.start],
            hole_bytes: hole.len(),
            after_hole: &bytes[hole.end..],
        };
        for view in [PageView::of(bytes), PageView::of_stored(&stored)] {
            let length = PageLength { page: 1024, hole: hole.len() };
            assert_eq!((view.length(), view.items(), view.lsn()), (length, 2, Some(Lsn(9))));
            assert_eq!((view.tuple(1), view.tuple(2)), (Some(&[7; 40][..]), Some(&[8; 9][..])));
            assert_eq!((view.tuple(0), view.tuple(3)), (None, None));
            let pointers = [view.item(1), view.item(2)].map(|item| item.expect("there"));
            assert_eq!(view.line_pointers().collect::<Vec<_>>(), pointers);
            assert_eq!(view.field::<u32>(view.special()), Some(77));
            assert_eq!(view.bytes(1020, 1025), None);
        }
    }
}
