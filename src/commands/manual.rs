//! `walstat completions`, `walstat man`: from the definitions of the arguments.

use crate::args::values::nearest;
use crate::failure::{Exit, Failure};
use crate::output::write_bytes;
use clap::Command;
use clap_complete::Shell;

/// The program's name, even if it was called by another one.
const NAME: &str = "walstat";

/// Writes the completions of a shell.
pub fn completions(shell: Shell, mut command: Command) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, NAME, &mut text);
    write_bytes(None, &text)?;
    Ok(Exit::Done)
}

/// Writes the man page of the program, or of one of its commands.
pub fn page(of: Option<&str>, mut command: Command) -> Result<Exit, Failure> {
    command.build();
    let page = match of {
        None => command,
        Some(name) => named(name, &command)?,
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).render(&mut text);
    // Writing to memory cannot fail.
    debug_assert!(rendered.is_ok());
    write_bytes(None, &text)?;
    Ok(Exit::Done)
}

fn named(name: &str, command: &Command) -> Result<Command, Failure> {
    command.find_subcommand(name).cloned().ok_or_else(|| {
        let near = nearest(name, command.get_subcommands().map(Command::get_name));
        Failure::Usage(format!("no command is called \"{name}\"{near}"))
    })
}
