//! What a partial result has beside the counts: names and settings of a data directory, and files that
//! options name. A merge gives the report of the whole where none of them is there, in any order; of two
//! data directories, or two files, it says both.

use super::{call, files, without_paths};
use crate::support::catalogs::{Catalogs, catalogs, copy_of, copy_tree};
use crate::support::fixtures::{fixtures, sample, sample_names};
use crate::support::{Ran, walstat};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The most that a partial result of one segment may have, for the default report.
const SEGMENT_BYTES_MAX: u64 = 48_000;

/// The catalogs of which there is WAL.
fn with_wal() -> Vec<Catalogs> {
    let names = sample_names();
    catalogs().into_iter().filter(|catalogs| names.contains(&catalogs.name)).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// The partial result of some files.
fn part(to: PathBuf, options: &[&str], files: &[PathBuf]) -> PathBuf {
    let words = [&["--partial", "--output", text(&to)], options].concat();
    let ran = walstat(&call(&words, files));
    assert!(matches!(ran.code, Some(0 | 4)), "{}: {}", ran.call, ran.stderr);
    to
}

/// Two parts of WAL, each made with its own options.
fn two(name: &str, options: [&[&str]; 2]) -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(&sample(name).wal);
    let (first, second) = files.split_at(files.len() / 2);
    let one = part(folder.path().join("first"), options[0], first);
    let other = part(folder.path().join("second"), options[1], second);
    (folder, [one, other])
}

fn merge(parts: &[PathBuf], options: &[&str]) -> Ran {
    walstat(&call(&[&["merge"], options].concat(), parts))
}

/// That nothing is printed but one line with these words.
fn refuses(parts: &[PathBuf], words: &[&str]) {
    let ran = merge(parts, &[]).exits(2);
    assert_eq!((ran.stdout.as_str(), ran.stderr.trim_end().lines().count()), ("", 1));
    for word in words {
        assert!(ran.stderr.contains(word), "{word} is not in: {}", ran.stderr);
    }
}

/// A directory that changes while it is merged has a segment missing: nothing is read again.
#[test]
fn a_merge_reads_no_segment_of_a_directory_that_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).expect("a folder");
    for (index, file) in files(&sample("pg15-mixed").wal).iter().take(5).enumerate() {
        if index != 2 {
            let packed = fs::read(file).expect("a segment");
            fs::write(archive.join(file.file_name().expect("a name")), packed).expect("a copy");
        }
    }
    let segments = fs::read_dir(&archive).expect("the archive").flatten().map(|file| file.path());
    let segments: Vec<PathBuf> = segments.collect();
    let part = part(folder.path().join("part"), &[], &segments);
    // As one that is written to at any time from now on.
    let directory = fs::File::open(&archive).expect("the archive");
    let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    directory.set_modified(soon).expect("a time");
    let merged = merge(&[part, archive.clone()], &["--format=json"]).exits(4).json();
    let whole = walstat(&call(&["--format=json"], &[archive])).exits(4).json();
    assert_eq!(merged["books"], whole["books"]);
    assert_eq!(merged["books"]["duplicate_bytes"], 0);
}

/// Into so many parts a sample is divided.
const PARTS: usize = 4;

#[test]
fn names_of_a_data_directory_are_in_each_part() {
    let mut named = 0;
    let all: [&[&str]; 3] = [&["--stats=table,relation,block,transaction"], &[], &["--stats"]];
    for (index, catalogs) in with_wal().into_iter().enumerate() {
        let (directory, _) = copy_of(&catalogs.name);
        let given = ["--data-directory", text(directory.path()), "--format=json"];
        let files = files(&sample(&catalogs.name).wal);
        let folder = tempfile::tempdir().expect("a folder");
        // What is counted makes no difference to what is kept of a directory: each once, one of them always.
        for options in if index == 0 { &all[..] } else { &all[..1] } {
            let options = [&given, *options].concat();
            let whole = walstat(&call(&options, &files));
            let mut parts: Vec<PathBuf> = files
                .chunks(files.len().div_ceil(PARTS))
                .enumerate()
                .map(|(index, group)| part(folder.path().join(index.to_string()), &options, group))
                .collect();
            let wanted = without_paths(&whole);
            let elsewhere = directory.path().with_extension("moved");
            fs::rename(directory.path(), &elsewhere).expect("moved");
            for _ in 0..2 {
                let merged = merge(&parts, &[]);
                assert_eq!((merged.code, &merged.stderr), (whole.code, &whole.stderr));
                assert_eq!(without_paths(&merged), wanted, "{}", catalogs.name);
                parts.reverse();
            }
            fs::rename(&elsewhere, directory.path()).expect("moved back");
            let from_it = |row: &&serde_json::Value| row["names_source"] == "datadir";
            let rows = wanted["relations"].as_array().into_iter().flatten();
            named += rows.filter(from_it).count();
        }
    }
    assert!(named > 300, "{named}");
}

/// Where a range is counted, the names before and after it are known too.
#[test]
fn names_outside_of_a_range_are_in_each_part() {
    let files = files(&sample("pg15-mixed").wal);
    let folder = tempfile::tempdir().expect("a folder");
    let range = ["--start=0/00900000", "--end=0/00A80000", "--format=json"];
    let whole = walstat(&call(&range, &files)).exits(0);
    let of_names = |ran: &Ran| ran.json()["names"].clone();
    assert_eq!(of_names(&whole)["named_bytes"], of_names(&whole)["relation_bytes"]);
    let each = files.chunks(5).enumerate();
    let parts: Vec<PathBuf> = each
        .map(|(index, group)| part(folder.path().join(index.to_string()), &range, group))
        .collect();
    assert_eq!(without_paths(&merge(&parts, &[])), without_paths(&whole));
}

/// The directory that the WAL lies in is one without being asked for; a part that lies elsewhere has none.
#[test]
fn one_part_may_be_of_the_servers_own_directory() {
    let (directory, _) = copy_of("pg15-mixed");
    let wal = directory.path().join("pg_wal");
    copy_tree(&sample("pg15-mixed").wal, &wal);
    let files = files(&wal);
    let folder = tempfile::tempdir().expect("a folder");
    let archived = folder.path().join(files[0].file_name().expect("a name"));
    fs::rename(&files[0], &archived).expect("moved");
    let paths = [&files[1..], &[archived]].concat();
    let whole = walstat(&call(&["--format=json"], &paths));
    let own = part(folder.path().join("own"), &["--format=json"], &paths[..paths.len() - 1]);
    let other = part(folder.path().join("other"), &["--format=json"], &paths[paths.len() - 1..]);
    assert_eq!(without_paths(&merge(&[own.clone(), other.clone()], &[])), without_paths(&whole));
    assert_eq!(without_paths(&merge(&[other, own], &[])), without_paths(&whole));
}

#[test]
fn a_part_of_one_segment_stays_small() {
    for catalogs in with_wal() {
        let given = ["--data-directory", text(&catalogs.directory)];
        let folder = tempfile::tempdir().expect("a folder");
        let file = files(&sample(&catalogs.name).wal)[1].clone();
        let part = part(folder.path().join("part"), &given, &[file]);
        let bytes = fs::metadata(&part).expect("a file").len();
        assert!(bytes < SEGMENT_BYTES_MAX, "{}: {bytes}", catalogs.name);
    }
}

#[test]
fn two_data_directories_are_told_with_both() {
    let (own, _) = copy_of("pg15-mixed");
    let (other, _) = copy_of("pg14-mixed");
    let (twin, _) = copy_of("pg15-mixed");
    let [own, other, twin] = [&own, &other, &twin].map(|directory| text(directory.path()));
    for second in [other, twin] {
        let given = [own, second].map(|path| ["--data-directory", path]);
        let (_folder, parts) = two("pg15-mixed", [&given[0], &given[1]]);
        let words = [
            format!("second: made with data directory {second} of cluster "),
            format!(", expected data directory {own} of cluster "),
            " as in ".to_owned(),
        ];
        refuses(&parts, &words.each_ref().map(String::as_str));
        // The one that is given to the merge is that of all.
        merge(&parts, &["--data-directory", own]).exits(0);
    }
}

#[test]
fn two_files_of_one_option_are_told_with_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = walstat(&[OsStr::new("names"), sample("pg15-mixed").wal.as_os_str()]).exits(0);
    let (path, rules) = (folder.path().join("names.csv"), folder.path().join("rules.toml"));
    for (option, path, texts) in [
        ("--names", &path, [names.stdout.clone(), names.stdout.replace("accounts", "renamed")]),
        ("--config", &rules, [0.3, 0.4].map(|share| format!("[rules]\nhot-ratio = {share}\n"))),
    ] {
        let options = [option, text(path)];
        let of = texts.each_ref().map(|text| {
            fs::write(path, text).expect("a file");
            two("pg15-mixed", [&options, &options])
        });
        let [(_first, [first, _]), (_second, [same, second])] = of;
        refuses(&[first.clone(), second], &[option, text(path), "checksum", "expected"]);
        let (_none, [_, none]) = two("pg15-mixed", [&[], &[]]);
        let merged = [[first.clone(), none.clone()], [none, first]];
        let [one, other] = merged.map(|parts| merge(&parts, &["--format=json"]));
        assert_eq!(without_paths(&one), without_paths(&other));
        drop(same);
    }
}

/// The history of a backup is given with each set of segments that needs it, as those of timelines are.
#[test]
fn the_history_of_a_backup_is_listed_once() {
    let archive = fixtures().join("backup/archive");
    let here = tempfile::tempdir().expect("a directory");
    let history = archive.join("000000010000000000000008.00000028.backup");
    let parts = [["06", "07"], ["08", "09"]].map(|names| {
        let segments = names.map(|name| archive.join(format!("0000000100000000000000{name}.zst")));
        let files = [&segments[..], std::slice::from_ref(&history)].concat();
        part(here.path().join(names[0]), &[], &files)
    });
    let merged = merge(&parts, &["-f", "json"]).exits(0).json();
    let name = history.file_name().and_then(OsStr::to_str).expect("a name");
    assert_eq!(merged["input"]["other_files"], serde_json::json!([name]));
}
