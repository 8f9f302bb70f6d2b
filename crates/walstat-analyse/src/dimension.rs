//! The dimensions that can be asked for.

use std::collections::BTreeSet;

named! {
    /// What records are counted by.
    pub enum Dimension {
        Rmgr "rmgr" "By resource manager";
        Record "record" "By record type";
        Relation "relation" "By fork of a relation";
        Table "table" "By table, with its indexes and TOAST";
        Database "database" "By database";
        Tablespace "tablespace" "By tablespace";
        Fork "fork" "By fork";
        Block "block" "By block, hottest first";
        Transaction "transaction" "By transaction";
        Timeline "timeline" "WAL over time";
        Checkpoint "checkpoint" "By checkpoint cycle";
        Recovery "recovery" "What a crash would make the server replay";
        Replication "replication" "How fast WAL grows, and what keeps up with it";
        Commit "commit" "Commits, and what they ask of a disk";
        Kind "kind" "By kind of transaction: what it did to which tables";
    }
}

/// The dimensions asked for.
pub type Dimensions = BTreeSet<Dimension>;
