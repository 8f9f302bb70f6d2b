//! Accidents happen to a real server in the middle of its traffic, walstat says where recovery has to
//! stop, and a real server is recovered to that: what was lost is whole again, what committed just before
//! is there, and nothing that came after.

mod recovered;
mod rewritten_before;
mod story;
mod told;

use crate::archiving::wait_for_archiver;
use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::shell::shell;
use crate::walstat;
use recovered::Recovered;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Something that nobody wanted.
struct Accident {
    /// What walstat calls it.
    event: &'static str,
    /// Of which table, or database.
    name: &'static str,
    /// How it happens, statement by statement; each is a transaction, unless it says otherwise. `MARK`:
    /// another transaction commits meanwhile, and must be there.
    statements: &'static [&'static str],
    /// What is asked before, and must be answered alike afterwards; in which database.
    question: (&'static str, &'static str),
}

const MARK: &str = "MARK";

const ACCIDENTS: [Accident; 8] = [
    Accident {
        event: "drop_table",
        name: "orders",
        statements: &["DROP TABLE shop.orders"],
        question: ("postgres", "SELECT count(*), sum(id), min(note) FROM shop.orders"),
    },
    Accident {
        event: "truncate",
        name: "items",
        statements: &["TRUNCATE shop.items"],
        question: ("postgres", "SELECT count(*), sum(id) FROM shop.items"),
    },
    Accident {
        event: "delete",
        name: "people",
        statements: &["DELETE FROM people WHERE id > 300"],
        question: ("postgres", "SELECT count(*), sum(id) FROM people"),
    },
    Accident {
        event: "drop_database",
        name: "victim",
        statements: &["DROP DATABASE victim"],
        question: ("victim", "SELECT count(*), sum(id) FROM kept"),
    },
    Accident {
        event: "delete",
        name: "later",
        statements: &[
            "BEGIN; DELETE FROM later; PREPARE TRANSACTION 'gone'",
            MARK,
            "COMMIT PREPARED 'gone'",
        ],
        question: ("postgres", "SELECT count(*), sum(id) FROM later"),
    },
    Accident {
        event: "update",
        name: "saved",
        statements: &[
            "BEGIN; SELECT 1; SAVEPOINT a; DELETE FROM saved; ROLLBACK TO a; SAVEPOINT b; \
                       UPDATE saved SET note = 'wrong'; RELEASE b; COMMIT",
        ],
        question: ("postgres", "SELECT count(*), sum(id), max(note) FROM saved"),
    },
    // Its rows lie in a new file by then.
    Accident {
        event: "delete",
        name: "typed",
        statements: &["BEGIN; ALTER TABLE typed ALTER id TYPE bigint; \
                       DELETE FROM typed WHERE id > 300; COMMIT"],
        question: ("postgres", "SELECT count(*), sum(id) FROM typed"),
    },
    Accident {
        event: "drop_table",
        name: "parts_2",
        statements: &["DROP TABLE parts_2"],
        question: ("postgres", "SELECT count(*), sum(id) FROM parts_2"),
    },
];

/// A server with tables, a copy of it from before, and an archive of what came after.
struct Scene<'s> {
    server: &'s Server,
    cluster: Cluster<'s>,
    /// How many transactions the traffic has committed.
    marks: u64,
}

impl<'s> Scene<'s> {
    fn new(server: &'s Server) -> Scene<'s> {
        let conf = "wal_level = replica\narchive_mode = on\n\
                    archive_command = 'test ! -f ../archive/%f && cp %p ../archive/%f'";
        let mut cluster = Cluster::start(server, &Settings { conf, ..Settings::default() });
        shell(cluster.home(), "mkdir archive && chmod 777 archive");
        for statement in [
            "CREATE TABLE marker (id int PRIMARY KEY)",
            "CREATE SCHEMA shop",
            "CREATE TABLE shop.orders (id int PRIMARY KEY, note text)",
            "CREATE TABLE shop.items (id int PRIMARY KEY, note text)",
            "CREATE TABLE people (id int PRIMARY KEY, note text)",
            "CREATE TABLE later (id int PRIMARY KEY, note text)",
            "CREATE TABLE saved (id int PRIMARY KEY, note text)",
            "CREATE TABLE typed (id int PRIMARY KEY, note text)",
            "CREATE TABLE parts_2 (id int PRIMARY KEY, note text)",
            "CREATE DATABASE victim",
        ] {
            cluster.sql(statement);
        }
        let create = "CREATE TABLE kept AS SELECT i AS id FROM generate_series(1, 100) i";
        cluster.psql(&["-c", "\\connect victim", "-c", create]);
        for table in ["shop.orders", "shop.items", "people", "later", "saved", "typed", "parts_2"] {
            cluster.sql(&format!(
                "INSERT INTO {table} SELECT i, md5(i::text) FROM generate_series(1, 2000) i"
            ));
        }
        cluster.stop();
        shell(cluster.home(), "cp -a data backup");
        cluster.start_again();
        Scene { server, cluster, marks: 0 }
    }

    /// A transaction of the traffic.
    fn mark(&mut self) {
        self.marks += 1;
        self.cluster.sql(&format!("INSERT INTO marker VALUES ({})", self.marks));
    }

    /// Makes it happen; what was there before, and how many transactions had committed right before.
    fn happen(&mut self, accident: &Accident) -> (String, u64) {
        let (database, question) = accident.question;
        let before = self.cluster.psql(&["-c", &format!("\\connect {database}"), "-c", question]);
        self.mark();
        for statement in accident.statements {
            match *statement {
                MARK => self.mark(),
                statement => _ = self.cluster.sql(statement),
            }
        }
        let marks = self.marks;
        self.mark();
        (before, marks)
    }

    fn archive(&self) -> PathBuf {
        self.cluster.home().join("archive")
    }

    fn backup(&self) -> PathBuf {
        self.cluster.home().join("backup")
    }

    fn close(&mut self) {
        let switch =
            if self.cluster.release() < 10 { "pg_switch_xlog()" } else { "pg_switch_wal()" };
        self.cluster.sql(&format!("SELECT {switch}"));
        wait_for_archiver(&self.cluster.wal());
        self.cluster.stop();
    }

    fn events(&self, more: &[&str]) -> Vec<Value> {
        let text = self.told(&[&["-f", "json"], more].concat());
        let report: Value = serde_json::from_str(&text).expect("JSON");
        report["events"].as_array().expect("events").clone()
    }

    fn told(&self, more: &[&str]) -> String {
        let backup = self.backup();
        let names = ["events", "--data-directory", path(&backup)];
        walstat::text(&[&names, more].concat(), &self.archive())
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The only event of an accident.
fn event_of<'e>(events: &'e [Value], accident: &Accident) -> &'e Value {
    let key = if accident.event == "drop_database" { "database" } else { "table" };
    let is_it = |event: &&Value| {
        event["event"] == accident.event
            && event[key] == accident.name
            && event["outcome"] == "committed"
    };
    let found: Vec<&Value> = events.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{} {}: {events:?}", accident.event, accident.name);
    found[0]
}

/// The lines that the table for people says for one transaction.
fn settings(scene: &Scene<'_>, event: &Value) -> Option<String> {
    let xid = event["xid"].as_str().expect("an xid");
    let kind = event["event"].as_str().expect("a kind");
    let told = scene.told(&["-x", xid, "--event", kind]);
    let lines: Vec<&str> =
        told.lines().filter(|line| line.starts_with("recovery_target")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn accidents_are_undone(server: &Server) {
    let mut scene = Scene::new(server);
    let before: Vec<(String, u64)> = ACCIDENTS.iter().map(|it| scene.happen(it)).collect();
    scene.close();
    let events = scene.events(&[]);
    for (accident, (answer, marks)) in ACCIDENTS.iter().zip(before) {
        let event = event_of(&events, accident);
        let what = format!("{}: {} {}", server.major, accident.event, accident.name);
        let Some(settings) = settings(&scene, event) else {
            // 9.6 stops at ends of transactions only, and it is too late then.
            assert_eq!((server.number(), accident.event), (9, "drop_database"), "{what}");
            continue;
        };
        let recovered = Recovered::to(scene.server, scene.cluster.home(), &settings);
        let (database, question) = accident.question;
        assert_eq!(recovered.sql(database, question), answer, "{what}");
        let marker = recovered.sql("postgres", "SELECT count(*), max(id) FROM marker");
        assert_eq!(marker, format!("{marks}|{marks}"), "{what}");
    }
    targets_agree(&scene, &events);
}

/// Recovery by xid and by time, where they are told, stops at the same place.
fn targets_agree(scene: &Scene<'_>, events: &[Value]) {
    let event = event_of(events, &ACCIDENTS[2]);
    let target = &event["recovery_target"];
    let mut answers = Vec::new();
    for key in ["recovery_target_xid", "recovery_target_time"] {
        let value = target[key].as_str().unwrap_or_else(|| panic!("{key} of {event}"));
        for inclusive in ["on", "off"] {
            if (key, inclusive) == ("recovery_target_xid", "on") {
                continue;
            }
            let settings = format!("{key} = '{value}'\nrecovery_target_inclusive = {inclusive}");
            let recovered = Recovered::to(scene.server, scene.cluster.home(), &settings);
            answers.push(
                recovered
                    .sql("postgres", "SELECT count(*), (SELECT max(id) FROM marker) FROM people"),
            );
        }
    }
    assert_eq!(answers, vec!["2000|5"; 3], "{event}");
}

#[test]
fn accidents_are_undone_in_9_6() {
    Server::fetched("9.6").iter().for_each(accidents_are_undone);
}

#[test]
fn accidents_are_undone_in_10() {
    Server::fetched("10").iter().for_each(accidents_are_undone);
}

#[test]
fn accidents_are_undone_in_12() {
    Server::fetched("12").iter().for_each(accidents_are_undone);
}

#[test]
fn accidents_are_undone_in_15() {
    Server::fetched("15").iter().for_each(accidents_are_undone);
}

#[test]
fn accidents_are_undone_in_18() {
    Server::fetched("18").iter().for_each(accidents_are_undone);
}
