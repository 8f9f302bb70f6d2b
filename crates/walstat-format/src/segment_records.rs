//! The records of one segment that is in memory: the simplest way to read WAL, without files,
//! without threads and without recovery from damage.

use crate::block::{Parts, walk};
use crate::body::Body;
use crate::crc::Crc32c;
use crate::lsn::{Lsn, MAXALIGN};
use crate::page::{Geometry, LongHeader, PageHeader};
use crate::record::Record;
use crate::record_header::{RECORD_HEADER_BYTES, RecordHeader};
use crate::version::Magic;
use std::borrow::Cow;

/// The records of a segment, from the first that begins in it; `None` if `segment` does not begin
/// as a segment of a release that is read does.
///
/// The first record that is not valid, or that goes on in the next segment, is the end.
pub fn records_of(segment: &[u8]) -> Option<SegmentRecords<'_>> {
    let first = PageHeader::parse(segment)?;
    let Magic::Known(version) = Magic::of(first.magic) else { return None };
    let LongHeader { system_identifier, segment_bytes, page_bytes } = LongHeader::parse(segment)?;
    let geometry = Geometry { version, system_identifier, segment_bytes, page_bytes };
    geometry.check(&first, segment, first.address, ANY_TIMELINE).ok()?;
    geometry.long_header().is_plausible().then_some(())?;
    let (start, at) = (first.address, first.bytes());
    let crc = Crc32c::detect();
    let mut records = SegmentRecords { segment, geometry, crc, start, at, previous: None };
    // What is left of the record that began in the segment before.
    if first.continues() && records.content(first.remaining as usize).is_none() {
        records.at = segment.len();
    }
    Some(records)
}

const ANY_TIMELINE: (u32, u32) = (0, u32::MAX);

/// Iterates over the records of a segment: made by [`records_of`].
#[derive(Debug, Clone)]
pub struct SegmentRecords<'a> {
    segment: &'a [u8],
    geometry: Geometry,
    crc: Crc32c,
    /// Where the segment begins.
    start: Lsn,
    /// The first byte that was not read yet.
    at: usize,
    /// The record before.
    previous: Option<Lsn>,
}

/// A valid record with its bytes: borrowed, or put together where it crosses a page.
#[derive(Debug, Clone)]
pub struct SegmentRecord<'a> {
    lsn: Lsn,
    end: Lsn,
    header: RecordHeader,
    parts: Parts,
    geometry: Geometry,
    bytes: Cow<'a, [u8]>,
}

impl SegmentRecord<'_> {
    /// The view of it that tells its type, blocks and data.
    pub fn view(&self) -> Record<'_> {
        Record {
            lsn: self.lsn,
            end: self.end,
            header: self.header,
            parts: self.parts,
            version: self.geometry.version,
            body: Body::in_one_piece(&self.bytes),
        }
    }
}

impl<'a> Iterator for SegmentRecords<'a> {
    type Item = SegmentRecord<'a>;

    fn next(&mut self) -> Option<SegmentRecord<'a>> {
        let record = self.record();
        match &record {
            Some(record) => self.previous = Some(record.lsn),
            // An iterator that met an error is finished.
            None => self.at = self.segment.len(),
        }
        record
    }
}

impl<'a> SegmentRecords<'a> {
    fn record(&mut self) -> Option<SegmentRecord<'a>> {
        self.at = self.at.next_multiple_of(MAXALIGN);
        if self.is_at_page() && self.pass_page_header()?.continues() {
            return None;
        }
        let lsn = self.lsn();
        // A length is never split: pages end at multiples of 8, too.
        let total_bytes = u32::from_le_bytes(*self.segment.get(self.at..)?.first_chunk()?);
        let bytes = self.content(total_bytes as usize)?;
        let header = RecordHeader::parse(bytes.first_chunk::<RECORD_HEADER_BYTES>()?);
        header.check(self.geometry.version, lsn, self.previous).ok()?;
        (self.crc.record(&bytes) == header.crc).then_some(())?;
        let parts = walk(&bytes, total_bytes, self.geometry.version, |_| {}).ok()?;
        let (end, geometry) = (self.lsn(), self.geometry);
        Some(SegmentRecord { lsn, end, header, parts, geometry, bytes })
    }

    /// The next `count` bytes of a record, without the page headers between them.
    fn content(&mut self, count: usize) -> Option<Cow<'a, [u8]>> {
        let page_bytes = self.geometry.page_bytes as usize;
        let mut taken = Cow::Borrowed(&[][..]);
        while taken.len() < count {
            let left = count - taken.len();
            if self.is_at_page() {
                let header = self.pass_page_header()?;
                (header.continues() && header.remaining as usize == left).then_some(())?;
            }
            let length = left.min(page_bytes - self.at % page_bytes);
            let piece = self.segment.get(self.at..self.at + length)?;
            self.at += length;
            if taken.is_empty() {
                taken = Cow::Borrowed(piece);
            } else {
                taken.to_mut().extend_from_slice(piece);
            }
        }
        Some(taken)
    }

    fn is_at_page(&self) -> bool {
        self.at.is_multiple_of(self.geometry.page_bytes as usize)
    }

    fn pass_page_header(&mut self) -> Option<PageHeader> {
        let page = self.segment.get(self.at..)?;
        let header = PageHeader::parse(page)?;
        self.geometry.check(&header, page, self.lsn(), ANY_TIMELINE).ok()?;
        self.at += header.bytes();
        Some(header)
    }

    fn lsn(&self) -> Lsn {
        Lsn(self.start.0 + self.at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{FIRST_IS_CONTRECORD, LONG_HEADER};
    use crate::rmgr;
    use crate::version::VERSIONS;

    const START: u64 = 5 << 20;
    const PAGE: usize = 8192;

    /// The start of a segment of 1 MiB, on whose first page `remaining` bytes of an earlier record
    /// stand.
    struct Segment {
        bytes: Vec<u8>,
        previous: u64,
    }

    impl Segment {
        fn new(remaining: usize) -> Segment {
            let mut segment = Segment { bytes: Vec::new(), previous: START - 32 };
            segment.page_header(remaining);
            segment.bytes.resize((40 + remaining).next_multiple_of(8), 0xEE);
            segment
        }

        fn page_header(&mut self, remaining: usize) {
            let is_first = self.bytes.is_empty();
            let long = if is_first { LONG_HEADER } else { 0 };
            let info = long | if remaining > 0 { FIRST_IS_CONTRECORD } else { 0 };
            let address = START + self.bytes.len() as u64;
            self.bytes.extend(VERSIONS[7].magic.to_le_bytes());
            self.bytes.extend(info.to_le_bytes());
            self.bytes.extend(1u32.to_le_bytes());
            self.bytes.extend(address.to_le_bytes());
            self.bytes.extend((remaining as u32).to_le_bytes());
            self.bytes.extend([0; 4]);
            if is_first {
                self.bytes.extend(42u64.to_le_bytes());
                self.bytes.extend((1u32 << 20).to_le_bytes());
                self.bytes.extend((PAGE as u32).to_le_bytes());
            }
        }

        /// A logical message with so much main data.
        fn record(&mut self, data: usize) -> u64 {
            let mut record = vec![0; RECORD_HEADER_BYTES];
            record.push(254);
            record.extend((data as u32).to_le_bytes());
            record.extend((0..data).map(|byte| byte as u8));
            let total = record.len() as u32;
            record[..4].copy_from_slice(&total.to_le_bytes());
            record[8..16].copy_from_slice(&self.previous.to_le_bytes());
            record[17] = rmgr::LOGICAL_MESSAGE;
            let crc = Crc32c::portable().record(&record);
            record[20..24].copy_from_slice(&crc.to_le_bytes());
            if self.bytes.len().is_multiple_of(PAGE) {
                self.page_header(0);
            }
            self.previous = START + self.bytes.len() as u64;
            for (index, byte) in record.iter().enumerate() {
                if self.bytes.len().is_multiple_of(PAGE) {
                    self.page_header(record.len() - index);
                }
                self.bytes.push(*byte);
            }
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            self.previous
        }
    }

    fn found(segment: &[u8]) -> Vec<(u64, u32)> {
        let records = records_of(segment).expect("a segment");
        records.map(|record| (record.lsn.0, record.view().parts.main_data_bytes)).collect()
    }

    #[test]
    fn records_are_found_over_page_boundaries() {
        for remaining in [0, 100] {
            let mut segment = Segment::new(remaining);
            let lengths = [10, 8000, 20_000, 7, 500];
            let want: Vec<_> =
                lengths.iter().map(|length| (segment.record(*length), *length as u32)).collect();
            assert_eq!(found(&segment.bytes), want);
            let mut records = records_of(&segment.bytes).expect("a segment");
            let crossing = records.nth(2).expect("three");
            let data: Vec<u8> = (0..20_000).map(|byte| byte as u8).collect();
            assert_eq!(crossing.view().main_data().as_deref(), Some(&data[..]));
            assert_eq!(crossing.view().record_type().name(&VERSIONS[7]), "MESSAGE");
        }
    }

    #[test]
    fn the_first_record_that_is_not_valid_is_the_end() {
        let mut segment = Segment::new(0);
        let first = segment.record(10);
        let second = segment.record(20) - START;
        segment.record(30);
        segment.bytes[second as usize + 40] ^= 1;
        assert_eq!(found(&segment.bytes), [(first, 10)]);
        let cut = &segment.bytes[..second as usize - 8];
        assert_eq!(found(cut), []);
        assert_eq!(found(&Segment::new(9000).bytes[..PAGE]), []);
    }

    #[test]
    fn what_does_not_begin_as_a_segment_has_no_records() {
        let mut segment = Segment::new(0);
        segment.record(10);
        assert!(records_of(&segment.bytes[..39]).is_none());
        assert!(records_of(&[0; 8192]).is_none());
        segment.bytes[36] = 1;
        assert!(records_of(&segment.bytes).is_none());
    }
}
