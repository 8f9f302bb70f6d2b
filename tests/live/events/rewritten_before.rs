//! `pg_class` was written anew before the WAL that is read, and nothing says which file it has: events are
//! told all the same, by its rows.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::shell::shell;
use crate::walstat;
use serde_json::Value;

fn events_are_told_after_vacuum_full(server: &Server) {
    let mut cluster = Cluster::start(server, &Settings::default());
    for table in ["orders", "logs"] {
        cluster.sql(&format!("CREATE TABLE {table} AS SELECT generate_series(1, 3000) AS id"));
    }
    cluster.stop();
    shell(cluster.home(), "cp -a data before");
    cluster.start_again();
    cluster.sql("VACUUM FULL");
    cluster.sql("CHECKPOINT");
    let begin = cluster.insert_lsn();
    for statement in ["DROP TABLE orders", "TRUNCATE logs"] {
        cluster.sql(statement);
    }
    cluster.stop();
    // Where no data directory is around it.
    shell(cluster.home(), "cp -a data/pg_wal wal");
    let wal = cluster.home().join("wal");
    let before = cluster.home().join("before").display().to_string();
    for more in [&[][..], &["--data-directory", &before]] {
        let words = [&["events", "-f", "json", "-s", &begin], more].concat();
        let report: Value = serde_json::from_str(&walstat::text(&words, &wal)).expect("JSON");
        let of = |event: &Value, key: &str| event[key].as_str().unwrap_or("?").to_owned();
        let events = report["events"].as_array().expect("events").iter();
        let told: Vec<String> =
            events.map(|event| format!("{} {}", of(event, "event"), of(event, "table"))).collect();
        let want = ["drop_table orders", "truncate logs"];
        assert_eq!(told, want, "{} {more:?}: {}", server.major, report["notes"]);
    }
}

#[test]
fn events_are_told_where_pg_class_was_rewritten_before() {
    for major in ["10", "14", "18"] {
        Server::fetched(major).iter().for_each(events_are_told_after_vacuum_full);
    }
}
