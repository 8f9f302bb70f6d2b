//! Invalidation messages: what a transaction tells the caches of other sessions to forget
//! (`SharedInvalidationMessage` in `src/include/storage/sinval.h`). They name the relations whose
//! definition it changed.

use crate::cursor::{Field, at};

/// `SHAREDINVALRELCACHE_ID`: a relation's entry.
const RELATION: i8 = -2;

/// One message of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalidation {
    /// What is forgotten: 0 and above an entry of that catalog cache, -1 a whole catalog, -2 a
    /// relation, -3 its files, -4 the map of catalogs to files, -5 a snapshot, -6 (18 and later)
    /// a relation for logical replication.
    pub id: i8,
    /// The database, 0 for shared catalogs; the high part of the backend for -3.
    pub database: u32,
    /// What in it: an oid, or a hash value of a catalog cache.
    pub object: u32,
}

impl Field for Invalidation {
    const BYTES: usize = 16;

    fn read(bytes: &[u8]) -> Option<Invalidation> {
        let id: u8 = at(bytes, 0)?;
        let message =
            Invalidation { id: id.cast_signed(), database: at(bytes, 4)?, object: at(bytes, 8)? };
        (bytes.len() >= Self::BYTES).then_some(message)
    }
}

impl Invalidation {
    /// Database and oid of the relation whose entry is forgotten; oid 0 stands for all of them.
    pub fn relation(&self) -> Option<(u32, u32)> {
        (self.id == RELATION).then_some((self.database, self.object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_told_from_other_messages() {
        let mut bytes = [0u8; 16];
        (bytes[0], bytes[4], bytes[8]) = (0xFE, 5, 9);
        let relation = |bytes: &[u8]| Invalidation::read(bytes).and_then(|m| m.relation());
        assert_eq!(relation(&bytes), Some((5, 9)));
        bytes[0] = 7;
        assert_eq!(relation(&bytes), None);
        assert_eq!(Invalidation::read(&bytes[..15]), None);
    }
}
