//! Budgets of single tables, `[[check.table]]`: told apart by name, and names that would be commands,
//! markup or another line where an output took them for more than data.

use super::archive::Archive;
use crate::support::fixtures::sample;
use crate::support::walstat;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

fn checks(archive: &Archive, config: &str, code: i32) -> Vec<(String, String)> {
    fs::write(archive.beside("walstat.toml"), config).expect("a config");
    let report = archive.check(&["-f", "json"]).exits(code).json();
    let text = |check: &Value, key: &str| check[key].as_str().expect("a text").to_owned();
    let checks = report["checks"].as_array().expect("checks").iter();
    checks.map(|check| (text(check, "check"), text(check, "verdict"))).collect()
}

/// The sample: public.accounts has 4351517 bytes, 15.03 % of them images, and 2122 updates, 2 of them
/// HOT; public.uu and public.docs are smaller.
#[test]
fn each_table_is_held_against_its_own_limits() {
    let archive = Archive::whole();
    let accounts = |limits: &str| {
        let config = format!("[[check.table]]\nname = \"public.accounts\"\n{limits}\n");
        move |archive: &Archive, code| checks(archive, &config, code)
    };
    for (limit, holds, breaks, more) in [
        ("max-wal-bytes", "4351517", "4351516", ""),
        ("max-fpi-ratio", "0.16", "0.15", "min-volume = \"1MB\""),
        ("min-hot-ratio", "0.0009", "0.5", "min-volume = \"1MB\""),
    ] {
        for (value, verdict, code) in [(holds, "pass", 0), (breaks, "fail", 1)] {
            let found = accounts(&format!("{limit} = {value}\n{more}"))(&archive, code);
            let check = (format!("{limit} public.accounts"), verdict.to_owned());
            assert!(found.contains(&check), "{check:?} is not in {found:?}");
        }
    }
    let found = accounts("min-hot-ratio = 0.5")(&archive, 0);
    let skipped = ("min-hot-ratio public.accounts".to_owned(), "skipped".to_owned());
    assert!(found.contains(&skipped), "little volume: {found:?}");
}

#[test]
fn names_are_patterns_and_one_that_no_table_has_is_skipped() {
    let archive = Archive::whole();
    let config = "[[check.table]]\nname = \"public.*\"\nmax-wal-bytes = \"2MB\"\n\
                  [[check.table]]\nname = \"public.nobody\"\nmax-wal-bytes = 1\n";
    let found = checks(&archive, config, 1);
    let verdict = |name: &str| {
        let check = found.iter().find(|(check, _)| check == &format!("max-wal-bytes {name}"));
        check.map(|(_, verdict)| verdict.as_str())
    };
    assert_eq!(verdict("public.accounts"), Some("fail"));
    assert_eq!(verdict("public.docs"), Some("pass"));
    assert_eq!(verdict("public.nobody"), Some("skipped"));
}

/// Names that PostgreSQL takes, of 63 bytes at most.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = [
        "it's \"quoted\" `so`",
        "two\nlines",
        "\n::error::not an error\r\n",
        "\u{1b}[31mred\u{7}\t",
        "\u{202e}txt.exe\u{2066}\u{200b}",
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "<script>alert(1)</script>&amp;",
        "a|b=c;1;2",
        "]]> --> ${x} $(y) %0A",
        "🐘 {{ bloat }}",
    ]
    .map(str::to_owned)
    .into();
    names.push("大".repeat(21));
    names
}

/// The row of public.accounts in a names file.
static ACCOUNTS: LazyLock<Value> = LazyLock::new(|| {
    let wal = sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("a path");
    let list = walstat(&["names", "-f", "json", wal]).exits(0).json();
    let mut rows = list["names"].as_array().expect("rows").iter();
    rows.find(|row| row["name"] == "accounts").expect("the table").clone()
});

/// A names file in which public.accounts has another name.
fn renamed(archive: &Archive, name: &str) -> String {
    let mut row = ACCOUNTS.clone();
    row["name"] = name.into();
    let path = archive.beside("names.json");
    fs::write(&path, row.to_string()).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// Whether a text has nothing that moves a cursor or turns a line around.
fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n' || "\u{202e}\u{2066}\u{200b}".contains(c))
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether any text in it holds `wanted`.
fn holds(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text.contains(wanted),
        Value::Array(list) => list.iter().any(|value| holds(value, wanted)),
        Value::Object(keys) => keys.values().any(|value| holds(value, wanted)),
        _ => false,
    }
}

/// XML that xmllint takes; all test cases are as many as there are without the name.
fn is_xml(text: &str) {
    let mut lint = Command::new("xmllint");
    let lint = lint.args(["--noout", "-"]).stdin(Stdio::piped()).spawn();
    // Where it is not installed, the tests of the format say so.
    let Ok(mut lint) = lint else { return };
    let mut input = lint.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("written");
    drop(input);
    assert!(lint.wait().expect("an end").success(), "{text}");
}

fn judged(format: &str, out: &str, name: &str) {
    match format {
        "json" | "sarif" | "gitlab" => assert!(holds(&parse(out), name), "{format}: {out}"),
        "junit" => {
            assert!(out.chars().all(|c| !c.is_control() || c == '\n'), "{out}");
            assert!(!out.contains("<script"), "{out}");
            is_xml(out);
        }
        "github" => {
            assert!(!out.contains("::error::not"), "{out}");
            let commands = out.lines().filter(|line| line.starts_with("::"));
            assert_eq!(commands.filter(|line| line.contains("max-wal-bytes")).count(), 1, "{out}");
        }
        "nagios" => {
            assert_eq!((out.lines().count(), out.matches('|').count()), (1, 1), "{out}");
            let data = out.split_once('|').expect("performance data").1;
            assert_eq!(data.matches('\'').count() % 2, 0, "{out}");
            assert!(!data.chars().any(|c| c.is_control() && c != '\n'), "{out}");
        }
        _ => assert!(is_plain(out), "{format}: {out:?}"),
    }
}

#[test]
fn a_hostile_name_is_data_in_every_output_of_a_check() {
    let archive = Archive::of_first(3);
    let config = "[[check.table]]\nname = \"public.*\"\nmax-wal-bytes = \"1MB\"\n";
    fs::write(archive.beside("walstat.toml"), config).expect("a config");
    for name in hostile() {
        let names = renamed(&archive, &name);
        for format in
            ["table", "json", "junit", "sarif", "github", "gitlab", "nagios", "markdown", "html"]
        {
            let summary = archive.beside("summary.md");
            let _ = fs::remove_file(&summary);
            let ran = archive.check_with(&["-f", format, "--names", &names], |command| {
                command.env("GITHUB_STEP_SUMMARY", &summary);
            });
            judged(format, &ran.exits(1).stdout, &name);
            let summary = fs::read_to_string(&summary).unwrap_or_default();
            assert!(!summary.replace("\\<", "").contains("<script"), "{summary}");
            let row = summary.lines().filter(|line| line.starts_with("| max-wal-bytes public"));
            let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
            assert!(row.clone().all(|line| bars(line) == 6), "{summary}");
        }
    }
}

#[test]
fn a_hostile_name_is_data_in_every_output_of_statistics() {
    let archive = Archive::of_first(3);
    let wal = archive.path();
    let wal = wal.to_str().expect("a path");
    for name in hostile() {
        let names = renamed(&archive, &name);
        let out = |format| {
            let words = ["--stats=table", "-f", format, "--names", &names, "--top", "5", wal];
            walstat(&words).exits(0).stdout
        };
        let report = parse(&out("json"));
        assert!(holds(&report["tables"], &name), "{report}");
        assert!(is_plain(&out("table")), "{name:?}");
        let screen = walstat(&["--names", &names, wal]).exits(0).stdout;
        assert!(is_plain(&screen), "{screen:?}");
        let text = out("csv");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let place = reader.headers().expect("headings").iter().position(|key| key == "name");
        let found: Vec<String> = reader
            .records()
            .map(|row| row.expect("a row")[place.expect("a name")].to_owned())
            .collect();
        let marked = if name.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{name}")
        } else {
            name
        };
        assert!(found.contains(&marked), "{marked:?} is not in {found:?}");
    }
}
