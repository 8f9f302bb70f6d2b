//! The first and the last time that a transaction or a checkpoint states.

use super::time_map::extend_span;
use serde::{Deserialize, Serialize};
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::rmgr_info;
use walstat_format::payload::xact;
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr::{TRANSACTION, XLOG};
use walstat_format::version::Version;
use walstat_read::scan::observe::Observe;

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
    if [xlog::CHECKPOINT_SHUTDOWN, xlog::CHECKPOINT_ONLINE].contains(&rmgr_info(info)) {
        return Checkpoint::parse(main_data, version.checkpoint).map(|c| c.time);
    }
    None
}

impl Observe for Clock {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if let Some(time) = said(record) {
            extend_span(&mut self.all, time);
            extend_span(&mut self.counted, time);
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if let Some(time) = said(record) {
            extend_span(&mut self.all, time);
        }
    }

    fn merge(&mut self, later: Clock) {
        for (times, later) in [(&mut self.all, later.all), (&mut self.counted, later.counted)] {
            for time in later.into_iter().flat_map(|(first, last)| [first, last]) {
                extend_span(times, time);
            }
        }
    }
}
