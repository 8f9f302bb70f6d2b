//! Whether all images of the base were written under one wal_compression.

use walstat_format::image::Compression;

/// Where so many images are compressed for one that is not, that one could not be made smaller.
const COMPRESSED_FOR_ONE: u64 = 20;

/// How images of the base are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ImagesSeen {
    pub(crate) compressed: u64,
    pub(crate) uncompressed: u64,
    /// Whether there are some of two codecs.
    pub(crate) is_mixed: bool,
}

impl ImagesSeen {
    /// Takes one more, after others of which the newest compressed one has that codec.
    pub(crate) fn add(&mut self, codec: Option<Compression>, newest: Option<Compression>) {
        match codec {
            None => self.uncompressed += 1,
            Some(_) => self.compressed += 1,
        }
        self.is_mixed |= codec.is_some() && newest.is_some() && codec != newest;
    }

    /// Whether all were written under one wal_compression, as far as that is to be seen.
    pub(crate) fn is_one(self) -> bool {
        let all_but_few = self.uncompressed.saturating_mul(COMPRESSED_FOR_ONE) <= self.compressed;
        !self.is_mixed && (self.compressed == 0 || all_but_few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_is_the_base_s_where_all_images_have_it() {
        let seen = |compressed, uncompressed, is_mixed| {
            ImagesSeen { compressed, uncompressed, is_mixed }.is_one()
        };
        assert!(seen(0, 100, false) && seen(100, 5, false));
        assert!(!seen(100, 6, false) && !seen(100, 0, true));
    }
}
