//! Which relation's files a block lies in, as WAL names them: by numbers, never by a name.

use crate::cursor::Field;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A relation's files: where the server keeps them, not what it calls them
/// (`RelFileLocator`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct RelFileLocator {
    /// Tablespace oid.
    pub tablespace: u32,
    /// Database oid, 0 for shared relations.
    pub database: u32,
    /// File number.
    pub relfilenode: u32,
}

/// As `pg_waldump -R` takes it: `1663/5/16384`.
impl fmt::Display for RelFileLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.relfilenode)
    }
}

impl RelFileLocator {
    /// Reads the locator of a block reference.
    #[inline(always)]
    pub(crate) fn parse(bytes: &[u8; 12]) -> RelFileLocator {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        RelFileLocator {
            tablespace: u32::from_le_bytes([a, b, c, d]),
            database: u32::from_le_bytes([e, f, g, h]),
            relfilenode: u32::from_le_bytes([i, j, k, l]),
        }
    }
}

impl Field for RelFileLocator {
    const BYTES: usize = 12;

    fn read(bytes: &[u8]) -> Option<RelFileLocator> {
        let (tablespace, (database, relfilenode)) = Field::read(bytes)?;
        Some(RelFileLocator { tablespace, database, relfilenode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::at;

    #[test]
    fn a_locator_is_three_numbers() {
        let bytes = [0xEE, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        let want = RelFileLocator { tablespace: 1, database: 2, relfilenode: 3 };
        assert_eq!(at(&bytes, 1), Some(want));
        assert_eq!(at::<RelFileLocator>(&bytes, 2), None);
        assert_eq!(bytes.last_chunk().map(RelFileLocator::parse), Some(want));
    }
}
