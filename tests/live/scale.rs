//! The commands of docs/scale.md: GNU parallel and the script of the Job, as the paper has them, come to the
//! report of one machine. Only the number of segments at a time is smaller, since the sample is.

use crate::python::path;
use crate::support::fixtures::sample;
use crate::support::missing::have;
use crate::support::{finish, walstat};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The blocks of a paper in a language.
fn blocks(language: &str) -> Vec<String> {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scale.md");
    let text = fs::read_to_string(paper).expect("the paper");
    let begin = format!("```{language}\n");
    let blocks = text.split(begin.as_str()).skip(1);
    blocks.filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

fn bash(script: &str, folder: &Path) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-euc", script]).env("PATH", path()).env("HOME", folder).current_dir(folder);
    bash
}

/// A folder with a copy of a sample in `archive`, damaged where `damaged` says so, and other files beside it.
fn archive(damaged: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).expect("a folder");
    for entry in fs::read_dir(&sample("timeline").wal).expect("a folder") {
        let entry = entry.expect("an entry");
        let mut bytes = fs::read(entry.path()).expect("readable");
        let name = entry.file_name();
        if damaged && name == "000000010000000000000008" {
            bytes[5000] ^= 1;
        }
        fs::write(archive.join(name), bytes).expect("written");
    }
    let backup = "000000010000000000000007.00000028.backup";
    for (name, text) in [(backup, "START WAL LOCATION"), ("README", "Nightly.")] {
        fs::write(archive.join(name), text).expect("written");
    }
    folder
}

fn without_paths(text: &str) -> Value {
    let mut json: Value = serde_json::from_str(text).expect("JSON");
    json["input"]["paths"] = Value::Null;
    json
}

#[test]
fn parallel_comes_to_the_report_of_one_machine() {
    if !have(&["parallel"]) {
        return;
    }
    let commands: String = blocks("sh").concat().replace("-N 64", "-N 3").replace("-N 16", "-N 2");
    assert!(commands.matches("parallel").count() == 2 && commands.contains("walstat merge"));
    for damaged in [false, true] {
        let folder = archive(damaged);
        let one = ["-f", "json", "--stats=record,table", "archive"];
        let mut one = crate::support::command(&one);
        let one = finish(one.current_dir(folder.path()));
        let ran = finish(&mut bash(&commands, folder.path()));
        assert_eq!(ran.code, one.code, "{}", ran.stderr);
        assert_eq!(ran.code, Some(if damaged { 4 } else { 0 }));
        let report = fs::read_to_string(folder.path().join("report.json")).expect("a report");
        assert_eq!(without_paths(&report), without_paths(&one.stdout));
    }
}

#[test]
fn the_parts_of_a_job_come_to_the_report_of_one_machine() {
    let folder = archive(true);
    let lists = blocks("sh").remove(0);
    let script = blocks("bash").remove(0).replace("64", "3").replace("63", "2");
    fs::write(folder.path().join("part.sh"), script).expect("written");
    finish(&mut bash(&lists, folder.path())).exits(0);
    let segments = fs::read_to_string(folder.path().join("segments")).expect("a list");
    let parts = segments.lines().count().div_ceil(3);
    assert!(parts > 2, "{segments}");
    for index in 0..parts {
        let mut part = bash("bash ./part.sh", folder.path());
        finish(part.env("JOB_COMPLETION_INDEX", index.to_string())).exits(0);
    }
    let merged =
        finish(&mut bash("walstat merge -f json parts/*.part archive", folder.path())).exits(4);
    let archive = folder.path().join("archive");
    let one = ["-f", "json", "--stats=record,table", archive.to_str().expect("UTF-8")];
    let one = walstat(&one).exits(4);
    assert_eq!(without_paths(&merged.stdout), without_paths(&one.stdout));
}
