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
    /// Hands on what a record has to do with updates, if it has. Not returned: it would go through memory.
    #[inline(always)]
    pub(super) fn of(record: &Record<'_>, take: impl FnOnce(Step)) {
        let opcode = record.header.info & OPCODE_MASK;
        let own = Charge::of(record);
        match record.header.rmgr {
            rmgr::HEAP => Step::of_heap(record, opcode, own, take),
            rmgr::HEAP2 if opcode == heap2::MULTI_INSERT => take(Step::OtherChange),
            rmgr::HEAP2 => {
                if let Some(page) = old_page(record) {
                    take(Step::Prune { page, own });
                }
            }
            rmgr::TRANSACTION => {
                let opcode = record.header.info & xact::OPCODE_MASK;
                if [xact::COMMIT, xact::ABORT, xact::PREPARE].contains(&opcode) {
                    take(Step::End);
                }
            }
            _ => take(Step::Index { own }),
        }
    }

    #[inline(always)]
    fn of_heap(record: &Record<'_>, opcode: u8, own: Charge, take: impl FnOnce(Step)) {
        let main_data = || record.main_data().unwrap_or_default();
        match opcode {
            heap::UPDATE | heap::HOT_UPDATE => {
                let offset = Update::parse(&main_data()).map_or(0, |update| update.old_offset);
                if let Some(page) = old_page(record) {
                    let row = Row { page, offset };
                    take(Step::Update { row, is_hot: opcode == heap::HOT_UPDATE, own });
                }
            }
            heap::LOCK => {
                if let Some(Lock { offset, .. }) = Lock::parse(&main_data())
                    && let Some(page) = old_page(record)
                {
                    take(Step::Lock { row: Row { page, offset }, own });
                }
            }
            _ => take(Step::OtherChange),
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
#[inline(always)]
fn old_page(record: &Record<'_>) -> Option<Page> {
    if let Some(mark) = record.block_mark() {
        return Some(Page::new(mark.relation(), mark.block()));
    }
    let found = record.places().filter(|place| place.fork == 0 && place.id <= 1).last()?;
    Some(Page::new(found.relation, found.block))
}
