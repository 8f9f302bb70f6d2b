//! Who writes the WAL, by transaction: bytes, relations, how each ended; subtransactions are folded
//! into the transaction they belong to, as far as the WAL tells which that is.
//!
//! What has ended and can get nothing more is kept as a row of its own
//! ([`super::finished_transactions`]); all else is kept by the xid of the records.

mod ended_parts;
mod ended_xids;
mod family;
mod finished;
mod generations;
mod part;

use self::finished::Finished;
use self::generations::Generations;
use super::amounts::Amounts;
use super::finished_transactions::{FinishedRows, TransactionOutcome};
use super::fork_table::{ForkKey, ForkTable};
use super::kind::{FoundKinds, Kinds, RowOperation};
use serde::{Deserialize, Serialize};
use walstat_format::block::BlockMark;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::standby;
use walstat_format::payload::standby::RunningXacts;
use walstat_format::payload::xact;
use walstat_format::payload::xact::{Assignment, End};
use walstat_format::record::Record;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// Of more files than this those are forgotten that no transaction is about any more.
const FILES_MAX: usize = 50_000;

/// All transactions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Transactions {
    generations: Generations,
    /// Relations have numbers here.
    files: ForkTable<()>,
    finished: Finished,
    without_transaction: Amounts,
    current: Current,
}

/// The last record's transaction.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Current {
    xid: u32,
    /// Place of its part.
    part: u32,
    #[serde(skip)]
    streak: Option<Streak>,
}

/// What records have in common that follow one another: their type, of Heap and so not of vacuum, and their
/// only block. All that is to be noted of them is how many they are, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Streak {
    rmgr: u8,
    info: u8,
    mark: BlockMark,
}

/// A transaction that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenPart {
    pub(crate) xid: u32,
    /// Its first record.
    pub(crate) start: Lsn,
    pub(crate) is_prepared: bool,
}

/// What was found of transactions.
#[derive(Debug)]
pub struct FoundTransactions {
    /// As rows.
    pub rows: FinishedRows,
    /// Records without one.
    pub without_transaction: Amounts,
    /// By kind, if that was asked for.
    pub kinds: Option<FoundKinds>,
}

impl Transactions {
    /// None yet; the rows that `rows` says will be kept, and kinds if they are asked for.
    pub(crate) fn new(rows: FinishedRows, asks_for_kinds: bool) -> Transactions {
        let finished = Finished { rows, kinds: asks_for_kinds.then(Kinds::default) };
        Transactions {
            generations: Generations::default(),
            files: ForkTable::default(),
            finished,
            without_transaction: Amounts::default(),
            current: Current::default(),
        }
    }

    /// Takes note of subtransactions with their parents, before any record is seen.
    pub(crate) fn know(&mut self, parents: &[(u32, u32)]) {
        self.generations.know(parents);
    }

    /// All that was found.
    pub(crate) fn finish(mut self) -> FoundTransactions {
        self.generations.finish(&mut self.finished);
        let Finished { rows, kinds } = self.finished;
        let kinds = kinds.map(|kinds| kinds.finish(&self.files));
        FoundTransactions { rows, without_transaction: self.without_transaction, kinds }
    }

    /// What has ended since the last call; what goes on is told when it has ended. `rows`: which of it is
    /// kept as rows from now on.
    pub(crate) fn take_ended(&mut self, rows: FinishedRows) -> (FinishedRows, Option<FoundKinds>) {
        self.generations.settle(&mut self.finished);
        self.generations.forget_ended();
        self.current = Current::default();
        let kinds = self.finished.kinds.as_mut().map(std::mem::take);
        let kinds = kinds.map(|kinds| kinds.finish(&self.files));
        if self.files.len() > FILES_MAX {
            let used = self.generations.keep_files(&self.files);
            self.files = used;
        }
        (std::mem::replace(&mut self.finished.rows, rows), kinds)
    }

    /// The transactions of which records were counted, and not their end.
    pub(crate) fn open(&self) -> impl Iterator<Item = OpenPart> {
        self.generations.open()
    }

    /// Ends those that are known to go on no more though no record says so, each with this outcome.
    pub(crate) fn end_unseen(&mut self, outcome: impl Fn(OpenPart) -> Option<TransactionOutcome>) {
        self.current = Current::default();
        self.generations.end_unseen(outcome);
    }

    /// Whether a record of an xid was counted, its end for one.
    pub(crate) fn has_seen(&self, xid: u32) -> bool {
        self.generations.has_seen(xid)
    }

    /// Counts a record with its mark, if it has one; whether it goes on with the streak of those before.
    #[inline(always)]
    pub(crate) fn take(&mut self, record: &Record<'_>, mark: Option<BlockMark>) -> bool {
        if self.goes_on(record, mark) {
            return true;
        }
        if !self.takes(record, mark) {
            self.another(record);
        }
        false
    }

    /// Counts a record that is not like the one before.
    #[inline(never)]
    fn another(&mut self, record: &Record<'_>) {
        match record.header.rmgr {
            rmgr::TRANSACTION => {
                let end = Self::end_of(record);
                self.count(record, end.as_ref().map_or(record.header.xid, |end| end.xid));
                self.end_or_assign(record, end);
            }
            rmgr::STANDBY => {
                self.running(record);
                self.count(record, record.header.xid);
            }
            _ => self.count(record, record.header.xid),
        }
    }

    fn count(&mut self, record: &Record<'_>, xid: u32) {
        let amounts = Amounts {
            count: 1,
            record_bytes: u64::from(record.header.total_bytes - record.parts.fpi_bytes),
            fpi_bytes: u64::from(record.parts.fpi_bytes),
            fpi_count: u64::from(record.parts.fpi_count),
        };
        if xid == 0 {
            self.without_transaction.add(&amounts);
            if let Some(kinds) = &mut self.finished.kinds {
                kinds.maintain(record, &amounts);
            }
            return;
        }
        self.current.streak = None;
        if xid != self.current.xid {
            let part = self.generations.alive(xid, record.lsn);
            self.current = Current { xid, part, streak: None };
        }
        let Some(part) = self.generations.part(self.current.part) else { return };
        if part.amounts.count == 0 {
            part.start = record.lsn;
        }
        part.amounts.add(&amounts);
        part.end = record.end;
        let mut places = record.places();
        // The last relation with its number, and the first one of a main fork.
        let (mut last, mut table) = (None, None);
        for place in &mut places {
            let relation = place.relation;
            let file = match last {
                Some((known, file)) if known == relation => file,
                _ => self.files.number(ForkKey { relation, fork: 0 }),
            };
            part.files.insert(file);
            table = table.or((place.fork == 0).then_some(file));
            last = Some((relation, file));
        }
        if self.finished.kinds.is_some()
            && let Some(operation) = RowOperation::of(record)
            && let Some(file) = table
        {
            part.work.note(file, operation);
        }
        if places.names_toplevel {
            self.note_top_level(xid, record);
        }
    }

    /// The first record of a subtransaction may say which transaction it belongs to.
    #[cold]
    fn note_top_level(&mut self, xid: u32, record: &Record<'_>) {
        if record.version.toplevel_xid
            && let Some(top) = record.toplevel_xid().filter(|top| *top != xid)
        {
            self.generations.belongs(xid, top, record.lsn);
            self.generations.is_top_level(top, record.lsn);
        }
    }

    /// Takes note of how a transaction ended, or which subtransactions it has.
    fn end_or_assign(&mut self, record: &Record<'_>, end: Option<EndOf>) {
        let RecordHeader { rmgr, info, .. } = record.header;
        if let Some(EndOf { xid, outcome, end_time }) = end {
            // Another part may come next.
            let before = std::mem::take(&mut self.current);
            if xid == 0 {
                return;
            }
            let is_found = before.xid == xid;
            let place =
                if is_found { before.part } else { self.generations.alive(xid, record.lsn) };
            if let Some(part) = self.generations.part(place) {
                (part.outcome, part.end_time) = (outcome, end_time);
            }
            if xact::ends_alone(info).is_none() {
                self.subtransactions(record, xid);
            }
            if outcome != TransactionOutcome::Prepared {
                self.generations.ended(place);
                if self.generations.is_due() {
                    self.generations.make_room(&mut self.finished);
                    self.end_batch();
                }
            }
        } else if rmgr == rmgr::TRANSACTION && info & xact::OPCODE_MASK == xact::ASSIGNMENT {
            self.assigned(record);
        }
    }

    /// Takes note of the end of a transaction whose record is not counted.
    #[inline(never)]
    fn not_counted(&mut self, record: &Record<'_>) {
        match record.header.rmgr {
            rmgr::STANDBY => self.running(record),
            _ => self.end_or_assign(record, Self::end_of(record)),
        }
    }

    /// What a record says of the end of a transaction, and of which one: not always the one in its
    /// header.
    fn end_of(record: &Record<'_>) -> Option<EndOf> {
        let info = record.header.info;
        let main_data = record.main_data()?;
        if let Some(commits) = xact::ends_alone(info) {
            let time = xact::end_time(info, &main_data)?;
            return Some(EndOf::new(record.header.xid, commits, time));
        }
        if info & xact::OPCODE_MASK == xact::PREPARE {
            let xid = Prepare::parse(&main_data, record.version)?.xid;
            return Some(EndOf { xid, outcome: TransactionOutcome::Prepared, end_time: None });
        }
        let end = End::parse(info, &main_data, record.version)?;
        let xid = end.prepared_xid.unwrap_or(record.header.xid);
        Some(EndOf::new(xid, end.commits, end.time))
    }

    /// Parts have other places now, and kinds may be more.
    fn end_batch(&mut self) {
        self.finished.kinds.iter_mut().for_each(|kinds| kinds.limit(&self.files));
        self.current = Current::default();
    }

    /// Takes note of the subtransactions that end with a transaction, or are prepared with it.
    fn subtransactions(&mut self, record: &Record<'_>, xid: u32) {
        let (info, lsn) = (record.header.info, record.lsn);
        let Some(main_data) = record.main_data() else { return };
        match info & xact::OPCODE_MASK {
            xact::PREPARE => {
                self.generations.is_top_level(xid, lsn);
                if let Some(prepare) = Prepare::parse(&main_data, record.version) {
                    let subs = prepare.subxids.iter();
                    subs.for_each(|sub| _ = self.generations.belongs(sub, xid, lsn));
                }
                return;
            }
            xact::ABORT_PREPARED => self.generations.is_top_level(xid, lsn),
            _ => {}
        }
        if let Some(end) = End::parse(info, &main_data, record.version) {
            end.subxids.iter().for_each(|sub| self.generations.ends_with(sub, xid, lsn));
        }
    }

    fn assigned(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        if let Some(Assignment { top, subxids }) = Assignment::parse(&main_data) {
            let belongs = |sub| _ = self.generations.belongs(sub, top, record.lsn);
            subxids.iter().for_each(belongs);
            self.generations.is_top_level(top, record.lsn);
        }
    }

    fn running(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        let info = record.header.rmgr_info();
        if let Some(running) =
            RunningXacts::parse(&main_data).filter(|_| info == standby::RUNNING_XACTS)
        {
            self.generations.oldest_is(running.oldest_running_xid);
            running.xids.iter().for_each(|xid| self.generations.is_top_level(xid, record.lsn));
        }
    }
}

/// How a transaction ended.
struct EndOf {
    xid: u32,
    outcome: TransactionOutcome,
    end_time: Option<Time>,
}

impl EndOf {
    fn new(xid: u32, commits: bool, time: Time) -> EndOf {
        let outcome =
            if commits { TransactionOutcome::Committed } else { TransactionOutcome::Aborted };
        EndOf { xid, outcome, end_time: Some(time) }
    }
}

impl Observe for Transactions {
    // Lists of subtransactions may be long.
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.take(record, record.block_mark());
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if [rmgr::TRANSACTION, rmgr::STANDBY].contains(&record.header.rmgr) {
            self.not_counted(record);
        }
    }

    fn keeps(&self) -> bool {
        self.finished.kinds.is_some()
    }

    fn merge(&mut self, later: Transactions) {
        let files: Vec<u32> = later.files.iter().map(|(key, ())| self.files.number(*key)).collect();
        self.generations.merge(later.generations, &files, &mut self.finished);
        self.current = Current::default();
        self.finished.merge(later.finished, &files);
        self.without_transaction.add(&later.without_transaction);
    }

    fn settle(&mut self) {
        self.generations.settle(&mut self.finished);
        self.end_batch();
    }

    fn shrink(&mut self) {
        self.generations.make_room(&mut self.finished);
        self.end_batch();
        self.generations.shrink();
    }
}

impl Transactions {
    /// Counts a record if it is like the one before.
    #[inline(always)]
    fn goes_on(&mut self, record: &Record<'_>, mark: Option<BlockMark>) -> bool {
        let Some(streak) = self.current.streak else { return false };
        let RecordHeader { rmgr, info, xid, total_bytes, .. } = record.header;
        if (rmgr, info, xid) != (streak.rmgr, streak.info, self.current.xid)
            || mark != Some(streak.mark)
        {
            return false;
        }
        let Some(part) = self.generations.part(self.current.part) else { return false };
        part.amounts.count += 1;
        part.amounts.record_bytes += u64::from(total_bytes);
        part.end = record.end;
        true
    }

    /// Counts a record of a transaction that has one block and no image.
    #[inline(always)]
    fn takes(&mut self, record: &Record<'_>, mark: Option<BlockMark>) -> bool {
        let RecordHeader { rmgr, info, xid, .. } = record.header;
        let Some(mark) = mark.filter(|_| xid != 0) else { return false };
        if xid != self.current.xid {
            // These may tell of other transactions.
            if [rmgr::TRANSACTION, rmgr::STANDBY].contains(&rmgr) {
                return false;
            }
            let part = self.generations.alive(xid, record.lsn);
            self.current = Current { xid, part, streak: None };
        }
        let Some(part) = self.generations.part(self.current.part) else { return false };
        if part.amounts.count == 0 {
            part.start = record.lsn;
        }
        part.amounts.count += 1;
        part.amounts.record_bytes += u64::from(record.header.total_bytes);
        part.end = record.end;
        let file = self.files.number(ForkKey { relation: mark.relation(), fork: 0 });
        part.files.insert(file);
        let asks_for_work = self.finished.kinds.is_some() && mark.fork() == 0;
        let operation = if asks_for_work { RowOperation::of(record) } else { None };
        operation.into_iter().for_each(|operation| part.work.note(file, operation));
        // What did nothing to rows does not speak for what follows it.
        let is_streak = rmgr == rmgr::HEAP && (operation.is_some() || !asks_for_work);
        self.current.streak = is_streak.then_some(Streak { rmgr, info, mark });
        true
    }
}
