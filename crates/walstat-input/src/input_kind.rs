//! What kind of input a directory is: a server's own `pg_wal`, in which the newest segment may be
//! unfinished; an archive, in which none may be; or a copy of which it cannot be told. Decided by names
//! and by what lies beside the segments; reads no file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use walstat_format::segment::GROUP_DIGITS;

named! {
    /// What a directory of WAL is taken for.
    pub enum InputKind {
        Archive "archive" "An archive: every file under a segment's full name has to be full";
        PgWal "pg_wal" "A server's own directory: the newest segment may be unfinished";
        Copy "copy" "Segments of which neither can be told: an unfinished one is noted";
    }
}

/// What pgBackRest calls its directory of WAL.
const PGBACKRESTS: &str = "archive";

/// Whether WAL lies in directories of this name, or in groups in them: in a data directory, a Barman server,
/// WAL-G storage.
fn is_wal_directory(name: &str) -> bool {
    SERVER_DIRECTORIES.contains(&name) || ARCHIVER_DIRECTORIES.contains(&name)
}

/// Where WAL lies in a data directory: since release 10, and before.
pub const SERVER_DIRECTORIES: [&str; 2] = ["pg_wal", "pg_xlog"];

/// Names that only archivers give a directory of segments: WAL-G, Barman.
const ARCHIVER_DIRECTORIES: [&str; 2] = ["wal_005", "wals"];

/// Beside the segments of a server's own directory.
pub const ARCHIVE_STATUS: &str = "archive_status";

/// All directories in which something was found, on disk and in tars.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Directories {
    all: Vec<Directory>,
    by_path: BTreeMap<PathBuf, usize>,
    /// What is known of a directory, whichever path it was found at.
    told: BTreeMap<PathBuf, InputKind>,
}

/// A directory with files that may be segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Directory {
    /// Which of the paths that were asked for it was first met in.
    root: usize,
    path: PathBuf,
}

impl Directories {
    /// The index of a directory, met in the `root`th path that was asked for. Files of one directory that are
    /// asked for one by one lie in that directory.
    pub fn index(&mut self, root: usize, path: &Path) -> usize {
        // Only paths that are valid text can be written into partial results.
        let text = path.to_string_lossy().into_owned();
        let path = Path::new(&text);
        if let Some(&index) = self.by_path.get(path) {
            return index;
        }
        if is_archivers(path) {
            self.told.entry(path.to_owned()).or_insert(InputKind::Archive);
        }
        self.all.push(Directory { root, path: path.to_owned() });
        self.by_path.insert(path.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }

    /// Adds the directories of other paths; the first of these paths is the `root`th of all. Returns which
    /// index each of them has here.
    pub fn extend(&mut self, root: usize, others: Directories) -> Vec<usize> {
        let index = |it: &Directory| self.index(root.saturating_add(it.root), &it.path);
        let here = others.all.iter().map(index).collect();
        for (path, told) in others.told {
            match told {
                InputKind::PgWal => _ = self.told.insert(path, told),
                _ => _ = self.told.entry(path).or_insert(told),
            }
        }
        here
    }

    /// Has each directory belong to another path that was asked for, if there is one for it.
    pub fn belong_to(&mut self, root: impl Fn(&Path) -> Option<usize>) {
        for directory in &mut self.all {
            directory.root = root(&directory.path).unwrap_or(directory.root);
        }
    }

    /// Takes note that a directory is a server's own: that wins over every other sign.
    pub fn note_server_directory(&mut self, index: usize) {
        if let Some(directory) = self.all.get(index) {
            self.told.insert(directory.path.clone(), InputKind::PgWal);
        }
    }

    /// Takes note that segments lie in a directory under names that only archivers give.
    pub(crate) fn note_archive(&mut self, index: usize) {
        if let Some(directory) = self.all.get(index) {
            self.told.entry(directory.path.clone()).or_insert(InputKind::Archive);
        }
    }

    /// All directories, each with its index.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.all.iter().enumerate().map(|(index, directory)| (index, &*directory.path))
    }

    /// The path asked for that a directory lies in, and its own.
    pub fn place(&self, index: usize) -> Option<(usize, &Path)> {
        self.all.get(index).map(|directory| (directory.root, directory.path.as_path()))
    }

    /// Whether archivers put the segments of a group into a directory of this name, packed in any way.
    pub(crate) fn is_group(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|directory| is_group(name_of(&directory.path)))
    }

    /// Whether an archiver made a directory: it brings its segments however they are packed.
    pub(crate) fn is_archivers(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|directory| is_archivers(&directory.path))
    }

    /// What a directory is taken for.
    pub fn taken_for(&self, index: usize) -> InputKind {
        let told = self.all.get(index).and_then(|directory| self.told.get(&directory.path));
        told.copied().unwrap_or(InputKind::Copy)
    }

    /// The archive, or the server's directory, that a directory is part of: the path that was asked
    /// for, and the nearest directory above that separates one archive from others.
    pub(crate) fn archive_of(&self, index: usize) -> Option<(usize, &Path)> {
        let Directory { root, path, .. } = self.all.get(index)?;
        let folder = self.folder_of(index).map(|(_, folder)| folder);
        let own = |path: &&Path| {
            let name = name_of(path);
            // Below a directory of pgBackRest there are those of stanzas and clusters, each apart.
            let is_own = name == PGBACKRESTS && folder == Some(*path);
            is_own || is_wal_directory(name) || is_version(name)
        };
        path.ancestors().find(own).map(|archive| (*root, archive))
    }

    /// The path that was asked for, and a directory, or that of its group of segments.
    pub(crate) fn folder_of(&self, index: usize) -> Option<(usize, &Path)> {
        let Directory { root, path, .. } = self.all.get(index)?;
        let above = if is_group(name_of(path)) { path.parent() } else { None };
        Some((*root, above.unwrap_or(path)))
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_archivers(path: &Path) -> bool {
    let name = name_of(path);
    is_group(name) || ARCHIVER_DIRECTORIES.contains(&name)
}

fn is_group(name: &str) -> bool {
    name.len() == GROUP_DIGITS && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))
}

/// `15-1`, `9.6-2`: a cluster's directory in a stanza of pgBackRest.
pub(super) fn is_version(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name.split_once('-').is_some_and(|(version, number)| {
        digits(number) && version.split('.').all(digits) && version.split('.').count() <= 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archivers_trees_are_told_by_their_directories() {
        let mut directories = Directories::default();
        for (path, want) in [
            ("archive/demo/15-1/0000000100000000", InputKind::Archive),
            ("main/wals/0000000100000000", InputKind::Archive),
            ("wal_005", InputKind::Archive),
            ("pg_wal", InputKind::Copy),
            ("segments", InputKind::Copy),
            ("000000010000000g", InputKind::Copy),
        ] {
            let index = directories.index(0, Path::new(path));
            assert_eq!(directories.taken_for(index), want, "{path}");
            directories.note_server_directory(index);
            directories.note_archive(index);
            assert_eq!(directories.taken_for(index), InputKind::PgWal, "{path}");
        }
    }

    #[test]
    fn two_versions_of_a_stanza_are_two_archives() {
        let mut directories = Directories::default();
        let mut archive = |path: &str| {
            let index = directories.index(0, Path::new(path));
            directories.archive_of(index).map(|(_, path)| path.display().to_string())
        };
        assert_eq!(
            archive("r/archive/a/15-1/0000000100000000").as_deref(),
            Some("r/archive/a/15-1")
        );
        assert_eq!(
            archive("r/archive/a/9.6-2/00000001000000FF").as_deref(),
            Some("r/archive/a/9.6-2")
        );
        assert_eq!(archive("b/main/wals/0000000100000000").as_deref(), Some("b/main/wals"));
        assert_eq!(archive("some/segments"), None);
    }
}
