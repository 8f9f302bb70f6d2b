//! Where WAL lies: everything that could be WAL is read or named, whatever it is called and wherever
//! it is; what is beside it does not fail a check; and what is told apart is told.

use crate::support::fixtures::sample;
use crate::support::patience::PATIENCE;
use crate::support::wal::{plain, put};
use crate::support::{Ran, command, finish};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Three segments in a row, each of them full of records.
const NAMES: [&str; 3] =
    ["000000010000000000000007", "000000010000000000000008", "000000010000000000000009"];

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

fn segment(index: usize) -> Vec<u8> {
    plain(&sample("pg15-mixed"), NAMES[index])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, bytes).expect("a vector takes everything");
    gzip.finish().expect("gzip ends")
}

/// The three segments in a directory, below `inner`.
fn three(inner: &str) -> TempDir {
    let directory = directory();
    (0..3).for_each(|index| {
        put(&directory.path().join(inner), NAMES[index], &segment(index));
    });
    directory
}

fn check<P: AsRef<OsStr>>(arguments: &[&str], paths: &[P]) -> Ran {
    let mut command = command(&["check", "-f", "json"]);
    finish(command.args(arguments).args(paths).env_remove("GITHUB_STEP_SUMMARY"))
}

#[track_caller]
fn kinds(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problems = ran.json()["problems"].as_array().cloned().expect("problems");
    problems.iter().map(|problem| (text(&problem["kind"]), text(&problem["segment"]))).collect()
}

/// What is said without `-v`.
fn said(paths: &[&Path]) -> Ran {
    let mut command = command(&["check"]);
    finish(command.args(paths).env_remove("GITHUB_STEP_SUMMARY"))
}

fn count(ran: &Ran) -> u64 {
    ran.json()["totals"]["count"].as_u64().expect("a count")
}

fn of_three() -> u64 {
    count(&check(&[], &[three("").path()]).exits(0))
}

// ---- names ----

#[test]
fn segments_under_unusual_suffixes_are_read() {
    for suffix in ["gzip", "GZ"] {
        let directory = directory();
        for (index, name) in NAMES.iter().enumerate() {
            put(directory.path(), &format!("{name}.{suffix}"), &gzip(&segment(index)));
        }
        let ran = check(&[], &[directory.path()]).exits(0);
        assert_eq!(ran.json()["input"]["segments"], 3, "{suffix}");
        // They promise as much as the usual ones.
        let path = directory.path().join(format!("{}.{suffix}", NAMES[2]));
        let half = fs::read(&path).expect("the file");
        put(directory.path(), &format!("{}.{suffix}", NAMES[2]), &half[..half.len() / 2]);
        let ran = check(&[], &[directory.path()]).exits(4);
        assert_eq!(kinds(&ran)[0].0, "truncated", "{suffix}");
    }
}

#[test]
fn what_is_laid_aside_stands_in_for_nothing() {
    for suffix in [".bak", ".old", "-2026-11-21", ".gz.old", ".partial"] {
        let directory = three("");
        let path = directory.path().join(NAMES[1]);
        let bytes = if suffix == ".gz.old" { gzip(&segment(1)) } else { segment(1) };
        put(directory.path(), &format!("{}{suffix}", NAMES[1]), &bytes);
        let ran = check(&[], &[directory.path()]).exits(0);
        assert_eq!(count(&ran), of_three(), "{suffix}: a second copy counts once");
        fs::remove_file(path).expect("the segment was there");
        let ran = check(&[], &[directory.path()]).exits(4);
        assert_eq!(kinds(&ran), [("missing_segment".into(), NAMES[1].into())], "{suffix}");
        assert_eq!(count(&ran), of_three(), "{suffix}: what is there is counted");
    }
}

#[test]
fn what_is_called_like_a_segment_and_cannot_be_read_is_named_without_being_asked() {
    let directory = three("");
    put(directory.path(), "00000001000000000000000A.old", b"Dear reader, this is a letter.");
    let ran = said(&[directory.path()]).exits(0);
    assert!(ran.stdout.contains("00000001000000000000000A.old"), "{}", ran.stdout);
}

#[test]
fn tars_are_found_under_their_short_names() {
    let mut tar = tar::Builder::new(Vec::new());
    for (index, name) in NAMES.iter().enumerate() {
        let bytes = segment(index);
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, bytes.as_slice()).expect("a vector takes all");
    }
    let directory = directory();
    put(directory.path(), "wal.tgz", &gzip(&tar.into_inner().expect("a vector takes all")));
    assert_eq!(count(&check(&[], &[directory.path()]).exits(0)), of_three());
}

// ---- directories ----

/// A base backup in a directory with any name, in a tar.
#[test]
fn tars_in_a_tar_are_read_whatever_their_directory_is_called() {
    let mut inner = tar::Builder::new(Vec::new());
    for (index, name) in NAMES.iter().enumerate() {
        let mut header = tar::Header::new_ustar();
        header.set_size(segment(index).len() as u64);
        inner.append_data(&mut header, name, &*segment(index)).expect("a vector takes all");
    }
    let inner = gzip(&inner.into_inner().expect("a vector takes all"));
    for folder in ["pg_basebackup", "base"] {
        let mut outer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(inner.len() as u64);
        let name = format!("{folder}/pg_wal.tar.gz");
        outer.append_data(&mut header, name, &*inner).expect("a vector takes all");
        let directory = directory();
        let outer = outer.into_inner().expect("a vector takes all");
        let path = put(directory.path(), "x.tar", &outer);
        assert_eq!(count(&check(&[], &[path]).exits(0)), of_three(), "{folder}");
    }
}

/// The second of two tars in one file is read by nobody.
#[test]
fn a_tar_after_a_tar_is_told() {
    let tar_of = |index: usize| {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(segment(index).len() as u64);
        tar.append_data(&mut header, NAMES[index], &*segment(index)).expect("a vector takes all");
        tar.into_inner().expect("a vector takes all")
    };
    let directory = directory();
    let path = put(directory.path(), "two.tar", &[tar_of(0), tar_of(1)].concat());
    let ran = check(&[], &[path]).exits(4);
    assert_eq!(kinds(&ran), [("unreadable".into(), "two.tar".into())]);
    let padded = put(directory.path(), "one.tar", &[tar_of(0), vec![0; 9000]].concat());
    check(&[], &[padded]).exits(0);
}

#[test]
fn segments_beside_a_wal_directory_are_not_hidden_by_it() {
    for inner in ["archive", "pg_wal", "wals"] {
        let directory = directory();
        put(directory.path(), NAMES[0], &segment(0));
        put(&directory.path().join(inner), NAMES[1], &segment(1));
        put(&directory.path().join("more"), NAMES[2], &segment(2));
        let ran = check(&["--as", "archive"], &[directory.path()]);
        assert_eq!(count(&ran), of_three(), "{inner}");
        // A broken one is not hidden by a good copy there either.
        put(directory.path(), NAMES[1], &segment(1)[..9000]);
        let ran = check(&["--as", "archive"], &[directory.path()]).exits(4);
        assert!(kinds(&ran).iter().any(|(kind, _)| kind == "truncated"), "{inner}");
        assert_eq!(count(&ran), of_three(), "{inner}: the good one is counted");
        fs::create_dir(directory.path().join("archive_status")).expect("a directory");
    }
}

#[test]
fn an_empty_directory_beside_segments_does_not_matter() {
    for inner in ["archive", "lost+found", "archive_status"] {
        let directory = three("");
        fs::create_dir(directory.path().join(inner)).expect("a directory");
        check(&[], &[directory.path()]).exits(0);
    }
}

#[cfg(unix)]
#[test]
fn directories_are_looked_into_once_however_often_they_are_linked() {
    let directory = three("");
    for link in 0..10 {
        std::os::unix::fs::symlink(".", directory.path().join(format!("link{link}")))
            .expect("a link");
    }
    let begun = Instant::now();
    let ran = check(&[], &[directory.path(), &directory.path().join("link3")]).exits(0);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(count(&ran), of_three());
    assert_eq!(ran.json()["books"]["duplicate_bytes"], 0);
}

/// Segments, and what else lies beside them in archives: the shell names all of it.
#[test]
fn other_files_among_the_arguments_fail_nothing() {
    let directory = three("");
    let history = format!("{}.00000028.backup", NAMES[0]);
    for name in [&*history, "xlog.db", "archive.info", "archive.info.copy", "README", "empty"] {
        let text = if name == "empty" { "" } else { "START WAL LOCATION: 0/700028\n" };
        put(directory.path(), name, text.as_bytes());
    }
    put(directory.path(), &format!("{}.json", NAMES[1]), b"{}");
    fs::create_dir(directory.path().join("archive_status")).expect("a directory");
    let entries = fs::read_dir(directory.path()).expect("a directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 11);
    let ran = check(&[], &paths).exits(0);
    assert_eq!(count(&ran), of_three());
}

/// What the user names as WAL, under whatever name, is not passed over where it cannot be read.
#[test]
fn a_file_that_was_named_and_cannot_be_read_is_told() {
    let directory = directory();
    let first = put(directory.path(), "a.wal", &segment(0));
    let spoiled = |name: &str, bytes: &[u8]| put(directory.path(), name, bytes);
    let mut flipped = segment(1);
    flipped[0] ^= 0xFF;
    let flipped = spoiled("flipped.wal", &flipped);
    let mut torn = gzip(&segment(1));
    torn[12..40].fill(0xFF);
    let torn = spoiled("torn.wal.gz", &torn);
    for second in [&flipped, &torn] {
        let name = second.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
        let ran = check(&[], &[&first, second]).exits(4);
        assert_eq!(kinds(&ran), [("not_wal".to_owned(), name)]);
    }
    // A short one may be anything, but nothing may be anything in an archive.
    let letter = spoiled("letter", b"Dear reader, this is a letter to you.");
    let ran = said(&[&first, &letter]).exits(0);
    assert!(ran.stdout.contains("letter: not read"), "{}{}", ran.stdout, ran.stderr);
    let first = put(directory.path(), "b.wal", &segment(0));
    let ran = check(&["--as", "archive"], &[&first, &letter]).exits(4);
    assert!(kinds(&ran).contains(&("not_wal".into(), "letter".into())), "{:?}", kinds(&ran));
    let list = spoiled("archive.info", b"[backrest]");
    let ran = check(&["--as", "archive"], &[&first, &list]);
    assert!(kinds(&ran).iter().all(|(_, file)| file != "archive.info"), "{:?}", kinds(&ran));
    // What a server prepares is not yet anything.
    let prepared = spoiled("xlogtemp.4711", &vec![0; segment(0).len()]);
    check(&[], &[&first, &prepared]).exits(0);
}

/// An encrypted segment is there in the clear only where the whole segment is.
#[test]
fn an_encrypted_segment_is_missed_beside_less_than_itself() {
    let encrypted = b"-----BEGIN PGP MESSAGE-----\n\n".repeat(40);
    let name = "00000001000000000000000A";
    let mut beginning = segment(0);
    beginning[..8].fill(0);
    let kinds_beside = |suffix: &str, bytes: &[u8]| {
        let directory = three("");
        put(directory.path(), &format!("{name}.gpg"), &encrypted);
        put(directory.path(), &format!("{name}{suffix}"), bytes);
        kinds(&check(&[], &[directory.path()]))
    };
    let told = ("not_wal".to_owned(), format!("{name}.gpg"));
    let whole = plain(&sample("pg15-mixed"), name);
    assert_eq!(kinds_beside("", &whole), []);
    for suffix in [".partial", ".bak"] {
        assert!(kinds_beside(suffix, &whole).contains(&told), "{suffix}");
    }
    assert!(kinds_beside("", &vec![0; whole.len()]).contains(&told), "zeros");
}

#[test]
fn two_archives_in_one_repository_are_told_apart() {
    for (ours, theirs) in [
        ("archive/demo/15-1", "archive/demo/16-2"),
        ("archive/one/15-1", "archive/two/15-1"),
        ("main/wals", "other/wals"),
    ] {
        let group = "0000000100000000";
        let directory = three(&format!("{ours}/{group}"));
        let other = sample("overwrite");
        let bytes = plain(&other, NAMES[0]);
        put(&directory.path().join(theirs).join(group), NAMES[0], &bytes);
        let ran = check(&[], &[directory.path()]).exits(2);
        assert!(ran.stderr.contains(ours) && ran.stderr.contains(theirs), "{}", ran.stderr);
        check(&[], &[directory.path().join(ours)]).exits(0);
    }
}

/// Files are placed alike whether or not something that is a stream is among them.
#[test]
fn the_vote_is_taken_over_all_files_and_streams() {
    let directory = three("");
    let bytes = plain(&sample("pg16-workload"), "00000001000000000000000A");
    put(directory.path(), "00000001000000000000000A", &bytes);
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(5);
    tar.append_data(&mut header, "README", &b"text\n"[..]).expect("a vector takes all");
    let beside = self::directory();
    let tar = put(beside.path(), "notes.tar", &tar.into_inner().expect("a vector takes all"));
    let alone = check(&[], &[directory.path()]).exits(4);
    let with_tar = check(&[], &[tar.as_path(), directory.path()]).exits(4);
    for ran in [alone, with_tar] {
        assert_eq!(ran.json()["input"]["postgres"], "15");
        let want = ("other_release".to_owned(), "00000001000000000000000A".to_owned());
        assert_eq!(kinds(&ran), [want]);
        assert_eq!(count(&ran), of_three());
    }
}

// ---- what is no file ----

#[cfg(unix)]
#[test]
fn what_is_no_file_under_a_segments_name_is_a_problem() {
    type Make = fn(&Path);
    let makes: [(&str, Make); 3] = [
        ("link", |path| std::os::unix::fs::symlink("nowhere", path).expect("a link")),
        ("directory", |path| fs::create_dir(path).expect("a directory")),
        ("pipe", |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo starts").success());
        }),
    ];
    // One problem, wherever it lies: that there is no segment in its place has the same cause.
    for (what, make) in makes {
        let directory = three("");
        let path = directory.path().join(NAMES[1]);
        fs::remove_file(&path).expect("the segment");
        make(&path);
        let ran = check(&["--as", "archive"], &[directory.path().to_owned()]).exits(4);
        assert_eq!(kinds(&ran), [("not_wal".to_owned(), NAMES[1].to_owned())], "{what}");
    }
    for (what, make) in makes {
        let directory = three("");
        let path = directory.path().join("00000001000000000000000A");
        make(&path);
        let given = [NAMES[0], NAMES[1], NAMES[2]].map(|name| directory.path().join(name));
        for paths in [vec![directory.path().to_owned()], [&given[..], &[path]].concat()] {
            let ran = check(&[], &paths).exits(4);
            let want = ("not_wal".to_owned(), "00000001000000000000000A".to_owned());
            assert_eq!(kinds(&ran), [want], "{what}");
            assert_eq!(count(&ran), of_three(), "{what}: the others are read");
        }
    }
}

// ---- what it is taken for ----

/// The last segment of the sample is open.
fn open() -> TempDir {
    let (directory, sample) = (directory(), sample("pg15-mixed"));
    for name in ["000000010000000000000016", "000000010000000000000017"] {
        put(directory.path(), name, &plain(&sample, name));
    }
    directory
}

#[test]
fn where_it_lies_decides_what_may_be_open() {
    let last = "000000010000000000000017";
    let taken_for = |ran: &Ran| ran.json()["input"]["taken_for"].as_str().map(str::to_owned);
    let directory = open();
    let ran = check(&[], &[directory.path()]).exits(0);
    assert_eq!(taken_for(&ran).as_deref(), Some("copy"));
    let told = said(&[directory.path()]).exits(0).stdout;
    assert!(told.contains(last) && told.contains("--as archive"), "{told}");

    let ran = check(&["--as", "archive"], &[directory.path()]).exits(4);
    assert_eq!(taken_for(&ran).as_deref(), Some("archive"));
    assert_eq!(kinds(&ran), [("open_segment".into(), last.into())]);
    check(&["--as", "pg_wal"], &[directory.path()]).exits(0);

    fs::create_dir(directory.path().join("archive_status")).expect("a directory");
    let ran = check(&[], &[directory.path()]).exits(0);
    assert_eq!(taken_for(&ran).as_deref(), Some("pg_wal"));
    let told = said(&[directory.path()]).exits(0).stdout;
    assert!(!told.contains("--as archive"), "{told}");

    // An archiver's tree, and what only archivers compress.
    let sample = sample("pg15-mixed");
    let (grouped, compressed) = (self::directory(), self::directory());
    put(&grouped.path().join("0000000100000000"), last, &plain(&sample, last));
    put(compressed.path(), &format!("{last}.gz"), &gzip(&plain(&sample, last)));
    for directory in [grouped, compressed] {
        let ran = check(&[], &[directory.path()]).exits(4);
        assert_eq!(taken_for(&ran).as_deref(), Some("archive"));
        assert_eq!(kinds(&ran)[0].0, "open_segment");
        check(&["--as", "pg_wal"], &[directory.path()]).exits(0);
    }
}

/// The WAL of many servers lies on a disk of its own.
#[cfg(unix)]
#[test]
fn a_servers_directory_may_be_a_link() {
    let (data, disk) = (directory(), three("wal"));
    put(data.path(), "PG_VERSION", b"15\n");
    fs::create_dir(data.path().join("global")).expect("a directory");
    let link = data.path().join("pg_wal");
    std::os::unix::fs::symlink(disk.path().join("wal"), &link).expect("a link");
    for path in [link.clone(), link.join(NAMES[0])] {
        let ran = check(&[], &[path]).exits(0);
        assert_eq!(ran.json()["input"]["taken_for"], "pg_wal");
    }
}

#[test]
fn a_hole_before_empty_segments_is_missing_where_the_wal_went_on() {
    for zeros in ["00000001000000000000000B", "00000001000000000000000C"] {
        let directory = three("");
        put(directory.path(), zeros, &vec![0; 1 << 20]);
        let ran = check(&[], &[directory.path()]).exits(4);
        let want = ("missing_segment".to_owned(), "00000001000000000000000A".to_owned());
        assert_eq!(kinds(&ran), [want]);
    }
    // Where it did not, nothing is missing, but in an archive.
    let directory = open();
    put(directory.path(), "000000010000000000000019", &vec![0; 1 << 20]);
    check(&[], &[directory.path()]).exits(0);
    check(&["--as", "archive"], &[directory.path()]).exits(4);
}

// ---- ranges ----

#[test]
fn a_range_must_be_covered() {
    let directory = three("");
    for range in [["-s", "0/500000"], ["-e", "0/B00000"]] {
        let ran = check(&range, &[directory.path()]).exits(4);
        assert_eq!(kinds(&ran)[0].0, "range_not_covered", "{range:?}");
        let mut command = command(&["--stats", "-f", "json"]);
        let ran = finish(command.args(range).arg(directory.path())).exits(0);
        let notes = ran.json()["notes"].to_string();
        assert!(notes.contains("0/00700000 to 0/0"), "{range:?}: {notes}");
    }
    check(&["-s", "0/700000", "-e", "0/900000"], &[directory.path()]).exits(0);
}

/// Where it ends in missing segments, they are what it lacks.
#[test]
fn a_range_that_ends_in_missing_segments_names_them() {
    let directory = three("");
    let (first, missing) = ("000000010000000000000007", "000000010000000000000008");
    fs::remove_file(directory.path().join(missing)).expect("the segment");
    let text = format!("; {missing} is missing");
    for end in ["0/800010", "0/8FFFFF", "0/900000"] {
        let ran = check(&["-e", end], &[directory.path()]).exits(4);
        assert_eq!(kinds(&ran), [("range_not_covered".to_owned(), first.to_owned())], "{end}");
        assert!(ran.stdout.contains(&text), "{end}: {}", ran.stdout);
    }
    check(&["-e", "0/800000"], &[directory.path()]).exits(0);
}

// ---- tars ----

#[test]
fn names_of_other_files_come_in_one_order() {
    let directory = three("");
    for name in ["zebra", "apple", "notes.txt"] {
        put(directory.path(), name, b"text");
    }
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["notes.txt", NAMES[2], "zebra", NAMES[0], "apple", NAMES[1]] {
        let bytes = fs::read(directory.path().join(name)).expect("a file");
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, bytes.as_slice()).expect("a vector takes all");
    }
    let beside = self::directory();
    let tar = put(beside.path(), "all.tar", &tar.into_inner().expect("a vector takes all"));
    let others = |ran: Ran| ran.json()["input"]["other_files"].clone();
    let want = others(check(&[], &[directory.path()]).exits(0));
    assert_eq!(want, serde_json::json!(["apple", "notes.txt", "zebra"]));
    assert_eq!(others(check(&[], &[tar]).exits(0)), want);
}

/// Each of them was once a window of half a megabyte.
#[test]
fn many_tiny_members_take_little_time() {
    let mut tar = tar::Builder::new(Vec::new());
    let page = &segment(0)[..100];
    for number in 0..80_000u32 {
        let name = format!("00000001{:08X}{:08X}", number / 4096, number % 4096);
        let mut header = tar::Header::new_ustar();
        header.set_size(page.len() as u64);
        tar.append_data(&mut header, name, page).expect("a vector takes all");
    }
    let directory = directory();
    let tar = put(directory.path(), "many.tar", &tar.into_inner().expect("a vector takes all"));
    let begun = Instant::now();
    check(&[], &[tar]).exits(4);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn a_tar_without_wal_says_where_it_is() {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(5);
    tar.append_data(&mut header, "PG_VERSION", &b"15.1\n"[..]).expect("a vector takes all");
    let directory = directory();
    let base = put(directory.path(), "base.tar", &tar.into_inner().expect("a vector takes all"));
    put(directory.path(), "pg_wal.tar", b"");
    put(directory.path(), "pg_wal.tar.gz", b"");
    let ran = check(&[], &[base]).exits(3);
    assert!(ran.stderr.contains("/pg_wal.tar lies beside it"), "{}", ran.stderr);
    let mut command = command(&["check", "base.tar"]);
    let ran = finish(command.current_dir(directory.path())).exits(3);
    assert!(ran.stderr.contains("; pg_wal.tar lies beside it"), "{}", ran.stderr);
}

/// A server renames segments while its directory is listed, so that none may be seen at first.
#[test]
fn a_servers_directory_without_segments_is_looked_at_again() {
    let directory = directory();
    fs::create_dir(directory.path().join("archive_status")).expect("a directory");
    let aside = put(directory.path(), "aside", &segment(0));
    let segment = directory.path().join(NAMES[0]);
    let server = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        fs::rename(aside, segment).expect("renamed");
    });
    let ran = check(&[], &[directory.path()]);
    server.join().expect("the server");
    ran.exits(0);
}
