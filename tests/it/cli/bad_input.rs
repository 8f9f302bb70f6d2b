//! What cannot be read as WAL: one clear line, the contract's exit code, nothing on standard
//! output, no panic.

use crate::support::fixtures::sample;
use crate::support::wal::{REAL_NAME, file, noise, plain, real_segment, with_magic};
use crate::support::{Ran, WALSTAT, finish, number, walstat};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Every way to ask: the report, the statistics, and each format.
const FORMS: [&[&str]; 5] = [
    &[],
    &["--stats"],
    &["--stats=record", "--format", "json"],
    &["--stats=record", "--format", "csv"],
    &["--stats", "--format", "pg_waldump"],
];

/// Requires the refusal of `path` in every form: exit code 3 and one line that names the path and
/// holds `words`.
#[track_caller]
fn refused(path: &Path, words: &[&str]) {
    for form in FORMS {
        let mut arguments: Vec<&OsStr> = form.iter().map(OsStr::new).collect();
        arguments.push(path.as_os_str());
        let ran = walstat(&arguments).exits(3);
        one_line(&ran, words);
        let name = path.file_name().expect("a name").to_str().expect("UTF-8");
        assert!(ran.stderr.contains(name), "{} does not name the path: {}", ran.call, ran.stderr);
    }
}

/// Requires one line on standard error, beginning with the program's name, and nothing on standard
/// output; JSON has the same line in it.
#[track_caller]
pub fn one_line(ran: &Ran, words: &[&str]) {
    let Ran { call, stdout, stderr, .. } = ran;
    match call.contains(" --format json ") {
        true => {
            let answer = ran.json();
            let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
            assert_eq!(keys, ["walstat", "schema", "command", "error"], "{call}");
            let error = answer["error"].as_str().expect("a text");
            assert_eq!(*stderr, format!("walstat: {error}\n"), "{call}");
        }
        false => assert_eq!(stdout, "", "{call}: a failure prints no result"),
    }
    assert!(stderr.starts_with("walstat: "), "{call}: {stderr}");
    assert!(
        stderr.ends_with('\n') && stderr.lines().count() == 1,
        "{call}: not one line: {stderr}"
    );
    for word in words {
        assert!(stderr.contains(word), "{call}: no \"{word}\" in: {stderr}");
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

#[test]
fn an_empty_file_is_refused() {
    let directory = directory();
    refused(&file(directory.path(), "empty", b""), &["empty"]);
    refused(&file(directory.path(), REAL_NAME, b""), &["the file is empty"]);
}

#[test]
fn zeros_are_refused() {
    let directory = directory();
    refused(&file(directory.path(), "zeros", &vec![0; 1 << 20]), &["zeros"]);
    refused(&file(directory.path(), REAL_NAME, &vec![0; 1 << 20]), &["zeros"]);
}

#[test]
fn random_bytes_are_refused() {
    let directory = directory();
    for bytes in [24, 40, 8192, 1 << 20] {
        refused(&file(directory.path(), "random", &noise(bytes)), &[]);
        refused(&file(directory.path(), REAL_NAME, &noise(bytes)), &[]);
    }
}

#[test]
fn text_is_refused() {
    let directory = directory();
    let text = "Dear reader, this is a letter and no write-ahead log.\n".repeat(1000);
    refused(&file(directory.path(), "letter.txt", text.as_bytes()), &["not PostgreSQL WAL"]);
}

#[test]
fn a_file_shorter_than_a_page_header_is_refused() {
    let directory = directory();
    for bytes in [1, 19, 23] {
        refused(&file(directory.path(), REAL_NAME, &real_segment()[..bytes]), &["too short"]);
    }
    // Long enough for the short header, but the first page of a segment has a long one.
    refused(&file(directory.path(), REAL_NAME, &real_segment()[..39]), &[]);
}

#[test]
fn a_directory_without_segments_is_refused() {
    let directory = directory();
    refused(directory.path(), &["no WAL segment"]);
    file(directory.path(), "README", b"nothing here");
    refused(directory.path(), &["no WAL segment"]);
}

#[test]
fn a_missing_file_is_refused() {
    refused(&directory().path().join("no-such-file"), &["No such file"]);
}

#[cfg(unix)]
fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo starts");
    assert!(made.success());
}

#[cfg(unix)]
#[test]
fn a_fifo_is_refused_without_waiting_for_a_writer() {
    let directory = directory();
    let path = directory.path().join("fifo");
    make_fifo(&path);
    refused(&path, &["pipe"]);
}

/// A label that is given as a directory; a pipe that is given itself may be a shell's and is read.
#[cfg(unix)]
#[test]
fn a_backup_label_that_is_a_pipe_is_not_waited_for() {
    let directory = directory();
    make_fifo(&directory.path().join("backup_label"));
    let base = directory.path().as_os_str();
    let ran = walstat(&[OsStr::new("check"), OsStr::new("--backup-label"), base, base]).exits(3);
    one_line(&ran, &["backup_label in this directory is no file"]);
}

/// A folder is followed; a pipe in it is no WAL, whatever its name, and what comes beside it is.
#[cfg(unix)]
#[test]
fn following_takes_no_pipe_for_wal() {
    let directory = directory();
    let path = directory.path().join("000000010000000000000009");
    make_fifo(&path);
    let ran = walstat(&[OsStr::new("follow"), path.as_os_str()]).exits(2);
    one_line(&ran, &["is no folder, expected one that WAL is written to"]);
    let mut follow = Command::new(WALSTAT);
    follow.arg("follow").arg(directory.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = follow.spawn().expect("walstat starts");
    let mut told = String::new();
    let stderr = child.stderr.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut told).expect("a line");
    let is_waiting = child.try_wait().expect("its state").is_none();
    child.kill().expect("its end");
    child.wait().expect("its end");
    assert!(told.contains("no WAL yet, waiting for it") && is_waiting, "{told}");
}

#[cfg(unix)]
#[test]
fn a_device_is_refused() {
    refused(Path::new("/dev/null"), &["device"]);
}

#[test]
fn wal_before_9_5_is_refused_by_its_name() {
    let directory = directory();
    for magic in [0xD07E, 0xD075, 0xD071] {
        refused(&file(directory.path(), REAL_NAME, &with_magic(&real_segment(), magic)), &["9.5"]);
    }
}

#[test]
fn byte_swapped_wal_is_refused_by_its_name() {
    let directory = directory();
    let swapped = with_magic(&real_segment(), 0x10D1);
    refused(&file(directory.path(), REAL_NAME, &swapped), &["15", "swapped"]);
}

#[test]
fn a_magic_between_two_releases_is_a_pre_release_and_refused() {
    let directory = directory();
    for (magic, release) in [(0xD088, "9.6"), (0xD10F, "15"), (0xD111, "16"), (0xD121, "19")] {
        let bytes = with_magic(&real_segment(), magic);
        refused(&file(directory.path(), REAL_NAME, &bytes), &[release, &format!("0x{magic:04X}")]);
    }
}

#[test]
fn an_unknown_magic_is_refused_with_what_was_found() {
    let directory = directory();
    for magic in [0xD123, 0xD1FF, 0xFFFF, 0x0001, 0x4D5A] {
        let bytes = with_magic(&real_segment(), magic);
        refused(&file(directory.path(), REAL_NAME, &bytes), &[&format!("0x{magic:04X}")]);
    }
}

/// A file that was cut is WAL to its cut, and says so. Under a full name it promised more.
#[test]
fn a_truncated_segment_is_counted_to_its_cut() {
    let directory = directory();
    let whole = real_segment();
    for bytes in [8192, 8200, 100_000, 524_287, whole.len() - 1] {
        let path = file(directory.path(), REAL_NAME, &whole[..bytes]);
        let arguments = ["--stats".as_ref(), "-f".as_ref(), "json".as_ref(), path.as_os_str()];
        let json = walstat(&arguments).exits(4).json();
        assert_eq!(json["problems"][0]["kind"], "truncated");
        assert_eq!(number(&json, "books.input_bytes"), bytes as i128);
        assert_eq!(number(&json, "books.unaccounted_bytes"), 0, "cut at {bytes}");
        let kind = json["ending"]["kind"].as_str().expect("a kind");
        assert!(["partial_page", "incomplete_record"].contains(&kind), "cut at {bytes}: {kind}");
    }
}

#[test]
fn a_range_outside_the_input_is_refused() {
    let sample = sample("pg15-mixed");
    for range in [["-s", "FF/0"], ["-e", "0/600000"], ["-s", "0/1800000"]] {
        let mut arguments: Vec<&OsStr> = range.iter().map(OsStr::new).collect();
        arguments.push(sample.wal.as_os_str());
        one_line(&walstat(&arguments).exits(3), &["0/00600000", "0/01800000"]);
    }
}

/// Behind the last record, but inside the last segment: there are records in the segment, and none
/// in the range.
#[test]
fn a_range_behind_the_last_record_is_refused_as_a_range() {
    let sample = sample("pg15-mixed");
    let arguments = ["-s".as_ref(), "0/1780000".as_ref(), sample.wal.as_os_str()];
    one_line(&walstat(&arguments).exits(3), &["0/01780000"]);
}

#[test]
fn a_timeline_that_is_not_there_is_refused_with_those_that_are() {
    let sample = sample("timeline");
    let arguments = ["-t".as_ref(), "7".as_ref(), sample.wal.as_os_str()];
    one_line(&walstat(&arguments).exits(3), &["timeline 7", "1, 2"]);
}

/// A record spoiled in the middle: the rest is told, and the exit code is that of damage.
#[test]
fn damage_is_told_and_everything_else_is_still_counted() {
    let sample = sample("pg15-mixed");
    let mut bytes = plain(&sample, REAL_NAME);
    bytes[500_000..500_016].fill(0xA5);
    let directory = directory();
    let path = file(directory.path(), REAL_NAME, &bytes);
    let arguments = ["--stats".as_ref(), "-f".as_ref(), "json".as_ref(), path.as_os_str()];
    let json = walstat(&arguments).exits(4).json();
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(1), "{}", json["problems"]);
    assert_eq!(number(&json, "books.unaccounted_bytes"), 0);
    assert!(number(&json, "books.damaged_bytes") > 0);
    let whole = sample.segment(REAL_NAME);
    let arguments = ["--stats".as_ref(), "-f".as_ref(), "json".as_ref(), whole.as_os_str()];
    let sound = walstat(&arguments).exits(0).json();
    let lost = number(&sound, "totals.total_bytes") - number(&json, "totals.total_bytes");
    assert!((1..100_000).contains(&lost), "{lost} bytes of records lost for 16 bytes");
    let told = walstat(&[OsStr::new("--stats"), path.as_os_str()]).exits(4);
    assert!(told.stdout.contains("PROBLEM"), "{}", told.stdout);
    // Formats without a place for it have it on standard error.
    for format in ["csv", "pg_waldump"] {
        let arguments = ["--stats", "-f", format].map(OsStr::new);
        let told = walstat(&[&arguments[..], &[path.as_os_str()]].concat()).exits(4);
        assert!(told.stderr.starts_with("PROBLEM"), "{format}: {}", told.stderr);
        assert!(!told.stdout.contains("PROBLEM"), "{format}: {}", told.stdout);
    }
}

/// Root reads everything, so the program runs as nobody where the tests run as root.
#[cfg(unix)]
#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let path = file(directory.path(), REAL_NAME, &real_segment());
    mode(directory.path(), 0o755).expect("the directory is ours");
    mode(&path, 0o000).expect("the file is ours");
    if fs::File::open(&path).is_err() {
        refused(&path, &["Permission denied"]);
        return;
    }
    let has_setpriv = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status();
    if !has_setpriv.is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED an_unreadable_file_is_refused: run by root, and there is no setpriv to become nobody"
        );
        return;
    }
    // Nobody may not be able to enter the build directory.
    let program = directory.path().join("walstat");
    fs::copy(WALSTAT, &program).expect("the program can be copied");
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    for given in [path.as_path(), directory.path()] {
        let ran =
            finish(Command::new("setpriv").args(nobody).arg(&program).arg("--stats").arg(given))
                .exits(3);
        one_line(&ran, &[REAL_NAME, "Permission denied"]);
    }
}
