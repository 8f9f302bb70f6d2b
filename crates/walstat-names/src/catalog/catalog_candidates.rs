//! Files that may be a catalog's because a catalog may have been rewritten (`VACUUM FULL pg_class`).
//!
//! A stretch of WAL may begin after the rewrite, and which files are catalogs is only known once
//! all stretches are put together. Until then every file that could hold a catalog's rows is a
//! candidate, and its changes are kept. Nearly every file of another relation stops being one at
//! the first row seen of it.

use super::event::{Change, Event, RecordParts, change};
use super::row::{Row, RowVersion, decode};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;
use walstat_format::by_key;
use walstat_format::catalog_layout::CatalogLayout;
use walstat_format::catalog_layout::{CatalogTable, GLOBAL_TABLESPACE};
use walstat_format::payload::checkpoint::FIRST_NORMAL_OID;
use walstat_format::payload::{heap, heap2};
use walstat_format::rmgr;

/// So many changes in a row without proof, and the file is no candidate any more. Locks and deletes
/// prove nothing, for they carry no row; nor does a row that could be one of `pg_index`, for any two
/// numbers could.
const UNPROVEN_MAX: u16 = 10_000;
/// The most parents that a table inherits from (`inhseqno` counts them; it is 1 for partitions).
const PARENTS_MAX: u32 = 1000;

/// What each file can be.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CatalogCandidates(
    #[serde(serialize_with = "by_key::map")] HashMap<RelFileLocator, Candidate>,
);

/// Which catalogs a file can be: none, once that is known.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Candidate {
    possible: Catalogs,
    unproven: Unproven,
}

/// Changes without a row that hardly anything but a catalog has: at both ends of a stretch of WAL, for the
/// stretch before may end with more of them, and the one after begin.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Unproven {
    /// Before the first such row.
    first: u16,
    /// After the last one; `None`: there was none.
    last: Option<u16>,
}

impl Unproven {
    /// Whether there are too many with one change more.
    fn add(&mut self, is_proof: bool) -> bool {
        if is_proof {
            self.last = Some(0);
            return false;
        }
        let row = self.last.as_mut().unwrap_or(&mut self.first);
        *row = row.saturating_add(1);
        *row > UNPROVEN_MAX
    }

    /// Whether there are too many with those of the stretch after this one.
    fn append(&mut self, later: Unproven) -> bool {
        let row = self.last.as_mut().unwrap_or(&mut self.first);
        *row = row.saturating_add(later.first);
        let is_too_long = *row > UNPROVEN_MAX;
        self.last = later.last.or(self.last);
        is_too_long
    }
}

/// A set of catalogs: a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Catalogs(u8);

impl Catalogs {
    fn bit(table: CatalogTable) -> u8 {
        1 << table as u8
    }

    fn contains(self, table: CatalogTable) -> bool {
        self.0 & Catalogs::bit(table) != 0
    }

    fn retain(&mut self, mut keeps: impl FnMut(CatalogTable) -> bool) {
        for table in CatalogTable::ALL {
            if self.contains(table) && !keeps(table) {
                self.0 &= !Catalogs::bit(table);
            }
        }
    }
}

impl FromIterator<CatalogTable> for Catalogs {
    fn from_iter<I: IntoIterator<Item = CatalogTable>>(tables: I) -> Catalogs {
        Catalogs(tables.into_iter().map(Catalogs::bit).fold(0, |all, bit| all | bit))
    }
}

impl CatalogCandidates {
    /// Whether a file can be a catalog's.
    pub(super) fn can_be_catalog(&self, file: RelFileLocator) -> bool {
        match self.0.get(&file) {
            Some(candidate) => candidate.possible != Catalogs::default(),
            None => file.relfilenode >= FIRST_NORMAL_OID,
        }
    }

    /// What a record does to the block of number `index` of its references, by each catalog that
    /// its file can be.
    pub(super) fn changes(
        &mut self,
        record: &RecordParts<'_>,
        index: usize,
    ) -> Vec<(CatalogTable, Change)> {
        let Some(block) = record.blocks.get(index).map(|block| block.reference) else {
            return Vec::new();
        };
        if block.relation.relfilenode < FIRST_NORMAL_OID {
            return Vec::new();
        }
        let candidate =
            self.0.entry(block.relation).or_insert_with(|| Candidate::of(block.relation));
        candidate.changes(record, index)
    }

    /// Adds what the stretch after this one knows: what a file cannot be in one, it is not.
    pub(super) fn merge(&mut self, other: CatalogCandidates) {
        for (file, theirs) in other.0 {
            match self.0.get_mut(&file) {
                Some(ours) => {
                    ours.possible.0 &= theirs.possible.0;
                    if ours.unproven.append(theirs.unproven) {
                        ours.possible = Catalogs::default();
                    }
                }
                None => _ = self.0.insert(file, theirs),
            }
        }
    }

    /// Whether an event may still be one of a catalog.
    pub(super) fn allow(&self, event: &Event) -> bool {
        let Event::Rows { file, table, .. } = event else { return true };
        self.0.get(file).is_none_or(|candidate| candidate.possible.contains(*table))
    }
}

impl Candidate {
    fn of(file: RelFileLocator) -> Candidate {
        let is_global = file.tablespace == GLOBAL_TABLESPACE;
        let tables = CatalogTable::ALL.into_iter().filter(|table| table.is_shared() == is_global);
        Candidate { possible: tables.collect(), unproven: Unproven::default() }
    }

    fn changes(&mut self, record: &RecordParts<'_>, index: usize) -> Vec<(CatalogTable, Change)> {
        let mut changes = Vec::new();
        if !matches!(record.header.rmgr, rmgr::HEAP | rmgr::HEAP2 | rmgr::XLOG) {
            self.possible = Catalogs::default();
        }
        let layout = record.version.catalog;
        self.possible.retain(|table| match change(record, index, table) {
            Some(change) => match likeness(&change, table, layout) {
                Likeness::None => false,
                Likeness::Possible | Likeness::Proof => {
                    changes.push((table, change));
                    true
                }
            },
            None => !has_rows(record, index),
        });
        // Of any catalog: which ones the file can still be depends on where the stretch began.
        let is_proof = CatalogTable::ALL.into_iter().any(|table| {
            let change = change(record, index, table);
            change.is_some_and(|change| likeness(&change, table, layout) == Likeness::Proof)
        });
        if self.unproven.add(is_proof) {
            self.possible = Catalogs::default();
            changes.clear();
        }
        changes
    }
}

/// How like a catalog's a change is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    None,
    Possible,
    Proof,
}

/// Whether a change has rows that hardly anything but this catalog has.
pub(super) fn proves(change: &Change, table: CatalogTable, layout: &CatalogLayout) -> bool {
    match change {
        // Those of a page are whole, also where they are new versions: after VACUUM FULL all may be.
        Change::Page(rows) => {
            let mut each = rows.iter().map(|(_, row)| likeness_of_row(row, table, layout));
            !rows.is_empty() && each.all(|likeness| likeness == Likeness::Proof)
        }
        _ => likeness(change, table, layout) == Likeness::Proof,
    }
}

fn likeness(change: &Change, table: CatalogTable, layout: &CatalogLayout) -> Likeness {
    match change {
        Change::Page(rows) | Change::Insert(rows) => {
            // The new version of an update may lack what it shares with the old one.
            let whole = rows.iter().filter(|(_, row)| !row.is_update());
            let each = whole.map(|(_, row)| likeness_of_row(row, table, layout));
            each.min().unwrap_or(Likeness::Possible)
        }
        Change::Lost => Likeness::None,
        Change::Update { patch, .. } if !layout.may_be_long(table, patch.length()) => {
            Likeness::None
        }
        _ => Likeness::Possible,
    }
}

fn likeness_of_row(row: &RowVersion, table: CatalogTable, layout: &CatalogLayout) -> Likeness {
    match decode(table, row, layout) {
        None => Likeness::None,
        Some(Row::Inherits(child, parent, number)) => {
            let is_sound =
                child.min(parent) >= FIRST_NORMAL_OID && (1..=PARENTS_MAX).contains(&number);
            if is_sound { Likeness::Possible } else { Likeness::None }
        }
        Some(Row::Index(..)) => Likeness::Possible,
        Some(Row::Class(_) | Row::Named(..) | Row::Database(..)) => Likeness::Proof,
    }
}

/// Whether a record of a catalog has rows in this block: then one that cannot be read is none.
fn has_rows(record: &RecordParts<'_>, index: usize) -> bool {
    let code = record.header.info & heap::OPCODE_MASK;
    match record.header.rmgr {
        rmgr::HEAP => match code {
            heap::INSERT => true,
            heap::UPDATE | heap::HOT_UPDATE => index == 0,
            _ => false,
        },
        rmgr::HEAP2 => code == heap2::MULTI_INSERT,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::data_page::heap_tuple::infomask;

    /// After VACUUM FULL of all catalogs a page of `pg_class` may have nothing but new versions.
    #[test]
    fn new_versions_prove_in_a_page_and_not_elsewhere() {
        let layout = &CatalogLayout::V15;
        let mut data = vec![0u8; layout.class.bytes];
        data[..5].copy_from_slice(&[0, 64, 0, 0, b't']);
        data[layout.class.namespace] = 11;
        data[layout.class.persistence] = b'p';
        data[layout.class.kind] = b'r';
        let row = RowVersion {
            xmin: 700,
            xmax: 0,
            infomask: infomask::UPDATED,
            header_oid: 0,
            data_bytes: data.len() as u16,
            data: data.into(),
        };
        let rows: Box<[_]> = [(1, row)].into();
        let proves = |change| proves(&change, CatalogTable::Class, layout);
        assert!(proves(Change::Page(rows.clone())) && !proves(Change::Insert(rows)));
        assert!(!proves(Change::Page(Box::default())));
    }
}
