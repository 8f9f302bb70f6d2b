//! The model of `walstat diff`: two reports side by side.

use super::{CommandName, Input, Numbers, Range};
use serde::{Deserialize, Serialize};

/// After less before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Change {
    /// Records.
    pub count: i64,
    /// Total length without images.
    pub record_bytes: i64,
    /// Images.
    pub fpi_bytes: i64,
    /// Both.
    pub total_bytes: i64,
    /// Images.
    pub fpi_count: i64,
}

/// Sums on both sides, and what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compared {
    /// Before.
    pub before: Numbers,
    /// After.
    pub after: Numbers,
    /// After less before.
    pub change: Change,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// What was read.
    pub input: Input,
    /// From where to where.
    pub range: Range,
    /// Commits in it.
    pub commits: u64,
    /// Bytes of records for each.
    pub bytes_per_commit: Option<f64>,
    /// Bytes of full page images of all bytes.
    #[serde(default)]
    pub fpi_ratio: Option<f64>,
    /// HOT updates of all updates.
    #[serde(default)]
    pub hot_ratio: Option<f64>,
    /// Problems in the WAL.
    pub problems: usize,
}

/// A resource manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RmgrChange {
    /// Its name.
    pub rmgr: String,
    /// Its sums.
    #[serde(flatten)]
    pub compared: Compared,
}

/// A record type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordChange {
    /// The resource manager's name.
    pub rmgr: String,
    /// The type's.
    pub record: String,
    /// Its sums.
    #[serde(flatten)]
    pub compared: Compared,
}

/// A table with its indexes and TOAST. What has a name is the same by its name, for oids differ from
/// one cluster to the next; what has none, by its oid or files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableChange {
    /// Database oid.
    pub database: Option<u32>,
    /// Name of the database.
    pub database_name: Option<String>,
    /// Oid.
    pub oid: Option<u32>,
    /// Schema.
    pub schema: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// What people call it.
    pub label: String,
    /// Its sums.
    #[serde(flatten)]
    pub compared: Compared,
}

/// Two reports side by side. Rows are in the order of how much they changed, largest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// The program's version.
    pub walstat: String,
    /// The version of this schema.
    pub schema: String,
    /// `diff`.
    pub command: CommandName,
    /// The first side.
    pub before: Side,
    /// The second side.
    pub after: Side,
    /// All records.
    pub totals: Compared,
    /// By resource manager.
    pub rmgrs: Vec<RmgrChange>,
    /// By record type.
    pub records: Vec<RecordChange>,
    /// By table.
    pub tables: Vec<TableChange>,
    /// What has to be known to read them.
    pub notes: Vec<String>,
}

impl Diff {
    /// Whether there are more bytes of records after than before.
    pub fn has_grown(&self) -> bool {
        self.totals.change.total_bytes > 0
    }

    /// Whether a commit has more of them; false where a side has no commit.
    pub fn has_grown_per_commit(&self) -> bool {
        let (before, after) = (self.before.bytes_per_commit, self.after.bytes_per_commit);
        before.zip(after).is_some_and(|(before, after)| after > before)
    }
}
