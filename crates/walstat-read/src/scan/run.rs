//! What reading a run of consecutive segments gives, and how records get into it.
//!
//! A record belongs to the run where it starts. So a run has open ends: its lead (the rest of a record
//! that began before), a record that goes on after it, and a gap at its end that may be damage or the
//! end of the WAL. `join` closes them.

use super::books::{Books, Heading};
use super::claims::Claims;
use super::damage::{Cause, First, Gap, Preceding};
use super::fast::UsualRecords;
use super::observe::{Observe, Shown};
use super::observer::Observer;
use super::pending::{Lead, Pending};
use super::scope::Scope;
use crate::input::problem::{Problem, ProblemKind};
use serde::{Deserialize, Serialize};
use walstat_format::block::needed::Referred;
use walstat_format::lsn::Lsn;
use walstat_format::page::{Geometry, LONG_HEADER_BYTES};
use walstat_format::payload::xlog::ParameterChange;
use walstat_format::record::Record;
use walstat_format::record_header::{HeaderFault, RecordHeader};
use walstat_format::segment::SEGMENT_BYTES;

/// The last valid record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one would start, page headers not skipped; at most the end of the range.
    pub next: Lsn,
    /// Its header.
    pub header: RecordHeader,
    /// Whether it is a switch that another record in its page links to.
    pub is_followed: bool,
}

impl Last {
    fn preceding(&self) -> Preceding {
        let Last { lsn, next, is_followed, .. } = *self;
        Preceding { lsn, next, goes_on: false, is_followed }
    }
}

/// What the link (`xl_prev`) of the next record has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// Anything: the record before it is not known.
    Unknown,
    /// The last record.
    Last,
    /// Anything at first, because a segment begins. Once the record is valid, its link is compared with
    /// the last record.
    LastUnchecked,
}

/// What lies after the range. It is looked at only if a run has no record in the range: if one follows,
/// a gap before was damage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Beyond {
    /// Where the first valid record starts, if there is one.
    pub record: Option<Lsn>,
    /// Whether one lies on a page whose header is wrong.
    pub record_hidden: bool,
    /// What is wrong with the files there.
    pub problems: Vec<Problem>,
}

/// The result of reading a run of consecutive segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
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
    /// A gap at the end of the run.
    pub gap: Option<Gap>,
    /// Everything else that is not in a counted record.
    pub books: Books,
    /// Damage between first and last record.
    pub problems: Vec<Problem>,
    /// What its records say that may be impossible.
    pub claims: Claims,
    /// The first valid record in the range, before any filter.
    pub first_in_range: Option<Lsn>,
    /// After the last counted record: rounded up, or the segment's end after a switch.
    pub counted_end: Option<Lsn>,
    /// How many records were counted; only kept if there is a limit.
    pub counted: u64,
    /// Commits that the filters left out.
    pub filtered_commits: u64,
    /// Whether the last thing in the run is a torn record that recovery replaced.
    pub ends_overwritten: bool,
    /// Where the end of the range, or the limit, was reached.
    pub range_end: Option<Lsn>,
    /// What lies after it.
    pub beyond: Option<Beyond>,
    /// Place and timeline of the last page that is whole.
    pub last_page: Option<(Lsn, u32)>,
    /// Bytes read.
    pub input_bytes: u64,
    /// What was counted.
    #[serde(skip)]
    pub observer: Observer,
}

impl Run {
    /// Whether its first record is the first of all, as `pg_resetwal` writes it: it begins its segment, and
    /// links to none (`WriteEmptyXLOG` in `src/bin/pg_resetwal/pg_resetwal.c`).
    pub(super) fn begins_anew(&self) -> bool {
        let begin = Lsn(self.start.0.saturating_add(LONG_HEADER_BYTES as u64));
        self.first == Some(First { lsn: begin, previous: Lsn(0) })
    }

    /// Whether a run that was read elsewhere can be that of one segment.
    pub(super) fn is_sound(&self) -> bool {
        let span = self.start..self.end;
        let bytes = self.end.0.checked_sub(self.start.0);
        bytes.is_some_and(|bytes| bytes <= u64::from(*SEGMENT_BYTES.end()))
            && self.input_bytes <= u64::from(*SEGMENT_BYTES.end())
            && [&self.gap, &self.lead_gap].into_iter().flatten().all(|gap| gap.is_sound(&span))
            && self.lead.is_sound()
            && self.open.as_ref().is_none_or(Pending::is_sound)
    }

    /// A run of which nothing was read yet; `observer`: an empty one.
    pub fn new(start: Lsn, end: Lsn, observer: Observer) -> Run {
        Run {
            start,
            end,
            lead: Lead::new(observer.needs_whole()),
            lead_gap: None,
            first: None,
            last: None,
            link: Link::Unknown,
            open: None,
            gap: None,
            books: Books::default(),
            problems: Vec::new(),
            claims: Claims::default(),
            first_in_range: None,
            counted_end: None,
            counted: 0,
            filtered_commits: 0,
            ends_overwritten: false,
            range_end: None,
            beyond: None,
            last_page: None,
            input_bytes: 0,
            observer,
        }
    }

    /// Whether there is WAL in it: a record, or at least a piece of one.
    pub(crate) fn has_wal(&self) -> bool {
        self.first.is_some() || self.open.is_some() || self.lead.got > 0
    }

    /// Whether it is nothing but a piece of a record that began before it and goes on after it.
    pub(super) fn is_all_lead(&self) -> bool {
        self.first.is_none()
            && self.gap.is_none()
            && self.lead_gap.is_none()
            && self.lead.left() > 0
    }

    /// The record that the next one has to link to, where that is known beforehand.
    pub(crate) fn expected_previous(&self) -> Option<Lsn> {
        self.last.filter(|_| self.link == Link::Last).map(|last| last.lsn)
    }

    /// Where bytes that are not in a record are booked at the moment.
    pub(crate) fn current_books(&mut self) -> &mut Books {
        match &mut self.gap {
            Some(gap) => &mut gap.counts,
            None if self.first.is_none() => &mut self.lead.books,
            None => &mut self.books,
        }
    }

    /// Takes a valid record: closes the gap before it, counts it if it is in the range.
    /// `inside`: its bytes in the range.
    pub fn accept(&mut self, scope: &Scope, record: &Record<'_>, inside: u64) {
        let (lsn, header) = (record.lsn, record.header);
        let first = First { lsn, previous: header.previous };
        if let (Link::LastUnchecked, Some(last)) = (self.link, self.last)
            && last.lsn != first.previous
        {
            self.problems.push(broken_link(first, last, &scope.geometry));
            self.observer.lost(last.next..lsn);
        }
        self.close_gap(first, &scope.geometry);
        self.first.get_or_insert(first);
        let torn = self.last.map(|last| last.next);
        let mut next = record.end.aligned();
        if header.is_switch() {
            let segment = u64::from(scope.geometry.segment_bytes);
            next = Lsn(record.end.0.next_multiple_of(segment));
        }
        self.follow(Last { lsn, next: next.min(scope.end), header, is_followed: false });
        if lsn < scope.start {
            self.books.add(Heading::Continuation, inside);
            return;
        }
        self.first_in_range.get_or_insert(lsn);
        let referred = Referred::to(record.blocks());
        let head = record.body.head.first_chunk();
        if head.is_none_or(|head| !scope.usual_types.needed(head).are_met_by(referred)) {
            self.problems.extend(minimal_level(record));
            self.claims.note(record, torn);
        }
        let selected = scope.selects(record);
        self.observer.observe_all(&[Shown { record: *record, selected }]);
        if header.is_switch() {
            self.observer.unused(record.end.aligned()..next);
        }
        if !selected {
            self.books.add(Heading::Filtered, u64::from(header.total_bytes));
            self.filtered_commits += u64::from(header.is_commit());
            return;
        }
        self.counted_end = Some(next);
        self.counted += 1;
        if scope.limit.is_some_and(|limit| self.counted >= limit) {
            self.range_end = Some(record.end);
        }
    }

    /// Takes usual records that were read, and observed.
    pub(super) fn take_usual(&mut self, read: &UsualRecords<'_, '_>) {
        let Some(header) = read.last_header() else { return };
        self.books.add(Heading::Padding, read.padding_bytes() as u64);
        self.books.add(Heading::PageHeader, read.page_header_bytes as u64);
        self.books.add(Heading::Filtered, read.filtered_bytes as u64);
        self.filtered_commits += read.filtered_commits as u64;
        self.follow(Last { lsn: read.previous, next: read.next(), header, is_followed: false });
        self.first_in_range.get_or_insert(read.first());
        if read.counted_end > Lsn(0) {
            self.counted_end = Some(read.counted_end.aligned());
        }
    }

    /// Takes a valid record that ends after the range: it closes the gap before it, and is not
    /// counted. `inside`: its bytes in the range.
    pub(crate) fn accept_beyond(&mut self, scope: &Scope, lsn: Lsn, inside: &Books) {
        self.close_gap(First::beyond(lsn), &scope.geometry);
        if (scope.start..scope.end).contains(&lsn) {
            self.first_in_range.get_or_insert(lsn);
        }
        self.books.merge(inside);
        self.range_end = Some(scope.end);
        self.beyond = Some(Beyond { record: Some(lsn), ..Beyond::default() });
    }

    /// A run for what lies after the range of this one, if no record ends in the range: as if there
    /// were a gap before it.
    pub fn look_beyond(&self, end: Lsn) -> Run {
        let mut run = Run::new(end, self.end, Observer::default());
        run.fail(end, end, Cause::Cut, None);
        run
    }

    /// Takes over what such a run has seen, and the bytes of a record that begins in the range.
    pub(crate) fn take_beyond(&mut self, mut seen: Run) {
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

    /// Takes note of whether the last record, a switch, has one behind it that links to it.
    pub(super) fn note_followed(&mut self, is_followed: bool) {
        self.last.iter_mut().for_each(|last| last.is_followed = is_followed);
    }

    /// Takes note of the last valid record.
    pub fn follow(&mut self, last: Last) {
        self.last = Some(last);
        self.link = Link::Last;
        self.ends_overwritten = false;
    }

    /// A record of which all bytes were seen: counts it, or opens a gap if it is not valid.
    pub fn complete(&mut self, scope: &Scope, pending: &mut Pending, end: Lsn) {
        match scope.decode(pending.lsn..end, pending.head(), self.expected_previous()) {
            Err(cause) => self.fail_record(&scope.geometry, pending, pending.lsn, cause),
            Ok(_) if end > scope.end => self.accept_beyond(scope, pending.lsn, &pending.counts),
            Ok(record) => {
                let mut between = pending.counts;
                let bytes = between.take(Heading::Incomplete, u64::MAX);
                self.accept(scope, &record, bytes);
                self.current_books().merge(&between);
            }
        }
    }

    /// A segment begins: accepts its first record whatever its link is, like a run that begins there,
    /// and compares the link with the last record afterwards.
    pub fn begin_segment(&mut self) {
        self.link = match self.link {
            Link::Unknown => Link::Unknown,
            Link::Last | Link::LastUnchecked => Link::LastUnchecked,
        };
    }

    /// Whether the last record is a switch that starts at `lsn`.
    pub(crate) fn switched_at(&self, lsn: Lsn) -> bool {
        self.last.is_some_and(|last| last.lsn == lsn && last.header.is_switch())
    }

    /// Books what there is of a record that is not counted, under `heading`.
    pub(crate) fn drop_record(&mut self, scope: &Scope, pending: &mut Pending, heading: Heading) {
        let inside = (scope.start..scope.end).contains(&pending.lsn);
        if heading == Heading::Incomplete && inside {
            self.first_in_range.get_or_insert(pending.lsn);
        }
        let bytes = pending.counts.take(Heading::Incomplete, u64::MAX);
        pending.counts.add(heading, bytes);
        self.current_books().merge(&pending.counts);
        self.ends_overwritten |= heading == Heading::Overwritten;
    }

    /// A record that was followed is not valid: it becomes part of a gap.
    pub(crate) fn fail_record(
        &mut self,
        geometry: &Geometry,
        pending: &mut Pending,
        seen_at: Lsn,
        cause: Cause,
    ) {
        let (seen_at, cause) = match (pending.linked, cause) {
            (None, cause) | (_, cause @ Cause::Unreadable(_)) => (seen_at, cause),
            (Some(next), _) => {
                let found = pending.total_bytes;
                (pending.lsn, Cause::Header(HeaderFault::Overlap { found, next }))
            }
        };
        let bytes = Some(pending.total_bytes);
        self.fail(pending.lsn, seen_at, cause.clone(), bytes);
        if cause.is_of_record() && !pending.may_be_unused {
            self.note_bad_place(geometry, pending.lsn, cause, bytes);
        }
        self.current_books().merge(&pending.counts);
    }

    /// There is no valid record at `start`: opens a gap unless one is open.
    pub fn fail(&mut self, start: Lsn, seen_at: Lsn, cause: Cause, record_bytes: Option<u32>) {
        self.link = Link::Unknown;
        self.gap.get_or_insert_with(|| Gap::new(start, seen_at, cause, record_bytes));
    }

    /// Takes note of a place in the gap where something else belongs.
    pub(super) fn note_bad_place(
        &mut self,
        geometry: &Geometry,
        lsn: Lsn,
        cause: Cause,
        record_bytes: Option<u32>,
    ) {
        if let Some(gap) = &mut self.gap {
            gap.note_bad_place(geometry, lsn, cause, record_bytes);
        }
    }

    /// A valid record follows at `next`: the gap was damage; or it is the gap between the lead and the
    /// first record.
    pub(crate) fn close_gap(&mut self, next: First, geometry: &Geometry) {
        let Some(gap) = self.gap.take() else { return };
        if self.first.is_none() {
            self.lead_gap = Some(gap);
        } else {
            self.gap_is_damage(&gap, Some(next), geometry);
            self.observer.lost(gap.start..next.lsn);
        }
    }

    /// Books a gap as damage; `next`: the first valid record after it, if it is known.
    pub(crate) fn gap_is_damage(&mut self, gap: &Gap, next: Option<First>, geometry: &Geometry) {
        // A file that ends early is a problem even if no byte was lost.
        if gap.counts.total() > 0 || gap.cause == Cause::Cut {
            let last = self.last.map(|last| last.preceding());
            let apart =
                next.and_then(|next| gap.preceding(last, next, geometry)?.is_apart(next, geometry));
            let mut problems = gap.problems(next, geometry);
            problems[0].elsewhere = apart.or(problems[0].elsewhere);
            self.problems.append(&mut problems);
            self.books.add(Heading::Damaged, gap.counts.total());
        }
    }

    /// No run follows: a record that goes on is cut off where the input ends.
    pub(crate) fn end_of_input(&mut self, geometry: &Geometry) {
        if let Some(mut open) = self.open.take() {
            self.fail_record(geometry, &mut open, self.end, Cause::Cut);
        }
    }
}

/// The problem of a record that sets wal_level to minimal. From there on what was written to tables may
/// be missing from the WAL, so no base backup is restored across it (`CheckRequiredParameterValues` in
/// `src/backend/access/transam/xlogrecovery.c`, tried with 13 to 15).
fn minimal_level(record: &Record<'_>) -> Option<Problem> {
    if !record.header.is_parameter_change() {
        return None;
    }
    let change = ParameterChange::parse(&record.main_data()?, record.version)?;
    let stops = record.version.minimal_ends_recovery;
    let what =
        if stops { "archive recovery stops here" } else { "data may be missing from here on" };
    let level = change.wal_level_name(record.version)?;
    change.is_minimal().then(|| {
        let expected = "wal_level replica or logical".to_owned();
        let found = format!("wal_level {level}: {what}");
        let problem = Problem::of_file(ProblemKind::WalLevel, "", expected, found);
        Problem { lsn: Some(record.lsn), ..problem }
    })
}

/// The problem of two runs with no gap between them, of which the second does not link to the first.
pub(super) fn broken_link(first: First, last: Last, geometry: &Geometry) -> Problem {
    let cause =
        Cause::Header(HeaderFault::Previous { found: first.previous, expected: Some(last.lsn) });
    let gap = Gap::new(first.lsn, first.lsn, cause, None);
    let problem = gap.problem(None, geometry);
    Problem { elsewhere: last.preceding().is_apart(first, geometry), ..problem }
}
