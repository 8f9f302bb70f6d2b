//! How records change rows, and sums of it.

use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::heap::delete_flag::IS_SUPER;
use walstat_format::payload::heap2::MultiInsert;
use walstat_format::payload::{heap, heap2};
use walstat_format::record::Record;
use walstat_format::rmgr;

/// How rows are changed, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowChange {
    Insert,
    Update,
    Delete,
}

impl RowChange {
    pub(super) const ALL: [RowChange; 3] =
        [RowChange::Insert, RowChange::Update, RowChange::Delete];

    /// What a record of Heap or Heap2 does to rows, and to how many.
    pub(super) fn of(record: &Record<'_>) -> Option<(RowChange, u64)> {
        let opcode = record.header.info & heap::OPCODE_MASK;
        if record.header.rmgr == rmgr::HEAP2 {
            let main_data = record.main_data().filter(|_| opcode == heap2::MULTI_INSERT)?;
            let insert = MultiInsert::parse(record.header.info, &main_data)?;
            return Some((RowChange::Insert, u64::from(insert.count)));
        }
        match opcode {
            heap::INSERT => Some((RowChange::Insert, 1)),
            heap::UPDATE | heap::HOT_UPDATE => Some((RowChange::Update, 1)),
            heap::DELETE => {
                // An insertion that is taken back is no row that anybody had.
                let main_data = record.main_data()?;
                let is_row = heap::Delete::parse(&main_data)?.flags & IS_SUPER == 0;
                is_row.then_some((RowChange::Delete, 1))
            }
            _ => None,
        }
    }

    /// What a record of Heap does to one row, if its `xl_info` alone tells; with that.
    pub(super) fn of_one(record: &Record<'_>) -> Option<(u8, RowChange)> {
        let info = record.header.info;
        let is_plain = record.header.rmgr == rmgr::HEAP && info & heap::OPCODE_MASK != heap::DELETE;
        let (change, _) = RowChange::of(record).filter(|_| is_plain)?;
        Some((info, change))
    }
}

/// Changes of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changes {
    pub rows: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// The first of these.
    pub first: Lsn,
}

impl Changes {
    /// Adds those of a later part of the WAL, or of another transaction.
    pub(super) fn add(&mut self, other: &Changes) {
        if other.rows == 0 {
            return;
        }
        self.first = if self.rows == 0 { other.first } else { self.first.min(other.first) };
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}
