//! Segment numbers and the names of the files that lie in a WAL directory.
//!
//! Names carry no segment size: 24 hexadecimal digits are a timeline and two halves of a
//! segment number whose meaning depends on it (`src/include/access/xlog_internal.h`).

use super::lsn::Lsn;
use std::fmt;

/// The smallest and largest segment sizes that a server can be built or initialised with.
pub const SEGMENT_BYTES: std::ops::RangeInclusive<u32> = 1 << 20..=1 << 30;

/// The WAL page sizes that a server can be built with.
pub const PAGE_BYTES: std::ops::RangeInclusive<u32> = 1 << 10..=1 << 16;

/// The smallest of them, at whose multiples all pages lie.
pub const PAGE_BYTES_MIN: u64 = *PAGE_BYTES.start() as u64;

/// Digits of a segment's name.
pub const NAME_DIGITS: usize = 24;
/// The first of them, by which archivers name the directory that a segment is put into.
pub const GROUP_DIGITS: usize = 16;

/// Whether `bytes` is a segment size that a server can have.
pub fn is_segment_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && SEGMENT_BYTES.contains(&bytes)
}

/// Whether `bytes` is a WAL page size that a server can have.
pub fn is_page_size(bytes: u32) -> bool {
    bytes.is_power_of_two() && PAGE_BYTES.contains(&bytes)
}

/// The number of the segment in which `lsn` lies; `None` for the last one that 64 bits could
/// address, so that the end of every segment has an LSN.
pub fn number_of(lsn: Lsn, segment_bytes: u32) -> Option<u64> {
    let bytes = u64::from(segment_bytes);
    let number = lsn.0 / bytes;
    (number + 1).checked_mul(bytes).map(|_| number)
}

/// The name of a segment file: timeline and the two halves of the segment number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentName {
    /// Timeline: the newest one whose pages may be in the file.
    pub timeline: u32,
    /// Segment number divided by the segments in 4 GiB.
    pub log: u32,
    /// Segment number modulo the segments in 4 GiB.
    pub seg: u32,
}

impl SegmentName {
    /// The name of segment `number` (LSN divided by the segment size).
    pub fn new(timeline: u32, number: u64, segment_bytes: u32) -> SegmentName {
        let per_id = (1u64 << 32) / u64::from(segment_bytes);
        SegmentName { timeline, log: (number / per_id) as u32, seg: (number % per_id) as u32 }
    }

    /// Reads exactly 24 upper-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<SegmentName> {
        let plain = text.len() == NAME_DIGITS
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
        let field = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok();
        plain.then_some(())?;
        Some(SegmentName { timeline: field(0)?, log: field(8)?, seg: field(16)? })
    }

    /// The name that a file's begins with, whatever comes after it: `.partial`, a digest, a codec's suffix.
    pub fn leading(text: &str) -> Option<SegmentName> {
        SegmentName::parse(text.get(..NAME_DIGITS)?)
    }

    /// The segment number, or `None` if the name is impossible with this segment size.
    pub fn number(self, segment_bytes: u32) -> Option<u64> {
        let per_id = (1u64 << 32) / u64::from(segment_bytes);
        let number = u64::from(self.log) * per_id + u64::from(self.seg);
        let start = number.checked_mul(u64::from(segment_bytes))?;
        (u64::from(self.seg) < per_id).then(|| number_of(Lsn(start), segment_bytes)).flatten()
    }

    /// The LSN of the first byte of the file.
    pub fn start(self, segment_bytes: u32) -> Option<Lsn> {
        self.number(segment_bytes).map(|n| Lsn(n * u64::from(segment_bytes)))
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}{:08X}{:08X}", self.timeline, self.log, self.seg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_each_others_inverse() {
        for bits in 20..=30 {
            let bytes = 1u32 << bits;
            for number in [0, 1, 255, 256, 4095, 4096, 70_000] {
                let name = SegmentName::new(3, number, bytes);
                assert_eq!(SegmentName::parse(&name.to_string()), Some(name));
                assert_eq!(name.number(bytes), Some(number));
            }
        }
    }

    #[test]
    fn a_name_of_a_smaller_segment_size_is_impossible_with_a_larger_one() {
        let name = SegmentName::new(1, 4095, 1 << 20);
        assert_eq!(name.to_string(), "000000010000000000000FFF");
        assert_eq!(name.number(16 << 20), None);
    }

    #[test]
    fn other_names_are_refused() {
        for text in [
            "",
            "00000001000000000000000",
            "00000001000000000000000g",
            "0000000100000000000000a1",
            "0000000100000000000000010",
        ] {
            assert_eq!(SegmentName::parse(text), None, "{text:?}");
        }
    }
}
