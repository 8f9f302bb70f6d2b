//! `--since` and `--until` in an archive of many segments: what lies outside is not read, and the result
//! is that of reading all. All of it is read where it comes in a tar.

use super::load::Load;
use super::spans::{Sample, json, run, sample, text};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Segments of 1 MB, of which a small part is read.
const MANY: Load = Load { records: 36_000, pace: 800_000, bulk: 3000, ..Load::PLAIN };

const DIMENSIONS: &str = "--stats=commit,rmgr,record,relation,timeline";

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn write_tar(sample: &Sample, tar: &Path) {
    let mut archive = tar::Builder::new(fs::File::create(tar).expect("a file"));
    for path in segments(sample.path()) {
        archive.append_path_with_name(&path, path.file_name().expect("a name")).expect("a tar");
    }
    archive.finish().expect("a tar");
}

/// What a report says of the records of a span, whatever was read beside.
fn counted(folder: &Path, span: &[&str]) -> Value {
    let ran = run(folder, &[&["--format=json", DIMENSIONS], span].concat());
    // The path before it differs.
    let reason = || ran.stderr.split_once(": no record").map(|(_, reason)| reason);
    let mut report = if ran.code == Some(0) { ran.json() } else { Value::from(reason()) };
    if let Some(report) = report.as_object_mut() {
        report.retain(|key, _| {
            !["input", "books", "range", "ending", "notes"].contains(&key.as_str())
        });
    }
    report
}

#[track_caller]
fn assert_same(one: &Value, other: &Value, about: &str) {
    let keys = |value: &Value| value.as_object().map(|keys| keys.keys().cloned().collect());
    let all: Vec<String> = keys(one).or(keys(other)).unwrap_or_default();
    for key in &all {
        let [one, other] = [&one[key], &other[key]].map(|value| value.to_string());
        let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let part =
            |text: &str| text[same.saturating_sub(100)..text.len().min(same + 100)].to_owned();
        assert!(one == other, "{about}: {key}:\n{}\n{}", part(&one), part(&other));
    }
    assert!(one.is_object() || one.is_string(), "{about}");
    assert!(one.is_object() == other.is_object(), "{about}");
    assert!(one.is_object() || one == other, "{about}: {one} {other}");
}

/// Spans between commits, by their place in tenths of all; and such as people type.
fn spans(times: &[i64]) -> Vec<Vec<String>> {
    let at = |tenth: usize| text(times[(times.len() - 1) * tenth / 10]);
    let both = |a: String, b: String| vec!["--since".to_owned(), a, "--until".to_owned(), b];
    let short = times[times.len() / 3];
    vec![
        both(at(3), at(4)),
        both(at(1), at(9)),
        both(text(short), text(short + 100_000)),
        both(text(short + 1), text(short + 90_000_000)),
        vec!["--since".to_owned(), at(8)],
        vec!["--until".to_owned(), at(2)],
        vec!["--since=-10min".to_owned()],
        vec!["--since".to_owned(), "20 minutes ago".to_owned(), "--until=-18min".to_owned()],
        both("2040-01-01".to_owned(), "2041-01-01".to_owned()),
        both("2001-01-01".to_owned(), "2002-01-01".to_owned()),
        vec!["--since".to_owned(), "03:00".to_owned(), "--until".to_owned(), "03:30".to_owned()],
    ]
}

#[test]
fn a_span_is_that_of_reading_all() {
    let loads = [
        MANY,
        // Few commits: most segments state no time where they begin, some none at all.
        Load { commits: 900, seed: 3, ..MANY },
        // The clock is set now and then, so that the beginnings of segments do not tell enough.
        Load { jumps: 6000, seed: 11, ..MANY },
        Load { jumps: 18_000, seed: 5, ..MANY },
    ];
    for load in loads {
        let sample = sample(&load);
        let directory = tempfile::tempdir().expect("a directory");
        let tar = directory.path().join("all.tar");
        write_tar(&sample, &tar);
        assert!(segments(sample.path()).len() > 30);
        for span in spans(&sample.commits()) {
            let span: Vec<&str> = span.iter().map(String::as_str).collect();
            let (of_files, of_tar) = (counted(sample.path(), &span), counted(&tar, &span));
            assert_same(&of_files, &of_tar, &format!("{load:?} {span:?}"));
        }
    }
}

/// Bytes that a call of the program reads from anywhere.
fn bytes_read(folder: &Path, options: &[&str]) -> u64 {
    let folder = folder.to_str().expect("UTF-8");
    // What is mapped is not read: on a slow machine the files are old enough for that.
    let mut child = crate::support::command(&[options, &["--no-mmap", folder]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .expect("walstat starts");
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("UTF-8");
    let told = fs::read_to_string(format!("/proc/{}/io", child.id())).expect("Linux tells");
    child.wait().expect("it ends");
    let line = told.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("bytes")
}

/// Each segment is read twice: to find where the span begins, and to count.
#[test]
fn what_lies_outside_is_not_read() {
    let sample = sample(&MANY);
    let times = sample.commits();
    let count = segments(sample.path()).len() as u64;
    let whole = bytes_read(sample.path(), &["-f", "json"]);
    assert!(whole >= count << 20, "{whole} of {count}");
    for part in [1, 5, 9] {
        let begin = times[times.len() * part / 10];
        let end = times[times.len() * part / 10 + times.len() / 30];
        let (since, until) = (text(begin), text(end));
        let span = ["--since", &since, "--until", &until];
        let of_span = count.div_ceil(30) + 3;
        // The beginning of each segment is looked into.
        let looks = count * (64 << 10) * 5 / 4;
        let read = bytes_read(sample.path(), &[&["-f", "json"], &span[..]].concat());
        assert!(read <= 2 * (of_span << 20) + looks, "{read} in {count} segments");
        let counted = json(sample.path(), &span);
        let input = counted["books"]["input_bytes"].as_u64().expect("bytes") >> 20;
        assert!(input <= of_span, "{input} of {count} segments, {of_span} in the span");
        let (records, commits) = sample.inside(begin, end);
        assert_eq!(counted["totals"]["count"], records);
        assert_eq!(counted["commits"]["commits"], commits);
    }
}

/// Segments that wait to be written hold old WAL, or none.
#[test]
fn segments_that_wait_to_be_written_are_not_read() {
    let sample = sample(&MANY);
    let all = segments(sample.path());
    let last = sample.commits().last().copied().expect("a commit");
    let until = text(last - 60_000_000);
    let options = ["--since", &until, "-f", "json"];
    let before = bytes_read(sample.path(), &options);
    let name = all.last().and_then(|path| path.file_name()?.to_str()).expect("a name");
    let number = u64::from_str_radix(&name[8..16], 16).expect("hexadecimal") << 12
        | u64::from_str_radix(&name[16..], 16).expect("hexadecimal");
    for (ahead, old) in (1..20).zip(&all) {
        let ahead = number + ahead;
        let name = format!("{}{:08X}{:08X}", &name[..8], ahead >> 12, ahead & 0xFFF);
        fs::copy(old, sample.path().join(name)).expect("copied");
    }
    let after = bytes_read(sample.path(), &options);
    // Where the WAL ends is looked at once while it is counted.
    assert!(after < before + (23 << 20), "{after} after, {before} before");
}
