//! Where transactions go to which nothing more can come.

use super::part::Part;
use crate::finished_transactions::FinishedRows;
use crate::kind::Kinds;
use serde::{Deserialize, Serialize};

/// Transactions that have ended, as rows and, if that is asked for, by kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Finished {
    pub rows: FinishedRows,
    pub kinds: Option<Kinds>,
}

impl Finished {
    /// Nothing but rows.
    #[cfg(test)]
    pub(super) fn of(rows: FinishedRows) -> Finished {
        Finished { rows, kinds: None }
    }

    /// Adds a transaction with all that belongs to it.
    pub(super) fn add(&mut self, whole: &Part) {
        let row = whole.finished();
        if let Some(kinds) = &mut self.kinds {
            kinds.add(&row, &whole.work, whole.end_time);
        }
        self.rows.add(row);
    }

    /// Adds all of `other`, in which relations have the numbers `files`.
    pub(super) fn merge(&mut self, other: Finished, files: &[u32]) {
        self.rows.merge(other.rows);
        if let (Some(kinds), Some(others)) = (&mut self.kinds, other.kinds) {
            kinds.merge(others, files);
        }
    }
}
