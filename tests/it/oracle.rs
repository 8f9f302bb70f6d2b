//! The promise: walstat says what PostgreSQL's own tool says, byte for byte, for real WAL of every
//! release.
//!
//! Judges are the stored answers in `tests/fixtures`; none of them was written by walstat.

use crate::support::fixtures::{Sample, sample, sample_names};
use crate::support::{first_difference, json_of, number, walstat};
use std::collections::{BTreeMap, BTreeSet};

/// One test a sample; `every_sample_has_its_test` holds the list against the folder.
macro_rules! samples {
    ($($test:ident: $sample:literal,)*) => {
        $(
            #[test]
            fn $test() {
                agrees(&sample($sample));
            }
        )*

        const TESTED: &[&str] = &[$($sample),*];
    };
}

samples! {
    release_9_5_is_counted_as_its_own_tool_counts: "pg9.5-mixed",
    release_9_6_is_counted_as_its_own_tool_counts: "pg9.6-mixed",
    release_10_is_counted_as_its_own_tool_counts: "pg10-mixed",
    release_11_is_counted_as_its_own_tool_counts: "pg11-mixed",
    release_12_is_counted_as_its_own_tool_counts: "pg12-mixed",
    release_13_is_counted_as_its_own_tool_counts: "pg13-mixed",
    release_14_is_counted_as_its_own_tool_counts: "pg14-mixed",
    release_15_is_counted_as_its_own_tool_counts: "pg15-mixed",
    release_16_is_counted_as_the_server_counts: "pg16-workload",
    release_17_is_counted_as_its_own_tool_counts: "pg17-mixed",
    release_18_is_counted_as_the_server_counts: "pg18-workload",
    release_19_is_counted_as_its_own_tool_counts: "pg19-mixed",
    images_for_consistency_checks_are_counted_as_images: "consistency",
    the_directory_of_a_killed_server_is_counted_to_its_last_record: "livedir",
    a_torn_record_that_recovery_replaced_is_not_counted: "overwrite",
    pages_of_16_kb_are_counted_like_others: "pages16k",
    a_promoted_servers_timeline_is_counted_as_its_own_tool_counts: "timeline",
    a_range_before_the_cut_of_a_file_is_counted_whole: "truncated",
}

#[test]
fn every_sample_has_its_test() {
    let tested: BTreeSet<&str> = TESTED.iter().copied().collect();
    let stored = sample_names();
    let stored: BTreeSet<&str> = stored.iter().map(String::as_str).collect();
    assert_eq!(
        tested, stored,
        "tests/it/oracle.rs lists the samples of tests/fixtures, no more and no fewer"
    );
}

/// All that the official tool or the server said about a sample must come out again.
fn agrees(sample: &Sample) {
    if sample.has_texts() {
        texts_agree(sample, "stats", &sample.range());
        totals_agree(sample, "stats-record.txt", &sample.range());
    } else {
        rows_agree(sample);
    }
    if sample.all_stats {
        texts_agree(sample, "all-stats", &[]);
        totals_agree(sample, "all-stats-record.txt", &[]);
    }
}

/// `--format pg_waldump` by resource manager and by record type, with one thread and with two.
fn texts_agree(sample: &Sample, golden: &str, range: &[&str]) {
    let wal = sample.wal.to_str().expect("a path in UTF-8");
    for (dimension, suffix) in [("--stats", ".txt"), ("--stats=record", "-record.txt")] {
        let file = format!("{golden}{suffix}");
        let want = sample.golden(&file);
        for threads in ["1", "2"] {
            let mut arguments = vec![dimension, "--format", "pg_waldump", "--threads", threads];
            arguments.extend(range);
            arguments.push(wal);
            let ran = walstat(&arguments).exits(0);
            let name = &sample.name;
            assert!(
                ran.stdout == want,
                "{name}/{file} with {threads} thread(s), {}",
                first_difference(&ran.stdout, &want)
            );
        }
    }
}

/// Count, record, image and combined bytes of a table's `Total` line.
fn total_line(text: &str) -> [i128; 4] {
    let line = text.lines().find(|line| line.starts_with("Total ")).expect("a Total line");
    let words = line.split_whitespace().skip(1).filter(|word| !word.starts_with('['));
    let numbers: Vec<i128> = words.map(|word| word.parse().expect("a number")).collect();
    numbers.try_into().expect("four numbers in the Total line")
}

/// The same sums in JSON, whatever the threads, and whatever the dimension.
fn totals_agree(sample: &Sample, golden: &str, range: &[&str]) {
    let want = total_line(&sample.golden(golden));
    for (dimension, threads) in [("--stats", "1"), ("--stats=all", "2")] {
        let mut arguments = vec![dimension, "--threads", threads];
        arguments.extend(range);
        let json = json_of(&arguments, &sample.wal);
        let keys = ["count", "record_bytes", "fpi_bytes", "total_bytes"];
        let got = keys.map(|key| number(&json["totals"], key));
        assert_eq!(got, want, "{}/{golden}: totals of {arguments:?}", sample.name);
    }
}

/// The rows of `pg_get_wal_stats`, one by one: no more, no fewer, the same numbers.
fn rows_agree(sample: &Sample) {
    let mut lines = sample.golden("wal-stats.tsv").lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines.remove(0), "record\tcount\trecord_bytes\tfpi_bytes\ttotal_bytes");
    let want: BTreeMap<String, Vec<i128>> = lines.iter().map(|line| row(line)).collect();
    assert!(want.len() > 10, "{}: {} rows only", sample.name, want.len());
    for threads in ["1", "2"] {
        let mut arguments = vec!["--stats=record", "--threads", threads];
        arguments.extend(sample.range());
        let json = json_of(&arguments, &sample.wal);
        let got = json["records"].as_array().expect("records").iter().map(|record| {
            let part = |key: &str| record[key].as_str().expect("a text").to_owned();
            let keys = ["count", "record_bytes", "fpi_bytes", "total_bytes"];
            let numbers = keys.map(|key| number(record, key)).to_vec();
            (format!("{}/{}", part("rmgr"), part("record")), numbers)
        });
        let got: BTreeMap<String, Vec<i128>> = got.collect();
        assert_eq!(got, want, "{} with {threads} thread(s)", sample.name);
    }
}

fn row(line: &str) -> (String, Vec<i128>) {
    let mut fields = line.split('\t');
    let name = fields.next().expect("a name").to_owned();
    (name, fields.map(|field| field.parse().expect("a number")).collect())
}

/// The oracle's first line of a range that begins inside a record tells what was skipped, to where
/// each release's own tool tells it.
#[test]
fn a_start_inside_a_record_is_told_as_the_releases_tool_tells_it() {
    for (name, start, padded, on_stderr) in [
        ("pg14-mixed", "0/800030", false, false),
        ("pg15-mixed", "0/700030", false, false),
        ("pg17-mixed", "0/600030", false, true),
        ("pg19-mixed", "0/900030", true, true),
    ] {
        let sample = sample(name);
        let wal = sample.wal.to_str().expect("a path in UTF-8");
        let arguments = ["--stats", "--format", "pg_waldump", "-s", start, "-e", &sample.end, wal];
        let ran = walstat(&arguments).exits(0);
        let (told, silent) =
            if on_stderr { (&ran.stderr, &ran.stdout) } else { (&ran.stdout, &ran.stderr) };
        let line =
            told.lines().find(|line| line.contains("first record is after")).unwrap_or_else(|| {
                panic!("{name}: nothing told of what was skipped:\n{}\n{}", ran.stdout, ran.stderr)
            });
        let start = if padded { format!("0/00{}", &start[2..]) } else { start.to_owned() };
        let prefix = if on_stderr { "pg_waldump: " } else { "" };
        assert!(
            line.starts_with(&format!("{prefix}first record is after {start}, at ")),
            "{name}: {line}"
        );
        assert!(line.contains(", skipping over "), "{name}: {line}");
        assert!(!silent.contains("first record"), "{name}: told twice");
    }
}
