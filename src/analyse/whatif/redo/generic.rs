//! Pages of extensions, logged by their differences (`applyPageRedo` in
//! `src/backend/access/transam/generic_xlog.c`; 9.6 and later).

use super::Change;
use crate::analyse::whatif::page::Page;
use crate::wal::cursor::Cursor;

pub fn apply(change: Change<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = before?;
    let mut cursor = Cursor::new(change.data());
    while !cursor.rest().is_empty() {
        let (offset, len): (u16, u16) = cursor.field()?;
        page.put(offset.into(), cursor.take(len.into())?)?;
    }
    Some(page)
}
