//! Rows of a table's page, by their lengths and flags.

use super::{Items, LightPage, OFFSET, Places, Pointers, Shape, normal, refill};
use walstat_format::cursor::at;
use walstat_format::data_page::heap_tuple::{self, HeapTuple, TUPLE_HEADER_BYTES, field};
use walstat_format::data_page::{Item, ItemState};

/// A row's header.
pub(crate) type Header = [u8; TUPLE_HEADER_BYTES];

/// The rows of a page, by line pointers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rows {
    runs: Vec<RowRun>,
    /// Whether each run is of one row only: then a row is found by its number. So it is where few rows
    /// are like their neighbours.
    is_spread: bool,
}

/// Line pointers that follow each other and say the same of their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowRun {
    /// The line pointer, without the offset if there is a row.
    pointer: u32,
    xmax: u32,
    /// `t_infomask2` and `t_infomask`.
    masks: u32,
    hoff: u16,
    count: u16,
}

/// Fewer runs are gone over in no time.
const FEW_RUNS: usize = 24;

/// What is to be told of a row that is frozen or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowState {
    /// `t_xmax`.
    pub(crate) xmax: u32,
    /// `t_infomask`.
    pub(crate) infomask: u16,
}

impl RowState {
    /// Of a row; `None` for bytes that cannot be one.
    pub(crate) fn of(tuple: &[u8]) -> Option<RowState> {
        let row = HeapTuple::parse(tuple)?;
        Some(RowState { xmax: row.xmax, infomask: row.body.infomask })
    }
}

impl RowRun {
    const UNUSED: RowRun = RowRun { pointer: 0, xmax: 0, masks: 0, hoff: 0, count: 1 };

    /// A line pointer without a row.
    fn bare(pointer: u32) -> RowRun {
        RowRun { pointer, ..RowRun::UNUSED }
    }

    /// One row.
    #[inline(always)]
    fn of(pointer: u32, header: &Header) -> RowRun {
        RowRun {
            pointer,
            xmax: at(header, field::XMAX).unwrap_or_default(),
            masks: at(header, field::INFOMASK2).unwrap_or_default(),
            hoff: u16::from(header[field::HOFF]),
            count: 1,
        }
    }

    /// What is kept of a row's header, and zeros.
    fn header(&self) -> Header {
        let mut header = [0; TUPLE_HEADER_BYTES];
        header[field::XMAX..field::CID].copy_from_slice(&self.xmax.to_le_bytes());
        header[field::INFOMASK2..field::HOFF].copy_from_slice(&self.masks.to_le_bytes());
        header[field::HOFF] = self.hoff as u8;
        header
    }

    #[inline(always)]
    fn is_like(&self, other: &RowRun) -> bool {
        (self.pointer, self.xmax, self.masks, self.hoff)
            == (other.pointer, other.xmax, other.masks, other.hoff)
    }

    fn item(&self) -> Item {
        Item::of(self.pointer)
    }

    /// Bytes of the row, if there is one.
    fn row_bytes(&self) -> Option<usize> {
        let item = self.item();
        item.has_storage().then_some(usize::from(item.bytes))
    }

    /// What is to be told of the row, if it can be one.
    fn state(&self) -> Option<RowState> {
        self.column_bytes()?;
        Some(RowState { xmax: self.xmax, infomask: (self.masks >> 16) as u16 })
    }

    /// Bytes of the row's columns, if it can be one.
    fn column_bytes(&self) -> Option<usize> {
        let beyond = self.row_bytes()?.checked_sub(TUPLE_HEADER_BYTES)?;
        let (infomask2, infomask) = (self.masks as u16, (self.masks >> 16) as u16);
        heap_tuple::column_bytes(infomask2, infomask, self.hoff as u8, beyond)
    }
}

impl Rows {
    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<RowRun>()
    }

    /// Takes over the rows of a page.
    pub(super) fn read(&mut self, page: &Pointers<'_>) -> Option<()> {
        self.runs.clear();
        self.is_spread = false;
        let (mut shape, mut stored) = (Shape::default(), 0);
        let mut last = RowRun { count: 0, ..RowRun::UNUSED };
        for pointer in page.pointers {
            let pointer = u32::from_le_bytes(*pointer);
            if pointer & !OFFSET != shape.pointer {
                shape = Shape::of(pointer);
            }
            stored += shape.room;
            let run = if shape.has_storage {
                RowRun::of(shape.pointer, page.item(pointer, &shape)?.first_chunk()?)
            } else {
                RowRun::bare(pointer)
            };
            if last.is_like(&run) {
                last.count += 1;
            } else {
                self.runs.extend((last.count > 0).then_some(last));
                last = run;
            }
        }
        self.runs.extend((last.count > 0).then_some(last));
        page.have_room(stored)?;
        self.spread_if_many(page.pointers.len());
        Some(())
    }

    /// Puts the rows into a page that is made anew.
    pub(super) fn write(&self, mut places: Places<'_>) -> Option<()> {
        for run in &self.runs {
            let shape = Shape::of(run.pointer);
            for _ in 0..run.count {
                if shape.has_storage {
                    *places.next(&shape)?.first_chunk_mut()? = run.header();
                } else {
                    places.set(run.pointer)?;
                }
            }
        }
        Some(())
    }

    pub(super) fn become_like(&mut self, other: &Rows) {
        refill(&mut self.runs, &other.runs);
        self.is_spread = other.is_spread;
    }

    #[inline(always)]
    fn push(&mut self, run: RowRun) {
        match self.runs.last_mut() {
            Some(last) if last.is_like(&run) && !self.is_spread => last.count += 1,
            _ => {
                self.make_room();
                self.runs.push(run);
            }
        }
    }

    /// Makes room for two runs more, and few others: there are many pages, each with few.
    #[inline]
    fn make_room(&mut self) {
        if self.runs.capacity() - self.runs.len() < 2 {
            self.runs.reserve_exact(2 + self.runs.len() / 4);
        }
    }

    /// The run of a line pointer, and how many of it lie before.
    #[inline]
    fn find(&self, number: u16) -> Option<(usize, u16)> {
        let mut before = number.checked_sub(1)?;
        if self.is_spread {
            return Some((before.into(), 0));
        }
        for (index, run) in self.runs.iter().enumerate() {
            if before < run.count {
                return Some((index, before));
            }
            before -= run.count;
        }
        None
    }

    fn get(&self, number: u16) -> Option<&RowRun> {
        self.runs.get(self.find(number)?.0)
    }

    /// Sets what a line pointer of `items` says.
    fn set(&mut self, number: u16, run: RowRun, items: u16) -> Option<()> {
        let (index, before) = self.find(number)?;
        let own = self.runs.get_mut(index)?;
        if own.count == 1 {
            *own = run;
            return Some(());
        }
        if own.is_like(&run) {
            return Some(());
        }
        let old = *own;
        self.make_room();
        let own = self.runs.get_mut(index)?;
        let after = old.count - before - 1;
        own.count = if before > 0 { before } else { after };
        match (before, after) {
            (0, _) => match index.checked_sub(1).and_then(|index| self.runs.get_mut(index)) {
                Some(left) if left.is_like(&run) => left.count += 1,
                _ => self.runs.insert(index, run),
            },
            (_, 0) => self.runs.insert(index + 1, run),
            _ => _ = self.runs.splice(index + 1..=index, [run, RowRun { count: after, ..old }]),
        }
        self.spread_if_many(items.into());
        Some(())
    }

    fn spread_if_many(&mut self, items: usize) {
        let runs = self.runs.len();
        if runs > FEW_RUNS && 2 * runs > items && !self.is_spread {
            self.is_spread = true;
            self.runs = self.each().map(|run| RowRun { count: 1, ..*run }).collect();
        }
    }

    /// By line pointer.
    fn each(&self) -> impl Iterator<Item = &RowRun> {
        self.runs.iter().flat_map(|run| std::iter::repeat_n(run, run.count.into()))
    }
}

impl LightPage {
    fn rows(&self) -> Option<&Rows> {
        match &self.items {
            Items::Table(rows) => Some(rows),
            Items::BTree(_) => None,
        }
    }

    fn rows_mut(&mut self) -> Option<&mut Rows> {
        match &mut self.items {
            Items::Table(rows) => Some(rows),
            Items::BTree(_) => None,
        }
    }

    /// Line pointer `number` of a table's page; where there is a row, not where it lies.
    pub(crate) fn item(&self, number: u16) -> Option<Item> {
        self.rows()?.get(number).map(RowRun::item)
    }

    /// What is to be told of the rows, by line pointer.
    pub(crate) fn row_states(&self) -> Vec<Option<RowState>> {
        let rows = self.rows().into_iter().flat_map(Rows::each);
        rows.map(RowRun::state).collect()
    }

    /// Bytes of the columns of a row.
    pub(crate) fn column_bytes(&self, number: u16) -> Option<usize> {
        self.rows()?.get(number)?.column_bytes()
    }

    /// Adds a row with so many bytes under a number that is free, or the next one (`PageAddItem`).
    #[inline]
    pub(crate) fn add_row(&mut self, number: u16, header: &Header, bytes: usize) -> Option<()> {
        let items = self.extent.items();
        let run = RowRun::of(normal(bytes)?, header);
        let Items::Table(rows) = &mut self.items else { return None };
        if number == items + 1 {
            self.extent.grow(number, bytes)?;
            rows.push(run);
            rows.spread_if_many(number.into());
            return Some(());
        }
        (rows.get(number)?.item().state == ItemState::Unused).then_some(())?;
        self.extent.grow(number, bytes)?;
        rows.set(number, run, items)
    }

    /// Changes the header of a row; of it is kept what lengths need.
    #[inline]
    pub(crate) fn change_row(
        &mut self,
        number: u16,
        change: impl FnOnce(&mut Header),
    ) -> Option<()> {
        let items = self.extent.items();
        let rows = self.rows_mut()?;
        let run = rows.get(number)?;
        run.row_bytes()?;
        let (pointer, mut header) = (run.pointer, run.header());
        change(&mut header);
        rows.set(number, RowRun::of(pointer, &header), items)
    }

    /// Sets a line pointer, to one without a row.
    pub(crate) fn set_item(&mut self, number: u16, item: Item) -> Option<()> {
        let items = self.extent.items();
        self.rows_mut()?.set(number, RowRun::bare(item.bits()), items)
    }

    /// Cuts free line pointers off the end; at least `keep` stay.
    pub(crate) fn cut_unused(&mut self, keep: u16) -> Option<()> {
        let mut items = self.extent.items();
        let rows = self.rows_mut()?;
        while let Some(last) = rows.runs.last_mut()
            && items > keep
            && last.item().state == ItemState::Unused
        {
            let gone = last.count.min(items - keep);
            items -= gone;
            last.count -= gone;
            if last.count == 0 {
                rows.runs.pop();
            }
        }
        self.extent.cut(items);
        Some(())
    }

    /// Packs the rows at the end of the page (`PageRepairFragmentation`).
    pub(crate) fn pack(&mut self) -> Option<()> {
        let mut stored = 0;
        for run in &mut self.rows_mut()?.runs {
            if run.item().state == ItemState::Unused {
                *run = RowRun { count: run.count, ..RowRun::UNUSED };
            } else if let Some(bytes) = run.row_bytes() {
                stored += usize::from(run.count) * bytes.next_multiple_of(8);
            }
        }
        self.extent.pack(stored)
    }
}
