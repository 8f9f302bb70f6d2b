//! Looks for the tables that sequences feed: those that get as many rows between two records of a sequence as
//! values were taken of it.
//!
//! A table that takes values gets its rows soon after they were logged. So of each sequence only a few tables
//! are looked at, and rows are noted in a log that all sequences share: what there is to keep and to do does
//! not grow with the number of sequences times that of tables.

use crate::blocks::ForkNumber;
use crate::trace::Sequence;
use std::collections::VecDeque;

/// So many of the tables that got rows first after a record of a sequence may be the one that it feeds.
const CANDIDATES_MAX: usize = 64;
/// They are looked for in so many entries of the log.
const LOOKED_AT_MAX: usize = 4096;
/// So many entries are kept at most. A sequence whose last record lies before them all begins anew.
const LOG_MAX: usize = 1 << 20;

/// Looks for the tables that sequences feed.
#[derive(Default)]
pub(crate) struct Finder {
    rows: Rows,
    /// By place.
    seen: Vec<Seen>,
    /// The places of sequences, by fork; [`NO_SEQUENCE`] for what is none.
    places: Vec<u32>,
    /// Sequences that were logged after the last row: places in `seen`.
    logged: Vec<u32>,
}

/// In the list of places, a fork that is no sequence's.
const NO_SEQUENCE: u32 = u32::MAX;

/// Rows that were inserted.
#[derive(Default)]
struct Rows {
    forks: Vec<ForkRows>,
    log: VecDeque<FirstRows>,
    /// How many entries of the log were noted before those that are kept.
    dropped: u64,
    /// How many were noted when a sequence was logged last.
    at_sequence: u64,
}

/// Rows of a fork.
#[derive(Clone, Copy, Default)]
struct ForkRows {
    /// How many, as far as they fit.
    count: u32,
    /// How many entries were noted when its last one was, that one included.
    noted: u64,
}

/// A fork gets the first rows since a sequence was logged.
struct FirstRows {
    fork: ForkNumber,
    /// How many it had before.
    before: u32,
    /// How many entries ago it had the one before, as far as that fits.
    back: u32,
}

/// What is known of a sequence while the WAL is read.
struct Seen {
    /// The value up to which it was logged last, and how much of the log was noted then.
    value: i64,
    noted: u64,
    /// Tables that got as many rows as values were taken, each time so far, with the rows that they had then.
    candidates: Option<Vec<(ForkNumber, u32)>>,
    /// The table that got a row next after its last record.
    next: Option<ForkNumber>,
}

impl Finder {
    /// Rows were inserted into a table.
    #[inline]
    pub(crate) fn inserted(&mut self, fork: ForkNumber, rows: u16) {
        match self.rows.forks.get_mut(fork as usize) {
            Some(own) if own.noted > self.rows.at_sequence => {
                own.count = own.count.wrapping_add(rows.into());
            }
            _ => self.inserted_first(fork, rows),
        }
    }

    /// The same of a table's first rows after a sequence was logged.
    #[inline(never)]
    fn inserted_first(&mut self, fork: ForkNumber, rows: u16) {
        self.rows.note(fork, rows);
        for place in self.logged.drain(..) {
            if let Some(seen) = self.seen.get_mut(place as usize) {
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
    ) -> u32 {
        let place = self.place(fork);
        if let (Some(seen), Some(sequence)) =
            (self.seen.get_mut(place as usize), sequences.get_mut(place as usize))
        {
            seen.compare(&self.rows, value);
            sequence.table = seen.table();
        } else {
            sequences.push(Sequence { fork, bytes, table: None, period: None });
            let noted = self.rows.noted();
            self.seen.push(Seen { value, noted, candidates: None, next: None });
        }
        self.rows.at_sequence = self.rows.noted();
        self.logged.push(place);
        place
    }

    /// The place of a sequence: the next one if it has none yet.
    fn place(&mut self, fork: ForkNumber) -> u32 {
        let index = fork as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, NO_SEQUENCE);
        }
        let next = self.seen.len() as u32;
        match self.places.get_mut(index) {
            Some(place) if *place == NO_SEQUENCE => {
                *place = next;
                next
            }
            place => place.copied().unwrap_or(next),
        }
    }
}

impl Rows {
    /// How many entries were noted.
    fn noted(&self) -> u64 {
        self.dropped + self.log.len() as u64
    }

    fn count(&self, fork: ForkNumber) -> u32 {
        self.forks.get(fork as usize).map_or(0, |own| own.count)
    }

    /// Notes the first rows of a fork since a sequence was logged.
    fn note(&mut self, fork: ForkNumber, rows: u16) {
        let index = fork as usize;
        if self.forks.len() <= index {
            self.forks.resize(index + 1, ForkRows::default());
        }
        if self.log.len() >= LOG_MAX {
            self.log.pop_front();
            self.dropped += 1;
        }
        let noted = self.noted() + 1;
        let Some(own) = self.forks.get_mut(index) else { return };
        let back = if own.noted == 0 { u64::MAX } else { noted - own.noted };
        let back = u32::try_from(back).unwrap_or(u32::MAX);
        self.log.push_back(FirstRows { fork, before: own.count, back });
        *own = ForkRows { count: own.count.wrapping_add(rows.into()), noted };
    }

    /// Tables that got so many rows since the log was as long as that, with the rows that they have.
    fn with_rows_since(&self, noted: u64, rows: u32) -> Vec<(ForkNumber, u32)> {
        let mut found = Vec::new();
        let Some(from) = noted.checked_sub(self.dropped) else { return found };
        let entries = self.log.range((from as usize).min(self.log.len())..).take(LOOKED_AT_MAX);
        let first = (0u32..).zip(entries).filter(|(index, entry)| entry.back > *index);
        for (_, entry) in first.take(CANDIDATES_MAX) {
            let count = self.count(entry.fork);
            if count.wrapping_sub(entry.before) == rows {
                found.push((entry.fork, count));
            }
        }
        found
    }
}

impl Seen {
    /// The table that is fed. Of several that get as many rows it is the one that got the next.
    fn table(&self) -> Option<ForkNumber> {
        match self.candidates.as_deref()? {
            [(only, _)] => Some(*only),
            several => self.next.filter(|next| several.iter().any(|(fork, _)| fork == next)),
        }
    }

    fn compare(&mut self, rows: &Rows, value: i64) {
        let taken = value.checked_sub(self.value).and_then(|taken| u32::try_from(taken).ok());
        let taken = taken.unwrap_or(0);
        let candidates = match self.candidates.take() {
            None => rows.with_rows_since(self.noted, taken),
            Some(mut candidates) => {
                candidates.retain_mut(|(fork, before)| {
                    let count = rows.count(*fork);
                    count.wrapping_sub(std::mem::replace(before, count)) == taken
                });
                candidates
            }
        };
        // Where none fits, the value was set, or rows were inserted elsewhere too: begin anew.
        self.candidates = Some(candidates).filter(|candidates| !candidates.is_empty());
        (self.value, self.noted) = (value, rows.noted());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many rows for each of so many tables in turn; the fork of a sequence is that of its table and 1.
    fn in_turn(tables: u32, rounds: u32) -> (Finder, Vec<Sequence>) {
        let (mut finder, mut sequences) = (Finder::default(), Vec::new());
        for round in 0..rounds {
            for table in 0..tables {
                if round % 33 == 0 {
                    let value = i64::from(round) + 33;
                    let place = finder.logged(&mut sequences, 2 * table + 1, value, 99);
                    assert_eq!(place, table);
                }
                finder.inserted(2 * table, 1);
            }
        }
        (finder, sequences)
    }

    #[test]
    fn each_table_is_found_though_all_get_as_many_rows() {
        let (finder, sequences) = in_turn(300, 100);
        for (table, sequence) in (0u32..).zip(&sequences) {
            assert_eq!((sequence.fork, sequence.table), (2 * table + 1, Some(2 * table)));
        }
        let candidates = finder.seen.iter().filter_map(|seen| seen.candidates.as_ref());
        assert!(candidates.map(Vec::len).all(|count| count <= CANDIDATES_MAX));
    }

    #[test]
    fn every_sequence_has_a_place_of_its_own() {
        let (_, sequences) = in_turn(70_000, 1);
        assert_eq!(sequences.len(), 70_000);
    }

    #[test]
    fn a_table_that_got_other_rows_too_is_none() {
        let (mut finder, mut sequences) = (Finder::default(), Vec::new());
        finder.logged(&mut sequences, 9, 33, 99);
        finder.inserted(3, 30);
        finder.inserted(4, 33);
        finder.inserted(3, 3);
        finder.logged(&mut sequences, 9, 66, 99);
        assert_eq!(sequences[0].table, Some(3), "both fit, it came first");
        finder.inserted(3, 34);
        finder.inserted(4, 33);
        finder.logged(&mut sequences, 9, 99, 99);
        assert_eq!(sequences[0].table, Some(4));
        finder.inserted(4, 40);
        finder.logged(&mut sequences, 9, 132, 99);
        assert_eq!(sequences[0].table, None);
    }

    #[test]
    fn the_log_has_an_end() {
        let mut rows = Rows::default();
        for fork in 0..LOG_MAX as u32 + 10 {
            rows.note(fork % 7, 2);
        }
        assert_eq!((rows.log.len(), rows.noted()), (LOG_MAX, LOG_MAX as u64 + 10));
        assert_eq!(rows.with_rows_since(9, 2), [], "that is not known any more");
        assert_eq!(rows.with_rows_since(rows.noted() - 2, 2).len(), 2);
    }
}
