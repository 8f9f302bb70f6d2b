//! What frames of LZ4 and Zstandard begin with, in little-endian order.
#![forbid(unsafe_code)]

pub(crate) use walstat_format::image::unpacked::ZSTD_MAGIC as ZSTD;

pub(crate) const LZ4_FRAME: u32 = 0x184D_2204;
/// The older format of the tool lz4.
pub(crate) const LZ4_LEGACY: u32 = 0x184C_2102;
/// The first of sixteen, all of which begin a frame that both pass over. Its length follows.
pub(crate) const SKIPPABLE: u32 = 0x184D_2A50;

/// Whether a skippable frame begins so.
pub(crate) fn is_skippable(magic: u32) -> bool {
    magic & !0xF == SKIPPABLE
}
