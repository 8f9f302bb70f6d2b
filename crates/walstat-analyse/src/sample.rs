//! A sample of full page images, small enough for every report: from it is estimated what the same
//! work would have written with checkpoints further apart or with another codec. (`whatif` is exact,
//! and looks at everything.)
//!
//! Each image shows its page as it was stamped before: so it tells by itself when the page was changed
//! last, and with that whether it would be there if checkpoints were further apart. Kept are the images
//! with the lowest hashes of their places: they are chosen evenly, are the same however the WAL was
//! divided, and all where there are few.

mod lengths;

pub use lengths::{Lengths, Stored};

use lengths::Measurer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use walstat_format::block::BlockRef;
use walstat_format::data_page::restore::PageRestorer;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_format::rmgr::RecordType;
use walstat_format::scatter::scattered;
use walstat_read::scan::observe::Observe;

/// So many images are kept: of those that half would be there of, that leaves two points of a hundred open.
const KEPT: usize = 2048;
/// Of so many, those with the lowest hashes, the bytes too, to be compressed.
const COMPRESSED: usize = 256;

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// Where its record starts.
    pub lsn: Lsn,
    /// Where its page was changed before, as the page says; `None` if it cannot be restored.
    pub changed: Option<Lsn>,
    /// Stored bytes.
    pub bytes: u16,
    /// The record's type.
    pub record: RecordType,
    /// Whether it is there because the page was older than the redo point: not forced.
    pub is_due: bool,
    /// Whether the record has the data that the image shows, too.
    pub keeps_data: bool,
    /// How long it would be otherwise, of those with the lowest hashes.
    pub stored: Stored,
}

/// Sees all records, keeps some images.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    /// By hash.
    kept: BTreeMap<u32, Sampled>,
    /// Whether there are more.
    is_cut: bool,
    /// Block data of records that have images, by type: of all of them.
    imaged_data: BTreeMap<RecordType, u64>,
    /// What all copies in a scan know, if they will be merged: one of them has kept as many images as may be,
    /// of this hash or lower ones.
    #[serde(skip)]
    highest: Option<Arc<AtomicU32>>,
    /// So many have their bytes: more than will be compressed, until they are sorted out.
    #[serde(skip)]
    with_bytes: usize,
    /// Those of a higher hash will not be compressed.
    #[serde(skip)]
    compressed_up_to: Option<u32>,
    #[serde(skip)]
    restorer: Restorer,
}

/// Memory that is used again; a copy has its own.
#[derive(Default)]
struct Restorer(PageRestorer);

impl Clone for Restorer {
    fn clone(&self) -> Restorer {
        Restorer::default()
    }
}

impl std::fmt::Debug for Restorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Restorer")
    }
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledImages {
    /// Images by their hashes, ascending.
    pub images: Vec<(u32, Sampled)>,
    /// Of those with the lowest hashes how long they would be otherwise.
    pub lengths: BTreeMap<u32, Lengths>,
    /// Whether those are all images.
    pub is_whole: bool,
    /// Whether all of them were compressed, too.
    pub all_compressed: bool,
    /// Block data of records that have images, by type: of all of them.
    pub imaged_data: BTreeMap<RecordType, u64>,
}

impl Sample {
    /// What was kept, with images compressed.
    pub fn finish(mut self) -> SampledImages {
        self.sort_out();
        let mut measurer = Measurer::default();
        let stored = self.kept.iter().take(COMPRESSED);
        let lengths: BTreeMap<u32, Lengths> = stored
            .filter_map(|(hash, image)| Some((*hash, measurer.lengths(&image.stored)?)))
            .collect_map();
        SampledImages {
            is_whole: !self.is_cut,
            all_compressed: !self.is_cut && lengths.len() == self.kept.len(),
            lengths,
            images: self
                .kept
                .into_iter()
                .map(|(hash, image)| (hash, Sampled { stored: Stored::Forgotten, ..image }))
                .collect(),
            imaged_data: self.imaged_data,
        }
    }

    /// An image is worth a call of its own.
    #[inline(never)]
    fn take(&mut self, record: &Record<'_>) {
        let kind = record.record_type();
        let data = u64::from(record.parts.block_data_bytes);
        if data > 0 {
            *self.imaged_data.entry(kind).or_default() += data;
        }
        for block in record.blocks() {
            self.take_block(record, &block, kind);
        }
    }

    fn take_block(&mut self, record: &Record<'_>, block: &BlockRef, kind: RecordType) {
        let Some(image) = &block.image else { return };
        let flags = record.version.image_flags;
        let hash = hash_of(record.lsn, block.id);
        if !flags.is_applied(image.info) || !self.admits(hash) {
            return;
        }
        let Some(stored) = record.image(block) else { return };
        let changed = self.restorer.0.without_hole(image, &stored.bytes, flags).and_then(page_lsn);
        let keeps_bytes = self.compressed_up_to.is_none_or(|highest| hash <= highest);
        let sampled = Sampled {
            lsn: record.lsn,
            changed,
            bytes: image.bytes,
            record: kind,
            is_due: !is_forced(kind),
            keeps_data: block.data_bytes > 0,
            stored: if keeps_bytes {
                Stored::new(*image, &stored.bytes, flags)
            } else {
                Stored::Forgotten
            },
        };
        self.kept.insert(hash, sampled);
        self.with_bytes += usize::from(keeps_bytes);
        if self.with_bytes >= 2 * COMPRESSED {
            self.sort_out();
        }
        self.keep_few();
    }

    /// Whether an image of this hash is kept as things stand; takes note that there are others, if not.
    fn admits(&mut self, hash: u32) -> bool {
        let is_wanted = self.highest.as_ref().is_none_or(|highest| hash <= highest.load(Relaxed));
        let is_lower = || self.kept.last_key_value().is_some_and(|(highest, _)| hash < *highest);
        let has_room = is_wanted && (self.kept.len() < KEPT || is_lower());
        self.is_cut |= !has_room;
        has_room
    }

    /// Keeps as many as may be.
    fn keep_few(&mut self) {
        while self.kept.len() > KEPT {
            self.kept.pop_last();
            self.is_cut = true;
        }
        let last = self.kept.last_key_value().filter(|_| self.kept.len() == KEPT);
        if let (Some(highest), Some((last, _))) = (&self.highest, last) {
            highest.fetch_min(*last, Relaxed);
        }
    }

    /// Keeps as many as may be, and the bytes of those that will be compressed.
    fn sort_out(&mut self) {
        self.keep_few();
        self.kept.values_mut().skip(COMPRESSED).for_each(|image| image.stored = Stored::Forgotten);
        self.with_bytes = COMPRESSED.min(self.kept.len());
        self.compressed_up_to = self.kept.keys().nth(COMPRESSED - 1).copied();
    }
}

impl Observe for Sample {
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if record.parts.fpi_count > 0 {
            self.take(record);
        }
    }

    fn share(&mut self) {
        self.highest = Some(Arc::new(AtomicU32::new(u32::MAX)));
    }

    fn shrink(&mut self) {
        self.sort_out();
    }

    fn merge(&mut self, later: Sample) {
        self.is_cut |= later.is_cut;
        self.kept.extend(later.kept);
        self.sort_out();
        for (record, bytes) in later.imaged_data {
            *self.imaged_data.entry(record).or_default() += bytes;
        }
    }
}

/// Whether the images of a record are there whatever the page says (`log_newpage`).
fn is_forced(record: RecordType) -> bool {
    record.rmgr == rmgr::XLOG && !record.is_hint_image()
}

/// `pd_lsn`: two numbers, the high one first.
fn page_lsn(page: &[u8]) -> Option<Lsn> {
    let bytes: &[u8; 8] = page.first_chunk()?;
    Some(Lsn(u64::from_le_bytes(*bytes).rotate_left(32)))
}

/// Of a record's place and the block's id in it.
fn hash_of(lsn: Lsn, id: u8) -> u32 {
    let mixed = scattered(lsn.0 ^ (u64::from(id) << 56));
    ((mixed ^ (mixed >> 32)).wrapping_mul(0xFF51_AFD7_ED55_8CCD) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(lsns: impl Iterator<Item = u64>) -> Sample {
        fill(Sample::default(), lsns)
    }

    fn fill(mut sample: Sample, lsns: impl Iterator<Item = u64>) -> Sample {
        for lsn in lsns {
            let hash = hash_of(Lsn(lsn), 0);
            if sample.admits(hash) {
                let image = Sampled {
                    lsn: Lsn(lsn),
                    changed: Some(Lsn(lsn / 2)),
                    bytes: 8000,
                    record: RecordType { rmgr: 10, slot: 0 },
                    is_due: true,
                    keeps_data: false,
                    stored: Stored::Known(None),
                };
                sample.kept.insert(hash, image);
                sample.sort_out();
            }
        }
        sample
    }

    #[test]
    fn the_same_are_kept_however_they_were_divided() {
        let all = || (1..9000u64).map(|number| number * 8);
        let whole = sample(all()).finish();
        assert_eq!((whole.images.len(), whole.is_whole), (KEPT, false));
        for at in [1, 300, 1500, 8990] {
            let mut divided = sample(all().take(at));
            divided.merge(sample(all().skip(at)));
            assert_eq!(divided.finish(), whole, "{at}");
        }
        let mut prototype = Sample::default();
        prototype.share();
        let mut shared = fill(prototype.clone(), all().take(6000));
        let later = fill(prototype, all().skip(6000));
        assert!(later.kept.len() < KEPT, "only what may be kept in the end is kept at all");
        shared.merge(later);
        assert_eq!(shared.finish(), whole);
        let few = sample(all().take(100)).finish();
        assert_eq!((few.images.len(), few.is_whole), (100, true));
    }

    #[test]
    fn hashes_of_places_are_spread_evenly() {
        let mut counts = [0u32; 16];
        (0..16_000u64).for_each(|n| counts[(hash_of(Lsn(n * 8192), 0) >> 28) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_page_says_when_it_was_changed() {
        // 1/2345678, as a page has it.
        let page = [1, 0, 0, 0, 0x78, 0x56, 0x34, 0x02, 0xFF];
        assert_eq!(page_lsn(&page), Some(Lsn(0x1_0234_5678)));
        assert_eq!(page_lsn(&[0; 4]), None);
    }
}
