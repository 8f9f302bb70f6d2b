//! Data directories: those of servers, of copies, of base backups. The WAL in one of them (a backup has some
//! from `pg_basebackup -X stream`) is its own, where it lies beside an archive: no `restore_command` looks
//! there, and what only a server or a backup has does not make the archive whole.

use super::{DEPTH_MAX, Found, directory_of};
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
    /// Looks into servers' own directories where the path has no other WAL, and into those of base backups
    /// where it has no server's: `before` is how much there was then.
    pub(super) fn add_servers_own(&mut self, root: usize, before: usize) {
        let own = std::mem::take(&mut self.servers_own);
        if own.is_empty() || self.only_beside {
            return;
        }
        for is_backups in [false, true] {
            let those = own.iter().filter(|own| own.is_backups == is_backups);
            if self.count() == before {
                those.for_each(|own| self.add_below(root, &own.path, DEPTH_MAX, true));
            } else {
                self.notes.extend(those.filter(|own| has_segments(&own.path)).map(note));
            }
        }
        // Those that lie in these.
        self.add_servers_own(root, before);
    }

    /// The same of directories in tars that were read: those in which servers' own WAL lies that is passed
    /// over, by their indexes.
    pub(crate) fn servers_own_in_tars(&self) -> BTreeSet<usize> {
        let is_own = |directory: usize| {
            let (root, path) = self.directories.place(directory)?;
            let stream = self.streams.iter().find(|stream| path.starts_with(&stream.path))?;
            let is_given = self.paths.get(root).is_some_and(|given| *given == stream.path);
            let is_servers = self.directories.taken_for(directory) == InputKind::PgWal;
            (is_servers && !is_given).then_some(root)
        };
        if self.streams.is_empty() {
            return BTreeSet::new();
        }
        let directories: BTreeSet<usize> =
            self.pieces.iter().map(|piece| piece.directory).collect_set();
        let (own, others): (Vec<_>, Vec<_>) =
            directories.into_iter().map(|it| (it, is_own(it))).partition(|(_, own)| own.is_some());
        let root_of = |(directory, _): (usize, _)| Some(self.directories.place(directory)?.0);
        let with_others: BTreeSet<usize> = others.into_iter().filter_map(root_of).collect_set();
        let passed_over = own
            .into_iter()
            .filter(|(_, root)| root.is_some_and(|root| with_others.contains(&root)));
        passed_over.map(|(directory, _)| directory).collect_set()
    }
}

/// Whether a directory is marked as a server's own.
pub(super) fn has_status(path: &Path) -> bool {
    // Of objects it is not asked: for each it were a request more, and servers do not write there.
    !storage::is_elsewhere(path) && storage::is_dir(&path.join(ARCHIVE_STATUS))
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
pub(crate) const SERVERS_OWN: &str = "the WAL of a server, or of a backup, alone";

/// The note on WAL that is not read because it is somebody's own.
pub(crate) fn passed_over(path: &Path, whose: &str) -> String {
    let path = path.display();
    format!(
        "{path}: not read: it is {whose}, and a restore_command that looks into the archive does not bring \
         it; to have it read, give it as a PATH, too"
    )
}
