//! Live tests of who writes the WAL: real servers make relations of all kinds, rewrite and drop
//! them, and walstat must call every file what the server's own catalogs call it: while the server
//! runs, after it stopped, and after it was ended without a checkpoint. Sums and counts are held
//! against pg_waldump (15), `pg_get_wal_block_info` (16 and later) and `pg_stat_user_tables`.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::support::patience::PATIENCE;
use crate::walstat;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

mod updates;

/// `tablespace/database/relfilenode`.
type File = (u32, u32, u32);

/// A relation as somebody says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    database_name: String,
    tablespace_name: String,
    oid: u32,
    schema: String,
    name: String,
    kind: String,
    table: String,
    parent: String,
}

/// What somebody says of all relations.
#[derive(Debug, Default)]
struct Names {
    by_file: BTreeMap<File, Named>,
    /// By database and oid.
    by_oid: BTreeMap<(u32, u32), Named>,
}

impl Names {
    fn of_csv(text: &str) -> Names {
        let mut names = Names::default();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headings = reader.headers().expect("headings").clone();
        for row in reader.records() {
            let row = row.expect("a row");
            let text = |key: &str| {
                let place = headings.iter().position(|heading| heading == key);
                row.get(place.unwrap_or_else(|| panic!("no {key}"))).unwrap_or_default().to_owned()
            };
            let number = |key: &str| text(key).parse::<u32>().unwrap_or_default();
            if text("database") == "database" {
                continue;
            }
            let named = Named {
                database_name: text("database_name"),
                tablespace_name: text("tablespace_name"),
                oid: number("oid"),
                schema: text("schema"),
                name: text("name"),
                kind: text("kind"),
                table: text("table"),
                parent: text("parent"),
            };
            let database = number("database");
            if number("relfilenode") != 0 {
                let file = (number("tablespace"), database, number("relfilenode"));
                names.by_file.insert(file, named.clone());
            }
            names.by_oid.insert((database, named.oid), named);
        }
        names
    }

    /// Fails if a file or a relation is called what the server does not call it. Which of the
    /// server's files have no name.
    #[track_caller]
    fn none_wrong(&self, truth: &Names, what: &str) -> BTreeSet<File> {
        for (file, ours) in &self.by_file {
            let theirs = truth.by_file.get(file);
            // A file that is gone: of a relation that is there, it has that relation's name.
            let theirs = theirs.or_else(|| truth.by_oid.get(&(file.1, ours.oid)));
            let Some(theirs) = theirs else { continue };
            let same =
                (ours.oid, &ours.name, &ours.kind) == (theirs.oid, &theirs.name, &theirs.kind);
            let schema = ours.schema.is_empty() || ours.schema == theirs.schema;
            let database =
                ours.database_name.is_empty() || ours.database_name == theirs.database_name;
            assert!(same && schema && database, "{what}: {file:?} is {theirs:?}, not {ours:?}");
        }
        truth.by_file.keys().filter(|file| !self.by_file.contains_key(file)).copied().collect()
    }

    /// Fails unless every file and every relation is called what the server calls it.
    #[track_caller]
    fn all_right(&self, truth: &Names, what: &str) {
        let unnamed = self.none_wrong(truth, what);
        let unnamed: Vec<_> = unnamed.iter().map(|file| (file, &truth.by_file[file])).collect();
        assert!(unnamed.is_empty(), "{what}: no names of {unnamed:?}");
        for (file, theirs) in &truth.by_file {
            assert_eq!(&self.by_file[file], theirs, "{what}: {file:?}");
        }
        for (key, theirs) in &truth.by_oid {
            let ours = self.by_oid.get(key).unwrap_or_else(|| panic!("{what}: no {theirs:?}"));
            assert_eq!((&ours.name, &ours.parent), (&theirs.name, &theirs.parent), "{what}");
        }
    }
}

/// Standard output of `walstat`, run on anything.
fn walstat(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_walstat")).args(arguments).output();
    let output = output.expect("walstat runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What the server says of all its databases, as a names file.
fn names_file(cluster: &Cluster) -> String {
    let query = cluster.home().join("names.sql");
    fs::write(&query, walstat(&["names", "--sql"])).expect("a file");
    let databases = cluster.sql("SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1");
    databases.lines().map(|database| cluster.file_in(database, &query) + "\n").collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The names that a directory yields.
fn names_of(directory: &Path) -> Names {
    Names::of_csv(&walstat(&["names", "-f", "csv", path(directory)]))
}

fn who(arguments: &[&str], directory: &Path) -> Value {
    let dimensions = "--stats=relation,table,database,tablespace,fork,transaction";
    let arguments = [&[dimensions, "-f", "json"], arguments].concat();
    serde_json::from_str(&walstat::text(&arguments, directory)).expect("JSON")
}

fn rows(list: &Value) -> &[Value] {
    list.as_array().expect("rows")
}

const NUMBERS: [&str; 5] = ["count", "record_bytes", "fpi_bytes", "total_bytes", "fpi_count"];

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Every list of rows adds up to the totals.
#[track_caller]
fn sums_are_totals(report: &Value) {
    for list in ["relations", "tables", "databases", "tablespaces", "forks"] {
        for key in NUMBERS {
            let sum: u64 = rows(&report[list]).iter().map(|row| number(row, key)).sum();
            assert_eq!(sum, number(&report["totals"], key), "{key} of {list}");
        }
    }
    let transactions = &report["transactions"];
    let without = &transactions["summary"]["without_transaction"];
    for key in NUMBERS {
        let sum: u64 = rows(&transactions["top"]).iter().map(|row| number(row, key)).sum();
        assert_eq!(sum + number(without, key), number(&report["totals"], key), "{key}");
    }
}

/// The rows of relations have the names of the truth, and one row a table over all its files.
#[track_caller]
fn rows_are_named(report: &Value, truth: &Names, what: &str) {
    for row in rows(&report["relations"]) {
        let part = |key: &str| u32::try_from(row[key].as_u64()?).ok();
        let file = || Some((part("tablespace")?, part("database")?, part("relfilenode")?));
        let Some(theirs) = file().and_then(|file| truth.by_file.get(&file)) else { continue };
        assert_eq!(row["name"], theirs.name, "{what}: {row}");
        assert_eq!(row["schema"], theirs.schema, "{what}: {row}");
        assert_eq!(row["table"]["oid"].to_string(), theirs.table, "{what}: {row}");
    }
    let mut seen = BTreeSet::new();
    for row in rows(&report["tables"]).iter().filter(|row| row["oid"].is_u64()) {
        assert!(seen.insert((number(row, "database"), number(row, "oid"))), "{what}: twice {row}");
        // One that was made anew with a column's type is the same index.
        let indexes = || rows(&row["indexes"]).iter().map(|index| index["name"].to_string());
        let names: BTreeSet<String> = indexes().collect();
        assert_eq!(names.len(), indexes().count(), "{what}: an index twice {row}");
    }
}

/// Segments alone in an empty directory.
fn wal_alone(cluster: &Cluster) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(cluster.wal()).expect("segments") {
        let entry = entry.expect("an entry");
        if entry.file_name().len() == 24 {
            fs::copy(entry.path(), directory.path().join(entry.file_name())).expect("a copy");
        }
    }
    directory
}

/// What the WAL alone teaches is right, and has every relation that was made in it.
#[track_caller]
fn wal_alone_is_right(cluster: &Cluster, truth: &Names, what: &str) {
    let wal = wal_alone(cluster);
    let unnamed = names_of(wal.path()).none_wrong(truth, what);
    let made =
        unnamed.iter().filter(|(_, database, relfilenode)| *relfilenode >= 16384 && *database != 1);
    let made: Vec<_> = made.map(|file| (file, &truth.by_file[file])).collect();
    let of_users = made.iter().filter(|(_, named)| named.schema != "pg_catalog");
    let of_users: Vec<_> = of_users.filter(|(_, named)| named.oid >= 16384).collect();
    assert!(of_users.is_empty(), "{what}: no names of {of_users:?}");
}

/// All that holds of a data directory in any state.
#[track_caller]
fn holds(cluster: &Cluster, list: &str, what: &str) {
    let truth = Names::of_csv(list);
    assert!(truth.by_file.len() > 500, "{what}: {} files", truth.by_file.len());
    names_of(&cluster.data()).all_right(&truth, what);
    let report = who(&[], &cluster.data());
    sums_are_totals(&report);
    rows_are_named(&report, &truth, what);
    wal_alone_is_right(cluster, &truth, &format!("{what}, WAL alone"));

    // The same of the server's own list, without the data directory.
    let file = cluster.home().join("names.csv");
    fs::write(&file, list).expect("a file");
    let wal = wal_alone(cluster);
    let report = who(&["--names", path(&file)], wal.path());
    let of_file = |note: &&Value| note.as_str().is_some_and(|note| note.contains(path(&file)));
    let doubts: Vec<&Value> = rows(&report["notes"]).iter().filter(of_file).collect();
    assert!(doubts.is_empty(), "{what}: {doubts:?}");
    sums_are_totals(&report);
    rows_are_named(&report, &truth, &format!("{what}, names file"));
}

/// The changes of rows of each table of the schema "counted", as the server counts them.
fn counted_changes(cluster: &Cluster) -> BTreeMap<String, Vec<u64>> {
    let has_newpage =
        cluster.sql("SHOW server_version_num").parse::<u32>().expect("a number") >= 160_000;
    let newpage = if has_newpage { ", n_tup_newpage_upd" } else { "" };
    let patience = Instant::now() + PATIENCE;
    loop {
        let text = cluster.sql(&format!(
            "SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del{newpage} \
             FROM pg_stat_user_tables WHERE schemaname = 'counted'"
        ));
        let row = |line: &str| {
            let mut cells = line.split('|');
            let name = cells.next().expect("a name").to_owned();
            (name, cells.map(|cell| cell.parse().expect("a number")).collect())
        };
        let counts: BTreeMap<String, Vec<u64>> = text.lines().map(row).collect();
        // Servers before 15 learn it from a process that lags behind.
        if counts.get("plain").is_some_and(|counts: &Vec<u64>| counts[3] > 0) {
            return counts;
        }
        assert!(Instant::now() < patience, "the server's counts: {text}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Rows changed as the server counts them; the range in which it happened.
#[track_caller]
fn rows_are_counted(cluster: &Cluster) -> [String; 2] {
    let start = cluster.insert_lsn();
    cluster.script("who_rows.sql");
    let end = cluster.insert_lsn();
    let report = who(&["-s", &start, "-e", &end], &cluster.data());
    for (name, counts) in counted_changes(cluster) {
        let mut tables = rows(&report["tables"]).iter();
        let row = tables.find(|row| row["schema"] == "counted" && row["name"] == *name);
        let row = row.unwrap_or_else(|| panic!("no row of {name}"));
        let keys = ["inserts", "updates", "hot_updates", "deletes", "updates_new_page"];
        let ours: Vec<u64> = keys.iter().map(|key| number(row, key)).take(counts.len()).collect();
        assert_eq!(ours, counts, "{name}: {keys:?}");
    }
    [start, end]
}

/// References, data and images of every block as the server adds them up.
#[track_caller]
fn blocks_are_counted(cluster: &Cluster, [start, end]: &[String; 2]) {
    cluster.sql("CREATE EXTENSION pg_walinspect");
    let text = cluster.sql(&format!(
        "SELECT reltablespace, reldatabase, relfilenode, relforknumber, relblocknumber, count(*), \
                sum(block_data_length), sum(block_fpi_length) \
         FROM pg_get_wal_block_info('{start}', '{end}', false) GROUP BY 1, 2, 3, 4, 5"
    ));
    let cells = |line: &str| line.split('|').map(|cell| cell.parse().unwrap_or(0)).collect();
    let official: Vec<Vec<u64>> = text.lines().map(cells).collect();
    assert!(official.len() > 100, "{} blocks", official.len());
    let arguments = ["--stats=block,relation", "-f", "json", "-s", start, "-e", end];
    let report = walstat::text(&arguments, &cluster.data());
    let report: Value = serde_json::from_str(&report).expect("JSON");

    let forks = ["main", "fsm", "vm", "init"];
    let fork =
        |row: &Value| forks.iter().position(|fork| row["fork"] == **fork).expect("a fork") as u64;
    let key = |row: &Value| ["tablespace", "database", "relfilenode"].map(|key| number(row, key));
    let mut blocks: BTreeMap<_, [u64; 2]> = BTreeMap::new();
    let mut relations: BTreeMap<_, [u64; 4]> = BTreeMap::new();
    for row in &official {
        let [t, d, r, f, block, refs, data, fpi] = row[..] else { panic!("{row:?}") };
        blocks.insert(([t, d, r], f, block), [refs, fpi]);
        let sums = relations.entry(([t, d, r], f)).or_default();
        [refs, data, fpi, 1].iter().zip(sums).for_each(|(number, sum)| *sum += number);
    }
    let ours = rows(&report["blocks"]["top"]).iter();
    let ours = ours.map(|row| {
        let sums = [number(row, "block_refs"), number(row, "fpi_bytes")];
        ((key(row), fork(row), number(row, "block")), sums)
    });
    assert_eq!(ours.collect::<BTreeMap<_, _>>(), blocks);
    let ours = rows(&report["relations"]).iter().filter(|row| row["relfilenode"].is_u64());
    let ours = ours.map(|row| {
        let keys = ["block_refs", "block_data_bytes", "fpi_bytes", "distinct_blocks"];
        ((key(row), fork(row)), keys.map(|key| number(row, key)))
    });
    assert_eq!(ours.collect::<BTreeMap<_, _>>(), relations);
}

/// What the WAL changed since a list was made is told by the WAL.
#[track_caller]
fn older_list_is_brought_up_to_date(cluster: &Cluster, older: &str, list: &str, what: &str) {
    let (wal, file) = (wal_alone(cluster), cluster.home().join("older.csv"));
    fs::write(&file, older).expect("a file");
    let names = walstat(&["names", "-f", "csv", "--names", path(&file), path(wal.path())]);
    let unnamed = Names::of_csv(&names).none_wrong(&Names::of_csv(list), what);
    // A copied database has the catalogs of the other, which need not be in the WAL.
    let news = list.lines().filter(|line| line.contains(",late"));
    assert!(news.count() > 2 && names.contains(",orders_of_late,"), "{what}: {unnamed:?}");
}

/// A partitioned table is one row with all its partitions, at any depth, and their indexes.
#[track_caller]
fn partitions_are_put_together(cluster: &Cluster) {
    let tables = |more: &[&str]| {
        let arguments = [&["--stats=table", "-f", "json"], more].concat();
        let text = walstat::text(&arguments, &cluster.data());
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let is_part = |row: &&Value| {
            let name = row["name"].as_str().unwrap_or_default();
            row["database_name"] == "postgres" && name.starts_with("part")
        };
        rows(&report["tables"]).iter().filter(is_part).cloned().collect::<Vec<_>>()
    };
    let (each, together) = (tables(&[]), tables(&["--by", "parent"]));
    assert!(each.len() >= 2, "{each:?}");
    let [whole] = together.as_slice() else { panic!("one row: {together:?}") };
    assert_eq!((&whole["name"], &whole["kind"]), (&Value::from("part"), &Value::from("p")));
    for key in NUMBERS.iter().chain(&["inserts"]) {
        let sum: u64 = each.iter().map(|row| number(row, key)).sum();
        assert_eq!(number(whole, key), sum, "{key}");
    }
    let indexes: Vec<&Value> = rows(&whole["indexes"]).iter().map(|index| &index["name"]).collect();
    assert_eq!(indexes, [&Value::from("part_pkey")]);
}

/// The server itself is a source of names; one that cannot be reached is said.
#[cfg(feature = "server")]
#[track_caller]
fn server_is_asked(cluster: &Cluster, list: &str, what: &str) {
    let wal = wal_alone(cluster);
    let dsn = format!("host={} user=postgres", path(cluster.home()));
    let names = walstat(&["names", "-f", "csv", "--dsn", &dsn, path(wal.path())]);
    assert!(names.matches(",dsn\n").count() > 500, "{what}: {names}");
    Names::of_csv(&names).all_right(&Names::of_csv(list), &format!("{what}, asked"));
    let report = who(&["--dsn", "host=/nowhere user=postgres"], wal.path());
    assert!(report["notes"].to_string().contains("--dsn: "), "{}", report["notes"]);
}

/// A record as pg_waldump shows it.
struct DumpedRecord {
    xid: String,
    bytes: u64,
    files: BTreeSet<String>,
}

impl DumpedRecord {
    fn of(line: &str) -> Option<DumpedRecord> {
        let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.trim_start());
        let until = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
        let (_, bytes) = after("len (rec/tot):")?.split_once('/')?;
        let files = line.split(" rel ").skip(1).map(|rest| until(rest, ' '));
        Some(DumpedRecord {
            xid: until(after("tx:")?, ','),
            bytes: until(bytes.trim_start(), ',').parse().ok()?,
            files: files.collect(),
        })
    }
}

/// Records by relation and transaction as pg_waldump shows them, one by one.
#[track_caller]
fn agrees_with_pg_waldump(server: &Server, cluster: &Cluster, [start, end]: &[String; 2]) {
    let mut command = Command::new(server.path("pg_waldump"));
    let output = command.args(["-s", start, "-e", end, "-p"]).arg(cluster.wal()).output();
    let text = String::from_utf8(output.expect("pg_waldump runs").stdout).expect("UTF-8");
    let shown: Vec<DumpedRecord> = text.lines().filter_map(DumpedRecord::of).collect();
    assert!(shown.len() > 10_000, "{} records", shown.len());
    let range = ["-s", start, "-e", end];

    let report = who(&range, &cluster.data());
    let mut by_xid: BTreeMap<&str, u64> = BTreeMap::new();
    shown.iter().for_each(|record| *by_xid.entry(&record.xid).or_default() += record.bytes);
    let rows = rows(&report["transactions"]["top"]).iter();
    let alone = rows.filter(|row| row["subtransactions"] == 0);
    let alone: Vec<_> =
        alone.map(|row| (row["xid"].as_str(), number(row, "total_bytes"))).collect();
    assert!(alone.len() > 30, "{} transactions", alone.len());
    for (xid, bytes) in alone {
        assert_eq!(xid.and_then(|xid| by_xid.get(xid)), Some(&bytes), "transaction {xid:?}");
    }

    let names = names_of(&cluster.data());
    let database = cluster.sql("SELECT oid FROM pg_database WHERE datname = current_database()");
    for (name, whole) in [("orders", false), ("orders", true), ("orders_customer", false)] {
        let of_name = |named: &Named| named.schema == "public" && named.name == name;
        let is_here = |of: &u32| of.to_string() == database;
        let ours = names.by_oid.iter().find(|((of, _), named)| is_here(of) && of_name(named));
        let (&(_, oid), _) = ours.unwrap_or_else(|| panic!("no {name}"));
        // An index that is made anew with a column's type has another oid then.
        let is_wanted = |named: &Named| of_name(named) || whole && named.table == oid.to_string();
        let files = names.by_file.iter();
        let files = files.filter(|((_, of, _), named)| is_here(of) && is_wanted(named));
        let files: BTreeSet<String> = files.map(|((t, d, r), _)| format!("{t}/{d}/{r}")).collect();
        assert!(files.len() > 2, "{name} was rewritten: {files:?}");
        // The other databases had relations of that name.
        let relation = format!("postgres.public.{name}");
        let table = if whole { &["--table"][..] } else { &[] };
        let arguments = [&range[..], &["-R", &relation], table].concat();
        let totals = &walstat::json(&arguments, &cluster.data())["totals"];
        let theirs = shown.iter().filter(|record| !record.files.is_disjoint(&files)).count();
        assert_eq!(number(totals, "count"), theirs as u64, "{arguments:?} {files:?}");
    }
}

#[test]
fn pg_waldump_shows_the_same_records() {
    let Some(server) = Server::debian_15() else { return };
    let cluster = Cluster::start(&server, &Settings::default());
    let start = cluster.insert_lsn();
    cluster.script("who.sql");
    cluster.script("who_rows.sql");
    let range = [start, cluster.insert_lsn()];
    agrees_with_pg_waldump(&server, &cluster, &range);
    rolled_back_subtransactions_are_folded(&cluster);
}

/// No list in the WAL has a subtransaction that was rolled back; the data directory knows it.
#[track_caller]
fn rolled_back_subtransactions_are_folded(cluster: &Cluster) {
    // Only then are they written to the files.
    cluster.sql("CHECKPOINT");
    let summary = |directory: &Path| {
        let report = walstat::text(&["--stats=transaction", "-f", "json"], directory);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let summary = &report["transactions"]["summary"];
        ["transactions", "subtransactions"].map(|key| number(summary, key))
    };
    let [transactions, subtransactions] = summary(wal_alone(cluster).path());
    assert_eq!(summary(&cluster.data()), [transactions - 1, subtransactions + 1]);
}

/// All states of one server's data directory.
fn against_server(server: &Server) {
    let mut cluster = Cluster::start(server, &Settings::default());
    let name = |state: &str| format!("PostgreSQL {}, {state}", server.major);
    cluster.script("who.sql");
    let range = rows_are_counted(&cluster);
    if server.number() >= 16 {
        blocks_are_counted(&cluster, &range);
    }
    let list = names_file(&cluster);
    holds(&cluster, &list, &name("live"));
    #[cfg(feature = "server")]
    server_is_asked(&cluster, &list, &name("live"));
    if server.number() >= 11 {
        partitions_are_put_together(&cluster);
    }
    cluster.script("who_after.sql");
    let older = list;
    let list = names_file(&cluster);
    cluster.crash();
    older_list_is_brought_up_to_date(&cluster, &older, &list, &name("an older list"));
    holds(&cluster, &list, &name("after an immediate stop"));
    cluster.start_again();
    let list = names_file(&cluster);
    cluster.stop();
    holds(&cluster, &list, &name("after a clean stop"));
}

macro_rules! servers {
    ($($name:ident: $major:literal;)*) => {
        $(#[test]
        fn $name() {
            if let Some(server) = Server::fetched($major) {
                against_server(&server);
            }
        })*
    };
}

servers! {
    server_9_6: "9.6";
    server_10: "10";
    server_11: "11";
    server_12: "12";
    server_13: "13";
    server_14: "14";
    server_15: "15";
    server_16: "16";
    server_17: "17";
    server_18: "18";
}
