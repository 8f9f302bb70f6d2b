//! Where results go: a file written whole or not at all, a pipe whose reader may leave, a terminal
//! or not.

use super::bad_input::one_line;
use crate::support::fixtures::sample;
use crate::support::wal::file;
use crate::support::{command, finish, signals, walstat};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CSV: [&str; 3] = ["--stats=record", "--format", "csv"];

/// One segment: enough for every format.
fn wal() -> String {
    let path = sample("pg15-mixed").segment("000000010000000000000015");
    path.to_str().expect("UTF-8").to_owned()
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the test's directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_gets_what_standard_output_would_have_got() {
    let directory = tempfile::tempdir().expect("a directory");
    let (target, wal) = (directory.path().join("result.csv"), wal());
    fs::write(&target, "an older result, longer or shorter").expect("the file can be written");
    let told = walstat(&[&CSV[..], &[&wal]].concat()).exits(0).stdout;
    let name = target.to_str().expect("UTF-8");
    let ran = walstat(&[&CSV[..], &["--output", name, &wal]].concat()).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(fs::read_to_string(&target).expect("the result"), told);
    assert_eq!(entries(directory.path()), ["result.csv"], "a temporary file was left");
}

#[test]
fn a_file_in_the_current_directory_needs_no_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let wal = wal();
    let arguments = [&CSV[..], &["-o", "result.csv", &wal]].concat();
    finish(command(&arguments).current_dir(directory.path())).exits(0);
    assert_eq!(entries(directory.path()), ["result.csv"]);
}

#[test]
fn a_failure_leaves_the_file_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let letter = file(directory.path(), "letter.txt", b"Dear reader, this is no write-ahead log.");
    let target = file(directory.path(), "result.txt", b"the last good result");
    for form in [&["--stats"][..], &CSV, &[]] {
        let mut arguments: Vec<_> = form.iter().map(std::ffi::OsStr::new).collect();
        arguments.extend(["-o".as_ref(), target.as_os_str(), letter.as_os_str()]);
        one_line(&walstat(&arguments).exits(3), &["letter.txt"]);
        assert_eq!(fs::read(&target).expect("the file"), b"the last good result");
    }
    assert_eq!(entries(directory.path()), ["letter.txt", "result.txt"]);
}

/// A directory with a segment, its history, and a result of yesterday.
fn archive() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let segment = fs::read(wal()).expect("a segment");
    let name = "000000010000000000000015.zst";
    fs::write(directory.path().join(name), segment).expect("a file");
    file(directory.path(), "00000002.history", b"1\t0/1600000\tno recovery target specified\n");
    file(directory.path(), "result.csv", b"yesterday's");
    directory
}

#[cfg(unix)]
#[test]
fn an_input_is_never_written_onto() {
    let archive = archive();
    let run = |arguments: &[&str]| finish(command(arguments).current_dir(archive.path())).exits(2);
    let segment = "000000010000000000000015.zst";
    let before = fs::read(archive.path().join(segment)).expect("the segment");
    let through = archive.path().join("link.csv");
    std::os::unix::fs::symlink(segment, &through).expect("a link");
    for (output, input) in [
        (segment, segment),
        (segment, "."),
        ("./000000010000000000000015.zst", "-t1"),
        ("link.csv", "."),
        ("00000002.history", "."),
        ("result.csv", "result.csv"),
    ] {
        let ran = run(&["--stats", "-o", output, input]);
        one_line(&ran, &[output, "is an input"]);
        one_line(&run(&["check", "-o", output, input]), &[output, "is an input"]);
    }
    let beside = ["check", "--baseline", "result.csv", "-f", "json", "-o", "result.csv", "."];
    one_line(&run(&beside), &["is an input"]);
    assert_eq!(fs::read(archive.path().join(segment)).expect("the segment"), before);

    // Nor is anything written that would be read as WAL.
    for name in [
        "000000010000000000000099",
        "000000010000000000000099.gz",
        "000000010000000000000099.partial",
        "000000010000000000000015.00000028.backup",
        "00000009.history",
    ] {
        one_line(&run(&["--stats", "-o", name, "."]), &[name, "would be read as WAL"]);
        assert!(!archive.path().join(name).exists(), "{name}");
    }

    // A result that lies beside the WAL is no input.
    let arguments = [&CSV[..], &["-o", "result.csv", "."]].concat();
    finish(command(&arguments).current_dir(archive.path())).exits(0);
    let result = fs::read_to_string(archive.path().join("result.csv")).expect("the result");
    assert!(result.starts_with("rmgr,record,info,"), "{result}");
}

/// A file may be called anything; what hides or moves the cursor is shown.
#[cfg(target_os = "linux")]
#[test]
fn names_cannot_write_to_the_terminal() {
    let archive = archive();
    let name = "odd\n\u{1b}[2J\u{202e}name";
    file(archive.path(), name, b"no WAL");
    let shown = "odd\\n\\u{1b}[2J\\u{202e}name";
    let here = archive.path().to_str().expect("UTF-8");
    for form in [&["-v"][..], &["--stats", "-v"], &["check", "-v"]] {
        let ran = walstat(&[form, &[here]].concat()).exits(0);
        let line = ran.stdout.lines().find(|line| line.starts_with("Not counted: "));
        assert!(line.is_some_and(|line| line.contains(shown)), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    }
    let path = archive.path().join(name);
    let ran = walstat(&["--stats", path.to_str().expect("UTF-8")]).exits(3);
    one_line(&ran, &[shown]);
    // Machines get the name as it is.
    let json = walstat(&["--stats", "-f", "json", here]).exits(0).json();
    let others = json["input"]["other_files"].as_array().expect("other files");
    assert!(others.iter().any(|other| other == name), "{others:?}");
}

/// A signal ends the program, and a result that is half written is taken away.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_leaves_no_temporary_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("result.json");
    let wal = sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("UTF-8");
    let mut ends = std::collections::BTreeSet::new();
    for round in 0..60 {
        let name = target.to_str().expect("UTF-8");
        let mut child = command(&["--stats=all", "-f", "json", "-o", name, wal])
            .spawn()
            .expect("walstat starts");
        std::thread::sleep(std::time::Duration::from_millis(round));
        signals::send(&child, "TERM");
        ends.insert(child.wait().expect("walstat ends").code());
        let left = entries(directory.path());
        assert!(left.is_empty() || left == ["result.json"], "{left:?}");
        if let Ok(text) = fs::read_to_string(&target) {
            assert!(text.ends_with("}\n"), "half a result");
            fs::remove_file(&target).expect("the result can be removed");
        }
    }
    assert!(ends.contains(&None), "a signal ends it: {ends:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_told_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let wal = wal();
    let missing = directory.path().join("no-such-directory/result.csv");
    let missing = missing.to_str().expect("UTF-8");
    let ran = walstat(&[&CSV[..], &["-o", missing, &wal]].concat()).exits(3);
    one_line(&ran, &[missing, "No such file or directory"]);
    assert!(
        !ran.stderr.contains(" at path "),
        "names a file that nobody asked for: {}",
        ran.stderr
    );

    let directory_itself = directory.path().to_str().expect("UTF-8");
    let ran = walstat(&[&CSV[..], &["-o", directory_itself, &wal]].concat()).exits(3);
    one_line(&ran, &[directory_itself]);
    assert_eq!(entries(directory.path()), Vec::<String>::new(), "a temporary file was left");
}

/// `-o /dev/null` as root must not put a file in the place of the device.
#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let wal = wal();
    walstat(&["--stats", "-f", "csv", "-o", "/dev/null", &wal]).exits(0);
    let kind = fs::symlink_metadata("/dev/null").expect("the device is still there").file_type();
    assert!(kind.is_char_device(), "a file took the place of the device");
    let ran = walstat(&["--stats", "-f", "csv", "-o", "/dev/full", &wal]).exits(3);
    one_line(&ran, &["/dev/full", "No space left"]);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let wal = wal();
    for form in
        [&["--stats=all", "-f", "json"][..], &CSV, &["--stats"], &[], &["rules"], &["--help"]]
    {
        let arguments = [form, &[wal.as_str()][..usize::from(form != ["rules"])]].concat();
        let mut child = command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("walstat starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("walstat ends");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let wal = wal();
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full opens");
    let ran = finish_into(&mut command(&["--stats=all", "-f", "json", &wal]), full);
    assert_eq!(ran.status.code(), Some(3));
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(told.starts_with("walstat: ") && told.contains("No space left"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

/// Help is a result like any other.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_told_whatever_it_is() {
    let wal = wal();
    let alone = ["--help", "-h", "--version", "help check", "check --help", "merge -h", "man"];
    let reading = ["--stats", "", "records", "records -f csv", "check -f nagios", "--partial"];
    let alone = alone.into_iter().chain(["completions bash", "rules", "names --sql"]);
    let alone = alone.map(str::to_owned);
    let reading = reading.into_iter().chain(["whatif -f csv"]).map(|form| format!("{form} {wal}"));
    for form in alone.chain(reading) {
        for redirect in [">/dev/full", ">&-"] {
            let script = format!("\"$0\" {form} {redirect}");
            let ran = finish(Command::new("bash").args(["-c", &script, crate::support::WALSTAT]));
            assert_eq!(ran.code, Some(3), "{script}: {}", ran.stderr);
            let told = ran.stderr.lines().last().unwrap_or_default();
            assert!(told.starts_with("walstat: standard output: "), "{script}: {told}");
        }
    }
    // Nothing is written there.
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("result").to_str().expect("UTF-8").to_owned();
    for form in [format!("--stats -o {file}"), "-q --stats".to_owned()] {
        let script = format!("\"$0\" {form} {wal} >&-");
        finish(Command::new("bash").args(["-c", &script, crate::support::WALSTAT])).exits(0);
    }
    // Where nothing can be told, the exit code tells.
    let script = "\"$0\" no-such-file 2>/dev/full";
    finish(Command::new("bash").args(["-c", script, crate::support::WALSTAT])).exits(3);
}

#[cfg(target_os = "linux")]
fn finish_into(command: &mut Command, stdout: fs::File) -> std::process::Output {
    let child = command.stdout(stdout).stderr(Stdio::piped()).spawn().expect("walstat starts");
    child.wait_with_output().expect("walstat ends")
}

#[test]
fn quiet_prints_nothing_and_still_exits_by_what_was_found() {
    let wal = wal();
    let ran = walstat(&["--quiet", "--stats", &wal]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    walstat(&["--quiet", "--stats", "no-such-file"]).exits(3);
}

#[test]
fn no_escape_sequence_goes_into_a_pipe_or_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let wal = wal();
    for form in [&["--stats"][..], &[], &["--color", "never"], &["--stats=all", "-f", "json"], &CSV]
    {
        let ran = walstat(&[form, &[&wal]].concat()).exits(0);
        assert!(!ran.stdout.contains('\x1b'), "{}", ran.call);
        let target = directory.path().join("result");
        let name = target.to_str().expect("UTF-8");
        walstat(&[form, &["-o", name, &wal]].concat()).exits(0);
        assert!(!fs::read_to_string(&target).expect("the result").contains('\x1b'), "{}", ran.call);
    }
    let ran = finish(command(&[wal.as_str()]).env("NO_COLOR", "1")).exits(0);
    assert!(!ran.stdout.contains('\x1b'));
}
