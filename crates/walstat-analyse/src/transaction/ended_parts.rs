//! What has ended and is no part any more. Where something may come before, each transaction may have begun
//! there, and nearly none has: until that is known, those that have committed are kept in a few words each.

use super::ended_xids::EndedXids;
use super::finished::Finished;
use super::part::{Before, End, Part};
use crate::amounts::Amounts;
use crate::finished_transactions::TransactionOutcome;
use crate::kind::Work;
use crate::low_set::LowSet;
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// Transactions that have ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Written")]
pub(super) struct EndedParts {
    rows: Vec<Row>,
    /// Of all rows the numbers of files and of what was done to them that have no bit.
    numbers: Vec<u32>,
    /// Xids whose last part has ended and is here, or was handed on.
    #[serde(skip)]
    pub xids: EndedXids,
}

/// The same as it is written.
#[derive(Deserialize)]
struct Written {
    rows: Vec<Row>,
    numbers: Vec<u32>,
}

/// A part.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Row {
    xid: u32,
    amounts: Amounts,
    start: Lsn,
    end: Lsn,
    end_time: Option<Time>,
    /// The first files, a bit each.
    files: u64,
    /// The same of what was done to them.
    work: u64,
    /// Where the numbers of its other files end.
    files_end: u32,
    /// Where the numbers of what was done to others end.
    work_end: u32,
}

impl EndedParts {
    /// Whether a few words tell all of a part to which nothing belongs. What it may belong to does not
    /// matter: it has committed by itself.
    pub(super) fn can_take(part: &Part) -> bool {
        part.is_before
            && part.ended == End::Own
            && part.outcome == TransactionOutcome::Committed
            && part.before == Before::default()
            && part.subtransactions == 0
            && part.aborted_bytes == 0
            && part.files.few_others().is_some()
            && part.work.0.few_others().is_some()
    }

    /// Hands a part on, if nothing can come before it; else keeps it.
    pub(super) fn take(&mut self, part: &Part, finished: Option<&mut Finished>) {
        match finished {
            Some(finished) => finished.add(part),
            None => self.keep(part),
        }
    }

    fn keep(&mut self, part: &Part) {
        let Part { xid, amounts, start, end, end_time, .. } = *part;
        let files_end = self.add_numbers(part.files.others());
        let work_end = self.add_numbers(part.work.0.others());
        let (files, work) = (part.files.first, part.work.0.first);
        let row = Row { xid, amounts, start, end, end_time, files, work, files_end, work_end };
        self.rows.push(row);
    }

    /// Returns where they end. 2³² would have run out of memory long before.
    fn add_numbers(&mut self, numbers: impl Iterator<Item = u32>) -> u32 {
        self.numbers.extend(numbers);
        self.numbers.len() as u32
    }

    /// Takes all out that are kept; the xids stay.
    pub(super) fn take_kept(&mut self) -> EndedParts {
        let xids = std::mem::take(&mut self.xids);
        std::mem::replace(self, EndedParts { xids, ..EndedParts::default() })
    }

    /// All that are kept, each the first part of its xid.
    pub(super) fn iter(&self) -> impl Iterator<Item = Part> {
        let mut begin = 0;
        let mut numbers = move |end: u32| {
            let end = end as usize;
            let numbers = self.numbers.get(std::mem::replace(&mut begin, end)..end);
            numbers.unwrap_or_default().iter().copied()
        };
        self.rows.iter().map(move |row| {
            let mut files: LowSet<2> = numbers(row.files_end).collect();
            files.first |= row.files;
            let mut work = Work(numbers(row.work_end).collect());
            work.0.first |= row.work;
            Part {
                amounts: row.amounts,
                end: row.end,
                end_time: row.end_time,
                outcome: TransactionOutcome::Committed,
                ended: End::Own,
                files,
                work,
                is_before: true,
                is_alive: true,
                ..Part::new(row.xid, row.start)
            }
        })
    }

    /// Takes no more memory than it needs.
    pub(super) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.numbers.shrink_to_fit();
    }
}

impl From<Written> for EndedParts {
    fn from(Written { rows, numbers }: Written) -> EndedParts {
        let mut xids = EndedXids::default();
        rows.iter().for_each(|row| xids.insert(row.xid));
        EndedParts { rows, numbers, xids }
    }
}
