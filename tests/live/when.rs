//! Live tests of time: what walstat says of checkpoints, their causes and times, of commits and of
//! spans of time is held against the server's log, `pg_control` and `pg_xact_commit_timestamp`.
//!
//! Where the WAL does not tell a cause, walstat may say nothing; it may never be wrong and sure. What it
//! says of WAL whose checkpoints came in time is held in `it/checkpoints.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::support::server_log::logged_causes;
use crate::wait::wait;
use crate::walstat::text;
use serde_json::Value;

/// What `pg_control` says of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    checkpoint: String,
    redo: String,
    /// Seconds since 1970.
    time: i64,
}

/// Collects what `pg_control` says, as long as the server runs.
#[derive(Default)]
struct Oracle {
    told: BTreeSet<Told>,
}

impl Oracle {
    fn look(&mut self, cluster: &Cluster) {
        let (checkpoint, redo) = match cluster.release() {
            ..10 => ("checkpoint_location", "redo_location"),
            _ => ("checkpoint_lsn", "redo_lsn"),
        };
        let row = cluster.sql(&format!(
            "SELECT {checkpoint}, {redo}, extract(epoch FROM checkpoint_time)::bigint \
             FROM pg_control_checkpoint()"
        ));
        let cells: Vec<&str> = row.split('|').collect();
        let time = cells[2].parse().expect("seconds");
        self.told.insert(Told { checkpoint: padded(cells[0]), redo: padded(cells[1]), time });
    }
}

/// An LSN as walstat writes it.
fn padded(lsn: &str) -> String {
    let (high, low) = lsn.split_once('/').expect("an LSN");
    format!("{high}/{low:0>8}")
}

fn json(arguments: &[&str], cluster: &Cluster) -> Value {
    let arguments = [&["--format", "json", "--as", "pg_wal"], arguments].concat();
    serde_json::from_str(&text(&arguments, &cluster.wal())).expect("JSON")
}

fn rows<'v>(value: &'v Value, what: &str) -> &'v Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{what}: {value}"))
}

/// Seconds since 1970 of a time in JSON.
fn seconds(time: &Value) -> i64 {
    let time = time.as_str().expect("a time");
    let time: jiff::Timestamp = time.parse().expect("RFC 3339");
    time.as_second()
}

/// Writes so many MB of WAL in transactions of about 100 kB.
fn write(cluster: &Cluster, megabytes: u32, oracle: &mut Oracle) {
    for _ in 0..megabytes {
        let insert = "INSERT INTO filler SELECT repeat('x', 900) FROM generate_series(1, 100)";
        // One psql, which makes each of them a transaction.
        cluster.psql(&["-c", insert].repeat(10));
        oracle.look(cluster);
    }
}

fn backup(cluster: &Cluster) {
    cluster.sql(match cluster.release() {
        ..10 => "SELECT pg_start_backup('b', true); SELECT pg_stop_backup()",
        10..15 => "SELECT pg_start_backup('b', true); SELECT pg_stop_backup()",
        _ => "SELECT pg_backup_start('b', true); SELECT pg_backup_stop(false)",
    });
}

fn copy_database(cluster: &Cluster) {
    let strategy = if cluster.release() < 15 { "" } else { " STRATEGY file_copy" };
    cluster.sql(&format!("CREATE DATABASE copied{strategy}"));
    cluster.sql("INSERT INTO filler VALUES ('y')");
    cluster.sql("DROP DATABASE copied");
}

/// Holds the checkpoints of a stopped cluster against log and `pg_control`. Returns how many causes
/// were told, by cause.
fn checkpoints_are_told(cluster: &Cluster, oracle: &Oracle) -> BTreeMap<String, usize> {
    let report = json(&["--stats=checkpoint"], cluster);
    let all = rows(&report["checkpoints"], "checkpoints");
    let of_records: BTreeMap<String, &Value> = all
        .iter()
        .filter_map(|row| Some((row["checkpoint_lsn"].as_str()?.to_owned(), row)))
        .collect();
    for told in &oracle.told {
        let row = of_records.get(&told.checkpoint).unwrap_or_else(|| panic!("no row of {told:?}"));
        assert_eq!(row["redo_lsn"], told.redo.as_str(), "{row}");
        assert_eq!(seconds(&row["time"]), told.time, "{row}");
    }
    no_gap(all, &report);
    let logged = logged_causes(&cluster.log());
    let ended: Vec<&Value> = all.iter().filter(|row| !row["checkpoint_lsn"].is_null()).collect();
    // initdb's own are not in the log.
    let ended = &ended[ended.len() - logged.len()..];
    let mut counts = BTreeMap::new();
    for (row, logged) in ended.iter().zip(&logged) {
        let sure = row["cause_confidence"] != "possible";
        let Some(cause) = row["cause"].as_str() else {
            let either = ["shutdown", "end_of_recovery"].contains(&logged[0]);
            assert!(row["kind"] == "online" || either, "{logged:?}: {row}");
            continue;
        };
        assert!(logged.contains(&cause) || !sure, "{logged:?}: {row}");
        if sure {
            *counts.entry(cause.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Rows follow each other without a gap, and add up to the totals.
fn no_gap(rows: &[Value], report: &Value) {
    for pair in rows.windows(2) {
        assert_eq!(pair[0]["end_lsn"], pair[1]["start_lsn"]);
    }
    for key in ["count", "record_bytes", "fpi_bytes", "total_bytes", "fpi_count"] {
        let sum: u64 = rows.iter().filter_map(|row| row[key].as_u64()).sum();
        assert_eq!(Some(sum), report["totals"][key].as_u64(), "{key}");
    }
}

/// The life of a server: asked for, by volume, backup, copied database, crash, stop.
fn a_life(major: &'static str, initdb: &[&str]) {
    let Some(server) = Server::fetched(major) else { return };
    let conf = "wal_level = replica\nlog_checkpoints = on\ncheckpoint_timeout = 1h\n\
                max_wal_size = 32MB\n\
                min_wal_size = 32MB\ncheckpoint_completion_target = 0.5";
    let mut cluster = Cluster::start(&server, &Settings { initdb, conf });
    let mut oracle = Oracle::default();
    cluster.sql("CREATE TABLE filler (text text)");
    for _ in 0..2 {
        cluster.sql("INSERT INTO filler VALUES ('z')");
        cluster.sql("CHECKPOINT");
        oracle.look(&cluster);
    }
    write(&cluster, 90, &mut oracle);
    backup(&cluster);
    oracle.look(&cluster);
    copy_database(&cluster);
    oracle.look(&cluster);
    cluster.sql("CREATE TABLE another (n int)");
    cluster.crash();
    cluster.start_again();
    oracle.look(&cluster);
    cluster.sql("CREATE TABLE a_third (n int)");
    cluster.stop();
    cluster.start_again();
    oracle.look(&cluster);
    cluster.sql("INSERT INTO filler VALUES ('z')");
    cluster.stop();
    let counts = checkpoints_are_told(&cluster, &oracle);
    assert!(counts.get("requested").is_some_and(|count| *count >= 3), "{counts:?}");
    assert!(counts.contains_key("end_of_recovery"), "{counts:?}");
    assert!(counts.contains_key("shutdown"), "{counts:?}");
}

macro_rules! lives {
    ($($name:ident: $major:literal, $initdb:expr;)*) => {
        $(#[test]
        fn $name() {
            a_life($major, &$initdb);
        })*
    };
}

lives! {
    life_9_6: "9.6", [];
    life_10: "10", [];
    life_13: "13", ["--wal-segsize=1"];
    life_14: "14", ["--wal-segsize=4"];
    life_15: "15", [];
    life_16: "16", ["--wal-segsize=1"];
    life_17: "17", ["--wal-segsize=2"];
    life_18: "18", ["--wal-segsize=1"];
}

#[test]
fn checkpoints_by_volume_are_told() {
    for (major, segment) in [("13", "--wal-segsize=1"), ("17", "--wal-segsize=2")] {
        let Some(server) = Server::fetched(major) else { return };
        let conf = "log_checkpoints = on\ncheckpoint_timeout = 1h\nmax_wal_size = 32MB";
        let mut cluster = Cluster::start(&server, &Settings { initdb: &[segment], conf });
        let mut oracle = Oracle::default();
        cluster.sql("CREATE TABLE filler (text text)");
        write(&cluster, 150, &mut oracle);
        cluster.stop();
        let counts = checkpoints_are_told(&cluster, &oracle);
        assert!(counts.get("wal").is_some_and(|count| *count >= 3), "{major}: {counts:?}");
    }
}

#[test]
fn checkpoints_by_time_are_told() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "log_checkpoints = on\ncheckpoint_timeout = 30s";
    let mut cluster = Cluster::start(&server, &Settings { initdb: &[], conf });
    let mut oracle = Oracle::default();
    cluster.sql("CREATE TABLE filler (text text)");
    // When the server begins one is its own affair; its log says why.
    wait("three checkpoints by time", || {
        cluster.sql("INSERT INTO filler SELECT repeat('x', 900) FROM generate_series(1, 500)");
        oracle.look(&cluster);
        std::thread::sleep(Duration::from_millis(400));
        cluster.log().matches("checkpoint starting: time").count() >= 3
    });
    cluster.stop();
    // On a busy machine they do not lie apart as the setting says: then walstat is not sure.
    checkpoints_are_told(&cluster, &oracle);
}

#[test]
fn a_promotion_is_told() {
    let Some(server) = Server::debian_15() else { return };
    let settings = Settings { initdb: &["--wal-segsize=1"], conf: "log_checkpoints = on" };
    let mut cluster = Cluster::start(&server, &settings);
    cluster.sql("CREATE TABLE filler (text text)");
    let mut standby = cluster.standby();
    cluster.sql("INSERT INTO filler SELECT repeat('x', 900) FROM generate_series(1, 500)");
    let replayed = || standby.sql("SELECT pg_last_wal_replay_lsn()");
    wait("the standby catches up", || replayed() == cluster.insert_lsn());
    standby.promote();
    let has_checkpoint = || standby.log().contains("checkpoint complete");
    wait("the checkpoint after the promotion", has_checkpoint);
    standby.sql("INSERT INTO filler VALUES ('z')");
    standby.stop();
    cluster.stop();
    let report = json(&["--stats=checkpoint"], &standby);
    let causes: Vec<&Value> = rows(&report["checkpoints"], "checkpoints").iter().collect();
    let told =
        |row: &&&Value| row["cause"] == "end_of_recovery" && row["cause_confidence"] == "certain";
    assert_eq!(causes.iter().filter(told).count(), 1, "{causes:?}");
}

/// Commits by second as the server knows them, and all their times in microseconds.
fn commit_times(cluster: &Cluster, from: &str, to: &str) -> Vec<i64> {
    let xid = "::text::xid";
    let times = cluster.sql(&format!(
        "SELECT (extract(epoch FROM pg_xact_commit_timestamp(n{xid})) * 1000000)::bigint \
         FROM generate_series({from}, {to}) n \
         WHERE pg_xact_commit_timestamp(n{xid}) IS NOT NULL"
    ));
    let mut times: Vec<i64> = times.lines().map(|line| line.parse().expect("a time")).collect();
    times.sort_unstable();
    times
}

#[test]
fn commits_and_spans_of_time_are_the_servers() {
    for major in ["10", "15", "17"] {
        let Some(server) = Server::fetched(major) else { return };
        commits_of(&server);
    }
}

fn commits_of(server: &Server) {
    let conf = "track_commit_timestamp = on";
    let mut cluster = Cluster::start(server, &Settings { initdb: &[], conf });
    cluster.sql("CREATE TABLE t (n int)");
    let start = cluster.insert_lsn();
    let first = cluster.sql("SELECT txid_current()");
    for round in 0..12 {
        for _ in 0..20 + round * 5 {
            cluster.sql("INSERT INTO t VALUES (1)");
        }
        cluster.sql("BEGIN; INSERT INTO t VALUES (2); ROLLBACK");
        std::thread::sleep(Duration::from_millis(300));
    }
    let last = cluster.sql("SELECT txid_current()");
    let end = cluster.insert_lsn();
    let times = commit_times(&cluster, &first, &last);
    cluster.stop();

    let report =
        json(&["--stats=commit,timeline", "--bucket", "1s", "-s", &start, "-e", &end], &cluster);
    let mut by_second: BTreeMap<i64, u64> = BTreeMap::new();
    for time in &times {
        *by_second.entry(time.div_euclid(1_000_000)).or_default() += 1;
    }
    let commits = &report["commits"];
    assert_eq!(commits["commits"], times.len(), "{commits}");
    let (low, high) =
        (times[0].div_euclid(1_000_000), times[times.len() - 1].div_euclid(1_000_000));
    let mut counts: Vec<u64> =
        (low..=high).map(|second| by_second.get(&second).copied().unwrap_or(0)).collect();
    counts.sort_unstable();
    let rank = |percent: usize| counts[(percent * counts.len()).div_ceil(100) - 1];
    let per_second = &commits["per_second"];
    assert_eq!(per_second["median"], rank(50));
    assert_eq!(per_second["p99"], rank(99));
    assert_eq!(per_second["peak"], rank(100));
    for bucket in rows(&report["timeline"]["buckets"], "buckets") {
        let expected = by_second.get(&seconds(&bucket["time"])).copied().unwrap_or(0);
        assert_eq!(bucket["commits"], expected, "{bucket}");
    }
    spans_are_the_servers(&cluster, &times, (&start, &end));
}

/// Exactly the commits whose own time lies in a span are in it.
fn spans_are_the_servers(cluster: &Cluster, times: &[i64], (start, end): (&str, &str)) {
    let text = |micros: i64| jiff::Timestamp::from_microsecond(micros).expect("a time").to_string();
    let (a, b) = (times[times.len() / 4], times[times.len() * 3 / 4]);
    for (since, until) in [(a, b), (a, a + 1), (times[0], b), (a + 1, times[times.len() - 1] + 1)] {
        let expected = times.iter().filter(|time| (since..until).contains(*time)).count();
        let (since, until) = (text(since), text(until));
        let arguments =
            ["--stats=commit", "-s", start, "-e", end, "--since", &since, "--until", &until];
        let report = json(&arguments, cluster);
        assert_eq!(report["commits"]["commits"], expected, "{since} to {until}");
    }
}
