//! What changes of pages, as extensions log it (`generic_redo` in
//! `src/backend/access/transam/generic_xlog.c`).

use super::{Checked, redone};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::Cursor;
use crate::record::Record;

/// The longest data page, bytes.
const PAGE_BYTES_MAX: u32 = 32_768;

/// The fragments of each block, one behind the other: where in the page, how many bytes, and these.
pub(super) fn checked(record: &Record<'_>) -> Checked {
    for block in record.blocks() {
        let Some(data) = redone(record, block.id) else { continue };
        let mut fragments = Cursor::new(&data);
        while !fragments.rest().is_empty() {
            let end = fragment_end(&mut fragments).filter(|end| *end <= PAGE_BYTES_MAX);
            end.ok_or(Contradiction::Block(block.id, BlockFault::Data))?;
        }
    }
    Ok(())
}

/// Where in the page the next fragment ends.
fn fragment_end(fragments: &mut Cursor<'_>) -> Option<u32> {
    let (at, bytes): (u16, u16) = fragments.field()?;
    fragments.take(bytes.into())?;
    Some(u32::from(at) + u32::from(bytes))
}
