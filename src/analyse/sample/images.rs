//! Some images as they are stored, and how long they would be with each codec.

use crate::analyse::whatif::codec::Codec;
use crate::scan::record::Record;
use crate::wal::block::{BlockRef, Image};
use crate::wal::data_page::restore::PageRestorer;
use crate::wal::image::{Compression, HAS_HOLE, ImageFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many images are kept.
const KEPT: usize = 128;

/// An image with each codec: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// Of its place.
    pub hash: u32,
    /// As it is.
    pub stored: u16,
    /// Not compressed.
    pub raw: u16,
    /// With each of [`Lengths::CODECS`]; `None` where the release does not have it.
    pub codecs: [Option<u16>; 3],
}

/// An image that was kept.
#[derive(Debug, Clone)]
enum Kept {
    /// As it is stored.
    Stored(Image, Box<[u8]>, ImageFlags),
    /// Compressed already, elsewhere; `None` where it cannot be restored.
    Known(Option<Lengths>),
}

/// The images with the lowest hashes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
pub struct Images {
    kept: BTreeMap<u32, Kept>,
    /// Whether there are more.
    is_cut: bool,
}

/// As a partial result has it.
#[derive(Serialize, Deserialize)]
struct Form {
    images: Vec<(u32, Option<Lengths>)>,
    is_cut: bool,
}

impl Lengths {
    /// In which order they stand.
    pub const CODECS: [Compression; 3] = [Compression::Pglz, Compression::Lz4, Compression::Zstd];

    /// Bytes with a codec, if the release has it; `None`: not compressed.
    pub fn with(&self, codec: Option<Compression>) -> Option<u16> {
        let Some(codec) = codec else { return Some(self.raw) };
        let place = Lengths::CODECS.iter().position(|known| *known == codec)?;
        self.codecs.get(place).copied().flatten()
    }
}

impl Images {
    /// Keeps an image of a record, if it is one of those.
    pub fn take(&mut self, record: &Record<'_>, block: &BlockRef) {
        let Some(image) = &block.image else { return };
        let flags = record.version.image_flags;
        let hash = hash_of(record.lsn.0, block.id);
        if !flags.is_applied(image.info) || !self.has_room(hash) {
            return;
        }
        if let Some(stored) = record.image(block) {
            self.kept.insert(hash, Kept::Stored(*image, stored.bytes.into(), flags));
            self.sort_out();
        }
    }

    fn has_room(&mut self, hash: u32) -> bool {
        let is_lower = self.kept.last_key_value().is_some_and(|(highest, _)| hash < *highest);
        let has_room = is_lower || self.kept.len() < KEPT;
        self.is_cut |= !has_room;
        has_room
    }

    fn sort_out(&mut self) {
        while self.kept.len() > KEPT {
            self.kept.pop_last();
            self.is_cut = true;
        }
    }

    /// Adds what the run after this one has kept.
    pub fn merge(&mut self, later: Images) {
        self.is_cut |= later.is_cut;
        self.kept.extend(later.kept);
        self.sort_out();
    }

    /// Takes no more memory than it needs: there is nothing to free.
    pub fn shrink(&mut self) {}

    /// The lengths of those kept, and whether they are all.
    pub fn finish(self) -> (Vec<Lengths>, bool) {
        let mut means = Means::default();
        let images = self.kept.into_iter().filter_map(|(hash, kept)| means.lengths(hash, kept));
        (images.collect(), !self.is_cut)
    }
}

impl From<Images> for Form {
    fn from(images: Images) -> Form {
        let mut means = Means::default();
        let kept = images.kept.into_iter();
        let images_kept = kept.map(|(hash, kept)| (hash, means.lengths(hash, kept))).collect();
        Form { images: images_kept, is_cut: images.is_cut }
    }
}

impl From<Form> for Images {
    fn from(form: Form) -> Images {
        let known = form.images.into_iter().map(|(hash, lengths)| (hash, Kept::Known(lengths)));
        Images { kept: known.collect(), is_cut: form.is_cut }
    }
}

/// What compresses.
#[derive(Default)]
struct Means {
    restorer: PageRestorer,
    codec: Codec,
}

impl Means {
    fn lengths(&mut self, hash: u32, kept: Kept) -> Option<Lengths> {
        let (image, stored, flags) = match kept {
            Kept::Known(lengths) => return lengths,
            Kept::Stored(image, stored, flags) => (image, stored, flags),
        };
        let page = self.restorer.without_hole(&image, &stored, flags)?;
        let raw = u16::try_from(page.len()).ok()?;
        let has_hole = image.info & HAS_HOLE != 0;
        let codecs = Lengths::CODECS.map(|codec| {
            // From 15 on nobody who compresses chooses pglz.
            let is_offered = flags.has_lz4() != (codec == Compression::Pglz);
            let shorter = || self.codec.stored_bytes(codec, page, has_hole).unwrap_or(raw);
            is_offered.then(shorter)
        });
        Some(Lengths { hash, stored: image.bytes, raw, codecs })
    }
}

/// Of a record's place and the block's id in it.
fn hash_of(lsn: u64, id: u8) -> u32 {
    let mixed = (lsn ^ (u64::from(id) << 56)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 32)).wrapping_mul(0xFF51_AFD7_ED55_8CCD) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(hashes: impl Iterator<Item = u32>) -> Images {
        let mut images = Images::default();
        for hash in hashes {
            if images.has_room(hash) {
                images.kept.insert(hash, Kept::Known(None));
                images.sort_out();
            }
        }
        images
    }

    #[test]
    fn the_same_are_kept_however_they_were_divided() {
        let hashes: Vec<u32> = (0..2000).map(|lsn| hash_of(lsn * 8, 0)).collect();
        let whole = known(hashes.iter().copied());
        let (first, second) = hashes.split_at(700);
        let mut divided = known(first.iter().copied());
        divided.merge(known(second.iter().copied()));
        assert!(divided.kept.keys().eq(whole.kept.keys()));
        assert_eq!((divided.kept.len(), divided.is_cut), (KEPT, true));
        assert!(!known(hashes.into_iter().take(KEPT)).is_cut);
    }
}
