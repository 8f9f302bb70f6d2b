//! What became of transactions, as far as it is known: a commit log in memory, two bits a
//! transaction, for those that were heard of.

use hashbrown::HashMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use walstat_format::record_header::FIRST_NORMAL_XID;

/// What became of a transaction, the least certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum XidStatus {
    /// Never heard of.
    Unknown,
    /// It was there, and no end of it is known: its changes do not count.
    InProgress,
    /// It aborted.
    Aborted,
    /// It committed.
    Committed,
}

impl XidStatus {
    fn of_bits(bits: u8) -> XidStatus {
        match bits {
            0 => XidStatus::Unknown,
            1 => XidStatus::InProgress,
            2 => XidStatus::Aborted,
            _ => XidStatus::Committed,
        }
    }
}

/// Transactions of one page.
const PAGE_XIDS: u32 = 4096;
/// Transactions of one byte.
const BYTE_XIDS: u32 = 4;
const PAGE_BYTES: usize = (PAGE_XIDS / BYTE_XIDS) as usize;

/// What became of transactions.
#[derive(Debug, Clone, Default)]
pub struct XidStatuses {
    pages: HashMap<u32, Box<[u8; PAGE_BYTES]>>,
}

/// Pages with their numbers.
impl Serialize for XidStatuses {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let pages = self.pages.iter().map(|(number, page)| (number, page.as_slice()));
        let mut pages: Vec<_> = pages.collect();
        pages.sort_unstable();
        to.collect_seq(pages)
    }
}

impl<'de> Deserialize<'de> for XidStatuses {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<XidStatuses, D::Error> {
        let mut statuses = XidStatuses::default();
        for (number, page) in Vec::<(u32, Vec<u8>)>::deserialize(from)? {
            let page: Box<[u8]> = page.into();
            let page = page.try_into().map_err(|_| D::Error::custom("a page of another length"))?;
            statuses.pages.insert(number, page);
        }
        Ok(statuses)
    }
}

/// Byte in the page and shift in the byte.
fn place(xid: u32) -> (usize, u32) {
    ((xid % PAGE_XIDS / BYTE_XIDS) as usize, xid % BYTE_XIDS * 2)
}

impl XidStatuses {
    /// What became of `xid`.
    pub(crate) fn of(&self, xid: u32) -> XidStatus {
        if xid < FIRST_NORMAL_XID {
            return if xid == 0 { XidStatus::Unknown } else { XidStatus::Committed };
        }
        let (byte, shift) = place(xid);
        let page = self.pages.get(&(xid / PAGE_XIDS));
        let bits = page.and_then(|page| page.get(byte)).map_or(0, |bits| bits >> shift & 3);
        XidStatus::of_bits(bits)
    }

    /// Takes note of a status; a more certain one stays.
    pub fn note(&mut self, xid: u32, status: XidStatus) {
        let (byte, shift) = place(xid);
        let page = self.pages.entry(xid / PAGE_XIDS).or_insert_with(|| Box::new([0; PAGE_BYTES]));
        if let Some(bits) = page.get_mut(byte)
            && XidStatus::of_bits(*bits >> shift & 3) < status
        {
            *bits = *bits & !(3 << shift) | (status as u8) << shift;
        }
    }

    /// Takes note that a transaction is there, if it is one.
    pub(crate) fn note_seen(&mut self, xid: u32) {
        if xid != 0 {
            self.note(xid, XidStatus::InProgress);
        }
    }

    /// Adds what others know.
    pub(crate) fn merge(&mut self, other: XidStatuses) {
        for (page, theirs) in other.pages {
            let ours = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES]));
            for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
                *ours = more_certain_of_each(*ours, *theirs);
            }
        }
    }
}

/// The more certain one of each of the four statuses in two bytes.
fn more_certain_of_each(a: u8, b: u8) -> u8 {
    let two_bits = |shift: u32| (a & 3 << shift).max(b & 3 << shift);
    two_bits(0) | two_bits(2) | two_bits(4) | two_bits(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_certain_status_stays() {
        let mut statuses = XidStatuses::default();
        assert_eq!(
            (statuses.of(0), statuses.of(1), statuses.of(2)),
            (XidStatus::Unknown, XidStatus::Committed, XidStatus::Committed)
        );
        assert_eq!(statuses.of(700), XidStatus::Unknown);
        statuses.note(700, XidStatus::InProgress);
        statuses.note(701, XidStatus::Aborted);
        assert_eq!(
            (statuses.of(700), statuses.of(701)),
            (XidStatus::InProgress, XidStatus::Aborted)
        );
        statuses.note(700, XidStatus::Committed);
        statuses.note(700, XidStatus::InProgress);
        assert_eq!(
            (statuses.of(700), statuses.of(702)),
            (XidStatus::Committed, XidStatus::Unknown)
        );
        statuses.note(u32::MAX, XidStatus::Committed);
        assert_eq!(statuses.of(u32::MAX), XidStatus::Committed);
    }

    #[test]
    fn merging_does_not_depend_on_the_order() {
        let statuses = |list: &[(u32, XidStatus)]| {
            let mut statuses = XidStatuses::default();
            list.iter().for_each(|(xid, status)| statuses.note(*xid, *status));
            statuses
        };
        let a =
            [(700, XidStatus::InProgress), (701, XidStatus::Committed), (5000, XidStatus::Aborted)];
        let b = [
            (700, XidStatus::Aborted),
            (701, XidStatus::InProgress),
            (9000, XidStatus::InProgress),
        ];
        for (first, second) in [(&a, &b), (&b, &a)] {
            let mut merged = statuses(first);
            merged.merge(statuses(second));
            let found = [700, 701, 5000, 9000].map(|xid| merged.of(xid));
            assert_eq!(
                found,
                [
                    XidStatus::Aborted,
                    XidStatus::Committed,
                    XidStatus::Aborted,
                    XidStatus::InProgress
                ]
            );
        }
    }
}
