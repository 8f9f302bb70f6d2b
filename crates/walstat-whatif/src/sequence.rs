//! Sequences log 32 values ahead, and again at the first value after each redo point
//! (`nextval_internal` in `src/backend/commands/sequence.c`). Where values are taken leaves no
//! trace; mostly it is where a row is inserted, so tables are looked for that get as many rows
//! between two such records as values were taken.

mod finder;

pub(crate) use finder::Finder;

use super::base::Base;
use super::blocks::Ordinal;
use super::position::padded;
use super::trace::{Entry, RecordEffect, Trace, TracedRecord};
use hashbrown::HashMap;
use walstat_format::payload::seq::SEQ_LOG_VALS;

/// Notes which tables sequences feed, of those sequences of which the base's own records follow from that.
pub(crate) fn connect(trace: &mut Trace, base: &Base) {
    let mut feeds = HashMap::new();
    for (place, sequence) in (0u32..).zip(&trace.sequences) {
        if let Some(table) = sequence.table {
            feeds.entry(table).or_insert(place);
        }
    }
    trace.feeds = feeds;
    let wrong = unexplained(trace, base);
    let is_right = |place: u32| wrong.get(place as usize) != Some(&true);
    trace.feeds.retain(|_, place| is_right(*place));
    for (place, sequence) in (0u32..).zip(&mut trace.sequences) {
        sequence.table = sequence.table.filter(|_| is_right(place));
    }
    let periods = periods(trace, base);
    for (sequence, period) in trace.sequences.iter_mut().zip(periods) {
        sequence.period = period.filter(|_| sequence.table.is_none());
    }
}

/// What the records of a sequence tell of how many values each covers.
#[derive(Debug, Clone, Copy, Default)]
struct Covered {
    /// Its last record, and the value up to which that logs it.
    last: Option<(Ordinal, i64)>,
    /// The most; `None` where there is but one record.
    longest: Option<u32>,
    /// Whether values went back, or a record is neither due nor forced by a redo point.
    is_unexplained: bool,
}

impl Covered {
    /// How many values each record covers: more than 33 where sessions cache values or they are not
    /// consecutive.
    fn period(&self) -> Option<u32> {
        let longest = self.longest.filter(|_| !self.is_unexplained)?;
        Some(longest.max(SEQ_LOG_VALS + 1))
    }
}

/// By sequence, how many values each of its records covers, where all of them follow from that.
fn periods(trace: &Trace, base: &Base) -> Vec<Option<u32>> {
    let mut covered = vec![Covered::default(); trace.sequences.len()];
    each_pair(trace, &mut covered, |own, before, (_, value)| match taken(before.1, value) {
        Some(taken) => own.longest = own.longest.max(Some(taken)),
        None => own.is_unexplained = true,
    });
    covered.iter_mut().for_each(|own| own.last = None);
    each_pair(trace, &mut covered, |own, before, (ordinal, value)| {
        let is_due = own.period().is_some_and(|period| taken(before.1, value) == Some(period));
        own.is_unexplained |= !is_due && base.redo_at(ordinal) <= before.0;
    });
    covered.iter().map(Covered::period).collect()
}

fn taken(before: i64, value: i64) -> Option<u32> {
    value.checked_sub(before).and_then(|taken| u32::try_from(taken).ok())
}

/// Calls `take` with each record of a sequence and the one of it before.
fn each_pair(
    trace: &Trace,
    covered: &mut [Covered],
    mut take: impl FnMut(&mut Covered, (Ordinal, i64), (Ordinal, i64)),
) {
    for (ordinal, effect) in &trace.effects {
        if let RecordEffect::Sequence { value, sequence, .. } = effect
            && let Some(own) = covered.get_mut(*sequence as usize)
            && let Some(before) = own.last.replace((*ordinal, *value))
        {
            take(own, before, (*ordinal, *value));
        }
    }
}

/// For each sequence whether the base's own records do not follow from the rows.
fn unexplained(trace: &Trace, base: &Base) -> Vec<bool> {
    let mut sequences = vec![Explained::default(); trace.sequences.len()];
    if !sequences.is_empty() {
        trace.read().for_each(|traced| {
            if let Some(RecordEffect::Sequence { sequence, .. }) = traced.effect
                && let Some(logged) = sequences.get_mut(sequence as usize)
            {
                logged.is_pending = logged.state.is_known();
                logged.state.begin(traced.ordinal);
            }
            if let Some(fed) = fed_by(trace, traced.entry).and_then(|at| sequences.get_mut(at)) {
                fed.take(&traced, base);
            }
        });
    }
    sequences.iter().map(|sequence| sequence.is_wrong).collect()
}

/// The sequence that gives a record's rows their values.
fn fed_by(trace: &Trace, entry: &Entry) -> Option<usize> {
    let place = (entry.rows > 0).then(|| trace.feeds.get(&entry.table)).flatten()?;
    Some(*place as usize)
}

/// Whether a sequence's records follow from the rows.
#[derive(Debug, Clone, Copy, Default)]
struct Explained {
    state: State,
    /// Its record came, and the row did not yet.
    is_pending: bool,
    is_wrong: bool,
}

impl Explained {
    fn take(&mut self, traced: &TracedRecord<'_>, base: &Base) {
        let redo = base.redo_at(traced.ordinal);
        let logs = |_: &u16| self.state.take(traced.ordinal, redo);
        let logged = (0..traced.entry.rows).filter(logs).count();
        let expected = usize::from(std::mem::take(&mut self.is_pending));
        let is_told = self.state.is_known() && base.contains(traced.ordinal);
        self.is_wrong |= is_told && logged != expected;
    }
}

/// How far a sequence is logged.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    left: Option<u32>,
    stamped: Ordinal,
    /// The value up to which the base's last record logged it.
    logged: i64,
}

impl State {
    fn is_known(&self) -> bool {
        self.left.is_some()
    }

    /// The first record of it: for the value that is about to be taken, and those after it.
    fn begin(&mut self, ordinal: Ordinal) {
        if self.left.is_none() {
            self.left = Some(SEQ_LOG_VALS + 1);
            self.stamped = ordinal;
        }
    }

    /// Takes a value; whether that is logged.
    fn take(&mut self, ordinal: Ordinal, redo: Ordinal) -> bool {
        let Some(left) = &mut self.left else { return false };
        let logs = *left == 0 || self.stamped < redo;
        if logs {
            *left = SEQ_LOG_VALS;
            self.stamped = ordinal;
        } else {
            *left -= 1;
        }
        logs
    }
}

impl State {
    /// What is logged in place of one of the base's records, of which each covers as many values.
    fn follow(&mut self, ordinal: Ordinal, value: i64, redo: Ordinal, period: u32) -> Logged {
        let taken = value.saturating_sub(std::mem::replace(&mut self.logged, value));
        let Some(left) = self.left else {
            (self.left, self.stamped) = (Some(period - 1), ordinal);
            return Logged::default();
        };
        // After the value with the record before, and before the one with this record.
        let between = u32::try_from(taken.saturating_sub(1)).unwrap_or(0);
        let added = between.saturating_sub(left).div_ceil(period);
        // Less than a period, though what it is the difference of may not fit.
        let left = left.wrapping_add(added.wrapping_mul(period)).wrapping_sub(between);
        let logs = left == 0 || self.stamped < redo;
        if logs {
            (self.left, self.stamped) = (Some(period - 1), ordinal);
        } else {
            self.left = Some(left - 1);
            if added > 0 {
                self.stamped = ordinal;
            }
        }
        Logged { added, replaces: !logs, bytes: 0 }
    }
}

/// What sequences log before a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Logged {
    /// Records.
    pub(crate) added: u32,
    /// Bytes of each.
    pub(crate) bytes: u32,
    /// Whether the record itself is one that is logged elsewhere.
    pub(crate) replaces: bool,
}

/// The sequences of a simulated run.
pub(crate) struct Sequences<'t> {
    trace: &'t Trace,
    states: Vec<State>,
    /// Whether they log elsewhere than in the base at all.
    is_simulated: bool,
    /// Those that did, of which no table is known.
    moved: Vec<bool>,
}

impl<'t> Sequences<'t> {
    /// The sequences as the trace knows them.
    pub(crate) fn new(trace: &'t Trace, is_simulated: bool) -> Sequences<'t> {
        let count = trace.sequences.len();
        let (states, moved) = (vec![State::default(); count], vec![false; count]);
        Sequences { trace, states, is_simulated, moved }
    }

    /// Bytes of one record of each sequence whose values are taken at other times than those of its
    /// records: how many were taken after the last one is not known.
    pub(crate) fn open_bytes(&self) -> u64 {
        let moved = self.trace.sequences.iter().zip(&self.moved).filter(|(_, moved)| **moved);
        moved.map(|(sequence, _)| padded(u64::from(sequence.bytes))).sum()
    }

    fn are_simulated(&self) -> bool {
        self.is_simulated && !self.states.is_empty()
    }

    /// Whether rows make them log elsewhere than in the base.
    pub(crate) fn heed_rows(&self) -> bool {
        self.are_simulated() && !self.trace.feeds.is_empty()
    }

    /// What is logged before a record, or in its place.
    pub(crate) fn before(&mut self, traced: &TracedRecord<'_>, redo: Ordinal) -> Logged {
        if !self.are_simulated() {
            return Logged::default();
        }
        let TracedRecord { ordinal, entry, effect, .. } = *traced;
        if let Some(index) = fed_by(self.trace, entry) {
            let bytes = self.trace.sequences.get(index).map_or(0, |sequence| sequence.bytes);
            let Some(state) = self.states.get_mut(index) else { return Logged::default() };
            let added = (0..entry.rows).filter(|_| state.take(ordinal, redo)).count() as u32;
            return Logged { added, bytes, replaces: false };
        }
        let Some(RecordEffect::Sequence { sequence, value, .. }) = effect else {
            return Logged::default();
        };
        let index = sequence as usize;
        let known = self.trace.sequences.get(index).zip(self.states.get_mut(index));
        let Some((sequence, state)) = known else { return Logged::default() };
        if let Some(period) = sequence.period {
            let logged = state.follow(ordinal, value, redo, period);
            if let Some(moved) = self.moved.get_mut(index) {
                *moved |= logged.replaces || logged.added > 0;
            }
            return Logged { bytes: sequence.bytes, ..logged };
        }
        if sequence.table.is_none() {
            return Logged::default();
        }
        let replaces = state.is_known();
        state.begin(ordinal);
        Logged { replaces, ..Logged::default() }
    }
}
