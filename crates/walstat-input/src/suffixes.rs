//! Suffixes of compressed files, as archivers give them: how each is spelt, and what its tool unpacks.

use super::codec::Codec;

/// The suffix of a compression that is read.
pub(super) struct Suffix {
    /// As it is usually spelt.
    pub usual: &'static str,
    /// Its rare spellings, in lower case; the usual one in capital letters is rare too.
    rare: &'static [&'static str],
    /// What its tool unpacks; tried with those of Debian 12. None of them takes what is not compressed.
    pub unpacks: &'static [Codec],
}

static SUFFIXES: [Suffix; 8] = {
    use Codec::{Brotli, Bzip2, Gzip, Lz4, Lz4OrZstd, Lzip, Lzma, Xz, Zstd};
    [
        Suffix { usual: "gz", rare: &["gzip"], unpacks: &[Gzip] },
        Suffix { usual: LZ4, rare: &[], unpacks: &[Lz4, Lz4OrZstd] },
        Suffix { usual: ZSTD, rare: &["zstd"], unpacks: &[Zstd, Lz4OrZstd, Gzip, Lz4, Xz, Lzma] },
        Suffix { usual: "bz2", rare: &["bz", "bzip2"], unpacks: &[Bzip2] },
        Suffix { usual: "xz", rare: &[], unpacks: &[Xz, Lzma] },
        Suffix { usual: "lzma", rare: &[], unpacks: &[Xz, Lzma] },
        Suffix { usual: "lz", rare: &[], unpacks: &[Lzip] },
        Suffix { usual: "br", rare: &["brotli"], unpacks: &[Brotli] },
    ]
};

const LZ4: &str = "lz4";
const ZSTD: &str = "zst";

/// Suffixes of compressions that are not read.
const NOT_READ: [&str; 10] =
    ["lzo", "lzop", "7z", "zip", "rar", "sz", "snappy", "zz", "zlib", "deflate"];
/// The same, rare: compress gives it in capital letters.
const NOT_READ_RARE: &str = "z";

impl Suffix {
    /// Whether its tool takes an empty file, and makes an empty one of it.
    pub(super) fn takes_nothing(&self) -> bool {
        // Tried with those of Debian 12.
        self.usual == LZ4
    }

    /// Whether it is that of zstd, whose tool takes other packings than its library.
    pub(super) fn is_of_zstd(&self) -> bool {
        self.usual == ZSTD
    }
}

/// The suffix of this spelling, if what it stands for is read.
pub(super) fn of(suffix: &str) -> Option<&'static Suffix> {
    let lower = suffix.to_ascii_lowercase();
    SUFFIXES.iter().find(|one| one.usual == lower || one.rare.contains(&&*lower))
}

/// Of the tools that have packed any of these files, the one that unpacks the most of them.
pub(super) fn best_for(codecs: &[Codec]) -> Option<&'static Suffix> {
    let has_packed = |one: &&Suffix| one.unpacks.first().is_some_and(|own| codecs.contains(own));
    let unpacked =
        |one: &&Suffix| codecs.iter().filter(|codec| one.unpacks.contains(codec)).count();
    SUFFIXES.iter().filter(has_packed).max_by_key(unpacked)
}

/// A name, and the same with each usual suffix of what is read.
pub(super) fn usual_names(name: &str) -> impl Iterator<Item = String> {
    let packed = SUFFIXES.iter().map(move |one| format!("{name}.{}", one.usual));
    std::iter::once(name.to_owned()).chain(packed)
}

/// Whether compressed files usually have this suffix.
pub(super) fn is_usual(suffix: &str) -> bool {
    SUFFIXES.iter().any(|one| one.usual == suffix) || NOT_READ.contains(&suffix)
}

/// Whether compressed files have it, but rarely.
pub(super) fn is_rare(suffix: &str) -> bool {
    let lower = suffix.to_ascii_lowercase();
    !is_usual(suffix) && (is_usual(&lower) || of(suffix).is_some() || lower == NOT_READ_RARE)
}
