//! `--since` and `--until`: exactly the commits whose own time lies in the span, and nothing read that
//! lies outside.

use super::load::{self, Load};
use super::twin::{self, One};
use crate::common::builder::Form;
use crate::common::whole;
use crate::support::fixtures::samples;
use crate::support::{Ran, walstat};
use serde_json::Value;
use std::path::Path;

/// RFC 3339 of microseconds since 1970.
pub fn text(time: i64) -> String {
    jiff::Timestamp::from_microsecond(time).expect("a time").to_string()
}

pub fn run(folder: &Path, options: &[&str]) -> Ran {
    walstat(&[options, &[folder.to_str().expect("UTF-8")]].concat())
}

pub fn json(folder: &Path, options: &[&str]) -> Value {
    run(folder, &[&["--format=json", "--stats=commit,rmgr"], options].concat()).exits(0).json()
}

pub struct Sample {
    pub folder: tempfile::TempDir,
    records: Vec<One>,
    anchors: Vec<(u64, i64, bool)>,
}

pub fn sample(load: &Load) -> Sample {
    let form = Form::of("15");
    let folder = load::wal(form, load).finish().write();
    let records = whole::records(folder.path(), form.version, form.timeline);
    let records = twin::ones(&records, form.version);
    let anchors = twin::anchors(&records);
    Sample { folder, records, anchors }
}

impl Sample {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Times of the commits, ascending.
    pub fn commits(&self) -> Vec<i64> {
        let commits = self.records.iter().filter(|one| one.is_commit);
        let mut times: Vec<i64> = commits.filter_map(|one| one.stated).collect();
        times.sort_unstable();
        times
    }

    /// Records, and commits, of a span.
    pub fn inside(&self, since: i64, until: i64) -> (usize, usize) {
        let is_inside = |one: &&One| {
            twin::time_of(one, &self.anchors).is_some_and(|time| (since..until).contains(&time))
        };
        let inside: Vec<&One> = self.records.iter().filter(is_inside).collect();
        (inside.len(), inside.iter().filter(|one| one.is_commit).count())
    }
}

#[test]
fn exactly_the_records_of_a_span_are_counted() {
    for jumps in [0, 500] {
        let sample = sample(&Load { records: 4000, jumps, ..Load::PLAIN });
        let times = sample.commits();
        let at = |part: usize| times[(times.len() - 1) * part / 10];
        for (since, until) in
            [(at(0), at(10) + 1), (at(3), at(7)), (at(3) + 1, at(3) + 2_000_000), (at(9), i64::MAX)]
        {
            let (count, commits) = sample.inside(since, until);
            let since_text = text(since);
            let mut options = vec!["--since", &since_text];
            let until_text = if until < i64::MAX { text(until) } else { String::new() };
            if until < i64::MAX {
                options.extend(["--until", &until_text]);
            }
            let report = json(sample.path(), &options);
            assert_eq!(report["totals"]["count"], count, "{options:?}");
            assert_eq!(report["commits"]["commits"], commits, "{options:?}");
            assert_eq!(report["books"]["unaccounted_bytes"], 0);
        }
    }
}

#[test]
fn a_tar_of_it_gives_the_same() {
    let sample = sample(&Load { records: 2000, ..Load::PLAIN });
    let times = sample.commits();
    let since = text(times[times.len() / 2]);
    let tar = sample.path().join("all.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&tar).expect("a file"));
    for entry in std::fs::read_dir(sample.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path != tar {
            archive.append_path_with_name(&path, path.file_name().expect("a name")).expect("a tar");
        }
    }
    archive.finish().expect("a tar");
    let of_files = json(sample.path(), &["--since", &since]);
    let of_tar = json(&tar, &["--since", &since]);
    assert_eq!(of_tar["totals"], of_files["totals"]);
    let relative = json(&tar, &["--since=-1s"]);
    assert_eq!(relative["totals"], json(sample.path(), &["--since=-1s"])["totals"]);
    run(Path::new("-"), &["--since", &since]).exits(2);
}

#[test]
fn a_filter_does_not_change_the_clock() {
    let sample = sample(&Load { records: 4000, ..Load::PLAIN });
    let times = sample.commits();
    let since = text(times[times.len() / 3]);
    let heap = |options: &[&str]| {
        let options =
            [&["--since", &since, "--stats=rmgr,timeline", "--bucket=1s"], options].concat();
        run(sample.path(), &[&["--format=json"], &options[..]].concat()).exits(0).json()
    };
    let (all, filtered) = (heap(&[]), heap(&["-r", "Heap2"]));
    let rows = all["rmgrs"].as_array().expect("rows");
    let of_heap = rows.iter().find(|row| row["rmgr"] == "Heap2").expect("Heap2");
    assert_eq!(filtered["totals"]["count"], of_heap["count"]);
    let buckets = |report: &Value| -> Vec<Value> {
        let buckets = report["timeline"]["buckets"].as_array().expect("buckets");
        buckets.iter().map(|bucket| bucket["time"].clone()).collect()
    };
    assert_eq!(buckets(&filtered), buckets(&all));
}

#[test]
fn a_filter_does_not_change_when_and_why_checkpoints_began() {
    let pick = |row: &Value| -> Vec<Value> {
        let keys = ["redo_lsn", "checkpoint_lsn", "time", "kind", "cause", "cause_confidence"];
        keys.map(|key| row[key].clone()).to_vec()
    };
    for sample in samples().into_iter().map(|sample| sample.wal) {
        let rows = |options: &[&str]| -> Vec<Vec<Value>> {
            let options = [&["--format=json", "--stats=checkpoint"], options].concat();
            let report = run(&sample, &options).json();
            report["checkpoints"].as_array().expect("rows").iter().map(pick).collect()
        };
        let all = rows(&[]);
        for filter in [&["-r", "Heap2"][..], &["-r", "BRIN"], &["-x", "4000000000"]] {
            assert_eq!(rows(filter), all, "{} {filter:?}", sample.display());
        }
    }
}

#[test]
fn a_span_has_only_the_checkpoints_and_the_growth_that_lie_in_it() {
    let sample = sample(&Load { records: 6000, checkpoints: 30, ..Load::PLAIN });
    let times = sample.commits();
    let (since, until) = (times[times.len() / 3], times[times.len() / 2]);
    let (since, until) = (text(since), text(until));
    let span = ["--since", &since, "--until", &until];
    let json = |options: &[&str]| run(sample.path(), options).exits(0).json();
    let dimensions = "--stats=checkpoint,replication,timeline";
    let part = json(&[&["--format=json", dimensions], &span[..]].concat());
    let rows = part["checkpoints"].as_array().expect("rows");
    let whole = json(&["--format=json", dimensions]);
    assert!(rows.len() < whole["checkpoints"].as_array().expect("rows").len());
    let counted: u64 = rows.iter().filter_map(|row| row["count"].as_u64()).sum();
    assert_eq!(Some(counted), part["totals"]["count"].as_u64());
    // A checkpoint states when it began, which may have been before the span.
    let first: jiff::Timestamp =
        part["range"]["first_time"].as_str().expect("a time").parse().expect("it");
    assert!(first >= since.parse().expect("a time"), "{first} {since}");
    for row in rows.iter().filter(|row| row["redo_lsn"].is_string()) {
        let time = row["time"].as_str().expect("a time");
        assert!(since[..19] <= time[..19] && time <= &*until, "{row}");
    }
    // A rate over the span alone: the timeline's bytes are those of the same seconds.
    let peak = part["replication"]["peak_rate"].as_u64().expect("a rate");
    let busiest = part["timeline"]["peaks"]["1s"]["total_bytes"].as_u64().expect("bytes");
    assert!(peak < busiest * 5 / 4 + 65_536, "{peak} {busiest}");
}

#[test]
fn rates_do_not_depend_on_what_else_is_counted() {
    let real = crate::support::fixtures::sample("pg15-mixed");
    for range in [&[][..], &["-s", "0/00A12345"], &["--since", "-1s"]] {
        let rates = |dimensions: &str| {
            let dimensions = format!("--stats={dimensions}");
            let ran = run(&real.wal, &[&["--format=json", &dimensions], range].concat());
            ran.exits(0).json()["replication"].clone()
        };
        let alone = rates("replication");
        assert!(alone["peak_rate"].is_u64(), "{range:?}: {alone}");
        for other in ["timeline", "checkpoint", "commit", "relation"] {
            assert_eq!(rates(&format!("replication,{other}")), alone, "{range:?} {other}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_said() {
    let sample = sample(&Load { records: 500, ..Load::PLAIN });
    let told = |options: &[&str], code: i32, words: &[&str]| {
        let ran = run(sample.path(), options).exits(code);
        for word in words {
            assert!(ran.stderr.contains(word), "{word} is not in: {}", ran.stderr);
        }
    };
    told(&["--since", "2026-02-01", "--until", "2026-01-01"], 2, &["--until is not after"]);
    told(&["--since", "2026-01-01", "--until", "2026-01-01"], 2, &["--until is not after"]);
    told(&["--since", "noon"], 2, &["expected a time like"]);
    told(&["--since", "-2x"], 2, &["expected a time like"]);
    told(&["--since", "two hours ago"], 2, &["expected a time like", "yesterday"]);
    told(&["--since", "2040-01-01"], 3, &["there is WAL from 2025-12-30T23:59:59"]);
    told(&["--until", "2020-01-01"], 3, &["there is WAL from 2025-12-30T23:59:59"]);
    told(&["--tz", "Mars/Olympus", "--since", "2026-01-01"], 2, &["Europe/Paris"]);
    told(&["--stats=timeline", "--bucket", "500ms"], 2, &["whole seconds"]);
    told(&["--stats=timeline", "--bucket", "0s"], 2, &["whole seconds"]);
    let silent = self::sample(&Load { commits: 0, checkpoints: 0, records: 100, ..Load::PLAIN });
    let ran = run(silent.path(), &["--since=-2h"]).exits(3);
    assert!(ran.stderr.contains("no record has a time"), "{}", ran.stderr);
}

#[test]
fn the_times_of_a_range_are_those_of_all_records() {
    let sample = sample(&Load { records: 4000, ..Load::PLAIN });
    let range = |options: &[&str]| json(sample.path(), options)["range"].clone();
    let (whole, heap) = (range(&[]), range(&["-r", "Heap2"]));
    assert!(whole["first_time"].is_string() && heap["start"] == whole["start"]);
    assert_eq!(
        (&heap["first_time"], &heap["last_time"]),
        (&whole["first_time"], &whole["last_time"])
    );
    // A span leaves out other times, and says so whatever else is left out.
    let times = sample.commits();
    let (since, until) = (text(times[times.len() / 3]), text(times[times.len() / 2]));
    let inside = range(&["-r", "Heap2", "--since", &since, "--until", &until]);
    let time =
        |key: &str| inside[key].as_str().expect("a time").parse::<jiff::Timestamp>().expect("it");
    assert_eq!(time("first_time"), since.parse().expect("a time"));
    assert!(time("last_time") <= until.parse().expect("a time"));
}

/// How close commits come does not depend on what else is asked for.
#[test]
fn commits_alone_are_those_beside_a_timeline() {
    let sample = sample(&Load { records: 6000, pace: 400, ..Load::PLAIN });
    let commits = |dimensions: &str| {
        let report = run(sample.path(), &["--format=json", dimensions]).exits(0).json();
        report["commits"].clone()
    };
    let alone = commits("--stats=commit");
    assert_eq!(alone, commits("--stats=commit,timeline"));
    assert!(alone["syncs_per_second_low"].as_u64().is_some_and(|syncs| syncs > 100), "{alone}");
}

/// Segments that are missing are no WAL to be replayed, nor a distance between checkpoints.
#[test]
fn what_is_missing_is_no_distance() {
    let sample = sample(&Load { records: 40_000, checkpoints: 2000, ..Load::PLAIN });
    let mut segments: Vec<_> = std::fs::read_dir(sample.path()).expect("segments").collect();
    segments.sort_by_key(|entry| entry.as_ref().expect("an entry").file_name());
    let worst = |code| {
        let report = run(sample.path(), &["--format=json"]).exits(code).json();
        let when = &report["when"];
        let bytes = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{when}"));
        (bytes(&when["worst_recovery_bytes"]), bytes(&when["spacing_bytes"]["max"]))
    };
    let (replay, spacing) = worst(0);
    let gone = 1..segments.len() - 5;
    assert!(replay < (gone.len() as u64) << 20, "the hole is larger than any replay: {replay}");
    for entry in &segments[gone] {
        std::fs::remove_file(entry.as_ref().expect("an entry").path()).expect("removed");
    }
    let (replay_without, spacing_without) = worst(4);
    assert!(replay_without <= replay && spacing_without <= spacing);
}
