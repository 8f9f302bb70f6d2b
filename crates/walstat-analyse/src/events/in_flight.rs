//! Transactions that have not ended. Those that write in turn are few, so that each record's is mostly found
//! without hashing.

use super::work::Work;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// So many transactions are found without hashing; their xids follow one another.
const RECENT: usize = 64;

/// What each of them has done, by xid.
#[derive(Debug, Clone)]
pub(super) struct InFlight {
    /// Places in `works`.
    index: HashMap<u32, u32>,
    works: Vec<Work>,
    /// Places that are free again.
    free: Vec<u32>,
    /// Of the xids met last their places, by their lowest bits. No transaction has the xid 0.
    recent: [(u32, u32); RECENT],
}

impl Default for InFlight {
    fn default() -> Self {
        InFlight {
            index: HashMap::new(),
            works: Vec::new(),
            free: Vec::new(),
            recent: [(0, 0); RECENT],
        }
    }
}

impl InFlight {
    /// What a transaction has done, nothing if it is met now.
    #[inline]
    pub(super) fn of(&mut self, xid: u32) -> &mut Work {
        let (known, place) = self.recent[xid as usize % RECENT];
        let place = if known == xid && xid != 0 { place } else { self.place(xid) };
        &mut self.works[place as usize]
    }

    #[inline(never)]
    fn place(&mut self, xid: u32) -> u32 {
        let InFlight { index, works, free, recent } = self;
        let place = *index.entry(xid).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                works.push(Work::default());
                (works.len() - 1) as u32
            })
        });
        recent[xid as usize % RECENT] = (xid, place);
        place
    }

    /// Takes out what a transaction has done.
    pub(super) fn remove(&mut self, xid: u32) -> Option<Work> {
        let place = self.index.remove(&xid)?;
        self.set_free(xid, place);
        self.works.get_mut(place as usize).map(std::mem::take)
    }

    /// Whether it is known what a transaction has done.
    pub(super) fn has(&self, xid: u32) -> bool {
        self.index.contains_key(&xid)
    }

    /// Forgets what a transaction has done, if it `is_done_with`; whether it is forgotten.
    pub(super) fn forget(&mut self, xid: u32, is_done_with: impl FnOnce(&Work) -> bool) -> bool {
        let Entry::Occupied(entry) = self.index.entry(xid) else { return false };
        let Some(work) = self.works.get_mut(*entry.get() as usize) else { return false };
        if !is_done_with(work) {
            return false;
        }
        work.clear();
        let place = entry.remove();
        self.set_free(xid, place);
        true
    }

    fn set_free(&mut self, xid: u32, place: u32) {
        self.free.push(place);
        let recent = &mut self.recent[xid as usize % RECENT];
        if recent.0 == xid {
            *recent = (0, 0);
        }
    }

    /// Whose work is known.
    pub(super) fn xids(&self) -> impl Iterator<Item = u32> {
        self.index.keys().copied()
    }

    /// All of them, by xid.
    pub(super) fn into_rows(mut self) -> Vec<(u32, Work)> {
        let mut xids: Vec<u32> = self.xids().collect();
        xids.sort_unstable();
        xids.into_iter().filter_map(|xid| Some((xid, self.remove(xid)?))).collect()
    }

    /// What each of them has done, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Work)> {
        self.index.iter().filter_map(|(xid, place)| Some((*xid, self.works.get(*place as usize)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transaction_has_work_of_its_own_until_it_ends() {
        let mut open = InFlight::default();
        for turn in 1..4 {
            for xid in 700..1000 {
                open.of(xid).top = Some(xid + turn);
            }
        }
        for xid in (700..1000).step_by(2) {
            assert_eq!(open.remove(xid).unwrap().top, Some(xid + 3));
            assert!(open.remove(xid).is_none());
        }
        assert!(!open.forget(702, |_| true), "it has ended before");
        assert!(!open.forget(701, |work| work.top.is_none()));
        assert!(open.forget(701, |_| true) && open.remove(701).is_none());
        open.of(701).top = Some(704);
        open.of(2000).top = Some(1);
        assert_eq!(open.of(700).top, None, "it begins anew in a place that was used");
        assert_eq!(open.iter().count(), 152);
        let rows: Vec<_> =
            open.into_rows().into_iter().filter_map(|(xid, work)| Some((xid, work.top?))).collect();
        let odd = (700..1000).filter(|xid| xid % 2 == 1).map(|xid| (xid, xid + 3));
        assert_eq!(rows, odd.chain([(2000, 1)]).collect::<Vec<_>>());
    }
}
