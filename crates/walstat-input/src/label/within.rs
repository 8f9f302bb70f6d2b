//! Where the label of a backup lies in the directory that its tool made.

use super::BACKUP_LABEL;
use crate::storage;
use crate::suffixes::usual_names;
use std::path::{Path, PathBuf};

/// Where the data directory lies in it: itself, pgBackRest's, Barman's.
const DATA_DIRECTORIES: [&str; 3] = ["", "pg_data", "data"];

/// What `pg_basebackup -Ft` calls the tar with the label; where Barman has that; what WAL-G calls it in the
/// backup's directory, and in the one of its tars.
const TARS: [&str; 4] =
    ["base.tar", "data/base.tar", "tar_partitions/backup_label.tar", "backup_label.tar"];

/// The directory in which the `backup_label` lies, if that is packed the file, or the tar in which it is, for
/// the directory that a tool has made for a backup; a path that is none of these as it is.
pub fn within(path: &Path) -> PathBuf {
    if !storage::is_dir(path) {
        return path.to_owned();
    }
    let labels = DATA_DIRECTORIES.iter().flat_map(|directory| {
        let directory = if directory.is_empty() { path.to_owned() } else { path.join(directory) };
        usual_names(BACKUP_LABEL).map(move |name| directory.join(name))
    });
    let tars = TARS.iter().flat_map(|name| usual_names(name)).map(|name| path.join(name));
    let found = labels.chain(tars).find(|file| storage::is_file(file));
    match found {
        Some(file) if file.ends_with(BACKUP_LABEL) => file.parent().unwrap_or(path).to_owned(),
        Some(file) => file,
        None => path.to_owned(),
    }
}
