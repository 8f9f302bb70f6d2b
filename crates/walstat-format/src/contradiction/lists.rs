//! Whether lists, and structures of a length of their own, are as long as they say, and what is in the lists.

mod brin;
mod btree;
mod generic;
mod gin;
mod gist;
mod hash;
mod heap2;
mod spgist;

use super::{Contradiction, OFFSET_MAX};
use crate::cursor::{Cursor, List, at};
use crate::data_page::index_tuple;
use crate::payload::checkpoint::Checkpoint;
use crate::payload::invalidation::Invalidation;
use crate::payload::multixact::{self, Create};
use crate::payload::prepare::Prepare;
use crate::payload::standby::{self, RunningXacts};
use crate::payload::tablespace;
use crate::payload::xact::{self, Assignment, End};
use crate::payload::xlog::{self, OverwriteContrecord};
use crate::payload::{relmap, rmgr_info};
use crate::record::Record;
use crate::rmgr::{
    BRIN, BTREE, DATABASE, GENERIC, GIN, GIST, HASH, HEAP2, MULTIXACT, RELMAP, SPGIST, STANDBY,
    STORAGE, TABLESPACE, TRANSACTION, XLOG,
};
use crate::version::{Release, Version};
use std::borrow::Cow;

type Checked = Result<(), Contradiction>;

/// What is there of something that redo reads to its end.
fn whole<T>(parsed: Option<T>) -> Result<T, Contradiction> {
    parsed.ok_or(Contradiction::TooShort)
}

/// The data of a block that redo reads, which are none at all if it has none. `None`: it does not, since the
/// page is restored from an image or there is no such block, or they are not at hand.
fn redone<'a>(record: &Record<'a>, id: u8) -> Option<Cow<'a, [u8]>> {
    let block = record.blocks().find(|block| block.id == id)?;
    (!record.restores(&block)).then(|| record.block_data(&block)).flatten()
}

/// The same of a page that is made anew, whatever image there is of it.
fn made<'a>(record: &Record<'a>, id: u8) -> Option<Cow<'a, [u8]>> {
    record.blocks().find(|block| block.id == id).and_then(|block| record.block_data(&block))
}

/// Whether redo changes the page of a block, since it is not restored from an image.
fn is_redone(record: &Record<'_>, id: u8) -> bool {
    record.blocks().find(|block| block.id == id).is_some_and(|block| !record.restores(&block))
}

/// How long the index entry at a place says that it is (`IndexTupleSize`).
fn stated_bytes(data: &[u8], place: usize) -> Option<usize> {
    let info: u16 = at(data, place + index_tuple::INFO_AT)?;
    Some(usize::from(info & index_tuple::SIZE_MASK))
}

/// The same, and at least its header.
fn entry_bytes(data: &[u8], place: usize) -> usize {
    stated_bytes(data, place).unwrap_or(0).max(index_tuple::HEADER_BYTES)
}

/// An offset number from `least` on: 1 where something is looked up, 0 where it is put.
fn is_possible(offset: u16, least: u16) -> Checked {
    let is_possible = (least..=OFFSET_MAX).contains(&offset);
    if is_possible { Ok(()) } else { Err(Contradiction::Offset(offset)) }
}

/// Offset numbers of entries that are deleted together (`PageIndexMultiDelete`): two are deleted one by one,
/// more have to rise.
fn deleted(offsets: &List<'_, u16>) -> Checked {
    each_is_possible(offsets)?;
    let mut before = 0;
    let mut rises = |offset: u16| std::mem::replace(&mut before, offset) < offset;
    if offsets.len() > 2 && !offsets.iter().all(&mut rises) {
        return Err(Contradiction::NotRising);
    }
    Ok(())
}

/// Offset numbers of what is on a page.
fn each_is_possible(offsets: &List<'_, u16>) -> Checked {
    offsets.iter().try_for_each(|offset| is_possible(offset, 1))
}

/// What is wrong in the lists of a record.
pub(super) fn wrong(record: &Record<'_>, main: &[u8]) -> Option<Contradiction> {
    let checked = match record.header.rmgr {
        HEAP2 => heap2::checked(record, main),
        BTREE => btree::checked(record, main),
        HASH => hash::checked(record, main),
        GIN => gin::checked(record, main),
        GIST => gist::checked(record, main),
        SPGIST => spgist::checked(record, main),
        BRIN => brin::checked(record, main),
        GENERIC => generic::checked(record),
        STORAGE => fork(main),
        rmgr => {
            let is_whole = is_whole(rmgr, record.header.info, main, record.version);
            if is_whole { Ok(()) } else { Err(Contradiction::TooShort) }
        }
    };
    checked.err()
}

/// The fork that an `xl_smgr_create` makes: a server looks up its name in a table of four, unchecked.
fn fork(main: &[u8]) -> Checked {
    let fork: u32 = whole(at(main, 12))?;
    if fork < 4 { Ok(()) } else { Err(Contradiction::Fork(fork)) }
}

/// Whether the main data are as long as the lists in them, or as what redo reads of them.
fn is_whole(rmgr: u8, info: u8, main: &[u8], version: &Version) -> bool {
    let mut cursor = Cursor::new(main);
    match (rmgr, rmgr_info(info)) {
        (XLOG, xlog::CHECKPOINT_SHUTDOWN | xlog::CHECKPOINT_ONLINE) => {
            Checkpoint::parse(main, version.checkpoint).is_some()
        }
        (XLOG, xlog::OVERWRITE_CONTRECORD) => OverwriteContrecord::parse(main).is_some(),
        (TRANSACTION, xact::PREPARE) => Prepare::parse(main, version).is_some(),
        (TRANSACTION, xact::ASSIGNMENT) => Assignment::parse(main).is_some(),
        (TRANSACTION, xact::INVALIDATIONS) => cursor.counted_list::<Invalidation>().is_some(),
        (TRANSACTION, _) => End::parse(info, main, version).is_some(),
        (DATABASE, opcode) if database_drop(version) == Some(opcode) => {
            cursor.take(4).and_then(|_| cursor.counted_list::<u32>()).is_some()
        }
        (TABLESPACE, tablespace::CREATE) => tablespace::created_at(main).is_some(),
        (MULTIXACT, multixact::CREATE_ID) => Create::parse(main, version).is_some(),
        (RELMAP, relmap::UPDATE) => relmap::has_map(main),
        (STANDBY, standby::LOCK) => standby::lock_xids(main).is_some(),
        (STANDBY, standby::RUNNING_XACTS) => RunningXacts::parse(main).is_some(),
        (STANDBY, standby::INVALIDATIONS) => standby::has_invalidations(main),
        _ => true,
    }
}

/// `XLOG_DBASE_DROP` with a list of tablespaces (`xl_dbase_drop_rec`), from 13 on.
fn database_drop(version: &Version) -> Option<u8> {
    let has_list = version.since(Release::V13);
    has_list.then_some(if version.since(Release::V15) { 0x20 } else { 0x10 })
}
