//! `postgresql.conf`: names and values, as the server's own reader takes them (`guc-file.l`).
//!
//! A file includes others. What cannot be read, and a line that is none, is said and left out.

use crate::data_directory::{read_at_most, warning};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use walstat_input::probe::TEXT_BYTES_MAX;

/// Files include others so deep, at most (`CONF_FILE_MAX_DEPTH`).
const DEPTH: usize = 10;
/// Nobody includes more files: the rest is not read.
const FILES: usize = 100;

/// Settings by their names, in lower case; of those that stand there twice the last.
#[derive(Debug, Default)]
pub(super) struct Conf {
    /// Values without their quotes.
    pub values: BTreeMap<String, String>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

impl Conf {
    /// Reads a file and those that it includes.
    pub(super) fn read(&mut self, path: &Path) {
        self.read_included(path, 0);
    }

    fn read_included(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH {
            let text =
                format!("found files included {depth} levels deep, expected {DEPTH} at most");
            return self.warn(path, &text);
        }
        if self.files.len() >= FILES {
            let text = format!("more than {FILES} included files; the rest is not read");
            return self.warn(path, &text);
        }
        match read_at_most(path, TEXT_BYTES_MAX) {
            Err(error) => self.warn(path, &error.to_string()),
            Ok(bytes) => {
                self.files.push(path.to_owned());
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let folder = path.parent().unwrap_or(Path::new("."));
                for (number, line) in (1..).zip(text.lines()) {
                    match setting(line) {
                        Ok(None) => {}
                        Ok(Some((name, value))) => self.take(name, value, folder, depth),
                        Err(Unreadable) => {
                            self.warn(path, &format!("line {number} is not \"name = value\""));
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, name: String, value: String, folder: &Path, depth: usize) {
        // Of a path that begins at the root the folder is not used.
        let path = || folder.join(&value);
        match name.as_str() {
            "include" => self.read_included(&path(), depth + 1),
            "include_if_exists" if !path().exists() => {}
            "include_if_exists" => self.read_included(&path(), depth + 1),
            "include_dir" => self.read_folder(&path(), depth + 1),
            _ => self.put(name, value),
        }
    }

    /// Sets a value.
    pub(super) fn put(&mut self, name: String, value: String) {
        self.values.insert(name, value);
    }

    /// Reads all files of a folder that end in `.conf`, by their names.
    fn read_folder(&mut self, folder: &Path, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Err(error) => return self.warn(folder, &error.to_string()),
            Ok(entries) => entries,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_conf = |name: &String| name.ends_with(".conf") && !name.starts_with('.');
        let mut names: Vec<String> = names.filter(is_conf).collect();
        names.sort_unstable();
        names.iter().for_each(|name| self.read_included(&folder.join(name), depth));
    }

    fn warn(&mut self, path: &Path, what: &str) {
        let text = warning(path, what);
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }
}

/// A line that is no setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Name and value of a line; `None` for one that is empty or a comment.
pub(super) fn setting(line: &str) -> Result<Option<(String, String)>, Unreadable> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let is_of_name = |c: char| c.is_alphanumeric() || "_$.".contains(c) || !c.is_ascii();
    let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let begins = |c: char| c.is_alphabetic() || c == '_';
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    if !name.starts_with(begins) {
        return Err(Unreadable);
    }
    let (value, rest) = match rest.strip_prefix('\'') {
        Some(quoted) => unquoted(quoted)?,
        None => bare(rest)?,
    };
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(Unreadable);
    }
    Ok(Some((name.to_ascii_lowercase(), value)))
}

/// A value without quotes: a word, or a number with its unit.
fn bare(text: &str) -> Result<(String, &str), Unreadable> {
    let end = text.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    let is_of_value = |c: char| c.is_alphanumeric() || "-._:/$".contains(c) || !c.is_ascii();
    let begins = |c: char| c.is_alphanumeric() || "_+-.".contains(c) || !c.is_ascii();
    let behind = value.trim_start_matches(['+', '-']);
    if !value.starts_with(begins) || !behind.chars().all(is_of_value) {
        return Err(Unreadable);
    }
    Ok((value.to_owned(), rest))
}

/// The value up to its closing quote, and what follows: a quote in it is doubled or has a backslash
/// before it (`DeescapeQuotedString`).
fn unquoted(text: &str) -> Result<(String, &str), Unreadable> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => match chars.next_if(|(_, next)| *next == '\'') {
                Some(_) => value.push('\''),
                None => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            },
            '\\' => {
                let (_, escaped) = chars.next().ok_or(Unreadable)?;
                value.push(match escaped {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0'..='7' => {
                        let mut code = escaped.to_digit(8).unwrap_or(0);
                        for _ in 0..2 {
                            let digit = chars.next_if(|(_, next)| next.is_digit(8));
                            let Some((_, digit)) = digit else { break };
                            code = code * 8 + digit.to_digit(8).unwrap_or(0);
                        }
                        // A value that is asked for here has letters and digits only.
                        char::from((code & 0xFF) as u8)
                    }
                    other => other,
                });
            }
            c => value.push(c),
        }
    }
    Err(Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, String)> {
        setting(line).expect("a line")
    }

    #[test]
    fn lines_are_read_as_the_server_reads_them() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(of("max_wal_size = 1GB"), pair("max_wal_size", "1GB"));
        assert_eq!(of("  Max_Wal_Size 1GB# by hand"), pair("max_wal_size", "1GB"));
        assert_eq!(of("checkpoint_timeout='5 min' # c"), pair("checkpoint_timeout", "5 min"));
        assert_eq!(of(r"a = 'it''s \'so\' \101\n'"), pair("a", "it's 'so' A\n"));
        assert_eq!(
            of("checkpoint_completion_target=0.5"),
            pair("checkpoint_completion_target", "0.5")
        );
        assert_eq!(of("a.b = -1"), pair("a.b", "-1"));
        assert_eq!((of(""), of("   # max_wal_size = 2GB")), (None, None));
        for line in ["= 1", "a = 'open", "a = 1 2", "a =", "archive_command=/bin/true", "a = (1)"] {
            assert_eq!(setting(line), Err(Unreadable), "{line}");
        }
    }

    #[test]
    fn files_include_others_and_the_last_wins() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(root.path().join(name), text).expect("a file");
        };
        fs::create_dir(root.path().join("conf.d")).expect("a directory");
        write(
            "main",
            "a=1\nb=1\ninclude 'one'\ninclude_if_exists 'no'\ninclude_dir conf.d\nc = 'x\n",
        );
        write("one", "b=2\nc=2\ninclude gone\n");
        write("conf.d/2.conf", "d=second\n");
        write("conf.d/1.conf", "d=first\ne=1\n");
        write("conf.d/3.txt", "e=2\n");
        write("conf.d/.4.conf", "e=3\n");
        let mut conf = Conf::default();
        conf.read(&root.path().join("main"));
        let values: Vec<_> = conf.values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(values, ["a=1", "b=2", "c=2", "d=second", "e=1"]);
        let [gone, line] = conf.warnings.as_slice() else { panic!("{:?}", conf.warnings) };
        assert!(gone.contains("gone: ") && line.ends_with("main: line 6 is not \"name = value\""));
        assert_eq!(conf.files.len(), 4);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("c");
        fs::write(&path, "include c\ninclude c\na=1\n").expect("a file");
        let mut conf = Conf::default();
        conf.read(&path);
        assert_eq!(conf.values.get("a").map(String::as_str), Some("1"));
        assert_eq!(conf.files.len(), FILES);
        let [deep, many] = conf.warnings.as_slice() else { panic!("{:?}", conf.warnings) };
        assert!(deep.ends_with("c: found files included 11 levels deep, expected 10 at most"));
        assert!(many.ends_with("c: more than 100 included files; the rest is not read"));
    }
}
