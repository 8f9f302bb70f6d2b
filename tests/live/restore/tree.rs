//! One archive on disk, in the layout of one archiver, to be damaged by a case. Plain bytes go in and
//! come out; how a layout stores and names them is known here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::origin::{Origin, Place, SEGMENT, parse, segment};
use crate::archiving::Files;
use crate::support::pgbackrest::{archive_info, sha1_of};

/// How an archiver lays out its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// `archive_command = 'cp …'`.
    Raw,
    /// `gzip`, histories too.
    Gzip,
    /// The same under `.gzip`.
    LongGzip,
    /// `zstd`, histories too.
    Zstd,
    /// A pgBackRest repository, not compressed.
    PgBackRest,
    /// A pgBackRest repository, `zst`.
    PgBackRestZstd,
    /// A Barman server, `gzip`.
    Barman,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 7] = [
        Layout::Raw,
        Layout::Gzip,
        Layout::LongGzip,
        Layout::Zstd,
        Layout::PgBackRest,
        Layout::PgBackRestZstd,
        Layout::Barman,
    ];

    /// The name that `fetch.sh` knows.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Raw => "raw",
            Layout::Gzip => "gzip",
            Layout::LongGzip => "long-gzip",
            Layout::Zstd => "zstd",
            Layout::PgBackRest => "pgbackrest",
            Layout::PgBackRestZstd => "pgbackrest-zst",
            Layout::Barman => "barman",
        }
    }

    /// Where a file with this content lies below the archive.
    fn place(self, name: &str, plain: &[u8]) -> String {
        let is_segment = parse(name.trim_end_matches(".partial")).is_some();
        let folder = name.get(..16).unwrap_or_default();
        match self {
            Layout::Raw => name.to_owned(),
            Layout::Gzip => format!("{name}.gz"),
            Layout::LongGzip => format!("{name}.gzip"),
            Layout::Zstd => format!("{name}.zst"),
            Layout::PgBackRest | Layout::PgBackRestZstd if name.ends_with(".backup") => {
                format!("archive/demo/15-1/{folder}/{name}")
            }
            Layout::PgBackRest | Layout::PgBackRestZstd if !is_segment => {
                format!("archive/demo/15-1/{name}")
            }
            Layout::PgBackRest => format!("archive/demo/15-1/{folder}/{name}-{}", sha1_of(plain)),
            Layout::PgBackRestZstd => {
                format!("archive/demo/15-1/{folder}/{name}-{}.zst", sha1_of(plain))
            }
            Layout::Barman if name.ends_with(".history") => format!("wals/{name}"),
            Layout::Barman => format!("wals/{folder}/{name}"),
        }
    }

    /// The bytes that are stored.
    pub fn encode(self, name: &str, plain: &[u8]) -> Vec<u8> {
        let is_segment = parse(name.trim_end_matches(".partial")).is_some();
        match self {
            Layout::Raw | Layout::PgBackRest => plain.to_vec(),
            Layout::PgBackRestZstd if !is_segment => plain.to_vec(),
            Layout::Gzip | Layout::LongGzip | Layout::Barman => gzip(plain),
            Layout::Zstd => zstd(plain, true),
            Layout::PgBackRestZstd => zstd(plain, false),
        }
    }
}

/// A gzip file of one member.
pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// A zstd file of one frame, of which the size is not stored.
pub fn zstd(plain: &[u8], checksum: bool) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.include_checksum(checksum).expect("a known setting");
    encoder.write_all(plain).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// An xz file.
pub fn xz(plain: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::read::XzEncoder::new(plain, 0);
    let mut packed = Vec::new();
    encoder.read_to_end(&mut packed).expect("a vector takes all");
    packed
}

/// What has been archived when the archive is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The standby was promoted and has written segments since; the old primary is gone.
    Promoted,
    /// The same, and the old primary went on writing timeline 1.
    Both,
    /// The standby was promoted just now: its history and the `.partial` are all there is of it.
    Fresh,
    /// A server restored from all of timeline 2 has gone on with timeline 3.
    Third,
    /// Both servers went on; then one was restored to a point in timeline 1 and has gone on from there
    /// with timeline 3.
    Rewound,
    /// The same, but without saying that timeline 1 is to be followed: timeline 3 names the newer timeline 2
    /// as its parent, and begins before it.
    Earlier,
}

/// An archive on disk.
pub struct Tree<'o> {
    /// What it is made of.
    pub origin: &'o Origin,
    /// The folder that `walstat check` is given.
    pub folder: PathBuf,
    /// Its layout.
    pub layout: Layout,
    /// What had been archived.
    pub state: State,
    /// All files of that, as they should be.
    pub files: Files,
    /// Where the files lie, by plain name.
    paths: BTreeMap<String, PathBuf>,
}

impl<'o> Tree<'o> {
    /// Writes the archive as it should be.
    pub fn write(origin: &'o Origin, folder: PathBuf, layout: Layout, state: State) -> Tree<'o> {
        let (files, paths) = (state.files(origin), BTreeMap::new());
        let mut tree = Tree { origin, folder, layout, state, files, paths };
        fs::create_dir_all(&tree.folder).expect("a folder");
        for (name, plain) in tree.files.clone() {
            tree.store(&name, &plain);
        }
        // Without the list pgBackRest finds nothing.
        let first = tree.files.iter().find(|(name, _)| parse(name).is_some());
        if let (Layout::PgBackRest | Layout::PgBackRestZstd, Some((_, first))) = (layout, first) {
            let id = first[24..32].try_into().map(u64::from_le_bytes).expect("eight bytes");
            let list = archive_info(&["15-1"], id);
            write(&tree.folder.join("archive/demo/archive.info"), &list);
        }
        tree
    }

    /// All names, as they should be.
    pub fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    /// Numbers of a timeline's complete segments, ascending, as they should be.
    pub fn numbers(&self, timeline: u32) -> Vec<u64> {
        let all = self.files.keys().filter_map(|name| parse(name));
        all.filter(|(t, _)| *t == timeline).map(|(_, number)| number).collect()
    }

    /// The `n`-th segment of timeline 1 in the archive, 0 the first.
    pub fn on_old(&self, n: usize) -> String {
        segment(1, self.origin.numbers(1)[n])
    }

    /// The `n`-th segment of timeline 2, 0 the first.
    pub fn on_new(&self, n: usize) -> String {
        segment(2, self.origin.numbers(2)[n])
    }

    /// The first segment: that of the base backup.
    pub fn first(&self) -> String {
        self.on_old(0)
    }

    /// One in the middle, full of records up to its last byte.
    pub fn middle(&self) -> String {
        self.on_old(2)
    }

    /// The one after it, just as full.
    pub fn other(&self) -> String {
        self.on_old(3)
    }

    /// The last segment of timeline 2; it ends with a switch.
    pub fn last(&self) -> String {
        segment(2, *self.origin.numbers(2).last().expect("segments"))
    }

    /// The name that follows so many segments after the last one.
    pub fn after_last(&self, steps: u64) -> String {
        let number = *self.origin.numbers(2).last().expect("segments");
        segment(2, number + steps)
    }

    /// The segment in which timeline 2 begins, as timeline 1 names it.
    pub fn left(&self) -> String {
        segment(1, self.origin.before_switch + 1)
    }

    /// The content that a name should have.
    pub fn plain(&self, name: &str) -> Vec<u8> {
        let plain = self.files.get(name).or_else(|| self.origin.files.get(name));
        plain.unwrap_or_else(|| panic!("{name} is in the archive")).clone()
    }

    /// Where the records of a segment lie.
    pub fn records(&self, name: &str) -> &'o [Place] {
        &self.origin.records[name]
    }

    /// A record that lies in one page, counted from the segment's end (0: the last such one).
    pub fn record_from_end(&self, name: &str, n: usize) -> Place {
        let records = self.records(name).iter().rev();
        let in_page =
            |place: &&Place| place.offset / 8192 == (place.offset + place.bytes - 1) / 8192;
        *records.filter(in_page).nth(n).expect("so many records")
    }

    /// Where the file with this plain name lies.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.paths.get(name);
        path.unwrap_or_else(|| panic!("{name} is in this archive")).clone()
    }

    /// The bytes that are stored under a name.
    pub fn stored(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a stored file")
    }

    /// Stores plain bytes as the archiver does, in place of what was there.
    pub fn store(&mut self, name: &str, plain: &[u8]) {
        if let Some(path) = self.paths.get(name) {
            remove(path);
        }
        let path = self.folder.join(self.layout.place(name, plain));
        write(&path, &self.layout.encode(name, plain));
        self.paths.insert(name.to_owned(), path);
    }

    /// Stores plain bytes that changed after the archiver had stored them: the name stays.
    pub fn spoil(&mut self, name: &str, plain: &[u8]) {
        self.overwrite(name, &self.layout.encode(name, plain));
    }

    /// Writes bytes as they are into the file of a name.
    pub fn overwrite(&mut self, name: &str, stored: &[u8]) {
        write(&self.path(name), stored);
    }

    /// Changes the plain content, and stores it as an archiver would that got it so.
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut plain = self.plain(name);
        change(&mut plain);
        self.store(name, &plain);
    }

    /// Changes the stored bytes.
    pub fn edit_stored(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut stored = self.stored(name);
        change(&mut stored);
        self.overwrite(name, &stored);
    }

    /// Takes a file away.
    pub fn remove(&mut self, name: &str) {
        remove(&self.path(name));
        self.paths.remove(name);
    }

    /// Gives a file another name in the same folder: its old one with `suffix` behind.
    pub fn rename(&mut self, name: &str, rename: impl FnOnce(&str) -> String) {
        let path = self.path(name);
        let old = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        fs::rename(&path, path.with_file_name(rename(old))).expect("a new name");
        self.paths.remove(name);
    }

    /// Adds a file below the archive that no archiver of this layout knows.
    pub fn add(&self, place: &str, bytes: &[u8]) {
        write(&self.folder.join(place), bytes);
    }

    /// Adds an empty folder below the archive.
    pub fn folder_in(&self, place: &str) {
        fs::create_dir(self.folder.join(place)).expect("a new folder");
    }

    /// Adds a file beside the one of a name; `place` makes its name from that one's.
    pub fn add_beside(&self, name: &str, place: impl FnOnce(&str) -> String, bytes: &[u8]) {
        let path = self.path(name);
        let old = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        write(&path.with_file_name(place(old)), bytes);
    }

    /// Complete segments that the names in the archive promise now.
    pub fn promised(&self) -> Vec<(u32, u64)> {
        let mut promised: Vec<_> =
            names_below(&self.folder).iter().filter_map(|name| full_name(name)).collect();
        promised.sort_unstable();
        promised.dedup();
        promised
    }

    /// Whether a history of a timeline lies there, whatever is in it.
    pub fn has_history(&self, timeline: u32) -> bool {
        let history = format!("{timeline:08X}.history");
        names_below(&self.folder).iter().any(|name| name.starts_with(&history))
    }
}

impl State {
    /// The files that are there, as they should be.
    fn files(self, origin: &Origin) -> Files {
        let is_there = |name: &String| match (self, parse(name)) {
            (State::Promoted | State::Third, Some((1, number))) => number <= origin.before_switch,
            (State::Fresh, Some((timeline, number))) => {
                timeline == 1 && number <= origin.before_switch
            }
            _ => true,
        };
        let third = match self {
            State::Third => origin.third.clone(),
            State::Rewound => origin.rewound.clone(),
            State::Earlier => origin.earlier.clone(),
            _ => Files::new(),
        };
        let files = origin.files.iter().filter(|(name, _)| is_there(name));
        files.map(|(name, plain)| (name.clone(), plain.clone())).chain(third).collect()
    }
}

/// Timeline and number, if this file's name promises a whole segment.
fn full_name(file: &str) -> Option<(u32, u64)> {
    let (name, rest) = (file.get(..24)?, file.get(24..)?);
    let packed = |rest: &str| ["", ".gz", ".gzip", ".zst", ".xz"].contains(&rest);
    let sum = rest.strip_prefix('-').and_then(|rest| rest.get(40..));
    let is_upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    (is_upper && (packed(rest) || sum.is_some_and(packed))).then(|| parse(name)).flatten()
}

/// Folders that no restore_command looks into.
const PASSED_OVER: [&str; 2] = ["lost+found", "pg_wal"];

fn names_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_other = PASSED_OVER.contains(&name.as_str());
        if is_folder && full_name(&name).is_none() && !is_other {
            names.extend(names_below(&entry.path()));
        } else {
            names.push(name);
        }
    }
    names
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Zeros of a whole segment.
pub fn zeros() -> Vec<u8> {
    vec![0; SEGMENT]
}
