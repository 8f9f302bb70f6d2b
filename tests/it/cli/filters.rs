//! The filters: each leaves exactly the records that a naive reading of the same segment says, and
//! what is left out is told as left out.

#[path = "naive.rs"]
mod naive;

use crate::support::fixtures::sample;
use crate::support::wal::plain;
use crate::support::{json_of, number, walstat};
use naive::{Block, Record, records, some_of};
use std::path::PathBuf;

/// A segment of the PostgreSQL 15 sample with many transactions, relations and forks.
const SEGMENT: &str = "000000010000000000000015";

struct Read {
    path: PathBuf,
    records: Vec<Record>,
}

fn read() -> Read {
    let sample = sample("pg15-mixed");
    let records = records(&plain(&sample, SEGMENT));
    assert!(records.len() > 1000, "{} records only", records.len());
    Read { path: sample.segment(SEGMENT), records }
}

impl Read {
    /// Requires that `arguments` leave the records for which `wanted` holds. Returns their number.
    #[track_caller]
    fn leaves(&self, arguments: &[&str], wanted: impl Fn(&Record) -> bool) -> usize {
        let json = json_of(&[&["--stats"], arguments].concat(), &self.path);
        let left: Vec<&Record> = self.records.iter().filter(|record| wanted(record)).collect();
        let sum =
            |of: fn(&Record) -> u32| left.iter().map(|record| i128::from(of(record))).sum::<i128>();
        let want =
            [left.len() as i128, sum(|r| r.total_bytes), sum(|r| r.fpi_bytes), sum(|r| r.images)];
        let keys = ["count", "total_bytes", "fpi_bytes", "fpi_count"];
        assert_eq!(keys.map(|key| number(&json["totals"], key)), want, "{arguments:?}: {keys:?}");
        assert_eq!(number(&json, "books.unaccounted_bytes"), 0, "{arguments:?}");
        let out: i128 =
            self.records.iter().map(|record| i128::from(record.total_bytes)).sum::<i128>()
                - want[1];
        assert_eq!(number(&json, "books.filtered_bytes"), out, "{arguments:?}: what is left out");
        left.len()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.records.iter().flat_map(|record| &record.blocks)
    }
}

fn has(record: &Record, wanted: impl Fn(&Block) -> bool) -> bool {
    record.blocks.iter().any(wanted)
}

#[test]
fn no_filter_leaves_every_record() {
    let read = read();
    read.leaves(&[], |_| true);
}

#[test]
fn a_resource_manager_leaves_its_records_and_all_together_leave_everything() {
    let read = read();
    let whole = json_of(&["--stats"], &read.path);
    let mut sum = 0;
    for row in whole["rmgrs"].as_array().expect("rmgrs") {
        let name = row["rmgr"].as_str().expect("a name");
        let id = number(row, "id");
        sum += read.leaves(&["-r", name], |record| i128::from(record.rmgr) == id);
    }
    assert_eq!(sum, read.records.len());
    read.leaves(&["--rmgr", "hEaP", "--rmgr", "BTREE"], |record| [10, 11].contains(&record.rmgr));
    read.leaves(&["--rmgr", "custom128"], |_| false);
}

#[test]
fn a_record_name_leaves_its_type() {
    let read = read();
    let whole = json_of(&["--stats=record"], &read.path);
    let rows = whole["records"].as_array().expect("records");
    let mut sum = 0;
    for row in rows {
        let text = |key: &str| row[key].as_str().expect("a text");
        let info = u8::from_str_radix(text("info").trim_start_matches("0x"), 16).expect("a number");
        let wanted = |record: &Record| named(record, text("rmgr"), info);
        sum += read.leaves(&["--record", &format!("{}/{}", text("rmgr"), text("record"))], wanted);
    }
    assert_eq!(sum, read.records.len());
    let inserts =
        rows.iter().filter(|row| row["record"] == "INSERT").map(|row| number(row, "count"));
    let got = json_of(&["--stats", "--record", "insert"], &read.path);
    assert_eq!(number(&got, "totals.count"), inserts.sum(), "INSERT of every resource manager");
}

/// Whether a record is of a type; 15 leaves bit 0x80 of transaction records out of the type.
fn named(record: &Record, rmgr: &str, info: u8) -> bool {
    let mask = if rmgr == "Transaction" { 0x70 } else { 0xF0 };
    RMGRS.get(usize::from(record.rmgr)) == Some(&rmgr) && record.info & mask == info
}

/// `rmgrlist.h` of PostgreSQL 15, in its order.
const RMGRS: [&str; 22] = [
    "XLOG",
    "Transaction",
    "Storage",
    "CLOG",
    "Database",
    "Tablespace",
    "MultiXact",
    "RelMap",
    "Standby",
    "Heap2",
    "Heap",
    "Btree",
    "Hash",
    "Gin",
    "Gist",
    "Sequence",
    "SPGist",
    "BRIN",
    "CommitTs",
    "ReplicationOrigin",
    "Generic",
    "LogicalMessage",
];

#[test]
fn an_xid_leaves_the_records_of_its_transaction() {
    let read = read();
    let xids = read.records.iter().map(|record| record.xid).collect();
    for xid in some_of(xids, 12) {
        let left = read.leaves(&["--xid", &xid.to_string()], |record| record.xid == xid);
        assert!(left > 0, "xid {xid} is from a record");
    }
}

#[test]
fn a_relation_leaves_the_records_that_refer_to_it() {
    let read = read();
    for relation in some_of(read.blocks().map(|block| block.relation).collect(), 12) {
        let [tablespace, database, file] = relation;
        let name = format!("{tablespace}/{database}/{file}");
        let left =
            read.leaves(&["-R", &name], |record| has(record, |block| block.relation == relation));
        assert!(left > 0, "{name} is from a record");
    }
    read.leaves(&["-R", "1663/5/4294967295"], |_| false);
}

#[test]
fn relation_block_and_fork_must_meet_in_one_reference() {
    let read = read();
    for wanted in some_of(read.blocks().cloned().collect(), 12) {
        let [tablespace, database, file] = wanted.relation;
        let (name, number) = (format!("{tablespace}/{database}/{file}"), wanted.number.to_string());
        let fork = ["main", "fsm", "vm", "init"][usize::from(wanted.fork)];
        let same =
            |block: &Block| block.relation == wanted.relation && block.number == wanted.number;
        read.leaves(&["-R", &name, "-B", &number], |record| has(record, same));
        let left = read.leaves(&["-R", &name, "-B", &number, "-F", fork], |record| {
            has(record, |block| *block == wanted)
        });
        assert!(left > 0, "{wanted:?} is from a record");
    }
}

#[test]
fn a_fork_leaves_the_records_that_refer_to_it() {
    let read = read();
    let counts: Vec<usize> = ["main", "fsm", "vm", "init"]
        .into_iter()
        .zip(0..)
        .map(|(name, fork)| {
            read.leaves(&["-F", name], |record| has(record, |block| block.fork == fork))
        })
        .collect();
    assert!(
        counts.iter().filter(|count| **count > 0).count() > 1,
        "one fork shows no difference: {counts:?}"
    );
}

#[test]
fn a_database_leaves_the_records_that_refer_to_it() {
    let read = read();
    for database in some_of(read.blocks().map(|block| block.relation[1]).collect(), 5) {
        let oid = database.to_string();
        read.leaves(&["--database", &oid], |record| {
            has(record, |block| block.relation[1] == database)
        });
    }
}

#[test]
fn fullpage_leaves_the_records_with_images() {
    let read = read();
    let left = read.leaves(&["-w"], |record| record.images > 0);
    assert!(left > 0 && left < read.records.len());
}

#[test]
fn filters_are_and() {
    let read = read();
    read.leaves(&["-r", "Heap", "-w"], |record| record.rmgr == 10 && record.images > 0);
    read.leaves(&["-r", "Heap", "-r", "Btree", "-F", "main", "-w"], |record| {
        [10, 11].contains(&record.rmgr) && record.images > 0 && has(record, |block| block.fork == 0)
    });
    let xid = read.records.iter().map(|record| record.xid).find(|xid| *xid != 0).expect("an xid");
    read.leaves(&["-r", "Btree", "-x", &xid.to_string()], |record| {
        record.rmgr == 11 && record.xid == xid
    });
    read.leaves(&["-r", "Btree", "--record", "Heap/INSERT"], |_| false);
}

#[test]
fn a_limit_counts_what_the_filters_leave() {
    let read = read();
    for limit in [1, 10, 100] {
        let json = json_of(&["--stats", "-r", "Heap", "-n", &limit.to_string()], &read.path);
        assert_eq!(number(&json, "totals.count"), limit);
        let heap = read.records.iter().filter(|record| record.rmgr == 10);
        let bytes: i128 =
            heap.take(limit as usize).map(|record| i128::from(record.total_bytes)).sum();
        assert_eq!(number(&json, "totals.total_bytes"), bytes, "the first {limit}");
        assert_eq!(number(&json, "books.unaccounted_bytes"), 0);
    }
    let none = json_of(&["--stats", "-n", "0"], &read.path);
    assert_eq!(number(&none, "totals.count"), read.records.len() as i128, "0 is no limit");
}

#[test]
fn filters_that_were_on_are_said() {
    let read = read();
    let relation = read.blocks().next().map(|block| block.relation).expect("a relation");
    let relation = relation.map(|number| number.to_string()).join("/");
    let asked = [
        "--rmgr",
        "heap",
        "-r",
        "Btree",
        "--record",
        "Heap/INSERT",
        "-x",
        "700",
        "-R",
        &relation,
        "-B",
        "0",
        "-F",
        "main",
        "--database",
        "5",
        "-w",
    ];
    let json = json_of(&[&["--stats"], &asked[..]].concat(), &read.path);
    let want = serde_json::json!({
        "rmgr": ["Heap", "Btree"],
        "record": ["Heap/INSERT"],
        "xid": "700",
        "relation": relation,
        "block": 0,
        "fork": "main",
        "database": 5,
        "fullpage": true,
    });
    assert_eq!(json["input"]["filters"], want);
    assert_eq!(json_of(&["--stats"], &read.path)["input"]["filters"], serde_json::json!({}));
    let line = format!(
        "Filters: --rmgr Heap --rmgr Btree --record Heap/INSERT --xid 700 --relation {relation} \
         --block 0 --fork main --database 5 --fullpage"
    );
    let path = read.path.to_str().expect("UTF-8");
    for form in [&["--stats"][..], &[]] {
        let told = walstat(&[form, &asked[..], &[path]].concat()).exits(0).stdout;
        // A long line goes on in the next.
        let words: Vec<&str> = told.split_whitespace().collect();
        assert!(words.join(" ").contains(&line), "no \"{line}\" in\n{told}");
        let told = walstat(&[form, &[path]].concat()).exits(0).stdout;
        assert!(!told.contains("Filters"), "{told}");
    }
}
