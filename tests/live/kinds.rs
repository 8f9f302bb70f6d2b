//! Live tests of kinds of transactions: pgbench with several scripts, whose own count of each script must be
//! the count of its kind; and single transactions of which it is known what they did.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::walstat::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Scripts of pgbench, and the kind that each makes.
const SCRIPTS: [(&str, &str, &str); 4] = [
    (
        "pay",
        "\\set a random(1, 10000)\nBEGIN;\nUPDATE accounts SET balance = balance + 1 WHERE id = :a;\n\
         INSERT INTO history VALUES (:a);\nEND;\n",
        "INSERT history, UPDATE accounts",
    ),
    (
        "move",
        "\\set a random(1, 10000)\nBEGIN;\nSAVEPOINT s;\nDELETE FROM history WHERE id = :a;\nROLLBACK TO s;\n\
         SELECT 1 FROM accounts WHERE id = :a FOR UPDATE;\nUPDATE accounts SET balance = 0 WHERE id = :a;\n\
         INSERT INTO moves VALUES (:a, :a);\nEND;\n",
        "INSERT moves, UPDATE accounts, DELETE history",
    ),
    ("note", "INSERT INTO history VALUES (0);\n", "INSERT history"),
    (
        "undo",
        "\\set a random(1, 10000)\nBEGIN;\nDELETE FROM accounts WHERE id = :a;\nROLLBACK;\n",
        "DELETE accounts",
    ),
];

/// Rows of kinds by what they are called.
fn by_name(report: &Value) -> BTreeMap<String, Value> {
    let rows = report["kinds"].as_array().expect("kinds").iter();
    let rows = rows.filter(|row| row["maintenance"].is_null());
    rows.map(|row| (row["kind"].as_str().expect("a name").to_owned(), row.clone())).collect()
}

/// How often pgbench says that it ran each script.
fn runs(said: &str) -> BTreeMap<String, u64> {
    let mut runs = BTreeMap::new();
    let mut script = String::new();
    for line in said.lines() {
        if let Some((_, path)) =
            line.strip_prefix("SQL script ").and_then(|line| line.split_once(": "))
        {
            script = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".sql").to_owned();
        } else if let Some((count, _)) = line
            .trim_start_matches(" - ")
            .split_once(" transactions (")
            .filter(|_| line.starts_with(" - "))
        {
            runs.insert(script.clone(), count.parse().expect("a number"));
        }
    }
    runs
}

#[test]
fn each_script_of_pgbench_is_a_kind_with_as_many_transactions() {
    let Some(server) = Server::debian_15() else { return };
    let mut cluster = Cluster::start(&server, &Settings::default());
    cluster.sql("CREATE TABLE accounts (id int PRIMARY KEY, balance int) WITH (fillfactor = 50)");
    cluster.sql("CREATE TABLE history (id int)");
    cluster.sql("CREATE TABLE moves (a int, b int)");
    cluster.sql("INSERT INTO accounts SELECT g, 0 FROM generate_series(1, 10000) g");
    cluster.sql("INSERT INTO history SELECT g FROM generate_series(1, 10000) g");
    let mut pgbench = server.command("pgbench");
    pgbench.args(cluster.connection()).args(["-n", "-c", "3", "-t", "400", "postgres"]);
    for (name, script, _) in SCRIPTS {
        let path = cluster.home().join(format!("{name}.sql"));
        fs::write(&path, script).expect("a script");
        pgbench.arg("-f").arg(path);
    }
    let start = cluster.insert_lsn();
    let output = pgbench.output().expect("pgbench runs");
    assert!(output.status.success(), "{output:?}");
    cluster.sql("VACUUM");
    cluster.sql("CHECKPOINT");
    let end = cluster.insert_lsn();
    cluster.stop();
    let runs = runs(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(runs.values().sum::<u64>(), 1200, "{output:?}");

    let data = cluster.data();
    let report = json(&["--stats=kind,transaction", "-s", &start, "-e", &end], &data);
    let kinds = by_name(&report);
    for (name, _, kind) in SCRIPTS {
        let row = kinds.get(kind).unwrap_or_else(|| panic!("no {kind} in {:?}", kinds.keys()));
        assert_eq!(row["transactions"], runs[name], "{name}: {row}");
        let aborted = if name == "undo" { runs[name] } else { 0 };
        assert_eq!(row["aborted"], aborted, "{name}: {row}");
        assert_eq!(row["database_name"], "postgres", "{name}: {row}");
    }
    sizes_are_those_of_transactions(&report);
    let rows = report["kinds"].as_array().expect("kinds");
    let bytes =
        |rows: &[Value]| rows.iter().filter_map(|row| row["total_bytes"].as_u64()).sum::<u64>();
    assert_eq!(bytes(rows), report["totals"]["total_bytes"]);
    let maintenance: Vec<&str> =
        rows.iter().filter_map(|row| row["maintenance"].as_str()).collect();
    assert!(
        ["vacuum", "checkpoint"].iter().all(|word| maintenance.contains(word)),
        "{maintenance:?}"
    );
    let vacuum = rows.iter().find(|row| row["maintenance"] == "vacuum").expect("vacuum");
    let tables = vacuum["operations"].as_array().expect("tables");
    assert!(tables.iter().any(|of| of["table"] == "accounts"), "{vacuum}");
}

/// The transactions of all kinds are the rows of transactions: as many, of the same sizes.
fn sizes_are_those_of_transactions(report: &Value) {
    let top = report["transactions"]["top"].as_array().expect("transactions");
    let mut sizes: Vec<u64> = top.iter().filter_map(|row| row["total_bytes"].as_u64()).collect();
    sizes.sort_unstable();
    let kinds = report["kinds"].as_array().expect("kinds");
    let known = |key: &str| kinds.iter().filter_map(|row| row[key].as_u64()).collect::<Vec<u64>>();
    assert_eq!(known("transactions").iter().sum::<u64>(), sizes.len() as u64);
    for size in [known("median_bytes"), known("p99_bytes")].concat() {
        assert!(sizes.binary_search(&size).is_ok(), "no transaction has {size} bytes");
    }
}

/// Statements, each a transaction or a script of its own, and the kind that it is.
const SINGLE: [(&str, &str); 8] = [
    ("INSERT INTO child VALUES (1, 1, 'x')", "INSERT child, LOCK parent"),
    (
        "INSERT INTO docs VALUES (1, repeat(md5('x'), 100) || (SELECT string_agg(md5(g::text), '') FROM \
      generate_series(1, 900) g))",
        "INSERT docs",
    ),
    (
        "UPDATE docs SET body = (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 800) g)",
        "UPDATE docs",
    ),
    ("DELETE FROM docs", "DELETE docs"),
    ("BEGIN; SELECT * FROM parent FOR UPDATE; UPDATE parent SET t = 'y'; COMMIT", "UPDATE parent"),
    ("BEGIN; INSERT INTO parent VALUES (7); PREPARE TRANSACTION 'p'; ", "INSERT parent"),
    ("COPY m FROM PROGRAM 'seq 1 19'", "INSERT m1, m2"),
    ("SELECT lo_from_bytea(0, 'abc')", "INSERT pg_largeobject, pg_largeobject_metadata"),
];

#[test]
fn what_single_transactions_did_is_their_kind() {
    for major in ["10", "15", "18"] {
        let Some(server) = Server::fetched(major) else { return };
        kinds_of_single_transactions(&server);
    }
}

fn kinds_of_single_transactions(server: &Server) {
    let mut cluster = Cluster::start(server, &Settings::default());
    cluster.sql("CREATE TABLE parent (id int PRIMARY KEY, t text)");
    cluster.sql("CREATE TABLE child (id int, p int REFERENCES parent, t text)");
    cluster.sql("CREATE TABLE docs (id int, body text)");
    cluster.sql("CREATE TABLE m (a int) PARTITION BY RANGE (a)");
    cluster.sql("CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (1) TO (10)");
    cluster.sql("CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (10) TO (20)");
    cluster.sql("INSERT INTO parent VALUES (1, 'x')");
    for (statement, kind) in SINGLE {
        // Partitions are routed by COPY from 10 on.
        let start = cluster.insert_lsn();
        cluster.sql(statement);
        if statement.contains("PREPARE") {
            cluster.sql("COMMIT PREPARED 'p'");
        }
        let end = cluster.insert_lsn();
        let report = json(&["--stats=kind", "-s", &start, "-e", &end], &cluster.data());
        let kinds = by_name(&report);
        let row = kinds.get(kind);
        let row =
            row.unwrap_or_else(|| panic!("{}: {statement}: {:?}", server.major, kinds.keys()));
        assert_eq!((&row["transactions"], kinds.len()), (&1.into(), 1), "{statement}: {kinds:?}");
    }
    let start = cluster.insert_lsn();
    cluster.sql("CREATE TABLE new_table (a int)");
    let end = cluster.insert_lsn();
    let report = json(&["--stats=kind", "-s", &start, "-e", &end], &cluster.data());
    let kinds = by_name(&report);
    let only: Vec<&Value> = kinds.values().collect();
    let operations = only[0]["operations"].as_array().expect("a list");
    assert!(operations.iter().all(|of| of["operation"] == "ddl"), "{kinds:?}");
    assert!(operations.iter().any(|of| of["table"] == "pg_class"), "{kinds:?}");
    cluster.stop();
}

/// Statements, each a transaction, as pg_stat_statements knows them, and their kind.
const STATEMENTS: [(&str, &str, &str); 3] = [
    ("INSERT INTO history%", "INSERT INTO history VALUES (:i);", "INSERT history"),
    ("UPDATE accounts%", "UPDATE accounts SET balance = 1 WHERE id = :i;", "UPDATE accounts"),
    ("DELETE FROM moves%", "DELETE FROM moves WHERE id = :i;", "DELETE moves"),
];

/// The server counts WAL by statement where it writes it: but for the commits, which come after a statement,
/// that is the WAL of a kind. What was pruned on the way is the statement's, and no transaction's in the WAL.
#[test]
fn a_kind_has_the_wal_that_pg_stat_statements_counts_for_its_statement() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "shared_preload_libraries = 'pg_stat_statements'";
    let mut cluster = Cluster::start(&server, &Settings { initdb: &[], conf });
    cluster.sql("CREATE EXTENSION pg_stat_statements");
    cluster.sql("CREATE TABLE history (id int PRIMARY KEY)");
    for table in ["accounts", "moves"] {
        cluster.sql(&format!("CREATE TABLE {table} (id int PRIMARY KEY, balance int)"));
        cluster.sql(&format!("INSERT INTO {table} SELECT g, 0 FROM generate_series(1, 3000) g"));
    }
    cluster.sql("VACUUM");
    cluster.sql("CHECKPOINT");
    let start = cluster.insert_lsn();
    for (_, statement, _) in STATEMENTS {
        let lines = (1..=700).map(|i| statement.replace(":i", &(i * 4).to_string()) + "\n");
        let path = cluster.home().join("statements.sql");
        fs::write(&path, lines.collect::<String>()).expect("a script");
        cluster.psql(&["-f", path.to_str().expect("text")]);
    }
    let end = cluster.insert_lsn();
    let counted = STATEMENTS.map(|(like, ..)| {
        let row = cluster.sql(&format!(
            "SELECT sum(calls), sum(wal_records), sum(wal_fpi), sum(wal_bytes) \
             FROM pg_stat_statements WHERE query LIKE '{like}'"
        ));
        let numbers: Vec<u64> =
            row.split('|').map(|text| text.parse().expect("a number")).collect();
        <[u64; 4]>::try_from(numbers).expect("four numbers")
    });
    cluster.stop();
    let report = json(&["--stats=kind,record", "-s", &start, "-e", &end], &cluster.data());
    let records = report["records"].as_array().expect("records");
    let of = |rmgr: &str, begins: &str, key: &str| -> u64 {
        let is = |row: &&Value| {
            row["rmgr"] == rmgr
                && row["record"].as_str().is_some_and(|name| name.starts_with(begins))
        };
        records.iter().filter(is).filter_map(|row| row[key].as_u64()).sum()
    };
    let commit_bytes =
        of("Transaction", "COMMIT", "total_bytes") / of("Transaction", "COMMIT", "count");
    let pruned = ["count", "fpi_count", "total_bytes"].map(|key| of("Heap2", "PRUNE", key));
    let kinds = by_name(&report);
    for ((_, statement, kind), [calls, wal_records, wal_fpi, wal_bytes]) in
        STATEMENTS.iter().zip(counted)
    {
        let row = kinds.get(*kind).unwrap_or_else(|| panic!("no {kind} in {:?}", kinds.keys()));
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"));
        assert_eq!(number("transactions"), calls, "{statement}");
        let own = [
            number("count") - calls,
            number("fpi_count"),
            number("total_bytes") - calls * commit_bytes,
        ];
        let more = if kind.starts_with("INSERT") { [0; 3] } else { pruned };
        for ((own, server), more) in own.iter().zip([wal_records, wal_fpi, wal_bytes]).zip(more) {
            assert!(
                (*own..=own + more).contains(&server),
                "{kind}: {own} of {server}, pruned {more}: {row}"
            );
        }
    }
}
