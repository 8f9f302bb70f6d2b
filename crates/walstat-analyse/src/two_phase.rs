//! Transactions that are prepared and not ended where replay stands. A server keeps their states in the WAL
//! (from 10 on) and reads them from there once more: where recovery ends, and as a hot standby at a shutdown
//! checkpoint (`PrescanPreparedTransactions` in `src/backend/access/transam/twophase.c`). It looks for the
//! segment under the timeline that was replayed last, which need not be the one of the file that it had.
//!
//! Which segments are so is not known here: of all places the one with the last prepared transaction is
//! noted, which lies nearest.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, btree_map};
use std::iter::Rev;
use walstat_format::lsn::Lsn;
use walstat_format::payload::prepare;
use walstat_format::payload::timeline::Switch;
use walstat_format::payload::xact::{self, End};
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr::{TRANSACTION, XLOG};

/// No server has more at a time (`MAX_BACKENDS` in `src/include/postmaster/postmaster.h`).
pub(crate) const PREPARED_MAX: usize = (1 << 18) - 1;
/// Of each 1 MB in which transactions are prepared, two readings are kept. No segment is smaller.
const STEP_BITS: u32 = 20;

/// A prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The transaction.
    pub xid: u32,
    /// Start of the record with its state.
    pub lsn: Lsn,
    /// After the record.
    pub end: Lsn,
}

/// What is prepared where replay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The last transaction that is prepared and not ended.
    pub prepared: Option<Prepared>,
    /// The timeline that was replayed last, if a record told of it.
    pub timeline: Option<u32>,
}

/// A shutdown checkpoint: a hot standby reads the states of all prepared transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Start of its record.
    pub lsn: Lsn,
    /// What is prepared before it.
    pub standing: Standing,
}

impl Reading {
    fn step(&self) -> Option<u64> {
        self.standing.prepared.map(|prepared| prepared.lsn.0 >> STEP_BITS)
    }
}

/// Transactions that are prepared and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TwoPhase {
    /// By place.
    pending: BTreeMap<Lsn, Prepared>,
    places: BTreeMap<u32, Lsn>,
    /// Those that were prepared before all that was seen, and where they ended.
    ended: BTreeMap<u32, Lsn>,
    /// Where one ended first of which it is not known which: all that were prepared before may be over.
    unknown_end: Option<Lsn>,
    timeline: Option<u32>,
    readings: Vec<Reading>,
}

impl TwoPhase {
    /// Takes note of a record, after which replay stands otherwise.
    pub(crate) fn take(&mut self, record: &Record<'_>) {
        let header = &record.header;
        match header.rmgr {
            TRANSACTION => match header.info & xact::OPCODE_MASK {
                xact::PREPARE => self.prepare(record),
                xact::COMMIT_PREPARED | xact::ABORT_PREPARED => self.end(record),
                _ => {}
            },
            XLOG => {
                let info = header.rmgr_info();
                let is_shutdown = info == xlog::CHECKPOINT_SHUTDOWN;
                if is_shutdown {
                    self.read(Reading { lsn: record.lsn, standing: self.standing() });
                }
                if is_shutdown || info == xlog::END_OF_RECOVERY {
                    let switch = record.main_data_start().first_chunk().copied();
                    self.timeline = switch.map(|it| Switch::parse(it).to).or(self.timeline);
                }
            }
            _ => {}
        }
    }

    /// What is prepared after the last record.
    pub(crate) fn standing(&self) -> Standing {
        let prepared = self.pending.last_key_value().map(|(_, prepared)| *prepared);
        Standing { prepared, timeline: self.timeline }
    }

    /// All that are prepared after the last record, in WAL order.
    pub fn pending(&self) -> impl Iterator<Item = &Prepared> {
        self.pending.values()
    }

    /// The shutdown checkpoints at which something is prepared, in WAL order: of those between which nothing
    /// is prepared the first, and of many the first and the last.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// What was prepared before all that another one has seen, as that goes on.
    pub(crate) fn inherited<'t>(&'t self, later: &'t TwoPhase) -> Inherited<'t> {
        let pending = self.pending.values().rev();
        Inherited { pending, next: None, later, timeline: self.timeline }
    }

    /// Adds what was seen after it.
    pub(crate) fn merge(&mut self, later: TwoPhase) {
        let mut inherited = self.inherited(&later);
        let known =
            |it: &Reading| Reading { standing: inherited.known(it.lsn, it.standing), ..*it };
        let readings: Vec<Reading> = later.readings.iter().map(known).collect();
        for (xid, lsn) in later.ended {
            if !self.forget(xid) && self.ended.len() < PREPARED_MAX {
                self.ended.entry(xid).or_insert(lsn);
            }
        }
        if let Some(lsn) = later.unknown_end {
            self.forget_all(lsn);
        }
        later.pending.into_values().for_each(|prepared| self.add(prepared));
        self.timeline = later.timeline.or(self.timeline);
        readings.into_iter().for_each(|reading| self.read(reading));
    }

    #[inline(never)]
    fn prepare(&mut self, record: &Record<'_>) {
        if let Some(xid) = prepare::xid(record.main_data_start()) {
            self.add(Prepared { xid, lsn: record.lsn, end: record.end });
        }
    }

    #[inline(never)]
    fn end(&mut self, record: &Record<'_>) {
        // Of one that goes on after the window the first bytes are there, and the transaction stands last.
        let Some(main_data) = record.main_data() else { return self.forget_all(record.lsn) };
        let end = End::parse(record.header.info, &main_data, record.version);
        if let Some(xid) = end.and_then(|end| end.prepared_xid)
            && !self.forget(xid)
            && self.ended.len() < PREPARED_MAX
        {
            self.ended.entry(xid).or_insert(record.lsn);
        }
    }

    /// Adds one; of more than there can be the first ones go.
    fn add(&mut self, prepared: Prepared) {
        self.forget(prepared.xid);
        self.places.insert(prepared.xid, prepared.lsn);
        self.pending.insert(prepared.lsn, prepared);
        if self.pending.len() > PREPARED_MAX
            && let Some((_, first)) = self.pending.pop_first()
        {
            self.places.remove(&first.xid);
        }
    }

    fn forget_all(&mut self, lsn: Lsn) {
        self.pending.clear();
        self.places.clear();
        self.unknown_end = self.unknown_end.or(Some(lsn));
    }

    fn forget(&mut self, xid: u32) -> bool {
        let place = self.places.remove(&xid);
        place.is_some_and(|place| self.pending.remove(&place).is_some())
    }

    /// Notes a shutdown checkpoint. One at which nothing seen is prepared matters only before all others:
    /// what was prepared earlier is in another segment, or in the record that goes on at the beginning.
    fn read(&mut self, reading: Reading) {
        let prepared = reading.standing.prepared;
        let last = self.readings.last_chunk::<2>().map_or(&self.readings[..], |two| &two[..]);
        let is_known = last.iter().any(|known| known.standing.prepared == prepared);
        if is_known || prepared.is_none() && !last.is_empty() {
            return;
        }
        if last.iter().filter(|known| known.step() == reading.step()).count() == 2 {
            self.readings.pop();
        }
        self.readings.push(reading);
    }
}

/// What was prepared before all that another one has seen. It is asked for places in WAL order.
pub(crate) struct Inherited<'t> {
    pending: Rev<btree_map::Values<'t, Lsn, Prepared>>,
    next: Option<&'t Prepared>,
    later: &'t TwoPhase,
    timeline: Option<u32>,
}

impl Inherited<'_> {
    /// How replay stands after all records that begin before a place, where the later one has noted
    /// `standing`.
    pub(crate) fn known(&mut self, place: Lsn, standing: Standing) -> Standing {
        let TwoPhase { ended, unknown_end, .. } = self.later;
        let is_over = |it: &&Prepared| {
            let mut ends = ended.get(&it.xid).into_iter().chain(unknown_end);
            ends.any(|at| *at < place)
        };
        // Once ended, it stays so.
        if self.next.is_none_or(|next| is_over(&next)) {
            self.next = self.pending.find(|it| !is_over(it));
        }
        Standing {
            prepared: standing.prepared.or(self.next.copied()),
            timeline: standing.timeline.or(self.timeline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(xid: u32, lsn: u64) -> Prepared {
        Prepared { xid, lsn: Lsn(lsn), end: Lsn(lsn + 200) }
    }

    /// One that has seen these.
    fn with(transactions: &[Prepared]) -> TwoPhase {
        let mut two_phase = TwoPhase::default();
        transactions.iter().for_each(|it| two_phase.add(*it));
        two_phase
    }

    fn reading(lsn: u64, prepared: Option<Prepared>) -> Reading {
        Reading { lsn: Lsn(lsn), standing: Standing { prepared, timeline: None } }
    }

    #[test]
    fn what_was_prepared_before_counts_until_it_ends() {
        let [first, second] = [prepared(700, 0x1000), prepared(701, 0x2000)];
        let mut earlier = with(&[first, second]);
        earlier.timeline = Some(3);
        let mut later = TwoPhase::default();
        later.ended.insert(701, Lsn(0x5000));
        later.read(reading(0x4000, None));
        let mut inherited = earlier.inherited(&later);
        let own = Standing { prepared: Some(prepared(702, 0x4800)), timeline: Some(4) };
        assert_eq!(inherited.known(Lsn(0x4900), own), own);
        let known =
            [0x4FFF, 0x5000, 0x5001].map(|at| inherited.known(Lsn(at), Standing::default()));
        assert_eq!(known.map(|it| it.prepared), [Some(second), Some(second), Some(first)]);
        assert_eq!(known[0].timeline, Some(3));
        earlier.merge(later);
        let standing = Standing { prepared: Some(second), timeline: Some(3) };
        assert_eq!(earlier.readings(), [Reading { lsn: Lsn(0x4000), standing }]);
        assert_eq!(earlier.standing().prepared, Some(first));
        assert!(earlier.ended.is_empty());
    }

    #[test]
    fn where_it_is_not_known_which_one_ended_all_may_be_over() {
        let mut earlier = with(&[prepared(700, 0x1000)]);
        let mut later = with(&[prepared(701, 0x2000)]);
        later.forget_all(Lsn(0x3000));
        later.add(prepared(702, 0x4000));
        let mut inherited = earlier.inherited(&later);
        let known =
            [0x3000, 0x3001].map(|at| inherited.known(Lsn(at), Standing::default()).prepared);
        assert_eq!(known, [Some(prepared(700, 0x1000)), None]);
        earlier.merge(later);
        assert_eq!(earlier.pending.keys().collect::<Vec<_>>(), [&Lsn(0x4000)]);
        assert_eq!(earlier.unknown_end, Some(Lsn(0x3000)));
    }

    #[test]
    fn of_many_readings_few_are_kept() {
        let mut two_phase = TwoPhase::default();
        two_phase.read(reading(0x100, None));
        for at in 1..100_u64 {
            let prepared = prepared(700, at * 0x1000);
            two_phase.read(reading(at * 0x1000 + 0x300, Some(prepared)));
            two_phase.read(reading(at * 0x1000 + 0x400, Some(prepared)));
            two_phase.read(reading(at * 0x1000 + 0x500, None));
        }
        let lsns: Vec<u64> = two_phase.readings().iter().map(|it| it.lsn.0).collect();
        assert_eq!(lsns, [0x100, 0x1300, 99 * 0x1000 + 0x300]);
    }

    #[test]
    fn no_more_are_kept_than_there_can_be() {
        let all: Vec<Prepared> =
            (0..PREPARED_MAX as u32 + 9).map(|xid| prepared(xid, u64::from(xid) * 512)).collect();
        let two_phase = with(&all);
        assert_eq!((two_phase.pending.len(), two_phase.places.len()), (PREPARED_MAX, PREPARED_MAX));
        assert_eq!(two_phase.standing().prepared, all.last().copied());
    }
}
