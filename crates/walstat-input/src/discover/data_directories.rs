//! Data directories: a server's, and base backups. What a backup brings along (`pg_basebackup -X stream`) is
//! its own, where it lies beside an archive: no `restore_command` looks there, and what only a backup has
//! does not make the archive whole.

use super::{DEPTH_MAX, Found, directory_of};
use crate::input_kind::SERVER_DIRECTORIES;
use crate::label::{BACKUP_LABEL, PG_VERSION};
use crate::names::file_name;
use crate::storage;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use walstat_format::segment::SegmentName;

impl Found {
    /// Looks into the WAL of base backups where the path has no other: `before` is how much there was then.
    pub(super) fn add_backups_own(&mut self, root: usize, before: usize) {
        let own = std::mem::take(&mut self.backups_own);
        if self.only_beside {
            return;
        }
        if self.count() == before {
            own.iter().for_each(|path| self.add_below(root, path, DEPTH_MAX, true));
            return;
        }
        self.notes.extend(own.into_iter().filter(|path| has_segments(path)).map(note));
    }
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

fn note(path: PathBuf) -> String {
    let (backup, path) = (path.parent().map(file_name).unwrap_or_default(), path.display());
    format!(
        "{path}: not read: it is the WAL of the backup {backup} alone, and a restore_command does not bring \
         it; to restore that one, give it as a PATH, too"
    )
}
