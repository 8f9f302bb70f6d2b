//! Partial results are made by one release and read by another: stored ones are what is written today, to
//! the byte, and give the report of the whole.

use crate::support::catalogs::{catalogs, copy_tree};
use crate::support::fixtures::{fixtures, sample};
use crate::support::{Ran, command, finish};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The variable that has the stored ones renewed.
const RENEW: &str = "WALSTAT_RENEW_PARTIAL";

/// Bytes before what is compressed: the magic number, the layout's version, length and checksum.
const HEADER_BYTES: usize = 32;

/// The segments: the second one goes on where the first one ends, a transaction is open between them.
const SEGMENTS: [&str; 2] = ["000000010000000000000007.zst", "000000010000000000000008.zst"];

/// Each stored partial result, and the options with which it was made: together they have everything
/// that can be counted.
const STORED: [(&str, &[&str]); 5] = [
    ("record", &["--stats=record"]),
    ("who", &["--stats=relation,transaction,block,kind"]),
    ("when", &["--stats=timeline,checkpoint,recovery,replication,commit", "--link-rate=1MB/s"]),
    ("report", &["--top=5"]),
    ("catalogs", &["--stats=table", "--data-directory=data"]),
];

fn stored(name: &str) -> PathBuf {
    fixtures().join("partial").join(format!("{name}.partial"))
}

/// The segments, and the data directory of their server. Paths are in a partial result, and in a report: so
/// all is run here.
fn here() -> TempDir {
    let here = tempfile::tempdir().expect("a directory");
    for name in SEGMENTS {
        let from = sample("pg15-mixed").wal.join(name);
        fs::copy(from, here.path().join(name)).expect("a segment");
    }
    let all = catalogs();
    let own = all.iter().find(|catalogs| catalogs.name == "pg15-mixed").expect("catalogs");
    copy_tree(&own.directory, &here.path().join("data"));
    here
}

fn run(here: &TempDir, words: &[&str]) -> Ran {
    finish(command(words).current_dir(here.path()))
}

/// The partial result that is written today.
fn written(here: &TempDir, options: &[&str]) -> Vec<u8> {
    let to = here.path().join("written");
    let output = to.to_str().expect("a path");
    run(here, &[&["--partial", "--output", output], options, &SEGMENTS].concat()).exits(0);
    fs::read(to).expect("a partial result")
}

/// What a partial result's file says of itself, and what it holds. How zstd compresses that is its own
/// affair.
fn opened(file: &[u8]) -> (&[u8], Vec<u8>) {
    (&file[..20], zstd::decode_all(&file[HEADER_BYTES..]).expect("zstd"))
}

#[test]
fn what_is_written_is_what_is_stored() {
    let here = here();
    for (name, options) in STORED {
        let today = written(&here, options);
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
    let here = here();
    for (name, options) in STORED {
        let first = written(&here, options);
        let alone = [options, &["--threads=1"]].concat();
        assert!(written(&here, options) == first, "{name}");
        assert!(written(&here, &alone) == first, "{name} by one thread");
    }
}

#[test]
fn what_is_stored_gives_the_report_of_the_whole() {
    let here = here();
    for (name, options) in STORED {
        let whole = run(&here, &[options, &["--format=json"], &SEGMENTS].concat());
        let stored = stored(name);
        let stored = stored.to_str().expect("a path");
        let merged = run(&here, &["merge", "--format=json", stored]);
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
