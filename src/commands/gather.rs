//! Everything that can be counted: who writes the WAL and when, as far as that was asked for.

use super::read::{self, Read, found};
use crate::args::StatsArgs;
use crate::commands::relation_files::{Named, all_names};
use crate::commands::{relation_files, rows};
use crate::failure::Failure;
use std::collections::HashSet;
use walstat_analyse::counters::Counters;
use walstat_analyse::dimension::Dimensions;
use walstat_analyse::select::Filters;
use walstat_analyse::when::{self, When};
use walstat_analyse::who::Who;
use walstat_format::payload::Time;
use walstat_report::assemble::Gathered;
use walstat_report::known::Known;
use walstat_report::model::CommandName;

/// Reads the WAL and counts what was asked for; returns it with the filters that were on.
pub fn gather(
    args: &StatsArgs,
    command: CommandName,
    asked: &Dimensions,
) -> Result<(Gathered, Filters), Failure> {
    let (filters, named) = relation_files::filters(&args.source, &args.filters, &args.names)?;
    let mut result = gather_filtered(args, &filters, command, asked)?;
    // The names were read from all of the WAL, which has more than a range of it.
    let named = match named {
        None if is_part(args) && has_unnamed(&result.0) => all_names(&args.source, &args.names)?,
        named => named,
    };
    if let Some(named) = named {
        put_names(&mut result.0, named);
    }
    Ok(result)
}

/// Has names that were read apart stand instead of those that were found while counting.
pub fn put_names(gathered: &mut Gathered, (names, mut warnings): Named) {
    // Of settings it was said before.
    warnings.append(&mut gathered.warnings);
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    (gathered.who.names, gathered.warnings) = (names, warnings);
}

/// Whether only a part of the WAL is read, and more of it may be for names. A span of time is read alone,
/// however large the archive is.
pub fn is_part(args: &StatsArgs) -> bool {
    let range = &args.source.range;
    let is_span = range.since.is_some() || range.until.is_some();
    (range.start.is_some() || range.end.is_some()) && !is_span
}

/// Whether names are missing of relations that were counted.
pub fn has_unnamed(gathered: &Gathered) -> bool {
    let who = &gathered.who;
    who.files().iter().any(|file| who.names.relation(*file).is_none())
}

fn gather_filtered(
    args: &StatsArgs,
    filters: &Filters,
    command: CommandName,
    asked: &Dimensions,
) -> Result<(Gathered, Filters), Failure> {
    let found = found(&args.source)?;
    // Read before the WAL, so that whatever a running server changes in its catalogs meanwhile is in
    // the WAL.
    let known = Known::of(&args.names.sources(), &found, asked);
    let window = read::window(&args.source, &found)?;
    let times = window.as_ref().map(|window| (window.span.times.start, window.span.times.end));
    let prototype = prototype(args, command, asked, times, &known);
    let read = read::read_in(&args.source, found, window, filters, &prototype.observer())?;
    let Read { paths, plan, scanned, filters } = read;
    Ok((Gathered::of(paths, plan, scanned.map(Counters::of), known), filters))
}

/// The dimensions to be counted, empty.
pub fn prototype(
    args: &StatsArgs,
    command: CommandName,
    asked: &Dimensions,
    times: Option<(Time, Time)>,
    known: &Known,
) -> Counters {
    let who = Who::new(asked, rows::rows(args), rows::order(args.tables.sort), known.store());
    let config = match command {
        CommandName::Report => Some(overview(args, asked)),
        _ => args.when.config(asked),
    };
    let config = config.map(|config| when::Config { times, ..config });
    Counters {
        who: who.with_subtransactions(&known.subtransactions),
        when: config.map(When::new),
        advice: (command == CommandName::Report).then(Default::default),
        ..Counters::default()
    }
}

/// What the report says about times, and what its charts need.
fn overview(args: &StatsArgs, asked: &Dimensions) -> when::Config {
    let charts = args.when.config(asked).unwrap_or_default();
    when::Config { course: charts.course, sums: charts.sums, ..when::Config::OVERVIEW }
}
