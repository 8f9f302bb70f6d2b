//! Lists of entries of GiST indexes.

use super::{Checked, deleted, entry_bytes, is_possible, is_redone, made, redone, whole};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::{Cursor, at};
use crate::payload::gist::{self, opcode};
use crate::record::Record;

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    match record.header.rmgr_info() {
        opcode::PAGE_UPDATE => page_update(record, main),
        opcode::DELETE => deleted(&whole(gist::deleted(main, record.version))?),
        opcode::PAGE_SPLIT => page_split(record, main),
        opcode::PAGE_DELETE if is_redone(record, 1) => is_possible(whole(at(main, 8))?, 1),
        _ => Ok(()),
    }
}

/// Offset numbers of entries that go, and the new ones.
fn page_update(record: &Record<'_>, main: &[u8]) -> Checked {
    let count: u16 = whole(at(main, 0))?;
    let Some(data) = redone(record, 0) else { return Ok(()) };
    let mut cursor = Cursor::new(&data);
    let gone = cursor.list(u32::from(count)).ok_or(Contradiction::Block(0, BlockFault::Data))?;
    deleted(&gone)?;
    while !cursor.rest().is_empty() {
        cursor
            .take(entry_bytes(cursor.rest(), 0))
            .ok_or(Contradiction::Block(0, BlockFault::Data))?;
    }
    Ok(())
}

/// The entries of each page into which one is split, after how many there are.
fn page_split(record: &Record<'_>, main: &[u8]) -> Checked {
    let pages: u16 = whole(at(main, 18))?;
    if pages == 0 {
        return Err(Contradiction::Block(1, BlockFault::None));
    }
    for block in record.blocks().filter(|block| (1..=pages).contains(&block.id.into())) {
        let Some(data) = made(record, block.id) else { continue };
        let mut cursor = Cursor::new(&data);
        let mut entries = || {
            let count: i32 = cursor.field()?;
            (0..count).try_for_each(|_| cursor.take(entry_bytes(cursor.rest(), 0)).map(|_| ()))
        };
        entries().ok_or(Contradiction::Block(block.id, BlockFault::Data))?;
    }
    Ok(())
}
