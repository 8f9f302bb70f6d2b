//! The CRC-32C instructions of ARMv8 and its carry-less multiplication.
//!
//! As in `x86.rs`, three chains of the instruction run side by side, each over its own part, and are joined
//! by carry-less products; `x86.rs` explains the factors.

use std::arch::aarch64::*;

use super::{ONE, after_zero_bits, record_with, verified_with};
use crate::record_header::RECORD_HEADER_BYTES;

/// The longest record that one chain serves, in bytes: three would have to be joined.
const SHORT_RECORD: usize = RECORD_HEADER_BYTES + 256;

/// One chain of the instruction: nothing to set up.
#[inline]
#[target_feature(enable = "crc")]
fn chain(state: u32, bytes: &[u8]) -> u32 {
    let (words, mut tail) = bytes.as_chunks::<8>();
    let mut state =
        words.iter().fold(state, |state, word| __crc32cd(state, u64::from_le_bytes(*word)));
    if let Some((word, rest)) = tail.split_first_chunk::<4>() {
        state = __crc32cw(state, u32::from_le_bytes(*word));
        tail = rest;
    }
    if let Some((word, rest)) = tail.split_first_chunk::<2>() {
        state = __crc32ch(state, u16::from_le_bytes(*word));
        tail = rest;
    }
    tail.iter().fold(state, |state, byte| __crc32cb(state, *byte))
}

/// `a` × `b` × x, as 8 bytes.
#[inline]
#[target_feature(enable = "neon,aes")]
fn multiply(a: u32, b: u32) -> u64 {
    vmull_p64(u64::from(a), u64::from(b)) as u64
}

/// Three chains side by side, of `WORDS` words each, as often as they fit; also returns the
/// bytes left over.
#[inline]
#[target_feature(enable = "crc,neon,aes")]
fn three_chains<const WORDS: usize>(mut state: u32, bytes: &[u8]) -> (u32, &[u8]) {
    // Taking the product as 8 bytes moves it ahead by 32 bits, and the product itself by one.
    let over_one = const { after_zero_bits(ONE, 64 * WORDS - 33) };
    let over_two = const { after_zero_bits(ONE, 128 * WORDS - 33) };
    let (words, _) = bytes.as_chunks::<8>();
    let mut blocks = words.chunks_exact(3 * WORDS);
    for block in &mut blocks {
        let (first, rest) = block.split_at(WORDS);
        let (second, third) = rest.split_at(WORDS);
        let (mut a, mut b, mut c) = (state, 0, 0);
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            a = __crc32cd(a, u64::from_le_bytes(*first));
            b = __crc32cd(b, u64::from_le_bytes(*second));
            c = __crc32cd(c, u64::from_le_bytes(*third));
        }
        state = __crc32cd(0, multiply(a, over_two) ^ multiply(b, over_one)) ^ c;
    }
    let used = words.len() - blocks.remainder().len();
    (state, bytes.get(8 * used..).unwrap_or_default())
}

/// The state after `bytes`, given the one before them.
#[target_feature(enable = "crc,neon,aes")]
pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
    let (state, bytes) = three_chains::<42>(state, bytes);
    let (state, bytes) = three_chains::<16>(state, bytes);
    chain(state, bytes)
}

/// The checksum of a record.
#[target_feature(enable = "crc,neon,aes")]
pub(super) fn record(record: &[u8]) -> u32 {
    if record.len() <= SHORT_RECORD {
        record_with(record, |state, bytes| chain(state, bytes))
    } else {
        record_with(record, |state, bytes| update(state, bytes))
    }
}

/// The walk over the records of a page.
#[target_feature(enable = "crc,neon,aes")]
pub(super) fn verified(page: &[u8]) -> usize {
    verified_with(page, |bytes| record(bytes))
}
