//! Live tests of what-if: the same statements on a server with other settings. Segments that
//! `archive_timeout` closes; what vacuum freezes only because of an image for hint bits; sequences whose
//! values go nowhere; images for hint bits themselves.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::wait::wait;
use crate::walstat::text;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

const SEGMENT: u64 = 1 << 20;

/// Transactions in pairs that lie close together, whatever else the machine does, and after each pair what
/// `pause` waits for: it knows the segment in which the pair began. Begins with a new segment.
fn work(cluster: &Cluster, pause: impl Fn(&Cluster, &str)) -> (String, String) {
    cluster.sql("CREATE TABLE t AS SELECT 1 AS number");
    cluster.sql("CHECKPOINT");
    let before = segment(cluster);
    // A segment that has nothing yet is not switched from: the clock may just have closed the one before.
    cluster.sql("SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()");
    await_next_segment(cluster, &before);
    let start = cluster.insert_lsn();
    for number in 0..4 {
        let before = segment(cluster);
        cluster.sql(&format!(
            "DO $$ BEGIN INSERT INTO t VALUES ({number}); COMMIT; INSERT INTO t VALUES (-{number}); \
             END $$"
        ));
        pause(cluster, &before);
    }
    cluster.sql("INSERT INTO t VALUES (0)");
    (start, cluster.insert_lsn())
}

/// The segment that the next record goes to.
fn segment(cluster: &Cluster) -> String {
    cluster.sql("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
}

/// Waits until the server has gone on to another segment than `before`.
fn await_next_segment(cluster: &Cluster, before: &str) {
    wait("the server closes the segment", || segment(cluster) != before);
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
    let run = |more: &str, pause: &dyn Fn(&Cluster, &str)| {
        let conf =
            format!("autovacuum = off\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n{more}");
        let cluster =
            Cluster::start(&server, &Settings { conf: &conf, initdb: &["--wal-segsize=1"] });
        let range = work(&cluster, pause);
        (cluster, range)
    };
    let (base, range) = run("", &|_, _| sleep(Duration::from_millis(3500)));
    let words = ["whatif", "-f", "json", "--archive-timeout", "2s", "-s", &range.0, "-e", &range.1];
    let json: Value = serde_json::from_str(&text(&words, &base.wal())).expect("JSON");
    let predicted = json["whatif"]["scenarios"][1]["predicted_bytes"].as_u64().expect("bytes");
    let (_, range) = run("archive_timeout = 2", &await_next_segment);
    let wrote = distance(&range);
    assert!(wrote > 3 * SEGMENT, "{wrote} bytes: the server closes a segment in each pause");
    // A snapshot of running transactions more or less.
    assert!(predicted.abs_diff(wrote) < 1000, "predicted {predicted}, the server wrote {wrote}");
}

/// Settings of a server that writes the same WAL each time.
const QUIET: &str = "autovacuum = off\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n";
const CYCLES: u32 = 4;

/// A load of several cycles, with checkpoints between them or not.
struct Load<'s> {
    server: &'s Server,
    initdb: &'s [&'s str],
    /// Settings of the base.
    conf: &'s str,
    /// Statements, with `|` between them.
    begin: &'s str,
    cycle: &'s str,
}

impl Load<'_> {
    fn run(&self, more: &str, has_checkpoints: bool) -> (Cluster<'_>, (String, String)) {
        let conf = format!("{QUIET}{more}");
        let settings = Settings { conf: &conf, initdb: self.initdb };
        let cluster = Cluster::start(self.server, &settings);
        self.begin.split('|').for_each(|statement| _ = cluster.sql(statement));
        cluster.sql("VACUUM FREEZE");
        cluster.sql("CHECKPOINT");
        let start = cluster.insert_lsn();
        for cycle in 0..CYCLES {
            if cycle > 0 && has_checkpoints {
                cluster.sql("CHECKPOINT");
            }
            for statement in self.cycle.split('|') {
                cluster.sql(&statement.replace("$cycle", &cycle.to_string()));
            }
        }
        let end = cluster.insert_lsn();
        (cluster, (start, end))
    }

    /// What is predicted from one run, least, likely, most; and what another one wrote. A server does not
    /// always repeat itself: both runs have to have changed rows in the same ways.
    fn compare(&self, options: &[&str], more: &str, has_checkpoints: bool) -> ([u64; 3], u64) {
        for _ in 0..5 {
            let (base, range) = self.run(self.conf, true);
            let (real, real_range) = self.run(more, has_checkpoints);
            if changes(&base, &range) == changes(&real, &real_range) {
                return (predict(&base, &range, options), distance(&real_range));
            }
        }
        panic!("the server did not repeat itself in five runs");
    }
}

/// Records that change rows, by type.
fn changes(cluster: &Cluster, (start, end): &(String, String)) -> Vec<(String, u64)> {
    let words = ["--stats=record", "-f", "json", "-s", start, "-e", end];
    let json: Value = serde_json::from_str(&text(&words, &cluster.wal())).expect("JSON");
    let rows = json["records"].as_array().expect("records").iter();
    let kinds = ["INSERT", "DELETE", "UPDATE", "HOT_UPDATE"];
    let is_change = |row: &&Value| {
        let name = row["record"].as_str().expect("a name");
        row["rmgr"] == "Heap" && kinds.contains(&name)
    };
    let heap = rows.filter(is_change);
    let count = |row: &Value| (row["record"].to_string(), row["count"].as_u64().expect("a count"));
    let mut counts: Vec<_> = heap.map(count).collect();
    counts.sort();
    counts
}

fn predict(base: &Cluster, (start, end): &(String, String), options: &[&str]) -> [u64; 3] {
    let words = ["whatif", "-f", "json", "-s", start, "-e", end];
    let json = text(&[&words, options].concat(), &base.wal());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let check = &json["whatif"]["self_check"]["difference_bytes"];
    assert_eq!(check.as_i64(), Some(0), "the base replays to itself: {json}");
    let bytes = |key: &str| json["whatif"]["scenarios"][1][key].as_u64().expect("bytes");
    ["low_bytes", "predicted_bytes", "high_bytes"].map(bytes)
}

/// A snapshot of running transactions more or less.
const SNAPSHOT: u64 = 56;
/// A record that logs the values of a sequence, with its padding.
const SEQUENCE_RECORD: u64 = 104;

#[test]
fn rows_frozen_for_an_image_of_hint_bits_are_not_frozen_without_it() {
    let Some(server) = Server::fetched("17") else { return };
    let load = Load {
        server: &server,
        initdb: &["--wal-segsize=1", "--data-checksums"],
        conf: "",
        begin: "CREATE TABLE t AS SELECT g AS id, repeat('x', 90) AS filler \
                FROM generate_series(1, 8000) g",
        // Vacuum comes first: it finds pages that were changed before the checkpoint.
        cycle: "VACUUM (TRUNCATE off) t| DELETE FROM t WHERE id % 31 = $cycle| \
                INSERT INTO t SELECT -g, repeat('z', 60) FROM generate_series(1, 900) g",
    };
    let without = load.compare(&["--full-page-writes", "off"], "full_page_writes = off", true);
    let ([_, predicted, _], wrote) = without;
    assert!(predicted.abs_diff(wrote) <= wrote / 1000, "predicted {predicted}, wrote {wrote}");
    let ([_, predicted, _], wrote) = load.compare(&["--checkpoint-every", "none"], "", false);
    assert!(predicted.abs_diff(wrote) <= wrote / 1000, "predicted {predicted}, wrote {wrote}");
}

#[test]
fn a_sequence_logs_less_often_where_checkpoints_are_rare() {
    let Some(server) = Server::debian_15() else { return };
    let load = Load {
        server: &server,
        initdb: &["--wal-segsize=1"],
        conf: "",
        begin: "CREATE SEQUENCE one; CREATE SEQUENCE ten CACHE 10 INCREMENT 3| \
                CREATE TABLE t AS SELECT 1 AS number",
        cycle: "SELECT nextval('one'), nextval('ten') FROM generate_series(1, 215)| \
                INSERT INTO t SELECT generate_series(1, 10)| \
                SELECT nextval('one') FROM generate_series(1, 101)",
    };
    let ([low, predicted, high], wrote) = load.compare(&["--checkpoint-every", "none"], "", false);
    // What is taken after a sequence's last record is not in the WAL.
    assert!(predicted.abs_diff(wrote) <= SNAPSHOT + 2 * SEQUENCE_RECORD, "{predicted}, {wrote}");
    assert!(low <= wrote && wrote <= high, "from {low} to {high}, wrote {wrote}");
}

#[test]
fn images_for_hint_bits_are_within_the_range() {
    let Some(server) = Server::debian_15() else { return };
    let load = Load {
        server: &server,
        initdb: &["--wal-segsize=1"],
        conf: "",
        begin: "CREATE TABLE t AS SELECT g AS id, repeat('x', 90) AS filler \
                FROM generate_series(1, 8000) g",
        cycle: "UPDATE t SET filler = repeat('y', 80) WHERE id % 9 = $cycle| \
                VACUUM (TRUNCATE off) t| DELETE FROM t WHERE id % 31 = $cycle| \
                INSERT INTO t SELECT g, 'z' FROM generate_series(1, 700) g",
    };
    let ([low, predicted, high], wrote) =
        load.compare(&["--wal-log-hints", "on"], "wal_log_hints = on", true);
    assert!(low <= wrote && wrote <= high, "from {low} to {high}, wrote {wrote}");
    assert!(predicted.abs_diff(wrote) <= wrote / 33, "predicted {predicted}, wrote {wrote}");
}

#[test]
fn records_that_only_freeze_go_with_the_image_for_hint_bits() {
    let Some(server) = Server::fetched("17") else { return };
    let load = Load {
        server: &server,
        initdb: &["--wal-segsize=1"],
        conf: "wal_log_hints = on",
        begin: "CREATE TABLE t (id int, b text)",
        cycle: "INSERT INTO t SELECT g, repeat('v', 100) FROM generate_series(1, 3000) g| \
                CHECKPOINT| VACUUM t",
    };
    let ([_, predicted, _], wrote) =
        load.compare(&["--wal-log-hints", "off"], "wal_log_hints = off", true);
    assert!(predicted.abs_diff(wrote) <= wrote / 1000, "predicted {predicted}, wrote {wrote}");
}

#[test]
fn what_only_logical_decoding_logs_is_not_there_without_it() {
    let Some(server) = Server::debian_15() else { return };
    let load = Load {
        server: &server,
        initdb: &["--wal-segsize=1"],
        conf: "wal_level = logical",
        begin: "CREATE TABLE t (id int)| CREATE TABLE u (id int PRIMARY KEY)",
        cycle: "DO $$ BEGIN FOR i IN 1..200 LOOP BEGIN INSERT INTO t VALUES (i); \
                EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$| \
                INSERT INTO u VALUES (1)| TRUNCATE u| TRUNCATE t",
    };
    let ([_, predicted, _], wrote) =
        load.compare(&["--wal-level", "replica"], "wal_level = replica", true);
    assert!(predicted.abs_diff(wrote) <= SNAPSHOT, "predicted {predicted}, wrote {wrote}");
}
