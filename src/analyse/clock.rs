//! The WAL's own clock: the first and the last time that a commit, an abort or a checkpoint
//! says.

use crate::scan::record::{Observe, Record};
use crate::wal::payload::Time;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::payload::xact;
use crate::wal::rmgr::{TRANSACTION, XLOG, XLOG_CHECKPOINT_ONLINE, XLOG_CHECKPOINT_SHUTDOWN};

/// First and last time seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// The time that a record says, if it is of a kind that does.
fn time_of(record: &Record<'_>) -> Option<Time> {
    let info = record.header.info;
    if record.header.rmgr == TRANSACTION {
        return xact::end_time(info, record.main_data_without_blocks());
    }
    if [XLOG_CHECKPOINT_SHUTDOWN, XLOG_CHECKPOINT_ONLINE].contains(&(info & 0xF0)) {
        let layout = record.version.checkpoint;
        return Checkpoint::parse(record.main_data_without_blocks(), layout).map(|c| c.time);
    }
    None
}

impl Observe for Clock {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if record.header.rmgr == TRANSACTION || record.header.rmgr == XLOG {
            if let Some(time) = time_of(record) {
                self.see(time);
            }
        }
    }

    fn merge(&mut self, later: Clock) {
        later.first.into_iter().chain(later.last).for_each(|time| self.see(time));
    }
}
