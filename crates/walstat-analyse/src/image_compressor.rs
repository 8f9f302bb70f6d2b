//! How long an image would be with a codec: the server's own ones, with its parameters
//! (`XLogCompressBackupBlock` in `src/backend/access/transam/xloginsert.c`).
//!
//! LZ4 and Zstandard are the C libraries, as the server has them: other encoders of the formats
//! compress to other lengths. Releases of the libraries differ too, by less than 0.01 % between Zstandard
//! 1.5.4 and 1.5.7 (`docs/whatif.md`).

mod pglz;

use lzzzz::lz4;
use pglz::Pglz;
use walstat_format::image::Compression;
use walstat_format::image::HOLE_HEADER_BYTES;
use zstd::bulk::Compressor;

/// `ZSTD_CLEVEL_DEFAULT`.
const ZSTD_LEVEL: i32 = 3;

/// Compresses images, one after the other, in memory that it uses again.
#[derive(Default)]
pub struct ImageCompressor {
    out: Vec<u8>,
    pglz: Pglz,
    zstd: Option<Compressor<'static>>,
}

impl ImageCompressor {
    /// Bytes of the image whose page without hole is `source`, or `None` where compression does
    /// not make it shorter: it is stored as it is then.
    pub fn stored_bytes(
        &mut self,
        compression: Compression,
        source: &[u8],
        has_hole: bool,
    ) -> Option<u16> {
        let bytes = match compression {
            Compression::Pglz => self.pglz.compressed_bytes(source),
            Compression::Lz4 => self.lz4(source),
            Compression::Zstd => self.zstd(source),
        }?;
        let extra = if has_hole { HOLE_HEADER_BYTES as usize } else { 0 };
        u16::try_from(bytes).ok().filter(|_| bytes + extra < source.len())
    }

    fn lz4(&mut self, source: &[u8]) -> Option<usize> {
        self.out.resize(lz4::max_compressed_size(source.len()), 0);
        lz4::compress(source, &mut self.out, lz4::ACC_LEVEL_DEFAULT).ok()
    }

    fn zstd(&mut self, source: &[u8]) -> Option<usize> {
        self.out.resize(zstd::zstd_safe::compress_bound(source.len()), 0);
        if self.zstd.is_none() {
            self.zstd = Compressor::new(ZSTD_LEVEL).ok();
        }
        self.zstd.as_mut()?.compress_to_buffer(source, &mut self.out).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_get_shorter_is_stored_as_it_is() {
        let mut compressor = ImageCompressor::default();
        let mut state = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(8192)
        .collect();
        let text = b"the same text again and again, ".repeat(100);
        for &compression in Compression::ALL {
            assert_eq!(
                compressor.stored_bytes(compression, &noise, false),
                None,
                "{compression:?}"
            );
            let bytes = compressor.stored_bytes(compression, &text, true).expect("shorter");
            assert!(bytes < 100, "{compression:?} {bytes}");
        }
    }
}
