//! What is counted of WAL while it is written, in memory that stays flat: sums since the beginning by record
//! type, and by relation and kind of transaction what came since the last time that somebody asked.

mod marks;
mod open_transactions;

use super::finished_transactions::{FinishedRows, FinishedTransaction, Order};
use super::kind::FoundKinds;
use super::names::NameLessons;
use super::relation::Relations;
use super::totals::RecordTable;
use super::transaction::Transactions;
pub use marks::{Between, Dropped, Marks, PassedCheckpoint};
use open_transactions::OpenTransactions;
pub use open_transactions::{OpenTransaction, Stored};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_names::catalog::store::Store;
use walstat_read::scan::observe::Observe;

/// Of what ended since the last telling, so many transactions are rows.
const ROWS: usize = 8;

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
    /// Checkpoints that have ended.
    pub checkpoints: Vec<PassedCheckpoint>,
}

/// What WAL before the one that is counted teaches of names.
#[derive(Clone, Default)]
pub struct EarlierNames(NameLessons);

impl EarlierNames {
    /// Nothing yet, over the names that `known` has.
    pub fn over(known: &Store) -> EarlierNames {
        EarlierNames(NameLessons::over(known))
    }

    /// Adds what was learned to what was known before.
    pub fn teach(mut self, store: &mut Store) {
        self.0.fold_into(store);
    }
}

impl Observe for EarlierNames {
    const WHOLE: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        self.0.observe(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range);
    }

    fn merge(&mut self, later: EarlierNames) {
        self.0.merge(later.0);
    }
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
        let (dropped, checkpoints) = self.marks.take_news();
        News {
            relations: std::mem::take(&mut self.relations),
            kinds: kinds.unwrap_or_default(),
            transactions: rows.into_rows().0,
            dropped,
            checkpoints,
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

    /// Whether a transaction's records from `start` to `end` are all that it has before `end`: none of them
    /// was written before reading began, or lost.
    pub fn saw_all(&self, xid: u32, start: Lsn, end: Lsn) -> bool {
        self.open.saw_all(xid, start, end)
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
        if self.open.note(record, &self.transactions) {
            let open = &self.open;
            self.transactions.end_unseen(|part| open.ended_unseen(part));
        }
        self.marks.note(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.relations.lost(range.clone());
        self.transactions.lost(range.clone());
        self.open.lost();
        self.marks.lost();
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
