//! Sequences: the one page is made anew each time (`seq_redo` in `src/backend/commands/sequence.c`).

use super::Redo;
use crate::page::Page;

/// The magic number in the special space.
const SPECIAL_BYTES: usize = 8;
const MAGIC: u32 = 0x1717;
/// The relation stands before the row.
const RELATION_BYTES: usize = 12;

pub(crate) fn apply(redo: Redo<'_>, _: Option<Page>) -> Option<Page> {
    let mut page = Page::new(redo.page_bytes, SPECIAL_BYTES)?;
    page.put_u32(page.special(), MAGIC)?;
    page.append(redo.record.main_data().get(RELATION_BYTES..)?)?;
    Some(page)
}
