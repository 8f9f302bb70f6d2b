//! The door: arguments in, exit code out.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;
use walstat::cli::args::{Cli, Command};
use walstat::cli::examples::with_examples;
use walstat::cli::values::{meant_command, nearest_option};
use walstat::cli::{
    Exit, Failure, check, diff, manual, names, partial, records, rules, stats, whatif,
};
use walstat::render::visible::visible;

fn main() -> ExitCode {
    match parse().map_or_else(misuse, |cli| run(&cli.settled())) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("walstat: {}", visible(&failure.to_string()));
            failure.exit_code()
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = with_examples(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Some(Command::Check(args)) => check::run(args),
        Some(Command::Merge(args)) => partial::merge(args),
        Some(Command::Names(args)) => names::run(args),
        Some(Command::Records(args)) => records::run(args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::WhatIf(args)) => whatif::run(args),
        Some(Command::Rules(args)) => rules::run(args),
        Some(Command::Completions { shell }) => manual::completions(*shell, Cli::command()),
        Some(Command::Man { command }) => {
            manual::page(command.as_deref(), with_examples(Cli::command()))
        }
        None => match meant_command(&cli.stats.source.paths, &Cli::command()) {
            Some(text) => Err(Failure::Usage(text)),
            None => stats::run(&cli.stats),
        },
    }
}

/// What clap has to say: help, or why the arguments make no sense. A monitoring server reads
/// standard output alone, and knows other codes.
fn misuse(error: clap::Error) -> Result<Exit, Failure> {
    if error.use_stderr() && check::is_plugin_call(std::env::args().skip(1)) {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        return check::unknown(line.trim_start_matches("error: "));
    }
    with_suggestion(error).exit()
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
