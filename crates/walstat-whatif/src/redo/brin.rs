//! BRIN indexes (`brin_xlog_*` in `src/backend/access/brin/brin_xlog.c`).

use super::{DataBytes, Redo};
use crate::page::Page;
use walstat_format::cursor::at;
use walstat_format::data_page::PAGE_HEADER_BYTES;
use walstat_format::payload::brin::{OPCODE_MASK, opcode};

/// `BrinSpecialSpace`.
const SPECIAL_BYTES: usize = 8;
/// `BrinMetaPageData`: magic, version, pages a range, last page of the range map.
const META_BYTES: u16 = 16;

/// Where a record has the number of the entry it adds.
fn number(redo: Redo<'_>) -> Option<u16> {
    let main = redo.record.main_data();
    match redo.record.info() & OPCODE_MASK {
        opcode::INSERT => at(main, 8),
        // After the number of the old entry, which is padded to 4 bytes.
        opcode::UPDATE => at(main, 4 + 8),
        opcode::SAMEPAGE_UPDATE => at(main, 0),
        _ => None,
    }
}

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = redo.page(before, SPECIAL_BYTES)?;
    let main = redo.record.main_data();
    match (redo.record.info() & OPCODE_MASK, redo.block.id) {
        (opcode::CREATE_INDEX, 0) if redo.record.version.pages.brin_meta_standard => {
            page.set_lower(PAGE_HEADER_BYTES as u16 + META_BYTES)?;
        }
        (opcode::INSERT | opcode::UPDATE, 0) => page.add(number(redo)?, redo.data())?,
        (opcode::UPDATE, 2) => page.remove_tuple(at(main, 0)?)?,
        (opcode::SAMEPAGE_UPDATE, 0) => page.replace(number(redo)?, redo.data())?,
        (opcode::DESUMMARIZE, 1) => page.remove_tuple(at(main, 8)?)?,
        // Entries of the range map have no line pointers.
        _ => {}
    }
    Some(page)
}

pub(crate) fn data_bytes(redo: Redo<'_>, after: &Page, _: Option<&Page>) -> Option<DataBytes> {
    match (redo.record.info() & OPCODE_MASK, redo.block.id) {
        (opcode::INSERT | opcode::UPDATE | opcode::SAMEPAGE_UPDATE, 0) => {
            DataBytes::exact(after.tuple(number(redo)?)?.len())
        }
        _ => DataBytes::exact(0),
    }
}
