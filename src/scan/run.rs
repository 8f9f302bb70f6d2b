//! What reading a run of consecutive segments gives, and how two neighbours become one.
//!
//! A record belongs to the run where it starts. So a run leaves two ends open: its lead (bytes
//! before its first record, which the run before may claim) and its tail (a gap that may turn
//! out to be damage or the end). Joining closes them; it is associative, so any division of
//! the input gives the same result.

use super::books::{Books, Heading};
use super::damage::{Cause, Gap};
use super::record::Observe;
use crate::input::problem::Problem;
use crate::wal::lsn::Lsn;
use crate::wal::record::{HeaderFault, RecordHeader};
use crate::wal::version::Version;

/// The first valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it says that the record before starts.
    pub previous: Lsn,
}

/// The last valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one is to start, page headers not skipped.
    pub next: Lsn,
    /// Its header.
    pub header: RecordHeader,
}

/// Bytes beyond the run that its last record claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owed {
    /// How many bytes of content, page headers and alignment not counted.
    pub bytes: u64,
    /// Their heading; `None`: the statistics have them.
    pub heading: Option<Heading>,
}

/// The result of reading a run of consecutive segments.
#[derive(Debug)]
pub struct Run<O> {
    /// First byte.
    pub start: Lsn,
    /// Behind the last byte.
    pub end: Lsn,
    /// Bytes before the first record, as the page headers explain them.
    pub lead: Books,
    /// A gap before the first record; if there is a first record, the gap ends there.
    pub lead_gap: Option<Gap>,
    /// The first valid record.
    pub first: Option<First>,
    /// The last valid record.
    pub last: Option<Last>,
    /// What the last record claims beyond the run.
    pub owed: Option<Owed>,
    /// A gap behind the last record.
    pub tail: Option<Gap>,
    /// Everything else that is not in a counted record.
    pub books: Books,
    /// Damage between first and last record.
    pub problems: Vec<Problem>,
    /// The first valid record in the range, before any filter.
    pub first_in_range: Option<Lsn>,
    /// Behind the last counted record: rounded up, or the segment's end after a switch.
    pub counted_end: Option<Lsn>,
    /// Whether the last thing in the run is a torn record that recovery replaced.
    pub ends_overwritten: bool,
    /// Whether the end of the range, or the limit, was reached: where.
    pub range_end: Option<Lsn>,
    /// Bytes read.
    pub input_bytes: u64,
    /// What was counted.
    pub observer: O,
}

impl<O: Observe> Run<O> {
    /// Joins the run that lies directly behind this one.
    pub fn join(mut self, mut next: Run<O>, version: &'static Version) -> Run<O> {
        self.claim(&mut next);
        let found = next.first;
        let open = if self.first.is_some() { &mut self.tail } else { &mut self.lead_gap };
        if let Some(gap) = open {
            gap.counts.merge(&next.lead);
            if let Some(later) = next.lead_gap.take() {
                gap.counts.merge(&later.counts);
            }
            if found.is_some() && self.first.is_some() {
                self.close_tail(version);
            }
        } else {
            let lead = if self.first.is_some() { &mut self.books } else { &mut self.lead };
            lead.merge(&next.lead);
            *open = next.lead_gap.take();
            if let (Some(last), Some(first)) = (self.last, found) {
                self.close_tail(version);
                self.check_link(last, first, version);
            }
        }
        self.append(next)
    }

    /// Gives the bytes that our last record claims out of the lead of the next run.
    fn claim(&mut self, next: &mut Run<O>) {
        let Some(owed) = self.owed.take() else { return };
        let claimed = next.lead.take(Heading::Continuation, owed.bytes);
        if let Some(heading) = owed.heading {
            next.lead.add(heading, claimed);
        }
        let left = owed.bytes - claimed;
        if left > 0 && next.first.is_none() && next.lead_gap.is_none() {
            self.owed = Some(Owed { bytes: left, ..owed });
        }
    }

    /// A valid record follows the gap at the end: it was damage.
    pub fn close_tail(&mut self, version: &'static Version) {
        if let Some(gap) = self.tail.take() {
            self.problems.push(gap.problem(version));
            self.books.add(Heading::Damaged, gap.counts.total());
        }
    }

    fn check_link(&mut self, last: Last, first: First, version: &'static Version) {
        let gone_on = self.problems.last().is_some_and(|p| p.lsn >= Some(last.next));
        if first.previous == last.lsn || gone_on {
            return;
        }
        let cause = Cause::Header(HeaderFault::Previous {
            found: first.previous,
            expected: Some(last.lsn),
        });
        let gap = Gap {
            start: first.lsn,
            seen_at: first.lsn,
            cause,
            record_bytes: None,
            counts: Books::default(),
            stale_follows: false,
        };
        self.problems.push(gap.problem(version));
    }

    fn append(mut self, next: Run<O>) -> Run<O> {
        self.end = next.end;
        self.books.merge(&next.books);
        self.problems.extend(next.problems);
        self.first_in_range = self.first_in_range.or(next.first_in_range);
        self.counted_end = next.counted_end.or(self.counted_end);
        self.input_bytes += next.input_bytes;
        self.range_end = self.range_end.or(next.range_end);
        if next.first.is_some() {
            self.first = self.first.or(next.first);
            self.last = next.last;
            self.tail = next.tail;
            self.owed = next.owed;
            self.ends_overwritten = next.ends_overwritten;
        }
        self.observer.merge(next.observer);
        self
    }
}
