//! What updates cost, in a row of a table.

use serde::{Deserialize, Serialize};

/// What the updates of a table cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateBytes {
    /// HOT ones.
    pub hot: UpdateCost,
    /// All others.
    pub non_hot: UpdateCost,
}

/// What updates cost, with the lock and the pruning before them and the index entries after them:
/// what a transaction writes into indexes belongs to the last row that it changed, a lock to its
/// next update of that row, the pruning of a page to the next update in it. What is stored out of
/// line (TOAST) is in the table's `toast`, not here.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateCost {
    /// How many.
    pub updates: u64,
    /// Bytes of their own records.
    pub heap_bytes: u64,
    /// Bytes of locks of their rows, up to 1 MB of WAL before.
    pub lock_bytes: u64,
    /// Bytes of pruning of their pages, up to 128 kB of WAL before.
    pub prune_bytes: u64,
    /// Bytes of what their transactions wrote into indexes, up to 1 MB of WAL after.
    pub index_bytes: u64,
    /// All of these.
    pub total_bytes: u64,
    /// How much of it is images.
    pub fpi_bytes: u64,
}
