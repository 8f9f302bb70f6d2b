//! Options may stand before the command that they belong to: `walstat --as archive check DIR`.

use clap::{Command, CommandFactory};
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments with their command first, where they can be understood only so.
pub fn settled(typed: Vec<OsString>) -> Vec<OsString> {
    let command = super::Cli::command();
    let ordered: Vec<Vec<OsString>> = command_first(&typed, &command).collect();
    if ordered.is_empty() || is_meant(&typed, &command) {
        return typed;
    }
    let meant = ordered.iter().find(|arguments| is_meant(arguments, &command));
    // What is wrong with them is told as that of the command.
    meant.or(ordered.first()).cloned().unwrap_or(typed)
}

/// Each way to take a word after an option for the command.
fn command_first<'a>(
    typed: &'a [OsString],
    command: &'a Command,
) -> impl Iterator<Item = Vec<OsString>> + 'a {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let begins_with_option = typed.get(1).is_some_and(is_option);
    let is_command = |word: &OsString| command.get_subcommands().any(|c| c.get_name() == *word);
    let places = (2..typed.len()).filter(move |_| begins_with_option);
    places.filter_map(move |place| {
        let word = typed.get(place).filter(|word| is_command(word))?;
        let others = typed.iter().enumerate().filter(|(at, _)| *at > 0 && *at != place);
        let head = typed.first().into_iter().chain([word]);
        Some(head.chain(others.map(|(_, other)| other)).cloned().collect())
    })
}

/// Whether these arguments make sense as typed: they ask for help, or their first path exists, or it is not
/// the name of a command.
fn is_meant(arguments: &[OsString], command: &Command) -> bool {
    let parsed = match command.clone().try_get_matches_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return !error.use_stderr(),
    };
    let path = parsed.get_many::<PathBuf>("paths").and_then(|mut paths| paths.next());
    let is_command =
        |path: &&PathBuf| command.get_subcommands().any(|c| path.as_os_str() == c.get_name());
    path.filter(is_command).is_none_or(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let typed = line.split_whitespace().map(OsString::from).collect();
        let words = settled(typed).into_iter().map(|word| word.into_string().expect("UTF-8"));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_command_is_found_behind_its_options() {
        for (typed, meant) in [
            ("walstat --as archive check DIR", "walstat check --as archive DIR"),
            ("walstat -f json -j 2 whatif DIR", "walstat whatif -f json -j 2 DIR"),
            ("walstat --max-fpi-ratio 0.5 check DIR", "walstat check --max-fpi-ratio 0.5 DIR"),
            // The word may be a value, too.
            ("walstat -o check check DIR", "walstat check -o check DIR"),
            ("walstat -o check DIR", "walstat -o check DIR"),
            ("walstat check --as archive DIR", "walstat check --as archive DIR"),
            ("walstat --help check", "walstat --help check"),
            ("walstat DIR check", "walstat DIR check"),
            // It makes no sense in any order.
            ("walstat --top 5 check DIR", "walstat check --top 5 DIR"),
        ] {
            assert_eq!(ordered(typed), meant, "{typed}");
        }
    }
}
