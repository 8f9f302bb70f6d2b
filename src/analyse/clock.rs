//! The WAL's own clock: the first and the last time that a commit, an abort or a checkpoint
//! says.

use crate::scan::record::{Observe, Record};
use crate::wal::payload::Time;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::payload::xact;
use crate::wal::rmgr::{TRANSACTION, XLOG, XLOG_CHECKPOINT_ONLINE, XLOG_CHECKPOINT_SHUTDOWN};
use crate::wal::version::Version;
use std::borrow::Cow;

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

/// The time that a checkpoint record says.
#[inline(never)]
fn checkpoint_time(main_data: Option<Cow<'_, [u8]>>, version: &Version) -> Option<Time> {
    Checkpoint::parse(&main_data?, version.checkpoint).map(|checkpoint| checkpoint.time)
}

impl Observe for Clock {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        let time = match (rmgr, info & 0xF0) {
            (TRANSACTION, _) => {
                record.main_data_first::<8>().and_then(|bytes| xact::end_time(info, &bytes))
            }
            (XLOG, XLOG_CHECKPOINT_SHUTDOWN | XLOG_CHECKPOINT_ONLINE) => {
                checkpoint_time(record.main_data(), record.version)
            }
            _ => None,
        };
        if let Some(time) = time {
            self.see(time);
        }
    }

    fn merge(&mut self, later: Clock) {
        later.first.into_iter().chain(later.last).for_each(|time| self.see(time));
    }
}
