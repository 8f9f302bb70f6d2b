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
/// So many events are told how to recover to.
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

/// What happened on a timeline that was left may be what is looked for, and is not told above.
fn elsewhere(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    for timeline in &report.other_timelines {
        writeln!(
            out,
            "There is WAL of timeline {timeline} that the one followed has left: what was done there, and \
             how it ended, -t {timeline} tells."
        )?;
    }
    Ok(())
}

/// Where recovery stops before the events for which somebody would want that.
fn recovery(report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.events;
    let Told { events: told, of, are_losses } = told(all);
    if told.is_empty() {
        return if all.iter().any(|row| row.outcome == OPEN) {
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
    let (event, lines) = match told.len() {
        1 => ("it", "this"),
        _ => ("one of these events", "its lines alone"),
    };
    writeln!(
        out,
        "To stop right before {event}, put {lines} into {file} of a restored base backup"
    )?;
    writeln!(out, "(a server has one target, and takes the last that it finds).")?;
    if told.len() < all.len() {
        if told.len() < of {
            let what = if are_losses { "took something away and committed" } else { "stayed" };
            writeln!(out, "These are the last {} of the {of} events that {what}.", told.len())?;
        }
        writeln!(out, "For the lines of another event, give its transaction with -x.")?;
    }
    for row in told {
        settings(row, report, out)?;
    }
    Ok(())
}

/// Events that are told how to recover to.
struct Told<'r> {
    events: Vec<&'r EventRow>,
    /// Of how many these are the last.
    of: usize,
    /// Whether they took something away.
    are_losses: bool,
}

/// The last events that took something away; without any, the last ones. Not what was rolled back, nor what
/// has not committed: nothing of it stayed, and a target before it would lose what committed meanwhile.
fn told(events: &[EventRow]) -> Told<'_> {
    let is_loss = |row: &&EventRow| {
        let is_temporary = row.schema.as_deref().is_some_and(|name| name.starts_with("pg_temp_"));
        LOSSES.contains(&row.event.as_str()) && row.outcome == "committed" && !is_temporary
    };
    let losses: Vec<&EventRow> = events.iter().filter(is_loss).collect();
    let stayed = events.iter().filter(|row| !["aborted", OPEN].contains(&row.outcome.as_str()));
    let are_losses = !losses.is_empty();
    let all = if are_losses { losses } else { stayed.collect() };
    let (of, first) = (all.len(), all.len().saturating_sub(TOLD));
    Told { events: all.into_iter().skip(first).collect(), of, are_losses }
}

/// The lines of one event.
fn settings(row: &EventRow, report: &EventsReport, out: &mut dyn Write) -> io::Result<()> {
    let target = &row.recovery_target;
    let rows = row.rows.map(|rows| format!(" of {}", counted(rows, "row"))).unwrap_or_default();
    let zone = if row.time.is_some() { " UTC" } else { "" };
    let time = moment(row.time.as_deref());
    writeln!(out, "\n# {}{rows}, {}, {time}{zone}", row.event, name(row))?;
    if !row.names.is_empty() {
        writeln!(out, "# in this WAL it was called {}", visible(&row.names.join(", ")))?;
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
    if report.settings.has_lsn {
        writeln!(out, "recovery_target_lsn = '{}'", target.recovery_target_lsn)?;
    } else if let Some(xid) = &target.recovery_target_xid {
        writeln!(out, "recovery_target_xid = '{xid}'")?;
    } else {
        let place = &target.recovery_target_lsn;
        return writeln!(
            out,
            "# no transaction ends at {place}, and this release knows no other target"
        );
    }
    writeln!(out, "recovery_target_inclusive = off")?;
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
