//! Paths → what lies there: files that may be segments, timeline histories, streams, and what
//! else is found beside them.
//!
//! Judges nothing: which of it is read, and in what order, is decided in [`super::placing`].

mod begun;
mod data_directories;
mod given;
mod histories;

use super::archive_info::{self, ArchiveInfo};
use super::error::{InputError, Lacking};
use super::history::Histories;
use super::input_kind::{ARCHIVE_STATUS, Directories, InputKind, SERVER_DIRECTORIES};
use super::known_files::KnownFiles;
use super::label::{PG_VERSION, ToldLabel};
use super::names::{
    FileName, SegmentFile, Standing, backup_start, file_name, is_called_like_a_tar,
};
use super::packing;
use super::piece::{Listed, Piece, majority};
use super::probe::{FirstPage, NotWal, Probe, probe, read_text};
use super::problem::{Problem, ProblemKind};
use super::source::Source;
use super::storage::{self, Kind, Metadata};
pub use data_directories::data_directory_of;
use data_directories::{ServersOwn, has_status, is_backup, is_data_directory};
use given::Looked;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;

/// What is known of the backup that is to be restored, if one is.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToRestore {
    /// There is one; or several, and from where to where each can be restored is asked.
    pub is_asked: bool,
    /// Where replay begins, of several the first one, if that is known.
    pub begins: Option<Lsn>,
    /// Its timeline. A server begins on it with or without a history.
    pub timeline: Option<u32>,
    /// Its cluster, the system identifier. Of several clusters in an archive it is the one that is read.
    pub cluster: Option<u64>,
    /// Bytes of its segments. `pg_resetwal` may have changed them.
    pub segment_bytes: Option<u32>,
}

/// What was found at the paths.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The paths.
    pub paths: Vec<PathBuf>,
    /// What the user says the directories are; it wins over what they look like.
    pub taken_for: Option<InputKind>,
    /// Files that may be segments.
    pub pieces: Vec<Piece>,
    /// Objects with a segment's name, which are looked into when it is known which of them are needed.
    pub listed: Vec<Listed>,
    /// What can only be read from front to back: tars, pipes. `-` is standard input.
    pub streams: Vec<Stream>,
    /// Timeline histories.
    pub histories: Histories,
    /// Timelines of which there is nothing but files of others under their names.
    pub strays: BTreeSet<u32>,
    /// What is known of the backup that is to be restored.
    pub to_restore: ToRestore,
    /// The directories in which the pieces lie.
    pub directories: Directories,
    /// The first data directory among the paths: the one that `PG_VERSION` and `global` lie in.
    pub data_directory: Option<PathBuf>,
    /// Names of other files.
    pub others: Vec<String>,
    /// Histories of base backups, as an archive has them.
    pub backup_histories: Vec<PathBuf>,
    /// pgBackRest's lists of archive ids.
    pub archive_infos: Vec<(PathBuf, Result<ArchiveInfo, String>)>,
    /// Segments for the zstd tool that are symbolic links.
    pub zstd_links: BTreeSet<String>,
    /// What those in streams tell, as far as the streams were read; or why they cannot be read.
    pub backups: Vec<Result<ToldLabel, String>>,
    /// What could not be looked at.
    pub problems: Vec<Problem>,
    /// Notes about files that are not read.
    pub notes: Vec<String>,
    /// Servers' own directories of WAL below the path that is being looked into.
    servers_own: Vec<ServersOwn>,
    /// Those that are read nevertheless.
    asked_for: BTreeSet<PathBuf>,
    /// Those that are not read.
    passed_over: Vec<ServersOwn>,
    /// Directories of what was read, in tars or by others, that are no archive's, by their indexes.
    pub(crate) passed_over_read: BTreeSet<usize>,
    /// Whether only what lies beside segments is looked for: others read the segments.
    only_beside: bool,
    /// Others have read all of it: nothing is looked for again.
    pub is_merged: bool,
    /// Files that were read before: those that are still the same are not looked into.
    known: Arc<KnownFiles>,
    /// Directories that were looked into.
    seen: BTreeMap<storage::Identity, Looked>,
    /// Of two of the paths that are directories, as indexes: the second was met within the first.
    met: BTreeSet<(usize, usize)>,
    /// Whether there are directories that are too deep to be looked into.
    pub(crate) is_too_deep: bool,
    /// Why not all of it could be looked at, where that says nothing of what lies there.
    lacking: Option<Lacking>,
}

/// What can only be read from front to back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// Which of the paths asked for it lies in.
    pub root: usize,
}

/// Directories beside segments that hold none; `lost+found` belongs to the file system.
const PASSED_OVER: [&str; 3] = [ARCHIVE_STATUS, "summaries", "lost+found"];

/// Base backups beside the WAL in an archiver's tree; WAL in them is not part of the archive.
const BASE_BACKUPS: [(&str, &str); 3] =
    [("archive", "backup"), ("wals", "base"), ("wal_005", "basebackups_005")];

/// No archive is nested as deep as that. Base backups beside it may be nested deep, but not endlessly.
pub const DEPTH_MAX: usize = 64;

/// Looks at all paths.
pub fn discover(paths: &[PathBuf]) -> Result<Found, InputError> {
    discover_as(paths, None)
}

/// How often a server's directory is listed again if no segment is seen in it, after a pause each time.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// The same; `taken_for`: what the user says the directories are.
pub fn discover_as(paths: &[PathBuf], taken_for: Option<InputKind>) -> Result<Found, InputError> {
    discover_known(paths, taken_for, Arc::default())
}

/// The same, where some files were read before.
pub fn discover_known(
    paths: &[PathBuf],
    taken_for: Option<InputKind>,
    known: Arc<KnownFiles>,
) -> Result<Found, InputError> {
    let mut looks = 1;
    storage::begin(paths);
    loop {
        match given::look(paths, taken_for, &known) {
            // A server renames its segments while the directory is listed: all may be missed.
            Err(InputError::NoSegments { path, .. })
                if looks < LOOKS && is_server_directory(&path) =>
            {
                looks += 1;
                std::thread::sleep(PAUSE);
            }
            found => return found,
        }
    }
}

/// Looks at what lies beside the segments in a directory, of which others make partial results.
///
/// # Errors
///
/// When the directory cannot be listed.
pub fn discover_beside(directory: &Path) -> Result<Found, InputError> {
    let mut found =
        Found { paths: vec![directory.to_owned()], only_beside: true, ..Found::default() };
    found.add_given(&[0])?;
    Ok(found)
}

/// Whether a directory is a server's `pg_wal`, or has one.
fn is_server_directory(path: &Path) -> bool {
    has_status(path) || SERVER_DIRECTORIES.iter().any(|wal| has_status(&path.join(wal)))
}

impl Found {
    /// The same paths once more, as they are now.
    pub fn again(&self) -> Result<Found, InputError> {
        let found = discover_known(&self.paths, self.taken_for, Arc::clone(&self.known))?;
        Ok(Found { to_restore: self.to_restore, ..found })
    }

    /// Ends reading where one of the paths lies in a store that gives nothing any more.
    pub fn fail_if_given_up(&self) -> Result<(), InputError> {
        let mut given_up = self.paths.iter().filter_map(|it| Some((it, storage::given_up(it)?)));
        given_up.next().map_or(Ok(()), |(path, reason)| Err(InputError::io(path, reason)))
    }

    /// Release, cluster and sizes of most first pages, of the backup's cluster and size where some are.
    pub fn geometry(&self) -> Option<Geometry> {
        let pages = || self.looked_into().map(|piece| &piece.probe.first_page);
        let ToRestore { cluster, segment_bytes, .. } = self.to_restore;
        let is_backups = |page: &&Result<FirstPage, NotWal>| {
            let long = page.as_ref().ok().map(|page| page.long);
            let bytes = long.map(|long| long.segment_bytes);
            long.is_some_and(|long| cluster == Some(long.system_identifier))
                && (segment_bytes.is_none() || segment_bytes == bytes)
        };
        let of_backup = majority(pages().filter(is_backups));
        of_backup.or_else(|| majority(pages())).map(|(_, geometry)| geometry)
    }

    /// How many bytes there are to read in the range, whole segments where a file is compressed. `None`
    /// if something is a stream: its bytes can be read only once.
    pub fn bytes_in(&self, range: &Range<Lsn>) -> Option<u64> {
        let geometry = self.geometry().filter(|_| self.streams.is_empty())?;
        let whole = u64::from(geometry.segment_bytes);
        let inside = |piece: &&Piece| {
            let name = piece.name.as_ref().map(|name| name.name);
            let first = name.and_then(|name| name.start(geometry.segment_bytes));
            first.is_none_or(|first| first < range.end && first.0 + whole > range.start.0)
        };
        let bytes = self.pieces.iter().filter(inside);
        Some(bytes.map(|piece| piece.probe.raw_bytes.unwrap_or(whole).min(whole)).sum())
    }

    /// Whether a path leads into a stream, or is one.
    pub(super) fn is_in_stream(&self, path: &Path) -> bool {
        self.streams.iter().any(|stream| path.starts_with(&stream.path))
    }

    /// The pieces, but for those that were read and are no archive's.
    pub(crate) fn looked_into(&self) -> impl Iterator<Item = &Piece> {
        let is_passed_over = |it: &&Piece| self.passed_over_read.contains(&it.directory);
        self.pieces.iter().filter(move |piece| !is_passed_over(piece))
    }

    /// How many files and streams were found that may be WAL.
    fn count(&self) -> usize {
        self.pieces.len() + self.listed.len() + self.streams.len()
    }

    /// Notes what the directory of a single file is.
    fn look_around(&mut self, root: usize, path: &Path) {
        let parent = directory_of(path);
        // Of an object it is not asked: for each a request or two more, and servers do not write there.
        let is_servers = || has_status(parent) || data_directory_of(parent).is_some();
        if !storage::is_elsewhere(path) && is_servers() {
            let directory = self.directories.index(root, parent);
            self.directories.note_server_directory(directory);
        }
    }

    /// Adds what lies in a directory, and below it; says whether it was not looked into before.
    fn add_directory(&mut self, root: usize, path: &Path, depth: usize) -> io::Result<bool> {
        if !self.is_new(root, path, depth == DEPTH_MAX)? {
            return Ok(false);
        }
        let entries = storage::entries(path)?;
        let names: BTreeSet<String> =
            entries.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let data = names.contains(PG_VERSION) && is_data_directory(path);
        if data {
            self.data_directory.get_or_insert_with(|| path.to_owned());
        }
        // Done even where `archive_status` already marks a server's directory: the data directory also has
        // names and settings.
        let has_data_directory = self.note_data_directory_of(path);
        if has_data_directory || names.contains(ARCHIVE_STATUS) {
            let directory = self.directories.index(root, path);
            self.directories.note_server_directory(directory);
        }
        if depth < DEPTH_MAX && names.contains(ARCHIVE_STATUS) && !self.asked_for.contains(path) {
            self.set_aside(ServersOwn { path: path.to_owned(), is_backups: false });
            return Ok(true);
        }
        for (name, metadata) in entries {
            let below = path.join(&name);
            let name = name.to_string_lossy();
            match metadata {
                Ok(metadata) if metadata.kind == Kind::Directory => {
                    let is_wal_of_data = data && SERVER_DIRECTORIES.contains(&&*name);
                    let wanted = !is_passed_over(&name, &names) && (!data || is_wal_of_data);
                    // The WAL of a data directory that is given by its own path is read.
                    if is_wal_of_data && depth == DEPTH_MAX {
                        self.asked_for.insert(below.clone());
                    } else if is_wal_of_data {
                        self.set_aside(ServersOwn { path: below, is_backups: is_backup(&names) });
                        continue;
                    }
                    self.add_below(root, &below, depth, wanted);
                }
                metadata => self.add_entry(root, &below, metadata),
            }
        }
        Ok(true)
    }

    /// Adds a directory in a directory.
    fn add_below(&mut self, root: usize, path: &Path, depth: usize, wanted: bool) {
        let name = file_name(path);
        if is_segments(&name) {
            self.refuse(root, path, NotWal::NoFile(NotWal::DIRECTORY.into()));
        }
        if !wanted {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else {
            let path = path.display();
            self.is_too_deep = true;
            self.notes
                .push(format!("{path}: not looked into: more than {DEPTH_MAX} directories deep"));
            return;
        };
        match self.add_directory(root, path, depth) {
            Err(error) if self.is_lacking(path, &error) => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let (expected, found) = ("a directory that can be read".into(), error.to_string());
                let path = path.display().to_string();
                let problem = Problem::of_file(ProblemKind::Unreadable, &path, expected, found);
                self.problems.push(problem);
            }
            _ => {}
        }
    }

    /// Takes note of an error that says nothing of the file.
    fn is_lacking(&mut self, path: &Path, error: &io::Error) -> bool {
        let lacking = Lacking::of(path, error);
        let lacks = lacking.is_some();
        self.lacking = self.lacking.take().or(lacking);
        lacks
    }

    /// Adds what is no directory. A live directory loses files while it is read: what is gone is
    /// passed over.
    fn add_entry(&mut self, root: usize, path: &Path, metadata: io::Result<Metadata>) {
        let named = is_segments(&file_name(path));
        if self.is_no_history(path, &metadata) {
            return;
        }
        match metadata {
            Ok(Metadata { kind: Kind::Other(kind), .. }) if named => {
                self.refuse(root, path, NotWal::NoFile(kind.into()))
            }
            Ok(metadata) if metadata.kind == Kind::File => {
                self.add_file(root, path, &metadata, false);
            }
            Err(_) if named && is_link_to_nothing(path) => {
                self.refuse(root, path, NotWal::NoFile(LINK_TO_NOTHING.into()));
            }
            Err(error) if named && error.kind() != io::ErrorKind::NotFound => {
                self.refuse(root, path, NotWal::Io(error.to_string()));
            }
            _ => {}
        }
    }

    /// Adds a file. `asked`: it was named by the user, so it is looked at whatever it is called;
    /// beside other files, only what is called like a segment or like a tar of them.
    fn add_file(&mut self, root: usize, path: &Path, metadata: &Metadata, asked: bool) {
        let text = file_name(path);
        let parsed = FileName::parse(&text);
        if parsed == FileName::Other && backup_start(&text).is_some() {
            self.backup_histories.push(path.to_owned());
        }
        let name = match parsed {
            FileName::History(timeline) => {
                let read = read_text(path);
                if read.as_ref().is_err_and(|error| self.is_lacking(path, error)) {
                    return;
                }
                self.add_history(timeline, path, read);
                return;
            }
            FileName::Segment(_) if self.only_beside => return,
            FileName::Segment(name) if storage::is_elsewhere(path) => {
                let path = path.to_owned();
                let (bytes, modified) = (metadata.bytes, metadata.modified);
                self.listed.push(Listed { root, path, name, bytes, modified });
                return;
            }
            FileName::Segment(file) => {
                if packing::is_for_zstd(&text) && is_link(path) {
                    self.zstd_links.insert(path.to_string_lossy().into_owned());
                }
                Some(file)
            }
            FileName::Other if self.only_beside && is_called_like_a_tar(&text) => return,
            FileName::Other if asked || is_called_like_a_tar(&text) => None,
            FileName::Other => {
                if archive_info::NAMES.contains(&&*text) {
                    self.archive_infos.push((path.to_owned(), ArchiveInfo::read(path)));
                }
                self.others.push(text);
                return;
            }
        };
        let known = self.known_probe(path);
        let probe = known.map_or_else(|| probe(path, &mut storage::Ahead::default()), Ok);
        let probe = match probe {
            Ok(probe) => probe,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !asked => return,
            Err(error) if self.is_lacking(path, &error) => return,
            Err(error) => Probe::failed(path, NotWal::Io(error.to_string())),
        };
        self.add_probed(root, path, name, probe);
    }

    /// What a look into a file would find, if it was read before and is the same.
    pub(crate) fn known_probe(&self, path: &Path) -> Option<Probe> {
        self.known.get(&*path.to_string_lossy()).and_then(|known| known.probe(path))
    }

    /// Adds a file that was looked into.
    pub(crate) fn add_probed(
        &mut self,
        root: usize,
        path: &Path,
        name: Option<SegmentFile>,
        probe: Probe,
    ) {
        let text = file_name(path);
        let is_stream = match &probe.first_page {
            Err(NotWal::Tar) => {
                self.problems.extend(name.as_ref().and_then(|name| packing::tar(&text, name)));
                true
            }
            // A tar that cannot be decoded says so when it is read.
            Err(NotWal::Io(_) | NotWal::Cut(_)) => is_called_like_a_tar(&text),
            // Segments one after the other in one file.
            Ok(page) => name.is_none() && probe.holds_several(page),
            _ => false,
        };
        if let (Some(name), Source::Raw(_) | Source::Compressed(..)) = (&name, &probe.source) {
            let codec = probe.source.codec();
            self.problems.extend(packing::misnamed(&text, name, codec, &probe.first_page));
        }
        if is_stream {
            self.streams.push(Stream { path: path.to_owned(), root })
        } else {
            self.add_piece(root, directory_of(path), name, probe);
        }
    }

    /// Adds what may be a segment, in a directory on disk or in a tar.
    pub fn add_piece(
        &mut self,
        root: usize,
        directory: &Path,
        name: Option<SegmentFile>,
        probe: Probe,
    ) -> usize {
        let file = file_name(probe.source.path());
        let name = name.map(|name| {
            packing::with_standing(&file, name, probe.source.codec(), &probe.first_page)
        });
        let directory = self.directories.index(root, directory);
        let full = name.as_ref().filter(|name| name.standing <= Standing::Unusual);
        if full.is_some_and(|name| name.sha1.is_some() || probe.compressed) {
            self.directories.note_archive(directory);
        }
        self.pieces.push(Piece { name, probe, directory, after: None });
        self.pieces.len() - 1
    }

    fn refuse(&mut self, root: usize, path: &Path, reason: NotWal) {
        let name = match FileName::parse(&file_name(path)) {
            FileName::Segment(name) => Some(name),
            _ => None,
        };
        self.add_piece(root, directory_of(path), name, Probe::failed(path, reason));
    }
}

const LINK_TO_NOTHING: &str = "link to nothing";

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new(""))
}

fn is_segments(name: &str) -> bool {
    matches!(FileName::parse(name), FileName::Segment(_))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

fn is_link_to_nothing(path: &Path) -> bool {
    is_link(path) && !path.exists()
}

/// Whether a directory holds no WAL of its own; `beside`: the names in the same directory.
pub fn is_passed_over(name: &str, beside: &BTreeSet<String>) -> bool {
    let backups = |(wal, backups): &(&str, &str)| *backups == name && beside.contains(*wal);
    name.starts_with('.') || PASSED_OVER.contains(&name) || BASE_BACKUPS.iter().any(backups)
}
