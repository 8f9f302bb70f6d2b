//! Paths → what lies there: files that may be segments, timeline histories, streams, and what
//! else is found beside them.
//!
//! Judges nothing: which of it is read, and in what order, is decided in [`super::plan`].

use super::history::{self, Ancestor};
use super::names::{FileName, SegmentFile};
use super::plan::InputError;
use super::probe::{NotWal, Probe, probe, read_text};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that may be a segment.
#[derive(Debug)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// What its name says, if it says that it is a segment.
    pub name: Option<SegmentFile>,
    /// What its first bytes say.
    pub probe: Probe,
}

/// What the paths hold.
#[derive(Debug, Default)]
pub struct Found {
    /// Where was looked.
    pub paths: Vec<PathBuf>,
    /// Files that may be segments.
    pub candidates: Vec<Candidate>,
    /// What can only be read from front to back: tars, pipes. `-` is standard input.
    pub streams: Vec<PathBuf>,
    /// Timeline histories.
    pub histories: BTreeMap<u32, Vec<Ancestor>>,
    /// Names of other files.
    pub others: Vec<String>,
}

/// The path that means standard input.
pub const STANDARD_INPUT: &str = "-";

/// Directories of a tree in which the WAL lies, whatever lies beside them: of a data directory,
/// a Barman server, a pgBackRest repository, WAL-G storage.
const WAL_DIRECTORIES: [&str; 5] = ["pg_wal", "pg_xlog", "wals", "archive", "wal_005"];

/// Directories beside segments that hold none.
const PASSED_OVER: [&str; 2] = ["archive_status", "summaries"];

/// Archives are not deeper than that: `archive/STANZA/15-1/0000000100000000/SEGMENT`.
const DEPTH_MAX: usize = 5;

/// Looks at all paths.
pub fn discover(paths: &[PathBuf]) -> Result<Found, InputError> {
    let mut found = Found { paths: paths.to_vec(), ..Found::default() };
    for path in paths {
        found.add_path(path)?;
    }
    Ok(found)
}

/// The last part of a path, for people.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Found {
    fn add_path(&mut self, path: &Path) -> Result<(), InputError> {
        if path == Path::new(STANDARD_INPUT) || is_inherited_pipe(path) {
            self.streams.push(path.to_owned());
            return Ok(());
        }
        let io = |source| InputError::Io { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            let before = self.candidates.len() + self.streams.len();
            self.add_directory(path, DEPTH_MAX)?;
            if self.candidates.len() + self.streams.len() == before {
                return Err(InputError::NoSegments { path: path.to_owned() });
            }
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(InputError::Kind { path: path.to_owned(), kind: kind_of(&metadata) });
        }
        self.add_file(path, true).map_err(io)
    }

    /// Adds what lies in a directory, and below it.
    fn add_directory(&mut self, path: &Path, depth: usize) -> Result<(), InputError> {
        let io = |source| InputError::Io { path: path.to_owned(), source };
        let mut entries = fs::read_dir(path)
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let wal: Vec<PathBuf> = WAL_DIRECTORIES.iter().map(|name| path.join(name)).collect();
        let wal = wal.into_iter().find(|directory| directory.is_dir());
        if let Some(wal) = wal.filter(|_| depth > 0) {
            return self.add_directory(&wal, depth - 1);
        }
        for entry in entries {
            // A live directory loses files while it is read: what is gone is passed over.
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            if metadata.is_file() {
                self.add_entry(&entry.path())?;
            } else if metadata.is_dir() && depth > 0 && !is_passed_over(&entry) {
                self.add_directory(&entry.path(), depth - 1)?;
            }
        }
        Ok(())
    }

    fn add_entry(&mut self, path: &Path) -> Result<(), InputError> {
        match self.add_file(path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(InputError::Io { path: path.to_owned(), source }),
            Ok(()) => Ok(()),
        }
    }

    /// Adds a file. `asked`: it was named by the user, so it is WAL or an error; beside other
    /// files, only what is called like a segment or like a tar of them is looked at.
    fn add_file(&mut self, path: &Path, asked: bool) -> io::Result<()> {
        let text = file_name(path);
        let name = match FileName::parse(&text) {
            FileName::History(timeline) => {
                self.add_history(timeline, read_text(path)?, text);
                return Ok(());
            }
            FileName::Segment(file) => Some(file),
            FileName::Other if asked || is_called_like_a_tar(&text) => None,
            FileName::Other => {
                self.others.push(text);
                return Ok(());
            }
        };
        let probe = probe(path)?;
        match probe.first_page {
            Err(NotWal::Tar) => self.streams.push(path.to_owned()),
            // Segments one behind the other in one file.
            Ok(page) if name.is_none() && probe.holds_several(&page) => {
                self.streams.push(path.to_owned());
            }
            _ => self.candidates.push(Candidate { path: path.to_owned(), name, probe }),
        }
        Ok(())
    }

    /// Adds a history file; one that cannot be read is just another file.
    pub fn add_history(&mut self, timeline: u32, text: String, file: String) {
        match history::parse(&text) {
            Some(ancestors) => {
                self.histories.insert(timeline, ancestors);
            }
            None => self.others.push(file),
        }
    }
}

fn is_passed_over(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    name.starts_with('.') || PASSED_OVER.contains(&&*name)
}

/// `pg_wal.tar`, `base.tar.gz`: what `pg_basebackup -Ft` writes.
fn is_called_like_a_tar(name: &str) -> bool {
    let mut parts = name.rsplitn(3, '.');
    let (last, before) = (parts.next(), parts.next());
    last == Some("tar") || before == Some("tar")
}

/// A pipe that the shell has opened for us: `<(…)`, `/dev/stdin`.
fn is_inherited_pipe(path: &Path) -> bool {
    let inherited = ["/dev/fd", "/proc/self/fd"].iter().any(|prefix| path.starts_with(prefix));
    (inherited || path == Path::new("/dev/stdin"))
        && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

#[cfg(unix)]
fn kind_of(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_fifo() => "named pipe (to read it: walstat - < PIPE)",
        () if kind.is_char_device() => "character device",
        () if kind.is_block_device() => "block device",
        () if kind.is_socket() => "socket",
        () => "special file",
    }
}

#[cfg(not(unix))]
fn kind_of(_: &fs::Metadata) -> &'static str {
    "special file"
}
