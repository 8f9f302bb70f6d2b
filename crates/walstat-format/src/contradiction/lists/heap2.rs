//! Lists of rows and of line pointers of a table's page.

use super::{Checked, is_possible, redone, whole};
use crate::contradiction::{BlockFault, Contradiction};
use crate::payload::heap::OPCODE_MASK;
use crate::payload::heap2::{MULTI_INSERT, MultiInsert, PRUNES};
use crate::payload::prune::{self, Prune};
use crate::record::Record;
use crate::version::{Release, Version};

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    let opcode = record.header.rmgr_info() & OPCODE_MASK;
    if opcode == MULTI_INSERT {
        return multi_insert(record, main);
    }
    if !PRUNES.contains(&opcode) || prune::is_cleanup_info(opcode, record.version) {
        return Ok(());
    }
    let data = redone(record, 0);
    let prune = whole(Prune::parse(record.header.info, main, data.as_deref(), record.version))?;
    line_pointers(&prune, record.version)
}

/// Redo writes a line pointer wherever its number leads: far behind the page, or, where it is 0, into its
/// header; up to 13 nobody looks at what lies there.
fn line_pointers(prune: &Prune<'_>, version: &Version) -> Checked {
    let least = u16::from(version.since(Release::V14));
    let redirected = prune.redirected.iter().map(|(from, _)| from);
    let mut offsets = redirected.chain(prune.dead.iter()).chain(prune.unused.iter());
    offsets.try_for_each(|offset| is_possible(offset, least))
}

/// A server wants the rows to end where the data do (`total tuple length mismatch`).
fn multi_insert(record: &Record<'_>, main: &[u8]) -> Checked {
    let insert = whole(MultiInsert::parse(record.header.info, main))?;
    let Some(data) = redone(record, 0) else { return Ok(()) };
    // Redo puts a row of number 0 wherever there is room (`PageAddItemExtended`).
    insert.offsets().try_for_each(|offset| is_possible(offset, 0))?;
    let end = insert.rows_end(&data).ok_or(Contradiction::Block(0, BlockFault::Data))?;
    if end == data.len() { Ok(()) } else { Err(Contradiction::Block(0, BlockFault::TooLong)) }
}
