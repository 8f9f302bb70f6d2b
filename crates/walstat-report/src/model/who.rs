//! Rows of who writes the WAL: relations, tables, databases, tablespaces, forks, blocks,
//! transactions. Keys are the contract's; every key of a row is there, unknown is null.

mod labels;

pub(crate) use labels::{IndexOf, TEMPLATE1, home};

use super::Numbers;
use super::table::Table;
use super::update::UpdateBytes;
use serde::{Deserialize, Serialize};
use walstat_names::catalog::row::Source;

/// Makes a row: its keys, all of which are written and read.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $row:ident { $($(#[$about:meta])* pub $key:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $row { $($(#[$about])* pub $key: $type,)+ }
    };
}

row! {
    /// One fork of one relfilenode; without identity: records without a block.
    pub struct RelationRow {
        /// Tablespace oid.
        pub tablespace: Option<u32>,
        /// Database oid, 0 for shared relations.
        pub database: Option<u32>,
        /// File number.
        pub relfilenode: Option<u32>,
        /// `main`, `fsm`, `vm`, `init`.
        pub fork: Option<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// References to its blocks.
        pub block_refs: u64,
        /// Their data.
        pub block_data_bytes: u64,
        /// Distinct blocks of it.
        pub distinct_blocks: u64,
        /// Images for hint bits.
        pub hint_fpi_count: u64,
        /// Their bytes.
        pub hint_fpi_bytes: u64,
        /// Images of new pages.
        pub new_page_fpi_count: u64,
        /// Their bytes.
        pub new_page_fpi_bytes: u64,
        /// Rows inserted.
        pub inserts: u64,
        /// Rows updated.
        pub updates: u64,
        /// Rows updated in the same page without a change of an indexed column.
        pub hot_updates: u64,
        /// Rows updated onto another page.
        pub updates_new_page: u64,
        /// Rows deleted.
        pub deletes: u64,
        /// Rows locked.
        pub locks: u64,
        /// Records of vacuum, pruning and freezing.
        pub vacuum_records: u64,
        /// Bytes of old rows or keys that records keep for logical decoding.
        pub old_row_bytes: u64,
        /// Bytes of new rows beside an image, kept for logical decoding.
        pub beside_image_bytes: u64,
        /// Name of the database.
        pub database_name: Option<String>,
        /// Schema.
        pub schema: Option<String>,
        /// Name.
        pub name: Option<String>,
        /// `relkind`.
        pub kind: Option<String>,
        /// Oid.
        pub oid: Option<u32>,
        /// The table it belongs to, itself for a table.
        pub table: Option<TableName>,
        /// Where the name was found.
        pub names_source: Option<Source>,
    }
}

row! {
    /// A table.
    pub struct TableName {
        /// Its oid.
        pub oid: u32,
        /// Schema.
        pub schema: Option<String>,
        /// Name.
        pub name: String,
    }
}

row! {
    /// Which sources names came from, and how much has a name.
    pub struct NamesSummary {
        /// The sources that were used.
        pub sources: Vec<Source>,
        /// Bytes of relations.
        pub relation_bytes: u64,
        /// Bytes of relations that have a name.
        pub named_bytes: u64,
    }
}

row! {
    /// A table with all that belongs to it; or a relation that belongs to none; without identity:
    /// records without a block.
    pub struct WholeTableRow {
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
        /// `relkind`.
        pub kind: Option<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// Rows inserted.
        pub inserts: u64,
        /// Rows updated.
        pub updates: u64,
        /// Rows updated in the same page without a change of an indexed column.
        pub hot_updates: u64,
        /// Rows updated onto another page.
        pub updates_new_page: u64,
        /// Rows deleted.
        pub deletes: u64,
        /// Rows locked.
        #[serde(default)]
        pub locks: u64,
        /// Bytes of old rows or keys that records keep for logical decoding.
        #[serde(default)]
        pub old_row_bytes: u64,
        /// Those that are whole rows, for the rules.
        #[serde(skip)]
        pub whole_old_row_bytes: u64,
        /// Chunks of large values that were inserted into its TOAST table, for the rules.
        #[serde(skip)]
        pub toast_inserts: u64,
        /// Those that were deleted there, for the rules.
        #[serde(skip)]
        pub toast_deletes: u64,
        /// What vacuum wrote of it and of its indexes, with the images.
        #[serde(default)]
        pub vacuum_bytes: u64,
        /// How much of that is images.
        #[serde(default)]
        pub vacuum_fpi_bytes: u64,
        /// What a HOT update cost: all of `update_bytes.hot` by their number.
        pub bytes_per_hot_update: Option<f64>,
        /// The same of all other updates.
        pub bytes_per_non_hot_update: Option<f64>,
        /// What updates cost, with what they wrote beside the table.
        pub update_bytes: UpdateBytes,
        /// The table itself.
        pub heap: Option<Part>,
        /// Its TOAST table, with its index.
        pub toast: Option<Part>,
        /// Its indexes, the largest first.
        pub indexes: Vec<IndexPart>,
    }
}

impl WholeTableRow {
    /// Whether its `relkind` is one of [`kind`](walstat_names::catalog::row::kind).
    pub(crate) fn is_of_kind(&self, kinds: &[u8]) -> bool {
        self.kind.as_deref().is_some_and(|kind| kinds.iter().any(|one| kind.as_bytes() == [*one]))
    }
}

row! {
    /// A part of a table.
    pub struct Part {
        /// All its files: `tablespace/database/relfilenode`.
        pub relfilenodes: Vec<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// References to its blocks.
        pub block_refs: u64,
        /// Their data.
        pub block_data_bytes: u64,
        /// Distinct blocks of it.
        pub distinct_blocks: u64,
        /// Bytes of images of new pages: index builds, rewrites, copies.
        #[serde(default)]
        pub new_page_fpi_bytes: u64,
        /// Files that have more than one of these: each was built, rewritten or copied.
        #[serde(default)]
        pub built_files: u64,
    }
}

row! {
    /// An index of a table.
    pub struct IndexPart {
        /// Oid.
        pub oid: u32,
        /// Schema.
        pub schema: Option<String>,
        /// Name.
        pub name: String,
        /// Whether it was dropped in this WAL.
        #[serde(default)]
        pub is_gone: bool,
        /// What all parts have.
        #[serde(flatten)]
        pub part: Part,
        /// Entries inserted into leaves; of B-trees only.
        pub leaf_inserts: Option<u64>,
        /// Distinct leaves that these touched.
        pub leaf_blocks: Option<u64>,
        /// Share of them that went into the right-most leaf; at most, where no split and no image tells
        /// which one that is.
        pub rightmost_ratio: Option<f64>,
    }
}

row! {
    /// A database; without identity: records without a block.
    pub struct DatabaseRow {
        /// Its oid, 0 for what is shared.
        pub database: Option<u32>,
        /// Its name.
        pub database_name: Option<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// References to its blocks.
        pub block_refs: u64,
        /// Distinct blocks of it.
        pub distinct_blocks: u64,
    }
}

row! {
    /// A tablespace; without identity: records without a block.
    pub struct TablespaceRow {
        /// Its oid.
        pub tablespace: Option<u32>,
        /// Its name.
        pub tablespace_name: Option<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// References to its blocks.
        pub block_refs: u64,
        /// Distinct blocks of it.
        pub distinct_blocks: u64,
    }
}

row! {
    /// A fork; without identity: records without a block.
    pub struct ForkRow {
        /// `main`, `fsm`, `vm`, `init`.
        pub fork: Option<String>,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// References to its blocks.
        pub block_refs: u64,
        /// Distinct blocks of it.
        pub distinct_blocks: u64,
    }
}

row! {
    /// Blocks, those with the most references first.
    pub struct Blocks {
        /// Sums over all blocks.
        pub summary: BlockSummary,
        /// The blocks.
        pub top: Table<BlockRow>,
    }
}

row! {
    /// Sums over all blocks.
    pub struct BlockSummary {
        /// How many there are.
        pub distinct_blocks: u64,
        /// Records without a block.
        pub without_block: Numbers,
    }
}

row! {
    /// A block.
    pub struct BlockRow {
        /// Tablespace oid.
        pub tablespace: u32,
        /// Database oid.
        pub database: u32,
        /// File number.
        pub relfilenode: u32,
        /// `main`, `fsm`, `vm`, `init`.
        pub fork: String,
        /// Its number in the fork.
        pub block: u32,
        /// Schema of the relation.
        pub schema: Option<String>,
        /// Name of the relation.
        pub name: Option<String>,
        /// References to it.
        pub block_refs: u64,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// What refers to it most.
        pub by: Vec<BlockUse>,
    }
}

row! {
    /// References from one type of record.
    pub struct BlockUse {
        /// The type: `Heap/LOCK`.
        pub record: String,
        /// How many.
        pub block_refs: u64,
    }
}

row! {
    /// Transactions, the largest first.
    pub struct Transactions {
        /// Sums over all of them.
        pub summary: TransactionSummary,
        /// The transactions.
        pub top: Table<TransactionRow>,
    }
}

row! {
    /// Sums over all transactions.
    pub struct TransactionSummary {
        /// How many there are.
        pub transactions: u64,
        /// Committed ones.
        pub committed: u64,
        /// Aborted ones.
        pub aborted: u64,
        /// Prepared ones.
        pub prepared: u64,
        /// Those without an end in the WAL that was read.
        pub open: u64,
        /// Subtransactions that were folded into others.
        pub subtransactions: u64,
        /// Bytes of aborted ones.
        pub aborted_bytes: u64,
        /// How the bytes of committed ones are distributed.
        pub bytes_per_commit: CommitBytes,
        /// Records without a transaction.
        pub without_transaction: Numbers,
    }
}

row! {
    /// Percentiles, by nearest rank.
    pub struct CommitBytes {
        /// Of half of them.
        pub median: Option<u64>,
        /// Of nine in ten.
        pub p90: Option<u64>,
        /// Of 99 in a hundred.
        pub p99: Option<u64>,
        /// Of all.
        pub max: Option<u64>,
    }
}

row! {
    /// A top-level transaction.
    pub struct TransactionRow {
        /// Its xid.
        pub xid: String,
        /// `committed`, `aborted`, `prepared`, `open`.
        pub outcome: String,
        /// When it was committed.
        pub commit_time: Option<String>,
        /// Its first record.
        pub start_lsn: String,
        /// The end of its last record.
        pub end_lsn: String,
        /// The sums.
        #[serde(flatten)]
        pub numbers: Numbers,
        /// Subtransactions that were folded into it.
        pub subtransactions: u32,
        /// Whether the WAL shows that it is none itself.
        pub top_level: Option<bool>,
        /// Distinct relfilenodes that its records refer to.
        pub relations: u32,
    }
}
