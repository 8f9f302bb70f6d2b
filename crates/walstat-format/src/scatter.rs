//! Numbers scattered, for tables and samples: neighbours come to lie far apart.

/// 2^64 divided by the golden ratio: an odd number without pattern.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number times that; the high bits depend on all of its bits, the low ones only on the bits below them.
/// Each number has its own.
#[inline(always)]
pub const fn scattered(number: u64) -> u64 {
    number.wrapping_mul(GOLDEN)
}
