//! What lies around the segments: directories, links, histories, backups; and a system that lets too few
//! files be open.

use super::recovered::{FIRST, SEGMENT, history, promoted, store, timeline_1, write};
use super::timelines::timelines;
use super::{
    NAMES, archive, check, gzip, is_green, is_noted, is_of_no_use, is_red, is_red_as_it_lies, put,
    restore, segment, three, told,
};
use crate::common::record::Rec;
use crate::support::fixtures::{fixtures, sample};
use crate::support::wal::plain;
use crate::support::{command, finish};
use std::fs;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

/// Base backups beside the WAL, with whatever directories tables have.
#[test]
fn directories_of_any_depth_are_none_of_its_business() {
    let directory = archive(&three());
    let deep = (0..90).fold(directory.path().join("base"), |path, _| path.join("d"));
    fs::create_dir_all(&deep).expect("directories");
    is_green("deep directories", directory.path());
    let ran = check(&["--as", "archive"], directory.path()).exits(0);
    assert!(ran.json()["notes"].to_string().contains("not looked into"), "{}", ran.stdout);
    // WAL is found wherever an archiver can put it.
    let files: Vec<_> =
        three().into_iter().map(|(n, b)| (format!("a/b/c/d/e/f/g/{n}"), b)).collect();
    let ran = check(&["--as", "archive"], archive(&files).path()).exits(0);
    assert_eq!(ran.json()["input"]["segments"], 3);
}

/// Synology's file systems have a directory `@eaDir` beside files, with one in it for each of them.
#[test]
fn a_directory_is_called_like_the_segment_beside_it() {
    let beside = |segments: &[(String, Vec<u8>)]| {
        let directory = archive(segments);
        for name in &NAMES[..3] {
            fs::create_dir_all(directory.path().join("@eaDir").join(name)).expect("directories");
        }
        directory
    };
    is_green("beside all", beside(&three()).path());
    let without = beside(&[three().remove(0), three().remove(2)]);
    is_red("in place of one", without.path(), "not_wal", NAMES[1]);
}

/// A server keeps the history of its last backup in its `pg_wal`, also when all WAL of that timeline is gone.
/// Of an archive it would say that its backup cannot be restored any more.
#[test]
fn a_server_that_was_promoted_since_its_last_backup_is_sound() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let first = timeline_1(2, true);
    let second = promoted(&first, 1, 2);
    store(&second, first.at().next_multiple_of(SEGMENT), directory);
    history(directory, 2, &[(1, first.at())]);
    let backup = format!("00000001{FIRST:016X}.00000028.backup");
    let text = format!(
        "START WAL LOCATION: 0/{start:X} (file 00000001{FIRST:016X})\nSTOP WAL LOCATION: 0/{stop:X} (file \
         00000001{FIRST:016X})\nCHECKPOINT LOCATION: 0/{start:X}\nBACKUP METHOD: streamed\nBACKUP FROM: \
         primary\nSTART TIME: 2026-11-30 15:00:00 UTC\nLABEL: nightly\nSTART TIMELINE: 1\nSTOP TIME: \
         2026-11-30 15:00:01 UTC\nSTOP TIMELINE: 1\n",
        start = FIRST * SEGMENT + 40,
        stop = FIRST * SEGMENT + 400,
    );
    put(directory, &backup, text.as_bytes());
    assert!(restore(&check(&[], directory).exits(1)).contains("the only one, begins before it"));
    fs::create_dir(directory.join("archive_status")).expect("a directory");
    check(&[], directory).exits(0);
}

/// A server that recovers to the end of the backup alone has read the next segment ahead, from 15 on. It
/// makes that file ready for its new timeline, as it is: with the same addresses, and the older records.
#[test]
fn a_segment_of_the_older_timeline_that_is_made_ready_is_no_damage() {
    let mut first = timeline_1(2, true);
    let left = first.at();
    let (fork, next) = (left / SEGMENT, left / SEGMENT + 1);
    let mut second = first.clone();
    write(&mut first, 300);
    second.form.timeline = 2;
    second.add(&Rec::begins(2, 1));
    let older = tempfile::tempdir().expect("a directory");
    store(&first, 0, older.path());
    let old = fs::read(older.path().join(format!("00000001{next:016X}"))).expect("a segment");
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    fs::create_dir(directory.join("archive_status")).expect("a directory");
    history(directory, 2, &[(1, left)]);
    let ready = format!("00000002{next:016X}");
    store(&second, fork * SEGMENT, directory);
    put(directory, &ready, &old);
    check(&[], directory).exits(0);
    // The server has come into it.
    while second.at() < next * SEGMENT {
        write(&mut second, 1);
    }
    store(&second, fork * SEGMENT, directory);
    let written = fs::read(directory.join(&ready)).expect("a segment");
    let pages = (second.at() % SEGMENT).next_multiple_of(8192) as usize;
    put(directory, &ready, &[&written[..pages], &old[pages..]].concat());
    let ran = check(&[], directory).exits(0);
    assert_eq!(ran.json()["ending"]["kind"], "recycled");
    check(&["--as", "archive"], directory).exits(4);
}

/// Where there is nothing else, that is the reason.
#[test]
fn directories_that_are_too_deep_are_told_where_no_segment_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let deep = (0..90).fold(directory.path().to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).expect("directories");
    put(&deep, NAMES[0], &segment(0));
    let ran = check(&[], directory.path()).exits(3);
    assert!(ran.stderr.contains("deeper than 64 directories"), "{}", ran.stderr);
    let empty = tempfile::tempdir().expect("a directory");
    let ran = check(&[], empty.path()).exits(3);
    assert!(!ran.stderr.contains("deeper"), "{}", ran.stderr);
}

/// `cp` looks for capital digits.
#[test]
fn a_segment_under_a_name_in_small_digits_is_missing() {
    let names =
        ["000000010000000000000009", "00000001000000000000000A", "00000001000000000000000B"];
    let sample = sample("pg15-mixed");
    let files = |small: usize| -> Vec<(String, Vec<u8>)> {
        let name = |(index, name): (usize, &&str)| match index == small {
            true => name.to_lowercase(),
            false => (*name).to_owned(),
        };
        names.iter().enumerate().map(|it| (name(it), plain(&sample, it.1))).collect()
    };
    is_green("as it should be", archive(&files(3)).path());
    for small in [1, 2] {
        is_red("small digits", archive(&files(small)).path(), "missing_segment", names[small]);
    }
    let mut files = files(3);
    files.push(("00000001000000000000000a.gz".to_owned(), b"no WAL".to_vec()));
    is_noted("beside it", archive(&files).path(), "00000001000000000000000a.gz: not read");
}

/// It looks for the histories one by one, so that this one is not found.
#[test]
fn a_history_that_no_search_comes_to_is_noted_as_such() {
    let mut files = three();
    files.push(("00000003.history".to_owned(), b"1\t0/900100\tx\n".to_vec()));
    is_noted("alone", archive(&files).path(), "does not look for it without 00000002.history");
    files.push(("00000002.history".to_owned(), b"1\t0/900100\tx\n".to_vec()));
    is_noted(
        "with it",
        archive(&files).path(),
        "timeline 3, which a restore to the latest one follows",
    );
}

/// So nobody comes to know what is in it.
#[test]
fn a_broken_history_that_no_search_comes_to_is_noted_as_such() {
    let with = |files: &[(&str, &[u8])]| {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
        archive(&[three(), files.collect()].concat())
    };
    let (second, third) = ("00000002.history", "00000003.history");
    let (sound, packed) = (b"1\t0/900100\tx\n".as_slice(), "00000002.history.gz");
    for text in [b"".as_slice(), b"2\t0/900100\tx\n1\t0/900100\tx\n", b"garbage"] {
        let said = "does not look for it without 00000002.history";
        is_noted("alone", with(&[(third, text)]).path(), said);
        is_noted(
            "before a packed one",
            with(&[(third, text), (packed, &gzip(sound))]).path(),
            said,
        );
        is_red("after another", with(&[(third, text), (second, sound)]).path(), "history", third);
        // Text under .gz is not unpacked, and nobody asks for it where there is one without a suffix.
        let all = with(&[(third, text), (second, sound), (packed, sound)]);
        is_red("after one that is there twice", all.path(), "history", third);
        is_red("packed", with(&[(second, text), (packed, sound)]).path(), "history", second);
        let said = "no restore_command gets it";
        is_noted("packed", with(&[(packed, &gzip(text))]).path(), said);
    }
    let contradicts = b"1\t0/800100\tx\n3\t0/A00000\tx\n";
    is_green("others", with(&[(third, sound), ("00000004.history", contradicts)]).path());
    let all = with(&[(second, sound), (third, b"1\t0/800100\tx\n2\t0/A00000\tx\n")]);
    is_red("others", all.path(), "history", third);
}

/// A tar with hard links unpacks to the same file under both names.
#[test]
fn a_hard_link_in_a_tar_is_the_file_that_it_links_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in three() {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        let path = format!("pg_wal/{name}");
        tar.append_data(&mut header, &path, bytes.as_slice()).expect("a vector takes everything");
        let mut link = tar::Header::new_ustar();
        link.set_entry_type(tar::EntryType::Link);
        link.set_size(0);
        tar.append_link(&mut link, format!("again/{name}"), &path).expect("a link");
    }
    put(directory.path(), "wal.tar", &tar.into_inner().expect("a vector takes everything"));
    let ran = check(&[], &directory.path().join("wal.tar")).exits(0);
    assert_eq!(ran.json()["input"]["segments"], 3);
}

/// What an operator has packed away, no `restore_command` finds.
#[test]
fn a_segment_that_is_only_in_a_tar_beside_the_others_is_missing() {
    let [first, second, third] = <[_; 3]>::try_from(three()).expect("three");
    let tar_with = |(name, bytes): &(String, Vec<u8>)| {
        ("old.tar".to_owned(), tar_of(&[Member::File(name, bytes)]))
    };
    let kept = |packed, others: [&(String, Vec<u8>); 2]| {
        archive(&[tar_with(packed), others[0].clone(), others[1].clone()])
    };
    is_red("the middle", kept(&second, [&first, &third]).path(), "missing_segment", NAMES[1]);
    is_green("the oldest", kept(&first, [&second, &third]).path());
    let both = archive(&[tar_with(&second), first, second, third]);
    is_green("a copy", both.path());
}

/// Members of a tar: a file with its bytes, a hard link to an earlier one, or a symbolic link.
enum Member<'m> {
    File(&'m str, &'m [u8]),
    Link(&'m str, &'m str),
    Symlink(&'m str, &'m str),
}

fn tar_of(members: &[Member<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for member in members {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o600);
        match member {
            Member::File(name, bytes) => {
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, name, *bytes).expect("a vector takes everything");
            }
            Member::Link(name, target) | Member::Symlink(name, target) => {
                let is_symbolic = matches!(member, Member::Symlink(..));
                let kind = if is_symbolic { tar::EntryType::Symlink } else { tar::EntryType::Link };
                header.set_entry_type(kind);
                header.set_size(0);
                tar.append_link(&mut header, name, target).expect("a link");
            }
        }
    }
    tar.into_inner().expect("a vector takes everything")
}

/// A store that keeps each content once: the first name that a tar meets has the bytes, and the segment is
/// a link to it. Unpacked, it is a segment like the others.
#[test]
fn a_hard_link_to_another_name_is_read_as_what_it_links_to() {
    use Member::{File, Link};
    let [one, two, three] = [0, 1, 2].map(segment);
    let (good, bad) = (two.clone(), [&two[..9000], &vec![7; two.len() - 9000][..]].concat());
    let history = b"1\t0/A00000\tx\n".as_slice();
    for (name, second, code) in [("good", good, 0), ("bad", bad, 4)] {
        let tar = tar_of(&[
            File("./store/5f3a", &second),
            File("./store/77aa", history),
            File(NAMES[0], &one),
            Link(NAMES[1], "store/5f3a"),
            Link("00000002.history", "store/77aa"),
            Link(&format!("again/{}", NAMES[1]), "./store/5f3a"),
            File(NAMES[2], &three),
        ]);
        let packed = zstd::encode_all(tar.as_slice(), 1).expect("a vector takes everything");
        let inner = tar_of(&[File("inner.tar", &tar)]);
        for (file, bytes) in [("wal.tar", &tar), ("wal.tar.zst", &packed), ("a.tar", &inner)] {
            let directory = archive(&[(file, bytes.clone())]);
            let path = directory.path().join(file);
            let report = check(&["--as", "archive"], &path).exits(code).json();
            assert_eq!(report["input"]["segments"], 3, "{name} {file}");
            assert!(report["notes"].to_string().contains("00000002.history"), "{name} {file}");
        }
        // A pipe has gone by.
        let directory = archive(&[("wal.tar", tar)]);
        let pipe = fs::File::open(directory.path().join("wal.tar")).expect("the tar");
        let ran = finish(command(&["check", "-f", "json", "-"]).stdin(pipe)).exits(4);
        assert!(
            told(&ran).contains(&("not_wal".to_owned(), NAMES[1].to_owned())),
            "{:?}",
            told(&ran)
        );
    }
}

/// `tar -x` makes a link to what is there by then, and none to what comes later.
#[test]
fn a_hard_link_is_the_last_file_of_its_name_before_it() {
    use Member::{File, Link};
    let [one, two, three] = [0, 1, 2].map(segment);
    let bad = [&two[..9000], &vec![7; two.len() - 9000][..]].concat();
    let link = || Link(NAMES[1], "copy");
    for (what, members, code) in [
        ("before", vec![link(), File("copy", &two)], 4),
        ("bad first", vec![File("copy", &bad), File("copy", &two), link()], 0),
        ("good first", vec![File("copy", &two), File("copy", &bad), link()], 4),
        ("bad later", vec![File("copy", &two), link(), File("copy", &bad)], 0),
    ] {
        let others = [File(NAMES[0], &one), File(NAMES[2], &three)];
        let tar = tar_of(&members.into_iter().chain(others).collect::<Vec<_>>());
        let directory = archive(&[("wal.tar", tar)]);
        let ran = check(&["--as", "archive"], &directory.path().join("wal.tar"));
        assert_eq!(ran.code, Some(code), "{what}: {:?}", told(&ran));
    }
}

/// Unpacked, it leads to the member that it names; out of the tar, nobody knows to what.
#[test]
fn a_symbolic_link_in_a_tar_is_read_as_the_member_that_it_leads_to() {
    use Member::{File, Symlink};
    let [one, two, three] = [0, 1, 2].map(segment);
    let outside = archive(&[("outside", two.clone())]);
    let outside = outside.path().join("outside").display().to_string();
    let with = |target: &str| {
        let history = b"1\t0/A00000\tx\n".as_slice();
        tar_of(&[
            File("wal/00000002.real", history),
            Symlink("wal/00000002.history", "00000002.real"),
            File(&format!("wal/{}", NAMES[0]), &one),
            Symlink(&format!("wal/{}", NAMES[1]), target),
            File(&format!("wal/{}", NAMES[2]), &three),
            // A link may come before its member.
            File("store/5f3a", &two),
        ])
    };
    let judged = |tar: &[u8]| {
        let directory = archive(&[("wal.tar", tar.to_vec())]);
        check(&["--as", "archive"], &directory.path().join("wal.tar"))
    };
    let report = judged(&with("../store/./5f3a")).exits(0).json();
    assert_eq!(report["input"]["segments"], 3, "{report:#}");
    assert!(report["notes"].to_string().contains("00000002.history"), "{report:#}");
    for (target, says) in [
        (outside.as_str(), "symbolic link that leads out of the tar"),
        ("../../outside", "symbolic link that leads out of the tar"),
        ("gone", "symbolic link to wal/gone"),
    ] {
        let ran = judged(&with(target)).exits(4);
        let blamed = ("not_wal".to_owned(), NAMES[1].to_owned());
        assert!(told(&ran).contains(&blamed), "{target}: {:?}", told(&ran));
        assert!(ran.json()["problems"].to_string().contains(says), "{target}: {}", ran.stdout);
    }
}

/// What `tar -x` makes of links counts: those to a file of the same name in another directory, those through
/// a linked directory, and hard links to links.
#[test]
fn links_in_a_tar_lead_where_they_lead_unpacked() {
    use Member::{File, Link, Symlink};
    let [one, two, three] = [0, 1, 2].map(segment);
    let bad = [&two[..9000], &vec![7; two.len() - 9000][..]].concat();
    let name = NAMES[1];
    let below = |directory: &str| format!("{directory}/{name}");
    let (sub, real, linked, other) = (below("sub"), below("real"), below("al"), below("other"));
    let within = format!("../al/{name}");
    for (what, members, code) in [
        ("up", vec![File(&sub, &two), Symlink(name, &sub)], 0),
        ("up, hard", vec![File(&sub, &two), Link(name, &sub)], 0),
        ("up, bad", vec![File(&sub, &bad), Symlink(name, &sub)], 4),
        ("up, the third", vec![File(&sub, &two), Link(&other, &sub), Link(name, &other)], 0),
        ("directory", vec![File(&real, &two), Symlink("al", "real"), Symlink(name, &linked)], 0),
        (
            "directory later",
            vec![Symlink(name, &linked), Symlink("al", "real"), File(&real, &two)],
            0,
        ),
        (
            "up and down",
            vec![File(&real, &two), Symlink("al", "real"), Symlink(&other, &within)],
            4,
        ),
        ("through it", vec![File("real/x", b"x"), Symlink("al", "real"), File(&linked, &two)], 4),
        ("twice", vec![File("q", &two), Symlink("r", "q"), Symlink(name, "r")], 0),
        ("hard to symbolic", vec![File("q", &two), Symlink("s", "q"), Link(name, "s")], 0),
        ("its own place", vec![File("q", &two), Symlink("d/s", "../q"), Link(name, "d/s")], 4),
        ("hard to hard", vec![File("q", &two), Link("s", "q"), Link(name, "s")], 0),
        ("to itself", vec![Symlink(name, name)], 4),
        ("in a circle", vec![Symlink(name, "x"), Symlink("x", name)], 4),
    ] {
        let others = [File(NAMES[0], &one), File(NAMES[2], &three)];
        let tar = tar_of(&members.into_iter().chain(others).collect::<Vec<_>>());
        let directory = archive(&[("wal.tar", tar)]);
        let ran = check(&["--as", "archive"], &directory.path().join("wal.tar"));
        assert_eq!(ran.code, Some(code), "{what}: {:?}", told(&ran));
        assert!(told(&ran).iter().all(|(_, file)| file == name), "{what}: {:?}", told(&ran));
    }
}

/// GNU tar unpacks each member under the path that a global extended header gives them all.
#[test]
fn a_path_that_a_tar_gives_to_all_members_leaves_no_segment() {
    let with = |global: &str, local: &str, later: &str| {
        let mut tar = tar::Builder::new(Vec::new());
        let extended = |tar: &mut tar::Builder<Vec<u8>>, kind: u8, record: &str| {
            if !record.is_empty() {
                let mut header = tar::Header::new_ustar();
                header.set_entry_type(tar::EntryType::new(kind));
                let bytes = record.len() + 3;
                let text = format!("{} {record}\n", bytes + usize::from(bytes > 9));
                header.set_size(text.len() as u64);
                tar.append_data(&mut header, "extended", text.as_bytes()).expect("a header");
            }
        };
        extended(&mut tar, b'g', global);
        extended(&mut tar, b'g', later);
        for (name, bytes) in three() {
            extended(
                &mut tar,
                b'x',
                &if local.is_empty() { String::new() } else { format!("{local}={name}") },
            );
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, &name, bytes.as_slice())
                .expect("a vector takes everything");
        }
        let directory =
            archive(&[("wal.tar", tar.into_inner().expect("a vector takes everything"))]);
        check(&["--as", "archive"], &directory.path().join("wal.tar"))
    };
    for (global, local, later) in [
        ("comment=of git", "", ""),
        ("linkpath=of links", "", ""),
        ("path=each has its own", "path", ""),
        ("path=taken back", "", "path="),
    ] {
        let ran = with(global, local, later);
        assert_eq!((ran.code, told(&ran)), (Some(0), vec![]), "{global}: {}", ran.stderr);
    }
    for (global, local) in
        [("path=one for all", ""), ("size=512", ""), ("path=one for all", "gname")]
    {
        let ran = with(global, local, "").exits(3);
        assert!(ran.stderr.contains("gives all members one"), "{global}: {}", ran.stderr);
    }
}

/// `tar: Cannot hard link`: unpacked, there is no such file. One to another segment has that one's bytes.
#[test]
fn a_hard_link_to_nothing_or_to_another_segment_is_told() {
    use Member::{File, Link};
    let [one, two, three] = [0, 1, 2].map(segment);
    for target in [NAMES[0], "gone/000000010000000000000008", "store/5f3a"] {
        let tar = tar_of(&[
            File(NAMES[0], &one),
            Link(NAMES[1], target),
            File(NAMES[2], &three),
            File("beside/text", &two[..100]),
        ]);
        let directory = archive(&[("wal.tar", tar)]);
        let ran = check(&["--as", "archive"], &directory.path().join("wal.tar")).exits(4);
        let blamed = told(&ran).iter().any(|(_, file)| file == NAMES[1]);
        assert!(blamed, "{target}: {:?}", told(&ran));
    }
}

/// `syntax error in history file`: the server reads 1023 bytes of a line, takes the rest for another one,
/// and does not start.
#[test]
fn a_line_of_a_history_is_no_longer_than_a_server_reads() {
    let whole = |reason: usize| format!("1\t0/A00000\t{}\n", "x".repeat(reason)).into_bytes();
    let mut files = three();
    files.push(("00000002.history".to_owned(), whole(1000)));
    is_green("1011 bytes", archive(&files).path());
    files[3].1 = whole(1100);
    is_red("1111 bytes", archive(&files).path(), "history", "00000002.history");
}

/// A server asks for the history as it asks for segments, in one directory and with one suffix; where it gets
/// none, it does not know of the timeline. Where there are no segments of it either, that changes nothing.
#[test]
fn a_history_in_another_place_or_packing_than_the_segments_is_missing() {
    let name = "00000002.history";
    let both = || {
        let directory = tempfile::tempdir().expect("a directory");
        timelines(directory.path());
        // Left in the middle of it.
        let _ = fs::remove_file(directory.path().join(NAMES[1]));
        directory
    };
    let directory = both();
    is_green("beside them", directory.path());
    let history = fs::read(directory.path().join(name)).expect("the history");
    let packed = zstd::encode_all(&*history, 1).expect("it packs");
    for (file, bytes) in [(format!("old/{name}"), &history), (format!("{name}.zst"), &packed)] {
        let directory = both();
        put(directory.path(), &file, bytes);
        is_green("in both", directory.path());
        fs::remove_file(directory.path().join(name)).expect("the history");
        is_red(&file, directory.path(), "missing_history", name);
        let alone = archive(&[three(), vec![(file.clone(), bytes.clone())]].concat());
        is_noted(&file, alone.path(), name);
    }
}

/// The server chooses timeline 2 and looks for segments of it; finding none it goes on with those of 1.
#[test]
fn a_history_without_segments_is_said() {
    let mut files = three();
    files.push(("00000002.history".to_owned(), b"1\t0/A00000\tx\n".to_vec()));
    let directory = archive(&files);
    let ran = check(&["--as", "archive"], directory.path()).exits(0);
    let notes = ran.json()["notes"].to_string();
    assert!(notes.contains("00000002.history: no segment of timeline 2"), "{notes}");
}

/// A backup's history is archived after the segment that it begins in. So where that one is newer than
/// all others it is lost: `could not locate required checkpoint record`. Where it is older, it was removed.
#[test]
fn a_backup_whose_wal_is_not_there_is_said() {
    let history = |segment: &str| (format!("{segment}.00000028.backup"), b"START WAL".to_vec());
    let with = |segment: &str| archive(&[three(), vec![history(segment)]].concat());
    for name in NAMES {
        let directory = with(name);
        is_green(name, directory.path());
        let notes = check(&[], directory.path()).json()["notes"].to_string();
        assert!(!notes.contains("backup"), "{notes}");
    }
    let lost = "00000001000000000000000C";
    let first = "00000001000000000000000A";
    is_red("newer", with(lost).path(), "missing_segment", first);
    // With those before it; of two such backups each segment once.
    let (second, fourth) = ("00000001000000000000000D", "00000001000000000000000F");
    let directory = archive(&[three(), vec![history(fourth), history(second)]].concat());
    let problems = check(&[], directory.path()).exits(4).json()["problems"].clone();
    let said = |at: usize| (problems[at]["segment"].as_str(), problems[at]["found"].as_str());
    assert_eq!(problems.as_array().map(Vec::len), Some(2), "{problems}");
    assert_eq!(said(0), (Some(first), Some("none of 4 segments, up to 00000001000000000000000D")));
    let third = "00000001000000000000000E";
    assert_eq!(said(1), (Some(third), Some("none of 2 segments, up to 00000001000000000000000F")));
    let other = "000000020000000000000008";
    is_red("of another timeline", with(other).path(), "missing_segment", other);
    let old = "000000010000000000000003";
    let noted = format!("{old}.00000028.backup: the WAL");
    let directory = with(old);
    is_of_no_use("the only one is older", directory.path(), &noted);
    check(&[], directory.path()).exits(1);
    let formats = ["table", "ndjson", "csv", "markdown", "junit", "sarif", "github", "gitlab"];
    for (format, code) in formats.map(|it| (it, 1)).into_iter().chain([("nagios", 2)]) {
        let mut command = command(&["check", "-f", format]);
        let ran = finish(command.arg(directory.path()).env_remove("GITHUB_STEP_SUMMARY"));
        let ran = ran.exits(code);
        assert!(
            ran.stdout.contains("no base backup that the archive names can be restored"),
            "{format}: {}",
            ran.stdout
        );
    }
    let both = archive(&[three(), vec![history(old), history(NAMES[1])]].concat());
    is_noted("a later one is whole", both.path(), &noted);
    // Whoever asks about one is told of that one.
    let ran = check(&["--from", "0/00900028"], directory.path()).exits(0);
    assert!(
        !ran.stdout.contains("no base backup that the archive names can be restored"),
        "{}",
        ran.stdout
    );
}

/// A data directory with some segments, of which the `pg_control` says that replay begins in 08; their names.
pub(crate) fn data_directory<const N: usize>(numbers: [&str; N]) -> (TempDir, [String; N]) {
    let backup = fixtures().join("backup");
    let directory = tempfile::tempdir().expect("a directory");
    let at = |path: &str| directory.path().join(path);
    put(directory.path(), "PG_VERSION", b"15\n");
    let control = fs::read(backup.join("base/global/pg_control")).expect("pg_control");
    put(&at("global"), "pg_control", &control);
    let names = numbers.map(|number| format!("0000000100000000000000{number}"));
    for name in &names {
        let packed = fs::read(backup.join(format!("archive/{name}.zst"))).expect("a segment");
        put(&at("pg_wal"), name, &zstd::decode_all(packed.as_slice()).expect("zstd"));
    }
    (directory, names)
}

/// `could not locate a valid checkpoint record`: the server begins where its pg_control says.
#[test]
fn a_data_directory_without_the_wal_that_replay_begins_in_is_told() {
    let (directory, names) = data_directory(["08", "09", "0A"]);
    let at = |path: &str| directory.path().join(path);
    check(&[], directory.path()).exits(0);
    fs::remove_file(at("pg_wal").join(&names[0])).expect("removed");
    let ran = check(&[], directory.path()).exits(4);
    assert_eq!(told(&ran), [("missing_segment".to_owned(), names[0].clone())]);
    check(&["--start", "0/900000"], directory.path()).exits(0);
    put(directory.path(), "standby.signal", b"");
    check(&[], directory.path()).exits(0);
}

/// A segment under a number that is far too high: none are missing before it, and no restore comes there.
#[test]
fn before_a_segment_under_a_number_that_is_too_high_none_are_missing() {
    let high = "000000010000000000000109";
    let open = ("open_segment".to_owned(), high.to_owned());
    let mut files = three();
    files.push((high.to_owned(), files[0].1.clone()));
    let copied = archive(&files);
    let alone = std::slice::from_ref(&open);
    assert_eq!(told(&check(&["--as", "archive"], copied.path())), alone);
    let whole = check(&["--as", "archive", "--from", "0/00900028"], copied.path()).exits(4);
    let checks = whole.json()["checks"].to_string();
    assert!(checks.contains("\"restore\",\"verdict\":\"pass\""), "{checks}");
    files.pop();
    files[1].0 = high.to_owned();
    let renamed = archive(&files);
    let missing = ("missing_segment".to_owned(), NAMES[1].to_owned());
    assert_eq!(told(&check(&["--as", "archive"], renamed.path())), [missing, open]);
}

/// `could not locate a valid checkpoint record`: the newest WAL is lost, with the last checkpoint in it.
#[test]
fn a_data_directory_without_the_checkpoint_of_its_pg_control_is_told() {
    let (directory, names) = data_directory(["06", "07", "08"]);
    check(&[], directory.path()).exits(0);
    let newest = directory.path().join("pg_wal").join(&names[2]);
    let mut bytes = fs::read(&newest).expect("the segment");
    bytes[40..].fill(0);
    fs::write(&newest, bytes).expect("written");
    let red = |kind: &str| {
        let ran = check(&[], directory.path()).exits(4);
        assert_eq!(told(&ran), [(kind.to_owned(), names[2].clone())]);
    };
    red("open_segment");
    fs::remove_file(&newest).expect("removed");
    red("missing_segment");
    for options in [["--end", "0/800000"], ["--limit", "5"]] {
        check(&options, directory.path()).exits(0);
    }
    put(directory.path(), "backup_label", b"");
    check(&[], directory.path()).exits(0);
}

/// With a limit of so many open files, three of them taken by standard streams: those that whoever
/// started the tests left open are closed.
fn with_files(limit: usize, path: &Path) -> crate::support::Ran {
    let call = command(&["check", "--as", "archive", "-j", "2"]);
    let program = call.get_program().to_owned();
    let mut shell = std::process::Command::new("bash");
    shell
        .arg("-c")
        .arg(format!("exec 3>&- 4>&- 5>&- 6>&-; ulimit -n {limit}; exec \"$0\" \"$@\""))
        .arg(program);
    finish(shell.args(call.get_args()).arg(path))
}

#[test]
fn too_few_file_descriptors_are_no_damage() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&segment(1)).expect("a vector takes everything");
    let mut files = three();
    files[1] = (format!("{}.gz", NAMES[1]), gzip.finish().expect("gzip ends"));
    let mixed = archive(&files);
    let nested: Vec<_> = three().into_iter().map(|(n, b)| (format!("a/{n}"), b)).collect();
    let nested = archive(&[three(), nested].concat());
    for path in [mixed.path(), nested.path()] {
        is_green("with enough", path);
        let ran = with_files(4, path).exits(3);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
        assert!(ran.stderr.contains("Too many open files"), "{}", ran.stderr);
        assert!(ran.stderr.contains("ulimit -n"), "{}", ran.stderr);
    }
    // One file for each thread.
    let ran = with_files(4, archive(&three()).path()).exits(3);
    assert!(ran.stderr.contains("ulimit -n"), "{}", ran.stderr);
    assert_eq!(told(&check(&["-j", "2"], mixed.path())), []);
}

/// `tar -V`: the label is a header without a member, and GNU tar gives it no size.
#[test]
fn a_tar_with_a_label_is_read() {
    let mut label = tar::Header::new_gnu();
    label.set_entry_type(tar::EntryType::new(b'V'));
    label.set_path("label").expect("a short name");
    label.as_old_mut().size.fill(0);
    label.set_cksum();
    let files = three();
    let members: Vec<_> = files.iter().map(|(name, bytes)| Member::File(name, bytes)).collect();
    let labelled = [&label.as_bytes()[..], &tar_of(&members)].concat();
    let directory = archive(&[("v.tar", labelled)]);
    let report = check(&["--as", "archive"], &directory.path().join("v.tar")).exits(0).json();
    assert_eq!(report["input"]["segments"], 3);
}

/// `readTimeLineHistory`: timeline 1 has none, and what is called so is not opened.
#[test]
fn a_history_of_timeline_1_is_read_by_nobody() {
    for text in ["", "no history"] {
        let mut files = three();
        files.push(("00000001.history".to_owned(), text.as_bytes().to_vec()));
        is_green(text, archive(&files).path());
    }
}

/// `cp` waits for somebody who writes into a pipe.
#[cfg(unix)]
#[test]
fn a_history_that_is_no_file_is_missing() {
    let directory = archive(&three());
    let _listening =
        std::os::unix::net::UnixListener::bind(directory.path().join("00000002.history"))
            .expect("a socket");
    is_red_as_it_lies("a socket", directory.path(), "history", "00000002.history");
}
