//! A page of a relation, as what is counted by pages names it.

use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;

/// A page of the main fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Page {
    pub relation: RelFileLocator,
    pub block: u32,
}
