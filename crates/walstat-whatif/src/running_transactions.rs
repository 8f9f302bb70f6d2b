//! Transactions that have an xid and have not ended.

use hashbrown::HashMap;

/// What runs at a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTransactions {
    /// By xid, how many transactions had committed when its first record came.
    begun: HashMap<u32, u64>,
    commits: u64,
    /// The xid that was seen last, with the commits by then.
    last: (u32, u64),
}

impl RunningTransactions {
    /// Takes note of a record's xid; whether another transaction has committed since its first record:
    /// then both ran side by side.
    pub(crate) fn note(&mut self, xid: u32) -> bool {
        if xid == 0 || self.last == (xid, self.commits) {
            return false;
        }
        self.last = (xid, self.commits);
        *self.begun.entry(xid).or_insert(self.commits) < self.commits
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
        self.commits += u64::from(commits);
        self.last = (0, 0);
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
            one_by_one.push(running.note(xid));
            // A subtransaction inside of it.
            one_by_one.push(running.note(xid + 100));
            one_by_one.push(running.note(xid));
            assert_eq!(running.end(xid, [xid + 100].into_iter(), true), 0);
        }
        assert!(!one_by_one.contains(&true));
        // One that a crash ended stays, and never comes again.
        assert!(!running.note(20));
        assert!(!running.note(21));
        assert_eq!(running.end(21, [].into_iter(), true), 1);
        assert!(!running.note(22));
        assert!(running.note(20));
    }
}
