//! Counters of one family, of which only the top is told row by row. A row that enters the top leaves what
//! it had before with all others, and one that has been told stays, as long as it runs: so none of them ever
//! goes back, and all together are everything. Where as many are told as may be, whatever comes stays with
//! all others: if a row gave up its place, its own counter would go back later, or that of all others.

use super::others;
use crate::model::Numbers;
use crate::model::kind::KindRow;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use walstat_format::ordered::OrderBy;

/// At most this many rows are told for each row of the top.
const TOLD_FOR_EACH: usize = 10;
/// No more are told in any case. Of those that are not as many are remembered, to know when they enter the
/// top.
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
        self.forget();
    }

    /// Rows of the top are told, the largest first, as far as there is place.
    fn promote(&mut self, top: usize) {
        let most = top.saturating_mul(TOLD_FOR_EACH).min(ROWS_MAX);
        let told = self.rows.values().filter(|row| row.told.is_some()).count();
        let mut ranked: Vec<&mut Row> = self.rows.values_mut().collect();
        ranked.order_by_key(|row| Reverse(row.bytes));
        let entering = ranked.into_iter().take(top).filter(|row| row.told.is_none());
        for row in entering.take(most.saturating_sub(told)) {
            row.told = Some(Tally::default());
        }
    }

    /// Keeps memory flat: where too many rows are not told, half as many are kept, the largest.
    fn forget(&mut self) {
        let untold = self.rows.values().filter(|row| row.told.is_none());
        let mut bytes: Vec<Reverse<u64>> = untold.map(|row| Reverse(row.bytes)).collect();
        if bytes.len() > ROWS_MAX {
            let (_, Reverse(middle), _) = bytes.select_nth_unstable(ROWS_MAX / 2);
            let middle = *middle;
            self.rows.retain(|_, row| row.told.is_some() || row.bytes > middle);
        }
    }

    /// All rows that are told, most bytes first, then all others as one, if there are any.
    pub(super) fn told(&self, labels: usize) -> Vec<(Vec<String>, Tally)> {
        let told = self.rows.iter().filter_map(|(labels, row)| Some((labels.clone(), row.told?)));
        let mut told: Vec<_> = told.collect();
        told.order_by_key(|(_, tally)| Reverse(tally.numbers.total_bytes));
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

    /// Each new table is larger than all before it, and the oldest ones come back: with 20 places for a top
    /// of two, they run out.
    #[test]
    fn a_row_keeps_its_place_where_places_run_out() {
        let (mut family, mut sum) = (Family::default(), 0);
        let mut before: BTreeMap<String, u64> = BTreeMap::new();
        for step in 0..100u64 {
            let (new, old) = (format!("t{step:03}"), format!("t{:03}", step / 3));
            family.add(news(&[(&new, 100 * step), (&old, 7)]), 2);
            sum += 100 * step + 7;
            let now: BTreeMap<String, u64> = told(&family).into_iter().collect();
            assert_eq!(now.values().sum::<u64>(), sum);
            for (label, bytes) in &before {
                assert!(now.get(label).is_some_and(|now| now >= bytes), "{label} at {step}");
            }
            assert!(now.len() <= 21, "{} rows at {step}", now.len());
            before = now;
        }
        assert_eq!(before.len(), 21);
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut family = Family::default();
        for part in 1..6u64 {
            let labels: Vec<String> = (0..20_000).map(|row| format!("{part} {row}")).collect();
            let rows: Vec<(&str, u64)> =
                (1..).zip(&labels).map(|(n, l)| (&**l, part * n)).collect();
            family.add(news(&rows), usize::MAX);
            assert!(family.rows.len() <= 2 * ROWS_MAX, "{}", family.rows.len());
        }
        assert_eq!(told(&family).len(), ROWS_MAX + 1);
    }

    #[test]
    fn a_family_is_stored_and_read_back() {
        let mut family = Family::default();
        family.add(news(&[("a\"", 100), ("b", 50), ("c", 30)]), 1);
        let text = serde_json::to_string(&family).expect("JSON");
        assert_eq!(serde_json::from_str::<Family>(&text).expect("the same"), family);
    }
}
