//! What a reader does where there is no valid record, and where the range ends: whether the gap there is
//! damage is known when a record follows.

use super::{Reader, leading_zeros};
use crate::scan::books::Heading;
use crate::scan::damage::{Cause, Gap, PagesBehind};
use crate::scan::ending;
use crate::scan::page_buffer::Page;
use crate::scan::resync::links_to;
use walstat_format::lsn::Lsn;
use walstat_format::page::PageFault;

impl Reader<'_> {
    /// There is no valid record at `start`; what was collected of one becomes part of the gap.
    pub(super) fn fail(
        &mut self,
        start: Lsn,
        seen_at: Lsn,
        cause: Cause,
        record_bytes: Option<u32>,
    ) {
        match self.pending.take() {
            Some(mut pending) => {
                self.run.fail_record(&self.scope.geometry, &mut pending, seen_at, cause)
            }
            None => {
                self.run.fail(start, seen_at, cause.clone(), record_bytes);
                if cause.is_of_record() && !self.may_be_switched {
                    self.run.note_bad_place(&self.scope.geometry, start, cause, record_bytes);
                }
            }
        }
    }

    /// A page that is not the one that belongs there.
    pub(super) fn bad_page(&mut self, page: Page<'_>, cause: Cause) {
        // The records of a page that was copied from the older timeline's file have been read there.
        let copied = matches!(cause, Cause::Page(PageFault::Left { .. }));
        // Those of an older timeline's segment that was made ready for its number again are of that one.
        let is_older =
            matches!(cause, Cause::Page(PageFault::Timeline { found, least, .. }) if found < least);
        let may_be_unused = copied || self.may_be_switched;
        self.fail(page.lsn, page.lsn, cause.clone(), None);
        self.note_page_in_gap(page.lsn, &cause);
        if matches!(cause, Cause::Page(_)) && !may_be_unused {
            self.run.note_bad_place(&self.scope.geometry, page.lsn, cause, None);
        }
        let zeros = leading_zeros(page.bytes);
        self.book_rest(page.lsn, page.bytes, zeros);
        if let Some(gap) = &mut self.run.gap
            && !gap.record_follows
            && !copied
            && !is_older
        {
            gap.record_follows = self.scope.holds_record(page, zeros);
        }
    }

    /// Takes note of what a wrong page is: what a server has not overwritten yet, or something else.
    fn note_page_in_gap(&mut self, lsn: Lsn, cause: &Cause) {
        let page = match cause {
            Cause::Page(fault) => ending::what_is_left(fault, lsn, &self.scope.geometry),
            _ => PagesBehind::Other,
        };
        if let Some(gap) = &mut self.run.gap {
            gap.rest_is_old |= gap.start == lsn;
            gap.pages_behind = gap.pages_behind.max(page);
        }
    }

    /// Goes on after something at `offset` that is no record: returns the offset of the next one, or
    /// books the rest of the page. `failed`: length of the record there that is not valid.
    pub(super) fn resync(&mut self, page: Page<'_>, offset: usize, failed: usize) -> Option<usize> {
        let lsn = Lsn(page.lsn.0 + offset as u64);
        let rest = page.bytes.get(offset + failed..).unwrap_or_default();
        let zeros = leading_zeros(rest);
        let zeros_to = if failed > 0 { offset } else { offset + zeros };
        let next = self.scope.next_record(page, offset + 1, zeros_to);
        self.note_rest_of_page(page, offset, next);
        if let Some(next) = next {
            self.book(Heading::Incomplete, lsn, next - offset);
            return Some(next);
        }
        self.book(Heading::Incomplete, lsn, failed);
        self.book_rest(Lsn(lsn.0 + failed as u64), rest, zeros);
        None
    }

    /// Takes note of whether old content follows in the page where a gap starts; `next`: something there that
    /// looks like a record. One that links to what lies in the gap is none of old content.
    fn note_rest_of_page(&mut self, page: Page<'_>, offset: usize, next: Option<usize>) {
        let lsn = Lsn(page.lsn.0 + offset as u64);
        if let Some(gap) = self.run.gap.as_mut().filter(|gap| gap.start == lsn) {
            let is_linked = next.is_some_and(|next| {
                let place = Lsn(page.lsn.0 + next as u64);
                links_to(page, next).is_some_and(|previous| (lsn..place).contains(&previous))
            });
            gap.rest_is_old = !is_linked && self.scope.holds_old_content(page, offset);
        }
    }

    /// Whether nothing at `lsn` or after it matters. After the range, reading goes on while a gap is
    /// open: a record tells that it was damage.
    pub(super) fn is_past_end(&self, lsn: Lsn) -> bool {
        lsn >= self.scope.end && self.run.gap.is_none()
    }

    /// The range has ended. Returns whether reading goes on: after a run without a record, the run
    /// before it has to know whether a record follows. Else it would depend on how the WAL is divided
    /// into runs whether its gap is damage or the end.
    pub(super) fn reach_end(&mut self) -> bool {
        let looks_on =
            self.ended.is_none() && self.run.range_end.is_none() && self.run.first.is_none();
        if looks_on {
            if let Some(pending) = self.pending.as_ref().filter(|p| p.lsn >= self.scope.start) {
                self.run.first_in_range.get_or_insert(pending.lsn);
            }
            self.run.range_end = Some(self.scope.end);
            let beyond = self.run.look_beyond(self.scope.end);
            self.ended = Some(std::mem::replace(&mut self.run, beyond));
            return true;
        }
        self.reach_end_inside();
        false
    }

    /// The range has ended; a record that goes on after it is not in it.
    pub(super) fn reach_end_inside(&mut self) {
        if let Some(mut pending) = self.pending.take() {
            self.run.drop_record(self.scope, &mut pending, Heading::Incomplete);
        }
        self.run.range_end.get_or_insert(self.scope.end);
    }

    /// Books bytes in which no record was found: so many zeros, and what follows them.
    pub(super) fn book_rest(&mut self, lsn: Lsn, bytes: &[u8], zeros: usize) {
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
