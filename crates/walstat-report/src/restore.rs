//! Restore readiness: can a backup be restored with this WAL, and how far?
//!
//! Needed are, without a gap: the WAL from the backup's start on; the checkpoint that the label
//! names, of the label's timeline; and the WAL up to where the backup is consistent. What lies
//! before the start does not matter.

mod astray;
mod backup;
mod beginning;
mod search;
mod two_phase;
mod wrong_size;

use super::build::rfc3339;
use super::model::checked::{Check, CheckKind, Unit, Verdict};
use super::model::finding::Severity;
pub(crate) use astray::{Ahead, ahead, ends_inconsistent};
use astray::{astray, by_older_file, leads_astray};
pub use backup::Backup;
pub(crate) use beginning::can_begin;
pub(crate) use search::{Unsearched, findable, latest, timeline_setting, unsearched};
use std::collections::BTreeSet;
pub(crate) use two_phase::{Lost, ends_hot_standby, lost_after_all, lost_at_the_end};
use walstat_analyse::backup::Backups;
use walstat_analyse::replay_points::ReplayPoints;
use walstat_analyse::two_phase::Standing;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::payload::Time;
use walstat_format::payload::xlog::Limits;
use walstat_format::segment::SegmentName;
use walstat_read::input::input_kind::InputKind;
use walstat_read::input::names::history_timeline;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Elsewhere, Fetched, Problem, ProblemKind};
use walstat_read::input::segment::Segment;
use walstat_read::input::timeline::Lineage;
use walstat_read::scan::claims::Replacing;
use walstat_read::scan::ending::Ending;
pub(crate) use wrong_size::wrong_size;

/// What the WAL has to offer.
#[derive(Debug, Clone, Copy)]
pub struct Wal<'a> {
    /// The segments.
    pub plan: &'a Plan,
    /// What is wrong with them.
    pub problems: &'a [Problem],
    /// Checkpoints and ends of backups.
    pub backups: &'a Backups,
    /// Where replay stands, segment by segment.
    pub reach: &'a ReplayPoints,
    /// Records that replace torn ones.
    pub replacing: &'a [Replacing],
    /// Where the WAL ends.
    pub end: Ending,
}

/// Judges whether `backup` can be restored.
pub fn restore(backup: &Backup, wal: Wal<'_>) -> Check {
    let backup = &backup.clone().read_by(&wal);
    let result = can_begin(backup, &wal)
        .and_then(|()| latest(backup, wal.plan))
        .and_then(|()| findable(backup, &wal))
        .and_then(|()| unsearched(backup, &wal).map_or(Ok(()), |early| Err(early.told())))
        .and_then(|()| replaced(backup, &wal))
        .and_then(|()| reach(backup, &wal));
    match result {
        Ok(text) => check(Verdict::Pass, text),
        Err(text) => check(Verdict::Fail, text),
    }
}

/// The verdict on an archive that names base backups of which none can be restored, since its WAL begins
/// after all of them. Nobody has to ask for it.
pub fn none_left(plan: &Plan, backups: &Backups) -> Option<Check> {
    let last = plan.removed_backups.last()?;
    let first = plan.bounds().start;
    if plan.has_begun_backup || backups.ends.iter().any(|end| end.start >= first) {
        return None;
    }
    let whole = match plan.removed_backups.len() {
        1 => format!("{last}, the only one, begins"),
        count => format!("all {count} of them, to {last}, begin"),
    };
    let text = format!(
        "no base backup that the archive names can be restored: the WAL begins at {first}, and {whole} \
         before it; one that was taken from a standby it does not name (--backup-label)"
    );
    Some(check(Verdict::Fail, text))
}

/// What keeps a server from coming to the end of an archive in which nothing is wrong, or from opening there,
/// with a backup from its beginning, where it tells of none.
pub fn unopened(wal: Wal<'_>) -> Option<String> {
    let is_sound = wal.problems.is_empty() && wal.plan.taken_for() != InputKind::PgWal;
    if !is_sound || !wal.backups.ends.is_empty() {
        return None;
    }
    let backup = Backup::from_lsn(wal.plan.bounds().start);
    let why = opens(&backup, &wal, &reached(&backup, &wal)).err()?;
    Some(format!("a backup from the beginning of this WAL is {why}"))
}

/// A verdict on a restore.
pub(crate) fn check(verdict: Verdict, text: String) -> Check {
    Check {
        check: "restore".into(),
        kind: CheckKind::Restore,
        verdict,
        severity: Severity::Critical,
        value: None,
        limit: None,
        unit: Unit::None,
        bound: None,
        text,
    }
}

/// No record says that it replaces another one than the one that was torn before it: a server stops
/// there, unless it does so earlier. Where something is wrong before it, that may also be why the torn
/// one seems to begin elsewhere.
fn replaced(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let page = wal.plan.geometry.page_bytes;
    let mut replacing = wal.replacing.iter().filter(|it| it.lsn >= backup.start);
    let stops_earlier = |it: &Replacing| {
        let mut places = wal.problems.iter().filter_map(|problem| problem.lsn);
        places.any(|lsn| (backup.start..it.lsn).contains(&lsn))
    };
    let found = replacing.find(|it| it.is_mismatched(page));
    let Some(found) = found.filter(|it| !stops_earlier(it)) else { return Ok(()) };
    let (lsn, says, torn) = (found.lsn, found.says, found.torn.unwrap_or(found.lsn));
    Err(format!(
        "not restorable beyond LSN {torn}: the record at {lsn} replaces a torn one at {says}, which began at \
         {torn}: a server stops there (mismatching overwritten LSN)"
    ))
}

/// What a hot standby needs that is restored from the backup, if settings that it depends on were changed in
/// the WAL: it pauses, or does not start, with less (`CheckRequiredParameterValues` in
/// `src/backend/access/transam/xlogrecovery.c`).
pub fn standby_needs(backup: &Backup, backups: &Backups) -> Option<String> {
    let mut changes = backups.limits.iter().filter(|(lsn, _)| *lsn >= backup.start);
    let (first, limits) = changes.next()?;
    let most = |one: Limits, (_, other): &(Lsn, Limits)| Limits {
        max_connections: one.max_connections.max(other.max_connections),
        max_worker_processes: one.max_worker_processes.max(other.max_worker_processes),
        max_wal_senders: one.max_wal_senders.max(other.max_wal_senders),
        max_prepared_transactions: one
            .max_prepared_transactions
            .max(other.max_prepared_transactions),
        max_locks_per_transaction: one
            .max_locks_per_transaction
            .max(other.max_locks_per_transaction),
    };
    let needs = changes.fold(*limits, most);
    let settings = [
        ("max_connections", needs.max_connections),
        ("max_worker_processes", needs.max_worker_processes),
        ("max_wal_senders", needs.max_wal_senders),
        ("max_prepared_transactions", needs.max_prepared_transactions),
        ("max_locks_per_transaction", needs.max_locks_per_transaction),
    ];
    let settings = settings.iter().filter(|(_, value)| *value > 0);
    let settings: Vec<String> = settings.map(|(name, value)| format!("{name} = {value}")).collect();
    let any = match needs.max_prepared_transactions {
        0 => "",
        _ => {
            "; any server ends where it replays a PREPARE TRANSACTION with less max_prepared_transactions"
        }
    };
    Some(format!(
        "settings change at {first}: a server that is restored as a hot standby pauses, or does not start, \
         with less than {}{any}",
        settings.join(", ")
    ))
}

/// The directories that a server needs which is restored from the backup: those of tablespaces that were made
/// since (`create_tablespace_directories` in `src/backend/commands/tablespace.c`).
pub fn directory_needs(backup: &Backup, backups: &Backups) -> Option<String> {
    let made = backups.tablespaces.iter().filter(|(lsn, _)| *lsn >= backup.start);
    let made: Vec<&(Lsn, String)> = made.collect();
    let (first, _) = made.first()?;
    let paths: BTreeSet<&str> = made.iter().map(|(_, path)| path.as_str()).collect_set();
    let shown: Vec<&str> = paths.iter().copied().take(PATHS_SHOWN).collect();
    let more = match paths.len().saturating_sub(PATHS_SHOWN) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "CREATE TABLESPACE at {first}: a server that is restored ends there with FATAL where {}{more} is no \
         directory of its own: make it first, empty, and not beside the server that goes on",
        shown.join(", ")
    ))
}

/// So many directories are named.
const PATHS_SHOWN: usize = 3;

/// How far replay comes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached<'p> {
    /// After the last record, or after the segment that it closes.
    pub stop: Lsn,
    /// After the last record.
    pub last: Lsn,
    /// When the last transaction before it ended.
    pub time: Option<Time>,
    /// Why it comes no farther, if that is not the end of the WAL.
    pub broken: Option<&'p Problem>,
    /// What is prepared there.
    pub standing: Standing,
}

/// How far replay comes: to the end of the last whole record before the first fault after the
/// start, or before the first segment that no server asks for.
pub(crate) fn reached<'p>(backup: &Backup, wal: &Wal<'p>) -> Reached<'p> {
    let segment = u64::from(wal.plan.geometry.segment_bytes);
    // A server reads no segment behind the one in which it finds the end: problems there do not count.
    let asked = Lsn(wal.end.seen_at.0.checked_next_multiple_of(segment).unwrap_or(u64::MAX));
    let broken =
        wal.problems.iter().filter_map(|problem| Some((limit(problem, backup, wal)?, problem)));
    let broken = broken.filter(|(limit, _)| *limit <= asked).min_by_key(|(limit, _)| *limit);
    let limit = broken.map_or(Lsn::MAX, |(limit, _)| limit).min(unnamed(backup, wal));
    let point = wal.reach.before(limit).filter(|point| point.end > backup.start);
    let stop = match point {
        Some(point) if point.switch => Lsn(point.end.0.next_multiple_of(segment)),
        Some(point) => point.end,
        None => backup.start,
    };
    let in_copy = broken.and_then(|(limit, problem)| whole_in_copy(limit, problem, wal));
    let in_copy = in_copy.filter(|end| *end > stop);
    let stop = in_copy.unwrap_or(stop);
    // Of what lies between a segment's begin and the place where its copy breaks nothing is known.
    let time = point.filter(|_| in_copy.is_none()).and_then(|point| point.time);
    let standing = point.map_or(Standing::default(), |point| point.standing);
    let last = point.map_or(backup.start, |point| point.end);
    Reached { stop, last, time, broken: broken.map(|(_, problem)| problem), standing }
}

/// The place within a segment up to which a server replays a broken copy of it, of which another, better one
/// was counted. None at its beginning, over which a record may go on.
fn whole_in_copy(limit: Lsn, problem: &Problem, wal: &Wal<'_>) -> Option<Lsn> {
    let geometry = &wal.plan.geometry;
    let within = |bytes: u32| Lsn(limit.0 - limit.0 % u64::from(bytes));
    let (begin, page) = (within(geometry.segment_bytes), within(geometry.page_bytes));
    let end = Lsn(begin.0.saturating_add(u64::from(geometry.segment_bytes)));
    let goes_on = || wal.reach.before(end).is_some_and(|point| point.end > limit);
    let is_copy = match problem.kind {
        ProblemKind::DuplicateDiffers => true,
        ProblemKind::OpenSegment => goes_on(),
        _ => false,
    };
    let is_first = geometry.first_byte(page) == limit;
    (is_copy && limit > geometry.first_byte(begin)).then_some(if is_first { page } else { limit })
}

/// A hot standby comes to the end, and the server opens there.
fn opens(backup: &Backup, wal: &Wal<'_>, reached: &Reached<'_>) -> Result<(), String> {
    let Reached { stop, .. } = reached;
    let ends = ends_hot_standby(wal, backup.start).filter(|(place, _)| place < stop);
    if let Some((place, why)) = ends {
        let is_early = consistent_from(backup, wal).is_some_and(|from| place < from);
        let ends = format!("restorable to LSN {place} only: {why}");
        return Err(if is_early { format!("not restorable: {why}") } else { ends });
    }
    let lost = lost_after_all(wal, backup.start, reached);
    lost.map_or(Ok(()), |lost| Err(format!("not restorable: {}", lost.at_the_end(*stop))))
}

/// Whether it is known where the backup is consistent.
pub(crate) fn is_known(backup: &Backup, wal: &Wal<'_>, stop: Lsn) -> Result<(), String> {
    if backup.label.is_none_or(|label| !label.from_standby)
        || consistent_from(backup, wal).is_some()
    {
        return Ok(());
    }
    Err(format!(
        "not known to be restorable: where a backup taken from a standby is consistent, its pg_control says, \
         which lies in the backup's directory; the WAL is good to {stop}"
    ))
}

/// How far replay comes, in words.
fn reach(backup: &Backup, wal: &Wal<'_>) -> Result<String, String> {
    let reached = reached(backup, wal);
    let Reached { stop, time, broken, .. } = reached;
    let instead = || broken.and_then(|problem| by_older_file(problem, wal)).unwrap_or_default();
    let consistent = consistent(backup, wal, stop).map_err(|why| format!("{why}{}", instead()))?;
    if let Some(why) = ends_inconsistent(backup, wal, &reached) {
        return Err(why);
    }
    opens(backup, wal, &reached)?;
    is_known(backup, wal, stop)?;
    let time = time.and_then(rfc3339);
    let time = time.map_or(String::new(), |time| format!(" (time {time})"));
    let timeline = if wal.plan.other_lineages.is_empty() {
        String::new()
    } else {
        format!(" on timeline {}", wal.plan.timeline)
    };
    let astray = broken.and_then(|it| astray(it, wal)).unwrap_or_default();
    let setting = timeline_setting(backup, wal.plan);
    let setting = setting.map_or_else(String::new, |setting| format!("; with {setting}"));
    let combined = combined(backup).unwrap_or_default();
    let consistent = format!("{consistent}{astray}{setting}{combined}");
    let gone = broken.and_then(|problem| wrong_size(problem, wal));
    let gone = gone.map_or_else(String::new, |file| file.at_the_limit());
    match broken {
        Some(problem) if stop == wal.end.lsn => Err(format!(
            "restorable to LSN {stop}{time}{timeline} only: {} in {}{gone}{consistent}",
            problem.kind, problem.segment
        )),
        Some(problem) => Err(format!(
            "restorable to LSN {stop}{time}{timeline} only, not to the end at {}: {} in {}{gone}{consistent}",
            wal.end.lsn, problem.kind, problem.segment
        )),
        None => Ok(format!("restorable to LSN {stop}{time}{timeline}{consistent}")),
    }
}

/// What has to be done before, where a history tells of an incremental backup.
fn combined(backup: &Backup) -> Option<&'static str> {
    let is_incremental = backup.label.is_some_and(|label| label.is_incremental);
    is_incremental.then_some(
        "; it is an incremental backup: pg_combinebackup makes a full one of it and those before it",
    )
}

/// Where replay ends for a problem, if it lies on its way: at the record, or where the file begins
/// that a server cannot use.
fn limit(problem: &Problem, backup: &Backup, wal: &Wal<'_>) -> Option<Lsn> {
    let plan = wal.plan;
    let name = SegmentName::leading(&problem.segment);
    let begin = name.and_then(|name| name.start(plan.geometry.segment_bytes));
    let on_the_way = match name.zip(begin) {
        Some((name, begin)) => {
            let bytes = plan.geometry.segment_bytes;
            let is_asked = |lineage: &Lineage| {
                lineage.of_file(begin.0 / u64::from(bytes), bytes) == name.timeline
            };
            is_asked(&plan.lineage) || plan.latest.as_ref().is_some_and(is_asked)
        }
        None => history_timeline(&problem.segment).is_some_and(|it| leaves(it, plan)),
    };
    let segment = u64::from(plan.geometry.segment_bytes);
    let limit = match problem.kind {
        _ if plan.is_read_to_the_end(problem) => {
            begin.map(|begin| Lsn(begin.0.saturating_add(segment)))
        }
        // The records of both neighbours may be whole: a server replays them up to where they do not link.
        ProblemKind::PrevLink | ProblemKind::Continuation => match problem.elsewhere {
            Some(Elsewhere::SeenAt(place)) => Some(place),
            _ => problem.lsn,
        },
        kind if kind.is_of_records() => problem.lsn,
        // Up to there both copies are alike.
        ProblemKind::DuplicateDiffers => problem.lsn.or(begin),
        _ => begin.or(problem.lsn),
    };
    // A damaged record may begin before the start and reach over it: it counts, as does a segment that ends
    // before the start.
    let end = match problem.kind {
        kind if kind.is_of_records() && kind != ProblemKind::OpenSegment => {
            problem.skipped().map(|skipped| skipped.end)
        }
        _ => begin.map(|begin| Lsn(begin.0.saturating_add(segment))),
    };
    let matters = limit >= Some(backup.start) || end > Some(backup.start);
    // pgBackRest's archive-get does not compare the SHA-1 in a name with the file.
    let is_fetched =
        problem.kind != ProblemKind::ArchiveChecksum && problem.fetched != Some(Fetched::Another);
    limit.filter(|_| on_the_way && matters && is_fetched)
}

/// Whether a server goes to other files because of a history. It reads that of its target timeline alone
/// (`readTimeLineHistory`): an older one matters only where histories give several places for its beginning.
fn leaves(timeline: u32, plan: &Plan) -> bool {
    if timeline == plan.history_read() {
        return plan.wrong_lineage().is_none_or(|wrong| leads_astray(wrong, plan));
    }
    let begins = plan.branches.iter().filter(|branch| branch.child == timeline);
    plan.lineage.has(timeline) && begins.count() > 1
}

/// The first segment after the start that is only there under a name that no server asks for.
fn unnamed(backup: &Backup, wal: &Wal<'_>) -> Lsn {
    let bytes = u64::from(wal.plan.geometry.segment_bytes);
    let after = |segment: &&Segment| (segment.number + 1) * bytes > backup.start.0;
    let mut segments = wal.plan.segments.iter().filter(after);
    let first = segments.find(|segment| segment.named && !segment.claims_whole_segment());
    first.map_or(Lsn::MAX, |segment| Lsn(segment.number * bytes))
}

/// Where a backup is consistent, as far as that is known: where it ended, by the WAL or by its history; of
/// one that was taken from a standby, the minimum recovery point in its `pg_control`.
pub(crate) fn consistent_from(backup: &Backup, wal: &Wal<'_>) -> Option<Lsn> {
    let of_standby =
        backup.control.filter(|_| backup.label.is_some_and(|label| label.from_standby));
    let by_control = of_standby.map(|control| control.min_recovery_point);
    // No record ends a backup that is taken from a standby.
    let is_primarys = backup.label.is_none_or(|label| !label.from_standby);
    let ends = wal.backups.ends.iter().filter(|_| is_primarys);
    let in_wal = ends.into_iter().find(|end| end.start == backup.start).map(|end| end.end);
    // What a server goes by first: it reads no history of a backup.
    in_wal.or(backup.label.and_then(|label| label.stop)).or(by_control)
}

/// Whether replay up to `stop` makes the backup consistent; what is to be said about it. Where neither a
/// label nor the WAL tells from where on, it may be.
pub(crate) fn consistent(
    backup: &Backup,
    wal: &Wal<'_>,
    stop: Lsn,
) -> Result<&'static str, String> {
    match (consistent_from(backup, wal), backup.label) {
        (Some(end), _) if end <= stop => Ok(""),
        (Some(end), _) => Err(format!(
            "not restorable: consistent from {end} on, but the WAL is good to {stop} only"
        )),
        (None, None) => Ok("; only the backup's label says from where on it is consistent"),
        (None, Some(label)) if label.from_standby => {
            Ok("; taken from a standby, it is consistent where its pg_control says")
        }
        (None, Some(_)) => Err(format!(
            "not restorable: the end of the backup is not in the WAL, which is good to {stop}"
        )),
    }
}
