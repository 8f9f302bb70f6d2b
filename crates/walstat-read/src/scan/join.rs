//! How two runs that lie next to each other become one: the open ends of the first are closed by the
//! second. It is associative, so any division of the input gives the same result.

use super::books::{Books, Heading};
use super::damage::{Cause, First, Gap, PagesBehind};
use super::observe::Observe;
use super::pending::{Lead, Pending};
use super::run::{Link, Run, broken_link};
use super::scope::Scope;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;

impl Run {
    /// Joins the run that lies directly after this one.
    pub fn join(mut self, mut next: Run, scope: &Scope) -> Run {
        if self.range_end.is_some() {
            return self;
        }
        if let Some(open) = self.open.take() {
            let lead = next.lead.books.total();
            self.go_on(open, &mut next, scope);
            if scope.limit.is_some() && self.range_end.is_some() {
                // The record was the last one wanted: of the next run only its rest was read.
                self.input_bytes += lead;
                return self;
            }
        }
        if self.first.is_none() && self.gap.is_none() && next.lead_goes_on(&self.lead) {
            let lead = std::mem::take(&mut next.lead);
            self.lead.append(scope, &lead);
        } else {
            self.check_lead(&next);
            self.take_lead(&mut next.lead.books);
        }
        self.take_gap(&mut next, &scope.geometry);
        self.append(next)
    }

    /// Whether the lead of this run continues `lead`, which fills the run before.
    fn lead_goes_on(&self, lead: &Lead) -> bool {
        lead.left() > 0 && self.lead.announced == Some(lead.left())
    }

    /// The next run has to begin with what this one announced: the rest of its own lead, or nothing. Or
    /// recovery has replaced there the record that the lead belongs to.
    fn check_lead(&mut self, next: &Run) {
        let expected = Some(self.lead.left()).filter(|&left| left > 0 && self.first.is_none());
        let found = next.lead.announced;
        if found == expected {
            return;
        }
        let is_lead = self.first.is_none() && self.gap.is_none();
        if is_lead && found.is_none() && next.lead.overwritten {
            self.lead.overwritten = true;
        } else if next.gap_at_start().is_none() {
            self.fail(next.start, next.start, Cause::Continuation { found, expected }, None);
        }
    }

    /// Takes over the lead of the next run. In a gap it is what remains of a record.
    fn take_lead(&mut self, books: &mut Books) {
        if self.gap.is_some() {
            let bytes = books.take(Heading::Continuation, u64::MAX);
            books.add(Heading::Incomplete, bytes);
        }
        self.current_books().merge(books);
    }

    /// The gap before the first record.
    fn gap_before_first(&self) -> Option<&Gap> {
        let gap = if self.is_lead_closed() { &self.lead_gap } else { &self.gap };
        gap.as_ref()
    }

    /// The same, to be changed.
    fn lead_gap_mut(&mut self) -> &mut Option<Gap> {
        if self.is_lead_closed() { &mut self.lead_gap } else { &mut self.gap }
    }

    /// Whether a record has ended the gap before the first record: one in the range, or one after it.
    fn is_lead_closed(&self) -> bool {
        self.first.is_some() || self.lead_gap.is_some()
    }

    /// The gap at the very start of this run, which is there if its first page is not valid.
    fn gap_at_start(&self) -> Option<&Gap> {
        self.gap_before_first().filter(|gap| gap.start == self.start)
    }

    /// Follows the record that goes on after this run through the lead of the next.
    fn go_on(&mut self, mut open: Pending, next: &mut Run, scope: &Scope) {
        let expected = open.left();
        let followed = next.lead.announced == Some(expected);
        if followed {
            let mut lead = std::mem::take(&mut next.lead);
            // What the next run has skipped after its lead is no part of this record.
            let dropped = lead.books.take(Heading::Incomplete, u64::MAX);
            open.append(scope, &lead);
            if open.left() == 0 && self.gap.is_none() && scope.is_after(lead.end) {
                // A single run would not have read on either: it does not matter whether this record is
                // valid.
                self.drop_record(scope, &mut open, Heading::Incomplete);
                self.current_books().add(Heading::Incomplete, dropped);
                return;
            }
            if open.left() == 0 {
                self.complete(scope, &mut open, lead.end);
                self.current_books().add(Heading::Incomplete, dropped);
                if self.switched_at(open.lsn) {
                    self.take_switch(next, lead.end, scope);
                }
                return;
            }
            next.lead.overwritten = lead.overwritten;
        }
        // A gap that begins with a page that continues another record is left as it is.
        let gap = if followed { next.gap_before_first() } else { next.gap_at_start() };
        if next.lead.overwritten {
            self.drop_record(scope, &mut open, Heading::Overwritten);
        } else if followed && next.range_end.is_some() && next.first.is_none() && gap.is_none() {
            self.drop_record(scope, &mut open, Heading::Incomplete);
        } else if let Some(gap) = gap {
            self.fail_record(&scope.geometry, &mut open, gap.seen_at, gap.cause.clone());
        } else if next.first.is_none() && open.left() < expected {
            self.open = Some(open);
        } else {
            let cause =
                Cause::Continuation { found: next.lead.announced, expected: Some(expected) };
            self.fail_record(&scope.geometry, &mut open, next.start, cause);
        }
    }

    /// A switch that ends in the next run, at `from`: the rest of that segment is no gap.
    fn take_switch(&mut self, next: &mut Run, from: Lsn, scope: &Scope) {
        let segment = u64::from(scope.geometry.segment_bytes);
        let end = Lsn(from.0.next_multiple_of(segment));
        let closed = next.is_lead_closed();
        let gap = next.lead_gap_mut();
        let Some(found) = gap else { return };
        let bytes = scope.clip(from.aligned(), end);
        let mut left = bytes;
        for heading in [Heading::Zero, Heading::Stale, Heading::PageHeader] {
            left -= found.counts.take(heading, left);
        }
        self.books.add(Heading::Switch, bytes - left);
        for place in &mut found.bad_places {
            place.bytes_before = place.bytes_before.saturating_sub(bytes - left);
        }
        if left > 0 {
            // The file ends before the segment does.
            let cut = Lsn(from.aligned().0 + bytes - left);
            (found.start, found.seen_at, found.cause) = (cut, cut, Cause::Cut);
            return;
        }
        if end >= scope.end {
            self.range_end = Some(scope.end);
        }
        found.start = end;
        if closed || found.counts.total() == 0 {
            self.books.merge(&found.counts);
            *gap = None;
        }
    }

    /// Takes over the gap before the first record of the next run, or all of it.
    fn take_gap(&mut self, next: &mut Run, geometry: &Geometry) {
        let gap = next.lead_gap_mut().take();
        // Of the next run it is old only if that begins with a page that is.
        let behind = gap.as_ref().filter(|gap| gap.rest_is_old && gap.start == next.start);
        let behind = behind.map_or(PagesBehind::Other, |gap| gap.pages_behind);
        if let Some(ours) = &mut self.gap {
            ours.pages_behind = ours.pages_behind.max(behind);
        }
        match (&mut self.gap, gap) {
            (Some(ours), Some(theirs)) => ours.go_on(theirs),
            (ours @ None, theirs) => *ours = theirs,
            (Some(_), None) => {}
        }
        if self.gap.is_some() {
            // As in one run: what follows a gap need not link to what lies before it.
            self.link = Link::Unknown;
        }
        let Some(first) = next.first else { return self.close_beyond(next, geometry) };
        let whole = self.gap.is_none();
        self.close_gap(first, geometry);
        if let (true, Some(last)) = (whole, self.last)
            && first.previous != last.lsn
        {
            self.problems.push(broken_link(first, last, geometry));
            self.observer.lost(last.next..first.lsn);
        }
    }

    /// Decides by what lies after the range whether the gap at its end is damage.
    fn close_beyond(&mut self, next: &mut Run, geometry: &Geometry) {
        let Some(mut beyond) = next.beyond.take() else { return };
        if let Some(gap) = &mut self.gap {
            gap.record_follows |= beyond.record_hidden;
            self.problems.append(&mut beyond.problems);
            if let Some(lsn) = beyond.record {
                self.close_gap(First::beyond(lsn), geometry);
            }
        }
        self.beyond = Some(beyond);
    }

    fn append(mut self, next: Run) -> Run {
        self.end = next.end;
        self.last_page = next.last_page.or(self.last_page);
        self.books.merge(&next.books);
        self.problems.extend(next.problems);
        self.claims.append(next.claims, self.last.map(|last| last.next));
        self.first_in_range = self.first_in_range.or(next.first_in_range);
        self.counted_end = next.counted_end.or(self.counted_end);
        self.counted += next.counted;
        self.filtered_commits += next.filtered_commits;
        self.input_bytes += next.input_bytes;
        self.range_end = self.range_end.or(next.range_end);
        self.open = self.open.or(next.open);
        self.ends_overwritten |= next.ends_overwritten;
        if next.first.is_some() {
            self.first = self.first.or(next.first);
            self.last = next.last;
            self.link = next.link;
            self.gap = next.gap;
            self.ends_overwritten = next.ends_overwritten;
        }
        self.observer.merge(next.observer);
        self
    }
}
