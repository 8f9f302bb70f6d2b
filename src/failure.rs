//! How a command ends: with an exit code, or a line that says why there is no result.

use crate::render::nagios::State;
use walstat_read::input::error::InputError;
use walstat_whatif::driver::WhatIfError;

/// How a command ended: each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// No problem was found, and no limit broken.
    Done,
    /// A limit was broken.
    Broken,
    /// At least one problem in the WAL.
    Damage,
    /// The state that a monitoring plugin returns, which has exit codes of its own.
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
    /// Nothing can be predicted.
    #[error("{}", with_option(.0))]
    WhatIf(WhatIfError),
    /// A file other than WAL cannot be read, or is not what it should be.
    #[error("{path}: {reason}")]
    Beside {
        /// The file.
        path: String,
        /// What was found, what was expected.
        reason: String,
    },
    /// What the result would be written to is no place for it: something would be lost.
    #[error("{path}: {reason}, expected another file for --output")]
    Target {
        /// Where to.
        path: String,
        /// What is there.
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

/// Why nothing can be predicted, with the option that asks for what cannot be.
fn with_option(error: &WhatIfError) -> String {
    match error {
        WhatIfError::Codec { .. } => format!("--wal-compression {error}"),
        WhatIfError::MaxWalSize { .. } => format!("--max-wal-size {error}"),
        WhatIfError::Place { option, .. } => format!("--{option} {error}"),
        _ => error.to_string(),
    }
}

impl From<WhatIfError> for Failure {
    fn from(error: WhatIfError) -> Failure {
        match error {
            WhatIfError::Input(error) => Failure::Input(error),
            error => Failure::WhatIf(error),
        }
    }
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Broken => 1,
            Exit::Damage => 4,
            Exit::Plugin(state) => state as u8,
        }
    }
}

impl Failure {
    /// Whether there is no report because something cannot be read: then formats that machines collect
    /// have an output that says so.
    pub fn is_unreadable(&self) -> bool {
        !self.is_usage() && !matches!(self, Failure::Output { .. })
    }

    /// Whether the arguments have to be changed.
    fn is_usage(&self) -> bool {
        let apart = |error: &InputError| {
            matches!(error, InputError::Several { .. } | InputError::Apart { .. })
        };
        match self {
            Failure::Usage(_) | Failure::Target { .. } => true,
            Failure::Input(error) => apart(error),
            Failure::WhatIf(error) => error.is_usage(),
            Failure::Beside { .. } | Failure::Output { .. } => false,
        }
    }

    /// The exit code: 2 for usage, 3 for what cannot be read.
    pub fn exit_code(&self) -> u8 {
        if self.is_usage() { 2 } else { 3 }
    }
}
