//! Moments of the catalogs, and how much a version of a row counts at one.

use crate::catalog::row::{HintedStatus, RowVersion};
use crate::catalog::store::Store;
use crate::catalog::xid_status::XidStatus;
use std::sync::Arc;
use walstat_format::record_header::FIRST_NORMAL_XID;

/// A moment: when transactions ended that are of interest.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// These transactions: what they made and ended they have seen.
    pub own: Arc<[u32]>,
    /// The newest xid that had been given out.
    pub newest_xid: Option<u32>,
}

/// How much a row counts: the most, last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowRank {
    /// The transactions that ended have ended it.
    EndedNow,
    /// It is there, in a file that the catalog has left.
    Left,
    /// It is there.
    There,
}

impl Moment {
    /// How much a row counts; `None`: it does not. `open`: whether a transaction is known to go on.
    pub(super) fn rank(
        &self,
        row: &RowVersion,
        is_current: bool,
        store: &Store,
        open: &dyn Fn(u32) -> bool,
    ) -> Option<RowRank> {
        let was_made = self.own.contains(&row.xmin)
            || match row.inserter() {
                HintedStatus::Aborted => false,
                _ if row.is_frozen() => true,
                _ if self.is_future(row.xmin) || open(row.xmin) => false,
                _ => store.version_status(row).inserted != XidStatus::Aborted,
            };
        if !was_made {
            return None;
        }
        let there = if is_current { RowRank::There } else { RowRank::Left };
        let Some(deleted) = store.version_status(row).deleted else { return Some(there) };
        // `xmax` itself may be a multixact, whose numbers are others than those of transactions.
        let deleter = store.deleter(row);
        if deleter.is_some_and(|xid| self.own.contains(&xid)) {
            return Some(RowRank::EndedNow);
        }
        let is_later = deleter.is_some_and(|xid| self.is_future(xid));
        let is_over = deleted == XidStatus::Committed && !is_later;
        (!is_over).then_some(there)
    }

    /// Whether an xid had not been given out at the moment.
    pub(super) fn is_future(&self, xid: u32) -> bool {
        self.newest_xid.is_some_and(|newest| xid >= FIRST_NORMAL_XID && is_after(xid, newest))
    }

    /// Larger is later.
    pub(super) fn age(&self, xid: u32) -> i32 {
        match self.newest_xid {
            Some(newest) if xid >= FIRST_NORMAL_XID => xid.wrapping_sub(newest).cast_signed(),
            _ => i32::MIN,
        }
    }
}

fn is_after(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() > 0
}
