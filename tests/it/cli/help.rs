//! What the program says of itself: help, version, rules.

use crate::support::{command, finish, walstat};
use std::collections::BTreeSet;
use walstat_report::advice::RULES;

/// Every option that the contract promises and this version has, and every command.
const OPTIONS: &[&str] = &[
    "--stats",
    "--start",
    "--end",
    "--timeline",
    "--limit",
    "--rmgr",
    "--xid",
    "--relation",
    "--block",
    "--fork",
    "--fullpage",
    "--record",
    "--database",
    "--format",
    "--output",
    "--top",
    "--sort",
    "--bytes",
    "--threads",
    "--no-verify-checksums",
    "--show-main-data",
    "--color",
    "--quiet",
    "--verbose",
    "--help",
    "--version",
];
const LETTERS: &[&str] = &[
    "-s", "-e", "-t", "-n", "-r", "-x", "-R", "-B", "-F", "-w", "-f", "-o", "-j", "-q", "-v", "-h",
    "-V",
];
const COMMANDS: &[&str] = &["rules"];

/// What clap knows: no option may be hidden from the help.
fn defined() -> BTreeSet<String> {
    let command = walstat::command_line();
    let long = command.get_arguments().filter_map(|argument| argument.get_long());
    long.map(|name| format!("--{name}")).collect()
}

#[test]
fn both_helps_show_every_option_and_fit_100_columns() {
    for arguments in [&["--help"][..], &["-h"], &["help"]] {
        let ran = walstat(arguments).exits(0);
        assert_eq!(ran.stderr, "", "{}", ran.call);
        let words: BTreeSet<&str> =
            ran.stdout.split(|c: char| c.is_whitespace() || "[]=<>,'".contains(c)).collect();
        let defined = defined();
        let wanted = OPTIONS.iter().chain(LETTERS).chain(COMMANDS).copied();
        for option in wanted.chain(defined.iter().map(String::as_str)) {
            assert!(words.contains(option), "{} does not show {option}", ran.call);
        }
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 100, "{}: too wide: {line}", ran.call);
        }
        for code in ["0 done", "2 usage", "3 ", "4 damage"] {
            assert!(ran.stdout.contains(code), "{} does not tell the exit codes", ran.call);
        }
    }
}

#[test]
fn options_stand_under_the_heading_they_belong_to() {
    let help = walstat(&["-h"]).exits(0).stdout;
    let heading_of = |option: &str| {
        let mut heading = "";
        for line in help.lines() {
            if line.ends_with(':') && !line.starts_with(' ') {
                heading = line.trim_end_matches(':');
            }
            if line.split_whitespace().any(|word| word.trim_end_matches(',') == option)
                && line.starts_with(' ')
            {
                return heading.to_owned();
            }
        }
        panic!("{option} is not in the help")
    };
    assert_eq!(heading_of("--start"), "Range");
    assert_eq!(heading_of("--fullpage"), "Filters");
    assert_eq!(heading_of("--format"), "Output");
    for option in ["--threads", "--no-verify-checksums"] {
        assert_ne!(heading_of(option), "Output", "{option} says how to read, not how to show");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    for argument in ["--version", "-V"] {
        let ran = walstat(&[argument]).exits(0);
        assert_eq!(ran.stdout, format!("walstat {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn rules_lists_every_rule_and_explains_each() {
    let list = walstat(&["rules"]).exits(0);
    assert_eq!(list.stderr, "");
    assert_eq!(list.stdout.lines().count(), RULES.len());
    for rule in RULES {
        let line = list.stdout.lines().find(|line| line.starts_with(&format!("{} ", rule.id)));
        assert!(
            line.is_some_and(|line| line.ends_with(rule.summary)),
            "{} in\n{}",
            rule.id,
            list.stdout
        );
        let text = walstat(&["rules", rule.id]).exits(0).stdout;
        assert!(text.starts_with(&format!("{}\n", rule.id)), "{text}");
        for part in [
            "What it looks at:",
            "Why it matters:",
            "What to do:",
            "When to ignore it:",
            "Reference:",
        ] {
            assert!(text.contains(part), "{} does not tell \"{part}\":\n{text}", rule.id);
        }
        assert!(
            !text.contains("//!") && !text.contains("use super"),
            "code in the explanation:\n{text}"
        );
    }
}

#[test]
fn colours_stay_away_from_pipes_and_from_no_color() {
    for arguments in [&["--help"][..], &["--no-such-option"]] {
        let piped = walstat(arguments);
        let refused = finish(command(arguments).env("NO_COLOR", "1").env("CLICOLOR_FORCE", "0"));
        for ran in [piped, refused] {
            assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{}", ran.call);
        }
    }
}

/// A shell takes the completions, and they know commands, options and values.
#[test]
fn completions_are_what_shells_read() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = walstat(&["completions", shell]).exits(0).stdout;
        for word in ["whatif", "stats"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
        // Not every shell is told the values.
        let has_values = ["bash", "zsh", "fish"].contains(&shell);
        assert!(!has_values || text.contains("openmetrics"), "{shell}");
    }
    let bash = walstat(&["completions", "bash"]).exits(0).stdout;
    let script = format!("{bash}\ncomplete -p walstat\n");
    let ran = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("walstat"));
    assert!(walstat(&["completions", "tcsh"]).exits(2).stderr.contains("bash"));
}

/// The man pages have what the help has.
#[test]
fn man_pages_name_every_command_and_option() {
    let page = walstat(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH walstat 1"), "{page}");
    for word in ["since", "check", "whatif", "Exit codes"] {
        assert!(page.contains(word), "{word}");
    }
    let page = walstat(&["man", "check"]).exits(0).stdout;
    assert!(page.contains(".TH walstat-check 1") && page.contains("baseline"), "{page}");
    assert!(walstat(&["man", "chek"]).exits(2).stderr.contains("did you mean \"check\""));
}

#[test]
fn what_is_no_path_but_a_word_of_ours_gets_the_right_spelling() {
    for (typed, meant) in [
        (["stats", "pg_wal"], "walstat --stats pg_wal"),
        (["relation", "pg_wal"], "walstat --stats=relation pg_wal"),
        (["chekc", "pg_wal"], "check"),
    ] {
        let told = walstat(&typed).exits(2).stderr;
        assert!(told.contains(meant), "{typed:?}: {told}");
    }
}

#[test]
fn the_long_help_has_an_example_an_option_and_the_short_one_none() {
    for command in [&[][..], &["check"], &["whatif"]] {
        let long = walstat(&[command, &["--help"]].concat()).exits(0).stdout;
        assert!(long.contains("Example: -j 4"), "{long}");
        let short = walstat(&[command, &["-h"]].concat()).exits(0).stdout;
        assert!(!short.contains("Example:"), "{short}");
    }
    assert!(walstat(&["man"]).exits(0).stdout.contains("Example: "));
}
