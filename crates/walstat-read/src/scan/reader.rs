//! Pages in, records out: the state machine that walks over the pages of a run.
//!
//! It does no I/O. The caller pushes page after page. A record that lies in one page is handed on as a
//! view into it; one on several pages is followed from page to page: its checksum is carried along and
//! only its first bytes are kept, so an image is never copied.
//!
//! This module goes step by step, one page and one record at a time, and can deal with everything.
//! Usual records are read by `fast` instead, many at once, which leaves to this module the first
//! record, records that go on after the window, and everything unusual.

mod following;
mod gaps;

use super::books::{Books, Heading};
use super::damage::{Cause, PagesBehind};
use super::fast::UsualRecords;
use super::observe::{Observe, Shown};
use super::observer::Observer;
use super::page_buffer::Page;
use super::pending::{Pending, RecordBytes};
use super::resync::Linked;
use super::run::{Last, Run};
use super::scope::{Head, Scope};
use crate::input::problem::Problem;
use walstat_format::lsn::{Lsn, MAXALIGN};
use walstat_format::page::PageHeader;
use walstat_format::record_header::{HeaderFault, RECORD_HEADER_BYTES};

/// What the reader wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next page.
    Next,
    /// The first page of the next segment: in the rest of this one there is nothing.
    SkipSegment,
    /// Nothing more.
    Done,
}

/// Reads the pages of one run.
pub struct Reader<'s> {
    scope: &'s Scope,
    run: Run,
    /// The run as it is at the end of the range, while `run` looks at what lies after it.
    ended: Option<Run>,
    /// A record that crosses a page, being followed.
    pending: Option<Pending>,
    /// Bytes that the page before has announced of a record that is not followed.
    announced_left: Option<u32>,
    /// Timeline of the page before in the segment; 0: there is none.
    timeline: u32,
    timeline_most: u32,
    switched: bool,
    /// No record was begun in the segment yet.
    begins: bool,
    /// The segment begins with so few bytes of a record that it may be an `XLOG_SWITCH`.
    may_be_switched: bool,
    /// Memory for records that wait to be handed on; empty between two calls.
    waiting: Vec<Shown<'static>>,
    /// Reading stops at the first place without a valid record: while WAL is followed, a record may still be
    /// written there.
    ends_at_gap: bool,
    /// The record before the range, if it is known.
    before: Option<Last>,
}

impl<'s> Reader<'s> {
    /// A reader of the run of segments in `[start, end)`, counted by `observer`, an empty one.
    pub fn new(scope: &'s Scope, start: Lsn, end: Lsn, observer: Observer) -> Self {
        Reader {
            scope,
            run: Run::new(start, end, observer),
            ended: None,
            pending: None,
            announced_left: None,
            timeline: 0,
            timeline_most: u32::MAX,
            switched: false,
            begins: false,
            may_be_switched: false,
            waiting: Vec::new(),
            ends_at_gap: false,
            before: None,
        }
    }

    /// A segment begins: the next pages are those of a file of this timeline.
    pub fn begin_segment(&mut self, timeline_most: u32) {
        self.timeline_most = timeline_most;
        // Treated like the beginning of a run, which knows of no page before.
        self.timeline = 0;
        self.switched = false;
        self.begins = true;
        self.may_be_switched = false;
    }

    /// Takes the pages of a window whose first byte is at `lsn`: whole ones, but for the last one
    /// at the end of a file.
    pub fn push(&mut self, lsn: Lsn, window: &[u8]) -> Flow {
        let page_bytes = self.scope.geometry.page_bytes;
        let mut next = Page::first(lsn, window, page_bytes);
        while let Some(page) = next {
            let ended = self.run.range_end.is_some() || self.is_past_end(page.lsn);
            if ended && !self.reach_end() {
                return Flow::Done;
            }
            if self.is_over() {
                return Flow::Done;
            }
            let last = self.take_page(page);
            let run = self.ended.as_mut().unwrap_or(&mut self.run);
            let read_to = run.range_end.map_or(last.end(), |end| end.min(last.end()));
            run.input_bytes += self.scope.clip(page.lsn, read_to);
            next = last.next(page_bytes);
        }
        match () {
            () if self.run.range_end.is_some() || self.is_over() => Flow::Done,
            () if self.switched => Flow::SkipSegment,
            () => Flow::Next,
        }
    }

    /// Takes note of bytes that need not be read: the rest of a segment after a switch.
    pub fn skip(&mut self, from: Lsn, bytes: u64) {
        let clipped = self.scope.clip(from, Lsn(from.0 + bytes));
        self.run.input_bytes += clipped;
        self.run.current_books().add(Heading::Switch, clipped);
        if from.0 + bytes >= self.scope.end.0 {
            self.reach_end();
        }
    }

    /// The file ends at `lsn`, before the segment does. After a switch nothing is missing if the range ends
    /// there too.
    pub fn cut(&mut self, lsn: Lsn) {
        if self.switched && self.is_past_end(lsn) {
            self.reach_end();
        } else {
            self.fail(lsn, lsn, Cause::Cut, None);
        }
    }

    /// The bytes from `lsn` on cannot be read.
    pub fn unreadable(&mut self, lsn: Lsn, text: String) {
        self.fail(lsn, lsn, Cause::Unreadable(text), None);
    }

    /// Reports a problem of the file itself.
    pub fn note(&mut self, problem: Problem) {
        self.run.problems.push(problem);
    }

    /// Nothing earlier than the run can come: what is final of that which was seen so far is handed on.
    pub fn settle(&mut self) {
        self.run.observer.settle();
    }

    /// The end of the run; a record that goes on is left open.
    pub fn finish(mut self) -> Run {
        let Some(mut run) = self.ended.take() else {
            let goes_on = self.pending.is_some() || self.run.is_all_lead();
            if goes_on && self.run.end >= self.scope.end {
                // The range ends with the last file, inside of a record that began in this run or before.
                self.reach_end_inside();
            }
            self.run.open = self.pending.take();
            return self.run;
        };
        if let Some(mut pending) = self.pending.take() {
            self.run.fail_record(&self.scope.geometry, &mut pending, run.end, Cause::Cut);
        }
        run.take_beyond(self.run);
        run
    }

    // ---- pages ----

    /// Takes a page, and those after it that are read with it; returns the last one taken.
    fn take_page<'w>(&mut self, page: Page<'w>) -> Page<'w> {
        let Page { lsn, bytes, .. } = page;
        if self.switched {
            self.book(Heading::Switch, lsn, bytes.len());
            return page;
        }
        let header = PageHeader::parse(bytes).filter(|header| header.bytes() <= bytes.len());
        let Some(header) = header else {
            self.bad_page(page, Cause::Cut);
            return page;
        };
        let timelines = (self.timeline, self.timeline_most);
        match self.scope.geometry.check(&header, bytes, lsn, timelines) {
            Ok(()) => self.good_page(page, &header),
            Err(fault) => {
                self.bad_page(page, Cause::Page(fault));
                page
            }
        }
    }

    fn good_page<'w>(&mut self, page: Page<'w>, header: &PageHeader) -> Page<'w> {
        self.timeline = header.timeline;
        self.run.gap.iter_mut().for_each(|gap| gap.pages_behind = PagesBehind::Other);
        let segment = u64::from(self.scope.geometry.segment_bytes);
        self.may_be_switched |= page.lsn.0.is_multiple_of(segment)
            && header.continues()
            && header.remaining as usize <= RECORD_HEADER_BYTES;
        let next = match self.pending.take() {
            Some(pending) => self.continue_record(pending, page, header),
            None => self.begin_page(page, header),
        };
        let last = next.map_or(page, |offset| self.records(page, offset));
        let run = self.ended.as_mut().unwrap_or(&mut self.run);
        run.last_page = Some((last.lsn, self.timeline));
        last
    }

    /// A page on which no followed record goes on: skips what it continues. Returns the offset where a
    /// record may start, like all functions that deal with the start of a page.
    fn begin_page(&mut self, page: Page<'_>, header: &PageHeader) -> Option<usize> {
        let Page { lsn, bytes, .. } = page;
        let continued = header.continues().then_some(header.remaining);
        self.check_continuation(lsn, header, continued);
        let mut offset = header.bytes();
        self.book(Heading::PageHeader, lsn, offset);
        if let Some(remaining) = continued {
            let rest = bytes.get(offset..).unwrap_or_default();
            let piece = rest.get(..remaining as usize).unwrap_or(rest);
            self.skip_piece(Lsn(lsn.0 + offset as u64), remaining, piece);
            let padded = piece.len().next_multiple_of(MAXALIGN).min(rest.len());
            let piece_end = offset + piece.len();
            self.book(Heading::Padding, Lsn(lsn.0 + piece_end as u64), padded - piece.len());
            offset += padded;
            if piece.len() < remaining as usize {
                return None;
            }
        }
        self.announced_left = Some(0);
        Some(offset)
    }

    /// Takes a piece of a record that is not followed: of the lead, or of a record in a gap.
    fn skip_piece(&mut self, lsn: Lsn, remaining: u32, piece: &[u8]) {
        // The lead goes on after the range: it is read on, because if it is a valid record, a gap
        // before it was damage.
        let lead = self.ended.as_mut().map(|run| &mut run.lead);
        if let Some(lead) = lead.filter(|lead| lead.left() == remaining && remaining > 0) {
            lead.extend(self.scope, lsn, piece);
        } else if self.run.gap.is_none() && self.run.first.is_none() {
            self.run.lead.announced.get_or_insert(remaining);
            self.run.lead.extend(self.scope, lsn, piece);
        } else {
            self.book(Heading::Incomplete, lsn, piece.len());
        }
        self.announced_left = Some(remaining - piece.len() as u32);
    }

    /// Whether the page continues what the page before announced, and nothing else.
    fn check_continuation(&mut self, lsn: Lsn, header: &PageHeader, continued: Option<u32>) {
        let Some(left) = self.announced_left else {
            // The first page of the run: what should continue here is checked when runs are joined.
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

    /// A page on which the followed record should go on.
    fn continue_record(
        &mut self,
        mut pending: Pending,
        page: Page<'_>,
        header: &PageHeader,
    ) -> Option<usize> {
        let Page { lsn, bytes, .. } = page;
        let left = pending.left();
        let continued = header.continues().then_some(header.remaining);
        if continued != Some(left) {
            if self.overwrites(header) {
                // Where the range ends inside of the record, nobody else has seen that it was torn.
                let is_beyond = self.ended.is_some();
                let heading = if is_beyond { Heading::Incomplete } else { Heading::Overwritten };
                self.run.drop_record(self.scope, &mut pending, heading);
                self.announced_left = Some(0);
            } else {
                let cause = Cause::Continuation { found: continued, expected: Some(left) };
                self.run.fail_record(&self.scope.geometry, &mut pending, lsn, cause);
                // What the page continues is part of the gap.
                self.announced_left = Some(continued.unwrap_or(0));
            }
            return self.begin_page(page, header);
        }
        let content = header.bytes();
        let in_range = self.scope.clip(lsn, Lsn(lsn.0 + content as u64));
        pending.counts.add(Heading::PageHeader, in_range);
        let rest = bytes.get(content..).unwrap_or_default();
        let piece = rest.get(..left as usize).unwrap_or(rest);
        pending.extend(self.scope, Lsn(lsn.0 + content as u64), piece);
        if pending.left() > 0 {
            self.pending = Some(pending);
            return None;
        }
        self.finish_record(pending, page, content + piece.len())
    }

    /// The last byte of a record that was followed is there, at `offset` of its last page.
    fn finish_record(
        &mut self,
        mut pending: Pending,
        page: Page<'_>,
        offset: usize,
    ) -> Option<usize> {
        self.announced_left = Some(0);
        let end = Lsn(page.lsn.0 + offset as u64);
        // If the record is not valid, it is part of the gap now; a valid one may still follow on this
        // page.
        self.run.complete(self.scope, &mut pending, end);
        self.switched = self.run.switched_at(pending.lsn);
        if self.run.range_end.is_some() {
            return None;
        }
        if self.switched {
            self.book(Heading::Switch, end, page.bytes.len() - offset);
            return None;
        }
        let next = offset.next_multiple_of(MAXALIGN).min(page.bytes.len());
        self.book(Heading::Padding, end, next - offset);
        Some(next)
    }

    // ---- records ----

    /// Reads records from `offset` of `page` on, and returns the last page that was read.
    fn records<'w>(&mut self, mut page: Page<'w>, mut offset: usize) -> Page<'w> {
        loop {
            if self.is_over() {
                return page;
            }
            if let Some(previous) = self.previous_if_usual(Lsn(page.lsn.0 + offset as u64)) {
                (page, offset) = self.usual_records(page, offset, previous);
            }
            match self.step(page, offset) {
                Some(next) => offset = next,
                None => return page,
            }
        }
    }

    /// Reads usual records from `offset` of `page` on, and says where they end.
    fn usual_records<'w>(
        &mut self,
        page: Page<'w>,
        offset: usize,
        previous: Lsn,
    ) -> (Page<'w>, usize) {
        let mut read = UsualRecords::new(self.scope, self.timeline, page, offset, previous);
        read.waiting = std::mem::take(&mut self.waiting);
        self.run.observer.read_usual(&mut read);
        self.waiting = std::mem::take(&mut read.waiting);
        self.run.take_usual(&read);
        read.end()
    }

    /// The record before the one at `lsn`, if usual records may be read from there on.
    fn previous_if_usual(&self, lsn: Lsn) -> Option<Lsn> {
        let usual = self.run.gap.is_none()
            && !self.begins
            && lsn >= self.scope.start
            && self.scope.limit.is_none();
        self.run.expected_previous().filter(|_| usual)
    }

    /// Deals with whatever is at `offset`: one record, or the reason why there is none. Returns
    /// the offset of the next record if one may follow in this page.
    fn step(&mut self, page: Page<'_>, offset: usize) -> Option<usize> {
        let lsn = Lsn(page.lsn.0 + offset as u64);
        if self.is_past_end(lsn) && !self.reach_end() {
            return None;
        }
        let rest = page.bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let Some(length) = rest.first_chunk::<4>() else {
            self.fail(lsn, lsn, Cause::Cut, None);
            let zero = rest.iter().all(|&b| b == 0);
            let heading = if zero { Heading::Zero } else { Heading::Incomplete };
            self.book(heading, lsn, rest.len());
            return None;
        };
        let total_bytes = u32::from_le_bytes(*length);
        // Where WAL is being written the link tells old content from new.
        if std::mem::take(&mut self.begins) && !self.ends_at_gap {
            self.run.begin_segment();
        }
        self.recall(lsn);
        if let Err(cause) =
            self.scope.check_header(lsn, rest, total_bytes, self.run.expected_previous())
        {
            self.fail(lsn, lsn, cause, None);
            return self.resync(page, offset, 0);
        }
        let Some(bytes) = rest.get(..total_bytes as usize) else {
            let linked = self.scope.linked_record(page, offset);
            if let Some(Linked::Whole(next)) = linked {
                let next = Lsn(page.lsn.0 + next as u64);
                let fault = HeaderFault::Overlap { found: total_bytes, next };
                self.fail(lsn, lsn, Cause::Header(fault), None);
                return self.resync(page, offset, 0);
            }
            let mut pending =
                Pending::begin(lsn, total_bytes, RecordBytes::new(self.run.observer.needs_whole()));
            pending.may_be_unused = self.may_be_switched;
            if let Some(Linked::GoesOn(next)) = linked {
                pending.linked = Some(Lsn(page.lsn.0 + next as u64));
            }
            pending.extend(self.scope, lsn, rest);
            self.pending = Some(pending);
            return None;
        };
        self.whole_record(page, offset, bytes, rest)
    }

    /// A record that lies in the page: `bytes`, at the head of `rest`. Returns the offset of the next
    /// one if one may follow.
    fn whole_record(
        &mut self,
        page: Page<'_>,
        offset: usize,
        bytes: &[u8],
        rest: &[u8],
    ) -> Option<usize> {
        let lsn = Lsn(page.lsn.0 + offset as u64);
        let end = Lsn(lsn.0 + bytes.len() as u64);
        let head = Head { bytes, crc: self.scope.body_crc(bytes) };
        let record = match self.scope.decode(lsn..end, head, self.run.expected_previous()) {
            Ok(record) => record,
            Err(cause) => {
                self.fail(lsn, lsn, cause, Some(bytes.len() as u32));
                return self.resync(page, offset, bytes.len());
            }
        };
        if end > self.scope.end {
            let mut inside = Books::default();
            inside.add(Heading::Incomplete, self.scope.clip(lsn, end));
            self.run.accept_beyond(self.scope, lsn, &inside);
            return None;
        }
        self.run.accept(self.scope, &record, self.scope.clip(lsn, end));
        if self.run.range_end.is_some() {
            return None;
        }
        self.switched = record.header.is_switch();
        if self.switched {
            self.run.note_followed(self.scope.linked_record(page, offset).is_some());
            self.book(Heading::Switch, end, rest.len() - bytes.len());
            return None;
        }
        let padded = bytes.len().next_multiple_of(MAXALIGN).min(rest.len());
        self.book(Heading::Padding, end, padded - bytes.len());
        Some(offset + padded)
    }

    // ---- what is not a record ----

    fn book(&mut self, heading: Heading, lsn: Lsn, bytes: usize) {
        let clipped = self.scope.clip(lsn, Lsn(lsn.0 + bytes as u64));
        self.run.current_books().add(heading, clipped);
    }
}

fn leading_zeros(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len())
}
