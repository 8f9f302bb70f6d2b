//! The WAL's own clock: the first and the last time that a transaction or a checkpoint says.

use crate::scan::record::{Observe, Record};
use crate::wal::payload::Time;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::payload::xact;
use crate::wal::rmgr::{TRANSACTION, XLOG, XLOG_CHECKPOINT_ONLINE, XLOG_CHECKPOINT_SHUTDOWN};
use crate::wal::version::Version;
use serde::{Deserialize, Serialize};

/// First and last time seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// Earliest.
    pub first: Option<Time>,
    /// Latest.
    pub last: Option<Time>,
}

impl Clock {
    fn see(&mut self, time: Time) {
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }
}

/// The time that a record says, if it is of a kind that does. A call of its own, so that the loop
/// over all records keeps its registers.
#[inline(never)]
fn time_of(rmgr: u8, info: u8, main_data: &[u8], version: &Version) -> Option<Time> {
    if rmgr == TRANSACTION {
        return xact::stated_time(info, main_data);
    }
    if [XLOG_CHECKPOINT_SHUTDOWN, XLOG_CHECKPOINT_ONLINE].contains(&(info & 0xF0)) {
        return Checkpoint::parse(main_data, version.checkpoint).map(|c| c.time);
    }
    None
}

impl Observe for Clock {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        if rmgr == TRANSACTION || rmgr == XLOG {
            let main_data = record.main_data_start();
            if let Some(time) = time_of(rmgr, info, main_data, record.version) {
                self.see(time);
            }
        }
    }

    fn merge(&mut self, later: Clock) {
        later.first.into_iter().chain(later.last).for_each(|time| self.see(time));
    }
}
