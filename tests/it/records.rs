//! `walstat records`: its rows are the records of the report.

use crate::support::fixtures::{sample, samples};
use crate::support::{command, finish, json_of, walstat};
use serde_json::Value;
use std::collections::BTreeMap;
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
        // Very many rows, of which CSV is the quickest to write and to read.
        let csv = walstat(&["records", text(&sample.wal), "-f", "csv"]).stdout;
        let (head, lines) = csv.split_once('\n').expect("headings");
        let keys: Vec<&str> = head.split(',').collect();
        assert_eq!(totals["count"], lines.lines().count(), "{}", sample.name);
        let mut sums = vec![0u64; keys.len()];
        let mut last = "";
        for line in lines.lines() {
            let cells = line.split(',').zip(&mut sums).skip(5).take(6);
            cells.for_each(|(cell, sum)| *sum += cell.parse::<u64>().expect("a number"));
            let lsn = line.split(',').next().expect("an LSN");
            assert!(last <= lsn, "{}: {line}", sample.name);
            last = lsn;
        }
        for (key, sum) in keys.into_iter().zip(sums).skip(5).take(6) {
            assert_eq!(totals[key], sum, "{}: {key}", sample.name);
        }
    }
}

/// The columns that are there for good, in their order.
#[test]
fn columns_come_in_their_order() {
    let sample = sample("pg15-mixed");
    let keys = |more: &[&str]| {
        let words = [&["records", text(&sample.wal), "-n", "1", "-f", "csv"], more].concat();
        let csv = walstat(&words).exits(0).stdout;
        let row = rows(&sample.wal, &[&["-n", "1"], more].concat()).remove(0);
        let object: Vec<String> = row.as_object().expect("an object").keys().cloned().collect();
        let head = csv.lines().next().expect("headings").to_owned();
        assert_eq!(head, object.join(","));
        head
    };
    let (place, names) = (
        "tablespace,database,relfilenode,fork,block",
        "time,schema_name,table_name,relation_name,index_name",
    );
    let record =
        "lsn,end_lsn,xid,rmgr,record,total_bytes,record_bytes,fpi_bytes,fpi_count,main_data_bytes";
    let all = format!("{record},block_data_bytes,block_refs,{place},{names}");
    assert_eq!(keys(&[]), all);
    let of_block = "block_id,image_bytes,block_data_bytes,apply,hole_bytes,codec";
    assert_eq!(keys(&["--blocks"]), format!("{record},block_refs,{place},{names},{of_block}"));
}

/// Sums by database, schema and table of what is in a table's row.
#[test]
fn rows_by_table_are_the_table_of_the_report() {
    let sample = sample("pg15-mixed");
    let report = json_of(&["--stats=table"], &sample.wal);
    let sums = |rows: &[Value], keys: [&str; 3]| {
        let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for row in rows {
            let key = keys.map(|key| row[key].to_string()).join("/");
            let sum = sums.entry(key).or_default();
            let number = |key: &str| row[key].as_u64().unwrap_or(1);
            let amounts = [number("count"), number("total_bytes"), number("fpi_bytes")];
            sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
        }
        sums
    };
    let tables = report["tables"].as_array().expect("rows");
    let wanted = sums(tables, ["database", "schema", "name"]);
    assert!(wanted.len() > 50, "{}", wanted.len());
    let found = sums(&rows(&sample.wal, &[]), ["database", "schema_name", "table_name"]);
    assert_eq!(found, wanted);
}

/// An index and TOAST have the name and the schema of their table, and their own.
#[test]
fn what_belongs_to_a_table_says_so() {
    let sample = sample("pg15-mixed");
    let rows = rows(&sample.wal, &["-r", "Btree", "-r", "Heap"]);
    let of_table = |row: &&Value| row["schema_name"] == "public" && row["table_name"] == "docs";
    let toast = rows.iter().filter(of_table).find(|row| {
        row["relation_name"].as_str().is_some_and(|name| name.starts_with("pg_toast_"))
    });
    assert!(toast.is_some());
    let is_index = |row: &&Value| !row["index_name"].is_null();
    assert!(rows.iter().filter(is_index).count() > 1000);
    for row in rows.iter().filter(is_index) {
        assert_eq!(row["index_name"], row["relation_name"], "{row}");
        assert_ne!(row["index_name"], row["table_name"], "{row}");
    }
}

/// What is asked of very many rows, of records or of blocks.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Row<'l> {
    lsn: &'l str,
    fpi_bytes: u64,
    block_data_bytes: u64,
    block_refs: u64,
    block_id: Option<u64>,
    image_bytes: u64,
    hole_bytes: Option<u64>,
    apply: Option<bool>,
    #[serde(borrow)]
    codec: Option<&'l str>,
}

/// A row a block reference: sums are those of the report, and a page is what is stored with its hole.
#[test]
fn blocks_add_up_to_their_records() {
    for sample in ["pg15-mixed", "pages16k", "pg9.6-mixed"].map(sample) {
        let lines = |more: &[&str]| {
            let words = [&["records", text(&sample.wal), "-f", "ndjson"], more].concat();
            walstat(&words).stdout
        };
        let rows = |lines| -> Vec<Row<'_>> {
            let rows = str::lines(lines).map(|line| serde_json::from_str(line).expect("a row"));
            rows.collect()
        };
        let (records, blocks) = (lines(&[]), lines(&["--blocks"]));
        let (records, blocks) = (rows(&records), rows(&blocks));
        let sum = |rows: &[Row<'_>], of: fn(&Row<'_>) -> u64| rows.iter().map(of).sum::<u64>();
        let refs = sum(&records, |row| row.block_refs);
        assert_eq!(blocks.len() as u64, refs, "{}", sample.name);
        let images = sum(&records, |row| row.fpi_bytes);
        assert_eq!(sum(&blocks, |row| row.image_bytes), images, "{}", sample.name);
        let data = sum(&records, |row| row.block_data_bytes);
        assert_eq!(sum(&blocks, |row| row.block_data_bytes), data, "{}", sample.name);
        let page = if sample.name == "pages16k" { 16384 } else { 8192 };
        let mut last = None;
        for row in &blocks {
            let place = (row.lsn, row.block_id);
            assert!(last.replace(place) < Some(place), "{}: {row:?}", sample.name);
            let has_image = row.image_bytes != 0;
            assert_eq!(row.apply.is_some(), has_image, "{}: {row:?}", sample.name);
            if has_image && row.codec.is_none() {
                let whole = row.hole_bytes.map(|hole| row.image_bytes + hole);
                assert_eq!(whole, Some(page), "{}: {row:?}", sample.name);
            }
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so_in_a_line() {
    let sample = sample("pg15-mixed");
    let ran = walstat(&["records", text(&sample.wal), "-f", "parquet"]).exits(2);
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("--features parquet"), "{}", ran.stderr);
}

/// Each column has what CSV has: places and times as numbers.
#[cfg(feature = "parquet")]
#[test]
fn parquet_has_what_csv_has() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use walstat_format::lsn::Lsn;
    let sample = sample("pg15-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    for more in [&["-r", "Heap2"][..], &["--blocks", "-r", "Btree"], &["-x", "4000000000"]] {
        let file = directory.path().join("records.parquet");
        let words = [&["records", text(&sample.wal), "-f", "parquet", "-o", text(&file)], more];
        assert_eq!(walstat(&words.concat()).exits(0).stdout, "");
        let file = std::fs::File::open(&file).expect("written");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let rows = reader.get_row_iter(None).expect("rows");
        let lines = rows.map(|row| {
            let row = row.expect("a row");
            let fields = row.get_column_iter().map(|(name, field)| match field {
                Field::ULong(lsn) => format!("\"{}\"", Lsn(*lsn)),
                Field::TimestampMicros(time) => {
                    let time = jiff::Timestamp::from_microsecond(*time).expect("a time");
                    format!("\"{time:.6}\"")
                }
                Field::Str(text) => serde_json::to_string(text).expect("JSON"),
                Field::UInt(number) => number.to_string(),
                Field::Bool(flag) => flag.to_string(),
                Field::Null => "null".to_owned(),
                other => panic!("{name}: {other}"),
            });
            let names = row.get_column_iter().map(|(name, _)| name);
            let pairs: Vec<String> =
                names.zip(fields).map(|(name, field)| format!("\"{name}\":{field}")).collect();
            format!("{{{}}}", pairs.join(","))
        });
        let words = [&["records", text(&sample.wal), "-f", "ndjson"], more].concat();
        let wanted = walstat(&words).exits(0).stdout;
        assert!(lines.eq(wanted.lines().map(str::to_owned)), "{more:?}");
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

/// A device that never ends is no file of text, and is not read to the bound of one.
#[test]
fn what_is_no_text_is_neither_names_nor_a_report() {
    let sample = sample("pg15-mixed");
    let ran = walstat(&["--stats=relation", "--names", "/dev/zero", text(&sample.wal)]).exits(0);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("/dev/zero: a zero byte, expected text"), "{told}");
    for words in [
        &["check", "--max-growth=1", "--baseline", "/dev/zero", text(&sample.wal)][..],
        &["diff", "/dev/zero", text(&sample.wal)],
        &["check", "--config", "/dev/zero", text(&sample.wal)],
    ] {
        let ran = walstat(words);
        assert!(matches!(ran.code, Some(2 | 3)), "{words:?}: {:?} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains("/dev/zero: "), "{}", ran.stderr);
    }
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
        let names = [&row["schema_name"], &row["table_name"], &row["relation_name"]];
        assert_eq!(names, ["public", "or,ders", "or,ders"]);
        assert!(row["index_name"].is_null());
    }
    let shown = |format: &str| {
        let words = [&["records", text(&sample.wal), "-f", format], &names[..]].concat();
        walstat(&words).exits(0).stdout
    };
    assert!(shown("csv").contains(",public,\"or,ders\",\"or,ders\",\n"));
    assert!(shown("table").contains(" public.or,ders "));
}

#[test]
fn names_that_a_pipe_does_not_give_are_spoken_of() {
    let sample = sample("pg15-mixed");
    let segment =
        || std::fs::File::open(sample.segment("000000010000000000000008")).expect("a segment");
    let words = ["records", "-n", "1", "-f", "csv", "-"];
    let ran = finish(command(&words).stdin(segment())).exits(0);
    assert!(ran.stderr.contains("names are not learnt from a pipe"), "{}", ran.stderr);
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
    let fields = csv::Reader::from_reader(all.as_bytes()).into_records();
    assert!(fields.into_iter().all(|row| row.is_ok_and(|row| row.len() == 22)));
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
