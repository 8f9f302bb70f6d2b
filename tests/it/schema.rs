//! What `--format json` writes: held against the published schema, `docs/report.schema.json`, and
//! read back by the library, to the letter. Judges no number.

use crate::support::fixtures::{sample, samples};
use crate::support::walstat;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use walstat_report::model::{Report, Unreadable};

/// Every form of request, without the input.
const FORMS: [&[&str]; 9] = [
    &[],
    &["--stats"],
    &["--stats=record", "--top", "3", "--sort", "fpi"],
    &["--stats=all", "-r", "Heap", "-r", "Btree", "--fullpage", "-F", "main"],
    &["check"],
    &["check", "--max-fpi-ratio", "1%", "--min-hot-ratio", "0.1", "--fail-on", "warning"],
    &["whatif", "--max-wal-size", "64MB,1GB"],
    &["check", "--max-bytes-per-commit", "1kB", "-x", "4294967295"],
    &["--ruleset", "strict"],
];

/// What a program reads of the input in a form.
fn output(form: &[&str], wal: &Path) -> String {
    let mut arguments = form.to_vec();
    arguments.extend(["--format", "json", wal.to_str().expect("UTF-8")]);
    let ran = walstat(&arguments);
    assert!(ran.code.is_some_and(|code| [0, 1, 3, 4].contains(&code)), "{}", ran.stderr);
    ran.stdout
}

/// A directory with a hole, a spoiled record and a file that is no WAL.
fn ruin() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let sample = sample("pg15-mixed");
    for name in ["000000010000000000000007", "000000010000000000000008", "00000001000000000000000A"]
    {
        let mut bytes = crate::support::wal::plain(&sample, name);
        bytes[600_000] ^= 0xFF;
        fs::write(directory.path().join(name), bytes).expect("a file");
    }
    let name = directory.path().join("00000001000000000000000B");
    fs::write(name, [7; 8192]).expect("a file");
    directory
}

/// Every output of every sample, of damage, and of what cannot be read; written once for all tests.
static OUTPUTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let ruin = ruin();
    let unreadable = ruin.path().join("nowhere");
    let mut paths: Vec<_> = samples().into_iter().map(|sample| sample.wal).collect();
    paths.extend([ruin.path().to_owned(), unreadable]);
    let all = |path: &std::path::PathBuf| FORMS.map(|form| output(form, path));
    let state = ruin.path().join("state").display().to_string();
    let rounds = [&["check", "--state", &state][..], &["check", "--state", &state]];
    let rounds = rounds.map(|form| output(form, ruin.path()));
    paths.iter().flat_map(all).chain(rounds).collect()
});

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON")
}

fn validator() -> jsonschema::Validator {
    let schema = schema();
    assert!(
        schema["$schema"].as_str().is_some_and(|uri| uri.starts_with("https://json-schema.org/"))
    );
    jsonschema::validator_for(&schema).expect("the schema is one")
}

#[test]
fn every_output_follows_the_schema() {
    let validator = validator();
    for text in OUTPUTS.iter() {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
    }
}

#[test]
fn every_output_reads_back_and_is_written_again_to_the_letter() {
    let mut answers = 0;
    for text in OUTPUTS.iter() {
        let again = match serde_json::from_str::<Report>(text) {
            Ok(report) => serde_json::to_string_pretty(&report),
            Err(_) => {
                answers += 1;
                let answer: Unreadable = serde_json::from_str(text).expect("a report or an error");
                serde_json::to_string_pretty(&answer)
            }
        };
        assert_eq!(&format!("{}\n", again.expect("JSON")), text);
    }
    assert_eq!(answers, FORMS.len(), "one input cannot be read");
}

/// A report of damage, statistics of it with filters, and a check of it: all keys that there are.
fn examples() -> Vec<Value> {
    let ruin = ruin();
    let forms = [FORMS[0], FORMS[3], FORMS[5]];
    forms.map(|form| serde_json::from_str(&output(form, ruin.path())).expect("JSON")).into()
}

/// The places of all values below `value`, as pointers of RFC 6901; of a list the first value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut go = |key: &str, value: &Value| {
        let place = format!("{at}/{key}");
        places(value, &place, found);
        found.push(place);
    };
    match value {
        Value::Object(keys) => keys.iter().for_each(|(key, value)| go(key, value)),
        Value::Array(list) => list.iter().take(1).for_each(|value| go("0", value)),
        _ => {}
    }
}

/// Whether a place is inside an object whose keys are not promised.
fn is_free(place: &str) -> bool {
    ["/evidence/", "/filters/", "/settings/"].iter().any(|inside| place.contains(inside))
}

/// Keys that are there if they were asked for.
const DIMENSIONS: [&str; 17] = [
    "rmgrs",
    "records",
    "relations",
    "names",
    "tables",
    "databases",
    "tablespaces",
    "forks",
    "blocks",
    "transactions",
    "kinds",
    "timeline",
    "checkpoints",
    "checkpoint_summary",
    "recovery",
    "replication",
    "commits",
];

/// Sums are never null in their rows; what a row is about may be.
const SUMS: [&str; 7] = [
    "count",
    "record_bytes",
    "fpi_bytes",
    "total_bytes",
    "fpi_count",
    "block_refs",
    "distinct_blocks",
];

fn may_be_null(place: &str) -> bool {
    let (parent, key) = place.rsplit_once('/').expect("a place has a parent");
    let dimension = parent.split('/').nth(1).unwrap_or_default();
    let is_setting = ["checkpoints_apart", "wal_compression"].contains(&key);
    is_setting
        || !parent.is_empty()
            && (DIMENSIONS.contains(&dimension) || dimension == "when")
            && dimension != "names"
            && (!SUMS.contains(&key) || parent.contains("/peaks/"))
}

#[test]
fn no_key_may_be_missing() {
    let validator = validator();
    for example in examples() {
        let is_stats = example["command"] == "stats";
        let mut all = Vec::new();
        places(&example, "", &mut all);
        for place in all.iter().filter(|place| !is_free(place)) {
            let (parent, key) = place.rsplit_once('/').expect("a place has a parent");
            let mut spoiled = example.clone();
            let object = spoiled.pointer_mut(parent).and_then(Value::as_object_mut);
            let Some(object) = object else { continue };
            object.shift_remove(key);
            // Where there is no image there is nothing to estimate; a short time says nothing of a day.
            let is_estimate = [
                "/estimates",
                "/advice_together",
                "/large_transactions",
                "/large_work",
                "/kind_sample",
                "/bytes_a_day",
                "/input/data_page_bytes",
                "/maintenance",
            ]
            .contains(&place.as_str());
            let is_dimension = is_stats && DIMENSIONS.contains(&key) && parent.is_empty();
            let is_asked_for = is_dimension || is_estimate;
            assert_eq!(validator.is_valid(&spoiled), is_asked_for, "without {place}");
        }
        assert!(all.len() > 60, "{all:?}");
    }
}

#[test]
fn values_are_of_their_types_and_kinds_of_their_lists() {
    let validator = validator();
    for example in examples() {
        let mut all = Vec::new();
        places(&example, "", &mut all);
        for place in all.iter().filter(|place| !place.contains("/evidence/")) {
            let value = example.pointer(place).expect("the value");
            let mut wrong = match value {
                Value::String(_) => vec![json!(1), json!({})],
                Value::Number(number) if number.is_f64() => vec![json!("1"), json!([])],
                Value::Number(_) if place.contains("ratio") => vec![json!("1")],
                Value::Number(_) if place.starts_with("/checks/") => vec![json!("1")],
                Value::Number(_) if place.ends_with("/offset") => vec![json!("1"), json!(1.5)],
                Value::Number(_) => vec![json!("1"), json!(1.5), json!(null)],
                Value::Bool(_) => vec![json!("true"), json!(null)],
                Value::Array(_) | Value::Object(_) => vec![json!(1), json!(null)],
                Value::Null => vec![json!({})],
            };
            if may_be_null(place) {
                wrong.retain(|value| !value.is_null());
            }
            if ["/ending/kind", "/problems/0/kind", "/command"].contains(&place.as_str()) {
                wrong.extend([json!("nonsense"), json!(null)]);
            }
            for value in wrong {
                let mut spoiled = example.clone();
                *spoiled.pointer_mut(place).expect("the place") = value.clone();
                assert!(!validator.is_valid(&spoiled), "{place} = {value}");
            }
        }
    }
}

#[test]
fn a_key_that_comes_later_is_no_fault_on_any_level() {
    let validator = validator();
    for example in examples() {
        let mut all = vec![String::new()];
        places(&example, "", &mut all);
        for place in all {
            let mut later = example.clone();
            let object = later.pointer_mut(&place).and_then(Value::as_object_mut);
            let Some(object) = object else { continue };
            object.insert("a_later_key".to_owned(), json!([1, "2"]));
            assert!(validator.is_valid(&later), "{place}");
            serde_json::from_value::<Report>(later).unwrap_or_else(|e| panic!("{place}: {e}"));
        }
    }
}

/// `cargo run --features schema --example report_schema > docs/report.schema.json` renews it.
#[cfg(feature = "schema")]
#[test]
fn the_published_schema_is_that_of_the_types() {
    assert!(schema() == walstat_report::schema::json_schema(), "docs/report.schema.json is old");
}
