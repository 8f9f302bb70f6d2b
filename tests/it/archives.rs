//! Archives as the real tools leave them, kept small under `tests/fixtures/archives`: whatever
//! the form, the report is that of the raw segments. The tools themselves run in
//! `live/archives.rs`.

use crate::support::{Ran, command, finish, json_of, walstat};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The last segment of most trees is open: the server had not filled it when it was stopped. So they
/// are taken for what it left; what they promise as archives is `an_open_segment_is_told`'s affair.
const JSON: [&str; 5] = ["--stats=record", "--format", "json", "--as", "pg_wal"];
const AS_SERVER: [&str; 3] = ["--stats=record", "--as", "pg_wal"];

/// Where a tree of the fixture lies, unpacked once for all runs of the tests.
fn tree(name: &str) -> PathBuf {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let packed = crate::support::fixtures::fixtures().join("archives/trees.tar.zst");
    let bytes = fs::read(packed).expect("the fixture");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = root.join(format!("archives-{:08x}", crc32c::crc32c(&bytes)));
    let _only_one = LOCK.lock();
    if !target.is_dir() {
        let half = tempfile::tempdir_in(root).expect("a folder");
        let decoder = zstd::Decoder::new(bytes.as_slice()).expect("a zstd decoder");
        tar::Archive::new(decoder).unpack(half.path()).expect("the fixture unpacks");
        fs::rename(half.keep(), &target).expect("the folder can be renamed");
    }
    target.join("trees").join(name)
}

/// All plain files of a tree, by name.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let name = path.file_name().and_then(OsStr::to_str).expect("a name");
            found.insert(name.to_owned(), fs::read(&path).expect("a file"));
        }
    }
    found
}

fn segments(name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = files(&tree(name));
    all.retain(|name, _| name.len() == 24);
    assert!(all.len() >= 8, "{name} has segments");
    all
}

/// Files in a folder of their own, as old as a file in an archive is.
fn folder<'f>(files: impl IntoIterator<Item = (&'f String, &'f Vec<u8>)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        crate::support::wal::file(folder.path(), name, bytes);
    }
    folder
}

/// A tar of files, in the order given.
fn tar_of<'f>(files: impl IntoIterator<Item = (&'f String, &'f Vec<u8>)>) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, bytes.as_slice()).expect("a vector takes all");
    }
    tar.into_inner().expect("a vector takes all")
}

/// Runs the program with `bytes` coming through a pipe.
fn piped(arguments: &[&str], bytes: Vec<u8>) -> Ran {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut command = command(&[&JSON[..], arguments, &["-"]].concat());
    command.stdin(reader);
    // The program need not read to the end.
    let feeder = std::thread::spawn(move || drop(writer.write_all(&bytes)));
    let ran = finish(&mut command);
    drop(command);
    feeder.join().expect("the feeder ends");
    ran
}

fn of_path(path: &Path) -> Ran {
    walstat(&[&JSON.map(OsStr::new)[..], &[path.as_os_str()]].concat())
}

/// What a report says of the WAL rather than of the files: a file that is not padded has fewer
/// zeros, and a second copy is a duplicate.
fn of_wal(report: &Value) -> Value {
    let mut report = report.clone();
    check_books(&report);
    for key in ["paths", "other_files", "taken_for"] {
        report["input"][key].take();
    }
    for key in ["input_bytes", "zero_bytes", "duplicate_bytes"] {
        report["books"][key].take();
    }
    // Of a packing that not every Barman knows.
    let is_barmans = |note: &Value| note.as_str().is_some_and(|note| note.contains("Barman"));
    if let Some(notes) = report["notes"].as_array_mut() {
        notes.retain(|note| !is_barmans(note));
    }
    report
}

fn check_books(report: &Value) {
    let books = report["books"].as_object().expect("books");
    let parts = books.iter().filter(|(key, _)| *key != "input_bytes");
    let sum: u64 = parts.filter_map(|(_, bytes)| bytes.as_u64()).sum();
    assert_eq!(books["input_bytes"], sum, "{books:?}");
    assert_eq!(books["unaccounted_bytes"], 0, "{books:?}");
}

fn raw() -> Value {
    let report = json_of(&AS_SERVER, &tree("raw"));
    assert_eq!(report["input"]["segments"], 10);
    assert_eq!(report["ending"]["kind"], "shutdown");
    of_wal(&report)
}

/// Kind and segment of each problem.
fn problems(ran: &Ran) -> Vec<(String, String)> {
    let report = ran.json();
    check_books(&report);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = report["problems"].as_array().expect("problems").clone();
    all.iter().map(|p| (text(&p["kind"]), text(&p["segment"]))).collect()
}

#[track_caller]
fn has_problem(ran: &Ran, kinds: &[&str], segment: &str) {
    let all = problems(ran);
    let found = all.iter().any(|(k, s)| kinds.contains(&k.as_str()) && s.starts_with(segment));
    assert!(found, "{kinds:?} of {segment} in {all:?} of {}", ran.call);
}

fn count(ran: &Ran) -> u64 {
    ran.json()["totals"]["count"].as_u64().expect("a count")
}

#[test]
fn every_archive_gives_the_report_of_the_raw_segments() {
    let want = raw();
    let trees = ["pgbackrest-none", "pgbackrest-gz", "pgbackrest-lz4", "pgbackrest-zst"]
        .into_iter()
        .chain(["pgbackrest-bz2", "barman-none", "barman-gzip", "barman-bzip2", "barman-xz"])
        .chain(["barman-lz4", "barman-zstd", "receivewal-none", "receivewal-gzip"])
        .chain(["receivewal-lz4", "pgbackrest-zst/archive/demo", "barman-gzip/wals"])
        .chain(["pgbackrest-lz4/archive/demo/15-1", "barman-xz/wals/0000000100000000"]);
    for name in trees {
        let report = json_of(&AS_SERVER, &tree(name));
        assert_eq!(of_wal(&report), want, "{name}");
        let piped = piped(&[], tar_of(&files(&tree(name)))).exits(0);
        assert_eq!(of_wal(&piped.json()), want, "tar of {name} on standard input");
    }
}

#[test]
fn single_files_of_archives_are_read() {
    for (name, first) in [("barman-bzip2", "000000010000000000000007"), ("raw", "")] {
        let all = files(&tree(name));
        let one = all.iter().find(|(name, _)| name.starts_with(first)).expect("a segment");
        let alone = folder([one]);
        assert_eq!(of_path(&alone.path().join(one.0)).exits(0).json()["input"]["segments"], 1);
    }
}

#[test]
fn an_encrypted_repository_says_so_and_how_to_go_on() {
    let ran = of_path(&tree("pgbackrest-cipher")).exits(3);
    for word in ["encrypted", "pgBackRest", "walstat -"] {
        assert!(ran.stderr.contains(word), "{word} in {}", ran.stderr);
    }
    let ran = piped(&[], tar_of(&files(&tree("pgbackrest-cipher")))).exits(3);
    assert!(ran.stderr.contains("encrypted"), "{}", ran.stderr);
}

#[test]
fn an_encrypted_segment_among_others_is_named() {
    let mut all = segments("raw");
    let mut secret = files(&tree("pgbackrest-cipher"));
    secret.retain(|name, _| name.starts_with("00000001000000000000000A"));
    all.remove("00000001000000000000000A");
    all.extend(secret);
    let folder = folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        let ran = ran.exits(4);
        has_problem(&ran, &["missing_segment"], "00000001000000000000000A");
        assert!(ran.stdout.contains("encrypted"), "{}: {:?}", ran.call, problems(&ran));
    }
}

#[test]
fn an_encrypted_copy_beside_its_segment_is_passed_over() {
    let mut all = segments("raw");
    let secret = files(&tree("pgbackrest-cipher"));
    let names = secret.keys().filter(|name| name.starts_with("0000")).cloned();
    let names: Vec<String> = names.collect();
    all.extend(secret);
    let folder = folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        let report = ran.exits(0).json();
        assert_eq!(report["totals"], raw()["totals"]);
        let others = report["input"]["other_files"].to_string();
        assert!(names.iter().all(|name| others.contains(name)), "{others}");
    }
}

#[test]
fn files_that_are_not_read_are_named() {
    let others = |ran: Ran| {
        let others = ran.exits(0).json()["input"]["other_files"].take();
        let mut names: Vec<String> = serde_json::from_value(others).expect("names");
        names.sort();
        names
    };
    for name in ["barman-gzip", "pgbackrest-none", "promotion"] {
        let folder = tree(name);
        let found = others(of_path(&folder));
        assert!(!found.is_empty(), "{name}");
        // A tar is looked through as a whole, a repository's directory only where WAL lies.
        let streamed = others(piped(&[], tar_of(&files(&folder))));
        assert!(found.iter().all(|name| streamed.contains(name)), "{name}: {streamed:?}");
    }
}

#[test]
fn the_sha1_in_a_name_is_checked() {
    let mut all = files(&tree("pgbackrest-none"));
    let name = all.keys().find(|name| name.starts_with("00000001000000000000000A"));
    let name = name.expect("a segment").clone();
    // Behind the last record, where no other checksum reaches.
    *all.get_mut(&name).and_then(|bytes| bytes.last_mut()).expect("bytes") ^= 1;
    let folder = folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        let ran = ran.exits(0);
        assert_eq!(problems(&ran), [], "pgBackRest hands it out, and a server restores it");
        let notes = ran.json()["notes"].to_string();
        assert!(notes.contains(&format!("{name}: expected SHA-1")), "{notes}");
    }
    // Also of a file that was cut off.
    all.get_mut(&name).expect("bytes").truncate(1 << 19);
    let folder = self::folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        let ran = ran.exits(4);
        has_problem(&ran, &["archive_checksum"], &name);
        has_problem(&ran, &["truncated"], &name[..24]);
    }
}

#[test]
fn what_a_receiver_is_writing_is_a_normal_end() {
    let want = raw()["totals"]["count"].as_u64().expect("a count");
    let normal = ["zeroed", "recycled", "partial_page", "incomplete_record", "switch"];
    for name in ["receiving-none", "receiving-gzip", "receiving-lz4", "live"] {
        let folder = tree(name);
        for ran in [of_path(&folder), piped(&[], tar_of(&files(&folder)))] {
            let report = ran.clone().exits(0).json();
            assert_eq!(problems(&ran), [], "{name}");
            let kind = report["ending"]["kind"].as_str().expect("a kind");
            assert!(normal.contains(&kind), "{name} ends {kind}");
            assert_eq!(report["input"]["segments"], 8, "{name}: the partial one is read");
            assert!((2000..want).contains(&count(&ran)), "{name}: {}", count(&ran));
        }
    }
}

#[test]
fn tars_of_base_backups_are_read() {
    let plain = of_path(&tree("basebackup")).exits(0);
    assert_eq!(count(&plain), 4);
    assert_eq!(count(&of_path(&tree("basebackup-gzip")).exits(0)), 4);

    // As `-X fetch` lays it: WAL in the tar of the data directory, among other files.
    let mut members = vec![("backup_label".to_owned(), b"START WAL LOCATION".to_vec())];
    let wal = segments("raw").into_iter().map(|(name, bytes)| (format!("pg_wal/{name}"), bytes));
    members.extend(wal);
    members.push(("global/pg_control".to_owned(), vec![7; 8192]));
    let tar = tar_of(members.iter().map(|(name, bytes)| (name, bytes)));
    let zstd = zstd::encode_all(tar.as_slice(), 1).expect("a vector takes all");
    for (name, bytes) in [("base.tar", &tar), ("base.tar.zst", &zstd)] {
        let folder = folder([(&name.to_owned(), bytes)]);
        let manifest = crate::support::wal::file(folder.path(), "backup_manifest", b"{}");
        assert_eq!(of_wal(&of_path(folder.path()).exits(0).json()), raw(), "{name}");
        assert!(manifest.exists());
        assert_eq!(of_wal(&of_path(&folder.path().join(name)).exits(0).json()), raw(), "{name}");
        assert_eq!(of_wal(&piped(&[], bytes.clone()).exits(0).json()), raw(), "{name}, piped");
    }
}

#[test]
fn standard_input_takes_segments_in_any_order_and_form() {
    let (all, want) = (segments("raw"), raw());
    let bytes = |all: &BTreeMap<String, Vec<u8>>| all.values().flatten().copied().collect();
    let orders: [Vec<u8>; 3] =
        [bytes(&all), all.values().rev().flatten().copied().collect(), tar_of(all.iter().rev())];
    for (index, bytes) in orders.into_iter().enumerate() {
        let ran = piped(&[], bytes).exits(0);
        assert_eq!(of_wal(&ran.json()), want, "order {index}");
    }
    for name in ["barman-gzip", "barman-bzip2", "barman-xz", "barman-lz4", "barman-zstd"] {
        let ran = piped(&[], bytes(&segments(name))).exits(0);
        assert_eq!(of_wal(&ran.json()), want, "{name}, one behind the other");
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar_of(all.iter().rev())).expect("a vector takes all");
    let ran = piped(&[], gzip.finish().expect("gzip ends")).exits(0);
    assert_eq!(of_wal(&ran.json()), want, "tar.gz");
}

#[test]
fn a_stream_that_is_cut_off_says_so() {
    let tar = tar_of(&segments("raw"));
    let zstd = zstd::encode_all(tar.as_slice(), 1).expect("a vector takes all");
    for bytes in [&tar[..tar.len() / 2], &tar[..5 * (1 << 20) + 5 * 512], &zstd[..zstd.len() / 2]] {
        let ran = piped(&[], bytes.to_vec()).exits(4);
        assert!(!problems(&ran).is_empty(), "a problem is named");
        assert!(count(&ran) > 0, "what came before is counted");
    }
}

#[test]
fn copies_of_a_segment_count_once() {
    let (mut all, want) = (segments("raw"), raw());
    let one = all["000000010000000000000008"].clone();
    let zstd = zstd::encode_all(one.as_slice(), 1).expect("a vector takes all");
    all.insert("000000010000000000000008.zst".into(), zstd);
    all.insert("000000010000000000000008.partial".into(), one[..500_000].to_vec());
    let folder = folder(&all);
    for ran in
        [of_path(folder.path()), piped(&[], tar_of(&all)), piped(&[], tar_of(all.iter().rev()))]
    {
        let report = ran.exits(0).json();
        assert_eq!(of_wal(&report), want);
        assert_eq!(report["books"]["duplicate_bytes"], (1 << 20) + 500_000);
    }
}

#[test]
fn copies_that_differ_are_a_problem_and_the_rest_is_read() {
    let mut all = segments("raw");
    let mut other = all["00000001000000000000000C"].clone();
    other[5000] ^= 1;
    let zstd = zstd::encode_all(other.as_slice(), 1).expect("a vector takes all");
    all.insert("00000001000000000000000C.zst".into(), zstd);
    let folder = folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        let ran = ran.exits(4);
        has_problem(&ran, &["duplicate_differs"], "00000001000000000000000C");
        assert_eq!(ran.json()["range"]["end"], raw()["range"]["end"], "{}", ran.call);
    }
}

#[test]
fn damage_in_a_fresh_file_is_damage() {
    let mut all = segments("raw");
    all.get_mut("00000001000000000000000C").expect("a segment")[6000] ^= 1;
    let folder = folder(&all);
    let ran = of_path(folder.path()).exits(4);
    assert_eq!(ran.json()["range"]["end"], raw()["range"]["end"], "the rest is read");
}

#[test]
fn a_segment_that_is_too_short_is_named_even_if_no_record_is_missing() {
    let mut all = segments("raw");
    all.get_mut("00000001000000000000000A").expect("a segment").truncate(500_000);
    let folder = folder(&all);
    for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
        has_problem(&ran.exits(4), &["truncated"], "00000001000000000000000A");
    }
}

#[test]
fn one_broken_member_does_not_end_a_tar() {
    for name in ["barman-zstd", "barman-gzip", "barman-lz4", "barman-xz", "barman-bzip2"] {
        let mut cut = segments(name);
        let bytes = cut.get_mut("00000001000000000000000A").expect("a segment");
        bytes.truncate(bytes.len() / 2);
        let mut flipped = segments(name);
        let bytes = flipped.get_mut("00000001000000000000000A").expect("a segment");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        for all in [cut, flipped] {
            let folder = folder(&all);
            for ran in [of_path(folder.path()), piped(&[], tar_of(&all))] {
                let ran = ran.exits(4);
                has_problem(
                    &ran,
                    &["truncated", "unreadable", "codec_checksum", "not_wal"],
                    "00000001000000000000000A",
                );
                assert_eq!(
                    ran.json()["range"]["end"],
                    raw()["range"]["end"],
                    "{name}: {}",
                    ran.call
                );
            }
        }
    }
}

#[test]
fn a_segment_that_was_never_written_is_normal_wherever_it_lies() {
    let all = segments("raw");
    let empty = ("000000010000000000000020".to_owned(), vec![0; 1 << 20]);
    let first = [(&empty.0, &empty.1)].into_iter().chain(&all);
    let last = all.iter().chain([(&empty.0, &empty.1)]);
    for tar in [tar_of(first), tar_of(last)] {
        let report = piped(&[], tar).exits(0).json();
        assert_eq!(report["totals"], raw()["totals"]);
    }
}

/// What `facts` of the fixture says.
fn fact(key: &str) -> String {
    let text = fs::read_to_string(tree("facts")).expect("facts");
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("{key} in {text}")).trim().to_owned()
}

#[test]
fn a_promotion_is_followed_to_the_newest_timeline_or_the_one_asked_for() {
    let folder = tree("promotion");
    for (timeline, start) in [("1", "0/700028"), ("2", "0/D00028")] {
        let golden = fs::read_to_string(tree(&format!("promotion-{timeline}.txt")));
        let end = fact(&format!("end-{timeline}"));
        let call = ["--stats=record", "-f", "pg_waldump", "-t", timeline, "-s", start, "-e", &end];
        let call = [&call.map(OsStr::new)[..], &[folder.as_os_str()]].concat();
        assert_eq!(walstat(&call).exits(0).stdout, golden.expect("a golden"));
    }
    let others = |report: &Value, names: &[&str]| {
        let others = report["input"]["other_files"].as_array().expect("a list").clone();
        for name in names {
            assert!(others.iter().any(|other| other == name), "{name} in {others:?}");
        }
    };
    for ran in [of_path(&folder), piped(&[], tar_of(&files(&folder)))] {
        let report = ran.exits(0).json();
        assert_eq!(report["input"]["timelines"], serde_json::json!([1, 2]));
        assert_eq!(report["input"]["segments"], 10);
        others(&report, &["00000001000000000000000D", "00000001000000000000000E"]);
    }
    let first = json_of(&["--stats=record", "-t", "1"], &folder);
    assert_eq!(first["input"]["timelines"], serde_json::json!([1]));
    others(&first, &["00000002000000000000000D", "00000002000000000000000F"]);
}

/// As the new primary alone archives it: the old timeline ends in a `.partial`.
#[test]
fn a_partial_segment_at_the_switch_ends_its_timeline() {
    let mut all = files(&tree("promotion"));
    all.retain(|name, _| {
        !matches!(name.as_str(), "00000001000000000000000D" | "00000001000000000000000E")
    });
    let folder = folder(&all);
    let switch = "0/00D3D728";
    for ran in [
        walstat(
            &[&JSON.map(OsStr::new)[..], &["-t".as_ref(), "1".as_ref(), folder.path().as_ref()]]
                .concat(),
        ),
        piped(&["-t", "1"], tar_of(&all)),
    ] {
        let ending = ran.exits(0).json()["ending"].clone();
        assert_eq!((&ending["kind"], &ending["lsn"]), (&"timeline_switch".into(), &switch.into()));
    }
    let history = String::from_utf8(all["00000002.history"].clone()).expect("a text");
    assert!(history.contains(&switch.replace("0/00", "0/")), "{history}");
}
