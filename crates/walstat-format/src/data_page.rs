//! Data pages: what a table's or an index's file consists of, and what a full page image holds
//! (`PageHeaderData` in `src/include/storage/bufpage.h`, `ItemIdData` in `itemid.h`).
//!
//! A borrowed view over the bytes of one page of any size; it neither reads files nor knows which
//! relation the page belongs to. The layout is the same in all releases from 9.5 on.

pub mod btree_page;
pub mod checksum;
pub mod gin_page;
pub mod gist_page;
pub mod hash_page;
pub mod heap_tuple;
pub mod index_tuple;
pub mod pglz;
#[cfg(feature = "images")]
pub mod restore;

use super::cursor::at;
use super::lsn::Lsn;
pub use super::page_size::{DEFAULT_PAGE_BYTES, MAX_PAGE_BYTES, MIN_PAGE_BYTES, is_page_size};

/// Bytes of the header before the line pointers.
pub const PAGE_HEADER_BYTES: usize = 24;
/// Bytes of a line pointer (`ItemIdData`).
pub const ITEM_ID_BYTES: usize = 4;
/// Bytes of a row's place (`ItemPointerData`).
pub const ITEM_POINTER_BYTES: usize = 6;
/// `PG_PAGE_LAYOUT_VERSION`, in the low byte of `pd_pagesize_version`; the same since 8.3.
pub const LAYOUT_VERSION: u16 = 4;
/// Every row of the page is visible to all; in `pd_flags`.
pub const PD_ALL_VISIBLE: u16 = 0x0004;

/// Where the fields of the header lie, `pd_` left out of their names.
pub mod field {
    /// `pd_lsn`: two numbers of 4 bytes, the high half first.
    pub const LSN: usize = 0;
    /// `pd_checksum`.
    pub const CHECKSUM: usize = 8;
    /// `pd_flags`.
    pub const FLAGS: usize = 10;
    /// `pd_lower`: the end of the line pointers.
    pub const LOWER: usize = 12;
    /// `pd_upper`: where the items begin.
    pub const UPPER: usize = 14;
    /// `pd_special`: where the access method's own part begins.
    pub const SPECIAL: usize = 16;
    /// `pd_pagesize_version`.
    pub const PAGESIZE_VERSION: usize = 18;
    /// `pd_prune_xid`: the oldest xid whose rows may be pruned, 0 if none.
    pub const PRUNE_XID: usize = 20;
}

/// The size that a page's header states; 0 for a page that was never initialised.
pub(crate) fn stated_size(bytes: &[u8]) -> Option<usize> {
    Some(usize::from(at::<u16>(bytes, field::PAGESIZE_VERSION)? & 0xFF00))
}

/// A page whose header makes sense.
#[derive(Debug, Clone, Copy)]
pub struct DataPage<'a> {
    bytes: &'a [u8],
    header: Header,
}

/// The header's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// `pd_lsn`: the end of the last record that changed the page.
    pub lsn: Lsn,
    /// `pd_checksum`; means something in a file of a cluster with checksums only.
    pub checksum: u16,
    /// `pd_lower`: the end of the line pointers.
    pub lower: u16,
    /// `pd_upper`: where the items begin.
    pub upper: u16,
    /// `pd_special`: where the access method's own part begins.
    pub special: u16,
}

/// What a line pointer says of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// Free for use.
    Unused,
    /// An item is there.
    Normal,
    /// The item is that of another line pointer of the page.
    Redirect,
    /// Nothing is there, but indexes may still point to it; in an index, an item that is of no
    /// more use.
    Dead,
}

/// A line pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// What it says.
    pub state: ItemState,
    /// Where the item begins in the page; the number of the other line pointer for a redirect.
    pub offset: u16,
    /// Bytes of the item.
    pub bytes: u16,
}

impl Item {
    /// A free line pointer.
    pub const UNUSED: Item = Item { state: ItemState::Unused, offset: 0, bytes: 0 };
    /// One without an item to which indexes still lead.
    pub const DEAD: Item = Item { state: ItemState::Dead, offset: 0, bytes: 0 };

    /// Whether bytes of the page are the item's.
    pub fn has_storage(self) -> bool {
        self.bytes > 0 && self.state != ItemState::Redirect
    }

    /// A line pointer as it is stored: 15 bits of offset, 2 of state, 15 of length.
    pub fn bits(self) -> u32 {
        u32::from(self.offset) | (self.state as u32) << 15 | u32::from(self.bytes) << 17
    }

    /// Reads a line pointer.
    pub fn of(bits: u32) -> Item {
        let state = match bits >> 15 & 3 {
            0 => ItemState::Unused,
            1 => ItemState::Normal,
            2 => ItemState::Redirect,
            _ => ItemState::Dead,
        };
        Item { state, offset: (bits & 0x7FFF) as u16, bytes: (bits >> 17) as u16 }
    }
}

impl<'a> DataPage<'a> {
    /// Looks at one page; `None` for a length that no page has, a page that was never
    /// initialised, and a header that contradicts itself.
    pub fn new(bytes: &'a [u8]) -> Option<DataPage<'a>> {
        let header = Header::parse(bytes)?;
        let in_order = PAGE_HEADER_BYTES <= usize::from(header.lower)
            && header.lower <= header.upper
            && header.upper <= header.special
            && usize::from(header.special) <= bytes.len();
        let of_this_size = at::<u16>(bytes, field::PAGESIZE_VERSION)? & 0x00FF == LAYOUT_VERSION
            && stated_size(bytes)? == bytes.len()
            && is_page_size(bytes.len());
        (in_order && of_this_size && header.special.is_multiple_of(8))
            .then_some(DataPage { bytes, header })
    }

    /// Whether a page was never written to: all zeros.
    pub fn is_zero(bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| *byte == 0)
    }

    /// All of the page.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The access method's own part at the end; empty for a table.
    pub fn special(&self) -> &'a [u8] {
        self.bytes.get(usize::from(self.header.special)..).unwrap_or_default()
    }

    /// How many line pointers there are.
    pub(crate) fn item_count(&self) -> u16 {
        (self.header.lower - PAGE_HEADER_BYTES as u16) / ITEM_ID_BYTES as u16
    }

    /// The line pointer of this number; they count from 1.
    pub fn item(&self, number: u16) -> Option<Item> {
        let index = usize::from(number.checked_sub(1)?);
        if number > self.item_count() {
            return None;
        }
        at(self.bytes, PAGE_HEADER_BYTES + index * ITEM_ID_BYTES).map(Item::of)
    }

    /// All line pointers with their numbers.
    pub fn items(&self) -> impl Iterator<Item = (u16, Item)> + use<'a> {
        let page = *self;
        (1..=page.item_count()).filter_map(move |number| Some((number, page.item(number)?)))
    }

    /// The bytes of the item of this number: one that is there, or a dead one of an index. `None`
    /// where the line pointer leads out of the part where items lie.
    pub fn item_bytes(&self, number: u16) -> Option<&'a [u8]> {
        let item = self.item(number)?;
        let has_bytes = match item.state {
            ItemState::Normal => true,
            ItemState::Dead => item.bytes > 0,
            ItemState::Unused | ItemState::Redirect => false,
        };
        let (from, to) =
            (usize::from(item.offset), usize::from(item.offset) + usize::from(item.bytes));
        let inside = item.offset >= self.header.upper && to <= usize::from(self.header.special);
        self.bytes.get(from..to).filter(|_| has_bytes && inside)
    }
}

impl Header {
    /// Reads the header as it stands, sound or not; `None` if the bytes are too few.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let (high, low): (u32, u32) = at(bytes, field::LSN)?;
        Some(Header {
            lsn: Lsn(u64::from(high) << 32 | u64::from(low)),
            checksum: at(bytes, field::CHECKSUM)?,
            lower: at(bytes, field::LOWER)?,
            upper: at(bytes, field::UPPER)?,
            special: at(bytes, field::SPECIAL)?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A page of `size` bytes with these items, laid down as a server does.
    pub(crate) fn page_of(size: usize, items: &[&[u8]]) -> Vec<u8> {
        let mut page = vec![0u8; size];
        let mut upper = size;
        for (index, item) in items.iter().enumerate() {
            upper = (upper - item.len()) & !7;
            page[upper..upper + item.len()].copy_from_slice(item);
            let bits = upper as u32 | 1 << 15 | (item.len() as u32) << 17;
            page[24 + index * 4..28 + index * 4].copy_from_slice(&bits.to_le_bytes());
        }
        let lower = 24 + items.len() * 4;
        page[0..4].copy_from_slice(&1u32.to_le_bytes());
        page[4..8].copy_from_slice(&0x2345u32.to_le_bytes());
        let shorts = [(12, lower), (14, upper), (16, size), (18, size | 4)];
        for (at, value) in shorts {
            page[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        page
    }

    #[test]
    fn items_are_found_by_number() {
        for size in [1024, 8192, 32768] {
            let bytes = page_of(size, &[b"first", b"second item"]);
            let page = DataPage::new(&bytes).expect("sound");
            assert_eq!(page.header().lsn, Lsn(0x1_0000_2345));
            assert_eq!(page.item_count(), 2);
            assert_eq!(page.item_bytes(1), Some(&b"first"[..]));
            assert_eq!(page.item_bytes(2), Some(&b"second item"[..]));
            assert_eq!((page.item_bytes(0), page.item_bytes(3)), (None, None));
            assert!(page.special().is_empty());
        }
    }

    #[test]
    fn only_items_that_are_there_have_bytes() {
        let mut bytes = page_of(8192, &[b"one", b"two", b"three", b"four"]);
        // Unused, redirect to 4, dead without and with storage.
        bytes[24..28].copy_from_slice(&0u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&(4u32 | 2 << 15).to_le_bytes());
        bytes[32..36].copy_from_slice(&(3u32 << 15).to_le_bytes());
        bytes[38] |= 1;
        let page = DataPage::new(&bytes).expect("sound");
        let states: Vec<_> = page.items().map(|(_, item)| item.state).collect();
        use ItemState::*;
        assert_eq!(states, [Unused, Redirect, Dead, Dead]);
        assert_eq!(page.item(2).map(|item| item.offset), Some(4));
        let all: Vec<_> = (1..=4).map(|number| page.item_bytes(number)).collect();
        assert_eq!(all, [None, None, None, Some(&b"four"[..])]);
    }

    #[test]
    fn headers_that_contradict_themselves_are_refused() {
        let sound = page_of(8192, &[b"item"]);
        assert!(DataPage::new(&sound).is_some());
        assert!(DataPage::new(&sound[..4096]).is_none());
        assert!(DataPage::new(&[0; 8192]).is_none());
        assert!(DataPage::is_zero(&[0; 8192]) && !DataPage::is_zero(&sound));
        // lower below the header, above upper; upper above special; special beyond the page and
        // not aligned; another layout version; another size.
        for (at, value) in
            [(12, 20), (12, 8190), (14, 8193), (16, 8200), (16, 8188), (18, 8195), (18, 4100)]
        {
            let mut bytes = sound.clone();
            bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
            assert!(DataPage::new(&bytes).is_none(), "{at}: {value}");
        }
    }

    #[test]
    fn an_item_outside_of_its_place_has_no_bytes() {
        let mut bytes = page_of(8192, &[b"item"]);
        for bits in [8190 | 1 << 15 | 8 << 17, 100u32 | 1 << 15 | 8 << 17] {
            bytes[24..28].copy_from_slice(&bits.to_le_bytes());
            let page = DataPage::new(&bytes).expect("sound header");
            assert_eq!(page.item_bytes(1), None);
        }
    }
}
