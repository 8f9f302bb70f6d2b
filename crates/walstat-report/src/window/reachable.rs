//! Whether recovery stops at a target instead of failing, and why not.

use super::{Judged, Question, gaps};
use crate::build::rfc3339;
use crate::model::window::{GapRow, TargetRow};
use crate::restore::{Lost, lost_at_the_end};
use std::cmp::Ordering;
use walstat_analyse::recovery_window::{Goal, Match, RecoveryWindow, Target, XidStory};
use walstat_format::lsn::Lsn;

/// What became of a target with one backup.
enum Stop {
    /// Recovery stops at this record.
    At(Match),
    /// It meets this one before the backup is consistent.
    TooEarly(Match),
    /// It does not come as far as this one.
    TooFar(Match),
    /// It stops at this one, and the server does not open.
    NotOpened(Match, Lost),
    /// No record after the backup's start matches.
    Never,
}

/// Judges a target, with the newest backup from which it can be reached and that has nothing from after it;
/// where all have, with the oldest.
pub(super) fn judge(
    question: &Question<'_>,
    backups: &[&Judged],
    target: &Target,
    asked: &str,
) -> TargetRow {
    let usable: Vec<&Judged> =
        backups.iter().copied().filter(|backup| backup.why_not.is_none()).collect();
    let stops: Vec<(&Judged, Stop)> =
        usable.iter().map(|backup| (*backup, stop(question, backup))).collect();
    let reached = stops.iter().filter_map(|(backup, stop)| match stop {
        Stop::At(place) => Some((*backup, *place, has_later(question, backup, target))),
        _ => None,
    });
    let reached: Vec<_> = reached.collect();
    let fits = reached.iter().rev().find(|(.., later)| later.is_none()).or(reached.first());
    let (asked, inclusive) = (asked.to_owned(), target.is_inclusive);
    if let Some(why) = no_such_setting(question, target, fits.map(|(_, place, _)| place)) {
        let (stops_before_lsn, backup_start_lsn) = (None, None);
        let reachable = false;
        return TargetRow { asked, inclusive, reachable, why, stops_before_lsn, backup_start_lsn };
    }
    match fits {
        Some((backup, place, later)) => TargetRow {
            asked,
            inclusive,
            reachable: true,
            why: reason(target, place, later.as_deref()) + &met_before(backup, place),
            stops_before_lsn: Some(stops_before(question, target, place).to_string()),
            backup_start_lsn: Some(backup.start.to_string()),
        },
        None => TargetRow {
            asked,
            inclusive,
            reachable: false,
            why: why_not(question, backups, &stops, target),
            stops_before_lsn: None,
            backup_start_lsn: None,
        },
    }
}

/// That the release cannot be given such a target, with one that it can be given for the same place.
fn no_such_setting(
    question: &Question<'_>,
    target: &Target,
    place: Option<&Match>,
) -> Option<String> {
    let version = question.wal.plan.version();
    let is_known = version.recovery.has_lsn || !matches!(target.goal, Goal::Lsn(_));
    let same = place.and_then(|place| place.ends).map_or(String::new(), |xid| {
        let inclusive = if target.is_inclusive { "" } else { " --target-exclusive" };
        format!("; recovery_target_xid stops at the same place: --target xid:{xid}{inclusive}")
    });
    (!is_known).then(|| format!("PostgreSQL {} knows no recovery_target_lsn{same}", version.name))
}

/// What lies before this has been replayed when recovery stops at a record.
fn stops_before(question: &Question<'_>, target: &Target, place: &Match) -> Lsn {
    let segment = u64::from(question.wal.plan.geometry.segment_bytes);
    match target.stops_at(place) {
        after if place.switch && after == place.end => Lsn(after.0.next_multiple_of(segment)),
        at => at,
    }
}

fn stop(question: &Question<'_>, backup: &Judged) -> Stop {
    let Judged { start, consistent, stop, .. } = backup;
    match question.noted.stop(*start, consistent.unwrap_or(*start)) {
        None => Stop::Never,
        Some(Err(place)) => Stop::TooEarly(place),
        Some(Ok(place)) if place.end > *stop => Stop::TooFar(place),
        Some(Ok(place)) => match lost_at_the_end(question.wal.plan, *start, &place.standing) {
            Some(lost) => Stop::NotOpened(place, lost),
            None => Stop::At(place),
        },
    }
}

/// What a backup has from after a time that is the target. When it ended is known to the second: of the same
/// second, the WAL tells.
fn has_later(question: &Question<'_>, backup: &Judged, target: &Target) -> Option<String> {
    let Goal::Time(time) = &target.goal else { return None };
    let asked = rfc3339(*time)?;
    let second = |time: &str| time.get(..SECOND_CHARS).map(str::to_owned);
    let ended = backup.ended.as_deref();
    match ended.map(|ended| second(ended).cmp(&second(&asked))) {
        Some(Ordering::Less) => None,
        Some(Ordering::Greater) => Some(format!(
            "but the backup ended at {}, and contains all that was committed by then",
            ended.unwrap_or_default()
        )),
        Some(Ordering::Equal) | None => {
            let contains = backup.consistent.unwrap_or(backup.start);
            let first = question.noted.first_match().filter(|first| first.lsn < contains)?;
            Some(format!(
                "but the backup, which ended at {contains}, contains the transaction that ends at {}",
                first.lsn
            ))
        }
    }
}

/// Of `2026-11-21T09:12:01.000000Z`, up to the second.
const SECOND_CHARS: usize = 19;

/// Why recovery stops where it does; `later`: what the backup has from after the target.
fn reason(target: &Target, place: &Match, later: Option<&str>) -> String {
    let lsn = place.lsn;
    match &target.goal {
        Goal::Time(_) => {
            let after = if target.is_inclusive { "after it" } else { "then or later" };
            let reason = format!("the record at {lsn} ends the first transaction {after}");
            later.map_or(reason.clone(), |later| format!("{reason}; {later}"))
        }
        Goal::Lsn(_) if target.is_inclusive => {
            format!("the record at {lsn} is the last that is replayed")
        }
        Goal::Lsn(_) => format!("the record at {lsn} is the first that is not replayed"),
        Goal::Xid(xid) => format!("the record at {lsn} ends transaction {xid}"),
        Goal::Name(_) => format!("the restore point is at {lsn}"),
    }
}

/// What a server may meet before it stops at a place.
fn met_before(backup: &Judged, place: &Match) -> String {
    let ahead = backup.ahead.as_ref().filter(|ahead| place.end > ahead.from);
    ahead.map_or_else(String::new, |ahead| format!("; {ahead}: recovery_prefetch = off gets there"))
}

fn why_not(
    question: &Question<'_>,
    backups: &[&Judged],
    stops: &[(&Judged, Stop)],
    target: &Target,
) -> String {
    let Some((newest, _)) = stops.last() else {
        return match backups.last().and_then(|backup| backup.why_not.as_ref()) {
            Some(why) => format!("no usable backup: {why}"),
            None => "no backup is known: --backup-label names one".to_owned(),
        };
    };
    let unopened = stops.iter().rev().find_map(|(_, stop)| match stop {
        Stop::NotOpened(place, lost) => Some(lost.at_the_end(place.lsn)),
        _ => None,
    });
    if let Some(why) = unopened {
        return why;
    }
    let far = stops.iter().rev().find_map(|(backup, stop)| match stop {
        Stop::TooFar(place) => Some((*backup, *place)),
        _ => None,
    });
    if let Some((backup, place)) = far {
        let Judged { stop, broken, .. } = backup;
        let broken = broken.as_ref().map_or(String::new(), |broken| format!(": {broken}"));
        // What is missing may have a record at which recovery would stop, too.
        let or_before = match target.goal {
            Goal::Time(_) | Goal::Lsn(_) => " or before",
            Goal::Xid(_) | Goal::Name(_) => "",
        };
        return format!(
            "it would stop at {}{or_before}, but the WAL is good to {stop} only{broken}",
            place.lsn
        );
    }
    let early = stops.iter().find_map(|(backup, stop)| match stop {
        Stop::TooEarly(place) => Some((*backup, *place)),
        _ => None,
    });
    if let Some((backup, place)) = early {
        let consistent = backup.consistent.unwrap_or(backup.start);
        return format!(
            "it would stop at {}, before {consistent}, where the oldest usable backup is consistent",
            place.lsn
        );
    }
    if let Some(place) = question.noted.last_match() {
        return format!(
            "it lies at {}, before {}, where the oldest usable backup begins",
            place.lsn,
            stops.first().map_or(newest.start, |(backup, _)| backup.start)
        );
    }
    never(question, target)
}

/// Why no record matches, of those that are there.
fn never(question: &Question<'_>, target: &Target) -> String {
    let fails = if question.wal.plan.version().recovery.fails_short_of_target {
        "recovery would end before the target and fail"
    } else {
        "recovery would replay all of the WAL, and the server would open after it"
    };
    let why = unmatched(question, target);
    match gaps(&question.wal).first().filter(|_| !matches!(target.goal, Goal::Lsn(_))) {
        Some(GapRow { start_lsn, kind, .. }) => {
            format!("it may lie in the gap at {start_lsn} ({kind}): elsewhere {why}; {fails}")
        }
        None => format!("{why}; {fails}"),
    }
}

fn unmatched(question: &Question<'_>, target: &Target) -> String {
    let XidStory { has_written, is_prepared, ended_with } = question.noted.story();
    match &target.goal {
        Goal::Time(_) => match last_time(question.noted) {
            Some((time, lsn)) => {
                format!("no transaction ends after it: the last end is of {time}{lsn}")
            }
            None => "no transaction ends in this WAL".to_owned(),
        },
        Goal::Lsn(_) => format!("the WAL ends at {}", question.wal.end.lsn),
        Goal::Name(_) => "no restore point has this name".to_owned(),
        Goal::Xid(xid) => match (ended_with, is_prepared, has_written) {
            (Some(top), ..) => format!(
                "{xid} ended as a subtransaction of {top}, without a record of its own: use xid:{top} as the \
                 target"
            ),
            (None, true, _) => {
                format!("transaction {xid} was prepared, and no record ends it")
            }
            (None, false, true) => format!("no record ends transaction {xid}"),
            (None, false, false) => format!("no record is of transaction {xid}"),
        },
    }
}

/// When the last transaction ended, and where the last one was committed.
fn last_time(noted: &RecoveryWindow) -> Option<(String, String)> {
    let time = noted.timelines().iter().filter_map(|ends| ends.last_time).max()?;
    let lsn: Option<Lsn> = noted.timelines().iter().rev().find_map(|ends| ends.last_commit);
    let lsn = lsn.map_or(String::new(), |lsn| format!(" (last commit at {lsn})"));
    Some((rfc3339(time)?, lsn))
}
