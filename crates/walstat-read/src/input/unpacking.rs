//! How a file is unpacked, by its name.

use super::codec::Codec;
use super::names::{compression_suffix, is_pgbackrests};
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
    let suffix = compression_suffix(file).unwrap_or_default().to_ascii_lowercase();
    match &*suffix {
        _ if is_pgbackrests(file) => codec.pgbackrests(inner),
        "zst" | "zstd" => codec.zstds(inner),
        _ => codec.decoder(inner),
    }
}
