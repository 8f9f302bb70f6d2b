//! What is counted of WAL while it is written, in memory that stays flat: sums since the beginning by record
//! type, and by relation and kind of transaction what came since the last time that somebody asked.

mod open_transactions;

use super::finished_transactions::{FinishedRows, FinishedTransaction, Order};
use super::kind::FoundKinds;
use super::names::NameLessons;
use super::relation::Relations;
use super::totals::RecordTable;
use super::transaction::Transactions;
use open_transactions::OpenTransactions;
pub use open_transactions::{OpenTransaction, Stored};
use std::ops::Range;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::{xact, xlog};
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_names::catalog::store::Store;
use walstat_read::scan::observe::Observe;

/// Of what ended since the last telling, so many transactions are rows.
const ROWS: usize = 8;
/// Files that transactions dropped are noted for so many of them between two tellings.
const DROPPED_MAX: usize = 1000;
/// Places for which it is kept what was counted up to there.
const PLACES_MAX: usize = 4096;

/// What is counted.
#[derive(Clone)]
pub struct Following {
    /// By record type since the beginning.
    pub records: RecordTable,
    relations: Relations,
    transactions: Transactions,
    names: NameLessons,
    open: OpenTransactions,
    /// Places that WAL is measured from.
    pub marks: Marks,
}

/// What came since the last telling.
pub struct News {
    /// By relation.
    pub relations: Relations,
    /// By kind, of the transactions that have ended.
    pub kinds: FoundKinds,
    /// The largest of them.
    pub transactions: Vec<FinishedTransaction>,
    /// Transactions that committed and dropped files.
    pub dropped: Vec<Dropped>,
}

/// A transaction that dropped files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its end.
    pub lsn: Lsn,
    /// When.
    pub time: Time,
    /// Which.
    pub xid: u32,
    /// The files.
    pub files: Vec<RelFileLocator>,
}

/// What was counted up to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The place.
    pub lsn: Lsn,
    /// Bytes of images before it.
    pub fpi_bytes: u64,
    /// Bytes of records before it.
    pub total_bytes: u64,
}

/// Places that WAL is measured from.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    now: Place,
    /// Where counting began, and places of looks and of redo points, ascending.
    places: Vec<Place>,
    /// The last redo point: from 17 on that of a checkpoint that may still run, before that of the last one
    /// that has ended.
    pub redo: Option<Lsn>,
    /// The redo point that was known before WAL was read: of a checkpoint that has ended.
    pub known_redo: Option<Lsn>,
    /// The last checkpoint that has ended: its redo point, and when it began.
    pub checkpoint: Option<(Lsn, Time)>,
    /// What was counted up to there; nothing where that point was not passed while counting.
    redo_place: Option<Place>,
    /// The last time that a transaction stated.
    pub time: Option<Time>,
    dropped: Vec<Dropped>,
}

fn rows() -> FinishedRows {
    FinishedRows::new(ROWS, Order::Bytes)
}

impl Following {
    /// Nothing yet; names begin with those that `known` has.
    pub fn new(known: &Store) -> Following {
        let mut transactions = Transactions::new(rows(), true);
        transactions.settle();
        Following {
            records: RecordTable::default(),
            relations: Relations::default(),
            transactions,
            names: NameLessons::over(known),
            open: OpenTransactions::default(),
            marks: Marks::default(),
        }
    }

    /// What came since the last call.
    pub fn take_news(&mut self) -> News {
        self.relations.settle();
        let (rows, kinds) = self.transactions.take_ended(rows());
        News {
            relations: std::mem::take(&mut self.relations),
            kinds: kinds.unwrap_or_default(),
            transactions: rows.into_rows().0,
            dropped: std::mem::take(&mut self.marks.dropped),
        }
    }

    /// Forgets what was counted, but not what was learned, and where places are.
    pub fn begin_here(&mut self) {
        self.records = RecordTable::default();
        let _ = self.take_news();
    }

    /// Adds what the WAL has taught of names since the last call to what was known before.
    pub fn teach(&mut self, store: &mut Store) {
        self.names.fold_into(store);
    }

    /// The oldest transaction that goes on; and whether all that go on are known.
    pub fn oldest_open(&self) -> (Option<OpenTransaction>, bool) {
        self.open.oldest(&self.transactions)
    }

    /// What is to be stored of the transactions that go on.
    pub fn open_to_store(&self) -> Stored {
        self.open.stored(&self.transactions)
    }

    /// Goes on with the transactions that were stored.
    pub fn go_on(&mut self, stored: Stored) {
        self.open.go_on(stored);
    }
}

impl Marks {
    /// Bytes of images, and of all records, since the last redo point.
    pub fn since_redo(&self) -> Option<(u64, u64)> {
        let Place { fpi_bytes, total_bytes, .. } = self.redo_place?;
        Some((self.now.fpi_bytes - fpi_bytes, self.now.total_bytes - total_bytes))
    }

    /// The redo point that is known otherwise, before WAL says one.
    pub fn begin_at(&mut self, redo: Lsn) {
        self.redo.get_or_insert(redo);
        self.known_redo.get_or_insert(redo);
    }

    fn redo_is(&mut self, redo: Lsn) {
        if self.redo.is_some_and(|known| known >= redo) {
            return;
        }
        let after = self.places.partition_point(|place| place.lsn < redo);
        let is_passed = self.places.first().is_some_and(|first| first.lsn <= redo);
        let place = self.places.get(after).copied().unwrap_or(self.now);
        self.redo_place = is_passed.then_some(place);
        self.redo = Some(redo);
    }

    fn note(&mut self, record: &Record<'_>) {
        let before = Place { lsn: record.lsn, ..self.now };
        if self.places.is_empty() {
            self.places.push(before);
        }
        match (record.header.rmgr, record.header.info & 0xF0) {
            (rmgr::XLOG, xlog::CHECKPOINT_REDO) => {
                self.now = before;
                self.places.push(before);
                self.redo_is(record.lsn);
            }
            (rmgr::XLOG, info @ (xlog::CHECKPOINT_ONLINE | xlog::CHECKPOINT_SHUTDOWN)) => {
                let layout = record.version.checkpoint;
                let checkpoint = Checkpoint::parse(record.main_data_start(), layout);
                if info == xlog::CHECKPOINT_SHUTDOWN {
                    self.places.push(before);
                }
                if let Some(Checkpoint { redo, time, .. }) = checkpoint {
                    self.redo_is(redo);
                    self.checkpoint = Some((redo, time));
                }
            }
            (rmgr::TRANSACTION, _) => self.note_end(record),
            _ => {}
        }
        self.now = Place {
            lsn: record.end,
            fpi_bytes: self.now.fpi_bytes + u64::from(record.parts.fpi_bytes),
            total_bytes: self.now.total_bytes + u64::from(record.header.total_bytes),
        };
    }

    fn note_end(&mut self, record: &Record<'_>) {
        let info = record.header.info;
        if let Some(time) = xact::stated_time(info, record.main_data_start()) {
            self.time = self.time.max(Some(time));
        }
        if xact::ends_alone(info).is_some() || self.dropped.len() >= DROPPED_MAX {
            return;
        }
        let main_data = record.main_data().unwrap_or_default();
        let Some(end) = xact::End::parse(info, &main_data, record.version) else { return };
        let files: Vec<RelFileLocator> = end.dropped.iter().collect();
        if end.commits && !files.is_empty() {
            let xid = end.prepared_xid.unwrap_or(record.header.xid);
            self.dropped.push(Dropped { lsn: record.lsn, time: end.time, xid, files });
        }
    }

    fn settle(&mut self) {
        if self.places.last().is_some_and(|last| last.lsn < self.now.lsn) {
            self.places.push(self.now);
        }
        if let Some(redo) = self.redo {
            let old = self.places.partition_point(|place| place.lsn < redo);
            self.places.drain(..old.saturating_sub(1));
        }
        if self.places.len() > PLACES_MAX {
            let mut is_kept = false;
            self.places.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }
}

impl Observe for Following {
    const WHOLE: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        let mark = record.block_mark();
        self.records.observe(record);
        let goes_on = self.relations.take(record, mark);
        self.transactions.take(record, mark);
        if !goes_on || !self.names.is_idle() {
            self.names.observe(record);
        }
        self.open.note(record, &self.transactions);
        self.marks.note(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.relations.lost(range.clone());
        self.transactions.lost(range.clone());
        self.open.lost();
        self.names.lost(range);
    }

    fn merge(&mut self, later: Following) {
        self.records.merge(later.records);
        self.relations.merge(later.relations);
        self.transactions.merge(later.transactions);
        self.names.merge(later.names);
        (self.open, self.marks) = (later.open, later.marks);
    }

    fn settle(&mut self) {
        self.relations.settle();
        self.marks.settle();
    }
}
