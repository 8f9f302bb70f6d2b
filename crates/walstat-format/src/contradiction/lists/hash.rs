//! Lists of entries of hash indexes.

use super::{Checked, deleted, entry_bytes, is_possible, is_redone, redone, whole};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::{Cursor, List, at};
use crate::payload::hash::{self, opcode};
use crate::record::Record;

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    match record.header.rmgr_info() {
        opcode::MOVE_PAGE_CONTENTS => {
            moved(record, whole(at(main, 0))?)?;
            deleted_of(record, 2)
        }
        opcode::SQUEEZE_PAGE => moved(record, whole(at(main, 8))?),
        opcode::DELETE => deleted_of(record, 1),
        opcode::VACUUM_ONE_PAGE if is_redone(record, 0) => {
            deleted(&whole(hash::vacuumed(main, record.version))?)
        }
        _ => Ok(()),
    }
}

/// The offset numbers that are the data of a block.
fn deleted_of(record: &Record<'_>, id: u8) -> Checked {
    redone(record, id).map_or(Ok(()), |data| deleted(&List::over(&data)))
}

/// So many entries in block 1, after their offset numbers. Where they are fewer than the numbers, redo puts
/// none.
fn moved(record: &Record<'_>, count: u16) -> Checked {
    let Some(data) = redone(record, 1) else { return Ok(()) };
    let mut cursor = Cursor::new(&data);
    let Some(places) = cursor.list::<u16>(count.into()) else { return Ok(()) };
    places.iter().try_for_each(|offset| is_possible(offset, 0))?;
    while !cursor.rest().is_empty() && count > 0 {
        let bytes = entry_bytes(cursor.rest(), 0).next_multiple_of(8);
        cursor.take(bytes).ok_or(Contradiction::Block(1, BlockFault::Data))?;
    }
    Ok(())
}
