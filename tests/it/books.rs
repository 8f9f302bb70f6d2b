//! The promise: every byte of the input stands under exactly one heading, for every sample and
//! however it is read, and all sums agree with each other.

use crate::support::fixtures::{Sample, samples};
use crate::support::{Ran, json_of, number, walstat};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The keys of `books`, exactly these.
const HEADINGS: [&str; 15] = [
    "input_bytes",
    "record_bytes",
    "fpi_bytes",
    "filtered_bytes",
    "padding_bytes",
    "page_header_bytes",
    "continuation_bytes",
    "switch_bytes",
    "overwritten_bytes",
    "incomplete_bytes",
    "stale_bytes",
    "zero_bytes",
    "duplicate_bytes",
    "damaged_bytes",
    "unaccounted_bytes",
];

/// What every row sums up.
const SUMS: [&str; 12] = [
    "count",
    "record_bytes",
    "fpi_bytes",
    "total_bytes",
    "main_data_bytes",
    "block_data_bytes",
    "header_bytes",
    "fpi_count",
    "fpi_records",
    "fpi_apply_count",
    "fpi_check_count",
    "uncompressed_fpi_bytes",
];

#[test]
fn the_books_close_over_whole_directories() {
    each(|sample| closed(&[], &sample.wal));
}

#[test]
fn the_books_close_over_a_range() {
    each(|sample| closed(&sample.range(), &sample.wal));
}

#[test]
fn the_books_close_over_the_records_of_one_resource_manager() {
    each(|sample| closed(&["-r", "Heap", "-r", "Btree"], &sample.wal));
}

#[test]
fn the_books_close_over_records_with_images() {
    each(|sample| closed(&["--fullpage", "--start", &sample.start], &sample.wal));
}

#[test]
fn the_books_close_over_a_filter_that_nothing_passes() {
    each(|sample| {
        let json = closed(&["--xid", "4294967295"], &sample.wal);
        assert_eq!(number(&json, "totals.count"), 0, "{}", sample.name);
        assert!(number(&json, "books.filtered_bytes") > 0, "{}: nothing left out", sample.name);
    });
}

#[test]
fn the_books_close_over_one_segment_alone() {
    each(|sample| {
        let segments = sample.segments();
        let read = segments.iter().filter(|name| {
            let ran = run(&[], &sample.segment(name));
            // No record begins in a segment made ready ahead, or in the middle of a long record.
            let none = ran.code == Some(3) && ran.stderr.contains("no WAL record found");
            if !none {
                sound(&ran.exits(0));
            }
            !none
        });
        assert!(read.count() > segments.len() / 2, "{}: most segments have records", sample.name);
    });
}

#[test]
fn the_books_close_when_the_first_hundred_records_are_enough() {
    each(|sample| {
        let json = closed(&["--limit", "100"], &sample.wal);
        assert_eq!(number(&json, "totals.count"), 100, "{}", sample.name);
    });
}

/// Segments given one by one, in any order, are the same input as their directory.
#[test]
fn the_order_of_the_paths_does_not_matter() {
    let sample = crate::support::fixtures::sample("pg15-mixed");
    let mut paths: Vec<PathBuf> =
        sample.segments().iter().map(|name| sample.segment(name)).collect();
    paths.reverse();
    let mut call: Vec<&OsStr> = vec!["--stats=all".as_ref(), "-f".as_ref(), "json".as_ref()];
    call.extend(paths.iter().map(|path| path.as_os_str()));
    let mut shuffled = walstat(&call).exits(0).json();
    let mut whole = json_of(&["--stats=all"], &sample.wal);
    for json in [&mut shuffled, &mut whole] {
        json["input"]["paths"].take();
        json["input"]["other_files"].take();
    }
    assert_eq!(shuffled, whole);
}

/// The same file under two paths is read once and said once.
#[test]
fn a_second_copy_of_a_segment_is_counted_as_a_second_copy() {
    let sample = crate::support::fixtures::sample("livedir");
    let segment = sample.segment(&sample.first_segment);
    let once = json_of(&["--stats=all"], &segment);
    let copies = tempfile::tempdir().expect("a directory for the copy");
    let copy = copies.path().join(&sample.first_segment);
    std::fs::copy(&segment, &copy).expect("the segment can be copied");
    let paths = [
        "--stats=all".as_ref(),
        "-f".as_ref(),
        "json".as_ref(),
        segment.as_os_str(),
        copy.as_os_str(),
    ];
    let twice = walstat(&paths).exits(0).json();
    assert_eq!(twice["totals"], once["totals"]);
    let bytes = number(&once, "books.input_bytes");
    assert_eq!(number(&twice, "books.duplicate_bytes"), bytes);
    assert_eq!(number(&twice, "books.input_bytes"), 2 * bytes);
    assert_eq!(number(&twice, "books.unaccounted_bytes"), 0);
}

/// Runs `check` on every sample.
fn each<R>(check: impl Fn(&Sample) -> R) {
    for sample in samples() {
        check(&sample);
    }
}

/// Reads `path` with `arguments` and requires all that holds for every report.
fn closed(arguments: &[&str], path: &Path) -> Value {
    sound(&run(arguments, path).exits(0))
}

fn run(arguments: &[&str], path: &Path) -> Ran {
    let mut call: Vec<&OsStr> = vec!["--stats=all".as_ref(), "--format".as_ref(), "json".as_ref()];
    call.extend(arguments.iter().map(OsStr::new));
    call.push(path.as_os_str());
    walstat(&call)
}

/// Requires all that holds for every report.
fn sound(ran: &Ran) -> Value {
    let json = ran.json();
    headings_add_up(&json, &ran.call);
    rows_add_up(&json, &ran.call);
    ratios_are_those_of_the_sums(&json, &ran.call);
    json
}

fn headings_add_up(json: &Value, place: &str) {
    let books = json["books"].as_object().expect("books");
    let keys: BTreeSet<&str> = books.keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(HEADINGS), "{place}: keys of books");
    let get = |key: &str| number(json, &format!("books.{key}"));
    assert_eq!(get("unaccounted_bytes"), 0, "{place}: {books:#?}");
    let parts: i128 = HEADINGS.iter().skip(1).map(|key| get(key)).sum();
    assert_eq!(parts, get("input_bytes"), "{place}: the headings do not add up: {books:#?}");
    assert!(HEADINGS.iter().all(|key| get(key) >= 0), "{place}: less than nothing: {books:#?}");
    assert_eq!(get("record_bytes"), number(json, "totals.record_bytes"), "{place}");
    assert_eq!(get("fpi_bytes"), number(json, "totals.fpi_bytes"), "{place}");
}

fn rows_add_up(json: &Value, place: &str) {
    for table in ["rmgrs", "records"] {
        let rows = json[table].as_array().unwrap_or_else(|| panic!("{place}: no {table}"));
        for key in SUMS {
            let sum: i128 = rows.iter().map(|row| number(row, key)).sum();
            assert_eq!(
                sum,
                number(&json["totals"], key),
                "{place}: {key} of {table} and of totals"
            );
        }
        rows.iter().for_each(|row| row_is_sound(row, place));
    }
    row_is_sound(&json["totals"], place);
}

fn row_is_sound(row: &Value, place: &str) {
    let get = |key: &str| number(row, key);
    let at = || format!("{place}: {row}");
    assert_eq!(
        get("header_bytes") + get("main_data_bytes") + get("block_data_bytes"),
        get("record_bytes"),
        "{}",
        at()
    );
    assert_eq!(get("record_bytes") + get("fpi_bytes"), get("total_bytes"), "{}", at());
    assert_eq!(get("fpi_apply_count") + get("fpi_check_count"), get("fpi_count"), "{}", at());
    assert!(get("header_bytes") >= 24 * get("count"), "a record header is 24 bytes: {}", at());
    assert!(get("fpi_records") <= get("fpi_count"), "{}", at());
    assert!(get("fpi_records") <= get("count"), "{}", at());
    assert!(get("fpi_bytes") <= get("uncompressed_fpi_bytes"), "{}", at());
}

fn ratios_are_those_of_the_sums(json: &Value, place: &str) {
    let sum = |key: &str| number(&json["totals"], key) as f64;
    let expected = [
        ("fpi_ratio", sum("fpi_bytes"), sum("total_bytes")),
        ("fpi_record_ratio", sum("fpi_records"), sum("count")),
        ("write_amplification", sum("total_bytes"), sum("total_bytes") - sum("fpi_bytes")),
        ("compression_ratio", sum("fpi_bytes"), sum("uncompressed_fpi_bytes")),
        (
            "hot_ratio",
            updates(json, "HOT_UPDATE"),
            updates(json, "UPDATE") + updates(json, "HOT_UPDATE"),
        ),
    ];
    for (key, above, below) in expected {
        let ratio = &json["ratios"][key];
        if below == 0.0 {
            assert!(ratio.is_null(), "{place}: {key} is {ratio}, with nothing to divide by");
            continue;
        }
        let ratio = ratio.as_f64().unwrap_or_else(|| panic!("{place}: {key} is {ratio}"));
        assert!(
            (ratio - above / below).abs() < 1e-9,
            "{place}: {key} is {ratio}, not {above} / {below}"
        );
    }
}

/// Heap records of this name, `+INIT` variants included.
fn updates(json: &Value, name: &str) -> f64 {
    let rows = json["records"].as_array().into_iter().flatten();
    let of_name = rows.filter(|row| {
        let record = row["record"].as_str().unwrap_or_default();
        row["rmgr"] == "Heap" && record.strip_suffix("+INIT").unwrap_or(record) == name
    });
    of_name.map(|row| number(row, "count") as f64).sum()
}
