//! How a file is packed is held against its name and its neighbours.

use super::timelines::two_timelines;
use super::{
    NAMES, archive, check, gzip, is_green, is_noted, is_red, put, segment, tar_of, three, told,
};
use crate::support::wal::lz4_frame;
use std::fs;
use std::io::Read;

/// Packs bytes.
type Pack = fn(&[u8]) -> Vec<u8>;

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = liblzma::read::XzEncoder::new(bytes, 0);
    encoder.read_to_end(&mut packed).expect("a vector takes everything");
    packed
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("a vector takes everything")
}

/// The three segments, each packed and with this suffix.
fn packed(suffix: &str, pack: Pack) -> Vec<(String, Vec<u8>)> {
    let pack = |(name, bytes): (String, Vec<u8>)| (format!("{name}.{suffix}"), pack(&bytes));
    three().into_iter().map(pack).collect()
}

/// `tar -r` adds a member that is there already, and `tar -x` leaves the last one.
#[test]
fn of_two_members_of_a_tar_with_one_path_the_last_one_is_read() {
    let [first, second, third] = [0, 1, 2].map(segment);
    let mut broken = second.clone();
    broken[100_000..101_000].fill(0);
    let directory = tempfile::tempdir().expect("a directory");
    let store = |order: [&[u8]; 2], last: (&str, &[u8])| {
        let [before, after] = order;
        let (one, again) = ((NAMES[1], before), (NAMES[1], after));
        let (first, third) = ((NAMES[0], first.as_slice()), (NAMES[2], third.as_slice()));
        let tar = tar_of(&[first, one, third, again, last]);
        put(directory.path(), "wal.tar", &tar)
    };
    let none = ("other", [].as_slice());
    let tar = store([&broken, &second], none);
    is_noted("mended", &tar, "1 file is there twice: the last one is read");
    let tar = store([&gzip(&second), &second], none);
    is_noted("unpacked", &tar, "1 file is there twice: the last one is read");
    let tar = store([&second, &broken], none);
    is_red("broken", &tar, "checksum", NAMES[1]);
    // In a tar within the tar it is another file, and a copy of it.
    let within = tar_of(&[(NAMES[1], &second)]);
    let tar = store([&second, &second], ("more.tar", &within));
    is_noted("another tar", &tar, "1 file is there twice");
}

/// `gunzip` says "not in gzip format" and fails: the server ends recovery before this segment. The same
/// holds of any other packing than the suffix's; `zstd` alone unpacks those of others.
#[test]
fn what_the_tool_of_its_suffix_does_not_unpack_is_not_restored() {
    for index in 0..3 {
        let mut files = packed("gz", gzip);
        files[index].1 = segment(index);
        is_red("plain bytes as .gz", archive(&files).path(), "unreadable", &files[index].0);
        files[index].1 = xz(&segment(index));
        is_red("xz as .gz", archive(&files).path(), "unreadable", &files[index].0);
    }
    let mut files = packed("zst", zstd);
    files[1].1 = gzip(&segment(1));
    is_green("gzip as .zst", archive(&files).path());
    // But less than their own tools do: no zeros behind gzip, and no legacy frames of LZ4.
    files[1].1.push(0);
    is_red("gzip and a zero as .zst", archive(&files).path(), "codec_checksum", &files[1].0);
    let block = lz4_flex::block::compress(&segment(1));
    let head = [0x184C_2102, block.len() as u32].map(u32::to_le_bytes).concat();
    files[1].1 = [head, block].concat();
    is_red("legacy LZ4 as .zst", archive(&files).path(), "unreadable", NAMES[1]);
    let as_lz4 = vec![(format!("{}.lz4", NAMES[1]), files[1].1.clone())];
    is_green("legacy LZ4 as .lz4", archive(&as_lz4).path());
    let mut files = packed("xz", xz);
    files[1].1 = zstd(&segment(1));
    is_red("zstd as .xz", archive(&files).path(), "unreadable", &files[1].0);
}

/// `cp` brings the compressed bytes, and the server says `archive file has wrong size` and does not start.
/// Where all are compressed under plain names, the command unpacks, and fails on a plain one.
#[test]
fn a_plain_name_promises_what_its_neighbours_do() {
    for index in 0..3 {
        let mut files = three();
        files[index].1 = gzip(&segment(index));
        is_red("gzip among plain", archive(&files).path(), "unreadable", NAMES[index]);
        let mut files = three();
        for (other, file) in files.iter_mut().enumerate().filter(|(other, _)| *other != index) {
            file.1 = gzip(&segment(other));
        }
        is_red("plain among gzip", archive(&files).path(), "unreadable", NAMES[index]);
    }
    let all: Vec<_> = three().into_iter().map(|(name, bytes)| (name, gzip(&bytes))).collect();
    is_green("all compressed", archive(&all).path());
    // By two tools: each fails on what the other one has packed; that of zstd knows more than its own.
    for index in 0..3 {
        let mut files = all.clone();
        files[index].1 = lz4_frame(&segment(index));
        is_red("lz4 among gzip", archive(&files).path(), "unreadable", NAMES[index]);
        let mut files: Vec<_> =
            three().into_iter().map(|(name, bytes)| (name, zstd(&bytes))).collect();
        files[index].1 = gzip(&segment(index));
        is_green("gzip among zstd", archive(&files).path());
    }
    // Barman's get-wal looks at the content.
    let mut barman = three();
    barman[1].1 = gzip(&segment(1));
    for (name, _) in &mut barman {
        *name = format!("wals/0000000100000000/{name}");
    }
    is_green("mixed in a tree of Barman", archive(&barman).path());
}

/// `cp` brings the tar: `archive file has wrong size`.
#[test]
fn a_tar_under_a_segments_name_is_no_segment() {
    for index in 0..3 {
        let mut files = three();
        files[index].1 = tar_of(&[(NAMES[index], &segment(index))]);
        is_red("a tar", archive(&files).path(), "not_wal", NAMES[index]);
    }
}

/// `xz -dc` says "Unexpected end of input", writes all of the segment, and fails.
#[test]
fn padding_of_xz_is_a_multiple_of_four() {
    for (zeros, good) in [(1, false), (2, false), (4, true), (6, false), (8, true)] {
        let mut files = packed("xz", xz);
        files[1].1.extend(vec![0; zeros]);
        let directory = archive(&files);
        if good {
            is_green("padding", directory.path())
        } else {
            is_red("padding", directory.path(), "codec_checksum", &files[1].0)
        }
    }
}

/// `gzip -dc` ignores zeros at the end. A member after them it takes for garbage: it leaves it out, and its
/// exit status is 2.
#[test]
fn no_member_of_gzip_comes_after_zeros() {
    let bytes = segment(1);
    let (one, other) = bytes.split_at(300_000);
    let mut files = packed("gz", gzip);
    files[1].1 = [gzip(one), gzip(other), vec![0; 512]].concat();
    is_green("zeros at the end", archive(&files).path());
    files[1].1 = [gzip(one), vec![0; 512], gzip(other)].concat();
    is_red("zeros between", archive(&files).path(), "unreadable", NAMES[1]);
}

/// `cp ARCHIVE/%f` looks into one directory: the server ends recovery before the segment.
#[test]
fn a_segment_below_the_directory_of_all_others_is_not_found() {
    for index in 1..3 {
        let mut files = three();
        files[index].0 = format!("old/{}", NAMES[index]);
        is_red("in a subfolder", archive(&files).path(), "missing_segment", NAMES[index]);
        files.push((NAMES[index].to_owned(), segment(index)));
        is_green("in both", archive(&files).path());
    }
    // What is older than the others was laid away.
    let mut files = three();
    files[0].0 = format!("2025/{}", NAMES[0]);
    is_green("the oldest laid away", archive(&files).path());
    let folders = three().into_iter().map(|(name, bytes)| (format!("2026/{name}"), bytes));
    is_green("all in a subfolder", archive(&folders.collect::<Vec<_>>()).path());
}

/// `zstd: can't stat ARCHIVE/%f.zst`: the server ends recovery before the segment.
#[test]
fn a_suffix_spelt_otherwise_than_those_of_the_others_is_not_found() {
    let spelt: [(&str, &str, Pack); 6] = [
        ("zst", "zstd", zstd),
        ("gz", "GZ", gzip),
        ("gz", "gzip", gzip),
        ("GZ", "gz", gzip),
        ("gz", "gz.gz", gzip),
        ("zst", "zst.zst", zstd),
    ];
    for (suffix, other, pack) in spelt {
        for index in 1..3 {
            let mut files = packed(suffix, pack);
            files[index].0 = format!("{}.{other}", NAMES[index]);
            let directory = archive(&files);
            is_red(other, directory.path(), "missing_segment", NAMES[index]);
            let (name, bytes) = &packed(suffix, pack)[index];
            put(directory.path(), name, bytes);
            is_green("under both", directory.path());
        }
        is_green("all of one spelling", archive(&packed(other, pack)).path());
    }
}

/// There are `restore_command`s that try several packings: it is said, and no problem. So it is at the ends
/// of an archive, where the way may have been changed.
#[test]
fn a_segment_packed_otherwise_than_those_around_it_is_said() {
    let plain: fn(usize) -> (String, Vec<u8>) = |index| (NAMES[index].to_owned(), segment(index));
    let gzipped: fn(usize) -> (String, Vec<u8>) =
        |index| (format!("{}.gz", NAMES[index]), gzip(&segment(index)));
    let xzipped: fn(usize) -> (String, Vec<u8>) =
        |index| (format!("{}.xz", NAMES[index]), xz(&segment(index)));
    let says = |what: &str, files: [(String, Vec<u8>); 3]| {
        let directory = archive(&files);
        is_green(what, directory.path());
        let ran = check(&["--as", "archive"], directory.path());
        ran.json()["notes"].to_string().contains("has to fetch and unpack both kinds")
    };
    for (most, other) in [(gzipped, plain), (gzipped, xzipped), (plain, gzipped)] {
        assert!(says("one packed otherwise", [most(0), other(1), most(2)]));
        assert!(says("the newest not packed yet", [most(0), most(1), other(2)]));
        assert!(says("the way was changed", [other(0), most(1), most(2)]));
        assert!(!says("all packed alike", [most(0), most(1), most(2)]));
    }
    let of_wal_g = [gzipped(0), xzipped(1), gzipped(2)];
    let of_wal_g = of_wal_g.map(|(name, bytes)| (format!("wal_005/{name}"), bytes));
    assert!(!says("WAL-G looks for any packing", of_wal_g));
}

/// What was laid away is missed where the restore begins with it.
#[test]
fn a_restore_from_the_oldest_segment_on_needs_it_beside_the_others() {
    let mut files = three();
    files[0].0 = format!("2025/{}", NAMES[0]);
    let moved = archive(&files);
    let mut files = packed("gz", gzip);
    files[0].0 = format!("{}.GZ", NAMES[0]);
    let spelt = archive(&files);
    for directory in [moved, spelt] {
        is_green("from the others on", directory.path());
        check(&["--from", "0/800000"], directory.path()).exits(0);
        let ran = check(&["--from", "0/700028"], directory.path()).exits(1);
        let said = format!("not restorable: {}: expected", NAMES[0]);
        assert!(ran.json()["checks"].to_string().contains(&said), "{}", ran.stdout);
    }
}

/// A tool writes what it unpacked and fails, and the server ends recovery before this segment.
#[test]
fn a_stream_that_ends_in_its_middle_is_told_under_any_suffix() {
    let suffixes: [(&str, Pack); 6] =
        [("zstd", zstd), ("ZST", zstd), ("gzip", gzip), ("GZ", gzip), ("XZ", xz), ("Zst", zstd)];
    for (suffix, pack) in suffixes {
        for index in [0, 2] {
            let mut files = packed("zst", zstd);
            let bytes = pack(&segment(index));
            files[index] =
                (format!("{}.{suffix}", NAMES[index]), bytes[..bytes.len() / 2].to_vec());
            let directory = archive(&files);
            let ran = check(&["--as", "archive"], directory.path()).exits(4);
            let named = |(_, file): &(String, String)| file.starts_with(NAMES[index]);
            assert!(told(&ran).iter().all(named), "{suffix} {index}: {:?}", told(&ran));
            // A cut copy beside a good one is asked for by nobody.
            put(directory.path(), &format!("{}.zst", NAMES[index]), &zstd(&segment(index)));
            is_green(suffix, directory.path());
        }
    }
}

/// `cp ARCHIVE/%f` and `gunzip < ARCHIVE/%f.gz` find no file with a SHA-1 in its name.
#[test]
fn a_name_of_pgbackrest_among_others_is_not_asked_for() {
    let hashed = |index: usize, suffix: &str, bytes: Vec<u8>| {
        let sha1 = crate::support::pgbackrest::sha1_of(&segment(index));
        (format!("{}-{sha1}{suffix}", NAMES[index]), bytes)
    };
    for index in 1..3 {
        for (suffix, pack) in [("", (|bytes| bytes.to_vec()) as Pack), (".gz", gzip)] {
            let mut files = three();
            files[index] = hashed(index, suffix, pack(&segment(index)));
            let directory = archive(&files);
            is_red("among plain", directory.path(), "missing_segment", NAMES[index]);
            put(directory.path(), NAMES[index], &segment(index));
            is_green("under both", directory.path());
        }
        let mut files = packed("gz", gzip);
        files[index] = hashed(index, "", segment(index));
        is_red("among gzip", archive(&files).path(), "missing_segment", NAMES[index]);
    }
}

/// Segments are packed in place, by a job: what is there of one, beside the file that it is packed from, is
/// no damage, nor when the job was interrupted. Without that file it is.
#[test]
fn what_is_packed_so_far_of_a_segment_beside_it_is_a_note() {
    let packed = gzip(&segment(1));
    for bytes in [0, packed.len() / 3, packed.len() - 100] {
        let mut files = three();
        let name = format!("{}.gz", NAMES[1]);
        files.push((name.clone(), packed[..bytes].to_vec()));
        let directory = archive(&files);
        is_noted("beside it", directory.path(), "ends in its middle, as while it is being packed");
        fs::remove_file(directory.path().join(NAMES[1])).expect("removed");
        assert_eq!(check(&["--as", "archive"], directory.path()).code, Some(4), "{bytes} alone");
    }
}

/// Nobody fetches them under these names: they are copies laid aside, as `.bak` is.
#[test]
fn a_segment_under_a_suffix_that_says_something_else_is_not_asked_for() {
    for suffix in ["bak", "zip", "gpg", "gz.enc", "age", "7z"] {
        let mut files = three();
        files[1].0 += &format!(".{suffix}");
        let directory = archive(&files);
        let ran = check(&["--as", "archive"], directory.path()).exits(4);
        let expected = ("missing_segment".to_owned(), NAMES[1].to_owned());
        assert_eq!(told(&ran), [expected], "{suffix}");
        put(directory.path(), NAMES[1], &segment(1));
        is_green(suffix, directory.path());
    }
}

/// `syntax error in history file`: the server gets what `cp` or the tool of the suffix makes of it.
#[test]
fn a_history_is_packed_as_its_name_says() {
    let text = b"1\t0/A00000\tx\n".as_slice();
    let with = |segments: Vec<(String, Vec<u8>)>, name: &str, bytes: Vec<u8>| {
        archive(&[segments, vec![(name.to_owned(), bytes)]].concat())
    };
    let name = "00000002.history";
    for pack in [gzip, xz, zstd] as [Pack; 3] {
        let directory = with(three(), name, pack(text));
        is_red("packed under a plain name", directory.path(), "history", name);
    }
    let suffixed = format!("{name}.gz");
    for bytes in [text.to_vec(), xz(text)] {
        let directory = with(packed("gz", gzip), &suffixed, bytes);
        is_noted("no gzip under .gz", directory.path(), "which a tool for .gz does not unpack");
    }
    is_green("gzip under .gz", with(packed("gz", gzip), &suffixed, gzip(text)).path());
    // pg_receivewal writes it so: it packs segments alone.
    let directory = with(packed("gz", gzip), name, text.to_vec());
    is_noted("text among gzip", directory.path(), "has to fetch both kinds, and unpack one");
    let all: Vec<_> = three().into_iter().map(|(name, bytes)| (name, gzip(&bytes))).collect();
    is_green("all packed under plain names", with(all.clone(), name, gzip(text)).path());
    for bytes in [text.to_vec(), xz(text)] {
        let directory = with(all.clone(), name, bytes);
        is_noted("no gzip, segments are", directory.path(), "a tool for .gz does not unpack");
    }
}

/// The tool that unpacks all segments fails on it, so the timeline is never found.
#[test]
fn a_history_is_packed_as_the_segments_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    two_timelines(folder);
    let entries = fs::read_dir(folder).expect("a directory");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let packed = gzip(&fs::read(&path).expect("a file"));
        fs::write(&path, packed).expect("a file");
    }
    is_green("all by gzip", folder);
    let name = "00000002.history";
    let packed = fs::read(folder.join(name)).expect("the history");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut text).expect("gzip");
    for bytes in [text.clone(), xz(&text)] {
        put(folder, name, &bytes);
        is_red("a history that is not", folder, "missing_history", name);
    }
}

/// `zstd -qdc LINK` prints nothing and says nothing, and the server ends recovery there.
#[test]
fn links_that_zstd_passes_over_are_said() {
    let link = |suffix: &str, pack: Pack| {
        let directory = archive(&packed(suffix, pack));
        let elsewhere = directory.path().join("elsewhere");
        let name = directory.path().join(format!("{}.{suffix}", NAMES[1]));
        std::fs::rename(&name, &elsewhere).expect("renamed");
        std::os::unix::fs::symlink(&elsewhere, name).expect("a link");
        directory
    };
    is_noted("zstd", link("zst", zstd).path(), "zstd unpacks none without -f");
    let gzip = link("gz", gzip);
    is_green("gzip follows links", gzip.path());
    let notes = check(&["--as", "archive"], gzip.path()).json()["notes"].to_string();
    assert!(!notes.contains("link"), "{notes}");
}
