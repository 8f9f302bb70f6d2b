//! The door: arguments in, exit code out.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;
use walstat::cli::args::{Cli, Command, nearest_option};
use walstat::cli::{rules, stats};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| with_suggestion(error).exit());
    let result = match &cli.command {
        Some(Command::Rules { id }) => rules::run(id.as_deref()),
        None => stats::run(&cli.stats),
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            eprintln!("walstat: {failure}");
            failure.exit_code()
        }
    }
}

/// Suggests the option that begins like the unknown one, where clap would suggest a similar one.
fn with_suggestion(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        && let Some(option) = nearest_option(typed, &Cli::command())
    {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
    }
    error
}
