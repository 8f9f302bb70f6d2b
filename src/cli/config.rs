//! `walstat.toml`: the limits of `walstat check`, in a table `[check]`, by the names of their
//! options.

use super::Failure;
use super::values::nearest;
use crate::report::budget::{BudgetOption, Budgets, OPTIONS};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The file that is read if none is named.
const DEFAULT_FILE: &str = "walstat.toml";
/// The table of this command.
const TABLE: &str = "check";

/// The limits of the file named, or of `walstat.toml` in the current directory, or none; and the
/// file, if it was found there.
pub fn load(named: Option<&Path>) -> Result<(Budgets, Option<PathBuf>), Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let usage = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
    let found = named.is_none().then(|| path.to_owned());
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let budgets = parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(usage)?;
            Ok((budgets, found))
        }
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
            Ok((Budgets::default(), None))
        }
        Err(error) => Err(usage(error.to_string())),
    }
}

fn keys() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|option| option.name)
}

/// Reads the text of a file that lies in `directory`, from where its paths count.
fn parse(text: &str, directory: &Path) -> Result<Budgets, String> {
    let file: Table = text.parse().map_err(|error: toml::de::Error| one_line(text, &error))?;
    if let Some(key) = file.keys().find(|key| *key != TABLE) {
        let near = match keys().any(|known| known == key) {
            true => format!(", it belongs under [{TABLE}]"),
            false => nearest(key, keys().chain([TABLE])),
        };
        return Err(format!("unknown key \"{key}\"{near}"));
    }
    match file.get(TABLE) {
        None => Ok(Budgets::default()),
        Some(Value::Table(table)) => budgets(table, directory),
        Some(other) => Err(format!("\"{TABLE}\" is {}, expected a table", name_of(other))),
    }
}

fn budgets(table: &Table, directory: &Path) -> Result<Budgets, String> {
    let mut budgets = Budgets::default();
    for (key, value) in table {
        let Some(option) = OPTIONS.iter().find(|option| option.name == key) else {
            return Err(format!("unknown key \"{TABLE}.{key}\"{}", nearest(key, keys())));
        };
        set(&mut budgets, option, value, directory)?;
    }
    Ok(budgets)
}

/// A number or a text is read just as it would be on the command line.
fn set(
    budgets: &mut Budgets,
    option: &BudgetOption,
    value: &Value,
    directory: &Path,
) -> Result<(), String> {
    let key = option.name;
    let text = match value {
        Value::String(text) if option.is_file() => {
            directory.join(text).to_string_lossy().into_owned()
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        other => {
            let found = name_of(other);
            return Err(format!("{TABLE}.{key} is {found}, expected a number or a text"));
        }
    };
    (option.set)(budgets, &text)
        .map_err(|error| format!("{TABLE}.{key}: {error}, found \"{text}\""))
}

fn name_of(value: &Value) -> String {
    let article = if value.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {}", value.type_str())
}

/// What is wrong with the syntax and in which line, without the picture of it.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::amount::{Growth, Ratio, Size};
    use crate::report::model::finding::Severity;

    fn parsed(text: &str) -> Result<Budgets, String> {
        parse(text, Path::new("conf"))
    }

    #[test]
    fn every_key_is_read_as_its_option() {
        let text = "[check]\nmax-fpi-ratio = 0.7\nmin-hot-ratio = \"50%\"\nmin-volume = 1024\n\
            min-updates = 50\n\
            max-bytes-per-commit = \"20kB\"\nmax-wal-bytes = \"10GB\"\nfail-on = \"critical\"\n\
            baseline = \"before.json\"\nmax-growth = \"10%\"\n";
        let want = Budgets {
            max_fpi_ratio: Some(Ratio(0.7)),
            min_hot_ratio: Some(Ratio(0.5)),
            max_bytes_per_commit: Some(Size(20 << 10)),
            max_wal_bytes: Some(Size(10 << 30)),
            min_volume: Some(Size(1024)),
            min_updates: Some(50),
            fail_on: Some(Severity::Critical),
            baseline: Some("conf/before.json".into()),
            max_growth: Some(Growth(0.1)),
        };
        assert_eq!(parsed(text), Ok(want));
        assert_eq!(parsed(""), Ok(Budgets::default()));
    }

    #[test]
    fn what_is_wrong_is_named_with_the_nearest_spelling() {
        for (text, words) in [
            (
                "[check]\nmax-fpi-ration = 1",
                "unknown key \"check.max-fpi-ration\", did you mean \"max-fpi-ratio\"?",
            ),
            ("max-fpi-ratio = 1", "it belongs under [check]"),
            ("[chekc]", "did you mean \"check\"?"),
            ("check = 1", "is an integer, expected a table"),
            ("[check]\nmax-wal-bytes = \"many\"", "check.max-wal-bytes: expected a size"),
            ("[check]\nmax-wal-bytes = -1", "found \"-1\""),
            ("[check]\nfail-on = \"info\"", "expected \"warning\" or \"critical\""),
            ("[check]\nbaseline = true", "is a boolean, expected"),
            ("[check]\nmax-growth = ", "line 2:"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(words), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
