//! The door: arguments in, exit code out.

use clap::Parser;
use std::process::ExitCode;
use walstat::cli::args::{Cli, Command};
use walstat::cli::{rules, stats};

fn main() -> ExitCode {
    let cli = Cli::parse();
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
