//! Where the catalogs of each database lie: a database's own directory is the one with its map,
//! which is in its default tablespace; in other tablespaces it has files only.

use super::{global, warning};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use walstat_format::catalog_layout::DEFAULT_TABLESPACE;
use walstat_format::version::Version;
use walstat_input::control::Control;

/// A directory with catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CatalogDirectory {
    /// The database, 0 for the shared catalogs.
    pub database: u32,
    /// Its tablespace.
    pub tablespace: u32,
    /// The directory.
    pub path: PathBuf,
}

impl CatalogDirectory {
    pub(super) fn is_shared(&self) -> bool {
        self.database == 0
    }
}

/// All directories with catalogs, the shared ones first.
pub(super) fn find(
    directory: &Path,
    version: &Version,
    control: &Control,
    warnings: &mut Vec<String>,
) -> Vec<CatalogDirectory> {
    let mut directories = vec![global(directory)];
    directories.extend(databases_in(&directory.join("base"), DEFAULT_TABLESPACE, warnings));
    // The server puts release and version of the catalogs between tablespace and databases.
    let between = format!("PG_{}_{}", version.name, control.catalog_version);
    for (tablespace, path) in numbered(&directory.join("pg_tblspc"), warnings) {
        directories.extend(databases_in(&path.join(&between), tablespace, warnings));
    }
    directories
}

fn databases_in(path: &Path, tablespace: u32, warnings: &mut Vec<String>) -> Vec<CatalogDirectory> {
    let mut directories = Vec::new();
    for (database, path) in numbered(path, warnings) {
        let map = path.join("pg_filenode.map");
        if let Err(error) = fs::metadata(&map)
            && error.kind() != ErrorKind::NotFound
        {
            warnings.push(warning(&map, error));
        } else if map.exists() {
            directories.push(CatalogDirectory { database, tablespace, path });
        } else if path.join("PG_VERSION").exists() {
            // `PG_VERSION`, which every database has, is there, and `pg_filenode.map` is not.
            let text = "missing, though the directory is that of a database";
            warnings.push(warning(&path.join("pg_filenode.map"), text));
        }
    }
    directories
}

/// The entries of a directory whose names are oids, ascending.
fn numbered(directory: &Path, warnings: &mut Vec<String>) -> Vec<(u32, PathBuf)> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            warnings.push(warning(directory, text_of(&error)));
            return Vec::new();
        }
    };
    let oid = |name: &OsStr| name.to_str()?.parse::<u32>().ok().filter(|oid| *oid != 0);
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((oid(&entry.file_name())?, entry.path())))
        .collect();
    found.sort_unstable();
    found
}

fn text_of(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "missing: the names of its databases are not known".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_where_its_map_is() {
        let root = tempfile::tempdir().expect("a directory");
        for path in ["1", "5", "16384", "pgsql_tmp", "0"] {
            fs::create_dir(root.path().join(path)).expect("a directory");
        }
        for file in ["1/PG_VERSION", "5/PG_VERSION", "5/pg_filenode.map"] {
            fs::write(root.path().join(file), "15\n").expect("a file");
        }
        let mut warnings = Vec::new();
        let directories = databases_in(root.path(), 1663, &mut warnings);
        let want = CatalogDirectory { database: 5, tablespace: 1663, path: root.path().join("5") };
        assert_eq!(directories, [want]);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("/1/pg_filenode.map: missing"), "{warnings:?}");
        assert!(databases_in(&root.path().join("no"), 1663, &mut warnings).is_empty());
        assert!(warnings[1].contains("/no: missing"), "{warnings:?}");
    }
}
