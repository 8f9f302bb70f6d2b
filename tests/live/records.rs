//! `walstat records` in the hands of those who read it: DuckDB, pyarrow and Spark come to the sums of
//! walstat's own tables, and the SQL of docs/sql.md gives what the paper shows.

use crate::python::{JAVA, path, python};
use crate::support::fixtures::sample;
use crate::support::{finish, json_of, walstat};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Rows of a table of the report: what they are of, then their number and bytes.
fn rows_of_report(report: &Value, list: &str, keys: &[&str]) -> BTreeSet<Vec<Option<String>>> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let rows = report[list].as_array().expect("rows").iter();
    let keys = [keys, &["count", "total_bytes", "fpi_bytes"]].concat();
    let rows = rows.map(|row| keys.iter().map(|key| text(&row[key])).collect::<Vec<_>>());
    rows.filter(|row| row[keys.len() - 3].as_deref() != Some("0")).collect()
}

fn rows_of_engine(answer: &Value, question: &str) -> BTreeSet<Vec<Option<String>>> {
    let rows = answer[question].as_array().expect("rows").iter();
    let fields = |row: &Value| {
        let fields = row.as_array().expect("fields").iter();
        fields.map(|field| field.as_str().map(str::to_owned)).collect()
    };
    rows.map(fields).collect()
}

/// Of files of unknown relations the report has a row each.
fn without_unnamed(rows: BTreeSet<Vec<Option<String>>>) -> BTreeSet<Vec<Option<String>>> {
    rows.into_iter().filter(|row| row[2].is_some()).collect()
}

#[test]
fn engines_come_to_the_sums_of_the_tables() {
    let sample = sample("pg15-mixed");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("records.parquet");
    let Some(mut engines) = python("tests/live/engines.py") else { return };
    let wal = sample.wal.to_str().expect("UTF-8");
    let to = file.to_str().expect("UTF-8");
    walstat(&["records", wal, "-f", "parquet", "-o", to]).exits(0);
    let report = json_of(&["--stats=rmgr,record,table"], &sample.wal);
    let rmgrs = rows_of_report(&report, "rmgrs", &["rmgr"]);
    let records = rows_of_report(&report, "records", &["rmgr", "record"]);
    let tables = rows_of_report(&report, "tables", &["database", "schema", "name"]);
    let tables = without_unnamed(tables);
    assert!(rmgrs.len() > 10 && records.len() > 50 && tables.len() > 50);
    engines.args([to, "duckdb", "pyarrow", "spark"]).env("SPARK_LOCAL_IP", "127.0.0.1");
    engines.env("JAVA_TOOL_OPTIONS", JAVA);
    let answers = finish(engines.current_dir(folder.path())).exits(0).json();
    for engine in ["duckdb", "pyarrow", "spark"] {
        let answer = &answers[engine];
        assert_eq!(rows_of_engine(answer, "rmgrs"), rmgrs, "{engine}");
        assert_eq!(rows_of_engine(answer, "records"), records, "{engine}");
        assert_eq!(without_unnamed(rows_of_engine(answer, "tables")), tables, "{engine}");
    }
    let kinds = [
        ("duckdb", "UBIGINT", "TIMESTAMP WITH TIME ZONE"),
        ("pyarrow", "uint64", "timestamp[us, tz=UTC]"),
        ("spark", "decimal(20,0)", "timestamp"),
    ];
    for (engine, lsn, time) in kinds {
        let types = &answers[engine]["types"];
        assert_eq!((&types["lsn"], &types["time"]), (&lsn.into(), &time.into()), "{engine}");
    }
}

/// The commands of the paper are run where it says, and then its questions.
#[test]
fn the_questions_of_the_paper_have_its_answers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut sql) = python("tests/live/sql.py") else { return };
    symlink(root.join("tests"), folder.path().join("tests")).expect("a link");
    let paper = root.join("docs/sql.md");
    let text = std::fs::read_to_string(&paper).expect("the paper");
    let commands = text.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let commands = commands.expect("commands");
    assert_eq!(commands.lines().count(), 2, "{commands}");
    let mut bash = Command::new("bash");
    bash.args(["-euc", commands]).env("PATH", path()).current_dir(folder.path());
    finish(&mut bash).exits(0);
    let ran = finish(sql.arg(&paper).current_dir(folder.path())).exits(0);
    let questions = ran.stdout.trim().strip_suffix(" questions").expect("how many");
    assert!(questions.parse::<u32>().expect("a number") >= 10, "{questions}");
}
