//! Sequences log 32 values ahead, and again at the first value after each redo point
//! (`nextval_internal` in `src/backend/commands/sequence.c`). Where values are taken leaves no
//! trace; mostly it is where a row is inserted, so tables are looked for that get as many rows
//! between two such records as values were taken.

use super::base::Base;
use super::blocks::{ForkNumber, Ordinal};
use super::position::padded;
use super::trace::{Entry, RecordEffect, Sequence, Trace, TracedRecord};
use hashbrown::HashMap;

/// `SEQ_LOG_VALS`.
const VALUES_AHEAD: u32 = 32;

/// What is known of a sequence while the WAL is read.
struct Seen {
    value: i64,
    /// Rows that each fork had got at its last record.
    rows: Vec<u64>,
    /// Tables that got as many rows as values were taken, each time so far.
    candidates: Option<Vec<ForkNumber>>,
    /// The table that got a row next after its last record.
    next: Option<ForkNumber>,
}

/// Looks for the tables that sequences feed.
#[derive(Default)]
pub(crate) struct Finder {
    rows: Vec<u64>,
    seen: Vec<Seen>,
    /// Sequences that were logged after the last row: places in `seen`.
    logged: Vec<usize>,
}

impl Finder {
    /// Rows were inserted into a table.
    #[inline]
    pub(crate) fn inserted(&mut self, fork: ForkNumber, rows: u16) {
        match self.rows.get_mut(fork as usize) {
            Some(count) if self.logged.is_empty() => *count += u64::from(rows),
            _ => self.inserted_first(fork, rows),
        }
    }

    /// The same of a table's first rows, or the first rows after a sequence was logged.
    #[inline(never)]
    fn inserted_first(&mut self, fork: ForkNumber, rows: u16) {
        let index = fork as usize;
        if self.rows.len() <= index {
            self.rows.resize(index + 1, 0);
        }
        if let Some(count) = self.rows.get_mut(index) {
            *count += u64::from(rows);
        }
        for index in self.logged.drain(..) {
            if let Some(seen) = self.seen.get_mut(index) {
                seen.next = Some(fork);
            }
        }
    }

    /// A sequence was logged up to `value`; returns its place.
    pub(crate) fn logged(
        &mut self,
        sequences: &mut Vec<Sequence>,
        fork: ForkNumber,
        value: i64,
        bytes: u32,
    ) -> u16 {
        let place = sequences.iter().position(|sequence| sequence.fork == fork);
        let index = place.unwrap_or(sequences.len());
        if place.is_none() {
            sequences.push(Sequence { fork, bytes, table: None, period: None });
            let rows = self.rows.clone();
            self.seen.push(Seen { value, rows, candidates: None, next: None });
        } else if let (Some(seen), Some(sequence)) =
            (self.seen.get_mut(index), sequences.get_mut(index))
        {
            seen.compare(&self.rows, value);
            sequence.table = seen.table();
        }
        self.logged.push(index);
        u16::try_from(index).unwrap_or(u16::MAX)
    }
}

impl Seen {
    /// The table that is fed. Of several that get as many rows it is the one that got the next.
    fn table(&self) -> Option<ForkNumber> {
        match self.candidates.as_deref()? {
            [only] => Some(*only),
            several => self.next.filter(|next| several.contains(next)),
        }
    }

    fn compare(&mut self, rows: &[u64], value: i64) {
        let taken = value.checked_sub(self.value).and_then(|taken| u64::try_from(taken).ok());
        let taken = taken.unwrap_or(0);
        let before = |fork: usize| self.rows.get(fork).copied().unwrap_or(0);
        let fits = |fork: &ForkNumber| {
            let index = *fork as usize;
            rows.get(index).is_some_and(|rows| rows - before(index) == taken)
        };
        let forks = 0..rows.len() as ForkNumber;
        let candidates: Vec<ForkNumber> = match self.candidates.take() {
            None => forks.filter(fits).collect(),
            Some(candidates) => candidates.into_iter().filter(fits).collect(),
        };
        // Where none fits, the value was set, or rows were inserted elsewhere too: begin anew.
        self.candidates = Some(candidates).filter(|candidates| !candidates.is_empty());
        self.value = value;
        self.rows = rows.to_vec();
    }
}

/// Notes which tables sequences feed, of those sequences of which the base's own records follow from that.
pub(crate) fn connect(trace: &mut Trace, base: &Base) {
    let mut feeds = HashMap::new();
    for (place, sequence) in (0u16..).zip(&trace.sequences) {
        if let Some(table) = sequence.table {
            feeds.entry(table).or_insert(place);
        }
    }
    trace.feeds = feeds;
    let wrong = unexplained(trace, base);
    let is_right = |place: u16| wrong.get(usize::from(place)) != Some(&true);
    trace.feeds.retain(|_, place| is_right(*place));
    for (place, sequence) in (0u16..).zip(&mut trace.sequences) {
        sequence.table = sequence.table.filter(|_| is_right(place));
    }
    let periods: Vec<_> =
        (0u16..).take(trace.sequences.len()).map(|at| period(trace, base, at)).collect();
    for (sequence, period) in trace.sequences.iter_mut().zip(periods) {
        sequence.period = period.filter(|_| sequence.table.is_none());
    }
}

/// How many values each record of a sequence covers: more than 33 where sessions cache values or they are
/// not consecutive. `None` where a record is neither due nor forced by a redo point.
fn period(trace: &Trace, base: &Base, place: u16) -> Option<u32> {
    let own = trace.effects.iter().filter_map(|(ordinal, effect)| match effect {
        RecordEffect::Sequence { value, sequence, .. } if *sequence == place => {
            Some((*ordinal, *value))
        }
        _ => None,
    });
    let own: Vec<_> = own.collect();
    let taken = |pair: &[(Ordinal, i64)]| match pair {
        [(_, before), (_, value)] => {
            value.checked_sub(*before).and_then(|taken| u32::try_from(taken).ok())
        }
        _ => None,
    };
    let longest = own.windows(2).map(taken).collect::<Option<Vec<u32>>>()?.into_iter().max()?;
    let period = longest.max(VALUES_AHEAD + 1);
    let is_explained = |pair: &[(Ordinal, i64)]| match pair {
        [(before, _), (ordinal, _)] => {
            taken(pair).is_some_and(|taken| taken > 0 && taken == period)
                || base.redo_at(*ordinal) > *before
        }
        _ => false,
    };
    own.windows(2).all(is_explained).then_some(period)
}

/// For each sequence whether the base's own records do not follow from the rows.
fn unexplained(trace: &Trace, base: &Base) -> Vec<bool> {
    let mut sequences = vec![Explained::default(); trace.sequences.len()];
    if !sequences.is_empty() {
        trace.read().for_each(|traced| {
            if let Some(RecordEffect::Sequence { sequence, .. }) = traced.effect
                && let Some(logged) = sequences.get_mut(usize::from(sequence))
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
    Some(usize::from(*place))
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
            self.left = Some(VALUES_AHEAD + 1);
            self.stamped = ordinal;
        }
    }

    /// Takes a value; whether that is logged.
    fn take(&mut self, ordinal: Ordinal, redo: Ordinal) -> bool {
        let Some(left) = &mut self.left else { return false };
        let logs = *left == 0 || self.stamped < redo;
        if logs {
            *left = VALUES_AHEAD;
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
        let index = usize::from(sequence);
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
