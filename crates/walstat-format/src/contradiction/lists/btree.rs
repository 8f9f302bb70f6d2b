//! Lists of a B-tree's entries.

use super::{
    Checked, deleted, each_is_possible, is_possible, is_redone, made, redone, stated_bytes, whole,
};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::Cursor;
use crate::payload::btree::{Dedup, Removal, Split, opcode};
use crate::record::Record;
use crate::version::Release;

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    let version = record.version;
    let has_posting_lists = version.since(Release::V13);
    match record.header.rmgr_info() {
        opcode::DELETE => {
            let data = redone(record, 0);
            removed(&whole(Removal::delete(main, data.as_deref(), version))?)
        }
        opcode::VACUUM => {
            let data = redone(record, 0);
            removed(&whole(Removal::vacuum(main, data.as_deref(), version))?)
        }
        opcode::SPLIT_R_OR_DEDUP if has_posting_lists => {
            let data = redone(record, 0);
            let intervals = whole(Dedup::parse(main, data.as_deref()))?.intervals;
            // An interval that is not found leaves the page without the room that later entries take.
            intervals.iter().try_for_each(|(first, entries)| {
                is_possible(first, 1).and_then(|()| is_possible(entries, 1))
            })
        }
        opcode::SPLIT_L_OR_INSERT_POST if has_posting_lists => Ok(()),
        opcode::NEWROOT => entries(record, 0),
        _ => split(record, main),
    }
}

fn removed(removal: &Removal<'_>) -> Checked {
    deleted(&removal.deleted)?;
    each_is_possible(&removal.updated)?;
    let mut updates = Cursor::new(removal.updates);
    let mut rows = || updates.field::<u16>().and_then(|rows| updates.list::<u16>(rows.into()));
    removal.updated.iter().try_for_each(|_| whole(rows()).map(|_| ()))
}

/// The page that is split is read up to the first entry that goes right, and at a posting list that the new
/// entry splits.
fn split(record: &Record<'_>, main: &[u8]) -> Checked {
    let split = whole(Split::parse(main, record.version))?;
    entries(record, 1)?;
    if !is_redone(record, 0) {
        return Ok(());
    }
    is_possible(split.first_right, 0)?;
    // Where no posting list is split the other number is only compared.
    if split.posting > 0 { is_possible(split.new_item, 1) } else { Ok(()) }
}

/// The entries of a page that is made anew lie one behind the other, each at a multiple of 8
/// (`_bt_restore_page`); one of no size is read again and again.
fn entries(record: &Record<'_>, id: u8) -> Checked {
    let data = made(record, id).unwrap_or_default();
    let mut entries = Cursor::new(&data);
    while !entries.rest().is_empty() {
        let size = stated_bytes(entries.rest(), 0).filter(|size| *size > 0);
        let entry = size.and_then(|size| entries.take(size.next_multiple_of(8)));
        entry.ok_or(Contradiction::Block(id, BlockFault::Data))?;
    }
    Ok(())
}
