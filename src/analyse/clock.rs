//! The WAL's own clock: the first and the last time that a transaction or a checkpoint says.

use crate::scan::record::{Observe, Record};
use crate::wal::payload::Time;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::payload::xact;
use crate::wal::rmgr::{TRANSACTION, XLOG, XLOG_CHECKPOINT_ONLINE, XLOG_CHECKPOINT_SHUTDOWN};
use crate::wal::version::Version;
use serde::{Deserialize, Serialize};

/// Earliest and latest time.
type Times = Option<(Time, Time)>;

/// First and last time seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// Of all records: what the filters leave out tells the time of the others.
    pub all: Times,
    /// Of the records that are counted.
    pub counted: Times,
}

fn see(times: &mut Times, time: Time) {
    let (first, last) = times.unwrap_or((time, time));
    *times = Some((first.min(time), last.max(time)));
}

/// The time that a record says, if it says one.
#[inline(always)]
fn said(record: &Record<'_>) -> Option<Time> {
    let (rmgr, info) = (record.header.rmgr, record.header.info);
    let may_say = rmgr == TRANSACTION || rmgr == XLOG;
    may_say.then(|| time_of(rmgr, info, record.main_data_start(), record.version)).flatten()
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
        if let Some(time) = said(record) {
            see(&mut self.all, time);
            see(&mut self.counted, time);
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if let Some(time) = said(record) {
            see(&mut self.all, time);
        }
    }

    fn merge(&mut self, later: Clock) {
        for (times, later) in [(&mut self.all, later.all), (&mut self.counted, later.counted)] {
            for time in later.into_iter().flat_map(|(first, last)| [first, last]) {
                see(times, time);
            }
        }
    }
}
