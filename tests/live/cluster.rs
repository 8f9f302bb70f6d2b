//! A cluster in a temporary folder: made, loaded by psql over a Unix socket, stopped, and gone at
//! the end of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::server::{Server, give_to_server_user};
use super::template;

/// What sets one cluster apart from another.
#[derive(Default)]
pub struct Settings<'a> {
    /// Further arguments of initdb.
    pub initdb: &'a [&'a str],
    /// Further lines of postgresql.conf; they win.
    pub conf: &'a str,
}

/// A running or stopped cluster; dropped, it is ended and removed.
pub struct Cluster<'a> {
    server: &'a Server,
    home: TempDir,
    running: bool,
}

/// What a stopped server wrote down about itself in `pg_control`.
pub struct Control {
    /// As decimal text, the way SQL shows it.
    pub system_identifier: String,
    /// Position of the last checkpoint record.
    pub checkpoint: String,
}

impl<'a> Cluster<'a> {
    /// Makes a cluster that keeps all its WAL, and starts it.
    pub fn start(server: &'a Server, settings: &Settings) -> Self {
        let home = tempfile::Builder::new().prefix("walstat-live-").tempdir();
        let home = home.expect("temporary folder");
        give_to_server_user(home.path());
        let mut cluster = Self { server, home, running: false };
        template::lay(server, settings.initdb, &cluster.data());
        cluster.configure(settings.conf);
        cluster.pg_ctl("start", &[]);
        cluster.running = true;
        cluster
    }

    fn configure(&self, extra: &str) {
        let keep = if self.server.number() < 13 {
            "wal_keep_segments = 1000"
        } else {
            "wal_keep_size = 8GB"
        };
        let path = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&path).expect("postgresql.conf");
        let home = self.home.path().display();
        text.push_str(&format!(
            "\nlisten_addresses = ''\nunix_socket_directories = '{home}'\n\
             fsync = off\nautovacuum = off\nmax_prepared_transactions = 5\n\
             max_replication_slots = 5\n{keep}\n{extra}\n"
        ));
        fs::write(path, text).expect("postgresql.conf");
    }

    fn pg_ctl(&self, action: &str, more: &[&str]) {
        let log = self.home.path().join("log");
        let mut command = self.server.command("pg_ctl");
        command.args([action, "-w", "-D"]).arg(self.data());
        command.arg("-l").arg(&log).args(more);
        // No pipes: the server would inherit them, and reading would never end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("pg_ctl runs");
        let text = fs::read_to_string(log).unwrap_or_default();
        assert!(status.success(), "pg_ctl {action}: {text}");
    }

    /// A standby of this cluster, which follows it.
    pub fn standby(&self) -> Self {
        let home = tempfile::Builder::new().prefix("walstat-live-").tempdir();
        let home = home.expect("temporary folder");
        give_to_server_user(home.path());
        let mut standby = Self { server: self.server, home, running: false };
        let mut copy = self.server.command("pg_basebackup");
        copy.args(self.connection()).args(["-R", "-c", "fast", "-D"]).arg(standby.data());
        let made = copy.output().expect("pg_basebackup runs");
        assert!(made.status.success(), "pg_basebackup: {made:?}");
        let home = standby.home.path().display().to_string();
        standby.set(&format!("unix_socket_directories = '{home}'"));
        standby.pg_ctl("start", &[]);
        standby.running = true;
        standby
    }

    /// Ends the server as a crash would.
    pub fn crash(&mut self) {
        self.pg_ctl("stop", &["-m", "immediate"]);
        self.running = false;
    }

    /// Starts a server that was ended.
    pub fn start_again(&mut self) {
        self.pg_ctl("start", &[]);
        self.running = true;
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).expect("the log")
    }

    /// Makes a standby a primary on a new timeline.
    pub fn promote(&self) {
        self.pg_ctl("promote", &[]);
    }

    /// Adds lines to postgresql.conf, which a running server takes at [`Cluster::reload`].
    pub fn set(&self, lines: &str) {
        let path = self.data().join("postgresql.conf");
        let text = fs::read_to_string(&path).expect("postgresql.conf");
        fs::write(path, format!("{text}\n{lines}\n")).expect("postgresql.conf");
    }

    /// Makes the server read postgresql.conf again.
    pub fn reload(&self) {
        self.sql("SELECT pg_reload_conf()");
    }

    /// The release as a number that orders: 9.6 is 9, 15 is 15.
    pub fn release(&self) -> u32 {
        self.server.number()
    }

    /// The folder of all that belongs to this cluster; the servers' user may write there.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The folder of WAL segments.
    pub fn wal(&self) -> PathBuf {
        let name = match self.server.number() {
            9 => "pg_xlog",
            _ => "pg_wal",
        };
        self.data().join(name)
    }

    /// Arguments by which a client program finds this cluster.
    pub fn connection(&self) -> Vec<String> {
        let home = self.home.path().display().to_string();
        ["-h", &home, "-U", "postgres"].map(str::to_owned).into()
    }

    pub fn psql(&self, arguments: &[&str]) -> String {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(self.connection()).args(["-d", "postgres"]);
        let output = psql.args(arguments).output().expect("psql runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql {arguments:?}: {errors}");
        let text = String::from_utf8(output.stdout).expect("psql prints UTF-8");
        text.trim_end().to_owned()
    }

    /// The answer to one statement: rows by line, columns by `|`.
    pub fn sql(&self, statement: &str) -> String {
        self.psql(&["-c", statement])
    }

    /// Runs a file of statements in another database; what it prints.
    pub fn file_in(&self, database: &str, path: &Path) -> String {
        let path = path.display().to_string();
        self.psql(&["-c", &format!("\\connect {database}"), "-f", &path])
    }

    /// Runs a script of `tests/live`.
    pub fn script(&self, name: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live");
        let script = folder.join(name).display().to_string();
        let tablespace = self.home.path().join("tablespace");
        if !tablespace.exists() {
            fs::create_dir(&tablespace).expect("folder of the tablespace");
            give_to_server_user(&tablespace);
        }
        let tablespace = format!("tablespace={}", tablespace.display());
        let variables = ["-v", &tablespace, "-v", "scale=100", "-v", "database=true"];
        self.psql(&[&variables[..], &["-f", &script]].concat());
    }

    /// The position at which the next record goes.
    pub fn insert_lsn(&self) -> String {
        self.sql(if self.server.number() < 10 {
            "SELECT pg_current_xlog_insert_location()"
        } else {
            "SELECT pg_current_wal_insert_lsn()"
        })
    }

    /// Stops the server as an administrator would, with a checkpoint.
    pub fn stop(&mut self) -> Control {
        self.pg_ctl("stop", &["-m", "fast"]);
        self.running = false;
        self.control()
    }

    /// Reads the head of `pg_control`; its first fields lie alike in all releases: system
    /// identifier at 0, state at 16 (1: shut down), last checkpoint at 32 (`catalog/pg_control.h`).
    fn control(&self) -> Control {
        let bytes = fs::read(self.data().join("global/pg_control")).expect("pg_control");
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        assert_eq!(bytes[16], 1, "pg_control says shut down");
        let checkpoint = long(32);
        Control {
            system_identifier: long(0).to_string(),
            checkpoint: format!("{:X}/{:X}", checkpoint >> 32, checkpoint & 0xFFFF_FFFF),
        }
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        if self.running {
            let mut stop = self.server.command("pg_ctl");
            stop.args(["stop", "-m", "immediate", "-D"]).arg(self.data());
            // The test has failed already; its own message counts.
            let _ = stop.output();
        }
    }
}
