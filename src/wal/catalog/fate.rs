//! What became of transactions, as far as it is known: a commit log in memory, two bits a
//! transaction, for those that were heard of.

use hashbrown::HashMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fate {
    /// Never heard of.
    Unknown,
    /// It was there and has not ended: for all that is known, its changes do not count.
    Open,
    /// It aborted.
    Aborted,
    /// It committed.
    Committed,
}

impl Fate {
    fn of_bits(bits: u8) -> Fate {
        match bits {
            0 => Fate::Unknown,
            1 => Fate::Open,
            2 => Fate::Aborted,
            _ => Fate::Committed,
        }
    }
}

/// Transactions of one page.
const PAGE_XIDS: u32 = 4096;
/// Transactions of one byte.
const BYTE_XIDS: u32 = 4;
const PAGE_BYTES: usize = (PAGE_XIDS / BYTE_XIDS) as usize;

/// Ids below are no transactions: 1 made the first catalogs, 2 stands for "long ago".
pub const FIRST_NORMAL_XID: u32 = 3;

/// What became of transactions.
#[derive(Debug, Clone, Default)]
pub struct Fates {
    pages: HashMap<u32, Box<[u8; PAGE_BYTES]>>,
}

/// Pages with their numbers.
impl Serialize for Fates {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.pages.iter().map(|(number, page)| (number, page.as_slice())))
    }
}

impl<'de> Deserialize<'de> for Fates {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fates, D::Error> {
        let mut fates = Fates::default();
        for (number, page) in Vec::<(u32, Vec<u8>)>::deserialize(from)? {
            let page: Box<[u8]> = page.into();
            let page = page.try_into().map_err(|_| D::Error::custom("a page of another length"))?;
            fates.pages.insert(number, page);
        }
        Ok(fates)
    }
}

/// Byte in the page and shift in the byte.
fn place(xid: u32) -> (usize, u32) {
    ((xid % PAGE_XIDS / BYTE_XIDS) as usize, xid % BYTE_XIDS * 2)
}

impl Fates {
    /// What became of `xid`.
    pub fn of(&self, xid: u32) -> Fate {
        if xid < FIRST_NORMAL_XID {
            return if xid == 0 { Fate::Unknown } else { Fate::Committed };
        }
        let (byte, shift) = place(xid);
        let page = self.pages.get(&(xid / PAGE_XIDS));
        let bits = page.and_then(|page| page.get(byte)).map_or(0, |bits| bits >> shift & 3);
        Fate::of_bits(bits)
    }

    /// Takes note of a fate; one that is known better stays.
    pub fn note(&mut self, xid: u32, fate: Fate) {
        let (byte, shift) = place(xid);
        let page = self.pages.entry(xid / PAGE_XIDS).or_insert_with(|| Box::new([0; PAGE_BYTES]));
        if let Some(bits) = page.get_mut(byte)
            && Fate::of_bits(*bits >> shift & 3) < fate
        {
            *bits = *bits & !(3 << shift) | (fate as u8) << shift;
        }
    }

    /// Takes note that a transaction is there, if it is one.
    pub fn note_seen(&mut self, xid: u32) {
        if xid != 0 {
            self.note(xid, Fate::Open);
        }
    }

    /// Adds what others know.
    pub fn merge(&mut self, other: Fates) {
        for (page, theirs) in other.pages {
            let ours = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES]));
            for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                *ours = better_of_each(*ours, *theirs);
            }
        }
    }
}

/// The better known of each of the four fates in two bytes.
fn better_of_each(a: u8, b: u8) -> u8 {
    let two_bits = |shift: u32| (a & 3 << shift).max(b & 3 << shift);
    two_bits(0) | two_bits(2) | two_bits(4) | two_bits(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_better_stays() {
        let mut fates = Fates::default();
        assert_eq!(
            (fates.of(0), fates.of(1), fates.of(2)),
            (Fate::Unknown, Fate::Committed, Fate::Committed)
        );
        assert_eq!(fates.of(700), Fate::Unknown);
        fates.note(700, Fate::Open);
        fates.note(701, Fate::Aborted);
        assert_eq!((fates.of(700), fates.of(701)), (Fate::Open, Fate::Aborted));
        fates.note(700, Fate::Committed);
        fates.note(700, Fate::Open);
        assert_eq!((fates.of(700), fates.of(702)), (Fate::Committed, Fate::Unknown));
        fates.note(u32::MAX, Fate::Committed);
        assert_eq!(fates.of(u32::MAX), Fate::Committed);
    }

    #[test]
    fn merging_does_not_depend_on_the_order() {
        let fates = |list: &[(u32, Fate)]| {
            let mut fates = Fates::default();
            list.iter().for_each(|(xid, fate)| fates.note(*xid, *fate));
            fates
        };
        let a = [(700, Fate::Open), (701, Fate::Committed), (5000, Fate::Aborted)];
        let b = [(700, Fate::Aborted), (701, Fate::Open), (9000, Fate::Open)];
        for (first, second) in [(&a, &b), (&b, &a)] {
            let mut merged = fates(first);
            merged.merge(fates(second));
            let found = [700, 701, 5000, 9000].map(|xid| merged.of(xid));
            assert_eq!(found, [Fate::Aborted, Fate::Committed, Fate::Aborted, Fate::Open]);
        }
    }
}
