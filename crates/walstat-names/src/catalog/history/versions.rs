//! The rows of one catalog of one database, and which of them counts at a moment.

use crate::catalog::row::{HintedStatus, Row, RowVersion, decode};
use crate::catalog::store::Store;
use crate::catalog::xid_status::XidStatus;
use std::collections::HashMap;
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

/// All versions of the rows of a catalog, those too that pages have no more.
pub(super) struct Versions {
    rows: Vec<(RelFileLocator, RowVersion)>,
    by_oid: HashMap<u32, Vec<usize>>,
    by_file: HashMap<RelFileLocator, Vec<usize>>,
}

/// How much a row counts: the most, last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// The transactions that ended have ended it.
    EndedNow,
    /// It is there, in a file that the catalog has left.
    Left,
    /// It is there.
    There,
}

impl Versions {
    pub(super) fn of(store: &Store, table: CatalogTable, database: u32) -> Versions {
        let mut versions =
            Versions { rows: Vec::new(), by_oid: HashMap::new(), by_file: HashMap::new() };
        let heaps = store.heaps.iter();
        for (file, heap) in heaps.filter(|(file, h)| (h.table, file.database) == (table, database))
        {
            for kept in heap.versions().chain(heap.past_versions()) {
                versions.add(store, table, *file, &kept.row);
            }
        }
        let gone = store.gone.iter();
        for (subject, (tablespace, kept)) in gone {
            if (subject.table, subject.database) == (table, database) {
                let file = RelFileLocator { tablespace: *tablespace, database, relfilenode: 0 };
                versions.add(store, table, file, &kept.row);
            }
        }
        versions
    }

    fn add(&mut self, store: &Store, table: CatalogTable, heap: RelFileLocator, row: &RowVersion) {
        let Some(decoded) = decode(table, row, store.layout()) else { return };
        let place = self.rows.len();
        self.by_oid.entry(decoded.oid()).or_default().push(place);
        if let Row::Class(class) = decoded
            && let Some(file) = class.file(heap)
        {
            self.by_file.entry(file).or_default().push(place);
        }
        self.rows.push((heap, row.clone()));
    }

    pub(super) fn of_oid(&self, oid: u32) -> &[usize] {
        self.by_oid.get(&oid).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn of_file(&self, file: RelFileLocator) -> &[usize] {
        self.by_file.get(&file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Of these rows the one that counts; of several the newest. `open`: whether a transaction is known to
    /// go on.
    pub(super) fn best(
        &self,
        places: &[usize],
        current: RelFileLocator,
        moment: &Moment,
        store: &Store,
        open: &dyn Fn(u32) -> bool,
    ) -> Option<&RowVersion> {
        let rows = places.iter().filter_map(|place| self.rows.get(*place));
        let counting = rows.filter_map(|(heap, row)| {
            let standing = moment.standing(row, *heap == current, store, open)?;
            Some(((standing, moment.age(row.xmin)), row))
        });
        counting.max_by_key(|(rank, _)| *rank).map(|(_, row)| row)
    }
}

impl Moment {
    /// How much a row counts; `None`: it does not.
    fn standing(
        &self,
        row: &RowVersion,
        is_current: bool,
        store: &Store,
        open: &dyn Fn(u32) -> bool,
    ) -> Option<Standing> {
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
        let there = if is_current { Standing::There } else { Standing::Left };
        let Some(deleted) = store.version_status(row).deleted else { return Some(there) };
        if self.own.contains(&row.xmax) {
            return Some(Standing::EndedNow);
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
