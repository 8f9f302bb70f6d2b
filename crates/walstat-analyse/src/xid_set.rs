//! A set of xids, most of which come nearly in their order.

use roaring::RoaringBitmap;

/// So many neighbours are put into the bitmap together.
const WORD: u32 = u64::BITS;
/// So many words wait: transactions that run side by side end in two of them.
const WAITING: usize = 2;

/// Xids, those that came last a bit each.
#[derive(Debug, Clone, Default)]
pub(crate) struct XidSet {
    /// Numbers of words, and what is in them; each at the index of its lowest bits.
    waiting: [(u32, u64); WAITING],
    all: RoaringBitmap,
}

fn place(xid: u32) -> (u32, u64) {
    (xid / WORD, 1 << (xid % WORD))
}

impl XidSet {
    /// Adds an xid.
    #[inline]
    pub(crate) fn insert(&mut self, xid: u32) {
        let (word, bit) = place(xid);
        let waiting = &mut self.waiting[word as usize % WAITING];
        if waiting.0 == word {
            waiting.1 |= bit;
        } else {
            let (word, bits) = std::mem::replace(waiting, (word, bit));
            self.put(word, bits);
        }
    }

    /// Puts the xids of a word into the bitmap, those in a row together.
    fn put(&mut self, word: u32, mut bits: u64) {
        while bits != 0 {
            let first = bits.trailing_zeros();
            let count = (bits >> first).trailing_ones();
            let xid = word * WORD + first;
            self.all.insert_range(xid..=xid + (count - 1));
            // Adding to the first of a row clears all of it.
            bits &= bits.wrapping_add(1 << first);
        }
    }

    /// Whether an xid is in it.
    pub(crate) fn contains(&self, xid: u32) -> bool {
        let (word, bit) = place(xid);
        let waiting = self.waiting[word as usize % WAITING];
        waiting.0 == word && waiting.1 & bit != 0 || self.all.contains(xid)
    }

    /// Takes an xid out; whether it was there.
    pub(crate) fn remove(&mut self, xid: u32) -> bool {
        let was_there = self.contains(xid);
        let (word, bit) = place(xid);
        let waiting = &mut self.waiting[word as usize % WAITING];
        if waiting.0 == word {
            waiting.1 &= !bit;
        }
        self.all.remove(xid);
        was_there
    }

    /// All of them as a bitmap.
    pub(crate) fn bitmap(&mut self) -> &RoaringBitmap {
        for (word, bits) in std::mem::take(&mut self.waiting) {
            self.put(word, bits);
        }
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_has_what_was_put_in_in_any_order() {
        let mut set = XidSet::default();
        let mut wanted = BTreeSet::new();
        let mut state = 1u64;
        for turn in 0..20_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 33) as u32;
            let xid = match random % 100 {
                0 => u32::MAX - random % 70,
                1..10 => random % 20_000,
                near => turn + near % 8,
            };
            if random.is_multiple_of(17) {
                assert_eq!(set.remove(xid), wanted.remove(&xid));
            } else {
                set.insert(xid);
                wanted.insert(xid);
            }
            assert!(set.contains(xid) == wanted.contains(&xid));
        }
        assert!((0..30_000).all(|xid| set.contains(xid) == wanted.contains(&xid)));
        assert_eq!(set.bitmap().iter().collect::<BTreeSet<_>>(), wanted);
    }
}
