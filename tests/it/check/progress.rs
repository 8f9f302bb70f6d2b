//! Progress is for people: never in a pipe unless asked for, and then on standard error.

use super::archive::Archive;

#[test]
fn a_pipe_sees_no_progress_unless_asked() {
    let archive = Archive::whole();
    for arguments in [&[][..], &["--progress", "auto"], &["--progress", "never"]] {
        assert_eq!(archive.check(arguments).exits(0).stderr, "");
    }
}

#[test]
fn asked_for_it_tells_bytes_rate_and_time_left() {
    let ran = Archive::whole().check(&["--progress", "always", "-j", "1"]).exits(0);
    let last = ran.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    // Once all is read no time is left that could be told.
    for words in [" of 18.0 MB, ", "/s, ", "all read ["] {
        assert!(last.contains(words), "{:?}", ran.stderr);
    }
    assert!(!ran.stdout.contains("all read ["), "{}", ran.stdout);
}
