//! Data directories: those of servers, of copies, of base backups. The WAL in one of them (a backup has some
//! from `pg_basebackup -X stream`) is its own, where it lies beside an archive: no `restore_command` looks
//! there, and what only a server or a backup has does not make the archive whole.

use super::{DEPTH_MAX, Found, Stream, directory_of};
use crate::input_kind::{ARCHIVE_STATUS, InputKind, SERVER_DIRECTORIES};
use crate::label::{BACKUP_LABEL, PG_VERSION};
use crate::names::file_name;
use crate::storage;
use std::collections::BTreeSet;
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
        let mut untold = std::mem::take(&mut self.passed_over);
        untold.retain(|own| has_segments(&own.path) && !self.is_seen(&own.path));
        self.notes.extend(untold.iter().map(note));
    }

    /// The same of tars, once they were read: WAL that is a server's own is passed over, with its histories,
    /// where the path has other.
    pub fn pass_over_in_tars(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let directories: BTreeSet<usize> =
            self.pieces.iter().map(|piece| piece.directory).collect_set();
        let (own, others): (Vec<usize>, Vec<usize>) =
            directories.into_iter().partition(|directory| self.is_servers_own_in_tar(*directory));
        let root_of = |directory: &usize| self.directories.place(*directory).map(|(root, _)| root);
        let with_others: BTreeSet<usize> = others.iter().filter_map(root_of).collect_set();
        let own: Vec<usize> = own
            .into_iter()
            .filter(|it| root_of(it).is_some_and(|root| with_others.contains(&root)))
            .collect();
        for directory in own {
            let Some((_, path)) = self.directories.place(directory) else { continue };
            if self.passed_over_in_tars.insert(directory) {
                self.notes.push(passed_over(path, SERVERS_OWN));
                self.histories.leave_out_of(path);
            }
        }
    }

    /// Whether a directory lies in a tar that is not given by its own path, and is a server's own.
    fn is_servers_own_in_tar(&self, directory: usize) -> bool {
        let Some((root, path)) = self.directories.place(directory) else { return false };
        let is_given = |stream: &Path| self.paths.get(root).is_some_and(|given| given == stream);
        let is_below = |stream: &&Stream| path.starts_with(&stream.path);
        self.directories.taken_for(directory) == InputKind::PgWal
            && self.streams.iter().find(is_below).is_some_and(|stream| !is_given(&stream.path))
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
        None => SERVERS_OWN.to_owned(),
    };
    passed_over(path, &whose)
}

/// Whose WAL it is, of a server or a backup that is not known.
const SERVERS_OWN: &str = "the WAL of a server, or of a backup, alone";

/// The note on WAL that is not read because it is somebody's own.
fn passed_over(path: &Path, whose: &str) -> String {
    let path = path.display();
    format!(
        "{path}: not read: it is {whose}, and a restore_command that looks into the archive does not bring \
         it; to have it read, give it as a PATH, too"
    )
}
