//! What a record does to a page, and which data of it an image replaced: one file a resource manager, each
//! the twin of the redo functions in `src/backend/access/`, and one row for each in [`TABLE`].
//!
//! Pages are rolled forward as recovery would do it. The primary's own page differs from that in
//! bits that no record carries: hints, command ids, dead index entries. Their lengths agree.
//!
//! A new record type: its resource manager's file gets one more arm where the page is changed (`apply`) and
//! one where data are measured (`data_bytes`). A new resource manager: a file, and a row of [`TABLE`].

mod brin;
mod btree;
mod generic;
mod gin;
mod gist;
mod hash;
mod heap;
mod heap2;
mod index_tuple;
mod sequence;
mod spgist;
mod table_page;

use super::light_page::LightPage;
use super::light_page::rows::RowState;
use super::page::{Packing, Page};
use super::page_view::PageView;
use super::whole_record::WholeRecord;
use walstat_format::block::BlockRef;
use walstat_format::data_page::Item;
use walstat_format::rmgr::{
    BRIN, BTREE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SEQUENCE, SPGIST, XLOG, is_of_vacuum,
};

pub(crate) use heap::is_decoded;

/// What the simulator has to know of one resource manager's records.
struct RmgrRedo {
    rmgr: u8,
    /// Whether pages of all forks are followed, and not those of the main fork alone.
    all_forks: bool,
    /// Whether records are written for pages of any kind, and say nothing of theirs.
    any_page: bool,
    /// Whether what a [`LightPage`] keeps is enough to tell lengths from.
    lengths_only: bool,
    /// Records that only change a page where it lies, or make a table's page anew, by what they say
    /// themselves.
    plain: Which,
    /// Records of which all that they do can be done where only the lengths of a page are kept.
    light: Which,
    /// Does it.
    change_light: fn(Redo<'_>, &mut LightPage) -> Option<()>,
    /// The page after the record, from the page before it; `None` where it cannot be followed.
    apply: fn(Redo<'_>, Option<Page>) -> Option<Page>,
    /// Whether the page before a record tells how long the data were that an image replaced.
    compares: fn(&WholeRecord<'_>) -> bool,
    /// Length of the block data that an image replaced: from the page of the image, and the page before the
    /// record, if it is known and compared.
    data_bytes: Measure,
    /// Length of the data of the first block at the other wal_level, where it may be another one.
    data_at_other_level: fn(Redo<'_>, &Page) -> Option<DataBytes>,
    /// Whether data of the first block stay beside an image, for logical decoding.
    keeps_data: fn(&WholeRecord<'_>) -> bool,
    /// Rows that the record inserts into a table.
    inserted_rows: fn(&WholeRecord<'_>) -> u16,
    /// Whether rows of the block were looked at before the record was written.
    looks_at: fn(&WholeRecord<'_>, &BlockRef) -> bool,
    vacuum: Vacuum,
}

/// Some of the records of a resource manager, by what they do to one of their blocks.
#[derive(Clone, Copy)]
enum Which {
    None,
    All,
    Those(fn(&WholeRecord<'_>, &BlockRef) -> bool),
}

impl Which {
    #[inline]
    fn has(self, record: &WholeRecord<'_>, block: &BlockRef) -> bool {
        match self {
            Which::None => false,
            Which::All => true,
            Which::Those(has) => has(record, block),
        }
    }
}

/// What the length of block data is told from.
#[derive(Clone, Copy)]
enum Measure {
    /// Pages of which all is at hand.
    Whole(fn(Redo<'_>, &Page, Option<&Page>) -> Option<DataBytes>),
    /// An image as it is stored, and what is kept of the page before it.
    Stored(fn(Redo<'_>, &PageView<'_>, Option<Before<'_>>) -> Option<DataBytes>),
}

/// The page of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imaged<'p> {
    pub(crate) view: PageView<'p>,
    /// The same in one piece, where all of it is kept and it is not corrupt.
    pub(crate) whole: Option<&'p Page>,
}

/// What is kept of the page before a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Before<'p> {
    Whole(&'p Page),
    Light(&'p LightPage),
}

impl Before<'_> {
    /// What `tell` makes of the page, which is made whole for it.
    fn with_whole<T>(self, tell: impl FnOnce(Option<&Page>) -> T) -> T {
        match self {
            Before::Whole(page) => tell(Some(page)),
            Before::Light(page) => tell(page.page(Vec::new()).as_ref()),
        }
    }

    /// How many line pointers a table's page has.
    fn items(self) -> u16 {
        match self {
            Before::Whole(page) => page.items(),
            Before::Light(page) => page.items(),
        }
    }

    /// Line pointer `number` of a table's page; where there is a row, not where it lies.
    fn item(self, number: u16) -> Option<Item> {
        match self {
            Before::Whole(page) => page.item(number),
            Before::Light(page) => page.item(number),
        }
    }

    /// What is to be told of the rows, by line pointer.
    fn row_states(self) -> Vec<Option<RowState>> {
        match self {
            Before::Whole(page) => {
                (1..=page.items()).map(|n| RowState::of(page.tuple(n)?)).collect()
            }
            Before::Light(page) => page.row_states(),
        }
    }
}

/// What there is to know of records that prune, vacuum and freeze.
struct Vacuum {
    prunes: fn(&WholeRecord<'_>) -> Option<bool>,
    is_scan: fn(&WholeRecord<'_>) -> bool,
    unfrozen: fn(&WholeRecord<'_>, &BlockRef) -> Option<Unfrozen>,
}

/// A resource manager whose pages are not followed: an extension's own.
const NOT_FOLLOWED: RmgrRedo = RmgrRedo {
    rmgr: u8::MAX,
    all_forks: false,
    any_page: false,
    lengths_only: false,
    plain: Which::None,
    light: Which::None,
    change_light: |_, _| None,
    apply: |_, _| None,
    compares: |_| false,
    data_bytes: Measure::Stored(|_, _, _| None),
    data_at_other_level: |_, _| None,
    keeps_data: |_| false,
    inserted_rows: |_| 0,
    looks_at: |_, _| false,
    vacuum: Vacuum { prunes: |_| None, is_scan: |_| false, unfrozen: |_, _| None },
};

/// Records without any block data.
fn no_data(_: Redo<'_>, _: &PageView<'_>, _: Option<Before<'_>>) -> Option<DataBytes> {
    DataBytes::exact(0)
}

/// One row a resource manager; all others are [`NOT_FOLLOWED`].
static TABLE: [RmgrRedo; 11] = [
    // Pages that are logged as a whole have no data beside their image.
    RmgrRedo {
        rmgr: XLOG,
        all_forks: true,
        any_page: true,
        data_bytes: Measure::Stored(no_data),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: HEAP,
        lengths_only: true,
        plain: Which::All,
        light: Which::All,
        change_light: |redo, page| heap::change(redo, page),
        apply: heap::apply,
        data_bytes: Measure::Stored(heap::data_bytes),
        data_at_other_level: heap::data_at_other_level,
        keeps_data: heap::keeps_data,
        inserted_rows: heap::inserted_rows,
        looks_at: heap::looks_at,
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: HEAP2,
        lengths_only: true,
        light: Which::All,
        change_light: |redo, page| heap2::change(redo, page),
        apply: heap2::apply,
        compares: |_| true,
        data_bytes: Measure::Stored(heap2::data_bytes),
        keeps_data: heap2::keeps_data,
        inserted_rows: heap2::inserted_rows,
        looks_at: heap2::looks_at,
        vacuum: Vacuum {
            prunes: heap2::prunes,
            is_scan: heap2::is_vacuum_scan,
            unfrozen: heap2::unfrozen,
        },
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: BTREE,
        lengths_only: true,
        plain: Which::Those(btree::is_leaf_insertion),
        light: Which::Those(btree::is_mere_insertion),
        change_light: btree::insert_light,
        apply: btree::apply,
        compares: btree::removes,
        data_bytes: Measure::Stored(btree::data_bytes),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: HASH,
        apply: hash::apply,
        compares: |_| true,
        data_bytes: Measure::Whole(hash::data_bytes),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: GIN,
        apply: gin::apply,
        compares: |_| true,
        data_bytes: Measure::Whole(gin::data_bytes),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: GIST,
        apply: gist::apply,
        compares: |_| true,
        data_bytes: Measure::Whole(gist::data_bytes),
        ..NOT_FOLLOWED
    },
    RmgrRedo { rmgr: SEQUENCE, apply: sequence::apply, ..NOT_FOLLOWED },
    RmgrRedo {
        rmgr: SPGIST,
        apply: spgist::apply,
        data_bytes: Measure::Stored(no_data),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: BRIN,
        apply: brin::apply,
        data_bytes: Measure::Whole(brin::data_bytes),
        ..NOT_FOLLOWED
    },
    RmgrRedo {
        rmgr: GENERIC,
        all_forks: true,
        apply: generic::apply,
        compares: |_| true,
        data_bytes: Measure::Whole(generic::data_bytes),
        ..NOT_FOLLOWED
    },
];

/// The rows of [`TABLE`] by resource manager.
static ROWS: [&RmgrRedo; 256] = {
    let mut rows = [&NOT_FOLLOWED; 256];
    let mut place = 0;
    while place < TABLE.len() {
        rows[TABLE[place].rmgr as usize] = &TABLE[place];
        place += 1;
    }
    rows
};

#[inline]
fn row(record: &WholeRecord<'_>) -> &'static RmgrRedo {
    ROWS.get(usize::from(record.header.rmgr)).copied().unwrap_or(&NOT_FOLLOWED)
}

/// A record's work on one of its blocks.
#[derive(Debug, Clone, Copy)]
struct Redo<'r> {
    record: &'r WholeRecord<'r>,
    block: &'r BlockRef,
    /// `BLCKSZ`.
    page_bytes: usize,
}

impl<'r> Redo<'r> {
    /// Data of the block.
    fn data(&self) -> &'r [u8] {
        self.record.data(self.block)
    }

    /// The page as it is found: made anew, or as it was.
    fn page(&self, before: Option<Page>, special: usize) -> Option<Page> {
        if self.block.will_init { Page::new(self.page_bytes, special) } else { before }
    }

    /// How the release packs tuples.
    fn packing(&self) -> Packing {
        if self.record.version.pages.packs_by_item { Packing::ByItem } else { Packing::ByPlace }
    }
}

/// Whether lengths can be told from what is left of a page that rests, if this is a record of its relation.
pub(crate) fn needs_lengths_only(record: &WholeRecord<'_>) -> bool {
    row(record).lengths_only
}

/// Whether it is written for pages of any kind, and says nothing of theirs.
pub(crate) fn is_of_any_page(record: &WholeRecord<'_>) -> bool {
    row(record).any_page
}

/// Whether the page before `record` tells how long the data were that an image replaced.
pub(crate) fn compares(record: &WholeRecord<'_>) -> bool {
    (row(record).compares)(record)
}

/// The page after `record`, from the page before it; `None` where it cannot be followed.
pub(crate) fn apply(
    record: &WholeRecord<'_>,
    block: &BlockRef,
    before: Option<Page>,
    page_bytes: usize,
) -> Option<Page> {
    let row = row(record);
    if block.fork != 0 && !row.all_forks {
        return None;
    }
    (row.apply)(Redo { record, block, page_bytes }, before).filter(Page::is_sound)
}

/// Whether `record` only changes the page of `block` where it lies, or makes a table's page anew, by what it
/// says itself: all changes of rows on one page, and entries that come into a leaf of a B-tree.
#[inline]
pub(crate) fn is_plain(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    block.fork == 0 && block.image.is_none() && row(record).plain.has(record, block)
}

/// Whether all that a record does to a page can be done where only its lengths are kept.
#[inline]
pub(crate) fn is_light(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    block.fork == 0 && row(record).light.has(record, block)
}

/// Changes a page for a [light](is_light) record as [`apply`] does; `None` where it cannot be followed: the
/// page is void then.
#[inline]
pub(crate) fn change_light(
    record: &WholeRecord<'_>,
    block: &BlockRef,
    page: &mut LightPage,
) -> Option<()> {
    (row(record).change_light)(Redo { record, block, page_bytes: page.length().page }, page)
}

/// Length of block data that was not logged because an image took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataBytes {
    /// Bytes.
    pub(crate) bytes: u16,
    /// Whether it is a guess.
    pub(crate) estimated: bool,
}

impl DataBytes {
    fn exact(bytes: usize) -> Option<DataBytes> {
        Some(DataBytes { bytes: u16::try_from(bytes).ok()?, estimated: false })
    }

    fn estimated(bytes: usize) -> Option<DataBytes> {
        Some(DataBytes { bytes: u16::try_from(bytes).ok()?, estimated: true })
    }
}

/// The data that `record` would have had for `block` without its image: `after` is the page of the
/// image, `before` that of the record before, if it is known.
pub(crate) fn data_bytes(
    record: &WholeRecord<'_>,
    block: &BlockRef,
    after: Imaged<'_>,
    before: Option<Before<'_>>,
) -> Option<DataBytes> {
    let row = row(record);
    if block.fork != 0 && !row.all_forks {
        // Changes of the maps are not logged but as images.
        return DataBytes::exact(0);
    }
    let redo = Redo { record, block, page_bytes: after.view.size() };
    match (row.data_bytes, before) {
        (Measure::Stored(tell), _) => tell(redo, &after.view, before),
        (Measure::Whole(tell), None) => tell(redo, after.whole?, None),
        (Measure::Whole(tell), Some(before)) => {
            before.with_whole(|before| tell(redo, after.whole?, before))
        }
    }
}

/// Length of the data of `block` at the other wal_level, where it may be another one.
pub(crate) fn data_at_other_level(
    record: &WholeRecord<'_>,
    block: &BlockRef,
    after: &Page,
) -> Option<u16> {
    if block.id != 0 || block.fork != 0 {
        return None;
    }
    let redo = Redo { record, block, page_bytes: after.size() };
    (row(record).data_at_other_level)(redo, after).map(|data| data.bytes)
}

/// Rows that a record inserts into a table.
pub(crate) fn inserted_rows(record: &WholeRecord<'_>) -> u16 {
    (row(record).inserted_rows)(record)
}

/// Whether the record prunes a page; `None` if it does not freeze rows either.
pub(crate) fn prunes(record: &WholeRecord<'_>) -> Option<bool> {
    (row(record).vacuum.prunes)(record)
}

/// Whether it is vacuum that prunes and freezes here, by one record for both.
pub(crate) fn is_vacuum_scan(record: &WholeRecord<'_>) -> bool {
    (row(record).vacuum.is_scan)(record)
}

/// The block of a table that vacuum looks at, where only vacuum writes such a record.
pub(crate) fn vacuumed(record: &WholeRecord<'_>) -> Option<u32> {
    let header = &record.header;
    if header.rmgr != HEAP2 || !is_of_vacuum(header.rmgr, header.info) {
        return None;
    }
    record.blocks.iter().find(|block| block.fork == 0).map(|block| block.block)
}

/// What is left of a record that freezes rows where it does not freeze them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfrozen {
    /// The record is not written: it does nothing else.
    NoRecord,
    /// It has so many bytes of block data.
    Data(u16),
}

/// What is left of `record` without the freezing; `None` for one that does not freeze, or where pruning
/// and freezing have records of their own.
pub(crate) fn unfrozen(record: &WholeRecord<'_>, block: &BlockRef) -> Option<Unfrozen> {
    (row(record).vacuum.unfrozen)(record, block)
}

/// Whether rows of `block` were looked at before the record was written.
pub(crate) fn looks_at(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    block.fork == 0 && (row(record).looks_at)(record, block)
}

/// Whether the data of `block` stay beside an image, for logical decoding.
pub(crate) fn keeps_data(record: &WholeRecord<'_>, block: &BlockRef) -> bool {
    block.id == 0 && (row(record).keeps_data)(record)
}

#[cfg(test)]
mod tests;
