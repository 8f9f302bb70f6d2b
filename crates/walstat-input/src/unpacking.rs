//! How a file is unpacked, by its name.

use super::codec::Codec;
use super::names::{compression_suffix, is_pgbackrests};
use super::suffixes;
use std::io::{self, Read};

/// The plain bytes of a file, as whatever restores it unpacks it: pgBackRest, the tool of its suffix where
/// that is zstd, which takes less of other packings than their own tools, and else the codec's own.
///
/// # Errors
///
/// As those of [`Codec::decoder`].
pub(super) fn decoder<'a>(
    codec: Codec,
    file: &str,
    inner: impl Read + 'a,
) -> io::Result<Box<dyn Read + 'a>> {
    if is_pgbackrests(file) {
        return codec.pgbackrests(inner);
    }
    match compression_suffix(file).and_then(suffixes::of) {
        Some(suffix) if suffix.is_of_zstd() => codec.zstds(inner),
        _ => codec.decoder(inner),
    }
}
