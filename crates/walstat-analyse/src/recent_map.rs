//! A map whose entries expire: a key is found until a window of WAL has passed since it was seen last,
//! and is forgotten some time after that.
//!
//! Places in the WAL are measured in [`Granule`]s of 8 kB, so that entries of one granule can be put
//! together and still expire as each of them would alone.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use walstat_format::by_key;
use walstat_format::lsn::Lsn;

/// Expired keys are looked for when this many are kept, or more.
const KEPT_MIN: usize = 1024;

/// Eight kilobytes of WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Granule(u64);

impl Granule {
    /// The one in which a record begins.
    #[inline(always)]
    pub(crate) fn of(lsn: Lsn) -> Granule {
        Granule(lsn.0 >> 13)
    }

    /// Whether not more than `window` granules lie from `before` to here.
    pub(crate) fn is_within(self, window: u64, before: Granule) -> bool {
        self.0.saturating_sub(before.0) <= window
    }
}

/// Values by key with the place where each was seen; found for `WINDOW` granules.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "K: Serialize, V: Serialize"))]
pub(crate) struct RecentMap<K: Eq + Hash + Ord, V, const WINDOW: u64> {
    #[serde(serialize_with = "by_key::map")]
    kept: HashMap<K, (Granule, V)>,
    /// Expired keys are looked for again when this many are kept.
    full: usize,
}

impl<K: Eq + Hash + Ord, V, const WINDOW: u64> Default for RecentMap<K, V, WINDOW> {
    fn default() -> Self {
        RecentMap { kept: HashMap::new(), full: KEPT_MIN }
    }
}

impl<K: Eq + Hash + Ord, V: Copy, const WINDOW: u64> RecentMap<K, V, WINDOW> {
    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The value of a key, if it was seen in the window before `now`.
    pub(crate) fn get(&self, key: &K, now: Granule) -> Option<V> {
        let (at, value) = self.kept.get(key)?;
        now.is_within(WINDOW, *at).then_some(*value)
    }

    /// The same, with the place where it was seen, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K, now: Granule) -> Option<&mut (Granule, V)> {
        self.kept.get_mut(key).filter(|(at, _)| now.is_within(WINDOW, *at))
    }

    /// Takes note of a key that is seen now; returns the value that it had in the window before.
    pub(crate) fn insert(&mut self, key: K, now: Granule, value: V) -> Option<V> {
        if self.kept.len() >= self.full {
            self.kept.retain(|_, (at, _)| now.is_within(WINDOW, *at));
            self.full = (self.kept.len() * 2).max(KEPT_MIN);
        }
        let (at, before) = self.kept.insert(key, (now, value))?;
        now.is_within(WINDOW, at).then_some(before)
    }

    /// Forgets a key; returns the value that it had in the window before `now`.
    pub(crate) fn remove(&mut self, key: &K, now: Granule) -> Option<V> {
        if self.kept.is_empty() {
            return None;
        }
        let (at, before) = self.kept.remove(key)?;
        now.is_within(WINDOW, at).then_some(before)
    }

    /// Adds those that were seen later, each after `change` was told what is known here. Nothing is
    /// forgotten meanwhile: they come in no order, and what has expired for one may be found by another.
    pub(crate) fn merge(&mut self, later: Self, change: impl Fn(&Self, K, Granule, &mut V))
    where
        K: Copy,
    {
        for (key, (at, mut value)) in later.kept {
            change(self, key, at, &mut value);
            self.kept.insert(key, (at, value));
        }
    }

    /// Takes no more memory than it needs.
    pub(crate) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_the_window_is_not_found_and_does_not_stay() {
        let mut map = RecentMap::<u32, u32, 2>::default();
        for key in 0..100_000 {
            map.insert(key, Granule(u64::from(key) / 10), key);
        }
        assert_eq!(map.get(&99_999, Granule(9_999)), Some(99_999));
        assert_eq!(map.get(&99_999, Granule(10_001)), Some(99_999));
        assert_eq!(map.get(&99_999, Granule(10_002)), None);
        assert_eq!(map.get(&99_900, Granule(9_999)), None);
        assert!(map.kept.len() <= KEPT_MIN);
        assert_eq!(map.remove(&99_999, Granule(9_999)), Some(99_999));
        assert_eq!(map.get(&99_999, Granule(9_999)), None);
    }
}
