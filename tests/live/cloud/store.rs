//! Servers of the stores' own protocols on loopback, and what is put into them.

use crate::support::missing::skip;
use crate::wait::wait;
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where `tests/live/buckets.sh` puts them.
fn home() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/live-buckets");
    std::env::var_os("WALSTAT_LIVE_BUCKETS").map_or(own, PathBuf::from)
}

/// Whose protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    S3,
    Azure,
}

/// A server, ended when it is dropped, and with the process that started it: several tests share one.
pub struct Store {
    kind: Kind,
    watched: Child,
    pub port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.watched.stdin.take());
        let _ = self.watched.wait();
    }
}

/// Ends what it started when its own input ends.
const WATCH: &str = "\"$@\" < /dev/null & cat > /dev/null; kill -KILL $!";

static PORTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that nobody listens on, and that no other test was given.
pub fn free_port() -> u16 {
    let mut given = PORTS.lock().expect("no panic");
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if given.insert(port) {
            return port;
        }
    }
}

/// The only names of buckets that are alike are those in different servers.
static BUCKETS: AtomicU32 = AtomicU32::new(0);

impl Store {
    /// Starts a server; `None`, said loudly, where it is not installed.
    pub fn start(kind: Kind) -> Option<Store> {
        let (name, program) = match kind {
            Kind::S3 => ("moto", "moto/bin/moto_server"),
            Kind::Azure => ("azurite", "azurite/node_modules/.bin/azurite-blob"),
        };
        let program = home().join(program);
        if !program.exists() {
            skip(name, "tests/live/buckets.sh has not fetched it");
            return None;
        }
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a directory"));
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).arg(program).stdin(Stdio::piped());
        match kind {
            Kind::S3 => command.args(["-H", "127.0.0.1", "-p", &port.to_string()]),
            Kind::Azure => {
                command.args([
                    "--silent",
                    "--skipApiVersionCheck",
                    "--blobPort",
                    &port.to_string(),
                ]);
                command.arg("--location").arg(folder.path())
            }
        };
        let watched = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let watched = watched.expect("the server starts");
        wait("the store listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Store { kind, watched, port, _folder: folder })
    }

    /// Its own endpoint.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Puts a directory into a bucket of its own; gives the bucket's name. It is of letters and digits alone:
    /// moto does not decode what Google's clients encode in a bucket's name.
    pub fn put(&self, directory: &Path) -> String {
        let bucket = format!("wal{}", BUCKETS.fetch_add(1, Ordering::Relaxed));
        self.put_into(&bucket, "archive", directory);
        bucket
    }

    /// Puts a directory below a prefix.
    pub fn put_into(&self, bucket: &str, prefix: &str, directory: &Path) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/cloud/put.py");
        let kind = if self.kind == Kind::Azure { "azure" } else { "s3" };
        let mut command = Command::new("python3");
        command.arg(script).args([kind, &self.endpoint(), bucket, prefix]).arg(directory);
        let output = command.output().expect("python3 runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
}
