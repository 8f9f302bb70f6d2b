//! What reading a run of consecutive segments gives, and how records get into it.
//!
//! A record belongs to the run where it starts. So a run leaves ends open: its lead (the rest
//! of a record that began before), a record that goes on after it, and a gap that may turn
//! out to be damage or the end. `join` closes them.

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

/// What lies after the range, looked at where no record ends in it: a gap before it was damage if a
/// record follows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Beyond {
    /// Where the first valid record starts, if there is one.
    pub record: Option<Lsn>,
    /// Whether one lies on a page that cannot be believed.
    pub record_hidden: bool,
    /// What is wrong with the files there.
    pub problems: Vec<Problem>,
}

/// The result of reading a run of consecutive segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run<O> {
    /// First byte.
    pub start: Lsn,
    /// After the last byte.
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
    /// After the last counted record: rounded up, or the segment's end after a switch.
    pub counted_end: Option<Lsn>,
    /// How many records were counted: kept under a limit only, where no fast way is taken.
    pub counted: u64,
    /// Commits that the filters left out.
    pub filtered_commits: u64,
    /// Whether the last thing in the run is a torn record that recovery replaced.
    pub ends_overwritten: bool,
    /// Where the end of the range, or the limit, was reached.
    pub range_end: Option<Lsn>,
    /// What lies after it.
    pub beyond: Option<Beyond>,
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
            beyond: None,
            input_bytes: 0,
            observer,
        }
    }

    /// Whether there is WAL in it: a record, or at least a piece of one.
    pub fn has_wal(&self) -> bool {
        self.first.is_some() || self.open.is_some() || self.lead.got > 0
    }

    /// The record that the next one has to link to, where that is known beforehand.
    pub fn expected_previous(&self) -> Option<Lsn> {
        self.last.filter(|_| self.link == Link::Last).map(|last| last.lsn)
    }

    /// Where bytes that are not in a record are booked at the moment.
    pub fn current_books(&mut self) -> &mut Books {
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
            self.books.add(Heading::Filtered, u64::from(header.total_bytes));
            self.filtered_commits += u64::from(header.is_commit());
            self.observer.passed_over(record);
            return;
        }
        self.observer.observe(record);
        self.counted_end = Some(next);
        self.counted += 1;
        if scope.limit.is_some_and(|limit| self.counted >= limit) {
            self.range_end = Some(record.end);
        }
    }

    /// Takes a valid record that ends after the range: it closes the gap before it, and is not
    /// counted. `inside`: its bytes in the range.
    pub fn accept_beyond<S>(&mut self, scope: &Scope<S>, lsn: Lsn, inside: &Books) {
        self.close_gap(lsn, scope.geometry.version);
        if (scope.start..scope.end).contains(&lsn) {
            self.first_in_range.get_or_insert(lsn);
        }
        self.books.merge(inside);
        self.range_end = Some(scope.end);
        self.beyond = Some(Beyond { record: Some(lsn), ..Beyond::default() });
    }

    /// A run that looks at what comes after the range of this one, in which no record ends: as if
    /// there were a gap before it.
    pub fn look_beyond(&self, end: Lsn) -> Run<O> {
        let mut run = Run::new(end, self.end, self.observer.clone());
        run.fail(end, end, Cause::Cut, None);
        run
    }

    /// Takes over what such a run has seen, the bytes included of a record that begins in the range.
    pub fn take_beyond(&mut self, mut seen: Run<O>) {
        let gap = seen.gap.take().or(seen.lead_gap.take());
        let mut beyond = seen.beyond.take().unwrap_or_default();
        beyond.problems = seen.problems;
        if let Some(gap) = gap {
            beyond.record_hidden = gap.record_follows;
            self.lead.books.merge(&gap.counts);
        }
        self.books.merge(&seen.books);
        self.beyond = Some(beyond);
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
        match scope.decode((pending.lsn, end), pending.head(), self.expected_previous()) {
            Err(cause) => self.fail_record(pending, pending.lsn, cause),
            Ok(_) if end > scope.end => self.accept_beyond(scope, pending.lsn, &pending.counts),
            Ok(record) => {
                let mut between = pending.counts;
                let bytes = between.take(Heading::Incomplete, u64::MAX);
                self.accept(scope, &record, bytes);
                self.current_books().merge(&between);
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
        let inside = (scope.start..scope.end).contains(&pending.lsn);
        if heading == Heading::Incomplete && inside {
            self.first_in_range.get_or_insert(pending.lsn);
        }
        let bytes = pending.counts.take(Heading::Incomplete, u64::MAX);
        pending.counts.add(heading, bytes);
        self.current_books().merge(&pending.counts);
        self.ends_overwritten |= heading == Heading::Overwritten;
    }

    /// A record that was followed turns out to be none: it becomes part of a gap.
    pub fn fail_record(&mut self, pending: &mut Pending, seen_at: Lsn, cause: Cause) {
        let (seen_at, cause) = match (pending.linked, cause) {
            (None, cause) | (_, cause @ Cause::Unreadable(_)) => (seen_at, cause),
            (Some(next), _) => {
                let found = pending.total_bytes;
                (pending.lsn, Cause::Header(HeaderFault::Overlap { found, next }))
            }
        };
        self.fail(pending.lsn, seen_at, cause, Some(pending.total_bytes));
        self.current_books().merge(&pending.counts);
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
            beyond: self.beyond,
            input_bytes: self.input_bytes,
            observer,
        };
        (run, self.observer)
    }
}

/// Two runs whose records do not link, with nothing wrong between them.
pub(super) fn broken_link(first: First, last: Last, version: &Version) -> Problem {
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
