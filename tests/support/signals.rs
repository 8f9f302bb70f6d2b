//! Signals to the program.

use std::process::{Child, Command, Stdio};

/// The same call with nothing to read, and with no signal ignored. What a shell starts in the background
/// ignores SIGINT, and under `nohup` SIGHUP: the tests, and all that they start, would too.
pub fn none_ignored(call: &Command) -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal")
        .arg(call.get_program())
        .args(call.get_args())
        .stdin(Stdio::null());
    for (name, value) in call.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(directory) = call.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// Sends a signal: `INT`, `TERM`.
pub fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
}
