//! Counters of one family, of which only the top is told row by row. A row that enters the top leaves what it
//! had before with all others, and one that has been told stays: so none of them ever goes back, and all
//! together are everything.

use super::others;
use crate::model::Numbers;
use crate::model::kind::KindRow;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// At most this many rows are reported for each row of the top; beyond that the smallest one is dropped.
const TOLD_FOR_EACH: usize = 10;
/// Rows that are not told are remembered, to know when they enter the top: so many.
const ROWS_MAX: usize = 20_000;

/// What is counted of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub numbers: Numbers,
    pub transactions: u64,
    pub aborted: u64,
}

impl Tally {
    pub(super) fn of(numbers: Numbers) -> Tally {
        Tally { numbers, ..Tally::default() }
    }

    pub(super) fn of_kind(row: &KindRow) -> Tally {
        Tally { numbers: row.numbers, transactions: row.transactions, aborted: row.aborted }
    }

    fn add(&mut self, other: &Tally) {
        self.numbers.add(&other.numbers);
        self.transactions += other.transactions;
        self.aborted += other.aborted;
    }
}

/// A row: all that it has had since the beginning, by which it is ranked, and what is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Row {
    bytes: u64,
    told: Option<Tally>,
}

/// Rows by their labels.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct Family {
    rows: BTreeMap<Vec<String>, Row>,
    other: Tally,
}

/// As it is stored: labels are no keys of JSON.
#[derive(Serialize, Deserialize)]
struct Stored {
    rows: Vec<(Vec<String>, Row)>,
    other: Tally,
}

impl From<Stored> for Family {
    fn from(stored: Stored) -> Family {
        Family { rows: stored.rows.into_iter().collect(), other: stored.other }
    }
}

impl From<Family> for Stored {
    fn from(family: Family) -> Stored {
        Stored { rows: family.rows.into_iter().collect(), other: family.other }
    }
}

impl Family {
    /// Adds what is new; the `top` rows by bytes since the beginning are told from now on.
    pub(super) fn add(&mut self, news: Vec<(Vec<String>, Tally)>, top: usize) {
        for (labels, tally) in &news {
            let row = self.rows.entry(labels.clone()).or_default();
            row.bytes += tally.numbers.total_bytes;
        }
        self.promote(top);
        for (labels, tally) in news {
            match self.rows.get_mut(&labels).and_then(|row| row.told.as_mut()) {
                Some(told) => told.add(&tally),
                None => self.other.add(&tally),
            }
        }
        self.forget(top);
    }

    /// Rows of the top are told.
    fn promote(&mut self, top: usize) {
        if self.rows.len() <= top {
            self.rows.values_mut().for_each(|row| _ = row.told.get_or_insert_default());
            return;
        }
        let mut bytes: Vec<u64> = self.rows.values().map(|row| row.bytes).collect();
        let (_, least, _) =
            bytes.select_nth_unstable_by_key(top.saturating_sub(1), |of| Reverse(*of));
        let least = *least;
        let mut left = top - self.rows.values().filter(|row| row.bytes > least).count().min(top);
        for row in self.rows.values_mut() {
            let ties = row.bytes == least && left > 0;
            left -= usize::from(ties);
            if ties || row.bytes > least {
                row.told.get_or_insert_default();
            }
        }
    }

    /// Keeps memory flat: rows that are told are some for each of the top, and of those that are not the
    /// largest are remembered.
    fn forget(&mut self, top: usize) {
        let most = top.saturating_mul(TOLD_FOR_EACH).min(ROWS_MAX);
        let told = self.rows.values().filter(|row| row.told.is_some()).count();
        if told > most {
            let told = self.rows.iter().filter(|(_, row)| row.told.is_some());
            let smallest = told.min_by_key(|(_, row)| row.bytes).map(|(labels, _)| labels.clone());
            let row = smallest.and_then(|labels| self.rows.get_mut(&labels));
            row.and_then(|row| row.told.take()).iter().for_each(|told| self.other.add(told));
        }
        if self.rows.len() > ROWS_MAX {
            let mut bytes: Vec<u64> = self.rows.values().map(|row| row.bytes).collect();
            let (_, middle, _) = bytes.select_nth_unstable(ROWS_MAX / 2);
            let middle = *middle;
            self.rows.retain(|_, row| row.told.is_some() || row.bytes > middle);
        }
    }

    /// All rows that are told, most bytes first, then all others as one, if there are any.
    pub(super) fn told(&self, labels: usize) -> Vec<(Vec<String>, Tally)> {
        let told = self.rows.iter().filter_map(|(labels, row)| Some((labels.clone(), row.told?)));
        let mut told: Vec<_> = told.collect();
        told.sort_by_key(|(_, tally)| Reverse(tally.numbers.total_bytes));
        if self.other != Tally::default() || self.rows.values().any(|row| row.told.is_none()) {
            told.push((others(labels), self.other));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(rows: &[(&str, u64)]) -> Vec<(Vec<String>, Tally)> {
        let tally = |bytes| Tally::of(Numbers { total_bytes: bytes, ..Numbers::default() });
        rows.iter().map(|(label, bytes)| (vec![(*label).to_owned()], tally(*bytes))).collect()
    }

    fn told(family: &Family) -> Vec<(String, u64)> {
        let told = family.told(1).into_iter();
        told.map(|(labels, tally)| (labels.concat(), tally.numbers.total_bytes)).collect()
    }

    #[test]
    fn a_row_that_enters_the_top_leaves_what_it_had() {
        let mut family = Family::default();
        family.add(news(&[("a", 100), ("b", 50), ("c", 30)]), 2);
        let rows = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
            rows.iter().map(|(label, bytes)| ((*label).to_owned(), *bytes)).collect()
        };
        assert_eq!(told(&family), rows(&[("a", 100), ("b", 50), ("other", 30)]));
        family.add(news(&[("c", 40)]), 2);
        assert_eq!(told(&family), rows(&[("a", 100), ("b", 50), ("c", 40), ("other", 30)]));
        family.add(news(&[("b", 7), ("d", 1)]), 2);
        assert_eq!(told(&family), rows(&[("a", 100), ("b", 57), ("c", 40), ("other", 31)]));
    }

    #[test]
    fn no_counter_goes_back_and_all_add_up() {
        let (mut family, mut sum) = (Family::default(), 0);
        let mut before: BTreeMap<String, u64> = BTreeMap::new();
        for step in 0..500u64 {
            let label = format!("t{}", step * step % 37);
            let bytes = step * 7919 % 101;
            sum += bytes;
            family.add(news(&[(&label, bytes), ("t1", 3)]), 5);
            sum += 3;
            let now = told(&family);
            assert_eq!(now.iter().map(|(_, bytes)| bytes).sum::<u64>(), sum);
            for (label, bytes) in now {
                assert!(before.get(&label).is_none_or(|before| *before <= bytes), "{label}");
                before.insert(label, bytes);
            }
        }
    }

    #[test]
    fn a_family_is_stored_and_read_back() {
        let mut family = Family::default();
        family.add(news(&[("a\"", 100), ("b", 50), ("c", 30)]), 1);
        let text = serde_json::to_string(&family).expect("JSON");
        assert_eq!(serde_json::from_str::<Family>(&text).expect("the same"), family);
    }
}
