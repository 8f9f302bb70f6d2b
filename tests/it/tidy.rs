//! The house's rules, held by a test: how long files and functions may be, where `unsafe` lives, that no
//! files of a package need each other in a circle, what the papers say. Which package may use which is
//! in their Cargo.toml, and held by the compiler.

mod circles;
mod papers;
mod source;

use papers::releases_in;
use source::{Source, functions, lines_below, sources, without_tests};
use std::fmt::Write as _;

/// Longest file, without its tests.
const FILE_LINES: usize = 500;
/// Longest function, from its `fn` to its closing brace.
const FUNCTION_LINES: usize = 60;
/// Widest line, in characters.
const COLUMNS: usize = 110;

/// Sources that open files; all others take bytes. What-if keeps what comes through a pipe, to read it
/// more than once.
const OPENS_FILES: [&str; 8] = [
    "crates/walstat-input/src/",
    "crates/walstat-read/src/",
    "crates/walstat-names/src/",
    "crates/walstat-whatif/src/spooled.rs",
    "src/machine.rs",
    "src/commands",
    "src/config",
    "src/output",
];
/// Sources that print; all others give text.
const PRINTS: [&str; 2] = ["src/commands", "src/output"];

/// Where the releases are told apart.
const KNOWS_RELEASES: [&str; 4] = [
    "crates/walstat-format/src/version.rs",
    "crates/walstat-format/src/rmgr.rs",
    "crates/walstat-format/src/payload",
    "crates/walstat-format/src/contradiction",
];

/// Everything that people read as source.
const WRITTEN: [&str; 6] = ["src", "crates", "tests", "benches", "examples", "fuzz"];

/// The only files with `unsafe` in them begin so.
const UNSAFE_FILES: [&str; 4] = [
    "crates/walstat-format/src/crc",
    "crates/walstat-input/src/mapped",
    "crates/walstat-input/src/writers.rs",
    "src/output/closed.rs",
];

/// Fails with all complaints at once, each a file, a line, what is wrong and what to do.
#[track_caller]
fn none(complaints: Vec<String>) {
    let mut text = String::new();
    for complaint in &complaints {
        writeln!(text, "  {complaint}").expect("a string takes everything");
    }
    assert!(complaints.is_empty(), "{} complaint(s):\n{text}", complaints.len());
}

/// A complaint for each line of code for which `wrong` says so.
fn complain(sources: &[Source], wrong: impl Fn(&Source, &str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        for (number, line) in source.code() {
            if let Some(what) = wrong(source, line) {
                complaints.push(format!("{}:{number}: {what}", source.name));
            }
        }
    }
    complaints
}

fn is_below(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| source.name.starts_with(place))
}

#[test]
fn only_the_packages_that_may_open_files_and_only_the_door_prints() {
    none(complain(&sources(), |source, line| {
        if line.contains("std::fs") && !is_below(source, &OPENS_FILES) {
            return Some(format!("opens files; bytes come through {}", OPENS_FILES[0]));
        }
        let prints = ["println!", "print!("].iter().any(|name| line.contains(name));
        let wrong = prints && !is_below(source, &PRINTS);
        wrong.then(|| format!("prints; only {} do", PRINTS.join(" and ")))
    }));
}

/// What is printed is in the model: a renderer needs nothing else.
#[test]
fn renderers_know_the_model_only() {
    none(complain(&sources(), |source, line| {
        source.name.starts_with("src/render").then_some(())?;
        let other = other_than_the_model(line)?;
        Some(format!("names {other}; src/render shows walstat_report::model and nothing else"))
    }));
}

/// The first path of a line into a package, or into this one, that is none of a renderer's business.
fn other_than_the_model(line: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let path = |text: &str| -> String {
        text.chars().take_while(|c| is_word(*c) || "{:".contains(*c)).collect()
    };
    let begins = |at: usize| !line[..at].ends_with(is_word);
    ["walstat_", "crate::"].iter().find_map(|head| {
        let places = line.match_indices(head).filter(|(at, _)| begins(*at));
        let mut paths = places.map(|(at, _)| path(&line[at..])).filter(|path| path.contains("::"));
        paths.find(|path| {
            !["walstat_report::model", "crate::render"].iter().any(|own| path.starts_with(own))
        })
    })
}

#[test]
fn files_are_short_enough_to_read() {
    let long = sources().into_iter().filter(|source| source.lines.len() > FILE_LINES);
    none(
        long.map(|source| {
            let lines = source.lines.len();
            format!(
                "{}:1: {lines} lines without its tests, {FILE_LINES} at most: make it two files",
                source.name
            )
        })
        .collect(),
    );
}

/// A module with others inside of it is `x.rs` beside their folder `x`.
#[test]
fn no_module_is_called_mod() {
    let unnamed = sources().into_iter().filter(|source| source.name.ends_with("/mod.rs"));
    none(unnamed.map(|source| format!("{}:1: call it after its folder", source.name)).collect());
}

#[test]
fn functions_are_short_enough_to_read() {
    let mut complaints = Vec::new();
    for source in sources() {
        for (number, name, lines) in functions(&source) {
            if lines > FUNCTION_LINES {
                let what =
                    format!("fn {name} has {lines} lines, {FUNCTION_LINES} at most: make it two");
                complaints.push(format!("{}:{number}: {what}", source.name));
            }
        }
    }
    none(complaints);
}

#[test]
fn input_never_panics_by_design() {
    const BANNED: [&str; 5] =
        [".unwrap()", ".expect(", "panic!(", "unreachable!(", "unimplemented!("];
    none(complain(&sources(), |_, line| {
        let banned = BANNED.iter().find(|banned| line.contains(**banned))?;
        Some(format!("{banned} can end the program: return an error, a problem or an Option"))
    }));
}

#[test]
fn unsafe_lives_with_the_checksum_and_says_why_it_is_sound() {
    let is_unsafe = |line: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe")
    };
    let sources = sources();
    let mut complaints = complain(&sources, |source, line| {
        let wrong = is_unsafe(line) && !is_below(source, &UNSAFE_FILES);
        wrong.then(|| format!("unsafe belongs into {}*", UNSAFE_FILES.join(" and ")))
    });
    for source in sources.iter().filter(|source| is_below(source, &UNSAFE_FILES)) {
        for (index, (number, line)) in source.lines.iter().enumerate() {
            let above = source.lines[..index].iter().rev().take(8).any(|(_, line)| {
                let line = line.to_ascii_lowercase();
                line.contains("// safety:") || line.contains("# safety")
            });
            if line.contains("unsafe {") && !line.trim_start().starts_with("//") && !above {
                complaints.push(format!(
                    "{}:{number}: no \"// SAFETY:\" above: say why it is sound",
                    source.name
                ));
            }
        }
    }
    none(complaints);
}

#[test]
fn every_file_begins_by_saying_what_it_is_for() {
    let mute = sources().into_iter().filter(|source| {
        let mut doc = source.text.lines().map_while(|line| line.strip_prefix("//!"));
        doc.next().is_none_or(|line| line.trim().len() < 15)
    });
    none(
        mute.map(|source| {
            format!("{}:1: begin with a //! sentence: what for, what not", source.name)
        })
        .collect(),
    );
}

/// Which release wrote the WAL is asked of the table in `version.rs`, but for payloads.
#[test]
fn releases_are_compared_where_they_are_known_only() {
    const COMPARISONS: [&str; 13] = [
        ".since(",
        "Release::V",
        "version.index",
        "version().index",
        ".magic <",
        ".magic >",
        "magic <",
        "magic >",
        "name == \"",
        "name != \"",
        "postgres == \"",
        "postgres != \"",
        "version <",
    ];
    none(complain(&sources(), |source, line| {
        let found = COMPARISONS.iter().find(|comparison| line.contains(**comparison))?;
        (!is_below(source, &KNOWS_RELEASES)).then(|| {
            format!("\"{found}\" compares releases: give {} a column, ask that", KNOWS_RELEASES[0])
        })
    }));
}

#[test]
fn nothing_is_left_for_later() {
    // In two pieces, so that this file does not complain of itself.
    let banned = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["dbg", "!("], ["todo", "!("]]
        .map(|pair| pair.concat());
    let lines = lines_below(&[&WRITTEN[..], &["docs"]].concat(), &[".rs", ".md"]);
    // "WHAT TO DO" is a heading of the report; as one word it is a note.
    none(
        lines
            .into_iter()
            .filter_map(|(place, line)| {
                let found = banned.iter().find(|word| line.contains(word.as_str()))?;
                Some(format!("{place}: {found}: do it or drop it"))
            })
            .collect(),
    );
}

#[test]
fn lines_fit_the_screen() {
    let lines = lines_below(&WRITTEN, &[".rs"]);
    none(
        lines
            .into_iter()
            .filter_map(|(place, line)| {
                let columns = line.chars().count();
                let what = format!("{place}: {columns} columns, {COLUMNS} at most: break it");
                (columns > COLUMNS).then_some(what)
            })
            .collect(),
    );
}

/// A rule that finds nothing in bad code finds nothing anywhere.
#[test]
fn the_rules_find_what_they_are_for() {
    let made_up = |name: &str, text: &str| Source {
        name: name.to_owned(),
        text: text.to_owned(),
        lines: without_tests(text),
    };
    let other = |line: &str| other_than_the_model(line).is_some();
    assert!(other("    let all = walstat_report::build::build();"));
    assert!(other("use crate::cli::output;"));
    assert!(!other("use walstat_report::model::{Books, Report};"));
    assert!(!other("use super::table::{Style, plain}; // walstat_up is a metric"));

    let text = "//! Doc.\nfn short() {}\nimpl X {\n    pub(crate) fn long(\n        a: u8,\n    ) -> u8 {\n\
                \n    }\n}\n#[cfg(test)]\nmod tests {\n    fn f() {\n    }\n}\nconst fn last() {\n}\n";
    let source = made_up("src/x.rs", text);
    let found = functions(&source);
    let found: Vec<_> =
        found.iter().map(|(line, name, lines)| (*line, name.as_str(), *lines)).collect();
    assert_eq!(found, [(2, "short", 1), (4, "long", 5), (15, "last", 2)]);
    assert_eq!(source.lines.last().map(|(number, _)| *number), Some(16));

    let releases: Vec<String> =
        releases_in("PostgreSQL 15.20, PostgreSQL 9.6.3. PostgreSQL WAL, PostgreSQL 20.").collect();
    assert_eq!(releases, ["15", "9.6", "20"]);
}
