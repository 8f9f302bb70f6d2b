//! Command lines as people type them, run by bash as the servers' user.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::server::{as_server_user, give_to_server_user};

fn bash(folder: &Path, script: &str) -> Command {
    let mut command = as_server_user("bash");
    command.args(["-euo", "pipefail", "-c", script]).env("HOME", folder).current_dir(folder);
    command
}

/// Runs a script in `folder` and gives what it printed; it must succeed.
pub fn shell(folder: &Path, script: &str) -> String {
    let output = bash(folder, script).output().expect("bash runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A program that runs beside the test; ended when dropped.
pub struct Background(Child);

/// Starts one program in `folder`; a script of one command, which becomes the process itself.
pub fn background(folder: &Path, command: &str) -> Background {
    let mut bash = bash(folder, &format!("exec {command}"));
    bash.stdout(Stdio::null()).stderr(Stdio::null());
    Background(bash.spawn().expect("bash runs"))
}

impl Background {
    /// Waits until it ends by itself.
    pub fn wait(mut self) {
        self.0.wait().expect("a child can be waited for");
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // One that has ended already cannot be ended again.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A script of `tests/live` where the servers' user can read it.
pub fn install(script: &str, folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live").join(script);
    let target = folder.join(script);
    fs::copy(source, &target).expect("the script can be copied");
    give_to_server_user(&target);
}
