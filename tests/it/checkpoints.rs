//! Why a checkpoint was made, of WAL that servers wrote, held against their logs.

use crate::support::fixtures::{fixtures, unpacked};
use crate::support::json_of;
use crate::support::server_log::logged_causes;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The checkpoints of a server's WAL that its log tells of, each with what the log says, in order.
fn beside_log(wal: &Path, log: &str, more: &[&str]) -> Vec<(Value, Vec<&'static str>)> {
    let log = fs::read_to_string(fixtures().join(log)).expect("the server's log");
    let report = json_of(&[&["--stats=checkpoint", "--as", "pg_wal"], more].concat(), wal);
    let rows = report["checkpoints"].as_array().expect("checkpoints");
    let starts = log.lines().filter(|line| line.contains("checkpoint starting"));
    let logged: Vec<_> = logged_causes(&log).into_iter().zip(starts).collect();
    // initdb's own are not in the log, and what it tells of first need not be in the WAL.
    let ended = rows.iter().filter(|row| !row["checkpoint_lsn"].is_null());
    let pairs = ended.rev().zip(logged.into_iter().rev());
    let pairs = pairs.map(|(row, (causes, start))| {
        let time = row["time"].as_str().expect("a time").replace('T', " ");
        assert_eq!(time[..19], start[..19], "{row}");
        (row.clone(), causes)
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.reverse();
    pairs
}

fn is_likely(row: &Value) -> bool {
    !row["cause"].is_null() && row["cause_confidence"] != "possible"
}

/// Whatever is likely is what the log says; returns how many are, of this cause.
fn none_is_wrong(pairs: &[(Value, Vec<&'static str>)], cause: &str) -> usize {
    let likely = || pairs.iter().filter(|(row, _)| is_likely(row));
    for (row, causes) in likely() {
        assert!(causes.iter().any(|cause| row["cause"] == *cause), "{causes:?}: {row}");
    }
    likely().filter(|(row, _)| row["cause"] == cause).count()
}

#[test]
fn checkpoints_by_time_are_those_of_the_log() {
    let wal = unpacked("checkpoints/wal.tar.zst").join("checkpoints");
    let pairs = beside_log(&wal, "checkpoints/server.log", &[]);
    assert!(pairs.iter().all(|(row, _)| is_likely(row)), "{pairs:?}");
    assert_eq!(none_is_wrong(&pairs, "time"), 5, "{pairs:?}");
}

/// The data directories of two servers, cut down.
fn servers() -> PathBuf {
    unpacked("checkpoints/causes.tar.zst").join("causes")
}

#[test]
fn regular_checkpoints_of_an_idle_server_are_by_time() {
    let wal = servers().join("idle/pg_wal");
    let pairs = beside_log(&wal, "checkpoints/idle.log", &[]);
    assert_eq!(none_is_wrong(&pairs, "time"), 5, "{pairs:?}");
    let summary = &json_of(&["--stats=checkpoint", "--as", "pg_wal"], &wal)["checkpoint_summary"];
    assert!(summary["forced_ratio"].as_f64().expect("a share") < 0.5, "{summary}");
}

#[test]
fn checkpoints_under_load_that_come_too_soon_are_by_volume() {
    let pairs = beside_log(&servers().join("volume/pg_wal"), "checkpoints/volume.log", &[]);
    assert!(none_is_wrong(&pairs, "wal") >= 4, "{pairs:?}");
    let report = json_of(&["--as", "pg_wal"], &servers().join("volume/pg_wal"));
    let when = &report["when"];
    assert_eq!(when["spacing_cause"], "wal", "{when}");
    // How far apart is said of those by volume alone.
    assert!(when["spacing_seconds"]["count"].as_u64() <= when["causes"]["wal"].as_u64(), "{when}");
}

#[test]
fn transactions_that_never_ended_tell_a_crash() {
    let pairs = beside_log(&servers().join("volume/pg_wal"), "checkpoints/volume.log", &[]);
    let of_record = |pair: &&(Value, Vec<&str>)| pair.0["kind"] == "shutdown";
    let shutdowns: Vec<_> = pairs.iter().filter(of_record).collect();
    let [(crash, _), (stop, _)] = shutdowns.as_slice() else { panic!("{pairs:?}") };
    assert_eq!(
        (&crash["cause"], &crash["cause_confidence"]),
        (&"end_of_recovery".into(), &"certain".into())
    );
    let evidence = crash["cause_evidence"].as_str().expect("a sentence");
    assert!(evidence.contains("never ended"), "{evidence}");
    assert_ne!(stop["cause"], "end_of_recovery", "{stop}");
    // Of any number of threads the same.
    for threads in ["1", "2", "5"] {
        let again = beside_log(
            &servers().join("volume/pg_wal"),
            "checkpoints/volume.log",
            &["-j", threads],
        );
        assert_eq!(again, pairs, "{threads}");
    }
}

#[test]
fn the_settings_of_a_data_directory_decide() {
    for (server, cause, count) in [("idle", "time", 5), ("volume", "wal", 4)] {
        let directory = servers().join(server);
        let directory_text = directory.to_str().expect("UTF-8");
        let log = format!("checkpoints/{server}.log");
        let given = ["--data-directory", directory_text];
        let pairs = beside_log(&directory.join("pg_wal"), &log, &given);
        assert!(none_is_wrong(&pairs, cause) >= count, "{pairs:?}");
        // Of the first one nobody knows how long it waited.
        let others = pairs.iter().skip(1);
        let unsure = others.filter(|(row, _)| !is_likely(row) && row["kind"] == "online");
        assert_eq!(unsure.count(), 0, "{pairs:?}");
    }
}

#[test]
fn settings_are_shown_with_where_they_are_from() {
    let directory = servers().join("volume");
    let report = json_of(&[], &directory);
    let values = &report["settings"]["values"];
    assert_eq!(report["settings"]["source"], directory.to_str().expect("UTF-8"));
    assert_eq!(values["max_wal_size"], 4 << 20);
    assert_eq!(values["wal_segment_size"], 1 << 20);
    assert_eq!(values["checkpoint_timeout"], 300, "the default");
    assert_eq!(
        (&values["wal_level"], &values["wal_compression"]),
        (&"replica".into(), &"off".into())
    );
    assert_eq!(values["checkpoint_segments"], 2);
    let text = crate::support::walstat(&[&directory]).stdout;
    let line = "set now: checkpoint_timeout 300s, max_wal_size 4MB, wal_compression off";
    assert!(text.contains(line), "{text}");
}

/// Of a data directory only what every one has.
fn without_configuration(source: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for name in ["PG_VERSION", "global/pg_control"] {
        let target = copy.path().join(name);
        fs::create_dir_all(target.parent().expect("a folder")).expect("a directory");
        fs::copy(source.join(name), target).expect("a copy");
    }
    copy
}

/// A server that vacuums nothing by itself says so among its settings.
#[test]
fn autovacuum_that_is_off_is_shown() {
    let source = servers().join("volume");
    let copy = without_configuration(&source);
    fs::write(copy.path().join("postgresql.conf"), "autovacuum = off\n").expect("a file");
    let (wal, copy) = (source.join("pg_wal"), copy.path().to_str().expect("UTF-8"));
    let arguments = ["--data-directory", copy, wal.to_str().expect("UTF-8")];
    let report = json_of(&arguments[..2], &wal);
    assert_eq!(report["settings"]["values"]["autovacuum"], false);
    let text = crate::support::walstat(&arguments).stdout;
    assert!(text.contains("autovacuum off"), "{text}");
    fs::write(Path::new(copy).join("postgresql.conf"), "").expect("a file");
    let on = json_of(&arguments[..2], &wal);
    assert_eq!(on["settings"]["values"]["autovacuum"], true, "the default");
}

/// Where no configuration is there, nothing is said of it.
#[test]
fn settings_that_nobody_knows_have_no_line() {
    let source = servers().join("volume");
    let copy = without_configuration(&source);
    let (wal, copy) = (source.join("pg_wal"), copy.path().to_str().expect("UTF-8"));
    let arguments = ["--data-directory", copy, wal.to_str().expect("UTF-8")];
    let report = json_of(&arguments[..2], &wal);
    assert!(report["settings"]["source"].is_string(), "{}", report["settings"]);
    let text = crate::support::walstat(&arguments).stdout;
    assert!(!text.contains("set now"), "{text}");
}

/// What lies in the directory of another cluster says nothing of this WAL.
#[test]
fn settings_of_another_cluster_are_not_used() {
    let (wal, other) = (servers().join("idle/pg_wal"), servers().join("volume"));
    let other = other.to_str().expect("UTF-8");
    let report = json_of(&["--as", "pg_wal", "--data-directory", other], &wal);
    assert!(report["settings"].is_null(), "{}", report["settings"]);
}
