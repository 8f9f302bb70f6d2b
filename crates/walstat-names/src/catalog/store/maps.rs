//! Maps: which files the mapped catalogs of a database have, and had (`pg_filenode.map`).

use super::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::{CatalogTable, DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;

/// The files of a database's catalogs, or of the shared ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileMap {
    pub tablespace: u32,
    /// Oids and files.
    pub files: Box<[(u32, u32)]>,
    /// Oids and files of before.
    pub earlier: Vec<(u32, u32)>,
}

impl Store {
    /// Puts in the map of a database's catalogs, 0 for the shared ones, to their files.
    pub(crate) fn put_map(&mut self, database: u32, tablespace: u32, files: Box<[(u32, u32)]>) {
        let new = FileMap { tablespace, files, earlier: Vec::new() };
        let Some(old) = self.maps.insert(database, new) else { return };
        if let Some(map) = self.maps.get_mut(&database) {
            map.earlier = old.earlier;
            map.earlier.extend(old.files.iter().filter(|pair| !map.files.contains(pair)));
            map.earlier.sort_unstable();
            map.earlier.dedup();
        }
    }

    /// Puts in the file of a mapped catalog of which the map is older, or not known.
    pub(crate) fn put_mapped(&mut self, file: RelFileLocator, table: CatalogTable) {
        let map = self.maps.get(&file.database).map(|map| &*map.files).unwrap_or_default();
        let others = map.iter().filter(|(mapped, _)| *mapped != table.oid()).copied();
        let files = others.chain([(table.oid(), file.relfilenode)]).collect();
        self.put_map(file.database, file.tablespace, files);
    }

    /// Whether the map of a database that was put in is that of this place or of a later one.
    pub(crate) fn has_map_of(&self, database: u32, place: Lsn) -> bool {
        self.maps.contains_key(&database) && place <= self.base
    }

    /// Whether a file is one that a mapped catalog, or an index of one, has or had by the maps; also where
    /// the database lay before it was moved to another tablespace.
    pub(crate) fn is_mapped(&self, file: RelFileLocator) -> bool {
        let RelFileLocator { tablespace, database, .. } = file;
        let map = self.maps.get(&database);
        let map = map.filter(|map| {
            map.tablespace == tablespace || self.had_catalogs_in(database, tablespace)
        });
        let files = map.into_iter().flat_map(|map| map.files.iter().chain(&map.earlier));
        files.into_iter().any(|(_, mapped)| *mapped == file.relfilenode)
    }

    /// The file of a mapped catalog of a database, 0 for a shared one.
    pub(crate) fn mapped(&self, database: u32, oid: u32) -> u32 {
        let map = self.maps.get(&database);
        let mapped = map.and_then(|map| map.files.iter().find(|(mapped, _)| *mapped == oid));
        mapped.map_or(oid, |(_, file)| *file)
    }

    /// The tablespace in which the catalogs of a database lie.
    pub(crate) fn tablespace_of(&self, database: u32) -> u32 {
        let original = if database == 0 { GLOBAL_TABLESPACE } else { DEFAULT_TABLESPACE };
        self.maps.get(&database).map_or(original, |map| map.tablespace)
    }

    /// Whether catalogs of a database lie in a tablespace, or lay there.
    fn had_catalogs_in(&self, database: u32, tablespace: u32) -> bool {
        let [first, last] =
            [0, u32::MAX].map(|relfilenode| RelFileLocator { tablespace, database, relfilenode });
        self.heaps.range(first..=last).next().is_some()
    }

    /// The tablespaces in which the catalogs of a database lay before it was moved.
    pub(crate) fn left_tablespaces(&self, database: u32) -> BTreeSet<u32> {
        let now = self.tablespace_of(database);
        let heaps = self.heaps.keys().filter(|file| file.database == database);
        heaps.map(|file| file.tablespace).filter(|tablespace| *tablespace != now).collect_set()
    }

    /// A map that the data directory has left behind.
    pub(super) fn put_earlier_map(&mut self, database: u32, tablespace: u32, files: &[(u32, u32)]) {
        match self.maps.get_mut(&database) {
            Some(map) => {
                let other = files.iter().filter(|pair| !map.files.contains(pair));
                map.earlier.extend(other);
                map.earlier.sort_unstable();
                map.earlier.dedup();
            }
            None => self.put_map(database, tablespace, files.into()),
        }
    }
}
