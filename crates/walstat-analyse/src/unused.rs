//! The unused rests of segments, among other places.

use std::ops::Range;
use walstat_format::lsn::Lsn;

/// How many bytes of a range lie in others, which do not overlap.
pub(crate) fn overlap(others: &[Range<Lsn>], range: Range<Lsn>) -> u64 {
    let common = |other: &Range<Lsn>| {
        let (from, to) = (other.start.max(range.start), other.end.min(range.end));
        to.0.saturating_sub(from.0)
    };
    others.iter().map(common).sum()
}

/// Bytes of a range without what was not written.
pub(crate) fn written(unused: &[Range<Lsn>], range: Range<Lsn>) -> u64 {
    range.end.0.saturating_sub(range.start.0).saturating_sub(overlap(unused, range))
}
