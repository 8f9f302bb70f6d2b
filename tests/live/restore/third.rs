//! A third timeline, made by a restore that goes on as a server: after the end of timeline 2, or from
//! a point in timeline 1, so that timelines 2 and 3 are siblings.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::archiving::{Files, files_of, wait_for_archiver};
use crate::server::Server;
use crate::shell::shell;
use crate::wait::wait;

/// The files that timeline 3 adds to the archive below `home`. `name`: of the folders; `target`: lines
/// that say where recovery ends.
pub fn timeline(server: &Server, home: &Path, name: &str, target: &str) -> Files {
    let (archive, data) = (home.join(format!("{name}-archive")), home.join(name));
    let (to, place) = (archive.display(), data.display());
    shell(
        home,
        &format!("cp -a archive {to}; cp -a backup {place}; touch {place}/recovery.signal"),
    );
    let lines = format!(
        "hot_standby = off\nrestore_command = 'cp {to}/%f %p'\n{target}\n\
         unix_socket_directories = '{place}'\n\
         archive_command = 'test ! -f {to}/%f && cp %p {to}/%f'"
    );
    shell(home, &format!("cat >>{place}/postgresql.conf <<'END'\n{lines}\nEND"));
    pg_ctl(server, &data, &["start", "-w", "-l", &format!("{place}.log")]);
    // pg_ctl takes a server that still restores for one that has started.
    wait("the server opens", || psql(&data, "SELECT 1").status.success());
    insert(&data, 30_000, 1100);
    insert(&data, 40_000, 200);
    wait_for_archiver(&data.join("pg_wal"));
    // Ended at once: a server that is stopped in order archives one segment more.
    pg_ctl(server, &data, &["stop", "-m", "immediate"]);
    let before = files_of(&home.join("archive")).0;
    let mut files = files_of(&archive).0;
    files.retain(|name, _| !before.contains_key(name));
    let of_three = files.keys().filter(|name| name.starts_with("00000003")).count();
    assert!(of_three >= 3, "a history and segments of timeline 3: {:?}", files.keys());
    files
}

/// So many rows and a switch.
fn insert(data: &Path, first: u32, rows: u32) {
    let last = first + rows - 1;
    let statements = format!(
        "INSERT INTO marker SELECT i, repeat(md5(i::text), 30) FROM generate_series({first}, {last}) i; \
         SELECT pg_switch_wal()"
    );
    let output = psql(data, &statements);
    assert!(output.status.success(), "{output:?}");
}

fn psql(data: &Path, statements: &str) -> Output {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres", "-h"]);
    psql.arg(data).args(["-c", statements]).output().expect("psql runs")
}

fn pg_ctl(server: &Server, data: &Path, arguments: &[&str]) {
    let mut command = server.command("pg_ctl");
    command.arg("-D").arg(data).args(arguments);
    // No pipes: the server would inherit them, and reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().expect("pg_ctl runs");
    let log = std::fs::read_to_string(data.with_extension("log")).unwrap_or_default();
    assert!(status.success(), "pg_ctl {arguments:?}: {log}");
}
