//! Names of relations as the WAL itself teaches them: records that change the catalogs, and their
//! images. What is learnt is applied to the catalogs of a data directory, or to none.

use serde::{Deserialize, Serialize};
use walstat_format::block::{BlockMark, BlockRef, RelFileLocator};
use walstat_format::data_page::restore::PageRestorer;
use walstat_format::payload::xact;
use walstat_format::record::Record;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;
use walstat_names::catalog::catalog_changes::{CatalogChanges, teaches_itself};
use walstat_names::catalog::event::{BlockParts, Page, RecordParts};
use walstat_names::catalog::history::History;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::store::Store;
use walstat_read::scan::observe::Observe;

/// What the records teach.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NameLessons {
    lessons: CatalogChanges,
    /// Relations seen lately that are known to be no catalogs, by the lowest bits of their number.
    #[serde(skip)]
    others: Others,
    /// The last record was counted, and its block is none of a catalog.
    #[serde(skip)]
    is_idle: bool,
}

const OTHERS: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Others([RelFileLocator; OTHERS]);

impl Default for Others {
    fn default() -> Others {
        Others([RelFileLocator::default(); OTHERS])
    }
}

impl Others {
    #[inline(always)]
    fn place(&mut self, relation: &RelFileLocator) -> &mut RelFileLocator {
        &mut self.0[relation.relfilenode as usize % OTHERS]
    }
}

impl NameLessons {
    /// Begins with the catalogs' files that a store knows.
    pub(crate) fn over(store: &Store) -> NameLessons {
        NameLessons { lessons: CatalogChanges::over(store), ..NameLessons::default() }
    }

    /// The names, after the lessons were applied to what was known before.
    pub(crate) fn names(self, mut store: Store) -> Names {
        self.lessons.apply_to(&mut store);
        store.names()
    }

    /// Applies the lessons to what was known before, and begins anew: what was known then knows it all.
    pub(crate) fn fold_into(&mut self, store: &mut Store) {
        std::mem::take(&mut self.lessons).apply_to(store);
        store.forget_what_names_do_not_need();
        *self = NameLessons::over(store);
    }

    /// The catalogs moment by moment, on top of what was known before.
    pub(crate) fn history(self, store: Store) -> History {
        self.lessons.history_over(store)
    }

    /// Whether a record that is counted next, on the same block as the last one, teaches nothing.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Whether the relation of the first block of a record, and so of all of them, is no catalog.
    #[inline(always)]
    fn is_of_another(&mut self, relation: RelFileLocator) -> bool {
        *self.others.place(&relation) == relation || self.is_of_none(relation)
    }

    #[inline(never)]
    fn is_of_none(&mut self, relation: RelFileLocator) -> bool {
        let is_other = !self.lessons.may_be_catalog(relation);
        if is_other {
            *self.others.place(&relation) = relation;
        }
        is_other
    }

    /// Takes note of a record with its mark, if it has one.
    #[inline(always)]
    pub(crate) fn take(&mut self, record: &Record<'_>, mark: Option<BlockMark>) {
        self.is_idle = false;
        let RecordHeader { rmgr, info, xid, .. } = record.header;
        if rmgr == rmgr::TRANSACTION
            && let Some(commits) = xact::ends_alone(info)
        {
            self.lessons.ended(xid, commits);
            return;
        }
        let relation = match mark {
            Some(mark) => Some(mark.relation()),
            None => record.places().next().map(|place| place.relation),
        };
        let teaches = match relation {
            Some(relation) => {
                self.is_idle = self.is_of_another(relation) && !teaches_itself(rmgr);
                !self.is_idle
            }
            None => teaches_itself(rmgr),
        };
        if teaches {
            self.learn(record);
        }
    }

    #[inline(never)]
    fn learn(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        let blocks: Vec<BlockRef> = record.blocks().collect();
        let data: Vec<_> =
            blocks.iter().map(|block| record.block_data(block).unwrap_or_default()).collect();
        let pages: Vec<_> = blocks.iter().map(|block| self.page(record, block)).collect();
        let parts = blocks.iter().zip(&data).zip(&pages).map(|((block, data), page)| {
            let page = match page {
                None => Page::None,
                Some(None) => Page::Unreadable,
                Some(Some(page)) => Page::Restored(page),
            };
            BlockParts { reference: *block, page, data }
        });
        let blocks: Vec<BlockParts<'_>> = parts.collect();
        self.lessons.observe(&RecordParts {
            version: record.version,
            header: record.header,
            end: record.end.aligned(),
            main_data: &main_data,
            blocks: &blocks,
        });
    }

    /// The page of an image that is replayed and of a catalog; `Some(None)` if the image makes none.
    fn page(&self, record: &Record<'_>, block: &BlockRef) -> Option<Option<Vec<u8>>> {
        let flags = record.version.image_flags;
        let image = block.image.filter(|image| flags.is_applied(image.info))?;
        if !self.lessons.may_be_catalog(block.relation) {
            return None;
        }
        let stored = record.image(block)?;
        let mut restorer = PageRestorer::default();
        Some(restorer.page(&image, &stored.bytes, flags).map(<[u8]>::to_vec))
    }
}

impl Observe for NameLessons {
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.take(record, record.block_mark());
    }

    /// A name does not depend on what is counted.
    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.observe(record);
        self.is_idle = false;
    }

    fn merge(&mut self, later: NameLessons) {
        self.lessons.merge(later.lessons);
    }

    fn shrink(&mut self) {
        self.lessons.shrink();
    }
}
