//! The command line: arguments and wiring, one file a command. Holds no logic worth a test of
//! its own.

pub mod args;
pub mod budget_args;
pub mod check;
pub mod check_args;
pub mod config;
pub mod config_args;
pub mod counted;
pub mod diff;
pub mod examples;
pub mod interrupt;
pub mod manual;
pub mod moment;
pub mod name_args;
pub mod names;
pub mod output;
pub mod outputs;
pub mod partial;
pub mod progress;
pub mod read;
pub mod records;
pub mod relation;
pub mod rules;
pub mod rules_config;
pub mod show_args;
pub mod source_args;
pub mod span;
pub mod stats;
pub mod values;
pub mod whatif;
pub mod whatif_args;
pub mod when;
pub mod who;

use crate::input::error::InputError;
use crate::render::nagios::State;
use std::process::ExitCode;

/// How a command ended, by the contract's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything read is accounted for.
    Done,
    /// A limit was broken.
    Broken,
    /// At least one problem in the WAL.
    Damage,
    /// The code of a monitoring plugin, whose meaning is another.
    Plugin(State),
}

/// Why a command gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// The input cannot be read as WAL.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file beside the WAL cannot be read as what it should be.
    #[error("{path}: {reason}")]
    Beside {
        /// The file.
        path: String,
        /// What was found, what was expected.
        reason: String,
    },
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Output {
        /// Where to.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Broken => ExitCode::from(1),
            Exit::Damage => ExitCode::from(4),
            Exit::Plugin(state) => ExitCode::from(state as u8),
        }
    }
}

impl Failure {
    /// Whether there is no report because something cannot be read: formats that machines collect
    /// say so themselves.
    pub fn is_unreadable(&self) -> bool {
        !self.is_usage() && !matches!(self, Failure::Output { .. })
    }

    /// Whether something else has to be asked.
    fn is_usage(&self) -> bool {
        let apart = |error: &InputError| {
            matches!(error, InputError::Several { .. } | InputError::Apart { .. })
        };
        match self {
            Failure::Usage(_) => true,
            Failure::Input(error) => apart(error),
            Failure::Beside { .. } | Failure::Output { .. } => false,
        }
    }

    /// The contract's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.is_usage() { 2 } else { 3 })
    }
}
