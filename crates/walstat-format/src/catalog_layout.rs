//! Where the columns of catalog rows lie, by release (`src/include/catalog/pg_*.h`).
//!
//! All columns named here are of fixed length, never null, and stand before any column that could
//! vary: so each has one place in the row.

use crate::cursor::at;
use crate::locator::RelFileLocator;
use serde::{Deserialize, Serialize};

/// Oid of the tablespace of shared catalogs, `pg_global`.
pub const GLOBAL_TABLESPACE: u32 = 1664;
/// Oid of the tablespace of everything else unless asked for, `pg_default`.
pub const DEFAULT_TABLESPACE: u32 = 1663;

/// Bytes of a name (`NAMEDATALEN`), padded with zeros.
pub const NAME_BYTES: usize = 64;

/// The connection limit of a database that is being dropped: -2.
const INVALID_DATABASE: u32 = u32::MAX - 1;

/// Where the columns of the catalogs lie in one release.
#[derive(Debug)]
pub struct CatalogLayout {
    /// `pg_class`.
    pub class: ClassLayout,
    /// `pg_namespace`, `pg_tablespace`: where oid and name lie.
    pub named: NamedLayout,
    /// `dattablespace` of `pg_database`; oid and name lie as in `named`.
    pub database_tablespace: usize,
    /// `datconnlimit` of `pg_database`.
    pub database_connection_limit: usize,
    /// How many columns the tables have, in the order of [`CatalogTable::ALL`].
    pub columns: [u16; 6],
}

/// Where oid and name of a row lie.
#[derive(Debug, Clone, Copy)]
pub struct NamedLayout {
    /// `oid`; `None` where it is in the row's header (before 12).
    pub oid: Option<usize>,
    /// The name.
    pub name: usize,
}

/// Where the columns of `pg_class` lie.
#[derive(Debug, Clone, Copy)]
pub struct ClassLayout {
    /// `relnamespace`.
    pub namespace: usize,
    /// `relfilenode`.
    pub relfilenode: usize,
    /// `reltablespace`.
    pub tablespace: usize,
    /// `reltoastrelid`.
    pub toast: usize,
    /// `relisshared`.
    pub is_shared: usize,
    /// `relpersistence`.
    pub persistence: usize,
    /// `relkind`.
    pub kind: usize,
    /// `relispartition` (10 and later).
    pub is_partition: Option<usize>,
    /// `relrewrite` (11 and later).
    pub rewrite: Option<usize>,
    /// The end of the last of these.
    pub bytes: usize,
}

const OID_IN_HEADER: NamedLayout = NamedLayout { oid: None, name: 0 };
const OID_FIRST: NamedLayout = NamedLayout { oid: Some(0), name: 4 };

const CLASS_9_5: ClassLayout = ClassLayout {
    namespace: 64,
    relfilenode: 84,
    tablespace: 88,
    toast: 104,
    is_shared: 109,
    persistence: 110,
    kind: 111,
    is_partition: None,
    rewrite: None,
    bytes: 112,
};

const CLASS_12: ClassLayout = ClassLayout {
    namespace: 68,
    relfilenode: 88,
    tablespace: 92,
    toast: 108,
    is_shared: 113,
    persistence: 114,
    kind: 115,
    is_partition: Some(127),
    rewrite: Some(128),
    bytes: 132,
};

impl CatalogLayout {
    /// 9.5 and 9.6.
    pub const V9_5: CatalogLayout = CatalogLayout {
        class: CLASS_9_5,
        named: OID_IN_HEADER,
        database_tablespace: 220,
        database_connection_limit: 204,
        columns: [31, 3, 19, 3, 13, 4],
    };
    /// 10: partitions.
    pub const V10: CatalogLayout = CatalogLayout {
        class: ClassLayout { is_partition: Some(125), bytes: 126, ..CLASS_9_5 },
        columns: [33, 3, 19, 3, 13, 4],
        ..Self::V9_5
    };
    /// 11: the oid that a rewritten relation has, while it is written.
    pub const V11: CatalogLayout = CatalogLayout {
        class: ClassLayout { is_partition: Some(124), rewrite: Some(128), bytes: 132, ..CLASS_9_5 },
        columns: [33, 3, 20, 3, 13, 4],
        ..Self::V9_5
    };
    /// 12 to 14: oids are columns.
    pub const V12: CatalogLayout = CatalogLayout {
        class: CLASS_12,
        named: OID_FIRST,
        database_tablespace: 224,
        database_connection_limit: 208,
        columns: [33, 4, 20, 3, 14, 5],
    };
    /// 14: one column more at the end of `pg_inherits`.
    pub const V14: CatalogLayout = CatalogLayout { columns: [33, 4, 20, 4, 14, 5], ..Self::V12 };
    /// 15: the names of collations of a database went to its end.
    pub const V15: CatalogLayout = CatalogLayout {
        database_tablespace: 92,
        database_connection_limit: 80,
        columns: [33, 4, 21, 4, 16, 5],
        ..Self::V12
    };
    /// 16: columns at the end of `pg_database` came and moved; 17 too.
    pub const V16: CatalogLayout = CatalogLayout { columns: [33, 4, 21, 4, 17, 5], ..Self::V15 };
    /// 17.
    pub const V17: CatalogLayout = CatalogLayout { columns: [33, 4, 21, 4, 18, 5], ..Self::V15 };
    /// 18: one column more in the middle of `pg_class`.
    pub const V18: CatalogLayout = CatalogLayout {
        class: ClassLayout {
            toast: 112,
            is_shared: 117,
            persistence: 118,
            kind: 119,
            is_partition: Some(131),
            rewrite: Some(132),
            bytes: 136,
            ..CLASS_12
        },
        columns: [34, 4, 21, 4, 18, 5],
        ..Self::V15
    };

    /// How many columns the rows of a table have.
    pub fn columns(&self, table: CatalogTable) -> u16 {
        let place = CatalogTable::ALL.iter().position(|other| *other == table);
        place.and_then(|place| self.columns.get(place)).copied().unwrap_or_default()
    }

    /// Whether the columns of a row of a table may take so many bytes. Those of `pg_inherits` are all
    /// of fixed length: three of four bytes each, and from 14 on a boolean.
    pub fn may_be_long(&self, table: CatalogTable, bytes: usize) -> bool {
        match table {
            CatalogTable::Inherits => bytes == 12 + usize::from(self.columns(table) > 3),
            _ => bytes >= self.bytes(table),
        }
    }

    /// Whether the columns of a row of `pg_database` say that it is being dropped, or half of it is gone
    /// (`DATCONNLIMIT_INVALID_DB`).
    pub fn is_invalid_database(&self, columns: &[u8]) -> bool {
        at(columns, self.database_connection_limit) == Some(INVALID_DATABASE)
    }

    /// How many bytes of a row are of interest.
    pub fn bytes(&self, table: CatalogTable) -> usize {
        match table {
            CatalogTable::Class => self.class.bytes,
            CatalogTable::Namespace | CatalogTable::Tablespace => self.named.name + NAME_BYTES,
            // Two oids, and in pg_inherits a number.
            CatalogTable::Index => 8,
            CatalogTable::Inherits => 12,
            CatalogTable::Database => self.database_tablespace + 4,
        }
    }
}

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
