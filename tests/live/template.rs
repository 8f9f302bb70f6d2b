//! Clusters as initdb leaves them, made once for each server and its arguments, and copied for every test:
//! a copy costs a tenth of what initdb does. The copies have the same system identifier.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use tempfile::TempDir;

use super::server::{Server, give_to_server_user};

/// Made once, by the program and the arguments of its initdb.
static TEMPLATES: LazyLock<Mutex<BTreeMap<String, Made>>> = LazyLock::new(|| {
    forget_earlier();
    Mutex::default()
});

/// A template's number and its folder; the tests that want the same one wait for it, and no others.
type Made = (usize, Arc<OnceLock<PathBuf>>);

/// What the folders of the templates are called, before the number of the process.
const PREFIX: &str = "clusters-";

/// Lays a new cluster of `server` at `data`, the property of the user that the servers run as.
pub fn lay(server: &Server, initdb: &[&str], data: &Path) {
    let key = format!("{} {}", server.path("initdb").display(), initdb.join(" "));
    let (number, made) = {
        let mut templates = TEMPLATES.lock().expect("no test fails while it holds the templates");
        let number = templates.len();
        templates.entry(key).or_insert_with(|| (number, Arc::default())).clone()
    };
    let template = made.get_or_init(|| make(server, initdb, number));
    copy(template, data);
}

/// Runs initdb.
fn make(server: &Server, arguments: &[&str], number: usize) -> PathBuf {
    // Where the user of the servers may write; the templates need not be there.
    let home: TempDir = tempfile::tempdir().expect("temporary folder");
    give_to_server_user(home.path());
    let data = home.path().join("data");
    let mut initdb = server.command("initdb");
    initdb.args(["-N", "--no-locale", "-E", "UTF8", "-A", "trust", "-U", "postgres", "-D"]);
    let made = initdb.arg(&data).args(arguments).output().expect("initdb runs");
    assert!(made.status.success(), "initdb: {made:?}");
    let folder = root().join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for templates");
    let template = folder.join(number.to_string());
    copy(&data, &template);
    template
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
    assert!(copied.success(), "cp -a {} {}", from.display(), to.display());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Removes the templates of processes that have ended.
fn forget_earlier() {
    for entry in fs::read_dir(root()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX);
        if process.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // Another process may be doing the same.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
