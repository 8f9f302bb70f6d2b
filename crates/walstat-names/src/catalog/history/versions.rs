//! Where the rows of one catalog of one database lie, and which of them counts at a moment. Rows are found by
//! what they are about and by who made them; what changes moves places, so that each change costs what it
//! changes and no more.

use super::Place;
use super::by_xmin::ByXmin;
use super::moment::{Moment, RowRank};
use crate::catalog::row::{Row, RowVersion, decode};
use crate::catalog::store::{NowGone, Store, Subject};
use std::collections::{BTreeSet, HashMap};
use walstat_format::block::RelFileLocator;
use walstat_format::catalog_layout::CatalogTable;

/// Where the versions of the rows of a catalog of one database lie, or once lay.
#[derive(Default)]
pub(super) struct Versions {
    by_oid: HashMap<u32, OfOid>,
    /// Relations that had a file.
    owners: HashMap<RelFileLocator, BTreeSet<u32>>,
}

/// The versions of one row.
#[derive(Default)]
struct OfOid {
    there: ByXmin<Place>,
    /// Those that pages have no more, by what tells them apart in the store.
    gone: ByXmin<u32>,
}

/// What a row is asked for by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Oid(u32),
    File(RelFileLocator),
}

/// What is asked for, and when. `open`: whether a transaction is known to go on.
pub(super) struct Search<'s> {
    pub table: CatalogTable,
    pub database: u32,
    pub wanted: Wanted,
    /// The file that the catalog has now.
    pub current: RelFileLocator,
    pub moment: &'s Moment,
    pub store: &'s Store,
    pub open: &'s dyn Fn(u32) -> bool,
}

/// A row that counts, and how much: by its rank, and of equal ones the newest.
type Counting<'s> = ((RowRank, i32), &'s RowVersion);

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
        for subject in store.gone.keys() {
            if (subject.table, subject.database) == (table, database) {
                versions.note_gone(store, &NowGone { subject: *subject, replaced: None });
            }
        }
        versions
    }

    /// Takes note of a place that has a row now.
    pub(super) fn note(&mut self, store: &Store, place: Place) {
        let Some(heap) = store.heaps.get(&place.file) else { return };
        for kept in heap.at(place.block, place.offset) {
            if let Some(oid) = self.note_owner(store, place.table, place.file, &kept.row) {
                let there = &mut self.by_oid.entry(oid).or_default().there;
                there.insert(kept.row.xmin, kept.row.is_frozen(), place);
            }
        }
    }

    /// Forgets a place at which something changes.
    pub(super) fn forget(&mut self, store: &Store, place: Place) {
        let Some(heap) = store.heaps.get(&place.file) else { return };
        for kept in heap.at(place.block, place.offset) {
            let decoded = decode(place.table, &kept.row, store.layout());
            if let Some(versions) = decoded.and_then(|row| self.by_oid.get_mut(&row.oid())) {
                versions.there.remove(kept.row.xmin, place);
            }
        }
    }

    /// Takes note of a version that its page has no more.
    pub(super) fn note_gone(&mut self, store: &Store, NowGone { subject, replaced }: &NowGone) {
        let Some((tablespace, row)) = store.gone_of(subject) else { return };
        self.note_owner(store, subject.table, gone_heap(tablespace, subject.database), row);
        let gone = &mut self.by_oid.entry(subject.oid).or_default().gone;
        if let Some(xmin) = replaced {
            gone.remove(*xmin, subject.second);
        }
        gone.insert(row.xmin, row.is_frozen(), subject.second);
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

    /// Of the rows that are asked for the one that counts; of several the newest.
    pub(super) fn best<'s>(&self, search: &Search<'s>) -> Option<&'s RowVersion> {
        let best = match search.wanted {
            Wanted::Oid(oid) => self.best_of(oid, search),
            Wanted::File(file) => {
                let owners = self.owners.get(&file).into_iter().flatten();
                let best = owners.filter_map(|oid| self.best_of(*oid, search));
                best.max_by_key(|(rank, _)| *rank)
            }
        };
        best.map(|(_, row)| row)
    }

    /// The same of the versions of one row.
    fn best_of<'s>(&self, oid: u32, search: &Search<'s>) -> Option<Counting<'s>> {
        let versions = self.by_oid.get(&oid)?;
        let store = search.store;
        let there = search.best_among(&versions.there, oid, RowRank::There, |place: Place| {
            let heap = store.heaps.get(&place.file).into_iter();
            heap.flat_map(move |heap| heap.at(place.block, place.offset))
                .map(move |kept| (place.file, &kept.row))
        });
        if there.is_some_and(|((rank, _), _)| rank == RowRank::There) {
            return there;
        }
        let (table, database) = (search.table, search.database);
        // The file of a version that its page has no more is not known, so it counts as one that was left.
        let gone = search.best_among(&versions.gone, oid, RowRank::Left, |second| {
            let gone = store.gone_of(&Subject { database, table, oid, second });
            gone.into_iter().map(move |(tablespace, row)| (gone_heap(tablespace, database), row))
        });
        there.into_iter().chain(gone).max_by_key(|(rank, _)| *rank)
    }
}

fn gone_heap(tablespace: u32, database: u32) -> RelFileLocator {
    RelFileLocator { tablespace, database, relfilenode: 0 }
}

impl<'s> Search<'s> {
    /// Of versions of one row the one that counts. None of them counts for more than `most`: so where a
    /// version does for that much, those made before it need not be looked at.
    fn best_among<P: Copy + Ord, R: Iterator<Item = (RelFileLocator, &'s RowVersion)>>(
        &self,
        versions: &ByXmin<P>,
        oid: u32,
        most: RowRank,
        rows: impl Fn(P) -> R,
    ) -> Option<Counting<'s>> {
        let best_at = |(xmin, place): (u32, P)| {
            let rows = rows(place).filter(|(_, row)| row.xmin == xmin);
            rows.filter_map(|(heap, row)| self.counting(oid, heap, row)).max_by_key(|it| it.0)
        };
        let Moment { own, newest_xid } = self.moment;
        // Their own rows they see in any case.
        let own = own.iter().filter(|xid| self.moment.is_future(**xid));
        let others = own.flat_map(|xid| versions.made_by(*xid)).chain(versions.frozen());
        let mut best = others.filter_map(best_at).max_by_key(|(rank, _)| *rank);
        let mut last = None;
        for (xmin, place) in versions.until(*newest_xid) {
            if last.is_some_and(|last| last != xmin) {
                break;
            }
            let Some(found) = best_at((xmin, place)) else { continue };
            if best.is_none_or(|(rank, _)| rank < found.0) {
                best = Some(found);
            }
            if found.0.0 == most {
                last = newest_xid.map(|_| xmin);
            }
        }
        best
    }

    /// A row, if it is the one that is asked for and counts.
    fn counting(
        &self,
        oid: u32,
        heap: RelFileLocator,
        row: &'s RowVersion,
    ) -> Option<Counting<'s>> {
        // Another row may have taken the place.
        let decoded =
            decode(self.table, row, self.store.layout()).filter(|row| row.oid() == oid)?;
        if let Wanted::File(file) = self.wanted {
            match decoded {
                Row::Class(class) if class.file(heap) == Some(file) => {}
                _ => return None,
            }
        }
        let rank = self.moment.rank(row, heap == self.current, self.store, self.open)?;
        Some(((rank, self.moment.age(row.xmin)), row))
    }
}
