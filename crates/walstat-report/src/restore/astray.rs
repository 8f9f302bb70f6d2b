//! What a server does at a problem, if that is more than to end replay there: it goes on with other WAL, ends
//! with an error, or reads ahead and ends before.

use super::{Backup, Reached, Wal, consistent_from, wrong_size};
use std::fmt;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Fetched, Problem, ProblemKind};
use walstat_read::input::segment::Segment;
use walstat_read::input::timeline::Lineage;

/// What a server does at a problem where replay ends, if that is more than to end there.
pub(super) fn astray(problem: &Problem, wal: &Wal<'_>) -> Option<String> {
    let plan = wal.plan;
    let version = plan.version();
    match problem.kind {
        ProblemKind::History => by_wrong_history(problem, plan),
        ProblemKind::WalLevel if version.minimal_ends_recovery => Some(
            "; a server ends there with FATAL, unless it has a recovery target before".to_owned(),
        ),
        // Of a record that cannot be read recovery ends; redo of one that is read fails.
        ProblemKind::RecordBody if problem.skipped_bytes == 0 => {
            Some("; a server that redoes it may end with an error, and not open".to_owned())
        }
        ProblemKind::PageTimeline
            if plan.is_read_to_the_end(problem) =>
        {
            let older = &problem.found;
            Some(format!("; a server reads {older} of that file, and comes no farther"))
        }
        // Records that were decoded ahead are not replayed once a page of a timeline was seen that is not in
        // the history (`ReadRecord` in `src/backend/access/transam/xlogrecovery.c`).
        ProblemKind::PageTimeline if version.recovery.reads_ahead => Some(
            "; a server that reads ahead (recovery_prefetch) may see it, and end, some records before"
                .to_owned(),
        ),
        _ => by_older_file(problem, wal),
    }
}

/// What a server may meet ahead of the record that it replays, and end at.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// From where on.
    pub from: Lsn,
    /// What.
    what: String,
}

/// Bytes of records that a server decodes ahead (`wal_decode_buffer_size`, as it is unless it is set).
const DECODED_AHEAD: u64 = 512 * 1024;

/// What a server meets ahead, for a problem at which it ends.
pub(crate) fn ahead(wal: &Wal<'_>, reached: &Reached<'_>) -> Option<Ahead> {
    let problem = reached.broken?;
    let ends = is_foreign_page(problem, wal.plan) || wrong_size(problem, wal).is_some();
    (ends && wal.plan.version().recovery.reads_ahead).then(|| Ahead {
        from: ahead_from(wal, reached.last),
        what: format!("{} in {}", problem.kind, problem.segment),
    })
}

/// Whether a server ends at a page of a timeline that is not in its history, in the file that a problem is
/// of, or to which a wrong history leads.
fn is_foreign_page(problem: &Problem, plan: &Plan) -> bool {
    let bytes = plan.geometry.segment_bytes;
    match problem.kind {
        ProblemKind::PageTimeline => !plan.is_read_to_the_end(problem),
        ProblemKind::History => plan.wrong_lineage().is_some_and(|wrong| {
            let number = problem.lsn.map(|lsn| lsn.0 / u64::from(bytes));
            let file =
                number.and_then(|it| plan.files.get(&(wrong.of_file(it, bytes), it))?.first());
            let page = file.and_then(|file| file.first_page.as_ref().ok());
            page.is_some_and(|page| !wrong.has(page.header.timeline))
        }),
        _ => false,
    }
}

/// Before which record a server is that has decoded records up to a place ahead. What is unused of a segment
/// that was closed early is none.
fn ahead_from(wal: &Wal<'_>, place: Lsn) -> Lsn {
    let segment = u64::from(wal.plan.geometry.segment_bytes);
    let (mut at, mut left) = (place.0, DECODED_AHEAD);
    loop {
        let begin = at.saturating_sub(1) / segment * segment;
        if begin == 0 || at - begin >= left {
            return Lsn(at.saturating_sub(left));
        }
        left -= at - begin;
        let before = wal.reach.before(Lsn(begin)).filter(|point| point.switch);
        let closed = before.filter(|point| point.end.0.next_multiple_of(segment) == begin);
        at = closed.map_or(begin, |point| point.end.0);
    }
}

/// That a backup need not be consistent before a server that reads ahead ends at a page.
pub(crate) fn ends_inconsistent(
    backup: &Backup,
    wal: &Wal<'_>,
    reached: &Reached<'_>,
) -> Option<String> {
    reached.broken.filter(|problem| is_foreign_page(problem, wal.plan))?;
    let (ahead, from) = (ahead(wal, reached)?, consistent_from(backup, wal)?);
    let stop = reached.stop;
    (from > ahead.from && from <= stop).then(|| {
        format!(
            "not restorable with recovery_prefetch: consistent from {from} on, and {ahead}; with \
             recovery_prefetch = off restorable to LSN {stop} only"
        )
    })
}

impl fmt::Display for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a server that reads ahead may meet {} before it stops, and end", self.what)
    }
}

/// What a server does where a segment is missing that an older timeline has too, or has to go: it takes that
/// one, and goes on with what the newer timeline left (`XLogFileReadAnyTLI` in
/// `src/backend/access/transam/xlogrecovery.c`).
pub(super) fn by_older_file(problem: &Problem, wal: &Wal<'_>) -> Option<String> {
    let plan = wal.plan;
    let bytes = plan.geometry.segment_bytes;
    let name = SegmentName::leading(&problem.segment)?;
    let number = name.number(bytes)?;
    let is_there = |timeline: u32, number: u64| is_there(plan, timeline, number);
    let begun = plan.lineage.spans().filter(|(timeline, span)| {
        *timeline < name.timeline && span.start.0 / u64::from(bytes) <= number
    });
    let older =
        begun.map(|(timeline, _)| timeline).filter(|older| is_there(*older, number)).max()?;
    // Behind the place where a later timeline begins, its first segment is no help.
    let begins = plan.lineage.spans().find(|(timeline, _)| *timeline == name.timeline)?.1.start;
    let is_first = begins.0 / u64::from(bytes) == number;
    // A tool fails on what it cannot unpack.
    let is_missed = matches!(
        problem.kind,
        ProblemKind::MissingSegment
            | ProblemKind::Truncated
            | ProblemKind::Unreadable
            | ProblemKind::CodecChecksum
    );
    let has_to_go = || wrong_size(problem, wal).is_some_and(|file| file.is_its_own());
    let is_no_file = problem.fetched == Some(Fetched::NotAtAll);
    let is_gone = is_missed || is_no_file || has_to_go();
    (is_first && is_gone).then(|| {
        let taken = SegmentName::new(older, number, bytes);
        let files = plan.files.get(&(older, number)).into_iter().flatten();
        let mut pages = files.filter_map(|file| file.first_page.as_ref().ok());
        if pages.any(|page| page.header.timeline == name.timeline) {
            let pages = format!("whose pages are of timeline {}", name.timeline);
            return format!("; a server takes {taken} in its place, {pages}, and may go on");
        }
        let after = (number..).find(|number| !is_there(older, *number)).unwrap_or(number);
        // It looks for the state in the file that is missing.
        let but = if plan.version().recovery.reads_prepared_anew {
            ", and does not open with a transaction that stays prepared in it"
        } else {
            ""
        };
        format!(
            "; a server takes {taken} in its place and goes on with timeline {older}, to {} at most{but}",
            Lsn(after.saturating_mul(u64::from(bytes)))
        )
    })
}

/// Whether a history makes a server that reads it leave the WAL: it reads other files by it, or meets pages
/// of a timeline that is not in it.
pub(super) fn leads_astray(wrong: &Lineage, plan: &Plan) -> bool {
    let mut timelines = plan.lineage.spans().map(|(timeline, _)| timeline);
    let mut numbers = plan.files.keys().map(|(_, number)| *number);
    timelines.any(|timeline| !wrong.has(timeline))
        || numbers.any(|number| taken(wrong, number, plan) != taken(&plan.lineage, number, plan))
}

/// The timeline whose file a server takes for a segment: where the newest one that has begun has none, those
/// before it are tried.
fn taken(lineage: &Lineage, number: u64, plan: &Plan) -> Option<u32> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let begun = lineage.spans().rev().filter(|(_, span)| span.start.0 / bytes <= number);
    begun.map(|(timeline, _)| timeline).find(|timeline| is_there(plan, *timeline, number))
}

/// Whether there is a file of a segment that a server asks for.
fn is_there(plan: &Plan, timeline: u32, number: u64) -> bool {
    let files = plan.files.get(&(timeline, number));
    files.is_some_and(|files| files.iter().any(Segment::is_asked_for))
}

/// What a server does where a history makes it leave the WAL: it goes on with the files of another timeline.
fn by_wrong_history(problem: &Problem, plan: &Plan) -> Option<String> {
    let (lsn, wrong) = (problem.lsn?, plan.wrong_lineage()?);
    let bytes = u64::from(plan.geometry.segment_bytes);
    let first = lsn.0 / bytes;
    let is_there = |number: u64| taken(wrong, number, plan).is_some();
    let own = wrong.of_file(first, plan.geometry.segment_bytes);
    let is_other = own != plan.lineage.of_file(first, plan.geometry.segment_bytes);
    (is_other && is_there(first)).then(|| {
        let after = (first..).find(|number| !is_there(*number)).unwrap_or(first);
        let to = Lsn(after.saturating_mul(bytes));
        format!("; by that history a server goes on with timeline {own}, to {to} at most")
    })
}
