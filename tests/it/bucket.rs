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
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use store::{Act, Get, SECRET, Store};

const URL: &str = "s3://wal/archive";

fn on(store: &Store, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command.args(["--endpoint", &store.endpoint, URL]).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", SECRET);
    finish(&mut command)
}

/// The same with the credentials of the machine, which the store gives too.
fn on_machine(store: &Store, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command.args(["--endpoint", &store.endpoint, URL]).env("AWS_REGION", "us-east-1");
    command.env("AWS_METADATA_ENDPOINT", &store.endpoint);
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
fn of_a_store_that_gives_no_parts_a_long_object_is_read_in_one_go() {
    let sample = sample("pg15-mixed");
    let folder = tempfile::tempdir().expect("a directory");
    let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    let mut tar = tar::Builder::new(packed);
    for name in sample.segments() {
        let bytes = plain(&sample, &name);
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, &name, &bytes[..]).expect("an entry");
    }
    let packed = tar.into_inner().and_then(flate2::write::GzEncoder::finish).expect("a tar");
    assert!(packed.len() > 16 << 20, "longer than four parts");
    fs::write(folder.path().join("wal.tar.gz"), packed).expect("a file");
    let store = Store::of(folder.path(), |_| Act::IgnoreRange);
    let [there, here] = both(&store, &["--stats=all", "-f", "json"], folder.path());
    assert_eq!(there, here);
    let whole = store.seen().into_iter().filter(|get| get.range.is_none()).count();
    // Once for the plan, and once to read it.
    assert!((1..=2).contains(&whole), "{whole} times");
}

#[test]
fn credentials_that_the_machine_does_not_give_for_a_moment_are_asked_for_again() {
    let sample = sample("pg15-mixed");
    let folder = packed();
    let (first, failed) = (sample.segments()[0].clone(), AtomicUsize::new(0));
    let is_begun = AtomicBool::new(false);
    let store = Store::of(folder.path(), move |get| {
        is_begun.fetch_or(get.name.starts_with(&first), Ordering::Relaxed);
        let is_token = get.name == "token" && is_begun.load(Ordering::Relaxed);
        let is_failing = is_token && failed.fetch_add(1, Ordering::Relaxed) < 3;
        if is_failing { Act::Busy } else { Act::Answer }
    });
    let arguments = ["--stats=all", "-f", "json"];
    let there = on_machine(&store, &arguments);
    let here = walstat(&[&arguments[..], &[folder.path().to_str().expect("UTF-8")]].concat());
    assert_eq!((there.code, &there.stderr), (here.code, &here.stderr));
    let (there, here) = (there.json(), here.json());
    for key in ["problems", "totals", "books"] {
        assert_eq!(there[key], here[key], "{key}");
    }
    // Where there were none from the beginning, nobody waits for them.
    let none = Store::of(folder.path(), |_| Act::Busy);
    let ran = on_machine(&none, &["check"]).exits(3);
    let told = format!(
        "walstat: {URL}: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (this machine \
         gives none either: HTTP 503 Service Unavailable)\n"
    );
    assert_eq!(ran.stderr, told);
}

#[test]
fn of_a_secret_that_a_store_repeats_no_part_is_printed() {
    let folder = packed();
    let store = Store::of(folder.path(), |_| Act::Repeat);
    let ran = on(&store, &["check", "-f", "json"]).exits(3);
    assert!(ran.stdout.contains("xxxx***") && !ran.stdout.contains("Never"), "{}", ran.stdout);
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

/// A store that does not give what lies behind this byte of an object. Where it gives no parts, the object
/// comes as far as that at first.
fn store_with_a_hole(folder: &Path, of: &str, behind: usize, gives_parts: bool) -> Store {
    let (of, asked) = (of.to_owned(), AtomicUsize::new(0));
    Store::of(folder, move |get| match &get.range {
        _ if !get.name.starts_with(&of) => Act::Answer,
        Some(range) if gives_parts && range.start >= behind => Act::Deny,
        Some(_) if gives_parts => Act::Answer,
        Some(_) => Act::IgnoreRange,
        // Once for the plan, once to read it; and then for the rest.
        None if asked.fetch_add(1, Ordering::Relaxed) < 2 => Act::Cut(behind),
        None => Act::Deny,
    })
}

#[test]
fn an_object_of_which_a_later_part_cannot_be_had_is_not_called_broken() {
    const MEGABYTE: usize = 1 << 20;
    let [raw, packed, padded] = [(); 3].map(|()| tempfile::tempdir().expect("a directory"));
    let mut wal = Wal::new(Form { segment: 16 << 20, ..Form::of("15") }, 1);
    while wal.at() < (3 << 24) - 8192 {
        wal.add(&Rec::sized(4000));
    }
    let disk = wal.finish();
    disk.files.keys().for_each(|number| disk.write_segment(raw.path(), *number));
    for (number, bytes) in &disk.files {
        let name = format!("0000000100000000000000{number:02X}.gz");
        let mut frame = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        frame.write_all(bytes).expect("gzip");
        let mut frame = frame.finish().expect("gzip");
        fs::write(packed.path().join(&name), &frame).expect("a file");
        // Zeros are nothing to gzip, but nobody knows that these are.
        frame.resize(21 * MEGABYTE, 0);
        fs::write(padded.path().join(name), frame).expect("a file");
    }
    // In the middle, the end of the segment, and what is behind it.
    let holes = [(&raw, 4), (&raw, 12), (&packed, 4), (&packed, 16), (&padded, 20)];
    for ((folder, behind), gives_parts) in
        holes.into_iter().flat_map(|hole| [(hole, true), (hole, false)])
    {
        let name = "000000010000000000000001";
        let store = store_with_a_hole(folder.path(), name, behind * MEGABYTE, gives_parts);
        let report = on(&store, &["check", "-f", "json"]).exits(4).json();
        let problems = report["problems"].as_array().expect("problems");
        let is_its = |it: &&Value| it["segment"].as_str().is_some_and(|it| it.starts_with(name));
        let problems: Vec<&Value> = problems.iter().filter(is_its).collect();
        assert_eq!(problems.len(), 1, "{behind} {gives_parts}: {problems:?}");
        assert_eq!(problems[0]["kind"], "unreadable", "{behind} {gives_parts}");
        let found = problems[0]["found"].as_str().expect("text");
        assert!(found.starts_with("AccessDenied: Not this one. (HTTP 403 Forbidden)"), "{found}");
    }
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

#[test]
fn a_bucket_in_another_region_is_told_with_what_to_set() {
    let answer = |status: &str, marks: &str, body: &str| {
        let marks = format!("{marks}Content-Length: {}\r\nConnection: close\r\n", body.len());
        format!("HTTP/1.1 {status}\r\n{marks}\r\n{body}")
    };
    let body = "<Error><Code>PermanentRedirect</Code><Message>Ask there.</Message></Error>";
    let told = |answer: &str| {
        let ran = on(&Store::saying(answer), &["check"]).exits(3);
        let line = ran.stderr.strip_prefix(&format!("walstat: {URL}: ")).expect("the URL");
        line.trim_end().to_owned()
    };
    let moved = "301 Moved Permanently";
    let said = told(&answer(moved, "x-amz-bucket-region: eu-west-1\r\n", body));
    let set = "the bucket is in the region eu-west-1: set AWS_REGION=eu-west-1";
    assert_eq!(said, format!("{set}, and give the endpoint of that region"));
    // Where it is not told, or not as a region is called.
    for marks in ["", "x-amz-bucket-region: $(eu)\r\n"] {
        let said = told(&answer(moved, marks, body));
        assert_eq!(said, "is the bucket in another region? AWS_REGION says in which");
    }
}

/// Whatever store they are of. What this one says to requests of Azure's is that there is nothing.
#[test]
fn an_empty_variable_is_not_set() {
    let folder = packed();
    let store = Store::of(folder.path(), |_| Act::Answer);
    let run = |url: &str, variables: &[(&str, &str)]| {
        let mut command = command(&["--stats", "-f", "json", "--endpoint", &store.endpoint, url]);
        finish(command.envs(variables.iter().copied()))
    };
    // The last segment is open.
    let want = run("gs://wal/archive", &[]).exits(4);
    let of_google = ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "SERVICE_ACCOUNT"];
    for name in of_google.into_iter().chain(["GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_BEARER_TOKEN"]) {
        let ran = run("gs://wal/archive", &[(name, "")]).exits(4);
        assert_eq!((&ran.stdout, &ran.stderr), (&want.stdout, &want.stderr), "{name}");
    }
    let connection = "AccountName=acct;AccountKey=c2VjcmV0";
    let set = ("AZURE_STORAGE_CONNECTION_STRING", connection);
    let of_azure = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"];
    for name in of_azure.into_iter().chain(["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_TOKEN"]) {
        let ran = run("az://wal/archive", &[set, (name, "")]).exits(3);
        assert_eq!(ran.stderr, run("az://wal/archive", &[set]).stderr, "{name}");
        assert!(ran.stderr.contains("NoSuchKey: There is none."), "{name}: {}", ran.stderr);
    }
}
