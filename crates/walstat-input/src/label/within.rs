//! Where the label of a backup lies in the directory that its tool made.

use super::BACKUP_LABEL;
use crate::storage;
use crate::suffixes::usual_names;
use std::path::{Path, PathBuf};

/// Where the data directory lies in it: itself, pgBackRest's, Barman's.
const DATA_DIRECTORIES: [&str; 3] = ["", "pg_data", "data"];

/// What `pg_basebackup -Ft` calls the tar with the label.
const BASE_TAR: &str = "base.tar";

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
    let tars = usual_names(BASE_TAR).map(|name| path.join(name));
    let found = labels.chain(tars).find(|file| storage::is_file(file));
    match found {
        Some(file) if file.ends_with(BACKUP_LABEL) => file.parent().unwrap_or(path).to_owned(),
        Some(file) => file,
        None => path.to_owned(),
    }
}
