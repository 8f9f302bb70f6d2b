//! `docs/nightly.md`: each command of it is run, as a timer, cron or a monitoring server would.

use super::Archive;
use crate::support::WALSTAT;
use crate::support::catalogs::copy_tree;
use crate::support::fixtures::unpacked;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The commands of the paper: blocks of shell, and what others are told to run.
fn commands(paper: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut kind = "";
    for line in paper.lines() {
        if let Some(begun) = line.strip_prefix("```") {
            kind = begun;
            continue;
        }
        let line = line.trim();
        let command = match kind {
            "sh" => Some(line.to_owned()),
            "ini" => line.strip_prefix("ExecStart=").map(|command| with_percents(command, "%%")),
            // Five fields of time, and the user.
            "crontab" => line.splitn(7, ' ').nth(6).map(|command| with_percents(command, "\\%")),
            "nagios" => line.strip_prefix("command_line").map(str::to_owned),
            "icinga2" => line
                .strip_prefix("command = [")
                .map(|words| words.trim_end_matches(']').replace("\", \"", " ").replace('"', "")),
            _ => None,
        };
        commands.extend(command);
    }
    commands
}

/// A command with each `%` that was written in another way. By itself it is no `%` there.
fn with_percents(command: &str, written: &str) -> String {
    assert!(!command.replace(written, "").contains('%'), "{command}");
    command.replace(written, "%")
}

#[test]
fn every_command_of_the_paper_does_what_it_says() {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/nightly.md");
    let paper = fs::read_to_string(paper).expect("docs/nightly.md");
    let commands = commands(&paper);
    assert_eq!(commands.len(), 9, "{commands:#?}");
    let archive = Archive::with(12);
    let tree = unpacked("archives/trees.tar.zst").join("trees/pgbackrest-zst/archive/demo");
    copy_tree(&tree, &archive.path("demo"));
    // The server's last segment, which it archived when it was stopped.
    let group = archive.path("demo/15-1/0000000100000000");
    for entry in fs::read_dir(group).expect("a group") {
        let path = entry.expect("an entry").path();
        if path.display().to_string().contains("00000001000000000000000F") {
            fs::remove_file(path).expect("a file");
        }
    }
    let places = [
        ("/var/lib/walstat", "states"),
        ("/var/lib/archive", "archive"),
        ("/var/lib/node_exporter", "states"),
        ("/var/lib/pgbackrest/archive/demo", "demo"),
    ];
    fs::create_dir(archive.path("states")).expect("a directory");
    let directory = Path::new(WALSTAT).parent().expect("a directory").display();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap_or_default());
    for (rounds, command) in commands.iter().enumerate() {
        let placed = places.iter().fold(command.clone(), |text, (from, to)| text.replace(from, to));
        let ran = Command::new("sh")
            .args(["-c", &placed])
            .current_dir(archive.here.path())
            .env("PATH", &path)
            .output()
            .expect("a shell");
        let stdout = String::from_utf8_lossy(&ran.stdout);
        let said = format!("{command}\n{stdout}{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{said}");
        let is_known = rounds > 0 && stdout.contains("earlier round");
        assert!(!is_known || command.contains("demo") || stdout.contains("read now: 0"), "{said}");
        assert!(!command.contains("said=") || said.trim() == command.trim(), "{said}");
        assert!(!command.contains("nagios") || stdout.starts_with("WALSTAT OK"), "{said}");
        assert!(
            !command.contains("--because") || stdout.contains("ticket 4711 (not used"),
            "{said}"
        );
    }
    let metrics = fs::read_to_string(archive.path("states/walstat.prom")).expect("metrics");
    assert!(metrics.contains("walstat_state_known_segments 12\n"), "{metrics}");
    assert!(archive.path("states/demo.state").exists());
}

/// The settings of the paper are read as it says.
#[test]
fn the_configuration_of_the_paper_is_read() {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/nightly.md");
    let paper = fs::read_to_string(paper).expect("docs/nightly.md");
    let (_, rest) = paper.split_once("```toml\n").expect("a block");
    let (text, _) = rest.split_once("```").expect("its end");
    let archive = Archive::with(3);
    fs::write(archive.path("walstat.toml"), text).expect("a file");
    let report = archive.check(&["-f", "json"]).exits(0).json();
    assert_eq!(report["accepted_gaps"][0]["start_lsn"], "0/20000000");
    assert_eq!(report["accepted_gaps"][0]["used"], false);
}
