//! Which versions of rows count, and the names that they make.
//!
//! A name is given only where no other one could be right: of two versions that may both count, or
//! of an old one whose successor may lie in a page that is not known, none is taken.

mod links;

use super::builtin::Builtin;
use super::names::{Names, Relation};
use super::row::{
    CATALOG_SCHEMA_NAME, Class, Name, Row, Source, TOAST_SCHEMA, TOAST_SCHEMA_NAME, decode,
};
use super::store::{PlacedRow, Store, Subject, VersionStatus};
use super::xid_status::XidStatus;
use links::Links;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::{CatalogTable, DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use walstat_format::ordered::CollectOrdered;
use walstat_format::record_header::FIRST_NORMAL_XID;

/// Schemas whose oids are fixed, for where `pg_namespace` is not known.
pub(super) const FIXED_SCHEMAS: [(u32, &str); 3] =
    [(11, CATALOG_SCHEMA_NAME), (TOAST_SCHEMA, TOAST_SCHEMA_NAME), (2200, "public")];
/// Tablespaces whose oids are fixed.
const FIXED_TABLESPACES: [(u32, &str); 2] =
    [(DEFAULT_TABLESPACE, "pg_default"), (GLOBAL_TABLESPACE, "pg_global")];

/// How much a version counts, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VersionRank {
    /// Its inserter aborted.
    Aborted,
    /// Its inserter has not ended.
    Open,
    /// Deleted or updated, or no more in its place.
    Dead,
    /// It may count.
    Unsure,
    /// It counted, in a file that the catalog has left since.
    Left,
    /// It counts.
    Live,
}

/// A row version, with everything that decides which version of a row wins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'s> {
    pub row: Row<'s>,
    /// The tablespace of the catalog's file.
    tablespace: u32,
    /// The database.
    pub database: u32,
    /// The transaction that inserted it.
    xmin: u32,
    standing: VersionRank,
    /// Orders versions of the same standing: xids counted from a recent one.
    age: (i64, i64),
    /// Whether nobody ended it: of the versions that one transaction made, the last.
    is_last: bool,
    /// Whether its transaction inserted it, and did not update a row that was there before.
    is_inserted: bool,
    source: Source,
    /// Whether its name may be used if nothing better is known.
    is_last_known: bool,
}

impl Seen<'_> {
    /// Whether what it is about is there.
    pub(super) fn counts(&self) -> bool {
        self.standing >= VersionRank::Unsure
    }

    /// Where the catalog's file lies, without its number.
    fn heap(&self) -> RelFileLocator {
        RelFileLocator { tablespace: self.tablespace, database: self.database, relfilenode: 0 }
    }

    fn is_better_than(&self, other: &Seen<'_>) -> bool {
        (self.standing, self.age, self.is_last) > (other.standing, other.age, other.is_last)
    }
}

/// The best version of something, and whether others say the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best<'s> {
    pub seen: Seen<'s>,
    is_disputed: bool,
}

impl<'s> Best<'s> {
    /// The version, if its name can be relied on.
    fn reliable(&self) -> Option<&Seen<'s>> {
        let reliable = match self.seen.standing {
            VersionRank::Live | VersionRank::Left => true,
            VersionRank::Unsure => !self.is_disputed,
            VersionRank::Dead | VersionRank::Open | VersionRank::Aborted => self.seen.is_last_known,
        };
        reliable.then_some(&self.seen)
    }
}

/// Keeps the better one; two that may count and differ dispute each other.
fn offer<'s, K: Hash + Eq>(best: &mut HashMap<K, Best<'s>>, key: K, seen: Seen<'s>) {
    match best.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(Best { seen, is_disputed: false });
        }
        Entry::Occupied(mut entry) => {
            let best = entry.get_mut();
            let both_unsure = [seen.standing, best.seen.standing] == [VersionRank::Unsure; 2];
            best.is_disputed |= both_unsure && !says_the_same(&seen.row, &best.seen.row);
            // A row inserted by a transaction that did not commit never existed for others, so there is no
            // earlier row that its own updates could have replaced.
            let never_was =
                [seen.standing, best.seen.standing].iter().all(|s| *s <= VersionRank::Open);
            let is_last_known = seen.is_last_known || best.seen.is_last_known;
            if seen.is_better_than(&best.seen) {
                best.seen = seen;
            }
            if never_was {
                best.seen.is_last_known = is_last_known;
            }
        }
    }
}

/// Whether two rows give the same name.
fn says_the_same(a: &Row<'_>, b: &Row<'_>) -> bool {
    let name = |class: &Class<'_>| (class.namespace, class.kind, class.toast);
    match (a, b) {
        (Row::Class(a), Row::Class(b)) => a.name == b.name && name(a) == name(b),
        _ => a == b,
    }
}

impl Store {
    /// The names that the versions make. The newest is taken, and of what is gone the last one.
    pub fn names(&self) -> Names {
        let mut resolver = Resolver { store: self, classes: HashMap::new() };
        for seen in resolver.versions(CatalogTable::Class) {
            if let Row::Class(class) = seen.row {
                offer(&mut resolver.classes, (database_of(&class, seen.database), class.oid), seen);
            }
        }
        let links = Links::of(&resolver);
        let mut names = Names { builtin: Builtin::of(self.version), ..Names::default() };
        resolver.name_databases(&mut names);
        resolver.name_relations(&links, &mut names);
        resolver.name_files(&links, &mut names);
        names.rewritten = resolver.rewritten_files();
        resolver.note_former_names(&mut names);
        names
    }
}

/// Shared relations are those of no database, though each database has a row for them.
fn database_of(class: &Class<'_>, database: u32) -> u32 {
    if class.is_shared { 0 } else { database }
}

fn text(name: Name<'_>) -> Box<str> {
    String::from_utf8_lossy(name).into()
}

pub(super) struct Resolver<'s> {
    pub store: &'s Store,
    /// The best row of each relation.
    pub classes: HashMap<(u32, u32), Best<'s>>,
}

impl<'s> Resolver<'s> {
    /// All versions of the rows of a catalog.
    pub(super) fn versions(&self, table: CatalogTable) -> Vec<Seen<'s>> {
        let mut versions = Vec::new();
        for (file, heap) in self.store.heaps.iter().filter(|(_, heap)| heap.table == table) {
            let is_current = self.current_file(table, file.database) == Some(*file);
            let place = Place { file: *file, table, is_current, is_whole: heap.is_whole };
            versions.extend(heap.versions().filter_map(|kept| self.seen(kept, &place, false)));
            versions.extend(heap.past_versions().filter_map(|kept| self.seen(kept, &place, true)));
        }
        let gone = self.store.gone.iter().filter(|(subject, _)| subject.table == table);
        for (Subject { database, .. }, (tablespace, kept)) in gone {
            let is_whole = self.is_whole(table, *database);
            let file =
                RelFileLocator { tablespace: *tablespace, database: *database, relfilenode: 0 };
            let place = Place { file, table, is_current: true, is_whole };
            versions.extend(self.seen(kept, &place, true));
        }
        versions
    }

    fn seen(&self, kept: &'s PlacedRow, place: &Place, is_gone: bool) -> Option<Seen<'s>> {
        let row = decode(place.table, &kept.row, self.store.version.catalog)?;
        let standing = self.standing(kept, place, is_gone);
        let inserted = self.age(kept.row.xmin);
        let age = match standing {
            VersionRank::Dead => {
                let ended = self.store.deleter(&kept.row).map_or(i64::MIN, |xid| self.age(xid));
                (ended, inserted)
            }
            _ => (inserted, 0),
        };
        let is_last_known = match standing {
            VersionRank::Dead => kept.ended_in_wal || place.is_whole,
            // An update that did not come to be: the row before it may be in a page not known.
            _ => kept.is_inserted || place.is_whole,
        };
        Some(Seen {
            row,
            tablespace: place.file.tablespace,
            database: place.file.database,
            xmin: kept.row.xmin,
            standing,
            age,
            is_last: self.store.version_status(&kept.row).deleted.is_none(),
            is_inserted: kept.is_inserted,
            source: kept.source,
            is_last_known,
        })
    }

    fn standing(&self, kept: &PlacedRow, place: &Place, is_gone: bool) -> VersionRank {
        let VersionStatus { inserted, deleted } = self.store.version_status(&kept.row);
        let standing = match (inserted, deleted) {
            (XidStatus::Aborted, _) => VersionRank::Aborted,
            (_, Some(XidStatus::Committed)) => VersionRank::Dead,
            (XidStatus::InProgress, _) => VersionRank::Open,
            (XidStatus::Unknown, _) | (_, Some(XidStatus::Unknown)) => VersionRank::Unsure,
            (XidStatus::Committed, None | Some(XidStatus::InProgress | XidStatus::Aborted)) => {
                VersionRank::Live
            }
        };
        match standing {
            VersionRank::Live | VersionRank::Unsure if is_gone => VersionRank::Dead,
            VersionRank::Live | VersionRank::Unsure if !place.is_current => VersionRank::Left,
            standing => standing,
        }
    }

    /// How recent an xid is: larger is later. Xids turn over; ids that are none are oldest.
    fn age(&self, xid: u32) -> i64 {
        if xid < FIRST_NORMAL_XID {
            return i64::MIN;
        }
        let recent = self.store.recent_xid.unwrap_or(xid);
        i64::from(xid.wrapping_sub(recent).cast_signed())
    }

    /// The file that a catalog of a database has now.
    fn current_file(&self, table: CatalogTable, database: u32) -> Option<RelFileLocator> {
        let database = if table.is_shared() { 0 } else { database };
        let tablespace = self.store.tablespace_of(database);
        let relfilenode = if table.is_mapped() {
            self.store.mapped(database, table.oid())
        } else {
            let best = self.classes.get(&(database, table.oid()));
            match best.and_then(Best::reliable).map(|seen| seen.row) {
                Some(Row::Class(class)) => class.relfilenode,
                _ => table.oid(),
            }
        };
        Some(RelFileLocator { tablespace, database, relfilenode })
    }

    fn is_whole(&self, table: CatalogTable, database: u32) -> bool {
        let file = self.current_file(table, database);
        file.and_then(|file| self.store.heaps.get(&file)).is_some_and(|heap| heap.is_whole)
    }

    /// The best version of each row with a name, by database and oid.
    fn named(&self, table: CatalogTable) -> BTreeMap<(u32, u32), Best<'s>> {
        let mut best = HashMap::new();
        for seen in self.versions(table) {
            offer(&mut best, (seen.database, seen.row.oid()), seen);
        }
        // In one order: of two rows with one oid the last one names it.
        best.into_iter().collect_map()
    }

    fn name_databases(&self, names: &mut Names) {
        let fixed = FIXED_TABLESPACES.map(|(oid, name)| (oid, Box::from(name)));
        names.tablespaces.extend(fixed);
        for best in self.named(CatalogTable::Tablespace).values() {
            if let Some(Seen { row: Row::Named(oid, name), .. }) = best.reliable() {
                names.tablespaces.insert(*oid, text(name));
            }
        }
        for best in self.named(CatalogTable::Database).values() {
            if let Some(Seen { row: Row::Database(oid, name, _), .. }) = best.reliable() {
                names.databases.insert(*oid, text(name));
            }
        }
    }

    /// The names of schemas, by database and oid; `None` for one that is there and has no name that
    /// can be relied on.
    fn schemas(&self) -> HashMap<(u32, u32), Option<Arc<str>>> {
        let schema = |best: &Best<'_>| match best.reliable()?.row {
            Row::Named(_, name) => Some(Arc::from(text(name))),
            _ => None,
        };
        let rows = self.named(CatalogTable::Namespace);
        rows.iter().map(|(key, best)| (*key, schema(best))).collect()
    }

    fn name_relations(&self, links: &Links, names: &mut Names) {
        let schemas = self.schemas();
        let fixed: HashMap<u32, Arc<str>> =
            FIXED_SCHEMAS.into_iter().map(|(oid, name)| (oid, Arc::from(name))).collect();
        for (&(database, oid), best) in &self.classes {
            let Some(seen) = best.reliable() else { continue };
            let Row::Class(class) = seen.row else { continue };
            // Shared relations have a row, and a schema of the same name, in each database.
            let schema = schemas.get(&(seen.database, class.namespace)).cloned();
            let schema = schema.unwrap_or_else(|| fixed.get(&class.namespace).cloned());
            let (parent, is_partition) = (links.parents.get(&(database, oid)), class.is_partition);
            let relation = Relation {
                oid,
                schema,
                name: text(class.name),
                kind: class.kind,
                persistence: class.persistence,
                table: links.table_of(database, &class).or_else(|| {
                    names.builtin.get(oid, database == 0).and_then(|builtin| builtin.table)
                }),
                parent: parent.map(|(_, parent)| *parent),
                is_partition,
                is_gone: !seen.counts(),
                source: seen.source,
            };
            names.relations.insert((database, oid), relation);
        }
    }

    /// What names were replaced: a list made before has them still.
    fn note_former_names(&self, names: &mut Names) {
        for seen in self.replaced(CatalogTable::Class) {
            let Row::Class(class) = seen.row else { continue };
            let key = (database_of(&class, seen.database), class.oid);
            let name = text(class.name);
            if names.relations.get(&key).is_some_and(|now| now.name != name) {
                names.former.entry(key).or_default().push(name);
            }
        }
        let schemas = self.schemas();
        let given = schemas.iter().filter_map(|((of, _), now)| Some((*of, now.as_deref()?)));
        let given: HashSet<(u32, &str)> = given.collect();
        for seen in self.replaced(CatalogTable::Namespace) {
            let Row::Named(oid, name) = seen.row else { continue };
            let (database, name) = (seen.database, text(name));
            let Some(Some(now)) = schemas.get(&(database, oid)) else { continue };
            if !given.contains(&(database, &*name)) {
                names.renamed_schemas.insert((database, name), now.clone());
            }
        }
    }

    /// The versions of rows in whose place there are others.
    fn replaced(&self, table: CatalogTable) -> impl Iterator<Item = Seen<'s>> {
        self.versions(table).into_iter().filter(|seen| seen.standing == VersionRank::Dead)
    }

    /// Which relation a file belongs to: of all that ever claimed it, one that is there now, and
    /// never one that is only the other's new version.
    fn name_files(&self, links: &Links, names: &mut Names) {
        let mut claims: HashMap<RelFileLocator, (Claim, u32)> = HashMap::new();
        for (file, claim, oid) in self.class_claims().into_iter().chain(self.map_claims()) {
            let best = claims.entry(file).or_insert((claim, oid));
            *best = (*best).max((claim, oid));
        }
        for (file, (_, oid)) in claims {
            let owner = links.stands_for(file.database, oid);
            names.files.insert(file, owner);
        }
    }

    /// Files that rows of `pg_class` name.
    fn class_claims(&self) -> Vec<(RelFileLocator, Claim, u32)> {
        let mut claims = Vec::new();
        for seen in self.versions(CatalogTable::Class) {
            let Row::Class(class) = seen.row else { continue };
            if class.relfilenode == 0 || !class.has_files() {
                continue;
            }
            let tablespace = match class.tablespace {
                0 => seen.tablespace,
                tablespace => tablespace,
            };
            let database = database_of(&class, seen.database);
            let file = RelFileLocator { tablespace, database, relfilenode: class.relfilenode };
            let claim = Claim {
                writes_wal: class.persistence != b't',
                owner_counts: self.counts(database, class.oid),
                standing: seen.standing,
                age: seen.age,
            };
            claims.push((file, claim, class.oid));
        }
        claims
    }

    /// Files that a relation's row names since the transaction that made a new version of the relation: that
    /// version is in `pg_class` as well, until both have changed places.
    fn rewritten_files(&self) -> HashMap<RelFileLocator, u32> {
        let layout = self.store.version.catalog;
        let versions = self.versions(CatalogTable::Class);
        let rewritten = versions.iter().filter_map(|seen| match seen.row {
            Row::Class(class) => Some((seen.database, class.rewrites(layout)?, seen.xmin)),
            _ => None,
        });
        let rewritten: HashSet<(u32, u32, u32)> = rewritten.collect();
        let of_relations = versions.iter().filter_map(|seen| {
            let Row::Class(class) = seen.row else { return None };
            let is_new = rewritten.contains(&(seen.database, class.oid, seen.xmin));
            is_new.then_some((class.file(seen.heap())?, seen.xmin))
        });
        // Of a file of which a later transaction made another row, as the next rewrite does before it has a
        // file of its own, the row is gone that names the first one. Each new version begins with its file.
        let of_versions = versions.iter().filter(|seen| seen.is_inserted).filter_map(|seen| {
            let Row::Class(class) = seen.row else { return None };
            class.rewrites(layout)?;
            Some((class.file(seen.heap())?, seen.xmin))
        });
        of_relations.chain(of_versions).collect()
    }

    /// Files that maps name.
    fn map_claims(&self) -> Vec<(RelFileLocator, Claim, u32)> {
        let mut claims = Vec::new();
        for (&database, map) in &self.store.maps {
            let now = map.files.iter().map(|pair| (VersionRank::Live, pair));
            let before = map.earlier.iter().map(|pair| (VersionRank::Dead, pair));
            let here = now.chain(before).map(|(standing, pair)| (map.tablespace, standing, pair));
            let left = self.store.left_tablespaces(database).into_iter().flat_map(|tablespace| {
                let all = map.files.iter().chain(&map.earlier);
                all.map(move |pair| (tablespace, VersionRank::Dead, pair))
            });
            for (tablespace, standing, &(oid, relfilenode)) in here.chain(left) {
                let file = RelFileLocator { tablespace, database, relfilenode };
                let owner_counts = self.counts(database, oid);
                let claim = Claim { writes_wal: true, owner_counts, standing, age: (0, 0) };
                claims.push((file, claim, oid));
            }
        }
        claims
    }

    /// Whether a relation is there.
    pub(super) fn counts(&self, database: u32, oid: u32) -> bool {
        self.classes.get(&(database, oid)).is_some_and(|best| best.seen.counts())
    }
}

/// Where a version lies.
struct Place {
    file: RelFileLocator,
    table: CatalogTable,
    is_current: bool,
    is_whole: bool,
}

/// What speaks for a relation as the owner of a file, the weightiest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    /// A temporary relation's number may be that of another relation's file.
    writes_wal: bool,
    owner_counts: bool,
    standing: VersionRank,
    age: (i64, i64),
}
