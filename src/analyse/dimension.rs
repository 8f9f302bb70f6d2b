//! The dimensions that can be asked for.

use std::collections::BTreeSet;

named! {
    /// What records are counted by.
    pub enum Dimension {
        Rmgr "rmgr" "By resource manager";
        Record "record" "By record type";
    }
}

/// The dimensions asked for.
pub type Dimensions = BTreeSet<Dimension>;
