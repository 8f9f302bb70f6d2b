//! Where names of relations come from: arguments.

use clap::Args;
use std::path::{Path, PathBuf};
#[cfg(feature = "server")]
use walstat_report::known::RunningServer;
use walstat_report::known::Sources;

/// Where names of relations come from. Each relation's name is from the first of these sources that has
/// it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Names")]
pub struct NameArgs {
    /// The cluster's data directory, for names of relations [default: the one that PATH is, or lies in]
    #[arg(long, value_name = "DIR")]
    pub data_directory: Option<PathBuf>,
    /// A file of names, as 'walstat names' makes them or pgmoneta-walinfo reads them (repeatable)
    #[arg(long, value_name = "FILE")]
    pub names: Vec<PathBuf>,
    /// Such files that were read before, when a partial result was made
    #[arg(skip)]
    pub contents: Vec<(String, Vec<u8>)>,
    /// Connection string of a running server to ask for names; all databases of its cluster are asked
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
}

impl NameArgs {
    /// The files and directories that are read.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.names.iter().chain(&self.data_directory).map(PathBuf::as_path)
    }

    /// The sources, without what only the command line knows.
    pub fn sources(&self) -> Sources {
        Sources {
            data_directory: self.data_directory.clone(),
            #[cfg(feature = "server")]
            server: self.dsn.clone().map(|dsn| RunningServer { dsn, name: "--dsn".to_owned() }),
            names: self.names.clone(),
            contents: self.contents.clone(),
        }
    }
}
