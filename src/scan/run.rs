//! What reading a run of consecutive segments gives, and how two neighbours become one.
//!
//! A record belongs to the run where it starts. So a run leaves ends open: its lead (the rest
//! of a record that began before), a record that goes on after it, and a gap that may turn
//! out to be damage or the end. Joining closes them; it is associative, so any division of the
//! input gives the same result.

use super::books::{Books, Heading};
use super::damage::{Cause, Gap};
use super::pending::{Lead, Pending};
use super::record::{Observe, Record, Select};
use super::scope::Scope;
use crate::input::problem::Problem;
use crate::wal::lsn::Lsn;
use crate::wal::record::{HeaderFault, RecordHeader};
use crate::wal::version::Version;
use serde::{Deserialize, Serialize};

/// The first valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it says that the record before starts.
    pub previous: Lsn,
}

/// The last valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one is to start, page headers not skipped; not after the range.
    pub next: Lsn,
    /// Its header.
    pub header: RecordHeader,
}

/// What the next record has to say of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// Anything: nothing is known of what lies before it.
    Unknown,
    /// That it is the last one.
    Last,
    /// Anything at first: a segment begins. Once it is valid, it is held against the last one.
    LastUnchecked,
}

/// The result of reading a run of consecutive segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run<O> {
    /// First byte.
    pub start: Lsn,
    /// Behind the last byte.
    pub end: Lsn,
    /// The rest of a record that began before.
    pub lead: Lead,
    /// A gap between the lead and the first record.
    pub lead_gap: Option<Gap>,
    /// The first valid record.
    pub first: Option<First>,
    /// The last valid record.
    pub last: Option<Last>,
    /// What the next record must link to.
    pub link: Link,
    /// A record that goes on after the run.
    pub open: Option<Pending>,
    /// A gap that is still open.
    pub gap: Option<Gap>,
    /// Everything else that is not in a counted record.
    pub books: Books,
    /// Damage between first and last record.
    pub problems: Vec<Problem>,
    /// The first valid record in the range, before any filter.
    pub first_in_range: Option<Lsn>,
    /// Behind the last counted record: rounded up, or the segment's end after a switch.
    pub counted_end: Option<Lsn>,
    /// How many records were counted.
    pub counted: u64,
    /// Commits that the filters left out.
    pub filtered_commits: u64,
    /// Whether the last thing in the run is a torn record that recovery replaced.
    pub ends_overwritten: bool,
    /// Where the end of the range, or the limit, was reached.
    pub range_end: Option<Lsn>,
    /// Bytes read.
    pub input_bytes: u64,
    /// What was counted.
    pub observer: O,
}

impl<O: Observe> Run<O> {
    /// A run of which nothing was read yet; `observer`: an empty one.
    pub fn new(start: Lsn, end: Lsn, observer: O) -> Run<O> {
        Run {
            start,
            end,
            lead: Lead::new(O::WHOLE),
            lead_gap: None,
            first: None,
            last: None,
            link: Link::Unknown,
            open: None,
            gap: None,
            books: Books::default(),
            problems: Vec::new(),
            first_in_range: None,
            counted_end: None,
            counted: 0,
            filtered_commits: 0,
            ends_overwritten: false,
            range_end: None,
            input_bytes: 0,
            observer,
        }
    }

    /// Whether there is WAL in it: a record, or at least a piece of one.
    pub fn has_wal(&self) -> bool {
        self.first.is_some() || self.open.is_some() || self.lead.got > 0
    }

    /// The record that the next one has to link to, where that is known beforehand.
    pub fn expected_prev(&self) -> Option<Lsn> {
        self.last.filter(|_| self.link == Link::Last).map(|last| last.lsn)
    }

    /// Where bytes that are not in a record are booked at the moment.
    pub fn open_books(&mut self) -> &mut Books {
        match &mut self.gap {
            Some(gap) => &mut gap.counts,
            None if self.first.is_none() => &mut self.lead.books,
            None => &mut self.books,
        }
    }

    /// Takes a valid record: closes the gap before it, counts it if it is in the range.
    /// `inside`: its bytes in the range.
    pub fn accept<S: Select>(&mut self, scope: &Scope<S>, record: &Record<'_>, inside: u64) {
        let (lsn, header) = (record.lsn, record.header);
        let first = First { lsn, previous: header.previous };
        if let (Link::LastUnchecked, Some(last)) = (self.link, self.last)
            && last.lsn != first.previous
        {
            self.problems.push(broken_link(first, last, scope.geometry.version));
            self.observer.lost(last.next..lsn);
        }
        self.close_gap(lsn, scope.geometry.version);
        self.first.get_or_insert(first);
        let mut next = record.end.aligned();
        if header.is_switch() {
            let segment = u64::from(scope.geometry.segment_bytes);
            next = Lsn(record.end.0.next_multiple_of(segment));
        }
        self.follow(Last { lsn, next: next.min(scope.end), header });
        if lsn < scope.start {
            self.books.add(Heading::Continuation, inside);
            return;
        }
        self.first_in_range.get_or_insert(lsn);
        if !scope.select.accepts(record) {
            self.observer.pass_over(record);
            self.books.add(Heading::Filtered, u64::from(header.total_bytes));
            self.filtered_commits += u64::from(header.is_commit());
            return;
        }
        self.observer.observe(record);
        self.counted_end = Some(next);
        self.counted += 1;
        if scope.limit.is_some_and(|limit| self.counted >= limit) {
            self.range_end = Some(record.end);
        }
    }

    /// Takes note of the last valid record.
    pub fn follow(&mut self, last: Last) {
        self.last = Some(last);
        self.link = Link::Last;
        self.ends_overwritten = false;
    }

    /// Judges a record of which all bytes were seen, and books them: counted, or in the gap
    /// that is opened if it is none.
    pub fn complete<S: Select>(&mut self, scope: &Scope<S>, pending: &mut Pending, end: Lsn) {
        match scope.decode((pending.lsn, end), pending.head(), self.expected_prev()) {
            Err(cause) => self.fail_record(pending, pending.lsn, cause),
            Ok(_) if end > scope.end => {
                self.close_gap(pending.lsn, scope.geometry.version);
                self.drop_record(scope, pending, Heading::Incomplete);
                self.range_end = Some(scope.end);
            }
            Ok(record) => {
                let mut between = pending.counts;
                let bytes = between.take(Heading::Incomplete, u64::MAX);
                self.accept(scope, &record, bytes);
                self.open_books().merge(&between);
            }
        }
    }

    /// A segment begins: as a run that begins there would, takes its first record without
    /// looking at its link, which is held against the last record afterwards.
    pub fn begin_segment(&mut self) {
        self.link = match self.link {
            Link::Unknown => Link::Unknown,
            Link::Last | Link::LastUnchecked => Link::LastUnchecked,
        };
    }

    /// Whether the last record is a switch that starts at `lsn`.
    pub fn switched_at(&self, lsn: Lsn) -> bool {
        self.last.is_some_and(|last| last.lsn == lsn && last.header.is_switch())
    }

    /// Books what there is of a record that is not counted, under `heading`.
    pub fn drop_record<S>(&mut self, scope: &Scope<S>, pending: &mut Pending, heading: Heading) {
        if heading == Heading::Incomplete && pending.lsn >= scope.start {
            self.first_in_range.get_or_insert(pending.lsn);
        }
        let bytes = pending.counts.take(Heading::Incomplete, u64::MAX);
        pending.counts.add(heading, bytes);
        self.open_books().merge(&pending.counts);
        self.ends_overwritten |= heading == Heading::Overwritten;
    }

    /// A record that was followed turns out to be none: it becomes part of a gap.
    pub fn fail_record(&mut self, pending: &mut Pending, seen_at: Lsn, cause: Cause) {
        self.fail(pending.lsn, seen_at, cause, Some(pending.total_bytes));
        self.open_books().merge(&pending.counts);
    }

    /// There is no valid record at `start`: opens a gap unless one is open.
    pub fn fail(&mut self, start: Lsn, seen_at: Lsn, cause: Cause, record_bytes: Option<u32>) {
        self.link = Link::Unknown;
        let gap = || Gap {
            start,
            seen_at,
            cause,
            record_bytes,
            counts: Books::default(),
            stale_follows: false,
            record_follows: false,
        };
        self.gap.get_or_insert_with(gap);
    }

    /// A valid record follows at `next`: the gap was damage, or it belongs to the lead.
    pub fn close_gap(&mut self, next: Lsn, version: &Version) {
        let Some(gap) = self.gap.take() else { return };
        if self.first.is_none() {
            self.lead_gap = Some(gap);
        } else {
            self.gap_is_damage(&gap, version);
            self.observer.lost(gap.start..next);
        }
    }

    /// Books a gap as damage.
    pub fn gap_is_damage(&mut self, gap: &Gap, version: &Version) {
        // A file that ends early is wrong even if nothing was lost.
        if gap.counts.total() > 0 || gap.cause == Cause::Cut {
            self.problems.push(gap.problem(version));
            self.books.add(Heading::Damaged, gap.counts.total());
        }
    }

    /// Joins the run that lies directly after this one.
    pub fn join<S: Select>(mut self, mut next: Run<O>, scope: &Scope<S>) -> Run<O> {
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
        self.take_gap(&mut next, scope.geometry.version);
        self.append(next)
    }

    /// Whether the lead of this run continues `lead`, which fills the run before.
    fn lead_goes_on(&self, lead: &Lead) -> bool {
        lead.left() > 0 && self.lead.announced == Some(lead.left())
    }

    /// What the next run begins with must be what this one announced: the rest of our own
    /// lead, or nothing; or the record that is our lead was replaced there.
    fn check_lead(&mut self, next: &Run<O>) {
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
        self.open_books().merge(books);
    }

    /// The gap before any record.
    fn gap_before_first(&self) -> Option<&Gap> {
        let gap = if self.first.is_some() { &self.lead_gap } else { &self.gap };
        gap.as_ref()
    }

    /// The gap that this run begins with: its first page is none.
    fn gap_at_start(&self) -> Option<&Gap> {
        self.gap_before_first().filter(|gap| gap.start == self.start)
    }

    /// Follows the record that goes on after this run through the lead of the next.
    fn go_on<S: Select>(&mut self, mut open: Pending, next: &mut Run<O>, scope: &Scope<S>) {
        let expected = open.left();
        let followed = next.lead.announced == Some(expected);
        if followed {
            let mut lead = std::mem::take(&mut next.lead);
            // What the next run has dropped after the lead is no part of this record.
            let dropped = lead.books.take(Heading::Incomplete, u64::MAX);
            open.append(scope, &lead);
            if open.left() == 0 {
                self.complete(scope, &mut open, lead.end);
                self.open_books().add(Heading::Incomplete, dropped);
                if self.switched_at(open.lsn) {
                    self.take_switch(next, lead.end, scope);
                }
                return;
            }
            next.lead.overwritten = lead.overwritten;
        }
        // A gap after a page that continues something else has no part in this.
        let gap = if followed { next.gap_before_first() } else { next.gap_at_start() };
        if next.lead.overwritten {
            self.drop_record(scope, &mut open, Heading::Overwritten);
        } else if followed && next.range_end.is_some() && next.first.is_none() && gap.is_none() {
            self.drop_record(scope, &mut open, Heading::Incomplete);
        } else if let Some(gap) = gap {
            self.fail_record(&mut open, gap.seen_at, gap.cause.clone());
        } else if next.first.is_none() && open.left() < expected {
            self.open = Some(open);
        } else {
            let cause =
                Cause::Continuation { found: next.lead.announced, expected: Some(expected) };
            self.fail_record(&mut open, next.start, cause);
        }
    }

    /// A switch that ends in the next run, at `from`: the rest of that segment is no gap.
    fn take_switch<S>(&mut self, next: &mut Run<O>, from: Lsn, scope: &Scope<S>) {
        let segment = u64::from(scope.geometry.segment_bytes);
        let end = Lsn(from.0.next_multiple_of(segment));
        let gap = if next.first.is_some() { &mut next.lead_gap } else { &mut next.gap };
        let Some(found) = gap else { return };
        let bytes = scope.clip(from.aligned(), end);
        self.books.add(Heading::Switch, bytes);
        if end >= scope.end {
            self.range_end = Some(scope.end);
        }
        let mut left = bytes;
        for heading in [Heading::Zero, Heading::Stale, Heading::PageHeader] {
            left -= found.counts.take(heading, left);
        }
        found.start = end;
        if next.first.is_some() || found.counts.total() == 0 {
            self.books.merge(&found.counts);
            *gap = None;
        }
    }

    /// Takes over the gap before the first record of the next run, or all of it.
    fn take_gap(&mut self, next: &mut Run<O>, version: &'static Version) {
        let gap = if next.first.is_some() { next.lead_gap.take() } else { next.gap.take() };
        match (&mut self.gap, gap) {
            (Some(ours), Some(theirs)) => {
                ours.counts.merge(&theirs.counts);
                ours.record_follows |= theirs.record_follows;
            }
            (ours @ None, theirs) => *ours = theirs,
            (Some(_), None) => {}
        }
        if self.gap.is_some() {
            // As in one run: what follows a gap need not link to what lies before it.
            self.link = Link::Unknown;
        }
        let Some(first) = next.first else { return };
        let whole = self.gap.is_none();
        self.close_gap(first.lsn, version);
        if let (true, Some(last)) = (whole, self.last)
            && first.previous != last.lsn
        {
            self.problems.push(broken_link(first, last, version));
            self.observer.lost(last.next..first.lsn);
        }
    }

    fn append(mut self, next: Run<O>) -> Run<O> {
        self.end = next.end;
        self.books.merge(&next.books);
        self.problems.extend(next.problems);
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

    /// Nothing follows: a record that goes on is cut, where the input ends.
    pub fn end_of_input(&mut self) {
        if let Some(mut open) = self.open.take() {
            self.fail_record(&mut open, self.end, Cause::Cut);
        }
    }
}

impl<O> Run<O> {
    /// The same run with something else that was counted in it, and what it was before.
    pub fn with<P>(self, observer: P) -> (Run<P>, O) {
        let run = Run {
            start: self.start,
            end: self.end,
            lead: self.lead,
            lead_gap: self.lead_gap,
            first: self.first,
            last: self.last,
            filtered_commits: self.filtered_commits,
            link: self.link,
            open: self.open,
            gap: self.gap,
            books: self.books,
            problems: self.problems,
            first_in_range: self.first_in_range,
            counted_end: self.counted_end,
            counted: self.counted,
            ends_overwritten: self.ends_overwritten,
            range_end: self.range_end,
            input_bytes: self.input_bytes,
            observer,
        };
        (run, self.observer)
    }
}

/// Two runs whose records do not link, with nothing wrong between them.
fn broken_link(first: First, last: Last, version: &Version) -> Problem {
    let cause =
        Cause::Header(HeaderFault::Previous { found: first.previous, expected: Some(last.lsn) });
    let gap = Gap {
        start: first.lsn,
        seen_at: first.lsn,
        cause,
        record_bytes: None,
        counts: Books::default(),
        stale_follows: false,
        record_follows: false,
    };
    gap.problem(version)
}
