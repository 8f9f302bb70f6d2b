//! How much WAL there is in the range, whatever the filters leave of it: bytes and commits.

use super::totals::RecordTable;

/// All records of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Their bytes, images included.
    pub total_bytes: u64,
    /// How many of them are `COMMIT` or `COMMIT_PREPARED`.
    pub commits: u64,
}

impl Volume {
    /// The records of a table together with those that the filters left out, which have
    /// `filtered_bytes` and `filtered_commits`.
    pub fn of(table: &RecordTable, filtered_bytes: u64, filtered_commits: u64) -> Volume {
        let commits = table.sum(|record| record.is_commit());
        Volume {
            total_bytes: table.sum(|_| true).total_bytes + filtered_bytes,
            commits: commits.count + filtered_commits,
        }
    }
}
