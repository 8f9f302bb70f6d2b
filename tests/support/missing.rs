//! What is not installed on this machine: the test that needs it says so loudly, or fails when
//! `WALSTAT_REQUIRE_LIVE=1` forbids skipping.

use std::io::Write;
use std::process::Command;

/// Whether these programs are installed; if one is not, that is said loudly.
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("bash").args(["-c", "command -v \"$0\"", program]).output();
        !found.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        skip(program, "it is not installed");
    }
    missing.is_none()
}

/// Says that a test did not run. Written past the test harness, which hides what passing tests
/// print.
pub fn skip(what: &str, reason: &str) {
    let line = format!("SKIPPED live test with {what}: {reason}");
    assert!(
        std::env::var("WALSTAT_REQUIRE_LIVE").as_deref() != Ok("1"),
        "{line}; WALSTAT_REQUIRE_LIVE=1 forbids skipping"
    );
    writeln!(std::io::stderr(), "{line}").expect("standard error is open");
}
