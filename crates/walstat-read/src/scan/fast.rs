//! The fast way: usual records of a window, one after the other, over as many of its pages as
//! hold nothing unusual.
//!
//! It only ever does what the reader's own steps would do, in fewer instructions: it begins
//! after a valid record, and where anything is unusual (a switch, a record that recovery may end at, one that
//! goes on after the window, the last page of the range, anything wrong) it stops before that record with
//! nothing done, and the reader takes a step. In pseudo-code: let the checksums of all whole
//! records of the page be verified in one call; then, record by record, check the header and its
//! link to the one before, walk over its block headers, hand it to the dimensions, step to the
//! next multiple of 8; follow the last one over the page headers to its end; go on after it.

use super::observe::{Observe, Shown};
use super::page_buffer::Page;
use super::scope::Scope;
use walstat_format::block::needed::walk_needed;
use walstat_format::body::Body;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::{LONG_HEADER, PageHeader, SHORT_HEADER_BYTES};
use walstat_format::record::Record;
use walstat_format::record_header::{CRC_OFFSET, RECORD_HEADER_BYTES, RecordHeader};

/// Usual records that lie one behind the other: where they are read from, and what they add up to.
pub(super) struct UsualRecords<'s, 'w> {
    scope: &'s Scope,
    /// The timeline of the page before.
    timeline: u32,
    /// The page that they begin in, and where.
    page: Page<'w>,
    offset: usize,
    /// Up to where they were read, from the start of that page.
    at: usize,
    /// Whole pages in the range and of one segment.
    bytes: &'w [u8],
    page_bytes: usize,
    /// Where the last record starts.
    pub previous: Lsn,
    /// The header of the last record; `None`: none was read.
    last: Option<&'w [u8; RECORD_HEADER_BYTES]>,
    record_bytes: usize,
    /// Bytes of records that the filters left out.
    pub filtered_bytes: usize,
    /// Commits among them.
    pub filtered_commits: usize,
    /// Bytes of page headers inside of records.
    pub page_header_bytes: usize,
    /// After the last counted record; 0: none was counted.
    pub counted_end: Lsn,
    /// Memory for records that wait to be handed on.
    pub waiting: Vec<Shown<'static>>,
}

/// What usual records are handed to.
pub(super) trait Accept<'w> {
    /// Takes note of a record.
    fn take(&mut self, record: Record<'w>, selected: bool);

    /// Nothing more comes.
    fn finish(&mut self);
}

/// A dimension that is handed each record at once.
pub(super) struct Direct<'o, O>(pub &'o mut O);

impl<'w, O: Observe> Accept<'w> for Direct<'_, O> {
    #[inline(always)]
    fn take(&mut self, record: Record<'w>, selected: bool) {
        if selected {
            self.0.observe(&record);
        } else {
            self.0.passed_over(&record);
        }
    }

    fn finish(&mut self) {}
}

/// So many records wait at most: what is known of them fits the first-level cache.
const BATCH_RECORDS: usize = 128;

/// Records that wait until they are handed on together.
struct Batch<'b, 'w> {
    records: Vec<Shown<'w>>,
    hand_on: &'b mut dyn FnMut(&[Shown<'_>]),
}

impl<'w> Accept<'w> for Batch<'_, 'w> {
    #[inline(always)]
    fn take(&mut self, record: Record<'w>, selected: bool) {
        self.records.push(Shown { record, selected });
        if self.records.len() == BATCH_RECORDS {
            self.finish();
        }
    }

    #[inline(never)]
    fn finish(&mut self) {
        (self.hand_on)(&self.records);
        self.records.clear();
    }
}

/// Memory of records that were handed on, for others: nothing is left in it.
#[expect(clippy::unnecessary_filter_map, reason = "it only ever changes the lifetime")]
fn emptied<'w>(mut records: Vec<Shown<'_>>) -> Vec<Shown<'w>> {
    records.clear();
    // Collecting in place keeps the memory.
    records.into_iter().filter_map(|_| None).collect()
}

impl<'s, 'w> UsualRecords<'s, 'w> {
    /// Those from `offset` of `page` on, the last record before them at `previous`, on a page of this
    /// timeline.
    pub(super) fn new(
        scope: &'s Scope,
        timeline: u32,
        page: Page<'w>,
        offset: usize,
        previous: Lsn,
    ) -> UsualRecords<'s, 'w> {
        UsualRecords {
            scope,
            timeline,
            page,
            offset,
            at: offset,
            bytes: usual_pages(scope, &page),
            page_bytes: scope.geometry.page_bytes as usize,
            previous,
            last: None,
            record_bytes: 0,
            filtered_bytes: 0,
            filtered_commits: 0,
            page_header_bytes: 0,
            counted_end: Lsn(0),
            waiting: Vec::new(),
        }
    }

    /// Reads them and hands them on, a batch at a time.
    pub(super) fn read_batches(&mut self, hand_on: &mut dyn FnMut(&[Shown<'_>])) {
        let mut records = emptied(std::mem::take(&mut self.waiting));
        records.reserve(BATCH_RECORDS);
        let batch = self.read(Batch { records, hand_on });
        self.waiting = emptied(batch.records);
    }

    /// Reads them. Without filters the loop is compiled without them.
    pub(super) fn read<A: Accept<'w>>(&mut self, accept: A) -> A {
        if self.scope.select.is_some() {
            self.read_selected::<A, true>(accept)
        } else {
            self.read_selected::<A, false>(accept)
        }
    }

    #[inline(always)]
    fn read_selected<A: Accept<'w>, const FILTERED: bool>(&mut self, mut accept: A) -> A {
        loop {
            accept = self.whole_records::<A, FILTERED>(accept);
            match self.crossing_record(&mut accept) {
                Some(next) => self.at = next,
                None => break,
            }
        }
        accept.finish();
        accept
    }

    /// The page in which they end, and where.
    pub(super) fn end(&self) -> (Page<'w>, usize) {
        // A record that fills its page ends in that page, not at the start of the next.
        let distance = (self.at - 1) / self.page_bytes * self.page_bytes;
        let page = self.page.at(distance, self.scope.geometry.page_bytes);
        page.map_or((self.page, self.at), |page| (page, self.at - distance))
    }

    /// Where the first one starts.
    pub(super) fn first(&self) -> Lsn {
        self.lsn(self.offset)
    }

    /// Where the next record is to start.
    pub(super) fn next(&self) -> Lsn {
        self.lsn(self.at)
    }

    /// The header of the last one; `None`: none was read.
    pub(super) fn last_header(&self) -> Option<RecordHeader> {
        self.last.map(RecordHeader::parse)
    }

    /// Bytes of padding between them.
    pub(super) fn padding_bytes(&self) -> usize {
        self.at - self.offset - self.record_bytes - self.page_header_bytes
    }

    fn lsn(&self, at: usize) -> Lsn {
        Lsn(self.page.lsn.0 + at as u64)
    }

    /// The end of the page in which a record may start at `at`; `at` itself after a record that
    /// fills its page.
    fn page_end(&self, at: usize) -> usize {
        ((at - 1) | (self.page_bytes - 1)) + 1
    }

    /// Reads the records that lie in the page at hand. What they are handed to goes in and out by value: its
    /// address is known nowhere, so that it stays in registers.
    #[inline(never)]
    fn whole_records<A: Accept<'w>, const FILTERED: bool>(&mut self, mut accept: A) -> A {
        let (scope, at) = (self.scope, self.at);
        let (version, usual_types) = (scope.geometry.version, scope.usual_types);
        let records = self.bytes.get(at..self.page_end(at)).unwrap_or_default();
        let checked = scope.crc.map_or(records.len(), |crc| crc.verified(records));
        let checked_end = self.lsn(at + checked).0;
        let mut rest = records.get(..checked).unwrap_or_default();
        let mut previous = self.previous;
        let (mut record_bytes, mut filtered_bytes) = (0, 0);
        let mut counted_end = self.counted_end;
        while let Some(head) = rest.first_chunk::<RECORD_HEADER_BYTES>() {
            let header = RecordHeader::parse(head);
            let total = header.total_bytes as usize;
            let lsn = Lsn(checked_end - rest.len() as u64);
            // A record of 24 bytes is a switch, and follows on none.
            if !header.follows(previous) {
                break;
            }
            let Some(bytes) = rest.get(..total) else { break };
            let needed = usual_types.needed(head);
            let walked = walk_needed(bytes, header.total_bytes, version, needed);
            let Some(parts) = walked else { break };
            let end = Lsn(lsn.0 + total as u64);
            let body = Body::in_one_piece(bytes);
            let record = Record { lsn, end, header, parts, version, body };
            let selected = !FILTERED || scope.selects(&record);
            accept.take(record, selected);
            if FILTERED && selected {
                counted_end = end;
            } else if FILTERED {
                filtered_bytes += total;
                self.filtered_commits += usize::from(header.is_commit());
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
            let last = (previous.0 - self.page.lsn.0) as usize;
            self.last = self.bytes.get(last..).and_then(<[u8]>::first_chunk);
            let total_bytes = self.last_header().map_or(0, |header| header.total_bytes);
            let end = Lsn(previous.0 + u64::from(total_bytes));
            counted_end = if FILTERED { counted_end } else { end };
        }
        self.previous = previous;
        self.record_bytes += record_bytes;
        self.filtered_bytes += filtered_bytes;
        self.counted_end = counted_end;
        self.at = at + checked - rest.len();
        accept
    }

    /// Reads the record at hand, which ends on a later page, and says where the next one starts.
    #[inline(always)]
    fn crossing_record<A: Accept<'w>>(&mut self, accept: &mut A) -> Option<usize> {
        let (scope, at) = (self.scope, self.at);
        let version = scope.geometry.version;
        let head = self.bytes.get(at..self.page_end(at))?;
        let start = head.first_chunk()?;
        let (end, page_header_bytes) = self.follow(head, start)?;
        let header = RecordHeader::parse(start);
        let lsn = self.lsn(at);
        let total_bytes = header.total_bytes;
        let needed = scope.usual_types.needed(start);
        let parts = walk_needed(head, total_bytes, version, needed)?;
        if !header.follows(self.previous) {
            return None;
        }
        if total_bytes - parts.head_bytes == parts.main_data_bytes {
            // A dimension may look at the start of main data alone, which a step keeps in one piece.
            return None;
        }
        let pages = self.bytes.get(at + head.len()..)?;
        let body = Body::over_pages(head, pages, self.page_bytes);
        let record = Record { lsn, end: self.lsn(end), header, parts, version, body };
        let selected = scope.selects(&record);
        accept.take(record, selected);
        if selected {
            self.counted_end = record.end;
        } else {
            self.filtered_bytes += total_bytes as usize;
            self.filtered_commits += usize::from(header.is_commit());
        }
        self.record_bytes += total_bytes as usize;
        self.page_header_bytes += page_header_bytes;
        self.previous = lsn;
        self.last = Some(start);
        Some((end + 7) & !7)
    }

    /// Follows the record at hand, of which `head` lies in its first page, over the headers of
    /// usual pages to its end, and verifies its checksum. Returns where it ends, and the bytes of the
    /// page headers in it.
    #[inline(always)]
    fn follow(&self, head: &[u8], start: &[u8; RECORD_HEADER_BYTES]) -> Option<(usize, usize)> {
        let crc = self.scope.crc;
        let header = RecordHeader::parse(start);
        let mut left = (header.total_bytes as usize).checked_sub(head.len())?;
        let mut page = self.at + head.len();
        if left == 0 || left > self.bytes.len() - page {
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
            let bytes = self.bytes.get(page..page + self.page_bytes)?;
            let content = self.continuation(bytes, self.lsn(page), left)?;
            piece = content.get(..left).unwrap_or(content);
            left -= piece.len();
            page_header_bytes += SHORT_HEADER_BYTES;
            page += self.page_bytes;
        }
        let found = crc.map(|crc| Crc32c::finish(crc.update(state, &start[..CRC_OFFSET])));
        let end = page - self.page_bytes + SHORT_HEADER_BYTES + piece.len();
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
}

/// The bytes of the whole pages, from `page` on, that lie in the range and in its segment.
fn usual_pages<'w>(scope: &Scope, page: &Page<'w>) -> &'w [u8] {
    let geometry = &scope.geometry;
    let segment = u64::from(geometry.segment_bytes);
    let segment_left = segment - page.lsn.0 % segment;
    let range_left = scope.end.0.saturating_sub(page.lsn.0);
    let most = usize::try_from(segment_left.min(range_left)).unwrap_or(usize::MAX);
    let page_bytes = geometry.page_bytes as usize;
    let bytes = page.window.len().min(most) / page_bytes * page_bytes;
    page.window.get(..bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        let records: Vec<Shown<'static>> = Vec::with_capacity(BATCH_RECORDS);
        let (place, capacity) = (records.as_ptr() as usize, records.capacity());
        let again: Vec<Shown<'_>> = emptied(records);
        assert_eq!((again.as_ptr() as usize, again.capacity()), (place, capacity));
    }
}
