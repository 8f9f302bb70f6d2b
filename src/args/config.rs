//! Thresholds of the advice rules, and the file that can set them: `walstat.toml`. The command line
//! wins over the file.

use super::values::named;
use crate::config;
use crate::config::Config;
use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};
use walstat_report::model::threshold::Ruleset;

/// Thresholds of rules, and the file of settings.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Rules")]
pub struct ConfigArgs {
    /// Thresholds of the advice rules [default: chen]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = named(Ruleset::ALL, Ruleset::name, Ruleset::text)
    )]
    pub ruleset: Option<Ruleset>,
    /// Limits of 'walstat check' and thresholds of rules from this file [default: walstat.toml in the
    /// current directory, if there is one]; the command line wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file and its text, if it was read before, when a partial result was made
    #[arg(skip)]
    pub content: Option<(String, String)>,
}

impl ConfigArgs {
    /// The settings of the file; a preset on the command line wins over that of the file.
    pub fn read(&self) -> Result<Config, Failure> {
        let mut config = match &self.content {
            Some((path, text)) => config::read(Path::new(path), text)?,
            None => config::load(self.config.as_deref())?,
        };
        config.thresholds.ruleset = self.ruleset.unwrap_or(config.thresholds.ruleset);
        Ok(config)
    }

    /// The file that is read, if there is one.
    pub fn file(&self) -> &Path {
        config::path(self.config.as_deref())
    }

    /// Whether one of the options was given.
    pub fn are_given(&self) -> bool {
        self.ruleset.is_some() || self.config.is_some()
    }
}
