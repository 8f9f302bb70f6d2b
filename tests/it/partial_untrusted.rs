//! A partial result may come from anybody. Whatever stands in one, a merge opens no file that it names, takes
//! no more memory than a file of its size can need, and ends with a report whose books close, or with one
//! line that refuses it. `WALSTAT_UNDER_TEST=PROGRAM` asks another build than the tests' own.

use crate::common::xorshift::Xorshift;
use crate::support::catalogs::{catalogs, copy_tree};
use crate::support::fixtures::sample;
use crate::support::{Ran, WALSTAT, finish};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SEGMENTS: [&str; 2] = ["000000010000000000000007", "000000010000000000000008"];
/// Where the compressed content begins, after magic, layout, length and checksum.
const HEADER_BYTES: usize = 32;
/// A merge of such small ones needs far less, in KiB.
const MEMORY_KB: u32 = 700 << 10;
/// Changes of each partial result.
const CHANGES: u64 = 120;

fn archive() -> TempDir {
    let here = tempfile::tempdir().expect("a directory");
    fs::create_dir(here.path().join("wal")).expect("a directory");
    for name in SEGMENTS {
        let to = here.path().join("wal").join(name);
        fs::copy(sample("pg15-mixed").segment(name), to).expect("a segment");
    }
    let all = catalogs();
    let own = all.iter().find(|catalogs| catalogs.name == "pg15-mixed").expect("catalogs");
    copy_tree(&own.directory, &here.path().join("data"));
    here
}

/// The program under test: the one just built, unless `WALSTAT_UNDER_TEST` names another.
fn program() -> OsString {
    std::env::var_os("WALSTAT_UNDER_TEST").unwrap_or_else(|| WALSTAT.into())
}

fn run(here: &Path, words: &[&str]) -> Ran {
    finish(Command::new(program()).args(words).current_dir(here))
}

/// The content of a partial result.
fn part(here: &Path, options: &[&str]) -> (Vec<u8>, Vec<u8>) {
    run(here, &[&["--partial", "-o", "part"], options, &["wal"]].concat()).exits(0);
    let file = fs::read(here.join("part")).expect("a partial result");
    let plain = zstd::decode_all(&file[HEADER_BYTES..]).expect("zstd");
    (file[..20].to_vec(), plain)
}

/// The file that holds this content.
fn packed(head: &[u8], plain: &[u8]) -> Vec<u8> {
    let body = zstd::encode_all(plain, 1).expect("zstd");
    let length = (body.len() as u64).to_le_bytes();
    [head, &length, &crc32c::crc32c(&body).to_le_bytes(), &body].concat()
}

/// Merges within little memory.
fn merge(here: &Path, file: &[u8]) -> Ran {
    fs::write(here.join("changed"), file).expect("a file");
    let script = format!("ulimit -v {MEMORY_KB}; exec timeout 120 \"$0\" merge -j1 changed");
    let mut shell = Command::new("bash");
    finish(shell.args(["-c", &script]).arg(program()).current_dir(here))
}

/// One random change.
fn change(plain: &mut Vec<u8>, random: &mut Xorshift) {
    let mut below = |most: usize| (random.next() % most.max(1) as u64) as usize;
    let at = below(plain.len());
    let from = below(plain.len());
    let count = below(64).min(plain.len() - from);
    let copied = plain[from..from + count].to_vec();
    match below(8) {
        0 => plain[at] ^= 1 << below(8),
        1 => plain[at] = below(256) as u8,
        2 => plain[at] = 0xFF,
        // The largest number that there is, where a length or a count may stand.
        3 => drop(plain.splice(at..at + 1, [[0xFF; 9].as_slice(), &[1]].concat())),
        4 => drop(plain.splice(at..at + 1, [0x80, 0x80, 0x80, 0x80, 0x04])),
        5 => drop(plain.splice(at..at, copied)),
        6 => drop(plain.drain(at..plain.len().min(at + 1 + count))),
        _ => plain.truncate(at),
    }
}

#[test]
fn any_change_is_refused_or_closes_the_books() {
    let here = archive();
    let mut random = Xorshift::new(20_261_123);
    for options in [
        &["--stats=record"][..],
        &["--stats=all", "-f", "json"],
        &["--stats=timeline,checkpoint,recovery,replication,commit"],
        &["--top=5"],
        &["--stats=table", "--data-directory", "data"],
    ] {
        let (head, plain) = part(here.path(), options);
        let sound = merge(here.path(), &packed(&head, &plain)).exits(0);
        assert!(!sound.stdout.is_empty());
        let mut refused = 0;
        for number in 0..CHANGES {
            let mut changed = plain.clone();
            (0..=number % 3).for_each(|_| change(&mut changed, &mut random));
            let ran = merge(here.path(), &packed(&head, &changed));
            let what = format!("{options:?}, change {number}: {:?} {}", ran.code, ran.stderr);
            match ran.code {
                Some(0 | 4) => assert!(!ran.stdout.is_empty(), "{what}"),
                Some(2 | 3) => {
                    refused += 1;
                    assert!(ran.stderr.starts_with("walstat: "), "{what}");
                    assert_eq!(ran.stdout, "", "{what}");
                    assert!(ran.stderr.lines().count() <= 2, "{what}");
                }
                _ => panic!("{what}"),
            }
        }
        assert!(refused > CHANGES / 10, "{options:?}: {refused}");
    }
}

/// A number as it stands in a partial result.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7F {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// The books have bytes; nothing but the sum itself tells that counts are more than there can be.
#[test]
fn counts_that_add_up_to_more_than_there_can_be_are_refused() {
    let here = archive();
    let mut parts: Vec<String> = Vec::new();
    for name in SEGMENTS {
        let segment = format!("wal/{name}");
        let rows = run(here.path(), &["--stats=record", "-f", "json", &segment]).exits(0).json();
        let rows = rows["records"].as_array().expect("rows");
        let is_insert = |row: &&Value| row["rmgr"] == "Heap" && row["record"] == "INSERT";
        let row = rows.iter().find(is_insert).expect("a row");
        let number = |key: &str| varint(row[key].as_u64().expect("a number"));
        let (count, total_bytes) = (number("count"), number("total_bytes"));
        let old = [&count[..], &total_bytes].concat();
        run(here.path(), &["--partial", "--stats=record", "-o", "part", &segment]).exits(0);
        let file = fs::read(here.path().join("part")).expect("a partial result");
        let mut plain = zstd::decode_all(&file[HEADER_BYTES..]).expect("zstd");
        let windows = plain.windows(old.len()).enumerate();
        let places: Vec<usize> = windows.filter(|(_, it)| *it == old).map(|it| it.0).collect();
        let [at] = places[..] else { panic!("{places:?}") };
        // Two halves of what a number can hold, and each a little more.
        drop(plain.splice(at..at + count.len(), varint(u64::MAX / 2 + 2)));
        fs::write(here.path().join(name), packed(&file[..20], &plain)).expect("a file");
        parts.push(name.to_owned());
    }
    let ran = run(here.path(), &["merge", &parts[0], &parts[1]]).exits(3);
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
    assert!(ran.stderr.contains("numbers that contradict each other"), "{}", ran.stderr);
}

#[test]
fn any_change_of_the_file_is_refused() {
    let here = archive();
    let (head, plain) = part(here.path(), &["--stats=record"]);
    let file = packed(&head, &plain);
    let mut random = Xorshift::new(7);
    for _ in 0..200 {
        let mut changed = file.clone();
        change(&mut changed, &mut random);
        if changed != file {
            let ran = merge(here.path(), &changed);
            assert!(matches!(ran.code, Some(2 | 3)), "{:?} {}", ran.code, ran.stderr);
            assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
        }
    }
    let ran = merge(here.path(), &[file, b"more".to_vec()].concat()).exits(3);
    assert!(ran.stderr.contains("expected"), "{}", ran.stderr);
}

/// What the options name is in the partial result: a merge elsewhere has it, and opens nothing.
#[test]
fn a_merge_opens_no_file_that_a_partial_result_names() {
    let here = archive();
    let names = run(here.path(), &["names", "-f", "csv", "wal"]).exits(0).stdout;
    fs::write(here.path().join("names.csv"), names.replace("pgbench", "renamed")).expect("a file");
    fs::write(here.path().join("rules.toml"), "[rules]\nhot-ratio = 0.35\n").expect("a file");
    let options = ["--names", "names.csv", "--config", "rules.toml", "-f", "json"];
    let report = |words: &[&str]| {
        let mut json = run(here.path(), words).exits(0).json();
        json["input"]["paths"] = serde_json::Value::Null;
        json
    };
    let whole = report(&[&options[..], &["wal"]].concat());
    run(here.path(), &[&["--partial", "-o", "part"], &options[..], &["wal"]].concat()).exits(0);
    // Others would be read now, or none.
    fs::write(here.path().join("names.csv"), "other").expect("a file");
    fs::remove_file(here.path().join("rules.toml")).expect("a file");
    for name in SEGMENTS {
        fs::write(here.path().join("wal").join(name), "other").expect("a file");
    }
    assert_eq!(report(&["merge", "part"]), whole);
}
