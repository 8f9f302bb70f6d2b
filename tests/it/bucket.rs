//! Archives in a bucket, whose store misbehaves: what is said of them is what is said of the same on disk, or
//! what the store says.

mod store;

use crate::common::builder::{Form, Wal};
use crate::common::record::{Rec, TRANSACTION};
use crate::support::fixtures::sample;
use crate::support::pgbackrest::sha1_of;
use crate::support::wal::plain;
use crate::support::{Ran, command, finish, walstat};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use store::{Act, Get, Store};

const URL: &str = "s3://wal/archive";

fn on(store: &Store, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command.args(["--endpoint", &store.endpoint, URL]).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "NeverPrintThis");
    finish(&mut command)
}

/// What is printed of a store, with the directory in the place of the URL, and of the directory.
fn both(store: &Store, arguments: &[&str], directory: &Path) -> [(Option<i32>, String, String); 2] {
    let directory = directory.to_str().expect("UTF-8");
    let there = on(store, arguments);
    let here = walstat(&[arguments, &[directory]].concat());
    let level = |text: &str| text.replace(URL, directory);
    [
        (there.code, level(&there.stdout), level(&there.stderr)),
        (here.code, here.stdout, here.stderr),
    ]
}

/// Segments that are longer than a first look, packed so that they stay so.
fn packed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    let sample = sample("pg15-mixed");
    for name in sample.segments() {
        let bytes = plain(&sample, &name);
        let frame = zstd::encode_all(&bytes[..], 1).expect("zstd");
        fs::write(folder.path().join(format!("{name}.zst")), frame).expect("a file");
    }
    folder
}

#[test]
fn a_store_that_sends_another_part_than_was_asked_for_is_read_all_the_same() {
    let folder = packed();
    for act in [Act::IgnoreRange, Act::WrongRange] {
        let store = Store::of(folder.path(), move |_| act);
        for arguments in [&["--stats=all", "-f", "json"][..], &["check", "-f", "json"]] {
            let [there, here] = both(&store, arguments, folder.path());
            assert_eq!(there, here, "{act:?}");
        }
        let is_part = |get: &Get| get.range.is_some();
        let parts = store.seen().into_iter().filter(is_part).count();
        assert!(parts > 0, "{act:?}");
    }
}

#[test]
fn an_object_that_nobody_may_see_is_one_problem() {
    let folder = tempfile::tempdir().expect("a directory");
    let sample = sample("pg15-mixed");
    let names = sample.segments();
    for name in &names {
        let bytes = plain(&sample, name);
        fs::write(folder.path().join(format!("{name}-{}", sha1_of(&bytes))), bytes)
            .expect("a file");
    }
    let denied = names[1].clone();
    let store = Store::of(folder.path(), move |get| {
        if get.name.starts_with(&denied) { Act::Deny } else { Act::Answer }
    });
    let report = on(&store, &["check", "-f", "json"]).exits(4).json();
    let is_its = |it: &&Value| it["segment"].as_str().is_some_and(|it| it.starts_with(&names[1]));
    let problems = report["problems"].as_array().expect("problems");
    let problems: Vec<&Value> = problems.iter().filter(is_its).collect();
    let kinds: Vec<&str> = problems.iter().filter_map(|it| it["kind"].as_str()).collect();
    assert_eq!(kinds, ["unreadable"], "{problems:?}");
    let found = problems[0]["found"].as_str().unwrap_or_default();
    assert_eq!(found, "AccessDenied: Not this one. (HTTP 403 Forbidden)");
}

/// Segments of a minute each, of which those in the middle were written by one transaction.
fn a_load_in_an_hour(folder: &Path) -> usize {
    const SEGMENTS: u64 = 60;
    let mut wal = Wal::new(Form::of("15"), 1);
    let mut xid = 1000;
    while wal.at() >> 20 <= SEGMENTS {
        xid += 1;
        wal.add(&Rec { xid, ..Rec::sized(8000) });
        if !(10..50).contains(&(wal.at() >> 20)) {
            // 2025-12-31 and so many microseconds.
            let passed = 60_000_000 * (wal.at() - (1 << 20)) as i64 / (1 << 20);
            let main = (820_454_400_000_000 + passed).to_le_bytes().to_vec();
            wal.add(&Rec { xid, main, ..Rec::new(TRANSACTION, 0x00, 0) });
        }
    }
    let disk = wal.finish();
    disk.files.keys().for_each(|number| disk.write_segment(folder, *number));
    disk.files.len()
}

#[test]
fn a_span_of_time_beside_a_long_load_fetches_what_it_reads_on_disk() {
    let folder = tempfile::tempdir().expect("a directory");
    let count = a_load_in_an_hour(folder.path());
    for (since, until) in [("00:53:10", "00:55:20"), ("00:03:10", "00:05:20"), ("00:48", "00:52")] {
        let store = Store::of(folder.path(), |_| Act::Answer);
        let (since, until) = (format!("2025-12-31 {since}"), format!("2025-12-31 {until}"));
        let span = ["--since", &since, "--until", &until, "--stats", "-f", "json"];
        let there = on(&store, &span).exits(0).json();
        let here = walstat(&[&span[..], &[folder.path().to_str().expect("UTF-8")]].concat());
        let here = here.exits(0).json();
        for key in ["range", "totals", "books"] {
            assert_eq!(there[key], here[key], "{since}: {key}");
        }
        let is_whole = |get: &&Get| get.range.as_ref().is_none_or(|range| range.len() > 1 << 19);
        let seen = store.seen();
        let whole: BTreeSet<&str> =
            seen.iter().filter(is_whole).map(|get| get.name.as_str()).collect();
        let read = here["books"]["input_bytes"].as_u64().expect("a number") >> 20;
        assert!(whole.len() as u64 <= read + 5, "{since}: {} of {count}: {whole:?}", whole.len());
    }
}

#[test]
fn clusters_in_folders_beside_each_other_are_named_and_one_is_to_be_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, of) in [("one", "pg15-mixed"), ("two", "timeline")] {
        let own = folder.path().join(name);
        fs::create_dir(&own).expect("a directory");
        let sample = sample(of);
        for segment in sample.segments() {
            fs::write(own.join(&segment), plain(&sample, &segment)).expect("a file");
        }
    }
    let store = Store::of(folder.path(), |_| Act::Answer);
    let [there, here] = both(&store, &["check"], folder.path());
    assert_eq!(there, here);
    let path = folder.path().display();
    let told =
        format!("walstat: {path}: holds several archives: {path}/one and {path}/two; ask for");
    assert!(here.0 == Some(2) && here.2.starts_with(&told), "{here:?}");
    // A folder below the segments is none of its own: what lies in it is told as what it is.
    fs::create_dir(folder.path().join("one/below")).expect("a directory");
    let foreign = &sample("timeline").segments()[0];
    let to = folder.path().join("one/below").join(foreign);
    fs::rename(folder.path().join("two").join(foreign), to).expect("moved");
    let one = folder.path().join("one");
    let report = walstat(&["check", "-f", "json", one.to_str().expect("UTF-8")]).exits(4).json();
    let problems = report["problems"].as_array().expect("problems");
    assert!(problems.iter().any(|it| it["kind"] == "other_release"), "{problems:?}");
}
