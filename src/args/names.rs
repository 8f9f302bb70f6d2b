//! Arguments of `walstat names`.

use super::name_sources::NameArgs;
use super::source::SourceArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `walstat names`.
#[derive(Debug, Args)]
#[command(after_help = "A names file of all databases of a server:\n  \
                  for db in $(psql -Atc 'SELECT datname FROM pg_database WHERE datallowconn'); do\n    \
                  walstat names --sql | psql -XqAt -d \"$db\"\n  done > names.csv")]
pub struct NamesArgs {
    /// Print the query that makes a names file, to be run by psql in each database
    #[arg(long, conflicts_with_all = ["paths", "names", "data_directory"])]
    pub sql: bool,
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// Other sources
    #[command(flatten)]
    pub names: NameArgs,
    /// Format [default: table on a terminal, csv elsewhere]
    #[arg(short, long, value_name = "F", value_enum, help_heading = "Output")]
    pub format: Option<NamesFormat>,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Formats of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NamesFormat {
    /// For people
    Table,
    /// One line for each file, for --names
    Csv,
    /// The same, in COPY's text format
    Tsv,
    /// One object
    Json,
    /// One object a line
    Ndjson,
}
