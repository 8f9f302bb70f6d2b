//! The command line: arguments and wiring, one file a command. Holds no logic worth a test of
//! its own.

pub mod args;
pub mod output;
pub mod read;
pub mod rules;
pub mod stats;

use crate::input::plan::InputError;
use std::process::ExitCode;

/// How a command ended, by the contract's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything read is accounted for.
    Done,
    /// At least one problem in the WAL.
    Damage,
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
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Output {
        /// Where to.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Damage => ExitCode::from(4),
        }
    }
}

impl Failure {
    /// The contract's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Input(_) | Failure::Output { .. } => ExitCode::from(3),
        }
    }
}
