//! Tablespaces made and dropped (`src/include/commands/tablespace.h`).

use crate::wal::cursor::Cursor;

const CREATE: u8 = 0x00;
const DROP: u8 = 0x10;

/// What becomes of a tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablespaceChange<'a> {
    /// It is made.
    Create {
        /// Its oid.
        tablespace: u32,
        /// Where its files lie.
        path: &'a [u8],
    },
    /// It goes away.
    Drop {
        /// Its oid.
        tablespace: u32,
    },
}

impl<'a> TablespaceChange<'a> {
    /// Reads the main data; `None` for an unknown type and for main data that is too short.
    pub fn parse(info: u8, main_data: &'a [u8]) -> Option<TablespaceChange<'a>> {
        let mut cursor = Cursor::new(main_data);
        let tablespace = cursor.field()?;
        match info & 0xF0 {
            CREATE => Some(TablespaceChange::Create { tablespace, path: cursor.text()? }),
            DROP => Some(TablespaceChange::Drop { tablespace }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tablespace_has_an_oid_and_a_path() {
        let data = b"\x05\0\0\0/disk\0";
        let create = TablespaceChange::Create { tablespace: 5, path: b"/disk" };
        assert_eq!(TablespaceChange::parse(0x00, data), Some(create));
        assert_eq!(TablespaceChange::parse(0x00, &data[..9]), None);
        let drop = TablespaceChange::Drop { tablespace: 5 };
        assert_eq!(TablespaceChange::parse(0x10, &data[..4]), Some(drop));
        assert_eq!(TablespaceChange::parse(0x10, &data[..3]), None);
        assert_eq!(TablespaceChange::parse(0x20, data), None);
    }
}
