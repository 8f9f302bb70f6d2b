//! `walstat names`, `--names` and names in `--relation`: what is written reads back, the better
//! source wins, and what is bad in a list leaves numbers and a warning.

use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, HEAP, Rec};
use crate::support::fixtures::sample;
use crate::support::{command, finish, walstat};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn wal() -> PathBuf {
    sample("pg15-mixed").wal
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    let ran = walstat(arguments).exits(0);
    serde_json::from_str(&ran.stdout).expect(&ran.call)
}

fn rows(report: &Value) -> &[Value] {
    report["names"].as_array().expect("rows")
}

/// A row without its source.
fn said(row: &Value) -> Value {
    let mut row = row.clone();
    row.as_object_mut().expect("an object").remove("names_source");
    row
}

/// The public table with the most WAL of those that the WAL itself names and that have one file: its
/// database, its name, its file.
fn a_table() -> (String, String, String) {
    let wal = wal();
    let report = json(&["--stats=relation", "-f", "json", path(&wal)]);
    let relations = report["relations"].as_array().expect("rows");
    let list = json(&["names", "-f", "json", path(&wal)]);
    let files = |name: &Value| rows(&list).iter().filter(|row| row["name"] == *name).count();
    let row = relations.iter().find(|row| {
        let is_named = row["schema"] == "public" && row["database_name"].is_string();
        is_named && row["kind"] == "r" && files(&row["name"]) == 1
    });
    let row = row.expect("a public table");
    let file = ["tablespace", "database", "relfilenode"].map(|key| row[key].to_string()).join("/");
    let text = |key: &str| row[key].as_str().expect("a name").to_owned();
    (text("database_name"), text("name"), file)
}

#[test]
fn every_format_reads_back() {
    let (wal, folder) = (wal(), tempfile::tempdir().expect("a folder"));
    let all = json(&["names", "-f", "json", path(&wal)]);
    assert!(rows(&all).len() > 50, "{} rows", rows(&all).len());
    for format in ["csv", "tsv", "json", "ndjson"] {
        let file = folder.path().join(format);
        walstat(&["names", "-f", format, "-o", path(&file), path(&wal)]).exits(0);
        let again = json(&["names", "-f", "json", "--names", path(&file), path(&wal)]);
        assert_eq!(again["notes"], Value::Array(Vec::new()), "{format}");
        let said = |report: &Value| rows(report).iter().map(said).collect::<Vec<_>>();
        assert_eq!(said(&again), said(&all), "{format}");
        assert!(rows(&again).iter().all(|row| row["names_source"] == "file"), "{format}");
    }
}

#[test]
fn names_are_data_in_every_format() {
    let (wal, folder) = (wal(), tempfile::tempdir().expect("a folder"));
    let (_, table, file) = a_table();
    let name = "=\"a'\\\n\t\u{1b}[31m\u{202E},ü大";
    let list = json(&["names", "-f", "json", path(&wal)]);
    let row = rows(&list).iter().find(|row| row["name"] == *table).expect("the table");
    let mut row = row.clone();
    row["name"] = Value::from(name);
    let names = folder.path().join("names.json");
    fs::write(&names, row.to_string()).expect("a file");
    for format in ["csv", "tsv", "json", "ndjson"] {
        let copy = folder.path().join(format);
        let options = ["names", "-f", format, "-o", path(&copy), "--names", path(&names)];
        walstat(&[&options[..], &[path(&wal)]].concat()).exits(0);
        let again = json(&["names", "-f", "json", "--names", path(&copy), path(&wal)]);
        assert!(rows(&again).iter().any(|row| row["name"] == name), "{format}");
        let quoted = format!("public.\"{}\"", name.replace('"', "\"\""));
        let by_name = json(&["-f", "json", "--names", path(&copy), "-R", &quoted, path(&wal)]);
        let by_file = json(&["-f", "json", "-R", &file, path(&wal)]);
        assert_eq!(by_name["totals"], by_file["totals"], "{format}");
    }
    let shown = walstat(&["names", "-f", "table", "--names", path(&names), path(&wal)]).exits(0);
    assert!(shown.stdout.contains("=\"a'\\\\n\\t\\u{1b}[31m\\u{202e},ü大"), "{}", shown.stdout);
}

#[test]
fn what_is_bad_in_a_list_leaves_numbers() {
    let (wal, folder) = (wal(), tempfile::tempdir().expect("a folder"));
    let list = "database,tablespace,relfilenode,oid,schema,name\n\
                5,1663,x,16390,public,one\n\
                5,1663,4000000,4000000,public,two\n\
                5,1663,4000000,4000001,public,three\n\
                x,y\n";
    let file = folder.path().join("names.csv");
    fs::write(&file, list).expect("a file");
    let report = json(&["--stats=relation", "-f", "json", "--names", path(&file), path(&wal)]);
    let notes = report["notes"].to_string();
    for line in [2, 4, 5] {
        assert!(notes.contains(&format!("{}:{line}: ", path(&file))), "line {line}: {notes}");
    }
    let missing = path(folder.path()).to_owned() + "/missing";
    let report = json(&["--stats=relation", "-f", "json", "--names", &missing, path(&wal)]);
    assert!(report["notes"].to_string().contains("/missing: "), "{}", report["notes"]);
}

#[test]
fn a_relation_is_asked_for_by_name() {
    let wal = wal();
    let (database, name, file) = a_table();
    let count = |arguments: &[&str]| {
        let report = json(&[&["-f", "json", path(&wal)], arguments].concat());
        (report["totals"].clone(), report["input"]["filters"].clone())
    };
    let (by_file, filters) = count(&["-R", &file]);
    assert_eq!(filters["relation"], *file);
    let full = format!("{database}.public.{name}");
    let (by_name, filters) = count(&["-R", &full]);
    assert_eq!((&filters["relation"], by_name), (&Value::from(full.as_str()), by_file.clone()));
    assert_eq!(count(&["-R", &format!("\"{database}\".PUBLIC.{name}")]).0, by_file);
    let (whole, filters) = count(&["-R", &full, "--table"]);
    assert_eq!(filters["table"], true);
    assert!(whole["count"].as_u64() >= by_file["count"].as_u64(), "{whole} {by_file}");
    assert_eq!(count(&["-R", &file, "--table"]).0, whole);
}

#[test]
fn an_unknown_name_is_a_usage_error_with_the_nearest_one() {
    let wal = wal();
    let (_, name, _) = a_table();
    let ran = walstat(&["-R", &format!("public.{name}x"), path(&wal)]).exits(2);
    assert!(ran.stderr.contains(&format!("did you mean \"public.{name}\"?")), "{}", ran.stderr);
    let ran = walstat(&["--partial", "-R", &name, path(&wal)]).exits(2);
    assert!(ran.stderr.contains("tablespace/database/relfilenode"), "{}", ran.stderr);
    // Whatever file may be called like that.
    let here = tempfile::tempdir().expect("a directory");
    fs::write(here.path().join("-"), "").expect("written");
    for named in ["-", "/dev/stdin"] {
        let mut pipe = command(&["-R", &name, named]);
        let ran = finish(pipe.current_dir(here.path()).stdin(Stdio::piped())).exits(2);
        assert!(ran.stderr.contains("can be read once"), "{named}: {}", ran.stderr);
    }
}

#[test]
fn partitions_are_rows_of_their_parent() {
    let wal = wal();
    let tables = |more: &[&str]| {
        let report = json(&[&["--stats=table", "-f", "json", path(&wal)], more].concat());
        let rows = report["tables"].as_array().expect("rows").clone();
        let sum: u64 = rows.iter().filter_map(|row| row["total_bytes"].as_u64()).sum();
        assert_eq!(Some(sum), report["totals"]["total_bytes"].as_u64());
        rows
    };
    let (each, together) = (tables(&[]), tables(&["--by", "parent"]));
    let is_parent = |row: &&Value| row["kind"] == "p";
    assert_eq!(each.iter().filter(is_parent).count(), 0);
    assert!(together.len() <= each.len());
}

#[test]
fn the_query_has_the_columns_of_a_list() {
    let query = walstat(&["names", "--sql"]).exits(0).stdout;
    let list = walstat(&["names", path(&wal())]).exits(0).stdout;
    let columns = list.lines().next().expect("headings").split(',');
    for column in columns.filter(|column| *column != "names_source") {
        assert!(
            query.contains(&format!(" AS {column}")) || query.contains(&format!("\"{column}\""))
        );
    }
    walstat(&["names", "--sql", "--names", "x"]).exits(2);
}

/// A mapping as pgmoneta-walinfo takes it has oids, which files are called by at first.
#[test]
fn a_mapping_of_pgmoneta_gives_names() {
    let mut wal = Wal::new(Form::of("15"), 1);
    (0..100).for_each(|_| _ = wal.add(&Rec::new(HEAP, 0x00, 3).block(Block::new(0).data(10))));
    let wal = wal.finish().write();
    let folder = tempfile::tempdir().expect("a folder");
    let mapping = serde_json::json!({
        "tablespaces": {"fast": "1663"},
        "databases": {"shop": "5"},
        "relations": {"sales.\u{5927}<script>": "16384", "sales.another": "16385", "nowhere": "7"},
    });
    let file = folder.path().join("mapping.json");
    fs::write(&file, mapping.to_string()).expect("a file");
    let words = ["--stats=relation", "-f", "json", "--names", path(&file), path(wal.path())];
    let report = json(&words);
    let row = &report["relations"][0];
    let said =
        serde_json::json!([row["database_name"], row["schema"], row["name"], row["names_source"]]);
    assert_eq!(said, serde_json::json!(["shop", "sales", "\u{5927}<script>", "file"]), "{report}");
    assert!(report["notes"].to_string().contains("expected schema.name"), "{}", report["notes"]);
    let by_name = json(&[
        "-f",
        "json",
        "--names",
        path(&file),
        "-R",
        "sales.\u{5927}<script>",
        path(wal.path()),
    ]);
    assert_eq!(by_name["totals"]["count"], 100);
}
