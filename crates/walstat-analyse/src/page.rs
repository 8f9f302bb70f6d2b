//! A page of a relation, as what is counted by pages names it.

use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;

/// A page of the main fork. Two numbers rather than four: they are hashed and compared for every update of
/// a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Page {
    /// Tablespace and database.
    outer: u64,
    /// Relation's file and block.
    inner: u64,
}

fn both(low: u32, high: u32) -> u64 {
    u64::from(high) << u32::BITS | u64::from(low)
}

impl Page {
    #[inline(always)]
    pub(crate) fn new(relation: RelFileLocator, block: u32) -> Page {
        let RelFileLocator { tablespace, database, relfilenode } = relation;
        Page { outer: both(tablespace, database), inner: both(relfilenode, block) }
    }

    #[inline(always)]
    pub(crate) fn relation(&self) -> RelFileLocator {
        RelFileLocator {
            tablespace: self.outer as u32,
            database: (self.outer >> u32::BITS) as u32,
            relfilenode: self.inner as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_block_of_one_relation() {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode: u32::MAX };
        assert_eq!(Page::new(relation, 7).relation(), relation);
        let others = [
            RelFileLocator { tablespace: 1664, ..relation },
            RelFileLocator { database: 6, ..relation },
            RelFileLocator { relfilenode: 16384, ..relation },
        ];
        assert!(others.iter().all(|other| Page::new(*other, 7) != Page::new(relation, 7)));
        assert_ne!(Page::new(relation, 8), Page::new(relation, 7));
    }
}
