//! Transactions that have an xid and have not ended.

use hashbrown::HashMap;

/// What runs at a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTransactions {
    /// By xid, what had happened when its first record came.
    begun: HashMap<u32, Happened>,
    happened: Happened,
    /// The xid that was seen last, with what had happened by then.
    last: (u32, Happened),
}

/// What may happen during a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Happened {
    /// So many transactions have committed.
    commits: u64,
    /// So many records are of vacuums.
    vacuums: u64,
}

/// What went on while a transaction ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Another one committed.
    pub(crate) transaction: bool,
    /// A vacuum, which cannot be of the same session: it runs in no other transaction.
    pub(crate) vacuum: bool,
}

impl RunningTransactions {
    /// Takes note of a record's xid; what went on since its first record.
    #[inline]
    pub(crate) fn note(&mut self, xid: u32) -> Beside {
        if xid == 0 || self.last == (xid, self.happened) {
            return Beside::default();
        }
        self.note_other(xid)
    }

    /// The same where another transaction's record came last, or something happened since.
    #[inline(never)]
    fn note_other(&mut self, xid: u32) -> Beside {
        self.last = (xid, self.happened);
        let begun = self.begun.entry(xid).or_insert(self.happened);
        Beside {
            transaction: begun.commits < self.happened.commits,
            vacuum: begun.vacuums < self.happened.vacuums,
        }
    }

    /// Takes note of a record that only vacuum writes.
    pub(crate) fn note_vacuum(&mut self) {
        self.happened.vacuums += 1;
    }

    /// A transaction ends, with its subtransactions; returns how many others run on.
    pub(crate) fn end(
        &mut self,
        xid: u32,
        subxids: impl Iterator<Item = u32>,
        commits: bool,
    ) -> u32 {
        self.begun.remove(&xid);
        subxids.for_each(|xid| _ = self.begun.remove(&xid));
        self.happened.commits += u64::from(commits);
        self.last = (0, Happened::default());
        u32::try_from(self.begun.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_by_side_are_those_that_go_on_after_another_commits() {
        let mut running = RunningTransactions::default();
        let mut one_by_one = Vec::new();
        for xid in [7, 8, 9] {
            one_by_one.push(running.note(xid).transaction);
            // A subtransaction inside of it.
            one_by_one.push(running.note(xid + 100).transaction);
            one_by_one.push(running.note(xid).transaction);
            assert_eq!(running.end(xid, [xid + 100].into_iter(), true), 0);
        }
        assert!(!one_by_one.contains(&true));
        // One that a crash ended stays, and never comes again.
        assert!(!running.note(20).transaction);
        assert!(!running.note(21).transaction);
        assert_eq!(running.end(21, [].into_iter(), true), 1);
        assert!(!running.note(22).transaction);
        assert!(running.note(20).transaction);
    }

    #[test]
    fn a_vacuum_in_the_middle_of_a_transaction_is_of_somebody_else() {
        let mut running = RunningTransactions::default();
        // A crash ended this one.
        running.note(6);
        running.note_vacuum();
        assert!(!running.note(7).vacuum, "it ran before");
        running.end(7, [].into_iter(), true);
        running.note(8);
        running.note_vacuum();
        assert_eq!(running.note(8), Beside { transaction: false, vacuum: true });
    }
}
