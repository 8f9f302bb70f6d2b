//! How much WAL there is in the range, whatever the filters leave of it: bytes and commits.

use super::totals::RecordTable;
use crate::wal::payload::xact;
use crate::wal::rmgr::TRANSACTION;

/// All records of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Their bytes, images included.
    pub total_bytes: u64,
    /// How many of them are `COMMIT` or `COMMIT_PREPARED`.
    pub commits: u64,
}

impl Volume {
    /// The volume of a table that every record of the range is in.
    pub fn of(table: &RecordTable) -> Volume {
        let is_commit = |opcode| [xact::COMMIT, xact::COMMIT_PREPARED].contains(&opcode);
        let commits = table.sum(|record| record.rmgr == TRANSACTION && is_commit(record.opcode()));
        Volume { total_bytes: table.sum(|_| true).total_bytes, commits: commits.count }
    }
}
