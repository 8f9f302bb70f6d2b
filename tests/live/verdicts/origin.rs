//! The archive as it should be, the base backup that it is restored onto, and the server that does it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use walstat_format::lsn::Lsn;

use super::Restored;
use super::archive::Packing;
use crate::archiving::{Files, files_of, insert, primary_with_backup, wait_for_archiver};
use crate::server::{Server, give_to_server_user};
use crate::shell::shell;

/// How far a restore came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Rows of the table.
    rows: u64,
    /// Where the timeline begins that the server wrote on then: at the end of what it had replayed.
    pub end: Lsn,
}

/// What all rows start from.
pub struct Origin {
    home: TempDir,
    server: Server,
    /// The segments from the backup on, by name, as they should be; all of them are full, the last one up
    /// to a switch.
    pub segments: Files,
    /// The segment after them, in which `wal_level` was minimal for a while: its name and bytes.
    pub minimal: (String, Vec<u8>),
    /// The history of the base backup: its name and text.
    pub backup: (String, Vec<u8>),
    /// What a restore of all of them reaches.
    pub whole: Reached,
}

impl Origin {
    /// Makes it. `None`, said loudly: there is no server.
    pub fn make() -> Option<Origin> {
        let server = Server::debian_15()?;
        let home =
            tempfile::Builder::new().prefix("walstat-verdicts-").tempdir().expect("a folder");
        give_to_server_user(home.path());
        shell(home.path(), "mkdir archive");
        write(&server, home.path());
        let program = std::env::var_os("WALSTAT_UNDER_TEST").map(PathBuf::from);
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_walstat").into());
        fs::copy(program, home.path().join("walstat")).expect("a copy");
        let (segments, backup) = files_of(&home.path().join("archive"));
        assert!(segments.len() >= 4, "{:?}", segments.keys());
        let (mut after, _) = files_of(&home.path().join("after"));
        after.retain(|name, _| !segments.contains_key(name));
        let minimal = after.pop_first().filter(|_| after.is_empty()).expect("one segment more");
        let whole = Reached { rows: ROWS, end: Lsn(0) };
        let mut origin = Origin { home, server, segments, minimal, backup, whole };
        let raw = origin.home.path().join("archive");
        let folder = origin.folder(usize::MAX);
        origin.whole = origin.restore(&folder, &raw, Packing::Raw).expect("a restore");
        assert_eq!(origin.whole.rows, ROWS, "without damage");
        Some(origin)
    }

    /// The program under test, where the servers' user can run it.
    pub fn program(&self) -> PathBuf {
        self.home.path().join("walstat")
    }

    /// A folder of a row.
    pub fn folder(&self, number: usize) -> PathBuf {
        let folder = self.home.path().join(format!("row-{number}"));
        fs::create_dir(&folder).expect("a new folder");
        give_to_server_user(&folder);
        folder
    }

    /// Restores the base backup with an archive, to its end.
    pub fn restore(&self, folder: &Path, archive: &Path, packing: Packing) -> Restored {
        let data = folder.join("data");
        let (copy, backup) = (data.display(), self.home.path().join("backup"));
        shell(folder, &format!("cp -a {} {copy}; touch {copy}/recovery.signal", backup.display()));
        let fetch = packing.restore_command(archive);
        let lines = format!(
            "archive_mode = off\nfsync = off\nshared_buffers = 4MB\nmax_connections = 5\n\
             max_wal_senders = 0\nhot_standby = off\nlc_messages = 'C'\nrestore_command = '{fetch}'"
        );
        shell(folder, &format!("cat >>{copy}/postgresql.conf <<'END'\n{lines}\nEND"));
        let mut command = self.server.command("postgres");
        command.args(["--single", "-D"]).arg(&data).arg("postgres");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().expect("the server's program runs");
        let mut input = server.stdin.take().expect("a pipe");
        // One that does not start need not read it.
        let _ = input.write_all(b"SELECT count(*) FROM marker\n");
        drop(input);
        let output = server.wait_with_output().expect("a server that ends");
        let end = end_of_recovery(&data);
        shell(folder, &format!("rm -rf {copy}"));
        let rows = rows_told(&String::from_utf8_lossy(&output.stdout));
        let log = String::from_utf8_lossy(&output.stderr);
        let opened = rows.zip(end).map(|(rows, end)| Reached { rows, end });
        opened.ok_or_else(|| what_ended_it(&log))
    }

    /// The label of the base backup, where the servers' user can read it.
    pub fn label(&self) -> PathBuf {
        self.home.path().join("backup/backup_label")
    }
}

/// The last line of the newest history that a server has written, which is that of the timeline it began:
/// `1\t0/A000000\tno recovery target specified`.
fn end_of_recovery(data: &Path) -> Option<Lsn> {
    let entries = fs::read_dir(data.join("pg_wal")).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let newest = paths.filter(|path| path.extension().is_some_and(|it| it == "history")).max()?;
    let text = fs::read_to_string(newest).ok()?;
    text.lines().last()?.split('\t').nth(1)?.parse().ok()
}

/// The answer of a server without clients: `count = "2800"`.
fn rows_told(output: &str) -> Option<u64> {
    output.split("count = \"").nth(1)?.split('"').next()?.parse().ok()
}

/// Why a server did not open, by its log.
fn what_ended_it(log: &str) -> String {
    let fatal = log.lines().find(|line| line.contains("FATAL") || line.contains("PANIC"));
    fatal.or(log.lines().last()).unwrap_or("nothing in its log").to_owned()
}

/// Rows that come with the WAL, in transactions that are spread over all of it.
const ROWS: u64 = 2800;

/// Writes the archive, and the same with a segment more, in which `wal_level` was minimal for a while.
fn write(server: &Server, home: &Path) {
    let mut primary = primary_with_backup(server, home);
    // A page that was there before the backup, so that the record has an image of it.
    primary.sql("SET wal_compression = pglz; COMMENT ON TABLE marker IS 'rows'");
    insert(&primary, 1..ROWS + 1, 20);
    primary.sql("SELECT pg_switch_wal()");
    wait_for_archiver(&primary.wal());
    shell(home, "cp -a archive before");
    primary.crash();
    primary.set("wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off");
    primary.start_again();
    primary.stop();
    primary.set("wal_level = replica\narchive_mode = on");
    primary.start_again();
    primary.sql("SELECT pg_switch_wal()");
    wait_for_archiver(&primary.wal());
    shell(home, "mv archive after; mv before archive");
}
