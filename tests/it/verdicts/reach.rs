//! `cp ARCHIVE/%f` looks into one directory: what lies in another one below the path that is given is not
//! found, however much of it there is.

use super::timelines::two_timelines;
use super::{
    NAMES, archive, check, in_tar, is_green, is_noted, is_red, put, restore_verdict, segment,
    tar_of_all, told,
};
use crate::support::{command, finish};
use std::fs;
use std::path::Path;

/// An archive of the three segments, each in its directory.
fn in_directories(places: [&str; 3]) -> tempfile::TempDir {
    archive(&placed(places))
}

fn placed(places: [&str; 3]) -> Vec<(String, Vec<u8>)> {
    (0..3).map(|index| (place(places[index], index), segment(index))).collect()
}

fn place(directory: &str, index: usize) -> String {
    if directory.is_empty() {
        NAMES[index].to_owned()
    } else {
        format!("{directory}/{}", NAMES[index])
    }
}

/// The segments that are missing.
#[track_caller]
fn misses(what: &str, directory: &Path, segments: &[usize]) {
    let ran = check(&["--as", "archive"], directory);
    let expected: Vec<_> = segments
        .iter()
        .map(|index| ("missing_segment".to_owned(), NAMES[*index].to_owned()))
        .collect();
    assert_eq!((told(&ran), ran.code), (expected, Some(4)), "{what}: {}", ran.stderr);
}

#[test]
fn most_of_an_archive_in_a_subfolder_is_missing() {
    misses("the two newest", in_directories(["", "sub", "sub"]).path(), &[1, 2]);
    misses("every other", in_directories(["a", "b", "a"]).path(), &[1]);
    misses("beside the others", in_directories(["s1", "s2", "s2"]).path(), &[0]);
    misses("each in its own", in_directories(["a", "b", "c"]).path(), &[0, 1]);
    is_green("all in one", in_directories(["a", "a", "a"]).path());
    // In a tar as well.
    misses("beside the others", in_tar(&placed(["s1", "s2", "s2"])).path(), &[0]);
    misses("below the others", in_tar(&placed(["s1", "s1/s2", "s1"])).path(), &[1]);
    is_green("all in one", in_tar(&placed(["a", "a", "a"])).path());
}

/// Names of archivers' directories with fewer segments than the archive beside them.
#[test]
fn a_directory_named_as_an_archivers_does_not_make_the_archive_beside_it_whole() {
    for directory in
        ["wals", "wal_005", "wals/0000000100000000", "archive/demo/15-1/0000000100000000"]
    {
        misses(directory, in_directories(["a", directory, "a"]).path(), &[1]);
    }
}

/// The copy is where nobody looks.
#[test]
fn a_whole_copy_below_does_not_make_an_archive_whole() {
    let directory = in_directories(["", "", ""]);
    (0..3).for_each(|index| _ = put(directory.path(), &place("sub", index), &segment(index)));
    is_green("whole", directory.path());
    fs::remove_file(directory.path().join(NAMES[1])).expect("removed");
    misses("in the copy alone", directory.path(), &[1]);
}

/// Whoever names both says that both serve.
/// `cp` brings the zeros: `could not locate required checkpoint record`.
#[test]
fn zeros_under_the_name_of_a_backups_first_segment_end_its_restore_though_a_copy_is_good() {
    let mut files = placed(["copy", "", ""]);
    files.push((NAMES[0].to_owned(), vec![0; segment(0).len()]));
    let directory = archive(&files);
    let ran = check(&["--as", "archive", "--from", "0/700028"], directory.path()).exits(4);
    let (passes, said) = restore_verdict(&ran);
    assert!(!passes && said.contains("open_segment"), "{said}");
    assert_eq!(told(&ran), [("open_segment".to_owned(), NAMES[0].to_owned())]);
}

#[test]
fn several_paths_are_looked_into_each() {
    let directory = in_directories(["a", "b", "a"]);
    let mut call = command(&["check", "-f", "json", "--as", "archive"]);
    let both = ["a", "b"].map(|name| directory.path().join(name));
    let ran = finish(call.args(&both).env_remove("GITHUB_STEP_SUMMARY")).exits(0);
    let notes = ran.json()["notes"].to_string();
    assert!(notes.contains("restore_command has to look in each of"), "{notes}");
}

/// A server's own directory, or one of its backups, is none of the archive.
#[test]
fn the_wal_of_a_server_is_none_of_its_archive() {
    let directory = in_directories(["archive", "archive", "main/pg_wal"]);
    put(&directory.path().join("main"), "PG_VERSION", b"15\n");
    is_green("a server's", directory.path());
}

/// The server knows of no other timeline than the first.
#[test]
fn timelines_in_a_subfolder_are_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    super::timelines::timelines(directory.path());
    let sub = directory.path().join("sub");
    fs::create_dir(&sub).expect("a directory");
    for entry in fs::read_dir(directory.path()).expect("a directory") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("00000002") {
            fs::rename(&path, sub.join(name)).expect("moved");
        }
    }
    let told = told(&check(&["--as", "archive"], directory.path()).exits(4));
    for (kind, file) in
        [("missing_segment", "000000020000000000000008"), ("missing_history", "00000002.history")]
    {
        assert!(told.contains(&(kind.to_owned(), file.to_owned())), "{told:?}");
    }
}

/// In a tar as on disk: the server never comes to know of the timeline.
#[test]
fn a_history_below_the_segments_of_a_tar_is_missing() {
    let here = tempfile::tempdir().expect("a directory");
    let outer = here.path().join("wal");
    fs::create_dir(&outer).expect("a directory");
    two_timelines(&outer);
    let tar = |history: &str| {
        let mut tar = tar::Builder::new(Vec::new());
        for entry in fs::read_dir(&outer).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let name = if name.ends_with(".history") { format!("{history}{name}") } else { name };
            tar.append_path_with_name(&path, name).expect("a vector takes everything");
        }
        put(here.path(), "wal.tar", &tar.into_inner().expect("a vector takes everything"))
    };
    is_green("beside them", &tar(""));
    for directory in ["old/", ".trash/", "sub/x/"] {
        is_red(directory, &tar(directory), "missing_history", "00000002.history");
    }
}

/// Nothing else is in that folder.
#[test]
fn a_history_in_a_folder_of_histories_is_noted() {
    for segments in ["", "wal"] {
        let directory = in_directories([segments, segments, segments]);
        put(directory.path(), "hist/00000002.history", b"1\t0/A00000\tx\n");
        is_noted("histories", directory.path(), "only hist/00000002.history");
    }
}

/// `archive_command` copies to another name, in a directory below the archive, and renames. Snapshots of an
/// archive that are taken meanwhile have such files for ever.
#[test]
fn a_copy_under_way_in_a_directory_below_the_archive_is_none_of_it() {
    let note = "not read: an unfinished copy";
    let last = segment(2);
    let with = |place: &str, bytes: &[u8]| {
        let directory = archive(&placed(["", "", ""])[..2]);
        put(directory.path(), &format!("{place}/{}", NAMES[2]), bytes);
        directory
    };
    for place in ["tmp", "snapshots/friday", "#recycle"] {
        for bytes in [&[], &last[..100], &last[..300_000]] {
            let directory = with(place, bytes);
            is_noted(place, directory.path(), note);
            is_noted(place, &tar_of_all(directory.path()).path().join("wal.tar"), note);
        }
        // The archive has it, too.
        for bytes in [&[], &last[..300_000]] {
            let directory = with(place, bytes);
            put(directory.path(), NAMES[2], &last);
            is_noted(place, directory.path(), note);
        }
    }
    is_noted("whole, before it is renamed", with("tmp", &last).path(), note);
    misses("whole, elsewhere", with("friday", &last).path(), &[2]);
    // Where nobody renames them any more, they are missing.
    misses("several", in_directories(["", "tmp", "tmp"]).path(), &[1, 2]);
    // Not the newest of its directory, and not below the archive: a copy that was damaged.
    let damaged = in_directories(["", "", ""]);
    put(damaged.path(), &format!("mirror/{}", NAMES[0]), &segment(0)[..300_000]);
    put(damaged.path(), &format!("mirror/{}", NAMES[1]), &segment(1));
    assert_eq!(check(&["--as", "archive"], damaged.path()).code, Some(4), "in the middle");
    let beside = in_directories(["a", "a", "a"]);
    put(beside.path(), &format!("b/{}", NAMES[2]), &last[..300_000]);
    assert_eq!(check(&["--as", "archive"], beside.path()).code, Some(4), "beside it");
    // A hole, of which there is a piece.
    let directory = archive(&[placed(["", "", ""]).remove(0), placed(["", "", ""]).remove(2)]);
    put(directory.path(), &format!("tmp/{}", NAMES[1]), &segment(1)[..300_000]);
    misses("a hole", directory.path(), &[1]);
}

/// On disk nobody looks into them for an archive.
#[test]
fn directories_in_a_tar_are_looked_into_as_those_on_disk() {
    let place = |hidden: &str| {
        let directory = archive(&[placed(["", "", ""]).remove(0), placed(["", "", ""]).remove(2)]);
        put(directory.path(), &format!("{hidden}/{}", NAMES[1]), &segment(1));
        directory
    };
    for hidden in [".snap", "x/.snap/y", "lost+found"] {
        let directory = place(hidden);
        misses(hidden, directory.path(), &[1]);
        misses(hidden, &tar_of_all(directory.path()).path().join("wal.tar"), &[1]);
    }
    // There is nothing else.
    let hidden = in_directories([".snap", ".snap", ".snap"]);
    is_green("nothing else", &tar_of_all(hidden.path()).path().join("wal.tar"));
    // A tar in the tar: what lies in it does not lie beside it.
    let older = tar_of_all(in_directories(["", "", ""]).path());
    let outer = archive(&[placed(["", "", ""]).remove(0), placed(["", "", ""]).remove(2)]);
    let days = fs::read(older.path().join("wal.tar")).expect("the tar");
    put(outer.path(), "days.tar", &days);
    misses("in a tar of it", outer.path(), &[1]);
    misses("in a tar in a tar", &tar_of_all(outer.path()).path().join("wal.tar"), &[1]);
}
