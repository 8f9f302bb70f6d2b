//! Transactions to which nothing more can come: the largest are kept as rows, all are in the sums.

use super::amounts::Amounts;
use super::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// So many rows are kept where all are asked for.
pub const ROWS_MAX: usize = 1_000_000;

/// How a transaction ended; a later one in this list is known better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TransactionOutcome {
    /// Not in the WAL that was read.
    Open,
    /// It was prepared for a two-phase commit, which did not come.
    Prepared,
    /// It was rolled back.
    Aborted,
    /// It was committed.
    Committed,
}

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedTransaction {
    /// Its xid.
    pub xid: u32,
    /// Its records, those of its subtransactions too.
    pub amounts: Amounts,
    /// Its first record.
    pub start: Lsn,
    /// Where the record after its last one starts at the earliest.
    pub end: Lsn,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// When it was committed.
    pub commit_time: Option<Time>,
    /// How many subtransactions were folded into it.
    pub subtransactions: u32,
    /// Whether the WAL shows that it is no subtransaction itself.
    pub top_level: bool,
    /// Bytes of it that were rolled back: all, or those of its subtransactions.
    pub aborted_bytes: u64,
    /// Distinct relations that its records refer to.
    pub relations: u32,
}

/// By what the largest are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Order {
    /// All bytes.
    #[default]
    Bytes,
    /// Records.
    Count,
    /// Bytes of images.
    Fpi,
    /// The xid, smallest first.
    Xid,
}

/// Sums over all transactions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Committed ones.
    pub committed: u64,
    /// Aborted ones.
    pub aborted: u64,
    /// Prepared ones.
    pub prepared: u64,
    /// Those without an end in the WAL that was read.
    pub open: u64,
    /// Subtransactions that were folded.
    pub subtransactions: u64,
    /// Bytes of aborted ones, and of subtransactions that were rolled back.
    pub aborted_bytes: u64,
    /// Bytes of each committed one.
    pub commit_sizes: Distribution,
    /// All of them.
    pub amounts: Amounts,
}

/// The largest transactions, and sums over all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FinishedRows {
    rows: Vec<FinishedTransaction>,
    keep: usize,
    order: Order,
    /// Nobody asks for rows, nor for sums over all.
    is_unwanted: bool,
    /// What comes after this is not kept.
    #[serde(skip)]
    last: Option<Key>,
    /// Sums over all, those that were not kept too.
    pub summary: Summary,
    /// Whether every transaction is one row, and none is more.
    pub is_exact: bool,
}

impl FinishedRows {
    /// None yet; at most `keep` rows will be kept, the first by `order`.
    pub fn new(keep: usize, order: Order) -> FinishedRows {
        let summary = Summary::default();
        FinishedRows {
            rows: Vec::new(),
            keep: keep.min(ROWS_MAX),
            order,
            is_unwanted: false,
            last: None,
            summary,
            is_exact: true,
        }
    }

    /// None, whatever is added: where nothing is asked but what transactions did.
    pub(crate) fn unwanted() -> FinishedRows {
        FinishedRows { is_unwanted: true, ..FinishedRows::new(0, Order::default()) }
    }

    /// Adds a transaction, if any record of it was counted.
    pub fn add(&mut self, row: FinishedTransaction) {
        if self.is_unwanted || row.amounts.count == 0 {
            return;
        }
        self.summary.add(&row);
        self.push(row);
    }

    #[inline]
    fn push(&mut self, row: FinishedTransaction) {
        if self.last.is_some_and(|last| last < self.order.key(&row)) {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= self.keep + self.keep / 4 + 1024 {
            self.cut();
        }
    }

    /// Keeps no more rows than were asked for.
    fn cut(&mut self) {
        let order = self.order;
        if self.rows.len() > self.keep {
            let (_, next, _) =
                self.rows.select_nth_unstable_by_key(self.keep, |row| order.key(row));
            self.last = Some(order.key(next));
            self.rows.truncate(self.keep);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: FinishedRows) {
        self.is_exact &= other.is_exact;
        self.summary.merge(other.summary);
        other.rows.into_iter().for_each(|row| self.push(row));
    }

    /// The rows that were kept, in order.
    pub fn into_rows(mut self) -> (Vec<FinishedTransaction>, Summary) {
        self.cut();
        let order = self.order;
        self.rows.sort_unstable_by_key(|row| order.key(row));
        (self.rows, self.summary)
    }
}

/// What a row is ordered by.
type Key = (Reverse<u64>, u32, Lsn);

impl Order {
    /// First what comes first; no two rows are alike.
    fn key(self, row: &FinishedTransaction) -> Key {
        let size = match self {
            Order::Bytes => row.amounts.total_bytes(),
            Order::Count => row.amounts.count,
            Order::Fpi => row.amounts.fpi_bytes,
            Order::Xid => 0,
        };
        (Reverse(size), row.xid, row.start)
    }
}

impl Summary {
    fn add(&mut self, row: &FinishedTransaction) {
        let bytes = row.amounts.total_bytes();
        match row.outcome {
            TransactionOutcome::Open => self.open += 1,
            TransactionOutcome::Prepared => self.prepared += 1,
            TransactionOutcome::Aborted => self.aborted += 1,
            TransactionOutcome::Committed => {
                self.committed += 1;
                self.commit_sizes.add(bytes);
            }
        }
        self.aborted_bytes += row.aborted_bytes;
        self.subtransactions += u64::from(row.subtransactions);
        self.amounts.add(&row.amounts);
    }

    fn merge(&mut self, other: Summary) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.prepared += other.prepared;
        self.open += other.open;
        self.subtransactions += other.subtransactions;
        self.aborted_bytes += other.aborted_bytes;
        self.commit_sizes.merge(other.commit_sizes);
        self.amounts.add(&other.amounts);
    }

    /// How many there are.
    pub fn transactions(&self) -> u64 {
        self.committed + self.aborted + self.prepared + self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(xid: u32, record_bytes: u64, outcome: TransactionOutcome) -> FinishedTransaction {
        FinishedTransaction {
            xid,
            amounts: Amounts { count: 1, record_bytes, ..Amounts::default() },
            start: Lsn(u64::from(xid)),
            end: Lsn(u64::from(xid) + 8),
            outcome,
            commit_time: None,
            subtransactions: 0,
            top_level: true,
            aborted_bytes: 0,
            relations: 1,
        }
    }

    #[test]
    fn the_largest_are_kept_and_all_are_summed_up() {
        let mut all = FinishedRows::new(3, Order::Bytes);
        let mut later = all.clone();
        for xid in 0..20_000u32 {
            let outcome = if xid % 4 == 0 {
                TransactionOutcome::Aborted
            } else {
                TransactionOutcome::Committed
            };
            let size = u64::from(xid.wrapping_mul(7919) % 10_000);
            let part = if xid < 9000 { &mut all } else { &mut later };
            part.add(row(xid, size, outcome));
        }
        all.merge(later);
        let (rows, summary) = all.into_rows();
        let sizes: Vec<_> = rows.iter().map(|row| row.amounts.record_bytes).collect();
        assert_eq!(sizes, [9999, 9999, 9998]);
        assert!(rows[0].xid < rows[1].xid);
        assert_eq!((summary.transactions(), summary.aborted), (20_000, 5000));
        assert_eq!(summary.amounts.record_bytes, 2 * (0..10_000).sum::<u64>());
        assert_eq!(summary.commit_sizes.count(), 15_000);
    }
}
