//! PostgreSQL servers installed on this machine, and what to do where one is missing: say so
//! loudly, or fail when `WALSTAT_REQUIRE_LIVE=1` forbids skipping.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::missing::skip;

/// The programs of one installed PostgreSQL release.
pub struct Server {
    /// Release number as people say it: `9.6`, `15`.
    pub major: &'static str,
    bin: PathBuf,
}

impl Server {
    /// Debian's PostgreSQL 15, which has the client programs and pg_waldump too.
    pub fn debian_15() -> Option<Self> {
        let bin = PathBuf::from("/usr/lib/postgresql/15/bin");
        Self::installed("15", bin, &["initdb", "pg_ctl", "pg_waldump", "pgbench"])
    }

    /// The build of this release that `tests/live/servers.sh` fetches.
    pub fn fetched(major: &'static str) -> Option<Self> {
        let cache = std::env::var_os("WALSTAT_LIVE_SERVERS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/live-servers"),
            PathBuf::from,
        );
        Self::installed(major, cache.join(major).join("bin"), &["initdb", "pg_ctl"])
    }

    fn installed(major: &'static str, bin: PathBuf, needed: &[&str]) -> Option<Self> {
        let server = Self { major, bin };
        let reason = if let Some(program) = needed.iter().find(|p| !server.path(p).exists()) {
            format!("{} does not exist", server.path(program).display())
        } else if !runs(Command::new("psql").arg("--version")) {
            "psql does not run".to_owned()
        } else if !runs(server.command("initdb").arg("--version")) {
            let path = server.path("initdb");
            format!("{} does not run as an unprivileged user", path.display())
        } else {
            return Some(server);
        };
        skip(&format!("PostgreSQL {major}"), &reason);
        None
    }

    /// The release as a number that orders: 9.6 is 9, 15 is 15.
    pub fn number(&self) -> u32 {
        let first = self.major.split('.').next();
        first.and_then(|n| n.parse().ok()).expect("release number")
    }

    /// Where this program lies.
    pub fn path(&self, program: &str) -> PathBuf {
        self.bin.join(program)
    }

    /// A command that runs this program as a user that PostgreSQL accepts: it refuses root.
    pub fn command(&self, program: &str) -> Command {
        as_server_user(self.path(program))
    }
}

/// A command that runs any program as the user of the servers.
pub fn as_server_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// Makes a folder the property of the user that the servers run as.
pub fn give_to_server_user(path: &Path) {
    if is_root() {
        let id = |flag| {
            let output = Command::new("id").args([flag, "nobody"]).output();
            let text = String::from_utf8(output.expect("id runs").stdout).expect("a number");
            text.trim().parse().expect("a number")
        };
        chown(path, Some(id("-u")), Some(id("-g"))).expect("chown");
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn runs(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}
