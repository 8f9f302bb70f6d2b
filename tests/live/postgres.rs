//! Live tests: real servers make WAL on this machine, and walstat must say of it what they say.
//!
//! Two judges. Debian's PostgreSQL 15 brings pg_waldump: the text must be the same, byte for byte,
//! for every filter and several settings. The servers that `tests/live/servers.sh` fetches answer
//! themselves: `pg_get_wal_stats` (15 and later), the changes they counted row by row, and
//! `pg_control`. Where a server is missing its test says SKIPPED on standard error;
//! `WALSTAT_REQUIRE_LIVE=1` makes that a failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::support::patience::PATIENCE;
use crate::walstat::{self, Sums};
use serde_json::Value;

/// A range of WAL with things in it that filters can ask for.
struct Range {
    start: String,
    end: String,
    /// `-R` of the table "known".
    relation: String,
    /// A transaction that wrote some of its rows.
    xid: String,
}

impl Range {
    fn bounds(&self) -> [&str; 4] {
        ["-s", &self.start, "-e", &self.end]
    }
}

/// Runs the load and returns its range; the end is that of a record.
fn load(cluster: &Cluster) -> Range {
    let start = cluster.insert_lsn();
    cluster.script("workload.sql");
    cluster.script("known.sql");
    cluster.sql("CHECKPOINT");
    Range {
        start,
        end: cluster.insert_lsn(),
        relation: cluster.sql(
            "SELECT t.oid || '/' || d.oid || '/' || pg_relation_filenode('known') \
             FROM pg_tablespace t, pg_database d \
             WHERE t.spcname = 'pg_default' AND d.datname = current_database()",
        ),
        xid: cluster.sql("SELECT xmin FROM known WHERE id = 1"),
    }
}

/// pg_waldump's standard output. Its exit code is 1 at any end of WAL without a range.
fn pg_waldump(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(server.path("pg_waldump"));
    let output = command.args(arguments).output().expect("pg_waldump runs");
    String::from_utf8(output.stdout).expect("pg_waldump prints UTF-8")
}

/// The sums of the line "Total"; none are printed where nothing was counted.
fn total(table: &str) -> Sums {
    let Some(line) = table.lines().find(|line| line.starts_with("Total ")) else {
        return (0, 0, 0);
    };
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    let mut next = || numbers.next().expect("a number in the line Total");
    (next(), next(), next())
}

/// Holds text and totals for one choice of records against pg_waldump's. Returns how many there are.
fn same_as_pg_waldump(server: &Server, wal: &Path, range: &Range, filter: &[&str]) -> u64 {
    let chosen = [&["-t", "1"], &range.bounds()[..], filter].concat();
    let path = wal.to_str().expect("a path in UTF-8");
    let mut sums = (0, 0, 0);
    for stats in ["--stats", "--stats=record"] {
        let official = pg_waldump(server, &[&["-p", path, stats], &chosen[..]].concat());
        let ours = walstat::text(&[&[stats, "--format", "pg_waldump"], &chosen[..]].concat(), wal);
        assert_eq!(ours, official, "{stats} {chosen:?}");
        sums = total(&official);
    }
    let report = walstat::json(&chosen, wal);
    assert_eq!(walstat::sums(&report["totals"]), sums, "{chosen:?}");
    sums.0
}

/// The whole folder, no range: first segment to last.
fn whole_folder_same(server: &Server, wal: &Path) {
    let names = std::fs::read_dir(wal).expect("folder of WAL");
    let names = names.map(|entry| entry.expect("entry").file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut segments: Vec<_> = names.filter(|name| name.len() == 24).collect();
    segments.sort();
    let path = |name: Option<&String>| wal.join(name.expect("a segment")).display().to_string();
    let (first, last) = (path(segments.first()), path(segments.last()));
    for stats in ["--stats", "--stats=record"] {
        let official = pg_waldump(server, &[stats, &first, &last]);
        let ours = walstat::text(&[stats, "--format", "pg_waldump"], wal);
        assert!(!official.is_empty(), "pg_waldump prints a table");
        assert_eq!(ours, official, "{stats}, whole folder");
    }
}

/// pgbench and the load on Debian's PostgreSQL 15, then all comparisons with its pg_waldump.
fn against_pg_waldump(settings: &Settings) {
    let Some(server) = Server::debian_15() else {
        return;
    };
    let mut cluster = Cluster::start(&server, settings);
    for arguments in [&["-q", "-i"][..], &["-n", "-c", "2", "-t", "500"]] {
        let mut pgbench = Command::new(server.path("pgbench"));
        pgbench.args(cluster.connection()).args(arguments);
        let output = pgbench.arg("postgres").output().expect("pgbench runs");
        assert!(output.status.success(), "pgbench: {output:?}");
    }
    let mut range = load(&cluster);
    range.end = cluster.sql("SELECT pg_switch_wal()");
    cluster.stop();

    let (wal, relation, xid) = (cluster.wal(), range.relation.as_str(), range.xid.as_str());
    let filled: [&[&str]; 14] = [
        &[],
        &["-n", "1000"],
        &["-r", "Heap"],
        &["-r", "btree", "-r", "Transaction", "-r", "XLOG"],
        &["-x", xid],
        &["-x", "0"],
        &["-R", relation],
        &["-R", relation, "-B", "0"],
        &["-R", relation, "-F", "main"],
        &["-F", "vm"],
        &["-F", "init"],
        &["-w"],
        &["-w", "-r", "Heap2", "-r", "Heap"],
        &["-r", "Heap", "-R", relation, "-B", "3", "-n", "5"],
    ];
    for filter in filled {
        let count = same_as_pg_waldump(&server, &wal, &range, filter);
        assert!(count > 0, "nothing passes {filter:?}: it tests nothing");
    }
    assert_eq!(same_as_pg_waldump(&server, &wal, &range, &["-x", "4000000000"]), 0);
    whole_folder_same(&server, &wal);
}

#[test]
fn pg_waldump_default_settings() {
    against_pg_waldump(&Settings::default());
}

#[test]
fn pg_waldump_1_mb_segments_pglz_checksums_logical() {
    against_pg_waldump(&Settings {
        initdb: &["--wal-segsize=1", "--data-checksums"],
        conf: "wal_compression = pglz\nwal_level = logical",
    });
}

#[test]
fn pg_waldump_64_mb_segments_lz4_minimal() {
    against_pg_waldump(&Settings {
        initdb: &["--wal-segsize=64"],
        conf: "wal_compression = lz4\nwal_level = minimal\nmax_wal_senders = 0",
    });
}

#[test]
fn pg_waldump_zstd_consistency_images() {
    against_pg_waldump(&Settings {
        initdb: &["--wal-segsize=4"],
        conf: "wal_compression = zstd\nwal_consistency_checking = all",
    });
}

/// The server's own count of the changes to "known": inserted, updated, HOT, deleted. Servers
/// before 15 learn it from a process that lags behind, so the answer is waited for.
fn counted_changes(cluster: &Cluster) -> [u64; 4] {
    let patience = Instant::now() + PATIENCE;
    loop {
        let row = cluster.sql(
            "SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del \
             FROM pg_stat_user_tables WHERE relname = 'known'",
        );
        let numbers: Vec<u64> = row.split('|').filter_map(|n| n.parse().ok()).collect();
        if let Ok(counts) = <[u64; 4]>::try_from(numbers)
            && counts[3] > 0
        {
            return counts;
        }
        assert!(Instant::now() < patience, "the server's counts: {row}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The same counts, from record types that concern the table alone.
fn changes_in(records: &BTreeMap<String, Sums>) -> [u64; 4] {
    let count = |names: &[&str]| {
        let of = |suffix| names.iter().map(move |name| format!("Heap/{name}{suffix}"));
        let keys = of("").chain(of("+INIT"));
        keys.filter_map(|key| Some(records.get(&key)?.0)).sum()
    };
    [
        count(&["INSERT"]),
        count(&["UPDATE", "HOT_UPDATE"]),
        count(&["HOT_UPDATE"]),
        count(&["DELETE"]),
    ]
}

/// The rows of pg_get_wal_stats over the range.
fn wal_stats(cluster: &Cluster, range: &Range) -> BTreeMap<String, Sums> {
    cluster.sql("CREATE EXTENSION pg_walinspect");
    let rows = cluster.sql(&format!(
        "SELECT \"resource_manager/record_type\", count, record_size, fpi_size \
         FROM pg_get_wal_stats('{}', '{}', true)",
        range.start, range.end
    ));
    let row = |line: &str| {
        let mut cells = line.split('|');
        let name = cells.next().expect("a name").to_owned();
        let mut next = || cells.next().and_then(|n| n.parse().ok()).expect("a number");
        (name, (next(), next(), next()))
    };
    rows.lines().map(row).collect()
}

/// After a stop: the whole folder is read, closed, and ends with the checkpoint of `pg_control`.
fn ends_where_pg_control_says(server: &Server, cluster: &mut Cluster) {
    let control = cluster.stop();
    let whole = walstat::json(&[], &cluster.wal());
    let input = &whole["input"];
    assert_eq!(input["postgres"], server.major, "{input}");
    assert_eq!(input["system_identifier"], control.system_identifier);
    assert_eq!(whole["ending"]["kind"], "shutdown", "{}", whole["ending"]);
    assert_eq!(whole["problems"], Value::Array(Vec::new()));

    let last = walstat::json(&["-s", &control.checkpoint], &cluster.wal());
    let names: Vec<_> = walstat::records(&last).into_keys().collect();
    assert_eq!(names, ["XLOG/CHECKPOINT_SHUTDOWN"]);
    assert_eq!(walstat::sums(&last["totals"]).0, 1, "one record");
    assert_eq!(last["range"]["end"], whole["range"]["end"]);
}

/// The load on a fetched server, then all that this server can say about its own WAL.
fn against_server(major: &'static str, settings: &Settings) {
    let Some(server) = Server::fetched(major) else {
        return;
    };
    let mut cluster = Cluster::start(&server, settings);
    let range = load(&cluster);
    let changes = counted_changes(&cluster);
    let official = (server.number() >= 15).then(|| wal_stats(&cluster, &range));
    ends_where_pg_control_says(&server, &mut cluster);

    if let Some(official) = official {
        let ours = walstat::records(&walstat::json(&range.bounds(), &cluster.wal()));
        assert!(official.len() > 50, "the load touches many record types");
        assert_eq!(ours, official);
    }
    let filter = [&range.bounds()[..], &["-R", &range.relation]].concat();
    let known = walstat::records(&walstat::json(&filter, &cluster.wal()));
    assert_eq!(changes_in(&known), changes, "{known:?}");
}

/// One test for each release; the settings differ so that together they cover more.
macro_rules! servers {
    ($($name:ident: $major:literal, initdb $initdb:expr, conf $conf:literal;)*) => {
        $(#[test]
        fn $name() {
            let settings = Settings { initdb: &$initdb, conf: $conf };
            against_server($major, &settings);
        })*
    };
}

servers! {
    server_9_6: "9.6", initdb [], conf "wal_compression = on";
    server_10: "10", initdb [], conf "";
    server_11: "11", initdb ["--wal-segsize=1"], conf "";
    server_12: "12", initdb [], conf "wal_level = logical";
    server_13: "13", initdb ["--wal-segsize=64"], conf "";
    server_14: "14", initdb ["--data-checksums"], conf "wal_compression = on";
    server_15: "15", initdb ["--wal-segsize=2"], conf "wal_compression = on";
    server_16: "16", initdb ["--wal-segsize=1"], conf "";
    server_17: "17", initdb [], conf "wal_consistency_checking = all";
    server_18: "18", initdb ["--wal-segsize=4"], conf "";
}
