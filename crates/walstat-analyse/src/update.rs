//! What an update of a row costs: its own record, the lock and the pruning before it, the index
//! entries after it; HOT updates and others apart. Tables are told by their files; names are not
//! known here.
//!
//! A server writes the records of an update in one order: pruning of the page as it is read, a lock
//! of the row if its new version needs another page or is stored out of line (`heap_update`), the
//! update itself, then the entries of all indexes (`ExecInsertIndexTuples`), before the transaction
//! changes another row. So three things are assumed:
//!
//! * What a transaction writes into indexes belongs to the last row that it changed, if that change
//!   was an update.
//! * Locks of a row belong to the next update of it by the same transaction (`SELECT FOR UPDATE`, and
//!   the update's own), if it locks or updates no other row between.
//! * The last pruning of a page belongs to the next update of a row in it. Readers and vacuum prune
//!   too: so it must have happened just before.
//!
//! Others may write between. What lies further apart than the windows below is not joined, which
//! bounds memory. What comes out does not depend on how the WAL is divided: an event whose cause may
//! lie before a run stays open until the runs are merged.

mod step;

use self::step::{Charge, Row, Step};
use super::fork_table::{ForkKey, ForkTable};
use super::open_events::OpenEvents;
use super::page::Page;
use super::recent_map::{Granule, RecentMap};
use serde::{Deserialize, Serialize};
use walstat_format::block::RelFileLocator;
use walstat_format::payload::heap;
use walstat_format::payload::heap::OPCODE_MASK;
use walstat_format::payload::heap2;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_read::scan::observe::Observe;

/// So far apart may be what a transaction writes for one update: 1 MB of WAL.
const TRANSACTION_WINDOW: u64 = 128;
/// So far apart may be the pruning of a page and the update: 128 kB of WAL.
const PAGE_WINDOW: u64 = 16;

sums! {
    /// What updates of one sort cost.
    #[derive(Serialize, Deserialize)]
    pub struct Cost {
        /// How many.
        updates,
        /// Bytes of their own records.
        heap_bytes,
        /// Bytes of locks before them.
        lock_bytes,
        /// Bytes of pruning before them.
        prune_bytes,
        /// Bytes of what they wrote into indexes.
        index_bytes,
        /// How much of all that is images.
        fpi_bytes,
    }
}

/// What the updates of one table cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// HOT ones.
    pub hot: Cost,
    /// All others.
    pub non_hot: Cost,
}

/// The updates of all tables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Updates {
    tables: ForkTable<Costs>,
    /// What each transaction did last.
    transactions: RecentMap<u32, Last, TRANSACTION_WINDOW>,
    /// What was done to each page last; with its cost if it was pruned, and not updated since.
    pages: RecentMap<Page, Option<Charge>, PAGE_WINDOW>,
    open: OpenEvents<OpenEvent>,
    /// A transaction whose next insertion changes nothing here.
    #[serde(skip)]
    idle: u32,
}

/// Updates of one table that something is charged to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Target {
    relation: RelFileLocator,
    is_hot: bool,
}

/// What for.
#[derive(Debug, Clone, Copy)]
enum Reason {
    Lock,
    Prune,
    Index,
}

/// What a transaction did last.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Last {
    /// What entries into indexes are charged to: nothing if it was no update.
    target: Option<Target>,
    lock: RowLock,
}

/// The row that a transaction locked and has not updated yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum RowLock {
    /// There is none.
    None,
    /// There may be one, before the first record.
    Unknown,
    /// There is, locked last at this place. What lies before `open_since`, if that is known, may hold
    /// more locks of it.
    Row { at: Granule, row: Row, charge: Charge, open_since: Option<Granule> },
}

/// An event that cannot be judged without the records before the first one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct OpenEvent {
    at: Granule,
    xid: u32,
    event: Event,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Event {
    /// Entries into indexes.
    Index(Charge),
    /// An update whose row may have been locked before.
    Locked(Row, Target),
    /// An update whose page may have been pruned before.
    Pruned(Page, Target),
}

impl Cost {
    /// All bytes.
    pub fn total_bytes(&self) -> u64 {
        self.heap_bytes + self.lock_bytes + self.prune_bytes + self.index_bytes
    }
}

impl Costs {
    /// Adds `other`.
    pub fn add(&mut self, other: &Costs) {
        self.hot.add(&other.hot);
        self.non_hot.add(&other.non_hot);
    }
}

impl RowLock {
    fn open_since(self) -> Option<Granule> {
        match self {
            RowLock::Row { open_since, .. } => open_since,
            RowLock::None | RowLock::Unknown => None,
        }
    }

    /// The lock that is held after `before`: what came before matters only where this run does not know it.
    fn after(self, before: RowLock) -> RowLock {
        match (self, before) {
            (RowLock::Unknown, before) => before,
            (RowLock::None, _)
            | (RowLock::Row { open_since: None, .. }, _)
            | (_, RowLock::Unknown) => self,
            (RowLock::Row { at, row, charge, open_since: Some(first) }, before) => match before {
                RowLock::Row { at: since, row: same, charge: more, open_since }
                    if same == row && first.is_within(TRANSACTION_WINDOW, since) =>
                {
                    RowLock::Row { at, row, charge: charge.and(more), open_since }
                }
                _ => RowLock::Row { at, row, charge, open_since: None },
            },
        }
    }
}

impl Updates {
    /// What the updates of rows in a file cost; `None` if there were none.
    pub fn of(&self, relation: RelFileLocator) -> Option<&Costs> {
        self.tables.get(&ForkKey { relation, fork: 0 })
    }

    fn cost(&mut self, target: Target) -> &mut Cost {
        let costs = self.tables.value(ForkKey { relation: target.relation, fork: 0 });
        if target.is_hot { &mut costs.hot } else { &mut costs.non_hot }
    }

    fn charge(&mut self, target: Target, reason: Reason, charge: Charge) {
        let cost = self.cost(target);
        let bytes = match reason {
            Reason::Lock => &mut cost.lock_bytes,
            Reason::Prune => &mut cost.prune_bytes,
            Reason::Index => &mut cost.index_bytes,
        };
        *bytes += charge.bytes;
        cost.fpi_bytes += charge.fpi_bytes;
    }

    /// Takes note of a record that may be of an update, or end one.
    #[inline(never)]
    fn take(&mut self, record: &Record<'_>) {
        let at = Granule::of(record.lsn);
        self.open.note(at);
        Step::of(record, |step| self.step(record.header.xid, at, step));
    }

    #[inline(always)]
    fn step(&mut self, xid: u32, at: Granule, step: Step) {
        match step {
            Step::Update { row, is_hot, own } => self.update(xid, at, row, is_hot, own),
            Step::Lock { row, own } => self.lock(xid, at, row, own),
            Step::OtherChange => self.other_change(xid, at),
            Step::Prune { page, own } => {
                self.pages.insert(page, at, Some(own));
            }
            Step::Index { own } => self.index(xid, at, own),
            Step::End => self.end(xid, at),
        }
    }

    /// Nothing of the transaction goes on; where it may have begun before the first record, that is to be
    /// known there too.
    fn end(&mut self, xid: u32, at: Granule) {
        if self.open.may_reach_before(TRANSACTION_WINDOW, at) {
            self.transactions.insert(xid, at, Last { target: None, lock: RowLock::None });
        } else {
            self.transactions.remove(&xid, at);
        }
    }

    /// The row lock that a transaction has.
    fn lock_of(&self, xid: u32, at: Granule) -> RowLock {
        self.transactions.get(&xid, at).map_or(RowLock::Unknown, |last| last.lock)
    }

    fn lock(&mut self, xid: u32, at: Granule, row: Row, own: Charge) {
        let before = self.lock_of(xid, at);
        let lock = RowLock::Row { at, row, charge: own, open_since: Some(at) }.after(before);
        self.transactions.insert(xid, at, Last { target: None, lock });
        self.idle = 0;
    }

    #[inline(always)]
    fn update(&mut self, xid: u32, at: Granule, row: Row, is_hot: bool, own: Charge) {
        let target = Target { relation: row.page.relation(), is_hot };
        let cost = self.cost(target);
        cost.updates += 1;
        cost.heap_bytes += own.bytes;
        cost.fpi_bytes += own.fpi_bytes;
        let lock = match self.transactions.get_mut(&xid, at) {
            Some((since, last)) => {
                (*since, last.target) = (at, Some(target));
                std::mem::replace(&mut last.lock, RowLock::None)
            }
            None => {
                let last = Last { target: Some(target), lock: RowLock::None };
                self.transactions.insert(xid, at, last);
                RowLock::Unknown
            }
        };
        self.after_lock(lock, row, target, xid, at);
        let pruned = if self.open.may_reach_before(PAGE_WINDOW, at) {
            self.pages.insert(row.page, at, None)
        } else {
            self.pages.remove(&row.page, at)
        };
        self.after_prune(pruned, row.page, target, xid, at);
        self.idle = 0;
    }

    /// Charges the lock of a row before its update, if the transaction had one.
    fn after_lock(&mut self, lock: RowLock, wanted: Row, target: Target, xid: u32, at: Granule) {
        match lock {
            RowLock::None => {}
            RowLock::Unknown => {
                if self.open.may_reach_before(TRANSACTION_WINDOW, at) {
                    self.open.push(OpenEvent { at, xid, event: Event::Locked(wanted, target) });
                }
            }
            RowLock::Row { at: since, row, charge, open_since } => {
                if row == wanted && at.is_within(TRANSACTION_WINDOW, since) {
                    self.charge(target, Reason::Lock, charge);
                    let is_open =
                        |at: &Granule| self.open.may_reach_before(TRANSACTION_WINDOW, *at);
                    if let Some(at) = open_since.filter(is_open) {
                        self.open.push(OpenEvent { at, xid, event: Event::Locked(row, target) });
                    }
                }
            }
        }
    }

    /// Charges the pruning of a page before the update of a row in it, if there was one: `pruned` is what was
    /// done to the page last.
    fn after_prune(
        &mut self,
        pruned: Option<Option<Charge>>,
        page: Page,
        target: Target,
        xid: u32,
        at: Granule,
    ) {
        match pruned {
            Some(Some(charge)) => self.charge(target, Reason::Prune, charge),
            Some(None) => {}
            None => {
                if self.open.may_reach_before(PAGE_WINDOW, at) {
                    self.open.push(OpenEvent { at, xid, event: Event::Pruned(page, target) });
                }
            }
        }
    }

    /// A row was changed, but not updated. A lock stays: what is stored out of line is inserted
    /// between it and its update.
    fn other_change(&mut self, xid: u32, at: Granule) {
        match self.transactions.get_mut(&xid, at) {
            Some((_, Last { target: None, .. })) => {}
            Some((since, last)) => (*since, last.target) = (at, None),
            None if self.open.may_reach_before(TRANSACTION_WINDOW, at) => {
                self.transactions.insert(xid, at, Last { target: None, lock: RowLock::Unknown });
            }
            None => {}
        }
        self.idle = xid;
    }

    /// An entry into an index, or what makes room for it.
    fn index(&mut self, xid: u32, at: Granule, charge: Charge) {
        match self.transactions.get(&xid, at) {
            Some(Last { target: Some(target), .. }) => self.charge(target, Reason::Index, charge),
            Some(Last { target: None, .. }) => {}
            None if self.open.may_reach_before(TRANSACTION_WINDOW, at) => {
                self.open_index(xid, at, charge)
            }
            None => self.idle = xid,
        }
    }

    fn open_index(&mut self, xid: u32, at: Granule, charge: Charge) {
        if let Some(OpenEvent { at: last_at, xid: last_xid, event: Event::Index(sum) }) =
            self.open.last_mut()
            && (*last_at, *last_xid) == (at, xid)
        {
            *sum = sum.and(charge);
            return;
        }
        self.open.push(OpenEvent { at, xid, event: Event::Index(charge) });
    }

    /// Judges what a later run left open.
    fn judge(&mut self, open: OpenEvent) {
        let OpenEvent { at, xid, event } = open;
        match event {
            Event::Index(charge) => self.index(xid, at, charge),
            Event::Locked(row, target) => {
                self.after_lock(self.lock_of(xid, at), row, target, xid, at)
            }
            Event::Pruned(page, target) => {
                self.after_prune(self.pages.get(&page, at), page, target, xid, at)
            }
        }
    }
}

impl Observe for Updates {
    // Main data stands after the images, where a window may end.
    const WHOLE: bool = true;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let (xid, opcode) = (record.header.xid, record.header.info & OPCODE_MASK);
        let is_idle = xid == self.idle;
        let counts = match record.header.rmgr {
            rmgr::HEAP => {
                !is_idle || [heap::UPDATE, heap::HOT_UPDATE, heap::LOCK].contains(&opcode)
            }
            rmgr::HEAP2 => opcode == heap2::MULTI_INSERT && !is_idle || heap2::prunes_alone(opcode),
            rmgr::TRANSACTION => !self.open.is_first() || !self.transactions.is_empty(),
            id => !is_idle && xid != 0 && rmgr::INDEXES.contains(&id),
        };
        if counts {
            self.take(record);
        }
    }

    fn merge(&mut self, later: Updates) {
        let Updates { tables, transactions, pages, open, .. } = later;
        self.open.join(open).into_iter().for_each(|open| self.judge(open));
        for (key, costs) in tables.into_rows() {
            self.tables.value(key).add(&costs);
        }
        self.transactions.merge(transactions, |ours, xid, at, last| {
            if let Some(before) = ours.get(&xid, last.lock.open_since().unwrap_or(at)) {
                last.lock = last.lock.after(before.lock);
            }
        });
        self.pages.merge(pages, |_, _, _, _| {});
        self.idle = 0;
    }

    fn settle(&mut self) {
        self.open.settle();
    }

    fn shrink(&mut self) {
        self.tables.shrink();
        self.open.shrink();
        self.transactions.shrink();
        self.pages.shrink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use walstat_format::lsn::Lsn;

    type Seen = (u32, Granule, Step);

    fn page(block: u32) -> Page {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode: block % 2 };
        Page::new(relation, block)
    }

    fn counted(steps: &[Seen]) -> Updates {
        let mut updates = Updates::default();
        for (xid, at, step) in steps {
            updates.open.note(*at);
            updates.step(*xid, *at, *step);
        }
        updates
    }

    fn costs(updates: &Updates) -> BTreeMap<RelFileLocator, Costs> {
        updates.tables.iter().map(|(key, costs)| (key.relation, *costs)).collect()
    }

    /// The three assumptions as they are written: each looks back over all that was before.
    fn naive(steps: &[Seen]) -> BTreeMap<RelFileLocator, Costs> {
        let mut sums: BTreeMap<RelFileLocator, Costs> = BTreeMap::new();
        let mut add = |relation, is_hot, change: &dyn Fn(&mut Cost)| {
            let costs = sums.entry(relation).or_default();
            change(if is_hot { &mut costs.hot } else { &mut costs.non_hot });
        };
        for (index, (xid, at, step)) in steps.iter().enumerate() {
            let before = || steps[..index].iter().rev();
            let near = |since: &Granule| at.is_within(TRANSACTION_WINDOW, *since);
            match step {
                Step::Update { row, is_hot, own } => {
                    let relation = row.page.relation();
                    add(relation, *is_hot, &|cost| {
                        cost.updates += 1;
                        cost.heap_bytes += own.bytes;
                    });
                    let locks =
                        |step: &Step| matches!(step, Step::Lock { .. } | Step::Update { .. });
                    let mut until = *at;
                    for (_, since, step) in
                        before().filter(|(of, _, step)| of == xid && locks(step))
                    {
                        match step {
                            Step::Lock { row: locked, own }
                                if locked == row && until.is_within(TRANSACTION_WINDOW, *since) =>
                            {
                                add(relation, *is_hot, &|cost| cost.lock_bytes += own.bytes);
                                until = *since;
                            }
                            _ => break,
                        }
                    }
                    let touches = |step: &Step| match step {
                        Step::Prune { page, .. } => *page == row.page,
                        Step::Update { row: other, .. } => other.page == row.page,
                        _ => false,
                    };
                    let last = before().find(|(.., step)| touches(step));
                    if let Some((_, since, Step::Prune { own, .. })) = last
                        && at.is_within(PAGE_WINDOW, *since)
                    {
                        add(relation, *is_hot, &|cost| cost.prune_bytes += own.bytes);
                    }
                }
                Step::Index { own } => {
                    let changes =
                        |step: &Step| !matches!(step, Step::Index { .. } | Step::Prune { .. });
                    let last = before().find(|(of, _, step)| of == xid && changes(step));
                    if let Some((_, since, Step::Update { row, is_hot, .. })) = last
                        && near(since)
                    {
                        add(row.page.relation(), *is_hot, &|cost| cost.index_bytes += own.bytes);
                    }
                }
                _ => {}
            }
        }
        sums
    }

    /// Steps of few transactions on few rows, some far apart.
    fn steps(seed: u64) -> Vec<Seen> {
        let mut state = seed * 2 + 1;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) % limit
        };
        let (mut at, mut ended) = (0, 0);
        let steps = (0..90u64).map(|index| {
            at += [0, 0, 0, 1, 7, 40, 150][below(7) as usize] * 8192;
            let own = Charge { bytes: 1 << (index % 50), fpi_bytes: 0 };
            let row = Row { page: page(below(3) as u32), offset: below(2) as u16 };
            let step = match below(9) {
                0..=2 => Step::Update { row, is_hot: below(2) == 0, own },
                3 => Step::Lock { row, own },
                4 => Step::OtherChange,
                5 => Step::Prune { page: row.page, own },
                6 if below(3) == 0 => Step::End,
                _ => Step::Index { own },
            };
            let xid = ended * 3 + below(3) as u32;
            // Nothing more comes of a transaction that has ended.
            ended += u32::from(matches!(step, Step::End));
            (xid, Granule::of(Lsn(at)), step)
        });
        steps.collect()
    }

    #[test]
    fn costs_are_those_of_the_assumptions_however_the_steps_are_divided() {
        let mut charged = Cost::default();
        for seed in 0..300 {
            let steps = steps(seed);
            let wanted = naive(&steps);
            wanted.values().for_each(|costs| charged.add(&costs.hot));
            assert_eq!(costs(&counted(&steps)), wanted, "{seed}");
            for (first, second) in [(0, 30), (10, 11), (20, 60), (45, 50), (80, 90)] {
                let [a, b, c] =
                    [&steps[..first], &steps[first..second], &steps[second..]].map(counted);
                let mut right = b.clone();
                right.merge(c.clone());
                let mut other = a.clone();
                other.merge(right);
                let mut left = a;
                left.settle();
                left.merge(b);
                left.settle();
                left.merge(c);
                for merged in [left, other] {
                    assert_eq!(costs(&merged), wanted, "{seed}, {first}, {second}");
                }
            }
        }
        let found = [charged.lock_bytes, charged.prune_bytes, charged.index_bytes];
        assert!(found.iter().all(|bytes| *bytes > 0), "{charged:?}");
    }
}
