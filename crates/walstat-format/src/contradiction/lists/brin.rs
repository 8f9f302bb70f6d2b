//! Records of BRIN indexes: what redo divides by, and offset numbers.

use super::{Checked, is_possible, is_redone, whole};
use crate::contradiction::Contradiction;
use crate::cursor::at;
use crate::payload::brin::{OPCODE_MASK, opcode};
use crate::payload::heap::INIT_PAGE;
use crate::record::Record;

/// Where in the main data of a type a number lies, and the block whose page redo reads it for.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    block: u8,
}

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    let place = |at: usize, block: u8| Place { at, block };
    // pages_per_range; the entry that goes; the place of the new one.
    let (range, gone, new) = match record.header.rmgr_info() & OPCODE_MASK {
        opcode::INSERT => (Some(place(4, 1)), None, Some(place(8, 0))),
        opcode::UPDATE => (Some(place(8, 1)), Some(place(0, 2)), Some(place(12, 0))),
        opcode::SAMEPAGE_UPDATE => (None, Some(place(0, 0)), None),
        opcode::DESUMMARIZE => (Some(place(0, 0)), Some(place(8, 1)), None),
        _ => return Ok(()),
    };
    let is_read = |place: &Place| is_redone(record, place.block);
    if let Some(range) = range.filter(is_read)
        && whole(at::<u32>(main, range.at))? == 0
    {
        return Err(Contradiction::NoRange);
    }
    if let Some(gone) = gone.filter(is_read) {
        is_possible(whole(at(main, gone.at))?, 1)?;
    }
    let Some(new) = new else { return Ok(()) };
    let number: u16 = whole(at(main, new.at))?;
    match record.header.info & INIT_PAGE {
        0 if !is_read(&new) => Ok(()),
        0 => is_possible(number, 0),
        // On a page that is made anew it is the first one.
        _ if number > 1 => Err(Contradiction::Offset(number)),
        _ => Ok(()),
    }
}
