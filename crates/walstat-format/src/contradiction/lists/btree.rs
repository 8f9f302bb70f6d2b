//! Lists of a B-tree's entries.

use super::{Checked, deleted, each_is_possible, is_possible, is_redone, redone, whole};
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
            whole(Dedup::parse(main, data.as_deref())).map(|_| ())
        }
        opcode::SPLIT_L_OR_INSERT_POST if has_posting_lists => Ok(()),
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
    if !is_redone(record, 0) {
        return Ok(());
    }
    is_possible(split.first_right, 0)?;
    // Where no posting list is split the other number is only compared.
    if split.posting > 0 { is_possible(split.new_item, 1) } else { Ok(()) }
}
