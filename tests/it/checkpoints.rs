//! Why a checkpoint was made, of WAL that a server wrote, held against that server's log: on a machine that
//! was busy with nothing else, so that those by time lie as far apart as the setting says.

use crate::support::fixtures::{fixtures, unpacked};
use crate::support::json_of;
use crate::support::server_log::logged_causes;

#[test]
fn checkpoints_by_time_are_those_of_the_log() {
    let log = fixtures().join("checkpoints/server.log");
    let log = std::fs::read_to_string(log).expect("the server's log");
    let starts: Vec<&str> =
        log.lines().filter(|line| line.contains("checkpoint starting")).collect();
    let wal = unpacked("checkpoints/wal.tar.zst").join("checkpoints");
    let report = json_of(&["--stats=checkpoint", "--as", "pg_wal"], &wal);
    let rows = report["checkpoints"].as_array().expect("checkpoints");
    let ended: Vec<_> = rows.iter().filter(|row| !row["checkpoint_lsn"].is_null()).collect();
    // initdb's own are not in the log.
    let ended = &ended[ended.len() - starts.len()..];
    for ((row, causes), start) in ended.iter().zip(logged_causes(&log)).zip(starts) {
        assert!(causes.iter().any(|cause| row["cause"] == *cause), "{causes:?}: {row}");
        assert_ne!(row["cause_confidence"], "possible", "{row}");
        let time = row["time"].as_str().expect("a time").replace('T', " ");
        assert_eq!(time[..19], start[..19], "{row}");
    }
    let by_time =
        ended.iter().filter(|row| row["cause"] == "time" && row["cause_confidence"] == "likely");
    assert_eq!(by_time.count(), 5, "{ended:?}");
}
