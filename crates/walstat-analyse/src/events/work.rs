//! What a transaction does to rows and files, summed up until it ends.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;
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

/// What is done to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileWork {
    /// By [`RowChange`].
    changes: [Changes; 3],
    /// Bytes of all records on it that were counted.
    pub bytes: u64,
}

impl FileWork {
    pub(super) fn of(&self, change: RowChange) -> &Changes {
        &self.changes[change as usize]
    }

    pub(super) fn add(&mut self, other: &FileWork) {
        for (ours, theirs) in self.changes.iter_mut().zip(&other.changes) {
            ours.add(theirs);
        }
        self.bytes += other.bytes;
    }
}

/// Where a transaction was prepared, and the subtransactions that were prepared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prepared {
    pub lsn: Lsn,
    pub subxids: Box<[u32]>,
}

/// What a transaction that has not ended has done.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub files: HashMap<RelFileLocator, FileWork>,
    /// Whether it may have changed catalogs.
    pub in_catalogs: bool,
    /// Where it dropped a database's files.
    pub database_drop: Option<Lsn>,
    pub prepared: Option<Prepared>,
    /// The transaction that it belongs to, where that is told before its end.
    pub top: Option<u32>,
}

impl Work {
    /// Counts a record of Heap or Heap2 on a file.
    pub(super) fn count(&mut self, record: &Record<'_>, file: RelFileLocator) {
        let bytes = u64::from(record.header.total_bytes);
        let Some((change, rows)) = RowChange::of(record) else { return };
        let work = self.files.entry(file).or_default();
        work.bytes += bytes;
        let one = Changes { rows, bytes, first: record.lsn };
        work.changes[change as usize].add(&one);
    }

    /// Counts a record of an index, or of whole pages.
    pub(super) fn count_bytes(&mut self, record: &Record<'_>, file: RelFileLocator) {
        self.files.entry(file).or_default().bytes += u64::from(record.header.total_bytes);
    }

    /// Adds what the same transaction did later.
    pub(super) fn append(&mut self, later: Work) {
        for (file, work) in later.files {
            self.files.entry(file).or_default().add(&work);
        }
        self.in_catalogs |= later.in_catalogs;
        self.database_drop = self.database_drop.or(later.database_drop);
        self.prepared = later.prepared.or(self.prepared.take());
        self.top = later.top.or(self.top);
    }
}
