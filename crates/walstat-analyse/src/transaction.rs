//! Who writes the WAL, by transaction: bytes, relations, how each ended; subtransactions are folded
//! into the transaction they belong to, as far as the WAL tells which that is.
//!
//! What has ended and can get nothing more is kept as a row of its own
//! ([`super::finished_transactions`]); all else is kept by the xid of the records.

mod part;

use self::part::Part;
use super::amounts::Amounts;
use super::finished_transactions::{FinishedRows, Outcome};
use super::fork_table::{ForkKey, ForkTable};
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use walstat_format::block::{BlockMark, RelFileLocator};
use walstat_format::in_order;
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

/// So many transactions that have not ended are kept; beyond that the oldest are given up on.
const OPEN_MAX: usize = 2_000_000;
/// Subtransactions in subtransactions are followed that deep.
const DEPTH_MAX: usize = 64;

/// All transactions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transactions {
    /// Those to which more may come.
    parts: Vec<Part>,
    /// Places in `parts`.
    #[serde(serialize_with = "in_order::map")]
    by_xid: HashMap<u32, u32>,
    /// What each subtransaction is said to belong to.
    #[serde(serialize_with = "in_order::map")]
    parents: HashMap<u32, u32>,
    /// Transactions that subtransactions are said to belong to.
    #[serde(serialize_with = "in_order::set")]
    has_children: HashSet<u32>,
    /// Transactions that are seen to be top-level ones.
    #[serde(serialize_with = "in_order::set")]
    top_level: HashSet<u32>,
    /// All transactions before this one have ended.
    oldest_running: u32,
    /// Relations have numbers here.
    files: ForkTable<()>,
    finished: FinishedRows,
    without_transaction: Amounts,
    current: Current,
    /// Nothing can come before what was seen.
    is_first: bool,
}

/// The last record's transaction.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Current {
    xid: u32,
    /// Place in the parts.
    part: u32,
    /// The relation that its last record referred to.
    relation: RelFileLocator,
}

impl Transactions {
    /// None yet; the rows that `finished` says will be kept.
    pub fn new(finished: FinishedRows) -> Transactions {
        Transactions {
            parts: Vec::new(),
            by_xid: HashMap::new(),
            parents: HashMap::new(),
            has_children: HashSet::new(),
            top_level: HashSet::new(),
            oldest_running: 0,
            files: ForkTable::default(),
            finished,
            without_transaction: Amounts::default(),
            current: Current::default(),
            is_first: false,
        }
    }

    /// Takes note of subtransactions with their parents, before any record is seen.
    pub fn know(&mut self, parents: &[(u32, u32)]) {
        parents.iter().for_each(|(sub, parent)| self.belongs(*sub, *parent));
    }

    /// All that was found, and the records without a transaction.
    pub fn finish(mut self) -> (FinishedRows, Amounts) {
        self.fold_into(|_| true);
        for part in &self.parts {
            self.finished.add(part.finished(self.top_level.contains(&part.xid)));
        }
        (self.finished, self.without_transaction)
    }

    /// Counts a record with its mark, if it has one.
    #[inline(always)]
    pub fn take(&mut self, record: &Record<'_>, mark: Option<BlockMark>) {
        if !self.takes(record, mark) {
            // A copy: the record itself then stays in registers.
            let record = *record;
            self.another(&record);
        }
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
            return;
        }
        if xid != self.current.xid {
            self.begin(xid, record);
        }
        let Some(part) = self.parts.get_mut(self.current.part as usize) else { return };
        if part.amounts.count == 0 {
            part.start = record.lsn;
        }
        part.amounts.add(&amounts);
        part.end = record.end;
        record.for_each_place(|place, _| {
            let relation = place.relation();
            if relation != self.current.relation {
                self.current.relation = relation;
                part.files.insert(self.files.number(ForkKey { relation, fork: 0 }));
            }
        });
    }

    /// Takes note of how a transaction ended, or which subtransactions it has.
    fn end_or_assign(&mut self, record: &Record<'_>, end: Option<EndOf>) {
        let RecordHeader { rmgr, info, .. } = record.header;
        if let Some(EndOf { xid, outcome, commit_time }) = end {
            let place = if self.current.xid == xid && xid != 0 {
                self.current.part
            } else {
                self.place(xid, record.lsn)
            };
            if let Some(part) = self.parts.get_mut(place as usize) {
                (part.outcome, part.commit_time) = (outcome, commit_time);
            }
            if xact::ends_alone(info).is_none() {
                self.ended(record, xid);
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

    /// Records of `xid` follow; `record` is the first of them.
    fn begin(&mut self, xid: u32, record: &Record<'_>) {
        let known = self.parts.len();
        self.current = Current { xid, part: self.place(xid, record.lsn), ..Current::default() };
        // The first record of a subtransaction may say which transaction it belongs to.
        if self.parts.len() > known
            && record.version.toplevel_xid
            && record.block_mark().is_none()
            && let Some(top) = record.toplevel_xid()
        {
            self.top_level.insert(top);
            self.belongs(xid, top);
        }
    }

    /// Where the part of `xid` lies, which begins at `start` if there is none yet.
    fn place(&mut self, xid: u32, start: Lsn) -> u32 {
        // 2³² parts would have run out of memory long before.
        let next = self.parts.len() as u32;
        let place = *self.by_xid.entry(xid).or_insert(next);
        if place == next {
            self.parts.push(Part::new(xid, start));
        }
        place
    }

    fn part(&self, xid: u32) -> Option<&Part> {
        self.by_xid.get(&xid).and_then(|place| self.parts.get(*place as usize))
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
            return Some(EndOf { xid, outcome: Outcome::Prepared, commit_time: None });
        }
        let end = End::parse(info, &main_data, record.version)?;
        let xid = end.prepared_xid.unwrap_or(record.header.xid);
        Some(EndOf::new(xid, end.commits, end.time))
    }

    /// Takes note of the subtransactions that end with a transaction.
    fn ended(&mut self, record: &Record<'_>, xid: u32) {
        let info = record.header.info;
        let Some(main_data) = record.main_data() else { return };
        match info & xact::OPCODE_MASK {
            xact::PREPARE => {
                self.top_level.insert(xid);
                if let Some(prepare) = Prepare::parse(&main_data, record.version) {
                    prepare.subxids.iter().for_each(|sub| self.belongs(sub, xid));
                }
                return;
            }
            xact::ABORT_PREPARED => _ = self.top_level.insert(xid),
            _ => {}
        }
        if let Some(end) = End::parse(info, &main_data, record.version) {
            end.subxids.iter().for_each(|sub| self.belongs(sub, xid));
        }
    }

    fn assigned(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        if let Some(assignment) = Assignment::parse(&main_data) {
            self.top_level.insert(assignment.top);
            assignment.subxids.iter().for_each(|sub| self.belongs(sub, assignment.top));
        }
    }

    fn belongs(&mut self, sub: u32, parent: u32) {
        if sub != parent {
            self.parents.insert(sub, parent);
            self.has_children.insert(parent);
        }
    }

    fn running(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        let info = record.header.info & 0xF0;
        if let Some(running) =
            RunningXacts::parse(&main_data).filter(|_| info == standby::RUNNING_XACTS)
        {
            self.oldest_running = running.oldest_running_xid;
            self.top_level.extend(running.xids.iter());
        }
    }

    /// `xid` and what it belongs to, up to the transaction that belongs to none.
    fn chain(&self, xid: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(xid), |xid| self.parents.get(xid).copied()).take(DEPTH_MAX + 1)
    }

    /// The transaction that `xid` belongs to in the end; itself if it belongs to none.
    fn top_of(&self, xid: u32) -> u32 {
        self.chain(xid).last().unwrap_or(xid)
    }

    /// Folds subtransactions into those transactions for which `wanted` holds.
    fn fold_into(&mut self, wanted: impl Fn(Option<&Part>) -> bool) {
        if self.parents.is_empty() {
            return;
        }
        let belonging = self.parts.iter().filter_map(|part| {
            let top = self.top_of(part.xid);
            (top != part.xid && wanted(self.part(top))).then_some((part.xid, top))
        });
        let belonging: HashMap<u32, u32> = belonging.collect();
        if belonging.is_empty() {
            return;
        }
        let mut subs = std::mem::take(&mut self.parts);
        let is_rolled_back = |part: &&Part| part.outcome == Outcome::Aborted;
        let rolled_back: HashSet<u32> =
            subs.iter().filter(is_rolled_back).map(|part| part.xid).collect();
        self.parts = subs.extract_if(.., |part| !belonging.contains_key(&part.xid)).collect();
        self.index();
        let is_lost: HashSet<u32> = subs
            .iter()
            .map(|sub| sub.xid)
            .filter(|xid| self.chain(*xid).any(|xid| rolled_back.contains(&xid)))
            .collect();
        for sub in subs {
            let Some(top) = belonging.get(&sub.xid) else { continue };
            let place = self.place(*top, sub.start) as usize;
            let Some(whole) = self.parts.get_mut(place) else { continue };
            whole.fold(&sub);
            whole.aborted_bytes += if is_lost.contains(&sub.xid) {
                sub.amounts.total_bytes()
            } else {
                sub.aborted_bytes
            };
            whole.files.merge(sub.files);
            whole.subtransactions += sub.subtransactions + 1;
        }
    }

    /// The parts have moved.
    fn index(&mut self) {
        self.current = Current::default();
        self.by_xid.clear();
        let places = self.parts.iter().zip(0u32..);
        self.by_xid.extend(places.map(|(part, place)| (part.xid, place)));
    }

    /// Whether nothing more can come to a transaction that has ended.
    fn is_final(&self, part: &Part) -> bool {
        let xid = part.xid;
        match part.outcome {
            Outcome::Committed => true,
            // It may be a subtransaction of one that goes on.
            Outcome::Aborted => {
                let is_old = self.oldest_running.wrapping_sub(xid).cast_signed() > 0;
                is_old && !self.parents.contains_key(&xid) || self.top_level.contains(&xid)
            }
            Outcome::Prepared | Outcome::Open => false,
        }
    }

    /// Hands on what is final: nothing earlier can come any more.
    fn conclude(&mut self) {
        let ended = |part: Option<&Part>| part.is_some_and(|part| part.outcome >= Outcome::Aborted);
        self.fold_into(ended);
        let parts = std::mem::take(&mut self.parts);
        let mut with_children = HashSet::new();
        for part in parts {
            if !self.is_final(&part) {
                self.parts.push(part);
                continue;
            }
            let top_level = self.top_level.remove(&part.xid);
            if self.has_children.remove(&part.xid) {
                with_children.insert(part.xid);
            }
            self.finished.add(part.finished(top_level));
        }
        if !with_children.is_empty() {
            self.parents.retain(|_, parent| !with_children.contains(parent));
        }
        self.give_up_on_oldest();
        self.index();
        self.forget_ended();
    }

    /// What is known of transactions that have ended is of no more use.
    fn forget_ended(&mut self) {
        let Transactions { by_xid, top_level, oldest_running, .. } = self;
        let is_running = |xid: &u32| xid.wrapping_sub(*oldest_running).cast_signed() >= 0;
        top_level.retain(|xid| is_running(xid) || by_xid.contains_key(xid));
    }

    /// Keeps memory in bounds where transactions never end.
    fn give_up_on_oldest(&mut self) {
        if self.parts.len() <= OPEN_MAX {
            return;
        }
        self.parts.sort_unstable_by_key(|part| part.end);
        self.finished.is_exact = false;
        for part in self.parts.drain(..OPEN_MAX / 2) {
            self.finished.add(part.finished(self.top_level.contains(&part.xid)));
        }
    }
}

/// How a transaction ended.
struct EndOf {
    xid: u32,
    outcome: Outcome,
    commit_time: Option<Time>,
}

impl EndOf {
    fn new(xid: u32, commits: bool, time: Time) -> EndOf {
        let outcome = if commits { Outcome::Committed } else { Outcome::Aborted };
        EndOf { xid, outcome, commit_time: commits.then_some(time) }
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
            let record = *record;
            self.not_counted(&record);
        }
    }

    fn merge(&mut self, later: Transactions) {
        self.parents.extend(later.parents);
        self.has_children.extend(later.has_children);
        self.top_level.extend(later.top_level);
        if later.oldest_running != 0 {
            self.oldest_running = later.oldest_running;
        }
        let files: Vec<u32> = later.files.iter().map(|(key, ())| self.files.number(*key)).collect();
        later.parts.into_iter().for_each(|part| self.add_later(part, &files));
        self.finished.merge(later.finished);
        self.without_transaction.add(&later.without_transaction);
    }

    fn settle(&mut self) {
        self.is_first = true;
        self.conclude();
    }

    fn shrink(&mut self) {
        self.parts.shrink_to_fit();
        self.by_xid.shrink_to_fit();
    }
}

impl Transactions {
    /// Adds a later part, where relations have other numbers; most are whole transactions, to which
    /// nothing more can come.
    fn add_later(&mut self, mut part: Part, files: &[u32]) {
        let xid = part.xid;
        let is_whole = self.is_first
            && part.outcome == Outcome::Committed
            && !self.has_children.contains(&xid)
            && !self.by_xid.contains_key(&xid);
        if is_whole {
            self.finished.add(part.finished(true));
            return;
        }
        let known = std::mem::take(&mut part.files);
        let renumbered = known.iter().filter_map(|file| files.get(file as usize));
        renumbered.for_each(|file| part.files.insert(*file));
        let place = self.place(xid, part.start) as usize;
        if let Some(ours) = self.parts.get_mut(place) {
            ours.add(part);
        }
    }

    /// Counts a record if it is of the same transaction as the one before, and has one block and no
    /// image.
    #[inline(always)]
    fn takes(&mut self, record: &Record<'_>, mark: Option<BlockMark>) -> bool {
        let Current { xid, part, relation } = self.current;
        if record.header.xid != xid || xid == 0 {
            return false;
        }
        let Some(mark) = mark else { return false };
        let Some(part) = self.parts.get_mut(part as usize) else { return false };
        part.amounts.count += 1;
        part.amounts.record_bytes += u64::from(record.header.total_bytes);
        part.end = record.end;
        if mark.relation() != relation {
            self.current.relation = mark.relation();
            part.files.insert(self.files.number(ForkKey { relation: mark.relation(), fork: 0 }));
        }
        true
    }
}
