//! One restore by the real server: from the base backup to the end of the archive, and what came of
//! it. Judges nothing.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::origin::{Origin, lsn};
use super::tree::Layout;
use crate::shell::shell;

/// How far a restore came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The timeline of the last record.
    pub timeline: u32,
    /// The end of the last record.
    pub end: u64,
    /// Rows of the marker table.
    pub rows: u64,
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Reached { timeline, end, rows } = self;
        write!(f, "timeline {timeline} to {:X}/{:X}, {rows} rows", end >> 32, end & 0xFFFF_FFFF)
    }
}

/// One restore: what, how, and where in the folder of everything.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// The archive.
    pub archive: &'a Path,
    /// How its files are fetched.
    pub layout: Layout,
    /// `latest`, or a timeline.
    pub target: String,
    /// A folder that is not there yet.
    pub data: &'a Path,
}

/// A server that hangs is an answer too: longer takes no restore of so little WAL on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Restores. `Err`: the server did not start, and what it said.
pub fn restore(origin: &Origin, wanted: &Restore<'_>) -> Result<Reached, String> {
    let Restore { data, .. } = wanted;
    let copy = data.display();
    shell(origin.home(), &format!("cp -a backup {copy} && touch {copy}/recovery.signal"));
    configure(origin.home(), wanted);
    let log = data.with_extension("log");
    let mut server = start(origin, data, &log);
    let came_up = wait(&mut server, &log);
    let result = came_up.map(|()| Reached { rows: rows(data), ..end(&data.join("pg_wal")) });
    stop(server);
    for path in [data, &log.as_path()] {
        shell(origin.home(), &format!("rm -rf {}", path.display()));
    }
    result
}

fn configure(home: &Path, wanted: &Restore<'_>) {
    let Restore { archive, layout, target, data } = wanted;
    let (home, socket) = (home.display(), data.display());
    let fetch = format!("bash {home}/fetch.sh {} {} %f %p", layout.name(), archive.display());
    let lines = format!(
        "archive_mode = off\nfsync = off\nfull_page_writes = off\nshared_buffers = 4MB\n\
         max_connections = 5\nmax_wal_senders = 0\nmax_worker_processes = 0\nautovacuum = off\n\
         hot_standby = off\nlisten_addresses = ''\nunix_socket_directories = '{socket}'\n\
         restore_command = '{fetch}'\nrecovery_target_timeline = '{target}'\n\
         log_min_messages = log\nlc_messages = 'C'"
    );
    let path = data.join("postgresql.conf");
    let text = fs::read_to_string(&path).expect("postgresql.conf");
    fs::write(&path, format!("{text}\n{lines}\n")).expect("postgresql.conf");
}

fn start(origin: &Origin, data: &Path, log: &Path) -> Child {
    let log = fs::File::create(log).expect("a log");
    let mut command = origin.server.command("postgres");
    command.arg("-D").arg(data).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("the server's program runs")
}

/// Waits until the server is open for all, or gone.
fn wait(server: &mut Child, log: &Path) -> Result<(), String> {
    let patience = Instant::now() + PATIENCE;
    loop {
        let gone = server.try_wait().expect("a child").is_some();
        let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
        if text.contains("database system is ready to accept connections") {
            return Ok(());
        }
        if gone || Instant::now() > patience {
            let fatal = text.lines().find(|line| line.contains("FATAL") || line.contains("PANIC"));
            let line = fatal.or(text.lines().last()).unwrap_or("nothing in its log");
            let how = if gone { "does not start" } else { "hangs" };
            return Err(format!("{how}: {line}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The rows that came with the WAL.
fn rows(data: &Path) -> u64 {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"]).arg(data);
    let output = psql.args(["-c", "SELECT count(*) FROM marker"]).output().expect("psql runs");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().unwrap_or_else(|_| panic!("the number of rows: {output:?}"))
}

/// The end of recovery, from the history of the timeline that the server went over to: its last line
/// has the timeline that was left, and where.
fn end(wal: &Path) -> Reached {
    let entries = fs::read_dir(wal).expect("pg_wal").filter_map(Result::ok);
    let histories = entries.map(|entry| entry.path());
    let newest = histories.filter(|path| path.extension().is_some_and(|s| s == "history")).max();
    let text = fs::read_to_string(newest.expect("a new timeline's history")).expect("a history");
    let line = text.lines().rfind(|line| !line.trim().is_empty()).expect("an ancestor");
    let mut words = line.split_whitespace();
    let timeline = words.next().and_then(|word| word.parse().ok()).expect("a timeline");
    Reached { timeline, end: lsn(words.next().expect("an LSN")), rows: 0 }
}

fn stop(mut server: Child) {
    let pid = server.id().to_string();
    // One that is gone already cannot be told to go.
    let _ = Command::new("kill").args(["-QUIT", &pid]).stderr(Stdio::null()).status();
    server.wait().expect("a child can be waited for");
}
