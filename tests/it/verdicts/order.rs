//! The same files have the same verdict, in whatever order, from whatever paths and in however many parts
//! they are given.

use super::timelines::timelines;
use super::{NAMES, archive, gzip, put, three};
use crate::support::{command, finish};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The report, but for its paths.
fn report(words: &[&str], paths: &[&Path]) -> (Option<i32>, Value) {
    let ran = finish(command(words).args(paths).env_remove("GITHUB_STEP_SUMMARY"));
    let mut report = ran.json();
    report["input"]["paths"] = Value::Null;
    report["notes"] = Value::Null;
    (ran.code, report)
}

#[test]
fn of_histories_that_differ_the_one_is_followed_that_the_records_prove() {
    let here = tempfile::tempdir().expect("a directory");
    let [x, h, renamed] = ["x", "h", "a"].map(|name| here.path().join(name));
    fs::create_dir_all(&x).expect("made");
    fs::create_dir_all(&h).expect("made");
    timelines(&x);
    let moved = "000000020000000000000009";
    fs::rename(x.join(moved), h.join(moved)).expect("moved");
    for switch in ["0/900000", "0/700000", "0/892E00"] {
        put(&h, "00000002.history", format!("1\t{switch}\tx\n").as_bytes());
        let check = ["check", "-f", "json"];
        let one = report(&check, &[&x, &h]);
        let histories: Vec<&Value> =
            one.1["problems"].as_array().expect("problems").iter().collect();
        let found = histories.iter().filter(|problem| problem["kind"] == "history");
        assert_eq!((found.count(), one.0), (1, Some(4)), "{switch}: {histories:?}");
        assert_eq!(report(&check, &[&h, &x]), one, "{switch}");
        fs::rename(&x, &renamed).expect("renamed");
        assert_eq!(report(&check, &[&renamed, &h]), one, "{switch}, renamed");
        fs::rename(&renamed, &x).expect("renamed");
        let parts: Vec<PathBuf> = [&x, &h]
            .into_iter()
            .enumerate()
            .map(|(index, path)| {
                let to = here.path().join(format!("p{index}"));
                let mut command = command(&["--partial", "-f", "json", "-o"]);
                finish(command.arg(&to).arg(path));
                to
            })
            .collect();
        let merge = ["merge", "-f", "json"];
        let merged = report(&merge, &[&parts[0], &parts[1]]);
        assert_eq!(merged.1["problems"], one.1["problems"], "{switch}, merged");
        assert_eq!(report(&merge, &[&parts[1], &parts[0]]), merged, "{switch}, merged");
    }
}

/// Files of one directory that are given one by one are judged as that directory is.
#[test]
fn files_have_the_verdict_of_their_directory() {
    let mut packed = three();
    packed[1].1 = gzip(&packed[1].1);
    let lower = |name: &str| {
        let mut files = three();
        files[1].0 = name.to_owned();
        files
    };
    let named = NAMES[1].replace('8', "8.bak");
    for (what, files, kind) in [
        ("packed", packed, Some("unreadable")),
        ("dotted", lower(&format!(".{}", NAMES[1])), Some("missing_segment")),
        ("other", lower("somebody's"), Some("missing_segment")),
        ("aside", lower(&named), Some("missing_segment")),
        ("good", three(), None),
    ] {
        let directory = archive(&files);
        let paths: Vec<PathBuf> =
            files.iter().map(|(name, _)| directory.path().join(name)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        for paths in [&[directory.path()][..], &paths] {
            let (code, report) = report(&["check", "-f", "json"], paths);
            let kinds: Vec<&str> = report["problems"]
                .as_array()
                .expect("problems")
                .iter()
                .map(|problem| problem["kind"].as_str().expect("a kind"))
                .collect();
            let expected: Vec<&str> = kind.into_iter().collect();
            let code_expected = if kind.is_some() { 4 } else { 0 };
            assert_eq!((kinds, code), (expected, Some(code_expected)), "{what}: {paths:?}");
        }
    }
}
