//! Who writes the WAL, by kind of transaction: those that did the same to the same tables. A kind is the
//! set of what a transaction and its subtransactions did to rows, by file; which table a file belongs to
//! is not known here. Records without a transaction are maintenance.
//!
//! How many kinds there are is up to the WAL. As many as fit into `WEIGHT_MAX` are kept, those of few
//! operations first, and all others are one. Which ones are kept depends on what they are and on nothing
//! else: a kind that was dropped early would also have been dropped if the others had come first. So the
//! result does not depend on how the WAL was divided.

use super::amounts::Amounts;
use super::distribution::Distribution;
use super::finished_transactions::{FinishedTransaction, TransactionOutcome};
use super::fork_table::{ForkKey, ForkTable};
use super::low_set::{LowSet, bits};
use hashbrown::hash_map::EntryRef;
use hashbrown::{Equivalent, HashMap};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use walstat_format::block::RelFileLocator;
use walstat_format::by_key;
use walstat_format::payload::heap::OPCODE_MASK;
use walstat_format::payload::heap::delete_flag::IS_SUPER;
use walstat_format::payload::{Time, heap, heap2, rmgr_info, xlog};
use walstat_format::record::Record;
use walstat_format::rmgr;

/// What all kinds that are kept may weigh together: each [`KIND_WEIGHT`], and 1 for each of its operations.
const WEIGHT_MAX: u64 = 1 << 20;
/// What a kind weighs without its operations.
const KIND_WEIGHT: u64 = 16;
/// So many different sizes of a kind's transactions are counted one by one.
const EXACT_SIZES: usize = 1 << 16;

/// What was done to rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RowOperation {
    /// Rows were inserted.
    Insert,
    /// Rows were updated, or changed in place.
    Update,
    /// Rows were deleted.
    Delete,
    /// Rows were locked.
    Lock,
}

impl RowOperation {
    const ALL: [RowOperation; 4] =
        [RowOperation::Insert, RowOperation::Update, RowOperation::Delete, RowOperation::Lock];
    /// Bits that tell them apart.
    const BITS: u32 = 2;

    /// What a record does, if it is about rows that a transaction sees.
    #[inline(always)]
    pub(crate) fn of(record: &Record<'_>) -> Option<RowOperation> {
        let opcode = record.header.info & OPCODE_MASK;
        match record.header.rmgr {
            rmgr::HEAP => match opcode {
                heap::INSERT => Some(RowOperation::Insert),
                heap::UPDATE | heap::HOT_UPDATE | heap::INPLACE => Some(RowOperation::Update),
                heap::DELETE => deletes_a_row(record).then_some(RowOperation::Delete),
                heap::LOCK => Some(RowOperation::Lock),
                _ => None,
            },
            rmgr::HEAP2 => match opcode {
                heap2::MULTI_INSERT => Some(RowOperation::Insert),
                heap2::LOCK_UPDATED => Some(RowOperation::Lock),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether a row is deleted: an insertion that is taken back is no row that anybody had.
fn deletes_a_row(record: &Record<'_>) -> bool {
    let main_data = record.main_data().unwrap_or_default();
    heap::Delete::parse(&main_data).is_some_and(|delete| delete.flags & IS_SUPER == 0)
}

/// What a transaction has done so far: operations by the numbers of files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Work(pub(crate) LowSet<FEW>);

/// So many operations of a transaction beyond the first files are kept as they are.
const FEW: usize = 6;

impl Work {
    /// Takes note of an operation on a file.
    #[inline(always)]
    pub(crate) fn note(&mut self, file: u32, operation: RowOperation) {
        self.0.insert(file << RowOperation::BITS | operation as u32);
    }

    /// The same where files have other numbers.
    pub(crate) fn renumber(&mut self, files: &[u32]) {
        self.0 = renumbered(self.0.iter(), files).collect();
    }

    /// Hands all of it on.
    fn with_codes<T>(&self, take: impl FnOnce(CodesRef<'_>) -> T) -> T {
        let first = self.0.first;
        let mut few = [0; FEW];
        if let Some(numbers) = self.0.few_others() {
            let others = &mut few[..numbers.len()];
            others.copy_from_slice(numbers);
            others.sort_unstable();
            return take(CodesRef { first, others });
        }
        let mut others: Vec<u32> = self.0.others().collect();
        others.sort_unstable();
        others.dedup();
        take(CodesRef { first, others: &others })
    }
}

/// What transactions of a kind did, as [`Work`] has it; the others ascend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Codes {
    first: u64,
    others: Box<[u32]>,
}

/// The same, borrowed.
#[derive(Debug, Clone, Copy, Hash)]
struct CodesRef<'a> {
    first: u64,
    others: &'a [u32],
}

impl Codes {
    /// All of them, ascending.
    fn iter(&self) -> impl Iterator<Item = u32> {
        bits(self.first).chain(self.others.iter().copied())
    }

    fn weight(&self) -> u64 {
        KIND_WEIGHT + u64::from(self.first.count_ones()) + self.others.len() as u64
    }
}

impl Equivalent<Codes> for CodesRef<'_> {
    #[inline]
    fn equivalent(&self, codes: &Codes) -> bool {
        self.first == codes.first && *self.others == *codes.others
    }
}

impl From<CodesRef<'_>> for Codes {
    fn from(codes: CodesRef<'_>) -> Codes {
        Codes { first: codes.first, others: codes.others.into() }
    }
}

/// Operations where files have other numbers.
fn renumbered(codes: impl Iterator<Item = u32>, files: &[u32]) -> impl Iterator<Item = u32> {
    codes.filter_map(|code| {
        let file = files.get((code >> RowOperation::BITS) as usize)?;
        Some(file << RowOperation::BITS | code & ((1 << RowOperation::BITS) - 1))
    })
}

/// An operation with the number of its file.
fn decoded(code: u32) -> (u32, RowOperation) {
    let operation = code & ((1 << RowOperation::BITS) - 1);
    let known = RowOperation::ALL.get(operation as usize).copied();
    (code >> RowOperation::BITS, known.unwrap_or(RowOperation::Lock))
}

/// Sums over the transactions of a kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KindSums {
    /// How many there are.
    pub transactions: u64,
    /// How many of them were rolled back.
    pub aborted: u64,
    /// How many of these may be subtransactions, as far as the WAL tells.
    pub maybe_savepoints: u64,
    /// Their records.
    pub amounts: Amounts,
    /// When the first of them ended, of those whose end is known.
    pub first_time: Option<Time>,
    /// The same of the last.
    pub last_time: Option<Time>,
    sizes: Distribution<EXACT_SIZES>,
}

impl KindSums {
    fn add(&mut self, row: &FinishedTransaction, end: Option<Time>) {
        self.transactions += 1;
        let is_aborted = row.outcome == TransactionOutcome::Aborted;
        self.aborted += u64::from(is_aborted);
        self.maybe_savepoints += u64::from(is_aborted && !row.top_level);
        self.amounts.add(&row.amounts);
        self.sizes.add(row.amounts.total_bytes());
        self.span(end, end);
    }

    fn span(&mut self, first: Option<Time>, last: Option<Time>) {
        self.first_time = self.first_time.into_iter().chain(first).min();
        self.last_time = self.last_time.max(last);
    }

    /// Adds the transactions of `other`.
    pub fn merge(&mut self, other: KindSums) {
        self.transactions += other.transactions;
        self.aborted += other.aborted;
        self.maybe_savepoints += other.maybe_savepoints;
        self.amounts.add(&other.amounts);
        self.span(other.first_time, other.last_time);
        self.sizes.merge(other.sizes);
    }

    /// Bytes of these transactions at percentiles, by nearest rank.
    pub fn percentiles<const N: usize>(&self, percents: [u64; N]) -> [Option<u64>; N] {
        self.sizes.percentiles(percents)
    }

    /// Whether those are exact; else they are within a thousandth.
    pub fn is_exact(&self) -> bool {
        self.sizes.is_exact()
    }
}

named! {
    /// What records without a transaction are there for.
    pub enum Maintenance {
        Vacuum "vacuum" "Vacuum, with its pruning as far as it can be told";
        Checkpoint "checkpoint" "Checkpoint records and redo points";
        Other "other" "Hint bits, pruning by statements, running transactions and the like";
    }
}

impl Maintenance {
    fn of(record: &Record<'_>) -> Maintenance {
        const CHECKPOINTS: [u8; 3] =
            [xlog::CHECKPOINT_SHUTDOWN, xlog::CHECKPOINT_ONLINE, xlog::CHECKPOINT_REDO];
        let (rmgr, info) = (record.header.rmgr, record.header.info);
        if rmgr::is_of_vacuum(rmgr, info) {
            Maintenance::Vacuum
        } else if rmgr == rmgr::XLOG && CHECKPOINTS.contains(&rmgr_info(info)) {
            Maintenance::Checkpoint
        } else {
            Maintenance::Other
        }
    }
}

/// Records without a transaction, and which files the first of their blocks lie in, with their bytes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Maintained {
    amounts: Amounts,
    files: ForkTable<u64>,
}

/// Transactions by kind, and records without one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Kinds {
    /// By all that they did.
    #[serde(serialize_with = "by_key::map")]
    kinds: HashMap<Codes, KindSums>,
    weight: u64,
    /// All kinds that were not kept.
    other: KindSums,
    maintained: [Maintained; Maintenance::ALL.len()],
}

impl Kinds {
    /// Adds a transaction that has ended, if any record of it was counted.
    pub(crate) fn add(&mut self, row: &FinishedTransaction, work: &Work, end: Option<Time>) {
        if row.amounts.count > 0 {
            work.with_codes(|codes| self.sums(codes).add(row, end));
        }
    }

    /// The sums of a kind, which may be new.
    fn sums(&mut self, codes: CodesRef<'_>) -> &mut KindSums {
        let Kinds { kinds, weight: all, .. } = self;
        match kinds.entry_ref(&codes) {
            EntryRef::Occupied(known) => known.into_mut(),
            EntryRef::Vacant(new) => {
                let codes = Codes::from(codes);
                *all += codes.weight();
                new.insert_with_key(codes, KindSums::default())
            }
        }
    }

    /// Counts a record without a transaction.
    pub(crate) fn maintain(&mut self, record: &Record<'_>, amounts: &Amounts) {
        let Some(maintained) = self.maintained.get_mut(Maintenance::of(record) as usize) else {
            return;
        };
        maintained.amounts.add(amounts);
        if let Some(block) = record.blocks().next() {
            let file = ForkKey { relation: block.relation, fork: 0 };
            *maintained.files.value(file) += amounts.total_bytes();
        }
    }

    /// Adds what a later run has seen, in which relations have the numbers `files`.
    pub(crate) fn merge(&mut self, later: Kinds, files: &[u32]) {
        for (codes, sums) in later.kinds {
            let work = Work(renumbered(codes.iter(), files).collect());
            work.with_codes(|codes| self.sums(codes).merge(sums));
        }
        self.other.merge(later.other);
        for (ours, theirs) in self.maintained.iter_mut().zip(later.maintained) {
            ours.amounts.add(&theirs.amounts);
            theirs.files.into_rows().for_each(|(key, bytes)| *ours.files.value(key) += bytes);
        }
    }

    /// Gives up on kinds where there are too many, by far.
    pub(crate) fn limit(&mut self, files: &ForkTable<()>) {
        if self.weight > 2 * WEIGHT_MAX {
            self.cut(files, WEIGHT_MAX);
        }
    }

    /// Keeps the first kinds that weigh no more than `most` together: those of few operations, then those
    /// of files with low numbers, which are old.
    fn cut(&mut self, files: &ForkTable<()>, most: u64) {
        if self.weight <= most {
            return;
        }
        let mut order: Vec<_> = std::mem::take(&mut self.kinds)
            .into_iter()
            .map(|(codes, sums)| (operations(&codes, files), codes, sums))
            .collect();
        order.sort_unstable_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
        let mut all = 0;
        for (_, codes, sums) in order {
            all += codes.weight();
            if all > most {
                self.other.merge(sums);
            } else {
                self.weight = all;
                self.kinds.insert(codes, sums);
            }
        }
    }

    /// All that was found, with the files.
    pub(crate) fn finish(mut self, files: &ForkTable<()>) -> FoundKinds {
        self.cut(files, WEIGHT_MAX);
        let kinds = self.kinds.into_iter();
        let maintained = self.maintained.into_iter().zip(Maintenance::ALL);
        FoundKinds {
            kinds: kinds.map(|(codes, sums)| (operations(&codes, files), sums)).collect(),
            other: self.other,
            maintained: maintained.map(|(of, maintenance)| (*maintenance, of.found())).collect(),
        }
    }
}

/// What a kind does, by file.
fn operations(codes: &Codes, files: &ForkTable<()>) -> Vec<(RelFileLocator, RowOperation)> {
    let operation = |code: u32| {
        let (file, operation) = decoded(code);
        Some((files.row(file as usize)?.0.relation, operation))
    };
    let mut operations: Vec<_> = codes.iter().filter_map(operation).collect();
    operations.sort_unstable();
    operations
}

impl Maintained {
    fn found(self) -> FoundMaintenance {
        let mut files: Vec<(RelFileLocator, u64)> =
            self.files.into_rows().map(|(key, bytes)| (key.relation, bytes)).collect();
        files.sort_unstable_by_key(|(file, bytes)| (Reverse(*bytes), *file));
        FoundMaintenance { amounts: self.amounts, files }
    }
}

/// Transactions by kind, and records without one.
#[derive(Debug, Clone, Default)]
pub struct FoundKinds {
    /// What each kind did by file, and its sums; in no order that means anything.
    pub kinds: Vec<(Vec<(RelFileLocator, RowOperation)>, KindSums)>,
    /// All kinds beyond those that are kept.
    pub other: KindSums,
    /// Records without a transaction.
    pub maintained: Vec<(Maintenance, FoundMaintenance)>,
}

/// Records without a transaction.
#[derive(Debug, Clone, Default)]
pub struct FoundMaintenance {
    /// Their sums.
    pub amounts: Amounts,
    /// The files of the first of their blocks, with their bytes, most first.
    pub files: Vec<(RelFileLocator, u64)>,
}

impl FoundKinds {
    /// Moves what vacuum pruned by records that statements write too to vacuum.
    pub fn with_pruning(mut self, pruning: &Amounts) -> FoundKinds {
        for (maintenance, found) in &mut self.maintained {
            match maintenance {
                Maintenance::Vacuum => found.amounts.add(pruning),
                Maintenance::Other => found.amounts = found.amounts.less(pruning),
                Maintenance::Checkpoint => {}
            }
        }
        self
    }

    /// All files that kinds are told by, some of them more than once.
    pub fn files(&self) -> impl Iterator<Item = RelFileLocator> {
        let of_kinds = self.kinds.iter().flat_map(|(operations, _)| operations);
        let maintained = self.maintained.iter().flat_map(|(_, found)| &found.files);
        of_kinds.map(|(file, _)| *file).chain(maintained.map(|(file, _)| *file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::lsn::Lsn;

    fn file(relfilenode: u32) -> ForkKey {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode };
        ForkKey { relation, fork: 0 }
    }

    fn transaction(xid: u32, record_bytes: u64) -> FinishedTransaction {
        FinishedTransaction {
            xid,
            amounts: Amounts { count: 1, record_bytes, ..Amounts::default() },
            start: Lsn(8),
            end: Lsn(16),
            outcome: TransactionOutcome::Committed,
            commit_time: None,
            subtransactions: 0,
            top_level: true,
            aborted_bytes: 0,
            relations: 1,
        }
    }

    /// One file and operation of a transaction, its size.
    type Did = (&'static [(u32, RowOperation)], u64);

    /// A run that has seen these transactions, with its files in the order in which it met them.
    fn run(did: &[Did]) -> (Kinds, ForkTable<()>) {
        let (mut kinds, mut files) = (Kinds::default(), ForkTable::default());
        for (number, (operations, bytes)) in did.iter().enumerate() {
            let mut work = Work::default();
            operations.iter().for_each(|(of, operation)| {
                work.note(files.number(file(*of)), *operation);
            });
            kinds.add(&transaction(number as u32, *bytes), &work, Some(Time(number as i64)));
        }
        (kinds, files)
    }

    fn joined(
        (mut kinds, mut files): (Kinds, ForkTable<()>),
        later: (Kinds, ForkTable<()>),
    ) -> Found {
        let numbers: Vec<u32> = later.1.iter().map(|(key, ())| files.number(*key)).collect();
        kinds.merge(later.0, &numbers);
        found(kinds, &files)
    }

    /// Operations, transactions, bytes, median.
    type Found = Vec<(Vec<(u32, RowOperation)>, u64, u64, Option<u64>)>;

    fn found(kinds: Kinds, files: &ForkTable<()>) -> Found {
        let kinds = kinds.finish(files).kinds.into_iter().map(|(operations, sums)| {
            let operations =
                operations.into_iter().map(|(file, of)| (file.relfilenode, of)).collect();
            let [median] = sums.percentiles([50]);
            (operations, sums.transactions, sums.amounts.record_bytes, median)
        });
        let mut kinds: Found = kinds.collect();
        kinds.sort();
        kinds
    }

    #[test]
    fn a_kind_is_what_was_done_whatever_the_order_and_the_runs() {
        use RowOperation::{Delete, Insert, Update};
        let did: [Did; 6] = [
            (&[(7, Insert), (3, Update)], 100),
            (&[(3, Update), (7, Insert), (3, Update)], 300),
            (&[], 40),
            (&[(3, Update)], 60),
            (&[(9, Delete), (3, Update)], 10),
            (&[(3, Update), (7, Insert)], 500),
        ];
        let (kinds, files) = run(&did);
        let whole = found(kinds, &files);
        let most = (vec![(3, Update), (7, Insert)], 3, 900, Some(300));
        assert!(whole.len() == 4 && whole.contains(&most), "{whole:?}");
        for cut in 0..=did.len() {
            let (first, second) = did.split_at(cut);
            assert_eq!(joined(run(first), run(second)), whole, "{cut}");
        }
    }

    #[test]
    fn which_kinds_are_kept_does_not_depend_on_when_they_came() {
        let (mut files, mut order) = (ForkTable::default(), Vec::new());
        for number in 0..200u32 {
            order.push((number * 77) % 200);
        }
        let add = |kinds: &mut Kinds, files: &mut ForkTable<()>, which: u32| {
            let mut work = Work::default();
            (0..=which % 5).for_each(|part| {
                work.note(files.number(file(which + 1000 * part)), RowOperation::Insert);
            });
            kinds.add(&transaction(which, 10), &work, None);
        };
        let mut forward = Kinds::default();
        order.iter().for_each(|which| add(&mut forward, &mut files, *which));
        forward.cut(&files, 50 * (KIND_WEIGHT + 2));
        let mut others = ForkTable::default();
        let mut backward = Kinds::default();
        for which in order.iter().rev() {
            add(&mut backward, &mut others, *which);
            backward.cut(&others, 50 * (KIND_WEIGHT + 2));
        }
        let (forward, backward) = (forward.finish(&files), backward.finish(&others));
        assert_eq!(forward.other.transactions, backward.other.transactions);
        assert_eq!(forward.other.transactions + forward.kinds.len() as u64, 200);
        let operations = |found: &FoundKinds| {
            let mut all: Vec<_> = found.kinds.iter().map(|(of, _)| of.clone()).collect();
            all.sort();
            all
        };
        assert_eq!(operations(&forward), operations(&backward));
        assert!(forward.kinds.len() > 40);
        assert!(forward.kinds.iter().all(|(of, _)| of.len() <= 2), "those of few operations first");
    }
}
