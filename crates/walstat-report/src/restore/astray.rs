//! What a server does at a problem, if that is more than to end replay there: it goes on with other WAL, ends
//! with an error, or reads ahead and ends before.

use super::{Backup, Reached, Wal, consistent_from, wrong_size};
use std::fmt;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};
use walstat_read::input::segment::Segment;

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
            if problem.is_read_to_the_end(plan.geometry.segment_bytes) =>
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
    let is_page = problem.kind == ProblemKind::PageTimeline
        && !problem.is_read_to_the_end(wal.plan.geometry.segment_bytes);
    let ends = is_page || wrong_size(problem, wal).is_some();
    (ends && wal.plan.version().recovery.reads_ahead).then(|| Ahead {
        from: Lsn(reached.last.0.saturating_sub(DECODED_AHEAD)),
        what: format!("{} in {}", problem.kind, problem.segment),
    })
}

/// That a backup need not be consistent before a server that reads ahead ends at a page.
pub(crate) fn ends_inconsistent(
    backup: &Backup,
    wal: &Wal<'_>,
    reached: &Reached<'_>,
) -> Option<String> {
    reached.broken.filter(|problem| problem.kind == ProblemKind::PageTimeline)?;
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
fn by_older_file(problem: &Problem, wal: &Wal<'_>) -> Option<String> {
    let plan = wal.plan;
    let bytes = plan.geometry.segment_bytes;
    let name = SegmentName::leading(&problem.segment)?;
    let number = name.number(bytes)?;
    let is_there = |timeline: u32, number: u64| {
        let files = plan.files.get(&(timeline, number));
        files.is_some_and(|files| files.iter().any(Segment::is_asked_for))
    };
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
    let is_gone = is_missed || has_to_go();
    (is_first && is_gone).then(|| {
        let after = (number..).find(|number| !is_there(older, *number)).unwrap_or(number);
        format!(
            "; a server takes {} in its place and goes on with timeline {older}, to {} at most",
            SegmentName::new(older, number, bytes),
            Lsn(after.saturating_mul(u64::from(bytes)))
        )
    })
}

/// What a server does where a history makes it leave the WAL: it goes on with the files of another timeline.
fn by_wrong_history(problem: &Problem, plan: &Plan) -> Option<String> {
    let (lsn, wrong) = (problem.lsn?, plan.wrong_lineage.as_ref()?);
    let bytes = plan.geometry.segment_bytes;
    let first = lsn.0 / u64::from(bytes);
    let taken = wrong.of_file(first, bytes);
    // Where the newest one has no file, those before it are tried.
    let is_there = |number: u64| {
        let begun = wrong.spans().filter(|(_, span)| span.start.0 / u64::from(bytes) <= number);
        let mut files = begun.filter_map(|(timeline, _)| plan.files.get(&(timeline, number)));
        files.any(|files| files.iter().any(Segment::is_asked_for))
    };
    let is_other = taken != plan.lineage.of_file(first, bytes);
    (is_other && is_there(first)).then(|| {
        let after = (first..).find(|number| !is_there(*number)).unwrap_or(first);
        let to = Lsn(after.saturating_mul(u64::from(bytes)));
        format!("; by that history a server goes on with timeline {taken}, to {to} at most")
    })
}
