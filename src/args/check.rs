//! Arguments of `walstat check`.

use super::outputs::Outputs;
use crate::args::budget::BudgetArgs;
use crate::args::config::ConfigArgs;
use crate::args::name_sources::NameArgs;
use crate::args::round::RoundArgs;
use crate::args::show::ShowArgs;
use crate::args::source::{FilterArgs, SourceArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use walstat_format::lsn::Lsn;
use walstat_read::input::label;

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
    /// The file that may hold them, and thresholds of rules
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Names of tables, for limits of single tables
    #[command(flatten)]
    pub names: NameArgs,
    /// The backup
    #[command(flatten)]
    pub restore: RestoreArgs,
    /// What is remembered, and what may be missing
    #[command(flatten)]
    pub round: RoundArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Formats, and where they are written to
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
    /// Require the WAL to be complete from this LSN to its end
    #[arg(long, value_name = "LSN", conflicts_with = "backup_label")]
    pub from: Option<Lsn>,
    /// Require that this backup can be restored to the end of the WAL: its backup_label, its .backup file in
    /// the archive, or the directory or tar of the backup
    #[arg(long, value_name = "FILE")]
    pub backup_label: Option<PathBuf>,
}

impl RestoreArgs {
    /// Where the backup lies that was asked about.
    pub fn backup(&self) -> Option<PathBuf> {
        self.backup_label.as_deref().map(label::within)
    }
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
    /// Plugin output for Nagios, Icinga and compatible servers
    Nagios,
}

impl CheckFormat {
    /// Whether it shows when the WAL was written, which no verdict depends on.
    pub fn tells_when(self) -> bool {
        matches!(self, CheckFormat::Json | CheckFormat::Html | CheckFormat::Openmetrics)
    }
}
