//! How long sampled images would be with each codec.

use crate::image_compressor::ImageCompressor;
use serde::{Deserialize, Serialize};
use walstat_format::block::Image;
use walstat_format::data_page::restore::PageRestorer;
use walstat_format::image::{Compression, HAS_HOLE, ImageFlags};

/// An image with each codec: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// As it is.
    pub stored: u16,
    /// With each of [`Lengths::CODECS`]; `None` where the release does not have it.
    pub codecs: [Option<u16>; 3],
}

/// An image's bytes, or what they came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<Lengths>", into = "Option<Lengths>")]
pub enum Stored {
    /// As they are stored.
    Bytes(Box<Bytes>),
    /// Compressed already, elsewhere; `None` where the page cannot be restored.
    Known(Option<Lengths>),
    /// Not wanted.
    Forgotten,
}

/// Bytes as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes {
    image: Image,
    stored: Box<[u8]>,
    /// `has_lz4`, and which bits of the flags mean what.
    flags: (u8, u8),
}

impl Lengths {
    /// In which order they stand.
    pub const CODECS: [Compression; 3] = [Compression::Pglz, Compression::Lz4, Compression::Zstd];

    /// Bytes with a codec, if the release has it.
    pub fn with(&self, codec: Compression) -> Option<u16> {
        let place = Lengths::CODECS.iter().position(|known| *known == codec)?;
        self.codecs.get(place).copied().flatten()
    }
}

impl Stored {
    /// The bytes of an image.
    pub fn new(image: Image, stored: &[u8], flags: ImageFlags) -> Stored {
        let flags = (flags.compressed, flags.apply);
        Stored::Bytes(Box::new(Bytes { image, stored: stored.into(), flags }))
    }
}

/// A partial result has what they came to.
impl From<Stored> for Option<Lengths> {
    fn from(stored: Stored) -> Option<Lengths> {
        Measurer::default().lengths(&stored)
    }
}

impl From<Option<Lengths>> for Stored {
    fn from(lengths: Option<Lengths>) -> Stored {
        Stored::Known(lengths)
    }
}

/// What compresses, in memory that is used again.
#[derive(Default)]
pub(super) struct Measurer {
    restorer: PageRestorer,
    compressor: ImageCompressor,
}

impl Measurer {
    /// How long an image is and would be.
    pub(super) fn lengths(&mut self, stored: &Stored) -> Option<Lengths> {
        let bytes = match stored {
            Stored::Known(lengths) => return *lengths,
            Stored::Forgotten => return None,
            Stored::Bytes(bytes) => bytes,
        };
        let Bytes { image, stored, flags: (compressed, apply) } = &**bytes;
        let flags = ImageFlags { compressed: *compressed, apply: *apply };
        let page = self.restorer.without_hole(image, stored, flags)?;
        let raw = u16::try_from(page.len()).ok()?;
        let has_hole = image.info & HAS_HOLE != 0;
        let codecs = Lengths::CODECS.map(|codec| {
            // From 15 on nobody who compresses chooses pglz.
            let is_offered = flags.has_lz4() != (codec == Compression::Pglz);
            let shorter = || self.compressor.stored_bytes(codec, page, has_hole).unwrap_or(raw);
            is_offered.then(shorter)
        });
        Some(Lengths { stored: image.bytes, codecs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_result_has_what_the_bytes_came_to() {
        let page = [&[0; 18][..], &[0x00, 0x20, 4, 0x20], &[0; 8192 - 22]].concat();
        let image = Image { bytes: 8192, hole_offset: 0, hole_bytes: 0, info: 0x02 };
        let here = Stored::new(image, &page, ImageFlags::V15);
        let lengths = Measurer::default().lengths(&here).expect("a page");
        assert_eq!((lengths.stored, lengths.with(Compression::Pglz)), (8192, None));
        assert!(lengths.with(Compression::Lz4).is_some_and(|bytes| bytes < 200));
        let elsewhere = Stored::from(Option::<Lengths>::from(here));
        assert_eq!(Measurer::default().lengths(&elsewhere), Some(lengths));
    }
}
