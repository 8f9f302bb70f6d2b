//! Tables, indexes and databases that a transaction made, dropped, or gave another file: what its rows of
//! `pg_class` and `pg_database` say.

use super::EventKind;
use super::deed::{Deed, Scene, Subject, is_index, is_oid_of_system};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::history::{ClassVersion, DatabaseVersion, Deeds, Touched};
use walstat_names::catalog::row::{TOAST_SCHEMA, kind};

/// What has rows: tables, materialized views, and tables that have partitions.
const TABLES: [u8; 3] = [kind::TABLE, kind::MATERIALIZED_VIEW, kind::PARTITIONED_TABLE];

/// REINDEX CONCURRENTLY puts this into the name of the index that it replaces.
const OLD_INDEX: &str = "_ccold";
/// REFRESH MATERIALIZED VIEW CONCURRENTLY keeps the differences that it found in a temporary table: its name
/// is that of the table with the new rows, followed by this.
const DIFFERENCES: &str = "_2";

/// A relation, by database and oid.
type Key = (u32, u32);

/// The versions of one relation in a transaction, in the order in which they were made.
struct Chain<'d> {
    versions: Vec<&'d Touched<ClassVersion>>,
}

/// What became of tables in a transaction: what is done to their indexes with it is no event of its own.
#[derive(Default)]
struct Tables {
    created: BTreeSet<Key>,
    dropped: BTreeSet<Key>,
    truncated: BTreeSet<Key>,
    rewritten: BTreeSet<Key>,
}

/// The events.
pub(super) fn told(scene: Scene<'_>) -> Vec<Deed> {
    let deeds = scene.deeds;
    let chains = chains(deeds);
    let swapped = swapped(&chains);
    let mut told = RelationDeeds {
        is_all_seen: is_all_seen(deeds, &chains),
        scene,
        tables: Tables::default(),
        swapped,
        told: Vec::new(),
    };
    for (key, chain) in chains.iter().filter(|(_, chain)| chain.is_table()) {
        told.table(*key, chain);
    }
    told.rewritten_unseen(deeds);
    for (key, chain) in chains.iter().filter(|(_, chain)| chain.is_index()) {
        told.index(*key, chain);
    }
    told.databases(deeds);
    told.told
}

fn chains(deeds: &Deeds) -> BTreeMap<Key, Chain<'_>> {
    let mut chains: BTreeMap<Key, Chain<'_>> = BTreeMap::new();
    for touched in &deeds.classes {
        let key = (touched.row.database, touched.row.oid);
        chains.entry(key).or_insert(Chain { versions: Vec::new() }).versions.push(touched);
    }
    for chain in chains.values_mut() {
        chain.versions.order_by_key(|touched| touched.inserted);
    }
    chains
}

/// Whether each row that is not known is the one before a row that is: of none is nothing seen at all.
fn is_all_seen(deeds: &Deeds, chains: &BTreeMap<Key, Chain<'_>>) -> bool {
    deeds.unknown <= chains.values().filter(|chain| chain.lacks_first()).count()
}

/// Indexes that took the place of other ones: the last step but one of REINDEX CONCURRENTLY gives the new
/// index the name of the old one, and that another name (`index_concurrently_swap`); with the file of the
/// old one.
fn swapped(chains: &BTreeMap<Key, Chain<'_>>) -> BTreeMap<Key, Option<RelFileLocator>> {
    let renamed: Vec<_> = chains.iter().filter_map(|(key, chain)| chain.renamed(*key)).collect();
    let had_name = |key: &Key, now: &ClassVersion| {
        renamed.iter().find(|(other, before, after)| {
            let is_old = before.name == now.name && after.name.contains(OLD_INDEX);
            is_old && (other.0, before.namespace) == (key.0, now.namespace)
        })
    };
    let pairs = renamed.iter().filter_map(|(key, _, now)| {
        let (_, old, _) = had_name(key, now)?;
        Some((*key, old.file))
    });
    pairs.collect_map()
}

impl<'d> Chain<'d> {
    fn first(&self) -> Option<&'d Touched<ClassVersion>> {
        self.versions.first().copied()
    }

    fn last(&self) -> Option<&'d Touched<ClassVersion>> {
        self.versions.last().copied()
    }

    fn is_kind(&self, is: impl Fn(&ClassVersion) -> bool) -> bool {
        self.last().is_some_and(|last| is(&last.row))
    }

    /// Whether it is a table of its own: neither TOAST, nor the new version of one that is rewritten.
    fn is_table(&self) -> bool {
        let is_copy = self.first().is_some_and(|first| first.row.rewrites.is_some());
        !is_copy && self.is_kind(|class| TABLES.contains(&class.kind))
    }

    fn is_index(&self) -> bool {
        self.is_kind(|class| is_index(class) && class.namespace != TOAST_SCHEMA)
    }

    /// An index that was there before and has another name since: what it was, and is.
    fn renamed(&self, key: Key) -> Option<(Key, &'d ClassVersion, &'d ClassVersion)> {
        let (first, last) = (&self.first()?.row, &self.last()?.row);
        let is_renamed = self.is_index() && self.created().is_none() && first.name != last.name;
        is_renamed.then_some((key, first, last))
    }

    /// Whether it was there before, and how is not known.
    fn lacks_first(&self) -> bool {
        self.first().is_some_and(|first| first.inserted.is_some() && first.is_update)
    }

    /// Where it was made, if it was not there before.
    fn created(&self) -> Option<Lsn> {
        self.first().filter(|first| !first.is_update)?.inserted
    }

    /// Where it was dropped, if it is there no more.
    fn dropped(&self) -> Option<Lsn> {
        self.last()?.ended
    }

    /// Versions with another file than the one before them, and these.
    fn new_files(
        &self,
    ) -> impl Iterator<Item = (&'d Touched<ClassVersion>, &'d Touched<ClassVersion>)> {
        let pairs: Vec<_> = self
            .versions
            .windows(2)
            .filter_map(|pair| match pair {
                [old, new] => Some((*old, *new)),
                _ => None,
            })
            .collect();
        pairs.into_iter().filter(|(old, new)| old.row.file != new.row.file)
    }
}

/// What one transaction did to relations, as it is found out.
struct RelationDeeds<'t> {
    is_all_seen: bool,
    scene: Scene<'t>,
    tables: Tables,
    /// Indexes that took the place of others, with the files of these.
    swapped: BTreeMap<Key, Option<RelFileLocator>>,
    told: Vec<Deed>,
}

impl RelationDeeds<'_> {
    fn tell(&mut self, kind: EventKind, end: Lsn, subject: Subject, files: Files) {
        let Files { file, new_file } = files;
        let lsn = self.scene.places.start_of(end);
        let takes_away = [EventKind::DropTable, EventKind::DropIndex, EventKind::Truncate];
        let made = new_file.or(file).filter(|_| !takes_away.contains(&kind));
        let bytes = made.and_then(|file| self.scene.whole.files.get(&file)).map(|work| work.bytes);
        self.told.push(Deed {
            kind,
            lsn,
            subject,
            file,
            new_file,
            rows: None,
            bytes,
            no_return: None,
        });
    }

    fn table(&mut self, key: Key, chain: &Chain<'_>) {
        let Some(last) = chain.last().filter(|last| !self.has_differences(&last.row)) else {
            return;
        };
        let subject = || Subject::Relation(last.row.clone(), None);
        if let Some(end) = chain.created() {
            self.tables.created.insert(key);
            if is_oid_of_system(key.1) {
                return;
            }
            self.tell(EventKind::CreateTable, end, subject(), Files::only(last.row.file));
        } else {
            self.rewritten_first(key, chain);
            self.table_files(key, chain);
            if chain.lacks_first() {
                // What is done to its indexes is no event, whatever was done to it.
                self.tables.truncated.insert(key);
            }
        }
        if let Some(end) = chain.dropped().filter(|_| !is_oid_of_system(key.1)) {
            self.tables.dropped.insert(key);
            self.tell(EventKind::DropTable, end, subject(), Files::only(last.row.file));
        }
    }

    /// A table that has been written anew where the first version of it is made that is known. Another file
    /// alone does not tell TRUNCATE from another tablespace, nor that it is another one.
    fn rewritten_first(&mut self, key: Key, chain: &Chain<'_>) {
        let Some(first) = chain.first().filter(|_| chain.lacks_first()) else { return };
        let rewritten = first.row.file.and_then(|file| self.scene.rewritten.get(&file));
        let is_copy = rewritten.is_some_and(|rewritten| rewritten.is_copy);
        if let Some(end) = first.inserted.filter(|_| is_copy) {
            self.tables.rewritten.insert(key);
            let files = Files { file: None, new_file: first.row.file };
            self.tell(EventKind::Rewrite, end, Subject::Relation(first.row.clone(), None), files);
        }
    }

    /// Whether it is the server's own, beside the new rows of a materialized view.
    fn has_differences(&self, table: &ClassVersion) -> bool {
        let Some(name) = table.name.strip_suffix(DIFFERENCES) else { return false };
        let is_beside = |class: &ClassVersion| {
            class.rewrites.is_some() && &*class.name == name && class.namespace == table.namespace
        };
        self.scene.deeds.classes.iter().any(|touched| is_beside(&touched.row))
    }

    /// Each of both once, however often it was done.
    fn table_files(&mut self, key: Key, chain: &Chain<'_>) {
        for (old, new) in chain.new_files() {
            let Some(end) = new.inserted else { continue };
            let rewritten = new.row.file.and_then(|file| self.scene.rewritten.get(&file));
            let is_copy = rewritten.is_some_and(|rewritten| rewritten.is_copy);
            // What goes to another tablespace keeps its rows.
            let tablespace = |class: &ClassVersion| class.file.map(|file| file.tablespace);
            let has_moved = tablespace(&old.row) != tablespace(&new.row);
            let (kind, done) = if is_copy || has_moved {
                (EventKind::Rewrite, &mut self.tables.rewritten)
            } else {
                (EventKind::Truncate, &mut self.tables.truncated)
            };
            if done.insert(key) {
                let files = Files { file: old.row.file, new_file: new.row.file };
                self.tell(kind, end, Subject::Relation(new.row.clone(), None), files);
            }
        }
        self.emptied(key, chain);
    }

    /// TRUNCATE of a table that has got its file in the same transaction cuts that, and makes no other one.
    fn emptied(&mut self, key: Key, chain: &Chain<'_>) {
        let works = &self.scene.whole.files;
        let cut = chain.versions.iter().find_map(|version| {
            let file = version.row.file?;
            Some((works.get(&file)?.emptied?, file, version))
        });
        let Some((end, new_file, version)) = cut else { return };
        if self.tables.truncated.insert(key) {
            let file = chain.first().and_then(|first| first.row.file);
            let files = Files { file, new_file: Some(new_file) };
            self.tell(
                EventKind::Truncate,
                end,
                Subject::Relation(version.row.clone(), None),
                files,
            );
        }
    }

    /// Tables that were rewritten, and whose own rows are not known or name no file.
    fn rewritten_unseen(&mut self, deeds: &Deeds) {
        for touched in &deeds.classes {
            let class = &touched.row;
            let (Some(oid), Some(end)) = (class.rewrites, touched.inserted) else { continue };
            let key = (class.database, oid);
            let table = self.scene.catalogs.class(class.database, oid);
            // REFRESH MATERIALIZED VIEW CONCURRENTLY has the new rows in a temporary table, and changes those
            // that differ.
            let is_beside = |table: &ClassVersion| table.namespace != class.namespace;
            if self.tables.created.contains(&key)
                || table.as_ref().is_some_and(is_beside)
                || !self.tables.rewritten.insert(key)
            {
                continue;
            }
            if let Some(table) = table.filter(|table| TABLES.contains(&table.kind)) {
                let files = Files { file: table.file, new_file: class.file };
                self.tell(EventKind::Rewrite, end, Subject::Relation(table, None), files);
            }
        }
    }

    fn index(&mut self, key: Key, chain: &Chain<'_>) {
        let Some(last) = chain.last() else { return };
        let table = self.scene.catalogs.history().table_of_index(key.0, key.1);
        if self.is_of_toast(key.0, table) || !self.is_certain(key, table) {
            return;
        }
        let goes_with = |sets: &[&BTreeSet<Key>]| match table {
            Some(table) => sets.iter().any(|set| set.contains(&(key.0, table))),
            // The index's table is not known: any table of the database to which the same was done in this
            // transaction is taken for it.
            None => sets.iter().any(|set| set.iter().any(|(database, _)| *database == key.0)),
        };
        let Tables { created, dropped, truncated, rewritten } = &self.tables;
        let is_created_with = goes_with(&[created, rewritten]);
        let is_built_with = goes_with(&[created, rewritten, truncated]);
        let is_dropped_with = goes_with(&[dropped, rewritten]);
        let subject = |class: &ClassVersion| Subject::Relation(class.clone(), table);
        if let (Some(file), Some(end)) = (self.swapped.get(&key).copied(), last.inserted) {
            let files = Files { file, new_file: last.row.file };
            return self.tell(EventKind::Reindex, end, subject(&last.row), files);
        }
        match chain.created() {
            Some(end) if !is_created_with => {
                self.tell(
                    EventKind::CreateIndex,
                    end,
                    subject(&last.row),
                    Files::only(last.row.file),
                );
            }
            None if !is_built_with => {
                let built =
                    chain.new_files().find_map(|(old, new)| Some((old, new, new.inserted?)));
                if let Some((old, new, end)) = built {
                    let files = Files { file: old.row.file, new_file: new.row.file };
                    self.tell(EventKind::Reindex, end, subject(&new.row), files);
                }
            }
            _ => {}
        }
        if let Some(end) = chain.dropped().filter(|_| !is_dropped_with) {
            self.tell(EventKind::DropIndex, end, subject(&last.row), Files::only(last.row.file));
        }
    }

    /// Whether what is done to an index is its own, or its table's that is seen: where a row is not known,
    /// that may be of the table.
    fn is_certain(&self, (database, _): Key, table: Option<u32>) -> bool {
        let is_it = |row: &ClassVersion| (row.database, Some(row.oid)) == (database, table);
        self.is_all_seen || self.scene.deeds.classes.iter().any(|touched| is_it(&touched.row))
    }

    fn is_of_toast(&mut self, database: u32, table: Option<u32>) -> bool {
        let table = table.and_then(|oid| self.scene.catalogs.class(database, oid));
        table.is_some_and(|table| table.kind == kind::TOAST)
    }

    fn databases(&mut self, deeds: &Deeds) {
        let mut databases: BTreeMap<u32, Vec<&Touched<DatabaseVersion>>> = BTreeMap::new();
        for touched in &deeds.databases {
            databases.entry(touched.row.oid).or_default().push(touched);
        }
        for mut versions in databases.into_values() {
            versions.order_by_key(|touched| touched.inserted);
            let (Some(first), Some(last)) = (versions.first(), versions.last()) else { continue };
            let name: Arc<str> = Arc::from(&*last.row.name);
            let is_made = !first.is_update && !is_oid_of_system(last.row.oid);
            if let Some(end) = first.inserted.filter(|_| is_made) {
                let subject = Subject::Database(last.row.oid, Arc::clone(&name));
                self.tell(EventKind::CreateDatabase, end, subject, Files::default());
            }
            if let Some(end) = last.ended {
                self.dropped_database(&last.row, name, end);
            }
        }
    }

    /// The point of no return is where the database is marked as being dropped, or where its files are
    /// removed, whichever comes first.
    fn dropped_database(&mut self, row: &DatabaseVersion, name: Arc<str>, end: Lsn) {
        let marked = row.invalid_since.map(|end| self.scene.places.start_of(end));
        let subject = Subject::Database(row.oid, name);
        self.tell(EventKind::DropDatabase, end, subject, Files::default());
        if let Some(deed) = self.told.last_mut() {
            deed.lsn = marked.map_or(deed.lsn, |marked| marked.min(deed.lsn));
            deed.no_return = marked.into_iter().chain(self.scene.whole.database_drop).min();
        }
    }
}

/// The files of a relation.
#[derive(Default)]
struct Files {
    file: Option<RelFileLocator>,
    new_file: Option<RelFileLocator>,
}

impl Files {
    fn only(file: Option<RelFileLocator>) -> Files {
        Files { file, new_file: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(oid: u32, kind: u8, is_update: bool) -> Touched<ClassVersion> {
        let row = ClassVersion {
            database: 5,
            oid,
            name: "t".into(),
            namespace: 2200,
            file: Some(RelFileLocator { tablespace: 1663, database: 5, relfilenode: oid + 7 }),
            kind,
            rewrites: None,
        };
        Touched { row, inserted: Some(Lsn(80)), ended: None, is_update }
    }

    /// TRUNCATE gives a table a newer row with another file; the one before may not be known.
    #[test]
    fn a_newer_row_alone_is_of_nothing_that_was_made() {
        let classes = vec![version(16384, b'r', true), version(16390, b'r', false)];
        let deeds = Deeds { classes, unknown: 1, ..Deeds::default() };
        let chains = chains(&deeds);
        let made = chains.values().map(Chain::created).collect::<Vec<_>>();
        assert_eq!(made, [None, Some(Lsn(80))]);
        assert!(is_all_seen(&deeds, &chains), "the row before the first is the unknown one");
        assert!(!is_all_seen(&Deeds { unknown: 2, ..Deeds::default() }, &chains));
    }
}
