//! The house's rules, held by a test: who may import whom, how long files and functions may be,
//! where `unsafe` lives, what the papers say.

mod papers;
mod source;

use papers::releases_in;
use source::{Source, functions, imports, lines_below, sources, without_tests};
use std::fmt::Write as _;

/// Longest file, without its tests.
const FILE_LINES: usize = 500;
/// Longest function, from its `fn` to its closing brace.
const FUNCTION_LINES: usize = 60;
/// Widest line, in characters.
const COLUMNS: usize = 110;

/// What the files of a floor may import, as paths below `crate::`; see `docs/architecture.md`.
/// `main.rs` and `lib.rs` are the doors and may use everything.
const FLOORS: [(&str, &[&str]); 7] = [
    ("wal", &["wal"]),
    ("input", &["input", "wal"]),
    ("scan", &["scan", "input", "wal"]),
    ("analyse", &["analyse", "scan::record", "wal"]),
    ("report", &["report", "analyse", "scan", "input", "wal"]),
    ("render", &["render", "report::model"]),
    ("cli", &["cli", "render", "report", "analyse", "scan", "input", "wal"]),
];

/// The only files with `unsafe` in them.
const UNSAFE_FILES: [&str; 2] = ["src/wal/crc.rs", "src/wal/crc/x86.rs"];

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

#[test]
fn floors_import_downwards_only() {
    none(complain(&sources(), |source, line| {
        let allowed = allowed(source)?;
        let wrong = imports(source, line).into_iter().find(|path| !may_import(path, allowed))?;
        Some(format!(
            "imports {wrong}; this floor may use {}: move the code down",
            allowed.join(", ")
        ))
    }));
}

fn allowed(source: &Source) -> Option<&'static [&'static str]> {
    let floor = source.floor()?;
    let entry = FLOORS.iter().find(|(name, _)| *name == floor);
    Some(
        entry
            .unwrap_or_else(|| panic!("{}: no floor is called {floor}; see FLOORS", source.name))
            .1,
    )
}

/// `scan::record` covers `scan::record` and everything below it.
fn may_import(path: &str, allowed: &[&str]) -> bool {
    allowed.iter().any(|floor| {
        path.strip_prefix(floor).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

#[test]
fn only_the_floors_that_may_open_files_and_only_the_door_prints() {
    none(complain(&sources(), |source, line| {
        let floor = source.floor()?;
        if line.contains("std::fs") && !["input", "cli"].contains(&floor) {
            return Some("opens files; bytes come through src/input".into());
        }
        let prints = ["println!", "print!("].iter().any(|name| line.contains(name));
        (prints && floor != "cli").then(|| "prints; only src/cli and src/main.rs do".into())
    }));
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
fn unsafe_lives_in_two_files_and_says_why_it_is_sound() {
    let is_unsafe = |line: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe")
    };
    let sources = sources();
    let mut complaints = complain(&sources, |source, line| {
        let wrong = is_unsafe(line) && !UNSAFE_FILES.contains(&source.name.as_str());
        wrong.then(|| format!("unsafe belongs into {}", UNSAFE_FILES.join(" or ")))
    });
    for source in sources.iter().filter(|source| UNSAFE_FILES.contains(&source.name.as_str())) {
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

/// Which release wrote the WAL is asked of the table in `wal/version.rs` only.
#[test]
fn releases_are_compared_in_one_file_only() {
    const HOME: [&str; 3] = ["src/wal/version.rs", "src/wal/rmgr.rs", "src/wal/payload/"];
    const COMPARISONS: [&str; 11] = [
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
        let home = HOME.iter().any(|home| source.name.starts_with(home));
        (!home).then(|| {
            format!("\"{found}\" compares releases: give src/wal/version.rs a column and ask that")
        })
    }));
}

#[test]
fn nothing_is_left_for_later() {
    // In two pieces, so that this file does not complain of itself.
    let banned = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["dbg", "!("], ["todo", "!("]]
        .map(|pair| pair.concat());
    let lines = lines_below(&["src", "tests", "benches", "examples", "docs"], &[".rs", ".md"]);
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
    let lines = lines_below(&["src", "tests", "benches", "examples"], &[".rs"]);
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
    let wrong = |name: &str, line: &str| {
        let source = made_up(name, line);
        let allowed = allowed(&source).expect("a floor");
        imports(&source, line).iter().any(|path| !may_import(path, allowed))
    };
    assert!(wrong("src/wal/page.rs", "use crate::scan::reader::Scope;"));
    assert!(wrong("src/wal/page.rs", "use crate::{scan, wal};"));
    assert!(wrong("src/wal/payload/xact.rs", "use super::super::super::input::source;"));
    assert!(wrong("src/render/table.rs", "    let all = crate::report::build::build();"));
    assert!(wrong("src/analyse/totals.rs", "use crate::scan::recorder;"));
    assert!(!wrong("src/analyse/totals.rs", "use crate::scan::record::{Observe, Record};"));
    assert!(!wrong("src/wal/payload/xact.rs", "use super::super::lsn::Lsn;"));
    assert!(!wrong("src/render/screen.rs", "use super::table::{Style, plain};"));

    let text = "//! Doc.\nfn short() {}\nimpl X {\n    pub(crate) fn long(\n        a: u8,\n    ) -> u8 {\n\
                \n    }\n}\n#[cfg(test)]\nmod tests {\n    fn f() {\n    }\n}\nconst fn last() {\n}\n";
    let source = made_up("src/wal/x.rs", text);
    let found = functions(&source);
    let found: Vec<_> =
        found.iter().map(|(line, name, lines)| (*line, name.as_str(), *lines)).collect();
    assert_eq!(found, [(2, "short", 1), (4, "long", 5), (15, "last", 2)]);
    assert_eq!(source.lines.last().map(|(number, _)| *number), Some(16));

    let releases: Vec<String> =
        releases_in("PostgreSQL 15.20, PostgreSQL 9.6.3. PostgreSQL WAL, PostgreSQL 20.").collect();
    assert_eq!(releases, ["15", "9.6", "20"]);
}
