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
//! update (pieces)   AVX-512: 4 vectors of 64 bytes, each folded over 256 bytes a step, and 3
//!                   chains of the crc32 instruction beside them, each over a part of its own;
//!                   joined by carry-less products; pieces below 128 bytes by one chain
//!                   SSE 4.2, ARMv8: 3 chains side by side, joined by a carry-less product
//! record (one)      up to 256 bytes of data: one chain, else update; then the header as 8 + 8 + 4
//! verified (a page) AVX-512: the data end at the right edge of a vector, so the first vector is
//!                   masked; fold 64 bytes a step; one reduction that also passes the header
//! ```
//!
//! Gains, on one core of an AMD Zen 5 server, bytes in its caches:
//!
//! * Folding by 512-bit carry-less products: 61 GB/s for 2 to 64 kB, against 16 to 27 GB/s of the
//!   `crc32c` crate. Eight accumulators instead of four gain nothing: the multiplier is busy.
//! * Chains of the instruction beside the vectors, in units of their own: 86 GB/s.
//! * No branch on what is left over of a step, and the state before a piece added at its end: the
//!   pieces of real records, of any length, cost no more than whole pages do.
//! * Three chains where there is no AVX-512: 26 GB/s, one chain 10 GB/s. The second, shorter
//!   stride keeps pieces of 512 bytes at 17 GB/s.
//! * [`Crc32c::verified`] walks a page in one call, so that vectors pay from 40 bytes on (a
//!   call that uses them costs 8 ns, mostly for clearing their upper halves): a record of 59 bytes
//!   takes 2.5 instead of 3.5 ns, one of 128 bytes 3.3 instead of 4.8 ns, the walk included.
//! * A masked first vector needs no branch on the length of the tail: records of random lengths
//!   (54 to 80 bytes) take 2.6 instead of 18 ns, which were mispredicted ends of loops.
//! * Rejected: stepping the chains of 2 to 4 records together (4.3 against 3.4 ns). The processor
//!   overlaps consecutive records by itself.

mod wrong_byte;

use crate::record_header::{CRC_OFFSET, RECORD_HEADER_BYTES};

/// Castagnoli's polynomial, bits reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// The polynomial 1, reflected.
const ONE: u32 = 1 << 31;

/// How to compute CRC-32C on this machine; chosen once, copied around.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(Kind);

/// What the processor offers. Kinds other than `Portable` come from [`Crc32c::kinds`] alone, which
/// has seen their features; the `unsafe` calls below rest on that.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The `crc32c` crate.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Sse42,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Armv8,
}

impl Crc32c {
    /// State before the first byte.
    pub const START: u32 = !0;

    /// The fastest way this processor offers.
    #[must_use]
    pub fn detect() -> Self {
        Self(Self::kinds().last().unwrap_or(Kind::Portable))
    }

    /// The way that is right everywhere, by the `crc32c` crate: what the others are held against.
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
        let armv8 = std::arch::is_aarch64_feature_detected!("crc")
            && std::arch::is_aarch64_feature_detected!("neon")
            && std::arch::is_aarch64_feature_detected!("aes");
        [(true, Kind::Portable), (armv8, Kind::Armv8)]
            .into_iter()
            .filter_map(|(available, kind)| available.then_some(kind))
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
            Kind::Portable => !crc32c::crc32c_append(!state, bytes),
            // SAFETY: `kinds` makes this kind only where SSE 4.2 and PCLMULQDQ are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Sse42 => unsafe { x86::update_sse42(state, bytes) },
            // SAFETY: `kinds` makes this kind only where all of its features are present.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::update_avx512(state, bytes) },
            // SAFETY: `kinds` makes this kind only where the CRC and AES extensions are present.
            #[cfg(target_arch = "aarch64")]
            Kind::Armv8 => unsafe { aarch64::update(state, bytes) },
        }
    }

    /// The checksum that belongs to a running state.
    #[must_use]
    pub fn finish(state: u32) -> u32 {
        !state
    }

    /// The state after `bytes` zero bytes more: `update(s, b)` is
    /// `shift(s, b.len()) ^ update(0, b)`, so that pieces whose checksums were computed apart
    /// can be put together. Multiplies by x^(8 × bytes) modulo the polynomial.
    pub fn shift(state: u32, bytes: u64) -> u32 {
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
            // SAFETY: `kinds` makes this kind only where the CRC and AES extensions are present.
            #[cfg(target_arch = "aarch64")]
            Kind::Armv8 => unsafe { aarch64::record(record) },
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
            // SAFETY: `kinds` makes this kind only where the CRC and AES extensions are present.
            #[cfg(target_arch = "aarch64")]
            Kind::Armv8 => unsafe { aarch64::verified(page) },
            _ => verified_with(page, |record| self.record(record)),
        }
    }
}

/// A record's checksum in PostgreSQL's order: the data first, then the header up to `xl_crc`.
#[inline(always)]
fn record_with(record: &[u8], update: impl Fn(u32, &[u8]) -> u32) -> u32 {
    let Some((header, data)) = record.split_first_chunk::<RECORD_HEADER_BYTES>() else {
        return Crc32c::finish(update(Crc32c::START, record));
    };
    let (covered, _) = header.split_at(CRC_OFFSET);
    Crc32c::finish(update(update(Crc32c::START, data), covered))
}

/// The product of two polynomials modulo that of CRC-32C; bit 31 is x^0.
fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = times_x(b);
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
    let (header, _) = record.split_first_chunk::<RECORD_HEADER_BYTES>()?;
    let (_, stored) = header.split_last_chunk()?;
    Some(u32::from_le_bytes(*stored))
}

/// `value` times x: one zero bit more.
const fn times_x(value: u32) -> u32 {
    (value >> 1) ^ (POLYNOMIAL * (value & 1))
}

/// `value` times x to the power of `bits`: the state `value` after that many zero bits.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn after_zero_bits(mut value: u32, bits: usize) -> u32 {
    let mut bit = 0;
    while bit < bits {
        value = times_x(value);
        bit += 1;
    }
    value
}

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kind that can run here. A kind that cannot is named on stderr, not passed silently.
    fn all() -> Vec<Crc32c> {
        let kinds: Vec<Crc32c> = Crc32c::kinds().map(Crc32c).collect();
        let built = if cfg!(target_arch = "x86_64") {
            3
        } else if cfg!(target_arch = "aarch64") {
            2
        } else {
            1
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
            let long = [4096, 8167, 8168, 16_167, 16_168, 16_383, 16_384, 16_385, 65_535, 65_536];
            for length in (0..2100).chain(long) {
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
