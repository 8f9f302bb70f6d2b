//! Live tests of `walstat window`: a server archives, two base backups are taken, and for each target that is
//! asked about a server is really restored. It has to stop where walstat says, or to fail where walstat says
//! that it cannot be reached.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::archiving::{insert, primary_with_backup, wait_for_archiver};
use crate::cluster::Cluster;
use crate::server::{Server, as_server_user, give_to_server_user};
use crate::shell::shell;
use crate::wait::wait;
use crate::walstat;

/// What was done to the primary, by the targets that it makes.
struct Story {
    home: tempfile::TempDir,
    /// The target as walstat is asked, and as the server is.
    targets: Vec<(String, String)>,
}

impl Story {
    fn archive(&self) -> PathBuf {
        self.home.path().join("archive")
    }

    fn lsn(&mut self, lsn: &str) {
        self.targets.push((lsn.to_owned(), format!("recovery_target_lsn = '{lsn}'")));
    }

    fn time(&mut self, time: &str) {
        self.targets.push((time.to_owned(), format!("recovery_target_time = '{time} UTC'")));
    }

    fn xid(&mut self, xid: &str) {
        self.targets.push((format!("xid:{xid}"), format!("recovery_target_xid = '{xid}'")));
    }

    fn name(&mut self, name: &str) {
        self.targets.push((format!("name:{name}"), format!("recovery_target_name = '{name}'")));
    }
}

/// The last line of what some statements say.
fn said(cluster: &Cluster, statements: &str) -> String {
    cluster.sql(statements).lines().last().unwrap_or_default().to_owned()
}

const XID: &str = "SELECT txid_current()";
const NOW: &str =
    "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')";

/// A folder with an archive of nothing yet.
fn home() -> tempfile::TempDir {
    let home = tempfile::Builder::new().prefix("walstat-window-").tempdir().expect("a folder");
    give_to_server_user(home.path());
    fs::create_dir(home.path().join("archive")).expect("the archive");
    give_to_server_user(&home.path().join("archive"));
    home
}

fn story(server: &Server) -> Story {
    let home = home();
    let mut primary = primary_with_backup(server, home.path());
    let mut story = Story { home, targets: Vec::new() };
    // Before any backup is consistent.
    story.xid("500");
    story.lsn("0/100");
    story.time("2020-01-01 00:00:00");
    insert(&primary, 0..50, 10);
    story.xid(&said(&primary, &format!("BEGIN; INSERT INTO marker VALUES (1000); {XID}; COMMIT")));
    story.lsn(&primary.insert_lsn());
    story.time(&primary.sql(NOW));
    primary.sql("SELECT pg_create_restore_point('before the second backup')");
    story.name("before the second backup");
    insert(&primary, 100..150, 10);
    let connection = primary.connection().join(" ");
    let second = format!("pg_basebackup {connection} -c fast -X none -D second 2>/dev/null");
    shell(story.home.path(), &second);
    insert(&primary, 200..230, 10);
    story.time(&primary.sql(NOW));
    let undone = format!("BEGIN; INSERT INTO marker VALUES (2000); {XID}; ROLLBACK");
    story.xid(&said(&primary, &undone));
    let sub = "SELECT xmin FROM marker WHERE id = 3000";
    let insert_sub =
        "BEGIN; INSERT INTO marker VALUES (2999); SAVEPOINT s; INSERT INTO marker VALUES (3000)";
    story.xid(&said(&primary, &format!("{insert_sub}; {sub}; ROLLBACK TO s; COMMIT")));
    // The first one committed the row before its savepoint.
    primary.sql("DELETE FROM marker WHERE id = 2999");
    story.xid(&said(&primary, &format!("{insert_sub}; {sub}; RELEASE s; ROLLBACK")));
    let sub = "SELECT xmin FROM marker WHERE id = 4000";
    let insert_sub =
        "BEGIN; INSERT INTO marker VALUES (3999); SAVEPOINT s; INSERT INTO marker VALUES (4000)";
    story.xid(&said(&primary, &format!("{insert_sub}; {sub}; RELEASE s; COMMIT")));
    for (id, end) in [(5000, "COMMIT PREPARED"), (5001, "ROLLBACK PREPARED"), (5002, "")] {
        let begin = format!("BEGIN; INSERT INTO marker VALUES ({id}); {XID}");
        story.xid(&said(&primary, &format!("{begin}; PREPARE TRANSACTION 'p{id}'")));
        if !end.is_empty() {
            primary.sql(&format!("{end} 'p{id}'"));
        }
    }
    primary.sql("SELECT pg_create_restore_point('the last one')");
    story.name("the last one");
    story.name("never made");
    insert(&primary, 300..310, 10);
    story.time(&primary.sql(NOW));
    story.xid("900000");
    story.lsn(&primary.insert_lsn());
    primary.sql("SELECT pg_switch_wal()");
    wait_for_archiver(&primary.wal());
    story.lsn("0/7F000000");
    primary.stop();
    wait_for_archiver(&primary.wal());
    story
}

/// What walstat says, with its exit code.
fn window(archive: &Path, more: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walstat"));
    command.args(["window", "--as", "archive", "-f", "json"]).args(more).arg(archive);
    let output = command.output().expect("walstat runs");
    let report = serde_json::from_slice(&output.stdout);
    let report: Value = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().expect("an exit code"), report)
}

/// Restores a backup to a target: where it stopped, or why it failed.
fn restored(
    server: &Server,
    home: &Path,
    backup: &str,
    archive: &Path,
    target: &str,
) -> Result<u64, String> {
    let data = home.join("restored");
    shell(
        home,
        &format!("rm -rf restored && cp -a {backup} restored && touch restored/recovery.signal"),
    );
    let path = data.join("postgresql.conf");
    let text = fs::read_to_string(&path).expect("postgresql.conf");
    let lines = format!(
        "archive_mode = off\nfsync = off\nhot_standby = off\nautovacuum = off\nlisten_addresses = ''\n\
         unix_socket_directories = '{}'\nrestore_command = 'cp {}/%f %p'\nlc_messages = 'C'\n\
         shared_buffers = 4MB\nrecovery_target_action = 'promote'\n{target}",
        data.display(),
        archive.display()
    );
    fs::write(&path, format!("{text}\n{lines}\n")).expect("postgresql.conf");
    let log_path = home.join("restored.log");
    let log = fs::File::create(&log_path).expect("a log");
    let mut command = as_server_user(server.path("postgres"));
    let command = command.arg("-D").arg(&data).stdout(Stdio::null()).stderr(log);
    let mut child = command.spawn().expect("the server's program runs");
    let said = || fs::read_to_string(&log_path).unwrap_or_default();
    let mut is_gone = false;
    wait("the server is open, or gone", || {
        is_gone = child.try_wait().expect("a child").is_some();
        is_gone || said().contains("ready to accept connections")
    });
    if is_gone {
        let text = said();
        let fatal = text.lines().find(|line| line.contains("FATAL"));
        return Err(fatal.unwrap_or_else(|| panic!("{text}")).to_owned());
    }
    let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
    child.wait().expect("a child can be waited for");
    let text = said();
    assert!(text.contains("recovery stopping"), "{target}: it went past the target: {text}");
    let history = fs::read_to_string(data.join("pg_wal/00000002.history")).expect("a history");
    let line = history.lines().rfind(|line| !line.trim().is_empty()).expect("an ancestor");
    Ok(lsn(line.split_whitespace().nth(1).expect("an LSN")))
}

fn lsn(text: &str) -> u64 {
    let (high, low) = text.split_once('/').expect("an LSN");
    let half = |digits: &str| u64::from_str_radix(digits, 16).expect("an LSN");
    half(high) << 32 | half(low)
}

/// Where a page begins, so does its header: the next record begins behind it.
const PAGE_HEADER_BYTES: u64 = 40;

#[test]
fn a_server_stops_where_walstat_says_and_fails_where_it_says_so() {
    let Some(server) = Server::debian_15() else { return };
    let story = story(&server);
    let (code, report) = window(&story.archive(), &[]);
    let backups = report["window"]["backups"].as_array().expect("backups");
    assert_eq!((code, backups.len()), (0, 2), "{}", report["window"]);
    for backup in backups {
        assert_eq!(backup["usable"], true, "{backup}");
        assert!(
            backup["label"].as_str().is_some_and(|label| label.contains("base backup")),
            "{backup}"
        );
    }
    let starts: Vec<&str> =
        backups.iter().filter_map(|backup| backup["start_lsn"].as_str()).collect();
    let mut counts = [0, 0];
    for (place, (asked, setting)) in story.targets.iter().enumerate() {
        // Every other one is tried not inclusive.
        let (setting, exclusive) = match place % 2 {
            0 => (setting.clone(), None),
            _ => {
                (format!("{setting}\nrecovery_target_inclusive = off"), Some("--target-exclusive"))
            }
        };
        let words: Vec<&str> = ["--target", asked].into_iter().chain(exclusive).collect();
        let (code, report) = window(&story.archive(), &words);
        let target = &report["window"]["target"];
        let reachable = target["reachable"] == true;
        assert_eq!(code, i32::from(!reachable), "{target}");
        counts[usize::from(reachable)] += 1;
        let second = target["backup_start_lsn"].as_str() == starts.last().copied();
        let backups = if reachable {
            vec![["backup", "second"][usize::from(second)]]
        } else {
            vec!["backup", "second"]
        };
        for backup in backups {
            let found = restored(&server, story.home.path(), backup, &story.archive(), &setting);
            match (reachable, &found) {
                (true, Ok(stopped)) => {
                    let said = lsn(target["stops_before_lsn"].as_str().expect("an LSN"));
                    let is_same = said >= *stopped && said - stopped <= PAGE_HEADER_BYTES;
                    assert!(is_same, "{asked} with {backup}: stopped at {stopped:X}, {target}");
                }
                (false, Err(_)) => {}
                _ => panic!("{asked} with {backup}: the server says {found:?}, walstat {target}"),
            }
        }
    }
    assert!(counts.iter().all(|count| *count >= 7), "{counts:?}");
    what_events_say_is_reached(&story);
    a_gap_is_in_the_way(&server, &story);
}

/// What `walstat events` says to stop at is a target that can be reached, and stops there.
fn what_events_say_is_reached(story: &Story) {
    let data = story.home.path().join("backup");
    let names = ["events", "-f", "json", "--min-rows", "1", "--data-directory"];
    let arguments = [&names[..], &[data.to_str().expect("UTF-8")]].concat();
    let report: Value =
        serde_json::from_str(&walstat::text(&arguments, &story.archive())).expect("JSON");
    let (_, all) = window(&story.archive(), &[]);
    let consistent = all["window"]["backups"][0]["consistent_from"].as_str().expect("an LSN");
    let events = report["events"].as_array().expect("events").iter();
    let targets: BTreeSet<&str> = events
        .filter_map(|event| event["recovery_target"]["recovery_target_lsn"].as_str())
        .filter(|target| lsn(target) >= lsn(consistent))
        .collect();
    assert!(targets.len() > 20, "{targets:?}");
    for target in targets.iter().step_by(5) {
        let (_, report) = window(&story.archive(), &["--target", target, "--target-exclusive"]);
        let row = &report["window"]["target"];
        assert_eq!(
            (&row["reachable"], &row["stops_before_lsn"]),
            (&true.into(), &(*target).into())
        );
    }
}

/// With a segment missing in between, what lies behind it cannot be reached, what lies before it can.
fn a_gap_is_in_the_way(server: &Server, story: &Story) {
    let home = story.home.path();
    shell(home, "cp -a archive holed");
    let holed = home.join("holed");
    let (_, report) = window(&story.archive(), &["--target", "name:before the second backup"]);
    let point = report["window"]["target"]["stops_before_lsn"].as_str().expect("an LSN").to_owned();
    let number = lsn(&point) / (1 << 20) + 1;
    fs::remove_file(holed.join(format!("{:08X}{:08X}{number:08X}", 1, 0))).expect("a segment");
    let name = "recovery_target_name = ";
    for (asked, is_before) in [("before the second backup", true), ("the last one", false)] {
        let (code, report) = window(&holed, &["--target", &format!("name:{asked}")]);
        let target = &report["window"]["target"];
        assert_eq!((code, &target["reachable"]), (4, &is_before.into()), "{}", report["window"]);
        assert_eq!(
            report["window"]["gaps"].as_array().map(Vec::len),
            Some(1),
            "{}",
            report["window"]
        );
        let found = restored(server, home, "backup", &holed, &format!("{name}'{asked}'"));
        assert_eq!(found.is_ok(), is_before, "{found:?}, {target}");
    }
}

/// Once a newer timeline begins in its segment, a server does not find the state of a prepared transaction.
#[test]
fn a_prepared_transaction_keeps_a_server_from_opening() {
    let Some(server) = Server::debian_15() else { return };
    let home = home();
    let archive = home.path().join("archive");
    let mut primary = primary_with_backup(&server, home.path());
    primary.sql("BEGIN; INSERT INTO marker VALUES (1); PREPARE TRANSACTION 'p'");
    let names = ["prepared", "left"];
    names
        .iter()
        .for_each(|name| _ = primary.sql(&format!("SELECT pg_create_restore_point('{name}')")));
    insert(&primary, 100..110, 10);
    primary.sql("SELECT pg_switch_wal()");
    primary.stop();
    wait_for_archiver(&primary.wal());
    for is_left in [false, true] {
        for name in names {
            let (_, report) = window(&archive, &["--target", &format!("name:{name}")]);
            let target = &report["window"]["target"];
            assert_eq!(target["reachable"], !is_left, "{target}");
            let setting = format!("recovery_target_name = '{name}'");
            let found = restored(&server, home.path(), "backup", &archive, &setting);
            assert_eq!(found.is_ok(), !is_left, "{found:?}, {target}");
        }
        shell(
            home.path(),
            "[ -f archive/00000002.history ] || cp restored/pg_wal/00000002* archive",
        );
    }
}
