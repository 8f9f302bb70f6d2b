//! A live test of what-if by the clock: the same statements, with pauses, on a server that closes its
//! segments by `archive_timeout`.

use live::cluster::{Cluster, Settings};
use live::server::Server;
use live::walstat::text;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

mod live;

const SEGMENT: u64 = 1 << 20;

/// Statements seconds apart, and several close together.
fn work(cluster: &Cluster) -> (String, String) {
    cluster.sql("CREATE TABLE t AS SELECT 1 AS number");
    cluster.sql("CHECKPOINT");
    let start = cluster.insert_lsn();
    for number in 0..4 {
        cluster.sql(&format!("INSERT INTO t VALUES ({number})"));
        cluster.sql(&format!("INSERT INTO t VALUES (-{number})"));
        sleep(Duration::from_millis(3500));
    }
    cluster.sql("INSERT INTO t VALUES (0)");
    (start, cluster.insert_lsn())
}

fn distance((start, end): &(String, String)) -> u64 {
    let place = |text: &str| {
        let (high, low) = text.split_once('/').expect("an LSN");
        let part = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
        (part(high) << 32) + part(low)
    };
    place(end) - place(start)
}

#[test]
fn segments_closed_by_the_clock_are_those_of_a_server() {
    let Some(server) = Server::debian_15() else { return };
    let run = |more: &str| {
        let conf =
            format!("autovacuum = off\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n{more}");
        let cluster =
            Cluster::start(&server, &Settings { conf: &conf, initdb: &["--wal-segsize=1"] });
        let range = work(&cluster);
        (cluster, range)
    };
    let (base, range) = run("");
    let words = ["whatif", "-f", "json", "--archive-timeout", "2s", "-s", &range.0, "-e", &range.1];
    let json: Value = serde_json::from_str(&text(&words, &base.wal())).expect("JSON");
    let predicted = json["whatif"]["scenarios"][1]["predicted_bytes"].as_u64().expect("bytes");
    let (_, range) = run("archive_timeout = 2");
    let wrote = distance(&range);
    assert!(wrote > 3 * SEGMENT, "{wrote} bytes: the server closes a segment in each pause");
    // A snapshot of running transactions more or less.
    assert!(predicted.abs_diff(wrote) < 1000, "predicted {predicted}, the server wrote {wrote}");
}
