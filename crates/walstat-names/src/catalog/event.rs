//! What records change in catalogs, taken out of the record: small and owned, so that it can wait
//! until all that came before it is known.

use super::row::RowVersion;
use serde::{Deserialize, Serialize};
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::catalog_layout::CatalogLayout;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::data_page::DataPage;
use walstat_format::data_page::heap_tuple::{HeapTuple, TupleBody};
use walstat_format::lsn::Lsn;
use walstat_format::payload::heap;
use walstat_format::payload::heap::{Delete, Inplace, Insert, Lock, NewTuple, Update};
use walstat_format::payload::heap2;
use walstat_format::payload::heap2::MultiInsert;
use walstat_format::payload::prune::Prune;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;
use walstat_format::version::Version;

/// The page of a block reference.
#[derive(Debug, Clone, Copy)]
pub enum Page<'a> {
    /// The record has no image of it, or one for checking only.
    None,
    /// The page as the record left it, restored from an image that is replayed.
    Restored(&'a [u8]),
    /// There is such an image, and it makes no page.
    Unreadable,
}

/// A block reference with what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct BlockParts<'a> {
    /// The reference.
    pub reference: BlockRef,
    /// Its page.
    pub page: Page<'a>,
    /// Its data, empty if there are none.
    pub data: &'a [u8],
}

/// A whole record.
#[derive(Debug, Clone, Copy)]
pub struct RecordParts<'a> {
    /// The release that wrote it.
    pub version: &'static Version,
    /// Its header.
    pub header: RecordHeader,
    /// After its last byte, rounded up to 8: what replay stamps on pages.
    pub end: Lsn,
    /// Its main data.
    pub main_data: &'a [u8],
    /// Its blocks.
    pub blocks: &'a [BlockParts<'a>],
}

/// What happens to rows of one page of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// The page has these rows, and no others.
    Page(Box<[(u16, RowVersion)]>),
    /// What the page has is not known any more.
    Lost,
    /// These rows come in.
    Insert(Box<[(u16, RowVersion)]>),
    /// A row is updated within the page.
    Update {
        /// The old version.
        old: RowEnd,
        /// Line pointer of the new version.
        offset: u16,
        /// The new version, without what it shares with the old one.
        patch: Patch,
    },
    /// A row is deleted, locked, or updated by a version elsewhere.
    End(RowEnd),
    /// A row is overwritten: the start of its columns.
    Overwrite(u16, Box<[u8]>),
    /// These rows are taken away.
    Gone(Box<[u16]>),
    /// These rows get another xmax and `t_infomask`.
    Freeze(Box<[(u16, u32, u16)]>),
}

/// How a version ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowEnd {
    /// Its line pointer.
    pub offset: u16,
    /// Its new xmax.
    pub xmax: u32,
    /// [`heap::infobits`].
    pub infobits: u8,
}

/// A new version, as far as it differs from the old one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Patch {
    /// Bytes that the columns begin with as the old ones do.
    pub prefix: u16,
    /// Bytes that they end with as the old ones do.
    pub suffix: u16,
    /// The row version. Its `data` holds only the bytes between prefix and suffix, `data_bytes` of them.
    pub middle: RowVersion,
}

impl Patch {
    /// Bytes of all columns of the new version.
    pub(crate) fn length(&self) -> usize {
        usize::from(self.prefix) + usize::from(self.middle.data_bytes) + usize::from(self.suffix)
    }

    /// The new version, given the old one; `None` where it takes something from the old one that
    /// was not kept.
    pub(crate) fn onto(&self, old: &RowVersion, kept_bytes: usize) -> Option<RowVersion> {
        let prefix = usize::from(self.prefix);
        let middle_end = prefix + usize::from(self.middle.data_bytes);
        let length = self.length();
        let byte = |place: usize| match place {
            place if place < prefix => old.data.get(place),
            place if place < middle_end => self.middle.data.get(place - prefix),
            // Counted from the end of both.
            place => old.data.get((usize::from(old.data_bytes) + place).checked_sub(length)?),
        };
        let data: Option<Vec<u8>> =
            (0..length.min(kept_bytes)).map(|place| byte(place).copied()).collect();
        Some(RowVersion {
            data: data?.into(),
            data_bytes: u16::try_from(length).ok()?,
            ..self.middle.clone()
        })
    }
}

/// What a record does to the page of block number `index` of its references, which is one of
/// `table`; `None` if nothing.
pub(crate) fn change(
    record: &RecordParts<'_>,
    index: usize,
    table: CatalogTable,
) -> Option<Change> {
    let block = record.blocks.get(index)?;
    let reader = Reader { record, table, layout: record.version.catalog };
    match block.page {
        Page::Restored(page) => Some(reader.page(page)),
        Page::Unreadable => Some(Change::Lost),
        Page::None => match record.header.rmgr {
            rmgr::HEAP => reader.heap(block),
            rmgr::HEAP2 => reader.heap2(block),
            _ => None,
        },
    }
}

/// The rows of a page of `table` with their line pointers, and how many there are that cannot be
/// such rows.
pub(crate) fn rows_of_page(
    page: &DataPage<'_>,
    table: CatalogTable,
    layout: &CatalogLayout,
) -> (Vec<(u16, RowVersion)>, usize) {
    let (mut rows, mut strange) = (Vec::new(), 0);
    for (offset, _) in page.items() {
        let Some(bytes) = page.item_bytes(offset) else { continue };
        let tuple = HeapTuple::parse(bytes);
        match tuple.and_then(|tuple| RowVersion::of_page(&tuple, table, layout)) {
            Some(row) => rows.push((offset, row)),
            None => strange += 1,
        }
    }
    (rows, strange)
}

struct Reader<'r, 'a> {
    record: &'r RecordParts<'a>,
    table: CatalogTable,
    layout: &'static CatalogLayout,
}

impl Reader<'_, '_> {
    fn page(&self, bytes: &[u8]) -> Change {
        if DataPage::is_zero(bytes) {
            return Change::Page(Box::default());
        }
        match DataPage::new(bytes).map(|page| rows_of_page(&page, self.table, self.layout)) {
            Some((rows, 0)) => Change::Page(rows.into()),
            _ => Change::Lost,
        }
    }

    fn heap(&self, block: &BlockParts<'_>) -> Option<Change> {
        let main_data = self.record.main_data;
        let is_first = block.reference.id == 0;
        Some(match self.record.header.info & heap::OPCODE_MASK {
            heap::INSERT => {
                let insert = Insert::parse(main_data)?;
                let row = self.row(&TupleBody::of_record(block.data)?)?;
                self.inserted(vec![(insert.offset, row)])
            }
            heap::DELETE => {
                let Delete { offset, xmax, infobits, .. } = Delete::parse(main_data)?;
                Change::End(RowEnd { offset, xmax, infobits })
            }
            heap::UPDATE | heap::HOT_UPDATE if is_first => self.update(block)?,
            heap::UPDATE => Change::End(end_of_old(&Update::parse(main_data)?)),
            heap::LOCK => locked(main_data)?,
            heap::INPLACE => {
                let Inplace { offset, .. } = Inplace::parse(main_data, self.record.version)?;
                let kept = block.data.get(..self.layout.bytes(self.table)).unwrap_or(block.data);
                Change::Overwrite(offset, kept.into())
            }
            _ => return None,
        })
    }

    fn heap2(&self, block: &BlockParts<'_>) -> Option<Change> {
        if block.reference.id != 0 {
            return None;
        }
        let (info, main_data) = (self.record.header.info, self.record.main_data);
        match info & heap::OPCODE_MASK {
            heap2::MULTI_INSERT => {
                let insert = MultiInsert::parse(info, main_data)?;
                let rows: Option<Vec<_>> = insert
                    .tuples(block.data)
                    .map(|(offset, body)| Some((offset, self.row(&body)?)))
                    .collect();
                Some(self.inserted(rows?))
            }
            heap2::LOCK_UPDATED => locked(main_data),
            heap2::VISIBLE | heap2::NEW_CID | 0x00 => None,
            _ => {
                let data = Some(block.data).filter(|data| !data.is_empty());
                pruned(&Prune::parse(info, main_data, data, self.record.version)?)
            }
        }
    }

    fn row(&self, body: &TupleBody<'_>) -> Option<RowVersion> {
        RowVersion::inserted(self.record.header.xid, body, self.table, self.layout)
    }

    fn inserted(&self, rows: Vec<(u16, RowVersion)>) -> Change {
        match self.record.header.info & heap::INIT_PAGE {
            0 => Change::Insert(rows.into()),
            _ => Change::Page(rows.into()),
        }
    }

    /// The new version's page; the old version lies there too if there is no other block. (Pages of
    /// the visibility map are blocks too, in 19.)
    fn update(&self, block: &BlockParts<'_>) -> Option<Change> {
        let update = Update::parse(self.record.main_data)?;
        let new = NewTuple::parse(&update, block.data)?;
        let middle = self.row(&new.body)?;
        let is_old = |block: &BlockParts<'_>| block.reference.id == 1 && block.reference.fork == 0;
        if self.record.blocks.iter().any(is_old) {
            return Some(self.inserted(vec![(update.new_offset, middle)]));
        }
        let patch = Patch { prefix: new.prefix, suffix: new.suffix, middle };
        Some(Change::Update { old: end_of_old(&update), offset: update.new_offset, patch })
    }
}

fn end_of_old(update: &Update<'_>) -> RowEnd {
    RowEnd { offset: update.old_offset, xmax: update.old_xmax, infobits: update.old_infobits }
}

fn locked(main_data: &[u8]) -> Option<Change> {
    let Lock { offset, xmax, infobits } = Lock::parse(main_data)?;
    Some(Change::End(RowEnd { offset, xmax, infobits }))
}

/// Rows are either taken away or frozen; where a record does both, no row meets both.
fn pruned(prune: &Prune<'_>) -> Option<Change> {
    let redirected = prune.redirected.iter().map(|(from, _)| from);
    let gone: Box<[u16]> = redirected.chain(prune.dead.iter()).chain(prune.unused.iter()).collect();
    if !gone.is_empty() {
        return Some(Change::Gone(gone));
    }
    let mut frozen: Vec<(u16, u32, u16)> = Vec::new();
    frozen.extend(prune.frozen_tuples.iter().map(|row| (row.offset, row.xmax, row.infomask)));
    let mut offsets = prune.frozen.iter();
    for plan in prune.plans.iter() {
        let rows = offsets.by_ref().take(usize::from(plan.count));
        frozen.extend(rows.map(|offset| (offset, plan.xmax, plan.infomask)));
    }
    (!frozen.is_empty()).then(|| Change::Freeze(frozen.into()))
}

/// Something in the WAL that names depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Rows of a catalog change.
    Rows {
        /// The catalog's file.
        file: RelFileLocator,
        /// Which catalog it is.
        table: CatalogTable,
        /// Its block.
        block: u32,
        /// Whose record it is, 0 if nobody's.
        xid: u32,
        /// The end of the record: older than a page's LSN, it is in the page already.
        end: Lsn,
        /// What happens.
        change: Change,
    },
    /// Catalogs have other files.
    Map {
        /// Whose catalogs; 0 for shared ones.
        database: u32,
        /// The tablespace of that database.
        tablespace: u32,
        /// Oids and files.
        files: Box<[(u32, u32)]>,
        /// The end of the record.
        end: Lsn,
    },
    /// A database is made as a copy of another, or moved to another tablespace.
    Copied {
        /// Oid and tablespace of the original.
        from: (u32, u32),
        /// Oid and tablespace of the copy.
        to: (u32, u32),
    },
}

impl Event {
    /// The end of its record, where that is known.
    pub(crate) fn end(&self) -> Option<Lsn> {
        match self {
            Event::Rows { end, .. } | Event::Map { end, .. } => Some(*end),
            Event::Copied { .. } => None,
        }
    }

    /// Whose record it is.
    pub(crate) fn xid(&self) -> Option<u32> {
        match self {
            Event::Rows { xid, .. } => Some(*xid).filter(|xid| *xid != 0),
            Event::Map { .. } | Event::Copied { .. } => None,
        }
    }
}
