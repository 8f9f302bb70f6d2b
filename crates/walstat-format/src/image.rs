//! Full page images: what the bits of `bimg_info` mean, by release.
//!
//! Bit 0x02 says "compressed" up to 14 and "apply" from 15; bit 0x04 says "apply" in 10 to 14
//! and "pglz" from 15 (`src/include/access/xlogrecord.h`). The table is the only place that
//! knows.

pub mod unpacked;

/// `BKPIMAGE_HAS_HOLE`, the same in all releases.
pub const HAS_HOLE: u8 = 0x01;
/// Bytes of an image's header (`XLogRecordBlockImageHeader`).
pub const IMAGE_HEADER_BYTES: u32 = 5;
/// Bytes that the header of a compressed image with a hole has more
/// (`XLogRecordBlockCompressHeader`).
pub const HOLE_HEADER_BYTES: u32 = 2;

named! {
    /// How an image is compressed, by the names that `wal_compression` has for it.
    pub enum Compression {
        Pglz "pglz" "PostgreSQL's own, without a header";
        Lz4 "lz4" "A raw LZ4 block";
        Zstd "zstd" "A Zstandard frame";
    }
}

impl Compression {
    /// The one of this name.
    pub fn by_name(name: &str) -> Option<Compression> {
        Compression::ALL.iter().copied().find(|codec| codec.name() == name)
    }
}

/// The meaning of the bits of `bimg_info` in one release.
#[derive(Debug, Clone, Copy)]
pub struct ImageFlags {
    /// Any of these: the image is compressed.
    pub compressed: u8,
    /// The image is replayed; without the bit it is stored for consistency checking only.
    /// 0: there is no such bit and every image is replayed.
    pub apply: u8,
}

impl ImageFlags {
    /// 9.5 and 9.6.
    pub const V9_5: ImageFlags = ImageFlags { compressed: 0x02, apply: 0 };
    /// 10 to 14.
    pub const V10: ImageFlags = ImageFlags { compressed: 0x02, apply: 0x04 };
    /// 15 and later: pglz, lz4, zstd.
    pub const V15: ImageFlags = ImageFlags { compressed: 0x04 | 0x08 | 0x10, apply: 0x02 };

    /// Whether an image with these bits is compressed.
    #[inline(always)]
    pub fn is_compressed(self, info: u8) -> bool {
        info & self.compressed != 0
    }

    /// How an image with these bits is compressed; `None` if it is not, or if they name several
    /// ways.
    pub fn compression(self, info: u8) -> Option<Compression> {
        let named = info & self.compressed;
        if named.count_ones() != 1 {
            return None;
        }
        // Up to 14 there is one bit, 0x02, and one way.
        Some(match named {
            0x08 => Compression::Lz4,
            0x10 => Compression::Zstd,
            _ => Compression::Pglz,
        })
    }

    /// Whether the release can compress images with lz4 (15 and later).
    pub fn has_lz4(self) -> bool {
        self.compressed & 0x08 != 0
    }

    /// Whether an image with these bits is replayed.
    #[inline(always)]
    pub fn is_applied(self, info: u8) -> bool {
        info & self.apply == self.apply
    }
}
