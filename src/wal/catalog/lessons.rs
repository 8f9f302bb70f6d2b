//! What the WAL teaches about names: gathered record by record, put together in WAL order, and
//! applied to a store at the end.
//!
//! Catalogs are known by their files. One that is rewritten (`VACUUM FULL pg_class`) has another
//! file from then on; which one is learnt from the rewrite itself. A stretch of WAL may not have
//! it: so what files that could be catalogs go through is kept, and chosen from at the end. Nothing
//! here depends on how the WAL was divided into stretches.

use super::CatalogTable;
use super::event::{Change, Event, RecordParts, change};
use super::fate::{Fate, Fates};
use super::layout::CatalogLayout;
use super::row::{Row, RowVersion, decode};
use super::store::Store;
use super::stranger::Strangers;
use crate::wal::block::{BlockRef, RelFileLocator};
use crate::wal::payload::dbase::DatabaseChange;
use crate::wal::payload::{multixact, relmap, xact};
use crate::wal::rmgr;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Files of catalogs, beside the original ones.
type Files = HashMap<RelFileLocator, CatalogTable>;

/// What a stretch of WAL teaches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lessons {
    /// Files of catalogs that were known before, beside the original ones.
    files: Files,
    /// Files that may be catalogs.
    strangers: Strangers,
    events: Vec<Event>,
    fates: Fates,
    updaters: Vec<(u32, Option<u32>)>,
    recent_xid: Option<u32>,
}

impl Lessons {
    /// Begins with the catalogs' files that a store knows.
    pub fn over(store: &Store) -> Lessons {
        Lessons { files: store.catalog_files().collect(), ..Lessons::default() }
    }

    /// Whether a file is a catalog's, or may be. A record that has none, and is of none of the other
    /// kinds, teaches nothing: its images need not be restored.
    pub fn may_be_catalog(&self, file: RelFileLocator) -> bool {
        catalog_of(&self.files, file).is_some() || self.strangers.can_be_catalog(file)
    }

    /// Takes note of the end of a transaction without subtransactions.
    pub fn ended(&mut self, xid: u32, commits: bool) {
        self.recent_xid.get_or_insert(xid);
        self.fates.note(xid, if commits { Fate::Committed } else { Fate::Aborted });
    }

    /// Takes note of a record.
    pub fn observe(&mut self, record: &RecordParts<'_>) {
        let xid = record.header.xid;
        if xid != 0 && self.recent_xid.is_none() {
            self.recent_xid = Some(xid);
        }
        match record.header.rmgr {
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
        let fate = if end.commits { Fate::Committed } else { Fate::Aborted };
        for xid in end.subxids.iter().chain([end.prepared_xid.unwrap_or(xid)]) {
            self.fates.note(xid, fate);
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
        if record.header.info & 0xF0 != multixact::CREATE_ID {
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

    fn blocks(&mut self, record: &RecordParts<'_>) {
        for (index, block) in record.blocks.iter().enumerate() {
            let block = block.reference;
            if block.fork != 0 {
                continue;
            }
            let changes = match catalog_of(&self.files, block.relation) {
                Some(table) => {
                    change(record, index, table).map(|change| (table, change)).into_iter().collect()
                }
                None => self.strangers.changes(record, index),
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

    /// Adds what the WAL after this stretch teaches.
    pub fn merge(&mut self, mut later: Lessons) {
        self.files.extend(later.files);
        self.strangers.merge(later.strangers);
        later.events.retain(|event| self.strangers.allow(event));
        self.events.extend(later.events);
        self.fates.merge(later.fates);
        self.updaters.extend(later.updaters);
        self.recent_xid = self.recent_xid.or(later.recent_xid);
    }

    /// Keeps nothing of files that are none of catalogs.
    pub fn shrink(&mut self) {
        let Lessons { events, strangers, .. } = self;
        events.retain(|event| strangers.allow(event));
        events.shrink_to_fit();
    }

    /// Applies it all to a store.
    pub fn teach(mut self, store: &mut Store) {
        if let Some(xid) = self.recent_xid {
            store.note_recent_xid(xid);
        }
        store.fates_mut().merge(self.fates);
        for (multixact, updater) in self.updaters {
            store.note_multixact(multixact, updater);
        }
        for event in &self.events {
            learn_files(&mut self.files, event, store.layout());
        }
        for event in self.events {
            if let Event::Rows { file, table, xid, .. } = event {
                if catalog_of(&self.files, file) != Some(table) {
                    continue;
                }
                store.fates_mut().note_seen(xid);
            }
            store.apply(event);
        }
    }
}

/// Which catalog a file is.
fn catalog_of(files: &Files, file: RelFileLocator) -> Option<CatalogTable> {
    files.get(&file).copied().or_else(|| CatalogTable::of_original_file(file))
}

/// Which files an event shows to be catalogs.
fn learn_files(files: &mut Files, event: &Event, layout: &CatalogLayout) {
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
        // A catalog's new version is a relation of its own until the rewrite is done, and has its
        // file then already. (A mapped one's row has no file: the map says it.)
        Event::Rows { file, table: CatalogTable::Class, change, .. }
            if catalog_of(files, *file) == Some(CatalogTable::Class) =>
        {
            let (Change::Page(rows) | Change::Insert(rows)) = change else { return };
            let found: Vec<_> =
                rows.iter().filter_map(|(_, row)| rewritten(row, *file, layout)).collect();
            files.extend(found);
        }
        Event::Rows { .. } => {}
    }
}

/// The new file of a catalog that is rewritten.
fn rewritten(
    row: &RowVersion,
    class_file: RelFileLocator,
    layout: &CatalogLayout,
) -> Option<(RelFileLocator, CatalogTable)> {
    let Some(Row::Class(class)) = decode(CatalogTable::Class, row, layout) else { return None };
    let table = class.rewrites(layout).and_then(CatalogTable::of_oid)?;
    let relfilenode = Some(class.relfilenode).filter(|file| *file != 0)?;
    Some((RelFileLocator { relfilenode, ..class_file }, table))
}
