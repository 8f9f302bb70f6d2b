//! What records do to the page of a table: one that is whole, or one of which the lengths are kept.

use crate::light_page::LightPage;
use crate::light_page::rows::Header;
use crate::page::{Packing, Page};
use walstat_format::cursor::at;
use walstat_format::data_page::heap_tuple::{HeapTuple, TUPLE_HEADER_BYTES, TupleBody, field};
use walstat_format::data_page::{Item, field as page_field};
use walstat_format::payload::heap::NewTuple;

/// A row that a record adds to a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewRow<'a> {
    /// The page's block.
    pub(crate) block: u32,
    /// The number of its line pointer.
    pub(crate) offset: u16,
    pub(crate) xmin: u32,
    pub(crate) xmax: u32,
    pub(crate) body: TupleBody<'a>,
}

impl NewRow<'_> {
    fn header(&self) -> Header {
        let NewRow { block, offset, xmin, xmax, body } = *self;
        let mut header: Header = [0; TUPLE_HEADER_BYTES];
        put_in(&mut header, field::XMIN, xmin.to_le_bytes());
        put_in(&mut header, field::XMAX, xmax.to_le_bytes());
        put_in(&mut header, field::CTID, ctid((block, offset)));
        put_in(&mut header, field::INFOMASK2, body.infomask2.to_le_bytes());
        put_in(&mut header, field::INFOMASK, body.infomask.to_le_bytes());
        put_in(&mut header, field::HOFF, [body.hoff]);
        header
    }
}

/// `t_ctid` of a row that leads to this place.
pub(crate) fn ctid((block, offset): (u32, u16)) -> [u8; 6] {
    let [low0, low1, high0, high1] = block.to_le_bytes();
    let [a, b] = offset.to_le_bytes();
    [high0, high1, low0, low1, a, b]
}

/// Writes into a row's header.
pub(crate) fn put_in<const N: usize>(header: &mut Header, at: usize, bytes: [u8; N]) {
    if let Some(place) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = bytes;
    }
}

/// A table's page. Each change says `None` where the page cannot be what the record takes it for.
pub(crate) trait TablePage {
    /// Adds a row under a number that is free, or the next one.
    fn add_row(&mut self, row: &NewRow<'_>) -> Option<()>;
    /// The same of a row that has columns in common with row `old`.
    fn add_update(&mut self, row: &NewRow<'_>, new: &NewTuple<'_>, old: u16) -> Option<()>;
    /// Changes the header of a row.
    fn change_row(&mut self, number: u16, change: impl FnOnce(&mut Header)) -> Option<()>;
    /// Overwrites the first columns of a row.
    fn overwrite(&mut self, number: u16, columns: &[u8]) -> Option<()>;
    /// Sets a line pointer, to one without a row.
    fn set_item(&mut self, number: u16, item: Item) -> Option<()>;
    /// Cuts free line pointers off the end; at least `keep` stay.
    fn cut_unused(&mut self, keep: u16) -> Option<()>;
    /// Packs the rows at the end of the page.
    fn pack(&mut self, packing: Packing) -> Option<()>;
    /// Clears and sets bits of `pd_flags`.
    fn change_flags(&mut self, clear: u16, set: u16) -> Option<()>;
    /// `PageSetPrunable`: the oldest xid of those that may leave something to prune.
    fn note_prunable(&mut self, xid: u32) -> Option<()>;
}

impl TablePage for Page {
    fn add_row(&mut self, row: &NewRow<'_>) -> Option<()> {
        self.add_parts(row.offset, [&row.header(), row.body.beyond])
    }

    fn add_update(&mut self, row: &NewRow<'_>, new: &NewTuple<'_>, old: u16) -> Option<()> {
        let old = HeapTuple::parse(self.tuple(old)?)?;
        let header = usize::from(new.body.hoff).checked_sub(TUPLE_HEADER_BYTES)?;
        let beyond = new.rebuilt_from(header, old.body.data())?;
        self.add_row(&NewRow { body: TupleBody { beyond: &beyond, ..row.body }, ..*row })
    }

    fn change_row(&mut self, number: u16, change: impl FnOnce(&mut Header)) -> Option<()> {
        change(self.tuple_mut(number)?.first_chunk_mut()?);
        Some(())
    }

    fn overwrite(&mut self, number: u16, columns: &[u8]) -> Option<()> {
        let tuple = self.tuple_mut(number)?;
        let begin = usize::from(*tuple.get(field::HOFF)?);
        tuple.get_mut(begin..)?.get_mut(..columns.len())?.copy_from_slice(columns);
        Some(())
    }

    fn set_item(&mut self, number: u16, item: Item) -> Option<()> {
        Page::set_item(self, number, item)
    }

    fn cut_unused(&mut self, keep: u16) -> Option<()> {
        Page::cut_unused(self, keep)
    }

    fn pack(&mut self, packing: Packing) -> Option<()> {
        Page::pack(self, packing)
    }

    fn change_flags(&mut self, clear: u16, set: u16) -> Option<()> {
        let flags: u16 = self.field(page_field::FLAGS)?;
        self.put_u16(page_field::FLAGS, flags & !clear | set)
    }

    fn note_prunable(&mut self, xid: u32) -> Option<()> {
        let before: u32 = at(self.bytes(), page_field::PRUNE_XID)?;
        // Xids wrap around: the sign of the difference tells which one is older.
        if before == 0 || (xid.wrapping_sub(before) as i32) < 0 {
            self.put_u32(page_field::PRUNE_XID, xid)?;
        }
        Some(())
    }
}

/// No length depends on `pd_flags` and `pd_prune_xid`.
impl TablePage for LightPage {
    #[inline]
    fn add_row(&mut self, row: &NewRow<'_>) -> Option<()> {
        let bytes = TUPLE_HEADER_BYTES + row.body.beyond.len();
        LightPage::add_row(self, row.offset, &row.header(), bytes)
    }

    #[inline]
    fn add_update(&mut self, row: &NewRow<'_>, new: &NewTuple<'_>, old: u16) -> Option<()> {
        let columns = self.column_bytes(old)?;
        let (prefix, suffix) = (usize::from(new.prefix), usize::from(new.suffix));
        (prefix <= columns && suffix <= columns).then_some(())?;
        let bytes = TUPLE_HEADER_BYTES + row.body.beyond.len() + prefix + suffix;
        LightPage::add_row(self, row.offset, &row.header(), bytes)
    }

    #[inline]
    fn change_row(&mut self, number: u16, change: impl FnOnce(&mut Header)) -> Option<()> {
        LightPage::change_row(self, number, change)
    }

    fn overwrite(&mut self, number: u16, columns: &[u8]) -> Option<()> {
        (columns.len() <= self.column_bytes(number)?).then_some(())
    }

    fn set_item(&mut self, number: u16, item: Item) -> Option<()> {
        LightPage::set_item(self, number, item)
    }

    fn cut_unused(&mut self, keep: u16) -> Option<()> {
        LightPage::cut_unused(self, keep)
    }

    fn pack(&mut self, _: Packing) -> Option<()> {
        LightPage::pack(self)
    }

    fn change_flags(&mut self, _: u16, _: u16) -> Option<()> {
        Some(())
    }

    fn note_prunable(&mut self, _: u32) -> Option<()> {
        Some(())
    }
}
