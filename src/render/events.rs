//! `walstat events`: what was done to tables, for people, for other programs, and as lines for a server's
//! configuration.

use super::csv;
use super::number::{UNKNOWN, counted, grouped};
use super::style::{left, plain};
use super::time::moment;
use super::visible::visible;
use serde_json::{Map, Value};
use std::io::{self, Write};
use walstat_report::model::events::{EventRow, EventsReport};

/// What takes something away: what people come back for.
const LOSSES: [&str; 4] = ["drop_table", "truncate", "drop_database", "delete"];
/// How a transaction stands that has not ended where the WAL does.
const OPEN: &str = "in_progress";
/// One that has been prepared and not ended since.
const PREPARED: &str = "prepared";
/// So many moments are told how to recover to, and so many events of each.
const TOLD: usize = 5;

/// Writes a table for people, and what to put into the configuration.
pub fn table(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    if report.events.is_empty() {
        writeln!(out, "No such event from {} to {}.", report.range.start, report.range.end)?;
        return elsewhere(report, out);
    }
    // Names may be long, and come last.
    let mut table = plain(&["Time (UTC)", "Event", "Rows", "Xid", "Outcome", "Table"]);
    for column in [1, 4, 5] {
        left(&mut table, column);
    }
    for row in &report.events {
        table.add_row([
            moment(row.time.as_deref()),
            row.event.clone(),
            row.rows.map_or(UNKNOWN.to_owned(), grouped),
            row.xid.clone(),
            row.outcome.clone(),
            name(row),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    elsewhere(report, out)?;
    recovery(report, out)
}

/// What happened on another timeline may be what is looked for, and is not told above.
fn elsewhere(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    for timeline in &report.other_timelines {
        writeln!(
            out,
            "There is WAL of timeline {timeline} too, which is not followed: what was done there, and how it \
             ended, -t {timeline} tells."
        )?;
    }
    Ok(())
}

/// Where recovery stops before the events for which somebody would want that.
fn recovery(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.events;
    let Told { moments: told, of, are_losses } = told(all);
    if told.is_empty() {
        return if all.iter().any(|row| row.outcome == PREPARED) {
            writeln!(
                out,
                "Prepared, and neither committed nor rolled back in this WAL: nothing is lost yet. ROLLBACK \
                 PREPARED\non the server undoes it (pg_prepared_xacts has its gid)."
            )
        } else if all.iter().any(|row| row.outcome == OPEN) {
            writeln!(
                out,
                "Not committed in this WAL: recover to its end, or give newer WAL (pg_wal) too."
            )
        } else {
            let there = if report.other_timelines.is_empty() { "" } else { " on this timeline" };
            writeln!(out, "All of it was rolled back{there}, so there is nothing to recover.")
        };
    }
    let file = report.settings.file;
    let events: usize = told.iter().map(Vec::len).sum();
    let (event, lines) = match (told.len(), events) {
        (1, 1) => ("it", "this"),
        (1, _) => ("them", "this"),
        _ => ("one of these events", "its lines alone"),
    };
    writeln!(
        out,
        "To stop right before {event}, put {lines} into {file} of a restored base backup"
    )?;
    writeln!(out, "(a server has one target, and takes the last that it finds).")?;
    if events < all.len() {
        if told.len() < of {
            let what = if are_losses { "took something away" } else { "did what stayed" };
            writeln!(
                out,
                "These are the last {} of the {of} transactions that {what}.",
                told.len()
            )?;
        }
        writeln!(out, "For the lines of another event, give its transaction with -x.")?;
    }
    told.iter().try_for_each(|moment| settings(moment, report, out))
}

/// Events that are told how to recover to.
struct Told<'r> {
    /// Those before which recovery stops at the same place, together.
    moments: Vec<Vec<&'r EventRow>>,
    /// Of how many these are the last.
    of: usize,
    /// Whether they took something away.
    are_losses: bool,
}

/// The last events that took something away; without any, the last ones. Not what was rolled back, nor what
/// has not committed: nothing of it stayed, and a target before it would lose what committed meanwhile.
fn told(events: &[EventRow]) -> Told<'_> {
    let stays = |row: &EventRow| {
        row.is_irrevocable || !["aborted", OPEN, PREPARED].contains(&&*row.outcome)
    };
    let is_loss = |row: &&EventRow| {
        let is_temporary = row.schema.as_deref().is_some_and(|name| name.starts_with("pg_temp_"));
        let is_done = row.outcome == "committed" || row.is_irrevocable;
        LOSSES.contains(&row.event.as_str()) && is_done && !is_temporary
    };
    let losses: Vec<&EventRow> = events.iter().filter(is_loss).collect();
    let are_losses = !losses.is_empty();
    let all = if are_losses { losses } else { events.iter().filter(|row| stays(row)).collect() };
    let mut moments: Vec<Vec<&EventRow>> = Vec::new();
    for row in all {
        let place = |row: &EventRow| row.recovery_target.recovery_target_lsn.clone();
        let is_same = |moment: &&mut Vec<&EventRow>| {
            moment.first().is_some_and(|first| place(first) == place(row) && first.xid == row.xid)
        };
        match moments.iter_mut().find(is_same) {
            Some(moment) => moment.push(row),
            None => moments.push(vec![row]),
        }
    }
    let (of, first) = (moments.len(), moments.len().saturating_sub(TOLD));
    Told { moments: moments.split_off(first), of, are_losses }
}

/// The lines of the events of one moment.
fn settings(moment: &[&EventRow], report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(row) = moment.first() else { return Ok(()) };
    writeln!(out)?;
    for row in moment.iter().take(TOLD) {
        heading(row, out)?;
    }
    match moment.len().saturating_sub(TOLD) {
        0 => {}
        more => writeln!(out, "# and {} of this transaction", counted(more as u64, "more event"))?,
    }
    if row.is_before_backup {
        writeln!(
            out,
            "# the backup in --data-directory began after this event: recovery needs an older one"
        )?;
    }
    if row.was_prepared {
        writeln!(
            out,
            "# after recovery the transaction is still prepared and holds its locks: see pg_prepared_xacts, \
             then ROLLBACK PREPARED"
        )?;
    }
    target(row, report, out)
}

/// What an event was.
fn heading(row: &EventRow, out: &mut dyn Write) -> io::Result<()> {
    let rows = row.rows.map(|rows| format!(" of {}", counted(rows, "row"))).unwrap_or_default();
    let zone = if row.time.is_some() { " UTC" } else { "" };
    let time = moment(row.time.as_deref());
    writeln!(out, "# {}{rows}, {}, {time}{zone}", row.event, name(row))?;
    if row.is_irrevocable && row.outcome != "committed" {
        writeln!(
            out,
            "# it did not commit, and the database is broken all the same (datconnlimit = -2, or its files \
             are gone)"
        )?;
    }
    // Its own name is one of all, where others are told.
    let named = |last: &Option<String>| {
        let parts = [&row.schema, last].map(Option::as_deref);
        parts.into_iter().flatten().collect::<Vec<_>>().join(".")
    };
    let own = [named(&row.table), named(&row.index_name), named(&row.database)];
    let others = row.names.iter().filter(|name| !own.contains(name));
    let others: Vec<&str> = others.map(String::as_str).collect();
    if others.is_empty() {
        return Ok(());
    }
    writeln!(out, "# in this WAL it was called {} too", visible(&others.join(", ")))
}

/// The lines themselves.
fn target(row: &EventRow, report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    let target = &row.recovery_target;
    let mut inclusive = "off";
    let Some(place) = &target.recovery_target_lsn else {
        let why = row.unopened.as_deref().unwrap_or_default();
        return writeln!(out, "# no lines: {why}");
    };
    if report.settings.has_lsn {
        writeln!(out, "recovery_target_lsn = '{place}'")?;
    } else if let Some(xid) = &target.recovery_target_xid {
        writeln!(out, "recovery_target_xid = '{xid}'")?;
    } else if let Some(xid) = &target.after_xid {
        inclusive = "on";
        writeln!(out, "# recovery stops right after the last transaction that ended before it")?;
        writeln!(out, "recovery_target_xid = '{xid}'")?;
    } else {
        return writeln!(
            out,
            "# no transaction ends at {place}, and this release knows no other target"
        );
    }
    writeln!(out, "recovery_target_inclusive = {inclusive}")?;
    writeln!(out, "recovery_target_timeline = '{}'", target.recovery_target_timeline)
}

/// A table or a database, as people call it.
fn name(row: &EventRow) -> String {
    let names = [&row.database, &row.schema, &row.table].map(Option::as_deref);
    let known: Vec<&str> = names.into_iter().flatten().collect();
    let relation = row.relation.as_deref();
    let table = match (&row.table, relation) {
        (None, Some(file)) => file.to_owned(),
        _ => known.join("."),
    };
    let index = row.index_name.as_deref().map(|index| format!(" ({index})")).unwrap_or_default();
    visible(&format!("{table}{index}")).into_owned()
}

/// Writes an object a line: the keys of an event, its table as `table_name`, and `table`, the list's name.
pub fn lines(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    for row in &report.events {
        let mut line = Map::new();
        line.insert("table".to_owned(), Value::from("events"));
        if let Value::Object(keys) = serde_json::to_value(row)? {
            let renamed = |key: String| if key == "table" { "table_name".to_owned() } else { key };
            line.extend(keys.into_iter().map(|(key, value)| (renamed(key), value)));
        }
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes CSV: the plain columns.
pub fn csv(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    csv::table(&report.events, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::events::RecoveryTarget;

    fn drop_table(xid: u32, outcome: &str) -> EventRow {
        let recovery_target =
            RecoveryTarget { recovery_target_lsn: Some(format!("0/{xid}")), ..Default::default() };
        let (xid, outcome) = (xid.to_string(), outcome.to_owned());
        EventRow {
            xid,
            outcome,
            event: "drop_table".to_owned(),
            recovery_target,
            ..EventRow::default()
        }
    }

    /// DROP SCHEMA CASCADE drops many tables at once.
    #[test]
    fn the_last_moments_are_told_not_the_last_events() {
        let mut rows: Vec<EventRow> = (700..707).map(|xid| drop_table(xid, "committed")).collect();
        rows.extend((0..20).map(|_| drop_table(710, "committed")));
        rows.push(drop_table(711, "aborted"));
        let Told { moments, of, are_losses } = told(&rows);
        assert!(are_losses);
        let counts: Vec<_> =
            moments.iter().map(|rows| (rows[0].xid.as_str(), rows.len())).collect();
        assert_eq!(counts, [("703", 1), ("704", 1), ("705", 1), ("706", 1), ("710", 20)]);
        assert_eq!(of, 8);
    }

    #[test]
    fn what_stays_is_told_whatever_became_of_the_transaction() {
        for outcome in ["aborted", "in_progress"] {
            let mut row = drop_table(700, outcome);
            row.event = "drop_database".to_owned();
            assert!(told(std::slice::from_ref(&row)).moments.is_empty(), "{outcome}");
            row.is_irrevocable = true;
            assert_eq!(told(std::slice::from_ref(&row)).moments.len(), 1, "{outcome}");
        }
    }
}
