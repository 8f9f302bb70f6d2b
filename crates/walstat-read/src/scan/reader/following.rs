//! What is different where WAL is read while it is written: a gap is the end for now.

use super::Reader;
use crate::scan::pending::Pending;
use crate::scan::run::Last;
use walstat_format::lsn::Lsn;

impl Reader<'_> {
    /// The same for WAL that is being written: it goes on with the record that was met last, if that was
    /// not whole, and ends where the WAL ends for now. `last`: the record before the range, which the first
    /// one in it has to link to.
    pub(crate) fn following(mut self, pending: Option<Pending>, last: Option<Last>) -> Self {
        if pending.is_some() {
            last.into_iter().for_each(|last| self.run.follow(last));
        } else {
            self.before = last;
        }
        (self.pending, self.ends_at_gap) = (pending, true);
        self
    }

    /// At the start of the range it is known what the next record links to, though what lies before was not
    /// read. Where the range begins with a page, the record begins behind its header.
    pub(super) fn recall(&mut self, lsn: Lsn) {
        if lsn >= self.scope.start
            && let Some(before) = self.before.take()
            // The page may have had it, and records after it.
            && self.run.last.is_none_or(|last| last.lsn < before.lsn)
        {
            self.run.follow(before);
        }
    }

    /// Bytes still to come of the record that is being followed.
    pub(crate) fn pending_bytes(&self) -> Option<u32> {
        self.pending.as_ref().map(Pending::left)
    }

    /// Whether there is a gap, and nothing after it matters.
    pub(super) fn is_over(&self) -> bool {
        self.ends_at_gap && self.run.gap.is_some()
    }
}
