//! Databases made and dropped (`src/include/commands/dbcommands_xlog.h`); the opcodes moved in 15.

use super::rmgr_info;
use crate::cursor::{Cursor, List};
use crate::version::{Release, Version};

const CREATE: u8 = 0x00;
/// Since 15: nothing is copied as files, the pages follow as images.
const CREATE_WAL_LOG: u8 = 0x10;
const DROP_15: u8 = 0x20;
/// Up to 14.
const DROP: u8 = 0x10;

/// What becomes of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseChange<'a> {
    /// It is made.
    Create {
        /// Its oid.
        database: u32,
        /// Its tablespace.
        tablespace: u32,
        /// Oid and tablespace of the database whose files are copied; `None` where the pages
        /// follow in the WAL (15 and later).
        copied_from: Option<(u32, u32)>,
    },
    /// It goes away.
    Drop {
        /// Its oid.
        database: u32,
        /// The tablespaces it has files in; up to 12 each has a record of its own.
        tablespaces: List<'a, u32>,
    },
}

impl<'a> DatabaseChange<'a> {
    /// Reads the main data; `None` for an unknown type and for main data that is too short.
    pub fn parse(info: u8, main_data: &'a [u8], version: &Version) -> Option<DatabaseChange<'a>> {
        let mut cursor = Cursor::new(main_data);
        let has_wal_log = version.since(Release::V15);
        match rmgr_info(info) {
            CREATE => create(&mut cursor, true),
            CREATE_WAL_LOG if has_wal_log => create(&mut cursor, false),
            DROP_15 if has_wal_log => drop_of(&mut cursor, version),
            DROP if !has_wal_log => drop_of(&mut cursor, version),
            _ => None,
        }
    }
}

fn create<'a>(cursor: &mut Cursor<'a>, is_copy: bool) -> Option<DatabaseChange<'a>> {
    let (database, tablespace) = cursor.field()?;
    let copied_from = if is_copy { Some(cursor.field()?) } else { None };
    Some(DatabaseChange::Create { database, tablespace, copied_from })
}

fn drop_of<'a>(cursor: &mut Cursor<'a>, version: &Version) -> Option<DatabaseChange<'a>> {
    let database = cursor.field()?;
    let tablespaces =
        if version.since(Release::V13) { cursor.counted_list()? } else { cursor.list(1)? };
    Some(DatabaseChange::Drop { database, tablespaces })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn a_database_is_copied_or_logged() {
        let data = words(&[16384, 1663, 1, 1664]);
        let create =
            |copied_from| DatabaseChange::Create { database: 16384, tablespace: 1663, copied_from };
        let copy = DatabaseChange::parse(0x01, &data, &VERSIONS[6]);
        assert_eq!(copy, Some(create(Some((1, 1664)))));
        let logged = DatabaseChange::parse(0x10, &data[..8], &VERSIONS[7]);
        assert_eq!(logged, Some(create(None)));
        assert_eq!(DatabaseChange::parse(0x00, &data[..15], &VERSIONS[7]), None);
    }

    #[test]
    fn a_dropped_database_names_its_tablespaces() {
        let drop = |info, data: &[u8], index: usize| match DatabaseChange::parse(
            info,
            data,
            &VERSIONS[index],
        ) {
            Some(DatabaseChange::Drop { database: 5, tablespaces }) => {
                Some(tablespaces.iter().collect::<Vec<_>>())
            }
            _ => None,
        };
        assert_eq!(drop(0x11, &words(&[5, 1663]), 4), Some(vec![1663]));
        let data = words(&[5, 2, 1663, 16400]);
        assert_eq!(drop(0x11, &data, 6), Some(vec![1663, 16400]));
        assert_eq!(drop(0x21, &data, 7), Some(vec![1663, 16400]));
        assert_eq!(drop(0x21, &data, 6), None);
        assert_eq!(drop(0x21, &data[..15], 7), None);
    }
}
