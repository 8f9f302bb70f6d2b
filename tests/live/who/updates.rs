//! What an update costs: measured among updates of the other sort, by several clients at once, it is
//! what one costs in a range where nothing else happened.

use super::{number, rows, who};
use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use serde_json::Value;
use std::process::Command;

/// Rows of each table.
const ROWS: u64 = 2000;

/// One client's transaction: a row is updated in a column that has no index, or in one that has.
fn update(table: &str, column: &str) -> String {
    format!(
        "\\set id random(1, {ROWS})\nUPDATE {table} SET {column} = {column} + 1000000 WHERE id = :id;\n"
    )
}

/// Runs scripts in turn, by four clients at once; the row of the table in what that wrote.
fn run(server: &Server, cluster: &Cluster, table: &str, scripts: &[String]) -> Value {
    let mut pgbench = Command::new(server.path("pgbench"));
    pgbench.args(cluster.connection()).args(["-n", "-c", "4", "-t", "2000"]);
    for (index, script) in scripts.iter().enumerate() {
        let path = cluster.home().join(format!("script{index}.sql"));
        std::fs::write(&path, script).expect("a script");
        pgbench.arg("-f").arg(path);
    }
    measured(cluster, table, || {
        let output = pgbench.arg("postgres").output().expect("pgbench runs");
        assert!(output.status.success(), "{output:?}");
    })
}

/// The row of a table in what `work` wrote.
fn measured(cluster: &Cluster, table: &str, work: impl FnOnce()) -> Value {
    let start = cluster.insert_lsn();
    work();
    let report = who(&["-s", &start, "-e", &cluster.insert_lsn()], &cluster.data());
    let row = rows(&report["tables"]).iter().find(|row| row["name"] == *table);
    row.unwrap_or_else(|| panic!("no row of {table}")).clone()
}

/// A table of its own for every run, just made, vacuumed, and behind a checkpoint.
fn make(cluster: &Cluster, name: &str, fillfactor: u32) {
    for statement in [
        format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, plain int, indexed int, filler text) \
             WITH (fillfactor = {fillfactor})"
        ),
        format!("CREATE INDEX {name}_indexed ON {name} (indexed)"),
        format!(
            "INSERT INTO {name} SELECT i, i, i, repeat('x', 60) FROM generate_series(1, {ROWS}) i"
        ),
        format!("VACUUM {name}"),
        "CHECKPOINT".to_owned(),
    ] {
        cluster.sql(&statement);
    }
}

fn price(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[track_caller]
fn is_near(found: f64, wanted: f64, tolerance: f64, what: &str) {
    let off = found / wanted - 1.0;
    assert!(off.abs() <= tolerance, "{what}: {found:.1} for {wanted:.1}, off by {off:.3}");
}

const HOT: &str = "bytes_per_hot_update";
const NON_HOT: &str = "bytes_per_non_hot_update";

/// All WAL of a table, by its updates: no other statement touched it.
fn alone(row: &Value) -> f64 {
    number(row, "total_bytes") as f64 / number(row, "updates") as f64
}

/// Without images, so that it does not matter which update is the first in a page.
#[test]
fn the_cost_of_an_update_is_that_of_a_run_with_only_those() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "full_page_writes = off";
    let cluster = Cluster::start(&server, &Settings { conf, ..Settings::default() });
    make(&cluster, "hot", 80);
    let hot = run(&server, &cluster, "hot", &[update("hot", "plain")]);
    let share = number(&hot, "hot_updates") as f64 / number(&hot, "updates") as f64;
    assert!(share > 0.95, "{share}");
    assert!(number(&hot["update_bytes"]["hot"], "prune_bytes") > 0, "{hot}");
    make(&cluster, "indexed", 80);
    let indexed = run(&server, &cluster, "indexed", &[update("indexed", "indexed")]);
    assert_eq!(number(&indexed, "hot_updates"), 0);
    assert_eq!(indexed[HOT], Value::Null);
    is_near(price(&indexed, NON_HOT), alone(&indexed), 0.03, "non-HOT alone");
    let cost = |row: &Value, key| number(&row["update_bytes"]["hot"], key);
    let all = ["heap_bytes", "lock_bytes", "prune_bytes", "index_bytes"].map(|key| cost(&hot, key));
    assert_eq!(cost(&hot, "total_bytes"), all.iter().sum::<u64>());

    make(&cluster, "mixed", 80);
    let scripts = [update("mixed", "plain"), update("mixed", "indexed")];
    let mixed = run(&server, &cluster, "mixed", &scripts);
    is_near(price(&mixed, HOT), price(&hot, HOT), 0.10, "HOT among others");
    is_near(price(&mixed, NON_HOT), alone(&indexed), 0.10, "non-HOT among others");
    assert!(price(&mixed, NON_HOT) > 2.0 * price(&mixed, HOT), "{mixed}");
}

/// With images, one statement each: room in the page or none, an indexed column or none.
#[test]
fn images_before_an_update_are_charged_to_it() {
    let Some(server) = Server::debian_15() else { return };
    let cluster = Cluster::start(&server, &Settings::default());
    for (name, fillfactor, column) in
        [("room", 45, "plain"), ("tight", 100, "plain"), ("indexed", 45, "indexed")]
    {
        make(&cluster, name, fillfactor);
        let row = measured(&cluster, name, || {
            cluster.sql(&format!("UPDATE {name} SET {column} = {column} + 1000000"));
        });
        let (hot, updates) = (number(&row, "hot_updates"), number(&row, "updates"));
        assert_eq!((hot, updates), (if name == "room" { ROWS } else { 0 }, ROWS), "{row}");
        is_near(price(&row, if hot > 0 { HOT } else { NON_HOT }), alone(&row), 0.03, name);
        let costs = &row["update_bytes"][if hot > 0 { "hot" } else { "non_hot" }];
        assert_eq!(number(costs, "lock_bytes") > 0, name == "tight", "{row}");
        assert_eq!(number(costs, "index_bytes") > 0, name != "room", "{row}");
        let images = number(&row, "fpi_bytes");
        is_near(number(costs, "fpi_bytes") as f64, images as f64, 0.03, name);
    }
}

/// Updates that are not HOT for want of room are those that room would make HOT.
#[test]
fn a_lower_fillfactor_makes_updates_cheaper() {
    let Some(server) = Server::debian_15() else { return };
    let cluster = Cluster::start(&server, &Settings::default());
    let [tight, loose] = [100, 90].map(|fillfactor| {
        let name = format!("filled{fillfactor}");
        make(&cluster, &name, fillfactor);
        measured(&cluster, &name, || {
            for part in 0..10 {
                let change = "plain = plain + 1000000";
                cluster.sql(&format!("UPDATE {name} SET {change} WHERE id % 20 = {part}"));
            }
        })
    });
    let share = |row| number(row, "hot_updates") as f64 / number(row, "updates") as f64;
    assert!(share(&loose) > share(&tight) + 0.05, "{} {}", share(&loose), share(&tight));
    assert!(price(&tight, NON_HOT) > 1.5 * price(&tight, HOT), "{tight}");
    for row in [&tight, &loose] {
        let cost = |sort: &str| number(&row["update_bytes"][sort], "total_bytes");
        let all = (cost("hot") + cost("non_hot")) as f64;
        is_near(all, number(row, "total_bytes") as f64, 0.03, "both sorts");
    }
    assert!(alone(&loose) < alone(&tight), "{} {}", alone(&loose), alone(&tight));
}
