//! The paths asked for, which may lie in one another.
//!
//! What is found through several of them belongs to the outermost one, a directory and not the directory or
//! the file in it, in whatever order and spelling they are given: files below the directory that holds all
//! others are out of a `restore_command`'s reach, and giving their directory as a path of its own does not
//! change that. So directories are looked into before files, and outer ones before those within. Which lie
//! within others is not told by how they are spelt, since there are links: it is learnt by looking.

use super::data_directories::segments_below;
use super::{
    DEPTH_MAX, Found, LINK_TO_NOTHING, PASSED_OVER, Stream, directory_of, is_link_to_nothing,
    is_segments,
};
use crate::error::InputError;
use crate::inherited::is_read_once;
use crate::input_kind::{InputKind, SERVER_DIRECTORIES};
use crate::known_files::KnownFiles;
use crate::names::file_name;
use crate::probe::NotWal;
use crate::storage::{self, Kind, Metadata};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walstat_format::ordered::OrderBy;

/// A directory that was looked into.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    /// Which of the paths asked for it was found through.
    root: usize,
    /// As it was found there.
    path: PathBuf,
    /// It is that path itself.
    is_root: bool,
}

/// Looks at all paths.
pub(super) fn look(
    paths: &[PathBuf],
    taken_for: Option<InputKind>,
    known: &Arc<KnownFiles>,
) -> Result<Found, InputError> {
    let mut within = BTreeSet::new();
    loop {
        let known = Arc::clone(known);
        let mut found = Found { paths: paths.to_vec(), taken_for, known, ..Found::default() };
        let added = found.add_given(&outermost_first(paths, &within));
        let before = within.len();
        within.append(&mut found.met);
        // Each time at least one more is learnt, and there are only so many.
        if within.len() == before {
            return added.map(|()| found);
        }
    }
}

/// The paths, as indexes, so that no directory comes before one that it lies within. `within`: pairs of
/// which the second lies within the first. The order in which they are given decides nothing.
fn outermost_first(paths: &[PathBuf], within: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..paths.len()).collect();
    let outer = |index: usize| within.iter().filter(|(_, inner)| *inner == index).count();
    order.sort_by_cached_key(|&index| (outer(index), paths.get(index).cloned()));
    order
}

/// What is at a path; `None`: what can only be read from front to back, or a link to nothing.
fn metadata_at(path: &Path) -> Result<Option<Metadata>, InputError> {
    if is_read_once(path) {
        return Ok(None);
    }
    match storage::metadata(path) {
        Err(_) if is_link_to_nothing(path) && is_segments(&file_name(path)) => Ok(None),
        metadata => metadata.map(Some).map_err(|source| InputError::io(path, source)),
    }
}

impl Found {
    /// Adds what lies at the paths of these indexes: first what is in directories. An empty one is an error
    /// once all were looked at.
    pub(super) fn add_given(&mut self, order: &[usize]) -> Result<(), InputError> {
        let mut files: Vec<(usize, PathBuf, Option<Metadata>)> = Vec::new();
        let mut empty = None;
        for &root in order {
            let Some(path) = self.paths.get(root).map(|path| storage::on_disk(path).into_owned())
            else {
                continue;
            };
            match metadata_at(&path)? {
                Some(metadata) if metadata.kind == Kind::Directory => {
                    let added = self.add_given_directory(root, &path);
                    self.fail_if_lacking()?;
                    match added {
                        Err(error @ InputError::NoSegments { .. }) => {
                            _ = empty.get_or_insert(error)
                        }
                        added => added?,
                    }
                }
                metadata => files.push((root, path, metadata)),
            }
        }
        files.order_by_key(|(root, ..)| *root);
        let mut found_below = FoundBelow::default();
        for (root, path, metadata) in files {
            self.add_given_file(root, &path, metadata, &mut found_below)?;
            self.fail_if_lacking()?;
        }
        self.tell_passed_over();
        let empty = empty.filter(|error| !self.is_within_another(error));
        empty.map_or(Ok(()), Err)
    }

    fn fail_if_lacking(&mut self) -> Result<(), InputError> {
        self.lacking.take().map_or(Ok(()), |lacking| Err(lacking.into()))
    }

    fn add_given_directory(&mut self, root: usize, path: &Path) -> Result<(), InputError> {
        let (before, segments_before) = (self.count(), self.count_segments());
        let name = file_name(path);
        if is_segments(&name) {
            self.refuse(root, path, NotWal::NoFile(NotWal::DIRECTORY.into()));
        }
        let added = self.add_directory(root, path, DEPTH_MAX);
        let new = added.map_err(|source| InputError::io(path, source))?;
        self.add_servers_own(root, segments_before);
        let beside = self.paths.len() > 1 && PASSED_OVER.contains(&&*name);
        if new && self.count() == before && !beside && !self.only_beside {
            let is_too_deep = self.is_too_deep;
            let below = segments_below(path);
            let none = InputError::NoSegments { path: path.to_owned(), is_too_deep, below };
            return Err(denied(path).unwrap_or(none));
        }
        Ok(())
    }

    fn add_given_file(
        &mut self,
        root: usize,
        path: &Path,
        metadata: Option<Metadata>,
        below: &mut FoundBelow,
    ) -> Result<(), InputError> {
        let name = file_name(path);
        let Some(metadata) = metadata else {
            if is_read_once(path) {
                self.streams.push(Stream { path: path.to_owned(), root });
            } else {
                self.refuse(root, path, NotWal::NoFile(LINK_TO_NOTHING.into()));
            }
            return Ok(());
        };
        if let Kind::Other(kind) = metadata.kind {
            if !is_segments(&name) {
                return Err(InputError::Kind { path: path.to_owned(), kind });
            }
            self.refuse(root, path, NotWal::NoFile(kind.into()));
            return Ok(());
        }
        match below.directory(self, path) {
            Some(Looked { root, path: directory, .. }) => {
                let path = path.file_name().map_or(directory.clone(), |name| directory.join(name));
                self.add_file(root, &path, &metadata, true);
            }
            None => {
                self.look_around(root, path);
                self.add_file(root, path, &metadata, true);
            }
        }
        Ok(())
    }

    /// Takes note that a directory is looked into; whether it was not yet. `is_root`: it is one of the
    /// paths asked for.
    pub(super) fn is_new(&mut self, root: usize, path: &Path, is_root: bool) -> io::Result<bool> {
        let identity = storage::identity(path)?;
        if let Some(looked) = self.seen.get(&identity) {
            if looked.is_root && looked.root != root && !is_root {
                self.met.insert((root, looked.root));
            }
            return Ok(false);
        }
        self.seen.insert(identity, Looked { root, path: path.to_owned(), is_root });
        Ok(true)
    }

    /// A directory is to be looked into later.
    pub(super) fn forget_seen(&mut self, path: &Path) {
        if let Ok(identity) = storage::identity(path) {
            self.seen.remove(&identity);
        }
    }

    /// Whether a directory was looked into.
    pub(super) fn is_seen(&self, path: &Path) -> bool {
        storage::identity(path).is_ok_and(|it| self.seen.contains_key(&it))
    }

    /// Whether the directory without segments lies within another one that was looked into.
    fn is_within_another(&self, error: &InputError) -> bool {
        let InputError::NoSegments { path, .. } = error else { return false };
        let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        whole.ancestors().skip(1).any(|above| self.is_seen(above))
    }
}

/// Why the WAL of a server's directory cannot be looked into, if that is so.
fn denied(path: &Path) -> Option<InputError> {
    if storage::is_elsewhere(path) {
        return None;
    }
    SERVER_DIRECTORIES.into_iter().map(|name| path.join(name)).find_map(|folder| {
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let source = storage::entries(&folder).err().filter(denied)?;
        Some(InputError::io(&folder, source))
    })
}

/// Where the directories of files that are asked for were looked into; those of one directory mostly come
/// one after the other.
#[derive(Debug, Default)]
struct FoundBelow {
    last: Option<(PathBuf, Option<Looked>)>,
}

impl FoundBelow {
    fn directory(&mut self, found: &Found, path: &Path) -> Option<Looked> {
        if found.seen.is_empty() {
            return None;
        }
        let parent = match directory_of(path) {
            parent if parent.as_os_str().is_empty() => Path::new("."),
            parent => parent,
        };
        if let Some((_, looked)) = self.last.as_ref().filter(|(last, _)| last == parent) {
            return looked.clone();
        }
        let looked = storage::identity(parent).ok().and_then(|it| found.seen.get(&it)).cloned();
        self.last = Some((parent.to_owned(), looked.clone()));
        looked
    }
}
