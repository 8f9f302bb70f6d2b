//! Nonsense on the command line: exit code 2, nothing on standard output, the nearest valid
//! spelling.

use super::bad_input::one_line;
use crate::support::fixtures::sample;
use crate::support::wal::{REAL_NAME, file, real_segment};
use crate::support::{command, finish, walstat};

/// Calls that make no sense, and what the message must hold.
const NONSENSE: &[(&[&str], &[&str])] = &[
    (&["chek"], &["chek", "\"check\""]),
    (&["mereg", "--format", "json"], &["\"merge\""]),
    (&["--fullpag"], &["--fullpage"]),
    (&["--formt", "json"], &["--format"]),
    (&["--stat"], &["--stats"]),
    (&["--timelin", "1"], &["--timeline"]),
    (&["--no-verify-checksum"], &["--no-verify-checksums"]),
    (&["--stats=nonsense"], &["nonsense", "rmgr", "record"]),
    (&["--stats=recrod"], &["record"]),
    (&["--format", "jsn"], &["json"]),
    (&["--format", "pgwaldump"], &["pg_waldump"]),
    (&["--sort", "byte"], &["bytes"]),
    (&["--rmgr", "Haep"], &["Heap"]),
    (&["--rmgr", "custom100"], &["custom100"]),
    (&["--record", "HOT_UPDAT"], &["HOT_UPDATE"]),
    (&["--record", "Haep/INSERT"], &["Heap"]),
    (&["--fork", "mian"], &["main"]),
    (&["--start", "nonsense"], &["nonsense", "16/B374D848"]),
    (&["--start", "0/123456789"], &["0/123456789"]),
    (&["--end", "12345"], &["12345"]),
    (&["--end", "-1/0"], &[]),
    (&["--timeline", "0"], &["'0'"]),
    (&["--timeline", "4294967296"], &["4294967296"]),
    (&["--limit", "x"], &["'x'"]),
    (&["--limit", "-1"], &[]),
    (&["--threads", "0"], &["'0'"]),
    (&["--threads", "many"], &["many"]),
    (&["--xid", "4294967296"], &["4294967296"]),
    (&["--top", "all"], &["all"]),
    (&["--relation", "1/2"], &["tablespace/database/relfilenode"]),
    (&["--relation", "1/2/0"], &["tablespace/database/relfilenode"]),
    (&["--block", "3"], &["--relation"]),
    (&["--quiet", "--verbose"], &["--verbose"]),
    (&["--bytes", "humane"], &["human"]),
    (&["--color", "sometimes"], &["always"]),
    (&["--format", "csv"], &["--stats"]),
    (&["--format", "pg_waldump"], &["--stats"]),
    (&["--format", "csv", "--stats=all"], &["--stats"]),
    (&["--start", "0/900000", "--end", "0/800000"], &["0/00800000", "0/00900000"]),
    (&["--start", "0/900000", "--end", "0/900000"], &["0/00900000"]),
];

/// Options may stand before the command that they belong to.
#[test]
fn options_may_stand_before_the_command() {
    let wal = sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("UTF-8");
    let behind = walstat(&["check", "--as", "archive", "-f", "csv", wal]);
    let before = walstat(&["--as", "archive", "-f", "csv", "check", wal]);
    assert_eq!((before.code, &before.stdout), (behind.code, &behind.stdout));
    let limit = walstat(&["--max-fpi-ratio", "0.0001", "check", wal]).exits(1);
    assert!(limit.stdout.contains("max-fpi-ratio"), "{}", limit.stdout);
    // What the command does not take is told as its mistake.
    let wrong = walstat(&["--top", "5", "check", wal]).exits(2);
    assert!(wrong.stderr.contains("--top"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("walstat check"), "{}", wrong.stderr);
}

#[test]
fn merge_says_what_it_wants() {
    let wal = sample("pg15-mixed").wal;
    let ran = walstat(&["merge", wal.to_str().expect("UTF-8")]).exits(2);
    one_line(&ran, &["a directory", "--partial"]);
}

#[test]
fn nonsense_is_a_usage_error_that_names_what_would_do() {
    let wal = sample("pg15-mixed").wal;
    for (arguments, words) in NONSENSE {
        let mut call: Vec<_> = arguments.iter().map(std::ffi::OsStr::new).collect();
        call.push(wal.as_os_str());
        let ran = walstat(&call).exits(2);
        assert_eq!(ran.stdout, "", "{}: a failure prints no result", ran.call);
        for word in *words {
            assert!(ran.stderr.contains(word), "{}: no \"{word}\" in:\n{}", ran.call, ran.stderr);
        }
    }
}

/// A suggestion has to be the nearest spelling, not just any.
#[test]
fn a_misspelt_option_is_answered_with_the_nearest_one() {
    for (typed, meant) in [
        ("--stat", "--stats"),
        ("--strat", "--start"),
        ("--limt", "--limit"),
        ("--ouput", "--output"),
        ("--database-oid", "--database"),
        ("--show-maindata", "--show-main-data"),
    ] {
        let ran = walstat(&[typed]).exits(2);
        let tip =
            ran.stderr.lines().find(|line| line.contains("similar argument")).unwrap_or_default();
        assert!(tip.contains(&format!("'{meant}'")), "{typed}: {}", ran.stderr);
    }
}

#[test]
fn usage_errors_of_the_program_itself_are_one_line() {
    let wal = sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("UTF-8");
    for arguments in [
        &["--start", "0/900000", "--end", "0/800000", wal][..],
        &["--format", "csv", wal],
        &["rules", "no-such-rule"],
    ] {
        one_line(&walstat(arguments).exits(2), &[]);
    }
    one_line(&walstat(&["rules", "hot-rato"]).exits(2), &["hot-ratio"]);
}

#[test]
fn without_a_path_the_current_directory_is_read_if_it_holds_wal() {
    let sample = sample("livedir");
    let here = finish(command(&["--stats=record", "-f", "csv"]).current_dir(&sample.wal)).exits(0);
    let named = walstat(&[
        "--stats=record".as_ref(),
        "-f".as_ref(),
        "csv".as_ref(),
        sample.wal.as_os_str(),
    ]);
    assert_eq!(here.stdout, named.exits(0).stdout);

    let empty = tempfile::tempdir().expect("an empty directory");
    let ran = finish(command(&["--stats"]).current_dir(empty.path())).exits(2);
    one_line(&ran, &["PATH", "--help"]);
}

#[test]
fn both_spellings_of_an_lsn_are_read() {
    let sample = sample("pg19-mixed");
    let wal = sample.wal.to_str().expect("UTF-8");
    let call = |start, end| {
        let arguments = ["--stats=record", "-f", "csv", "-s", start, "-e", end, wal];
        walstat(&arguments).exits(0).stdout
    };
    let padded = call("0/00900028", "0/0197E1F0");
    assert_eq!(call("0/900028", "0/197E1F0"), padded);
    assert_eq!(call("00000000/00900028", "0/197e1f0"), padded);
}

/// What is said where no PATH is given and there is nothing; whatever else is wrong is said as it is.
#[test]
fn without_a_path_the_current_directory_is_read_or_said_to_hold_no_wal() {
    let here = tempfile::tempdir().expect("a directory");
    let run = |code| finish(command(&["--stats"]).current_dir(here.path())).exits(code);
    file(here.path(), "letter.txt", b"Dear reader, this is no write-ahead log.");
    one_line(&run(2), &["no PATH given", "holds no WAL"]);
    let segment = real_segment();
    let mut header = tar::Header::new_gnu();
    header.set_size(segment.len() as u64);
    header.set_cksum();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, REAL_NAME, &segment[..]).expect("a tar");
    let whole = zstd::encode_all(&tar.into_inner().expect("a tar")[..], 1).expect("zstd");
    file(here.path(), "wal.tar.zst", &whole);
    assert!(run(0).stdout.contains("Heap"), "a tar under any name is read");
    file(here.path(), "wal.tar.zst", &whole[..20]);
    one_line(&run(3), &["wal.tar.zst"]);
}
