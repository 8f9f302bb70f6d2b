//! What changes of pages, as extensions log it (`generic_redo` in
//! `src/backend/access/transam/generic_xlog.c`).

use super::{Checked, redone};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::Cursor;
use crate::page_size::MAX_PAGE_BYTES;
use crate::record::Record;

/// The fragments of each block, one behind the other: where in the page, how many bytes, and these.
pub(super) fn checked(record: &Record<'_>) -> Checked {
    for block in record.blocks() {
        let Some(data) = redone(record, block.id) else { continue };
        let mut fragments = Cursor::new(&data);
        while !fragments.rest().is_empty() {
            let end = fragment_end(&mut fragments).filter(|end| *end <= MAX_PAGE_BYTES);
            end.ok_or(Contradiction::Block(block.id, BlockFault::Data))?;
        }
    }
    Ok(())
}

/// Where in the page the next fragment ends.
fn fragment_end(fragments: &mut Cursor<'_>) -> Option<usize> {
    let (at, bytes): (u16, u16) = fragments.field()?;
    fragments.take(bytes.into())?;
    Some(usize::from(at) + usize::from(bytes))
}
