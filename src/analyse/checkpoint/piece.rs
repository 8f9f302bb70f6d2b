//! What is summed up over a stretch of WAL that nothing divides any more.

use super::blocks::Blocks;
use super::decay::Images;
use crate::analyse::tape::{Chunk, Part, Tally};

/// Records, blocks and images of a stretch.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// Its records.
    pub tally: Tally,
    /// The blocks that they touch.
    pub touched: Blocks,
    /// Those of them whose first touch has no image.
    pub unimaged: Blocks,
    /// Its images.
    pub images: Images,
}

impl Piece {
    /// Adds the records of a chunk.
    pub fn add_chunk(&mut self, chunk: &Chunk) {
        self.tally += chunk.tally;
        for (lsn, image) in chunk.images() {
            self.images.add(lsn, u64::from(image.bytes));
        }
        for touch in chunk.touches() {
            self.touch(touch.file, touch.block, touch.has_image());
        }
    }

    /// Adds those of a part of a chunk.
    pub fn add_part(&mut self, part: &Part) {
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

    /// How many of the blocks that another stretch has touched are imaged where this one touches them
    /// first.
    pub fn images_of(&self, touched: &Blocks) -> u64 {
        let without = self.unimaged.intersection_len(touched);
        self.touched.intersection_len(touched).saturating_sub(without)
    }

    /// Adds those of the next stretch.
    pub fn append(&mut self, mut later: Piece) {
        self.tally += later.tally;
        later.unimaged.remove_all(&self.touched);
        self.unimaged.add_all(later.unimaged);
        self.touched.add_all(later.touched);
        self.images.append(later.images);
    }
}

/// What a crash would make the server read again, as far as cycles of it are over.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    tally: Tally,
    touched: Blocks,
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

impl Replayed {
    /// With one more stretch, which goes on.
    pub fn with(&self, piece: &Piece) -> ReplaySums {
        let mut tally = self.tally;
        tally += piece.tally;
        ReplaySums {
            tally,
            distinct_blocks: self.touched.union_len(&piece.touched),
            without_image: self.without_image + piece.unimaged.difference_len(&self.touched),
        }
    }

    /// Adds a stretch that is over.
    pub fn add(&mut self, piece: Piece) {
        self.tally += piece.tally;
        self.without_image += piece.unimaged.difference_len(&self.touched);
        self.touched.add_all(piece.touched);
    }
}
