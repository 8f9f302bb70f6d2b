//! Tables: several rows at once, pruning, vacuum, freezing (`heap_xlog_*` in
//! `src/backend/access/heap/heapam.c`, `pruneheap.c`).

use super::heap::{self as row, ROW_HEADER_BYTES};
use super::table_page::{NewRow, TablePage, put_in};
use super::{Before, DataBytes, Redo, Unfrozen};
use crate::light_page::rows::RowState;
use crate::page::Page;
use crate::page_view::PageView;
use crate::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::data_page::heap_tuple::{HeapTuple, TUPLE_HEADER_BYTES, field, infomask};
use walstat_format::data_page::{Item, ItemState, PD_ALL_VISIBLE};
use walstat_format::payload::heap::{Lock, OPCODE_MASK, insert_flag};
use walstat_format::payload::heap2::{LOCK_UPDATED, MULTI_INSERT, MultiInsert, NEW_CID, VISIBLE};
use walstat_format::payload::prune::Prune;
use walstat_format::payload::prune_work;
use walstat_format::payload::prune_work::{Part, Work, work};

/// `SizeOfMultiInsertTuple`: length, and what records have in place of a tuple's header.
const MULTI_INSERT_HEADER_BYTES: usize = 2 + ROW_HEADER_BYTES;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = redo.page(before, 0)?;
    change(redo, &mut page)?;
    Some(page)
}

/// Changes the page where it lies.
pub(crate) fn change(redo: Redo<'_>, page: &mut impl TablePage) -> Option<()> {
    let record = redo.record;
    let (info, main) = (record.header.info, record.main_data());
    let is_visible = info & OPCODE_MASK == VISIBLE && record.version.pages.visible_records;
    match info & OPCODE_MASK {
        MULTI_INSERT => multi_insert(redo, page, MultiInsert::parse(info, main)?),
        LOCK_UPDATED => row::lock(page, Lock::parse(main)?, None),
        _ if is_visible => page.change_flags(0, PD_ALL_VISIBLE),
        NEW_CID => None,
        _ => {
            let data = (redo.block.data_bytes > 0).then(|| redo.data());
            let done = Prune::parse(info, main, data, record.version)?;
            let work = work(info, main, record.version)?;
            prune(redo, page, &done, work)
        }
    }
}

fn multi_insert(redo: Redo<'_>, page: &mut impl TablePage, insert: MultiInsert<'_>) -> Option<()> {
    let (block, xmin) = (redo.block.block, redo.record.header.xid);
    let mut added = 0;
    for (offset, body) in insert.tuples(redo.data()) {
        page.add_row(&NewRow { block, offset, xmin, xmax: 0, body })?;
        added += 1;
    }
    (added == insert.count).then_some(())
}

fn prune(redo: Redo<'_>, page: &mut impl TablePage, done: &Prune<'_>, work: Work) -> Option<()> {
    let habits = &redo.record.version.pages;
    for (from, to) in done.redirected.iter() {
        let item = Item { state: ItemState::Redirect, offset: to, bytes: 0 };
        page.set_item(from, item)?;
    }
    done.dead.iter().try_for_each(|number| page.set_item(number, Item::DEAD))?;
    done.unused.iter().try_for_each(|number| page.set_item(number, Item::UNUSED))?;
    match work {
        Work::Prune => {
            page.pack(redo.packing())?;
            if habits.prune_cuts_items {
                page.cut_unused(0)?;
            }
        }
        Work::Vacuum if habits.vacuum_cuts_items => page.cut_unused(1)?,
        Work::Vacuum | Work::Freeze => {}
    }
    freeze(page, done)
}

fn freeze(page: &mut impl TablePage, done: &Prune<'_>) -> Option<()> {
    let plans = done.plans.iter().flat_map(|plan| std::iter::repeat_n(plan, plan.count.into()));
    for (number, plan) in done.frozen.iter().zip(plans) {
        page.change_row(number, |header| {
            put_in(header, field::XMAX, plan.xmax.to_le_bytes());
            put_in(header, field::INFOMASK2, masks(plan.infomask2, plan.infomask));
        })?;
    }
    for tuple in done.frozen_tuples.iter() {
        page.change_row(tuple.offset, |header| {
            put_in(header, field::XMAX, tuple.xmax.to_le_bytes());
            put_in(header, field::INFOMASK, tuple.infomask.to_le_bytes());
        })?;
    }
    Some(())
}

fn masks(infomask2: u16, infomask: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (infomask2.to_le_bytes(), infomask.to_le_bytes());
    [a, b, c, d]
}

pub(crate) fn data_bytes(
    redo: Redo<'_>,
    after: &PageView<'_>,
    before: Option<Before<'_>>,
) -> Option<DataBytes> {
    if redo.block.id != 0 {
        return DataBytes::exact(0);
    }
    let record = redo.record;
    let (info, main) = (record.header.info, record.main_data());
    match info & OPCODE_MASK {
        MULTI_INSERT => multi_insert_bytes(after, MultiInsert::parse(info, main)?),
        LOCK_UPDATED => DataBytes::exact(0),
        _ => {
            let seen = Seen { after, before };
            let counts = |work| seen.counts(work);
            let bytes = prune_work::data_bytes(info, main, record.version, counts)?;
            match before {
                Some(_) if prune_work::freezes_beside(main, record.version) => {
                    DataBytes::estimated(bytes)
                }
                Some(_) => DataBytes::exact(bytes),
                None if prune_work::is_counted(info, record.version) => DataBytes::exact(bytes),
                None => DataBytes::estimated(bytes),
            }
        }
    }
}

fn multi_insert_bytes(after: &PageView<'_>, insert: MultiInsert<'_>) -> Option<DataBytes> {
    let mut bytes = 0usize;
    for offset in insert.offsets() {
        let beyond = after.tuple(offset)?.len().checked_sub(TUPLE_HEADER_BYTES)?;
        bytes = bytes.next_multiple_of(2) + MULTI_INSERT_HEADER_BYTES + beyond;
    }
    DataBytes::exact(bytes)
}

/// A page after a record of pruning, and the page before it if it is known.
struct Seen<'p> {
    after: &'p PageView<'p>,
    before: Option<Before<'p>>,
}

impl Seen<'_> {
    /// How much of `work` was done.
    fn counts(&self, work: Part) -> usize {
        match work {
            Part::FrozenRows => self.frozen().count(),
            Part::FreezePlans => {
                let mut plans: Vec<_> = self.frozen().collect();
                plans.sort_unstable();
                plans.dedup();
                plans.len()
            }
            Part::Redirected => self.became(ItemState::Redirect),
            Part::Dead => self.became(ItemState::Dead),
            Part::Unused => self.became(ItemState::Unused) + self.cut_off(),
        }
    }

    /// How many line pointers say so now that did not before.
    fn became(&self, state: ItemState) -> usize {
        let own = (1..).zip(self.after.line_pointers()).filter(|(_, after)| after.state == state);
        own.filter(|&(number, after)| {
            let before = self.before.map(|page| page.item(number).unwrap_or(Item::UNUSED));
            before.is_none_or(|before| !same(before, after))
        })
        .count()
    }

    /// How many line pointers were in use and are not there any more.
    fn cut_off(&self) -> usize {
        let Some(before) = self.before else { return 0 };
        let cut = self.after.items() + 1..=before.items();
        let is_used = |number| before.item(number).is_some_and(|it| it.state != ItemState::Unused);
        cut.filter(|&number| is_used(number)).count()
    }

    /// Headers of the rows that were frozen, as far as plans tell them apart.
    fn frozen(&self) -> impl Iterator<Item = (u32, u16, u16)> + '_ {
        let rows = self.before.map(|before| before.row_states());
        (1..=self.after.items()).filter_map(move |number| {
            let after = HeapTuple::parse(self.after.tuple(number)?)?;
            let before = rows.as_ref().map(|rows| rows.get(usize::from(number - 1)).copied()?);
            let is_frozen =
                |infomask: u16| infomask & infomask::XMIN_FROZEN == infomask::XMIN_FROZEN;
            let became = is_frozen(after.body.infomask);
            let frozen = match before {
                Some(Some(RowState { xmax, infomask })) => {
                    became && !is_frozen(infomask) || after.xmax != xmax
                }
                Some(None) => false,
                None => became,
            };
            frozen.then_some((after.xmax, after.body.infomask2, after.body.infomask))
        })
    }
}

fn same(before: Item, after: Item) -> bool {
    before.state == after.state
        && (after.state != ItemState::Redirect || before.offset == after.offset)
}

pub(crate) fn inserted_rows(record: &WholeRecord<'_>) -> u16 {
    let (info, main) = (record.header.info, record.main_data());
    let is_insert = info & OPCODE_MASK == MULTI_INSERT;
    let insert = is_insert.then(|| MultiInsert::parse(info, main)).flatten();
    insert.map_or(0, |insert| insert.count)
}

/// What a record of this kind does to its page, if it is one of pruning, vacuum or freezing.
fn work_of(record: &WholeRecord<'_>) -> Option<Work> {
    let (info, main) = (record.header.info, record.main_data());
    let others = [MULTI_INSERT, LOCK_UPDATED, NEW_CID, VISIBLE];
    let is_other = others.contains(&(info & OPCODE_MASK));
    if is_other { None } else { work(info, main, record.version) }
}

/// Whether the record prunes; `None` if it does not freeze rows either.
pub(crate) fn prunes(record: &WholeRecord<'_>) -> Option<bool> {
    let work = work_of(record)?;
    (work != Work::Vacuum).then_some(work == Work::Prune)
}

/// Whether it is vacuum that prunes and freezes here, by one record for both.
pub(crate) fn is_vacuum_scan(record: &WholeRecord<'_>) -> bool {
    prune_work::is_scan(record.header.info, record.version)
}

/// What is left of the record where nothing is frozen.
pub(crate) fn unfrozen(record: &WholeRecord<'_>, block: &BlockRef) -> Option<Unfrozen> {
    let (info, main) = (record.header.info, record.main_data());
    work_of(record).filter(|_| prune_work::freezes(main, record.version))?;
    let done = Prune::parse(info, main, Some(record.data(block)), record.version)?;
    let frozen = prune_work::freeze_bytes(done.plans.len(), done.frozen.len());
    let left = usize::from(block.data_bytes).checked_sub(frozen)?;
    let does_more = prune_work::freezes_beside(main, record.version);
    Some(if does_more { Unfrozen::Data(left as u16) } else { Unfrozen::NoRecord })
}

/// Pruning and vacuum look at all rows of the page.
pub(crate) fn looks_at(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    block.id == 0 && work_of(record).is_some()
}

pub(crate) fn keeps_data(record: &WholeRecord<'_>) -> bool {
    let (info, main) = (record.header.info, record.main_data());
    info & OPCODE_MASK == MULTI_INSERT
        && MultiInsert::parse(info, main)
            .is_some_and(|insert| insert.flags & insert_flag::CONTAINS_NEW_TUPLE != 0)
}
