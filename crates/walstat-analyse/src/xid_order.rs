//! The order of xids, which turn over: each is later than the half of all that lies before it
//! (`TransactionIdPrecedes` and `TransactionIdFollows` in `src/backend/access/transam/transam.c`).

#[inline(always)]
pub(crate) fn precedes(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() < 0
}

#[inline(always)]
pub(crate) fn follows(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_last_xid_come_the_first_ones() {
        assert!(precedes(u32::MAX, 3) && follows(3, u32::MAX));
        assert!(!precedes(7, 7) && !follows(7, 7));
    }
}
