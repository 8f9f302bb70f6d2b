//! Pages in, records out: the state machine that walks over the pages of a run.
//!
//! It does no I/O. Whoever has the bytes pushes page after page; a record that lies in one
//! page is handed on as a view into it, one that crosses pages is followed piece by piece: its
//! checksum is carried along and only its first bytes are kept, so an image is never copied.
//!
//! Hot path, in pseudo-code (`fast`): while a whole record lies in the page, check its header
//! and its link to the one before, its checksum, walk over its block headers, hand it to the
//! dimensions, step to the next multiple of 8. Everything unusual (the first record, a record
//! that crosses the page, a switch, the end of the range, anything wrong) leaves that loop and
//! is dealt with by `step`, once.

use super::books::{Books, Heading};
use super::damage::{Cause, Gap};
use super::record::{Observe, Record, Select};
use super::run::{First, Last, Owed, Run};
use crate::wal::block::{HEAD_BYTES_MAX, walk};
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use crate::wal::page::{Geometry, PageFault, PageHeader};
use crate::wal::record::{RECORD_HEADER_BYTES, RecordHeader};

/// What all runs of one scan have in common.
#[derive(Debug)]
pub struct Scope<S> {
    /// Release, cluster and sizes.
    pub geometry: Geometry,
    /// How checksums are computed; `None`: they are not verified.
    pub crc: Option<Crc32c>,
    /// Records that start before are not counted.
    pub start: Lsn,
    /// Records that end behind are not counted.
    pub end: Lsn,
    /// Stop after that many counted records; such a scan is one run.
    pub limit: Option<u64>,
    /// The filters.
    pub select: S,
}

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

/// A record that crosses a page.
#[derive(Debug, Default)]
struct Pending {
    lsn: Lsn,
    total_bytes: u32,
    got: u32,
    crc: u32,
    head: Vec<u8>,
    counts: Books,
    owed: u64,
}

/// Reads the pages of one run.
pub struct Reader<'s, S, O> {
    scope: &'s Scope<S>,
    run: Run<O>,
    /// The gap that is open, before it is known where it ends.
    gap: Option<Gap>,
    pending: Option<Pending>,
    /// Kept for its allocation.
    spare: Pending,
    /// The record before, where the link of the next one is known.
    previous: Option<Lsn>,
    /// Content bytes still to come of a record that began before the run.
    lead_left: Option<u32>,
    timeline: u32,
    timeline_most: u32,
    switched: bool,
    counted: u64,
    done: bool,
}

impl<'s, S: Select, O: Observe> Reader<'s, S, O> {
    /// A reader of the run of segments in `[start, end)`.
    pub fn new(scope: &'s Scope<S>, start: Lsn, end: Lsn) -> Self {
        let run = Run {
            start,
            end,
            lead: Books::default(),
            lead_gap: None,
            first: None,
            last: None,
            owed: None,
            tail: None,
            books: Books::default(),
            problems: Vec::new(),
            first_in_range: None,
            counted_end: None,
            ends_overwritten: false,
            range_end: None,
            input_bytes: 0,
            observer: O::default(),
        };
        Reader {
            scope,
            run,
            gap: None,
            pending: None,
            spare: Pending::default(),
            previous: None,
            lead_left: None,
            timeline: 0,
            timeline_most: u32::MAX,
            switched: false,
            counted: 0,
            done: false,
        }
    }

    /// Says that the pages to come are those of a segment file of this timeline.
    pub fn begin_segment(&mut self, timeline_most: u32) {
        self.timeline_most = timeline_most;
        self.switched = false;
    }

    /// Whether a record of this run goes on beyond what was pushed.
    pub fn is_in_record(&self) -> bool {
        self.pending.is_some()
    }

    /// Where the last record of the run asks for bytes beyond it; nothing else is read there.
    fn is_ahead(&self, lsn: Lsn) -> bool {
        lsn >= self.run.end
    }

    /// Takes the page at `lsn`: a whole one, or what there is of it at the end of a file.
    pub fn push(&mut self, lsn: Lsn, page: &[u8]) -> Flow {
        if self.done || lsn >= self.scope.end {
            return self.reach_end(self.scope.end);
        }
        self.take_page(lsn, page);
        let page_end = Lsn(lsn.0 + page.len() as u64);
        let read_to = self.run.range_end.map_or(page_end, |end| end.min(page_end));
        self.run.input_bytes += self.clip(lsn, read_to);
        match () {
            () if self.done => Flow::Done,
            () if self.switched => Flow::SkipSegment,
            () => Flow::Next,
        }
    }

    /// Takes note of bytes that need not be read: the rest of a segment behind a switch.
    pub fn skip(&mut self, from: Lsn, bytes: u64) {
        let end = Lsn(from.0 + bytes);
        let clipped = self.clip(from, end);
        self.run.input_bytes += clipped;
        self.target().add(Heading::Switch, clipped);
    }

    /// The file ends at `lsn`, before the segment does.
    pub fn cut(&mut self, lsn: Lsn) {
        if !self.switched {
            self.fail(lsn, lsn, Cause::Cut, None);
        }
    }

    /// The bytes from `lsn` on could not be had.
    pub fn unreadable(&mut self, lsn: Lsn, text: String) {
        self.fail(lsn, lsn, Cause::Unreadable(text), None);
    }

    /// The end of the run and, for a record that goes on, of everything behind it.
    pub fn finish(mut self) -> Run<O> {
        if let Some(pending) = &self.pending {
            let seen_at = Lsn(self.run.end.0);
            let lsn = pending.lsn;
            self.fail(lsn, seen_at, Cause::Cut, None);
        }
        if self.run.first.is_some() {
            self.run.tail = self.gap.take();
        } else {
            self.run.lead_gap = self.gap.take();
        }
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
        if self.is_ahead(lsn) {
            return;
        }
        let content = header.bytes();
        let continued = header.continues().then_some(header.remaining);
        let overwrites = header.info & self.scope.geometry.version.overwrite_flag != 0;
        self.check_lead(lsn, continued, overwrites);
        self.book(Heading::PageHeader, lsn, content);
        let mut offset = content;
        if let Some(remaining) = continued {
            let room = page.len() - content;
            let piece = room.min(remaining as usize);
            let heading = match self.gap {
                Some(_) => Heading::Incomplete,
                None => Heading::Continuation,
            };
            self.book(heading, Lsn(lsn.0 + content as u64), piece);
            self.lead_left = Some(remaining - piece as u32);
            let padded = piece.next_multiple_of(8).min(room);
            self.book(Heading::Padding, Lsn(lsn.0 + (content + piece) as u64), padded - piece);
            offset += padded;
            if piece < remaining as usize {
                return;
            }
        }
        self.lead_left = Some(0);
        self.records(lsn, page, offset);
    }

    /// Whether the page continues what is to be continued there: the record that began before
    /// the run by as many bytes as the page before said, otherwise nothing.
    fn check_lead(&mut self, lsn: Lsn, continued: Option<u32>, overwrites: bool) {
        let expected = match (self.run.first, self.lead_left) {
            (None, None) => return,
            (_, left) => left.filter(|&left| left > 0),
        };
        let replaced = overwrites && continued.is_none() && self.run.first.is_none();
        if expected != continued && !replaced {
            let cause = Cause::Continuation { found: continued, expected };
            self.fail(lsn, lsn, cause, None);
        }
    }

    /// A page on which a record of ours should go on.
    fn continue_record(&mut self, mut pending: Pending, lsn: Lsn, header: &PageHeader, page: &[u8]) {
        let left = pending.total_bytes - pending.got;
        let continued = header.continues().then_some(header.remaining);
        if continued != Some(left) {
            let version = self.scope.geometry.version;
            if continued.is_none() && header.info & version.overwrite_flag != 0 {
                self.overwritten(pending);
            } else {
                let cause = Cause::Continuation { found: continued, expected: Some(left) };
                let start = pending.lsn;
                self.pending = Some(pending);
                self.fail(start, lsn, cause, None);
                // What the page continues is part of the gap.
                self.lead_left = continued;
            }
            return self.begin_page(lsn, header, page);
        }
        let content = header.bytes();
        let clipped = self.clip(lsn, Lsn(lsn.0 + content as u64));
        pending.counts.add(Heading::PageHeader, clipped);
        let piece = (page.len() - content).min(left as usize);
        let bytes = &page[content..content + piece];
        self.extend(&mut pending, Lsn(lsn.0 + content as u64), bytes);
        if pending.got < pending.total_bytes {
            self.pending = Some(pending);
            return;
        }
        let end = content + piece;
        self.lead_left = Some(0);
        self.finish_record(pending, Lsn(lsn.0 + end as u64));
        if !self.done && !self.switched && !self.is_ahead(lsn) {
            let next = end.next_multiple_of(8).min(page.len());
            self.book(Heading::Padding, Lsn(lsn.0 + end as u64), next - end);
            self.records(lsn, page, next);
        }
    }

    // ---- records that cross pages ----

    fn begin_record(&mut self, lsn: Lsn, total_bytes: u32, bytes: &[u8]) {
        let mut pending = std::mem::take(&mut self.spare);
        pending.lsn = lsn;
        pending.total_bytes = total_bytes;
        pending.got = 0;
        pending.crc = Crc32c::START;
        pending.head.clear();
        pending.counts = Books::default();
        pending.owed = 0;
        self.extend(&mut pending, lsn, bytes);
        self.pending = Some(pending);
    }

    /// Adds a piece of the record: to its checksum, to its head, to its account.
    fn extend(&mut self, pending: &mut Pending, lsn: Lsn, bytes: &[u8]) {
        if let Some(crc) = self.scope.crc {
            let header_left = RECORD_HEADER_BYTES.saturating_sub(pending.got as usize);
            let body = bytes.get(header_left..).unwrap_or_default();
            pending.crc = crc.update(pending.crc, body);
        }
        let wanted = HEAD_BYTES_MAX.saturating_sub(pending.head.len()).min(bytes.len());
        pending.head.extend_from_slice(&bytes[..wanted]);
        pending.got += bytes.len() as u32;
        if self.is_ahead(lsn) {
            pending.owed += bytes.len() as u64;
        } else {
            let clipped = self.clip(lsn, Lsn(lsn.0 + bytes.len() as u64));
            pending.counts.add(Heading::Incomplete, clipped);
        }
    }

    /// The last byte of the record is there.
    fn finish_record(&mut self, pending: Pending, end: Lsn) {
        let record = match self.decode(pending.lsn, end, &pending.head, Some(pending.crc)) {
            Ok(record) => record,
            Err(cause) => {
                let (lsn, total) = (pending.lsn, pending.total_bytes);
                self.pending = Some(pending);
                return self.fail(lsn, lsn, cause, Some(total));
            }
        };
        if end > self.scope.end {
            let owed = pending.owed;
            self.drop_record(pending, Heading::Incomplete, owed);
            self.reach_end(self.scope.end);
            return;
        }
        let headers = pending.counts.get(Heading::PageHeader);
        self.accept(&record, pending.owed, pending.counts.get(Heading::Incomplete));
        self.target().add(Heading::PageHeader, headers);
        self.spare = pending;
    }

    /// Recovery has replaced the record that was begun.
    fn overwritten(&mut self, pending: Pending) {
        let owed = pending.owed;
        self.drop_record(pending, Heading::Overwritten, owed);
        self.run.ends_overwritten = true;
        self.lead_left = Some(0);
    }

    /// Books what there is of a record that is not counted.
    fn drop_record(&mut self, pending: Pending, heading: Heading, owed: u64) {
        let mut counts = pending.counts;
        let bytes = counts.take(Heading::Incomplete, u64::MAX);
        counts.add(heading, bytes);
        self.target().merge(&counts);
        if owed > 0 {
            self.run.owed = Some(Owed { bytes: owed, heading: Some(heading) });
        }
        self.spare = pending;
    }

    // ---- records ----

    /// Reads the records of a page from `offset` on.
    fn records(&mut self, page_lsn: Lsn, page: &[u8], mut offset: usize) {
        while let Some(next) = self.step(page_lsn, page, offset) {
            offset = next;
            let known = self.gap.is_none() && self.previous.is_some() && self.scope.limit.is_none();
            if known && page_lsn.0 + offset as u64 >= self.scope.start.0 {
                offset = self.fast(page_lsn, page, offset);
            }
        }
    }

    /// Reads the usual records of a page from `offset` on, and says where it stopped.
    fn fast(&mut self, page_lsn: Lsn, page: &[u8], offset: usize) -> usize {
        let scope = self.scope;
        let (version, crc) = (scope.geometry.version, scope.crc);
        let in_range = usize::try_from(scope.end.0 - page_lsn.0).unwrap_or(usize::MAX);
        let page = &page[..page.len().min(in_range)];
        let mut last = None;
        let checked = match crc {
            Some(crc) => offset + crc.verified(page.get(offset..).unwrap_or_default()),
            None => page.len(),
        };
        let (mut position, mut padding, mut counted_end) = (offset, 0, None);
        let mut previous = self.previous;
        while position < checked {
            let rest = page.get(position..).unwrap_or_default();
            let Some(head) = rest.first_chunk::<RECORD_HEADER_BYTES>() else { break };
            let header = RecordHeader::parse(head);
            let total = header.total_bytes as usize;
            let lsn = Lsn(page_lsn.0 + position as u64);
            // A record of 24 bytes is a switch.
            if total <= RECORD_HEADER_BYTES || header.check(version, lsn, previous).is_err() {
                break;
            }
            let Some(bytes) = rest.get(..total) else { break };
            let Ok(parts) = walk(bytes, header.total_bytes, version, |_| ()) else { break };
            let end = Lsn(lsn.0 + total as u64);
            let record = Record { lsn, end, header, parts, version, head: bytes };
            let padded = total.next_multiple_of(8);
            if scope.select.accepts(&record) {
                self.run.observer.observe(&record);
                counted_end = Some(end);
            } else {
                self.run.books.add(Heading::Filtered, total as u64);
            }
            padding += padded - total;
            position += padded;
            previous = Some(lsn);
            last = Some((lsn, header));
        }
        if let Some((lsn, header)) = last {
            // The padding of the last one may lie behind the range, or behind a cut file.
            let over = position.saturating_sub(page.len());
            (position, padding) = (position - over, padding - over);
            self.previous = previous;
            self.run.first_in_range.get_or_insert(Lsn(page_lsn.0 + offset as u64));
            let next = Lsn(page_lsn.0 + position as u64);
            self.run.last = Some(Last { lsn, next, header });
            self.run.ends_overwritten = false;
            self.run.books.add(Heading::Padding, padding as u64);
            self.run.counted_end = counted_end.map(Lsn::aligned).or(self.run.counted_end);
        }
        position
    }

    /// Deals with whatever is at `offset`: one record, or the reason why there is none. Gives
    /// the offset of the next record if one may follow in this page.
    fn step(&mut self, page_lsn: Lsn, page: &[u8], offset: usize) -> Option<usize> {
        let lsn = Lsn(page_lsn.0 + offset as u64);
        if lsn >= self.scope.end {
            self.reach_end(self.scope.end);
            return None;
        }
        let rest = page.get(offset..)?;
        if rest.is_empty() {
            return None;
        }
        let Some(length) = rest.first_chunk::<4>() else {
            self.fail(lsn, lsn, Cause::Cut, None);
            self.book_rest(lsn, rest);
            return None;
        };
        let total_bytes = u32::from_le_bytes(*length);
        if let Err(cause) = self.check_header(lsn, rest, total_bytes) {
            self.fail(lsn, lsn, cause, None);
            self.book_rest(lsn, rest);
            return None;
        }
        let Some(bytes) = rest.get(..total_bytes as usize) else {
            self.begin_record(lsn, total_bytes, rest);
            return None;
        };
        let end = Lsn(lsn.0 + u64::from(total_bytes));
        let crc = self.scope.crc.map(|crc| crc.update(Crc32c::START, &bytes[24..]));
        let record = match self.decode(lsn, end, bytes, crc) {
            Ok(record) => record,
            Err(cause) => {
                self.fail(lsn, lsn, cause, Some(total_bytes));
                self.book(Heading::Incomplete, lsn, bytes.len());
                self.book_rest(end, &rest[bytes.len()..]);
                return None;
            }
        };
        if end > self.scope.end {
            self.book(Heading::Incomplete, lsn, bytes.len());
            self.reach_end(self.scope.end);
            return None;
        }
        let inside = self.clip(lsn, end);
        self.accept(&record, 0, inside);
        if self.done {
            return None;
        }
        if self.switched {
            self.book(Heading::Switch, end, rest.len() - bytes.len());
            return None;
        }
        let padded = bytes.len().next_multiple_of(8).min(rest.len());
        self.book(Heading::Padding, end, padded - bytes.len());
        Some(offset + padded)
    }

    /// Checks as much of a record header as the page holds.
    fn check_header(&self, lsn: Lsn, rest: &[u8], total_bytes: u32) -> Result<(), Cause> {
        use crate::wal::record::HeaderFault;
        if let Some(head) = rest.first_chunk::<RECORD_HEADER_BYTES>() {
            let header = RecordHeader::parse(head);
            let version = self.scope.geometry.version;
            return header.check(version, lsn, self.previous).map_err(Cause::Header);
        }
        if (total_bytes as usize) < RECORD_HEADER_BYTES {
            return Err(Cause::Header(HeaderFault::Length { found: total_bytes }));
        }
        Ok(())
    }

    /// A whole record, checked; `crc` is the state behind its body.
    fn decode<'r>(
        &self,
        lsn: Lsn,
        end: Lsn,
        head: &'r [u8],
        crc: Option<u32>,
    ) -> Result<Record<'r>, Cause> {
        let version = self.scope.geometry.version;
        let Some(bytes) = head.first_chunk::<RECORD_HEADER_BYTES>() else {
            return Err(Cause::Cut);
        };
        let header = RecordHeader::parse(bytes);
        header.check(version, lsn, self.previous).map_err(Cause::Header)?;
        if let (Some(crc), Some(state)) = (self.scope.crc, crc) {
            let found = Crc32c::finish(crc.update(state, &bytes[..20]));
            if found != header.crc {
                return Err(Cause::Checksum { found, expected: header.crc });
            }
        }
        let parts = walk(head, header.total_bytes, version, |_| ()).map_err(Cause::Body)?;
        Ok(Record { lsn, end, header, parts, version, head })
    }

    /// Takes a valid record: closes the gap before it, counts it if it is in the range.
    /// `owed`: its bytes beyond the run; `inside`: those in the run and the range.
    fn accept(&mut self, record: &Record<'_>, owed: u64, inside: u64) {
        self.close_gap();
        let lsn = record.lsn;
        let previous = record.header.previous;
        self.run.first.get_or_insert(First { lsn, previous });
        self.previous = Some(lsn);
        self.switched = record.header.is_switch();
        self.run.ends_overwritten = false;
        let mut next = record.end.aligned();
        if self.switched {
            let segment = u64::from(self.scope.geometry.segment_bytes);
            next = Lsn(record.end.0.next_multiple_of(segment));
        }
        self.run.last = Some(Last { lsn, next, header: record.header });
        self.run.owed = (owed > 0).then_some(Owed { bytes: owed, heading: None });
        if lsn < self.scope.start {
            self.run.books.add(Heading::Continuation, inside);
            if let Some(owed) = &mut self.run.owed {
                owed.heading = Some(Heading::Continuation);
            }
            return;
        }
        self.run.first_in_range.get_or_insert(lsn);
        if !self.scope.select.accepts(record) {
            self.run.books.add(Heading::Filtered, u64::from(record.header.total_bytes));
            return;
        }
        self.run.observer.observe(record);
        self.run.counted_end = Some(next);
        self.counted += 1;
        if self.scope.limit.is_some_and(|limit| self.counted >= limit) {
            self.reach_end(record.end);
        }
    }

    // ---- what is not a record ----

    /// There is no valid record at `start`. Opens a gap unless one is open; what was collected
    /// of a record becomes part of it.
    fn fail(&mut self, start: Lsn, seen_at: Lsn, cause: Cause, record_bytes: Option<u32>) {
        let pending = self.pending.take();
        if self.gap.is_none() {
            let start = pending.as_ref().map_or(start, |pending| pending.lsn);
            self.gap = Some(Gap {
                start,
                seen_at,
                cause,
                record_bytes: record_bytes.or(pending.as_ref().map(|p| p.total_bytes)),
                counts: Books::default(),
                stale_follows: false,
            });
            self.previous = None;
        }
        if let Some(pending) = pending {
            self.target().merge(&pending.counts);
            self.spare = pending;
        }
    }

    /// A valid record follows: the gap was damage, or it belongs to the lead.
    fn close_gap(&mut self) {
        let Some(gap) = self.gap.take() else { return };
        if self.run.first.is_none() {
            self.run.lead_gap = Some(gap);
        } else if gap.counts.total() > 0 {
            self.run.tail = Some(gap);
            self.run.close_tail(self.scope.geometry.version);
        }
    }

    /// Nothing behind `lsn` is in the range.
    fn reach_end(&mut self, lsn: Lsn) -> Flow {
        if let Some(pending) = self.pending.take() {
            let owed = pending.owed;
            self.drop_record(pending, Heading::Incomplete, owed);
        }
        self.run.range_end.get_or_insert(lsn);
        self.done = true;
        Flow::Done
    }

    // ---- accounts ----

    /// Where bytes that are not in a record are booked at the moment.
    fn target(&mut self) -> &mut Books {
        match &mut self.gap {
            Some(gap) => &mut gap.counts,
            None if self.run.first.is_none() => &mut self.run.lead,
            None => &mut self.run.books,
        }
    }

    /// Bytes of `[from, to)` that are in the run and in the range.
    fn clip(&self, from: Lsn, to: Lsn) -> u64 {
        let from = from.max(self.scope.start).max(self.run.start);
        let to = to.min(self.scope.end).min(self.run.end);
        to.0.saturating_sub(from.0)
    }

    fn book(&mut self, heading: Heading, lsn: Lsn, bytes: usize) {
        let clipped = self.clip(lsn, Lsn(lsn.0 + bytes as u64));
        self.target().add(heading, clipped);
    }

    /// Books bytes in which no record was found: zeros, and what follows them.
    fn book_rest(&mut self, lsn: Lsn, bytes: &[u8]) {
        let zeros = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        self.book(Heading::Zero, lsn, zeros);
        self.book(Heading::Stale, Lsn(lsn.0 + zeros as u64), bytes.len() - zeros);
        let segment = u64::from(self.scope.geometry.segment_bytes);
        if let Some(gap) = &mut self.gap
            && zeros < bytes.len()
            && gap.start.0 / segment == lsn.0 / segment
        {
            gap.stale_follows = true;
        }
    }
}
