//! Live tests of names: real servers make, rewrite, rename and drop relations, and what is read from
//! their files must be what they say: while they run, after a stop, and after a crash, with the WAL
//! that the crash left applied on top. Where a server is missing its test says SKIPPED on standard
//! error; `WALSTAT_REQUIRE_LIVE=1` makes that a failure.

mod common;
mod live;
mod support;

use common::lessons::learn;
use common::whole::records;
use live::cluster::{Cluster, Settings};
use live::server::Server;
use live::shell::{Background, background};
use std::time::{Duration, Instant};
use support::catalogs::Truth;
use walstat::input::catalog::{Catalog, Expected, read};
use walstat::wal::catalog::lessons::Lessons;
use walstat::wal::catalog::names::Names;
use walstat::wal::catalog::store::Store;
use walstat::wal::version::{VERSIONS, Version};

/// Every relation with a file, as [`Truth::parse`] reads it. Shared relations are in no database.
const RELATIONS: &str = "COPY (SELECT current_database(), c.oid, pg_relation_filenode(c.oid), \
    CASE c.reltablespace WHEN 0 THEN d.dattablespace ELSE c.reltablespace END, \
    CASE WHEN c.relisshared THEN 0 ELSE d.oid END, n.nspname, c.relname, c.relkind, \
    c.reltoastrelid, coalesce(i.indrelid, 0) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_database d ON d.datname = current_database() \
    LEFT JOIN pg_index i ON i.indexrelid = c.oid \
    WHERE pg_relation_filenode(c.oid) IS NOT NULL) TO STDOUT";

/// What the server says, of all databases that let anybody in.
fn truth(cluster: &Cluster) -> Truth {
    let databases = cluster.sql("SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1");
    let rows = databases.lines().map(|database| cluster.sql_in(database, RELATIONS));
    Truth::parse(&std::iter::once("headings".to_owned()).chain(rows).collect::<Vec<_>>().join("\n"))
}

fn version(server: &Server) -> &'static Version {
    VERSIONS.iter().find(|version| version.name == server.major).expect("a release that is read")
}

/// Names of the files alone, without a warning.
fn catalog(cluster: &Cluster) -> Catalog {
    let mut warnings = Vec::new();
    let found = read(&cluster.data(), &Expected::default(), &mut warnings);
    assert!(warnings.is_empty(), "{warnings:?}");
    found.expect("a data directory")
}

/// Names of the files, with the WAL that is there applied on top.
fn with_wal(cluster: &Cluster) -> Names {
    let Catalog { version, mut store, .. } = catalog(cluster);
    let mut lessons = Lessons::over(&store);
    learn(&mut lessons, &records(&cluster.wal(), version, 1), version);
    lessons.teach(&mut store);
    store.names()
}

/// Names of the WAL alone.
fn of_wal(cluster: &Cluster, version: &'static Version) -> Names {
    let mut lessons = Lessons::default();
    learn(&mut lessons, &records(&cluster.wal(), version, 1), version);
    let mut store = Store::new(version);
    lessons.teach(&mut store);
    store.names()
}

/// A session that keeps a temporary table.
fn with_temporary_table(cluster: &Cluster) -> Background {
    let script =
        "CREATE TEMPORARY TABLE temporary (id int PRIMARY KEY, t text);\nSELECT pg_sleep(600);\n";
    std::fs::write(cluster.home().join("temporary.sql"), script).expect("written");
    let arguments = cluster.connection().join(" ");
    let session =
        background(cluster.home(), &format!("psql {arguments} -d postgres -f temporary.sql"));
    let there = "SELECT count(*) FROM pg_class WHERE relname = 'temporary'";
    let start = Instant::now();
    while cluster.sql(there) != "1" {
        assert!(start.elapsed() < Duration::from_secs(30), "no temporary table");
        std::thread::sleep(Duration::from_millis(50));
    }
    session
}

/// The parent of a partition, and tables of databases made from one another.
fn check_links(names: &Names, truth: &Truth, has_partitions: bool) {
    let file_of = |name: &str| {
        let found = truth.rows.iter().find(|(_, row)| row.name == name);
        *found.unwrap_or_else(|| panic!("no {name}")).0
    };
    let mut children = vec![("child", "parent", false)];
    if has_partitions {
        children.push(("measured_2", "measured", true));
    }
    for (child, parent, is_partition) in children {
        let file = file_of(child);
        let found = names.relation(file).expect(child);
        let above = names.by_oid(file.database, found.parent.expect("a parent")).expect("its row");
        assert_eq!((&*above.name, found.is_partition), (parent, is_partition));
    }
    let tablespace = file_of("there").tablespace;
    assert_eq!(names.tablespace(tablespace), Some("second"));
}

/// Tells a server's story, and reads names wherever it can be stopped.
fn story(server: Option<Server>) {
    let Some(server) = server else { return };
    let version = version(&server);
    let mut cluster = Cluster::start(&server, &Settings::default());
    let has_partitions = server.number() >= 10;
    cluster.script("names_1.sql");
    if has_partitions {
        cluster.script("names_partitions.sql");
    }
    let session = with_temporary_table(&cluster);
    // What is written down by a checkpoint is in the files.
    cluster.sql("CHECKPOINT");
    let now = truth(&cluster);
    now.all_right(&catalog(&cluster).store.names(), "running, after a checkpoint");
    // What is not is in the WAL.
    drop(session);
    cluster.script("names_2.sql");
    let now = truth(&cluster);
    let what = format!("{} running", server.major);
    now.all_right(&with_wal(&cluster), &what);
    cluster.crash();
    let what = format!("{} crashed", server.major);
    let names = with_wal(&cluster);
    now.all_right(&names, &what);
    check_links(&names, &now, has_partitions);
    let what = format!("{} crashed, the WAL alone", server.major);
    let (named, unnamed) = now.none_wrong(&of_wal(&cluster, version), &what);
    assert!(named > 100, "{what}: {named} named, {unnamed} not");
    // After a recovery and a stop all is in the files, and the WAL is older.
    cluster.start_again();
    let now = truth(&cluster);
    cluster.stop();
    let what = format!("{} stopped", server.major);
    let names = catalog(&cluster).store.names();
    now.all_right(&names, &what);
    check_links(&names, &now, has_partitions);
    now.all_right(&with_wal(&cluster), &what);
}

#[test]
fn names_of_debians_15() {
    story(Server::debian_15());
}

#[test]
fn names_of_9_6() {
    story(Server::fetched("9.6"));
}

#[test]
fn names_of_10() {
    story(Server::fetched("10"));
}

#[test]
fn names_of_11() {
    story(Server::fetched("11"));
}

#[test]
fn names_of_12() {
    story(Server::fetched("12"));
}

#[test]
fn names_of_14() {
    story(Server::fetched("14"));
}

#[test]
fn names_of_17() {
    story(Server::fetched("17"));
}

#[test]
fn names_of_18() {
    story(Server::fetched("18"));
}
