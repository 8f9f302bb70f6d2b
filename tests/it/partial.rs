//! Partial results: segments read apart, in any grouping, put together in any order, give the report
//! of the whole, byte for byte; what does not belong together is refused with both values named.

mod beside;

use crate::support::fixtures::{sample, sample_names};
use crate::support::pgbackrest::sha1_of;
use crate::support::wal::{plain, put};
use crate::support::{Ran, command, finish, walstat};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Every key but the paths, which are those of the parts.
fn without_paths(ran: &Ran) -> serde_json::Value {
    let mut json = ran.json();
    json["input"]["paths"] = serde_json::Value::Null;
    json
}

/// The files of a directory, by name: segments and histories.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let digits = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.bytes().take_while(u8::is_ascii_hexdigit).count() >= 8
    };
    files.retain(|path| path.is_file() && digits(path));
    files.sort();
    files
}

fn call<'a>(words: &[&'a str], paths: &'a [PathBuf]) -> Vec<&'a OsStr> {
    let words = words.iter().map(|word| OsStr::new(*word));
    words.chain(paths.iter().map(|path| path.as_os_str())).collect()
}

/// The partial results of `files`, so many in each, with all histories in each; the last one first.
fn parts(options: &[&str], files: &[PathBuf], each: usize, folder: &Path) -> Vec<PathBuf> {
    let is_history = |path: &&PathBuf| path.to_string_lossy().contains(".history");
    let histories: Vec<PathBuf> = files.iter().filter(is_history).cloned().collect();
    let segments: Vec<PathBuf> = files.iter().filter(|path| !is_history(path)).cloned().collect();
    let mut parts = Vec::new();
    for (index, group) in segments.chunks(each).enumerate() {
        let part = folder.join(format!("{}-{index}.partial", options.len()));
        let part_text = part.to_string_lossy().into_owned();
        let words = [&["--partial", "--output", &part_text], options].concat();
        let paths = [group, &histories].concat();
        let ran = walstat(&call(&words, &paths));
        assert!(matches!(ran.code, Some(0 | 4)), "{}: {:?} {}", ran.call, ran.code, ran.stderr);
        let bytes = fs::metadata(&part).expect("a file").len();
        // What takes records apart later has no such limit.
        let is_small = options.iter().any(|option| option.contains("timeline"))
            || bytes <= 16 * 1024 * group.len() as u64;
        assert!(is_small, "{}: {bytes} bytes", part.display());
        parts.insert(0, part);
    }
    parts
}

#[test]
fn every_sample_cut_into_segments_gives_the_report_of_the_whole() {
    for name in sample_names() {
        let sample = sample(&name);
        let files = files(&sample.wal);
        assert!(!files.is_empty(), "{name}");
        let folder = tempfile::tempdir().expect("a folder");
        for (options, each) in [
            (&["--stats=record", "--format=json"][..], 1),
            (&["--format=json", "-r", "Heap", "-r", "XLOG"][..], 3),
            (&["--stats=table", "--threads=1", "--format=json"][..], 1),
        ] {
            let whole = walstat(&call(options, &files));
            let parts = parts(options, &files, each, folder.path());
            let merged = walstat(&call(&["merge"], &parts));
            assert_eq!(merged.code, whole.code, "{name}: {}", merged.stderr);
            assert_eq!(without_paths(&merged), without_paths(&whole), "{name}, {each} in each");
        }
    }
}

#[test]
fn what_is_told_of_time_is_that_of_the_whole() {
    let all = "--stats=timeline,checkpoint,recovery,replication,commit";
    for name in ["pg9.5-mixed", "pg15-mixed", "pg17-mixed", "overwrite"] {
        let sample = sample(name);
        let files = files(&sample.wal);
        let folder = tempfile::tempdir().expect("a folder");
        for each in [1, 4] {
            let options = [all, "--bucket=1s", "--by-hour", "--link-rate=1MB/s", "--format=json"];
            let whole = walstat(&call(&options, &files));
            let parts = parts(&options, &files, each, folder.path());
            let merged = walstat(&call(&["merge"], &parts));
            assert_eq!(merged.code, whole.code, "{name}: {}", merged.stderr);
            assert_eq!(without_paths(&merged), without_paths(&whole), "{name}, {each} in each");
        }
    }
}

/// The names of files decide which of them a `restore_command` finds, and how they are packed what their
/// names promise.
#[test]
fn what_no_restore_command_finds_is_missing_in_parts_too() {
    let names =
        ["000000010000000000000007", "000000010000000000000008", "000000010000000000000009"];
    let tar = |bytes: &[u8]| {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, names[1], bytes).expect("a member");
        tar.into_inner().expect("a tar")
    };
    let renamed = [".zip", ".gpg", ".enc", ".7z", ".lzo", ".sz", ".Z", ".bak"];
    let renamed = renamed.map(|suffix| (format!("{}{suffix}", names[1]), false));
    let others = [("x000000010000000000000008".to_owned(), false), (names[1].to_owned(), true)];
    for (name, is_tar) in renamed.into_iter().chain(others) {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path().join("archive");
        fs::create_dir(&archive).expect("a folder");
        let mut files = Vec::new();
        for each in names {
            let bytes = plain(&sample("pg15-mixed"), each);
            let is_it = each == names[1];
            let name = if is_it { &name } else { each };
            files.push(put(&archive, name, &if is_it && is_tar { tar(&bytes) } else { bytes }));
        }
        let part = folder.path().join("part").to_string_lossy().into_owned();
        for paths in [files, vec![archive]] {
            let options = ["--stats", "--as=archive", "--format=json"];
            let whole = walstat(&call(&options, &paths));
            walstat(&call(&[&["--partial", "-o", &part], &options[..]].concat(), &paths));
            let merged = walstat(&["merge", &part]);
            let first = (merged.code, &merged.stderr, merged.json());
            assert_eq!(first, (whole.code, &whole.stderr, whole.json()), "{name} in {paths:?}");
        }
    }
}

/// What a segment says of the sizes of its cluster is not that of the others, and it makes a part of its own.
#[test]
fn a_damaged_segment_alone_is_no_other_cluster() {
    let sample = sample("pg15-mixed");
    let archive = tempfile::tempdir().expect("a folder");
    let mut files = Vec::new();
    for (index, name) in sample.segments().into_iter().take(5).enumerate() {
        let mut bytes = plain(&sample, &name);
        if index == 2 {
            // xlp_xlog_blcksz
            bytes[36..40].copy_from_slice(&16384_u32.to_le_bytes());
        }
        files.push(put(archive.path(), &name, &bytes));
    }
    let options = ["--stats", "--as=archive", "--format=json"];
    let whole = walstat(&call(&options, &files)).exits(4);
    assert_eq!(whole.json()["problems"][0]["kind"], "segment_size", "{}", whole.stdout);
    for each in [1, 2, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = parts(&options, &files, each, folder.path());
        for parts in [parts.clone(), parts.iter().rev().cloned().collect()] {
            let merged = walstat(&call(&["merge"], &parts)).exits(4);
            assert_eq!(without_paths(&merged), without_paths(&whole), "{each} in each");
        }
    }
    // Of two alone nobody can tell which one is of the cluster.
    let folder = tempfile::tempdir().expect("a folder");
    let parts = parts(&options, &files[1..3], 1, folder.path());
    let refused = walstat(&call(&["merge"], &parts)).exits(2);
    assert!(refused.stderr.contains(", expected PostgreSQL 15"), "{}", refused.stderr);
}

/// How the segments of a Barman are packed decides which Barmans unpack them.
#[test]
fn how_segments_are_packed_is_told_of_parts_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| finish(command(arguments).current_dir(folder.path()));
    let sample = sample("pg15-mixed");
    let (mut files, mut tar) = (Vec::new(), tar::Builder::new(Vec::new()));
    for (index, name) in sample.segments().into_iter().take(5).enumerate() {
        let mut bytes = plain(&sample, &name);
        if index == 4 {
            // Only the others tell what a segment is that has no first page.
            bytes[..8192].fill(0);
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let packed = match index {
            0 => bytes,
            1 => gzip.write_all(&bytes).and_then(|()| gzip.finish()).expect("gzip"),
            _ => zstd::encode_all(&bytes[..], 1).expect("zstd"),
        };
        let name = format!("wals/0000000100000000/{name}");
        put(folder.path(), &name, &packed);
        let mut header = tar::Header::new_gnu();
        header.set_size(packed.len() as u64);
        tar.append_data(&mut header, &name, &packed[..]).expect("a member");
        files.push(name);
    }
    put(folder.path(), "wals.tar", &tar.into_inner().expect("a tar"));
    let options = ["--stats", "--as=archive", "-f", "json"];
    for path in ["wals", "wals.tar"] {
        let whole = run(&[&options[..], &[path]].concat()).exits(4);
        run(&[&["--partial", "-o", "part"], &options[..], &[path]].concat());
        // What is wrong with a segment without a first page shows where all are put together.
        let merged = run(&["merge", "part"]).exits(4);
        assert_eq!((&merged.stdout, &merged.stderr), (&whole.stdout, &whole.stderr));
        let said = format!("{} and 2 more: packed by zstd, which Barman before", &files[2][22..]);
        assert!(whole.json()["notes"].to_string().contains(&said), "{}", whole.stdout);
    }
    let whole = run(&[&options[..], &["wals"]].concat());
    let mut words = vec!["merge".to_owned()];
    for (index, file) in files.iter().enumerate() {
        words.push(format!("part{index}"));
        let part = ["--partial", "-o", &words[index + 1]];
        run(&[&part[..], &options, &[file]].concat());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let merged = run(&words).exits(4);
    assert_eq!(without_paths(&merged), without_paths(&whole));
    // In steps, too.
    run(&["merge", "--partial", "-o", "joined", "part0", "part1", "part2", "part3"]);
    let merged = run(&["merge", "joined", "part4"]).exits(4);
    assert_eq!(without_paths(&merged), without_paths(&whole));
}

/// Whatever format the parts were made for.
#[test]
fn a_page_of_parts_is_that_of_the_whole() {
    let sample = sample("pg15-mixed");
    let files = files(&sample.wal);
    let folder = tempfile::tempdir().expect("a folder");
    let whole = walstat(&call(&["--format=html"], &files)).exits(0).stdout;
    assert!(whole.contains("id=\"checkpoints\""), "a page with checkpoints");
    let parts = parts(&["--format=html"], &files, 2, folder.path());
    assert_eq!(walstat(&call(&["merge"], &parts)).exits(0).stdout, whole);
    let json = walstat(&call(&["merge", "--format=json"], &parts)).exits(0).json();
    assert_eq!(json["timeline"], serde_json::Value::Null, "of a page alone");
}

#[test]
fn a_page_is_made_of_parts_that_were_counted_for_one() {
    let sample = sample("pg15-mixed");
    let files = files(&sample.wal);
    let folder = tempfile::tempdir().expect("a folder");
    let part = |format: &str, file: &Path| {
        let part = folder.path().join(format!("{format}.partial"));
        let words = ["--partial", "--format", format, "--output", &part.to_string_lossy()];
        walstat(&call(&words, &[file.to_owned()])).exits(0);
        part
    };
    let (plain, paged) = (part("json", &files[0]), part("html", &files[1]));
    let ran = walstat(&call(&["merge", "--format=html"], std::slice::from_ref(&plain))).exits(2);
    assert!(ran.stderr.contains("made without --format html"), "{}", ran.stderr);
    let ran = walstat(&call(&["merge"], &[plain, paged])).exits(2);
    let words = "made with --format html, expected no --format html";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn what_is_asked_of_the_parts_is_what_is_shown() {
    let sample = sample("pg9.6-mixed");
    let files = files(&sample.wal);
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--stats=rmgr", "--format=csv", "--sort=count", "--top=4"];
    let parts = parts(&options, &files, 2, folder.path());
    let whole = walstat(&call(&options, &files)).exits(0);
    assert_eq!(walstat(&call(&["merge"], &parts)).exits(0).stdout, whole.stdout);
    let again = [&["merge"], &options[..]].concat();
    assert_eq!(walstat(&call(&again, &parts)).exits(0).stdout, whole.stdout);
    let shown = ["--stats=rmgr", "--format=json", "--sort=count", "--top=4"];
    let json = walstat(&call(&["merge", "--format=json"], &parts)).exits(0);
    assert_eq!(without_paths(&json), without_paths(&walstat(&call(&shown, &files))));
}

#[test]
fn segments_of_zeros_and_pieces_of_a_long_record_are_parts_too() {
    let sample = sample("pg14-mixed");
    let files = files(&sample.wal);
    let folder = tempfile::tempdir().expect("a folder");
    let zeros = folder.path().join("0000000100000000000000FF");
    fs::write(&zeros, vec![0; 1 << 20]).expect("a file");
    let all = [files.as_slice(), &[zeros]].concat();
    let options = ["--stats=record", "--format=json"];
    let parts = parts(&options, &all, 1, folder.path());
    let whole = walstat(&call(&options, &all));
    let merged = walstat(&call(&["merge"], &parts));
    assert_eq!(without_paths(&merged), without_paths(&whole));
}

#[test]
fn what_does_not_belong_together_is_refused_with_both_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, options: &[&str], out: &str| {
        let file = files(&sample(name).wal)[1].clone();
        let out = folder.path().join(out);
        let text = out.to_string_lossy().into_owned();
        let words = [&["--partial", "--stats=record", "--output", &text], options].concat();
        let ran = walstat(&call(&words, &[file]));
        assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.stderr);
        out
    };
    let first = make("pg14-mixed", &[], "first");
    let refused = |code: i32, other: &Path, words: &[&str]| {
        let ran = walstat(&[OsStr::new("merge"), first.as_os_str(), other.as_os_str()]);
        let ran = ran.exits(code);
        assert_eq!(ran.stdout, "");
        for word in words {
            assert!(ran.stderr.contains(word), "{word} is not in: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    };
    let other = make("pg9.6-mixed", &[], "release");
    refused(2, &other, &["PostgreSQL 9.6", "PostgreSQL 14", "cluster"]);
    let other = make("pg14-mixed", &["-r", "Heap"], "filter");
    refused(2, &other, &["made with --rmgr=Heap", "expected no --rmgr", "first"]);
    let other = make("pg14-mixed", &["-s", "0/00700028"], "range");
    refused(2, &other, &["--start=0/00700028", "no --start"]);
    let bytes = fs::read(&first).expect("a file");
    let spoiled = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    };
    let mut layout = bytes.clone();
    layout[16] = 99;
    refused(2, &spoiled("layout", &layout), &["layout 99", "expected layout 37"]);
    refused(3, &spoiled("cut", &bytes[..bytes.len() - 1]), &["cut", "cut off"]);
    refused(3, &spoiled("other", b"{\"walstat\": \"0.1.0\"}"), &["other", "no partial result"]);
    refused(3, &folder.path().join("missing"), &["missing", "No such file"]);
}

/// A merge in several steps, as many machines do it: groups of partial results are joined, and those again.
#[test]
fn what_is_joined_in_steps_is_the_whole() {
    for name in ["timeline", "pg15-mixed", "overwrite"] {
        let folder = tempfile::tempdir().expect("a folder");
        let files = files(&sample(name).wal);
        let options = ["--stats=record,table,timeline", "--format=json"];
        let whole = walstat(&call(&options, &files));
        let mut parts = parts(&options, &files, 2, folder.path());
        while parts.len() > 1 {
            let groups: Vec<Vec<PathBuf>> = parts.chunks(3).map(<[PathBuf]>::to_vec).collect();
            parts.clear();
            for (index, group) in groups.iter().enumerate() {
                let joined = folder.path().join(format!("{}-{index}", groups.len()));
                let words = ["merge", "--partial", "-o", joined.to_str().expect("UTF-8")];
                let ran = walstat(&call(&words, group));
                assert!(matches!(ran.code, Some(0 | 4)), "{}: {}", ran.call, ran.stderr);
                parts.push(joined);
            }
        }
        let merged = walstat(&call(&["merge"], &parts));
        assert_eq!(merged.code, whole.code, "{name}: {}", merged.stderr);
        assert_eq!(without_paths(&merged), without_paths(&whole), "{name}");
    }
}

/// As `walstat merge <(zstd -dc a.partial.zst)` has it: what was read of a pipe is gone.
#[test]
#[cfg(unix)]
fn a_partial_result_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().expect("a directory");
    let part = folder.path().join("part");
    let wal = sample("pg15-mixed").segment("000000010000000000000007");
    let words = ["--partial", "-o", part.to_str().expect("UTF-8"), wal.to_str().expect("UTF-8")];
    walstat(&words).exits(0);
    let whole = without_paths(
        &walstat(&call(&["merge", "-f", "json"], std::slice::from_ref(&part))).exits(0),
    );
    let mut cat = std::process::Command::new("cat");
    let mut cat = cat.arg(part).stdout(std::process::Stdio::piped()).spawn().expect("cat starts");
    let mut merge = command(&["merge", "-f", "json", "/dev/stdin"]);
    let piped = finish(merge.stdin(cat.stdout.take().expect("a pipe"))).exits(0);
    assert_eq!(without_paths(&piped), whole);
    cat.wait().expect("cat ends");
}

#[test]
fn a_limit_is_not_divided() {
    let file = files(&sample("pg14-mixed").wal)[0].clone();
    let ran = walstat(&call(&["--partial", "-n", "5"], &[file])).exits(2);
    assert!(ran.stderr.contains("--limit"), "{}", ran.stderr);
    walstat(&["merge"]).exits(2);
    let ran = walstat(&["merge", "-"]).exits(2);
    assert!(ran.stderr.contains("not standard input"), "{}", ran.stderr);
}

/// Three segments as pgBackRest keeps them, below `wal`, where `has` lets them; and what lies beside them.
fn stanza(folder: &Path, has: impl Fn(usize) -> bool, beside: &[(&str, &str)]) {
    let group = folder.join("wal/demo/15-1/0000000100000000");
    fs::create_dir_all(&group).expect("a folder");
    let sample = sample("pg15-mixed");
    let segments = sample.segments().into_iter().take(3).enumerate();
    for (_, name) in segments.filter(|(index, _)| has(*index)) {
        let bytes = plain(&sample, &name);
        let name = format!("{name}-{}", sha1_of(&bytes));
        fs::write(group.join(name), bytes).expect("a file");
    }
    for (path, text) in beside {
        fs::write(folder.join(path), text).expect("a file");
    }
}

/// What pgBackRest's list of archive ids is like, in the archives below.
const LISTS: [&[(&str, &str)]; 2] = [&[], &[("wal/demo/archive.info", "[backrest]\n")]];

#[test]
fn what_lies_beside_the_segments_is_brought_by_the_archive_itself() {
    for list in LISTS {
        let folder = tempfile::tempdir().expect("a folder");
        let history = "wal/demo/15-1/0000000100000000/000000010000000000000001.00000028.backup";
        let others = [("wal/README", "text"), (history, "text")];
        stanza(folder.path(), |_| true, &[list, &others].concat());
        let run = |arguments: &[&str]| finish(command(arguments).current_dir(folder.path()));
        let whole = run(&["--stats", "-f", "json", "wal"]).exits(4);
        let group = folder.path().join("wal/demo/15-1/0000000100000000");
        let mut segments: Vec<_> = fs::read_dir(group).expect("a folder").flatten().collect();
        segments.retain(|entry| !entry.path().to_string_lossy().ends_with(".backup"));
        for (index, segment) in segments.iter().enumerate() {
            let segment = segment.path();
            let segment = segment.strip_prefix(folder.path()).expect("below it");
            let part = format!("part{index}");
            run(&["--partial", "--stats", "-o", &part, segment.to_str().expect("UTF-8")]).exits(0);
        }
        let merged = run(&["merge", "-f", "json", "part0", "part1", "part2", "wal"]);
        assert_eq!(merged.code, whole.code, "{}", merged.stderr);
        assert_eq!(without_paths(&merged), without_paths(&whole));
        assert_eq!(whole.json()["problems"][0]["kind"], "archive_info");
        // In steps, too.
        run(&["merge", "--partial", "-o", "joined", "part0", "part1", "wal"]).exits(0);
        let merged = run(&["merge", "-f", "json", "joined", "part2"]);
        assert_eq!(without_paths(&merged), without_paths(&whole));
        // The archive alone is no partial result.
        let alone = run(&["merge", "wal"]).exits(2);
        assert!(
            alone.stderr.starts_with("walstat: wal: a directory, expected"),
            "{}",
            alone.stderr
        );
    }
}

#[test]
fn a_list_of_archive_ids_that_is_missing_is_one_problem_however_many_parts_there_are() {
    for list in LISTS {
        let (folder, mut parts) = (tempfile::tempdir().expect("a folder"), Vec::new());
        let run =
            |arguments: &[&str], folder: &Path| finish(command(arguments).current_dir(folder));
        for index in 0..3 {
            let own = folder.path().join(index.to_string());
            // As the script for Spark has it, the first part has what lies beside the segments.
            stanza(&own, |other| other == index, if index == 0 { list } else { &[] });
            run(&["--partial", "--stats", "-f", "json", "-o", "part", "wal"], &own).exits(0);
            parts.push(own.join("part").to_string_lossy().into_owned());
        }
        let own = folder.path().join("whole");
        stanza(&own, |_| true, list);
        let whole = run(&["--stats", "-f", "json", "wal"], &own).exits(4);
        let mut words = vec!["merge"];
        words.extend(parts.iter().map(String::as_str));
        let merged = run(&words, folder.path()).exits(4);
        assert_eq!(without_paths(&merged), without_paths(&whole));
        assert_eq!(whole.json()["problems"].as_array().map(Vec::len), Some(1));
    }
}

/// Who names the files sees that one is none, and so does who lists them.
#[test]
fn a_file_that_is_none_is_one_problem_however_many_parts_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| finish(command(arguments).current_dir(folder.path()));
    let names: Vec<String> = (7..10).map(|number| format!("00000001{number:016X}")).collect();
    for name in &names[..2] {
        put(&folder.path().join("wal"), name, &plain(&sample("pg15-mixed"), name));
    }
    let files: Vec<String> = names.iter().map(|name| format!("wal/{name}")).collect();
    std::os::unix::fs::symlink("/nonexistent", folder.path().join(&files[2])).expect("a link");
    run(&["--partial", "--stats=record", "-o", "one", &files[0]]).exits(0);
    run(&["--partial", "--stats=record", "-o", "two", &files[1], &files[2]]).exits(0);
    let merged = run(&["merge", "-f", "json", "one", "two", "wal"]).exits(4);
    let whole = run(&["--stats=record", "-f", "json", "wal"]).exits(4);
    assert_eq!(merged.json()["problems"], whole.json()["problems"]);
}
