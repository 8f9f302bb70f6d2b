//! The versions of catalog rows, by their place in the catalogs' files: what a data directory has,
//! and what the WAL changes in it.
//!
//! A page knows the end of the last record that changed it, as in the files; a record that ends
//! before that is in the page already. So records can be applied over a data directory whether it
//! is older or newer than they are, and the result is what recovery would make of it.

mod maps;

use super::event::{Change, Event, RowEnd};
use super::row::{HintedStatus, Row, RowVersion, Source, decode};
use super::xid_status::{XidStatus, XidStatuses};
use maps::FileMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use walstat_format::block::RelFileLocator;
use walstat_format::by_key;
use walstat_format::catalog_layout::CatalogLayout;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::data_page::heap_tuple::infomask;
use walstat_format::lsn::Lsn;
use walstat_format::payload::heap::infobits;
use walstat_format::version::Version;

/// A version of a row at its place in a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlacedRow {
    pub offset: u16,
    pub source: Source,
    /// Whether the WAL read shows how it ended.
    pub ended_in_wal: bool,
    /// Whether its transaction inserted it, and did not update a row that was there before.
    pub is_inserted: bool,
    pub row: RowVersion,
}

impl PlacedRow {
    fn new(offset: u16, source: Source, row: RowVersion) -> PlacedRow {
        let is_inserted = !row.is_update();
        PlacedRow { offset, source, ended_in_wal: false, is_inserted, row }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Page {
    lsn: Lsn,
    rows: Vec<PlacedRow>,
}

/// A file of a catalog.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Heap {
    pub table: CatalogTable,
    /// Whether every page of it is known: what is not there does not exist.
    pub is_whole: bool,
    pages: BTreeMap<u32, Page>,
    /// What WAL says that is older than the pages: it still tells which files relations had.
    past: BTreeMap<u32, Page>,
}

impl Heap {
    fn new(table: CatalogTable) -> Heap {
        Heap { table, is_whole: false, pages: BTreeMap::new(), past: BTreeMap::new() }
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = &PlacedRow> {
        self.pages.values().flat_map(|page| &page.rows)
    }

    /// The rows at a place of which the WAL at hand says, then those of the data directory.
    pub(super) fn at(&self, block: u32, offset: u16) -> impl Iterator<Item = &PlacedRow> {
        let pages = self.past.get(&block).into_iter().chain(self.pages.get(&block));
        pages.flat_map(|page| &page.rows).filter(move |kept| kept.offset == offset)
    }

    /// The line pointers of a page that have rows.
    pub(super) fn offsets(&self, block: u32) -> impl Iterator<Item = u16> {
        let pages = self.past.get(&block).into_iter().chain(self.pages.get(&block));
        pages.flat_map(|page| &page.rows).map(|kept| kept.offset)
    }

    /// All rows, with their blocks.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u32, &PlacedRow)> {
        let pages = self.past.iter().chain(&self.pages);
        pages.flat_map(|(block, page)| page.rows.iter().map(|kept| (*block, kept)))
    }

    pub(super) fn past_versions(&self) -> impl Iterator<Item = &PlacedRow> {
        self.past.values().flat_map(|page| &page.rows)
    }
}

/// What a version that is gone was about: the catalog's database, the catalog, the oid, and what tells
/// versions of the same oid apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Subject {
    pub database: u32,
    pub table: CatalogTable,
    pub oid: u32,
    /// The file of a relation, the parent of a child, else 0.
    pub second: u32,
}

/// A version that is among those that are gone now.
#[derive(Debug, Clone, Copy)]
pub(super) struct NowGone {
    pub subject: Subject,
    /// Who made the one of the same subject that it took the place of.
    pub replaced: Option<u32>,
}

/// So many rows that are gone are kept where WAL is followed for days.
const GONE_MAX: usize = 50_000;

/// The versions of catalog rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Store {
    pub(super) version: &'static Version,
    pub(super) heaps: BTreeMap<RelFileLocator, Heap>,
    pub(super) maps: BTreeMap<u32, FileMap>,
    pub(super) statuses: XidStatuses,
    /// The updating member of multixacts, 0 if they only lock.
    #[serde(serialize_with = "by_key::map")]
    pub(super) updaters: HashMap<u32, u32>,
    /// Versions that pages have no more: the newest of each subject, with the tablespace of the
    /// catalog that it was in.
    pub(super) gone: BTreeMap<Subject, (u32, PlacedRow)>,
    /// A recent xid, from which others are counted.
    pub(super) recent_xid: Option<u32>,
    /// Up to here the maps of the data directory know of all records.
    base: Lsn,
}

/// What is known of both of a version's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionStatus {
    pub inserted: XidStatus,
    /// `None`: nobody deleted it.
    pub deleted: Option<XidStatus>,
}

impl Store {
    /// An empty store for the catalogs of this release.
    pub fn new(version: &'static Version) -> Store {
        Store {
            version,
            heaps: BTreeMap::new(),
            maps: BTreeMap::new(),
            statuses: XidStatuses::default(),
            updaters: HashMap::new(),
            gone: BTreeMap::new(),
            recent_xid: None,
            base: Lsn(0),
        }
    }

    /// Says that the maps that are put in are those of a data directory that knows of all records
    /// up to `redo`, whose next xid was this one then.
    pub fn set_base(&mut self, redo: Lsn, next_xid: u32) {
        (self.base, self.recent_xid) = (redo, Some(next_xid));
    }

    /// The last place in the WAL of which the pages and maps that were put in know.
    pub fn known_up_to(&self) -> Lsn {
        let pages = self.heaps.values().flat_map(|heap| heap.pages.values());
        pages.map(|page| page.lsn).fold(self.base, Lsn::max)
    }

    /// Takes note of a recent xid, from which others are counted, if none is known.
    pub(crate) fn note_recent_xid(&mut self, xid: u32) {
        self.recent_xid.get_or_insert(xid);
    }

    /// Where columns lie.
    pub(super) fn layout(&self) -> &'static CatalogLayout {
        self.version.catalog
    }

    /// What became of transactions.
    pub fn xid_statuses_mut(&mut self) -> &mut XidStatuses {
        &mut self.statuses
    }

    /// Takes note of a multixact: the member that updates or deletes, if there is one.
    pub(crate) fn note_multixact(&mut self, multixact: u32, updater: Option<u32>) {
        self.updaters.insert(multixact, updater.unwrap_or_default());
    }

    /// A version that pages have no more, with the tablespace that it was in.
    pub(super) fn gone_of(&self, subject: &Subject) -> Option<(u32, &RowVersion)> {
        self.gone.get(subject).map(|(tablespace, kept)| (*tablespace, &kept.row))
    }

    /// Which catalog a file is, as far as is known.
    pub(crate) fn catalog_files(&self) -> impl Iterator<Item = (RelFileLocator, CatalogTable)> {
        self.heaps.iter().map(|(file, heap)| (*file, heap.table))
    }

    /// Forgets what names do not need: the ends of transactions that no row is of, and, of very many rows
    /// that are gone, all.
    pub fn forget_what_names_do_not_need(&mut self) {
        if self.gone.len() > GONE_MAX {
            self.gone.clear();
        }
        let heaps = self.heaps.values();
        let rows = heaps.flat_map(|heap| heap.versions().chain(heap.past_versions()));
        let rows = rows.chain(self.gone.values().map(|(_, kept)| kept));
        let mut needed = XidStatuses::default();
        for row in rows.map(|kept| &kept.row) {
            for xid in [row.xmin, row.xmax] {
                needed.note(xid, self.statuses.of(xid));
            }
        }
        for updater in self.updaters.values() {
            needed.note(*updater, self.statuses.of(*updater));
        }
        self.statuses = needed;
    }

    /// Puts in a file of a catalog; `is_whole` if all of its pages are or will be put in.
    pub fn put_file(&mut self, file: RelFileLocator, table: CatalogTable, is_whole: bool) {
        self.heaps.entry(file).or_insert_with(|| Heap::new(table)).is_whole = is_whole;
    }

    /// Puts in the rows of a page of a data directory's file.
    pub fn put_page(
        &mut self,
        file: RelFileLocator,
        table: CatalogTable,
        block: u32,
        lsn: Lsn,
        rows: Vec<(u16, RowVersion)>,
    ) {
        let mut page = Page { lsn, rows: Vec::new() };
        for (offset, row) in rows {
            let kept = PlacedRow::new(offset, Source::DataDirectory, row);
            if self.is_dead_for_good(&kept.row) {
                self.keep_gone(file, table, kept);
            } else {
                page.rows.push(kept);
            }
        }
        page.rows.shrink_to_fit();
        let heap = self.heaps.entry(file).or_insert_with(|| Heap::new(table));
        heap.pages.insert(block, page);
    }

    /// Whether nothing can make the version count again.
    fn is_dead_for_good(&self, row: &RowVersion) -> bool {
        let version_status = self.version_status(row);
        version_status.inserted == XidStatus::Aborted
            || version_status.deleted == Some(XidStatus::Committed)
    }

    /// The files that the rows in a file of `pg_class` name for a relation: of those versions that
    /// may count. The original one if there is none.
    pub(crate) fn relfilenodes(&self, class_file: RelFileLocator, oid: u32) -> Vec<u32> {
        let heap = self.heaps.get(&class_file);
        let versions = heap.into_iter().flat_map(Heap::versions);
        let named = versions.filter_map(|kept| {
            match decode(CatalogTable::Class, &kept.row, self.version.catalog) {
                Some(Row::Class(class)) if class.oid == oid => Some(class.relfilenode),
                _ => None,
            }
        });
        let mut files: Vec<u32> = named.filter(|file| *file != 0).collect();
        files.sort_unstable();
        files.dedup();
        if files.is_empty() { vec![oid] } else { files }
    }

    /// What is known of both transactions of a version.
    pub(super) fn version_status(&self, row: &RowVersion) -> VersionStatus {
        let status = |mark| match mark {
            HintedStatus::None => None,
            HintedStatus::Committed => Some(XidStatus::Committed),
            HintedStatus::Aborted => Some(XidStatus::Aborted),
            HintedStatus::LookUp(xid) => Some(self.statuses.of(xid)),
            HintedStatus::LookUpMulti(multixact) => match self.updaters.get(&multixact) {
                None => Some(XidStatus::Unknown),
                Some(0) => None,
                Some(updater) => Some(self.statuses.of(*updater)),
            },
        };
        let inserted = status(row.inserter()).unwrap_or(XidStatus::Unknown);
        VersionStatus { inserted, deleted: status(row.deleter()) }
    }

    /// Who deleted or updated a row, as far as that is known.
    pub(super) fn deleter(&self, row: &RowVersion) -> Option<u32> {
        match row.deleter() {
            HintedStatus::None | HintedStatus::Aborted => None,
            HintedStatus::Committed => Some(row.xmax),
            HintedStatus::LookUp(xid) => Some(xid),
            HintedStatus::LookUpMulti(multixact) => {
                self.updaters.get(&multixact).copied().filter(|updater| *updater != 0)
            }
        }
    }

    /// Applies what the WAL has next; returns the versions that no page has from then on.
    pub(super) fn apply(&mut self, event: Event) -> Vec<NowGone> {
        match event {
            Event::Rows { file, table, block, end, change, .. } => {
                return self.apply_change(file, table, block, end, change);
            }
            Event::Map { database, tablespace, files, end } => {
                if end > self.base {
                    self.put_map(database, tablespace, files);
                } else {
                    self.put_earlier_map(database, tablespace, &files);
                }
            }
            Event::Copied { from, to } => self.copy_database(from, to),
        }
        Vec::new()
    }

    /// A copy has the rows of the original, in files of the same numbers. A data directory that is newer has
    /// them already; so has, of then, a place that a database left and is moved back to.
    fn copy_database(&mut self, from: (u32, u32), to: (u32, u32)) {
        let is_of = |file: &RelFileLocator, (database, tablespace): (u32, u32)| {
            file.database == database && file.tablespace == tablespace
        };
        let moves_now = from.0 == to.0 && self.tablespace_of(from.0) == from.1;
        if !moves_now && self.heaps.keys().any(|file| is_of(file, to)) {
            return;
        }
        let heaps = self.heaps.iter().filter(|(file, _)| is_of(file, from));
        let copies: Vec<_> = heaps
            .map(|(file, heap)| {
                let copy = RelFileLocator { database: to.0, tablespace: to.1, ..*file };
                (copy, heap.clone())
            })
            .collect();
        self.heaps.extend(copies);
        // Each of a database's tablespaces is copied; the map is in its own.
        if let Some(map) = self.maps.get(&from.0).filter(|map| map.tablespace == from.1) {
            let files = map.files.clone();
            self.put_map(to.0, to.1, files);
        }
    }

    fn apply_change(
        &mut self,
        file: RelFileLocator,
        table: CatalogTable,
        block: u32,
        end: Lsn,
        change: Change,
    ) -> Vec<NowGone> {
        let heap = self.heaps.entry(file).or_insert_with(|| Heap::new(table));
        let mut page = heap.pages.entry(block).or_default();
        if page.lsn >= end {
            page = heap.past.entry(block).or_default();
        } else {
            page.lsn = end;
            heap.is_whole &= change != Change::Lost;
        }
        let mut gone = Vec::new();
        page.change(change, self.version.catalog.bytes(table), &mut gone);
        gone.into_iter().filter_map(|kept| self.keep_gone(file, table, kept)).collect()
    }

    /// Keeps a version that its page has no more, for the name and the file that it tells.
    fn keep_gone(
        &mut self,
        file: RelFileLocator,
        table: CatalogTable,
        mut kept: PlacedRow,
    ) -> Option<NowGone> {
        let row = decode(table, &kept.row, self.version.catalog)?;
        let second = match row {
            // Temporary relations write no WAL.
            Row::Class(class) if class.persistence == b't' => return None,
            Row::Class(class) => class.relfilenode,
            Row::Inherits(_, parent, _) => parent,
            _ => 0,
        };
        let subject = Subject { database: file.database, table, oid: row.oid(), second };
        let old = self.gone.get(&subject).map(|(_, old)| old);
        let of_same = old.filter(|old| old.row.xmin == kept.row.xmin);
        kept.is_inserted |= of_same.is_some_and(|old| old.is_inserted);
        let replaced = old.map(|old| old.row.xmin);
        let is_newer = |old: u32| kept.row.xmin.wrapping_sub(old).cast_signed() >= 0;
        replaced.is_none_or(is_newer).then(|| {
            self.gone.insert(subject, (file.tablespace, kept));
            NowGone { subject, replaced }
        })
    }
}

fn kept_from_wal(offset: u16, row: RowVersion) -> PlacedRow {
    PlacedRow::new(offset, Source::Wal, row)
}

impl Page {
    /// Applies a change; versions that it takes out of their place go to `gone`.
    fn change(&mut self, change: Change, kept_bytes: usize, gone: &mut Vec<PlacedRow>) {
        match change {
            Change::Page(rows) => self.replace(rows, gone),
            Change::Lost => gone.append(&mut self.rows),
            Change::Insert(rows) => {
                for (offset, row) in rows {
                    self.insert(kept_from_wal(offset, row), gone);
                }
            }
            Change::Update { old, offset, patch } => {
                let new = self.row(old.offset).and_then(|kept| patch.onto(&kept.row, kept_bytes));
                self.end(old);
                match new {
                    Some(row) => self.insert(kept_from_wal(offset, row), gone),
                    None => self.remove(&[offset], gone),
                }
            }
            Change::End(end) => self.end(end),
            Change::Overwrite(offset, data) => {
                if let Some(kept) = self.row(offset) {
                    kept.row.data = data;
                }
            }
            Change::Gone(offsets) => self.remove(&offsets, gone),
            Change::Freeze(rows) => {
                for (offset, xmax, infomask) in rows {
                    if let Some(kept) = self.row(offset) {
                        (kept.row.xmax, kept.row.infomask) = (xmax, infomask);
                    }
                }
            }
        }
    }

    fn row(&mut self, offset: u16) -> Option<&mut PlacedRow> {
        self.rows.iter_mut().find(|kept| kept.offset == offset)
    }

    fn remove(&mut self, offsets: &[u16], gone: &mut Vec<PlacedRow>) {
        gone.extend(self.rows.extract_if(.., |kept| offsets.contains(&kept.offset)));
    }

    fn insert(&mut self, kept: PlacedRow, gone: &mut Vec<PlacedRow>) {
        self.remove(&[kept.offset], gone);
        self.rows.push(kept);
    }

    /// An image shows what was known already, and perhaps more; what it does not show is gone.
    fn replace(&mut self, rows: Box<[(u16, RowVersion)]>, gone: &mut Vec<PlacedRow>) {
        let mut before = std::mem::take(&mut self.rows);
        for (offset, row) in rows {
            let mut kept = kept_from_wal(offset, row);
            let is_same = |old: &PlacedRow| {
                old.offset == offset
                    && old.row.xmin == kept.row.xmin
                    && old.row.data == kept.row.data
            };
            if let Some(place) = before.iter().position(is_same) {
                let old = before.swap_remove(place);
                (kept.source, kept.ended_in_wal) = (old.source, old.ended_in_wal);
            }
            self.rows.push(kept);
        }
        gone.append(&mut before);
    }

    fn end(&mut self, end: RowEnd) {
        let Some(kept) = self.row(end.offset) else { return };
        let bits = [
            (infobits::XMAX_IS_MULTI, infomask::XMAX_IS_MULTI),
            (infobits::XMAX_LOCK_ONLY, infomask::XMAX_LOCK_ONLY),
            (infobits::XMAX_EXCL_LOCK, infomask::XMAX_EXCL_LOCK),
            (infobits::XMAX_KEYSHR_LOCK, infomask::XMAX_KEYSHR_LOCK),
        ];
        let row = &mut kept.row;
        row.infomask &= !(infomask::XMAX_COMMITTED | infomask::XMAX_INVALID);
        for (bit, mask) in bits {
            row.infomask &= !mask;
            row.infomask |= if end.infobits & bit != 0 { mask } else { 0 };
        }
        row.xmax = end.xmax;
        kept.ended_in_wal = true;
    }
}
