//! Arguments of `walstat check`.

use super::budget_args::BudgetArgs;
use super::config_args::ConfigArgs;
use super::name_args::NameArgs;
use super::outputs::Outputs;
use super::show_args::ShowArgs;
use super::source_args::{FilterArgs, SourceArgs};
use crate::wal::lsn::Lsn;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `walstat check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all checks hold, 1 a limit is broken, 2 usage, 3 not readable as WAL, \
                  4 damage (wins over 1).\nWith --format nagios: 0 OK, 1 WARNING (a limit), \
                  2 CRITICAL (damage, no restore, a critical rule), 3 UNKNOWN."
)]
pub struct CheckArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// The limits
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// The file they may stand in, and thresholds of rules
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Where limits of single tables find their names
    #[command(flatten)]
    pub names: NameArgs,
    /// The backup
    #[command(flatten)]
    pub restore: RestoreArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Formats, and where they go
    #[command(flatten)]
    pub outputs: Outputs<CheckFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Can this backup be restored to the end of the WAL?
#[derive(Debug, Args)]
#[command(next_help_heading = "Restore readiness")]
pub struct RestoreArgs {
    /// The WAL has to be whole from here to its end
    #[arg(long, value_name = "LSN", conflicts_with = "backup_label")]
    pub from: Option<Lsn>,
    /// The backup of this label has to be restorable: backup_label, a .backup file of the
    /// archive, or the directory of a plain backup
    #[arg(long, value_name = "FILE")]
    pub backup_label: Option<PathBuf>,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CheckFormat {
    /// For people
    #[default]
    Table,
    /// The report with its checks, one object
    Json,
    /// One object a line, each a check
    Ndjson,
    /// One line a check
    Csv,
    /// For pull requests and summaries
    Markdown,
    /// One page for a browser
    Html,
    /// Gauges for Prometheus: for node_exporter's textfile collector
    Openmetrics,
    /// Test results for CI servers
    Junit,
    /// SARIF 2.1.0
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// Code quality report of GitLab
    Gitlab,
    /// Plugin output for Nagios, Icinga and their kin
    Nagios,
}
