//! What all runs of one scan have in common; and the checks that make bytes a valid record.

use super::damage::Cause;
use super::observe::Select;
use super::usual_types::UsualTypes;
use crate::input::moved::SegmentDirectories;
use std::ops::Range;
use std::sync::Arc;
use walstat_format::block::walk;
use walstat_format::body::Body;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::record::Record;
use walstat_format::record_header::{CRC_OFFSET, HeaderFault, RECORD_HEADER_BYTES, RecordHeader};

/// What all runs of one scan have in common.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Release, cluster and sizes.
    pub geometry: Geometry,
    /// The types of records that the fast way takes.
    pub(crate) usual_types: &'static UsualTypes,
    /// How checksums are computed; `None`: they are not verified.
    pub crc: Option<Crc32c>,
    /// Records that start before are not counted.
    pub start: Lsn,
    /// Records that end after are not counted.
    pub end: Lsn,
    /// Where segments are looked for that are gone from where they were found.
    pub directories: SegmentDirectories,
    /// Whether files that nobody writes to any more are mapped.
    pub map_files: bool,
    /// Stop after that many counted records; such a scan is one run.
    pub limit: Option<u64>,
    /// The filters; `None`: all records are counted.
    pub select: Option<Arc<dyn Select>>,
}

/// The first bytes of a record, with the state of its checksum.
#[derive(Debug, Clone, Copy)]
pub struct Head<'r> {
    /// All bytes, or at least everything before the payload.
    pub bytes: &'r [u8],
    /// The state of the checksum after the last byte; only the header is to be added.
    pub crc: u32,
}

impl Scope {
    /// Whether the filters let a record pass.
    #[inline(always)]
    pub fn selects(&self, record: &Record<'_>) -> bool {
        // A copy, so that the record itself can stay in registers where there are no filters.
        self.select.as_ref().is_none_or(|select| {
            let copy = *record;
            select.accepts(&copy)
        })
    }

    /// Bytes of `[from, to)` that are in the range.
    pub fn clip(&self, from: Lsn, to: Lsn) -> u64 {
        to.min(self.end).0.saturating_sub(from.max(self.start).0)
    }

    /// Whether the page of the byte before `end` lies after the range.
    pub fn is_after(&self, end: Lsn) -> bool {
        let page = u64::from(self.geometry.page_bytes);
        end.0.saturating_sub(1) / page * page >= self.end.0
    }

    /// The state of a checksum over the body of `record`, which is whole.
    pub(crate) fn body_crc(&self, record: &[u8]) -> u32 {
        let body = record.get(RECORD_HEADER_BYTES..).unwrap_or_default();
        self.crc.map_or(Crc32c::START, |crc| crc.update(Crc32c::START, body))
    }

    /// Checks as much of a record header as `bytes` hold: at a page's end that may be only the length,
    /// which `bytes` must have.
    pub(crate) fn check_header(
        &self,
        lsn: Lsn,
        bytes: &[u8],
        total_bytes: u32,
        previous: Option<Lsn>,
    ) -> Result<(), Cause> {
        if let Some(head) = bytes.first_chunk::<RECORD_HEADER_BYTES>() {
            let header = RecordHeader::parse(head);
            let version = self.geometry.version;
            return header.check(version, lsn, previous).map_err(Cause::Header);
        }
        if (total_bytes as usize) < RECORD_HEADER_BYTES {
            return Err(Cause::Header(HeaderFault::Length { found: total_bytes }));
        }
        Ok(())
    }

    /// Makes a record of bytes that are all there, if it is valid; `place`: from its first byte to the
    /// one after its last.
    pub fn decode<'r>(
        &self,
        place: Range<Lsn>,
        head: Head<'r>,
        previous: Option<Lsn>,
    ) -> Result<Record<'r>, Cause> {
        let version = self.geometry.version;
        let bytes = head.bytes.first_chunk::<RECORD_HEADER_BYTES>().ok_or(Cause::Cut)?;
        let header = RecordHeader::parse(bytes);
        header.check(version, place.start, previous).map_err(Cause::Header)?;
        if let Some(crc) = self.crc {
            let found = Crc32c::finish(crc.update(head.crc, &bytes[..CRC_OFFSET]));
            if found != header.crc {
                return Err(Cause::Checksum { found, expected: header.crc });
            }
        }
        let head = head.bytes;
        let parts = walk(head, header.total_bytes, version, |_| ()).map_err(Cause::Body)?;
        let Range { start: lsn, end } = place;
        Ok(Record { lsn, end, header, parts, version, body: Body::in_one_piece(head) })
    }
}
