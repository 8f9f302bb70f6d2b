//! Sums over WAL that need not be divided any more: of a checkpoint cycle, or of what is replayed.

use super::decay::ImagePlaces;
use super::touched_blocks::TouchedBlocks;
use crate::deferred_log::{Chunk, ChunkPart, Tally};

/// Records, blocks and images of consecutive WAL.
#[derive(Debug, Clone, Default)]
pub(super) struct CycleSums {
    /// Its records.
    pub tally: Tally,
    /// The blocks that they touch.
    pub touched: TouchedBlocks,
    /// Those of them whose first touch has no image.
    pub unimaged: TouchedBlocks,
    /// Its images.
    pub images: ImagePlaces,
}

impl CycleSums {
    /// Adds the records of a chunk.
    pub(super) fn add_chunk(&mut self, chunk: &Chunk) {
        self.tally += chunk.tally;
        for (lsn, image) in chunk.images() {
            self.images.add(lsn, u64::from(image.bytes));
        }
        for touch in chunk.touches() {
            self.touch(touch.file, touch.block, touch.has_image());
        }
    }

    /// Adds those of a part of a chunk.
    pub(super) fn add_part(&mut self, part: &ChunkPart) {
        self.tally += part.tally;
        for (lsn, bytes) in &part.images {
            self.images.add(*lsn, *bytes);
        }
        for (file, block, has_image) in &part.touches {
            self.touch(*file, *block, *has_image);
        }
    }

    #[inline]
    fn touch(&mut self, file: u32, block: u32, has_image: bool) {
        if self.touched.insert(file, block) && !has_image {
            self.unimaged.insert(file, block);
        }
    }

    /// How many of the blocks in `touched` have an image where they are touched here first.
    pub(super) fn images_of(&self, touched: &TouchedBlocks) -> u64 {
        let without = self.unimaged.intersection_len(touched);
        self.touched.intersection_len(touched).saturating_sub(without)
    }

    /// Adds the sums over the WAL that follows.
    pub(super) fn append(&mut self, mut later: CycleSums) {
        self.tally += later.tally;
        later.unimaged.remove_all(&self.touched);
        self.unimaged.add_all(later.unimaged);
        self.touched.add_all(later.touched);
        self.images.append(later.images);
    }
}

/// What a crash would make the server replay, as far as the cycles in it are complete.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplayBuilder {
    tally: Tally,
    touched: TouchedBlocks,
    without_image: u64,
}

/// Sums over what is replayed after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplaySums {
    /// Records.
    pub tally: Tally,
    /// Blocks that they touch.
    pub distinct_blocks: u64,
    /// Those of them whose first touch has no image: they have to be read.
    pub without_image: u64,
}

impl ReplayBuilder {
    /// The sums together with those of a cycle that goes on.
    pub(super) fn with(&self, sums: &CycleSums) -> ReplaySums {
        let mut tally = self.tally;
        tally += sums.tally;
        ReplaySums {
            tally,
            distinct_blocks: self.touched.union_len(&sums.touched),
            without_image: self.without_image + sums.unimaged.difference_len(&self.touched),
        }
    }

    /// Adds a cycle that is complete.
    pub(super) fn add(&mut self, sums: CycleSums) {
        self.tally += sums.tally;
        self.without_image += sums.unimaged.difference_len(&self.touched);
        self.touched.add_all(sums.touched);
    }
}
