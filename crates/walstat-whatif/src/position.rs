//! Arithmetic of WAL positions without page headers, in which the lengths of records add up.
//!
//! A page of WAL begins with a header, the first one of a segment with a longer one. Positions
//! that count only what lies between them are additive: a record of `n` bytes at position `p` is
//! followed by one at `p + n` rounded up to 8. Pages without their headers are multiples of 8
//! long, so the rounding never depends on the page (`UsableBytePos` of
//! `src/backend/access/transam/xlog.c`).

use walstat_format::lsn::Lsn;
pub(crate) use walstat_format::lsn::padded;
use walstat_format::page::{LONG_HEADER_BYTES, SHORT_HEADER_BYTES};

const SHORT_HEADER: u64 = SHORT_HEADER_BYTES as u64;
const LONG_HEADER: u64 = LONG_HEADER_BYTES as u64;

/// Sizes of WAL pages and segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of a WAL page.
    pub(crate) page: u64,
    /// Bytes of a segment.
    pub(crate) segment: u64,
}

impl Geometry {
    /// Bytes of a segment that records can use.
    pub(crate) fn usable_per_segment(&self) -> u64 {
        let pages = self.segment / self.page;
        self.segment - pages * SHORT_HEADER - (LONG_HEADER - SHORT_HEADER)
    }

    /// How many bytes before `lsn` records can use.
    pub(crate) fn usable(&self, lsn: Lsn) -> u64 {
        let (segment, offset) = (lsn.0 / self.segment, lsn.0 % self.segment);
        let (page, inside) = (offset / self.page, offset % self.page);
        let before = segment * self.usable_per_segment();
        if page == 0 {
            return before + inside.saturating_sub(LONG_HEADER);
        }
        let pages = page * (self.page - SHORT_HEADER) - (LONG_HEADER - SHORT_HEADER);
        before + pages + inside.saturating_sub(SHORT_HEADER)
    }

    /// Where a record at position `usable` starts: after a page header if it falls on one.
    pub(crate) fn start(&self, usable: u64) -> Lsn {
        let per_segment = self.usable_per_segment();
        let (segment, rest) = (usable / per_segment, usable % per_segment);
        let first = self.page - LONG_HEADER;
        let inside = match rest.checked_sub(first) {
            None => LONG_HEADER + rest,
            Some(rest) => {
                let content = self.page - SHORT_HEADER;
                (1 + rest / content) * self.page + SHORT_HEADER + rest % content
            }
        };
        Lsn(segment * self.segment + inside)
    }

    /// Where a record that ends at position `usable` ends: a page boundary stays one. This is
    /// the form that is stamped on pages.
    pub(crate) fn end(&self, usable: u64) -> Lsn {
        let start = self.start(usable);
        let offset = start.0 % self.segment;
        if offset == LONG_HEADER {
            return Lsn(start.0 - LONG_HEADER);
        }
        match offset % self.page {
            SHORT_HEADER => Lsn(start.0 - SHORT_HEADER),
            _ => start,
        }
    }

    /// Bytes from a record's end to the next segment.
    pub(crate) fn left_of_segment(&self, usable: u64) -> u64 {
        self.end(self.next_segment(usable)).0.saturating_sub(self.end(usable).0)
    }

    /// The position of the next segment's first record, for one that may already be there.
    pub(crate) fn next_segment(&self, usable: u64) -> u64 {
        usable.next_multiple_of(self.usable_per_segment())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { page: 8192, segment: 1 << 20 };

    #[test]
    fn positions_and_lsns_are_each_others_inverse() {
        for usable in (0..3 * SMALL.usable_per_segment()).step_by(8) {
            let start = SMALL.start(usable);
            assert_eq!(SMALL.usable(start), usable, "{start}");
            let end = SMALL.end(usable);
            assert_eq!(SMALL.usable(end), usable, "{end}");
            assert!(end <= start && start.0 - end.0 <= 40);
        }
    }

    #[test]
    fn headers_are_left_out() {
        assert_eq!(SMALL.usable(Lsn(1 << 20)), SMALL.usable_per_segment());
        assert_eq!(SMALL.usable_per_segment(), (1 << 20) - 128 * 24 - 16);
        assert_eq!(SMALL.start(SMALL.usable_per_segment()), Lsn((1 << 20) + 40));
        assert_eq!(SMALL.end(SMALL.usable_per_segment()), Lsn(1 << 20));
        assert_eq!(SMALL.start(8192 - 40), Lsn(8192 + 24));
        assert_eq!(SMALL.end(8192 - 40), Lsn(8192));
    }

    #[test]
    fn a_switch_fills_its_segment() {
        let whole = SMALL.usable_per_segment();
        assert_eq!(SMALL.next_segment(24), whole);
        assert_eq!(SMALL.next_segment(whole), whole);
    }
}
