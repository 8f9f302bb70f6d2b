//! What `docs/ci.md` says is run: each `console` block in a shell at the project's root.

use crate::support::WALSTAT;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A command of the manual and what it is said to print and to exit with.
struct Example {
    command: String,
    output: Vec<String>,
    code: i32,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The examples: `$ command`, its output, and `$ echo $?` with the exit code if it is not 0.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_block = false;
    let mut asked_for_code = false;
    for line in text.lines() {
        match (in_block, line) {
            (false, "```console") => in_block = true,
            (true, "```") => in_block = false,
            (true, "$ echo $?") => asked_for_code = true,
            (true, line) => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => {
                    asked_for_code = false;
                    examples.push(Example { command: command.to_owned(), output: vec![], code: 0 });
                }
                (None, Some(example)) if asked_for_code => {
                    example.code = line.parse().expect("an exit code");
                }
                (None, Some(example)) => example.output.push(line.to_owned()),
                (None, None) => panic!("output without a command: {line}"),
            },
            _ => {}
        }
    }
    examples
}

/// A line without what differs from run to run: how long it took.
fn timeless(line: &str) -> String {
    let end = line.find("checksum verified, ").map(|at| at + "checksum verified".len());
    let end = end.or_else(|| line.find(" time=")).unwrap_or(line.len());
    line[..end].to_owned()
}

#[test]
fn the_examples_do_what_they_say() {
    let text = fs::read_to_string(root().join("docs/ci.md")).expect("docs/ci.md");
    let examples = examples(&text);
    assert!(examples.len() >= 5, "{} examples", examples.len());
    let directory = Path::new(WALSTAT).parent().expect("a directory");
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    for example in examples {
        let ran = Command::new("sh")
            .args(["-c", &example.command])
            .current_dir(root())
            .env("PATH", &path)
            .env_remove("GITHUB_STEP_SUMMARY")
            .output()
            .expect("a shell");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(example.code), "{}\n{stdout}{stderr}", example.command);
        let said: Vec<String> = stdout.lines().chain(stderr.lines()).map(timeless).collect();
        let want: Vec<String> = example.output.iter().map(|line| timeless(line)).collect();
        assert_eq!(said, want, "{}", example.command);
    }
}

/// Every option that the manual, the action and the template name exists.
#[test]
fn every_option_that_is_named_exists() {
    let help = Command::new(WALSTAT).args(["check", "--help"]).output().expect("help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for file in ["docs/ci.md", "action.yml", "templates/gitlab-walstat.yml"] {
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let calls = text.lines().filter(|line| line.contains("walstat check"));
        let words = calls
            .flat_map(|line| line.split(|c: char| c.is_whitespace() || "`\"'=,()".contains(c)));
        for option in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            assert!(help.contains(option), "{file}: {option}");
        }
    }
}

/// The limits in the manual's `walstat.toml` are read.
#[test]
fn the_config_of_the_manual_is_one() {
    let text = fs::read_to_string(root().join("docs/ci.md")).expect("docs/ci.md");
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let config = blocks.collect::<Vec<_>>().concat();
    assert!(["[check]", "[rules]", "[[check.table]]"].iter().all(|table| config.contains(table)));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("walstat.toml");
    fs::write(
        &path,
        config.replace("baseline", "# baseline").replace("max-growth", "# max-growth"),
    )
    .expect("a file");
    let sample = root().join("tests/fixtures/pg15-mixed");
    let ran = Command::new(WALSTAT).arg("check").arg(sample).arg("--config").arg(path).output();
    let ran = ran.expect("walstat");
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    assert!(matches!(ran.status.code(), Some(0 | 1)), "{ran:?}");
}
