//! Versions of catalog rows: whose they are, and the columns that names are made of.

use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::catalog_layout::{CatalogLayout, ClassLayout, NAME_BYTES, NamedLayout};
use walstat_format::cursor::at;
use walstat_format::data_page::heap_tuple::{HeapTuple, TupleBody, infomask};

/// Oid of the schema of TOAST tables and their indexes (`PG_TOAST_NAMESPACE`).
pub const TOAST_SCHEMA: u32 = 99;
/// Its name.
pub const TOAST_SCHEMA_NAME: &str = "pg_toast";
/// The name of the schema of the catalogs.
pub const CATALOG_SCHEMA_NAME: &str = "pg_catalog";

/// Large objects and who owns them (`pg_largeobject`, `pg_largeobject_metadata`).
const LARGE_OBJECTS: [u32; 2] = [2613, 2995];

/// Whether a relation of this oid holds large objects: a catalog by its place, but its rows are users'.
pub fn holds_large_objects(oid: u32) -> bool {
    LARGE_OBJECTS.contains(&oid)
}

/// The kinds of relations (`relkind`).
pub mod kind {
    /// Kinds that have files: tables, indexes, sequences, TOAST tables, materialized views.
    pub(crate) const WITH_FILES: &[u8] = &[TABLE, INDEX, SEQUENCE, TOAST, MATERIALIZED_VIEW];
    /// All kinds that there are.
    pub const ALL: &[u8] = b"riStmvcfpIg";
    /// A table.
    pub const TABLE: u8 = b'r';
    /// A table that has partitions.
    pub const PARTITIONED_TABLE: u8 = b'p';
    /// A materialized view.
    pub const MATERIALIZED_VIEW: u8 = b'm';
    /// A sequence.
    pub const SEQUENCE: u8 = b'S';
    /// A TOAST table.
    pub const TOAST: u8 = b't';
    /// An index.
    pub const INDEX: u8 = b'i';
    /// An index of a partitioned table.
    pub const PARTITIONED_INDEX: u8 = b'I';
    /// What has partitions: tables and indexes.
    pub(crate) const PARTITIONED: [char; 2] =
        [PARTITIONED_TABLE as char, PARTITIONED_INDEX as char];
    /// Of a relation of which a list says the name only.
    pub const UNKNOWN: u8 = 0;
}

/// A version of a row: who made it and ended it, and its columns as far as they are of interest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVersion {
    /// Who inserted it.
    pub xmin: u32,
    /// Who deleted, updated or locked it.
    pub xmax: u32,
    /// `t_infomask`.
    pub infomask: u16,
    /// The oid in its header, 0 if there is none.
    pub header_oid: u32,
    /// Bytes of all its columns.
    pub data_bytes: u16,
    /// The first of them, [`CatalogLayout::bytes`] or fewer.
    pub data: Box<[u8]>,
}

named! {
    /// Where a name comes from.
    pub enum Source {
        DataDirectory "datadir" "the data directory";
        Server "dsn" "the server";
        File "file" "the names file";
        Wal "wal" "the WAL";
        Builtin "builtin" "the release's own catalogs";
    }
}

impl RowVersion {
    /// A row as it lies in a page; `None` if it cannot be one of this table.
    pub fn of_page(
        tuple: &HeapTuple<'_>,
        table: CatalogTable,
        layout: &CatalogLayout,
    ) -> Option<RowVersion> {
        let mut row = RowVersion::inserted(tuple.xmin, &tuple.body, table, layout)?;
        (row.xmax, row.infomask) = (tuple.xmax, tuple.body.infomask);
        let is_sound = decode(table, &row, layout).is_some();
        is_sound.then_some(row)
    }

    /// A row that transaction `xmin` inserts, as a record has it; `None` if it has not the columns
    /// of this table.
    pub fn inserted(
        xmin: u32,
        body: &TupleBody<'_>,
        table: CatalogTable,
        layout: &CatalogLayout,
    ) -> Option<RowVersion> {
        let data = body.data();
        let kept = data.get(..layout.bytes(table)).unwrap_or(data);
        (body.column_count() == layout.columns(table)).then_some(RowVersion {
            xmin,
            xmax: 0,
            infomask: body.infomask | infomask::XMAX_INVALID,
            header_oid: body.header_oid().unwrap_or_default(),
            data_bytes: u16::try_from(data.len()).ok()?,
            data: kept.into(),
        })
    }
}

/// What a row's own header says of one of its two transactions (hint bits of `t_infomask`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HintedStatus {
    /// There is no such transaction, or it only locked.
    None,
    /// It is known to have committed.
    Committed,
    /// It is known to have aborted.
    Aborted,
    /// Only the commit log says what became of this transaction.
    LookUp(u32),
    /// The same of the member of this multixact that updates or deletes, if one does.
    LookUpMulti(u32),
}

impl RowVersion {
    /// Who inserted it.
    pub(crate) fn inserter(&self) -> HintedStatus {
        match self.infomask & infomask::XMIN_FROZEN {
            0 => HintedStatus::LookUp(self.xmin),
            infomask::XMIN_INVALID => HintedStatus::Aborted,
            _ => HintedStatus::Committed,
        }
    }

    /// Who deleted or updated it.
    pub(crate) fn deleter(&self) -> HintedStatus {
        use infomask::{XMAX_COMMITTED, XMAX_EXCL_LOCK, XMAX_INVALID, XMAX_IS_MULTI};
        use infomask::{XMAX_KEYSHR_LOCK, XMAX_LOCK_ONLY};
        let has = |bits| self.infomask & bits != 0;
        let old_lock = self.infomask & (XMAX_IS_MULTI | XMAX_EXCL_LOCK | XMAX_KEYSHR_LOCK);
        if has(XMAX_INVALID | XMAX_LOCK_ONLY) || old_lock == XMAX_EXCL_LOCK || self.xmax == 0 {
            HintedStatus::None
        } else if has(XMAX_IS_MULTI) {
            HintedStatus::LookUpMulti(self.xmax)
        } else if has(XMAX_COMMITTED) {
            HintedStatus::Committed
        } else {
            HintedStatus::LookUp(self.xmax)
        }
    }

    /// Whether it counts whatever its xid is.
    pub(crate) fn is_frozen(&self) -> bool {
        self.infomask & infomask::XMIN_FROZEN == infomask::XMIN_FROZEN
    }

    /// Whether it is the newer version of another row, rather than a new row.
    pub(crate) fn is_update(&self) -> bool {
        self.infomask & infomask::UPDATED != 0
    }
}

/// A name as the server stores it: bytes in the database's encoding, without the zeros after it.
pub(crate) type Name<'a> = &'a [u8];

/// A row of `pg_class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class<'a> {
    /// `oid`.
    pub oid: u32,
    /// `relname`.
    pub name: Name<'a>,
    /// `relnamespace`.
    pub namespace: u32,
    /// `relfilenode`; 0 for a mapped catalog, and for what has no file.
    pub relfilenode: u32,
    /// `reltablespace`; 0 stands for that of the database.
    pub tablespace: u32,
    /// `reltoastrelid`.
    pub toast: u32,
    /// `relisshared`.
    pub is_shared: bool,
    /// `relpersistence`: `p`, `u`nlogged, `t`emporary.
    pub persistence: u8,
    /// `relkind`.
    pub kind: u8,
    /// `relispartition`.
    pub is_partition: bool,
    /// `relrewrite`: whose new version this is while it is written; 0 for all others.
    pub rewrite: u32,
}

impl Class<'_> {
    /// The oid of the relation whose new version this is while it is written. Before 11 only its
    /// name tells; such a relation does not outlive its transaction.
    pub(crate) fn rewrites(&self, layout: &CatalogLayout) -> Option<u32> {
        if layout.class.rewrite.is_some() {
            return Some(self.rewrite).filter(|oid| *oid != 0);
        }
        let digits = self.name.strip_prefix(b"pg_temp_")?;
        let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| plain)
    }

    /// Its file, if it has one; `heap`: that of the row.
    pub(crate) fn file(&self, heap: RelFileLocator) -> Option<RelFileLocator> {
        let tablespace = if self.tablespace == 0 { heap.tablespace } else { self.tablespace };
        let database = if self.is_shared { 0 } else { heap.database };
        let file = RelFileLocator { tablespace, database, relfilenode: self.relfilenode };
        (self.relfilenode != 0 && self.has_files()).then_some(file)
    }

    /// Whether the relation has files.
    pub(crate) fn has_files(&self) -> bool {
        kind::WITH_FILES.contains(&self.kind)
    }
}

/// A row of one of the catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row<'a> {
    /// `pg_class`.
    Class(Class<'a>),
    /// `pg_namespace`, `pg_tablespace`: oid and name.
    Named(u32, Name<'a>),
    /// `pg_index`: the index and its table.
    Index(u32, u32),
    /// `pg_inherits`: child, parent, number of the parent.
    Inherits(u32, u32, u32),
    /// `pg_database`: oid, name, tablespace.
    Database(u32, Name<'a>, u32),
}

impl Row<'_> {
    /// What the row is about: the oid of the relation, schema, database or tablespace.
    pub(crate) fn oid(&self) -> u32 {
        match self {
            Row::Class(class) => class.oid,
            Row::Named(oid, _)
            | Row::Index(oid, _)
            | Row::Inherits(oid, ..)
            | Row::Database(oid, ..) => *oid,
        }
    }
}

/// The columns of a row; `None` where they cannot be those of this table.
pub(crate) fn decode<'a>(
    table: CatalogTable,
    row: &'a RowVersion,
    layout: &CatalogLayout,
) -> Option<Row<'a>> {
    let data = &row.data;
    let decoded = match table {
        CatalogTable::Class => Row::Class(class(row, layout)?),
        CatalogTable::Namespace | CatalogTable::Tablespace => {
            let (oid, name) = named(row, layout.named)?;
            Row::Named(oid, name)
        }
        CatalogTable::Index => Row::Index(at(data, 0)?, at(data, 4)?),
        CatalogTable::Inherits => Row::Inherits(at(data, 0)?, at(data, 4)?, at(data, 8)?),
        CatalogTable::Database => {
            let (oid, name) = named(row, layout.named)?;
            Row::Database(oid, name, at(data, layout.database_tablespace)?)
        }
    };
    (decoded.oid() != 0).then_some(decoded)
}

fn class<'a>(row: &'a RowVersion, layout: &CatalogLayout) -> Option<Class<'a>> {
    let (oid, name) = named(row, layout.named)?;
    let ClassLayout { is_partition, rewrite, .. } = layout.class;
    let places = &layout.class;
    let data = &row.data;
    let class = Class {
        oid,
        name,
        namespace: at(data, places.namespace)?,
        relfilenode: at(data, places.relfilenode)?,
        tablespace: at(data, places.tablespace)?,
        toast: at(data, places.toast)?,
        is_shared: at(data, places.is_shared)?,
        persistence: at(data, places.persistence)?,
        kind: at(data, places.kind)?,
        is_partition: is_partition.map_or(Some(false), |place| at(data, place))?,
        rewrite: rewrite.map_or(Some(0), |place| at(data, place))?,
    };
    let sound = b"put".contains(&class.persistence)
        && kind::ALL.contains(&class.kind)
        && class.namespace != 0;
    sound.then_some(class)
}

/// Oid and name; the name must have an end, and only zeros after it.
fn named(row: &RowVersion, layout: NamedLayout) -> Option<(u32, Name<'_>)> {
    let oid = match layout.oid {
        Some(place) => at(&row.data, place)?,
        None => row.header_oid,
    };
    let field = row.data.get(layout.name..layout.name + NAME_BYTES)?;
    let length = field.iter().position(|byte| *byte == 0)?;
    let (name, rest) = field.split_at(length);
    (length > 0 && rest.iter().all(|byte| *byte == 0)).then_some((oid, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::data_page::heap_tuple::sample::row as tuple;

    /// The columns of a row of `pg_class`: a table in schema 2200, unless changed afterwards.
    fn class_data(layout: &CatalogLayout, oid: u32, name: &str, file: u32) -> Vec<u8> {
        let mut data = vec![0u8; layout.class.bytes + 8];
        let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
        if let Some(place) = layout.named.oid {
            put(place, &oid.to_le_bytes());
        }
        put(layout.named.name, name.as_bytes());
        put(layout.class.namespace, &2200u32.to_le_bytes());
        put(layout.class.relfilenode, &file.to_le_bytes());
        put(layout.class.persistence, b"p");
        put(layout.class.kind, b"r");
        data
    }

    /// A row as it lies in a page, with the right number of columns for its table.
    fn row_bytes(
        table: CatalogTable,
        layout: &CatalogLayout,
        (xmin, xmax, bits): (u32, u32, u16),
        oid: u32,
        data: &[u8],
    ) -> Vec<u8> {
        let bits = if layout.named.oid.is_none() { bits | infomask::HAS_OID } else { bits };
        let mut bytes = tuple(xmin, xmax, bits, oid, data);
        bytes[18..20].copy_from_slice(&layout.columns(table).to_le_bytes());
        bytes
    }

    fn version(layout: &CatalogLayout, data: &[u8]) -> Option<RowVersion> {
        let bytes = row_bytes(CatalogTable::Class, layout, (700, 0, 0x0800), 16384, data);
        let tuple = HeapTuple::parse(&bytes).expect("a tuple");
        RowVersion::of_page(&tuple, CatalogTable::Class, layout)
    }

    #[test]
    fn a_relation_is_read_in_each_layout() {
        for layout in [
            &CatalogLayout::V9_5,
            &CatalogLayout::V10,
            &CatalogLayout::V11,
            &CatalogLayout::V12,
            &CatalogLayout::V18,
        ] {
            let mut data = class_data(layout, 16384, "orders", 16390);
            data[layout.class.toast] = 7;
            let row = version(layout, &data).expect("a row");
            assert_eq!((row.xmin, usize::from(row.data_bytes)), (700, data.len()));
            assert_eq!(row.data.len(), layout.class.bytes);
            let Some(Row::Class(class)) = decode(CatalogTable::Class, &row, layout) else {
                panic!("a row of pg_class");
            };
            assert_eq!((class.oid, class.name), (16384, &b"orders"[..]));
            assert_eq!((class.relfilenode, class.namespace, class.toast), (16390, 2200, 7));
            assert_eq!((class.kind, class.persistence, class.is_partition), (b'r', b'p', false));
        }
    }

    #[test]
    fn what_cannot_be_a_relation_is_refused() {
        let layout = &CatalogLayout::V12;
        let sound = class_data(layout, 16384, "orders", 16390);
        assert!(version(layout, &sound).is_some());
        let changes: [(usize, u8); 6] =
            [(4, 0), (67, b'x'), (12, b'x'), (114, b'x'), (115, b'x'), (0, 0)];
        for (at, byte) in changes {
            let mut data = sound.clone();
            data[at] = byte;
            // An oid of 0 needs both of its bytes.
            data[1] = if at == 0 { 0 } else { data[1] };
            assert!(version(layout, &data).is_none(), "{at}");
        }
        assert!(version(layout, &sound[..100]).is_none());
        // A row of another table, by its number of columns.
        let bytes = row_bytes(CatalogTable::Namespace, layout, (700, 0, 0), 0, &sound);
        let tuple = HeapTuple::parse(&bytes).expect("a tuple");
        assert_eq!(RowVersion::of_page(&tuple, CatalogTable::Class, layout), None);
    }

    #[test]
    fn other_tables_have_their_own_columns() {
        let layout = &CatalogLayout::V15;
        let row = |data: &[u8]| RowVersion {
            xmin: 2,
            xmax: 0,
            infomask: 0,
            header_oid: 0,
            data_bytes: data.len() as u16,
            data: data.into(),
        };
        let pair = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
        assert_eq!(decode(CatalogTable::Index, &row(&pair), layout), Some(Row::Index(1, 2)));
        let inherits = row(&pair);
        let decoded = decode(CatalogTable::Inherits, &inherits, layout);
        assert_eq!(decoded, Some(Row::Inherits(1, 2, 3)));
        assert_eq!(decode(CatalogTable::Inherits, &row(&pair[..11]), layout), None);
        let mut database = vec![0u8; 96];
        (database[0], database[4], database[92]) = (5, b'd', 9);
        let database = row(&database);
        let decoded = decode(CatalogTable::Database, &database, layout);
        assert_eq!(decoded, Some(Row::Database(5, b"d", 9)));
        let decoded = decode(CatalogTable::Namespace, &database, layout);
        assert_eq!(decoded, Some(Row::Named(5, b"d")));
    }
}
