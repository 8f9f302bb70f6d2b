//! The sources as text: packages, files, lines that are no tests, functions. Knows only what rustfmt
//! leaves: an item's brace closes at its own indent.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file without its tests.
pub struct Source {
    /// `crates/walstat-format/src/page.rs`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Line number and line of what is no test.
    pub lines: Vec<(usize, String)>,
}

impl Source {
    /// The part of a line that is code: nothing of a comment line, nothing behind ` // `.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter().filter(|(_, line)| !line.trim_start().starts_with("//"));
        lines.map(|(number, line)| (*number, line.split(" // ").next().unwrap_or(line)))
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below `directory` whose name ends so.
pub fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, suffix));
        } else if path.to_string_lossy().ends_with(suffix) {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as people name it: `crates/walstat-format/src/page.rs`.
pub fn place_of(path: &Path) -> String {
    let inner = path.strip_prefix(root()).unwrap_or(path);
    let inner = inner.strip_prefix(".").unwrap_or(inner);
    inner.to_string_lossy().replace('\\', "/")
}

/// Every line of the files below `directories` whose names end so, behind its place: `src/lib.rs:1`.
pub fn lines_below(directories: &[&str], suffixes: &[&str]) -> Vec<(String, String)> {
    let below = |directory: &&str| files(&root().join(directory), "");
    let paths = directories.iter().flat_map(below);
    let wanted = |path: &PathBuf| suffixes.iter().any(|end| path.to_string_lossy().ends_with(end));
    paths.filter(wanted).flat_map(|path| lines_of(&path)).collect()
}

/// Every line of a file, behind its place.
pub fn lines_of(path: &Path) -> Vec<(String, String)> {
    let (place, text) = (place_of(path), read(path));
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| (format!("{place}:{}", index + 1), line.to_owned())).collect()
}

/// A package of the workspace.
pub struct Package {
    /// Its directory: `.` or `crates/walstat-read`.
    pub place: String,
}

impl Package {
    /// Its sources.
    pub fn sources(&self) -> Vec<Source> {
        let folder = root().join(&self.place).join("src");
        files(&folder, ".rs").iter().map(|path| source(path)).collect()
    }
}

/// The packages of the workspace, `walstat` itself first.
pub fn packages() -> Vec<Package> {
    let crates = fs::read_dir(root().join("crates")).expect("a folder of crates");
    let mut places: Vec<String> = crates
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| place_of(&path))
        .collect();
    places.sort();
    places.insert(0, ".".to_owned());
    assert!(places.len() > 5, "{places:?}");
    places.into_iter().map(|place| Package { place }).collect()
}

/// The sources of all packages.
pub fn sources() -> Vec<Source> {
    let sources: Vec<Source> = packages().iter().flat_map(Package::sources).collect();
    assert!(sources.len() > 100, "only {} sources", sources.len());
    sources
}

fn source(path: &Path) -> Source {
    let text = read(path);
    let name = place_of(path);
    // A file that is compiled for tests only: `mod tests;`, and what is made up for them.
    let is_test = name.ends_with("/tests.rs") || name.contains("/made_up");
    let lines = if is_test { Vec::new() } else { without_tests(&text) };
    Source { name, lines, text }
}

/// The lines outside of `#[cfg(test)]` items.
pub fn without_tests(text: &str) -> Vec<(usize, String)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push((index + 1, line.to_owned()));
            continue;
        }
        let end = format!("{}}}", indent(line));
        // The item itself, behind other attributes and comments.
        let item = lines.find(|(_, line)| !line.trim_start().starts_with(['#', '/']));
        if item.is_some_and(|(_, line)| line.ends_with('{')) {
            lines.find(|(_, line)| *line == end);
        }
    }
    kept
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Line, name and length of every function.
pub fn functions(source: &Source) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (index, (number, line)) in source.lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        // A function on one line, or without a body, has no brace of its own to look for.
        let end = format!("{}}}", indent(line));
        let more = source.lines[index..].iter().position(|(_, line)| *line == end);
        let one_line = line.ends_with(['}', ';']);
        found.push((*number, name, if one_line { 1 } else { more.map_or(1, |lines| lines + 1) }));
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let modifier = |word: &&str| {
        ["pub", "const", "unsafe", "async", "extern", "\"C\""].contains(word)
            || word.starts_with("pub(")
    };
    let first = words.find(|word| !modifier(word))?;
    let name = (first == "fn").then(|| words.next()).flatten()?;
    Some(name.split(['(', '<']).next().unwrap_or(name).to_owned())
}
