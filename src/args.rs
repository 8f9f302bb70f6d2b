//! Arguments: what was typed, checked as far as it can be without opening a file.

pub mod budget;
pub mod check;
pub mod config;
pub mod diff;
pub mod events;
pub mod examples;
pub mod follow;
pub mod moment;
pub mod name_sources;
pub mod names;
pub mod order;
pub mod outputs;
pub mod records;
pub mod relation;
pub mod round;
pub mod rules;
pub mod show;
pub mod source;
pub mod storage;
pub mod values;
pub mod whatif;
pub mod when;
pub mod window;

use crate::args::check::CheckArgs;
use crate::args::config::ConfigArgs;
use crate::args::diff::DiffArgs;
use crate::args::events::EventsArgs;
use crate::args::follow::FollowArgs;
use crate::args::name_sources::NameArgs;
use crate::args::names::NamesArgs;
use crate::args::outputs::Outputs;
use crate::args::records::RecordsArgs;
use crate::args::rules::RulesArgs;
use crate::args::show::ShowArgs;
use crate::args::source::{FilterArgs, SourceArgs};
use crate::args::values::named;
use crate::args::whatif::WhatIfArgs;
use crate::args::when::WhenArgs;
use crate::args::window::WindowArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_read::input::storage::Options;
use walstat_report::model::table::Sort;

/// What is in this WAL, why there is so much of it, and what to do about it.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    long_about = "Reads PostgreSQL WAL (9.5 to 19) without a server, and says what is in it, why \
                  there is so much of it, and what to do about it. Every byte of the input is \
                  accounted for.",
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 done, 1 a limit was broken, 2 usage, 3 not readable as WAL, 4 damage."
)]
pub struct Cli {
    /// A command of its own.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The report and the statistics.
    #[command(flatten)]
    pub stats: StatsArgs,
}

impl Cli {
    /// How object stores are reached.
    pub fn storage(&self) -> Options {
        let storage = match &self.command {
            None => &self.stats.source.storage,
            Some(Command::Check(args)) => &args.source.storage,
            Some(Command::Diff(args)) => &args.storage,
            Some(Command::Events(args)) => &args.source.storage,
            Some(Command::Merge(args)) => &args.source.storage,
            Some(Command::Names(args)) => &args.source.storage,
            Some(Command::Records(args)) => &args.source.storage,
            Some(Command::WhatIf(args)) => &args.source.storage,
            Some(Command::Window(args)) => &args.source.storage,
            Some(
                Command::Follow(_)
                | Command::Rules(_)
                | Command::Completions { .. }
                | Command::Man { .. },
            ) => return Options::default(),
        };
        storage.options()
    }

    /// The arguments, as all commands expect them.
    pub fn settled(mut self) -> Cli {
        match &mut self.command {
            None => self.stats.source.settle(),
            Some(Command::Check(args)) => args.source.settle(),
            Some(Command::Events(args)) => args.source.settle(),
            Some(Command::Merge(args)) => args.source.settle(),
            Some(Command::Names(args)) => args.source.settle(),
            Some(Command::Records(args)) => args.source.settle(),
            Some(Command::WhatIf(args)) => args.source.settle(),
            Some(Command::Window(args)) => args.source.settle(),
            Some(_) => {}
        }
        self
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Integrity and budgets, for CI and archives
    Check(Box<CheckArgs>),
    /// One report out of partial results (--partial)
    #[command(
        mut_arg("paths", |paths| paths.value_name("PARTIAL").help(
            "Files that --partial wrote; and the archive, for what lies beside its segments"
        )),
        mut_arg("partial", |partial| {
            partial.help("Write one partial result out of many, for a merge in several steps")
        }),
        after_help = "--partial has decided what is counted; how it is shown can be decided here."
    )]
    Merge(Box<StatsArgs>),
    /// Names of relations: the query that makes a names file, or the names found at the paths
    Names(Box<NamesArgs>),
    /// What was done to tables, and where recovery must stop before it
    Events(Box<EventsArgs>),
    /// One row a record, for SQL
    Records(Box<RecordsArgs>),
    /// Two reports, or two paths, side by side
    Diff(Box<DiffArgs>),
    /// Predicted WAL under other settings
    #[command(name = "whatif")]
    WhatIf(Box<WhatIfArgs>),
    /// From where to where this WAL can recover, and whether a recovery target can be reached
    Window(Box<WindowArgs>),
    /// WAL as it is written: a live screen, counters for dashboards
    Follow(Box<FollowArgs>),
    /// The advice rules, with thresholds and sources
    Rules(RulesArgs),
    /// Completions for a shell
    #[command(after_help = "walstat completions bash > /etc/bash_completion.d/walstat")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// The man page
    #[command(after_help = "walstat man | man -l -")]
    Man {
        /// The man page of this command
        command: Option<String>,
    },
}

/// Arguments of the report and the statistics.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Statistics only, by one or several dimensions
    #[arg(
        long,
        value_name = "DIM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rmgr",
        value_delimiter = ',',
        value_parser = dimensions()
    )]
    pub stats: Vec<Dimensions>,
    /// Statistics by resource manager, as with pg_waldump -z: the same as --stats
    #[arg(short = 'z', hide = true)]
    pub statistics: bool,
    /// Write a partial result, which 'walstat merge' combines with others into one report (reads on one
    /// thread)
    #[arg(long)]
    pub partial: bool,
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Tables
    #[command(flatten)]
    pub tables: TableArgs,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Times, rates and delays
    #[command(flatten)]
    pub when: WhenArgs,
    /// Thresholds of rules
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<Format>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// What tables show.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct TableArgs {
    /// Rows of long tables; 0: all [default: 20; JSON, NDJSON and CSV: all]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Order of rows
    #[arg(
        long,
        value_name = "COL",
        default_value = "bytes",
        value_parser = named(Sort::ALL, Sort::name, Sort::text)
    )]
    pub sort: Sort,
    /// JSON of --stats or --stats=record with the keys of another tool: walinspect's pg_get_wal_stats
    #[arg(long, value_name = "TOOL", value_enum)]
    pub json_compat: Option<JsonCompat>,
    /// Rows of tables: each partition [default of --stats=table], or each partitioned table with all
    /// its partitions [default of the report]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<RowBy>,
    /// Add a column with main data and record headers only: what was shown as the record size before BUG
    /// #14687 was fixed
    #[arg(long)]
    pub show_main_data: bool,
}

/// Tools whose JSON can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JsonCompat {
    /// The extension pg_walinspect
    Walinspect,
}

/// How tables can be put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowBy {
    /// Each partition as a row
    Table,
    /// Partitions as one row with the table that they belong to
    Parent,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// One object
    Json,
    /// One object a line, each a row
    Ndjson,
    /// One table, one line a row
    Csv,
    /// For pull requests and summaries
    Markdown,
    /// One page for a browser, with charts
    Html,
    /// Gauges for Prometheus: for node_exporter's textfile collector
    Openmetrics,
    /// The text of pg_waldump --stats, byte for byte
    #[value(name = "pg_waldump")]
    PgWaldump,
}

impl Format {
    /// Whether machines collect it: then a valid output is written even if the input cannot be read.
    pub fn is_collected(self) -> bool {
        matches!(self, Format::Json | Format::Ndjson | Format::Openmetrics)
    }
}

/// All dimensions at once.
const ALL: &str = "all";

/// Reads a dimension by its name, or all of them.
fn dimensions() -> impl TypedValueParser<Value = Dimensions> {
    let value = |dimension: &Dimension| PossibleValue::new(dimension.name()).help(dimension.text());
    let all = PossibleValue::new(ALL).help("All dimensions");
    let values = Dimension::ALL.iter().map(value).chain([all]);
    PossibleValuesParser::new(values).map(|text| {
        let wanted = |dimension: &&Dimension| text == ALL || text == dimension.name();
        Dimension::ALL.iter().filter(wanted).copied().collect()
    })
}

impl StatsArgs {
    /// The dimensions asked for; none for the report.
    pub fn dimensions(&self) -> Dimensions {
        let short = self.is_statistics_alone().then_some(Dimension::Rmgr);
        self.stats.iter().flatten().copied().chain(short).collect()
    }

    /// Whether -z alone asks for statistics.
    fn is_statistics_alone(&self) -> bool {
        self.statistics && self.stats.is_empty()
    }

    /// Whether statistics are asked for, and not the report.
    pub fn asks_for_statistics(&self) -> bool {
        self.statistics || !self.stats.is_empty()
    }
}
