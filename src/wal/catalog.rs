//! Names of relations from the rows of the system catalogs, wherever they were found: in the files
//! of a data directory, in page images, in records.
//!
//! A [`store::Store`] keeps the versions of rows by their place, as the files have them, so that
//! records can be applied to it ([`event`], [`lessons`]); [`resolve`] asks which versions count and
//! makes [`names::Names`] of them. Neither opens files nor knows a server.

mod builtin;
pub mod event;
pub mod fate;
pub mod layout;
pub mod lessons;
mod links;
pub mod names;
mod resolve;
pub mod row;
pub mod store;
mod stranger;

use super::block::RelFileLocator;
use serde::{Deserialize, Serialize};

/// Oid of the tablespace of shared catalogs, `pg_global`.
pub const GLOBAL_TABLESPACE: u32 = 1664;
/// Oid of the tablespace of everything else unless asked for, `pg_default`.
pub const DEFAULT_TABLESPACE: u32 = 1663;

/// The catalogs that names are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CatalogTable {
    /// `pg_class`: relations, their names and files.
    Class,
    /// `pg_namespace`: schemas.
    Namespace,
    /// `pg_index`: which table an index belongs to.
    Index,
    /// `pg_inherits`: which table a partition belongs to.
    Inherits,
    /// `pg_database`.
    Database,
    /// `pg_tablespace`.
    Tablespace,
}

impl CatalogTable {
    /// All of them.
    pub const ALL: [CatalogTable; 6] = {
        use CatalogTable::*;
        [Class, Namespace, Index, Inherits, Database, Tablespace]
    };

    /// Its oid, the same in all clusters and releases.
    pub fn oid(self) -> u32 {
        match self {
            CatalogTable::Class => 1259,
            CatalogTable::Namespace => 2615,
            CatalogTable::Index => 2610,
            CatalogTable::Inherits => 2611,
            CatalogTable::Database => 1262,
            CatalogTable::Tablespace => 1213,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CatalogTable::Class => "pg_class",
            CatalogTable::Namespace => "pg_namespace",
            CatalogTable::Index => "pg_index",
            CatalogTable::Inherits => "pg_inherits",
            CatalogTable::Database => "pg_database",
            CatalogTable::Tablespace => "pg_tablespace",
        }
    }

    /// Whether all databases share it.
    pub fn is_shared(self) -> bool {
        matches!(self, CatalogTable::Database | CatalogTable::Tablespace)
    }

    /// Whether its file stands in `pg_filenode.map` rather than in `pg_class`.
    pub fn is_mapped(self) -> bool {
        self.is_shared() || self == CatalogTable::Class
    }

    /// The catalog of this oid.
    pub fn of_oid(oid: u32) -> Option<CatalogTable> {
        Self::ALL.into_iter().find(|table| table.oid() == oid)
    }

    /// The catalog whose file this is in a cluster where no catalog was ever rewritten: files have
    /// the numbers of the oids then.
    pub fn of_original_file(file: RelFileLocator) -> Option<CatalogTable> {
        let is_global = file.tablespace == GLOBAL_TABLESPACE && file.database == 0;
        Self::of_oid(file.relfilenode).filter(|table| table.is_shared() == is_global)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_are_known_by_oid_and_original_file() {
        let file = |tablespace, database, relfilenode| {
            CatalogTable::of_original_file(RelFileLocator { tablespace, database, relfilenode })
        };
        assert_eq!(file(1663, 5, 1259), Some(CatalogTable::Class));
        assert_eq!(file(16400, 5, 2615), Some(CatalogTable::Namespace));
        assert_eq!(file(1664, 0, 1262), Some(CatalogTable::Database));
        let none = [file(1664, 0, 1259), file(1663, 5, 1262), file(1663, 5, 1249)];
        assert_eq!(none, [None; 3]);
        assert!(CatalogTable::ALL.iter().all(|t| CatalogTable::of_oid(t.oid()) == Some(*t)));
    }
}
