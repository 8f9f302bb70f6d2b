//! Sequences log 32 values ahead, and again at the first value after each redo point
//! (`nextval_internal` in `src/backend/commands/sequence.c`). Where values are taken leaves no
//! trace; mostly it is where a row is inserted, so tables are looked for that get as many rows
//! between two such records as values were taken.

use super::base::Base;
use super::blocks::{FIRST, ForkNumber, Ordinal};
use super::trace::{Entry, Mark, Sequence, Trace};

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
pub struct Finder {
    rows: Vec<u64>,
    seen: Vec<Seen>,
    /// Sequences that were logged after the last row: places in `seen`.
    logged: Vec<usize>,
}

impl Finder {
    /// Rows were inserted into a table.
    pub fn inserted(&mut self, fork: ForkNumber, rows: u16) {
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
    pub fn logged(
        &mut self,
        sequences: &mut Vec<Sequence>,
        (fork, value, bytes): (ForkNumber, i64, u32),
    ) -> u16 {
        let place = sequences.iter().position(|sequence| sequence.fork == fork);
        let index = place.unwrap_or(sequences.len());
        if place.is_none() {
            sequences.push(Sequence { fork, bytes, table: None });
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
        let taken = u64::try_from(value - self.value).unwrap_or(0);
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

/// Notes at each record that inserts rows which sequence feeds them, for those of which the base's
/// own records follow from that.
pub fn connect(
    trace: &mut Trace,
    base: &Base,
    fork_of: impl Fn(&Trace, usize) -> Option<ForkNumber>,
) {
    let mut first_ref = 0usize;
    let mut feeds = vec![0u16; trace.entries.len()];
    for (entry, feeds) in trace.entries.iter().zip(&mut feeds) {
        if entry.rows > 0
            && let Some(fork) = fork_of(trace, first_ref)
        {
            let place = trace.sequences.iter().position(|s| s.table == Some(fork));
            *feeds = place.and_then(|place| u16::try_from(place + 1).ok()).unwrap_or(0);
        }
        first_ref += usize::from(entry.refs);
    }
    for (entry, feeds) in trace.entries.iter_mut().zip(feeds) {
        entry.feeds = feeds;
    }
    let unexplained = unexplained(trace, base);
    for (sequence, wrong) in trace.sequences.iter_mut().zip(&unexplained) {
        sequence.table = sequence.table.filter(|_| !wrong);
    }
    for entry in &mut trace.entries {
        let wrong = usize::from(entry.feeds).checked_sub(1).and_then(|i| unexplained.get(i));
        if wrong == Some(&true) {
            entry.feeds = 0;
        }
    }
}

/// For each sequence whether the base's own records do not follow from the rows.
fn unexplained(trace: &Trace, base: &Base) -> Vec<bool> {
    let mut states = vec![State::default(); trace.sequences.len()];
    let mut pending = vec![false; trace.sequences.len()];
    let mut wrong = vec![false; trace.sequences.len()];
    for (ordinal, entry) in (FIRST..).zip(&trace.entries) {
        if let Some(Mark::Sequence { sequence, .. }) = trace.mark(ordinal, entry) {
            let index = usize::from(sequence);
            if let (Some(state), Some(pending)) = (states.get_mut(index), pending.get_mut(index)) {
                *pending = state.is_known();
                state.begin(ordinal);
            }
        }
        let Some(index) = usize::from(entry.feeds).checked_sub(1) else { continue };
        let (Some(state), Some(pending)) = (states.get_mut(index), pending.get_mut(index)) else {
            continue;
        };
        let redo = base.redo_at(ordinal);
        let logged = (0..entry.rows).filter(|_| state.take(ordinal, redo)).count();
        let expected = usize::from(std::mem::take(pending));
        if state.is_known()
            && base.contains(ordinal)
            && logged != expected
            && let Some(wrong) = wrong.get_mut(index)
        {
            *wrong = true;
        }
    }
    wrong
}

/// How far a sequence is logged.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    left: Option<u32>,
    stamped: Ordinal,
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

/// What sequences log before a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Logged {
    /// Records.
    pub added: u32,
    /// Bytes of each.
    pub bytes: u32,
    /// Whether the record itself is one that is logged elsewhere.
    pub replaces: bool,
}

/// The sequences of a simulated run.
pub struct Sequences<'t> {
    trace: &'t Trace,
    states: Vec<State>,
    /// Whether they log elsewhere than in the base at all.
    is_simulated: bool,
}

impl<'t> Sequences<'t> {
    /// The sequences as the trace knows them.
    pub fn new(trace: &'t Trace, is_simulated: bool) -> Sequences<'t> {
        Sequences { trace, states: vec![State::default(); trace.sequences.len()], is_simulated }
    }

    /// What is logged before a record, or in its place.
    pub fn before(&mut self, ordinal: Ordinal, entry: &Entry, redo: Ordinal) -> Logged {
        if !self.is_simulated || self.states.is_empty() {
            return Logged::default();
        }
        if let Some(index) = usize::from(entry.feeds).checked_sub(1) {
            let bytes = self.trace.sequences.get(index).map_or(0, |sequence| sequence.bytes);
            let Some(state) = self.states.get_mut(index) else { return Logged::default() };
            let added = (0..entry.rows).filter(|_| state.take(ordinal, redo)).count() as u32;
            return Logged { added, bytes, replaces: false };
        }
        let Some(Mark::Sequence { sequence, .. }) = self.trace.mark(ordinal, entry) else {
            return Logged::default();
        };
        let index = usize::from(sequence);
        let is_fed = self.trace.sequences.get(index).is_some_and(|s| s.table.is_some());
        let Some(state) = self.states.get_mut(index).filter(|_| is_fed) else {
            return Logged::default();
        };
        let replaces = state.is_known();
        state.begin(ordinal);
        Logged { replaces, ..Logged::default() }
    }
}
