//! The same files have the same verdict, in whatever order, from whatever paths and in however many parts
//! they are given.

use super::timelines::{timelines, two_timelines};
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

/// All ways to order these.
fn orders<T: Copy>(all: &[T]) -> Vec<Vec<T>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let rest = [&all[..first], &all[first + 1..]].concat();
        orders(&rest).into_iter().map(move |rest| [vec![all[first]], rest].concat())
    };
    (0..all.len()).flat_map(with_first).collect()
}

/// A file that is found through several of the paths belongs to the outermost of them: no `restore_command`
/// looks below the directory of the others, also where what lies there is named too.
#[test]
fn what_lies_in_two_of_the_paths_belongs_to_the_outer_one() {
    let here = tempfile::tempdir().expect("a directory");
    let outer = here.path().join("wal");
    for (name, bytes) in three() {
        let below = if name == NAMES[1] { "sub/deep" } else { "" };
        put(&outer.join(below), &name, &bytes);
    }
    let sub = outer.join("sub");
    let empty = outer.join("empty");
    fs::create_dir_all(&empty).expect("made");
    let (alias, linked) = (here.path().join("alias"), here.path().join("linked"));
    std::os::unix::fs::symlink(&sub, &alias).expect("linked");
    // The same with the directory below being a link to elsewhere, which sorts before.
    fs::create_dir_all(&linked).expect("made");
    [NAMES[0], NAMES[2]].into_iter().for_each(|name| {
        fs::copy(outer.join(name), linked.join(name)).expect("copied");
    });
    std::os::unix::fs::symlink(&alias, linked.join("below")).expect("linked");
    let deep = sub.join("deep");
    let file = deep.join(NAMES[1]);
    let dotted = outer.join("empty/../sub/deep").join(NAMES[1]);
    let sets: [&[&Path]; 9] = [
        &[&outer, &sub],
        &[&outer, &deep],
        &[&outer, &file],
        &[&outer, &dotted],
        &[&outer, &alias],
        &[&outer, &alias, &deep, &file],
        &[&outer, &empty],
        &[&outer, &empty, &sub],
        &[&linked, &alias],
    ];
    let check = ["check", "-f", "json", "--as", "archive"];
    for set in sets {
        let mut reports = orders(set).into_iter().map(|paths| report(&check, &paths));
        let first = reports.next().expect("one order");
        assert_eq!(first.0, Some(4), "{set:?}: {}", first.1);
        let problems = first.1["problems"].to_string();
        assert!(problems.contains("in the directory of the others"), "{set:?}: {problems}");
        for other in reports {
            assert_eq!(other, first, "{set:?}");
        }
    }
}

/// Partial results of an archive's files, and what `merge` of them says with these paths more.
fn merged(here: &Path, parts: &[Vec<PathBuf>], more: &[&Path]) -> (Option<i32>, Value) {
    let part = |(index, files): (usize, &Vec<PathBuf>)| {
        let to = here.join(format!("{index}.part"));
        let mut command = command(&["--partial", "--as", "archive", "-o"]);
        finish(command.arg(&to).args(files));
        to
    };
    let parts: Vec<PathBuf> = parts.iter().enumerate().map(part).collect();
    let all: Vec<&Path> = parts.iter().map(PathBuf::as_path).chain(more.iter().copied()).collect();
    report(&["merge", "-f", "json"], &all)
}

/// One file was moved to a directory below.
#[test]
fn files_in_parts_belong_to_the_archive_that_is_given_to_the_merge() {
    let here = tempfile::tempdir().expect("a directory");
    let outer = here.path().join("wal");
    let file = |(name, bytes): (String, Vec<u8>)| {
        let below = if name == NAMES[1] { "old" } else { "" };
        vec![put(&outer.join(below), &name, &bytes)]
    };
    let parts: Vec<Vec<PathBuf>> = three().into_iter().map(file).collect();
    let (code, report) = merged(here.path(), &parts, &[&outer]);
    let problems = report["problems"].as_array().expect("problems");
    assert_eq!((code, problems.len()), (Some(4), 1), "{report}");
    assert_eq!(problems[0]["segment"], NAMES[1]);
    assert_eq!(problems[0]["kind"], "missing_segment");
}

/// Of histories that are packed under plain names, no part with some segments knows what the others are.
#[test]
fn packed_histories_are_judged_when_all_parts_are_together() {
    let here = tempfile::tempdir().expect("a directory");
    let outer = here.path().join("wal");
    fs::create_dir(&outer).expect("a directory");
    two_timelines(&outer);
    let mut files: Vec<PathBuf> = fs::read_dir(&outer)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let history = files.iter().position(|path| path.ends_with("00000002.history"));
    let history = files.remove(history.expect("a history"));
    let parts: Vec<Vec<PathBuf>> =
        files.iter().map(|file| vec![file.clone(), history.clone()]).collect();
    let pack = |path: &Path| {
        let packed = gzip(&fs::read(path).expect("a file"));
        fs::write(path, packed).expect("a file");
    };
    pack(&files[0]);
    let told = |(code, report): (Option<i32>, Value)| {
        let problems = report["problems"].as_array().expect("problems").iter();
        let files = problems.map(|it| it["segment"].as_str().unwrap_or_default().to_owned());
        (code, files.collect::<Vec<_>>())
    };
    let first = files[0].file_name().expect("a name").to_string_lossy().into_owned();
    let alone = (Some(4), vec![first]);
    assert_eq!(told(merged(here.path(), &parts, &[&outer])), alone, "one segment is packed");
    files[1..].iter().chain([&history]).for_each(|path| pack(path));
    for more in [&[outer.as_path()] as &[&Path], &[]] {
        assert_eq!(told(merged(here.path(), &parts, more)), (Some(0), vec![]), "all are packed");
    }
}

/// The same of partial results of such paths.
#[test]
fn what_lies_in_two_parts_belongs_to_the_outer_one() {
    let here = tempfile::tempdir().expect("a directory");
    let outer = here.path().join("wal");
    for (name, bytes) in three() {
        let below = if name == NAMES[1] { "sub" } else { "" };
        put(&outer.join(below), &name, &bytes);
    }
    let parts = [outer.clone(), outer.join("sub")].map(|path| {
        let to = here.path().join(format!("{}.part", path.file_name().unwrap().display()));
        let mut command = command(&["--partial", "--as", "archive", "-f", "json", "-o"]);
        finish(command.arg(&to).arg(path));
        to
    });
    let [one, other] = &parts;
    let merge = ["merge", "-f", "json"];
    let merged = report(&merge, &[one, other]);
    assert_eq!(merged.0, Some(4), "{}", merged.1);
    assert_eq!(report(&merge, &[other, one]), merged);
}
