//! Page headers: what stands at the head of every WAL page, and whether it may be believed
//! (`XLogPageHeaderData`, `XLogLongPageHeaderData` in `src/include/access/xlog_internal.h`).

use super::cursor::at;
use super::lsn::Lsn;
use super::segment::{is_page_size, is_segment_size};
use super::version::Version;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes before the content of a page, padding included.
pub const SHORT_HEADER_BYTES: usize = 24;
/// The same for the first page of a segment.
pub const LONG_HEADER_BYTES: usize = 40;

/// The page begins with bytes of a record that was begun earlier.
pub const FIRST_IS_CONTRECORD: u16 = 0x0001;
/// The long header follows.
pub const LONG_HEADER: u16 = 0x0002;

/// The fields of every page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageHeader {
    /// `xlp_magic`.
    pub magic: u16,
    /// `xlp_info`: flags.
    pub info: u16,
    /// `xlp_tli`: timeline of the page.
    pub timeline: u32,
    /// `xlp_pageaddr`: LSN of the first byte of the page.
    pub address: Lsn,
    /// `xlp_rem_len`: bytes still to come of the record that was begun earlier.
    pub remaining: u32,
}

/// The fields that the first page of a segment adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongHeader {
    /// `xlp_sysid`: the cluster.
    pub system_identifier: u64,
    /// `xlp_seg_size`, bytes.
    pub segment_bytes: u32,
    /// `xlp_xlog_blcksz`, bytes.
    pub page_bytes: u32,
}

impl PageHeader {
    /// Reads the header at the head of `page`; `None` if there are fewer than 24 bytes.
    #[inline(always)]
    pub fn parse(page: &[u8]) -> Option<PageHeader> {
        // Every page has one: read like a record's header, for speed.
        let header: &[u8; SHORT_HEADER_BYTES] = page.first_chunk()?;
        let [m0, m1, i0, i1, t0, t1, t2, t3, ref rest @ ..] = *header;
        let [a0, a1, a2, a3, a4, a5, a6, a7, r0, r1, r2, r3, ..] = *rest;
        Some(PageHeader {
            magic: u16::from_le_bytes([m0, m1]),
            info: u16::from_le_bytes([i0, i1]),
            timeline: u32::from_le_bytes([t0, t1, t2, t3]),
            address: Lsn(u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7])),
            remaining: u32::from_le_bytes([r0, r1, r2, r3]),
        })
    }

    /// Bytes before the content.
    pub fn bytes(&self) -> usize {
        if self.info & LONG_HEADER != 0 { LONG_HEADER_BYTES } else { SHORT_HEADER_BYTES }
    }

    /// Whether the page begins with bytes of a record that was begun earlier.
    pub fn continues(&self) -> bool {
        self.info & FIRST_IS_CONTRECORD != 0
    }
}

impl LongHeader {
    /// Reads the fields after a short header; `None` if `page` is shorter than 40 bytes.
    pub fn parse(page: &[u8]) -> Option<LongHeader> {
        let (system_identifier, (segment_bytes, page_bytes)) = at(page, SHORT_HEADER_BYTES)?;
        Some(LongHeader { system_identifier, segment_bytes, page_bytes })
    }

    /// Whether both sizes are such as a server can have.
    pub fn is_plausible(&self) -> bool {
        is_segment_size(self.segment_bytes) && is_page_size(self.page_bytes)
    }
}

/// What all pages of one input have in common.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// The release.
    pub version: &'static Version,
    /// The cluster.
    pub system_identifier: u64,
    /// Segment size, bytes.
    pub segment_bytes: u32,
    /// WAL page size, bytes.
    pub page_bytes: u32,
}

/// Why a page is not the page that should be at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageFault {
    /// Only zeros where the header should be: never written.
    Zero,
    /// Another magic than the input's release writes.
    Magic {
        /// As found.
        found: u16,
        /// The input's.
        expected: u16,
    },
    /// Flags that the release does not know, or a long header in the wrong place.
    Flags {
        /// `xlp_info` as found.
        found: u16,
    },
    /// Another cluster, segment size or page size.
    Foreign {
        /// As found.
        found: LongHeader,
        /// The input's.
        expected: LongHeader,
    },
    /// The address of another place: what a recycled segment held before.
    Address {
        /// As found.
        found: Lsn,
    },
    /// A page of an older timeline than the file's, from before in the segment. A server that is
    /// promoted copies the segment up to where it leaves the old timeline, and fills the rest with
    /// copies of the last page (`XLogFileCopy` compares a negative length as an unsigned one).
    Left {
        /// The place of the page that was copied.
        found: Lsn,
    },
    /// An older timeline than the page before, or a newer one than the file's.
    Timeline {
        /// As found.
        found: u32,
        /// The least that is allowed.
        least: u32,
        /// The most that is allowed.
        most: u32,
    },
}

impl Geometry {
    /// Whether both places are in the same segment.
    pub fn are_in_one_segment(&self, one: Lsn, other: Lsn) -> bool {
        let segment = |lsn: Lsn| lsn.0 / u64::from(self.segment_bytes);
        segment(one) == segment(other)
    }

    /// Where the first record at or after `lsn` may start: on a page's first byte, after its header.
    pub fn first_byte(&self, lsn: Lsn) -> Lsn {
        let header = match () {
            () if lsn.0.is_multiple_of(u64::from(self.segment_bytes)) => LONG_HEADER_BYTES,
            () if lsn.0.is_multiple_of(u64::from(self.page_bytes)) => SHORT_HEADER_BYTES,
            () => 0,
        };
        Lsn(lsn.0.saturating_add(header as u64))
    }

    /// Where so many bytes of records after `lsn` end, page headers not counted.
    pub fn advance(&self, lsn: Lsn, bytes: u64) -> Lsn {
        let page = u64::from(self.page_bytes);
        let (mut at, mut left) = (self.first_byte(lsn), bytes);
        loop {
            let room = page - at.0 % page;
            if left <= room {
                return Lsn(at.0.saturating_add(left));
            }
            left -= room;
            at = self.first_byte(Lsn(at.0.saturating_add(room)));
        }
    }

    /// Checks `header` of `page` at `lsn` in the order of the server's reader
    /// (`XLogReaderValidatePageHeader`). `timelines`: the least and the most allowed.
    pub fn check(
        &self,
        header: &PageHeader,
        page: &[u8],
        lsn: Lsn,
        timelines: (u32, u32),
    ) -> Result<(), PageFault> {
        let version = self.version;
        if header.magic != version.magic {
            let zero = header.magic == 0 && page.iter().take(SHORT_HEADER_BYTES).all(|&b| b == 0);
            let fault = PageFault::Magic { found: header.magic, expected: version.magic };
            return Err(if zero { PageFault::Zero } else { fault });
        }
        let (least, most) = timelines;
        let segment = u64::from(self.segment_bytes);
        let before = header.address < lsn && header.address.0 / segment == lsn.0 / segment;
        if before && header.timeline < most {
            return Err(PageFault::Left { found: header.address });
        }
        let long = header.info & LONG_HEADER != 0;
        let first = lsn.0.is_multiple_of(segment);
        // A page after a replaced record cannot also continue a record: the server refuses one with both
        // flags.
        let replaced = FIRST_IS_CONTRECORD | version.overwrite_flag;
        let contradicts = header.info & replaced == replaced;
        if header.info & !version.page_flags != 0 || long != first || contradicts {
            return Err(PageFault::Flags { found: header.info });
        }
        if long {
            self.check_long(page)?;
        }
        if header.address != lsn {
            return Err(PageFault::Address { found: header.address });
        }
        if !(least..=most).contains(&header.timeline) {
            return Err(PageFault::Timeline { found: header.timeline, least, most });
        }
        Ok(())
    }

    /// The long header that every segment of the input begins with.
    pub fn long_header(&self) -> LongHeader {
        LongHeader {
            system_identifier: self.system_identifier,
            segment_bytes: self.segment_bytes,
            page_bytes: self.page_bytes,
        }
    }

    fn check_long(&self, page: &[u8]) -> Result<(), PageFault> {
        let expected = self.long_header();
        match LongHeader::parse(page) {
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(PageFault::Foreign { found, expected }),
            None => Err(PageFault::Flags { found: LONG_HEADER }),
        }
    }
}

impl PageFault {
    /// What stood there, for a reader of the report.
    pub fn found(&self) -> String {
        match self {
            PageFault::Zero => "zeros".into(),
            PageFault::Magic { found, .. } => format!("magic 0x{found:04X}"),
            PageFault::Flags { found } => format!("page flags 0x{found:04X}"),
            PageFault::Foreign { found, .. } => found.to_string(),
            PageFault::Address { found } | PageFault::Left { found } => {
                format!("page address {found}")
            }
            PageFault::Timeline { found, .. } => format!("timeline {found}"),
        }
    }

    /// What should have stood there.
    pub fn expected(&self, lsn: Lsn) -> String {
        match self {
            PageFault::Zero => "a page header".into(),
            PageFault::Magic { expected, .. } => format!("magic 0x{expected:04X}"),
            PageFault::Flags { .. } => "flags of this release and place".into(),
            PageFault::Foreign { expected, .. } => expected.to_string(),
            PageFault::Address { .. } | PageFault::Left { .. } => format!("page address {lsn}"),
            PageFault::Timeline { least, most, .. } if least == most => format!("timeline {least}"),
            PageFault::Timeline { least: 0, most, .. } => format!("timeline {most} or before"),
            PageFault::Timeline { least, most, .. } => format!("timeline {least} to {most}"),
        }
    }
}

impl fmt::Display for LongHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cluster {}, segments of {} bytes, pages of {} bytes",
            self.system_identifier, self.segment_bytes, self.page_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    const GEOMETRY: Geometry = Geometry {
        version: &VERSIONS[7],
        system_identifier: 42,
        segment_bytes: 1 << 20,
        page_bytes: 8192,
    };

    fn long_page() -> Vec<u8> {
        let mut page = vec![0u8; 64];
        page[0..2].copy_from_slice(&0xD110u16.to_le_bytes());
        page[2..4].copy_from_slice(&0x0006u16.to_le_bytes());
        page[4..8].copy_from_slice(&1u32.to_le_bytes());
        page[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        page[24..32].copy_from_slice(&42u64.to_le_bytes());
        page[32..36].copy_from_slice(&(1u32 << 20).to_le_bytes());
        page[36..40].copy_from_slice(&8192u32.to_le_bytes());
        page
    }

    fn check(page: &[u8], lsn: u64) -> Result<(), PageFault> {
        let header = PageHeader::parse(page).expect("64 bytes");
        GEOMETRY.check(&header, page, Lsn(lsn), (1, 1))
    }

    #[test]
    fn a_first_page_is_believed_at_its_own_place_only() {
        assert_eq!(check(&long_page(), 1 << 20), Ok(()));
        let found = Lsn(1 << 20);
        assert_eq!(check(&long_page(), 2 << 20), Err(PageFault::Address { found }));
        assert_eq!(check(&long_page(), (1 << 20) + 8192), Err(PageFault::Flags { found: 6 }));
    }

    #[test]
    fn each_field_is_checked() {
        let with = |at: usize, byte: u8| {
            let mut page = long_page();
            page[at] = byte;
            check(&page, 1 << 20)
        };
        assert!(matches!(with(0, 0x13), Err(PageFault::Magic { found: 0xD113, .. })));
        assert_eq!(with(2, 0x86), Err(PageFault::Flags { found: 0x86 }));
        assert!(matches!(with(4, 2), Err(PageFault::Timeline { found: 2, .. })));
        assert!(matches!(with(24, 43), Err(PageFault::Foreign { .. })));
        assert_eq!(check(&[0; 64], 1 << 20), Err(PageFault::Zero));
    }
}
