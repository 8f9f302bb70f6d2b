//! `walstat follow` beside a server that writes, is restarted, crashes and is promoted: at each moment that
//! it tells, its counters are what pg_waldump counts between the places that it names.

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::support::missing::skip;
use crate::support::{command, signals};
use crate::wait::wait;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// So many moments are compared.
const MOMENTS: usize = 12;

/// The program, which is ended with the test.
struct Following {
    child: Child,
    folder: TempDir,
}

impl Following {
    fn begin(path: &Path, words: &[&str]) -> Following {
        let folder = TempDir::new().expect("a directory");
        let mut all =
            vec!["follow", path.to_str().expect("text"), "-f", "ndjson", "--every", "200ms"];
        all.extend(words);
        let file = |name| fs::File::create(folder.path().join(name)).expect("a file");
        let mut following = command(&all);
        following.stdout(file("out")).stderr(file("err"));
        Following { child: following.spawn().expect("it starts"), folder }
    }

    /// What it has printed, to the end of the last whole line.
    fn said(&self) -> String {
        let mut text = fs::read_to_string(self.folder.path().join("out")).expect("text");
        text.truncate(text.rfind('\n').unwrap_or(0));
        text
    }

    fn lines(&self) -> Vec<Value> {
        self.said().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn last_line(&self) -> Option<Value> {
        self.said().lines().last().map(|line| serde_json::from_str(line).expect("JSON"))
    }

    /// The last line, once something holds of it.
    fn last(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait(what, || self.last_line().is_some_and(|line| is_so(&line)));
        self.last_line().expect("a line")
    }

    fn end(mut self) -> Vec<Value> {
        signals::send(&self.child, "TERM");
        let ended = self.child.wait().expect("it ends");
        let said = fs::read_to_string(self.folder.path().join("err")).expect("text");
        assert_eq!(ended.code(), Some(0), "{said}");
        self.lines()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What pg_waldump counts up to a line: records, their bytes, bytes of images, all bytes. It reads one
/// timeline at a time: `switch` is where the second one begins.
fn official(server: &Server, wal: &Path, line: &Value, switch: Option<&str>) -> [u64; 4] {
    let text = |key: &str| line[key].as_str().expect("text");
    let (start, end) = (text("start_lsn"), text("position_lsn"));
    match switch.filter(|_| line["timeline"] == 2) {
        None => counted(server, wal, 1, (start, end)),
        Some(switch) => {
            let before = counted(server, wal, 1, (start, switch));
            let after = counted(server, wal, 2, (switch, end));
            std::array::from_fn(|of| before[of] + after[of])
        }
    }
}

/// The same of a part of one timeline. Its first and last segment are named: else pg_waldump takes the size
/// of segments from any file, and one that the server has made for later has none.
fn counted(server: &Server, wal: &Path, timeline: u32, (start, end): (&str, &str)) -> [u64; 4] {
    let mut tool = server.command("pg_waldump");
    tool.args(["--stats", "-p"]).arg(wal).args(["-s", start, "-e", end]);
    let (first, last) = (number(start), number(start).max(number(end) - 1));
    tool.args([first, last].map(|lsn| segment(wal, timeline, lsn)));
    let output = tool.output().expect("pg_waldump runs");
    let [text, error] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let total = text.lines().find(|line| line.starts_with("Total"));
    let total = total.unwrap_or_else(|| panic!("{start} to {end}: {error}"));
    let numbers: Vec<u64> = total.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("four numbers")
}

fn is_exact(server: &Server, wal: &Path, lines: &[Value]) {
    let mut told: Vec<&Value> = Vec::new();
    for line in lines {
        if told.last().is_none_or(|last| last["position_lsn"] != line["position_lsn"]) {
            told.push(line);
        }
    }
    let happened = lines.iter().flat_map(|line| line["happenings"].as_array().expect("a list"));
    let switch = happened.clone().find(|of| of["event"] == "timeline");
    let switch = switch.map(|of| of["lsn"].as_str().expect("an LSN"));
    let step = (told.len() / MOMENTS).max(1);
    assert!(told.len() > 3, "{} moments", told.len());
    for line in told.iter().step_by(step).chain(told.last()) {
        let keys = ["count", "record_bytes", "fpi_bytes", "total_bytes"];
        let own = keys.map(|key| line[key].as_u64().expect("a sum"));
        assert_eq!(own, official(server, wal, line, switch), "to {}", line["position_lsn"]);
        for family in ["tables", "rmgrs"] {
            let rows = line[family].as_array().expect("rows").iter();
            let sum: u64 = rows.map(|row| row["total_bytes"].as_u64().expect("bytes")).sum();
            assert_eq!(sum, own[3], "{family} to {}", line["position_lsn"]);
        }
    }
    let mut before = [0; 4];
    for line in lines {
        let now = ["count", "total_bytes", "fpi_bytes", "lost_bytes"]
            .map(|key| line[key].as_u64().expect("a sum"));
        assert!(before.iter().zip(&now).all(|(before, now)| before <= now), "{line}");
        before = now;
    }
}

/// Where the server writes next; what it has not written yet is none of a file's.
fn flushed(cluster: &Cluster) -> String {
    cluster.sql("SELECT pg_current_wal_flush_lsn()").trim().to_owned()
}

fn number(lsn: &str) -> u64 {
    let (high, low) = lsn.trim().split_once('/').expect("an LSN");
    let hex = |text| u64::from_str_radix(text, 16).expect("a number");
    hex(high) << 32 | hex(low)
}

/// The name of the segment in which an LSN lies; all segments are whole files.
fn segment(wal: &Path, timeline: u32, lsn: u64) -> String {
    let files =
        fs::read_dir(wal).expect("a folder").filter_map(|entry| entry.ok()?.metadata().ok());
    let bytes = files.filter(|file| file.is_file()).map(|file| file.len()).max();
    let (bytes, of_id) = (bytes.expect("a segment"), 1 << 32);
    let (id, place) = (lsn / of_id, lsn % of_id);
    format!("{timeline:08X}{id:08X}{:08X}", place / bytes)
}

fn reaches(line: &Value, lsn: &str) -> bool {
    number(line["position_lsn"].as_str().expect("an LSN")) >= number(lsn)
}

const LOAD: &str = "DO $$ BEGIN FOR i IN 1..60 LOOP \
    INSERT INTO load SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 100) g; \
    UPDATE load SET note = 'x' WHERE id = i % 100; COMMIT; END LOOP; END $$";

/// The server writes, all is read, and that a few times: moments to compare, however slowly it is told.
fn writes_and_is_read(cluster: &Cluster, following: &Following) {
    for _ in 0..2 {
        cluster.sql(LOAD);
        let end = flushed(cluster);
        following.last("what was written is read", |line| reaches(line, &end));
    }
}

#[test]
fn counters_are_those_of_pg_waldump_through_restarts_and_crashes() {
    let Some(server) = Server::debian_15() else { return };
    let settings = Settings { initdb: &["--wal-segsize=1"], conf: "max_wal_size = 8MB" };
    let mut cluster = Cluster::start(&server, &settings);
    cluster.sql("CREATE TABLE load (id int, note text)");
    let following = Following::begin(&cluster.data(), &[]);
    writes_and_is_read(&cluster, &following);
    cluster.sql(LOAD);
    cluster.sql("CHECKPOINT");
    cluster.crash();
    cluster.start_again();
    writes_and_is_read(&cluster, &following);
    cluster.sql(LOAD);
    cluster.crash();
    cluster.start_again();
    cluster.sql("CREATE TABLE gone AS SELECT * FROM load; DROP TABLE gone");
    let end = flushed(&cluster);
    let last = following.last("all was read", |line| reaches(line, &end));
    let table = |line: &Value| {
        line["tables"].as_array().expect("rows").iter().any(|row| row["table"] == "load")
    };
    assert!(table(&last), "{last}");
    // Nobody ever writes to it.
    for change in ["CREATE TABLE bare (id int)", "DROP TABLE bare"] {
        cluster.sql(change);
        let end = flushed(&cluster);
        following.last("the change was read", |line| reaches(line, &end));
    }
    let lines = following.end();
    is_exact(&server, &cluster.wal(), &lines);
    let happened = lines.iter().flat_map(|line| line["happenings"].as_array().expect("a list"));
    let dropped: Vec<String> =
        happened.filter(|of| of["event"] == "dropped").map(Value::to_string).collect();
    for table in ["dropped public.gone", "dropped public.bare"] {
        assert!(dropped.iter().any(|of| of.contains(table)), "{table}: {dropped:?}");
    }
}

/// Its rows in the catalogs are in no file but the WAL before the place where the second one goes on.
#[test]
fn a_table_made_since_the_last_checkpoint_has_its_name_after_a_restart_of_the_follower() {
    let Some(server) = Server::debian_15() else { return };
    let cluster = Cluster::start(&server, &Settings { initdb: &["--wal-segsize=1"], conf: "" });
    cluster.sql("CHECKPOINT");
    cluster.sql("CREATE TABLE fresh (id int)");
    let beside = TempDir::new().expect("a directory");
    let state = beside.path().join("state");
    let words = ["--state", state.to_str().expect("text")];
    for change in ["SELECT 1", "INSERT INTO fresh VALUES (1)"] {
        let following = Following::begin(&cluster.data(), &words);
        cluster.sql(change);
        let end = flushed(&cluster);
        let last = following.last("the change was read", |line| reaches(line, &end));
        following.end();
        let tables = last["tables"].as_array().expect("rows");
        let named = tables.iter().any(|row| row["table"] == "fresh");
        assert_eq!(named, change != "SELECT 1", "{change}: {tables:?}");
    }
}

#[test]
fn a_promotion_is_followed() {
    let Some(server) = Server::debian_15() else { return };
    let settings = Settings { initdb: &["--wal-segsize=1"], conf: "" };
    let primary = Cluster::start(&server, &settings);
    primary.sql("CREATE TABLE load (id int, note text)");
    let standby = primary.standby();
    let following = Following::begin(&standby.data(), &[]);
    writes_and_is_read(&primary, &following);
    // A standby would begin again at its own restart point, not at the primary's last redo point.
    primary.sql("CHECKPOINT");
    let end = flushed(&primary);
    let line = following.last("the checkpoint is read", |line| reaches(line, &end));
    let own = standby.sql("SELECT redo_lsn FROM pg_control_checkpoint()");
    let primarys = primary.sql("SELECT redo_lsn FROM pg_control_checkpoint()");
    let redo = |line: &Value| number(line["redo_lsn"].as_str().expect("an LSN"));
    assert!(number(&own) < number(&primarys), "{own} {primarys}");
    assert_eq!(redo(&line), number(&own), "{line}");
    standby.promote();
    standby.sql("CHECKPOINT");
    writes_and_is_read(&standby, &following);
    let own = standby.sql("SELECT redo_lsn FROM pg_control_checkpoint()");
    following.last("its checkpoint is told", |line| redo(line) == number(&own));
    let lines = following.end();
    assert_eq!(lines.last().expect("a line")["timeline"], 2);
    assert_eq!(lines.last().expect("a line")["lost_bytes"], 0);
    is_exact(&server, &standby.wal(), &lines);
}

/// What a server recycles while it is stopped is lost, no more and no less; and names that were given there
/// are known.
#[test]
fn what_is_recycled_while_it_stands_still_is_lost() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "wal_keep_size = 0\nmax_wal_size = 4MB\nmin_wal_size = 2MB";
    let cluster = Cluster::start(&server, &Settings { initdb: &["--wal-segsize=1"], conf });
    cluster.sql("CREATE TABLE load (id int, note text)");
    let following = Following::begin(&cluster.data(), &[]);
    let before = following.last("it was read", |line| line["count"] != 0);
    signals::send(&following.child, "STOP");
    cluster.sql("ALTER TABLE load RENAME TO renamed");
    let load = LOAD.replace("load", "renamed");
    // It holds those open that the server has made ready: what comes behind them is gone before it is seen.
    let newest = fs::read_dir(cluster.wal()).expect("a folder").filter_map(Result::ok);
    let newest = newest.map(|entry| entry.path()).filter(|path| path.is_file()).max();
    let newest = newest.expect("a segment");
    let mut rounds_without = 0;
    while rounds_without < 2 {
        cluster.sql(&load);
        cluster.sql("CHECKPOINT");
        rounds_without += usize::from(!newest.exists());
    }
    signals::send(&following.child, "CONT");
    following.last("it is lost", |line| line["lost_bytes"] != 0);
    let mut last = Value::Null;
    wait("its new name is known", || {
        cluster.sql("INSERT INTO renamed VALUES (1, 'x')");
        last = following.last_line().expect("a line");
        let rows = last["tables"].as_array().expect("rows");
        rows.iter().any(|row| row["table"] == "renamed")
    });
    let lost = last["lost_bytes"].as_u64().expect("bytes");
    let happenings: Vec<Value> = following.end();
    let happened =
        happenings.iter().flat_map(|line| line["happenings"].as_array().expect("a list"));
    let told = happened.filter(|of| of["event"] == "lost").count();
    assert!(lost > 0 && told > 0, "lost {lost}, told {told}, from {before}");
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

fn promtool_takes(text: &str) {
    let spawned = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return skip("promtool, which checks metrics", &error.to_string()),
    };
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// A slot that nobody uses keeps pg_wal full: it is named, by the report and by who follows. What is served
/// is what Prometheus reads.
#[test]
fn what_keeps_segments_is_named_and_counters_are_served() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "wal_keep_size = 0\nmax_wal_size = 4MB\nmin_wal_size = 2MB\narchive_mode = on\n\
                archive_command = 'false'";
    let cluster = Cluster::start(&server, &Settings { initdb: &["--wal-segsize=1"], conf });
    cluster.sql("SELECT pg_create_physical_replication_slot('dead', true)");
    cluster.sql("CREATE TABLE load (id int, note text)");
    for _ in 0..4 {
        cluster.sql(LOAD);
    }
    cluster.sql("CHECKPOINT");
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let following = Following::begin(&cluster.data(), &["--listen", &address]);
    let line = following.last("it was read", |line| line["pg_wal"]["kept_segments"] != 0);
    let keepers = line["pg_wal"]["keepers"].as_array().expect("a list");
    let named = |keeper: &str| keepers.iter().any(|of| of["keeper"] == keeper);
    assert!(named("replication_slot") && named("archiving"), "{line}");
    let text = get(port, "/metrics").expect("an answer");
    assert!(text.ends_with("# EOF\n"), "{text}");
    promtool_takes(&text);
    assert!(text.contains("walstat_pg_wal_kept_bytes{keeper=\"replication_slot\",name=\"dead\"} "));
    assert!(get(port, "/").expect("an answer").contains("/metrics"));
    following.end();
    let data = cluster.data().to_str().expect("text").to_owned();
    let report = crate::support::walstat(&[&data]);
    assert!(report.stdout.contains("replication slot dead (physical) keeps"), "{}", report.stdout);
    assert!(report.stdout.contains("wait to be archived"), "{}", report.stdout);
    // Where nothing keeps segments it is said what they are there for.
    cluster.sql("SELECT pg_drop_replication_slot('dead')");
    cluster.sql("ALTER SYSTEM SET archive_command = 'true'");
    cluster.sql("SELECT pg_reload_conf()");
    wait("all is archived", || {
        let status = fs::read_dir(cluster.wal().join("archive_status")).expect("a directory");
        let names = status.map(|entry| entry.expect("an entry").file_name());
        !names.into_iter().any(|name| name.to_string_lossy().ends_with(".ready"))
    });
    cluster.sql("CHECKPOINT");
    let report = crate::support::walstat(&[&data]);
    assert!(report.stdout.contains("KEPT  pg_wal has "), "{}", report.stdout);
    let report = crate::support::walstat(&[&data, "-f", "json"]).json();
    assert_eq!(report["pg_wal"]["kept_segments"], 0, "{}", report["pg_wal"]);
}

/// The oldest open transaction is told wherever reading begins: after its first record too.
#[test]
fn an_open_transaction_is_told_wherever_reading_begins() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "max_prepared_transactions = 2\nautovacuum = off";
    let mut cluster = Cluster::start(&server, &Settings { initdb: &["--wal-segsize=1"], conf });
    cluster.sql(
        "BEGIN; CREATE TABLE pt2 (a int); INSERT INTO pt2 VALUES (1); PREPARE TRANSACTION 'p2'",
    );
    let xid = cluster.sql("SELECT transaction FROM pg_prepared_xacts").trim().to_owned();
    let folder = TempDir::new().expect("a directory");
    let state = folder.path().join("state");
    let words = ["--state", state.to_str().expect("text")];
    let is_told = |line: &Value| line["oldest_transaction"]["xid"] == xid.as_str();
    let following = Following::begin(&cluster.data(), &words);
    let first = following.last("it is told", is_told);
    assert!(first["oldest_transaction"]["start_lsn"].is_string(), "{first}");
    following.end();
    // A restart, of both.
    cluster.crash();
    cluster.start_again();
    cluster.sql("CREATE TABLE load (id int, note text)");
    let following = Following::begin(&cluster.data(), &words);
    let again = following.last("it is told after a restart", is_told);
    let start = &first["oldest_transaction"]["start_lsn"];
    assert_eq!(again["oldest_transaction"]["start_lsn"], *start);
    following.end();
    // Its first record was not read.
    cluster.sql("CHECKPOINT");
    let following = Following::begin(&cluster.data(), &["--start", "now"]);
    let line = following.last("it is told without its first record", is_told);
    assert!(line["oldest_transaction"]["start_lsn"].is_null(), "{line}");
    assert!(line["open_transactions_known"] == true, "{line}");
    cluster.sql("COMMIT PREPARED 'p2'");
    let line = following.last("it has ended", |line| line["oldest_transaction"].is_null());
    assert_eq!(line["open_transactions_known"], true);
    following.end();
    let following = Following::begin(&cluster.data(), &words);
    let line = following.last("it has ended there too", |line| line["commits"] != again["commits"]);
    assert!(line["oldest_transaction"].is_null(), "{line}");
    following.end();
}
