//! A live test of advice: what WHAT TO DO predicts for other settings is held against what a server
//! writes under them for the same work.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::walstat::text;
use serde_json::Value;
use std::process::Command;

/// Beyond what a sample may err, a server does not repeat itself to the byte.
const REPEATS_WITHIN: f64 = 0.03;

/// The same work each time: six rounds of pgbench with their random numbers fixed. From where to where that
/// is.
fn work(cluster: &Cluster) -> (String, String) {
    let pgbench = |options: &[&str]| {
        let mut pgbench = Command::new("pgbench");
        pgbench.args(cluster.connection()).args(options).arg("postgres");
        let output = pgbench.output().expect("pgbench runs");
        assert!(output.status.success(), "pgbench {options:?}: {output:?}");
    };
    pgbench(&["-i", "-q", "-s", "1"]);
    cluster.sql("CHECKPOINT");
    let start = cluster.insert_lsn();
    for round in 0..6 {
        pgbench(&["-n", "-c", "1", "-t", "2000", &format!("--random-seed={}", round + 1)]);
    }
    (start, cluster.insert_lsn())
}

fn report(cluster: &Cluster, (start, end): &(String, String)) -> Value {
    let words = ["-f", "json", "--as", "pg_wal", "-s", start, "-e", end];
    serde_json::from_str(&text(&words, &cluster.wal())).expect("JSON")
}

fn bytes(value: &Value) -> f64 {
    value.as_u64().unwrap_or_else(|| panic!("bytes: {value}")) as f64
}

#[test]
fn what_is_predicted_is_what_a_server_writes_under_these_settings() {
    let Some(server) = Server::debian_15() else { return };
    // Volume begins its checkpoints: those that somebody asks for stay under any settings.
    let conf = "autovacuum = off\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0";
    let run = |max_wal_size: &str, more: &str| {
        let conf = format!("{conf}\nmax_wal_size = {max_wal_size}\n{more}");
        let settings = Settings { conf: &conf, initdb: &["--wal-segsize=1"] };
        let cluster = Cluster::start(&server, &settings);
        let range = work(&cluster);
        report(&cluster, &range)
    };
    let base = run("24MB", "");
    let findings = base["findings"].as_array().expect("findings");
    let quotes = |setting: &str| {
        let quoting = findings.iter().filter(|finding| !finding["predicted"].is_null());
        quoting.clone().any(|finding| finding["settings"].get(setting).is_some())
    };
    assert!(quotes("checkpoints_apart") && quotes("wal_compression"), "{findings:?}");
    let scenario = |codec: &Value| {
        let rows = base["estimates"]["scenarios"].as_array().expect("scenarios");
        let none = rows.iter().filter(|row| row["checkpoints_apart"].is_null());
        none.clone()
            .find(|row| row["wal_compression"] == *codec)
            .unwrap_or_else(|| panic!("{codec} in {rows:?}"))
            .clone()
    };
    // What all of it comes to, unless one finding says it already, is one of the scenarios.
    let together = &base["advice_together"]["predicted"]["predicted_bytes"];
    let rows = base["estimates"]["scenarios"].as_array().expect("scenarios");
    let is_scenario = rows.iter().any(|row| row["predicted_bytes"] == *together);
    assert!(together.is_null() || is_scenario, "{together} in {rows:?}");
    for (settings, codec) in [("", Value::Null), ("wal_compression = lz4", "lz4".into())] {
        let real = bytes(&run("4GB", settings)["totals"]["total_bytes"]);
        let predicted = scenario(&codec);
        let (low, high) = (bytes(&predicted["low_bytes"]), bytes(&predicted["high_bytes"]));
        let (low, high) = (low * (1.0 - REPEATS_WITHIN), high * (1.0 + REPEATS_WITHIN));
        assert!(
            (low..=high).contains(&real),
            "{settings:?}: {real} is not in {low}..{high}, {predicted}"
        );
        assert!(real < 0.6 * bytes(&base["totals"]["total_bytes"]), "{settings:?} saves a lot");
        eprintln!("{settings:?}: predicted {}, written {real}", predicted["predicted_bytes"]);
    }
}
