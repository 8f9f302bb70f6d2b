//! The fast way: usual records of a window, one after the other, over as many of its pages as
//! hold nothing unusual.
//!
//! It only ever does what the reader's own steps would do, in fewer instructions: it begins
//! after a valid record, and where anything is unusual (a switch, a record that goes on after
//! the window, the last page of the range, anything wrong) it stops before that record with
//! nothing done, and the reader takes a step. In pseudo-code: let the checksums of all whole
//! records of the page be verified in one call; then, record by record, check the header and its
//! link to the one before, walk over its block headers, hand it to the dimensions, step to the
//! next multiple of 8; follow the last one over the page headers to its end; go on after it.

use super::body::Body;
use super::books::Heading;
use super::reader::Reader;
use super::record::{Observe, Record, Select};
use super::run::Last;
use super::window::Page;
use crate::wal::block::walk;
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use crate::wal::page::{LONG_HEADER, PageHeader, SHORT_HEADER_BYTES};
use crate::wal::record::{CRC_OFFSET, RECORD_HEADER_BYTES, RecordHeader};

/// A stretch of usual records: where it is read from, and what it adds up to.
struct Stretch<'w> {
    /// Where its bytes begin: a page's start.
    lsn: Lsn,
    /// Whole pages in the range and of one segment.
    bytes: &'w [u8],
    page_bytes: usize,
    /// Where the last record starts.
    previous: Lsn,
    /// The header of the last record; `None`: none was read.
    last: Option<&'w [u8; RECORD_HEADER_BYTES]>,
    record_bytes: usize,
    filtered_bytes: usize,
    filtered_commits: usize,
    page_header_bytes: usize,
    /// After the last counted record; 0: none was counted.
    counted_end: Lsn,
}

impl<'w> Stretch<'w> {
    fn lsn(&self, at: usize) -> Lsn {
        Lsn(self.lsn.0 + at as u64)
    }

    /// The end of the page in which a record may start at `at`; `at` itself after a record that
    /// fills its page.
    fn page_end(&self, at: usize) -> usize {
        ((at - 1) | (self.page_bytes - 1)) + 1
    }
}

impl<'w, S: Select, O: Observe> Reader<'_, S, O> {
    /// Reads usual records from `offset` of `page` on, the last one before it at `previous`, and
    /// says where it stopped.
    pub(super) fn fast(
        &mut self,
        page: Page<'w>,
        offset: usize,
        previous: Lsn,
    ) -> (Page<'w>, usize) {
        let page_bytes = self.scope.geometry.page_bytes;
        let mut stretch = Stretch {
            lsn: page.lsn,
            bytes: self.usual_pages(&page),
            page_bytes: page_bytes as usize,
            previous,
            last: None,
            record_bytes: 0,
            filtered_bytes: 0,
            filtered_commits: 0,
            page_header_bytes: 0,
            counted_end: Lsn(0),
        };
        let mut at = offset;
        loop {
            at = self.whole_records(at, &mut stretch);
            match self.crossing_record(at, &mut stretch) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.leave_fast(offset, at, &stretch);
        // A record that fills its page ends in that page, not at the start of the next.
        let distance = (at - 1) / stretch.page_bytes * stretch.page_bytes;
        page.at(distance, page_bytes).map_or((page, at), |page| (page, at - distance))
    }

    /// The bytes of the whole pages, from `page` on, that lie in the range and in its segment.
    fn usual_pages(&self, page: &Page<'w>) -> &'w [u8] {
        let geometry = &self.scope.geometry;
        let segment = u64::from(geometry.segment_bytes);
        let segment_left = segment - page.lsn.0 % segment;
        let range_left = self.scope.end.0.saturating_sub(page.lsn.0);
        let most = usize::try_from(segment_left.min(range_left)).unwrap_or(usize::MAX);
        let page_bytes = geometry.page_bytes as usize;
        let bytes = page.window.len().min(most) / page_bytes * page_bytes;
        page.window.get(..bytes).unwrap_or_default()
    }

    /// Reads the records that lie in the page from `at` on and says where it stopped.
    #[inline(never)]
    fn whole_records(&mut self, at: usize, stretch: &mut Stretch<'w>) -> usize {
        let scope = self.scope;
        let version = scope.geometry.version;
        let records = stretch.bytes.get(at..stretch.page_end(at)).unwrap_or_default();
        let checked = scope.crc.map_or(records.len(), |crc| crc.verified(records));
        let checked_end = stretch.lsn(at + checked).0;
        let mut rest = records.get(..checked).unwrap_or_default();
        let mut previous = stretch.previous;
        let (mut record_bytes, mut filtered_bytes) = (0, 0);
        let mut counted_end = stretch.counted_end;
        while let Some(head) = rest.first_chunk::<RECORD_HEADER_BYTES>() {
            let header = RecordHeader::parse(head);
            let total = header.total_bytes as usize;
            let lsn = Lsn(checked_end - rest.len() as u64);
            // A record of 24 bytes is a switch.
            if total <= RECORD_HEADER_BYTES || header.check(version, lsn, Some(previous)).is_err() {
                break;
            }
            let Some(bytes) = rest.get(..total) else { break };
            let Ok(parts) = walk(bytes, header.total_bytes, version, |_| ()) else { break };
            let end = Lsn(lsn.0 + total as u64);
            let body = Body::in_one_piece(bytes);
            let record = Record { lsn, end, header, parts, version, body };
            if scope.select.accepts(&record) {
                self.run.observer.observe(&record);
                counted_end = end;
            } else {
                self.run.observer.passed_over(&record);
                filtered_bytes += total;
                stretch.filtered_commits += usize::from(header.is_commit());
            }
            record_bytes += total;
            previous = lsn;
            let Some(next) = rest.get((total + 7) & !7..) else {
                // Only at the end of bytes that were cut off. A branch that is never taken costs less
                // than clamping the offset for every record.
                rest = &[];
                break;
            };
            rest = next;
        }
        if record_bytes > 0 {
            let last = (previous.0 - stretch.lsn.0) as usize;
            stretch.last = stretch.bytes.get(last..).and_then(<[u8]>::first_chunk);
        }
        stretch.previous = previous;
        stretch.record_bytes += record_bytes;
        stretch.filtered_bytes += filtered_bytes;
        stretch.counted_end = counted_end;
        at + checked - rest.len()
    }

    /// Reads the record that starts at `at` and ends on a later page, and says where the next one
    /// starts.
    #[inline(always)]
    fn crossing_record(&mut self, at: usize, stretch: &mut Stretch<'w>) -> Option<usize> {
        let scope = self.scope;
        let version = scope.geometry.version;
        let head = stretch.bytes.get(at..stretch.page_end(at))?;
        let start = head.first_chunk()?;
        let (end, page_header_bytes) = self.follow(at, head, start, stretch)?;
        let header = RecordHeader::parse(start);
        let lsn = stretch.lsn(at);
        header.check(version, lsn, Some(stretch.previous)).ok()?;
        let total_bytes = header.total_bytes;
        let parts = walk(head, total_bytes, version, |_| ()).ok()?;
        if total_bytes - parts.head_bytes == parts.main_data_bytes {
            // A dimension may look at the start of main data alone, which a step keeps in one piece.
            return None;
        }
        let pages = stretch.bytes.get(at + head.len()..)?;
        let body = Body::over_pages(head, pages, stretch.page_bytes);
        let record = Record { lsn, end: stretch.lsn(end), header, parts, version, body };
        if scope.select.accepts(&record) {
            self.run.observer.observe(&record);
            stretch.counted_end = record.end;
        } else {
            self.run.observer.passed_over(&record);
            stretch.filtered_bytes += total_bytes as usize;
            stretch.filtered_commits += usize::from(header.is_commit());
        }
        stretch.record_bytes += total_bytes as usize;
        stretch.page_header_bytes += page_header_bytes;
        stretch.previous = lsn;
        stretch.last = Some(start);
        Some((end + 7) & !7)
    }

    /// Follows the record at `at`, of which `head` lies in its first page, over the headers of
    /// usual pages to its end, and verifies its checksum. Returns where it ends, and the bytes of the
    /// page headers in it.
    #[inline(always)]
    fn follow(
        &self,
        at: usize,
        head: &[u8],
        start: &[u8; RECORD_HEADER_BYTES],
        stretch: &Stretch<'w>,
    ) -> Option<(usize, usize)> {
        let crc = self.scope.crc;
        let header = RecordHeader::parse(start);
        let mut left = (header.total_bytes as usize).checked_sub(head.len())?;
        let mut page = at + head.len();
        if left == 0 || left > stretch.bytes.len() - page {
            return None;
        }
        let mut state = Crc32c::START;
        let mut piece = head.get(RECORD_HEADER_BYTES..)?;
        let mut page_header_bytes = 0;
        loop {
            state = crc.map_or(state, |crc| crc.update(state, piece));
            if left == 0 {
                break;
            }
            let bytes = stretch.bytes.get(page..page + stretch.page_bytes)?;
            let content = self.continuation(bytes, stretch.lsn(page), left)?;
            piece = content.get(..left).unwrap_or(content);
            left -= piece.len();
            page_header_bytes += SHORT_HEADER_BYTES;
            page += stretch.page_bytes;
        }
        let found = crc.map(|crc| Crc32c::finish(crc.update(state, &start[..CRC_OFFSET])));
        let end = page - stretch.page_bytes + SHORT_HEADER_BYTES + piece.len();
        found.is_none_or(|found| found == header.crc).then_some((end, page_header_bytes))
    }

    /// What lies after the header of a usual page on which a record goes on for `left` bytes.
    #[inline(always)]
    fn continuation<'p>(&self, page: &'p [u8], lsn: Lsn, left: usize) -> Option<&'p [u8]> {
        let version = self.scope.geometry.version;
        let header = PageHeader::parse(page)?;
        let as_expected = header.magic == version.magic
            && header.info & !(version.page_flags & !LONG_HEADER & !version.overwrite_flag) == 0
            && header.continues()
            && header.timeline == self.timeline
            && header.address == lsn
            && header.remaining as usize == left;
        page.get(SHORT_HEADER_BYTES..).filter(|_| as_expected)
    }

    /// Takes note of what was read in `[from, to)` of a stretch.
    fn leave_fast(&mut self, from: usize, to: usize, stretch: &Stretch<'_>) {
        let Some(header) = stretch.last.map(RecordHeader::parse) else { return };
        let padding = to - from - stretch.record_bytes - stretch.page_header_bytes;
        let run = &mut self.run;
        run.books.add(Heading::Padding, padding as u64);
        run.books.add(Heading::PageHeader, stretch.page_header_bytes as u64);
        run.books.add(Heading::Filtered, stretch.filtered_bytes as u64);
        run.filtered_commits += stretch.filtered_commits as u64;
        run.follow(Last { lsn: stretch.previous, next: stretch.lsn(to), header });
        run.first_in_range.get_or_insert(stretch.lsn(from));
        if stretch.counted_end > Lsn(0) {
            run.counted_end = Some(stretch.counted_end.aligned());
        }
    }
}
