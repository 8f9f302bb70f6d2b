//! Files under names that no `restore_command` asks for: what is only there under such a name is not there.

use super::recovered::{SEGMENT, history, store, timeline_1, write};
use super::{NAMES, archive, check, gzip, is_green, is_green_as_it_lies, is_red, segment, told};
use crate::common::record::Rec;
use crate::support::Ran;
use std::fs;
use tempfile::TempDir;

/// An archive of the three segments, each with a suffix.
fn suffixed(suffixes: [&str; 3]) -> TempDir {
    let file = |index: usize| (format!("{}{}", NAMES[index], suffixes[index]), segment(index));
    archive(&(0..3).map(file).collect::<Vec<_>>())
}

fn segments_read(ran: &Ran) -> u64 {
    ran.json()["input"]["segments"].as_u64().expect("a count")
}

#[test]
fn the_newest_segment_under_another_suffix_is_missing() {
    for suffix in [".bak", ".old", "~", ".1", ".orig", " copy", ".zip", ".gpg", ".2026-11-26"] {
        let directory = suffixed(["", "", suffix]);
        is_red(suffix, directory.path(), "missing_segment", NAMES[2]);
        assert_eq!(segments_read(&check(&[], directory.path())), 2, "{suffix}");
    }
    let files = [0, 1, 2].map(|index| {
        let suffix = if index == 2 { ".gz.bak" } else { ".gz" };
        (format!("{}{suffix}", NAMES[index]), gzip(&segment(index)))
    });
    is_red("packed", archive(&files).path(), "missing_segment", NAMES[2]);
}

/// Which has a number that the older timeline has too: a restore to the latest one ends before it.
#[test]
fn so_is_the_only_segment_of_the_newest_timeline() {
    for records in [1, 150] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let early = timeline_1(2, true);
        let mut first = early.clone();
        write(&mut first, records);
        first.switch();
        store(&first, 0, folder);
        let mut second = early.clone();
        second.form.timeline = 2;
        second.add(&Rec::begins(2, 1));
        write(&mut second, 10);
        second.switch();
        store(&second, early.at(), folder);
        history(folder, 2, &[(1, early.at())]);
        is_green("as it is", folder);
        let name = format!("00000002{:016X}", early.at() / SEGMENT);
        for suffix in [".bak", ".gpg"] {
            let aside = folder.join(format!("{name}{suffix}"));
            fs::rename(folder.join(&name), &aside).expect("renamed");
            is_red(suffix, folder, "missing_segment", &name);
            fs::rename(aside, folder.join(&name)).expect("renamed");
        }
    }
}

#[test]
fn so_is_each_segment_of_an_archive_that_has_no_other_files() {
    let missing = |index: usize| ("missing_segment".to_owned(), NAMES[index].to_owned());
    let two = suffixed(["", ".bak", ".bak"]);
    assert_eq!(told(&check(&[], two.path())), [missing(1), missing(2)]);
    let all = suffixed([".bak", ".bak", ".bak"]);
    assert_eq!(told(&check(&[], all.path())), [missing(0), missing(1), missing(2)]);
    // Whoever gives the path of a file wants to have that one read.
    let one = all.path().join(format!("{}.bak", NAMES[0]));
    assert_eq!(told(&check(&[], &one)), []);
}

#[test]
fn a_copy_that_was_interrupted_is_not_counted_and_no_problem() {
    let of_tools = [".6Ab2C3d4", ".8f3c2a1b.partial", "_.gstmp", ".filepart", ".TMP", ".tmp.gz"];
    for suffix in [".tmp", ".part", ".tmp.1234", ".12345"].into_iter().chain(of_tools) {
        let directory = suffixed(["", "", suffix]);
        is_green(suffix, directory.path());
        let ran = check(&[], directory.path());
        assert_eq!(segments_read(&ran), 2, "{suffix}");
        let notes = ran.json()["notes"].to_string();
        assert!(notes.contains("no restore_command asks for such a name"), "{notes}");
        is_red(suffix, suffixed(["", suffix, ""]).path(), "missing_segment", NAMES[1]);
    }
    is_green("older than all others", suffixed([".old", "", ""]).path());
    // A suffix that says nothing may be a tool's once; two files of it are named so.
    let named = suffixed(["", ".wal", ".wal"]);
    let missing = [1, 2].map(|index| ("missing_segment".to_owned(), NAMES[index].to_owned()));
    assert_eq!(told(&check(&["--as", "archive"], named.path())), missing);
    is_green("two copies under way", suffixed(["", ".6Ab2C3d4", ".0fE1dc7B"]).path());
}

/// No server asks for either.
#[test]
fn what_only_looks_like_a_tar_or_is_a_strangers_partial_is_a_note() {
    let mut strange = segment(2);
    strange[24] ^= 1;
    let mut files = super::three();
    files.truncate(2);
    files.push((format!("{}.partial", NAMES[2]), strange));
    is_green("of another cluster", archive(&files).path());
    files.pop();
    files.push(("x.tar".to_owned(), b"nota\n".to_vec()));
    is_green_as_it_lies("no tar", archive(&files).path());
}

/// The server ends recovery before it: it asks for the whole segment, and there is none.
#[test]
fn what_is_wrong_with_a_partial_after_all_segments_is_a_note() {
    let file = format!("{}.partial", NAMES[2]);
    let noise = |bytes: &mut [u8]| {
        let mut state = 7_u32;
        bytes.iter_mut().for_each(|byte| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        });
    };
    let with = |from: usize, to: Option<usize>| {
        let mut files = super::three();
        let bytes = &mut files[2].1;
        let to = to.unwrap_or(bytes.len());
        noise(&mut bytes[from..to]);
        files[2].0.clone_from(&file);
        archive(&files)
    };
    // A record of the segment before it goes on in the first page.
    for (what, from, to) in [
        ("all of it", 0, None),
        ("from the fourth page on", 24_576, None),
        ("the first", 40, Some(1000)),
    ] {
        super::is_noted(what, with(from, to).path(), &format!("{file}: expected"));
    }
}

/// A server asks for the segment, whatever the `.partial` holds. The note names the file as it is called.
#[test]
fn damage_in_a_partial_between_segments_is_a_note_beside_the_segment_that_is_missing() {
    let missing = [("missing_segment".to_owned(), NAMES[1].to_owned())];
    for damage in [30_000..30_500, 30_000..1 << 20] {
        let mut files = super::three();
        files[1].0 += ".partial";
        files[1].1[damage].fill(0);
        let ran = check(&["--as", "archive"], archive(&files).path()).exits(4);
        assert_eq!(told(&ran), missing);
        let notes = ran.json()["notes"].to_string();
        assert!(notes.contains(&format!("{}.partial: expected", NAMES[1])), "{notes}");
    }
}
