//! `walstat records`: its rows are the records of the report.

use crate::support::fixtures::{sample, samples};
use crate::support::{json_of, walstat};
use serde_json::Value;
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn rows(path: &Path, more: &[&str]) -> Vec<Value> {
    let words = [&["records", text(path), "-f", "ndjson"], more].concat();
    let lines = walstat(&words).stdout;
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn rows_add_up_to_the_totals_and_come_in_wal_order() {
    for sample in samples() {
        let totals = &json_of(&["--stats"], &sample.wal)["totals"];
        let rows = rows(&sample.wal, &[]);
        assert_eq!(totals["count"], rows.len(), "{}", sample.name);
        let keys = [
            "total_bytes",
            "record_bytes",
            "fpi_bytes",
            "fpi_count",
            "main_data_bytes",
            "block_data_bytes",
        ];
        for key in keys {
            let sum: u64 = rows.iter().map(|row| row[key].as_u64().expect("a number")).sum();
            assert_eq!(totals[key], sum, "{}: {key}", sample.name);
        }
        let lsns: Vec<&str> = rows.iter().map(|row| row["lsn"].as_str().expect("a text")).collect();
        assert!(lsns.is_sorted(), "{}", sample.name);
    }
}

/// A record's time is the last that a transaction has stated so far: its own, if it states one.
#[test]
fn the_time_is_the_last_one_stated() {
    let sample = sample("pg15-mixed");
    let transactions = json_of(&["--stats=transaction"], &sample.wal);
    let transactions = transactions["transactions"]["top"].as_array().expect("rows");
    let ended = |row: &Value| {
        let names = ["COMMIT", "ABORT", "PREPARE", "COMMIT_PREPARED", "ABORT_PREPARED"];
        row["rmgr"] == "Transaction" && names.iter().any(|name| row["record"] == *name)
    };
    let (mut last, mut seen) = (Value::Null, 0);
    for row in rows(&sample.wal, &[]) {
        if ended(&row) {
            assert!(row["time"].is_string(), "{row}");
            last = row["time"].clone();
        }
        assert_eq!(row["time"], last, "{row}");
        let xid = row["xid"].to_string();
        let of_row = |one: &&Value| one["xid"] == xid.as_str() && xid != "0";
        if let Some(one) = transactions.iter().find(of_row).filter(|_| row["record"] == "COMMIT") {
            assert_eq!(one["commit_time"], row["time"], "{row}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Names are those of the sources that the report has.
#[test]
fn relations_have_the_names_of_a_names_file() {
    let sample = sample("pg15-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("names.csv");
    let written = "database,database_name,tablespace,tablespace_name,relfilenode,oid,schema,name,kind,\
                   table,parent\n";
    let all = rows(&sample.wal, &["-r", "Heap"]);
    let is_own = |row: &&Value| row["relfilenode"].as_u64().is_some_and(|file| file >= 16384);
    let one = all.iter().find(is_own).expect("a relation");
    let number = |key: &str| one[key].as_u64().expect("a number");
    let row = format!(
        "{},shop,{},pg_default,{},{},public,\"or,ders\",r,{},\n",
        number("database"),
        number("tablespace"),
        number("relfilenode"),
        number("relfilenode"),
        number("relfilenode"),
    );
    std::fs::write(&file, format!("{written}{row}")).expect("a file");
    let names = ["--names", text(&file), "-r", "Heap"];
    let named = rows(&sample.wal, &names);
    assert_eq!(named.len(), all.len());
    let of_file = |row: &&Value| {
        row["relfilenode"] == one["relfilenode"] && row["database"] == one["database"]
    };
    assert!(named.iter().filter(of_file).count() > 0);
    for row in named.iter().filter(of_file) {
        assert_eq!((&row["schema"], &row["relation"]), (&"public".into(), &"or,ders".into()));
    }
    let shown = |format: &str| {
        let words = [&["records", text(&sample.wal), "-f", format], &names[..]].concat();
        walstat(&words).exits(0).stdout
    };
    assert!(shown("csv").contains(",public,\"or,ders\"\n"));
    assert!(shown("table").contains(" public.or,ders "));
}

#[test]
fn threads_filters_and_files_make_no_difference_to_a_row() {
    let sample = sample("pg15-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("records.csv");
    let csv = |more: &[&str]| {
        let words = [&["records", text(&sample.wal), "-f", "csv"], more].concat();
        walstat(&words).exits(0).stdout
    };
    let all = csv(&["-j", "1"]);
    assert_eq!(all, csv(&["-j", "2"]));
    assert_eq!(csv(&["-o", text(&file)]), "");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), all);
    let columns = all.lines().next().expect("headings").split(',').count();
    assert!(all.lines().all(|line| line.split(',').count() == columns));
    let heap = csv(&["-r", "Heap"]);
    let want: Vec<&str> = all.lines().filter(|line| line.contains(",Heap,")).collect();
    assert_eq!(heap.lines().skip(1).collect::<Vec<_>>(), want);
    let first = walstat(&["records", text(&sample.wal), "-n", "3"]).exits(0).stdout;
    assert_eq!(first.lines().count(), 4, "{first}");
}

#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let sample = sample("pg15-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    std::fs::write(&file, "old").expect("written");
    symlink(&file, &link).expect("a link");
    walstat(&["records", text(&sample.wal), "-n", "5", "-o", text(&link)]).exits(0);
    assert!(link.symlink_metadata().expect("a link").is_symlink());
    assert_eq!(std::fs::read_to_string(&file).expect("written").lines().count(), 6);
    walstat(&["records", text(&sample.wal), "-n", "5", "-o", "/dev/null"]).exits(0);
    let null = Path::new("/dev/null").metadata().expect("there");
    assert!(null.file_type().is_char_device());
    let left = std::fs::read_dir(directory.path()).expect("readable").count();
    assert_eq!(left, 2, "nothing is left over");
}
