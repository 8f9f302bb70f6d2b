//! A server that was recovered from a copy of its data and an archive, to a target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server::Server;
use crate::shell::shell;
use crate::wait::wait;

/// It runs, and is gone when this is dropped.
pub struct Recovered<'s> {
    server: &'s Server,
    home: PathBuf,
}

impl<'s> Recovered<'s> {
    /// Recovers the copy in `home/backup` with the archive in `home/archive`; `settings`: where it stops.
    pub fn to(server: &'s Server, home: &Path, settings: &str) -> Recovered<'s> {
        let recovered = Recovered { server, home: home.to_owned() };
        let signal = if server.number() < 12 { "recovery.conf" } else { "recovery.signal" };
        shell(
            home,
            &format!("rm -rf recovered && cp -a backup recovered && touch recovered/{signal}"),
        );
        let data = recovered.data();
        let (home, socket) = (home.display(), data.display());
        let conf = format!(
            "archive_mode = off\nlisten_addresses = ''\nunix_socket_directories = '{socket}'"
        );
        let target = format!("restore_command = 'cp {home}/archive/%f %p'\n{settings}");
        let action = "recovery_target_action = 'promote'";
        append(&data.join("postgresql.conf"), &conf);
        let file = if server.number() < 12 { signal } else { "postgresql.conf" };
        append(&data.join(file), &format!("{target}\n{action}"));
        recovered.start();
        recovered
    }

    fn data(&self) -> PathBuf {
        self.home.join("recovered")
    }

    fn start(&self) {
        let log = self.home.join("recovered/log");
        let mut command = self.server.command("pg_ctl");
        command.args(["start", "-w", "-t", "180", "-D"]).arg(self.data()).arg("-l").arg(&log);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("pg_ctl runs");
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(status.success(), "{}", said());
        wait("recovery ends", || self.sql("postgres", "SELECT pg_is_in_recovery()") == "f");
    }

    /// The answer to a statement in a database.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new("psql");
        psql.args([
            "-X", "-q", "-A", "-t", "-U", "postgres", "-d", database, "-c", statement, "-h",
        ]);
        let output = psql.arg(self.data()).output().expect("psql runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
    }
}

fn append(path: &Path, lines: &str) {
    let text = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, format!("{text}\n{lines}\n")).expect("a file of the server");
}

impl Drop for Recovered<'_> {
    fn drop(&mut self) {
        let mut stop = self.server.command("pg_ctl");
        stop.args(["stop", "-m", "immediate", "-D"]).arg(self.data());
        // A test that has failed already says why.
        let _ = stop.output();
    }
}
