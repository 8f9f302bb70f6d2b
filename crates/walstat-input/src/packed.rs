//! The files that walstat writes for itself, partial results and states: the version of the layout, a
//! checksum, and what was written, compressed. Knows nothing of what that is, and believes nothing that a
//! file says of itself.

use super::codec::magic;
use super::limited;
use super::storage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::path::Path;
use walstat_format::crc::Crc32c;

/// One kind of such files.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// What it begins with.
    magic: &'static [u8; 16],
    /// What it is called.
    name: &'static str,
    /// Where it comes from.
    origin: &'static str,
}

/// Partial results.
pub const PARTIAL: Form = Form {
    magic: b"walstat partial\n",
    name: "partial result",
    origin: "the output of 'walstat --partial'",
};

/// What a round remembers for the next one.
pub const STATE: Form = Form {
    magic: b"walstat a state\n",
    name: "state",
    origin: "a file that 'walstat check --state' wrote",
};

/// Unpacking allocates at most this many bytes for each byte of the file, plus `BYTES_FREE`, so that a small
/// file cannot claim to hold a large one. A file that compresses better is padded when it is written.
const EXPANSION_MAX: u64 = 64;
/// What any file may unpack to.
const BYTES_FREE: u64 = 16 << 20;

/// Why a file cannot be read as one of its kind.
#[derive(Debug, thiserror::Error)]
pub enum PackedError {
    /// It is something else.
    #[error("no {}, expected {}", .0.name, .0.origin)]
    Other(Form),
    /// What is in it is laid out in another way.
    #[error("a {} of layout {found}, expected layout {expected}", form.name)]
    Layout {
        /// What it is.
        form: Form,
        /// The layout's versions found, up to the first that differs.
        found: String,
        /// Those that are read.
        expected: String,
    },
    /// Its end is missing.
    #[error("a {} that is cut off: {found} bytes, expected {expected}", form.name)]
    Cut {
        /// What it is.
        form: Form,
        /// Bytes that are there.
        found: usize,
        /// Bytes that should be there.
        expected: u64,
    },
    /// Its bytes are not those that were written.
    #[error("a damaged {}: checksum 0x{found:08X}, expected 0x{expected:08X}", form.name)]
    Damaged {
        /// What it is.
        form: Form,
        /// The checksum of what is there.
        found: u32,
        /// The checksum of what was written.
        expected: u32,
    },
    /// More is in it than can be in a file of its size.
    #[error(
        "a {} that unpacks to more than {limit} bytes, expected less of a file of its size", form.name
    )]
    TooLarge {
        /// What it is.
        form: Form,
        /// How many bytes are believed in.
        limit: u64,
    },
    /// Nobody would read a file of it.
    #[error("a {} of {bytes} bytes, expected {FILE_BYTES_MAX} at most", form.name)]
    TooMuch {
        /// What it is.
        form: Form,
        /// How long the file would be.
        bytes: u64,
    },
    /// There is something after what was written.
    #[error("a {} with {bytes} bytes after its end", form.name)]
    GoesOn {
        /// What it is.
        form: Form,
        /// How many bytes.
        bytes: usize,
    },
    /// It cannot be written or read.
    #[error("{0}")]
    Content(String),
}

/// None is larger: 4 GB.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The bytes of a file, as far as it begins as one of its kind does. It is opened once: it may be a pipe.
///
/// # Errors
///
/// When it cannot be read, or is too large for one.
pub fn read(form: Form, path: &Path) -> io::Result<Vec<u8>> {
    let mut file = storage::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(form.magic.len() as u64).read_to_end(&mut bytes)?;
    if bytes == form.magic {
        limited::read_on(file, FILE_BYTES_MAX, &mut bytes)?;
    }
    Ok(bytes)
}

/// The bytes of a file that holds `content`, laid out as `layout` says: versions of which one changes
/// whenever anything does that is written.
pub fn pack(form: Form, layout: &[u32], content: &impl Serialize) -> Result<Vec<u8>, PackedError> {
    // By the same call as `scan::memory` makes: what writes a type is compiled once.
    let plain = postcard::to_extend(content, Vec::new()).map_err(content_error)?;
    let mut body = zstd::encode_all(plain.as_slice(), zstd::DEFAULT_COMPRESSION_LEVEL)
        .map_err(content_error)?;
    fill_up(&mut body, plain.len() as u64);
    let mut file = form.magic.to_vec();
    file.extend(layout.iter().flat_map(|version| version.to_le_bytes()));
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(checksum(&body).to_le_bytes());
    file.extend(body);
    is_read(form, file.len() as u64).map(|()| file)
}

/// Refuses a file of so many bytes if [`read`] does.
fn is_read(form: Form, bytes: u64) -> Result<(), PackedError> {
    if bytes > FILE_BYTES_MAX { Err(PackedError::TooMuch { form, bytes }) } else { Ok(()) }
}

/// What a file of this layout holds.
pub fn unpack<T: DeserializeOwned>(
    form: Form,
    layout: &[u32],
    file: &[u8],
) -> Result<T, PackedError> {
    let (magic, mut rest) = file.split_first_chunk::<16>().ok_or(PackedError::Other(form))?;
    if magic != form.magic {
        return Err(PackedError::Other(form));
    }
    let cut = |expected| PackedError::Cut { form, found: file.len(), expected };
    let header_bytes = (form.magic.len() + 4 * layout.len() + 12) as u64;
    let mut found = Vec::new();
    for expected in layout {
        let (version, after) = rest.split_first_chunk().ok_or(cut(header_bytes))?;
        rest = after;
        found.push(u32::from_le_bytes(*version));
        if found.last() != Some(expected) {
            let expected = layout.get(..found.len()).unwrap_or(layout);
            let (found, expected) = (dotted(&found), dotted(expected));
            return Err(PackedError::Layout { form, found, expected });
        }
    }
    let (length, rest) = rest.split_first_chunk().ok_or(cut(header_bytes))?;
    let (expected, body) = rest.split_first_chunk().ok_or(cut(header_bytes))?;
    let (length, expected) = (u64::from_le_bytes(*length), u32::from_le_bytes(*expected));
    if length != body.len() as u64 {
        return Err(cut(header_bytes.saturating_add(length)));
    }
    let found = checksum(body);
    if found != expected {
        return Err(PackedError::Damaged { form, found, expected });
    }
    let plain = decompressed(form, body)?;
    let (content, rest) = postcard::take_from_bytes(&plain).map_err(content_error)?;
    match rest.len() {
        0 => Ok(content),
        bytes => Err(PackedError::GoesOn { form, bytes }),
    }
}

/// Versions as they are told.
fn dotted(versions: &[u32]) -> String {
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

fn decompressed(form: Form, body: &[u8]) -> Result<Vec<u8>, PackedError> {
    let mut plain = Vec::new();
    let decoder = zstd::Decoder::new(body).map_err(content_error)?;
    let limit = limit_of(body.len() as u64);
    decoder.take(limit + 1).read_to_end(&mut plain).map_err(|e: io::Error| content_error(e))?;
    if plain.len() as u64 > limit { Err(PackedError::TooLarge { form, limit }) } else { Ok(plain) }
}

/// How much a body of so many bytes may unpack to.
fn limit_of(bytes: u64) -> u64 {
    BYTES_FREE + bytes.saturating_mul(EXPANSION_MAX)
}

/// Makes a body as long as it has to be for what it unpacks to.
fn fill_up(body: &mut Vec<u8>, plain_bytes: u64) {
    let needed = plain_bytes.saturating_sub(BYTES_FREE).div_ceil(EXPANSION_MAX);
    let missing = needed.saturating_sub(body.len() as u64);
    if let Ok(missing @ 1..) = u32::try_from(missing) {
        // A frame that decoders of zstd pass over.
        body.extend(magic::SKIPPABLE.to_le_bytes());
        body.extend(missing.to_le_bytes());
        body.resize(body.len() + missing as usize, 0);
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    Crc32c::finish(Crc32c::detect().update(Crc32c::START, bytes))
}

fn content_error(error: impl std::fmt::Display) -> PackedError {
    PackedError::Content(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_what_is_unpacked() {
        let file = pack(PARTIAL, &[7], &("text", vec![1u64, u64::MAX])).expect("packed");
        let (text, numbers): (String, Vec<u64>) = unpack(PARTIAL, &[7], &file).expect("unpacked");
        assert_eq!((text.as_str(), numbers), ("text", vec![1, u64::MAX]));
    }

    #[test]
    fn a_small_file_cannot_unpack_to_a_large_one() {
        // Text is packed and unpacked in one piece, a list of bytes one by one; both come to the same bytes.
        let zeros = "\0".repeat(100 << 20);
        let file = pack(PARTIAL, &[7], &zeros).expect("packed");
        assert!(file.len() as u64 >= (84 << 20) / EXPANSION_MAX, "{}", file.len());
        assert!(unpack::<String>(PARTIAL, &[7], &file).expect("unpacked") == zeros);
        let body = zstd::encode_all(zeros.as_bytes(), 1).expect("compressed");
        let mut bomb =
            [&PARTIAL.magic[..], &7u32.to_le_bytes(), &(body.len() as u64).to_le_bytes()].concat();
        bomb.extend(checksum(&body).to_le_bytes());
        bomb.extend(body);
        let told = unpack::<String>(PARTIAL, &[7], &bomb).expect_err("refused").to_string();
        assert!(told.starts_with("a partial result that unpacks to more than 16"), "{told}");
    }

    #[test]
    fn what_nobody_would_read_is_not_written() {
        assert!(is_read(PARTIAL, FILE_BYTES_MAX).is_ok());
        let told = is_read(PARTIAL, FILE_BYTES_MAX + 1).expect_err("refused").to_string();
        assert_eq!(told, "a partial result of 4294967297 bytes, expected 4294967296 at most");
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let file = pack(PARTIAL, &[7], &7u32).expect("packed");
        let error =
            |bytes: &[u8]| unpack::<u32>(PARTIAL, &[7], bytes).err().map(|error| error.to_string());
        assert!(error(b"{}").is_some_and(|text| text.starts_with("no partial result")));
        for end in 16..file.len() {
            let told = error(&file[..end]).expect("an error");
            assert!(told.contains("cut off"), "{end}: {told}");
        }
        let mut other = file.clone();
        other[16] = 99;
        let told = error(&other).expect("an error");
        assert!(told.contains("layout 99, expected layout 7"), "{told}");
        let two = pack(PARTIAL, &[7, 8], &7u32).expect("packed");
        assert_eq!(unpack::<u32>(PARTIAL, &[7, 8], &two).expect("unpacked"), 7);
        let other = unpack::<u32>(PARTIAL, &[7, 9], &two).expect_err("another layout").to_string();
        assert_eq!(other, "a partial result of layout 7.8, expected layout 7.9");
        let other = unpack::<u32>(PARTIAL, &[6, 8], &two).expect_err("another layout").to_string();
        assert_eq!(other, "a partial result of layout 7, expected layout 6");
        let mut damaged = file;
        *damaged.last_mut().expect("a byte") ^= 1;
        assert!(error(&damaged).is_some_and(|text| text.starts_with("a damaged partial result")));
        let more = pack(PARTIAL, &[7], &(7u32, 1u8)).expect("packed");
        let told = error(&more).expect("an error");
        assert_eq!(told, "a partial result with 1 bytes after its end");
    }
}
