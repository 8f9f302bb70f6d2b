//! How records change rows, and sums of it.

use crate::kind::RowOperation;
use walstat_format::lsn::Lsn;
use walstat_format::payload::heap;
use walstat_format::payload::heap2::MultiInsert;
use walstat_format::record::Record;
use walstat_format::record_header::RecordHeader;
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
        let RecordHeader { rmgr, info, .. } = record.header;
        let change = match RowOperation::of(record)? {
            RowOperation::Insert => RowChange::Insert,
            // In place, the row stays the same version.
            RowOperation::Update if info & heap::OPCODE_MASK == heap::INPLACE => return None,
            RowOperation::Update => RowChange::Update,
            RowOperation::Delete => RowChange::Delete,
            RowOperation::Lock => return None,
        };
        if rmgr == rmgr::HEAP {
            return Some((change, 1));
        }
        let main_data = record.main_data()?;
        let rows = MultiInsert::parse(info, &main_data)?.count;
        Some((change, u64::from(rows)))
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
