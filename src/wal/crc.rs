//! CRC-32C of WAL records (`xl_crc`), as in PostgreSQL's `src/port/pg_crc32c_*.c`.
//!
//! This file computes checksums and nothing else: it does not know pages, windows or what to do
//! when a checksum differs. PostgreSQL feeds the bytes after the header first
//! (24..`xl_tot_len`), then the header up to `xl_crc` (0..20); see `ValidXLogRecord` in
//! `xlogreader.c`. Polynomial 0x1EDC6F41 (reflected 0x82F63B78), start and final XOR all ones.
//!
//! This is one of the hot files: checksums are most of the work of reading WAL.
//!
//! ```text
//! update (pieces)   AVX-512: 4 vectors of 64 bytes, each folded over 256 bytes a step; joined
//!                   into one, then 128 bits, then the crc32 instruction; pieces below 256 bytes
//!                   and tails below 64 by one chain of the instruction
//!                   SSE 4.2: 3 chains side by side, joined by a carry-less product
//! record (one)      up to 256 bytes of data: one chain, else update; then the header as 8 + 8 + 4
//! verified (a page) AVX-512: the data end at the right edge of a vector, so the first vector is
//!                   masked; fold 64 bytes a step; one reduction that also passes the header
//! ```
//!
//! Gains, on one core of an AMD Zen 5 server, bytes in its caches:
//!
//! * Folding by 512-bit carry-less products: 59 GB/s for 2 to 64 kB with the state carried over,
//!   against 16 to 27 GB/s of the `crc32c` crate. Eight accumulators instead of four gain nothing.
//! * Three chains where there is no AVX-512: 26 GB/s, one chain 10 GB/s. The second, shorter
//!   stride keeps pieces of 512 bytes at 17 GB/s.
//! * [`Crc32c::verified`] walks a page behind one call, so that vectors pay from 40 bytes on (a
//!   call that uses them costs 8 ns, mostly for clearing their upper halves): a record of 59 bytes
//!   takes 2.5 instead of 3.5 ns, one of 128 bytes 3.3 instead of 4.8 ns, the walk included.
//! * A masked first vector needs no branch on the length of the tail: records of random lengths
//!   (54 to 80 bytes) take 2.6 instead of 18 ns, which were mispredicted ends of loops.
//! * Rejected: stepping the chains of 2 to 4 records together (4.3 against 3.4 ns). The processor
//!   overlaps consecutive records by itself.

/// Length of `XLogRecord`, the fixed header of a record, in bytes.
const SIZE_OF_XLOG_RECORD: usize = 24;
/// Offset of `xl_crc` in `XLogRecord`; the checksum covers the header up to here.
const XL_CRC: usize = 20;
/// Castagnoli's polynomial, bits reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// How to compute CRC-32C on this machine; chosen once, copied around.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(Kind);

/// What the processor offers. Kinds other than `Portable` come from [`Crc32c::kinds`] alone, which
/// has seen their features; the `unsafe` calls below rest on that.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Crate,
    #[cfg(target_arch = "x86_64")]
    Sse42,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Crc32c {
    /// State before the first byte.
    pub const START: u32 = !0;

    /// The fastest way this processor offers.
    #[must_use]
    pub fn detect() -> Self {
        Self(Self::kinds().last().unwrap_or(Kind::Portable))
    }

    /// The way that needs no special instruction: slow, right everywhere.
    #[must_use]
    pub fn portable() -> Self {
        Self(Kind::Portable)
    }

    /// Every kind this processor can run, the fastest last.
    #[cfg(target_arch = "x86_64")]
    fn kinds() -> impl Iterator<Item = Kind> {
        let sse42 = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
        let avx512 = sse42
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("vpclmulqdq");
        [(true, Kind::Portable), (sse42, Kind::Sse42), (avx512, Kind::Avx512)]
            .into_iter()
            .filter_map(|(available, kind)| available.then_some(kind))
    }

    /// Every kind this processor can run, the fastest last.
    #[cfg(target_arch = "aarch64")]
    fn kinds() -> impl Iterator<Item = Kind> {
        [Kind::Portable, Kind::Crate].into_iter()
    }

    /// Every kind this processor can run, the fastest last.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn kinds() -> impl Iterator<Item = Kind> {
        [Kind::Portable].into_iter()
    }

    /// The state after `bytes`, given the `state` before them. Pieces may have any length; begin
    /// with [`Self::START`], end with [`Self::finish`].
    #[must_use]
    pub fn update(self, state: u32, bytes: &[u8]) -> u32 {
        match self.0 {
            Kind::Portable => portable::update(state, bytes),
            #[cfg(target_arch = "aarch64")]
            Kind::Crate => !crc32c::crc32c_append(!state, bytes),
            // SAFETY: `kinds` makes this kind only where SSE 4.2 and PCLMULQDQ are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Sse42 => unsafe { x86::update_sse42(state, bytes) },
            // SAFETY: `kinds` makes this kind only where all of its features are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::update_avx512(state, bytes) },
        }
    }

    /// The checksum that belongs to a running state.
    #[must_use]
    pub fn finish(state: u32) -> u32 {
        !state
    }

    /// The state behind `bytes` zero bytes more: `update(s, b)` is
    /// `shift(s, b.len()) ^ update(0, b)`, so that pieces whose checksums were computed apart
    /// can be put together. Multiplies by x^(8 × bytes) modulo the polynomial.
    pub fn shift(state: u32, bytes: u64) -> u32 {
        const ONE: u32 = 1 << 31;
        let (mut factor, mut square, mut left) = (ONE, ONE >> 8, bytes);
        while left > 0 {
            if left & 1 == 1 {
                factor = multiply(factor, square);
            }
            square = multiply(square, square);
            left >>= 1;
        }
        multiply(factor, state)
    }

    /// The checksum of one contiguous record, to compare with its `xl_crc` (little-endian at bytes
    /// 20..24). Of a slice too short for a record header, the checksum of its bytes.
    #[must_use]
    pub fn record(self, record: &[u8]) -> u32 {
        match self.0 {
            // SAFETY: `kinds` makes these kinds only where SSE 4.2 is present.
            #[cfg(target_arch = "x86_64")]
            Kind::Sse42 | Kind::Avx512 if record.len() <= x86::SHORT_RECORD => unsafe {
                x86::record_short(record)
            },
            _ => record_with(record, |state, bytes| self.update(state, bytes)),
        }
    }

    /// How many bytes at the start of `page` hold records that are whole and match their `xl_crc`,
    /// one after the other, each padded to 8 bytes (`MAXALIGN`); at most `page.len()`.
    ///
    /// `page` is the rest of one page, from a record's start. The walk ends before the first record
    /// that is shorter than a header, not whole, or does not match. Call it once a page and decode
    /// the records below that offset without another check: that is faster than [`Self::record`]
    /// for each. A record at the returned offset is not judged: check it with [`Self::record`], or
    /// in pieces with [`Self::update`].
    #[must_use]
    pub fn verified(self, page: &[u8]) -> usize {
        match self.0 {
            // SAFETY: `kinds` makes this kind only where SSE 4.2 and PCLMULQDQ are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Sse42 => unsafe { x86::verified_sse42(page) },
            // SAFETY: `kinds` makes this kind only where all of its features are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::verified_avx512(page) },
            _ => verified_with(page, |record| self.record(record)),
        }
    }
}

/// A record's checksum in PostgreSQL's order: the data first, then the header up to `xl_crc`.
#[inline(always)]
fn record_with(record: &[u8], update: impl Fn(u32, &[u8]) -> u32) -> u32 {
    let Some((header, data)) = record.split_first_chunk::<SIZE_OF_XLOG_RECORD>() else {
        return Crc32c::finish(update(Crc32c::START, record));
    };
    let (covered, _) = header.split_at(XL_CRC);
    Crc32c::finish(update(update(Crc32c::START, data), covered))
}

/// The product of two polynomials modulo that of CRC-32C; bit 31 is x^0.
fn multiply(a: u32, mut b: u32) -> u32 {
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
    }
    product
}

/// The walk of [`Crc32c::verified`]. Inlined, so that `checksum` is compiled for the features of
/// the caller.
#[inline(always)]
fn verified_with(page: &[u8], checksum: impl Fn(&[u8]) -> u32) -> usize {
    let mut rest = page;
    while let Some(record) = first_record(rest)
        && stored_checksum(record) == Some(checksum(record))
    {
        // No overflow: a length in memory is below `isize::MAX`.
        let padded = (record.len() + 7) & !7;
        rest = rest.get(padded..).unwrap_or_default();
    }
    page.len() - rest.len()
}

/// The record that `bytes` begin with, as long as its `xl_tot_len` says, if it is whole.
#[inline(always)]
fn first_record(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..u32::from_le_bytes(*bytes.first_chunk()?) as usize)
}

/// `xl_crc` of a record; `None` if the record is shorter than its header.
#[inline(always)]
fn stored_checksum(record: &[u8]) -> Option<u32> {
    let (header, _) = record.split_first_chunk::<SIZE_OF_XLOG_RECORD>()?;
    let (_, stored) = header.split_last_chunk()?;
    Some(u32::from_le_bytes(*stored))
}

/// `value` times x: one zero bit more.
const fn times_x(value: u32) -> u32 {
    (value >> 1) ^ (POLYNOMIAL * (value & 1))
}

/// `value` times x to the power of `bits`: the state `value` after that many zero bits.
const fn after_zero_bits(mut value: u32, bits: usize) -> u32 {
    let mut bit = 0;
    while bit < bits {
        value = times_x(value);
        bit += 1;
    }
    value
}

/// Slicing-by-8, as `pg_comp_crc32c_sb8` in PostgreSQL's `src/port/pg_crc32c_sb8.c`.
mod portable {
    use super::after_zero_bits;

    /// `TABLES[n][byte]`: the state after `byte` and then `n` zero bytes.
    static TABLES: [[u32; 256]; 8] = tables();

    const fn tables() -> [[u32; 256]; 8] {
        let mut tables = [[0; 256]; 8];
        let mut byte = 0;
        while byte < 256 {
            let mut zeros = 0;
            while zeros < 8 {
                tables[zeros][byte] = after_zero_bits(byte as u32, 8 * (zeros + 1));
                zeros += 1;
            }
            byte += 1;
        }
        tables
    }

    pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
        let (words, tail) = bytes.as_chunks::<8>();
        let state = words.iter().fold(state, |state, word| {
            let word = u64::from_le_bytes(*word) ^ u64::from(state);
            let columns = word.to_le_bytes().into_iter().zip(TABLES.iter().rev());
            columns.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)])
        });
        let [table, ..] = &TABLES;
        tail.iter().fold(state, |state, byte| {
            let [low, ..] = state.to_le_bytes();
            (state >> 8) ^ table[usize::from(low ^ byte)]
        })
    }
}

/// The crc32 instruction and carry-less multiplication.
///
/// In the reflected order of this CRC, the carry-less product of two 64-bit values comes out one
/// bit ahead; so the factor that moves a value ahead by n bits is x^(n - 1), in the upper half of
/// its word. Source: Intel's paper "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
/// Instruction".
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Crc32c, SIZE_OF_XLOG_RECORD, XL_CRC, after_zero_bits, record_with, verified_with};

    /// The most data `record_short` and `record_vectors` serve, in bytes.
    const SHORT_DATA: usize = 256;
    /// The longest record they serve, in bytes.
    pub(super) const SHORT_RECORD: usize = SIZE_OF_XLOG_RECORD + SHORT_DATA;
    /// The polynomial 1, reflected.
    const ONE: u32 = 1 << 31;

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

    /// The factors that move the four 128-bit parts of a vector up to `bits` behind its end.
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

    #[target_feature(enable = "sse4.2,pclmulqdq,bmi2,avx512f,avx512bw,vpclmulqdq")]
    pub(super) fn update_avx512(state: u32, bytes: &[u8]) -> u32 {
        // The last part stays where it is: its factors are zero, it is added as it was.
        static LAST: [[i64; 2]; 4] = [factors(384), factors(256), factors(128), [0, 0]];
        let (blocks, tail) = bytes.as_chunks::<64>();
        let (steps, rest) = blocks.as_chunks::<4>();
        let Some(([a, b, c, d], steps)) = steps.split_first() else {
            return chain(state, bytes);
        };
        let state = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state as i32));
        let (mut a, mut b, mut c, mut d) =
            (_mm512_xor_si512(load(a), state), load(b), load(c), load(d));
        for [next_a, next_b, next_c, next_d] in steps {
            a = fold(a, ahead::<2048>(), load(next_a));
            b = fold(b, ahead::<2048>(), load(next_b));
            c = fold(c, ahead::<2048>(), load(next_c));
            d = fold(d, ahead::<2048>(), load(next_d));
        }
        let even = fold(a, ahead::<1024>(), c);
        let odd = fold(b, ahead::<1024>(), d);
        let one = fold(even, ahead::<512>(), odd);
        let one = rest.iter().fold(one, |one, block| fold(one, ahead::<512>(), load(block)));
        let last = _mm512_maskz_mov_epi64(0b1100_0000, one);
        let state = reduce(0, sum_parts(fold(one, load_factors(&LAST), last)));
        chain(state, tail)
    }

    /// What the start state contributes to the finished checksum, by the length of the data.
    static START_TERMS: [u32; SHORT_DATA + 1] = start_terms();

    const fn start_terms() -> [u32; SHORT_DATA + 1] {
        let mut terms = [0; SHORT_DATA + 1];
        let mut state = after_zero_bits(Crc32c::START, 8 * XL_CRC);
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
        static OVER_HEADER: [[i64; 2]; 4] = to_end(8 * XL_CRC);
        let (header, data) = record.split_first_chunk::<SIZE_OF_XLOG_RECORD>()?;
        let start_term = START_TERMS.get(data.len())?;
        let (head, blocks) = data.as_rchunks::<64>();
        let value = blocks
            .iter()
            .fold(load_right(head), |value, block| fold(value, ahead::<512>(), load(block)));
        let value = sum_parts(fold(value, load_factors(&OVER_HEADER), _mm512_setzero_si512()));
        let (first, header) = header.split_first_chunk::<4>()?;
        let state = _mm_crc32_u32(0, u32::from_le_bytes(*first));
        let value = _mm_xor_si128(value, load_128(header.first_chunk()?));
        Some(reduce(state, value) ^ start_term)
    }

    /// Fewer than 64 bytes at the right end of a vector, zeros before them; no branch on length.
    #[inline]
    #[target_feature(enable = "bmi2,avx512f,avx512bw")]
    fn load_right(head: &[u8]) -> __m512i {
        debug_assert!(head.len() < 64, "as_rchunks leaves less than a block");
        let mask = !_bzhi_u64(!0, 64 - head.len() as u32);
        let start = head.as_ptr_range().end.wrapping_sub(64);
        // SAFETY: of the 64 bytes that end with `head`, the mask selects the last `head.len()`,
        // which are `head`; a masked load reads no other byte and does not fault on them.
        unsafe { _mm512_maskz_loadu_epi8(mask, start.cast()) }
    }

    #[target_feature(enable = "sse4.2,pclmulqdq,bmi2,avx512f,avx512bw,vpclmulqdq")]
    pub(super) fn verified_avx512(page: &[u8]) -> usize {
        verified_with(page, |record| match record_vectors(record) {
            Some(checksum) => checksum,
            None => record_with(record, |state, bytes| update_avx512(state, bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kind that can run here. A kind that cannot is named on stderr, not passed silently.
    fn all() -> Vec<Crc32c> {
        let kinds: Vec<Crc32c> = Crc32c::kinds().map(Crc32c).collect();
        let built = if cfg!(target_arch = "x86_64") {
            3
        } else {
            1 + usize::from(cfg!(target_arch = "aarch64"))
        };
        if kinds.len() < built {
            eprintln!(
                "NOT TESTED: {} of {built} ways to compute CRC-32C; tested: {kinds:?}",
                built - kinds.len()
            );
        }
        kinds
    }

    /// The naive twin: bit by bit.
    fn naive_update(state: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(state, |state, byte| {
            (0..8).fold(state ^ u32::from(*byte), |state, _| {
                if state & 1 == 1 { (state >> 1) ^ 0x82F6_3B78 } else { state >> 1 }
            })
        })
    }

    fn naive_record(record: &[u8]) -> u32 {
        !naive_update(naive_update(!0, &record[24..]), &record[..20])
    }

    /// Bytes without a pattern, the same in every run.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    /// Records of these lengths, padded to 8 bytes, with the checksums they should have.
    fn records(lengths: &[usize]) -> Vec<u8> {
        let mut page = Vec::new();
        for length in lengths {
            let mut record = noise(*length);
            record[..4].copy_from_slice(&(*length as u32).to_le_bytes());
            let checksum = naive_record(&record);
            record[20..24].copy_from_slice(&checksum.to_le_bytes());
            record.resize(length.next_multiple_of(8), 0);
            page.append(&mut record);
        }
        page
    }

    #[test]
    fn checksums_of_pieces_can_be_put_together() {
        let bytes: Vec<u8> = (0..3000u32).map(|i| (i * 7 + i / 13) as u8).collect();
        let crc = Crc32c::detect();
        for cut in [0, 1, 7, 24, 1000, 2999, 3000] {
            let (a, b) = bytes.split_at(cut);
            let state = crc.update(Crc32c::START, a);
            let joined = Crc32c::shift(state, b.len() as u64) ^ crc.update(0, b);
            assert_eq!(joined, crc.update(Crc32c::START, &bytes), "cut at {cut}");
        }
    }

    #[test]
    fn the_check_value_is_right() {
        for crc in all() {
            let state = crc.update(Crc32c::START, b"123456789");
            assert_eq!(Crc32c::finish(state), 0xE306_9283, "{crc:?}");
        }
    }

    #[test]
    fn every_length_equals_the_naive_twin() {
        let bytes = noise(65_536 + 1);
        for crc in all() {
            let mut state = 0x0123_4567;
            for length in (0..2100).chain([4096, 8167, 8168, 65_535, 65_536]) {
                let piece = &bytes[1..][..length];
                let expected = naive_update(state, piece);
                state = crc.update(state, piece);
                assert_eq!(state, expected, "{crc:?}, {length} bytes");
            }
        }
    }

    #[test]
    fn every_alignment_equals_the_naive_twin() {
        let bytes = noise(3000);
        for start in 0..64 {
            for length in [1, 63, 300, 1500, 2900] {
                let piece = &bytes[start..][..length];
                let expected = naive_update(Crc32c::START, piece);
                for crc in all() {
                    let state = crc.update(Crc32c::START, piece);
                    assert_eq!(state, expected, "{crc:?}, {length} bytes at {start}");
                }
            }
        }
    }

    #[test]
    fn a_record_of_any_length_equals_the_naive_twin() {
        let bytes = noise(8192);
        for length in (24..1200).chain([8000, 8192]) {
            for crc in all() {
                let record = &bytes[..length];
                assert_eq!(crc.record(record), naive_record(record), "{crc:?}, {length} bytes");
            }
        }
    }

    #[test]
    fn a_slice_without_a_whole_header_has_the_checksum_of_its_bytes() {
        let bytes = noise(24);
        for length in 0..24 {
            for crc in all() {
                let expected = !naive_update(!0, &bytes[..length]);
                assert_eq!(crc.record(&bytes[..length]), expected, "{crc:?}, {length} bytes");
            }
        }
    }

    #[test]
    fn a_run_of_records_is_verified_whole() {
        for length in (24..700).chain([2000, 8168]) {
            let page = records(&[length, 24, length]);
            let padded = length.next_multiple_of(8);
            for crc in all() {
                assert_eq!(crc.verified(&page), page.len(), "{crc:?}, {length} bytes");
                let unpadded = &page[..padded + 24 + length];
                assert_eq!(crc.verified(unpadded), unpadded.len(), "{crc:?}, {length} bytes");
                let cut = &unpadded[..unpadded.len() - 1];
                assert_eq!(crc.verified(cut), padded + 24, "{crc:?}, {length} bytes, cut");
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_in_a_record_ends_the_run() {
        for length in [24, 25, 59, 88, 89, 152, 280, 281, 600] {
            let page = records(&[32, length]);
            for at in 32..32 + length {
                let mut page = page.clone();
                page[at] ^= 1 << (at % 8);
                for crc in all() {
                    assert_eq!(crc.verified(&page), 32, "{crc:?}, {length} bytes, bit at {at}");
                }
            }
        }
    }

    #[test]
    fn a_length_no_record_has_ends_the_run() {
        for length in [0, 1, 23, 33, u32::MAX] {
            let mut page = records(&[32, 32]);
            page[32..36].copy_from_slice(&length.to_le_bytes());
            for crc in all() {
                assert_eq!(crc.verified(&page), 32, "{crc:?}, length {length}");
                assert_eq!(crc.verified(&page[..32 + 23]), 32, "{crc:?}, no whole header");
                assert_eq!(crc.verified(&[]), 0, "{crc:?}, no bytes");
            }
        }
    }

    proptest! {
        #[test]
        fn any_split_into_pieces_gives_the_same_state(
            bytes in proptest::collection::vec(any::<u8>(), 0..9000),
            state in any::<u32>(),
            mut cuts in proptest::collection::vec(0..9000_usize, 0..6),
        ) {
            let expected = naive_update(state, &bytes);
            cuts.sort_unstable();
            for crc in all() {
                let (mut running, mut done) = (state, 0);
                for cut in cuts.iter().copied().filter(|cut| *cut < bytes.len()) {
                    running = crc.update(running, &bytes[done..cut]);
                    done = cut;
                }
                prop_assert_eq!(crc.update(running, &bytes[done..]), expected, "{:?}", crc);
            }
        }

        #[test]
        fn records_of_any_lengths_are_verified_up_to_the_damaged_one(
            lengths in proptest::collection::vec(24..400_usize, 1..40),
            damaged in any::<prop::sample::Index>(),
        ) {
            let mut page = records(&lengths);
            let damaged = damaged.index(lengths.len());
            let start = records(&lengths[..damaged]).len();
            for crc in all() {
                prop_assert_eq!(crc.verified(&page), page.len(), "{:?}", crc);
            }
            page[start + 16] ^= 0x80;
            for crc in all() {
                prop_assert_eq!(crc.verified(&page), start, "{:?}", crc);
            }
        }
    }
}
