//! What the WAL says of the catalogs: gathered record by record, put together in WAL order, and
//! applied to a store at the end.
//!
//! Catalogs are known by their files. One that is rewritten (`VACUUM FULL pg_class`) has another
//! file from then on, which the rewrite itself names. A stretch of WAL may not have the rewrite: so
//! the changes of all candidates (`catalog_candidates`) are kept, and at the end those are
//! applied that turned out to be catalogs. Nothing here depends on how the WAL was divided into
//! stretches.

use super::catalog_candidates::{CatalogCandidates, proves};
use super::event::{Change, Event, RecordParts, change};
use super::history::History;
use super::row::{Row, RowVersion, decode};
use super::store::Store;
use super::xid_status::{XidStatus, XidStatuses};
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::by_key;
use walstat_format::catalog_layout::CatalogLayout;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::payload::dbase::DatabaseChange;
use walstat_format::payload::{multixact, relmap, xact};
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;

/// Mapped catalogs whose rows are like those of no other table.
const IDENTIFIED: [CatalogTable; 2] = [CatalogTable::Class, CatalogTable::Database];

/// Files of catalogs, beside the original ones.
type Files = HashMap<RelFileLocator, CatalogTable>;

/// What a stretch of WAL changes in the catalogs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CatalogChanges {
    /// Files of catalogs that were known before, beside the original ones.
    #[serde(serialize_with = "by_key::map")]
    files: Files,
    /// Files that may be catalogs.
    candidates: CatalogCandidates,
    events: Vec<Event>,
    statuses: XidStatuses,
    /// Multixacts with the member that updates or deletes, if one does.
    updaters: Vec<(u32, Option<u32>)>,
    /// The first xid of a record that is looked at whatever is known of files: others are older or newer
    /// than it.
    recent_xid: Option<u32>,
}

impl CatalogChanges {
    /// Begins with the catalogs' files that a store knows.
    pub fn over(store: &Store) -> CatalogChanges {
        CatalogChanges { files: store.catalog_files().collect(), ..CatalogChanges::default() }
    }

    /// Whether a file is a catalog's, or may be. A record about no such file, and of no resource manager
    /// that is looked at besides, changes nothing here: its images need not be restored.
    pub fn may_be_catalog(&self, file: RelFileLocator) -> bool {
        catalog_of(&self.files, file).is_some() || self.candidates.can_be_catalog(file)
    }

    /// Takes note of the end of a transaction without subtransactions.
    pub fn ended(&mut self, xid: u32, commits: bool) {
        self.recent_xid.get_or_insert(xid);
        self.statuses.note(xid, if commits { XidStatus::Committed } else { XidStatus::Aborted });
    }

    /// Takes note of a record.
    pub fn observe(&mut self, record: &RecordParts<'_>) {
        let RecordHeader { rmgr, xid, .. } = record.header;
        if xid != 0 && teaches_itself(rmgr) {
            self.recent_xid.get_or_insert(xid);
        }
        match rmgr {
            rmgr::TRANSACTION => self.transaction(record),
            rmgr::DATABASE => self.database(record),
            rmgr::MULTIXACT => self.multixact(record),
            rmgr::RELMAP => self.map(record),
            _ => self.blocks(record),
        }
    }

    fn transaction(&mut self, record: &RecordParts<'_>) {
        let (info, xid) = (record.header.info, record.header.xid);
        let Some(end) = xact::End::parse(info, record.main_data, record.version) else { return };
        let status = if end.commits { XidStatus::Committed } else { XidStatus::Aborted };
        for xid in end.subxids.iter().chain([end.prepared_xid.unwrap_or(xid)]) {
            self.statuses.note(xid, status);
        }
    }

    fn database(&mut self, record: &RecordParts<'_>) {
        let info = record.header.info;
        if let Some(DatabaseChange::Create { database, tablespace, copied_from: Some(from) }) =
            DatabaseChange::parse(info, record.main_data, record.version)
        {
            self.events.push(Event::Copied { from, to: (database, tablespace) });
        }
    }

    fn multixact(&mut self, record: &RecordParts<'_>) {
        if record.header.rmgr_info() != multixact::CREATE_ID {
            return;
        }
        if let Some(create) = multixact::Create::parse(record.main_data, record.version) {
            self.updaters.push((create.multixact, create.updater()));
        }
    }

    fn map(&mut self, record: &RecordParts<'_>) {
        let Some(update) = relmap::Update::parse(record.main_data) else { return };
        let relmap::Update { database, tablespace, map } = update;
        let files = map.mappings.iter().collect();
        self.events.push(Event::Map { database, tablespace, files, end: record.end });
    }

    /// A record is about the relation of its first block: so whether it is looked at does not depend on
    /// what the other blocks are of, which no record of a catalog has.
    fn blocks(&mut self, record: &RecordParts<'_>) {
        let Some(relation) = record.blocks.first().map(|block| block.reference.relation) else {
            return;
        };
        for (index, block) in record.blocks.iter().enumerate() {
            let block = block.reference;
            if block.fork != 0 || block.relation != relation {
                continue;
            }
            let changes = match catalog_of(&self.files, block.relation) {
                Some(table) => {
                    change(record, index, table).map(|change| (table, change)).into_iter().collect()
                }
                None => self.candidates.changes(record, index),
            };
            self.note_changes(record, &block, changes);
        }
    }

    fn note_changes(
        &mut self,
        record: &RecordParts<'_>,
        block: &BlockRef,
        changes: impl IntoIterator<Item = (CatalogTable, Change)>,
    ) {
        self.events.extend(changes.into_iter().map(|(table, change)| Event::Rows {
            file: block.relation,
            table,
            block: block.block,
            xid: record.header.xid,
            end: record.end,
            change,
        }));
    }

    /// Adds what the WAL after this stretch changes.
    pub fn merge(&mut self, mut later: CatalogChanges) {
        self.files.extend(later.files);
        self.candidates.merge(later.candidates);
        later.events.retain(|event| self.candidates.allow(event));
        self.events.extend(later.events);
        self.statuses.merge(later.statuses);
        self.updaters.extend(later.updaters);
        self.recent_xid = self.recent_xid.or(later.recent_xid);
    }

    /// Drops the changes of files that are no candidates any more.
    pub fn shrink(&mut self) {
        let CatalogChanges { events, candidates, .. } = self;
        events.retain(|event| candidates.allow(event));
        events.shrink_to_fit();
    }

    /// Applies it all to a store.
    pub fn apply_to(mut self, store: &mut Store) {
        store.xid_statuses_mut().merge(std::mem::take(&mut self.statuses));
        for event in self.events(store) {
            if let Event::Rows { xid, .. } = event {
                store.xid_statuses_mut().note_seen(xid);
            }
            store.apply(event);
        }
    }

    /// The catalogs moment by moment, on top of what a store knows.
    pub fn history_over(mut self, mut store: Store) -> History {
        for (file, table) in self.moved(&store) {
            self.files.insert(file, table);
            store.put_mapped(file, table);
        }
        let events = self.events(&mut store);
        History::new(store, events)
    }

    /// Catalogs that were written anew before this WAL begins, and after the store knew of them: each is the
    /// only file of its database that has such rows, while those known to be the catalog's do not change.
    fn moved(&self, store: &Store) -> Vec<(RelFileLocator, CatalogTable)> {
        let (mut files, layout) = (self.files.clone(), store.layout());
        for event in &self.events {
            note_catalog_files(&mut files, event, layout);
        }
        let mut known: HashSet<(CatalogTable, u32)> = HashSet::new();
        let mut proven: BTreeMap<(CatalogTable, u32), BTreeSet<RelFileLocator>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| self.candidates.allow(event)) {
            let Event::Rows { file, table, end, change, .. } = event else { continue };
            let catalog = (*table, file.database);
            match catalog_of(&files, *file) {
                Some(_) => _ = known.insert(catalog),
                None if store.has_map_of(file.database, *end) => {}
                None if IDENTIFIED.contains(table) && proves(change, *table, layout) => {
                    proven.entry(catalog).or_default().insert(*file);
                }
                None => {}
            }
        }
        let unknown = proven.into_iter().filter(|(catalog, _)| !known.contains(catalog));
        let only = unknown.filter(|(_, files)| files.len() == 1);
        only.flat_map(|((table, _), files)| files.into_iter().map(move |file| (file, table)))
            .collect()
    }

    /// The changes of those files that are catalogs, in WAL order. What they need besides goes to the store.
    fn events(mut self, store: &mut Store) -> Vec<Event> {
        // A file that turns out to be none of a catalog was never one: what it had before that was seen
        // depends on where a stretch began.
        let CatalogChanges { events, candidates, .. } = &mut self;
        events.retain(|event| candidates.allow(event));
        let seen = self.recent_xid.or_else(|| self.events.iter().find_map(Event::xid));
        seen.into_iter().for_each(|xid| store.note_recent_xid(xid));
        for (multixact, updater) in self.updaters {
            store.note_multixact(multixact, updater);
        }
        for event in &self.events {
            note_catalog_files(&mut self.files, event, store.layout());
        }
        let files = &self.files;
        self.events.retain(|event| match event {
            Event::Rows { file, table, .. } => catalog_of(files, *file) == Some(*table),
            Event::Map { .. } | Event::Copied { .. } => true,
        });
        self.events
    }
}

/// Whether records of a resource manager teach without a block of a catalog.
#[inline]
pub fn teaches_itself(rmgr: u8) -> bool {
    matches!(rmgr, rmgr::TRANSACTION | rmgr::DATABASE | rmgr::MULTIXACT | rmgr::RELMAP)
}

/// Which catalog a file is.
fn catalog_of(files: &Files, file: RelFileLocator) -> Option<CatalogTable> {
    files.get(&file).copied().or_else(|| CatalogTable::of_original_file(file))
}

/// Notes the files that an event shows to be catalogs.
fn note_catalog_files(files: &mut Files, event: &Event, layout: &CatalogLayout) {
    match event {
        Event::Map { database, tablespace, files: mappings, .. } => {
            for (oid, relfilenode) in mappings {
                let (database, tablespace, relfilenode) = (*database, *tablespace, *relfilenode);
                if let Some(table) = CatalogTable::of_oid(*oid) {
                    files.insert(RelFileLocator { tablespace, database, relfilenode }, table);
                }
            }
        }
        // The catalogs of a copy have files of the same numbers.
        Event::Copied { from, to } => {
            let of_original = |file: &RelFileLocator| (file.database, file.tablespace) == *from;
            let originals = files.iter().filter(|(file, _)| of_original(file));
            let (database, tablespace) = *to;
            let copy = |file: &RelFileLocator| RelFileLocator { database, tablespace, ..*file };
            let copies: Vec<_> = originals.map(|(file, table)| (copy(file), *table)).collect();
            files.extend(copies);
        }
        // A catalog's row names its file: so does that of its new version, which is a relation of its own
        // until the rewrite is done. (A mapped one's row has no file: the map says it.)
        Event::Rows { file, table: CatalogTable::Class, change, .. }
            if catalog_of(files, *file) == Some(CatalogTable::Class) =>
        {
            let (Change::Page(rows) | Change::Insert(rows)) = change else { return };
            let found: Vec<_> =
                rows.iter().filter_map(|(_, row)| catalog_file(row, *file, layout)).collect();
            files.extend(found);
        }
        Event::Rows { .. } => {}
    }
}

/// The file of a catalog, or that of its new version, by a row of `pg_class`.
fn catalog_file(
    row: &RowVersion,
    class_file: RelFileLocator,
    layout: &CatalogLayout,
) -> Option<(RelFileLocator, CatalogTable)> {
    let Some(Row::Class(class)) = decode(CatalogTable::Class, row, layout) else { return None };
    let table = CatalogTable::of_oid(class.rewrites(layout).unwrap_or(class.oid))?;
    let relfilenode = Some(class.relfilenode).filter(|file| *file != 0)?;
    Some((RelFileLocator { relfilenode, ..class_file }, table))
}
