//! The forms in which WAL lies about: compressed, in a data directory, in several places, with other
//! files beside it. All give the same report.

use crate::support::fixtures::{Sample, sample};
use crate::support::wal::{REAL_NAME, file, lz4_frame, plain, real_segment};
use crate::support::{json_of, number, walstat};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Three segments in a row.
const SEGMENTS: [&str; 3] =
    ["000000010000000000000007", "000000010000000000000008", "000000010000000000000009"];

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

/// The report without what speaks of the files rather than of the WAL.
fn of_the_wal(mut json: Value) -> Value {
    json["input"]["paths"].take();
    json["input"]["other_files"].take();
    json["input"]["taken_for"].take();
    json
}

fn report(path: &Path) -> Value {
    of_the_wal(json_of(&["--stats=all"], path))
}

fn lay(sample: &Sample, names: &[&str], directory: &Path) {
    for name in names {
        file(directory, name, &plain(sample, name));
    }
}

/// Since release 10 WAL lies in pg_wal, and before in pg_xlog.
#[test]
fn a_segment_is_found_by_its_name_below_the_data_directory() {
    let bytes = real_segment();
    for folder in ["", "pg_wal", "pg_xlog"] {
        let directory = directory();
        let inside = directory.path().join(folder);
        fs::create_dir_all(&inside).expect("a folder for the segment");
        let path = file(&inside, REAL_NAME, &bytes);
        let options = ["--stats=all", "-f", "json", "-p"].map(OsStr::new);
        let place = [directory.path().as_os_str(), OsStr::new(REAL_NAME)];
        let found = walstat(&[&options[..], &place].concat()).exits(0).json();
        assert_eq!(of_the_wal(found), report(&path), "{folder}");
    }
}

#[test]
fn a_compressed_segment_is_read_like_a_plain_one() {
    let (directory, bytes) = (directory(), real_segment());
    let want = report(&file(directory.path(), REAL_NAME, &bytes));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).expect("a vector takes everything");
    let zstd = zstd::encode_all(bytes.as_slice(), 1).expect("a vector takes everything");
    let compressed =
        [(".gz", gzip.finish().expect("gzip ends")), (".lz4", lz4_frame(&bytes)), (".zst", zstd)];
    for (suffix, bytes) in compressed {
        let alone = self::directory();
        let path = file(alone.path(), &format!("{REAL_NAME}{suffix}"), &bytes);
        assert_eq!(report(&path), want, "{suffix}, as a file");
        assert_eq!(report(alone.path()), want, "{suffix}, in its directory");
        // Recognised by content: the name may say nothing, or the wrong thing.
        fs::rename(&path, alone.path().join(REAL_NAME)).expect("the file can be renamed");
        assert_eq!(report(alone.path()), want, "{suffix}, without its suffix");
    }
}

#[test]
fn a_data_directory_is_read_where_its_wal_lies() {
    let sample = sample("pg15-mixed");
    let directory = directory();
    lay(&sample, &SEGMENTS, directory.path());
    let want = report(directory.path());
    for name in ["pg_wal", "pg_xlog"] {
        let data = self::directory();
        fs::create_dir_all(data.path().join(name).join("archive_status")).expect("directories");
        lay(&sample, &SEGMENTS, &data.path().join(name));
        file(data.path(), "PG_VERSION", b"15\n");
        // Given itself or by its WAL, it is known.
        for path in [data.path(), &data.path().join(name)] {
            let mut found = report(path);
            let note = found["notes"].as_array_mut().and_then(Vec::pop);
            let missing = note
                .as_ref()
                .and_then(Value::as_str)
                .is_some_and(|note| note.contains("pg_control"));
            assert!(
                missing,
                "{name}: what names are made of is missing, and that is said: {note:?}"
            );
            assert_eq!(found, want, "{name}");
        }
    }
}

#[test]
fn files_that_are_no_segments_are_named_and_left_alone() {
    let sample = sample("pg15-mixed");
    let directory = directory();
    lay(&sample, &SEGMENTS, directory.path());
    let want = report(directory.path());
    let label = format!("{}.00000028.backup", SEGMENTS[0]);
    for name in [label.as_str(), "notes.txt", "0000000100000000000000ZZ"] {
        file(directory.path(), name, b"START WAL LOCATION: 0/700028\n");
    }
    let json = json_of(&["--stats=all"], directory.path());
    let others = json!([label, "0000000100000000000000ZZ", "notes.txt"]);
    assert_eq!(json["input"]["other_files"], others);
    assert_eq!(of_the_wal(json), want);
}

#[test]
fn segments_from_several_places_are_one_wal() {
    let sample = sample("pg15-mixed");
    let (whole, archive, current) = (directory(), directory(), directory());
    lay(&sample, &SEGMENTS, whole.path());
    lay(&sample, &SEGMENTS[..2], archive.path());
    lay(&sample, &SEGMENTS[2..], current.path());
    let options = ["--stats=all", "-f", "json"].map(OsStr::new);
    let places = [current.path().as_os_str(), archive.path().as_os_str()];
    let ran = walstat(&[&options[..], &places].concat()).exits(0);
    assert_eq!(of_the_wal(ran.json()), report(whole.path()));
}

/// `pg_receivewal` and a promotion leave `.partial` files: read where there is no whole one.
#[test]
fn a_partial_segment_is_read_where_there_is_no_whole_one() {
    let sample = sample("pg15-mixed");
    let (whole, partial) = (directory(), directory());
    lay(&sample, &SEGMENTS, whole.path());
    lay(&sample, &SEGMENTS[..2], partial.path());
    let last = plain(&sample, SEGMENTS[2]);
    file(partial.path(), &format!("{}.partial", SEGMENTS[2]), &last);
    assert_eq!(report(partial.path()), report(whole.path()));

    // Beside the whole one it is a second copy, and no byte of it is counted twice.
    let once = report(whole.path());
    file(whole.path(), &format!("{}.partial", SEGMENTS[2]), &last);
    let both = report(whole.path());
    assert_eq!(both["totals"], once["totals"]);
    assert_eq!(number(&both, "books.duplicate_bytes"), last.len() as i128);
    assert_eq!(number(&both, "books.unaccounted_bytes"), 0);
}

#[test]
fn a_missing_segment_is_a_problem_and_the_rest_is_counted() {
    let sample = sample("pg15-mixed");
    let directory = directory();
    lay(&sample, &[SEGMENTS[0], SEGMENTS[2]], directory.path());
    let options = ["--stats=all", "-f", "json"].map(OsStr::new);
    let json = walstat(&[&options[..], &[directory.path().as_os_str()]].concat()).exits(4).json();
    let problems = json["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["kind"], "missing_segment");
    assert_eq!(problems[0]["segment"], SEGMENTS[1]);
    assert_eq!(problems[0]["lsn"], "0/00800000");
    assert_eq!(number(&json, "books.unaccounted_bytes"), 0);
    assert!(number(&json, "totals.count") > 15_000, "both segments are counted");
}

/// Another server's segment in between is named; its bytes are in no sum.
#[test]
fn a_segment_of_another_cluster_is_a_problem_and_not_counted() {
    let (ours, theirs) = (sample("pg15-mixed"), sample("overwrite"));
    let directory = directory();
    lay(&ours, &SEGMENTS[1..], directory.path());
    let want = report(directory.path());
    lay(&theirs, &SEGMENTS[..1], directory.path());
    let options = ["--stats=all", "-f", "json"].map(OsStr::new);
    let json = walstat(&[&options[..], &[directory.path().as_os_str()]].concat()).exits(4).json();
    assert_eq!(json["problems"][0]["kind"], "other_cluster", "{}", json["problems"]);
    assert_eq!(json["totals"], want["totals"]);
    assert_eq!(number(&json, "books.unaccounted_bytes"), 0);
}
