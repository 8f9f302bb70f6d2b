//! Files that are taken away, renamed or packed between the moment when they are found and the one when they
//! are read: what a server archives and removes meanwhile is read in the archive, once, and what retention
//! is taking away is no hole. And which directories are read at all.

use crate::support::fixtures::sample;
use crate::support::wal::{plain, put};
use crate::support::walstat;
use crate::ways::tar_of;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use walstat_read::input::discover::{Found, discover};
use walstat_read::scan::observer::Observer;
use walstat_read::scan::outcome::Outcome;
use walstat_read::scan::progress::Progress;
use walstat_read::scan::read::read_found;
use walstat_read::scan::streamed::Wanted;

const NAMES: [&str; 3] =
    ["000000010000000000000007", "000000010000000000000008", "000000010000000000000009"];
const SEGMENT_BYTES: u64 = 1 << 20;

/// An archive with the first segment, and a server's directory with the others.
fn archive_and_server() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let [archive, server] = ["archive", "pg_wal"].map(|name| folder.path().join(name));
    fs::create_dir_all(server.join("archive_status")).expect("a folder");
    for (name, directory) in NAMES.iter().zip([&archive, &server, &server]) {
        put(directory, name, &plain(&sample("pg15-mixed"), name));
    }
    (folder, [archive, server])
}

fn read(found: Found) -> (Outcome<Observer>, u64) {
    let progress = Progress::default();
    let (wanted, one) = (Wanted::default(), NonZeroUsize::MIN);
    let (plan, outcome) =
        read_found(found, wanted, one, &progress, &Observer::default()).expect("WAL");
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    (outcome, progress.read_bytes())
}

#[test]
fn what_is_archived_and_removed_meanwhile_is_read_in_the_archive() {
    let (folder, paths) = archive_and_server();
    let (at_rest, _) = read(discover(&paths).expect("files"));
    drop(folder);
    type Move = fn(&Path, &Path);
    let moves: [(&str, Move); 2] = [
        ("archived", |from, archive| {
            let name = from.file_name().expect("a name");
            fs::rename(from, archive.join(name)).expect("moved");
        }),
        ("packed", |from, _| {
            let packed = zstd::encode_all(&fs::read(from).expect("a segment")[..], 1);
            fs::write(from.with_extension("zst"), packed.expect("zstd")).expect("a file");
            fs::remove_file(from).expect("the plain one");
        }),
    ];
    for (what, to_move) in moves {
        let (_folder, [archive, server]) = archive_and_server();
        let found = discover(&[archive.clone(), server.clone()]).expect("files");
        to_move(&server.join(NAMES[1]), &archive);
        let (outcome, read_bytes) = read(found);
        assert_eq!(outcome.problems, [], "{what}");
        let end = |outcome: &Outcome<Observer>| outcome.last.map(|last| last.next);
        assert_eq!(end(&outcome), end(&at_rest), "{what}");
        // None was read again because one was gone.
        assert!(read_bytes <= 3 * SEGMENT_BYTES, "{what}: {read_bytes}");
    }
}

/// In the order of a directory, which is none of the names.
#[test]
fn a_hole_among_what_retention_takes_away_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in NAMES {
        put(folder.path(), name, &plain(&sample("pg15-mixed"), name));
    }
    fs::remove_file(folder.path().join(NAMES[1])).expect("the second");
    let found = discover(&[folder.path().to_owned()]).expect("files");
    fs::remove_file(folder.path().join(NAMES[0])).expect("the first");
    let (outcome, _) = read(found);
    assert_eq!(outcome.problems, []);
    assert!(outcome.first.is_some());
}

/// No restore_command brings what lies in it.
#[test]
fn a_servers_directory_below_a_path_is_read_where_there_is_no_other() {
    let (folder, [archive, server]) = archive_and_server();
    let path = [folder.path().to_owned()];
    let segments = |found: &Found| found.pieces.len();
    let found = discover(&path).expect("files");
    assert_eq!(segments(&found), 1);
    assert!(found.notes[0].contains("pg_wal: not read"), "{:?}", found.notes);
    assert_eq!(segments(&discover(&[archive.clone(), server]).expect("files")), 3);
    fs::remove_dir_all(archive).expect("the archive");
    assert_eq!(segments(&discover(&path).expect("files")), 2);
}

/// It votes for no cluster, and no history of it leads anywhere.
#[test]
fn wal_of_a_server_in_a_tar_is_passed_over_beside_an_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    put(&folder.path().join("archive"), NAMES[0], &plain(&sample("pg15-mixed"), NAMES[0]));
    let other = sample("pg14-mixed");
    let names = fs::read_dir(&other.wal).expect("WAL").flatten().map(|file| file.file_name());
    let names: Vec<String> = names.map(|name| name.into_string().expect("a name")).collect();
    let mut files = vec![
        ("PG_VERSION".to_owned(), b"14\n".to_vec()),
        ("pg_wal/00000002.history".to_owned(), b"1\t0/700028\tx\n".to_vec()),
    ];
    let segments = names.iter().filter(|name| name.len() == NAMES[0].len());
    files.extend(segments.map(|name| (format!("pg_wal/{name}"), plain(&other, name))));
    assert!(files.len() > 4, "{names:?}");
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    put(folder.path(), "old.tar", &tar_of(&files));
    let path = folder.path().to_str().expect("a path");
    let report = walstat(&["check", "-f", "json", "--as", "archive", path]).exits(0).json();
    assert_eq!(report["input"]["segments"], 1, "{report:#}");
    assert!(report["notes"].to_string().contains("old.tar/pg_wal: not read"), "{report:#}");
}
