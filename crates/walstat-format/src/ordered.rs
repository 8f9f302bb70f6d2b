//! Sorting, and maps and sets out of what an iterator gives, for code that is not run for each record: there
//! few bytes of code matter more than a few instructions a comparison. The standard library compiles its
//! sort anew for each type that is sorted, and for each that is collected into a map, since that sorts
//! first: 5 kB of code each, a tenth of the program.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorts as `sort_by` and `sort_by_key` do: what is equal stays in its order.
pub trait OrderBy<T> {
    /// Sorts by a comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, which is made for each comparison.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);
}

impl<T> OrderBy<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = order(self.len(), &mut |one, other| match (self.get(one), self.get(other)) {
            (Some(one), Some(other)) => compare(one, other),
            _ => Ordering::Equal,
        });
        rearrange(order, &mut |one, other| self.swap(one, other));
    }

    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// The places of `count` items in order.
fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Brings items into an order: to each place the one that lies where `order` says, by at most a swap each.
fn rearrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        while order[place] != first {
            let from = order[place];
            swap(place, from);
            order[place] = place;
            place = from;
        }
        order[place] = place;
    }
}

/// Collects as `collect` does.
pub trait CollectOrdered: Iterator + Sized {
    /// Into a map: of several with one key the last.
    fn collect_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// Into a set.
    fn collect_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<I: Iterator> CollectOrdered for I {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(rows: Vec<(u8, u16)>) {
            let (mut ours, mut theirs) = (rows.clone(), rows.clone());
            ours.order_by_key(|row| row.0 / 16);
            theirs.sort_by_key(|row| row.0 / 16);
            prop_assert_eq!(&ours, &theirs);
            ours.order_by(|one, other| other.cmp(one));
            theirs.sort_by(|one, other| other.cmp(one));
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn collects_as_the_standard_library_does(rows: Vec<(u8, u16)>) {
            let map: BTreeMap<u8, u16> = rows.iter().copied().collect();
            prop_assert_eq!(rows.iter().copied().collect_map(), map);
            let set: BTreeSet<(u8, u16)> = rows.iter().copied().collect();
            prop_assert_eq!(rows.into_iter().collect_set(), set);
        }
    }
}
