//! A table with a value for each fork of a relation, found without hashing as long as the relations in
//! use are few. Knows nothing of what is counted.

use hashbrown::{DefaultHashBuilder, HashTable};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::BuildHasher;
use walstat_format::block::places::StoredPlace;
use walstat_format::block::{BlockRef, RelFileLocator};

/// One fork of one relation's files.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ForkKey {
    /// The files.
    pub relation: RelFileLocator,
    /// 0 main, 1 fsm, 2 vm, 3 init.
    pub fork: u8,
}

impl ForkKey {
    /// The fork that a block reference is of.
    #[inline(always)]
    pub fn of(block: &BlockRef) -> ForkKey {
        ForkKey { relation: block.relation, fork: block.fork }
    }

    /// The fork that the place of a block is in.
    #[inline(always)]
    pub(crate) fn of_place(place: &StoredPlace) -> ForkKey {
        ForkKey { relation: place.relation, fork: place.fork }
    }

    /// Its place among the recent ones. Neighbours in number were made together and are used
    /// together, so numbers need no mixing.
    #[inline(always)]
    fn place(&self) -> usize {
        (self.relation.relfilenode as usize).wrapping_add(usize::from(self.fork) * 21) % RECENT
    }
}

/// So many forks are found without hashing.
const RECENT: usize = 64;

/// A fork and its value.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Row<V> {
    key: ForkKey,
    value: V,
}

/// Values by fork, in the order in which the forks were first met.
#[derive(Debug, Clone)]
pub(crate) struct ForkTable<V> {
    rows: Vec<Row<V>>,
    /// Places in `rows`.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Places in `rows` of the forks met last, by [`ForkKey::place`].
    recent: [u32; RECENT],
}

impl<V> Default for ForkTable<V> {
    fn default() -> Self {
        ForkTable {
            rows: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            recent: [0; RECENT],
        }
    }
}

impl<V: Default> ForkTable<V> {
    /// How many forks there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All forks with their values.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&ForkKey, &V)> {
        self.rows.iter().map(|row| (&row.key, &row.value))
    }

    /// The fork of this number with its value.
    pub(crate) fn row(&self, number: usize) -> Option<(&ForkKey, &V)> {
        self.rows.get(number).map(|row| (&row.key, &row.value))
    }

    /// All values.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.rows.iter_mut().map(|row| &mut row.value)
    }

    /// All forks with their values, for good.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = (ForkKey, V)> {
        self.rows.into_iter().map(|row| (row.key, row.value))
    }

    /// The fork of this number, by the order in which they were met.
    pub(crate) fn key(&self, number: u32) -> Option<&ForkKey> {
        self.rows.get(number as usize).map(|row| &row.key)
    }

    /// The number of a fork, by the order in which they were met; it is met now if it never was.
    #[inline(always)]
    pub(crate) fn number(&mut self, key: ForkKey) -> u32 {
        let place = key.place();
        let number = self.recent[place];
        match self.rows.get(number as usize) {
            Some(row) if row.key == key => number,
            _ => self.find(key, place),
        }
    }

    /// The value of a fork, empty if it was never met.
    #[inline(always)]
    pub(crate) fn value(&mut self, key: ForkKey) -> &mut V {
        let number = self.number(key) as usize;
        &mut self.rows[number].value
    }

    /// The value of a fork, if it was met.
    pub(crate) fn get(&self, key: &ForkKey) -> Option<&V> {
        let rows = &self.rows;
        let is_it = |number: &u32| rows.get(*number as usize).is_some_and(|row| row.key == *key);
        let number = self.index.find(self.hasher.hash_one(key), is_it)?;
        rows.get(*number as usize).map(|row| &row.value)
    }

    #[inline(never)]
    fn find(&mut self, key: ForkKey, place: usize) -> u32 {
        let ForkTable { rows, index, hasher, recent } = self;
        let is_it = |number: &u32| rows.get(*number as usize).is_some_and(|row| row.key == key);
        let hash_of = |number: &u32| {
            hasher.hash_one(rows.get(*number as usize).map(|row| row.key).unwrap_or_default())
        };
        // A table of 2³² forks would have run out of memory long before.
        let next = rows.len() as u32;
        let entry = index.entry(hasher.hash_one(key), is_it, hash_of);
        let number = *entry.or_insert(next).get();
        if number == next {
            push_tightly(rows, Row { key, value: V::default() });
        }
        if let Some(recent) = recent.get_mut(place) {
            *recent = number;
        }
        number
    }

    /// Takes no more memory than it needs.
    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
    }
}

/// The rows alone, in their order: their numbers stay what they are.
impl<V: Serialize> Serialize for ForkTable<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.rows.serialize(to)
    }
}

impl<'de, V: Deserialize<'de> + Default> Deserialize<'de> for ForkTable<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut table = ForkTable::default();
        for row in Vec::<Row<V>>::deserialize(from)? {
            *table.value(row.key) = row.value;
        }
        Ok(table)
    }
}

/// Adds to a list that may get long, and leaves a ninth of it empty at most.
pub(crate) fn push_tightly<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 8).max(4));
    }
    list.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(relfilenode: u32, fork: u8) -> ForkKey {
        let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode };
        ForkKey { relation, fork }
    }

    #[test]
    fn each_fork_has_a_value_of_its_own() {
        let mut table = ForkTable::<u32>::default();
        for turn in 0..3 {
            // More than are found without hashing, and some of the same place.
            for relfilenode in (16384..17000).chain([16384 + 64 * 100]) {
                for fork in 0..4 {
                    *table.value(key(relfilenode, fork)) += relfilenode + turn;
                }
            }
        }
        assert_eq!(table.len(), 617 * 4);
        assert!(table.iter().all(|(key, value)| *value == key.relation.relfilenode * 3 + 3));
        assert_eq!(table.get(&key(16999, 3)), Some(&(16999 * 3 + 3)));
        assert_eq!(table.get(&key(17000, 0)), None);
    }

    #[test]
    fn numbers_count_in_the_order_of_first_meeting() {
        let mut table = ForkTable::<()>::default();
        let numbers = [9, 7, 9, 8, 7].map(|relfilenode| table.number(key(relfilenode, 0)));
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!(table.key(2), Some(&key(8, 0)));
        assert_eq!(table.key(3), None);
    }
}
