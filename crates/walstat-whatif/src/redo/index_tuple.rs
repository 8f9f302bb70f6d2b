//! Entries of B-trees, above all posting lists: one key with the places of several rows
//! (`src/include/access/nbtree.h`; 13 and later).

use walstat_format::cursor::at;
use walstat_format::data_page::ITEM_POINTER_BYTES as TID_BYTES;
use walstat_format::data_page::index_tuple::{AM_RESERVED, HEADER_BYTES, INFO_AT, SIZE_MASK};

/// `BT_IS_POSTING`, in the offset of that place.
const IS_POSTING: u16 = 0x2000;
/// `BT_OFFSET_MASK`: the rest is how many rows.
const COUNT_MASK: u16 = 0x0FFF;

/// Length of the entry at the start of `bytes`, as its header says.
pub(crate) fn size(bytes: &[u8]) -> Option<usize> {
    at::<u16>(bytes, INFO_AT).map(|info| usize::from(info & SIZE_MASK))
}

/// Splits off the first entry; entries lie at multiples of 8.
pub(crate) fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let aligned = size(bytes)?.next_multiple_of(8);
    (aligned >= HEADER_BYTES).then_some(())?;
    bytes.split_at_checked(aligned)
}

/// An entry: its key, and the rows that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posting {
    /// Header and key.
    key: Vec<u8>,
    /// Places of rows, ascending.
    tids: Vec<[u8; TID_BYTES]>,
}

impl Posting {
    /// Reads an entry of a leaf, posting list or not.
    pub(crate) fn parse(tuple: &[u8]) -> Option<Posting> {
        let info: u16 = at(tuple, INFO_AT)?;
        let offset: u16 = at(tuple, 4)?;
        let is_posting = info & AM_RESERVED != 0 && offset & IS_POSTING != 0;
        if !is_posting {
            let tids = vec![*tuple.first_chunk()?];
            return Some(Posting { key: tuple.to_vec(), tids });
        }
        // The block number of the place says where the list begins: high half, low half.
        let (high, low): (u16, u16) = at(tuple, 0)?;
        let start = usize::from(high) << 16 | usize::from(low);
        let count = usize::from(offset & COUNT_MASK);
        let list = tuple.get(start..)?.as_chunks::<TID_BYTES>().0.get(..count)?;
        (start >= HEADER_BYTES).then(|| Posting {
            key: tuple.get(..start).unwrap_or_default().to_vec(),
            tids: list.to_vec(),
        })
    }

    /// How many rows.
    pub(crate) fn rows(&self) -> usize {
        self.tids.len()
    }

    /// Whether it has all rows of `other`.
    pub(crate) fn contains(&self, other: &Posting) -> bool {
        other.tids.iter().all(|tid| self.tids.contains(tid))
    }

    /// Takes over the rows of the entry behind it.
    pub(crate) fn merge(&mut self, later: Posting) {
        self.tids.extend(later.tids);
    }

    /// Takes out the rows at these places of the list.
    pub(crate) fn remove(&mut self, places: &[u16]) {
        let mut index = 0;
        self.tids.retain(|_| {
            index += 1;
            !places.contains(&(index - 1))
        });
    }

    /// Puts a row in at `place` and returns the last one, which goes out instead: how an entry
    /// falls into a posting list.
    pub(crate) fn swap(&mut self, place: u16, tid: [u8; TID_BYTES]) -> Option<[u8; TID_BYTES]> {
        let last = self.tids.pop()?;
        let place = usize::from(place);
        (place <= self.tids.len()).then(|| self.tids.insert(place, tid))?;
        Some(last)
    }

    /// The entry as it lies in a page (`_bt_form_posting`).
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = self.key.clone();
        let info: u16 = at(&bytes, INFO_AT)?;
        let kept = info & !(SIZE_MASK | AM_RESERVED);
        if let [only] = self.tids.as_slice() {
            bytes.get_mut(..TID_BYTES)?.copy_from_slice(only);
            let info = kept | u16::try_from(bytes.len()).ok()?;
            bytes.get_mut(INFO_AT..HEADER_BYTES)?.copy_from_slice(&info.to_le_bytes());
            return Some(bytes);
        }
        let start = u16::try_from(bytes.len()).ok()?;
        let count = u16::try_from(self.tids.len()).ok()?;
        bytes.extend(self.tids.iter().flatten());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let info = kept | AM_RESERVED | u16::try_from(bytes.len()).ok()?;
        let fields = [0, start, count | IS_POSTING, info].map(u16::to_le_bytes);
        bytes.get_mut(..HEADER_BYTES)?.copy_from_slice(fields.as_flattened());
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(row: u8) -> Vec<u8> {
        vec![0, 0, row, 0, 1, 0, 16, 0, 7, 7, 7, 7, 0, 0, 0, 0]
    }

    #[test]
    fn entries_merge_into_a_list_and_come_out_again() {
        let mut list = Posting::parse(&entry(1)).expect("an entry");
        for row in 2..=4 {
            list.merge(Posting::parse(&entry(row)).expect("an entry"));
        }
        let bytes = list.bytes().expect("a list");
        assert_eq!((bytes.len(), size(&bytes)), (16 + 24, Some(40)));
        let mut again = Posting::parse(&bytes).expect("a list");
        assert_eq!((again.rows(), again.bytes()), (4, Some(bytes)));
        again.remove(&[0, 1, 3]);
        assert_eq!(again.bytes(), Some(entry(3)));
    }

    #[test]
    fn an_entry_falls_into_a_list() {
        let mut list = Posting::parse(&entry(1)).expect("an entry");
        list.merge(Posting::parse(&entry(3)).expect("an entry"));
        let last = list.swap(1, [0, 0, 2, 0, 1, 0]);
        assert_eq!(last, Some([0, 0, 3, 0, 1, 0]));
        assert_eq!(list.tids, [[0, 0, 1, 0, 1, 0], [0, 0, 2, 0, 1, 0]]);
        assert_eq!(list.swap(3, [0; 6]), None);
    }

    #[test]
    fn entries_follow_each_other() {
        let two = [entry(1), entry(2)].concat();
        let (first, rest) = split_first(&two).expect("two");
        assert_eq!((first, rest), (&entry(1)[..], &entry(2)[..]));
        assert_eq!(split_first(&two[..15]), None);
        assert_eq!(split_first(&[0; 8]), None);
    }
}
