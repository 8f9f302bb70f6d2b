//! Arguments of `walstat events`.

use super::name_sources::NameArgs;
use super::outputs::Outputs;
use super::relation::{self, RelationArg};
use super::source::SourceArgs;
use super::values::named;
use clap::{Args, ValueEnum};
use walstat_analyse::events::EventKind;

const START_HELP: &str = "Read from here on: names that the WAL before it tells are not learnt, nor what \
                          transactions did there (--since reads all of the WAL)";

/// Arguments of `walstat events`.
#[derive(Debug, Args)]
#[command(
    mut_arg("start", |start| start.help(START_HELP)),
    after_help = "walstat events /archive --data-directory /backup --event drop_table,truncate --since -2h"
)]
pub struct EventsArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which events
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<EventsFormat>,
}

/// Which events: those that pass all filters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct ChoiceArgs {
    /// Only these kinds of events
    #[arg(
        long = "event",
        value_name = "KIND",
        value_delimiter = ',',
        value_parser = named(EventKind::ALL, EventKind::name, EventKind::text)
    )]
    pub kinds: Vec<EventKind>,
    /// Tell of changed rows from so many on, in one table by one transaction
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub min_rows: u64,
    /// Only events of this transaction
    #[arg(short, long, value_name = "N")]
    pub xid: Option<u32>,
    /// Only events of this table or index: tablespace/database/relfilenode, or a name that it had then,
    /// like public.orders
    #[arg(short = 'R', long, value_name = "T/D/R|NAME", value_parser = relation::parse_printed)]
    pub relation: Option<RelationArg>,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EventsFormat {
    /// For people, with the lines for the server's configuration
    #[default]
    Table,
    /// One object
    Json,
    /// One object a line, each an event
    Ndjson,
    /// One line an event, with headings
    Csv,
}
