//! How sizes are distributed: exact as long as the different sizes are not too many, within a
//! thousandth beyond. What comes out does not depend on the order in which sizes come in.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use sketches_ddsketch::{Config, DDSketch};
use walstat_format::by_key;

/// So many different sizes are usually counted one by one.
const EXACT_SIZES: usize = 1_000_000;
/// How far a quantile may be off beyond that.
const ERROR: f64 = 0.001;
/// Enough for every 64-bit size at that error, so that no bins are ever thrown together.
const BINS: u32 = 1 << 15;

/// Sizes and how often each came; up to `EXACT` different ones are counted one by one.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Distribution<const EXACT: usize = EXACT_SIZES> {
    #[serde(serialize_with = "by_key::map")]
    exact: HashMap<u64, u64>,
    /// Instead of them, if there were too many.
    sketch: Option<Box<DDSketch>>,
    count: u64,
    max: u64,
}

impl<const EXACT: usize> std::fmt::Debug for Distribution<EXACT> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Distribution of {} sizes up to {}", self.count, self.max)
    }
}

impl<const EXACT: usize> Distribution<EXACT> {
    /// Adds a size.
    pub fn add(&mut self, size: u64) {
        self.add_often(size, 1);
    }

    fn add_often(&mut self, size: u64, count: u64) {
        self.count += count;
        self.max = self.max.max(size);
        match &mut self.sketch {
            Some(sketch) => sketch.add_with_count(size as f64, count),
            None => {
                *self.exact.entry(size).or_default() += count;
                if self.exact.len() > EXACT {
                    self.give_up_exactness();
                }
            }
        }
    }

    fn give_up_exactness(&mut self) {
        let mut sketch = DDSketch::new(Config::new(ERROR, BINS, 1.0));
        for (size, count) in std::mem::take(&mut self.exact) {
            sketch.add_with_count(size as f64, count);
        }
        self.sketch = Some(Box::new(sketch));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: Self) {
        if other.sketch.is_some() && self.sketch.is_none() {
            std::mem::swap(self, &mut other);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.sketch, &other.sketch) {
            // Both were made alike, so it cannot fail.
            let merged = ours.merge(theirs);
            debug_assert!(merged.is_ok());
            self.count += other.count;
            self.max = self.max.max(other.max);
        }
        for (size, count) in other.exact {
            self.add_often(size, count);
        }
    }

    /// How many sizes came.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether percentiles are exact.
    pub fn is_exact(&self) -> bool {
        self.sketch.is_none()
    }

    /// The largest size; `None` if there is none.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The sizes at these percentiles (0 to 100, ascending), by nearest rank; `None` if there is no
    /// size.
    pub fn percentiles<const N: usize>(&self, percents: [u64; N]) -> [Option<u64>; N] {
        if self.count == 0 {
            return [None; N];
        }
        if let Some(sketch) = &self.sketch {
            return percents.map(|percent| {
                let found = sketch.quantile(percent as f64 / 100.0).ok().flatten();
                found.map(|size| (size.round() as u64).min(self.max))
            });
        }
        let mut sizes: Vec<_> = self.exact.iter().map(|(size, count)| (*size, *count)).collect();
        sizes.sort_unstable();
        percents.map(|percent| {
            let rank = (u128::from(percent) * u128::from(self.count)).div_ceil(100).max(1);
            let mut seen = 0;
            let reached = sizes.iter().find(|(_, count)| {
                seen += u128::from(*count);
                seen >= rank
            });
            reached.map(|(size, _)| *size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut sizes = Distribution::<EXACT_SIZES>::default();
        assert_eq!((sizes.percentiles([50]), sizes.max()), ([None], None));
        (1..=10).rev().for_each(|size| sizes.add(size * 100));
        let found = sizes.percentiles([0, 50, 51, 90, 99, 100]).map(|size| size.unwrap_or(0));
        assert_eq!(found, [100, 500, 600, 900, 1000, 1000]);
        sizes.add(7);
        assert_eq!(sizes.percentiles([50, 90, 99]).map(Option::unwrap), [500, 900, 1000]);
    }

    #[test]
    fn too_many_sizes_are_estimated_alike_whatever_their_order() {
        let part = |range: std::ops::Range<u64>| {
            let mut part = Distribution::<EXACT_SIZES>::default();
            range.for_each(|size| part.add(size));
            part
        };
        let most = EXACT_SIZES as u64;
        let mut exact = part(0..most / 2);
        exact.merge(part(most / 2..most));
        assert!(exact.is_exact());
        let cuts = [[0, 10, 1_500_000], [0, 700_000, 1_500_000], [0, 1_499_000, 1_500_000]];
        let merged = cuts.map(|[from, cut, to]| {
            let mut merged = part(from..cut);
            merged.merge(part(cut..to));
            assert!(!merged.is_exact());
            (merged.count(), merged.max(), merged.percentiles([50, 90, 99]))
        });
        assert_eq!((merged[0], merged[1]), (merged[1], merged[2]));
        let (count, max, percentiles) = merged[0];
        assert_eq!((count, max), (1_500_000, Some(1_499_999)));
        for (found, wanted) in percentiles.into_iter().zip([750_000f64, 1_350_000.0, 1_485_000.0]) {
            let found = found.expect("sizes") as f64;
            assert!((found / wanted - 1.0).abs() < 0.002, "{found} for {wanted}");
        }
    }
}
