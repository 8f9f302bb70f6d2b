//! `walstat events`: held against the records that it is made of, in WAL of every release; its formats; and
//! that it does not matter how the WAL is divided.

use crate::support::fixtures::{Sample, fixtures, sample, samples};
use crate::support::walstat;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn report(wal: &Path, more: &[&str]) -> Value {
    walstat(&[&["events", text(wal), "-f", "json"], more].concat()).json()
}

fn events(wal: &Path, more: &[&str]) -> Vec<Value> {
    report(wal, more)["events"].as_array().expect("events").clone()
}

/// What is asked of a record.
#[derive(Debug)]
struct Record {
    lsn: String,
    xid: u32,
    record: String,
    time: Option<String>,
    tablespace: Option<u32>,
    database: Option<u32>,
    relfilenode: Option<u32>,
}

impl Record {
    fn relation(&self) -> Option<String> {
        Some(format!("{}/{}/{}", self.tablespace?, self.database?, self.relfilenode?))
    }
}

/// The records of a sample, by LSN. Of CSV, which is the quickest to write and to read: names, in which there
/// may be anything, come after all that is looked at.
fn records(sample: &Sample, filters: &[&str]) -> BTreeMap<String, Record> {
    let call = [&["records", text(&sample.wal), "-f", "csv"], filters].concat();
    let csv = walstat(&call).stdout;
    let (head, lines) = csv.split_once('\n').expect("headings");
    let place = |key: &str| head.split(',').position(|head| head == key).expect("a column");
    let [lsn, xid, record, time] = ["lsn", "xid", "record", "time"].map(place);
    let file = ["tablespace", "database", "relfilenode"].map(place);
    let of_line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [tablespace, database, relfilenode] = file.map(|place| cells[place].parse().ok());
        Record {
            lsn: cells[lsn].to_owned(),
            xid: cells[xid].parse().expect("a number"),
            record: cells[record].to_owned(),
            time: Some(cells[time].to_owned()).filter(|time| !time.is_empty()),
            tablespace,
            database,
            relfilenode,
        }
    };
    lines.lines().map(of_line).map(|record| (record.lsn.clone(), record)).collect()
}

fn key<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// What an event says of its transaction is what the records say, in every release.
#[test]
fn events_are_what_the_records_say() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples() {
        let records = records(&sample, &[]);
        for event in events(&sample.wal, &["--min-rows", "1"]) {
            *kinds.entry(key(&event, "event").to_owned()).or_default() += 1;
            assert!(records.contains_key(key(&event, "lsn")), "{}: {event}", sample.name);
            let target = key(&event["recovery_target"], "recovery_target_lsn");
            assert!(records.contains_key(target), "{}: {event}", sample.name);
            let Some(commit) = event["commit_lsn"].as_str() else {
                assert_ne!(event["outcome"], "committed", "{}: {event}", sample.name);
                continue;
            };
            let record = &records[commit];
            assert_eq!(record.time.as_deref(), event["time"].as_str(), "{}: {event}", sample.name);
            let name = record.record.as_str();
            assert!(["COMMIT", "COMMIT_PREPARED"].contains(&name), "{}: {event}", sample.name);
            let xid = record.xid.to_string();
            let is_own = name == "COMMIT_PREPARED" || xid == key(&event, "xid");
            assert!(is_own, "{}: {event} {record:?}", sample.name);
            if event["event"] != "drop_database" {
                assert_eq!(target, commit, "{}: {event}", sample.name);
            }
        }
    }
    // The samples have all of them but for these.
    for kind in ["create_table", "drop_table", "truncate", "rewrite", "create_index"] {
        assert!(kinds[kind] >= 10, "{kind}: {kinds:?}");
    }
    for kind in ["create_database", "drop_database", "insert", "update", "delete"] {
        assert!(kinds[kind] >= 5, "{kind}: {kinds:?}");
    }
}

/// Rows that were deleted and updated are as many as there are records of that.
#[test]
fn rows_are_those_of_the_records() {
    let mut compared = 0;
    for sample in samples() {
        let mut counts: BTreeMap<(String, String, &str), u64> = BTreeMap::new();
        for row in records(&sample, &["--rmgr", "Heap"]).values() {
            let kind = match row.record.trim_end_matches("+INIT") {
                "DELETE" => "delete",
                "UPDATE" | "HOT_UPDATE" => "update",
                _ => continue,
            };
            let file = row.relation().expect("a table");
            *counts.entry((row.xid.to_string(), file, kind)).or_default() += 1;
        }
        for event in events(&sample.wal, &["--min-rows", "1", "--event", "delete,update"]) {
            let place = (key(&event, "xid").to_owned(), key(&event, "relation").to_owned());
            let kind = if event["event"] == "delete" { "delete" } else { "update" };
            // A transaction with savepoints has records of several xids.
            if let Some(count) = counts.get(&(place.0, place.1, kind)) {
                assert!(event["rows"].as_u64() >= Some(*count), "{}: {event}", sample.name);
                compared += u64::from(event["rows"] == *count);
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn it_does_not_matter_how_the_wal_is_divided() {
    for sample in samples() {
        let all = events(&sample.wal, &["--min-rows", "1", "-j", "1"]);
        assert_eq!(all, events(&sample.wal, &["--min-rows", "1", "-j", "3"]), "{}", sample.name);
    }
}

/// The story that each of these samples tells, with the names that tables had then.
#[test]
fn a_known_story_is_told() {
    for name in ["pg9.6-mixed", "pg11-mixed", "pg14-mixed", "pg17-mixed", "pg19-mixed"] {
        let sample = sample(name);
        let told: Vec<String> = events(&sample.wal, &[])
            .iter()
            .map(|event| {
                let table = event["table"].as_str().or(event["database"].as_str());
                format!("{} {}", key(event, "event"), table.unwrap_or("?"))
            })
            .collect();
        for deed in [
            "create_table accounts",
            "insert accounts",
            "truncate tt",
            "rewrite accounts",
            "drop_table tt",
            "create_database other",
            "drop_database gone",
        ] {
            // The samples from 15 on drop no database.
            if deed.starts_with("drop_database") && ["17", "19"].contains(&&*sample.release) {
                continue;
            }
            let count = told.iter().filter(|told| *told == deed).count();
            assert!(count >= 1, "{name}: {deed}: {told:#?}");
        }
    }
}

/// Only a long name goes beyond 80 columns: all else comes before it.
#[test]
fn names_come_last_in_the_table() {
    let table = walstat(&["events", text(&sample("pg15-mixed").wal)]).stdout;
    let rows: Vec<&str> = table.lines().take_while(|line| !line.is_empty()).collect();
    let names = rows[0].find("Table").expect("the column");
    assert!(names <= 60 && rows[0].ends_with("Table"), "{}", rows[0]);
    assert!(rows[0].starts_with("Time (UTC) "), "{}", rows[0]);
    let name = |row: &&str| row.chars().skip(names).collect::<String>();
    let is_name = |name: String| ["postgres.", "other"].iter().any(|db| name.starts_with(db));
    assert!(rows[1..].iter().map(name).all(is_name), "{table}");
}

#[test]
fn filters_choose() {
    let sample = sample("pg14-mixed");
    let all = events(&sample.wal, &[]);
    let chosen = |is: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|event| is(event)).cloned().collect()
    };
    let drops = events(&sample.wal, &["--event", "drop_table,drop_database"]);
    assert_eq!(drops, chosen(&|event| key(event, "event").starts_with("drop_")));
    let one = &drops[0];
    let xid = key(one, "xid");
    assert_eq!(events(&sample.wal, &["-x", xid]), chosen(&|event| event["xid"] == xid));
    let table = key(one, "table");
    let called = chosen(&|event| event["table"] == table);
    assert!(called.len() > 1, "{called:?}");
    assert_eq!(events(&sample.wal, &["-R", table]), called);
    assert_eq!(events(&sample.wal, &["-R", &format!("public.{table}")]), called);
    let of_file = events(&sample.wal, &["-R", key(one, "relation")]);
    assert!(of_file.contains(one) && of_file.len() < all.len(), "{of_file:?}");
    let time = key(one, "time");
    let since = events(&sample.wal, &["--since", time]);
    assert_eq!(since, chosen(&|event| event["time"].as_str() >= Some(time)));
    let until = events(&sample.wal, &["--until", time]);
    assert_eq!(until.len() + since.len(), all.len());
    walstat(&["events", text(&sample.wal), "--event", "drop"]).exits(2);
    walstat(&["events", text(&sample.wal), "--min-rows", "0"]).exits(2);
}

/// Names that mean something to a terminal, a spreadsheet or a shell are harmless in each format.
#[test]
fn each_format_has_all_events() {
    let sample = sample("pg14-mixed");
    let all = events(&sample.wal, &[]);
    let shown =
        |format: &str| walstat(&["events", text(&sample.wal), "-f", format]).exits(0).stdout;
    let lines = shown("ndjson");
    assert_eq!(lines.lines().count(), all.len());
    for (line, event) in lines.lines().zip(&all) {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["table"], "events");
        line["table"] = line["table_name"].take();
        for (key, value) in event.as_object().expect("an object") {
            assert_eq!(&line[key], value, "{key}");
        }
    }
    let csv = shown("csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headings = reader.headers().expect("headings").clone();
    let wanted = ["lsn", "commit_lsn", "time", "xid", "outcome", "event", "database", "schema"];
    assert!(wanted.iter().all(|name| headings.iter().any(|heading| heading == *name)), "{csv}");
    assert!(!headings.iter().any(|heading| heading == "recovery_target"), "{csv}");
    assert_eq!(reader.records().count(), all.len());
    let none = walstat(&["events", text(&sample.wal), "-f", "csv", "-x", "3"]).exits(0).stdout;
    assert_eq!(csv.lines().next(), Some(none.trim_end()), "the headings alone");
    let table = shown("table");
    assert!(table.contains("Weird \"name\", tab\\tx"), "{table}");
    assert!(!table.contains('\t') && !table.contains('\u{1b}'), "{table}");
    for line in ["recovery_target_lsn = '", "recovery_target_inclusive = off"] {
        assert!(table.contains(line), "{table}");
    }
}

/// Nothing is to be done about what was rolled back; what was prepared waits for somebody after recovery.
#[test]
fn how_a_transaction_ended_is_told_beside_its_settings() {
    let wal = sample("pg15-mixed").wal;
    let shown =
        |xid: &str| walstat(&["events", "--min-rows", "1", "-x", xid, text(&wal)]).exits(0).stdout;
    let undone = shown("743");
    assert!(
        undone.contains("All of it was rolled back, so there is nothing to recover."),
        "{undone}"
    );
    assert!(undone.contains("aborted") && !undone.contains("recovery_target"), "{undone}");
    let prepared = shown("746");
    assert!(
        prepared.contains("# after recovery the transaction is still prepared and holds its locks"),
        "{prepared}"
    );
    assert!(prepared.contains("recovery_target_inclusive = off"), "{prepared}");
    let of_it = ["events", "--min-rows", "1", "-x", "746", text(&wal)];
    let told = walstat(&[&of_it[..], &["-f", "json"]].concat()).exits(0).json();
    let commit = told["events"][0]["commit_lsn"].as_str().expect("it committed").to_owned();
    let waits = walstat(&[&of_it[..], &["-e", &commit]].concat()).exits(0).stdout;
    assert!(waits.contains("ROLLBACK PREPARED\non the server undoes it"), "{waits}");
    assert!(!waits.contains("recovery_target"), "{waits}");
}

/// A target before what has not committed would lose all that others committed meanwhile.
#[test]
fn what_has_not_committed_has_no_settings() {
    let wal = sample("pg15-mixed").wal;
    let drops = events(&wal, &["--event", "drop_table"]);
    let drop = drops.iter().find(|event| event["commit_lsn"].is_string()).expect("a drop");
    let words = ["-e", key(drop, "commit_lsn"), "-x", key(drop, "xid")];
    let shown = walstat(&[&["events", text(&wal)], &words[..]].concat()).exits(0).stdout;
    assert!(shown.contains(" in_progress "), "{shown}");
    assert!(!shown.contains("recovery_target"), "{shown}");
    assert!(shown.contains("Not committed in this WAL: recover to its end"), "{shown}");
}

/// Of a transaction that began before the WAL that is read, its commit shows the files that it dropped.
#[test]
fn files_that_are_dropped_and_of_which_nothing_is_seen_are_said() {
    for name in ["pg9.6-mixed", "pg15-mixed", "pg17-mixed"] {
        let wal = sample(name).wal;
        let whole = report(&wal, &[]);
        let said = |report: &Value| {
            let notes = report["notes"].as_array().expect("notes").clone();
            notes
                .into_iter()
                .find(|note| note.as_str().is_some_and(|n| n.contains("removed files")))
        };
        assert_eq!(said(&whole), None, "{name}: all of it is seen");
        let all = whole["events"].as_array().expect("events");
        let is_it =
            |event: &&Value| event["event"] == "drop_table" && event["commit_lsn"].is_string();
        let drop = all.iter().find(is_it).expect("a drop");
        let (commit, xid) = (key(drop, "commit_lsn"), key(drop, "xid"));
        let ran = walstat(&["events", text(&wal), "-f", "json", "-s", commit]);
        let note = said(&ran.json()).expect("a note").to_string();
        let (place, file) = (format!("xid {xid} at {commit}"), key(drop, "relation"));
        assert!(note.contains(&place) && ran.stderr.contains(&place), "{name}: {note}");
        assert!(note.contains(file), "{name}: {file}: {note}");
    }
}

/// What of the same WAL with all that comes before is told of a transaction, no part of that WAL contradicts:
/// where rows before are not known, nothing is claimed of them.
#[test]
fn a_part_of_the_wal_tells_nothing_that_all_of_it_does_not() {
    let identity = |event: &Value| ["lsn", "event", "xid"].map(|name| key(event, name).to_owned());
    let mut compared = 0;
    for name in ["pg9.6-mixed", "pg12-mixed", "pg15-mixed", "pg17-mixed", "pg16-workload"] {
        let wal = sample(name).wal;
        let whole = events(&wal, &["--min-rows", "1"]);
        let known: Vec<_> = whole.iter().map(identity).collect();
        for start in whole.iter().step_by(whole.len() / 8 + 1) {
            let start = key(start, "lsn");
            let of_files = events(&wal, &["--min-rows", "4000000000", "-s", start]);
            for event in of_files {
                assert!(known.contains(&identity(&event)), "{name} from {start}: {event}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

/// What was done on a timeline that was left is told with `-t`, and that is said to people.
#[test]
fn timelines_that_were_left_are_said() {
    let wal = sample("timeline").wal;
    let said = "There is WAL of timeline 1 too, which is not followed";
    let shown =
        |words: &[&str]| walstat(&[&["events", text(&wal)], words].concat()).exits(0).stdout;
    assert!(shown(&[]).contains(said), "{}", shown(&[]));
    let none = shown(&["-R", "nowhere"]);
    assert!(none.contains("No such event") && none.contains(said), "{none}");
    assert!(!shown(&["-t", "1"]).contains("timeline 1 too"), "{}", shown(&["-t", "1"]));
}

/// Deletes of few rows are no events, and that is said; names are offered as they are to be typed.
#[test]
fn what_a_name_without_events_may_need_is_said() {
    let wal = sample("pg15-mixed").wal;
    let note = |words: &[&str]| walstat(&[&["events", text(&wal)], words].concat()).exits(0).stderr;
    let few = "changes of fewer than 1,000 rows by one transaction are no event (--min-rows)";
    let said = note(&["-R", "nowhere", "--event", "delete"]);
    assert!(said.contains("no event of nowhere") && said.contains(few), "{said}");
    assert!(!note(&["-R", "nowhere", "--event", "drop_table"]).contains(few));
    assert!(!note(&["-R", "nowhere", "--min-rows", "1"]).contains(few));
    let said = note(&["-R", "app.Weird name"]);
    assert!(said.contains("did you mean app.\"Weird \"\"name\"\", tab\\tx\"?"), "{said}");
    // As the list prints it, which is not as SQL writes it.
    let listed = ["events", text(&wal), "-R", "app.Weird \"name\", tab\\tx"];
    assert!(walstat(&listed).exits(0).stdout.contains("app.Weird \"name\", tab\\tx"));
}

/// These samples begin with the map of a system catalog that was rewritten, and go on to change its rows.
#[test]
fn rows_of_a_rewritten_system_catalog_are_no_event() {
    for name in ["pg16-workload", "pg18-workload"] {
        let all = events(&sample(name).wal, &["--min-rows", "1"]);
        let nameless = |event: &&Value| event["table"].is_null() && event["rows"].is_u64();
        let found: Vec<&Value> = all.iter().filter(nameless).collect();
        assert!(!all.is_empty() && found.is_empty(), "{name}: {found:?}");
    }
}

/// Which events have lines, where not all have.
#[test]
fn which_events_have_settings_is_said() {
    let wal = sample("pg15-mixed").wal;
    let shown =
        |words: &[&str]| walstat(&[&["events", text(&wal)], words].concat()).exits(0).stdout;
    let losses =
        events(&wal, &["--min-rows", "1", "--event", "drop_table,truncate,delete,drop_database"]);
    let committed = losses.iter().filter(|event| event["outcome"] == "committed");
    let committed = committed.map(|event| key(event, "xid")).collect::<BTreeSet<_>>().len();
    assert!(committed > 5, "{committed}");
    let table = shown(&["--min-rows", "1"]);
    let said =
        format!("These are the last 5 of the {committed} transactions that took something away.");
    assert!(table.contains(&said), "{said}: {table}");
    assert!(
        !shown(&["-x", key(&losses[0], "xid")]).contains("These are the last"),
        "all of it has lines"
    );
}

/// What the release's server takes: 9.6 has no place to stop at, and both have a file of their own.
#[test]
fn settings_are_those_of_the_release() {
    let table = |name: &str| walstat(&["events", text(&sample(name).wal)]).exits(0).stdout;
    let old = table("pg9.6-mixed");
    assert!(old.contains(" into recovery.conf of"), "{old}");
    assert!(old.contains("recovery_target_xid = '") && !old.contains("recovery_target_lsn = '"));
    assert!(table("pg11-mixed").contains(" into recovery.conf of"));
    let new = table("pg12-mixed");
    assert!(new.contains(" into postgresql.conf of") && new.contains("recovery_target_lsn = '"));
}

/// The files of a database are gone before DROP DATABASE commits, and where the release marks it first, it
/// is broken before that.
#[test]
fn a_database_is_broken_whatever_becomes_of_its_drop() {
    for name in ["pg11-mixed", "pg14-mixed"] {
        let wal = sample(name).wal;
        let drop = events(&wal, &["--event", "drop_database"]).pop().expect("a drop");
        let words = ["-e", key(&drop, "commit_lsn"), "-x", key(&drop, "xid")];
        let shown = walstat(&[&["events", text(&wal)], &words[..]].concat()).exits(0).stdout;
        let said = "# it did not commit, and the database is broken all the same";
        assert!(shown.contains(" in_progress ") && shown.contains(said), "{name}: {shown}");
        assert!(shown.contains("\nrecovery_target_"), "{name}: {shown}");
        let notes = report(&wal, &words)["notes"].to_string();
        assert!(
            notes.contains("DROP DATABASE did not commit") && notes.contains("gone"),
            "{notes}"
        );
        let whole = report(&wal, &[])["notes"].to_string();
        assert!(!whole.contains("DROP DATABASE did not commit"), "{whole}");
    }
}

/// 9.6 has no place to stop at, and no transaction ends where the files of a database are removed.
#[test]
fn recovery_before_a_dropped_database_stops_after_the_transaction_before_it() {
    let sample = sample("pg9.6-mixed");
    let drop = events(&sample.wal, &["--event", "drop_database"]).pop().expect("a drop");
    let place = key(&drop["recovery_target"], "recovery_target_lsn");
    let records = records(&sample, &[]);
    let is_end = |record: &&Record| ["COMMIT", "ABORT"].contains(&&*record.record);
    let before = records.range(..place.to_owned()).rev().map(|(_, record)| record);
    let last = before.into_iter().find(is_end).expect("the end of a transaction");
    for threads in ["1", "3"] {
        let words = ["events", text(&sample.wal), "--event", "drop_database", "-j", threads];
        let shown = walstat(&words).exits(0).stdout;
        let lines =
            format!("recovery_target_xid = '{}'\nrecovery_target_inclusive = on\n", last.xid);
        assert!(shown.contains(&lines), "{lines}: {shown}");
    }
    // A backup that began after that transaction never meets its end.
    let label = std::fs::read_to_string(fixtures().join("backup/base/backup_label"));
    let label = label.expect("a label").replace("0/800028", place);
    let backup = tempfile::tempdir().expect("a directory");
    std::fs::write(backup.path().join("backup_label"), label).expect("a label");
    let backup = text(backup.path());
    let words = ["--event", "drop_database", "--data-directory", backup];
    let shown = walstat(&[&["events", text(&sample.wal)], &words[..]].concat()).exits(0).stdout;
    assert!(shown.contains("this release knows no other target"), "{shown}");
}

/// Several outputs come from one run.
#[test]
fn each_output_belongs_to_the_format_before_it() {
    let wal = sample("pg14-mixed").wal;
    let here = tempfile::tempdir().expect("a directory");
    let file = here.path().join("events.json");
    let words = ["events", text(&wal), "-f", "json", "-o", text(&file), "-f", "table"];
    let table = walstat(&words).exits(0).stdout;
    assert_eq!(table, walstat(&["events", text(&wal)]).exits(0).stdout);
    let json: Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(json["events"], Value::from(events(&wal, &[])));
}

/// The backup that names come from is of no use for what happened before it.
#[test]
fn what_lies_before_the_backup_is_said() {
    let sample = sample("pg14-mixed");
    let all = events(&sample.wal, &[]);
    let backup = tempfile::tempdir().expect("a directory");
    let start = key(&all[all.len() / 2]["recovery_target"], "recovery_target_lsn");
    let label = std::fs::read_to_string(fixtures().join("backup/base/backup_label"))
        .expect("a label")
        .replace("0/800028", start);
    std::fs::write(backup.path().join("backup_label"), label).expect("a label");
    let words = ["events", text(&sample.wal), "--data-directory", text(backup.path())];
    let ran = walstat(&words).exits(0);
    assert!(ran.stderr.contains("where the backup in --data-directory begins"), "{}", ran.stderr);
    let first = key(&all[0], "xid");
    let remark = "# the backup in --data-directory began after this event";
    let told = walstat(&[&words[..], &["-x", first]].concat()).exits(0).stdout;
    assert!(told.contains(remark), "{told}");
    let last = key(&all[all.len() - 1], "xid");
    let told = walstat(&[&words[..], &["-x", last]].concat()).exits(0).stdout;
    assert!(!told.contains(remark) && told.contains("recovery_target_lsn"), "{told}");
}

/// Where the backup of another cluster begins says nothing of this one.
#[test]
fn the_backup_of_another_cluster_is_before_nothing() {
    let sample = sample("pg14-mixed");
    let all = events(&sample.wal, &[]);
    let start = key(&all[all.len() / 2]["recovery_target"], "recovery_target_lsn");
    let foreign = fixtures().join("backup/base");
    let backup = tempfile::tempdir().expect("a directory");
    let label = std::fs::read_to_string(foreign.join("backup_label")).expect("a label");
    let label = label.replace("0/800028", start);
    std::fs::write(backup.path().join("backup_label"), label).expect("a label");
    std::fs::create_dir(backup.path().join("global")).expect("a directory");
    let control = "global/pg_control";
    std::fs::copy(foreign.join(control), backup.path().join(control)).expect("copied");
    let words = ["events", text(&sample.wal), "--data-directory", text(backup.path())];
    let ran = walstat(&[&words[..], &["-x", key(&all[0], "xid")]].concat()).exits(0);
    assert!(!ran.stderr.contains("lie before"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("began after this event"), "{}", ran.stdout);
}

/// Damage is a problem; what lies around it is told.
#[test]
fn what_lies_around_damage_is_told() {
    let sample = sample("pg14-mixed");
    let directory = tempfile::tempdir().expect("a directory");
    let names = sample.segments();
    for name in &names {
        let from = sample.segment(name);
        let to = directory.path().join(from.file_name().expect("a name"));
        std::fs::copy(from, to).expect("copied");
    }
    let place = names.len() / 2;
    let broken = directory.path().join(sample.segment(&names[place]).file_name().expect("a name"));
    let mut bytes = std::fs::read(&broken).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100].fill(0x55);
    std::fs::write(&broken, bytes).expect("written");
    let ran = walstat(&["events", text(directory.path()), "-f", "json"]).exits(4);
    let report = ran.json();
    assert!(!report["problems"].as_array().expect("problems").is_empty());
    assert!(ran.stderr.contains(&names[place]), "{}", ran.stderr);
    let told = report["events"].as_array().expect("events");
    let all = events(&sample.wal, &[]);
    assert_eq!((told.first(), told.last()), (all.first(), all.last()));
}

/// Events before a missing segment, and behind it, are those of the whole.
#[test]
fn what_lies_around_a_missing_segment_is_told() {
    let identity = |event: &Value| (key(event, "lsn").to_owned(), key(event, "event").to_owned());
    for name in ["pg9.6-mixed", "pg14-mixed", "pg17-mixed"] {
        let sample = sample(name);
        let directory = tempfile::tempdir().expect("a directory");
        let names = sample.segments();
        let missing = names.len() / 2;
        for name in names.iter().enumerate().filter(|(place, _)| *place != missing) {
            let from = sample.segment(name.1);
            let to = directory.path().join(from.file_name().expect("a name"));
            std::fs::copy(from, to).expect("copied");
        }
        let ran = walstat(&["events", text(directory.path()), "-f", "json"]).exits(4);
        let told = ran.json()["events"].as_array().expect("events").clone();
        let all = events(&sample.wal, &[]);
        let there: Vec<_> = told.iter().map(identity).collect();
        let (first, last) = (all.first().map(identity), all.last().map(identity));
        assert_eq!((there.first(), there.last()), (first.as_ref(), last.as_ref()), "{name}");
        let whole: Vec<_> = all.iter().map(identity).collect();
        let known = there.iter().filter(|event| whole.contains(event)).count();
        assert!(known * 4 > whole.len() * 3, "{name}: {known} of {}", whole.len());
    }
}

/// Who asks for a name that nothing has is told which ones there are.
#[test]
fn a_name_without_events_is_said() {
    let sample = sample("pg17-mixed");
    let all = events(&sample.wal, &["--event", "create_table"]);
    let named = all.iter().find(|event| event["table"].is_string()).expect("a table with a name");
    let wrong = format!("{}.{}x", key(named, "schema"), key(named, "table"));
    let ran = walstat(&["events", text(&sample.wal), "-R", &wrong]).exits(0);
    let (said, meant) =
        (format!("no event of {wrong}"), format!("did you mean \"{}", key(named, "schema")));
    assert!(ran.stderr.contains(&said) && ran.stderr.contains(&meant), "{}", ran.stderr);
}

#[test]
fn what_is_no_wal_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let ran = walstat(&["events", text(directory.path()), "-f", "json"]).exits(3);
    assert_eq!(ran.json()["command"], "events");
    assert!(ran.json()["error"].is_string());
}
