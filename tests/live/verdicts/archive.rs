//! An archive in one packing, and the operations that spoil it: `PLACE VERB WORDS`, one a line of a row.
//! Places are `first` (the segment of the base backup), `second`, `third` and `last`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::origin::Origin;
use crate::common::changed::Stretch;
use crate::common::one_change::{self, Change};

/// Changes of a record, by name.
const CHANGES: [(&str, Change); 12] = [
    ("insert-of-other-id", one_change::insert_of_other_id),
    ("leaf-of-other-id", one_change::leaf_of_other_id),
    ("insert-at-5000", one_change::insert_at_5000),
    ("insert-at-0", one_change::insert_at_0),
    ("insert-into-file-0", one_change::insert_into_file_0),
    ("insert-to-be-compared", one_change::insert_to_be_compared),
    ("insert-with-broken-image", one_change::insert_with_broken_image),
    ("insert-with-short-image", one_change::insert_with_short_image),
    ("insert-marked", one_change::insert_marked),
    ("insert-of-image-marked", one_change::insert_of_image_marked),
    ("insert-unmarked", one_change::insert_unmarked),
    ("split-unmarked", one_change::split_unmarked),
];

/// How segments are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Raw,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

impl Packing {
    /// Suffix, and the tool that packs with `-c` and unpacks with `-dc`.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Packing::Raw => ("", "cat"),
            Packing::Gzip => (".gz", "gzip"),
            Packing::Zstd => (".zst", "zstd"),
            Packing::Xz => (".xz", "xz"),
            Packing::Bzip2 => (".bz2", "bzip2"),
            Packing::Lz4 => (".lz4", "lz4"),
        }
    }

    fn by_name(name: &str) -> Packing {
        let all = [Packing::Raw, Packing::Gzip, Packing::Zstd, Packing::Xz];
        let all = all.into_iter().chain([Packing::Bzip2, Packing::Lz4]);
        let mut named = all.filter(|packing| packing.words().1 == name);
        named.next().unwrap_or_else(|| panic!("no packing {name}"))
    }

    /// What a server is told to fetch files with.
    pub fn restore_command(self, archive: &Path) -> String {
        let (archive, (suffix, tool)) = (archive.display(), self.words());
        match self {
            Packing::Raw => format!("cp {archive}/%f %p"),
            _ => format!("{tool} -q -dc <{archive}/%f{suffix} >%p"),
        }
    }

    fn pack(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Packing::Raw => plain.to_vec(),
            Packing::Xz => run("xz", &["-q", "-0", "-c"], plain),
            _ => run(self.words().1, &["-q", "-1", "-c"], plain),
        }
    }
}

/// What a tool makes of some bytes.
fn run(tool: &str, options: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new(tool);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{tool}: {error}"));
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    let mut packed = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).expect("a tool that reads"));
        output.read_to_end(&mut packed).expect("a tool that writes");
    });
    assert!(child.wait().expect("a child").success(), "{tool}");
    packed
}

/// An archive on disk.
pub struct Archive<'o> {
    origin: &'o Origin,
    folder: PathBuf,
    packing: Packing,
    /// The segments and histories that were spoiled, by name.
    pub spoiled: BTreeSet<String>,
}

impl<'o> Archive<'o> {
    /// Writes it as it should be.
    pub fn write(origin: &'o Origin, folder: PathBuf, packing: Packing) -> Archive<'o> {
        fs::create_dir(&folder).expect("a new folder");
        let archive = Archive { origin, folder, packing, spoiled: BTreeSet::new() };
        for (name, plain) in &origin.segments {
            archive.put(&archive.stored_name(name), &packing.pack(plain));
        }
        archive
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn stored_name(&self, segment: &str) -> String {
        format!("{segment}{}", self.packing.words().0)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The name of the segment at a place.
    fn segment(&self, place: &str) -> String {
        let mut names = self.origin.segments.keys();
        let name = match place {
            "first" => names.next(),
            "second" => names.nth(1),
            "third" => names.nth(2),
            "last" => names.next_back(),
            _ => panic!("no place {place}"),
        };
        name.expect("so many segments").clone()
    }

    /// Does one operation.
    pub fn apply(&mut self, operation: &str) {
        let mut words = operation.split(' ');
        let (place, verb) = (words.next().expect("a place"), words.next().expect("a verb"));
        let words: Vec<&str> = words.collect();
        if place == "beside" {
            return self.add_beside(verb, &words);
        }
        let segment = self.segment(place);
        let name = self.stored_name(&segment);
        let path = self.folder.join(&name);
        let plain = self.origin.segments[&segment].clone();
        // Operations that leave the file as good as it was say so by the word `harmless` at the end.
        if words.last() != Some(&"harmless") {
            self.spoiled.insert(segment.clone());
        }
        if let Some(changed) = changed_plain(self, verb, &words, plain.clone()) {
            return self.put(&name, &self.packing.pack(&changed));
        }
        let stored = fs::read(&path).expect("a stored file");
        if let Some(changed) = changed_stored(verb, &words, stored) {
            return self.put(&name, &changed);
        }
        fs::remove_file(&path).expect("a file to remove");
        match verb {
            "missing" => {}
            "under" => self.put(&name.replace(&segment, words[0]), b""),
            "named" => self.put(&format!("{segment}{}", words[0]), &self.packing.pack(&plain)),
            "named-cut" => {
                let packed = Packing::by_name(words[1]).pack(&plain);
                self.put(&format!("{segment}{}", words[0]), &packed[..packed.len() / 2]);
            }
            "packed" => self.put(&name, &Packing::by_name(words[0]).pack(&plain)),
            "moved" => self.put(&format!("{}/{name}", words[0]), &self.packing.pack(&plain)),
            "tar" => self.put(&name, &tar(&segment, &plain)),
            "folder" => fs::create_dir(&path).expect("a folder"),
            "nowhere" => symlink("/nowhere/at/all", &path).expect("a link"),
            "link" => {
                self.put("away/elsewhere", &self.packing.pack(&plain));
                symlink(self.folder.join("away/elsewhere"), &path).expect("a link");
            }
            "halves" => {
                let (one, other) = plain.split_at(plain.len() / 2);
                let between = vec![0; words[0].parse().expect("a number")];
                let packed = [self.packing.pack(one), between, self.packing.pack(other)].concat();
                self.put(&name, &packed);
            }
            _ => panic!("no verb {verb}"),
        }
    }

    /// The same segment with a change of one record in it, under a checksum that is right.
    fn with_change(&self, plain: &[u8], name: &str) -> Vec<u8> {
        let alone = tempfile::tempdir().expect("a folder");
        let (segment, _) =
            self.origin.segments.iter().find(|(_, bytes)| *bytes == plain).expect("it");
        fs::write(alone.path().join(segment), plain).expect("a segment");
        let (_, change) = CHANGES.iter().find(|(known, _)| *known == name).expect("a change");
        let stretch = Stretch::read(alone.path(), "15", 0, 1).expect("a segment with records");
        let (disk, _) = stretch.with(change).expect("a record that is meant");
        disk.files.into_values().next().expect("the segment")
    }

    /// Something that is no segment of the archive.
    fn add_beside(&mut self, what: &str, words: &[&str]) {
        let (first, last) = (self.segment("first"), self.segment("last"));
        match what {
            "backup" => {
                let (name, text) = &self.origin.backup;
                self.put(name, text);
            }
            "minimal" => {
                let (name, plain) = &self.origin.minimal;
                self.put(&self.stored_name(name), &self.packing.pack(plain));
                self.spoiled.insert(name.clone());
            }
            "old-backup" => self.put("000000010000000000000001.00000028.backup", b"START WAL\n"),
            "deep" => {
                fs::create_dir_all(self.folder.join("base/1/2/3/4/5/6/7/8")).expect("folders")
            }
            "text" => self.put("README", b"Do not touch.\n"),
            "copy" => self.put(&format!("{first}.bak"), &self.origin.segments[&first]),
            "partial" => self.put(&format!("{last}.partial"), &self.origin.segments[&last][..9000]),
            "history" => {
                let reason = "x".repeat(words[0].parse().expect("a number"));
                let name = format!("00000002.history{}", self.packing.words().0);
                let line = format!("1\t{}\t{reason}\n", self.end());
                self.put(&name, &self.packing.pack(line.as_bytes()));
                if words.last() != Some(&"harmless") {
                    self.spoiled.insert(name);
                }
            }
            "history-at" => {
                let line = format!("1\t{}\tno recovery target specified\n", self.end());
                self.put(words[0], &Packing::by_name(words[1]).pack(line.as_bytes()));
            }
            _ => panic!("nothing called {what}"),
        }
    }

    /// The last segment's end, as an LSN.
    fn end(&self) -> String {
        let last = self.segment("last");
        let number = u64::from_str_radix(&last[16..], 16).expect("a number");
        format!("0/{:X}", (number + 1) << 20)
    }

    /// Puts the good copy of every spoiled file in its place.
    pub fn repair(&self) {
        for name in &self.spoiled {
            let stored = self.stored_name(name);
            let Some(plain) = self.origin.segments.get(name) else {
                // A history, or a segment that is better not there.
                let added = [name, &stored].map(|name| self.folder.join(name));
                added.iter().filter(|path| path.exists()).for_each(|path| {
                    fs::remove_file(path).expect("a file that was added");
                });
                continue;
            };
            for entry in fs::read_dir(&self.folder).expect("the archive").filter_map(Result::ok) {
                let is_of = entry.file_name().to_string_lossy().starts_with(name.as_str());
                match entry.file_type() {
                    Ok(kind) if is_of && kind.is_dir() => fs::remove_dir(entry.path()),
                    Ok(_) if is_of => fs::remove_file(entry.path()),
                    _ => Ok(()),
                }
                .expect("a file to replace");
            }
            self.put(&stored, &self.packing.pack(plain));
        }
    }
}

/// Changes of what a segment holds, packed as the archive's archiver would have.
fn changed_plain(
    archive: &Archive<'_>,
    verb: &str,
    words: &[&str],
    mut plain: Vec<u8>,
) -> Option<Vec<u8>> {
    let number = |index: usize| words[index].parse::<usize>().expect("a number");
    match verb {
        "zeros" => plain[number(0)..number(1)].fill(0),
        "flip" => plain[number(0)] ^= 0x10,
        "flip-last" => plain.iter_mut().rev().take(1).for_each(|byte| *byte ^= 0x10),
        "cut" => plain.truncate(number(0)),
        // That of the page at a byte, `xlp_tli`, is of no history.
        "timeline" => plain[number(0) + 4..][..4].copy_from_slice(&u32::to_le_bytes(33)),
        "grow" => plain.extend(vec![0; number(0)]),
        "record" => plain = archive.with_change(&plain, words[0]),
        "content" => plain = archive.origin.segments[&archive.segment(words[0])].clone(),
        _ => return None,
    }
    Some(plain)
}

/// Changes of the bytes that are stored.
fn changed_stored(verb: &str, words: &[&str], mut stored: Vec<u8>) -> Option<Vec<u8>> {
    match verb {
        "stored-cut" => {
            let percent: usize = words[0].parse().expect("a number");
            stored.truncate(stored.len() * percent / 100);
        }
        "stored-short" => stored.truncate(stored.len() - 1),
        "stored-flip" => {
            // One byte alone may change nothing: in a row of zeros, another distance finds the same.
            let half = stored.len() / 2;
            stored[half..half + 8].iter_mut().for_each(|byte| *byte ^= 1);
        }
        "stored-zeros" => stored.extend(vec![0; words[0].parse().expect("a number")]),
        "stored-text" => stored.extend(b"something else"),
        "stored-empty" => stored.clear(),
        _ => return None,
    }
    Some(stored)
}

fn tar(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    tar.append_data(&mut header, name, bytes).expect("a vector takes all");
    tar.into_inner().expect("a vector takes all")
}
