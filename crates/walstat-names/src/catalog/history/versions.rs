//! Where the rows of one catalog of one database lie, and which of them counts at a moment. Rows are found by
//! what they are about; what changes adds places, so that each change costs what it changes and no more.

use super::Place;
use crate::catalog::row::{HintedStatus, Row, RowVersion, decode};
use crate::catalog::store::Store;
use crate::catalog::xid_status::XidStatus;
use std::collections::{BTreeSet, HashMap};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::data_page::heap_tuple::infomask;
use walstat_format::record_header::FIRST_NORMAL_XID;

/// A moment: when transactions ended that are of interest.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    /// These transactions: what they made and ended they have seen.
    pub own: Box<[u32]>,
    /// The newest xid that has been given out.
    pub newest_xid: Option<u32>,
}

/// Where the versions of the rows of a catalog of one database lie, or once lay.
#[derive(Default)]
pub(super) struct Versions {
    by_oid: HashMap<u32, BTreeSet<Place>>,
    /// Relations that had a file.
    owners: HashMap<RelFileLocator, BTreeSet<u32>>,
}

/// What a row is asked for by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Oid(u32),
    File(RelFileLocator),
}

/// How much a row counts: the most, last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowRank {
    /// The transactions that ended have ended it.
    EndedNow,
    /// It is there, in a file that the catalog has left.
    Left,
    /// It is there.
    There,
}

impl Versions {
    pub(super) fn of(store: &Store, table: CatalogTable, database: u32) -> Versions {
        let mut versions = Versions::default();
        let heaps = store.heaps.iter();
        for (file, heap) in heaps.filter(|(file, h)| (h.table, file.database) == (table, database))
        {
            for (block, kept) in heap.placed() {
                versions.note(store, Place { file: *file, table, block, offset: kept.offset });
            }
        }
        for (subject, (tablespace, kept)) in &store.gone {
            if (subject.table, subject.database) == (table, database) {
                versions.note_owner(store, table, gone_heap(*tablespace, database), &kept.row);
            }
        }
        versions
    }

    /// Takes note of a place that has a row now.
    pub(super) fn note(&mut self, store: &Store, place: Place) {
        let Some(heap) = store.heaps.get(&place.file) else { return };
        for kept in heap.at(place.block, place.offset) {
            if let Some(oid) = self.note_owner(store, place.table, place.file, &kept.row) {
                self.by_oid.entry(oid).or_default().insert(place);
            }
        }
    }

    /// Takes note of the file that a row names; what the row is about.
    fn note_owner(
        &mut self,
        store: &Store,
        table: CatalogTable,
        heap: RelFileLocator,
        row: &RowVersion,
    ) -> Option<u32> {
        let decoded = decode(table, row, store.layout())?;
        if let Row::Class(class) = decoded
            && let Some(file) = class.file(heap)
        {
            self.owners.entry(file).or_default().insert(class.oid);
        }
        Some(decoded.oid())
    }

    /// All versions of a row that there are, those too that pages have no more; with their files.
    fn rows<'v>(
        &'v self,
        store: &'v Store,
        (table, database): (CatalogTable, u32),
        oid: u32,
    ) -> impl Iterator<Item = (RelFileLocator, &'v RowVersion)> {
        let places = self.by_oid.get(&oid).into_iter().flatten();
        let there = places.flat_map(|place| {
            let rows = store.heaps.get(&place.file).into_iter();
            rows.flat_map(|heap| heap.at(place.block, place.offset))
                .map(|kept| (place.file, &kept.row))
        });
        let gone = store.gone_of(table, database, oid);
        let gone = gone.map(move |(tablespace, row)| (gone_heap(tablespace, database), row));
        // Another row may have taken the place.
        there.chain(gone).filter(move |(_, row)| {
            decode(table, row, store.layout()).is_some_and(|decoded| decoded.oid() == oid)
        })
    }

    /// Of the rows that are asked for the one that counts; of several the newest. `open`: whether a
    /// transaction is known to go on.
    pub(super) fn best<'v>(
        &'v self,
        of: (CatalogTable, u32),
        wanted: Wanted,
        current: RelFileLocator,
        moment: &Moment,
        store: &'v Store,
        open: &dyn Fn(u32) -> bool,
    ) -> Option<&'v RowVersion> {
        let (oids, file): (Vec<u32>, _) = match wanted {
            Wanted::Oid(oid) => (vec![oid], None),
            Wanted::File(file) => {
                (self.owners.get(&file).into_iter().flatten().copied().collect(), Some(file))
            }
        };
        let rows = oids.into_iter().flat_map(|oid| self.rows(store, of, oid));
        let rows = rows.filter(|(heap, row)| {
            file.is_none_or(|file| match decode(of.0, row, store.layout()) {
                Some(Row::Class(class)) => class.file(*heap) == Some(file),
                _ => false,
            })
        });
        let counting = rows.filter_map(|(heap, row)| {
            let standing = moment.standing(row, heap == current, store, open)?;
            Some(((standing, moment.age(row.xmin)), row))
        });
        counting.max_by_key(|(rank, _)| *rank).map(|(_, row)| row)
    }
}

/// The file of a row that its page has no more is not known.
fn gone_heap(tablespace: u32, database: u32) -> RelFileLocator {
    RelFileLocator { tablespace, database, relfilenode: 0 }
}

impl Moment {
    /// How much a row counts; `None`: it does not.
    fn standing(
        &self,
        row: &RowVersion,
        is_current: bool,
        store: &Store,
        open: &dyn Fn(u32) -> bool,
    ) -> Option<RowRank> {
        let is_frozen = row.infomask & infomask::XMIN_FROZEN == infomask::XMIN_FROZEN;
        let was_made = self.own.contains(&row.xmin)
            || match row.inserter() {
                HintedStatus::Aborted => false,
                _ if is_frozen => true,
                _ if self.is_future(row.xmin) || open(row.xmin) => false,
                _ => store.version_status(row).inserted != XidStatus::Aborted,
            };
        if !was_made {
            return None;
        }
        let there = if is_current { RowRank::There } else { RowRank::Left };
        let Some(deleted) = store.version_status(row).deleted else { return Some(there) };
        if self.own.contains(&row.xmax) {
            return Some(RowRank::EndedNow);
        }
        let is_over = deleted == XidStatus::Committed && !self.is_future(row.xmax);
        (!is_over).then_some(there)
    }

    /// Whether an xid had not been given out at the moment.
    fn is_future(&self, xid: u32) -> bool {
        self.newest_xid.is_some_and(|newest| xid >= FIRST_NORMAL_XID && is_after(xid, newest))
    }

    /// Larger is later.
    fn age(&self, xid: u32) -> i32 {
        match self.newest_xid {
            Some(newest) if xid >= FIRST_NORMAL_XID => xid.wrapping_sub(newest).cast_signed(),
            _ => i32::MIN,
        }
    }
}

fn is_after(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() > 0
}
