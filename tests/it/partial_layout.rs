//! Partial results are made by one release and read by another: stored ones are what is written today, to
//! the byte, and give the report of the whole.

use crate::support::fixtures::{fixtures, sample};
use crate::support::{Ran, command, finish};
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that has the stored ones renewed.
const RENEW: &str = "WALSTAT_RENEW_PARTIAL";

/// Bytes before what is compressed: the magic number, the layout's version, length and checksum.
const HEADER_BYTES: usize = 32;

/// The segments: the second one goes on where the first one ends, a transaction is open between them.
const SEGMENTS: [&str; 2] = ["000000010000000000000007.zst", "000000010000000000000008.zst"];

/// Each stored partial result, and the options with which it was made: together they have everything
/// that can be counted.
const STORED: [(&str, &[&str]); 4] = [
    ("record", &["--stats=record"]),
    ("who", &["--stats=relation,transaction,block"]),
    ("when", &["--stats=timeline,checkpoint,recovery,replication,commit", "--link-rate=1MB/s"]),
    ("report", &["--top=5"]),
];

fn stored(name: &str) -> PathBuf {
    fixtures().join("partial").join(format!("{name}.partial"))
}

/// Runs walstat where the segments lie: their paths are in a partial result, and in a report.
fn run(words: &[&str]) -> Ran {
    finish(command(words).current_dir(sample("pg15-mixed").wal))
}

/// The partial result that is written today.
fn written(options: &[&str], to: &Path) -> Vec<u8> {
    let output = to.to_str().expect("a path");
    run(&[&["--partial", "--output", output], options, &SEGMENTS].concat()).exits(0);
    fs::read(to).expect("a partial result")
}

/// What a partial result's file says of itself, and what it holds. How zstd compresses that is its own
/// affair.
fn opened(file: &[u8]) -> (&[u8], Vec<u8>) {
    (&file[..20], zstd::decode_all(&file[HEADER_BYTES..]).expect("zstd"))
}

#[test]
fn what_is_written_is_what_is_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options) in STORED {
        let today = written(options, &folder.path().join(name));
        if std::env::var_os(RENEW).is_some() {
            fs::write(stored(name), &today).expect("the fixture");
        }
        let then = fs::read(stored(name)).expect("a stored partial result");
        let is_same = opened(&today) == opened(&then);
        assert!(
            is_same,
            "{name}: the layout changed: raise LAYOUT_VERSION in src/commands/partial.rs and renew with \
             {RENEW}=1 cargo test --test it partial_layout::what_is_written_is_what, then the checksums \
             as tests/fixtures/README.md says"
        );
    }
}

/// Maps have another order in each process.
#[test]
fn what_is_written_is_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, options) in STORED {
        let first = written(options, &folder.path().join(name));
        let alone = [options, &["--threads=1"]].concat();
        assert!(written(options, &folder.path().join(name)) == first, "{name}");
        assert!(written(&alone, &folder.path().join(name)) == first, "{name} by one thread");
    }
}

#[test]
fn what_is_stored_gives_the_report_of_the_whole() {
    for (name, options) in STORED {
        let whole = run(&[options, &["--format=json"], &SEGMENTS].concat());
        let stored = stored(name);
        let stored = stored.to_str().expect("a path");
        let merged = run(&["merge", "--format=json", stored]);
        assert_eq!((merged.code, &merged.stderr), (whole.code, &whole.stderr), "{name}");
        assert_eq!(merged.json(), whole.json(), "{name}");
    }
}

/// A release that lays it out alike may be another one: the file says nothing of the program.
#[test]
fn a_partial_result_does_not_name_the_program() {
    let (_, content) = opened(&fs::read(stored("record")).expect("a stored partial result"));
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    assert!(!content.windows(version.len()).any(|bytes| bytes == version));
}
