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
    }
}

/// The dimensions asked for.
pub type Dimensions = BTreeSet<Dimension>;
