//! From where to where recovery can go: what was read of the WAL and of base backups put together, and
//! whether recovery stops at a target. The rules of the server are those of
//! [`walstat_analyse::recovery_window`]; whether a backup can be restored is [`super::restore`]'s.

mod reachable;

use super::build::rfc3339;
use super::model::checked::{Check, Verdict};
use super::model::window::{BackupRow, GapRow, RestorePointRow, TargetRow, TimelineRow, Window};
use super::restore::{
    Ahead, Backup, Reached, Unsearched, Wal, ahead, can_begin, check, consistent, consistent_from,
    directory_needs, ends_hot_standby, ends_inconsistent, findable, is_known, latest,
    lost_after_all, reached, standby_needs, timeline_setting, unsearched, wrong_size,
};
use jiff::fmt::strtime;
use std::collections::BTreeMap;
use walstat_analyse::backup::CheckpointAt;
use walstat_analyse::recovery_window::{RecoveryWindow, Target, TimelineEnds};
use walstat_format::lsn::Lsn;
use walstat_read::input::input_kind::InputKind;
use walstat_read::input::label::{Label, ToldLabel};
use walstat_read::scan::ending::EndingKind;

/// What is known of the WAL, and what was asked.
#[derive(Debug)]
pub struct Question<'q> {
    /// The WAL.
    pub wal: Wal<'q>,
    /// The first record of it.
    pub first: Option<Lsn>,
    /// How it ends.
    pub ending: EndingKind,
    /// What was noted of it.
    pub noted: &'q RecoveryWindow,
    /// Labels of backups.
    pub labels: &'q [ToldLabel],
    /// The target, and how it was typed.
    pub target: Option<(&'q Target, &'q str)>,
}

/// A backup, and whether it can be restored.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Where replay begins.
    pub start: Lsn,
    /// Where it is consistent, if that is known.
    pub consistent: Option<Lsn>,
    /// How far replay comes.
    pub stop: Lsn,
    /// When it ended, or at least when it began, as far as that is known.
    pub ended: Option<String>,
    /// What stands in its way there.
    pub broken: Option<String>,
    /// What a server may meet before it comes there.
    pub ahead: Option<Ahead>,
    /// Why it cannot be restored.
    pub why_not: Option<String>,
}

/// Puts together what there is to say.
pub fn window(question: &Question<'_>) -> Window {
    let Question { wal, noted, target, .. } = question;
    let judged = backups(wal, question.labels);
    let found: Vec<&Judged> = judged.iter().map(|(backup, _)| backup).collect();
    let restore_points = noted.restore_points().iter().map(|point| RestorePointRow {
        name: point.name.clone(),
        lsn: point.lsn.to_string(),
        time: rfc3339(point.time),
    });
    Window {
        timelines: timelines(question),
        restore_points: restore_points.collect(),
        gaps: gaps(wal),
        target: target.map(|(target, asked)| reachable::judge(question, &found, target, asked)),
        backups: judged.into_iter().map(|(_, row)| row).collect(),
    }
}

/// What whoever restores a backup has to know, as far as the WAL tells that lies behind the oldest one that
/// can be restored.
pub fn needs(question: &Question<'_>) -> Vec<String> {
    let Question { wal, labels, .. } = question;
    // One that does not come to the end may come to a target.
    let mut judged = backups(wal, labels).into_iter().map(|(judged, _)| judged);
    let Some(oldest) = judged.find(|judged| judged.why_not.is_none()) else { return Vec::new() };
    let backup = &Backup::from_lsn(oldest.start);
    let timeline = wal.plan.timeline;
    let setting = timeline_setting(backup, wal.plan);
    let setting = setting
        .map(|setting| format!("backups are restored to timeline {timeline} with {setting}"));
    let needs = [setting, standby_needs(backup, wal.backups), directory_needs(backup, wal.backups)];
    needs.into_iter().flatten().collect()
}

/// Adds that a target that cannot be reached can be on these other timelines.
pub fn add_reached_on(window: &mut Window, timelines: &[u32]) {
    let told = |it: &u32| format!("; on timeline {it} it can be reached (-t {it})");
    if let Some(target) = window.target.as_mut().filter(|target| !target.reachable) {
        target.why.extend(timelines.iter().map(told));
    }
}

/// Whether what was asked for can be reached: the target, or anything.
pub fn can_recover(window: &Window) -> bool {
    match &window.target {
        Some(TargetRow { reachable, .. }) => *reachable,
        None => window.backups.iter().any(|backup| backup.usable),
    }
}

/// The timelines of the history that is followed.
fn timelines(question: &Question<'_>) -> Vec<TimelineRow> {
    let Question { wal, first, ending, noted, .. } = question;
    let lineage = &wal.plan.lineage;
    let start = first.unwrap_or(wal.plan.bounds().start);
    let stages = lineage.spans().filter(|(_, span)| span.end > start && span.start < wal.end.lsn);
    let oldest = lineage.of_page(start);
    let row = |(timeline, span): (u32, std::ops::Range<Lsn>)| {
        let is_it = |ends: &&TimelineEnds| ends.timeline.unwrap_or(oldest) == timeline;
        let is_left = span.end < wal.end.lsn;
        // Where the record is missing with which the next timeline begins, what ended on which is not known.
        let is_its = |ends: &&TimelineEnds| !is_left || ends.last_commit < Some(span.end);
        let ends = noted.timelines().iter().find(is_it).filter(is_its).copied().unwrap_or_default();
        TimelineRow {
            timeline,
            start_lsn: span.start.max(start).to_string(),
            end_lsn: span.end.min(wal.end.lsn).to_string(),
            first_time: ends.first_time.and_then(rfc3339),
            last_time: ends.last_time.and_then(rfc3339),
            last_commit_lsn: ends.last_commit.map(|lsn| lsn.to_string()),
            last_xid: ends.last_xid.map(|xid| xid.to_string()),
            ends_by: if is_left { "timeline_switch".to_owned() } else { ending.to_string() },
        }
    };
    stages.map(row).collect()
}

/// The verdict on an archive in which nothing is wrong and backups begin, of which none can be restored to
/// its end. Nobody has to ask for it. `labels`: those of the newest ones.
pub fn none_usable(wal: &Wal<'_>, labels: &[ToldLabel]) -> Option<Check> {
    if !wal.problems.is_empty() || wal.plan.taken_for() == InputKind::PgWal {
        return None;
    }
    let first = wal.plan.bounds().start;
    let begun = backups(wal, labels).into_iter().filter(|(backup, _)| backup.start >= first);
    let begun: Vec<BackupRow> = begun.map(|(_, row)| row).collect();
    let newest = begun.last().filter(|_| begun.iter().all(|row| !row.usable))?;
    let why = newest.why.as_deref().unwrap_or_default();
    let start = &newest.start_lsn;
    let text = format!(
        "no backup can be restored to the end: the newest, which begins at {start}, is {why}"
    );
    Some(check(Verdict::Fail, text))
}

/// Whether a backup's history names a checkpoint where sound WAL of its timeline has none: it is the history
/// that is damaged, which no server reads.
fn is_contradicted(label: &Label, wal: &Wal<'_>) -> bool {
    let Label { checkpoint, timeline, stop, .. } = *label;
    stop.is_some()
        && wal.problems.is_empty()
        && wal.plan.lineage.of_page(checkpoint) == timeline
        && (wal.plan.bounds().start..wal.end.lsn).contains(&checkpoint)
        && wal.backups.checkpoint_at(checkpoint) == CheckpointAt::Nothing
}

/// All backups that files or the WAL itself tell of, by where they begin.
fn backups(wal: &Wal<'_>, labels: &[ToldLabel]) -> Vec<(Judged, BackupRow)> {
    // One that is taken from a standby begins at the checkpoint from which the standby would start, where one
    // of the primary may begin, too; and timelines have the same places.
    let mut told: BTreeMap<(Lsn, bool, u32), Option<ToldLabel>> = BTreeMap::new();
    for label in labels.iter().filter(|told| !is_contradicted(&told.found.label, wal)) {
        let Label { start, from_standby, timeline, .. } = label.found.label;
        match told.entry((start, from_standby, timeline)).or_default() {
            Some(known) => known.complete(label),
            unknown => *unknown = Some(label.clone()),
        }
    }
    for end in &wal.backups.ends {
        let mut spans = wal.plan.lineage.spans();
        let of = spans.find(|(_, span)| span.contains(&end.start));
        told.entry((end.start, false, of.map_or(0, |(timeline, _)| timeline))).or_default();
    }
    told.into_iter().map(|((start, ..), label)| judged(start, label.as_ref(), wal)).collect()
}

fn judged(start: Lsn, told: Option<&ToldLabel>, wal: &Wal<'_>) -> (Judged, BackupRow) {
    let found = told.map(|told| &told.found);
    let backup = found.map_or_else(|| Backup::from_lsn(start), |found| Backup::of(found.clone()));
    let backup = backup.read_by(wal);
    let start = backup.start;
    // No record ends a backup that is taken from a standby.
    let is_primarys = backup.label.is_none_or(|it| !it.from_standby);
    let mut in_wal = wal.backups.ends.iter().filter(|_| is_primarys);
    let in_wal = in_wal.find(|end| end.start == start).map(|end| end.end);
    let stop = consistent_from(&backup, wal);
    let reached = reached(&backup, wal);
    let Reached { stop: reaches, broken, .. } = reached;
    let early = unsearched(&backup, wal);
    let begins = can_begin(&backup, wal)
        .and_then(|()| latest(&backup, wal.plan))
        .and_then(|()| findable(&backup, wal));
    let ends = ends_hot_standby(wal, start).filter(|(place, _)| *place < reaches);
    let is_early = |place: &Lsn| stop.is_some_and(|stop| *place < stop);
    let unopened = ends.as_ref().filter(|(place, _)| is_early(place)).map(|(_, why)| why.clone());
    let why_not = begins
        .and_then(|()| unopened.map_or(Ok(()), |why| Err(format!("not restorable: {why}"))))
        .and_then(|()| consistent(&backup, wal, reaches))
        .err();
    // A target before the place is reached all the same, and the end of the WAL is not.
    let fatal = broken.and_then(|problem| wrong_size(problem, wal));
    let fatal = fatal.map(|file| file.why_not(reaches));
    let ended = ends.as_ref().map(|(place, why)| format!("restorable to LSN {place} only: {why}"));
    let unopened = lost_after_all(wal, start, &reached).map(|lost| lost.at_the_end(reaches));
    let why = why_not.clone().or(early.as_ref().map(Unsearched::told)).or(ended).or(unopened);
    let why = why.or(fatal).or(ends_inconsistent(&backup, wal, &reached));
    let why = why.or_else(|| is_known(&backup, wal, reaches).err());
    let text = |told: Option<&String>| told.and_then(|time| zoned(time));
    let row = BackupRow {
        label: told.and_then(|told| told.name.clone()),
        start_lsn: start.to_string(),
        stop_lsn: backup.label.and_then(|l| l.stop).or(in_wal).map(|lsn| lsn.to_string()),
        start_time: text(told.and_then(|told| told.start_time.as_ref())),
        stop_time: text(told.and_then(|told| told.stop_time.as_ref())),
        consistent_from: stop.map(|lsn| lsn.to_string()),
        usable: why.is_none(),
        reaches: why.is_none().then(|| reaches.to_string()),
        why,
    };
    let ahead = ahead(wal, &reached);
    let broken = broken.map(|problem| format!("{} in {}", problem.kind, problem.segment));
    let (reaches, broken) = match early.and_then(|early| Some((early.leaves(wal.plan)?, early))) {
        Some((left, early)) if left < reaches => (left, Some(early.told())),
        _ => (reaches, broken),
    };
    let (reaches, broken) = match ends {
        Some((place, why)) if place < reaches => (place, Some(why)),
        _ => (reaches, broken),
    };
    let clock = || wal.reach.before(stop.unwrap_or(start)).and_then(|point| rfc3339(point.time?));
    let ended = row.stop_time.clone().or_else(|| row.start_time.clone()).or_else(clock);
    (Judged { start, consistent: stop, stop: reaches, ended, broken, ahead, why_not }, row)
}

/// A time of a label, `2026-11-21 09:12:01 UTC`; nothing where the zone is an abbreviation that only the
/// server knows.
fn zoned(text: &str) -> Option<String> {
    let (time, zone) = text.trim().rsplit_once(' ')?;
    let offset = match zone {
        "UTC" | "GMT" => "+0000".to_owned(),
        zone if zone.starts_with(['+', '-']) && zone.len() == 3 => format!("{zone}00"),
        zone if zone.starts_with(['+', '-']) => zone.to_owned(),
        _ => return None,
    };
    let parsed = strtime::parse("%Y-%m-%d %H:%M:%S %z", format!("{time} {offset}")).ok()?;
    let timestamp = parsed.to_timestamp().ok()?;
    Some(format!("{timestamp:.6}"))
}

/// Where WAL is missing or damaged on the way.
fn gaps(wal: &Wal<'_>) -> Vec<GapRow> {
    let plan = wal.plan;
    let bytes = u64::from(plan.geometry.segment_bytes);
    let holes = plan.segments.windows(2).filter_map(|pair| {
        let (from, to) = (Lsn((pair[0].number + 1) * bytes), Lsn(pair[1].number * bytes));
        (from < to).then(|| GapRow {
            start_lsn: from.to_string(),
            end_lsn: Some(to.to_string()),
            segment: plan.segment_name(from),
            kind: "missing_segment".to_owned(),
        })
    });
    let damage = wal.problems.iter().filter(|problem| problem.kind.is_of_records());
    let damage = damage.filter_map(|problem| {
        let (lsn, end) = (problem.lsn?, problem.skipped()?.end);
        let is_on_the_way = problem.segment.starts_with(&plan.segment_name(lsn));
        is_on_the_way.then(|| GapRow {
            start_lsn: lsn.to_string(),
            end_lsn: (problem.skipped_bytes > 0).then(|| end.to_string()),
            segment: problem.segment.clone(),
            kind: problem.kind.to_string(),
        })
    });
    holes.chain(damage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_labels_are_read_where_the_zone_says_its_offset() {
        let utc = Some("2026-11-21T09:12:01.000000Z".to_owned());
        assert_eq!(zoned("2026-11-21 09:12:01 UTC"), utc);
        assert_eq!(zoned("2026-11-21 12:12:01 +03"), utc);
        assert_eq!(zoned("2026-11-21 14:57:01 +0545"), utc);
        assert_eq!(zoned("2026-11-21 09:12:01 CET"), None);
        assert_eq!(zoned("yesterday"), None);
    }
}
