//! The crc32 instruction and carry-less multiplication.
//!
//! In the reflected order of this CRC, the carry-less product of two 64-bit values comes out one
//! bit ahead; so the factor that moves a value ahead by n bits is x^(n - 1), in the upper half of
//! its word. Source: Intel's paper "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction".

use std::arch::x86_64::*;

use super::{Crc32c, ONE, after_zero_bits, record_with, verified_with};
use crate::record_header::{CRC_OFFSET, RECORD_HEADER_BYTES};

/// The most data `record_short` and `record_vectors` serve, in bytes.
const SHORT_DATA: usize = 256;
/// The longest record they serve, in bytes.
pub(super) const SHORT_RECORD: usize = RECORD_HEADER_BYTES + SHORT_DATA;

/// One chain of the instruction: three cycles for 8 bytes, nothing to set up.
#[inline]
#[target_feature(enable = "sse4.2")]
fn chain(state: u32, bytes: &[u8]) -> u32 {
    let (words, mut tail) = bytes.as_chunks::<8>();
    let state = words
        .iter()
        .fold(u64::from(state), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
    let mut state = state as u32;
    if let Some((word, rest)) = tail.split_first_chunk::<4>() {
        state = _mm_crc32_u32(state, u32::from_le_bytes(*word));
        tail = rest;
    }
    if let Some((word, rest)) = tail.split_first_chunk::<2>() {
        state = _mm_crc32_u16(state, u16::from_le_bytes(*word));
        tail = rest;
    }
    tail.iter().fold(state, |state, byte| _mm_crc32_u8(state, *byte))
}

/// The state after the 16 bytes `value`, given the one before them.
#[inline]
#[target_feature(enable = "sse4.2")]
fn reduce(state: u32, value: __m128i) -> u32 {
    let state = _mm_crc32_u64(u64::from(state), _mm_cvtsi128_si64(value) as u64);
    _mm_crc32_u64(state, _mm_extract_epi64::<1>(value) as u64) as u32
}

/// Three chains side by side, of `WORDS` words each, as often as they fit; also returns the
/// bytes left over.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn three_chains<const WORDS: usize>(mut state: u32, bytes: &[u8]) -> (u32, &[u8]) {
    // Taking the product as 8 bytes moves it ahead by 32 bits, and the product itself by one.
    let over_one = _mm_cvtsi64_si128(const { after_zero_bits(ONE, 64 * WORDS - 33) as i64 });
    let over_two = _mm_cvtsi64_si128(const { after_zero_bits(ONE, 128 * WORDS - 33) as i64 });
    let (words, _) = bytes.as_chunks::<8>();
    let mut blocks = words.chunks_exact(3 * WORDS);
    for block in &mut blocks {
        let (first, rest) = block.split_at(WORDS);
        let (second, third) = rest.split_at(WORDS);
        let (mut a, mut b, mut c) = (u64::from(state), 0, 0);
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            a = _mm_crc32_u64(a, u64::from_le_bytes(*first));
            b = _mm_crc32_u64(b, u64::from_le_bytes(*second));
            c = _mm_crc32_u64(c, u64::from_le_bytes(*third));
        }
        let a = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(a as i64), over_two);
        let b = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(b as i64), over_one);
        let ahead = _mm_cvtsi128_si64(_mm_xor_si128(a, b)) as u64;
        state = (_mm_crc32_u64(0, ahead) ^ c) as u32;
    }
    let used = words.len() - blocks.remainder().len();
    (state, bytes.get(8 * used..).unwrap_or_default())
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) fn update_sse42(state: u32, bytes: &[u8]) -> u32 {
    let (state, bytes) = three_chains::<42>(state, bytes);
    let (state, bytes) = three_chains::<16>(state, bytes);
    chain(state, bytes)
}

/// The checksum of a record by one chain.
#[target_feature(enable = "sse4.2")]
pub(super) fn record_short(record: &[u8]) -> u32 {
    record_with(record, |state, bytes| chain(state, bytes))
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) fn verified_sse42(page: &[u8]) -> usize {
    verified_with(page, |record| {
        if record.len() <= SHORT_RECORD {
            record_with(record, |state, bytes| chain(state, bytes))
        } else {
            record_with(record, |state, bytes| update_sse42(state, bytes))
        }
    })
}

/// The factors that move the two halves of 128 bits ahead by `bits`.
const fn factors(bits: usize) -> [i64; 2] {
    let low = after_zero_bits(ONE, bits + 63) as i64;
    let high = after_zero_bits(ONE, bits - 1) as i64;
    [low << 32, high << 32]
}

/// The same factors for each 128 bits of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn ahead<const BITS: usize>() -> __m512i {
    let [low, high] = const { factors(BITS) };
    _mm512_broadcast_i32x4(_mm_set_epi64x(high, low))
}

/// The factors that move the four 128-bit parts of a vector up to `bits` after its end.
const fn to_end(bits: usize) -> [[i64; 2]; 4] {
    [factors(384 + bits), factors(256 + bits), factors(128 + bits), factors(bits)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(block: &[u8; 64]) -> __m512i {
    // SAFETY: a reference to 64 bytes can be read as 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

/// `value` moved ahead by `factors`, plus `onto`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(value: __m512i, factors: __m512i, onto: __m512i) -> __m512i {
    let low = _mm512_clmulepi64_epi128::<0x00>(value, factors);
    let high = _mm512_clmulepi64_epi128::<0x11>(value, factors);
    _mm512_ternarylogic_epi64::<0x96>(low, high, onto)
}

/// The sum of the four 128-bit parts of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum_parts(value: __m512i) -> __m128i {
    let half =
        _mm256_xor_si256(_mm512_castsi512_si256(value), _mm512_extracti64x4_epi64::<1>(value));
    _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
}

#[inline]
#[target_feature(enable = "sse4.2")]
fn load_128(block: &[u8; 16]) -> __m128i {
    // SAFETY: a reference to 16 bytes can be read as 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_factors(factors: &'static [[i64; 2]; 4]) -> __m512i {
    // SAFETY: four pairs of `i64` are 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(factors.as_ptr().cast()) }
}

/// What the state before a piece becomes after it, by the piece's length: `x^(8 × length)` is
/// `HIGH[length / 128] × LOW[length % 128]`. Both products, and taking each as 8 bytes, move
/// ahead by 33 bits, which `HIGH` takes back; so it has no power for fewer than 128 bytes.
static LOW: [u32; 128] = powers(0, 8);
static HIGH: [u32; LONGEST_PIECE / 128] = powers(1024 - 66, 1024);
/// The longest piece that the tables serve, in bytes.
const LONGEST_PIECE: usize = 16 << 10;

/// x to the power of `first`, `first + step`, `first + 2 × step` …
const fn powers<const N: usize>(first: usize, step: usize) -> [u32; N] {
    let mut powers = [0; N];
    let mut power = after_zero_bits(ONE, first);
    let mut index = 0;
    while index < N {
        powers[index] = power;
        power = after_zero_bits(power, step);
        index += 1;
    }
    powers
}

#[target_feature(enable = "sse4.2,pclmulqdq,bmi2,avx512f,avx512bw,vpclmulqdq")]
pub(super) fn update_avx512(state: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(LONGEST_PIECE).fold(state, |state, piece| {
        let (high, low) = (piece.len() / LOW.len(), piece.len() % LOW.len());
        match (high.checked_sub(1).and_then(|high| HIGH.get(high)), LOW.get(low)) {
            (Some(high), Some(low)) => {
                vectors_and_chains(piece) ^ product(state, product(*low, *high))
            }
            _ => chain(state, piece),
        }
    })
}

/// `a` × `b` × x^33.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn product(a: u32, b: u32) -> u32 {
    _mm_crc32_u64(0, _mm_cvtsi128_si64(multiply(a, b)) as u64) as u32
}

/// x^(bits - 33) for the bits in one, two and three of the stretches that the chains take, by
/// their length in steps, from one step on.
static AFTER: [[u32; LONGEST_PIECE / STEP]; 3] = [
    powers(8 * CHAIN_STEP - 33, 8 * CHAIN_STEP),
    powers(16 * CHAIN_STEP - 33, 16 * CHAIN_STEP),
    powers(24 * CHAIN_STEP - 33, 24 * CHAIN_STEP),
];
/// What one step takes, in bytes: by vectors, by each of three chains, in all. Multiplying two
/// vectors takes as long as four words by the instruction.
const VECTOR_STEP: usize = 256;
const CHAIN_STEP: usize = 40;
const STEP: usize = VECTOR_STEP + 3 * CHAIN_STEP;

/// The state after `bytes`, given 0 before them. Four vectors and three chains of the instruction
/// a step, each over a part of its own: the processor does both at once. The vectors' part ends
/// where a step ends, so their first step is masked: a piece of a record has any length, and every
/// branch on what is left over would be mispredicted.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq,bmi2,avx512f,avx512bw,vpclmulqdq")]
fn vectors_and_chains(bytes: &[u8]) -> u32 {
    // The last part stays where it is: its factors are zero, it is added as it was.
    static LAST: [[i64; 2]; 4] = [factors(384), factors(256), factors(128), [0, 0]];
    let steps = bytes.len() / STEP;
    let (by_vectors, by_chains) = bytes.split_at(bytes.len() - steps * 3 * CHAIN_STEP);
    let (chains, _) = by_chains.as_chunks::<CHAIN_STEP>();
    let (first, rest) = chains.split_at(steps);
    let (second, third) = rest.split_at(steps);
    // Six vectors hold what is left over of a step, and more; two of them move to their places.
    let (head, blocks) = by_vectors.split_at(by_vectors.len() - steps * VECTOR_STEP);
    let (blocks, _) = blocks.as_chunks::<VECTOR_STEP>();
    let [before_c, before_d, a, b, c, d] =
        [320, 256, 192, 128, 64, 0].map(|left| load_right(head, left));
    let c = fold(before_c, ahead::<2048>(), c);
    let d = fold(before_d, ahead::<2048>(), d);
    let mut vectors = [a, b, c, d];
    let (mut s1, mut s2, mut s3) = (0, 0, 0);
    for (((block, w1), w2), w3) in blocks.iter().zip(first).zip(second).zip(third) {
        vectors = fold_block(vectors, block);
        s1 = words(s1, w1);
        s2 = words(s2, w2);
        s3 = words(s3, w3);
    }
    let [a, b, c, d] = vectors;
    let even = fold(a, ahead::<1024>(), c);
    let odd = fold(b, ahead::<1024>(), d);
    let one = fold(even, ahead::<512>(), odd);
    let last = _mm512_maskz_mov_epi64(0b1100_0000, one);
    let state = reduce(0, sum_parts(fold(one, load_factors(&LAST), last)));
    let after = |powers: &'static [u32]| powers.get(steps.wrapping_sub(1));
    let [Some(one), Some(two), Some(three)] = AFTER.each_ref().map(|powers| after(powers)) else {
        return state;
    };
    let sum = _mm_xor_si128(
        multiply(state, *three),
        _mm_xor_si128(multiply(s1 as u32, *two), multiply(s2 as u32, *one)),
    );
    s3 as u32 ^ _mm_crc32_u64(0, _mm_cvtsi128_si64(sum) as u64) as u32
}

/// Four vectors, moved over the next four and added to them.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_block([a, b, c, d]: [__m512i; 4], block: &[u8; VECTOR_STEP]) -> [__m512i; 4] {
    let ([next_a, next_b, next_c, next_d], _) = block.as_chunks::<64>() else {
        return [a, b, c, d];
    };
    [
        fold(a, ahead::<2048>(), load(next_a)),
        fold(b, ahead::<2048>(), load(next_b)),
        fold(c, ahead::<2048>(), load(next_c)),
        fold(d, ahead::<2048>(), load(next_d)),
    ]
}

/// The state after the words of one step.
#[inline]
#[target_feature(enable = "sse4.2")]
fn words(state: u64, bytes: &[u8; CHAIN_STEP]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(state, |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)))
}

/// `a` × `b` × x.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn multiply(a: u32, b: u32) -> __m128i {
    let (a, b) = (_mm_cvtsi32_si128(a as i32), _mm_cvtsi32_si128(b as i32));
    _mm_clmulepi64_si128::<0>(a, b)
}

/// What the start state contributes to the finished checksum, by the length of the data.
static START_TERMS: [u32; SHORT_DATA + 1] = start_terms();

const fn start_terms() -> [u32; SHORT_DATA + 1] {
    let mut terms = [0; SHORT_DATA + 1];
    let mut state = after_zero_bits(Crc32c::START, 8 * CRC_OFFSET);
    let mut length = 0;
    while length <= SHORT_DATA {
        terms[length] = !state;
        state = after_zero_bits(state, 8);
        length += 1;
    }
    terms
}

/// The checksum of a record of at most [`SHORT_RECORD`] bytes; `None` if it is longer or has no
/// header. The data are folded from state zero; what the start state contributes depends on the
/// length alone and is added at the end.
#[inline]
#[target_feature(enable = "sse4.2,bmi2,avx512f,avx512bw,vpclmulqdq")]
fn record_vectors(record: &[u8]) -> Option<u32> {
    // The data move over the 20 bytes of header; the 16 bytes left of them are added to the
    // last 16 of these 20.
    static OVER_HEADER: [[i64; 2]; 4] = to_end(8 * CRC_OFFSET);
    let (header, data) = record.split_first_chunk::<RECORD_HEADER_BYTES>()?;
    let start_term = START_TERMS.get(data.len())?;
    let (head, blocks) = data.as_rchunks::<64>();
    let value = blocks
        .iter()
        .fold(load_right(head, 0), |value, block| fold(value, ahead::<512>(), load(block)));
    let value = sum_parts(fold(value, load_factors(&OVER_HEADER), _mm512_setzero_si512()));
    let (first, header) = header.split_first_chunk::<4>()?;
    let state = _mm_crc32_u32(0, u32::from_le_bytes(*first));
    let value = _mm_xor_si128(value, load_128(header.first_chunk()?));
    Some(reduce(state, value) ^ start_term)
}

/// The vector that ends `left` bytes before the end of `head`, zeros where that is before its
/// start; no branch on length.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw")]
fn load_right(head: &[u8], left: usize) -> __m512i {
    let length = head.len().saturating_sub(left).min(64);
    let mask = !_bzhi_u64(!0, 64 - length as u32);
    // A vector that lies before `head` altogether is loaded at its start: a page there that is not
    // mapped would cost a thousand cycles, masked or not.
    let end = if length > 0 { head.len() - left } else { 64 };
    let start = head.as_ptr().wrapping_add(end).wrapping_sub(64);
    // SAFETY: of the 64 bytes at `start`, the mask selects the last `length`, which lie in `head`;
    // a masked load reads no other byte and does not fault on them.
    unsafe { _mm512_maskz_loadu_epi8(mask, start.cast()) }
}

#[target_feature(enable = "sse4.2,pclmulqdq,bmi2,avx512f,avx512bw,vpclmulqdq")]
pub(super) fn verified_avx512(page: &[u8]) -> usize {
    verified_with(page, |record| match record_vectors(record) {
        Some(checksum) => checksum,
        None => record_with(record, |state, bytes| update_avx512(state, bytes)),
    })
}
