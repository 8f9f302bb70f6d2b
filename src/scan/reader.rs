//! Pages in, records out: the state machine that walks over the pages of a run.
//!
//! It does no I/O. Whoever has the bytes pushes page after page; a record that lies in one
//! page is handed on as a view into it, one that crosses pages is followed piece by piece: its
//! checksum is carried along and only its first bytes are kept, so an image is never copied.
//!
//! Hot path, in pseudo-code (`fast`): let the checksums of all whole records of the page be
//! verified in one call; then, record by record, check the header and its link to the one
//! before, walk over its block headers, hand it to the dimensions, step to the next multiple
//! of 8. Everything unusual (the first record, a record that crosses the page, a switch, the
//! end of the range, anything wrong) leaves that loop and is dealt with by `step`, once.

use super::books::Heading;
use super::damage::{Cause, Gap};
use super::pending::Pending;
use super::record::{Observe, Record, Select};
use super::run::{Last, Run};
use super::scope::{Head, Scope};
use crate::input::problem::Problem;
use crate::wal::block::walk;
use crate::wal::lsn::Lsn;
use crate::wal::page::{PageFault, PageHeader};
use crate::wal::record::{RECORD_HEADER_BYTES, RecordHeader};

/// What the reader wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next page.
    Next,
    /// The first page of the next segment: the rest of this one holds nothing.
    SkipSegment,
    /// Nothing more.
    Done,
}

/// Reads the pages of one run.
pub struct Reader<'s, S, O> {
    scope: &'s Scope<S>,
    run: Run<O>,
    /// A record that crosses a page, being followed.
    pending: Option<Pending>,
    /// Kept for its allocation.
    spare: Pending,
    /// Bytes that the page before announced of something that is not a record of ours.
    left: Option<u32>,
    timeline: u32,
    timeline_most: u32,
    switched: bool,
    /// No record was begun in the segment yet.
    begins: bool,
}

impl<'s, S: Select, O: Observe> Reader<'s, S, O> {
    /// A reader of the run of segments in `[start, end)`.
    pub fn new(scope: &'s Scope<S>, start: Lsn, end: Lsn) -> Self {
        Reader {
            scope,
            run: Run::new(start, end),
            pending: None,
            spare: Pending::default(),
            left: None,
            timeline: 0,
            timeline_most: u32::MAX,
            switched: false,
            begins: false,
        }
    }

    /// Says that the pages to come are those of a segment file of this timeline.
    pub fn begin_segment(&mut self, timeline_most: u32) {
        self.timeline_most = timeline_most;
        self.switched = false;
        self.begins = true;
    }

    /// Takes the page at `lsn`: a whole one, or what there is of it at the end of a file.
    pub fn push(&mut self, lsn: Lsn, page: &[u8]) -> Flow {
        if self.run.range_end.is_some() || self.is_behind(lsn) {
            self.reach_end();
            return Flow::Done;
        }
        self.take_page(lsn, page);
        let page_end = Lsn(lsn.0 + page.len() as u64);
        let read_to = self.run.range_end.map_or(page_end, |end| end.min(page_end));
        self.run.input_bytes += self.scope.clip(lsn, read_to);
        match () {
            () if self.run.range_end.is_some() => Flow::Done,
            () if self.switched => Flow::SkipSegment,
            () => Flow::Next,
        }
    }

    /// Takes note of bytes that need not be read: the rest of a segment behind a switch.
    pub fn skip(&mut self, from: Lsn, bytes: u64) {
        let clipped = self.scope.clip(from, Lsn(from.0 + bytes));
        self.run.input_bytes += clipped;
        self.run.target().add(Heading::Switch, clipped);
        if from.0 + bytes >= self.scope.end.0 {
            self.reach_end();
        }
    }

    /// The file ends at `lsn`, before the segment does.
    pub fn cut(&mut self, lsn: Lsn) {
        self.fail(lsn, lsn, Cause::Cut, None);
    }

    /// The bytes from `lsn` on could not be had.
    pub fn unreadable(&mut self, lsn: Lsn, text: String) {
        self.fail(lsn, lsn, Cause::Unreadable(text), None);
    }

    /// Something is wrong with the file itself.
    pub fn note(&mut self, problem: Problem) {
        self.run.problems.push(problem);
    }

    /// The end of the run; a record that goes on is left open.
    pub fn finish(mut self) -> Run<O> {
        self.run.open = self.pending.take();
        self.run
    }

    // ---- pages ----

    fn take_page(&mut self, lsn: Lsn, page: &[u8]) {
        if self.switched {
            return self.book(Heading::Switch, lsn, page.len());
        }
        let header = PageHeader::parse(page).filter(|header| header.bytes() <= page.len());
        let Some(header) = header else {
            self.fail(lsn, lsn, Cause::Cut, None);
            return self.book_rest(lsn, page);
        };
        let timelines = (self.timeline, self.timeline_most);
        match self.scope.geometry.check(&header, page, lsn, timelines) {
            Ok(()) => self.good_page(lsn, &header, page),
            Err(fault) => self.bad_page(lsn, page, fault),
        }
    }

    fn good_page(&mut self, lsn: Lsn, header: &PageHeader, page: &[u8]) {
        self.timeline = header.timeline;
        match self.pending.take() {
            Some(pending) => self.continue_record(pending, lsn, header, page),
            None => self.begin_page(lsn, header, page),
        }
    }

    fn bad_page(&mut self, lsn: Lsn, page: &[u8], fault: PageFault) {
        self.fail(lsn, lsn, Cause::Page(fault), None);
        self.book_rest(lsn, page);
    }

    /// A page on which no record of ours goes on: skips what continues there, reads records.
    fn begin_page(&mut self, lsn: Lsn, header: &PageHeader, page: &[u8]) {
        let continued = header.continues().then_some(header.remaining);
        self.check_continuation(lsn, header, continued);
        let mut offset = header.bytes();
        self.book(Heading::PageHeader, lsn, offset);
        if let Some(remaining) = continued {
            let rest = page.get(offset..).unwrap_or_default();
            let piece = rest.get(..remaining as usize).unwrap_or(rest);
            self.skip_piece(Lsn(lsn.0 + offset as u64), remaining, piece);
            let padded = piece.len().next_multiple_of(8).min(rest.len());
            let piece_end = offset + piece.len();
            self.book(Heading::Padding, Lsn(lsn.0 + piece_end as u64), padded - piece.len());
            offset += padded;
            if piece.len() < remaining as usize {
                return;
            }
        }
        self.left = Some(0);
        self.records(lsn, page, offset);
    }

    /// Takes a piece of something that is not a record of ours: the lead, or part of a gap.
    fn skip_piece(&mut self, lsn: Lsn, remaining: u32, piece: &[u8]) {
        if self.run.gap.is_none() && self.run.first.is_none() {
            self.run.lead.announced.get_or_insert(remaining);
            self.run.lead.extend(self.scope, lsn, piece);
        } else {
            self.book(Heading::Incomplete, lsn, piece.len());
        }
        self.left = Some(remaining - piece.len() as u32);
    }

    /// Whether the page continues what the page before announced, and nothing else.
    fn check_continuation(&mut self, lsn: Lsn, header: &PageHeader, continued: Option<u32>) {
        let Some(left) = self.left else {
            // The first page of the run: whoever joins it knows what should continue here.
            self.run.lead.overwritten = self.run.gap.is_none() && self.overwrites(header);
            return;
        };
        let expected = Some(left).filter(|&left| left > 0);
        if expected == continued {
            return;
        }
        if self.run.first.is_none() && self.run.gap.is_none() && self.overwrites(header) {
            self.run.lead.overwritten = true;
            return;
        }
        self.fail(lsn, lsn, Cause::Continuation { found: continued, expected }, None);
    }

    /// Whether recovery has replaced, from this page on, a record that was torn.
    fn overwrites(&self, header: &PageHeader) -> bool {
        header.info & self.scope.geometry.version.overwrite_flag != 0 && !header.continues()
    }

    /// A page on which a record of ours should go on.
    fn continue_record(
        &mut self,
        mut pending: Pending,
        lsn: Lsn,
        header: &PageHeader,
        page: &[u8],
    ) {
        let left = pending.left();
        let continued = header.continues().then_some(header.remaining);
        if continued != Some(left) {
            if self.overwrites(header) {
                self.run.drop_record(self.scope, &mut pending, Heading::Overwritten);
                self.left = Some(0);
            } else {
                let cause = Cause::Continuation { found: continued, expected: Some(left) };
                self.run.fail_record(&mut pending, lsn, cause);
                // What the page continues is part of the gap.
                self.left = Some(continued.unwrap_or(0));
            }
            self.spare = pending;
            return self.begin_page(lsn, header, page);
        }
        let content = header.bytes();
        let in_range = self.scope.clip(lsn, Lsn(lsn.0 + content as u64));
        pending.counts.add(Heading::PageHeader, in_range);
        let rest = page.get(content..).unwrap_or_default();
        let piece = rest.get(..left as usize).unwrap_or(rest);
        pending.extend(self.scope, Lsn(lsn.0 + content as u64), piece);
        if pending.left() > 0 {
            self.pending = Some(pending);
            return;
        }
        self.finish_record(pending, lsn, page, content + piece.len());
    }

    /// The last byte of a record that was followed is there, at `offset` of its last page.
    fn finish_record(&mut self, mut pending: Pending, lsn: Lsn, page: &[u8], offset: usize) {
        self.left = Some(0);
        let end = Lsn(lsn.0 + offset as u64);
        // A record that fails is in the gap now; another one may follow it all the same.
        self.run.complete(self.scope, &mut pending, end);
        self.switched = self.run.switched_at(pending.lsn);
        self.spare = pending;
        if self.run.range_end.is_some() {
            return;
        }
        if self.switched {
            return self.book(Heading::Switch, end, page.len() - offset);
        }
        let next = offset.next_multiple_of(8).min(page.len());
        self.book(Heading::Padding, end, next - offset);
        self.records(lsn, page, next);
    }

    // ---- records ----

    /// Reads the records of a page from `offset` on.
    fn records(&mut self, page_lsn: Lsn, page: &[u8], mut offset: usize) {
        while let Some(next) = self.step(page_lsn, page, offset) {
            offset = next;
            let known = self.run.previous.filter(|_| self.run.gap.is_none());
            let in_range = page_lsn.0 + offset as u64 >= self.scope.start.0;
            if let Some(previous) = known
                && in_range
                && self.scope.limit.is_none()
            {
                offset = self.fast(page_lsn, page, offset, previous);
            }
        }
    }

    /// Reads the usual records of a page from `offset` on, behind the one at `previous`, and says
    /// where it stopped.
    fn fast(&mut self, page_lsn: Lsn, page: &[u8], offset: usize, mut previous: Lsn) -> usize {
        let scope = self.scope;
        let version = scope.geometry.version;
        let in_range = usize::try_from(scope.end.0 - page_lsn.0).unwrap_or(usize::MAX);
        let page = page.get(..in_range).unwrap_or(page);
        let records = page.get(offset..).unwrap_or_default();
        let checked = scope.crc.map_or(records.len(), |crc| crc.verified(records));
        let checked_end = page_lsn.0 + (offset + checked) as u64;
        let mut rest = records.get(..checked).unwrap_or_default();
        let (mut record_bytes, mut counted_end) = (0, Lsn(0));
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
            let record = Record { lsn, end, header, parts, version, head: bytes };
            if scope.select.accepts(&record) {
                self.run.observer.observe(&record);
                counted_end = end;
            } else {
                self.run.books.add(Heading::Filtered, total as u64);
            }
            record_bytes += total;
            previous = lsn;
            let Some(behind) = rest.get((total + 7) & !7..) else {
                // The padding of the last one lies behind the range, or behind a cut file.
                rest = &[];
                break;
            };
            rest = behind;
        }
        let read = checked - rest.len();
        if read > 0 {
            self.run.books.add(Heading::Padding, (read - record_bytes) as u64);
            self.leave_fast(page_lsn, page, (offset, offset + read), previous);
            if counted_end > Lsn(0) {
                self.run.counted_end = Some(counted_end.aligned());
            }
        }
        offset + read
    }

    /// Takes note of where records were read, the last one at `last`.
    fn leave_fast(&mut self, page_lsn: Lsn, page: &[u8], (from, to): (usize, usize), last: Lsn) {
        let next = Lsn(page_lsn.0 + to as u64);
        let at = page.get((last.0 - page_lsn.0) as usize..).unwrap_or_default();
        let header = at.first_chunk().map(RecordHeader::parse);
        self.run.last = header.map(|header| Last { lsn: last, next, header }).or(self.run.last);
        self.run.previous = Some(last);
        self.run.first_in_range.get_or_insert(Lsn(page_lsn.0 + from as u64));
        self.run.ends_overwritten = false;
    }

    /// Deals with whatever is at `offset`: one record, or the reason why there is none. Gives
    /// the offset of the next record if one may follow in this page.
    fn step(&mut self, page_lsn: Lsn, page: &[u8], offset: usize) -> Option<usize> {
        let lsn = Lsn(page_lsn.0 + offset as u64);
        if self.is_behind(lsn) {
            self.reach_end();
            return None;
        }
        let rest = page.get(offset..).filter(|rest| !rest.is_empty())?;
        let Some(length) = rest.first_chunk::<4>() else {
            self.fail(lsn, lsn, Cause::Cut, None);
            let zero = rest.iter().all(|&b| b == 0);
            let heading = if zero { Heading::Zero } else { Heading::Incomplete };
            self.book(heading, lsn, rest.len());
            return None;
        };
        let total_bytes = u32::from_le_bytes(*length);
        if std::mem::take(&mut self.begins) {
            self.run.begin_segment();
        }
        if let Err(cause) = self.scope.check_header(lsn, rest, total_bytes, self.run.previous) {
            self.fail(lsn, lsn, cause, None);
            self.book_rest(lsn, rest);
            return None;
        }
        let Some(bytes) = rest.get(..total_bytes as usize) else {
            let mut pending = std::mem::take(&mut self.spare);
            pending.begin(lsn, total_bytes);
            pending.extend(self.scope, lsn, rest);
            self.pending = Some(pending);
            return None;
        };
        self.whole_record(lsn, bytes, rest).map(|next| offset + next)
    }

    /// A record that lies in the page: `bytes`, at the head of `rest`. Gives the distance to
    /// the next one if one may follow.
    fn whole_record(&mut self, lsn: Lsn, bytes: &[u8], rest: &[u8]) -> Option<usize> {
        let end = Lsn(lsn.0 + bytes.len() as u64);
        let head = Head { bytes, crc: self.scope.body_crc(bytes) };
        let record = match self.scope.decode((lsn, end), head, self.run.previous) {
            Ok(record) => record,
            Err(cause) => {
                self.fail(lsn, lsn, cause, Some(bytes.len() as u32));
                self.book(Heading::Incomplete, lsn, bytes.len());
                self.book_rest(end, rest.get(bytes.len()..).unwrap_or_default());
                return None;
            }
        };
        if end > self.scope.end {
            self.run.close_gap(self.scope.geometry.version);
            if lsn < self.scope.end {
                self.run.first_in_range.get_or_insert(lsn);
            }
            self.book(Heading::Incomplete, lsn, bytes.len());
            self.reach_end();
            return None;
        }
        self.run.accept(self.scope, &record, self.scope.clip(lsn, end));
        if self.run.range_end.is_some() {
            return None;
        }
        self.switched = record.header.is_switch();
        if self.switched {
            self.book(Heading::Switch, end, rest.len() - bytes.len());
            return None;
        }
        let padded = bytes.len().next_multiple_of(8).min(rest.len());
        self.book(Heading::Padding, end, padded - bytes.len());
        Some(padded)
    }

    // ---- what is not a record ----

    /// There is no valid record at `start`; what was collected of one becomes part of the gap.
    fn fail(&mut self, start: Lsn, seen_at: Lsn, cause: Cause, record_bytes: Option<u32>) {
        match self.pending.take() {
            Some(mut pending) => {
                self.run.fail_record(&mut pending, seen_at, cause);
                self.spare = pending;
            }
            None => self.run.fail(start, seen_at, cause, record_bytes),
        }
    }

    /// Whether nothing at `lsn` or behind it is of interest. What lies behind the range still
    /// tells of an open gap whether it is damage or the end.
    fn is_behind(&self, lsn: Lsn) -> bool {
        lsn >= self.scope.end && self.run.gap.is_none()
    }

    /// Nothing further is in the range.
    fn reach_end(&mut self) {
        if let Some(mut pending) = self.pending.take() {
            self.run.drop_record(self.scope, &mut pending, Heading::Incomplete);
        }
        self.run.range_end.get_or_insert(self.scope.end);
    }

    fn book(&mut self, heading: Heading, lsn: Lsn, bytes: usize) {
        let clipped = self.scope.clip(lsn, Lsn(lsn.0 + bytes as u64));
        self.run.target().add(heading, clipped);
    }

    /// Books bytes in which no record was found: zeros, and what follows them.
    fn book_rest(&mut self, lsn: Lsn, bytes: &[u8]) {
        let zeros = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        self.book(Heading::Zero, lsn, zeros);
        self.book(Heading::Stale, Lsn(lsn.0 + zeros as u64), bytes.len() - zeros);
        let segment = u64::from(self.scope.geometry.segment_bytes);
        let in_segment = |gap: &Gap| gap.start.0 / segment == lsn.0 / segment;
        if let Some(gap) = &mut self.run.gap
            && zeros < bytes.len()
            && in_segment(gap)
        {
            gap.stale_follows = true;
        }
    }
}
