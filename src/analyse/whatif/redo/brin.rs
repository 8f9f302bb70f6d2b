//! BRIN indexes (`brin_xlog_*` in `src/backend/access/brin/brin_xlog.c`).

use super::{Change, DataBytes};
use crate::analyse::whatif::page::Page;
use crate::wal::cursor::at;
use crate::wal::data_page::PAGE_HEADER_BYTES;
use crate::wal::payload::brin::{OPCODE_MASK, opcode};

/// `BrinSpecialSpace`.
const SPECIAL_BYTES: usize = 8;
/// `BrinMetaPageData`: magic, version, pages a range, last page of the range map.
const META_BYTES: u16 = 16;

/// Where a record has the number of the entry it adds.
fn number(change: Change<'_>) -> Option<u16> {
    let main = change.record.main_data();
    match change.record.info() & OPCODE_MASK {
        opcode::INSERT => at(main, 8),
        // After the number of the old entry, which is padded to 4 bytes.
        opcode::UPDATE => at(main, 4 + 8),
        opcode::SAMEPAGE_UPDATE => at(main, 0),
        _ => None,
    }
}

pub fn apply(change: Change<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = change.page(before, SPECIAL_BYTES)?;
    let main = change.record.main_data();
    match (change.record.info() & OPCODE_MASK, change.block.id) {
        (opcode::CREATE_INDEX, 0) if change.record.version.pages.brin_meta_standard => {
            page.set_lower(PAGE_HEADER_BYTES as u16 + META_BYTES)?;
        }
        (opcode::INSERT | opcode::UPDATE, 0) => page.add(number(change)?, change.data())?,
        (opcode::UPDATE, 2) => page.remove_tuple(at(main, 0)?)?,
        (opcode::SAMEPAGE_UPDATE, 0) => page.replace(number(change)?, change.data())?,
        (opcode::DESUMMARIZE, 1) => page.remove_tuple(at(main, 8)?)?,
        // Entries of the range map have no line pointers.
        _ => {}
    }
    Some(page)
}

pub fn data_bytes(change: Change<'_>, after: &Page) -> Option<DataBytes> {
    match (change.record.info() & OPCODE_MASK, change.block.id) {
        (opcode::INSERT | opcode::UPDATE | opcode::SAMEPAGE_UPDATE, 0) => {
            DataBytes::exact(after.tuple(number(change)?)?.len())
        }
        _ => DataBytes::exact(0),
    }
}
