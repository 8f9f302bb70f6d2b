//! The records of one xid.

use crate::amounts::Amounts;
use crate::finished_transactions::{FinishedTransaction, TransactionOutcome};
use crate::kind::Work;
use crate::low_set::LowSet;
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// The transaction in which initdb makes the first catalogs (`BootstrapTransactionId`).
const BOOTSTRAP_XID: u32 = 1;

/// How a part has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// It goes on.
    None,
    /// By a record of its own.
    Own,
    /// As a subtransaction in the list of such a record.
    Listed,
}

/// What a record says of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Claim {
    /// It belongs to the part at this place.
    Parent(u32),
    /// It belongs to nothing.
    TopLevel,
}

impl Claim {
    /// The same where parts have other places; `None` if that part is gone.
    pub(super) fn moved(self, to: impl Fn(u32) -> Option<u32>) -> Option<Claim> {
        match self {
            Claim::Parent(place) => Some(Claim::Parent(to(place)?)),
            Claim::TopLevel => Some(Claim::TopLevel),
        }
    }
}

/// What a run says of an xid before it writes something there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Before {
    /// The first claim, if no record before it makes it too late for what has ended.
    pub first: Option<Claim>,
    /// The last parent.
    parent: Option<u32>,
    top_level: bool,
}

/// Records of one xid: all, or those up to its end where the xid comes again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Part {
    pub xid: u32,
    pub amounts: Amounts,
    pub start: Lsn,
    pub end: Lsn,
    pub outcome: TransactionOutcome,
    /// When it was committed or rolled back.
    pub end_time: Option<Time>,
    /// Folded into it.
    pub subtransactions: u32,
    /// Bytes of those of them that were rolled back.
    pub aborted_bytes: u64,
    /// Numbers of the relations that the records refer to.
    pub files: LowSet<2>,
    /// What the records did to rows, if that is asked for.
    pub work: Work,
    /// Whether and how it has ended.
    pub ended: End,
    /// Place of what it belongs to, as was said while it went on.
    pub parent: Option<u32>,
    /// Whether it was said then that it belongs to nothing.
    pub top_level: bool,
    /// What was said after it had aborted, where nothing was known.
    pub after: Option<Claim>,
    /// What is said then comes too late.
    pub is_sealed: bool,
    /// It may go on from before the first record of the run.
    pub is_before: bool,
    /// The run has shown that it is there.
    pub is_alive: bool,
    /// What the run said before that.
    pub before: Before,
}

impl Part {
    /// None of `xid` yet; the first is at `start`.
    pub(super) fn new(xid: u32, start: Lsn) -> Part {
        Part {
            xid,
            amounts: Amounts::default(),
            start,
            end: start,
            outcome: TransactionOutcome::Open,
            end_time: None,
            subtransactions: 0,
            aborted_bytes: 0,
            files: LowSet::default(),
            work: Work::default(),
            ended: End::None,
            parent: None,
            top_level: false,
            after: None,
            is_sealed: false,
            is_before: false,
            is_alive: false,
            before: Before::default(),
        }
    }

    /// Takes note of what a record says of it while it goes on; `is_late`: too late for one that has
    /// ended.
    pub(super) fn claim(&mut self, claim: Claim, is_late: bool) {
        let (parent, top_level) = if self.is_alive {
            (&mut self.parent, &mut self.top_level)
        } else {
            let before = &mut self.before;
            before.first = before.first.or(Some(claim).filter(|_| !is_late));
            (&mut before.parent, &mut before.top_level)
        };
        match claim {
            Claim::Parent(place) => *parent = Some(place),
            Claim::TopLevel => *top_level = true,
        }
    }

    /// Nothing earlier can come.
    pub(super) fn begin(&mut self) {
        let Before { parent, top_level, .. } = std::mem::take(&mut self.before);
        self.parent = self.parent.or(parent);
        self.top_level |= top_level;
        (self.is_before, self.is_alive) = (false, true);
    }

    /// Goes on with a part of a later run.
    pub(super) fn join(&mut self, later: Part) {
        self.fold(&later);
        self.files.merge(later.files);
        self.work.0.merge(later.work.0);
        self.subtransactions += later.subtransactions;
        self.aborted_bytes += later.aborted_bytes;
        if later.outcome > self.outcome {
            (self.outcome, self.end_time) = (later.outcome, later.end_time);
        }
        if self.is_alive {
            self.parent = later.parent.or(later.before.parent).or(self.parent);
            self.top_level |= later.top_level || later.before.top_level;
        } else {
            self.before.first = self.before.first.or(later.before.first);
            self.before.parent = later.before.parent.or(self.before.parent);
            self.before.top_level |= later.before.top_level;
            (self.parent, self.top_level) = (later.parent, later.top_level);
            self.is_alive = later.is_alive;
        }
        (self.ended, self.after, self.is_sealed) = (later.ended, later.after, later.is_sealed);
    }

    /// The same where relations have other numbers.
    pub(super) fn renumber(&mut self, files: &[u32]) {
        let renumbered = self.files.iter().filter_map(|file| files.get(file as usize).copied());
        self.files = renumbered.collect();
        self.work.renumber(files);
    }

    /// The same where parts have other places.
    pub(super) fn move_claims(&mut self, to: impl Fn(u32) -> Option<u32>) {
        self.parent = self.parent.and_then(&to);
        self.before.parent = self.before.parent.and_then(&to);
        self.before.first = self.before.first.and_then(|claim| claim.moved(&to));
        self.after = self.after.and_then(|claim| claim.moved(&to));
    }

    /// The places of what records say that it belongs to.
    pub(super) fn claimed(&self) -> impl Iterator<Item = u32> {
        let of = |claim| match claim {
            Some(Claim::Parent(place)) => Some(place),
            Some(Claim::TopLevel) | None => None,
        };
        let Before { first, parent, .. } = self.before;
        [self.parent, parent, of(first), of(self.after)].into_iter().flatten()
    }

    /// Whether it has aborted, and nothing else is known of it, nor comes it too late.
    pub(super) fn is_unclaimed(&self) -> bool {
        let is_aborted = self.ended == End::Own && self.outcome == TransactionOutcome::Aborted;
        let is_known = self.parent.is_some() || self.top_level || self.after.is_some();
        is_aborted && !is_known && !self.is_sealed
    }

    /// Whether nothing can change it any more.
    pub(super) fn is_final(&self) -> bool {
        self.ended != End::None && !self.is_unclaimed()
    }

    /// The place of what it belongs to.
    pub(super) fn belongs_to(&self) -> Option<usize> {
        if self.ended == End::Own && self.outcome == TransactionOutcome::Committed {
            return None;
        }
        let after = match self.after {
            Some(Claim::Parent(place)) if !self.top_level => Some(place),
            _ => None,
        };
        self.parent.or(after).map(|place| place as usize)
    }

    /// Whether its own record says that it was rolled back.
    pub(super) fn is_rolled_back(&self) -> bool {
        self.outcome == TransactionOutcome::Aborted
    }

    /// Adds the records of another part.
    fn fold(&mut self, other: &Part) {
        if self.amounts.count == 0 {
            (self.start, self.end) = (other.start, other.end);
        } else if other.amounts.count > 0 {
            self.start = self.start.min(other.start);
            self.end = self.end.max(other.end);
        }
        self.amounts.add(&other.amounts);
    }

    /// Adds a subtransaction, which may be lost.
    pub(super) fn take_in(&mut self, sub: Part, is_lost: bool) {
        self.fold(&sub);
        self.aborted_bytes += if is_lost { sub.amounts.total_bytes() } else { sub.aborted_bytes };
        self.files.merge(sub.files);
        self.work.0.merge(sub.work.0);
        self.subtransactions += sub.subtransactions + u32::from(sub.amounts.count > 0);
    }

    /// The row that it makes.
    pub(super) fn finished(&self) -> FinishedTransaction {
        let relations = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let Part { xid, amounts, start, end, outcome, end_time, subtransactions, .. } = *self;
        // What initdb writes first counts as committed, and no record says so.
        let is_bootstrap = xid == BOOTSTRAP_XID && outcome == TransactionOutcome::Open;
        let outcome = if is_bootstrap { TransactionOutcome::Committed } else { outcome };
        let aborted_bytes = match outcome {
            TransactionOutcome::Aborted => amounts.total_bytes(),
            _ => self.aborted_bytes,
        };
        let top_level = self.top_level
            || self.after == Some(Claim::TopLevel)
            || outcome == TransactionOutcome::Committed;
        FinishedTransaction {
            xid,
            amounts,
            start,
            end: end.aligned(),
            outcome,
            commit_time: end_time.filter(|_| outcome == TransactionOutcome::Committed),
            subtransactions,
            top_level,
            aborted_bytes,
            relations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bootstrap_transaction_is_committed_without_a_record() {
        let outcome = |xid| Part::new(xid, Lsn(0x28)).finished().outcome;
        assert_eq!(
            (outcome(1), outcome(700)),
            (TransactionOutcome::Committed, TransactionOutcome::Open)
        );
    }
}
