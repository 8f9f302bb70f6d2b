//! Data directories: those of servers, of copies, of base backups. The WAL in one of them (a backup has some
//! from `pg_basebackup -X stream`) is its own, where it lies beside an archive: no `restore_command` looks
//! there, and what only a server or a backup has does not make the archive whole.

use super::{DEPTH_MAX, Found, directory_of, is_passed_over};
use crate::control;
use crate::input_kind::{ARCHIVE_STATUS, InputKind, SERVER_DIRECTORIES};
use crate::label::{BACKUP_LABEL, PG_VERSION};
use crate::names::file_name;
use crate::storage;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
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
        let mut untold = std::mem::take(&mut self.passed_over);
        untold.retain(|own| has_segments(&own.path) && !self.is_seen(&own.path));
        self.notes.extend(untold.iter().map(note));
    }

    /// The data directory whose own WAL is read, if it is one alone.
    pub fn data_directory_read(&self) -> Option<PathBuf> {
        let own = self.directories_read().filter_map(|directory| self.servers_wal(directory));
        let own: BTreeSet<PathBuf> = own.filter_map(data_directory_of).collect_set();
        let mut own = own.into_iter();
        own.next().filter(|_| own.next().is_none())
    }

    /// The directory of WAL of a server, if nothing else is read.
    pub fn wal_alone(&self) -> Option<PathBuf> {
        let mut directories = self.directories_read();
        let alone = directories.next().filter(|_| directories.next().is_none())?;
        self.servers_wal(alone).filter(|_| self.listed.is_empty()).map(Path::to_owned)
    }

    /// What the files of a directory are taken for.
    pub(crate) fn taken_for(&self, directory: usize) -> InputKind {
        self.taken_for.unwrap_or_else(|| self.directories.taken_for(directory))
    }

    /// The directories whose files are read, each once.
    fn directories_read(&self) -> impl Iterator<Item = usize> {
        let all: BTreeSet<usize> = self.pieces.iter().map(|piece| piece.directory).collect_set();
        all.into_iter()
    }

    /// A directory of this machine, if it is a server's own.
    fn servers_wal(&self, directory: usize) -> Option<&Path> {
        let (_, path) = self.directories.place(directory)?;
        let is_here = !storage::is_elsewhere(path) && !self.is_in_stream(path);
        (is_here && self.taken_for(directory) == InputKind::PgWal).then_some(path)
    }

    /// The timeline on which a server is, by its `pg_control`, if only its own WAL is read, and not to
    /// restore a backup with it. Segments and histories of newer ones that somebody has put there are not
    /// its own.
    pub(crate) fn timeline_of_server(&self, system_identifier: u64) -> Option<u32> {
        let wal = self.wal_alone().filter(|_| !self.to_restore.is_asked)?;
        let (cluster, timeline) = control::timeline_of_primary(&data_directory_of(&wal)?)?;
        (cluster == system_identifier).then_some(timeline)
    }

    /// What was read before it was known what lies beside it, in tars and by others, is passed over as on
    /// disk: WAL that is a server's own, with its histories, where the path has other, and what lies where
    /// nobody looks for an archive.
    pub fn pass_over_read(&mut self) {
        if self.streams.is_empty() && !self.is_merged {
            return;
        }
        let directories: BTreeSet<usize> =
            self.pieces.iter().map(|piece| piece.directory).collect_set();
        let unseen = self.passed_over_in_tars(&directories);
        let is_unseen =
            |it: usize| self.directories.place(it).is_some_and(|(_, path)| unseen.contains(path));
        let (apart, others): (Vec<usize>, Vec<usize>) =
            directories.into_iter().partition(|it| is_unseen(*it) || self.is_servers_own(*it));
        let root_of = |it: &usize| self.directories.place(*it).map(|(root, _)| root);
        let with_others: BTreeSet<usize> = others.iter().filter_map(root_of).collect_set();
        for directory in apart {
            let Some((root, path)) = self.directories.place(directory) else { continue };
            if with_others.contains(&root) && self.passed_over_read.insert(directory) {
                let own = self.is_servers_own(directory).then(|| ServersOwn {
                    path: path.to_owned(),
                    is_backups: path.parent().is_some_and(is_backups),
                });
                self.notes.extend(own.as_ref().map(note));
                self.histories.leave_out_of(path);
            }
        }
        for path in unseen.iter().filter(|_| !others.is_empty()) {
            self.histories.leave_out_of(path);
        }
    }

    /// Directories in tars that lie where on disk nobody would look.
    fn passed_over_in_tars(&self, directories: &BTreeSet<usize>) -> BTreeSet<PathBuf> {
        let tars: BTreeSet<&Path> = self.streams.iter().map(|stream| &*stream.path).collect_set();
        let of_pieces = directories.iter().filter_map(|it| Some(self.directories.place(*it)?.1));
        let histories = self.histories.files().flat_map(|(_, files)| files);
        let all = of_pieces.chain(histories.map(|path| directory_of(path)));
        // From each up to the tar.
        let ways = all.filter_map(|path| {
            let depth = path.ancestors().position(|above| tars.contains(above))?;
            Some(path.ancestors().take(depth).collect::<Vec<&Path>>())
        });
        let ways: Vec<Vec<&Path>> = ways.collect();
        let mut beside: BTreeMap<&Path, BTreeSet<String>> = BTreeMap::new();
        for path in ways.iter().flatten() {
            beside.entry(directory_of(path)).or_default().insert(file_name(path));
        }
        let is_unseen = |path: &&Path| {
            let (name, beside) = (file_name(path), beside.get(directory_of(path)));
            let is_up = matches!(path.components().next_back(), Some(Component::ParentDir));
            !is_up && beside.is_some_and(|beside| is_passed_over(&name, beside))
        };
        let unseen = ways.iter().filter(|way| way.iter().any(is_unseen));
        unseen.filter_map(|way| Some(way.first()?.to_path_buf())).collect_set()
    }

    /// Whether a directory in a tar, or of segments that others have read, is a server's own, and was not
    /// asked for by its own path.
    fn is_servers_own(&self, directory: usize) -> bool {
        let Some((_, path)) = self.directories.place(directory) else { return false };
        self.directories.taken_for(directory) == InputKind::PgWal
            && (self.is_merged || self.is_in_stream(path))
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
pub fn data_directory_of(path: &Path) -> Option<PathBuf> {
    // `.` is called as it is where it lies.
    let whole = match path.file_name() {
        None => working_directory(path).or_else(|| std::fs::canonicalize(path).ok())?,
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

/// What the shell calls the directory that it works in, if `path` is that one: by the links that led to it.
fn working_directory(path: &Path) -> Option<PathBuf> {
    let logical = PathBuf::from(std::env::var_os("PWD")?);
    let is_it = storage::identity(&logical).ok()? == storage::identity(path).ok()?;
    is_it.then_some(logical)
}

/// A directory in a data directory without WAL of its own that has segments, as `barman recover` leaves them
/// for a restore to a target.
pub(super) fn segments_below(data: &Path) -> Option<PathBuf> {
    let entries = is_data_directory(data).then(|| storage::entries(data).ok())??;
    let mut paths = entries.iter().map(|(name, _)| data.join(name));
    paths.find(|path| storage::is_dir(path) && has_segments(path))
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
        "{path}: not read: it is {whose}, where no restore_command looks; to have it read, give it as a \
         PATH, too"
    )
}
