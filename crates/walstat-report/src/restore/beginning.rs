//! Whether replay can begin where a backup wants it to.

use super::astray::by_older_file;
use super::{Backup, Wal};
use walstat_analyse::backup::CheckpointAt;
use walstat_format::lsn::Lsn;
use walstat_format::record_header::FIRST_NORMAL_XID;
use walstat_read::input::control::{Control, State};
use walstat_read::input::history;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// Replay can begin where the backup wants it to.
pub(crate) fn can_begin(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    usable(backup)
        .and_then(|()| cluster(backup, wal.plan))
        .and_then(|()| followed(backup, wal))
        .and_then(|()| begins(backup, wal))
        .and_then(|()| within_reach(backup, wal.plan))
        .and_then(|()| ancestor(backup, wal.plan))
        .and_then(|()| checkpoint(backup, wal))
        .and_then(|()| left_after_its_end(backup, wal))
}

/// A server starts with it.
fn usable(backup: &Backup) -> Result<(), String> {
    if let Some(what) = &backup.is_broken {
        return Err(format!("not restorable: the backup's {what}"));
    }
    // A history tells of the WAL that is needed: the full backup that is made of it begins in the same place.
    if backup.label.is_some_and(|label| label.is_incremental && label.stop.is_none()) {
        let text = "not restorable: an incremental backup, of which pg_combinebackup makes a full one with \
                    those before it";
        return Err(text.to_owned());
    }
    // A backup has its pg_control from after the checkpoint with which it begins.
    let both = backup.label.zip(backup.control);
    if let Some((label, control)) = both.filter(|(it, at)| it.checkpoint > at.checkpoint_lsn) {
        return Err(format!(
            "not restorable: the backup's label says that it begins with the checkpoint at {}, which its \
             pg_control does not know yet: the last one there is at {}",
            label.checkpoint, control.checkpoint_lsn
        ));
    }
    let from_standby = backup.label.is_some_and(|label| label.from_standby);
    let in_recovery = |control: &Control| {
        matches!(control.state, State::InArchiveRecovery | State::ShutDownInRecovery)
    };
    match backup.control.filter(|control| from_standby && !in_recovery(control)) {
        Some(_) => {
            let text = "not restorable: the backup's label says that it was taken from a standby, its \
                        pg_control that it was not";
            Err(text.to_owned())
        }
        None => Ok(()),
    }
}

/// The WAL is of the backup's cluster.
fn cluster(backup: &Backup, plan: &Plan) -> Result<(), String> {
    let found = plan.geometry.system_identifier;
    let wanted = backup.control.map(|control| control.system_identifier);
    match wanted.filter(|wanted| *wanted != found) {
        Some(wanted) => Err(format!(
            "not restorable: the backup is of cluster {wanted}, the WAL of cluster {found}"
        )),
        None => Ok(()),
    }
}

/// The WAL that was read is on the backup's own timeline. It may be on another one because the history of
/// that is missing, which a server does not need to begin on it.
fn followed(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let plan = wal.plan;
    let lost = |timeline: &u32| {
        let name = history::name_of(*timeline);
        let is_it = |it: &Problem| it.kind == ProblemKind::MissingHistory && it.segment == name;
        !plan.lineage.has(*timeline) && wal.problems.iter().any(is_it)
    };
    match backup.label.map(|label| label.timeline).filter(lost) {
        Some(timeline) => Err(format!(
            "not known to be restorable: it is of timeline {timeline}, whose history is missing, and \
             timeline {} is followed; check --backup-label judges it",
            plan.timeline
        )),
        None => Ok(()),
    }
}

/// That the timeline which is followed has left that of the backup before it began.
fn left_before(backup: &Backup, plan: &Plan) -> Option<String> {
    let (own, start) = (backup.label?.timeline, backup.start);
    let at = plan.lineage.leaves(own).filter(|at| *at <= start)?;
    Some(format!(
        "not restorable: timeline {} left timeline {own} at {at}, before the backup's {start}; \
         restore with recovery_target_timeline = '{own}'; check -t {own} says how far",
        plan.timeline
    ))
}

/// What a server does where something is wrong with a segment, if it takes an older timeline's.
fn instead_of(segment: &str, wal: &Wal<'_>) -> Option<String> {
    let is_its = |problem: &&Problem| problem.segment.starts_with(segment);
    wal.problems.iter().filter(is_its).find_map(|problem| by_older_file(problem, wal))
}

/// The segment of the backup's start is there, and the WAL reaches it.
fn begins(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let start = backup.start;
    let first = wal.plan.bounds().start;
    if first > start {
        return Err(format!(
            "not restorable: the WAL begins at {first}, the backup needs it from {start}"
        ));
    }
    if let Some(left) = left_before(backup, wal.plan) {
        return Err(left);
    }
    if wal.end.lsn <= start {
        let end = wal.end.lsn;
        return Err(format!("not restorable: the WAL ends at {end}, before the backup's {start}"));
    }
    let number = start.0 / u64::from(wal.plan.geometry.segment_bytes);
    match wal.plan.segments.binary_search_by_key(&number, |s| s.number) {
        Ok(_) => Ok(()),
        Err(_) => {
            let name = wal.plan.segment_name(start);
            let instead = instead_of(&name, wal);
            let on = instead
                .as_ref()
                .map_or(String::new(), |_| format!(" on timeline {}", wal.plan.timeline));
            Err(format!(
                "not restorable{on}: segment {name} with the backup's {start} is missing{}",
                instead.unwrap_or_default()
            ))
        }
    }
}

/// No segment from the start on lies elsewhere, or under another suffix, than the others do.
fn within_reach(backup: &Backup, plan: &Plan) -> Result<(), String> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let is_needed =
        |problem: &&Problem| problem.lsn.is_some_and(|lsn| lsn.0 + bytes > backup.start.0);
    match plan.laid_away.iter().find(is_needed) {
        Some(problem) => {
            let Problem { segment, expected, found, .. } = problem;
            Err(format!("not restorable: {segment}: expected {expected}, found {found}"))
        }
        None => Ok(()),
    }
}

/// No history takes the checkpoint for one of another timeline: "requested timeline is not a child of
/// this server's history".
fn ancestor(backup: &Backup, plan: &Plan) -> Result<(), String> {
    let (Some(label), Some(wrong)) = (backup.label, plan.wrong_lineage()) else { return Ok(()) };
    let (checkpoint, said, own) =
        (label.checkpoint, wrong.of_page(label.checkpoint), label.timeline);
    if said == own {
        return Ok(());
    }
    Err(format!(
        "not restorable: by {} the backup's checkpoint at {checkpoint} is of timeline {said}, and not of \
         timeline {own}: \"requested timeline {} is not a child of this server's history\"",
        history::name_of(plan.history_read()),
        plan.history_read()
    ))
}

/// The timeline that is followed does not leave the backup's before the backup is consistent: before the
/// minimum recovery point of one that was taken from a standby (`InitWalRecovery` in
/// `src/backend/access/transam/xlogrecovery.c`), or before the end of another, as its history has it, where
/// the WAL that is followed has no record of that (`StartupXLOG` in `src/backend/access/transam/xlog.c`). No
/// record ends the backup of a standby.
fn left_after_its_end(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let plan = wal.plan;
    let lineage = plan.wrong_lineage().unwrap_or(&plan.lineage);
    let is_left = |(end, timeline): &(Lsn, u32)| {
        end.0.checked_sub(1).is_some_and(|last| lineage.of_page(Lsn(last)) != *timeline)
    };
    let followed = plan.history_read();
    let of_control = backup.control.map(|it| (it.min_recovery_point, it.min_recovery_timeline));
    if let Some((point, timeline)) = of_control.filter(is_left) {
        return Err(format!(
            "not restorable: timeline {followed} leaves timeline {timeline} before {point}, the backup's \
             minimum recovery point: \"requested timeline {followed} does not contain minimum recovery \
             point\""
        ));
    }
    let is_in_wal = wal.backups.ends.iter().any(|end| end.start == backup.start);
    let of_primary = backup.label.filter(|label| !is_in_wal && !label.from_standby);
    let of_history = of_primary.and_then(|label| Some((label.stop?, label.timeline)));
    match of_history.filter(is_left) {
        Some((stop, timeline)) => Err(format!(
            "not restorable: timeline {followed} leaves timeline {timeline} before {stop}, where the backup \
             ends: \"WAL ends before end of online backup\""
        )),
        None => Ok(()),
    }
}

/// The label's checkpoint lies where it says, begins where it says, on its timeline.
fn checkpoint(backup: &Backup, wal: &Wal<'_>) -> Result<(), String> {
    let Some(label) = backup.label else { return Ok(()) };
    let lsn = label.checkpoint;
    let found = wal.backups.checkpoint_at(lsn);
    if found == CheckpointAt::Unknown {
        return Ok(());
    }
    let CheckpointAt::Noted(found) = found else {
        if wal.end.lsn <= lsn {
            return Err(format!(
                "not restorable: the WAL ends at {}, before the backup's checkpoint at {lsn}",
                wal.end.lsn
            ));
        }
        let other = if label.timeline == wal.plan.timeline {
            String::new()
        } else {
            format!(" (timeline {}; read: {})", label.timeline, wal.plan.timeline)
        };
        let instead = instead_of(&wal.plan.segment_name(lsn), wal).unwrap_or_default();
        return Err(format!(
            "not restorable: no checkpoint record at {lsn}, where the backup's label has one{other}{instead}"
        ));
    };
    if found.timeline != label.timeline {
        return Err(format!(
            "not restorable: the backup is of timeline {}, the WAL at {lsn} of timeline {}",
            label.timeline, found.timeline
        ));
    }
    if found.redo != label.start {
        return Err(format!(
            "not restorable: the checkpoint at {lsn} begins at {}, the backup's label says {}",
            found.redo, label.start
        ));
    }
    if (found.next_xid as u32) < FIRST_NORMAL_XID {
        return Err(format!(
            "not restorable: the checkpoint at {lsn} has {} for the next transaction: \"invalid next \
             transaction ID\"",
            found.next_xid
        ));
    }
    Ok(())
}
