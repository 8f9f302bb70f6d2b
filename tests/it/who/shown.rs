//! What the report shows of tables: five at least, partitions with their table, names from all of the
//! WAL.

use super::{json, rows};
use crate::support::fixtures::{sample, unpacked};
use crate::support::walstat;

#[test]
fn five_tables_are_shown_where_there_are_so_many() {
    for name in ["pg10-mixed", "pg15-mixed", "pg17-mixed"] {
        let wal = sample(name).wal;
        let tables = json(&wal, &[]);
        let named = rows(&tables, "tables").iter().filter(|row| !row["database"].is_null());
        assert!(named.count() > 5, "{name}");
        let text = walstat(&[&wal]).stdout;
        let block = text.lines().skip_while(|line| !line.starts_with("WHO"));
        let block = block.skip(1).take_while(|line| !line.trim_start().starts_with("everything"));
        let shown = block.filter(|line| line.starts_with("  ") && !line.starts_with("    "));
        assert_eq!(shown.count(), 5, "{text}");
    }
}

#[test]
fn the_report_has_partitions_with_their_table() {
    let wal = sample("pg15-mixed").wal;
    let report = json(&wal, &[]);
    let together = json(&wal, &["--stats=table", "--by", "parent"]);
    assert_eq!(report["tables"], together["tables"]);
    let each = json(&wal, &["--by", "table"]);
    assert_eq!(each["tables"], json(&wal, &["--stats=table"])["tables"]);
}

#[test]
fn a_range_has_the_names_that_the_wal_teaches_before_it() {
    let sample = sample("pg15-mixed");
    let all = json(&sample.wal, &["--stats=relation"]);
    let name = |row: &serde_json::Value| (row["relfilenode"].clone(), row["name"].clone());
    let known: Vec<_> = rows(&all, "relations").iter().map(name).collect();
    // After the tables were made.
    let part = json(&sample.wal, &["--stats=relation", "-s", "0/1200000"]);
    let found = rows(&part, "relations");
    assert!(found.len() > 10);
    for row in found {
        assert!(known.contains(&name(row)), "{row}");
    }
}

#[test]
fn what_was_rolled_back_has_its_names() {
    let wal = unpacked("checkpoints/causes.tar.zst").join("causes/volume/pg_wal");
    let report = json(&wal, &["--stats=relation", "--as", "pg_wal"]);
    let names: Vec<&str> =
        rows(&report, "relations").iter().filter_map(|row| row["name"].as_str()).collect();
    for name in ["back", "back_pkey", "lost", "lost_pkey"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}
