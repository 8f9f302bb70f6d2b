//! Prepared transactions whose state a server does not find where it reads it once more: it looks in `pg_wal`
//! for the segment of the timeline that it has come to, and in the segment in which a newer timeline begins
//! `restore_command` has given it the file of that one (`XLogFileReadAnyTLI` in
//! `src/backend/access/transam/xlogrecovery.c`). Then it ends: `requested WAL segment pg_wal/… has already
//! been removed`.
//!
//! Where recovery ends, 16 and later read it a second time after the new timeline has begun, which goes on
//! from the one that recovery was to, whether or not there was WAL of that.

use super::{Reached, Wal};
use walstat_analyse::two_phase::{Prepared, Standing};
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_read::input::names::history_timeline;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};
use walstat_read::input::timeline::Lineage;

/// A prepared transaction whose state is not found.
pub(crate) struct Lost {
    prepared: Prepared,
    /// The file that the server looks for.
    wanted: SegmentName,
    /// The one that it has.
    found: SegmentName,
    /// What helps.
    cure: String,
}

/// The last transaction that is prepared where replay stands, if its state is not found. What was prepared
/// before the backup's `start` lies in a file of the backup.
pub(crate) fn lost(plan: &Plan, start: Lsn, standing: &Standing) -> Option<Lost> {
    plan.version().recovery.reads_prepared.then_some(())?;
    // The record that told of it may be one before the start, and files with later ones lost.
    let timeline = standing.timeline.max(Some(plan.lineage.of_page(start)))?;
    // As the history says it, though a server may come to the end where it is not quite right.
    let said = plan.wrong_lineage().unwrap_or(&plan.lineage);
    lost_by(plan, said, timeline, start, standing)
}

/// The same where recovery ends.
pub(crate) fn lost_at_the_end(plan: &Plan, start: Lsn, standing: &Standing) -> Option<Lost> {
    let lost_anew = || {
        plan.version().recovery.reads_prepared_anew.then_some(())?;
        let target = plan.lineage_read();
        lost_by(plan, target, target.timeline(), start, standing)
    };
    lost(plan, start, standing).or_else(lost_anew)
}

/// The same where replay ends without a target.
pub(crate) fn lost_after_all(wal: &Wal<'_>, start: Lsn, reached: &Reached<'_>) -> Option<Lost> {
    let Reached { standing, broken, .. } = reached;
    // By a wrong history a server comes to another place.
    if broken.is_some_and(|problem| problem.kind == ProblemKind::History) {
        return None;
    }
    let by_history = || lost_by_wrong_history(wal, start, standing).filter(|_| broken.is_none());
    lost_at_the_end(wal.plan, start, standing).or_else(by_history)
}

/// The same of any transaction that is prepared at the end of the WAL, where the history has other files than
/// those of the segment in which a timeline begins.
fn lost_by_wrong_history(wal: &Wal<'_>, start: Lsn, standing: &Standing) -> Option<Lost> {
    wal.plan.wrong_lineage()?;
    let segment = u64::from(wal.plan.geometry.segment_bytes);
    let mut number = None;
    let mut pending = wal.reach.two_phase().pending();
    pending.find_map(|prepared| {
        // One of each segment tells.
        let is_first = number.replace(prepared.lsn.0 / segment) != Some(prepared.lsn.0 / segment);
        let standing = Standing { prepared: Some(*prepared), ..*standing };
        is_first.then(|| lost(wal.plan, start, &standing)).flatten()
    })
}

/// The same by what a lineage says of the files up to a timeline of it.
fn lost_by(
    plan: &Plan,
    lineage: &Lineage,
    timeline: u32,
    start: Lsn,
    standing: &Standing,
) -> Option<Lost> {
    let prepared = standing.prepared.filter(|prepared| prepared.lsn >= start)?;
    let bytes = plan.geometry.segment_bytes;
    let number = |lsn: u64| lsn / u64::from(bytes);
    let segments = number(prepared.lsn.0)..=number(prepared.end.0.saturating_sub(1));
    let mut files = plan.segments.iter().filter(|segment| segments.contains(&segment.number));
    files.find_map(|file| {
        let wanted = lineage.of_file_until(timeline, file.number, bytes);
        let name = |timeline| SegmentName::new(timeline, file.number, bytes);
        let cure = if plan.files.contains_key(&(wanted, file.number)) {
            format!("with {} copied into pg_wal it opens", name(wanted))
        } else {
            format!("with recovery_target_timeline = '{}' it opens", file.timeline)
        };
        (wanted != file.timeline).then(|| Lost {
            prepared,
            wanted: name(wanted),
            found: name(file.timeline),
            cure,
        })
    })
}

/// Where a hot standby ends that is restored from a backup, and why.
pub(crate) fn ends_hot_standby(wal: &Wal<'_>, start: Lsn) -> Option<(Lsn, String)> {
    let readings = wal.reach.two_phase().readings().iter();
    let mut after = readings.filter(|reading| reading.lsn >= start);
    let lost = after.find_map(|reading| {
        let lost = lost(wal.plan, start, &reading.standing)?;
        let Lost { wanted, .. } = lost;
        let told = format!(
            "redo of the shutdown checkpoint at {} ends a hot standby with FATAL: {}; hot_standby = off, or \
             {wanted} copied into pg_wal, gets past it",
            reading.lsn,
            lost.told()
        );
        Some((reading.lsn, told))
    });
    lost.into_iter().chain(broken_history(wal, start)).min_by_key(|(place, _)| *place)
}

/// Where it ends since it reads the history of the timeline that it has come to, which is broken (`invalid
/// data in history file`), or has the state in another file. Nobody else reads that one where there is a
/// newer one.
fn broken_history(wal: &Wal<'_>, start: Lsn) -> Option<(Lsn, String)> {
    let plan = wal.plan;
    plan.version().recovery.reads_prepared.then_some(())?;
    let mut older = plan.lineage.spans().filter(|(timeline, _)| *timeline != plan.timeline);
    older.find_map(|(timeline, span)| {
        let wrong = plan.wrong_lineages.get(&timeline);
        let is_it = |problem: &&Problem| {
            problem.kind == ProblemKind::History
                && (problem.lsn.is_none() || wrong.is_some())
                && history_timeline(&problem.segment) == Some(timeline)
        };
        let Problem { segment, found, .. } = wal.problems.iter().find(is_it)?;
        // The first record of a timeline is read on the one before.
        let [begin, end] = [span.start, span.end].map(|it| plan.geometry.first_byte(it));
        let read = wal.backups.shutdown_checkpoints();
        let mut read = read.filter(|lsn| *lsn > begin.max(start) && *lsn <= end);
        let (lsn, standing) = read.find_map(|lsn| {
            let standing = wal.reach.before(lsn)?.standing;
            standing.prepared.filter(|prepared| prepared.lsn >= start).map(|_| (lsn, standing))
        })?;
        let what = match wrong {
            None => format!("in which {found}"),
            Some(wrong) => {
                let Lost { wanted, found, .. } =
                    lost_by(plan, wrong, timeline, start, &standing)?;
                format!("by which it is in pg_wal/{wanted}, where restore_command has put {found} only")
            }
        };
        let told = format!(
            "redo of the shutdown checkpoint at {lsn} ends a hot standby with FATAL: to read the state of \
             transaction {} again it reads {segment}, {what}; hot_standby = off gets past it",
            standing.prepared?.xid
        );
        Some((lsn, told))
    })
}

impl Lost {
    /// Why it is not found.
    fn told(&self) -> String {
        let Lost { prepared: Prepared { xid, lsn, .. }, wanted, found, .. } = self;
        format!(
            "transaction {xid}, prepared at {lsn}, is read again from pg_wal/{wanted}, where restore_command \
             has put {found} only"
        )
    }

    /// That a server which stops at a place does not open there.
    pub(crate) fn at_the_end(&self, place: Lsn) -> String {
        format!(
            "it would stop at {place}, and end there with FATAL: {}; {}",
            self.told(),
            self.cure
        )
    }
}
