//! The catalogs as they were at each moment: their changes are applied in the order of the WAL, and of
//! each transaction it is told, once it has ended, which rows it made and which it ended.
//!
//! Names of a moment are those of rows that counted then: what a transaction after it has changed does
//! not count yet, also where a data directory that is newer has it already.

mod by_xmin;
pub mod moment;
mod versions;

use super::event::{Change, Event, RowEnd};
use super::resolve::FIXED_SCHEMAS;
use super::row::{Class, Row, RowVersion, decode};
use super::store::{PlacedRow, Store};
use super::xid_status::XidStatus;
use moment::Moment;
use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;
use versions::{Search, Versions, Wanted};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::lsn::Lsn;
use walstat_format::payload::heap::infobits;

/// The catalogs, moment by moment.
pub struct History {
    store: Store,
    changes: Peekable<IntoIter<Event>>,
    /// What transactions did to rows that have not ended.
    touched: HashMap<u32, BTreeMap<Place, Marks>>,
    /// Rows that the pages of a data directory had no more, by who deleted them.
    deleted: HashMap<u32, Vec<DeletedRow>>,
    /// Databases that were marked as being dropped, and where that was.
    invalid: HashMap<Place, Lsn>,
    /// The table of each index, by database.
    index_tables: HashMap<(u32, u32), u32>,
    /// Where the rows of a catalog of a database lie.
    versions: HashMap<(CatalogTable, u32), Versions>,
}

/// The catalogs at a moment, of which the changes up to there have been applied.
pub struct CatalogsAt<'h> {
    history: &'h mut History,
    moment: Moment,
}

/// A place in the files of the catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    file: RelFileLocator,
    table: CatalogTable,
    block: u32,
    offset: u16,
}

/// Where a transaction made the row at a place, and where it ended it: ends of records.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    inserted: Option<Lsn>,
    ended: Option<Lsn>,
}

struct DeletedRow {
    table: CatalogTable,
    database: u32,
    kept: PlacedRow,
}

/// A row of `pg_class`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassVersion {
    /// Oid of its database.
    pub database: u32,
    /// `oid`.
    pub oid: u32,
    /// `relname`. What is no UTF-8 in it is replaced.
    pub name: Box<str>,
    /// `relnamespace`.
    pub namespace: u32,
    /// Its file; `None` for what has none.
    pub file: Option<RelFileLocator>,
    /// `relkind`.
    pub kind: u8,
    /// The relation whose new version this is while it is written.
    pub rewrites: Option<u32>,
}

/// A row that a transaction made or ended, or both; with the ends of the records that did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched<R> {
    /// The row.
    pub row: R,
    /// Where it was made.
    pub inserted: Option<Lsn>,
    /// Where it was deleted, or updated.
    pub ended: Option<Lsn>,
    /// Whether it is a newer version of a row: there was another one before.
    pub is_update: bool,
}

/// A row of `pg_database`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseVersion {
    /// `oid`.
    pub oid: u32,
    /// `datname`. What is no UTF-8 in it is replaced.
    pub name: Box<str>,
    /// The end of the record that marked it as being dropped, whatever becomes of the transaction.
    pub invalid_since: Option<Lsn>,
}

/// A row of `pg_namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Oid of its database.
    pub database: u32,
    /// `oid`.
    pub oid: u32,
    /// `nspname`. What is no UTF-8 in it is replaced.
    pub name: Box<str>,
}

/// What a transaction did to the catalogs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Rows of `pg_class`.
    pub classes: Vec<Touched<ClassVersion>>,
    /// Rows of `pg_database`.
    pub databases: Vec<Touched<DatabaseVersion>>,
    /// Rows of `pg_namespace`.
    pub schemas: Vec<Touched<SchemaVersion>>,
    /// Rows of relations and databases that it touched, and of which nothing is known but their places.
    pub unknown: usize,
}

impl History {
    /// Begins before all `changes`.
    pub(super) fn new(store: Store, changes: Vec<Event>) -> History {
        let mut history = History {
            changes: changes.into_iter().peekable(),
            touched: HashMap::new(),
            deleted: HashMap::new(),
            invalid: HashMap::new(),
            index_tables: HashMap::new(),
            versions: HashMap::new(),
            store,
        };
        for (subject, (_, kept)) in &history.store.gone {
            if let Some(xid) = history.store.deleter(&kept.row) {
                let (table, database) = (subject.table, subject.database);
                let row = DeletedRow { table, database, kept: kept.clone() };
                history.deleted.entry(xid).or_default().push(row);
            }
        }
        let layout = history.store.layout();
        for (file, heap) in history.store.heaps.iter().filter(|(_, h)| is_index(h.table)) {
            let rows = heap.versions().map(|kept| &kept.row);
            note_index_tables(&mut history.index_tables, *file, rows, layout);
        }
        history
    }

    /// Goes on to a place in the WAL.
    pub fn advance(&mut self, to: Lsn) {
        while let Some(event) = self.changes.next_if(|event| event.end().is_none_or(|e| e <= to)) {
            match &event {
                Event::Rows { file, table, block, xid, end, change } => {
                    let page = Place { file: *file, table: *table, block: *block, offset: 0 };
                    self.note_indexes(page, change);
                    self.touch(*xid, *end, page, change);
                    self.apply_to_page(page, event);
                    continue;
                }
                // The database is a copy: its catalog rows are those of the original.
                Event::Copied { from, to } => {
                    self.versions.retain(|(_, database), _| *database != to.0);
                    self.copy_index_tables(from.0, to.0);
                }
                Event::Map { .. } => {}
            }
            self.store.apply(event);
        }
    }

    /// Applies what happens to a page, and takes note of where rows are and were.
    fn apply_to_page(&mut self, page: Place, event: Event) {
        let Some(versions) = self.versions.get_mut(&(page.table, page.file.database)) else {
            self.store.apply(event);
            return;
        };
        let places = changed_places(&self.store, page, &event);
        places.iter().for_each(|place| versions.forget(&self.store, *place));
        let gone = self.store.apply(event);
        places.iter().for_each(|place| versions.note(&self.store, *place));
        gone.iter().for_each(|gone| versions.note_gone(&self.store, gone));
    }

    /// An index of a copy belongs to the copy of its table.
    fn copy_index_tables(&mut self, from: u32, to: u32) {
        let of_original = self.index_tables.iter().filter(|((database, _), _)| *database == from);
        let copies: Vec<_> =
            of_original.map(|((_, index), table)| ((to, *index), *table)).collect();
        for (index, table) in copies {
            self.index_tables.entry(index).or_insert(table);
        }
    }

    /// Takes note of the tables of indexes.
    fn note_indexes(&mut self, page: Place, change: &Change) {
        if let (CatalogTable::Index, Change::Page(rows) | Change::Insert(rows)) =
            (page.table, change)
        {
            let (rows, layout) = (rows.iter().map(|(_, row)| row), self.store.layout());
            note_index_tables(&mut self.index_tables, page.file, rows, layout);
        }
    }

    /// Takes note of what a transaction does to rows of relations, schemas and databases.
    fn touch(&mut self, xid: u32, end: Lsn, page: Place, change: &Change) {
        match page.table {
            CatalogTable::Class | CatalogTable::Namespace => {}
            CatalogTable::Database => self.note_invalid(end, page, change),
            _ => return,
        }
        if xid == 0 {
            return;
        }
        let (inserted, ended): (Vec<u16>, Vec<u16>) = match change {
            Change::Insert(rows) => (rows.iter().map(|(offset, _)| *offset).collect(), Vec::new()),
            Change::Update { old, offset, .. } => (vec![*offset], vec![old.offset]),
            Change::End(end) if !self.is_ended_by(xid, end) => return,
            Change::End(end) => (Vec::new(), vec![end.offset]),
            Change::Page(rows) => {
                let of = |is: &dyn Fn(&RowVersion) -> bool| {
                    rows.iter().filter(|(_, row)| is(row)).map(|(offset, _)| *offset).collect()
                };
                (of(&|row| row.xmin == xid), of(&|row| self.store.deleter(row) == Some(xid)))
            }
            Change::Lost | Change::Overwrite(..) | Change::Gone(_) | Change::Freeze(_) => return,
        };
        let touched = self.touched.entry(xid).or_default();
        for offset in inserted {
            touched.entry(Place { offset, ..page }).or_default().inserted.get_or_insert(end);
        }
        for offset in ended {
            touched.entry(Place { offset, ..page }).or_default().ended.get_or_insert(end);
        }
    }

    /// Whether it is this transaction that ends a row, and does not only lock it.
    fn is_ended_by(&self, xid: u32, end: &RowEnd) -> bool {
        if end.infobits & infobits::XMAX_LOCK_ONLY != 0 {
            return false;
        }
        // A row that another transaction has updated is locked as a member of the same multixact.
        let is_multi = end.infobits & infobits::XMAX_IS_MULTI != 0;
        let updater = self.store.updaters.get(&end.xmax).filter(|_| is_multi);
        updater.is_none_or(|updater| *updater == xid)
    }

    /// A database that is being dropped is marked first, without a transaction (11.21, 12.16, 13.12,
    /// 14.9, 15.4 and later).
    fn note_invalid(&mut self, end: Lsn, page: Place, change: &Change) {
        let layout = self.store.layout();
        let marked: Vec<u16> = match change {
            Change::Overwrite(offset, data) if layout.is_invalid_database(data) => vec![*offset],
            Change::Page(rows) | Change::Insert(rows) => {
                let is_marked =
                    |(_, row): &&(u16, RowVersion)| layout.is_invalid_database(&row.data);
                rows.iter().filter(is_marked).map(|(offset, _)| *offset).collect()
            }
            _ => return,
        };
        for offset in marked {
            self.invalid.entry(Place { offset, ..page }).or_insert(end);
        }
    }

    /// What transactions that end together, or go on, have done. `commits`: how they ended; `None`: they did
    /// not.
    pub fn ended(&mut self, xids: &[u32], commits: Option<bool>) -> Deeds {
        let mut marks: BTreeMap<Place, Marks> = BTreeMap::new();
        for (place, more) in xids.iter().filter_map(|xid| self.touched.remove(xid)).flatten() {
            let marks = marks.entry(place).or_default();
            marks.inserted = marks.inserted.or(more.inserted);
            marks.ended = marks.ended.or(more.ended);
        }
        let mut deeds = Deeds::default();
        for (place, Marks { inserted, ended }) in marks {
            let is_counted = place.table != CatalogTable::Namespace;
            let Some(row) = self.row_at(&place, xids, inserted.is_some()) else {
                deeds.unknown += usize::from(is_counted);
                continue;
            };
            let is_update = row.is_update();
            match decode(place.table, row, self.store.layout()) {
                Some(Row::Class(class)) => {
                    let row = self.class_version(&class, place.file);
                    deeds.classes.push(Touched { row, inserted, ended, is_update });
                }
                Some(Row::Database(oid, name, _)) => {
                    let name = String::from_utf8_lossy(name).into();
                    let invalid_since = self.invalid.get(&place).copied();
                    let row = DatabaseVersion { oid, name, invalid_since };
                    deeds.databases.push(Touched { row, inserted, ended, is_update });
                }
                Some(Row::Named(oid, name)) => {
                    let name = String::from_utf8_lossy(name).into();
                    let row = SchemaVersion { database: place.file.database, oid, name };
                    deeds.schemas.push(Touched { row, inserted, ended, is_update });
                }
                _ => deeds.unknown += usize::from(is_counted),
            }
            if ended.is_some() && commits == Some(true) {
                self.invalid.remove(&place);
            }
        }
        if let Some(commits) = commits {
            let status = if commits { XidStatus::Committed } else { XidStatus::Aborted };
            xids.iter().for_each(|xid| self.store.xid_statuses_mut().note(*xid, status));
        }
        deeds
    }

    /// The catalogs at a moment: that at which transactions have just ended, or one before it, for names that
    /// were learnt since.
    pub fn at(&mut self, moment: Moment) -> CatalogsAt<'_> {
        CatalogsAt { history: self, moment }
    }

    /// The row at a place that one of these transactions made or else ended.
    fn row_at(&self, place: &Place, xids: &[u32], is_inserted: bool) -> Option<&RowVersion> {
        let heap = self.store.heaps.get(&place.file);
        let there = heap.into_iter().flat_map(|heap| heap.at(place.block, place.offset));
        let deleted = xids.iter().filter_map(|xid| self.deleted.get(xid)).flatten();
        let deleted = deleted.filter(|row| {
            (row.table, row.database, row.kept.offset)
                == (place.table, place.file.database, place.offset)
        });
        let mut rows = there.chain(deleted.map(|row| &row.kept)).map(|kept| &kept.row);
        rows.find(|row| match is_inserted {
            true => xids.contains(&row.xmin),
            false => self.store.deleter(row).is_some_and(|xid| xids.contains(&xid)),
        })
    }

    fn class_version(&self, class: &Class<'_>, heap: RelFileLocator) -> ClassVersion {
        ClassVersion {
            database: heap.database,
            oid: class.oid,
            name: String::from_utf8_lossy(class.name).into(),
            namespace: class.namespace,
            file: class.file(heap),
            kind: class.kind,
            rewrites: class.rewrites(self.store.layout()),
        }
    }

    /// Whether a file is one that a mapped catalog, or an index of one, has or had up to this place.
    pub fn is_mapped(&self, file: RelFileLocator) -> bool {
        self.store.is_mapped(file)
    }

    /// The table of an index.
    pub fn table_of_index(&self, database: u32, index: u32) -> Option<u32> {
        self.index_tables.get(&(database, index)).copied()
    }
}

impl CatalogsAt<'_> {
    /// The catalogs of all moments.
    pub fn history(&self) -> &History {
        self.history
    }

    /// The name of a schema.
    pub fn schema(&mut self, database: u32, oid: u32) -> Option<Arc<str>> {
        let table = CatalogTable::Namespace;
        if let Some(row) = self.best(table, database, Wanted::Oid(oid)) {
            return match decode(table, &row, self.history.store.layout())? {
                Row::Named(_, name) => Some(String::from_utf8_lossy(name).into()),
                _ => None,
            };
        }
        let fixed = FIXED_SCHEMAS.iter().find(|(fixed, _)| *fixed == oid);
        fixed.map(|(_, name)| Arc::from(*name))
    }

    /// The name of a database.
    pub fn database(&mut self, oid: u32) -> Option<Box<str>> {
        let table = CatalogTable::Database;
        let row = self.best(table, 0, Wanted::Oid(oid))?;
        match decode(table, &row, self.history.store.layout())? {
            Row::Database(_, name, _) => Some(String::from_utf8_lossy(name).into()),
            _ => None,
        }
    }

    /// The relation of this oid in a database.
    pub fn class(&mut self, database: u32, oid: u32) -> Option<ClassVersion> {
        let row = self.best(CatalogTable::Class, database, Wanted::Oid(oid))?;
        self.version_of(database, &row)
    }

    /// The relation that a file belongs to.
    pub fn owner(&mut self, file: RelFileLocator) -> Option<ClassVersion> {
        let database = file.database;
        let row = self.best(CatalogTable::Class, database, Wanted::File(file))?;
        self.version_of(database, &row)
    }

    fn version_of(&self, database: u32, row: &RowVersion) -> Option<ClassVersion> {
        let store = &self.history.store;
        let tablespace = store.tablespace_of(database);
        let heap = RelFileLocator { tablespace, database, relfilenode: 0 };
        match decode(CatalogTable::Class, row, store.layout())? {
            Row::Class(class) => Some(self.history.class_version(&class, heap)),
            _ => None,
        }
    }

    /// Of the rows of a catalog that are asked for the one that counts at this moment.
    fn best(&mut self, table: CatalogTable, database: u32, wanted: Wanted) -> Option<RowVersion> {
        let current = self.current_file(table, database);
        let History { store, touched, versions, .. } = &mut *self.history;
        let versions = versions.entry((table, database));
        let versions = versions.or_insert_with(|| Versions::of(store, table, database));
        let open = |xid: u32| touched.contains_key(&xid);
        let (moment, open) = (&self.moment, &open);
        let search = Search { table, database, wanted, current, moment, store, open };
        versions.best(&search).cloned()
    }

    /// The file that a catalog has now: a file that it has left has its rows too.
    fn current_file(&mut self, table: CatalogTable, database: u32) -> RelFileLocator {
        let relfilenode = if table.is_mapped() {
            self.history.store.mapped(database, table.oid())
        } else {
            let class = self.class(database, table.oid());
            class.and_then(|class| Some(class.file?.relfilenode)).unwrap_or(table.oid())
        };
        let tablespace = self.history.store.tablespace_of(database);
        RelFileLocator { tablespace, database, relfilenode }
    }
}

/// Places of a page at which rows come, go, or are frozen.
fn changed_places(store: &Store, page: Place, event: &Event) -> Vec<Place> {
    let Event::Rows { change, .. } = event else { return Vec::new() };
    let there = || {
        let heap = store.heaps.get(&page.file).into_iter();
        heap.flat_map(|heap| heap.offsets(page.block))
    };
    let offsets: Vec<u16> = match change {
        Change::Page(rows) => there().chain(rows.iter().map(|(offset, _)| *offset)).collect(),
        Change::Lost => there().collect(),
        Change::Insert(rows) => rows.iter().map(|(offset, _)| *offset).collect(),
        Change::Update { offset, .. } | Change::Overwrite(offset, _) => vec![*offset],
        Change::Gone(offsets) => offsets.to_vec(),
        Change::Freeze(rows) => rows.iter().map(|(offset, ..)| *offset).collect(),
        Change::End(_) => Vec::new(),
    };
    offsets.into_iter().map(|offset| Place { offset, ..page }).collect()
}

fn is_index(table: CatalogTable) -> bool {
    table == CatalogTable::Index
}

/// An index belongs to one table for life.
fn note_index_tables<'r>(
    tables: &mut HashMap<(u32, u32), u32>,
    file: RelFileLocator,
    rows: impl Iterator<Item = &'r RowVersion>,
    layout: &'static walstat_format::catalog_layout::CatalogLayout,
) {
    for row in
        rows.filter(|row| !row.is_update() || row.data.len() >= layout.bytes(CatalogTable::Index))
    {
        if let Some(Row::Index(index, table)) = decode(CatalogTable::Index, row, layout) {
            tables.insert((file.database, index), table);
        }
    }
}
