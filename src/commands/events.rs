//! `walstat events`: what was done to tables, and where recovery has to stop before it.

use super::problems::tell_first_problems;
use super::read::{self, Read};
use crate::args::events::{ChoiceArgs, EventsArgs, EventsFormat};
use crate::args::relation::RelationArg;
use crate::args::values::nearest;
use crate::failure::{Exit, Failure};
use crate::output::inputs::refuse_to_overwrite;
use crate::output::{file_of, tell, write_unstyled};
use crate::render::visible::visible;
use crate::render::{events, json};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use walstat_analyse::counters::Statistics;
use walstat_analyse::events::{EventKind, Events, TableEvent};
use walstat_analyse::select::Filters;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_read::input::label;
use walstat_read::scan::observer::Observer;
use walstat_report::events::{Counted, report};
use walstat_report::known::Known;
use walstat_report::model::events::EventsReport;
use walstat_report::model::{CommandName, Unreadable};

/// Runs the command.
pub fn run(args: &EventsArgs) -> Result<Exit, Failure> {
    let output = file_of(args.output.as_deref());
    refuse_to_overwrite(output, args.source.inputs().chain(args.names.inputs()))?;
    let result = gather(args);
    if let Err(failure) = &result
        && failure.is_unreadable()
        && args.format == EventsFormat::Json
    {
        let answer = Unreadable::new(CommandName::Events, failure.to_string());
        write_unstyled(output, |out| json::render(&answer, out))?;
    }
    let report = result?;
    write_unstyled(output, |out| match args.format {
        EventsFormat::Table => events::table(&report, out),
        EventsFormat::Json => json::render(&report, out),
        EventsFormat::Ndjson => events::lines(&report, out),
        EventsFormat::Csv => events::csv(&report, out),
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
    let prototype: Counted =
        (Statistics::default(), Events::new(args.choice.min_rows, known.store()));
    let observer = Observer::new(prototype.clone());
    let read = read::read_in(&args.source, found, None, &Filters::default(), &observer)?;
    let counted = |seen: Observer| seen.into_inner::<Counted>().unwrap_or(prototype);
    let Read { paths, plan, scanned, .. } = read.map(counted);
    let choice = Choice { args: &args.choice, times };
    let is_verified = !args.source.no_verify_checksums;
    let passed_over = RefCell::new(Vec::new());
    let wanted = |event: &TableEvent| {
        let is_taken = choice.takes(event);
        if let Some(RelationArg::Name(name)) = &choice.args.relation
            && !is_taken
        {
            passed_over.borrow_mut().extend(called(event, name.parts.len()));
        }
        is_taken
    };
    let mut told = report(paths, plan, scanned, known, is_verified, backup_start(args), wanted);
    if let Some(RelationArg::Name(name)) = &choice.args.relation
        && told.events.is_empty()
    {
        let others = passed_over.into_inner();
        let hint = if others.contains(&name.parts.join(".")) {
            ", only others".to_owned()
        } else {
            nearest(&name.text, others.iter().map(String::as_str))
        };
        let note = format!(
            "no event of {}{hint}: a table is found by all names that it had in this WAL, and each partition \
             has its own",
            name.text
        );
        told.notes.push(note.clone());
        told.warnings.push(note);
    }
    Ok(told)
}

/// What an event's table or database is called, in so many parts.
fn called(event: &TableEvent, parts: usize) -> Option<String> {
    let names = [&event.database, &event.schema, &event.table].map(Option::as_deref);
    let known: Vec<&str> = names.into_iter().flatten().collect();
    Some(known.get(known.len().checked_sub(parts)?..)?.join("."))
}

/// Where the base backup begins that names come from, if it is one.
fn backup_start(args: &EventsArgs) -> Option<Lsn> {
    let label = label::read(args.names.data_directory.as_deref()?).ok()?.label;
    Some(label.start)
}

/// Which events are told.
struct Choice<'a> {
    args: &'a ChoiceArgs,
    times: Option<Range<Time>>,
}

impl Choice<'_> {
    fn takes(&self, event: &TableEvent) -> bool {
        let ChoiceArgs { kinds, xid, relation, .. } = self.args;
        // What has not ended is of the time at which the WAL ends.
        let time = event.time.or(event.clock);
        let is_in = |times: &Range<Time>| time.is_some_and(|time| times.contains(&time));
        (kinds.is_empty() || kinds.contains(&event.kind))
            && xid.is_none_or(|xid| event.xids.contains(&xid))
            && self.times.as_ref().is_none_or(is_in)
            && relation.as_ref().is_none_or(|relation| is_about(event, relation))
    }
}

fn is_about(event: &TableEvent, relation: &RelationArg) -> bool {
    let asked = match relation {
        RelationArg::File(file) => return [event.file, event.new_file].contains(&Some(*file)),
        RelationArg::Name(name) => &name.parts,
    };
    let is_called = |schema: &Option<Arc<str>>, name: Option<&str>| {
        let own = [event.database.as_deref(), schema.as_deref(), name];
        let asked = asked.iter().map(|part| Some(part.as_str()));
        own.into_iter().skip(own.len().saturating_sub(asked.len())).eq(asked)
    };
    let is_of_database = [EventKind::CreateDatabase, EventKind::DropDatabase].contains(&event.kind);
    let is_called_database = is_of_database
        && matches!(asked.as_slice(), [name] if event.database.as_deref() == Some(name));
    let own = [&event.table, &event.index].map(|name| (&event.schema, name.as_deref()));
    let others = event.names.iter().map(|name| (&name.schema, Some(&*name.relation)));
    own.into_iter().chain(others).any(|(schema, name)| is_called(schema, name))
        || is_called_database
}
