//! What a server looks for before any segment is there: which timeline is the latest.

use super::{Backup, Wal};
use walstat_format::lsn::Lsn;
use walstat_read::input::history::{self, HistoryFault};
use walstat_read::input::names::history_timeline;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Fetched, Problem, ProblemKind};
use walstat_read::input::timeline::Lineage;

/// The latest timeline, which a server follows unless told otherwise, is that of the WAL or goes on with it.
pub(crate) fn latest(backup: &Backup, plan: &Plan) -> Result<(), String> {
    let Some(latest) = &plan.latest else { return Ok(()) };
    // A server asks of which timeline the checkpoint is; a timeline is left before the place of its end.
    let checkpoint = backup.label.map_or(backup.start, |label| label.checkpoint);
    let of_checkpoint = |lineage: &Lineage| lineage.of_page(checkpoint);
    let goes_on =
        latest.has(plan.timeline) && of_checkpoint(latest) == of_checkpoint(&plan.lineage);
    // It looks for newer ones than the backup's own.
    if goes_on || begins_on(backup, plan) > latest.timeline() {
        return Ok(());
    }
    let (latest, timeline) = (latest.timeline(), plan.timeline);
    let name = history::name_of(latest);
    if plan.is_timeline_asked {
        return Err(format!(
            "not restorable: by {name} the backup's checkpoint at {checkpoint} is of another timeline than \
             the backup's: \"requested timeline {latest} is not a child of this server's history\""
        ));
    }
    Err(format!(
        "not restorable to the end: {name} exists, so recovery_target_timeline = 'latest' follows timeline \
         {latest}, which has no segments here and does not continue this WAL; set recovery_target_timeline = \
         '{timeline}', or, if timeline {latest} is the server's own by now, have its first segment archived \
         (pg_switch_wal)"
    ))
}

/// What a server has to be told to come to another timeline than the backup's, and why.
pub(crate) fn timeline_setting(backup: &Backup, plan: &Plan) -> Option<String> {
    let (begin, end) = (begins_on(backup, plan), plan.timeline);
    let stays = !plan.geometry.version.recovery.follows_latest && begin != end;
    // The latest may be another one than that which was asked for.
    let latest = if plan.is_timeline_asked { "" } else { " or 'latest'" };
    stays.then(|| {
        format!(
            "recovery_target_timeline = '{end}'{latest} in recovery.conf: before 12 a server stays on \
             timeline {begin} unless it is told"
        )
    })
}

/// What a server looks for before any segment is there: pgBackRest its list, and the server the history of
/// each timeline after its own, up to the first that is missing; the newest of them it reads
/// (`findNewestTimeLine` in `src/backend/access/transam/timeline.c`).
pub(crate) fn findable(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let mut lists = wal.problems.iter().filter(|it| it.kind == ProblemKind::ArchiveInfo);
    if let Some(Problem { segment, found, .. }) = lists.next() {
        return Err(format!(
            "not restorable: pgBackRest finds no segment: {segment}: found {found}"
        ));
    }
    let end = wal.plan.timeline;
    let begin = begins_on(backup, wal.plan).max(end);
    let latest = wal.plan.latest.as_ref().map_or(begin, |latest| latest.timeline().max(begin));
    let broken = histories(wal, ProblemKind::History).filter(|_| !wal.plan.is_timeline_asked);
    let broken = broken.filter(|(timeline, it)| *timeline > begin && !is_unread(it));
    // Behind one that is missing it looks for no other.
    let missing = histories(wal, ProblemKind::MissingHistory).map(|(timeline, _)| timeline);
    let missing = missing.filter(|timeline| *timeline > begin).min();
    let broken = broken.filter(|(timeline, _)| missing.is_none_or(|missing| *timeline < missing));
    match broken.max_by_key(|(timeline, _)| *timeline).filter(|(it, _)| *it >= latest) {
        Some((timeline, Problem { segment: name, .. })) => Err(format!(
            "not restorable to the latest timeline: a server does not start with {name}, the history of \
             timeline {timeline}, or goes astray; recovery_target_timeline = '{end}' makes it follow this WAL"
        )),
        None => its_own(backup, wal),
    }
}

/// The history of the timeline that is followed. Of one that is asked for a server has to get it
/// (`validateRecoveryParameters` in `src/backend/access/transam/xlogrecovery.c`); and where a backup is of an
/// older one, it has to lead there.
fn its_own(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let plan = wal.plan;
    // Of one that is asked for there may be the history alone.
    let end = if plan.is_timeline_asked { plan.history_read() } else { plan.timeline };
    let of_kind = |kind| histories(wal, kind).filter(|(timeline, _)| *timeline == end);
    let of_kind = |kind| of_kind(kind).map(|(_, problem)| problem);
    let (unread, broken): (Vec<&Problem>, Vec<&Problem>) =
        of_kind(ProblemKind::History).partition(|problem| is_unread(problem));
    let mut missing = of_kind(ProblemKind::MissingHistory).chain(unread);
    if let Some(Problem { segment: name, found, .. }) =
        missing.next().filter(|_| plan.is_timeline_asked)
    {
        return Err(format!(
            "not restorable: a server that is asked for timeline {end} does not get its history, {name} \
             (found {found}), and does not start"
        ));
    }
    if plan.history_read() != end {
        return Ok(());
    }
    // It is read for a backup of the timeline itself, too, and may lead anywhere.
    let is_led = begins_on(backup, plan) < end;
    let is_refused = |problem: &Problem| problem.history == Some(HistoryFault::Refused);
    let ends = |problem: &&&Problem| is_led || is_refused(problem);
    // Of one that another history contradicts, what is read is what it says itself.
    let checkpoint = backup.label.map_or(backup.start, |label| label.checkpoint);
    let leads_there = plan.lineage.of_page(checkpoint) == begins_on(backup, plan);
    let is_contradicted = |problem: &Problem| problem.history == Some(HistoryFault::OtherAncestors);
    let ends = |problem: &&&Problem| ends(problem) && !(leads_there && is_contradicted(problem));
    // One that names a wrong place is right up to there.
    match broken.iter().filter(|problem| problem.lsn.is_none()).find(ends) {
        Some(Problem { segment: name, found, history: Some(HistoryFault::Rivals), .. }) => {
            Err(format!(
                "not known to be restorable to timeline {end}: found {found} in {name}, its history: a \
                 server may get the one with which it does not start, or does not get there"
            ))
        }
        Some(Problem { segment: name, found, .. }) => Err(format!(
            "not restorable to timeline {end}: found {found} in {name}, its history: a server does not start \
             with it, or does not get there"
        )),
        None => Ok(()),
    }
}

/// The timeline that a backup begins on.
fn begins_on(backup: &Backup, plan: &Plan) -> u32 {
    backup.label.map_or_else(|| plan.lineage.of_page(backup.start), |label| label.timeline)
}

/// The problems of histories of this kind, with their timelines.
fn histories<'p>(
    wal: &Wal<'p>,
    kind: ProblemKind,
) -> impl Iterator<Item = (u32, &'p Problem)> + use<'p> {
    let of_kind = wal.problems.iter().filter(move |problem| problem.kind == kind);
    of_kind.filter_map(|problem| Some((history_timeline(&problem.segment)?, problem)))
}

/// Whether a history cannot be read: a server does not get it either.
fn is_unread(problem: &Problem) -> bool {
    problem.fetched == Some(Fetched::NotAtAll)
}

/// Where a search for the latest timeline ends too early.
pub(crate) struct Unsearched<'p> {
    /// The last timeline that is found.
    pub last: u32,
    /// The timeline of the WAL.
    pub wanted: u32,
    /// The history that is missing after it.
    pub name: &'p str,
}

impl Unsearched<'_> {
    /// Where the WAL leaves the last timeline that is found.
    pub(crate) fn leaves(&self, plan: &Plan) -> Option<Lsn> {
        let mut spans = plan.lineage.spans();
        spans.find(|(timeline, _)| *timeline > self.last).map(|(_, span)| span.start)
    }

    /// That the search ends there, and not at the timeline of the WAL.
    pub(crate) fn told(&self) -> String {
        let Unsearched { last, wanted, name } = self;
        format!(
            "restorable on timeline {last} only, not on timeline {wanted}: without {name} a server does not \
             search for newer timelines; recovery_target_timeline = '{wanted}' makes it follow this WAL"
        )
    }
}

/// The history that a server misses on its way to the timeline of the WAL; none where that one is asked for.
pub(crate) fn unsearched<'p>(backup: &Backup, wal: &Wal<'p>) -> Option<Unsearched<'p>> {
    let plan = wal.plan;
    let unread = histories(wal, ProblemKind::History).filter(|(_, problem)| is_unread(problem));
    let missing = histories(wal, ProblemKind::MissingHistory).chain(unread);
    let on_its_way = begins_on(backup, plan).saturating_add(1)..=plan.timeline;
    let missing = missing.filter(|(it, _)| !plan.is_timeline_asked && on_its_way.contains(it));
    let (timeline, problem) = missing.min_by_key(|(timeline, _)| *timeline)?;
    Some(Unsearched { last: timeline - 1, wanted: plan.timeline, name: &problem.segment })
}
