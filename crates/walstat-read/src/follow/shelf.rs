//! The segments that lie in a folder by their names alone, listed again when the folder has changed: no file
//! is opened for it.

use crate::input::discover::{DEPTH_MAX, is_passed_over};
use crate::input::history::Histories;
use crate::input::names::{FileName, SegmentFile, Standing, compression_suffix, file_name};
use crate::input::placing::Key;
use crate::input::probe::read_text;
use crate::input::stamp::CLOCK_TICK;
use crate::input::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use walstat_format::ordered::CollectOrdered;

/// What `pg_receivewal` appends while it writes, behind the suffix of a compression.
const PARTIAL_SUFFIX: &str = ".partial";
/// A folder changed less than this before it was listed may change again and keep the same modification time.
const UNSETTLED: Duration = CLOCK_TICK.saturating_mul(5);

/// A file that a segment may be read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShelfFile {
    pub standing: Standing,
    pub is_compressed: bool,
    pub path: PathBuf,
}

/// The segments of a folder.
#[derive(Debug)]
pub(super) struct Shelf {
    root: PathBuf,
    segment_bytes: u32,
    /// Folders with the time of their last change, if that is long enough ago to be relied on; none where
    /// they could not be listed.
    folders: BTreeMap<PathBuf, Option<SystemTime>>,
    /// The best file of each segment.
    pub segments: BTreeMap<Key, ShelfFile>,
    /// The newest segment, listed or not.
    newest: Option<u64>,
    /// Timelines of all segments, listed or not.
    timelines: BTreeSet<u32>,
    pub histories: Histories,
}

/// A list that is being made.
struct Listing<'s> {
    segment_bytes: u32,
    /// The first segment that is wanted.
    first: u64,
    /// Folders that were looked into, whichever link led to them.
    seen: BTreeSet<storage::Identity>,
    folders: BTreeMap<PathBuf, Option<SystemTime>>,
    segments: BTreeMap<Key, ShelfFile>,
    newest: Option<u64>,
    timelines: BTreeSet<u32>,
    histories: &'s mut Histories,
}

impl Shelf {
    pub(super) fn new(root: &Path, segment_bytes: u32) -> Shelf {
        Shelf {
            root: root.to_owned(),
            segment_bytes,
            folders: BTreeMap::new(),
            segments: BTreeMap::new(),
            newest: None,
            timelines: BTreeSet::new(),
            histories: Histories::default(),
        }
    }

    /// Lists what is there from segment `first` on, if anything has changed; says whether it was listed.
    pub(super) fn refresh(&mut self, first: u64) -> io::Result<bool> {
        // Who may not look into a folder any more can still see that it has not changed.
        fs::read_dir(&self.root)?;
        let is_as_before = |(folder, time): (&PathBuf, &Option<SystemTime>)| {
            time.is_some() && changed_at(folder).ok() == *time
        };
        if !self.folders.is_empty() && self.folders.iter().all(is_as_before) {
            return Ok(false);
        }
        self.list(first)?;
        Ok(true)
    }

    /// Lists what is there from segment `first` on. Where that fails the list stays as it was, and is made
    /// anew next time.
    pub(super) fn list(&mut self, first: u64) -> io::Result<()> {
        self.folders.clear();
        let mut listing = Listing {
            segment_bytes: self.segment_bytes,
            first,
            seen: BTreeSet::new(),
            folders: BTreeMap::new(),
            segments: BTreeMap::new(),
            newest: None,
            timelines: BTreeSet::new(),
            histories: &mut self.histories,
        };
        listing.add_folder(&self.root, DEPTH_MAX)?;
        let Listing { folders, segments, newest, timelines, .. } = listing;
        (self.folders, self.segments) = (folders, segments);
        (self.newest, self.timelines) = (newest, timelines);
        Ok(())
    }

    /// Has all listed anew next time: the folder was away, and may come back as it was.
    pub(super) fn forget(&mut self) {
        self.folders.clear();
        self.segments.clear();
        self.newest = None;
        self.timelines.clear();
    }

    /// All segments that are there.
    pub(super) fn all(&self) -> io::Result<BTreeMap<Key, ShelfFile>> {
        let mut anew = Shelf::new(&self.root, self.segment_bytes);
        anew.list(0)?;
        Ok(anew.segments)
    }

    /// Where the segments lie.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The number of the newest segment, of whatever timeline, when the folder was listed.
    pub(super) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// The newest timeline of which there is a segment, when the folder was listed.
    pub(super) fn newest_timeline(&self) -> Option<u32> {
        self.timelines.last().copied()
    }

    /// The newest timeline that has a history and a segment: a history alone may be of another server's.
    pub(super) fn newest_begun(&self) -> Option<u32> {
        let named = self.histories.all().map(|(timeline, _)| timeline);
        named.filter(|timeline| self.timelines.contains(timeline)).last()
    }
}

impl Listing<'_> {
    fn add_folder(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        if !self.seen.insert(storage::identity(folder)?) {
            return Ok(());
        }
        let changed = changed_at(folder)?;
        let age = changed.elapsed().unwrap_or_default();
        self.folders.insert(folder.to_owned(), (age > UNSETTLED).then_some(changed));
        let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        let names: BTreeSet<String> =
            entries.iter().map(|entry| file_name(&entry.path())).collect_set();
        for entry in entries {
            let path = entry.path();
            match FileName::parse(&file_name(&path)) {
                // A pipe would have the reader wait.
                FileName::Segment(_) | FileName::History(_) if !is_file(&entry) => {}
                FileName::Segment(file) => self.add_segment(file, path),
                FileName::History(timeline) => self.add_history(timeline, &path),
                FileName::Other
                    if depth > 0 && !is_passed_over(&file_name(&path), &names) && path.is_dir() =>
                {
                    match self.add_folder(&path, depth - 1) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                        _ => {}
                    }
                }
                FileName::Other => {}
            }
        }
        Ok(())
    }

    fn add_segment(&mut self, file: SegmentFile, path: PathBuf) {
        let Some(number) = file.name.number(self.segment_bytes) else { return };
        if file.standing == Standing::Aside {
            return;
        }
        self.newest = self.newest.max(Some(number));
        self.timelines.insert(file.name.timeline);
        if number < self.first {
            return;
        }
        let name = file_name(&path);
        let name = name.strip_suffix(PARTIAL_SUFFIX).unwrap_or(&name);
        let is_compressed = compression_suffix(name).is_some();
        let copy = ShelfFile { standing: file.standing, is_compressed, path };
        let best = self.segments.entry((file.name.timeline, number));
        let best = best.or_insert_with(|| copy.clone());
        if copy < *best {
            *best = copy;
        }
    }

    /// Reads a history once it is whole; it never changes.
    fn add_history(&mut self, timeline: u32, path: &Path) {
        if self.histories.ancestors(timeline).is_none()
            && let Ok(read) = read_text(path)
        {
            self.histories.add(timeline, Ok(read.bytes), &file_name(path));
            self.histories.forgive();
        }
    }
}

/// Whether it is a file, or a link to one.
fn is_file(entry: &fs::DirEntry) -> bool {
    let kind = entry.file_type();
    kind.is_ok_and(|kind| kind.is_file() || kind.is_symlink() && entry.path().is_file())
}

fn changed_at(folder: &Path) -> io::Result<SystemTime> {
    fs::metadata(folder)?.modified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_passed_over() {
        let folder = std::env::temp_dir().join(format!("walstat-shelf-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let at = |name: &str| folder.join(name);
        fs::create_dir(at("000000010000000000000007")).expect("a folder");
        std::os::unix::net::UnixListener::bind(at("000000010000000000000008")).expect("a socket");
        fs::write(at("000000010000000000000009"), b"").expect("a file");
        let link = at("00000001000000000000000A");
        std::os::unix::fs::symlink(at("000000010000000000000009"), link).expect("a link");
        let mut shelf = Shelf::new(&folder, 1 << 20);
        shelf.list(0).expect("a list");
        assert_eq!(shelf.segments.keys().copied().collect::<Vec<_>>(), [(1, 9), (1, 10)]);
        fs::remove_dir_all(&folder).expect("the folder");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_links_lead_to_again_is_listed_once() {
        let folder = std::env::temp_dir().join(format!("walstat-links-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("000000010000000000000009"), b"").expect("a file");
        std::os::unix::fs::symlink(".", folder.join("again")).expect("a link");
        let mut shelf = Shelf::new(&folder, 1 << 20);
        shelf.list(0).expect("a list");
        assert_eq!((shelf.folders.len(), shelf.segments.len()), (1, 1));
        fs::remove_dir_all(&folder).expect("the folder");
    }
}
