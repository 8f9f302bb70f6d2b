//! Lists of GIN indexes: rows, entries, and changes of compressed lists of rows.

use super::{Checked, entry_bytes, is_possible, made, redone, whole};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::{Cursor, at};
use crate::data_page::ITEM_POINTER_BYTES;
use crate::data_page::gin_page::{POSTING_ITEM_BYTES, POSTING_LIST_HEADER_BYTES};
use crate::payload::gin::{Insert, UpdateMeta, opcode, segment_action};
use crate::record::Record;

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    match record.header.rmgr_info() {
        opcode::CREATE_PTREE => {
            let mut cursor = Cursor::new(main);
            whole(cursor.field::<u32>().and_then(|bytes| cursor.take(bytes as usize))).map(|_| ())
        }
        opcode::INSERT => insert(record, main),
        opcode::VACUUM_DATA_LEAF_PAGE => {
            redone(record, 0).map_or(Ok(()), |data| leaf_actions(&data))
        }
        opcode::UPDATE_META_PAGE => update_meta(record, main),
        opcode::INSERT_LISTPAGE => {
            let tuples: i32 = whole(at(main, 4))?;
            made(record, 0).map_or(Ok(()), |data| entries(tuples, &data))
        }
        _ => Ok(()),
    }
}

fn insert(record: &Record<'_>, main: &[u8]) -> Checked {
    let insert = whole(Insert::parse(main))?;
    // Two blocks of children, after the flags.
    if !insert.is_leaf && main.len() < 10 {
        return Err(Contradiction::TooShort);
    }
    let Some(data) = redone(record, 0) else { return Ok(()) };
    if insert.is_data && insert.is_leaf {
        return leaf_actions(&data);
    }
    let offset: u16 = whole(at(&data, 0)).map_err(|_| Contradiction::Block(0, BlockFault::Data))?;
    let is_deleted = !insert.is_data && at::<u16>(&data, 2).is_some_and(|flag| flag & 0xFF != 0);
    is_possible(offset, is_deleted.into())?;
    let bytes = if insert.is_data { 2 + POSTING_ITEM_BYTES } else { 4 + entry_bytes(&data, 4) };
    if data.len() < bytes { Err(Contradiction::Block(0, BlockFault::Data)) } else { Ok(()) }
}

/// So many index entries, one right after the other.
fn entries(count: i32, data: &[u8]) -> Checked {
    let mut end = 0;
    for _ in 0..count {
        end += entry_bytes(data, end);
        if end > data.len() {
            return Err(Contradiction::Block(0, BlockFault::Data));
        }
    }
    Ok(())
}

fn update_meta(record: &Record<'_>, main: &[u8]) -> Checked {
    let tuples = whole(UpdateMeta::parse(main))?.tuples.cast_signed();
    let data = redone(record, 1).filter(|_| tuples > 0);
    let checked = data.map_or(Ok(()), |data| entries(tuples, &data));
    checked.map_err(|_| Contradiction::Block(1, BlockFault::Data))
}

/// `ginxlogRecompressDataLeaf`: what is done to the segments of a leaf of rows, as `ginRedoRecompress` in
/// `src/backend/access/gin/ginxlog.c` reads it.
fn leaf_actions(data: &[u8]) -> Checked {
    let mut cursor = Cursor::new(data);
    let mut actions = || {
        for _ in 0..cursor.field::<u16>()? {
            leaf_action(&mut cursor)?;
        }
        Some(())
    };
    actions().ok_or(Contradiction::Block(0, BlockFault::Data))
}

fn leaf_action(cursor: &mut Cursor<'_>) -> Option<()> {
    let (_segment, action): (u8, u8) = cursor.field()?;
    match action {
        segment_action::DELETE => Some(()),
        segment_action::INSERT | segment_action::REPLACE => {
            let packed: u16 = at(cursor.rest(), ITEM_POINTER_BYTES)?;
            let bytes = POSTING_LIST_HEADER_BYTES + usize::from(packed);
            cursor.take(bytes.next_multiple_of(2)).map(|_| ())
        }
        segment_action::ADD_ITEMS => {
            let rows: u16 = cursor.field()?;
            cursor.take(ITEM_POINTER_BYTES * usize::from(rows)).map(|_| ())
        }
        _ => None,
    }
}
