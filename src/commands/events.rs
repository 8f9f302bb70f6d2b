//! `walstat events`: what was done to tables, and where recovery has to stop before it.

use super::problems::tell_first_problems;
use super::read::{self, Read};
use crate::args::events::{ChoiceArgs, EventsArgs, EventsFormat};
use crate::args::relation::{Identifiers, RelationArg, quoted};
use crate::args::values::{When, nearest};
use crate::failure::{Exit, Failure};
use crate::output::tell;
use crate::render::number::grouped;
use crate::render::visible::visible;
use crate::render::{events, json};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use walstat_analyse::counters::Statistics;
use walstat_analyse::events::{EventKind, Events, TableEvent};
use walstat_analyse::prepared_log::PreparedLog;
use walstat_analyse::select::Filters;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::payload::Time;
use walstat_read::input::label::{self, BackupLabel};
use walstat_read::input::plan::Plan;
use walstat_read::scan::observer::Observer;
use walstat_report::events::{Counted, report};
use walstat_report::known::Known;
use walstat_report::model::events::EventsReport;
use walstat_report::model::{CommandName, Unreadable};

/// Runs the command.
pub fn run(args: &EventsArgs) -> Result<Exit, Failure> {
    args.outputs.refuse_to_overwrite(args.source.inputs().chain(args.names.inputs()))?;
    let result = gather(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
    {
        let answer = Unreadable::new(CommandName::Events, failure.to_string());
        let mut json = args.outputs.all.iter().filter(|it| it.format == EventsFormat::Json);
        json.try_for_each(|output| {
            output.write(false, When::Never, |out| json::render(&answer, out))
        })?;
    }
    let report = result?;
    args.outputs.all.iter().try_for_each(|output| {
        output.write(false, When::Never, |out| match output.format {
            EventsFormat::Table => events::table(&report, out),
            EventsFormat::Json => json::render(&report, out),
            EventsFormat::Ndjson => events::lines(&report, out),
            EventsFormat::Csv => events::csv(&report, out),
        })
    })?;
    for note in &report.warnings {
        tell(&format!("walstat: {}", visible(note)));
    }
    tell_first_problems(&report.problems);
    Ok(if report.problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// Reads all of the WAL, whatever the times: what a transaction did, and what tables were called, was
/// written before it ended.
fn gather(args: &EventsArgs) -> Result<EventsReport, Failure> {
    let found = read::found(&args.source)?;
    let times = read::window(&args.source, &found)?.map(|window| window.span.times);
    let known = Known::names(&args.names.sources(), &found);
    let events = Events::new(args.choice.min_rows, known.store());
    let prototype: Counted = (Statistics::default(), (events, PreparedLog::default()));
    let observer = Observer::new(prototype.clone());
    let read = read::read_in(&args.source, found, None, &Filters::default(), &observer)?;
    let counted = |seen: Observer| seen.into_inner::<Counted>().unwrap_or(prototype);
    let Read { paths, plan, scanned, .. } = read.map(counted);
    let choice = Choice { args: &args.choice, times };
    let is_verified = !args.source.no_verify_checksums;
    let mut note = None;
    let chosen = |events: Vec<TableEvent>| {
        let chosen = choice.of(events);
        note = chosen.note;
        chosen.events
    };
    let backup = backup_start(args, &plan);
    let mut told = report(paths, plan, scanned, known, is_verified, backup, chosen);
    told.notes.extend(note.clone());
    told.warnings.extend(note);
    Ok(told)
}

/// What an event's table or database is called, as far as that is known.
fn called(event: &TableEvent) -> Vec<&str> {
    let names = [&event.database, &event.schema, &event.table].map(Option::as_deref);
    names.into_iter().flatten().collect()
}

/// Whether a name was typed as events print it: without quotes.
fn is_printed_as(event: &TableEvent, text: &str) -> bool {
    let printed = called(event).join(".");
    visible(&printed)
        .strip_suffix(text)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Where the base backup begins that names come from, if it is one, and of this cluster.
fn backup_start(args: &EventsArgs, plan: &Plan) -> Option<Lsn> {
    let BackupLabel { label, control, .. } =
        label::read(args.names.data_directory.as_deref()?).ok()?;
    let wal = plan.geometry.system_identifier;
    control.is_none_or(|control| control.system_identifier == wal).then_some(label.start)
}

/// Which events are told.
struct Choice<'a> {
    args: &'a ChoiceArgs,
    times: Option<Range<Time>>,
}

/// The events that are told, and what there is to be said where a name has none.
struct Chosen {
    events: Vec<TableEvent>,
    note: Option<String>,
}

impl Choice<'_> {
    /// A name is taken as SQL reads it; where nothing is called so, as events print it.
    fn of(&self, events: Vec<TableEvent>) -> Chosen {
        let Some(relation) = &self.args.relation else {
            let events = events.into_iter().filter(|event| self.takes(event)).collect();
            return Chosen { events, note: None };
        };
        let is_sql = events.iter().any(|event| is_about(event, relation));
        let text = relation.to_string();
        let is_meant = |event: &TableEvent| {
            if is_sql { is_about(event, relation) } else { is_printed_as(event, &text) }
        };
        let (named, others): (Vec<_>, Vec<_>) = events.into_iter().partition(is_meant);
        let has_others = !named.is_empty();
        let events: Vec<_> = named.into_iter().filter(|event| self.takes(event)).collect();
        let note = match relation {
            RelationArg::Name(name) if events.is_empty() => {
                let only_others = || ", only others".to_owned();
                let hint = if has_others { only_others() } else { meant(name, &others) };
                Some(self.no_event_of(name, &hint))
            }
            _ => None,
        };
        Chosen { events, note }
    }

    /// What is said where a name has no event.
    fn no_event_of(&self, name: &Identifiers, hint: &str) -> String {
        let few = if self.asks_for_rows() {
            format!(
                "; changes of fewer than {} rows by one transaction are no event (--min-rows)",
                grouped(self.args.min_rows)
            )
        } else {
            String::new()
        };
        format!(
            "no event of {}{hint}: a table is found by all names that it had in this WAL, and each partition \
             has its own{few}",
            name.text
        )
    }

    /// Whether changes of rows are asked for.
    fn asks_for_rows(&self) -> bool {
        let ChoiceArgs { kinds, min_rows, .. } = self.args;
        let of_rows = [EventKind::Delete, EventKind::Update, EventKind::Insert];
        *min_rows > 1 && (kinds.is_empty() || kinds.iter().any(|kind| of_rows.contains(kind)))
    }

    fn takes(&self, event: &TableEvent) -> bool {
        let ChoiceArgs { kinds, xid, .. } = self.args;
        // What has not ended is of the time at which the WAL ends.
        let time = event.time.or(event.clock);
        let is_in = |times: &Range<Time>| time.is_some_and(|time| times.contains(&time));
        (kinds.is_empty() || kinds.contains(&event.kind))
            && xid.is_none_or(|xid| event.xids.contains(&xid))
            && self.times.as_ref().is_none_or(is_in)
    }
}

/// The name most like the one that was typed, as it is to be typed.
fn meant(name: &Identifiers, others: &[TableEvent]) -> String {
    let called = others.iter().filter_map(|event| {
        let known = called(event);
        let last = known.get(known.len().checked_sub(name.parts.len())?..)?;
        Some(last.iter().map(|part| quoted(part)).collect::<Vec<_>>().join("."))
    });
    let called: BTreeSet<String> = called.collect_set();
    nearest(&name.text, called.iter().map(String::as_str))
}

fn is_about(event: &TableEvent, relation: &RelationArg) -> bool {
    let asked = match relation {
        RelationArg::File(file) => return [event.file, event.new_file].contains(&Some(*file)),
        RelationArg::Name(name) => &name.parts,
    };
    // A schema or database that is not known may be the one that was asked for.
    let is_called = |database: &Option<Arc<str>>, schema: &Option<Arc<str>>, name: Option<&str>| {
        let Some((table, places)) = asked.split_last() else { return false };
        let own = [schema.as_deref(), database.as_deref()];
        let mut places = places.iter().rev().zip(own);
        name == Some(table.as_str())
            && places.all(|(asked, own)| own.is_none_or(|own| own == asked.as_str()))
    };
    let is_of_database = [EventKind::CreateDatabase, EventKind::DropDatabase].contains(&event.kind);
    let is_called_database = is_of_database
        && matches!(asked.as_slice(), [name] if event.database.as_deref() == Some(name));
    let own = [&event.table, &event.index];
    let own = own.map(|name| (&event.database, &event.schema, name.as_deref()));
    let others = event.names.iter().map(|name| {
        let database = if name.database.is_some() { &name.database } else { &event.database };
        (database, &name.schema, Some(&*name.relation))
    });
    own.into_iter().chain(others).any(|(database, schema, name)| is_called(database, schema, name))
        || is_called_database
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::relation;
    use walstat_analyse::events::RecoveryTarget;
    use walstat_analyse::finished_transactions::TransactionOutcome;

    /// A drop of a table in a schema, in the database shop.
    fn drop_of(schema: Option<&str>, table: &str) -> TableEvent {
        TableEvent {
            kind: EventKind::DropTable,
            lsn: Lsn(0),
            xid: 700,
            xids: [700].into(),
            outcome: TransactionOutcome::Committed,
            commit: None,
            time: None,
            was_prepared: false,
            clock: None,
            database: Some("shop".into()),
            schema: schema.map(Arc::from),
            table: Some(table.into()),
            index: None,
            names: Default::default(),
            file: None,
            new_file: None,
            rows: None,
            bytes: None,
            target: RecoveryTarget { lsn: Lsn(0), xid: None, time: None, after: None },
            is_irrevocable: false,
        }
    }

    #[test]
    fn a_schema_that_is_not_known_may_be_the_one_that_is_meant() {
        let is_found = |event: &TableEvent, name: &str| {
            is_about(event, &relation::parse(name).expect("a name"))
        };
        for (name, known, unknown) in [
            ("orders", true, true),
            ("app.orders", true, true),
            ("shop.app.orders", true, true),
            ("public.orders", false, true),
            ("store.app.orders", false, false),
            ("app.items", false, false),
        ] {
            assert_eq!(is_found(&drop_of(Some("app"), "orders"), name), known, "{name}");
            assert_eq!(is_found(&drop_of(None, "orders"), name), unknown, "{name}");
        }
    }
}
