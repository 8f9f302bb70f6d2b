//! Cases of an archive with two timelines: a standby was promoted, and the old primary went on. The
//! tree is a real one (`fixtures/archives`); what a server restores of such damages is held by
//! `restore.rs`, from which the verdicts are.

use std::collections::BTreeMap;
use std::path::Path;

use super::archive::{Store, write};
use super::case::{Case, Put};
use super::chain::SEGMENT;
use super::form::{ARCHIVE_INFO, Codec, Form, archive_info};
use super::verdict::{Input, InputKind, Verdict};
use crate::support::pgbackrest::sha1_of;

/// The archive's files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

const HISTORY: &str = "00000002.history";
/// Of a timeline that has no segments.
const NEXT_HISTORY: &str = "00000003.history";
/// The last segment of timeline 1 that timeline 2 stands on.
const BEFORE: &str = "00000001000000000000000C";
/// The segment in which timeline 2 begins, as timeline 1 went on with it.
const LEFT: &str = "00000001000000000000000D";
/// What timeline 1 ends with.
const OLD_LAST: &str = "00000001000000000000000E";
/// The segment in which timeline 2 begins.
const BEGIN: &str = "00000002000000000000000D";
/// What timeline 2 ends with.
const NEW_LAST: &str = "00000002000000000000000F";
/// Where it begins, as `fixtures/archives/README.md` has it.
const SWITCH: u64 = 0xD3_D728;

/// Reads the tree.
pub fn files() -> Files {
    let packed = crate::support::fixtures::fixtures().join("archives/trees.tar.zst");
    let bytes = std::fs::read(packed).expect("the fixture");
    let mut tar = tar::Archive::new(zstd::Decoder::new(bytes.as_slice()).expect("a decoder"));
    let mut files = Files::new();
    for entry in tar.entries().expect("a tar") {
        let mut entry = entry.expect("a member");
        let path = entry.path().expect("a path").into_owned();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let wanted = path.starts_with("trees/promotion") && entry.header().entry_type().is_file();
        if let Some(name) = name.filter(|name| wanted && !name.ends_with(".backup")) {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut plain).expect("a member");
            files.insert(name, plain);
        }
    }
    let wanted = [HISTORY, BEFORE, LEFT, OLD_LAST, BEGIN, NEW_LAST];
    assert!(wanted.iter().all(|name| files.contains_key(*name)), "{:?}", files.keys());
    files
}

type Change = fn(&mut Files);

fn history(files: &mut Files, text: &str) {
    files.insert(HISTORY.to_owned(), text.as_bytes().to_vec());
}

/// A history of one line.
fn line(parent: u32, position: u64) -> String {
    format!("{parent}\t{:X}/{:X}\tno recovery target specified\n", position >> 32, position as u32)
}

fn edit(files: &mut Files, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    change(files.get_mut(name).expect("a file of the tree"));
}

const DAMAGES: [(&str, Change); 21] = [
    ("history missing", |f| drop(f.remove(HISTORY))),
    ("history empty", |f| history(f, "")),
    ("history garbled", |f| history(f, "\u{7}garbage\nmore\n")),
    ("history of zeros", |f| edit(f, HISTORY, |text| text.fill(0))),
    ("history without its position", |f| history(f, "1\n")),
    ("history cut in its position", |f| history(f, "1\t0/")),
    ("switch point a segment too late", |f| history(f, &line(1, SWITCH + SEGMENT as u64))),
    ("switch point before all segments", |f| history(f, &line(1, SEGMENT as u64))),
    ("history names a parent that is not there", |f| history(f, &line(3, SWITCH))),
    ("history names itself as parent", |f| history(f, &line(2, SWITCH))),
    ("history names a parent twice", |f| history(f, &line(1, SWITCH).repeat(2))),
    ("old timeline: last segment all zeros", |f| edit(f, OLD_LAST, |b| b.fill(0))),
    ("old timeline: last segment cut off", |f| edit(f, OLD_LAST, |b| b.truncate(9000))),
    ("old timeline: bit in the segment of the switch", |f| {
        edit(f, LEFT, |b| b[SWITCH as usize % SEGMENT + 26] ^= 1)
    }),
    ("old timeline: segment of the switch missing", |f| drop(f.remove(LEFT))),
    ("segment missing that both stand on", |f| drop(f.remove(BEFORE))),
    ("new timeline: first segment missing", |f| drop(f.remove(BEGIN))),
    ("new timeline: first segment only as .partial", |f| {
        let bytes = f.remove(BEGIN).expect("a file of the tree");
        f.insert(format!("{BEGIN}.partial"), bytes);
    }),
    ("new timeline: first segment is the old timeline's", |f| {
        let old = f[LEFT].clone();
        f.insert(BEGIN.to_owned(), old);
    }),
    ("new timeline: last segment all zeros", |f| edit(f, NEW_LAST, |b| b.fill(0))),
    // The server fetches it, goes on with timeline 1 up to there, and ends.
    ("a newer history that leaves the older timeline, without segments", |f| {
        f.insert(NEXT_HISTORY.to_owned(), line(1, SWITCH - SEGMENT as u64).into_bytes());
    }),
];

const SOUND: [(&str, Change); 12] = [
    ("switch point a segment too early", |f| history(f, &line(1, SWITCH - SEGMENT as u64))),
    ("switch point some bytes too late", |f| history(f, &line(1, SWITCH + 64))),
    ("switch point some bytes too early", |f| history(f, &line(1, SWITCH - 64))),
    ("as it should be", |_| {}),
    ("old timeline ends before the switch", |f| {
        f.remove(LEFT);
        f.remove(OLD_LAST);
    }),
    ("no .partial", |f| drop(f.remove(&format!("{LEFT}.partial")))),
    ("a bit in the .partial of the segment of the switch, which only the new timeline has", |f| {
        f.remove(LEFT);
        f.remove(OLD_LAST);
        edit(f, &format!("{LEFT}.partial"), |b| b[5000] ^= 1);
    }),
    ("last segments not there yet", |f| {
        f.remove(NEW_LAST);
        f.remove(OLD_LAST);
    }),
    ("just promoted", |f| {
        f.retain(|name, _| !name.starts_with("000000020") && name != LEFT && name != OLD_LAST)
    }),
    ("just promoted once more", |f| {
        let after = line(2, SWITCH + 2 * SEGMENT as u64 + 4096);
        f.insert(NEXT_HISTORY.to_owned(), (line(1, SWITCH) + &after).into_bytes());
    }),
    ("history with a comment", |f| history(f, &format!("# why\n\n{}\n", line(1, SWITCH)))),
    ("no new timeline at all", |f| {
        f.retain(|name, _| !name.starts_with("00000002") && !name.ends_with(".partial"));
    }),
];

/// How the files are stored.
#[derive(Debug, Clone, Copy)]
enum Stored {
    In(Form),
    Tar,
    PipedTar,
}

const STORED: [Stored; 7] = [
    Stored::In(Form::RAW),
    Stored::In(Form::Suffixed(Codec::Gzip)),
    Stored::In(Form::Suffixed(Codec::Zstd)),
    Stored::In(Form::PgBackRest(Codec::BareZstd)),
    Stored::In(Form::Barman(Codec::Gzip)),
    Stored::Tar,
    Stored::PipedTar,
];

impl Stored {
    fn write(self, files: &Files, folder: &Path) -> Input {
        let form = match self {
            Stored::In(form) => form,
            Stored::Tar | Stored::PipedTar => Form::RAW,
        };
        let mut tar = tar::Builder::new(Vec::new());
        for (name, plain) in files {
            let (place, stored) = place(form, name, plain);
            match self {
                Stored::In(_) => write(&folder.join("in").join(place), &stored),
                Stored::Tar | Stored::PipedTar => {
                    let mut header = tar::Header::new_ustar();
                    header.set_size(stored.len() as u64);
                    header.set_mode(0o600);
                    tar.append_data(&mut header, place, stored.as_slice()).expect("a member");
                }
            }
        }
        let segment = files.iter().find(|(name, _)| name.len() == 24);
        if let (Stored::In(Form::PgBackRest(_)), Some((_, plain))) = (self, segment) {
            write(&folder.join("in").join(ARCHIVE_INFO), &archive_info(plain));
        }
        let bytes = tar.into_inner().expect("a vector takes all");
        match self {
            Stored::In(_) => Input::Path(folder.join("in")),
            Stored::Tar => {
                write(&folder.join("in.tar"), &bytes);
                Input::Path(folder.join("in.tar"))
            }
            Stored::PipedTar => Input::Pipe(bytes),
        }
    }
}

/// Place and stored bytes of a segment, `.partial` or history, as the archivers do it.
fn place(form: Form, name: &str, plain: &[u8]) -> (String, Vec<u8>) {
    let codec = form.codec();
    match (form, name.strip_suffix(".partial"), name) {
        (Form::Suffixed(_), _, _) => (format!("{name}{}", codec.suffix()), codec.encode(plain)),
        (Form::PgBackRest(_), _, HISTORY | NEXT_HISTORY) => {
            (format!("archive/demo/15-1/{name}"), plain.to_vec())
        }
        (Form::Barman(_), _, HISTORY | NEXT_HISTORY) => {
            (format!("wals/{name}"), codec.encode(plain))
        }
        (_, None, _) => (form.place(name, || sha1_of(plain)), codec.encode(plain)),
        (_, Some(segment), _) => {
            let whole = form.place(segment, || sha1_of(plain));
            // The folder has the first digits only: the name is in the path once.
            (whole.replace(segment, name), codec.encode(plain))
        }
    }
}

/// All cases.
pub fn all(files: &Files) -> Vec<Case<'_>> {
    let damages = DAMAGES.into_iter().map(|(name, change)| (name, change, Verdict::Red));
    let sound = SOUND.into_iter().map(|(name, change)| (name, change, Verdict::Green));
    let kinds: Vec<_> = damages.chain(sound).collect();
    let of = |stored: Stored| {
        kinds.iter().map(move |&(name, change, expected)| {
            let lay = move |_: &Store, folder: &Path| {
                let mut files = files.clone();
                change(&mut files);
                let input = stored.write(&files, folder);
                Some(Put { input, expected, says_open: None, taken_for: Some("archive") })
            };
            Case {
                group: format!("timelines: {name}"),
                subject: format!("{stored:?}"),
                taken_for: InputKind::Archive,
                codec: stored.codec(),
                lay: Box::new(lay),
            }
        })
    };
    STORED.into_iter().flat_map(of).collect()
}

impl Stored {
    fn codec(self) -> Codec {
        match self {
            Stored::In(form) => form.codec(),
            Stored::Tar | Stored::PipedTar => Codec::None,
        }
    }
}
