//! What a transaction does to rows and files, summed up until it ends.

use super::changes::{Changes, RowChange};
use super::file_works::FileWorks;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;

/// Where a transaction was prepared, and the subtransactions that were prepared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prepared {
    pub lsn: Lsn,
    pub subxids: Box<[u32]>,
}

/// What a transaction that has not ended has done.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub files: FileWorks,
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
        self.files.of(file).count(change, Changes { rows, bytes, first: record.lsn });
    }

    /// Counts a record of an index, or of whole pages.
    pub(super) fn count_bytes(&mut self, record: &Record<'_>, file: RelFileLocator) {
        self.files.of(file).bytes += u64::from(record.header.total_bytes);
    }

    /// Whether it may be worth telling, if nothing else belongs to it.
    pub(super) fn is_of_interest(&self, min_rows: u64) -> bool {
        self.in_catalogs || self.database_drop.is_some() || self.files.have_rows(min_rows)
    }

    /// Whether nothing is known of it but what it did to files.
    pub(super) fn is_plain(&self) -> bool {
        !self.in_catalogs && self.database_drop.is_none()
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        files.clear();
        *self = Work { files, ..Work::default() };
    }

    /// Adds what the same transaction did later.
    pub(super) fn append(&mut self, later: Work) {
        self.files.add(later.files);
        self.in_catalogs |= later.in_catalogs;
        self.database_drop = self.database_drop.or(later.database_drop);
        self.prepared = later.prepared.or(self.prepared.take());
        self.top = later.top.or(self.top);
    }
}
