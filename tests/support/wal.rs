//! Pieces of real WAL, whole or spoiled on purpose, as files in a directory of the test's own.

use super::fixtures::{Sample, sample};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The plain bytes of a segment of the PostgreSQL 15 sample, the first one that is full of records.
pub fn real_segment() -> Vec<u8> {
    let sample = sample("pg15-mixed");
    plain(&sample, "000000010000000000000007")
}

/// The name that [`real_segment`] has to have.
pub const REAL_NAME: &str = "000000010000000000000007";

/// A segment's bytes, decompressed if need be.
pub fn plain(sample: &Sample, segment: &str) -> Vec<u8> {
    let path = sample.segment(segment);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|suffix| suffix != "zst") {
        return bytes;
    }
    let mut plain = Vec::new();
    let mut decoder = zstd::Decoder::new(bytes.as_slice()).expect("a zstd decoder");
    decoder.read_to_end(&mut plain).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    plain
}

/// Writes a file into `directory` and returns its path.
pub fn file(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

/// Writes a file that is not being written any more, with the directories above it, and returns its path.
pub fn put(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let file = fs::File::options().write(true).open(&path).expect("the file");
    file.set_modified(hour_ago).expect("a file's time");
    path
}

/// The same segment with another page magic on every page, in the file's byte order.
pub fn with_magic(segment: &[u8], magic: u16) -> Vec<u8> {
    let mut bytes = segment.to_vec();
    for page in bytes.chunks_mut(8192) {
        page[..2].copy_from_slice(&magic.to_le_bytes());
    }
    bytes
}

/// Bytes without sense, the same in every run (xorshift).
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// A frame of one block, as the LZ4 frame format lays it down.
pub fn lz4_frame(bytes: &[u8]) -> Vec<u8> {
    // Version 1 with independent blocks; blocks of up to 4 MB.
    let descriptor = [0x60, 0x70];
    let check = (twox_hash::XxHash32::oneshot(0, &descriptor) >> 8) as u8;
    let block = lz4_flex::block::compress(bytes);
    let length = u32::try_from(block.len()).expect("less than 4 MB").to_le_bytes();
    let magic = 0x184D_2204_u32.to_le_bytes();
    [&magic[..], &descriptor, &[check], &length, &block, &[0; 4]].concat()
}
