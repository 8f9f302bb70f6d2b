//! What a standby has to know (`src/include/storage/standbydefs.h`): which transactions run.

use super::invalidation::Invalidation;
use crate::cursor::{Cursor, List};

/// Which tables are locked exclusively.
pub const LOCK: u8 = 0x00;
/// What caches have to forget, of a transaction without an xid (9.6 and later).
pub(crate) const INVALIDATIONS: u8 = 0x20;
/// Which transactions run.
pub const RUNNING_XACTS: u8 = 0x10;

/// Which transactions run, written with every checkpoint and every 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningXacts<'a> {
    /// The next that will be given; it and all later ones begin after this record.
    pub next_xid: u32,
    /// The oldest that runs, a subtransaction too.
    pub oldest_running_xid: u32,
    /// Those that run, without subtransactions.
    pub xids: List<'a, u32>,
    /// Their subtransactions.
    pub subxids: List<'a, u32>,
    /// Whether some subtransactions are not listed.
    pub is_overflowed: bool,
}

impl<'a> RunningXacts<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<RunningXacts<'a>> {
        let mut cursor = Cursor::new(main_data);
        let (xids, subxids) = cursor.field()?;
        let [is_overflowed, ..]: [u8; 4] = cursor.field::<u32>()?.to_le_bytes();
        let next_xid = cursor.field()?;
        let oldest_running_xid = cursor.field()?;
        // The newest xid that has ended.
        cursor.take(4)?;
        let xids = cursor.list(xids)?;
        let subxids = cursor.list(subxids)?;
        let is_overflowed = is_overflowed != 0;
        Some(RunningXacts { next_xid, oldest_running_xid, xids, subxids, is_overflowed })
    }
}

/// A lock: transaction, database, table (`xl_standby_lock`).
type Lock = (u32, (u32, u32));

/// The transactions whose locks a `LOCK` tells (`xl_standby_locks`); `None`: it has fewer than it says.
pub fn lock_xids(main_data: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let locks = Cursor::new(main_data).counted_list::<Lock>()?;
    Some(locks.iter().map(|(xid, _)| xid))
}

/// Whether an `INVALIDATIONS` has as many as it says, after database, tablespace and a flag
/// (`xl_invalidations`).
pub(crate) fn has_invalidations(main_data: &[u8]) -> bool {
    let mut cursor = Cursor::new(main_data);
    cursor.take(12).and_then(|_| cursor.counted_list::<Invalidation>()).is_some()
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
        assert_eq!((running.next_xid, running.oldest_running_xid), (710, 700));
        assert_eq!(running.xids.iter().collect::<Vec<_>>(), [700, 705]);
        assert_eq!(running.subxids.iter().collect::<Vec<_>>(), [701]);
        assert!(running.is_overflowed);
        assert_eq!(RunningXacts::parse(&data[..35]), None);
    }
}
