//! Archivers' own trees: what pgBackRest's `archive-get` or Barman's `get-wal` does not find, or hands out
//! otherwise than it was, is not restored. Tried with pgBackRest 2.45 and Barman 3.4.

use super::{NAMES, archive, check, gzip, is_green, is_red, segment, told};
use crate::support::fixtures::sample;
use crate::support::wal::plain;
use sha1::{Digest, Sha1};

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
    let digits: String = Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{digits}")
}

/// archive.info with archive ids of a cluster, as pgBackRest writes it.
fn archive_info(ids: &[&str], system_identifier: u64) -> Vec<u8> {
    let entry = |id: &&str| {
        let (version, number) = id.split_once('-').expect("an archive id");
        format!("{number}={{\"db-id\":{system_identifier},\"db-version\":\"{version}\"}}\n")
    };
    let entries: String = ids.iter().map(entry).collect();
    format!("[db]\ndb-id=1\n\n[db:history]\n{entries}\n[backrest]\nbackrest-format=5\n").into()
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

/// The library of zstd has no gzip in it, unlike its tool; and nothing is unpacked under no suffix.
#[test]
fn pgbackrest_unpacks_what_the_suffix_says() {
    let mut files = stanza();
    files[2].1 = gzip(&segment(1));
    let name = last(&files[2].0).to_owned();
    is_red("gzip under .zst", archive(&files).path(), "unreadable", &name);
    let mut files = moved(stanza(), 2, |path| path.replace(".zst", ""));
    let plain_name = name.replace(".zst", "");
    is_red("zstd under no suffix", archive(&files).path(), "unreadable", &plain_name);
    files[2].1 = segment(1);
    is_green("plain under no suffix", archive(&files).path());
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
