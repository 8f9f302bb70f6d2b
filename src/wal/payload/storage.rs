//! Relation files made and truncated (`src/include/catalog/storage_xlog.h`). That files go away
//! stands in the record that ends the transaction: [`super::xact::End::dropped`].

use crate::wal::block::RelFileLocator;
use crate::wal::cursor::Cursor;

/// A file is made.
pub const CREATE: u8 = 0x10;
/// A relation's files are cut off.
pub const TRUNCATE: u8 = 0x20;

/// A file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Create {
    /// The relation.
    pub relation: RelFileLocator,
    /// Fork number.
    pub fork: i32,
}

impl Create {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<Create> {
        let mut cursor = Cursor::new(main_data);
        Some(Create { relation: cursor.field()?, fork: cursor.field()? })
    }
}

/// A relation's files are cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncate {
    /// Blocks that the main fork keeps.
    pub blocks: u32,
    /// The relation.
    pub relation: RelFileLocator,
}

impl Truncate {
    /// Reads the main data; `None` if it is too short. Flags follow from 9.6 on.
    pub fn parse(main_data: &[u8]) -> Option<Truncate> {
        let mut cursor = Cursor::new(main_data);
        Some(Truncate { blocks: cursor.field()?, relation: cursor.field()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_name_the_relation() {
        let data: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let relation = RelFileLocator { tablespace: 1, database: 2, relfilenode: 3 };
        assert_eq!(Create::parse(&data), Some(Create { relation, fork: 4 }));
        let relation = RelFileLocator { tablespace: 2, database: 3, relfilenode: 4 };
        assert_eq!(Truncate::parse(&data), Some(Truncate { blocks: 1, relation }));
        assert_eq!((Create::parse(&data[..15]), Truncate::parse(&data[..15])), (None, None));
    }
}
