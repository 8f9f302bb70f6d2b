//! The papers tell the truth: what README.md shows is what the program prints, what it names is
//! there, and links lead somewhere.
//!
//! A `console` block is commands behind `$ `, each followed by its output. A command of walstat on
//! `tests/fixtures` is run and its output compared; only the elapsed time and the rate may differ,
//! and a line `...` stands for any lines. The wording around the blocks is not judged here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use walstat_format::version::VERSIONS;
use walstat_read::input::problem::ProblemKind;
use walstat_read::scan::ending::EndingKind;

const PAPERS: [&str; 10] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/nightly.md",
    "docs/object-storage.md",
    "docs/problems.md",
    "docs/recovery.md",
    "docs/scale.md",
    "docs/sql.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn paper(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A command of a `console` block and what the block shows below it.
#[derive(Debug, PartialEq, Eq)]
struct ConsoleRun {
    command: String,
    output: Vec<String>,
}

/// The commands of all `console` blocks. A `\` at the end of a line goes on in the next.
fn shown_in(text: &str) -> Vec<ConsoleRun> {
    let mut found: Vec<ConsoleRun> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next().filter(|line| *line != "```") {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => {
                    let mut command = command.to_owned();
                    while let Some(head) = command.strip_suffix('\\') {
                        command = format!("{head}{}", lines.next().unwrap_or_default().trim());
                    }
                    found.push(ConsoleRun { command, output: Vec::new() });
                }
                (None, Some(shown)) => shown.output.push(line.to_owned()),
                (None, None) => panic!("a console block begins without a command: {line}"),
            }
        }
    }
    found
}

/// The arguments of a command of walstat.
fn arguments(command: &str) -> Option<Vec<&str>> {
    let rest = command.strip_prefix("cargo run --release -- ");
    Some(rest.or_else(|| command.strip_prefix("walstat "))?.split_whitespace().collect())
}

/// A line of output without the elapsed time at its end, or the rate behind that.
fn timeless(line: &str) -> String {
    if let Some((head, _)) = line.rsplit_once(", ").filter(|_| line.ends_with("B/s")) {
        return timeless(head);
    }
    let elapsed = line.strip_suffix(" s").and_then(|line| line.rsplit_once(' '));
    match elapsed {
        Some((head, seconds)) if seconds.parse::<f64>().is_ok() => format!("{head} TIME s"),
        _ => line.to_owned(),
    }
}

/// Whether `got` is what `shown` says: its pieces between `...` stand in it in that order, the
/// first at the beginning and the last at the end.
fn agrees(shown: &[String], got: &[String]) -> Result<(), String> {
    let mut rest = got;
    let pieces: Vec<&[String]> = shown.split(|line| line == "...").collect();
    for (index, piece) in pieces.iter().enumerate() {
        let (first, last) = (index == 0, index + 1 == pieces.len());
        let at = match (first, last) {
            (true, true) if piece.len() != rest.len() => None,
            (true, _) => Some(0),
            (_, true) => rest.len().checked_sub(piece.len()),
            _ => rest.windows(piece.len().max(1)).position(|window| window == *piece),
        };
        let end = at.map(|at| at + piece.len());
        match at.zip(end).and_then(|(at, end)| rest.get(at..end)) {
            Some(found) if found == *piece => rest = &rest[end.unwrap_or_default()..],
            found => {
                return Err(format!("shown:\n{piece:#?}\nprinted:\n{:#?}", found.unwrap_or(rest)));
            }
        }
    }
    Ok(())
}

#[test]
fn what_the_readme_shows_is_what_is_printed() {
    let shown = shown_in(&paper("README.md"));
    let runs: Vec<_> = shown.iter().filter(|s| s.command.contains("tests/fixtures")).collect();
    assert!(runs.len() >= 4, "README.md shows {} runs on fixtures", runs.len());
    for ConsoleRun { command, output } in runs {
        let arguments = arguments(command)
            .unwrap_or_else(|| panic!("README.md: not a command of walstat: {command}"));
        let ran = crate::support::finish(crate::support::command(&arguments).current_dir(root()));
        let got: Vec<String> = ran.stdout.lines().map(timeless).collect();
        let want: Vec<String> = output.iter().map(|line| timeless(line)).collect();
        assert!(!want.is_empty(), "README.md shows no output of {command}");
        if let Err(difference) = agrees(&want, &got) {
            panic!("README.md, {command}\n{difference}\n{}", ran.stderr);
        }
    }
}

/// In parts, so that the live tests run beside the others.
#[test]
fn the_second_command_is_the_one_that_the_gate_runs() {
    let shown = shown_in(&paper("README.md"));
    let others = shown.iter().filter(|s| s.command.starts_with("cargo test"));
    let commands: Vec<&str> = others.map(|s| s.command.as_str()).collect();
    assert_eq!(commands, ["cargo test --all-features"], "README.md's command for the tests");
    let gate = paper(".ci/run");
    assert!(
        gate.lines().any(|line| line.trim() == format!("{} --no-run", commands[0])),
        ".ci/run does not call {}",
        commands[0]
    );
}

#[test]
fn releases_named_are_those_that_are_read() {
    let all = format!("{} to {}", VERSIONS[0].name, VERSIONS[VERSIONS.len() - 1].name);
    for name in ["README.md", "CHANGELOG.md", "docs/architecture.md"] {
        assert!(paper(name).contains(&all), "{name} does not say \"{all}\"");
    }
}

#[test]
fn options_named_in_the_readme_exist() {
    let text = paper("README.md");
    let command = walstat::command_line();
    let commands = std::iter::once(&command).chain(command.get_subcommands());
    let arguments = commands.flat_map(|command| command.get_arguments());
    let known: BTreeSet<&str> = arguments.filter_map(clap::Arg::get_long).collect();
    // Of cargo and of the release script, and what clap adds by itself.
    let others = ["release", "path", "all-features", "open", "check", "help"];
    let mut named = 0;
    for word in text.split("--").skip(1) {
        let end = word.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(word.len());
        let name = word[..end].trim_end_matches('-');
        if name.is_empty() || others.contains(&name) {
            continue;
        }
        named += 1;
        assert!(known.contains(name), "README.md names --{name}, which does not exist");
    }
    assert!(named > 10, "README.md names {named} options");
}

/// The names in the first columns of the tables whose heading line begins so.
fn first_columns(text: &str, heading: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line.starts_with(heading)) {
        let rows = lines.by_ref().skip(1).map_while(|line| line.strip_prefix("| `"));
        names.extend(rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())));
    }
    assert!(!names.is_empty(), "no table {heading}");
    names
}

#[test]
fn headings_of_the_books_are_all_told() {
    let json = crate::support::json_of(&["--stats"], &root().join("tests/fixtures/pg15-mixed"));
    let books = json["books"].as_object().expect("books");
    let keys: BTreeSet<String> = books.keys().cloned().collect();
    let told = first_columns(&paper("README.md"), "| heading |");
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), keys);
}

#[test]
fn endings_are_all_told() {
    let told = first_columns(&paper("README.md"), "| ending |");
    let kinds: Vec<&str> = EndingKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(told, kinds);
}

#[test]
fn problems_told_are_those_that_there_are() {
    let paper = paper("docs/problems.md");
    let told: Vec<&str> = paper.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |kind: &ProblemKind| format!("| `{}` | {} |", kind.name(), kind.text());
    let kinds: Vec<String> = ProblemKind::ALL.iter().map(row).collect();
    assert_eq!(told, kinds, "docs/problems.md has the table of input/problem.rs");
}

#[test]
fn links_lead_to_files() {
    let mut links = 0;
    for name in PAPERS {
        let text = paper(name);
        let folder = root().join(name).parent().expect("a folder").to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let path = target.0.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            links += 1;
            assert!(folder.join(path).exists(), "{name} links to {path}, which is not there");
        }
    }
    assert!(links > 5, "{links} links");
}

/// Paths in backticks that begin like a folder of the project are there.
#[test]
fn paths_named_exist() {
    const FOLDERS: [&str; 6] = ["src/", "crates/", "tests/", "benches/", "docs/", ".ci/"];
    for name in PAPERS {
        let text = paper(name);
        for word in text.split('`').skip(1).step_by(2).filter(|word| !word.contains(['\n', ' '])) {
            let placeholder = word.contains(['*', '<']) || word.chars().any(char::is_uppercase);
            if FOLDERS.iter().any(|folder| word.starts_with(folder)) && !placeholder {
                assert!(root().join(word).exists(), "{name} names {word}, which is not there");
            }
        }
    }
}

/// A comparison that takes everything would hold for any README.
#[test]
fn the_comparison_can_fail() {
    let lines = |text: &str| text.lines().map(timeless).collect::<Vec<_>>();
    let got = lines("a\nb\nc\nBOOKS. 0.01 s");
    for good in ["a\nb\nc\nBOOKS. 9.99 s", "a\n...\nBOOKS. 0.02 s", "a\n...", "...\nb\n..."] {
        assert_eq!(agrees(&lines(good), &got), Ok(()), "{good}");
    }
    for bad in ["a\nb\nc", "a\n...\nd", "b\n...", "...\nc\n...\nb\n...", "a\nb\nc\nBOOKS. x s", ""]
    {
        assert!(agrees(&lines(bad), &got).is_err(), "{bad}");
    }
    let shown = shown_in("```console\n$ walstat \\\n    x\nout\n```\n```sh\n$ no\n```\n");
    assert_eq!(shown, [ConsoleRun { command: "walstat x".into(), output: vec!["out".into()] }]);
}

#[test]
fn the_paper_of_advice_is_what_the_rules_say() {
    let written = "cargo run --example advice > docs/advice.md";
    assert!(paper("docs/advice.md") == walstat_report::advice::paper(), "{written}");
}
