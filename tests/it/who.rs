//! Who writes the WAL: relations, tables, databases, tablespaces, forks, blocks, transactions add up
//! to the totals, to the byte, on every fixture; they are what a naive twin and the servers say; and
//! they do not depend on the number of threads.

mod kinds;
mod official;
mod shown;
mod sums;
mod twin;

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// All dimensions of this kind.
const WHO: &str = "--stats=relation,table,database,tablespace,fork,block,transaction";

/// The JSON of walstat with these arguments.
fn json(wal: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walstat"));
    let output = command.arg(wal).args(["-f", "json"]).args(arguments).output().expect("walstat");
    let text = String::from_utf8_lossy(&output.stdout);
    match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// The rows of a table of the report.
fn rows<'r>(report: &'r Value, table: &str) -> &'r [Value] {
    let found = &report[table];
    let list = if found.is_object() { &found["top"] } else { found };
    list.as_array().map(Vec::as_slice).unwrap_or_else(|| panic!("{table} is not there"))
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// The numbers that every row has.
const NUMBERS: [&str; 5] = ["count", "record_bytes", "fpi_bytes", "total_bytes", "fpi_count"];

fn numbers(row: &Value) -> [u64; 5] {
    NUMBERS.map(|key| number(row, key))
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r Value>) -> [u64; 5] {
    let mut sums = [0; 5];
    for row in rows {
        sums.iter_mut().zip(numbers(row)).for_each(|(sum, number)| *sum += number);
    }
    sums
}

#[test]
fn transactions_that_are_no_rows_are_one_line_with_their_sums() {
    let wal = crate::support::fixtures::sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("a path");
    let all = json(Path::new(wal), &["--stats=transaction"]);
    let rest = sum(&rows(&all, "transactions")[2..]);
    let words = ["--stats=transaction", "--top", "2", "--bytes", "raw", wal];
    let shown = crate::support::walstat(&words).exits(0).stdout;
    let count = rows(&all, "transactions").len() - 2;
    let line = shown.lines().find(|line| line.starts_with(&format!("{count} more ")));
    let line = line.unwrap_or_else(|| panic!("{count} more: {shown}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words.contains(&rest[2].to_string().as_str()), "{rest:?}: {line}");
    assert!(words.contains(&rest[3].to_string().as_str()), "{rest:?}: {line}");
}
