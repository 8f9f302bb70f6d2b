//! Serialises maps and sets in the order of their keys rather than of their hashes, so that equal values are
//! written as equal bytes. For `#[serde(serialize_with = "…")]`.

use serde::{Serialize, Serializer};

/// Writes a map by ascending keys.
///
/// # Errors
///
/// Those of the serializer.
pub fn map<'a, M, K, V, S>(map: &'a M, to: S) -> Result<S::Ok, S::Error>
where
    &'a M: IntoIterator<Item = (&'a K, &'a V)>,
    K: Ord + Serialize + 'a,
    V: Serialize + 'a,
    S: Serializer,
{
    let mut rows: Vec<(&K, &V)> = map.into_iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    to.collect_map(rows)
}

/// Writes a set ascending.
///
/// # Errors
///
/// Those of the serializer.
pub fn set<'a, M, K, S>(set: &'a M, to: S) -> Result<S::Ok, S::Error>
where
    &'a M: IntoIterator<Item = &'a K>,
    K: Ord + Serialize + 'a,
    S: Serializer,
{
    let mut rows: Vec<&K> = set.into_iter().collect();
    rows.sort_unstable();
    to.collect_seq(rows)
}
