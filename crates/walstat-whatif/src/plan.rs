//! What a simulated run makes of one record of the base, before it is known how long its images are.

use super::level::AppliedDelta;
use super::trace::{TracedBlock, entry_fact};

/// An image as a simulated run has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageBytes {
    /// Bytes as stored.
    pub(crate) stored: u16,
    /// Whether it is compressed.
    pub(crate) compressed: bool,
    /// How certain its length is.
    pub(crate) certainty: Certainty,
}

/// How certain a length is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is known.
    Known,
    /// It follows from other images that were compressed: how far it is off is known of them all.
    Sampled,
    /// It is a guess.
    Estimated,
}

impl ImageBytes {
    /// As it is in the base, or not compressed where the base has none.
    pub(crate) fn as_base(reference: &TracedBlock) -> ImageBytes {
        let compressed = reference.is(entry_fact::BASE_COMPRESSED);
        ImageBytes {
            stored: if compressed { reference.stored_bytes } else { reference.image_bytes },
            compressed,
            certainty: Certainty::of(reference),
        }
    }

    /// As a sample tells it.
    pub(crate) fn sampled(bytes: u64) -> ImageBytes {
        let stored = u16::try_from(bytes).unwrap_or(u16::MAX);
        ImageBytes { stored, compressed: true, certainty: Certainty::Sampled }
    }

    /// Not compressed.
    pub(crate) fn raw(reference: &TracedBlock) -> ImageBytes {
        let certainty = Certainty::of(reference);
        ImageBytes { stored: reference.image_bytes, compressed: false, certainty }
    }
}

impl Certainty {
    fn of(reference: &TracedBlock) -> Certainty {
        if reference.is(entry_fact::IMAGE_ESTIMATED) {
            Certainty::Estimated
        } else {
            Certainty::Known
        }
    }
}

/// Which of a record's blocks come with an image, as bits.
type Mask = u64;

/// What becomes of a record of the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What is written before it, or left out as in the base; page headers not counted.
    pub(crate) before: u64,
    /// Its images; `None` if it is not written.
    pub(crate) images: Option<Mask>,
    /// Blocks whose image comes before it, in a record of its own, since hint bits are changed first.
    pub(crate) hints: Mask,
    /// What the wal_level changes of it.
    pub(crate) level: AppliedDelta,
}

impl Plan {
    /// Whether an image of the first block is taken, with the record or before it.
    pub(crate) fn has_image_of_first(&self) -> bool {
        (self.images.unwrap_or_default() | self.hints) & 1 != 0
    }

    /// Whether an image of a block is written, with the record or before it.
    pub(crate) fn has_image(&self, index: usize, reference: &TracedBlock) -> bool {
        let taken = |images: Mask| (images | self.hints) >> index & 1 != 0;
        self.images.is_some_and(|images| taken(images) || reference.is(entry_fact::CHECK_IMAGE))
    }
}
