//! Transactions that go on: those that were seen to begin, those that a stored state knew, and those that a
//! RUNNING_XACTS record lists though nothing of them was read.

use crate::finished_transactions::TransactionOutcome;
use crate::transaction::{OpenPart, Transactions};
use crate::xid_order::precedes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::standby::{RUNNING_XACTS, RunningXacts};
use walstat_format::payload::xact::{self, End};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr;

/// So many are stored, the oldest.
const STORED_MAX: usize = 1000;
/// So many stretches are remembered, the newest.
const STRETCHES_MAX: usize = 64;

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
    /// Xids from here on began while it was read.
    #[serde(default)]
    next_xid: Option<u32>,
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

/// WAL of which nothing is missing.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    begin: Lsn,
    /// The first next xid that the server has told in it: this one and later ones have no record before it.
    /// Of those before nobody knows.
    next_xid: Option<u32>,
}

/// Transactions that go on, beside those that were seen to begin.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenTransactions {
    /// Those known from a state or from RUNNING_XACTS, whose first record this process has not read.
    before: BTreeMap<u32, OpenTransaction>,
    /// The first xid that a record has since reading began, or went on after a loss.
    first_xid: Option<FirstXid>,
    /// In the order in which they were read.
    stretches: Vec<Stretch>,
    /// The next record begins another one.
    is_broken: bool,
    /// Those that a state had, ascending: what they wrote before it is not counted with what they write now.
    resumed: Vec<u32>,
    /// Whether it was said since then what runs.
    is_known: bool,
    said: Option<Said>,
}

impl Said {
    fn may_run(&self, xid: u32, start: Lsn, is_prepared: bool) -> bool {
        let is_listed = self.xids.binary_search(&xid).is_ok();
        let is_unlisted = self.oldest.is_some_and(|oldest| !precedes(xid, oldest));
        start >= self.at || is_listed || is_unlisted || (self.is_stop && is_prepared)
    }
}

impl OpenTransactions {
    /// Takes note of a record, after `seen` has; whether it says which transactions run.
    #[inline]
    pub(super) fn note(&mut self, record: &Record<'_>, seen: &Transactions) -> bool {
        let header = &record.header;
        if self.first_xid.is_none() {
            self.begin(record);
        }
        match (header.rmgr, header.rmgr_info()) {
            (rmgr::XLOG, info @ (xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN)) => {
                self.checkpoint(record);
                if info == xlog::CHECKPOINT_SHUTDOWN {
                    self.stopped(record.lsn);
                    return true;
                }
            }
            (rmgr::STANDBY, RUNNING_XACTS) => {
                self.running(record, seen);
                return true;
            }
            (rmgr::TRANSACTION, _) if !self.before.is_empty() => self.ended(record),
            _ => {}
        }
        false
    }

    /// How a transaction has ended of which no record says that it has, if it is known that it has: it died
    /// with the server, or its end is missing.
    pub(super) fn ended_unseen(&self, open: OpenPart) -> Option<TransactionOutcome> {
        let said = self.said.as_ref()?;
        let is_whole = self.stretch_of(open.start) == self.stretch_of(said.at);
        let outcome = if is_whole { TransactionOutcome::Aborted } else { TransactionOutcome::Open };
        (!said.may_run(open.xid, open.start, open.is_prepared)).then_some(outcome)
    }

    /// Takes note of the first records since reading began or went on.
    fn begin(&mut self, record: &Record<'_>) {
        let first = FirstXid { xid: record.header.xid, lsn: record.lsn };
        self.first_xid = Some(first).filter(|first| first.xid != 0);
        if std::mem::take(&mut self.is_broken) || self.stretches.is_empty() {
            self.stretches.push(Stretch { begin: record.lsn, next_xid: None });
        }
        if self.stretches.len() > STRETCHES_MAX {
            self.stretches.remove(0);
        }
    }

    /// The next xid as it was at a place, or some time after it.
    fn next_xid_was(&mut self, next_xid: u32, at: Lsn) {
        if let Some(stretch) = self.stretches.last_mut().filter(|stretch| stretch.begin <= at) {
            stretch.next_xid.get_or_insert(next_xid);
        }
    }

    /// It tells the next xid as it was after its redo point.
    fn checkpoint(&mut self, record: &Record<'_>) {
        let layout = record.version.checkpoint;
        if let Some(checkpoint) = Checkpoint::parse(record.main_data_start(), layout) {
            // Records have the lower half.
            self.next_xid_was(checkpoint.next_xid as u32, checkpoint.redo);
        }
    }

    fn stretch_of(&self, lsn: Lsn) -> Option<usize> {
        self.stretches.iter().rposition(|stretch| stretch.begin <= lsn)
    }

    /// Whether the first record of a transaction that was read, at `start`, is its first one.
    fn saw_begin(&self, xid: u32, start: Lsn) -> bool {
        let stretch = self.stretch_of(start).and_then(|place| self.stretches.get(place));
        let next_xid = stretch.and_then(|stretch| stretch.next_xid);
        next_xid.is_some_and(|next_xid| !precedes(xid, next_xid))
    }

    /// The same, and none is missing up to `end`.
    pub(super) fn saw_all(&self, xid: u32, start: Lsn, end: Lsn) -> bool {
        let is_resumed = self.resumed.binary_search(&xid).is_ok();
        let is_whole = self.stretch_of(start) == self.stretch_of(end);
        is_whole && !is_resumed && self.saw_begin(xid, start)
    }

    fn stopped(&mut self, at: Lsn) {
        self.before.values_mut().for_each(|open| open.is_doubtful = !open.is_prepared);
        self.said = Some(Said { at, xids: Vec::new(), oldest: None, is_stop: true });
    }

    fn running(&mut self, record: &Record<'_>, seen: &Transactions) {
        let main_data = record.main_data().unwrap_or_default();
        let Some(running) = RunningXacts::parse(&main_data) else { return };
        self.next_xid_was(running.next_xid, record.lsn);
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
        (self.first_xid, self.is_known, self.is_broken) = (None, false, true);
    }

    /// All that go on, each xid once.
    fn all(&self, seen: &Transactions) -> BTreeMap<u32, OpenTransaction> {
        let mut all = self.before.clone();
        for OpenPart { xid, start, is_prepared } in seen.open() {
            if self.said.as_ref().is_some_and(|said| !said.may_run(xid, start, is_prepared)) {
                continue;
            }
            let was_lost = self.stretch_of(start) != self.stretches.len().checked_sub(1);
            let open = OpenTransaction {
                xid,
                since: start,
                is_first: self.saw_begin(xid, start),
                is_prepared,
                is_doubtful: was_lost && !self.is_known,
            };
            let known = all.entry(xid).or_insert(open);
            // Its own first record may be that of a savepoint.
            if open.since < known.since {
                (known.since, known.is_first) = (open.since, open.is_first);
            }
            known.is_prepared |= is_prepared;
            known.is_doubtful &= was_lost || !is_prepared;
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
        transactions.order_by_key(|open| open.since);
        let are_all = transactions.len() <= STORED_MAX;
        transactions.truncate(STORED_MAX);
        let last = self.stretches.last().filter(|_| are_all && !self.is_broken);
        let next_xid = last.and_then(|stretch| stretch.next_xid);
        Stored { is_known: self.is_known && are_all, next_xid, transactions }
    }

    /// Goes on with what was known.
    pub(super) fn go_on(&mut self, stored: Stored) {
        let Stored { is_known, next_xid, transactions } = stored;
        self.is_known = is_known;
        self.stretches = vec![Stretch { begin: Lsn(0), next_xid }];
        self.before = transactions.into_iter().map(|open| (open.xid, open)).collect();
        self.resumed = self.before.keys().copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stretches; in the first one the server has told 100 as the next xid, in the second 200.
    fn after_a_loss() -> OpenTransactions {
        let mut open = OpenTransactions::default();
        let stretch = |begin| Stretch { begin: Lsn(begin), next_xid: None };
        open.stretches.push(stretch(1000));
        open.next_xid_was(90, Lsn(999));
        open.next_xid_was(100, Lsn(1200));
        open.next_xid_was(110, Lsn(1300));
        open.stretches.push(stretch(5000));
        open.next_xid_was(150, Lsn(1900));
        open.next_xid_was(200, Lsn(5100));
        open
    }

    #[test]
    fn what_may_have_begun_before_reading_did_is_not_told_as_certain() {
        let open = after_a_loss();
        assert!(!open.saw_begin(99, Lsn(1100)), "it may have a record before 1000");
        assert!(open.saw_begin(100, Lsn(1250)));
        assert!(!open.saw_begin(199, Lsn(5050)), "it may have one in the gap");
        assert!(open.saw_begin(200, Lsn(5150)));
        assert!(!open.saw_begin(300, Lsn(500)), "before anything was read");
    }

    #[test]
    fn what_ended_in_a_gap_may_have_committed() {
        let mut open = after_a_loss();
        let part = |xid, start| OpenPart { xid, start: Lsn(start), is_prepared: false };
        assert_eq!(open.ended_unseen(part(201, 5150)), None, "nothing was said");
        let (xids, oldest) = (vec![202], None);
        open.said = Some(Said { at: Lsn(6000), xids, oldest, is_stop: false });
        assert_eq!(open.ended_unseen(part(201, 5150)), Some(TransactionOutcome::Aborted));
        assert_eq!(open.ended_unseen(part(101, 1250)), Some(TransactionOutcome::Open));
        assert_eq!(open.ended_unseen(part(202, 5160)), None);
        assert_eq!(open.ended_unseen(part(203, 6160)), None);
    }

    #[test]
    fn of_a_transaction_that_went_on_in_a_gap_not_all_was_seen() {
        let mut open = after_a_loss();
        assert!(open.saw_all(101, Lsn(1250), Lsn(1400)));
        assert!(!open.saw_all(101, Lsn(1250), Lsn(5400)));
        assert!(open.saw_all(201, Lsn(5150), Lsn(5400)));
        let known = OpenTransaction {
            xid: 201,
            since: Lsn(5150),
            is_first: true,
            is_prepared: false,
            is_doubtful: false,
        };
        open.go_on(Stored { is_known: true, next_xid: Some(200), transactions: vec![known] });
        assert!(!open.saw_all(201, Lsn(6000), Lsn(6400)), "it has written before the state");
        assert!(open.saw_all(202, Lsn(6000), Lsn(6400)));
    }
}
