//! How long the data of blocks usually are, by record type: for records whose data an image replaced, and
//! whose page does not tell.

use walstat_format::block::BlockRef;
use walstat_format::rmgr::RecordType;

/// Resource managers of the server, types of each, and blocks of each that are told apart.
const RMGRS: usize = 32;
const SLOTS: usize = 16;
const BLOCKS: usize = 4;
/// Where none was seen: about as long as the data of most.
const UNSEEN_BYTES: u16 = 64;

/// Sums of block data by record type.
pub(crate) struct MeanBlockData {
    /// How many, and their bytes.
    seen: Vec<(u64, u64)>,
}

impl Default for MeanBlockData {
    fn default() -> MeanBlockData {
        MeanBlockData { seen: vec![(0, 0); RMGRS * SLOTS * BLOCKS] }
    }
}

impl MeanBlockData {
    /// A block without an image.
    #[inline]
    pub(crate) fn note(&mut self, kind: RecordType, block: &BlockRef) {
        if let Some((count, bytes)) = place(kind, block.id).and_then(|at| self.seen.get_mut(at)) {
            *count += 1;
            *bytes += u64::from(block.data_bytes);
        }
    }

    /// The mean, bytes.
    pub(crate) fn mean(&self, kind: RecordType, id: u8) -> u16 {
        let seen = place(kind, id).and_then(|at| self.seen.get(at));
        let mean = seen.and_then(|(count, bytes)| bytes.checked_div(*count));
        mean.and_then(|mean| u16::try_from(mean).ok()).unwrap_or(UNSEEN_BYTES)
    }
}

#[inline]
fn place(kind: RecordType, id: u8) -> Option<usize> {
    let (rmgr, slot) = (usize::from(kind.rmgr), usize::from(kind.slot));
    let block = usize::from(id).min(BLOCKS - 1);
    (rmgr < RMGRS && slot < SLOTS).then_some((rmgr * SLOTS + slot) * BLOCKS + block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::rmgr::{BTREE, HEAP};

    #[test]
    fn types_and_blocks_are_told_apart() {
        let mut usual = MeanBlockData::default();
        let (row, entry) =
            (RecordType { rmgr: HEAP, slot: 0 }, RecordType { rmgr: BTREE, slot: 0 });
        let block = |id, data_bytes| BlockRef {
            id,
            fork: 0,
            will_init: false,
            relation: Default::default(),
            block: 0,
            data_bytes,
            payload_at: 0,
            image: None,
        };
        usual.note(row, &block(0, 100));
        usual.note(row, &block(0, 50));
        usual.note(row, &block(9, 7));
        assert_eq!((usual.mean(row, 0), usual.mean(row, 200)), (75, 7));
        assert_eq!((usual.mean(row, 1), usual.mean(entry, 0)), (UNSEEN_BYTES, UNSEEN_BYTES));
        usual.note(RecordType { rmgr: 200, slot: 0 }, &block(0, 9));
        assert_eq!(usual.mean(RecordType { rmgr: 200, slot: 0 }, 0), UNSEEN_BYTES);
    }
}
