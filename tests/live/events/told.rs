//! Statements, one after the other on a server of each release, and the events that walstat makes of them.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::walstat;
use serde_json::Value;

/// What is there before.
const BEFORE: [&str; 11] = [
    "CREATE TABLE \"Sales dept\" (a int)",
    "CREATE TABLE twice AS SELECT i AS a FROM generate_series(1, 50) i",
    "CREATE TABLE typed AS SELECT 7 AS id",
    "CREATE TABLE orders (id int PRIMARY KEY, note text)",
    "INSERT INTO orders SELECT i, md5(i::text) FROM generate_series(1, 50) i",
    "CREATE MATERIALIZED VIEW summary AS SELECT id, note FROM orders",
    "CREATE UNIQUE INDEX summary_id ON summary (id)",
    "CREATE TABLE parts (id int) PARTITION BY RANGE (id)",
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (10)",
    "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
    "CREATE SCHEMA old CREATE TABLE one (a int) CREATE TABLE two (a int)",
];

/// Statements, with the events that each is from 1000 rows on; and the first release that has them.
const STATEMENTS: [(u32, &str, &[&str]); 23] = [
    (10, "UPDATE orders SET note = 'changed' WHERE id < 9", &[]),
    (10, "REFRESH MATERIALIZED VIEW CONCURRENTLY summary", &[]),
    (10, "REFRESH MATERIALIZED VIEW summary", &["rewrite summary"]),
    (10, "REINDEX INDEX orders_pkey", &["reindex orders orders_pkey"]),
    (12, "REINDEX INDEX CONCURRENTLY orders_pkey", &["reindex orders orders_pkey"]),
    (12, "REINDEX TABLE CONCURRENTLY summary", &["reindex summary summary_id"]),
    (
        10,
        "CREATE INDEX CONCURRENTLY orders_note ON orders (note)",
        &["create_index orders orders_note"],
    ),
    (10, "DROP INDEX CONCURRENTLY orders_note", &["drop_index orders orders_note"]),
    (10, "ALTER TABLE orders ADD COLUMN more int DEFAULT 7", &[]),
    (10, "ALTER TABLE typed ALTER id TYPE bigint", &["rewrite typed"]),
    (10, "ALTER TABLE typed RENAME TO gone; DROP TABLE gone", &["drop_table gone"]),
    (10, "VACUUM FULL orders", &["rewrite orders"]),
    (
        10,
        "BEGIN; TRUNCATE twice; ALTER TABLE twice ADD b float DEFAULT random(); COMMIT",
        &["rewrite twice", "truncate twice"],
    ),
    (
        10,
        "BEGIN; ALTER TABLE twice ADD c float DEFAULT random(); TRUNCATE twice; COMMIT",
        &["rewrite twice", "truncate twice"],
    ),
    (
        10,
        "BEGIN; INSERT INTO twice SELECT generate_series(1, 2000); DELETE FROM twice; \
         ALTER TABLE twice ADD d float DEFAULT random(); COMMIT",
        &["delete twice", "insert twice", "rewrite twice"],
    ),
    (10, "DROP TABLE \"Sales dept\"", &["drop_table Sales dept"]),
    (10, "TRUNCATE parts", &["truncate parts_1", "truncate parts_2"]),
    (10, "ALTER TABLE parts DETACH PARTITION parts_2", &[]),
    (10, "ALTER TABLE orders RENAME TO orders_of_2026", &[]),
    (10, "DELETE FROM orders_of_2026", &[]),
    (10, "ALTER SCHEMA old RENAME TO older", &[]),
    (10, "DROP SCHEMA older CASCADE", &["drop_table one", "drop_table two"]),
    (
        10,
        "DROP TABLE parts, orders_of_2026 CASCADE",
        &[
            "drop_table orders_of_2026",
            "drop_table parts",
            "drop_table parts_1",
            "drop_table summary",
        ],
    ),
];

/// What an event is called.
fn called(event: &Value) -> String {
    let words = ["event", "table", "index_name"].map(|key| event[key].as_str().unwrap_or(""));
    words.join(" ").trim_end().to_owned()
}

fn statements_are_told(server: &Server) {
    let mut cluster = Cluster::start(server, &Settings::default());
    for statement in BEFORE {
        cluster.sql(statement);
    }
    let mut places = Vec::new();
    for (since, statement, events) in STATEMENTS {
        // A constant default has the table written anew before 11.
        if server.number() < since || server.number() < 11 && statement.contains("ADD COLUMN") {
            continue;
        }
        let begin = cluster.insert_lsn();
        cluster.sql(statement);
        places.push((begin, cluster.insert_lsn(), statement, events));
    }
    cluster.stop();
    let told = |more: &[&str]| -> Value {
        let text = walstat::text(&[&["events", "-f", "json"], more].concat(), &cluster.data());
        serde_json::from_str(&text).expect("JSON")
    };
    let report = told(&[]);
    let events = report["events"].as_array().expect("events");
    for (name, want) in [
        ("public.typed", "drop_table gone"),
        ("old.one", "drop_table one"),
        ("older.one", "drop_table one"),
        ("orders", "drop_table orders_of_2026"),
        ("\"Sales dept\"", "drop_table Sales dept"),
        ("postgres.public.Sales dept", "drop_table Sales dept"),
    ] {
        let of_name = told(&["-R", name, "--event", "drop_table"]);
        let called: Vec<String> =
            of_name["events"].as_array().into_iter().flatten().map(called).collect();
        assert_eq!(called, [want], "{}: {name}", server.major);
    }
    for (begin, end, statement, want) in places {
        let is_of = |event: &&Value| {
            let lsn = number(event["lsn"].as_str().expect("an LSN"));
            (number(&begin)..number(&end)).contains(&lsn)
        };
        let mut told: Vec<String> = events.iter().filter(is_of).map(called).collect();
        told.sort_unstable();
        assert_eq!(told, want, "{}: {statement}", server.major);
    }
}

fn number(lsn: &str) -> u64 {
    let (high, low) = lsn.split_once('/').expect("an LSN");
    let half = |digits: &str| u64::from_str_radix(digits, 16).expect("an LSN");
    half(high) << 32 | half(low)
}

#[test]
fn each_statement_is_told_as_what_it_did() {
    for major in ["10", "11", "13", "14", "16", "17", "18"] {
        Server::fetched(major).iter().for_each(statements_are_told);
    }
}
