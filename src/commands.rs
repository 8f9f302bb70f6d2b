//! The commands, one file each: they wire arguments, reading, report and output together. What they decide is
//! tested by running the program.

mod backup_directory;
mod check;
mod diff;
mod events;
mod follow;
mod gather;
mod guarded;
mod manual;
mod names;
mod partial;
mod plugin;
mod problems;
mod progress;
mod read;
mod records;
mod relation_files;
mod round;
mod rows;
mod rules;
mod state;
mod state_lock;
mod stats;
mod time_window;
mod whatif;
mod window;

use crate::args::examples::with_examples;
use crate::args::values::{When, meant_command, nearest_option};
use crate::args::{Cli, Command, order};
use crate::failure::{Exit, Failure};
use crate::output::{prepare, tell, write_to};
use crate::render::visible::visible;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;
use walstat_read::input::storage;

/// No report that is read back is longer: 1 GB.
const REPORT_BYTES_MAX: u64 = 1 << 30;

/// Runs the command that was typed.
pub fn main() -> ExitCode {
    prepare();
    let typed = order::settled(std::env::args_os().collect());
    let result = parse(&typed);
    let result = result.map_or_else(|error| misuse(error, &typed), |cli| run(&cli.settled()));
    conclude(result).into()
}

/// Tells why there is no result; the exit code.
fn conclude(result: Result<Exit, Failure>) -> u8 {
    match result {
        Ok(exit) => exit.code(),
        Err(failure) => {
            tell(&format!("walstat: {}", visible(&failure.to_string())));
            failure.exit_code()
        }
    }
}

fn parse(typed: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let matches = match command.try_get_matches_from_mut(typed) {
        // To give each option its example takes longer than all the rest of a start.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            with_examples(Cli::command()).try_get_matches_from_mut(typed)?
        }
        parsed => parsed?,
    };
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    storage::configure(cli.storage());
    match &cli.command {
        Some(Command::Check(args)) => check::run(args),
        Some(Command::Merge(args)) => partial::merge(args),
        Some(Command::Names(args)) => names::run(args),
        Some(Command::Events(args)) => events::run(args),
        Some(Command::Follow(args)) => follow::run(args),
        Some(Command::Records(args)) => records::run(args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::WhatIf(args)) => whatif::run(args),
        Some(Command::Window(args)) => window::run(args),
        Some(Command::Rules(args)) => rules::run(args),
        Some(Command::Completions { shell }) => manual::completions(*shell, Cli::command()),
        Some(Command::Man { command }) => {
            manual::page(command.as_deref(), with_examples(Cli::command()))
        }
        None if cli.stats.partial => partial::write(&cli.stats),
        None => match meant_command(&cli.stats.source.paths, &Cli::command()) {
            Some(text) => Err(Failure::Usage(text)),
            None => stats::run(&cli.stats),
        },
    }
}

/// What clap has to say: help, or why the arguments make no sense. For a monitoring plugin it is
/// written to standard output, with the plugin's exit code.
fn misuse(error: clap::Error, typed: &[OsString]) -> Result<Exit, Failure> {
    let words = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    if error.use_stderr() && check::is_plugin_call(words) {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        return plugin::unknown(line.trim_start_matches("error: "));
    }
    if error.use_stderr() {
        with_suggestion(error).exit();
    }
    // Help and version are a result like any other: what cannot be written is told.
    let text = error.render();
    write_to(None, When::Auto, |out| write!(out, "{}", text.ansi()))?;
    Ok(Exit::Done)
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

/// The definition of the command line: completions and man pages are made from it.
pub fn command_line() -> clap::Command {
    Cli::command()
}
