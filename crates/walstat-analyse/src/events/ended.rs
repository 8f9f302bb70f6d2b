//! Transactions that have ended, with what they did.

use super::file_works::FileWorks;
use super::work::Work;
use crate::xid_order::follows;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With a record that says so.
    Recorded {
        /// Whether it committed.
        commits: bool,
        /// When.
        time: Time,
        /// Whether it had been prepared.
        was_prepared: bool,
    },
    /// It ended without a record, because the server stopped or a promoted one took over: all that it did is
    /// undone.
    Lost,
}

/// A transaction that has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// Where the record begins that ends it.
    pub lsn: Lsn,
    pub end: End,
    pub xid: u32,
    /// Subtransactions that end with it.
    pub subxids: Box<[u32]>,
    pub files: FileWorks,
    pub in_catalogs: bool,
    pub database_drop: Option<Lsn>,
    /// Files that its commit takes away.
    pub dropped: Box<[RelFileLocator]>,
    pub before: Before,
}

/// What was known when a transaction ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// The newest xid.
    pub newest_xid: Option<u32>,
    /// The latest time at which a transaction ended.
    pub latest: Option<Time>,
    /// The last time at which one ended.
    pub last: Option<Time>,
}

impl Before {
    /// The same, where `earlier` was known before this part of the WAL.
    pub(super) fn after(self, earlier: Before) -> Before {
        Before {
            newest_xid: newer(earlier.newest_xid, self.newest_xid),
            latest: earlier.latest.max(self.latest),
            last: self.last.or(earlier.last),
        }
    }

    /// Takes note of an xid.
    #[inline(always)]
    pub(super) fn see(&mut self, xid: u32) {
        if self.newest_xid.is_none_or(|newest| follows(xid, newest)) {
            self.newest_xid = Some(xid);
        }
    }

    /// Takes note of a time.
    pub(super) fn tick(&mut self, time: Time) {
        self.latest = self.latest.max(Some(time));
        self.last = Some(time);
    }
}

/// The newer of two xids.
fn newer(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) if !follows(b, a) => Some(a),
        (a, b) => b.or(a),
    }
}

impl Ended {
    /// The transaction with its subtransactions.
    pub(super) fn xids(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.xid).chain(self.subxids.iter().copied())
    }

    /// Adds what it did in another part of the WAL, or what a subtransaction did.
    pub(super) fn add(&mut self, work: Work) {
        self.files.add(work.files);
        self.in_catalogs |= work.in_catalogs;
        self.database_drop = work.database_drop.or(self.database_drop);
    }

    /// Whether it may have done anything worth telling.
    pub(super) fn is_of_interest(&self, min_rows: u64) -> bool {
        self.in_catalogs
            || self.database_drop.is_some()
            || !self.dropped.is_empty()
            || self.files.have_rows(min_rows)
    }
}
