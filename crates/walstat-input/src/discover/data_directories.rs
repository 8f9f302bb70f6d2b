//! Data directories: those of servers, of copies, of base backups. The WAL in one of them (a backup has some
//! from `pg_basebackup -X stream`) is its own, where it lies beside an archive: no `restore_command` looks
//! there, and what only a server or a backup has does not make the archive whole.

use super::{DEPTH_MAX, Found, directory_of, is_passed_over};
use crate::input_kind::{ARCHIVE_STATUS, InputKind, SERVER_DIRECTORIES};
use crate::label::{BACKUP_LABEL, PG_VERSION};
use crate::names::file_name;
use crate::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use walstat_format::ordered::CollectOrdered;
use walstat_format::segment::SegmentName;

/// A server's own directory of WAL.
#[derive(Debug, Clone)]
pub(super) struct ServersOwn {
    pub path: PathBuf,
    /// It is that of a base backup.
    pub is_backups: bool,
}

impl Found {
    /// How many files were found that are called like segments. What is in tars is not known yet.
    pub(super) fn count_segments(&self) -> usize {
        let named = self.pieces.iter().filter(|piece| piece.name.is_some());
        named.count() + self.listed.len()
    }

    /// Notes the data directory of which this is the WAL directory, if it is one; whether it is.
    pub(super) fn note_data_directory_of(&mut self, path: &Path) -> bool {
        let data = data_directory_of(path);
        let has_one = data.is_some();
        self.data_directory = self.data_directory.take().or(data);
        has_one
    }

    /// Leaves a directory for later.
    pub(super) fn set_aside(&mut self, own: ServersOwn) {
        self.forget_seen(&own.path);
        self.servers_own.push(own);
    }

    /// Looks into servers' own directories where the path has no other WAL, and into those of base backups
    /// where it has no server's: `before` is how many segments there were then.
    pub(super) fn add_servers_own(&mut self, root: usize, before: usize) {
        let own = std::mem::take(&mut self.servers_own);
        if own.is_empty() || self.only_beside {
            return;
        }
        for is_backups in [false, true] {
            let those = own.iter().filter(|own| own.is_backups == is_backups);
            if self.count_segments() == before {
                for own in those {
                    self.asked_for.insert(own.path.clone());
                    self.add_below(root, &own.path, DEPTH_MAX, true);
                }
            } else {
                self.passed_over.extend(those.cloned());
            }
        }
        // Those that lie in these.
        self.add_servers_own(root, before);
    }

    /// Notes what is not read, unless it was asked for by its own path.
    pub(super) fn tell_passed_over(&mut self) {
        let mut passed_over = std::mem::take(&mut self.passed_over);
        passed_over.retain(|own| !self.is_seen(&own.path));
        self.notes.extend(passed_over.iter().filter(|own| has_segments(&own.path)).map(note));
        self.passed_over = passed_over;
    }

    /// The first data directory among the paths, if its WAL is read.
    pub fn data_directory_read(&self) -> Option<&Path> {
        let is_passed_over =
            |data: &Path| self.passed_over.iter().any(|own| own.path.parent() == Some(data));
        self.data_directory.as_deref().filter(|data| !is_passed_over(data))
    }

    /// The same of what was read before it was known what lies beside it, in tars and by others: WAL that is
    /// a server's own is passed over, with its histories, where the path has other, and so is what lies where
    /// nobody looks for an archive.
    pub fn pass_over_read(&mut self) {
        if self.streams.is_empty() && !self.is_read {
            return;
        }
        let directories: BTreeSet<usize> =
            self.pieces.iter().map(|piece| piece.directory).collect_set();
        let beside = self.names_in_tars(&directories);
        let others = directories.iter().filter(|it| !self.is_apart(**it, &beside));
        let with_others: BTreeSet<usize> =
            others.filter_map(|it| Some(self.directories.place(*it)?.0)).collect_set();
        for directory in directories {
            let Some((root, path)) = self.directories.place(directory) else { continue };
            let is_apart = self.is_apart(directory, &beside) && with_others.contains(&root);
            if is_apart && self.passed_over_read.insert(directory) {
                let own = self.is_servers_own(directory).then(|| ServersOwn {
                    path: path.to_owned(),
                    is_backups: path.parent().is_some_and(is_backups),
                });
                self.notes.extend(own.as_ref().map(note));
                self.histories.leave_out_of(path);
            }
        }
    }

    /// Whether a directory that was read is no archive's.
    fn is_apart(&self, directory: usize, beside: &BTreeMap<PathBuf, BTreeSet<String>>) -> bool {
        self.is_servers_own(directory) || self.is_passed_over_in_tar(directory, beside)
    }

    /// The tar that a directory lies in, and the names on the way to it.
    fn way_in_tar(&self, directory: usize) -> Option<(&Path, Vec<String>)> {
        let (_, path) = self.directories.place(directory)?;
        let tar = &self.streams.iter().find(|stream| path.starts_with(&stream.path))?.path;
        let way = path.strip_prefix(tar).ok()?.iter();
        Some((tar, way.map(|name| name.to_string_lossy().into_owned()).collect()))
    }

    /// Which names there are in the directories of tars on the way to those with segments.
    fn names_in_tars(&self, directories: &BTreeSet<usize>) -> BTreeMap<PathBuf, BTreeSet<String>> {
        let mut names: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for (tar, way) in directories.iter().filter_map(|directory| self.way_in_tar(*directory)) {
            let mut above = tar.to_owned();
            for name in way {
                names.entry(above.clone()).or_default().insert(name.clone());
                above.push(name);
            }
        }
        names
    }

    /// Whether a directory in a tar lies where on disk nobody would look.
    fn is_passed_over_in_tar(
        &self,
        directory: usize,
        beside: &BTreeMap<PathBuf, BTreeSet<String>>,
    ) -> bool {
        let Some((tar, way)) = self.way_in_tar(directory) else { return false };
        let mut above = tar.to_owned();
        way.into_iter().any(|name| {
            let is_it = beside.get(&above).is_some_and(|beside| is_passed_over(&name, beside));
            above.push(name);
            is_it
        })
    }

    /// Whether a directory in a tar, or of segments that others have read, is a server's own, and was not
    /// asked for by its own path.
    fn is_servers_own(&self, directory: usize) -> bool {
        let Some((_, path)) = self.directories.place(directory) else { return false };
        let is_read = self.is_read || self.is_in_stream(path);
        is_read
            && self.directories.taken_for(directory) == InputKind::PgWal
            && !self.paths.iter().any(|given| given == path)
    }
}

/// Whether a directory is marked as a server's own.
pub(super) fn has_status(path: &Path) -> bool {
    storage::is_dir(&path.join(ARCHIVE_STATUS))
}

/// Whether a directory is one in which a server keeps its data.
pub(super) fn is_data_directory(path: &Path) -> bool {
    let has = |name: &&str| storage::is_dir(&path.join(name));
    storage::is_file(&path.join(PG_VERSION))
        && ["global"].iter().chain(&SERVER_DIRECTORIES).any(has)
}

/// Whether a data directory with these names in it is a base backup that nobody has started. Up to 14 a
/// server has a label too, while an exclusive backup is taken.
pub(super) fn is_backup(names: &BTreeSet<String>) -> bool {
    names.contains(BACKUP_LABEL) && !names.contains("postmaster.pid")
}

/// The same of a data directory, if it is there.
fn is_backups(data: &Path) -> bool {
    let entries = storage::entries(data).unwrap_or_default().into_iter();
    is_backup(&entries.map(|(name, _)| name.to_string_lossy().into_owned()).collect_set())
}

/// The data directory whose WAL lies at `path`. Often that is a link to another disk: the directory
/// that the link lies in is asked before the one that it leads into.
pub(super) fn data_directory_of(path: &Path) -> Option<PathBuf> {
    // `.` is called as it is where it lies.
    let whole = match path.file_name() {
        None => std::fs::canonicalize(path).ok()?,
        Some(_) => path.to_owned(),
    };
    if !SERVER_DIRECTORIES.contains(&&*file_name(&whole)) {
        return None;
    }
    let lexical = match directory_of(&whole) {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    [lexical.to_owned(), path.join("..")].into_iter().find(|parent| is_data_directory(parent))
}

fn has_segments(path: &Path) -> bool {
    let entries = storage::entries(path).unwrap_or_default();
    entries.iter().any(|(name, _)| SegmentName::parse(&name.to_string_lossy()).is_some())
}

fn note(ServersOwn { path, is_backups }: &ServersOwn) -> String {
    let whose = match path.parent().map(file_name).filter(|_| *is_backups) {
        Some(backup) => format!("the WAL of the backup {backup} alone"),
        None => "the WAL of a server, or of a backup, alone".to_owned(),
    };
    let path = path.display();
    format!(
        "{path}: not read: it is {whose}, and a restore_command that looks into the archive does not bring \
         it; to have it read, give it as a PATH, too"
    )
}
