//! What the WAL teaches about names: gathered record by record, put together in WAL order, and
//! applied to a store at the end.
//!
//! Catalogs are known by their files. One that is rewritten (`VACUUM FULL pg_class`) has another
//! file from then on; which one is learnt from the rewrite itself, where a run of records has it.

use super::CatalogTable;
use super::event::{BlockParts, Change, Event, RecordParts, change};
use super::fate::{Fate, Fates};
use super::layout::CatalogLayout;
use super::row::{Row, RowVersion, decode};
use super::store::Store;
use crate::wal::block::RelFileLocator;
use crate::wal::payload::dbase::DatabaseChange;
use crate::wal::payload::{heap, multixact, relmap, storage, xact};
use crate::wal::rmgr;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a stretch of WAL teaches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lessons {
    /// Files of catalogs, beside the original ones.
    files: HashMap<RelFileLocator, CatalogTable>,
    /// The file that a running transaction made last.
    created: HashMap<u32, RelFileLocator>,
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

    /// Which catalog a file is. A record that has none, and is of none of the other kinds, teaches
    /// nothing: its images need not be restored.
    pub fn catalog_of(&self, file: RelFileLocator) -> Option<CatalogTable> {
        self.files.get(&file).copied().or_else(|| CatalogTable::of_original_file(file))
    }

    /// Takes note of a record.
    pub fn observe(&mut self, record: &RecordParts<'_>) {
        let xid = record.header.xid;
        if xid != 0 && self.recent_xid.is_none() {
            self.recent_xid = Some(xid);
        }
        match record.header.rmgr {
            rmgr::TRANSACTION => self.transaction(record),
            rmgr::STORAGE => self.storage(record),
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
            self.created.remove(&xid);
        }
    }

    fn storage(&mut self, record: &RecordParts<'_>) {
        let create = storage::Create::parse(record.main_data)
            .filter(|_| record.header.info & 0xF0 == storage::CREATE);
        if let Some(create) = create.filter(|create| create.fork == 0) {
            self.created.insert(record.header.xid, create.relation);
        }
    }

    fn database(&mut self, record: &RecordParts<'_>) {
        let info = record.header.info;
        if let Some(DatabaseChange::Create { database, tablespace, copied_from: Some(from) }) =
            DatabaseChange::parse(info, record.main_data, record.version)
        {
            self.copy_files(from, (database, tablespace));
            self.events.push(Event::Copied { from, to: (database, tablespace) });
        }
    }

    /// The catalogs of a copy have files of the same numbers.
    fn copy_files(&mut self, from: (u32, u32), to: (u32, u32)) {
        let files = self.files.iter().filter(|(file, _)| (file.database, file.tablespace) == from);
        let copies: Vec<_> = files
            .map(|(file, table)| {
                (RelFileLocator { database: to.0, tablespace: to.1, ..*file }, *table)
            })
            .collect();
        self.files.extend(copies);
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
        for (oid, relfilenode) in map.mappings.iter() {
            if let Some(table) = CatalogTable::of_oid(oid) {
                self.files.insert(RelFileLocator { tablespace, database, relfilenode }, table);
            }
        }
        let files = map.mappings.iter().collect();
        self.events.push(Event::Map { database, tablespace, files, end: record.end });
    }

    fn blocks(&mut self, record: &RecordParts<'_>) {
        for (index, block) in record.blocks.iter().enumerate() {
            let BlockParts { reference, .. } = block;
            let table = self.catalog_of(reference.relation).filter(|_| reference.fork == 0);
            let Some(table) = table else { continue };
            let Some(change) = change(record, index, table) else { continue };
            if record.header.xid != 0 {
                self.fates.note(record.header.xid, Fate::Open);
            }
            self.look_for_rewrites(record, reference.relation, table, &change);
            self.events.push(Event::Rows {
                file: reference.relation,
                table,
                block: reference.block,
                end: record.end,
                change,
            });
        }
    }

    /// A catalog's new version is a relation of its own until the rewrite is done, and has its file
    /// then already.
    fn look_for_rewrites(
        &mut self,
        record: &RecordParts<'_>,
        file: RelFileLocator,
        table: CatalogTable,
        change: &Change,
    ) {
        let is_new_row = record.header.rmgr == rmgr::HEAP
            && record.header.info & heap::OPCODE_MASK == heap::INSERT;
        if table != CatalogTable::Class || !is_new_row {
            return;
        }
        let (Change::Page(rows) | Change::Insert(rows)) = change else { return };
        for (_, row) in rows.iter().filter(|(_, row)| row.xmin == record.header.xid) {
            self.rewrite(row, file, record.version.catalog);
        }
    }

    fn rewrite(&mut self, row: &RowVersion, file: RelFileLocator, layout: &CatalogLayout) {
        let Some(Row::Class(class)) = decode(CatalogTable::Class, row, layout) else { return };
        let rewritten = class.rewrites(layout).and_then(CatalogTable::of_oid);
        let Some(table) = rewritten else { return };
        // A mapped catalog's row does not say its file; but it was made right before.
        let new = match class.relfilenode {
            0 => self.created.get(&row.xmin).copied(),
            relfilenode => Some(RelFileLocator { relfilenode, ..file }),
        };
        if let Some(new) = new {
            self.files.insert(new, table);
        }
    }

    /// Adds what the WAL after this stretch teaches.
    pub fn merge(&mut self, later: Lessons) {
        self.files.extend(later.files);
        self.created.extend(later.created);
        self.events.extend(later.events);
        self.fates.merge(later.fates);
        self.updaters.extend(later.updaters);
        self.recent_xid = self.recent_xid.or(later.recent_xid);
    }

    /// Applies it all to a store.
    pub fn teach(self, store: &mut Store) {
        if let Some(xid) = self.recent_xid {
            store.note_recent_xid(xid);
        }
        store.fates_mut().merge(self.fates);
        for (multixact, updater) in self.updaters {
            store.note_multixact(multixact, updater);
        }
        for event in self.events {
            store.apply(event);
        }
    }
}
