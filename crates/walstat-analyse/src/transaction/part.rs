//! The records of one xid.

use crate::amounts::Amounts;
use crate::block_set::BlockSet;
use crate::finished_transactions::{FinishedTransaction, Outcome};
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// The transaction in which initdb makes the first catalogs (`BootstrapTransactionId`).
const BOOTSTRAP_XID: u32 = 1;

/// Records of one xid.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Part {
    pub xid: u32,
    pub amounts: Amounts,
    pub start: Lsn,
    pub end: Lsn,
    pub outcome: Outcome,
    pub commit_time: Option<Time>,
    /// Folded into it.
    pub subtransactions: u32,
    /// Bytes of those of them that were rolled back.
    pub aborted_bytes: u64,
    /// Numbers of the relations that the records refer to.
    pub files: BlockSet<8>,
}

impl Part {
    /// None of `xid` yet; the first is at `start`.
    pub fn new(xid: u32, start: Lsn) -> Part {
        Part {
            xid,
            amounts: Amounts::default(),
            start,
            end: start,
            outcome: Outcome::Open,
            commit_time: None,
            subtransactions: 0,
            aborted_bytes: 0,
            files: BlockSet::default(),
        }
    }

    /// Adds the records of another part; its end counts if it has one.
    pub fn add(&mut self, other: Part) {
        self.fold(&other);
        self.files.merge(other.files);
        self.subtransactions += other.subtransactions;
        self.aborted_bytes += other.aborted_bytes;
        if other.outcome > self.outcome {
            (self.outcome, self.commit_time) = (other.outcome, other.commit_time);
        }
    }

    /// Adds the records of another part.
    pub fn fold(&mut self, other: &Part) {
        if self.amounts.count == 0 {
            (self.start, self.end) = (other.start, other.end);
        } else if other.amounts.count > 0 {
            self.start = self.start.min(other.start);
            self.end = self.end.max(other.end);
        }
        self.amounts.add(&other.amounts);
    }

    /// The row that it makes.
    pub fn finished(&self, top_level: bool) -> FinishedTransaction {
        let relations = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let Part { xid, amounts, start, end, outcome, commit_time, subtransactions, .. } = *self;
        // What initdb writes first counts as committed, and no record says so.
        let is_bootstrap = xid == BOOTSTRAP_XID && outcome == Outcome::Open;
        let outcome = if is_bootstrap { Outcome::Committed } else { outcome };
        let aborted_bytes = match outcome {
            Outcome::Aborted => amounts.total_bytes(),
            _ => self.aborted_bytes,
        };
        let top_level = top_level || outcome == Outcome::Committed;
        FinishedTransaction {
            xid,
            amounts,
            start,
            end: end.aligned(),
            outcome,
            commit_time,
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
        let outcome = |xid| Part::new(xid, Lsn(0x28)).finished(false).outcome;
        assert_eq!((outcome(1), outcome(700)), (Outcome::Committed, Outcome::Open));
    }
}
