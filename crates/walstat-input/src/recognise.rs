//! What a file holds, by its first bytes: WAL or anything else as it is, a
//! compression, a tar, an encryption. Names lie (archivers keep the segment's
//! name whatever they put into it), so only brotli, which has no magic number,
//! is known by its suffix.
//!
//! Not for telling whether plain bytes are WAL. And one encryption can't be
//! told: a stream of libsodium (WAL-G's `WALG_LIBSODIUM_KEY`) begins with a
//! random header, so it comes out as [`Content::Plain`] that is no WAL, or, if
//! its name ends in `.br`, as brotli that does not decode.
#![forbid(unsafe_code)]

mod openpgp;

use super::codec::{Codec, magic};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// How many bytes at the start of a file are enough for [`recognise`]: a tar
/// header.
pub const HEAD: usize = 512;

/// So many bytes of a file, or as many as there are.
pub(super) fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Neither compressed, tar nor encrypted: WAL, text, zeros, anything else.
    Plain,
    /// To be read through [`Codec::decoder`]; what comes out is to be recognised again.
    Compressed(Codec),
    /// To be read through [`for_each_member`](super::tar::for_each_member).
    Tar,
    /// To be decrypted by the user first.
    Encrypted(Encryption),
    /// A compression that is not supported, by its usual name.
    Unsupported(&'static str),
}

/// An encryption that shows in the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encryption {
    /// An OpenPGP message, as `gpg` and WAL-G write it.
    OpenPgp,
    /// The same as text.
    OpenPgpArmoured,
    /// `Salted__`: pgBackRest's cipher and `openssl enc` begin alike.
    Salted,
    /// `openssl enc -a`.
    SaltedBase64,
    /// `age`.
    Age,
    /// `age --armor`.
    AgeArmoured,
}

impl Encryption {
    /// The name to be shown.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// The command that writes the decrypted bytes of FILE to a pipe.
    pub fn decrypt(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Encryption::OpenPgp => ("OpenPGP (gpg)", "gpg --decrypt FILE"),
            Encryption::OpenPgpArmoured => ("OpenPGP (gpg, armoured)", "gpg --decrypt FILE"),
            Encryption::Salted => (
                "openssl enc or pgBackRest's cipher",
                "openssl enc -d -CIPHER -in FILE (or pgbackrest repo-get FILE)",
            ),
            Encryption::SaltedBase64 => {
                ("openssl enc (base64)", "openssl enc -d -a -CIPHER -in FILE")
            }
            Encryption::Age => ("age", "age --decrypt FILE"),
            Encryption::AgeArmoured => ("age (armoured)", "age --decrypt FILE"),
        }
    }
}

/// Recognises a file by its first bytes, [`HEAD`] of them or all if the file
/// is shorter. `name` is looked at for brotli only: `.br`, or `.br.partial`.
pub fn recognise(head: &[u8], name: &str) -> Content {
    let head = &head[..head.len().min(HEAD)];
    if is_wal_page(head) {
        return Content::Plain;
    }
    by_prefix(head)
        .or_else(|| lzma_alone(head))
        .or_else(|| after_skippable(head))
        .or_else(|| openpgp::begins(head).then_some(Content::Encrypted(Encryption::OpenPgp)))
        .or_else(|| is_tar(head).then_some(Content::Tar))
        .or_else(|| is_brotli_name(name).then_some(Content::Compressed(Codec::Brotli)))
        .unwrap_or(Content::Plain)
}

/// Whether this looks like a page of WAL, whatever the file's name: a magic number of 0xD0xx or 0xD1xx,
/// flags of at most 0x000F, an address on a page boundary (pages have 1 kB or more). Source:
/// `xlog_internal.h`.
fn is_wal_page(head: &[u8]) -> bool {
    match head {
        [_, 0xD0 | 0xD1, 0..=0x0F, 0, _, _, _, _, low, high, ..] => *low == 0 && high & 3 == 0,
        _ => false,
    }
}

fn by_prefix(head: &[u8]) -> Option<Content> {
    const PREFIXES: [(&[u8], Content); 18] = [
        (&magic::LZ4_FRAME.to_le_bytes(), Content::Compressed(Codec::Lz4)),
        (&magic::LZ4_LEGACY.to_le_bytes(), Content::Compressed(Codec::Lz4)),
        (&magic::ZSTD.to_le_bytes(), Content::Compressed(Codec::Zstd)),
        (b"\xFD7zXZ\0", Content::Compressed(Codec::Xz)),
        (b"LZIP\x01", Content::Compressed(Codec::Lzip)),
        (b"-----BEGIN PGP ", Content::Encrypted(Encryption::OpenPgpArmoured)),
        (b"Salted__", Content::Encrypted(Encryption::Salted)),
        (b"U2FsdGVkX1", Content::Encrypted(Encryption::SaltedBase64)),
        (b"age-encryption.org/v1", Content::Encrypted(Encryption::Age)),
        (b"-----BEGIN AGE ENCRYPTED FILE-----", Content::Encrypted(Encryption::AgeArmoured)),
        (b"\x89LZO\0\r\n\x1A\n", Content::Unsupported("lzop")),
        (b"PK\x03\x04", Content::Unsupported("zip")),
        (b"7z\xBC\xAF\x27\x1C", Content::Unsupported("7-Zip")),
        (b"\xFF\x06\0\0sNaPpY", Content::Unsupported("snappy")),
        (b"Rar!\x1A\x07", Content::Unsupported("rar")),
        (b"LRZI", Content::Unsupported("lrzip")),
        (b"LZIP\0", Content::Unsupported("lzip version 0")),
        (b"\x1F\x9D\x90", Content::Unsupported("compress")),
    ];
    if is_gzip(head) {
        return Some(Content::Compressed(Codec::Gzip));
    }
    if is_bzip2(head) {
        return Some(Content::Compressed(Codec::Bzip2));
    }
    PREFIXES.iter().find_map(|(prefix, content)| head.starts_with(prefix).then_some(*content))
}

/// RFC 1952: the method must be deflate, the upper three flags unset.
fn is_gzip(head: &[u8]) -> bool {
    match head {
        [0x1F, 0x8B, 8] => true,
        [0x1F, 0x8B, 8, flags, ..] => flags & 0xE0 == 0,
        _ => false,
    }
}

/// `BZh`, a level, then the mark of a block, or of the end in an empty stream.
fn is_bzip2(head: &[u8]) -> bool {
    let [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] = head else {
        return false;
    };
    let mark = &rest[..rest.len().min(6)];
    b"\x31\x41\x59\x26\x53\x59".starts_with(mark) || b"\x17\x72\x45\x38\x50\x90".starts_with(mark)
}

/// LZMA-alone has no magic number. What its writers have in common: the usual
/// properties (5D), a dictionary of 2^n or 2^n + 2^(n-1) bytes, a size that is
/// unknown or below 256 GiB, and a range coder that begins with 0. These are
/// the rules of `xz`.
fn lzma_alone(head: &[u8]) -> Option<Content> {
    let (header, rest) = head.split_first_chunk::<13>()?;
    let [properties, dictionary @ .., _, _, _, _, _, _, _, _] = header;
    let dictionary = u32::from_le_bytes(*dictionary);
    let size = u64::from_le_bytes(*header.last_chunk()?);
    let known_dictionary = match dictionary.count_ones() {
        1 => true,
        2 => dictionary.leading_zeros() + dictionary.trailing_zeros() == 30,
        _ => dictionary == u32::MAX,
    };
    let known_size = size == u64::MAX || size < 256 << 30;
    let coder = rest.first().is_none_or(|&first| first == 0);
    (*properties == 0x5D && known_dictionary && known_size && coder)
        .then_some(Content::Compressed(Codec::Lzma))
}

/// LZ4 and zstd share their skippable frames; the frame after them tells which it is, if it begins
/// within the head.
fn after_skippable(head: &[u8]) -> Option<Content> {
    let undecided = Some(Content::Compressed(Codec::Lz4OrZstd));
    let mut rest = head;
    loop {
        let (magic, after) = rest.split_first_chunk()?;
        magic::is_skippable(u32::from_le_bytes(*magic)).then_some(())?;
        let (size, after) = after.split_first_chunk()?;
        let Ok(size) = usize::try_from(u32::from_le_bytes(*size)) else {
            return undecided;
        };
        match after.get(size..) {
            Some(next) if next.len() >= 8 => rest = next,
            _ => return undecided,
        }
        if let found @ Some(Content::Compressed(Codec::Lz4 | Codec::Zstd)) = by_prefix(rest) {
            return found;
        }
    }
}

/// A tar header: its mark, or in a tar that is older than the mark, a name and
/// the right checksum.
fn is_tar(head: &[u8]) -> bool {
    if head.get(257..262) == Some(b"ustar") {
        return true;
    }
    let (Some(name), Some(field)) = (head.first(), head.get(148..156)) else {
        return false;
    };
    let sum: u64 = head.iter().map(|&byte| u64::from(byte)).sum();
    let field_sum: u64 = field.iter().map(|&byte| u64::from(byte)).sum();
    let spaces = 8 * u64::from(b' ');
    head.len() == HEAD && *name != 0 && octal(field) == Some(sum - field_sum + spaces)
}

/// A number of a tar header: octal digits between spaces and zero bytes.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
}

fn is_brotli_name(name: &str) -> bool {
    name.strip_suffix(".partial").unwrap_or(name).ends_with(".br")
}
