//! Values of options: those that have names, and the nearest spelling of a misspelt one.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use walstat_analyse::dimension::Dimension;
use walstat_read::input::storage;

/// When to use colours, progress and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Rows of a long table for people.
pub const TOP_DEFAULT: usize = 20;

/// Reads one of the values of an enum by its name; the help tells what each is.
pub fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    text: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|value| PossibleValue::new(name(*value)).help(text(*value)));
    let find = move |text: String| all.iter().copied().find(|value| name(*value) == text);
    PossibleValuesParser::new(values)
        .try_map(move |text| find(text).ok_or_else(|| "expected one of the values".to_owned()))
}

/// `, did you mean "X"?` for the name most like `text`, if one is. Quotes of its own belong to it, and stand
/// alone.
pub fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> String {
    let wanted = text.to_ascii_lowercase();
    let score = |name: &str| strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase());
    let best = names.map(|name| (score(name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, name)) if score > 0.7 && name.contains('"') => {
            format!(", did you mean {name}?")
        }
        Some((score, name)) if score > 0.7 => format!(", did you mean \"{name}\"?"),
        _ => String::new(),
    }
}

/// The only long option of `command` that begins with what was typed.
pub fn nearest_option(typed: &str, command: &clap::Command) -> Option<String> {
    let typed = typed.split('=').next()?.strip_prefix("--")?;
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    let mut begun = names.filter(|name| !typed.is_empty() && name.starts_with(typed));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Some(format!("--{only}")),
        _ => None,
    }
}

/// What to suggest if the first path does not exist and is nearly the name of a command or a dimension.
pub fn meant_command(paths: &[PathBuf], command: &clap::Command) -> Option<String> {
    const TYPOS_MAX: usize = 2;
    let path = paths.first().filter(|path| !storage::is_url(path) && !path.exists())?;
    let typed = path.to_str().filter(|text| text.len() > TYPOS_MAX + 1)?;
    let rest: Vec<String> = paths.iter().skip(1).map(|path| path.display().to_string()).collect();
    let is_dimension = Dimension::ALL.iter().any(|dimension| dimension.name() == typed);
    let option = match typed {
        "stats" => Some("--stats".to_owned()),
        name => is_dimension.then(|| format!("--stats={name}")),
    };
    if let Some(option) = option {
        let meant = format!("walstat {option} {}", rest.join(" "));
        return Some(format!("{typed}: no such path; did you mean \"{}\"?", meant.trim_end()));
    }
    let typos = |name: &str| strsim::osa_distance(typed, name);
    let names = command.get_subcommands().map(clap::Command::get_name);
    let name = names.min_by_key(|name| typos(name)).filter(|name| typos(name) <= TYPOS_MAX)?;
    Some(format!("{typed}: no such path, and no command; did you mean \"{name}\"?"))
}
