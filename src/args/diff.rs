//! Arguments of `walstat diff`.

use super::name_sources::NameArgs;
use super::outputs::Outputs;
use super::show::ShowArgs;
use super::source::FilterArgs;
use super::storage::StorageArgs;
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Arguments of `walstat diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "walstat diff before.json /var/lib/postgresql/15/main/pg_wal --fail-on-growth\n\
                  Exit codes: 0 done, 1 it grew (--fail-on-growth), 2 usage, 3 not readable, 4 damage."
)]
pub struct DiffArgs {
    /// WAL, or the JSON of a report (walstat PATH -f json)
    pub before: PathBuf,
    /// WAL, or the JSON of a report
    pub after: PathBuf,
    /// Exit code 1 if there is more WAL after than before: in total, or for each commit
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "total")]
    pub fail_on_growth: Option<Growth>,
    /// Rows of long tables; 0: all [default: 20; JSON: all]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Threads; results do not depend on it [default: all cores]
    #[arg(short = 'j', long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Where the WAL lies
    #[command(flatten)]
    pub storage: StorageArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<DiffFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// What must not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Growth {
    /// Bytes of all records
    Total,
    /// Bytes for each commit
    Commit,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiffFormat {
    /// For people
    #[default]
    Table,
    /// One object
    Json,
    /// For pull requests and summaries
    Markdown,
}
