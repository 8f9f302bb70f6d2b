//! Transaction ids far ahead of those that were assigned: a server has the pages of its commit log for them
//! only once they are, so that recovery ends without (`could not access status of transaction`), or adds
//! all that lie between to what a standby knows (`too many KnownAssignedXids`).
//!
//! What was assigned before a record is said by the next `RUNNING_XACTS` or shutdown checkpoint. After the
//! last of them nothing is known.

use super::xid_order::follows;
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::prepare;
use walstat_format::payload::standby::{self, RunningXacts};
use walstat_format::payload::xact::{self, Assignment, End};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::record_header::FIRST_NORMAL_XID;
use walstat_format::rmgr::{RecordType, STANDBY, TRANSACTION, XLOG};

/// Transactions in a page of the commit log, where it has the usual 8 kB.
const XIDS_A_PAGE: u32 = 32_768;

/// The newest id, and where it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Newest {
    xid: u32,
    lsn: Lsn,
    record: RecordType,
    /// The newest one before.
    before: Option<u32>,
}

/// A record of an id that was not assigned, and the next one that was to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unassigned {
    pub lsn: Lsn,
    pub record: RecordType,
    pub xid: u32,
    pub next: u32,
}

/// The newest id of a stretch of WAL, and the next one that it says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NewestXid {
    newest: Option<Newest>,
    first_next: Option<u32>,
}

impl NewestXid {
    /// Takes note of the id of a record, where it is newer than the newest one.
    #[inline(always)]
    pub(super) fn see(&mut self, record: &Record<'_>) {
        self.take(record.header.xid, record);
    }

    #[inline(always)]
    fn take(&mut self, xid: u32, record: &Record<'_>) {
        if self.newest.is_none_or(|newest| follows(xid, newest.xid)) {
            self.set(xid, record.lsn, record.record_type());
        }
    }

    /// A call of its own, so that the loop over all records keeps its registers.
    #[inline(never)]
    fn set(&mut self, xid: u32, lsn: Lsn, record: RecordType) {
        if xid >= FIRST_NORMAL_XID {
            let before = self.newest.map(|newest| newest.xid);
            self.newest = Some(Newest { xid, lsn, record, before });
        }
    }

    /// Looks into a record that may name other ids, or the next one.
    pub(super) fn look_into(&mut self, record: &Record<'_>) -> Option<Unassigned> {
        self.take_others(record);
        let next = next_xid(record)?;
        let found = self.unassigned(next);
        self.newest = self.newest.filter(|_| found.is_none());
        self.first_next.get_or_insert(next);
        found
    }

    /// Takes note of the ids in a record's main data that redo looks up, or has a standby know of.
    fn take_others(&mut self, record: &Record<'_>) -> Option<()> {
        let mut take = |xid| self.take(xid, record);
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        match (rmgr, info & xact::OPCODE_MASK) {
            (TRANSACTION, xact::ASSIGNMENT) => {
                let main = record.main_data()?;
                Assignment::parse(&main)?.subxids.iter().for_each(take);
            }
            (TRANSACTION, xact::PREPARE) => take(prepare::xid(record.main_data_start())?),
            (TRANSACTION, _) if info & xact::HAS_INFO != 0 => {
                let main = record.main_data()?;
                let end = End::parse(info, &main, record.version)?;
                end.subxids.iter().chain(end.prepared_xid).for_each(take);
            }
            (STANDBY, standby::LOCK) => {
                standby::lock_xids(&record.main_data()?)?.for_each(take);
            }
            _ => {}
        }
        Some(())
    }

    /// The record of the newest id, if that was not assigned when this one was the next.
    fn unassigned(&self, next: u32) -> Option<Unassigned> {
        let Newest { xid, lsn, record, before } = self.newest?;
        // A server does not heed a next one that lies before what it knows.
        let is_known = before.is_none_or(|before| !follows(before, next));
        let is_ahead = follows(xid, next) && xid / XIDS_A_PAGE != next / XIDS_A_PAGE;
        (is_known && is_ahead).then_some(Unassigned { lsn, record, xid, next })
    }

    /// Adds a stretch that comes right after.
    pub(super) fn merge(&mut self, later: NewestXid) -> Option<Unassigned> {
        let found = later.first_next.and_then(|next| self.unassigned(next));
        let earlier = self.newest.filter(|_| found.is_none());
        self.newest = match (earlier, later.newest) {
            (Some(earlier), Some(later)) if follows(later.xid, earlier.xid) => {
                Some(Newest { before: later.before.or(Some(earlier.xid)), ..later })
            }
            (earlier, later) => earlier.or(later),
        };
        self.first_next = self.first_next.or(later.first_next);
        found
    }
}

/// What a record says of the next id; all before it were assigned earlier.
fn next_xid(record: &Record<'_>) -> Option<u32> {
    match (record.header.rmgr, record.header.rmgr_info()) {
        (STANDBY, standby::RUNNING_XACTS) => {
            RunningXacts::parse(&record.main_data()?).map(|running| running.next_xid)
        }
        (XLOG, xlog::CHECKPOINT_SHUTDOWN) => {
            let checkpoint = Checkpoint::parse(&record.main_data()?, record.version.checkpoint)?;
            Some(checkpoint.next_xid as u32)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of records and, negative, the next one by a record that says it.
    fn of(ids: &[i64]) -> (NewestXid, Option<u32>) {
        let mut found = None;
        let mut all = NewestXid::default();
        for &id in ids {
            let mut one = NewestXid::default();
            let xid = id.unsigned_abs() as u32;
            let record = RecordType { rmgr: 10, slot: 0 };
            let newest = |xid| Newest { xid, lsn: Lsn(1), record, before: None };
            if id < 0 {
                one.first_next = Some(xid);
            } else {
                one.newest = Some(newest(xid));
            }
            let unassigned = all.merge(one);
            found = found.or(unassigned.map(|it| it.xid));
        }
        (all, found)
    }

    #[test]
    fn an_id_beyond_the_page_of_the_next_one_was_not_assigned() {
        assert_eq!(of(&[700, 705, 702, -706]).1, None);
        assert_eq!(of(&[700, 4_194_304 + 700, 701, -702]).1, Some(4_194_304 + 700));
        // On a page that is there.
        assert_eq!(of(&[700, 900, 701, -702]).1, None);
        // Nobody says what was next.
        assert_eq!(of(&[700, 4_194_304 + 700, 701]).1, None);
        // A next one that lies before is not heeded.
        assert_eq!(of(&[90_000, 90_001, -700, 90_002]).1, None);
        // A record that says it is looked at for nothing else.
        assert_eq!(of(&[700, -4_194_304, 701, -702]).1, None);
        // After 2^32 - 1 comes 3.
        assert_eq!(of(&[4_294_967_290, 5, -6]).1, None);
    }

    #[test]
    fn stretches_join_in_any_way() {
        let ids = [700, 4_194_304 + 700, 701, -702, 703, -704];
        for cut in 0..=ids.len() {
            let (mut first, in_first) = of(&ids[..cut]);
            let (second, in_second) = of(&ids[cut..]);
            let between = first.merge(second).map(|it| it.xid);
            let found = in_first.or(between).or(in_second);
            assert_eq!(found, Some(4_194_304 + 700), "{cut}");
        }
    }
}
