//! Python with the engines that read what walstat writes, as `tests/live/python.sh` installs it.

use crate::support::WALSTAT;
use crate::support::missing::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

fn environment() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/live-python");
    std::env::var_os("WALSTAT_LIVE_PYTHON").map_or_else(made, PathBuf::from)
}

/// For Spark in short tests: optimising its code takes longer than running it.
pub const JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// Python, about to run a script of this repository, with walstat on its PATH; `None` where its packages are
/// not installed.
pub fn python(script: &str) -> Option<Command> {
    let environment = environment();
    if !environment.join("PACKAGES").is_file() {
        skip("DuckDB, pyarrow and Spark", "tests/live/python.sh has not installed them");
        return None;
    }
    let mut command = Command::new(environment.join("bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script)).env("PATH", path());
    Some(command)
}

/// PATH with the program under test before all others.
pub fn path() -> std::ffi::OsString {
    let own = Path::new(WALSTAT).parent().map(Path::to_owned);
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = own.into_iter().chain(std::env::split_paths(&others));
    std::env::join_paths(all).expect("no colon in the path of the build")
}
