//! An archive of three segments, whole or spoiled, as files, tars and streams; and the oracle: it is
//! good if what its codec's own tool makes of every file with a segment's name is that segment.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::chain::{Chain, Segment};
use super::form::{ARCHIVE_INFO, Codec, Form, archive_info};
use super::verdict::{Input, Verdict};
use crate::support::pgbackrest::sha1_of;

/// What lies at a place of an archive.
#[derive(Debug, Clone)]
pub enum Node {
    /// A segment as it should be; stored once for all cases.
    Kept(PathBuf),
    /// Stored bytes, and what they decode to where that is known; then a SHA-1 in the name is theirs.
    File { stored: Vec<u8>, plain: Option<Vec<u8>> },
    /// An empty folder.
    Folder,
    /// A symbolic link.
    Link(PathBuf),
    /// A named pipe.
    Pipe,
}

/// How files are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// In a folder.
    Folder,
    /// In a tar.
    Tar,
    /// In a compressed tar.
    PackedTar(Codec),
    /// In a tar that comes through a pipe.
    PipedTar,
    /// One after the other through a pipe, without names.
    Piped,
}

impl Packing {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Folder => "folder",
            Packing::Tar => "tar",
            Packing::PackedTar(Codec::Gzip) => "tar.gz",
            Packing::PackedTar(_) => "tar.zst",
            Packing::PipedTar => "piped tar",
            Packing::Piped => "piped",
        }
    }
}

/// Where the segments of a chain lie, in their order.
type Places = Arc<Vec<String>>;

/// Segments as they should be, stored once in every form that is asked for.
pub struct Store {
    folder: TempDir,
    kept: Mutex<HashMap<(String, Form), Places>>,
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        let folder = tempfile::tempdir().expect("a folder");
        Store { folder, kept: Mutex::default() }
    }

    /// The folder of one case, on the file system of the store.
    pub fn scratch(&self, number: usize) -> PathBuf {
        let folder = self.folder.path().join(format!("case-{number}"));
        fs::create_dir(&folder).expect("a new folder");
        folder
    }

    fn root(&self, chain: &Chain, form: Form) -> PathBuf {
        self.folder.path().join(format!("{} {}", chain.name, form.name()))
    }

    /// The places of a chain's segments in a form; the files are there afterwards.
    fn places(&self, chain: &Chain, form: Form) -> Places {
        let key = (chain.name.clone(), form);
        if let Some(places) = self.kept.lock().expect("no case has failed").get(&key) {
            return places.clone();
        }
        let root = self.root(chain, form);
        let store = |segment: &super::chain::Segment| {
            let place = form.place(&segment.name, || segment.sha1.clone());
            write(&root.join(&place), &form.codec().encode(&segment.plain));
            place
        };
        let places: Places = Arc::new(chain.segments.iter().map(store).collect());
        // Another thread may have done the same: the files are the same too.
        self.kept.lock().expect("no case has failed").insert(key, places.clone());
        places
    }
}

/// An archive that is being put together.
pub struct Archive<'c> {
    /// What it should hold.
    pub chain: &'c Chain,
    /// How its files are stored.
    pub form: Form,
    nodes: BTreeMap<String, Node>,
    places: Vec<String>,
}

impl<'c> Archive<'c> {
    /// The archive as it should be.
    pub fn of(store: &Store, chain: &'c Chain, form: Form) -> Archive<'c> {
        let places = store.places(chain, form).to_vec();
        let root = store.root(chain, form);
        let mut nodes: BTreeMap<String, Node> =
            places.iter().map(|p| (p.clone(), Node::Kept(root.join(p)))).collect();
        if let Form::PgBackRest(_) = form {
            let stored = archive_info(&chain.segments[0].plain);
            nodes.insert(ARCHIVE_INFO.into(), Node::File { stored, plain: None });
        }
        Archive { chain, form, nodes, places }
    }

    /// The stored bytes of a segment, as they should be.
    pub fn stored(&self, index: usize) -> Vec<u8> {
        match &self.nodes[&self.places[index]] {
            Node::Kept(path) => fs::read(path).expect("a kept file"),
            _ => panic!("segment {index} was changed already"),
        }
    }

    /// Where a segment lies.
    pub fn place(&self, index: usize) -> &str {
        &self.places[index]
    }

    /// Takes a segment away.
    pub fn remove(&mut self, index: usize) {
        self.nodes.remove(&self.places[index]);
    }

    /// Stores other content for a segment, named and packed as its archiver does.
    pub fn store(&mut self, index: usize, plain: Vec<u8>) {
        self.remove(index);
        self.add_segment(&self.chain.segments[index].name, plain);
    }

    /// Stores a file under any segment's name.
    pub fn add_segment(&mut self, name: &str, plain: Vec<u8>) {
        let place = self.form.place(name, || sha1_of(&plain));
        let stored = self.form.codec().encode(&plain);
        self.nodes.insert(place, Node::File { stored, plain: Some(plain) });
    }

    /// Puts other bytes into a segment's file.
    pub fn overwrite(&mut self, index: usize, stored: Vec<u8>) {
        self.put(self.places[index].clone(), Node::File { stored, plain: None });
    }

    /// Puts anything anywhere.
    pub fn put(&mut self, place: String, node: Node) {
        self.nodes.insert(place, node);
    }

    /// Gives a segment's file another name.
    pub fn rename(&mut self, index: usize, name: impl FnOnce(&str) -> String) {
        let place = &self.places[index];
        let node = self.nodes.remove(place).expect("a file to rename");
        self.nodes.insert(name(place), node);
    }

    /// The first segment of which there is a file, complete or `.partial`.
    fn first(&self) -> Option<usize> {
        let is_of = |place: &str, segment: &str| {
            let name = place.rsplit('/').next().unwrap_or_default();
            let rest = name.strip_prefix(segment);
            rest.is_some_and(|rest| rest.contains(".partial"))
                || Promise::of(place, self.form).is_some_and(|promise| promise.segment == segment)
        };
        let mut segments = self.chain.segments.iter();
        segments.position(|segment| self.nodes.keys().any(|place| is_of(place, &segment.name)))
    }

    /// What PostgreSQL could restore, as far as names promise it. A `.partial` does not stand in for its
    /// segment where later ones are complete, and one that is laid aside is missing where the archive goes on
    /// with it.
    pub fn expected(&self) -> Verdict {
        let mut held = vec![Vec::new(); self.chain.segments.len()];
        for (place, node) in &self.nodes {
            let Some(promise) = Promise::of(place, self.form) else { continue };
            let index = self.chain.segments.iter().position(|s| s.name == promise.segment);
            let Some(index) = index else { return Verdict::Red };
            held[index].push(self.keeps(index, node, &promise));
        }
        let last = held.iter().rposition(|files| !files.is_empty());
        let (Some(first), Some(last)) = (self.first(), last) else { return Verdict::Red };
        let is_aside = |segment: &Segment| {
            let is_it = |place: &String| place.ends_with(".bak") && place.contains(&segment.name);
            self.nodes.keys().any(is_it)
        };
        if self.chain.segments[last + 1..].iter().any(is_aside) {
            return Verdict::Red;
        }
        let kept = |files: &Vec<bool>| !files.is_empty() && files.iter().all(|good| *good);
        if held[first..=last].iter().all(kept) { Verdict::Green } else { Verdict::Red }
    }

    fn keeps(&self, index: usize, node: &Node, promise: &Promise) -> bool {
        let segment = &self.chain.segments[index];
        match node {
            Node::Kept(_) => true,
            Node::File { plain: Some(plain), .. } => segment.is_held_by(plain),
            Node::File { stored, plain: None } => {
                promise.decode(stored).is_some_and(|plain| segment.is_held_by(&plain))
            }
            Node::Link(target) => self.nodes.keys().any(|place| Path::new(place).ends_with(target)),
            Node::Folder | Node::Pipe => false,
        }
    }

    /// Writes the archive below `folder`, for a call of the program.
    pub fn write(&self, packing: Packing, folder: &Path) -> Input {
        match packing {
            Packing::Folder => {
                let root = folder.join("in");
                fs::create_dir(&root).expect("a new folder");
                self.nodes.iter().for_each(|(place, node)| lay(&root.join(place), node));
                Input::Path(root)
            }
            Packing::Tar => {
                let path = folder.join("in.tar");
                write(&path, &self.tar());
                Input::Path(path)
            }
            Packing::PackedTar(codec) => {
                let path = folder.join(format!("in.tar{}", codec.suffix()));
                write(&path, &codec.encode(&self.tar()));
                Input::Path(path)
            }
            Packing::PipedTar => Input::Pipe(self.tar()),
            Packing::Piped => {
                Input::Pipe(self.nodes.values().map(bytes).collect::<Vec<_>>().concat())
            }
        }
    }

    /// A tar of all files.
    pub fn tar(&self) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (place, node) in &self.nodes {
            let bytes = bytes(node);
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, place, bytes.as_slice()).expect("a vector takes all");
        }
        tar.into_inner().expect("a vector takes all")
    }
}

/// What a file's name promises.
struct Promise {
    segment: String,
    codec: Codec,
    sha1: Option<String>,
}

impl Promise {
    /// What a restore brings. pgBackRest has the library in place of the tool: of gzip it decodes the first
    /// member, whatever follows.
    fn decode(&self, stored: &[u8]) -> Option<Vec<u8>> {
        if self.sha1.is_none() || self.codec != Codec::Gzip {
            return self.codec.decode(stored);
        }
        let mut plain = Vec::new();
        let mut first = flate2::bufread::GzDecoder::new(stored);
        first.read_to_end(&mut plain).ok().map(|_| plain)
    }

    /// Nothing: the name is not that of a complete segment.
    fn of(place: &str, form: Form) -> Option<Promise> {
        let name = place.rsplit('/').next()?;
        let (segment, rest) = (name.get(..24)?, name.get(24..)?);
        let is_digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
        segment.bytes().all(is_digit).then_some(())?;
        let (sha1, suffix) = match rest.strip_prefix('-') {
            Some(rest) => (Some(rest.get(..40)?.to_owned()), rest.get(40..)?),
            None => (None, rest),
        };
        let codec = match suffix {
            "" if matches!(form, Form::Barman(_)) => form.codec(),
            "" => Codec::None,
            ".gz" => Codec::Gzip,
            ".lz4" => Codec::Lz4,
            ".zst" => Codec::Zstd,
            ".bz2" => Codec::Bzip2,
            ".xz" => Codec::Xz,
            _ => return None,
        };
        Some(Promise { segment: segment.to_owned(), codec, sha1 })
    }
}

fn bytes(node: &Node) -> Vec<u8> {
    match node {
        Node::Kept(path) => fs::read(path).expect("a kept file"),
        Node::File { stored, .. } => stored.clone(),
        Node::Folder | Node::Link(_) | Node::Pipe => Vec::new(),
    }
}

fn lay(path: &Path, node: &Node) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    match node {
        Node::Kept(kept) => fs::hard_link(kept, path).expect("a link"),
        Node::File { stored, .. } => write(path, stored),
        Node::Folder => fs::create_dir(path).expect("a new folder"),
        Node::Link(target) => symlink(target, path).expect("a link"),
        Node::Pipe => {
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success(), "mkfifo");
        }
    }
}

/// Writes a file that is as old as files in an archive are: a young one may be being written.
pub fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let mut file = fs::File::create(path).expect("a new file");
    file.write_all(bytes).expect("a written file");
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    file.set_modified(yesterday).expect("a time");
}
