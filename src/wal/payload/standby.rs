//! What a standby has to know (`src/include/storage/standbydefs.h`): which transactions run, and
//! which tables are locked.

use crate::wal::cursor::{Cursor, Field, List, at};

/// Tables are locked exclusively.
pub const LOCK: u8 = 0x00;
/// Which transactions run.
pub const RUNNING_XACTS: u8 = 0x10;

/// Which transactions run, written with every checkpoint and every 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningXacts<'a> {
    /// Whether subtransactions are missing, for there were too many.
    pub subxid_overflow: bool,
    /// The next xid.
    pub next_xid: u32,
    /// The oldest that runs, a subtransaction too.
    pub oldest_running_xid: u32,
    /// The newest that has ended.
    pub latest_completed_xid: u32,
    /// Top-level transactions.
    pub xids: List<'a, u32>,
    /// Subtransactions.
    pub subxids: List<'a, u32>,
}

impl<'a> RunningXacts<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<RunningXacts<'a>> {
        let mut cursor = Cursor::new(main_data);
        let (xids, subxids) = cursor.field()?;
        let subxid_overflow = cursor.field()?;
        cursor.take(3)?;
        Some(RunningXacts {
            subxid_overflow,
            next_xid: cursor.field()?,
            oldest_running_xid: cursor.field()?,
            latest_completed_xid: cursor.field()?,
            xids: cursor.list(xids)?,
            subxids: cursor.list(subxids)?,
        })
    }
}

/// A lock on a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Who holds it.
    pub xid: u32,
    /// The table's database.
    pub database: u32,
    /// The table's oid.
    pub relation: u32,
}

impl Field for Lock {
    const BYTES: usize = 12;

    fn read(bytes: &[u8]) -> Option<Lock> {
        Some(Lock { xid: at(bytes, 0)?, database: at(bytes, 4)?, relation: at(bytes, 8)? })
    }
}

/// The locks in the main data of a `LOCK` record; `None` if it is too short.
pub fn locks(main_data: &[u8]) -> Option<List<'_, Lock>> {
    Cursor::new(main_data).counted_list()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn running_transactions_and_their_subtransactions() {
        let data = words(&[2, 1, 1, 710, 700, 699, 700, 705, 701]);
        let running = RunningXacts::parse(&data).expect("three xids");
        assert!(running.subxid_overflow);
        assert_eq!((running.next_xid, running.oldest_running_xid), (710, 700));
        assert_eq!(running.latest_completed_xid, 699);
        assert_eq!(running.xids.iter().collect::<Vec<_>>(), [700, 705]);
        assert_eq!(running.subxids.iter().collect::<Vec<_>>(), [701]);
        assert_eq!(RunningXacts::parse(&data[..35]), None);
    }

    #[test]
    fn locks_name_the_table() {
        let data = words(&[1, 700, 5, 16384]);
        let want = Lock { xid: 700, database: 5, relation: 16384 };
        assert_eq!(locks(&data).expect("one").iter().collect::<Vec<_>>(), [want]);
        assert_eq!(locks(&data[..15]), None);
    }
}
