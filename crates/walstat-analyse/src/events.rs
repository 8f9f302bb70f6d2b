//! What was done to tables: created, dropped, truncated, rewritten, indexed, and rows of one table changed
//! by one transaction; and where recovery has to stop before it.
//!
//! While the WAL is read, [`Events`] gathers what each transaction does (`work`) until it ends (`ended`);
//! of those that are of interest, the catalogs tell afterwards, moment by moment, what it was (`told`).

mod changes;
mod deed;
mod ended;
mod ended_log;
mod file_works;
mod in_flight;
mod of_relations;
mod of_rows;
mod renamed;
mod seen;
mod told;
mod work;

pub use seen::Events;

use super::finished_transactions::TransactionOutcome;
use std::collections::BTreeSet;
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

named! {
    /// What was done.
    pub enum EventKind {
        CreateTable "create_table" "A table was created";
        DropTable "drop_table" "A table was dropped";
        Truncate "truncate" "A table was truncated";
        Rewrite "rewrite" "A table was written anew: VACUUM FULL, CLUSTER, ALTER TABLE";
        CreateIndex "create_index" "An index was built";
        DropIndex "drop_index" "An index was dropped";
        Reindex "reindex" "An index was built anew";
        CreateDatabase "create_database" "A database was created";
        DropDatabase "drop_database" "A database was dropped";
        Delete "delete" "Rows of a table were deleted";
        Update "update" "Rows of a table were updated";
        Insert "insert" "Rows of a table were inserted";
    }
}

/// What was done to a table, an index or a database by one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEvent {
    /// What was done.
    pub kind: EventKind,
    /// Where it begins: the first of its records.
    pub lsn: Lsn,
    /// The transaction, without subtransactions.
    pub xid: u32,
    /// The transaction with those subtransactions that ended with it.
    pub xids: Arc<[u32]>,
    /// How the transaction ended.
    pub outcome: TransactionOutcome,
    /// Where the record of its commit begins.
    pub commit: Option<Lsn>,
    /// When it committed, or was rolled back.
    pub time: Option<Time>,
    /// Whether it ended by COMMIT PREPARED or ROLLBACK PREPARED.
    pub was_prepared: bool,
    /// The last time that was known then.
    pub clock: Option<Time>,
    /// The database.
    pub database: Option<Arc<str>>,
    /// The table's schema.
    pub schema: Option<Arc<str>>,
    /// The table; of an index, that which it belongs to.
    pub table: Option<Arc<str>>,
    /// The index.
    pub index: Option<Arc<str>>,
    /// All names that the table, or the index, had in this WAL, if it had several.
    pub names: BTreeSet<Name>,
    /// The file: the one before it, where there is another one since.
    pub file: Option<RelFileLocator>,
    /// The file since.
    pub new_file: Option<RelFileLocator>,
    /// Rows that were changed.
    pub rows: Option<u64>,
    /// Bytes of WAL that the rows took, or the new file.
    pub bytes: Option<u64>,
    /// Where recovery has to stop.
    pub target: RecoveryTarget,
    /// Whether it stays, whatever becomes of the transaction.
    pub is_irrevocable: bool,
}

/// A name that a relation had.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The database, where that was called otherwise then.
    pub database: Option<Arc<str>>,
    /// The schema.
    pub schema: Option<Arc<str>>,
    /// The relation.
    pub relation: Arc<str>,
}

/// Where recovery stops before a transaction: all that committed before is there, and nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryTarget {
    /// `recovery_target_lsn`, not inclusive.
    pub lsn: Lsn,
    /// `recovery_target_xid`, not inclusive, where that stops at the same place.
    pub xid: Option<u32>,
    /// `recovery_target_time`, inclusive or not, where that stops at the same place.
    pub time: Option<Time>,
    /// Where no transaction ends there, the last one that ended before a database's files were removed.
    pub after: Option<PlacedEnd>,
}

/// The record that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedEnd {
    /// Its start.
    pub lsn: Lsn,
    /// The transaction.
    pub xid: u32,
}

/// All events, in the order of the WAL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsFound {
    /// The events.
    pub events: Vec<TableEvent>,
    /// Rows of `pg_class` and `pg_database` that were changed and of which nothing is known but that.
    pub unknown: usize,
    /// Transactions that took files away without a change of `pg_class` that is seen.
    pub unexplained: Vec<UnexplainedDrop>,
}

/// A transaction that took files away: it dropped, truncated or rewrote something, and what cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnexplainedDrop {
    /// The transaction.
    pub xid: u32,
    /// Where the record of its commit begins.
    pub commit: Lsn,
    /// The files.
    pub files: Vec<RelFileLocator>,
}
