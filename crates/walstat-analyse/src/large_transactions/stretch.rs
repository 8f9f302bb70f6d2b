//! What transactions wrote in one stretch of WAL, and which of them a good part of it.

use super::{Portion, Sort, Work};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;

/// So many sums of bytes tell which transactions need not be looked at; a power of two.
const PLACES: usize = 256;

/// One stretch. What its records add is put down one after the other: hardly any transaction is large, so
/// only those are summed up that may be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub(super) struct Stretch {
    pub(super) number: u64,
    written: Vec<(u32, Sort, u64)>,
    relations: Vec<(u32, RelFileLocator, u64)>,
    /// Bytes by the lowest bits of the xid: no transaction wrote more than its place has.
    most: Vec<u64>,
}

/// A stretch in a partial result: its number, and by xid, ascending, how far each is from the one before and
/// its bytes. Most are neighbours, and so it becomes small.
type Packed = (u64, Vec<(u32, Work)>);

fn place(xid: u32) -> usize {
    xid as usize % PLACES
}

impl Stretch {
    pub(super) fn new(number: u64) -> Stretch {
        let (written, relations) = (Vec::new(), Vec::new());
        Stretch { number, written, relations, most: vec![0; PLACES] }
    }

    /// Begins another one in the same memory.
    pub(super) fn begin(&mut self, number: u64) {
        self.number = number;
        self.written.clear();
        self.relations.clear();
        self.most.fill(0);
    }

    /// Adds what a transaction wrote.
    #[inline]
    pub(super) fn add(&mut self, xid: u32, sort: Sort, bytes: u64) {
        self.written.push((xid, sort, bytes));
        self.most[place(xid)] += bytes;
    }

    /// Adds a relation that the sample met so many times.
    pub(super) fn add_relation(&mut self, xid: u32, relation: RelFileLocator, times: u64) {
        self.relations.push((xid, relation, times));
    }

    /// Adds all that a transaction did.
    pub(super) fn add_work(&mut self, xid: u32, work: &Work) {
        work.written.by_sort().for_each(|(sort, bytes)| self.add(xid, sort, bytes));
        work.relations.iter().for_each(|(file, times)| self.add_relation(xid, *file, *times));
    }

    /// Adds what a later part of the same stretch has.
    pub(super) fn append(&mut self, later: Stretch) {
        self.written.extend(later.written);
        self.relations.extend(later.relations);
        self.most.iter_mut().zip(later.most).for_each(|(ours, theirs)| *ours += theirs);
    }

    /// The transactions that wrote at least so many bytes.
    pub(super) fn passed(&self, least: u64) -> Vec<Portion> {
        if self.most.iter().all(|most| *most < least) {
            return Vec::new();
        }
        let sums = self.sums(|xid| self.most[place(xid)] >= least);
        let large = sums.into_iter().filter(|(_, work)| work.written.bytes >= least);
        large.map(|(xid, work)| Portion { number: self.number, xid, work }).collect()
    }

    /// What those transactions did that are `wanted`.
    fn sums(&self, wanted: impl Fn(u32) -> bool) -> HashMap<u32, Work> {
        let mut sums: HashMap<u32, Work> = HashMap::new();
        for (xid, sort, bytes) in self.written.iter().filter(|(xid, ..)| wanted(*xid)) {
            sums.entry(*xid).or_default().written.add_sort(*sort, *bytes);
        }
        for (xid, relation, times) in self.relations.iter().filter(|(xid, ..)| wanted(*xid)) {
            *sums.entry(*xid).or_default().relations.entry(*relation).or_default() += times;
        }
        sums
    }
}

impl From<Packed> for Stretch {
    fn from((number, rows): Packed) -> Stretch {
        let mut stretch = Stretch::new(number);
        let mut xid = 0u32;
        for (apart, work) in rows {
            xid = xid.wrapping_add(apart);
            stretch.add_work(xid, &work);
        }
        stretch
    }
}

impl From<Stretch> for Packed {
    fn from(stretch: Stretch) -> Packed {
        let mut rows: Vec<(u32, Work)> = stretch.sums(|_| true).into_iter().collect();
        rows.sort_unstable_by_key(|(xid, _)| *xid);
        let mut before = 0;
        for (xid, _) in &mut rows {
            (before, *xid) = (*xid, *xid - before);
        }
        (stretch.number, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::large_transactions::Written;

    #[test]
    fn a_stretch_is_packed_and_read_back() {
        let of = |bytes, insert_bytes| {
            let written = Written { bytes, insert_bytes, ..Written::default() };
            Work { written, relations: [(RelFileLocator::default(), bytes)].into() }
        };
        let mut stretch = Stretch::new(9);
        for (xid, work) in [(702, of(6, 6)), (700, of(5, 2)), (u32::MAX, of(7, 0))] {
            stretch.add_work(xid, &work);
        }
        let rows = vec![(700, of(5, 2)), (2, of(6, 6)), (u32::MAX - 702, of(7, 0))];
        assert_eq!(Packed::from(stretch), (9, rows.clone()));
        assert_eq!(Packed::from(Stretch::from((9, rows.clone()))), (9, rows));
    }
}
