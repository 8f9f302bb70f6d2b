//! What a record has to do with the cost of updates.

use crate::page::Page;
use serde::{Deserialize, Serialize};
use walstat_format::payload::heap;
use walstat_format::payload::heap::{Lock, OPCODE_MASK, Update};
use walstat_format::payload::{heap2, xact};
use walstat_format::record::Record;
use walstat_format::rmgr;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub page: Page,
    pub offset: u16,
}

/// What is charged.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Charge {
    pub bytes: u64,
    pub fpi_bytes: u64,
}

/// What a record has to do with updates.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A row is updated.
    Update { row: Row, is_hot: bool, own: Charge },
    /// A row is locked.
    Lock { row: Row, own: Charge },
    /// A row is changed, but not updated.
    OtherChange,
    /// A page is pruned.
    Prune { page: Page, own: Charge },
    /// An entry into an index, or what makes room for it.
    Index { own: Charge },
    /// The transaction has ended.
    End,
}

impl Step {
    pub(super) fn of(record: &Record<'_>) -> Option<Step> {
        let opcode = record.header.info & OPCODE_MASK;
        let own = Charge::of(record);
        match record.header.rmgr {
            rmgr::HEAP => Step::of_heap(record, opcode, own),
            rmgr::HEAP2 if opcode == heap2::MULTI_INSERT => Some(Step::OtherChange),
            rmgr::HEAP2 => Some(Step::Prune { page: old_page(record)?, own }),
            rmgr::TRANSACTION => {
                let opcode = record.header.info & xact::OPCODE_MASK;
                let ends = [xact::COMMIT, xact::ABORT, xact::PREPARE].contains(&opcode);
                ends.then_some(Step::End)
            }
            _ => Some(Step::Index { own }),
        }
    }

    fn of_heap(record: &Record<'_>, opcode: u8, own: Charge) -> Option<Step> {
        let main_data = || record.main_data().unwrap_or_default();
        match opcode {
            heap::UPDATE | heap::HOT_UPDATE => {
                let offset = Update::parse(&main_data()).map_or(0, |update| update.old_offset);
                let row = Row { page: old_page(record)?, offset };
                Some(Step::Update { row, is_hot: opcode == heap::HOT_UPDATE, own })
            }
            heap::LOCK => {
                let offset = Lock::parse(&main_data())?.offset;
                Some(Step::Lock { row: Row { page: old_page(record)?, offset }, own })
            }
            _ => Some(Step::OtherChange),
        }
    }
}

impl Charge {
    fn of(record: &Record<'_>) -> Charge {
        let (bytes, fpi_bytes) = (record.header.total_bytes, record.parts.fpi_bytes);
        Charge { bytes: u64::from(bytes), fpi_bytes: u64::from(fpi_bytes) }
    }

    /// Both together.
    pub(super) fn and(self, other: Charge) -> Charge {
        let (bytes, fpi_bytes) = (self.bytes + other.bytes, self.fpi_bytes + other.fpi_bytes);
        Charge { bytes, fpi_bytes }
    }
}

/// The page that a row lies in: of an update that of the old version.
fn old_page(record: &Record<'_>) -> Option<Page> {
    if let Some(mark) = record.block_mark() {
        return Some(Page { relation: mark.relation(), block: mark.block() });
    }
    let found = record.blocks().filter(|block| block.fork == 0 && block.id <= 1).last()?;
    Some(Page { relation: found.relation, block: found.block })
}
