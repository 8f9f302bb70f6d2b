//! Whatever way the same files come, as a directory, in a tar in any order, as partial results: the
//! same is counted, and the same is wrong with them.

use crate::support::fixtures::sample;
use crate::support::wal::{plain, put};
use crate::support::{Ran, walstat};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

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

/// A tar of these files, in this order.
pub(crate) fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, *bytes).expect("a vector takes all");
    }
    tar.into_inner().expect("a vector takes all")
}

fn report(options: &[&str], path: &Path) -> Ran {
    let path = path.to_str().expect("a path in UTF-8");
    walstat(&[&["--stats=record", "--format=json"], options, &[path]].concat())
}

/// A report of what a partial result of `path` says.
fn merged(options: &[&str], path: &Path) -> Ran {
    let folder = directory();
    let part = folder.path().join("part").to_str().expect("a path in UTF-8").to_owned();
    let ran = report(&[&["--partial", "-o", &part], options].concat(), path);
    assert!(matches!(ran.code, Some(0 | 4)), "{}: {}", ran.call, ran.stderr);
    walstat(&["merge", &part])
}

/// What is the same however files come.
fn told(ran: &Ran) -> (Option<i32>, Value) {
    let mut json = ran.json();
    json["input"]["paths"] = Value::Null;
    (ran.code, json)
}

/// The files as a directory, in a tar, and as partial results of both.
#[track_caller]
fn every_way(options: &[&str], files: &[(&str, &[u8])]) -> (Option<i32>, Value) {
    let (folder, beside) = (directory(), directory());
    for (name, bytes) in files {
        put(folder.path(), name, bytes);
    }
    let tar = put(beside.path(), "files.tar", &tar_of(files));
    // Texts name files by where they lie.
    let places = [tar.as_path(), folder.path()].map(|path| path.to_str().expect("a path in UTF-8"));
    let told = |ran: &Ran| {
        let (code, json) = told(ran);
        let text = places.iter().fold(json.to_string(), |text, place| text.replace(place, "HERE"));
        (code, serde_json::from_str(&text).expect("JSON"))
    };
    let want: (Option<i32>, Value) = told(&report(options, folder.path()));
    assert_eq!(told(&report(options, &tar)), want, "{options:?}: tar");
    assert_eq!(told(&merged(options, folder.path())), want, "{options:?}: partial");
    assert_eq!(told(&merged(options, &tar)), want, "{options:?}: partial of a tar");
    want
}

fn kinds(report: &Value) -> Vec<&str> {
    let problems = report["problems"].as_array().expect("problems");
    problems.iter().filter_map(|problem| problem["kind"].as_str()).collect()
}

/// Timelines begin with records that few filters let pass.
#[test]
fn filters_hide_nothing_that_timelines_begin_with() {
    let sample = sample("timeline");
    let mut files = Vec::new();
    for entry in fs::read_dir(&sample.wal).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        files.push((name, fs::read(&path).expect("a file")));
    }
    files.sort();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
    for options in [&[][..], &["-r", "Heap"], &["-x", "1"]] {
        let (code, report) = every_way(options, &files);
        assert_eq!((code, kinds(&report)), (Some(0), vec![]), "{options:?}");
    }
}

#[test]
fn a_suffix_promises_what_it_does_beside_all_others() {
    let usual: Vec<(String, Vec<u8>)> =
        (0..3).map(|index| (format!("{}.gz", NAMES[index]), gzip(&segment(index)))).collect();
    let half = &usual[1].1[..usual[1].1.len() / 2];
    let unusual = format!("{}.gzip", NAMES[1]);
    // Nobody asks for it where there are others, and it is all there is alone.
    for (files, want) in [(&usual[..], 0), (&usual[..0], 4)] {
        let mut files: Vec<(&str, &[u8])> =
            files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        files.insert(files.len().min(1), (&unusual, half));
        let (code, report) = every_way(&[], &files);
        assert_eq!(code, Some(want), "{report:#}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_told_alike_and_waits_for_nobody() {
    let folder = directory();
    (0..3).for_each(|index| {
        put(folder.path(), NAMES[index], &segment(index));
    });
    let path = |name: &str| folder.path().join(name);
    let made = std::process::Command::new("mkfifo").arg(path("00000001000000000000000A")).status();
    assert!(made.expect("mkfifo starts").success());
    std::os::unix::fs::symlink("nowhere", path("00000001000000000000000B")).expect("a link");
    fs::create_dir(path("00000001000000000000000C")).expect("a directory");
    let whole = told(&report(&[], folder.path()));
    assert_eq!(kinds(&whole.1), ["not_wal"; 3]);
    assert_eq!(told(&merged(&[], folder.path())), whole);
}

/// With a limit, a range may end in the first member, and all others still lie before it.
#[test]
fn a_limit_that_is_not_met_ends_nothing() {
    let [first, second, third] = [segment(0), segment(1), segment(2)];
    let files: [(&str, &[u8]); 3] = [(NAMES[1], &second), (NAMES[0], &first), (NAMES[2], &third)];
    let (folder, beside) = (directory(), directory());
    for (name, bytes) in files {
        put(folder.path(), name, bytes);
    }
    let tar = put(beside.path(), "files.tar", &tar_of(&files));
    for options in [&["-n", "1000000", "-e", "0/880000"][..], &["-n", "1000000"]] {
        let want = report(options, folder.path()).exits(0).json();
        let ran = report(options, &tar).exits(0).json();
        assert_eq!(ran["totals"], want["totals"], "{options:?}");
    }
    // Over a hole as well.
    let files: [(&str, &[u8]); 2] = [(NAMES[0], &first), (NAMES[2], &third)];
    let tar = put(beside.path(), "hole.tar", &tar_of(&files));
    let first = put(&beside.path().join("first"), NAMES[0], &first);
    let alone = report(&[], &first).json()["totals"]["count"].as_u64().expect("a count");
    for limit in [alone - 1, alone, alone + 1, alone + 7] {
        let ran = report(&["-n", &limit.to_string()], &tar);
        assert!(ran.json()["totals"]["count"].as_u64() <= Some(limit), "{limit}");
    }
}

/// The first records of the WAL are wanted, not those of the first member.
#[test]
fn a_limit_over_members_in_no_order_is_refused() {
    let segments = [segment(0), segment(1), segment(2)];
    let beside = directory();
    let of = |order: [usize; 3], name: &str| {
        let files = order.map(|index| (NAMES[index], segments[index].as_slice()));
        put(beside.path(), name, &tar_of(&files))
    };
    let (sorted, mixed) = (of([0, 1, 2], "sorted.tar"), of([1, 0, 2], "mixed.tar"));
    let count = |tar| report(&["-n", "5"], tar).exits(0).json()["totals"]["count"].as_u64();
    assert_eq!(count(&sorted), Some(5));
    let refused = report(&["-n", "5"], &mixed).exits(3);
    assert!(
        refused.stderr.contains("mixed.tar: its segments are not in WAL order"),
        "{}",
        refused.stderr
    );
}

/// The SHA-1 in a name is no part of the bytes: each name is held against them.
#[test]
fn copies_of_the_same_bytes_under_another_checksum_are_told() {
    use sha1::{Digest, Sha1};
    let sha1 = |index: usize| -> String {
        Sha1::digest(segment(index)).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let wrong: String = sha1(1).chars().rev().collect();
    let [before, right, after] =
        [0, 1, 2].map(|index| format!("{}-{}.gz", NAMES[index], sha1(index)));
    let wrong = format!("{}-{wrong}.gz", NAMES[1]);
    let [first, packed, third] = [0, 1, 2].map(|index| gzip(&segment(index)));
    let files: [(&str, &[u8]); 4] =
        [(&before, &first), (&right, &packed), (&wrong, &packed), (&after, &third)];
    let (code, report) = every_way(&[], &files);
    assert_eq!((code, kinds(&report)), (Some(4), vec!["duplicate_differs"]), "{report:#}");
    assert!(report["problems"][0]["found"].as_str().is_some_and(|found| found.contains(&wrong)));
}

/// Many copies of neighbours are not read in every combination.
#[test]
fn copies_are_read_in_few_chains() {
    use walstat_read::input::discover::discover;
    use walstat_read::scan::observer::Observer;
    use walstat_read::scan::progress::Progress;
    use walstat_read::scan::read::read_found;
    use walstat_read::scan::streamed::Wanted;
    const COPIES: usize = 6;
    let folder = directory();
    put(&folder.path().join("0"), NAMES[0], &segment(0));
    for copy in 0..COPIES {
        for index in [1, 2] {
            let mut bytes = segment(index);
            // After a page's short header lie four bytes that nobody looks at.
            bytes[8192 + 20] = copy as u8;
            put(&folder.path().join(copy.to_string()), NAMES[index], &bytes);
        }
    }
    let paths: Vec<PathBuf> =
        (0..COPIES).map(|copy| folder.path().join(copy.to_string())).collect();
    let progress = Progress::default();
    let (found, one) = (discover(&paths).expect("files"), std::num::NonZeroUsize::MIN);
    let read = read_found(found, Wanted::default(), one, &progress, &Observer::default());
    let (_, outcome) = read.expect("WAL");
    assert_eq!(outcome.problems, []);
    let segments = progress.read_bytes() >> 20;
    // Each copy once in its chain, once more before another: not before all others.
    assert!(segments < 8 * COPIES as u64 + 8, "{segments} segments read");
}

/// A copy that grows while it is read is no end of WAL, where more follows.
#[test]
fn an_archive_into_which_somebody_copies_is_not_whole() {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = directory();
    let bytes = segment(1);
    put(folder.path(), NAMES[0], &segment(0));
    let path = put(folder.path(), NAMES[1], &bytes[..bytes.len() / 4]);
    put(folder.path(), NAMES[2], &segment(2));
    let over = AtomicBool::new(false);
    let codes = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut file = fs::File::options().append(true).open(&path).expect("the file");
            // It never becomes whole.
            for piece in bytes[bytes.len() / 4..bytes.len() - 512].chunks(512) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all(piece).expect("written");
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        let check = |told: &[&str]| {
            let path = folder.path().to_str().expect("a path");
            walstat(&[&["check", "-f", "json"], told, &[path]].concat()).code
        };
        let codes = [check(&["--as", "archive"]), check(&[])];
        over.store(true, Ordering::Relaxed);
        codes
    });
    assert_eq!(codes, [Some(4), Some(4)]);
}

/// A file that is too short, below the archive, is a copy under way in a partial result, too.
#[test]
fn an_unfinished_copy_below_the_archive_is_one_in_a_partial_result() {
    let directory = directory();
    for (index, name) in NAMES[..2].iter().enumerate() {
        fs::write(directory.path().join(name), segment(index)).expect("a segment");
    }
    let below = directory.path().join("snapshots/friday");
    fs::create_dir_all(&below).expect("directories");
    fs::write(below.join(NAMES[2]), &segment(2)[..300_000]).expect("a segment");
    let options = ["--as", "archive"];
    let whole = told(&report(&options, directory.path()));
    assert_eq!(whole.0, Some(0), "{}", whole.1);
    assert!(whole.1["notes"].to_string().contains("an unfinished copy"), "{}", whole.1);
    assert_eq!(whole, told(&merged(&options, directory.path())));
}
