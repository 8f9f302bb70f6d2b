//! What lies in a record's payload and cannot be, so that redo ends at it or reads what is not there: offset
//! numbers that no page has, lists that are longer than the data, images that are missing or do not unpack to
//! a page, blocks that are marked to be made anew and are not.
//!
//! Not for block references ([`crate::block::needed`]), and not for what only the pages themselves could
//! tell.

mod blocks;
mod by_type;
mod data;
mod held;
mod images;
mod lengths;
mod lists;
mod number;
mod usual;

use crate::cursor::at;
use crate::payload::xlog;
use crate::record::Record;
use crate::rmgr::{RecordType, TRANSACTION, XLOG};
use blocks::BLOCKS;
use data::DATA;
use lengths::LENGTHS;
use serde::{Deserialize, Serialize};
use std::cell::LazyCell;
use usual::{Look, Place};

/// No page of a table, B-tree or hash index has more line pointers, whatever its size: a page of 32 kB has
/// room for 1,637 (`MaxIndexTuplesPerPage`).
pub const OFFSET_MAX: u16 = 2048;

/// What a record contradicts itself in, or others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contradiction {
    /// An offset number that no page has.
    Offset(u16),
    /// The offset numbers of entries that are deleted do not rise.
    NotRising,
    /// Its main data are fewer than redo reads, or than its lists.
    TooShort,
    /// A BRIN index with 0 pages in a range, which redo divides by.
    NoRange,
    /// A fork that no relation has.
    Fork(u32),
    /// A transaction id that was not assigned, as a later record with the next one says.
    UnassignedXid {
        /// It.
        xid: u32,
        /// The next one that was to be.
        next: u32,
    },
    /// What is wrong with the block of this id.
    Block(u8, BlockFault),
}

/// What of a block is not as redo takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockFault {
    /// There is none of that id, which redo reads for what the main data say.
    None,
    /// Redo reads more of its data than there are.
    Data,
    /// Its data go on after the end of their lists.
    TooLong,
    /// Redo wants an image of it, and there is none that is replayed.
    NoImage,
    /// Its compressed image does not unpack to a page, but to so many bytes, hole included; `None`: to
    /// nothing.
    Image(Option<u32>),
    /// The hole of its compressed image goes beyond the page.
    Hole,
    /// It is marked to be made anew (`BKPBLOCK_WILL_INIT`), or not, and redo does the other.
    WillInit(bool),
    /// It is the same page as the one of this id, and redo holds both at once.
    Twice(u8),
}

/// Whether data of a record of this type that are too few are fewer than a structure which redo reads, and no
/// list.
pub fn has_fixed_length(record: RecordType) -> bool {
    let parsed = [xlog::CHECKPOINT_SHUTDOWN, xlog::CHECKPOINT_ONLINE, xlog::OVERWRITE_CONTRECORD];
    let (rmgr, info) = (record.rmgr, record.info());
    // The end of a transaction has lists as well, as what vacuum does to a page.
    let has_lists = rmgr == TRANSACTION || usual::look(rmgr, info) == Look::ListsIfRedone;
    rmgr == XLOG && parsed.contains(&info) || !has_lists && LENGTHS.has(rmgr, info)
}

/// Whether a record has to be looked at by [`contradiction`]. One of the usual form of its type needs not:
/// with one block, whose page is restored from an image as it is stored, or redone with its data.
#[inline(always)]
pub fn may_contradict(record: &Record<'_>) -> bool {
    !usual::is_usual(record)
}

/// What a record contradicts itself in; `None`: in nothing, or in what is not at hand.
#[inline(never)]
pub fn contradiction(record: &Record<'_>) -> Option<Contradiction> {
    // Few records have to be asked for more than their blocks.
    let main = LazyCell::new(|| record.main_data());
    // Numbers lie in front, and that is at hand also where the rest is not.
    let start = || main.as_deref().or_else(|| Some(record.main_data_start()));
    in_blocks(record, start).or_else(|| in_main_data(record, || main.as_deref()))
}

/// What is wrong with its blocks, or with one that there is not.
fn in_blocks<'m>(
    record: &Record<'_>,
    main: impl Fn() -> Option<&'m [u8]>,
) -> Option<Contradiction> {
    let (rmgr, info) = (record.header.rmgr, record.header.rmgr_info());
    let taken = BLOCKS.find(rmgr, info, record.version);
    let reads = DATA.find(rmgr, info, record.version);
    let mut ids = 0_u64;
    for block in record.blocks() {
        let is_first = ids == 0;
        ids |= 1 << block.id;
        // A server looks at the mark first.
        if taken.is_some_and(|blocks| blocks.is_wrong(record, &block, &main)) {
            return Some(Contradiction::Block(block.id, BlockFault::WillInit(block.will_init)));
        }
        let of_two = taken.filter(|_| !is_first);
        if let Some(other) = of_two.and_then(|it| held::same_page(record, &block, it, &main)) {
            return Some(Contradiction::Block(block.id, BlockFault::Twice(other)));
        }
        let wrong = images::wrong_image(record, &block);
        if wrong.is_some() {
            return wrong;
        }
        if reads.is_some_and(|reads| reads.is_short(record, &block, &main)) {
            return Some(Contradiction::Block(block.id, BlockFault::Data));
        }
    }
    let is_missing = |id: &u8| ids & 1 << *id == 0;
    taken?.asked_for(&main).find(is_missing).map(|id| Contradiction::Block(id, BlockFault::None))
}

/// What is wrong with its main data, or with lists that they tell the length of.
fn in_main_data<'m>(
    record: &Record<'_>,
    main: impl Fn() -> Option<&'m [u8]>,
) -> Option<Contradiction> {
    let (rmgr, info) = (record.header.rmgr, record.header.rmgr_info());
    let least = LENGTHS.find(rmgr, info, record.version);
    if least.is_some_and(|least| record.parts.main_data_bytes < *least) {
        return Some(Contradiction::TooShort);
    }
    match usual::look(rmgr, info) {
        Look::Blocks => None,
        // Beside an image redo does not look at them, unless the page is made anew.
        Look::Offsets([first, _]) if record.parts.fpi_count > 0 && first.most > 1 => None,
        Look::Offsets(places) => wrong_offset(main()?, places),
        Look::Lists | Look::ListsIfRedone => lists::wrong(record, main()?),
    }
}

/// The first offset number at these places that no page has.
fn wrong_offset(main: &[u8], places: [Place; 2]) -> Option<Contradiction> {
    let wrong = |place: Place| match at::<u16>(main, place.at.into()) {
        None => Some(Contradiction::TooShort),
        Some(number) => {
            let is_possible = (place.least..=place.most).contains(&number);
            (!is_possible).then_some(Contradiction::Offset(number))
        }
    };
    places.into_iter().find_map(wrong)
}
