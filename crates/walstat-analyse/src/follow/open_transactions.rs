//! Transactions that go on: those that were seen to begin, those that a stored state knew, and those that a
//! RUNNING_XACTS record lists though nothing of them was read.

use crate::transaction::{OpenPart, Transactions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::standby::{RUNNING_XACTS, RunningXacts};
use walstat_format::payload::xact::{self, End};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr;

/// So many are stored, the oldest.
const STORED_MAX: usize = 1000;

/// A transaction that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTransaction {
    /// Which.
    pub xid: u32,
    /// Where it began; or a place at which it had begun already.
    pub since: Lsn,
    /// Whether that is its first record.
    pub is_first: bool,
    /// Whether it is prepared, and so outlives the server.
    is_prepared: bool,
    /// It may have ended unseen: the server has stopped since, and has not said whether it was prepared, or
    /// WAL is missing.
    is_doubtful: bool,
}

/// What is known at the end, to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stored {
    is_known: bool,
    transactions: Vec<OpenTransaction>,
}

/// What runs, as was said last.
#[derive(Debug, Clone)]
struct Said {
    at: Lsn,
    /// Ascending, with subtransactions.
    xids: Vec<u32>,
    /// The oldest, where there are more subtransactions than are listed.
    oldest: Option<u32>,
    /// The server stopped: all have ended but prepared ones.
    is_stop: bool,
}

/// An xid, and where it was read.
#[derive(Debug, Clone, Copy)]
struct FirstXid {
    xid: u32,
    lsn: Lsn,
}

/// Transactions that go on, beside those that were seen to begin.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenTransactions {
    /// Those known from a state or from RUNNING_XACTS, whose first record this process has not read.
    before: BTreeMap<u32, OpenTransaction>,
    /// The first xid that a record has since reading began, or went on after a loss.
    first_xid: Option<FirstXid>,
    /// Whether it was said since then what runs.
    is_known: bool,
    said: Option<Said>,
}

fn precedes(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() < 0
}

impl Said {
    fn may_run(&self, xid: u32, start: Lsn, is_prepared: bool) -> bool {
        let is_listed = self.xids.binary_search(&xid).is_ok();
        let is_unlisted = self.oldest.is_some_and(|oldest| !precedes(xid, oldest));
        start >= self.at || is_listed || is_unlisted || (self.is_stop && is_prepared)
    }
}

impl OpenTransactions {
    /// Takes note of a record, after `seen` has.
    #[inline]
    pub(super) fn note(&mut self, record: &Record<'_>, seen: &Transactions) {
        let header = &record.header;
        if self.first_xid.is_none() {
            let first = FirstXid { xid: header.xid, lsn: record.lsn };
            self.first_xid = Some(first).filter(|first| first.xid != 0);
        }
        match (header.rmgr, header.info & 0xF0) {
            (rmgr::XLOG, xlog::CHECKPOINT_SHUTDOWN) => self.stopped(record.lsn),
            (rmgr::STANDBY, RUNNING_XACTS) => self.running(record, seen),
            (rmgr::TRANSACTION, _) if !self.before.is_empty() => self.ended(record),
            _ => {}
        }
    }

    fn stopped(&mut self, at: Lsn) {
        self.before.values_mut().for_each(|open| open.is_doubtful = !open.is_prepared);
        self.said = Some(Said { at, xids: Vec::new(), oldest: None, is_stop: true });
    }

    fn running(&mut self, record: &Record<'_>, seen: &Transactions) {
        let main_data = record.main_data().unwrap_or_default();
        let Some(running) = RunningXacts::parse(&main_data) else { return };
        // One whose end was read already may be listed, and one that has written nothing since it began.
        for xid in running.xids.iter().filter(|xid| !seen.has_seen(*xid)) {
            // Xids are given in order: an older one was given before the first that was read.
            let later = self.first_xid.filter(|first| !self.is_known && precedes(xid, first.xid));
            let since = later.map_or(record.lsn, |first| first.lsn);
            self.before.entry(xid).or_insert(OpenTransaction {
                xid,
                since,
                is_first: false,
                is_prepared: false,
                is_doubtful: false,
            });
        }
        let mut xids: Vec<u32> = running.xids.iter().chain(running.subxids.iter()).collect();
        xids.sort_unstable();
        let oldest = Some(running.oldest_running_xid).filter(|_| running.is_overflowed);
        let said = Said { at: record.lsn, xids, oldest, is_stop: false };
        self.before.retain(|xid, _| said.may_run(*xid, Lsn(0), false));
        self.before.values_mut().for_each(|open| open.is_doubtful = false);
        (self.said, self.is_known) = (Some(said), true);
    }

    fn ended(&mut self, record: &Record<'_>) {
        let info = record.header.info;
        if xact::ends_alone(info).is_some() {
            self.before.remove(&record.header.xid);
            return;
        }
        let main_data = record.main_data().unwrap_or_default();
        if info & xact::OPCODE_MASK == xact::PREPARE {
            let prepared = Prepare::parse(&main_data, record.version);
            let open = prepared.and_then(|prepared| self.before.get_mut(&prepared.xid));
            open.into_iter().for_each(|open| open.is_prepared = true);
        } else if let Some(end) = End::parse(info, &main_data, record.version) {
            self.before.remove(&end.prepared_xid.unwrap_or(record.header.xid));
            end.subxids.iter().for_each(|sub| _ = self.before.remove(&sub));
        }
    }

    /// WAL is missing: what began and ended there is not known.
    pub(super) fn lost(&mut self) {
        self.before.values_mut().for_each(|open| open.is_doubtful = true);
        (self.first_xid, self.is_known) = (None, false);
    }

    /// All that go on, each xid once.
    fn all(&self, seen: &Transactions) -> BTreeMap<u32, OpenTransaction> {
        let mut all = self.before.clone();
        for OpenPart { xid, start, is_prepared } in seen.open() {
            if self.said.as_ref().is_some_and(|said| !said.may_run(xid, start, is_prepared)) {
                continue;
            }
            let open = OpenTransaction {
                xid,
                since: start,
                is_first: true,
                is_prepared,
                is_doubtful: false,
            };
            let known = all.entry(xid).or_insert(open);
            known.is_prepared |= is_prepared;
            known.is_doubtful &= !is_prepared;
        }
        all
    }

    /// The oldest that goes on; and whether all that go on are known.
    pub(super) fn oldest(&self, seen: &Transactions) -> (Option<OpenTransaction>, bool) {
        let all = self.all(seen);
        let is_known = self.is_known && !all.values().any(|open| open.is_doubtful);
        let certain = all.into_values().filter(|open| !open.is_doubtful);
        (certain.min_by_key(|open| open.since), is_known)
    }

    pub(super) fn stored(&self, seen: &Transactions) -> Stored {
        let mut transactions: Vec<OpenTransaction> = self.all(seen).into_values().collect();
        transactions.sort_by_key(|open| open.since);
        let are_all = transactions.len() <= STORED_MAX;
        transactions.truncate(STORED_MAX);
        Stored { is_known: self.is_known && are_all, transactions }
    }

    /// Goes on with what was known.
    pub(super) fn go_on(&mut self, stored: Stored) {
        let Stored { is_known, transactions } = stored;
        self.is_known = is_known;
        self.before = transactions.into_iter().map(|open| (open.xid, open)).collect();
    }
}
