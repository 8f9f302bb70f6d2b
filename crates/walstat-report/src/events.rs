//! The events of WAL, as they are told.

use super::assemble::{Gathered, ReportOptions, assemble};
use super::build::{Request, left_aside, rfc3339};
use super::known::Known;
use super::model::CommandName;
use super::model::events::{EventRow, EventsReport, RecoverySettings, RecoveryTarget};
use super::restore::lost_at_the_end;
use std::collections::BTreeSet;
use walstat_analyse::counters::Statistics;
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::events::{Events, Name, TableEvent, UnexplainedDrop};
use walstat_analyse::finished_transactions::TransactionOutcome;
use walstat_analyse::prepared_log::PreparedLog;
use walstat_analyse::select::Filters;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::payload::Time;
use walstat_read::input::plan::Plan;
use walstat_read::scan::outcome::Outcome;

/// What is counted: the statistics of every report, what was done to tables, and what was prepared.
pub type Counted = (Statistics, (Events, PreparedLog));

/// So many transactions of which nothing but their files can be told are named.
const UNEXPLAINED_TOLD: usize = 3;

/// Puts the report together, of the events that are `chosen`. `backup`: where the base backup begins that
/// names come from.
pub fn report(
    paths: Vec<String>,
    plan: Plan,
    scanned: Outcome<Counted>,
    known: Known,
    checksums_verified: bool,
    backup: Option<Lsn>,
    chosen: impl FnOnce(Vec<TableEvent>) -> Vec<TableEvent>,
) -> EventsReport {
    let mut seen = None;
    let scanned = scanned.map(|(statistics, others)| {
        seen = Some(others);
        statistics
    });
    let (seen, prepared) = seen.unzip();
    let ways = Ways { backup, first: scanned.first, prepared: prepared.unwrap_or_default() };
    let has_catalogs = known.store().is_some();
    let (store, names, mut warnings) = known.apart(&plan);
    let found = seen.map(|events| events.finish(store, &names)).unwrap_or_default();
    let events = chosen(found.events);
    let rows: Vec<EventRow> = events.iter().map(|event| row(event, &plan, &ways)).collect();
    let recovery = plan.version().recovery;
    let settings = RecoverySettings { file: recovery.file, has_lsn: recovery.has_lsn };
    if found.unknown > 0 {
        let remedy = if has_catalogs {
            "the data directory is newer; a base backup from before these changes has it"
        } else {
            "a base backup from before these changes, given as --data-directory, has it"
        };
        warnings.push(format!(
            "{} changes of pg_class and pg_database are to rows that are not known, so events may be \
             missing: this WAL has no image of their page; {remedy}",
            found.unknown
        ));
    }
    warnings.extend(unexplained(&found.unexplained));
    let before = rows.iter().filter(|row| row.is_before_backup).count();
    if let Some(start) = backup.filter(|_| before > 0) {
        warnings.push(format!(
            "{before} of the {} events lie before {start}, where the backup in --data-directory begins: to \
             recover to a point before them, use an older backup",
            rows.len()
        ));
    }
    warnings.extend(unopened(&rows));
    let other_timelines = left_aside(&plan).0.into_keys().collect();
    let broken = broken_databases(&rows);
    let request = Request {
        command: CommandName::Events,
        dimensions: Dimensions::default(),
        checksums_verified,
        start: None,
        filters: Filters::default(),
    };
    let gathered = Gathered::plain(paths, plan, scanned);
    let mut report = assemble(gathered, &request, &ReportOptions::default()).report;
    report.notes.extend(broken);
    EventsReport::new(report, rows, warnings, settings, other_timelines)
}

/// What decides whether recovery stops at a target, and the server opens.
struct Ways {
    /// Where the base backup begins that names come from.
    backup: Option<Lsn>,
    /// The first record.
    first: Option<Lsn>,
    prepared: PreparedLog,
}

impl Ways {
    /// Why a server that stops before a place does not open there; of one that is restored from a backup of
    /// which nothing is known, from one before all of the WAL.
    fn unopened(&self, plan: &Plan, place: Lsn) -> Option<String> {
        let bytes = u64::from(plan.geometry.segment_bytes);
        let start = self.backup.or(self.first).unwrap_or_default();
        // The record may go on in the segment.
        let since = Lsn((place.0 / bytes).saturating_sub(1) * bytes);
        let standing = self.prepared.standing(since, place);
        lost_at_the_end(plan, start, &standing).map(|lost| lost.at_the_end(place))
    }
}

/// That there are events without a target, and why.
fn unopened(rows: &[EventRow]) -> Option<String> {
    let mut all = rows.iter().filter_map(|row| row.unopened.as_ref());
    let first = all.next()?;
    let events = match all.count() {
        0 => "1 event has".to_owned(),
        more => format!("{} events have", more + 1),
    };
    Some(format!("{events} no recovery target, since a server does not open there: {first}"))
}

/// Databases that no transaction has dropped, and that are lost all the same.
fn broken_databases(rows: &[EventRow]) -> Option<String> {
    let is_broken = |row: &&EventRow| row.is_irrevocable && row.outcome != "committed";
    let broken = rows.iter().filter(is_broken).filter_map(|row| row.database.clone());
    let broken: BTreeSet<String> = broken.collect_set();
    let names: Vec<String> = broken.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "DROP DATABASE did not commit, and the database is broken all the same, since it had been marked \
             as being dropped or lost files before: {}",
            names.join(", ")
        )
    })
}

/// What is said of transactions whose changes of `pg_class` are not seen.
fn unexplained(drops: &[UnexplainedDrop]) -> Option<String> {
    let of_one = |drop: &UnexplainedDrop| {
        let first = drop.files.first()?;
        let more = match drop.files.len() - 1 {
            0 => String::new(),
            1 => " and another file".to_owned(),
            more => format!(" and {more} more files"),
        };
        Some(format!("xid {} at {} ({first}{more})", drop.xid, drop.commit))
    };
    let mut named: Vec<String> = drops.iter().take(UNEXPLAINED_TOLD).filter_map(of_one).collect();
    if drops.len() > UNEXPLAINED_TOLD {
        named.push(format!("{} more", drops.len() - UNEXPLAINED_TOLD));
    }
    (!drops.is_empty()).then(|| {
        format!(
            "events may be missing, like DROP TABLE or TRUNCATE, of transactions that removed files of \
             tables or indexes without a change of pg_class that is seen: {}; they began before the \
             WAL that is read, or it has no image of the page of the row, or pg_class was written \
             anew (VACUUM FULL) before it: earlier WAL, or a data directory from before them and \
             after that (--data-directory), shows what they did; recovery_target_lsn with one of \
             these places, not inclusive, stops before it",
            named.join(", ")
        )
    })
}

fn row(event: &TableEvent, plan: &Plan, ways: &Ways) -> EventRow {
    let backup = ways.backup;
    let text = |name: &Option<std::sync::Arc<str>>| name.as_deref().map(str::to_owned);
    let target = event.target;
    // Recovery from the backup has to meet the end of that transaction.
    let after = target.after.filter(|end| backup.is_none_or(|start| start <= end.lsn));
    let unopened = ways.unopened(plan, target.lsn);
    let opens = unopened.is_none();
    EventRow {
        lsn: event.lsn.to_string(),
        commit_lsn: event.commit.map(|lsn| lsn.to_string()),
        time: event.time.and_then(rfc3339),
        xid: event.xid.to_string(),
        outcome: outcome(event.outcome).to_owned(),
        event: event.kind.name().to_owned(),
        database: text(&event.database),
        schema: text(&event.schema),
        table: text(&event.table),
        index_name: text(&event.index),
        names: event.names.iter().map(called).collect(),
        relation: event.file.map(|file| file.to_string()),
        rows: event.rows,
        bytes: event.bytes,
        recovery_target: RecoveryTarget {
            recovery_target_lsn: opens.then(|| target.lsn.to_string()),
            recovery_target_inclusive: "off",
            recovery_target_xid: target.xid.filter(|_| opens).map(|xid| xid.to_string()),
            recovery_target_time: target.time.filter(|_| opens).and_then(setting),
            recovery_target_timeline: plan.lineage.of_page(target.lsn),
            after_xid: after.filter(|_| opens).map(|end| end.xid.to_string()),
        },
        unopened,
        is_irrevocable: event.is_irrevocable,
        was_prepared: event.was_prepared && event.outcome == TransactionOutcome::Committed,
        is_before_backup: backup.is_some_and(|start| target.lsn < start),
    }
}

/// A name with its schema.
fn called(name: &Name) -> String {
    let parts = [name.database.as_deref(), name.schema.as_deref(), Some(&*name.relation)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// A time as `recovery_target_time` takes it: a server that starts knows no names of time zones, not even
/// `Z`.
fn setting(time: Time) -> Option<String> {
    Some(format!("{}+00:00", rfc3339(time)?.trim_end_matches('Z')))
}

fn outcome(outcome: TransactionOutcome) -> &'static str {
    match outcome {
        TransactionOutcome::Open => "in_progress",
        TransactionOutcome::Prepared => "prepared",
        TransactionOutcome::Aborted => "aborted",
        TransactionOutcome::Committed => "committed",
    }
}
