//! What a server takes in the place of the first segment of the newer timeline, or without its history. WAL
//! made on purpose, of PostgreSQL 15, in segments of 1 MB.

use super::prepared::{back_up, restored};
use super::recovered::{FIRST, SEGMENT, history, promoted, store, timeline_1, write};
use super::{check, gzip, is_green, is_of_no_use, put, told};
use crate::common::builder::Wal;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use walstat_format::lsn::Lsn;

/// An archive in which timeline 2 leaves timeline 1 in its second segment, which goes on, and the first
/// segment of timeline 2.
fn archive(older: &Wal) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let newer = promoted(older, 1, 2);
    let mut first = older.clone();
    write(&mut first, 150);
    first.switch();
    store(&first, 0, directory.path());
    store(&newer, older.at(), directory.path());
    history(directory.path(), 2, &[(1, older.at())]);
    let path = directory.path().join(format!("00000002{:016X}", FIRST + 1));
    (directory, path)
}

/// With a backup that begins in it, too.
#[test]
fn the_older_timelines_file_is_taken_for_a_backup_that_begins_in_it() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    write(&mut wal, 5);
    let (directory, first) = archive(&wal);
    assert_eq!(restored(directory.path(), start, &[]).0, Some(0));
    fs::remove_file(&first).expect("a segment");
    let (code, said) = restored(directory.path(), start, &[]);
    let older = format!("00000001{:016X}", FIRST + 1);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains(&format!("a server takes {older} in its place")), "{said}");
}

/// One that is there is taken, though it is of another cluster: there recovery ends.
#[test]
fn the_newer_timelines_only_file_ends_recovery_where_it_is_of_another_cluster() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    wal.leave_in_segment(0);
    write(&mut wal, 5);
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = wal.clone();
    write(&mut first, 30);
    first.switch();
    store(&first, 0, directory.path());
    let mut second = wal.clone();
    second.form.timeline = 2;
    write(&mut second, 5);
    second.switch();
    store(&second, wal.at(), directory.path());
    history(directory.path(), 2, &[(1, wal.at())]);
    let name = format!("00000002{:016X}", wal.at() / SEGMENT);
    let path = directory.path().join(&name);
    let mut bytes = fs::read(&path).expect("a segment");
    // `xlp_sysid` in the long header of the first page.
    bytes[24] ^= 1;
    put(directory.path(), &name, &bytes);
    let ran = check(&["--as", "archive"], directory.path()).exits(4);
    assert_eq!(told(&ran), [("other_cluster".to_owned(), name)]);
    let end = Lsn(wal.at() / SEGMENT * SEGMENT);
    let (code, said) = restored(directory.path(), start, &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.starts_with(&format!("restorable to LSN {end}")), "{said}");
    assert!(said.contains(" only"), "{said}");
}

/// A server whose standby was promoted went on, and was backed up, before what is older was cleaned up.
#[test]
fn a_backup_of_the_timeline_that_was_left_cannot_be_restored_behind_that_place() {
    let mut wal = timeline_1(1, true);
    write(&mut wal, 5);
    let (directory, _) = archive(&wal);
    let segment = FIRST + 2;
    let begin = segment * SEGMENT + 40;
    let name = format!("00000001{segment:016X}");
    let text = format!(
        "START WAL LOCATION: 0/{begin:X} (file {name})\nSTOP WAL LOCATION: 0/{:X} (file {name})\n\
         CHECKPOINT LOCATION: 0/{:X}\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
         START TIME: 2026-11-21 04:40:57 UTC\nLABEL: x\nSTART TIMELINE: 1\n\
         STOP TIME: 2026-11-21 04:40:57 UTC\nSTOP TIMELINE: 1\n",
        begin + 0x100,
        begin + 0x38
    );
    is_green("before", directory.path());
    put(directory.path(), &format!("{name}.00000028.backup"), text.as_bytes());
    for timeline in [1, 2] {
        for number in FIRST..segment {
            let path = directory.path().join(format!("{timeline:08X}{number:016X}"));
            if path.exists() {
                fs::remove_file(path).expect("a segment");
            }
        }
    }
    is_of_no_use("cleaned up", directory.path(), "");
}

/// The history of the newer timeline, packed as all files are: what its tool cannot unpack a server does not
/// get, and stays on the older timeline; the tool of lz4 takes an empty file, with which no server starts.
#[test]
fn a_history_that_its_tool_does_not_unpack_is_none_to_a_server() {
    let mut wal = timeline_1(1, true);
    let start = back_up(&mut wal);
    write(&mut wal, 5);
    let (directory, _) = archive(&wal);
    let directory = directory.path();
    // A frame of one block that is stored as it is.
    let lz4 = |bytes: &[u8]| {
        let size = (bytes.len() as u32 | 1 << 31).to_le_bytes();
        [b"\x04\x22\x4D\x18\x60\x70\x73", &size[..], bytes, &[0; 4]].concat()
    };
    for (suffix, pack) in [("gz", &gzip as &dyn Fn(&[u8]) -> Vec<u8>), ("lz4", &lz4)] {
        let packed = tempfile::tempdir().expect("a directory");
        let packed = packed.path();
        for entry in fs::read_dir(directory).expect("the archive").flatten() {
            let name = format!("{}.{suffix}", entry.file_name().to_string_lossy());
            put(packed, &name, &pack(&fs::read(entry.path()).expect("a file")));
        }
        let name = format!("00000002.history.{suffix}");
        let whole = fs::read(packed.join(&name)).expect("the history");
        assert_eq!(restored(packed, start, &[]).0, Some(0), "{suffix}");
        put(packed, &name, &whole[..whole.len() - 4]);
        let (code, said) = restored(packed, start, &[]);
        assert!(code == Some(4) && said.ends_with(" on timeline 1"), "{suffix}: {said}");
        put(packed, &name, b"");
        let (code, said) = restored(packed, start, &[]);
        let is_refused = said.contains("a server does not start with 00000002.history.lz4");
        assert!(code == Some(4) && is_refused == (suffix == "lz4"), "{suffix}: {said}");
    }
}
