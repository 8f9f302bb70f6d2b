//! A sample of full page images, small enough for every report: from it is estimated what the same
//! work would have written with checkpoints further apart or with another codec. (`whatif` is exact,
//! and looks at everything.)
//!
//! Both parts keep what has the lowest hashes of all that was seen. So what is kept is chosen evenly,
//! is the same however the WAL was divided, and is everything where there is little.

mod images;
mod touches;

pub use images::Lengths;
pub use touches::{Block, Touch};

use crate::scan::record::{Observe, Record};
use images::Images;
use serde::{Deserialize, Serialize};
use touches::Touches;

/// Sees all records, keeps some.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sample {
    touches: Touches,
    images: Images,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Blocks by their hashes, ascending.
    pub blocks: Vec<Block>,
    /// Whether those are all blocks.
    pub all_blocks: bool,
    /// Images, and how long each would be with the codecs that the release has.
    pub images: Vec<Lengths>,
    /// Whether those are all images.
    pub all_images: bool,
}

impl Sample {
    /// What was kept, with the sampled images compressed.
    pub fn finish(self) -> Found {
        let (blocks, all_blocks) = self.touches.finish();
        let (images, all_images) = self.images.finish();
        Found { blocks, all_blocks, images, all_images }
    }

    /// An image is worth a call of its own.
    #[inline(never)]
    fn take_images(&mut self, record: &Record<'_>) {
        let record_type = record.record_type();
        for block in record.blocks() {
            self.touches.take(record.lsn, &block, record_type, record.version);
            self.images.take(record, &block);
        }
    }
}

impl Observe for Sample {
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if record.parts.fpi_count > 0 {
            // A copy: the record itself then stays in registers.
            let record = *record;
            self.take_images(&record);
        } else if let Some(mark) = record.block_mark() {
            self.touches.touch(record.lsn, &mark.place());
        } else {
            record.for_each_place(|place, _| self.touches.touch(record.lsn, place));
        }
    }

    fn merge(&mut self, later: Sample) {
        self.touches.merge(later.touches);
        self.images.merge(later.images);
    }

    fn shrink(&mut self) {
        self.touches.shrink();
        self.images.shrink();
    }
}
