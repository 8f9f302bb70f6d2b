//! Arguments of `walstat records`.

use super::name_sources::NameArgs;
use super::source::{FilterArgs, SourceArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `walstat records`.
#[derive(Debug, Args)]
#[command(
    after_help = "walstat records pg_wal -R public.orders -f csv | psql -c '\\copy wal FROM STDIN CSV HEADER'"
)]
pub struct RecordsArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which records
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Format
    #[arg(
        short,
        long,
        value_name = "F",
        value_enum,
        default_value_t = RecordsFormat::Table,
        help_heading = "Output"
    )]
    pub format: RecordsFormat,
    /// A row a block that records refer to, with its image
    #[arg(long, help_heading = "Output")]
    pub blocks: bool,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordsFormat {
    /// For people
    Table,
    /// One line a record, with headings
    Csv,
    /// One object a line
    Ndjson,
    /// Columns, for DuckDB, Spark and their like
    Parquet,
}
