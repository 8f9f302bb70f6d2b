//! Which records of an xid belong together, and to which transaction.
//!
//! An xid comes again when xids have turned over, and in WAL that is wrong. So that no answer depends on
//! how the WAL was divided, or on when something was summed up, these rules say what is one [`Part`]:
//!
//! * A part of an xid ends with its own COMMIT or ABORT, or where such a record lists it as a
//!   subtransaction. What comes later of the same xid, or names it as a parent, begins another part.
//! * While a part goes on, the last record that says what it belongs to counts. What has committed by a
//!   record of its own belongs to nothing.
//! * A part that has aborted and of which nothing is known may still be said to belong to something, or
//!   to be a top-level one, once: by an ASSIGNMENT record, for one. Not any more after a RUNNING_XACTS
//!   record that knows no xid as old, nor when the xid comes again.
//!
//! A run does not know what came before it. What it says of an xid before that writes something is kept
//! apart ([`Before`](super::part::Before)): it is about the part before the run, which may have ended there.

mod merge;
mod open;

use super::ended_parts::EndedParts;
use super::family::{self, Fate};
use super::finished::Finished;
use super::part::{Claim, End, Part};
use crate::fork_table::ForkTable;
use crate::xid_order::follows;
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Bound;
use walstat_format::by_key;
use walstat_format::lsn::Lsn;

/// So many parts that go on are kept; beyond that the oldest are given up on.
const OPEN_MAX: usize = 2_000_000;

/// So many that have ended are remembered by who takes them away meanwhile.
const ENDED_MAX: u64 = 1 << 20;

/// Where nothing earlier can come, what has ended is handed on when there are so many parts more than stayed
/// the last time, and a quarter more: most are still in the processor's cache then, and those that stay are
/// not looked at too often.
const BATCH: usize = 1024;

/// So many xids are found without hashing.
const RECENT: usize = 32;

/// All parts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Generations {
    parts: Vec<Part>,
    /// The last part of each xid.
    #[serde(serialize_with = "by_key::map")]
    by_xid: HashMap<u32, u32>,
    /// Places of parts met last, by the lowest bits of their xids: transactions write side by side, a record
    /// each in turn.
    #[serde(skip)]
    recent: [u32; RECENT],
    /// What has ended and is not among the parts any more.
    ended: EndedParts,
    /// Xids whose last part has aborted, and nothing else is known of it.
    unclaimed: BTreeSet<u32>,
    /// The oldest running xids, as records say them.
    oldest_running: BTreeSet<u32>,
    /// Subtransactions with their parents, as known before the first record.
    known: Vec<(u32, u32)>,
    /// Nothing can come before what was seen.
    is_first: bool,
    /// What has ended is handed on when there are so many parts.
    #[serde(skip)]
    due: usize,
}

/// What is known of an xid's last part.
enum Last {
    Open(u32),
    Ended(u32),
    HandedOn,
    Unknown,
}

impl Generations {
    /// The part at a place.
    pub(super) fn part(&mut self, place: u32) -> Option<&mut Part> {
        self.parts.get_mut(place as usize)
    }

    /// Takes note of subtransactions with their parents, before any record is seen.
    pub(super) fn know(&mut self, parents: &[(u32, u32)]) {
        self.known.extend(parents);
    }

    fn last(&self, xid: u32) -> Last {
        match self.by_xid.get(&xid) {
            Some(place) => match self.parts.get(*place as usize) {
                Some(part) if part.ended != End::None => Last::Ended(*place),
                _ => Last::Open(*place),
            },
            None if self.ended.xids.contains(xid) => Last::HandedOn,
            None => Last::Unknown,
        }
    }

    fn push(&mut self, part: Part) -> u32 {
        // 2³² parts would have run out of memory long before.
        let place = self.parts.len() as u32;
        self.by_xid.insert(part.xid, place);
        self.parts.push(part);
        place
    }

    /// The part of an xid that is there at `lsn`.
    #[inline(always)]
    pub(super) fn alive(&mut self, xid: u32, lsn: Lsn) -> u32 {
        let place = self.recent[xid as usize % RECENT];
        match self.parts.get(place as usize) {
            // What has not ended is the last part of its xid.
            Some(part) if part.xid == xid && part.ended == End::None && part.is_alive => place,
            _ => self.find_alive(xid, lsn),
        }
    }

    #[inline(never)]
    fn find_alive(&mut self, xid: u32, lsn: Lsn) -> u32 {
        let place = self.alive_at(xid, lsn);
        self.recent[xid as usize % RECENT] = place;
        place
    }

    fn alive_at(&mut self, xid: u32, lsn: Lsn) -> u32 {
        let is_before = match self.last(xid) {
            Last::Open(place) => {
                self.part(place).into_iter().for_each(|part| part.is_alive = true);
                return place;
            }
            Last::Ended(_) => {
                self.seal(xid);
                false
            }
            Last::HandedOn => {
                self.ended.xids.remove(xid);
                false
            }
            Last::Unknown => !self.is_first,
        };
        self.push(Part { is_before, is_alive: true, ..Part::new(xid, lsn) })
    }

    /// The part of an xid of which something is said, if that can still be.
    fn spoken_of(&mut self, xid: u32, lsn: Lsn) -> Option<u32> {
        match self.last(xid) {
            Last::Open(place) => Some(place),
            Last::Ended(_) | Last::HandedOn => None,
            Last::Unknown => {
                let is_before = !self.is_first;
                Some(self.push(Part { is_before, is_alive: !is_before, ..Part::new(xid, lsn) }))
            }
        }
    }

    fn claim(&mut self, xid: u32, lsn: Lsn, claim: Claim) -> Option<u32> {
        if let Some(place) = self.spoken_of(xid, lsn) {
            let is_too_late = covers(&self.oldest_running, xid);
            self.part(place)?.claim(claim, is_too_late);
            return Some(place);
        }
        if self.unclaimed.remove(&xid) {
            let place = *self.by_xid.get(&xid)?;
            self.part(place)?.after = Some(claim);
        }
        None
    }

    /// A record says what a subtransaction belongs to.
    pub(super) fn belongs(&mut self, sub: u32, parent: u32, lsn: Lsn) -> Option<u32> {
        if sub == parent || sub == 0 || parent == 0 {
            return None;
        }
        let parent = self.alive(parent, lsn);
        self.claim(sub, lsn, Claim::Parent(parent))
    }

    /// The same of one that ends with it.
    pub(super) fn ends_with(&mut self, sub: u32, parent: u32, lsn: Lsn) {
        if let Some(place) = self.belongs(sub, parent, lsn)
            && let Some(part) = self.part(place)
        {
            part.ended = End::Listed;
        }
    }

    /// A record says that a transaction is a top-level one.
    pub(super) fn is_top_level(&mut self, xid: u32, lsn: Lsn) {
        if xid != 0 {
            self.claim(xid, lsn, Claim::TopLevel);
        }
    }

    /// A part has ended by a record of its own.
    pub(super) fn ended(&mut self, place: u32) {
        let Some(part) = self.part(place) else { return };
        part.ended = End::Own;
        let xid = part.xid;
        if part.is_unclaimed() {
            self.unclaimed.insert(xid);
        }
    }

    /// All older transactions have ended.
    pub(super) fn oldest_is(&mut self, oldest: u32) {
        if !self.is_first {
            self.oldest_running.insert(oldest);
        }
        let begin = oldest.wrapping_add(1 << 31).wrapping_add(1);
        let old: Vec<u32> = if begin < oldest {
            self.unclaimed.range(begin..oldest).copied().collect()
        } else {
            self.unclaimed.range(..oldest).chain(self.unclaimed.range(begin..)).copied().collect()
        };
        old.into_iter().for_each(|xid| self.seal(xid));
    }

    fn seal(&mut self, xid: u32) {
        if self.unclaimed.remove(&xid)
            && let Some(place) = self.by_xid.get(&xid)
            && let Some(part) = self.parts.get_mut(*place as usize)
        {
            part.is_sealed = true;
        }
    }

    fn push_empty(&mut self, xid: u32, is_before: bool) -> u32 {
        self.push(Part { is_before, is_alive: !is_before, ..Part::new(xid, Lsn(0)) })
    }

    fn unclaimed_places(&self) -> impl Iterator<Item = (u32, u32)> {
        self.unclaimed.iter().filter_map(|xid| Some((*xid, *self.by_xid.get(xid)?)))
    }

    fn find_unclaimed(&mut self) {
        let Generations { parts, by_xid, unclaimed, .. } = self;
        let is_unclaimed = |place: &u32| parts.get(*place as usize).is_some_and(Part::is_unclaimed);
        let found = by_xid.iter().filter(|(_, place)| is_unclaimed(place));
        *unclaimed = found.map(|(xid, _)| *xid).collect();
    }

    /// Nothing earlier can come: what was said of the parts before the first record is about those
    /// parts that are here.
    fn begin(&mut self, finished: &mut Finished) {
        self.is_first = true;
        self.oldest_running.clear();
        let mut first: HashMap<u32, u32> = HashMap::new();
        let named: HashSet<u32> = self.known.iter().flat_map(|known| [known.0, known.1]).collect();
        for part in self.ended.take_kept().iter() {
            if named.contains(&part.xid) {
                let place = self.parts.len() as u32;
                self.by_xid.entry(part.xid).or_insert(place);
                first.insert(part.xid, place);
                self.parts.push(part);
            } else {
                finished.add(&part);
            }
        }
        for (part, place) in self.parts.iter_mut().zip(0..) {
            first.entry(part.xid).or_insert(place);
            part.begin();
        }
        for (sub, parent) in std::mem::take(&mut self.known) {
            if sub == parent {
                continue;
            }
            let [sub, parent] = [sub, parent]
                .map(|xid| *first.entry(xid).or_insert_with(|| self.push_empty(xid, false)));
            if let Some(part) = self.part(sub) {
                part.parent.get_or_insert(parent);
            }
        }
        self.find_unclaimed();
    }

    /// Whether there are so many parts that those that have ended should go elsewhere.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.parts.len() >= self.due
    }

    /// What has ended goes elsewhere, as far as it may.
    pub(super) fn make_room(&mut self, finished: &mut Finished) {
        if self.is_first {
            self.settle(finished);
        } else {
            // What something belongs to is found among the parts.
            let places = self.parts.iter().flat_map(Part::claimed);
            let parents = places.filter_map(|place| self.parts.get(place as usize));
            let parents: HashSet<u32> = parents.map(|part| part.xid).collect();
            let stays = |part: &Part| !EndedParts::can_take(part) || parents.contains(&part.xid);
            self.hand_on(finished, stays);
            self.be_due_later();
        }
    }

    fn be_due_later(&mut self) {
        self.due = self.parts.len() / 4 * 5 + BATCH;
    }

    /// Hands on what is final: nothing earlier can come any more.
    pub(super) fn settle(&mut self, finished: &mut Finished) {
        if !self.is_first {
            self.begin(finished);
        }
        self.hand_on(finished, |part| !part.is_final());
        if self.parts.len() > OPEN_MAX {
            let mut ends: Vec<Lsn> = self.parts.iter().map(|part| part.end).collect();
            let (_, middle, _) = ends.select_nth_unstable(OPEN_MAX / 2);
            let middle = *middle;
            finished.rows.is_exact = false;
            self.hand_on(finished, |part| part.end > middle);
        }
        self.be_due_later();
    }

    /// Whether a record of an xid was counted, its end for one.
    pub(super) fn has_seen(&self, xid: u32) -> bool {
        match self.last(xid) {
            Last::Open(place) => {
                self.parts.get(place as usize).is_some_and(|part| part.amounts.count > 0)
            }
            Last::Ended(_) | Last::HandedOn => true,
            Last::Unknown => false,
        }
    }

    /// Forgets which transactions have ended, where they are many: nothing is said of them any more.
    pub(super) fn forget_ended(&mut self) {
        if self.ended.xids.len() > ENDED_MAX {
            self.ended.xids.clear();
        }
    }

    /// Gives files new numbers, those that parts are about; returns them in their order.
    pub(super) fn keep_files(&mut self, files: &ForkTable<()>) -> ForkTable<()> {
        let mut used = ForkTable::default();
        let mut numbers = vec![0; files.len()];
        for file in self.parts.iter().flat_map(|part| part.files.iter()) {
            if let (Some(key), Some(number)) = (files.key(file), numbers.get_mut(file as usize)) {
                *number = used.number(*key);
            }
        }
        self.parts.iter_mut().for_each(|part| part.renumber(&numbers));
        used
    }

    /// Takes no more memory than it needs.
    pub(super) fn shrink(&mut self) {
        self.parts.shrink_to_fit();
        self.ended.shrink();
        self.by_xid.shrink_to_fit();
    }

    /// Hands on all that there is.
    pub(super) fn finish(mut self, finished: &mut Finished) {
        self.settle(finished);
        self.hand_on(finished, |_| false);
    }

    /// Hands on transactions with all that belongs to them, but for those of which a part stays.
    fn hand_on(&mut self, finished: &mut Finished, stays: impl Fn(&Part) -> bool) {
        let mut fates = family::fold(&mut self.parts, &stays).into_iter().peekable();
        let Generations { parts, by_xid, ended, unclaimed, is_first, .. } = self;
        let mut places = Vec::with_capacity(parts.len());
        let mut staying = 0;
        parts.retain(|part| {
            let old = places.len() as u32;
            let fate = fates.next_if(|(place, _)| *place == old).map(|(_, fate)| fate);
            let stays = fate.map_or_else(|| stays(part), |fate| fate == Fate::Stays);
            places.push(stays.then_some(staying));
            if stays {
                if staying != old {
                    let last = by_xid.get_mut(&part.xid).filter(|last| **last == old);
                    last.into_iter().for_each(|last| *last = staying);
                }
                staying += 1;
                return true;
            }
            if by_xid.get(&part.xid) == Some(&old) {
                by_xid.remove(&part.xid);
                ended.xids.insert(part.xid);
                if part.is_unclaimed() {
                    unclaimed.remove(&part.xid);
                }
            }
            if fate != Some(Fate::Folded) {
                ended.take(part, is_first.then_some(&mut *finished));
            }
            false
        });
        let moved = |place: u32| places.get(place as usize).copied().flatten();
        parts.iter_mut().for_each(|part| part.move_claims(moved));
    }
}

/// Whether a transaction is older than one of those that were the oldest running ones. Xids turn over:
/// the next one after it tells.
fn covers(oldest_running: &BTreeSet<u32>, xid: u32) -> bool {
    let after = (Bound::Excluded(xid), Bound::Unbounded);
    let next = oldest_running.range(after).next().or_else(|| oldest_running.first());
    next.is_some_and(|next| follows(*next, xid))
}

#[cfg(test)]
mod tests;
