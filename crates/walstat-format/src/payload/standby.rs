//! What a standby has to know (`src/include/storage/standbydefs.h`): which transactions run.

use crate::cursor::{Cursor, List};

/// Which transactions run.
pub const RUNNING_XACTS: u8 = 0x10;

/// Which transactions run, written with every checkpoint and every 15 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningXacts<'a> {
    /// The oldest that runs, a subtransaction too.
    pub oldest_running_xid: u32,
    /// Those that run, without subtransactions.
    pub xids: List<'a, u32>,
}

impl<'a> RunningXacts<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &'a [u8]) -> Option<RunningXacts<'a>> {
        let mut cursor = Cursor::new(main_data);
        let (xids, subxids) = cursor.field()?;
        // Whether subtransactions are missing, with padding, and the next xid.
        cursor.take(8)?;
        let oldest_running_xid = cursor.field()?;
        // The newest xid that has ended.
        cursor.take(4)?;
        let xids = cursor.list(xids)?;
        cursor.list::<u32>(subxids)?;
        Some(RunningXacts { oldest_running_xid, xids })
    }
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
        assert_eq!(running.oldest_running_xid, 700);
        assert_eq!(running.xids.iter().collect::<Vec<_>>(), [700, 705]);
        assert_eq!(RunningXacts::parse(&data[..35]), None);
    }
}
