//! Of some blocks when each was touched first, and all of its images: which of them would not be there
//! if checkpoints were further apart follows from that.

use crate::wal::block::BlockRef;
use crate::wal::block::places::StoredPlace;
use crate::wal::lsn::Lsn;
use crate::wal::rmgr::{self, RecordType};
use crate::wal::version::Version;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// So many blocks are kept.
const KEPT: usize = 512;
/// Before more than so many are sorted out.
const KEPT_MOST: usize = 2 * KEPT;
/// Blocks met lately, which need not be looked up: a power of two.
const RECENT: usize = 256;

/// An image of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Bytes after the block was touched first at which its record starts.
    pub after: u64,
    /// Stored bytes.
    pub bytes: u16,
    /// The record's type.
    pub record: RecordType,
    /// Whether the image is there because the page was older than the redo point: not forced, and not
    /// for checking only.
    pub is_due: bool,
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Of its place.
    pub hash: u32,
    /// The first record that refers to it.
    pub first: Lsn,
    /// Its images, in WAL order.
    pub images: Vec<Touch>,
}

/// The blocks with the lowest hashes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "(Vec<Block>, bool)", into = "(Vec<Block>, bool)")]
pub struct Touches {
    kept: HashMap<u32, Block>,
    /// Those with a higher hash are not kept.
    highest: u32,
    recent: [u32; RECENT],
}

impl Default for Touches {
    fn default() -> Touches {
        Touches { kept: HashMap::new(), highest: u32::MAX, recent: [0; RECENT] }
    }
}

impl Touches {
    /// Takes note that a record refers to a block and has no image of it.
    #[inline(always)]
    pub fn touch(&mut self, lsn: Lsn, place: &StoredPlace) {
        let hash = hash_of(place);
        let recent = &mut self.recent[hash as usize % RECENT];
        if hash <= self.highest && *recent != hash {
            *recent = hash;
            self.entry(hash, lsn);
        }
    }

    /// Takes note of a reference of a record that has images.
    pub fn take(&mut self, lsn: Lsn, block: &BlockRef, record: RecordType, version: &Version) {
        let hash = hash_of(&StoredPlace::of(block.relation, block.fork, block.block));
        if hash > self.highest {
            return;
        }
        let Some(kept) = self.entry(hash, lsn) else { return };
        if let Some(image) = &block.image {
            let is_due = version.image_flags.is_applied(image.info) && !is_forced(record);
            let after = lsn.0.saturating_sub(kept.first.0);
            kept.images.push(Touch { after, bytes: image.bytes, record, is_due });
        }
    }

    #[inline(never)]
    fn entry(&mut self, hash: u32, lsn: Lsn) -> Option<&mut Block> {
        if !self.kept.contains_key(&hash) && self.kept.len() >= KEPT_MOST {
            self.sort_out();
            if hash > self.highest {
                return None;
            }
        }
        let new = || Block { hash, first: lsn, images: Vec::new() };
        Some(self.kept.entry(hash).or_insert_with(new))
    }

    /// Keeps those with the lowest hashes.
    fn sort_out(&mut self) {
        if self.kept.len() <= KEPT {
            return;
        }
        let mut hashes: Vec<u32> = self.kept.keys().copied().collect();
        let (_, highest, _) = hashes.select_nth_unstable(KEPT - 1);
        self.highest = *highest;
        self.kept.retain(|hash, _| *hash <= *highest);
    }

    /// Adds what the run after this one has kept.
    pub fn merge(&mut self, later: Touches) {
        self.highest = self.highest.min(later.highest);
        for (hash, mut block) in later.kept {
            let Some(kept) = self.kept.get_mut(&hash) else {
                self.kept.insert(hash, block);
                continue;
            };
            let distance = block.first.0.saturating_sub(kept.first.0);
            block.images.iter_mut().for_each(|image| image.after += distance);
            kept.images.append(&mut block.images);
        }
        let highest = self.highest;
        self.kept.retain(|hash, _| *hash <= highest);
        self.sort_out();
    }

    /// Takes no more memory than it needs.
    pub fn shrink(&mut self) {
        self.sort_out();
        self.kept.shrink_to_fit();
    }

    /// Those kept, by their hashes, and whether they are all.
    pub fn finish(mut self) -> (Vec<Block>, bool) {
        self.sort_out();
        let all = self.highest == u32::MAX;
        let mut blocks: Vec<Block> = self.kept.into_values().collect();
        blocks.sort_unstable_by_key(|block| block.hash);
        (blocks, all)
    }
}

/// Compact: those kept, ascending, and whether they are all.
impl From<Touches> for (Vec<Block>, bool) {
    fn from(touches: Touches) -> (Vec<Block>, bool) {
        touches.finish()
    }
}

impl From<(Vec<Block>, bool)> for Touches {
    fn from((blocks, all): (Vec<Block>, bool)) -> Touches {
        let highest = blocks.last().filter(|_| !all).map_or(u32::MAX, |block| block.hash);
        let kept = blocks.into_iter().map(|block| (block.hash, block)).collect();
        Touches { kept, highest, ..Touches::default() }
    }
}

/// Whether the images of a record are there whatever the page says (`log_newpage`).
fn is_forced(record: RecordType) -> bool {
    record.rmgr == rmgr::XLOG && record.info() != rmgr::XLOG_FPI_FOR_HINT
}

/// Of a place, never 0. Two multiplications: places next to each other come out far apart.
#[inline(always)]
fn hash_of(place: &StoredPlace) -> u32 {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = place.bytes;
    let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ 0x9E37_79B9_7F4A_7C15;
    let high = u64::from_le_bytes([i, j, k, l, m, n, o, p]) ^ 0xD6E8_FEB8_6659_FD93;
    let product = u128::from(low) * u128::from(high.wrapping_add(u64::from(place.fork) << 56));
    let folded = (product as u64) ^ ((product >> 64) as u64);
    ((folded.wrapping_mul(0xFF51_AFD7_ED55_8CCD) >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::block::RelFileLocator;

    fn place(block: u32) -> StoredPlace {
        StoredPlace::of(
            RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16384 },
            0,
            block,
        )
    }

    /// Touches of so many blocks, each three times.
    fn touched(blocks: std::ops::Range<u32>) -> Touches {
        let mut touches = Touches::default();
        for round in 0..3 {
            for block in blocks.clone() {
                touches.touch(Lsn(u64::from(round * 100_000 + block)), &place(block));
            }
        }
        touches
    }

    #[test]
    fn few_are_all_kept_and_of_many_those_with_the_lowest_hashes() {
        let (blocks, all) = touched(0..100).finish();
        assert_eq!((blocks.len(), all), (100, true));
        let (blocks, all) = touched(0..50_000).finish();
        assert_eq!((blocks.len(), all), (KEPT, false));
        let mut hashes: Vec<u32> = (0..50_000).map(|block| hash_of(&place(block))).collect();
        hashes.sort_unstable();
        let kept: Vec<u32> = blocks.iter().map(|block| block.hash).collect();
        assert_eq!(kept, hashes[..KEPT]);
        assert!(blocks.iter().all(|block| block.first.0 < 100_000));
    }

    #[test]
    fn the_same_are_kept_however_the_blocks_were_divided() {
        let whole = touched(0..5_000).finish();
        for at in [1, 400, 2_500, 4_990] {
            let mut first = touched(0..at);
            // Written and read again, as a partial result is.
            let second = Touches::from(<(Vec<Block>, bool)>::from(touched(at..5_000)));
            first.merge(second);
            let divided = first.finish();
            assert_eq!(divided, whole, "{at}");
        }
    }

    #[test]
    fn hashes_are_spread_evenly() {
        let mut counts = [0u32; 16];
        (0..16_000).for_each(|block| counts[(hash_of(&place(block)) >> 28) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
