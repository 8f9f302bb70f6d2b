//! Archivers' own trees: what pgBackRest's `archive-get` or Barman's `get-wal` does not find, or hands out
//! otherwise than it was, is not restored. Tried with pgBackRest 2.45 and Barman 3.4.

use super::{
    NAMES, archive, check, gzip, in_tar, is_green, is_noted, is_red, is_red_as_it_lies, restore,
    segment, told,
};
use crate::common::builder::{Form, Wal};
use crate::common::record::Rec;
use crate::support::fixtures::sample;
use crate::support::pgbackrest::{archive_info, sha1_of};
use crate::support::wal::{lz4_frame, plain};
use std::fs;

/// Paths and bytes.
type Files = Vec<(String, Vec<u8>)>;

/// Says where a file goes.
type Move = dyn Fn(&str) -> String;

const GROUP: &str = "0000000100000000";

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("a vector takes everything")
}

/// A file's name as pgBackRest gives it.
fn with_sha1(name: &str, bytes: &[u8]) -> String {
    format!("{name}-{}", sha1_of(bytes))
}

fn system_identifier() -> u64 {
    let header = segment(0);
    u64::from_le_bytes(header[24..32].try_into().expect("eight bytes"))
}

/// A stanza: archive.info, then the three segments.
fn stanza() -> Files {
    let list = ("x/archive.info".to_owned(), archive_info(&["15-1"], system_identifier()));
    let file = |index: usize| {
        let bytes = segment(index);
        let name = with_sha1(NAMES[index], &bytes);
        (format!("x/15-1/{GROUP}/{name}.zst"), zstd(&bytes))
    };
    [list].into_iter().chain((0..3).map(file)).collect()
}

/// `wals/` of Barman, gzip.
fn wals() -> Files {
    let file = |index| (format!("wals/{GROUP}/{}", NAMES[index]), gzip(&segment(index)));
    (0..3).map(file).collect()
}

/// The name in a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().expect("a name")
}

/// The same with one file elsewhere.
fn moved(mut files: Files, from: usize, to: impl Fn(&str) -> String) -> Files {
    let path = &mut files[from].0;
    *path = to(path);
    files
}

/// "unable to find ... in the archive": it looks for `15-1/<16 digits>/<24 digits>-<SHA-1>`.
#[test]
fn a_segment_where_pgbackrest_does_not_look_is_missing() {
    is_green("as it should be", archive(&stanza()).path());
    // Its segments are packed, and histories never.
    let mut with_history = stanza();
    with_history.push(("x/15-1/00000002.history".to_owned(), b"1\t0/800000\tx\n".to_vec()));
    let notes =
        check(&["--as", "archive"], archive(&with_history).path()).json()["notes"].to_string();
    assert!(!notes.contains("both kinds"), "{notes}");
    let places: [(&str, &Move); 8] = [
        ("beside the stanza", &|path| format!("old/{}", last(path))),
        ("above the stanza", &|path| last(path).to_owned()),
        ("no SHA-1", &|_| format!("x/15-1/{GROUP}/{}.zst", NAMES[1])),
        ("another log id", &|path| format!("x/15-1/0000000100000001/{}", last(path))),
        ("above its directory", &|path| format!("x/15-1/{}", last(path))),
        ("below its directory", &|path| format!("x/15-1/{GROUP}/old/{}", last(path))),
        ("an archive id that is not listed", &|path| path.replace("15-1", "15-2")),
        ("in the stanza", &|path| format!("x/{}", last(path))),
    ];
    for (what, to) in places {
        let directory = archive(&moved(stanza(), 2, to));
        is_red_as_it_lies(what, directory.path(), "missing_segment", NAMES[1]);
        let (path, bytes) = &stanza()[2];
        super::put(directory.path(), path, bytes);
        is_green("and where it is looked for", directory.path());
    }
    let mut files = moved(stanza(), 2, |path| path.replace("15-1", "15-2"));
    files[0].1 = archive_info(&["15-1", "15-2"], system_identifier());
    is_green("an archive id that is listed", archive(&files).path());
    files[0].1 = archive_info(&["15-1", "15-2"], 1);
    let ran = check(&["--as", "archive"], archive(&files).path()).exits(4);
    assert_eq!(told(&ran).len(), 3, "archive ids of another cluster: {:?}", told(&ran));
}

/// Whoever laid the oldest away does not want it; but a backup that begins in it does.
#[test]
fn the_oldest_segment_elsewhere_is_missing_where_a_backup_begins_in_it() {
    let mut files = moved(stanza(), 1, |path| path.replace("0/", "1/"));
    is_green("laid away", archive(&files).path());
    files.push((format!("x/15-1/{GROUP}/{}.00000028.backup", NAMES[0]), Vec::new()));
    is_red_as_it_lies("a backup's", archive(&files).path(), "missing_segment", NAMES[0]);
}

/// The library of zstd has no gzip in it, unlike its tool; and nothing is unpacked under no suffix.
#[test]
fn pgbackrest_unpacks_what_the_suffix_says() {
    let mut files = stanza();
    files[2].1 = gzip(&segment(1));
    let name = last(&files[2].0).to_owned();
    is_red("gzip under .zst", archive(&files).path(), "unreadable", &name);
    let mut files = moved(stanza(), 2, |path| path.replace(".zst", ""));
    let plain_name = name.replace(".zst", "");
    let directory = archive(&files);
    is_red("zstd under no suffix", directory.path(), "unreadable", &plain_name);
    let told = restore(&check(&["--as", "archive", "--from", "0/700028"], directory.path()));
    let gone = "once that file is gone: a server ends with FATAL at its wrong size";
    assert!(told.contains(gone), "{told}");
    files[2].1 = segment(1);
    is_green("plain under no suffix", archive(&files).path());
}

/// "unable to load info file": every `archive-get` fails. Whoever gives a directory of segments has no list.
#[test]
fn a_stanza_without_archive_info_is_not_restored() {
    let mut files = stanza();
    files[0].0 += ".copy";
    is_green("the copy alone", archive(&files).path());
    let directory = archive(&files[1..]);
    for path in [directory.path().to_owned(), directory.path().join("x")] {
        is_red_as_it_lies("none", &path, "archive_info", "archive.info");
    }
    for inner in ["x/15-1", &format!("x/15-1/{GROUP}")] {
        is_green("the directory of segments", &directory.path().join(inner));
    }
    // A list in a tar is not read.
    let packed = directory.path().join("x.tar");
    let mut tar = tar::Builder::new(fs::File::create(&packed).expect("a tar"));
    tar.append_dir_all("x", directory.path().join("x")).expect("packed");
    tar.finish().expect("packed");
    is_green("a tar", &packed);
}

/// The same where both are there and the checksum of neither is right; one that is right does.
#[test]
fn a_stanza_with_a_damaged_archive_info_is_not_restored() {
    let mut files = stanza();
    let sound = files[0].1.clone();
    let text = String::from_utf8(sound.clone()).expect("text");
    let damaged = [
        text.replace("\"15\"", "\"14\""),
        text.replace("db-id=1", "db-id=2"),
        text.replace("backrest-checksum", "checksum"),
        format!("{text}more\n"),
        String::new(),
    ];
    for text in damaged {
        files[0].1 = text.clone().into();
        is_red_as_it_lies("alone", archive(&files).path(), "archive_info", "archive.info");
        files.push(("x/archive.info.copy".into(), text.into()));
        is_red_as_it_lies("both", archive(&files).path(), "archive_info", "archive.info");
        files[4].1 = sound.clone();
        is_green("the copy is sound", archive(&files).path());
        files.pop();
    }
}

/// "WAL file ... not found": it looks for `wals/<16 digits>/<24 digits>`, and for histories in `wals`.
#[test]
fn a_segment_where_barman_does_not_look_is_missing() {
    is_green("as it should be", archive(&wals()).path());
    let places: [(&str, String); 10] = [
        ("beside wals", format!("old/{}", NAMES[1])),
        ("among what is broken", format!("errors/{}", NAMES[1])),
        ("above wals", NAMES[1].to_owned()),
        ("packed by hand", format!("incoming/{}.gz", NAMES[1])),
        ("below incoming", format!("incoming/old/{}", NAMES[1])),
        ("in wals", format!("wals/{}", NAMES[1])),
        ("another log id", format!("wals/0000000100000001/{}", NAMES[1])),
        ("another timeline", format!("wals/0000000200000000/{}", NAMES[1])),
        ("below its directory", format!("wals/{GROUP}/old/{}", NAMES[1])),
        ("under a suffix", format!("wals/{GROUP}/{}.gz", NAMES[1])),
    ];
    for (what, place) in places {
        let directory = archive(&moved(wals(), 1, |_| place.clone()));
        is_red(what, directory.path(), "missing_segment", NAMES[1]);
        is_red_as_it_lies(what, &directory.path().join("wals"), "missing_segment", NAMES[1]);
        let tar = in_tar(&moved(wals(), 1, |_| place.clone()));
        is_red(&format!("{what}, in a tar"), tar.path(), "missing_segment", NAMES[1]);
    }
    is_green("as it should be, in a tar", in_tar(&wals()).path());
    for next in ["incoming", "streaming"] {
        let received = moved(wals(), 1, |_| format!("{next}/{}", NAMES[1]));
        is_green("it looks there, too", archive(&received).path());
        // Packed or not, it looks at the content.
        let mut received = moved(received, 2, |_| format!("{next}/{}", NAMES[2]));
        received[2].1 = segment(2);
        for name in ["00000001000000000000000A", "00000001000000000000000B"] {
            let bytes = gzip(&plain(&sample("pg15-mixed"), name));
            received.push((format!("wals/{GROUP}/{name}"), bytes));
        }
        is_green("one of them is packed", archive(&received).path());
    }
    let server = [("base/1/data/PG_VERSION".to_owned(), b"15\n".to_vec())];
    let own = moved(wals(), 1, |_| format!("base/1/data/pg_wal/{}", NAMES[1]));
    is_red(
        "a base backup's own",
        archive(&[&own[..], &server].concat()).path(),
        "missing_segment",
        NAMES[1],
    );
}

/// "Archive '...' does not exist": it looks for `wal_005/<24 digits>` with a suffix, and for histories so.
#[test]
fn a_segment_where_wal_g_does_not_look_is_missing() {
    let name = |index: usize| format!("{}.lz4", NAMES[index]);
    let file = |index| (format!("wal_005/{}", name(index)), lz4_frame(&segment(index)));
    let stored: Files = (0..3).map(file).collect();
    is_green("as it should be", archive(&stored).path());
    for place in ["old", "wal_005_old", "wal_005/old", "wal_006", "basebackups_005", "."] {
        let directory = archive(&moved(stored.clone(), 1, |_| format!("{place}/{}", name(1))));
        is_red(place, directory.path(), "missing_segment", NAMES[1]);
        let tar = in_tar(&moved(stored.clone(), 1, |_| format!("{place}/{}", name(1))));
        is_red(&format!("{place}, in a tar"), tar.path(), "missing_segment", NAMES[1]);
    }
    is_green("as it should be, in a tar", in_tar(&stored).path());
    let line = b"1\t0/780000\tno recovery target specified\n";
    let history = ("wal_005/00000002.history.lz4".to_owned(), lz4_frame(line));
    let directory = archive(&[&stored[..], &[history]].concat());
    let ran = check(&["--as", "archive"], directory.path()).exits(0);
    assert!(!ran.stdout.contains("history: only"), "{}", ran.stdout);
}

/// All of an archive elsewhere: no segment shows whose tree it is, and the archivers' lists do.
#[test]
fn segments_of_which_none_is_where_its_archiver_looks_are_missing() {
    let moved = |files: &Files, to: &Move| {
        let is_list = |path: &str| path.ends_with("info") || path.ends_with("xlog.db");
        let to = |path: &str| if is_list(path) { path.to_owned() } else { to(path) };
        archive(&files.iter().map(|(path, bytes)| (to(path), bytes.clone())).collect::<Files>())
    };
    let all_are_missing = |what: &str, files: &Files, to: &Move| {
        let directory = moved(files, to);
        let expected = NAMES.map(|name| ("missing_segment".to_owned(), name.to_owned()));
        let mut told = told(&check(&["--as", "archive"], directory.path()).exits(4));
        told.sort();
        assert_eq!(told, expected, "{what}");
    };
    let wals = [wals(), vec![("wals/xlog.db".to_owned(), Vec::new())]].concat();
    is_green("with its list", archive(&wals).path());
    for files in [&stanza(), &wals] {
        all_are_missing("another log id", files, &|path| path.replace("0/", "1/"));
        all_are_missing("half of it", files, &|path| {
            path.replace("0000000100000000/", "00000001/")
        });
        all_are_missing("another name", files, &|path| path.replace("0000000100000000/", "foo/"));
        all_are_missing("none", files, &|path| path.replace("0000000100000000/", ""));
    }
    all_are_missing("no archive id", &stanza(), &|path| path.replace("15-1/", ""));
    let flat = moved(&stanza(), &|path| format!("x/{}", last(path)));
    is_green("a copy beside the list", flat.path());
    let without_sha1 = |path: &str| format!("x/15-1/{GROUP}/{}.zst", &last(path)[..24]);
    all_are_missing("no SHA-1", &stanza(), &without_sha1);
    all_are_missing("under a suffix", &wals, &|path| format!("{path}.gz"));
    // Without a list the directory may be anybody's.
    let plain: Files = (0..3).map(|at| (format!("wals/{}", NAMES[at]), segment(at))).collect();
    is_green("no list", archive(&plain).path());
}

/// What it does not know it hands out as it is. It knows xz, lz4 and zstd from 3.12 on.
#[test]
fn what_not_every_barman_unpacks_is_said() {
    let mut files = wals();
    let said = |files: &Files| {
        let ran = check(&["--as", "archive"], archive(files).path()).exits(0);
        ran.json()["notes"].to_string()
    };
    assert!(!said(&files).contains("Barman"));
    files[1].1 = zstd(&segment(1));
    assert!(
        said(&files).contains(&format!("{}: packed by zstd, which Barman before 3.12", NAMES[1]))
    );
}

#[test]
fn a_history_is_looked_for_beside_the_directories_of_segments() {
    let line = b"1\t0/780000\tno recovery target specified\n".to_vec();
    for (files, tree) in [(stanza(), "x/15-1"), (wals(), "wals")] {
        let with = |place: &str| {
            let history = (format!("{tree}/{place}"), line.clone());
            archive(&[&files[..], &[history]].concat())
        };
        is_green("beside them", with("00000002.history").path());
        let below = with(&format!("{GROUP}/00000002.history"));
        is_noted("among segments", below.path(), "00000002.history: only");
        let beside = ("old/00000002.history".to_owned(), line.clone());
        let beside = archive(&[&files[..], &[beside]].concat());
        is_noted("beside the tree", beside.path(), "00000002.history: only");
        let packed = (format!("{tree}/00000002.history.gz"), gzip(&line));
        let packed = archive(&[&files[..], &[packed]].concat());
        is_noted("packed", packed.path(), "00000002.history: only");
    }
}

/// A record goes on from a segment whose SHA-1 is right into one that cannot be unpacked.
#[test]
fn a_segment_whose_sha1_is_right_is_not_to_blame() {
    let wal = sample("pg15-mixed");
    let names: Vec<String> =
        (0x0A..=0x0D).map(|number| format!("0000000100000000000000{number:02X}")).collect();
    for broken in 1..3 {
        for garbage in [false, true] {
            let file = |(index, name): (usize, &String)| {
                let bytes = plain(&wal, name);
                let mut other = bytes.clone();
                if index == broken && garbage {
                    other[40..8192].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3) ^ 0x55);
                }
                let mut packed = gzip(&other);
                if index == broken {
                    let end = packed.len() - 8;
                    packed[end] ^= 1;
                }
                (format!("x/15-1/{GROUP}/{}.gz", with_sha1(name, &bytes)), packed)
            };
            let mut files: Files = names.iter().enumerate().map(file).collect();
            files.push(("x/archive.info".into(), archive_info(&["15-1"], system_identifier())));
            let ran = check(&["--as", "archive"], archive(&files).path()).exits(4);
            let others: Vec<_> = told(&ran)
                .into_iter()
                .filter(|(_, file)| !file.starts_with(&names[broken]))
                .collect();
            assert_eq!(others, [], "{}: {:?}", names[broken], told(&ran));
        }
    }
}

/// "wrong size: 400000 instead of 1048576": its library decodes one member of gzip, one stream of bzip2, and
/// no frame behind one that is skipped. What lies behind the first does not matter.
#[test]
fn pgbackrest_unpacks_the_first_of_several_streams() {
    let bytes = segment(1);
    let (one, other) = bytes.split_at(400_000);
    let bzip2 = |bytes: &[u8]| {
        let mut packed = Vec::new();
        let mut encoder = bzip2::read::BzEncoder::new(bytes, bzip2::Compression::fast());
        std::io::Read::read_to_end(&mut encoder, &mut packed).expect("a vector takes everything");
        packed
    };
    let with = |suffix: &str, bytes: Vec<u8>| {
        let mut files = moved(stanza(), 2, |path| path.replace(".zst", suffix));
        files[2].1 = bytes;
        archive(&files)
    };
    let name = |suffix: &str| format!("{}{suffix}", with_sha1(NAMES[1], &bytes));
    for (suffix, parts) in [(".gz", [gzip(one), gzip(other)]), (".bz2", [bzip2(one), bzip2(other)])]
    {
        let ran = check(&["--as", "archive"], with(suffix, parts.concat()).path()).exits(4);
        let is_blamed = |(kind, file): &(String, String)| {
            kind == "truncated" && file.starts_with(NAMES[1])
                || kind == "archive_checksum" && *file == name(suffix)
        };
        assert!(told(&ran).iter().any(is_blamed), "{suffix}: {:?}", told(&ran));
    }
    is_green("whole", with(".bz2", bzip2(&bytes)).path());
    is_green("bytes behind", with(".gz", [gzip(&bytes), vec![7; 20]].concat()).path());
    is_green("frames of zstd", with(".zst", [zstd(one), zstd(other)].concat()).path());
    let skipped = [&0x184D_2A50_u32.to_le_bytes()[..], &[4, 0, 0, 0, 1, 2, 3, 4]].concat();
    for (suffix, packed) in [(".zst", zstd(&bytes)), (".lz4", lz4_frame(&bytes))] {
        is_green("as it is", with(suffix, packed.clone()).path());
        let skipped = with(suffix, [skipped.clone(), packed].concat());
        let ran = check(&["--as", "archive"], skipped.path()).exits(4);
        let blamed = told(&ran).iter().any(|(_, file)| file.starts_with(NAMES[1]));
        assert!(blamed, "a skippable frame, {suffix}: {:?}", told(&ran));
    }
}

/// It finds names with capital letters, too, and holds no file against its SHA-1.
#[test]
fn pgbackrest_finds_a_sha1_in_capital_letters() {
    let upper = |path: &str| {
        let (name, rest) = path.rsplit_once('-').expect("a SHA-1");
        format!("{name}-{}.zst", rest.trim_end_matches(".zst").to_uppercase())
    };
    is_green("capital letters", archive(&moved(stanza(), 2, upper)).path());
    // Both: to it they are two.
    let mut files = stanza();
    let (path, bytes) = files[2].clone();
    files.push((upper(&path), bytes));
    let ran = check(&["--as", "archive"], archive(&files).path()).exits(4);
    let found = ran.json()["problems"].to_string();
    assert!(found.contains("pgBackRest restores neither"), "{found}");
}

/// It hands out a file of another SHA-1 than its name says, and a server stops where a record is broken.
#[test]
fn a_sha1_that_does_not_hold_does_not_end_a_restore() {
    let mut files = stanza();
    let mut bytes = segment(1);
    bytes[600_000..600_008].iter_mut().for_each(|byte| *byte ^= 0x55);
    files[2].1 = zstd(&bytes);
    let ran = check(&["--as", "archive", "--from", "0/700028"], archive(&files).path()).exits(4);
    let text = restore(&ran);
    assert!(text.contains("only") && !text.contains("archive_checksum"), "{text}");
    assert!(told(&ran).iter().any(|(kind, _)| kind == "archive_checksum"), "{:?}", told(&ran));
}

/// Nor does it say that what is handed out is whole.
#[test]
fn a_sha1_that_does_not_hold_hides_no_other_problem() {
    let half = |mut bytes: Vec<u8>| {
        bytes[500_000..].fill(0);
        bytes
    };
    for bytes in [vec![0; segment(2).len()], segment(0), half(segment(2))] {
        let mut files = stanza();
        files[3].1 = zstd(&bytes);
        let ran = check(&["--as", "archive"], archive(&files).path()).exits(4);
        assert!(told(&ran).iter().any(|(kind, _)| kind != "archive_checksum"), "{:?}", told(&ran));
    }
}

/// "duplicates found in archive for WAL segment": of the newest segment too, and whatever they differ in.
#[test]
fn pgbackrest_restores_neither_of_two_files_of_a_segment() {
    let mut wal = Wal::new(Form::of("15"), 8);
    wal.add(&Rec::data(40));
    wal.switch();
    let written = wal.finish().write();
    let sound = std::fs::read(written.path().join(NAMES[1])).expect("the segment");
    let system = u64::from_le_bytes(sound[24..32].try_into().expect("eight bytes"));
    // Behind the switch, where no server reads.
    let mut other = sound.clone();
    *other.last_mut().expect("a byte") = 1;
    let mut files: Files = vec![("x/archive.info".to_owned(), archive_info(&["15-1"], system))];
    for (bytes, code) in [(sound, 0), (other, 4)] {
        let path = format!("x/15-1/{GROUP}/{}.zst", with_sha1(NAMES[1], &bytes));
        files.push((path, zstd(&bytes)));
        let ran = check(&["--as", "archive"], archive(&files).path()).exits(code);
        let found = ran.json()["problems"].to_string();
        assert_eq!(found.contains("pgBackRest restores neither"), code == 4, "{found}");
    }
}

/// "unable to load info file": a line of its lists ends in a line feed alone.
#[test]
fn lists_with_the_line_ends_of_windows_are_not_read() {
    let mut files = stanza();
    let text = String::from_utf8(files[0].1.clone()).expect("text").replace('\n', "\r\n");
    files[0].1 = text.clone().into();
    files.push(("x/archive.info.copy".into(), text.into()));
    is_red_as_it_lies("both", archive(&files).path(), "archive_info", "archive.info");
}
