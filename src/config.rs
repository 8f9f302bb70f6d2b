//! `walstat.toml`: the limits of `walstat check`, in a table `[check]`, by the names of their
//! options; thresholds of rules in a table `[rules]`.

mod gaps;
mod rules;

use crate::args::values::nearest;
use crate::failure::Failure;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use walstat_read::input::limited;
use walstat_read::input::probe::TEXT_BYTES_MAX;
use walstat_report::budget::{BudgetOption, Budgets, OPTIONS};
use walstat_report::gap::Gap;
use walstat_report::model::threshold::Thresholds;
use walstat_report::table_budget::{TABLE_OPTIONS, TableBudget};

/// The file that is read if --config names none.
const DEFAULT_FILE: &str = "walstat.toml";
/// The table of `walstat check`.
const TABLE: &str = "check";
/// In it, the list of limits of single tables.
const TABLES: &str = "table";
/// In an entry of that list, the name of the tables.
const NAME: &str = "name";

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// The limits.
    pub budgets: Budgets,
    /// Those of single tables.
    pub tables: Vec<TableBudget>,
    /// Gaps that are accepted.
    pub gaps: Vec<Gap>,
    /// The thresholds of the advice rules.
    pub thresholds: Thresholds,
    /// Whether the file has a table of rules.
    pub has_rules: bool,
    /// The file, if it was found rather than named.
    pub found: Option<PathBuf>,
}

/// The file named, or `walstat.toml` in the current directory.
pub fn path(named: Option<&Path>) -> &Path {
    named.unwrap_or(Path::new(DEFAULT_FILE))
}

/// The limits of the file named, or of `walstat.toml` in the current directory, or none.
pub fn load(named: Option<&Path>) -> Result<Config, Failure> {
    let path = path(named);
    let found = named.is_none().then(|| path.to_owned());
    match text_of(path) {
        Ok(text) => Ok(Config { found, ..read(path, &text)? }),
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
            Ok(Config::default())
        }
        Err(error) => Err(usage(path, &error.to_string())),
    }
}

/// The text of a configuration.
pub fn text_of(path: &Path) -> io::Result<String> {
    limited::read_text(path, TEXT_BYTES_MAX)
}

/// The limits that the text of a file asks for.
pub fn read(path: &Path, text: &str) -> Result<Config, Failure> {
    let directory = path.parent().unwrap_or(Path::new(""));
    parse(text, directory).map_err(|reason| usage(path, &reason))
}

fn usage(path: &Path, reason: &str) -> Failure {
    Failure::Usage(format!("{}: {reason}", path.display()))
}

fn keys() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|option| option.name)
}

/// Reads the text of a file that lies in `directory`, to which paths in it are relative.
fn parse(text: &str, directory: &Path) -> Result<Config, String> {
    let file: Table = text.parse().map_err(|error: toml::de::Error| one_line(text, &error))?;
    let tables = [TABLE, rules::TABLE];
    if let Some(key) = file.keys().find(|key| !tables.contains(&key.as_str())) {
        let known = keys().map(|name| (name, TABLE));
        let mut known = known.chain(rules::ids().map(|id| (id, rules::TABLE)));
        let near = match known.find(|(name, _)| name == key) {
            Some((_, table)) => format!(", it belongs under [{table}]"),
            None => nearest(key, keys().chain(rules::ids()).chain(tables)),
        };
        return Err(format!("unknown key \"{key}\"{near}"));
    }
    let mut config = match table(&file, TABLE)? {
        None => Config::default(),
        Some(table) => limits(table, directory)?,
    };
    if let Some(table) = table(&file, rules::TABLE)? {
        config.thresholds = rules::thresholds(table)?;
        config.has_rules = true;
    }
    Ok(config)
}

/// A table of the file, if it has it.
fn table<'f>(file: &'f Table, name: &str) -> Result<Option<&'f Table>, String> {
    match file.get(name) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(other) => Err(format!("\"{name}\" is {}, expected a table", name_of(other))),
    }
}

fn limits(table: &Table, directory: &Path) -> Result<Config, String> {
    let mut config = Config::default();
    for (key, value) in table {
        if key == TABLES {
            config.tables = tables(value, directory)?;
            continue;
        }
        if key == gaps::GAPS {
            config.gaps = gaps::gaps(value)?;
            continue;
        }
        let Some(option) = OPTIONS.iter().find(|option| option.name == key) else {
            let near = nearest(key, keys().chain([TABLES, gaps::GAPS]));
            return Err(format!("unknown key \"{TABLE}.{key}\"{near}"));
        };
        set(&mut config.budgets, option, value, TABLE, directory)?;
    }
    Ok(config)
}

/// The limits of single tables: `[[check.table]]`, one for each name.
fn tables(value: &Value, directory: &Path) -> Result<Vec<TableBudget>, String> {
    let place = format!("{TABLE}.{TABLES}");
    let wrong = |found: &Value| format!("\"{place}\" is {}, expected [[{place}]]", name_of(found));
    let list = value.as_array().ok_or_else(|| wrong(value))?;
    let table =
        |value: &Value| table_budget(value.as_table().ok_or_else(|| wrong(value))?, directory);
    list.iter().map(table).collect()
}

fn table_budget(table: &Table, directory: &Path) -> Result<TableBudget, String> {
    let place = format!("{TABLE}.{TABLES}");
    let mut budget = TableBudget::default();
    for (key, value) in table {
        match value {
            Value::String(name) if key == NAME => budget.name = name.clone(),
            _ if TABLE_OPTIONS.contains(&key.as_str()) => {
                let option = OPTIONS.iter().find(|option| option.name == key);
                let option = option.ok_or_else(|| format!("unknown key \"{place}.{key}\""))?;
                set(&mut budget.budgets, option, value, &place, directory)?;
            }
            _ if key == NAME => {
                return Err(format!("{place}.{NAME} is {}, expected a text", name_of(value)));
            }
            _ => {
                let near = nearest(key, TABLE_OPTIONS.into_iter().chain([NAME]));
                return Err(format!("unknown key \"{place}.{key}\"{near}"));
            }
        }
    }
    let has_limit = table.keys().any(|key| key.starts_with("max-") || key.starts_with("min-hot"));
    match (budget.name.is_empty(), has_limit) {
        (true, _) => Err(format!("[[{place}]] needs a {NAME}, like \"public.orders\"")),
        (_, false) => Err(format!("[[{place}]] of {} has no limit", budget.name)),
        _ => Ok(budget),
    }
}

/// Sets an option that stands in the table `place`: a number or a text is read just as it would be on the
/// command line.
fn set(
    budgets: &mut Budgets,
    option: &BudgetOption,
    value: &Value,
    place: &str,
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
            return Err(format!("{place}.{key} is {found}, expected a number or a text"));
        }
    };
    (option.set)(budgets, &text)
        .map_err(|error| format!("{place}.{key}: {error}, found \"{text}\""))
}

/// What kind of value it is, with its article.
pub fn name_of(value: &Value) -> String {
    let article = if value.type_str().starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {}", value.type_str())
}

/// What is wrong with the syntax and in which line, without the excerpt that the library adds.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::amount::{Growth, Ratio, Size};
    use walstat_report::model::finding::Severity;

    fn parsed(text: &str) -> Result<Budgets, String> {
        parse(text, Path::new("conf")).map(|config| config.budgets)
    }

    #[test]
    fn tables_have_limits_of_their_own() {
        let tables = |text: &str| parse(text, Path::new("")).map(|config| config.tables);
        let text = "[[check.table]]\nname = \"public.*\"\nmin-hot-ratio = 0.5\n\
            [[check.table]]\nname = \"shop.public.orders\"\nmax-wal-bytes = \"1GB\"\n";
        let found = tables(text).expect("two tables");
        let names: Vec<&str> = found.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["public.*", "shop.public.orders"]);
        assert_eq!(found[0].budgets.min_hot_ratio, Some(Ratio(0.5)));
        for (text, words) in [
            ("[[check.table]]\nmin-hot-ratio = 0.5\n", "needs a name"),
            ("[[check.table]]\nname = \"a.b\"\n", "has no limit"),
            ("[[check.table]]\nname = 5\nmin-hot-ratio = 0.5\n", "expected a text"),
            (
                "[[check.table]]\nname = \"a.b\"\nmax-wal-bytes = \"many\"\n",
                "check.table.max-wal-bytes: expected a size",
            ),
            ("[[check.table]]\nname = \"a.b\"\nfail-on = \"warning\"\n", "unknown key"),
            ("[check]\ntable = 5\n", "expected [[check.table]]"),
        ] {
            let error = tables(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
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
            ("[rule]", "did you mean \"rules\"?"),
            ("rules = 1", "\"rules\" is an integer, expected a table"),
            ("lock-traffic = 0.3", "it belongs under [rules]"),
            ("[rules]\nlock-traffik = 0.3", "did you mean \"lock-traffic\"?"),
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
