//! Transactions that wrote a good part of the WAL of their time, and what they did.

use serde::{Deserialize, Serialize};

/// A transaction that wrote much at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LargeTransactionRow {
    /// The xid of its records: subtransactions have their own.
    pub xid: String,
    /// Bytes that it wrote, counted only where it wrote a sixteenth of the WAL or more: at least so many.
    pub total_bytes: u64,
    /// How much of it is rows inserted.
    #[serde(default)]
    pub insert_bytes: u64,
    /// Rows updated.
    #[serde(default)]
    pub update_bytes: u64,
    /// Rows deleted.
    #[serde(default)]
    pub delete_bytes: u64,
    /// Entries of indexes that were there before.
    #[serde(default)]
    pub index_bytes: u64,
    /// Whole pages: index builds, rewrites, copies.
    #[serde(default)]
    pub new_page_bytes: u64,
    /// The table that most of it was written to, with its indexes and TOAST, as a sample tells; null if
    /// there is none, or it has no name.
    #[serde(default)]
    pub table: Option<String>,
    /// Whether it was rolled back.
    #[serde(default)]
    pub is_aborted: bool,
}

named! {
    /// What a large transaction did, as its records tell.
    pub enum LargeWork {
        Refresh "refresh" "refresh";
        NewPages "new_pages" "index build, rewrite or copy";
        Rewrite "rewrite" "rewrite";
        Load "load" "load";
        Update "update" "update";
        Delete "delete" "delete";
        Mixed "mixed" "transaction";
    }
}

/// Large transactions that did the same to the same table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LargeWorkRow {
    /// What they did.
    pub work: LargeWork,
    /// To which table; null if that is not known, and then it is one transaction.
    pub table: Option<String>,
    /// Whether they were rolled back.
    pub is_aborted: bool,
    /// How many there are; of refreshes how often the view was written anew, where the WAL tells; of index
    /// builds, rewrites and copies how many files of one part of the table were made.
    pub transactions: u64,
    /// The xid of the largest; null of refreshes and builds none of which was large, or that have none.
    pub xid: Option<String>,
    /// Bytes that they wrote at least.
    pub total_bytes: u64,
    /// How much of it is entries of indexes that were there before.
    pub index_bytes: u64,
    /// Rows that refreshes deleted one by one: CONCURRENTLY does.
    pub deletes: u64,
}
