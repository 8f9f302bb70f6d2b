//! Xids of transactions that have ended and were handed on.

use crate::xid_set::XidSet;

/// A set of xids. Most that are asked for are newer than all in it.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedXids {
    xids: XidSet,
    /// None in it is larger.
    largest: u32,
}

impl EndedXids {
    /// Whether an xid is in it.
    #[inline]
    pub(super) fn contains(&self, xid: u32) -> bool {
        xid <= self.largest && self.xids.contains(xid)
    }

    /// Adds an xid.
    pub(super) fn insert(&mut self, xid: u32) {
        self.xids.insert(xid);
        self.largest = self.largest.max(xid);
    }

    /// Takes an xid out; whether it was there.
    pub(super) fn remove(&mut self, xid: u32) -> bool {
        self.xids.remove(xid)
    }

    /// How many there are.
    pub(super) fn len(&mut self) -> u64 {
        self.xids.bitmap().len()
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        *self = EndedXids::default();
    }
}
