//! What was seen lately, by a key: found as long as not more than a window of WAL lies after it, and
//! forgotten some time after. Knows nothing of what it is.
//!
//! Places in the WAL are told by [`Granule`]s, so that what is near each other can be put together
//! and is still found, or not, as each of it would be alone.

use crate::wal::lsn::Lsn;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::hash::Hash;

/// So many keys are kept before those outside of the window are looked for.
const KEPT_MIN: usize = 1024;

/// Eight kilobytes of WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Granule(u64);

impl Granule {
    /// The one in which a record begins.
    #[inline(always)]
    pub fn of(lsn: Lsn) -> Granule {
        Granule(lsn.0 >> 13)
    }

    /// Whether not more than `window` granules lie from `before` to here.
    pub fn is_within(self, window: u64, before: Granule) -> bool {
        self.0.saturating_sub(before.0) <= window
    }
}

/// Values by key with the place where each was seen; found for `WINDOW` granules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lately<K: Eq + Hash, V, const WINDOW: u64> {
    kept: HashMap<K, (Granule, V)>,
    /// So many are kept before those outside of the window are looked for.
    full: usize,
}

impl<K: Eq + Hash, V, const WINDOW: u64> Default for Lately<K, V, WINDOW> {
    fn default() -> Self {
        Lately { kept: HashMap::new(), full: KEPT_MIN }
    }
}

impl<K: Eq + Hash, V: Copy, const WINDOW: u64> Lately<K, V, WINDOW> {
    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The value of a key, if it was seen in the window before `now`.
    pub fn get(&self, key: &K, now: Granule) -> Option<V> {
        let (at, value) = self.kept.get(key)?;
        now.is_within(WINDOW, *at).then_some(*value)
    }

    /// Takes note of a key that is seen now.
    pub fn insert(&mut self, key: K, now: Granule, value: V) {
        if self.kept.len() >= self.full {
            self.kept.retain(|_, (at, _)| now.is_within(WINDOW, *at));
            self.full = (self.kept.len() * 2).max(KEPT_MIN);
        }
        self.kept.insert(key, (now, value));
    }

    /// A key is of no more use.
    pub fn remove(&mut self, key: &K) {
        if !self.kept.is_empty() {
            self.kept.remove(key);
        }
    }

    /// All of them, for good.
    pub fn into_all(self) -> impl Iterator<Item = (K, Granule, V)> {
        self.kept.into_iter().map(|(key, (at, value))| (key, at, value))
    }

    /// Takes no more memory than it needs.
    pub fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_the_window_is_not_found_and_does_not_stay() {
        let mut lately = Lately::<u32, u32, 2>::default();
        for key in 0..100_000 {
            lately.insert(key, Granule(u64::from(key) / 10), key);
        }
        assert_eq!(lately.get(&99_999, Granule(9_999)), Some(99_999));
        assert_eq!(lately.get(&99_999, Granule(10_001)), Some(99_999));
        assert_eq!(lately.get(&99_999, Granule(10_002)), None);
        assert_eq!(lately.get(&99_900, Granule(9_999)), None);
        assert!(lately.kept.len() <= KEPT_MIN);
        lately.remove(&99_999);
        assert_eq!(lately.get(&99_999, Granule(9_999)), None);
    }
}
