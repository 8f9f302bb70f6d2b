//! Arguments of `walstat check`.

use super::args::{BytesForm, FilterArgs, SourceArgs, When};
use crate::report::budget::{Budgets, Growth, Ratio, Size};
use crate::report::model::Severity;
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
    /// The backup
    #[command(flatten)]
    pub restore: RestoreArgs,
    /// What to count
    #[command(flatten)]
    pub filters: FilterArgs,
    /// How to show it
    #[command(flatten)]
    pub show: CheckShowArgs,
}

/// Limits; each can stand in walstat.toml too.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budgets")]
pub struct BudgetArgs {
    /// Most bytes of full page images in all bytes of records: 0.7 or 70%
    #[arg(long, value_name = "RATIO")]
    pub max_fpi_ratio: Option<Ratio>,
    /// Fewest HOT updates in all updates: 0.5 or 50%
    #[arg(long, value_name = "RATIO")]
    pub min_hot_ratio: Option<Ratio>,
    /// Do not judge the two ratios below so many bytes of records: on an idle server nearly
    /// everything is images [default: 16MB]
    #[arg(long, value_name = "SIZE")]
    pub min_volume: Option<Size>,
    /// Most bytes of WAL per commit
    #[arg(long, value_name = "SIZE")]
    pub max_bytes_per_commit: Option<Size>,
    /// Most bytes of records in all, as pg_stat_wal.wal_bytes counts them: 10GB
    #[arg(long, value_name = "SIZE")]
    pub max_wal_bytes: Option<Size>,
    /// Advice of this severity or a worse one is a failure
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Compare bytes per commit with this earlier report (the output of --format json)
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Most growth over the baseline [default: 10%]
    #[arg(long, value_name = "PERCENT")]
    pub max_growth: Option<Growth>,
    /// Limits from this file [default: walstat.toml in the current directory, if there is one];
    /// the command line wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Severities that can be a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Worth a change
    Warning,
    /// Worth a change today
    Critical,
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

/// How to show the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct CheckShowArgs {
    /// Format
    #[arg(short, long, value_name = "F", value_enum, default_value_t = CheckFormat::Table)]
    pub format: CheckFormat,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sizes in digits or in units [default: human on a terminal, raw elsewhere]
    #[arg(long, value_name = "FORM", value_enum)]
    pub bytes: Option<BytesForm>,
    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub color: When,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: all problems, files that were not read
    #[arg(short, long)]
    pub verbose: bool,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    Table,
    /// The report with its checks, one object
    Json,
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

impl BudgetArgs {
    /// The limits of the command line.
    pub fn budgets(&self) -> Budgets {
        Budgets {
            max_fpi_ratio: self.max_fpi_ratio,
            min_hot_ratio: self.min_hot_ratio,
            max_bytes_per_commit: self.max_bytes_per_commit,
            max_wal_bytes: self.max_wal_bytes,
            min_volume: self.min_volume,
            fail_on: self.fail_on.map(Severity::from),
            baseline: self.baseline.clone(),
            max_growth: self.max_growth,
        }
    }
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Severity {
        match fail_on {
            FailOn::Warning => Severity::Warning,
            FailOn::Critical => Severity::Critical,
        }
    }
}
