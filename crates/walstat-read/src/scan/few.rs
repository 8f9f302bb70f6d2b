//! Of records that a server writes a handful of, few are noted in each stretch of the WAL, however many a
//! hostile one has.

use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;

/// A stretch is 1 MB. No segment is smaller, so it does not matter how the WAL was divided.
pub const STRETCH_BITS: u32 = 20;
/// How many are noted in each.
pub const FEW: u32 = 64;

/// How many there were in the last stretch in which there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Few {
    stretch: u64,
    count: u32,
}

impl Few {
    /// Takes note of a record that begins at `lsn`; whether it is one of the first in its stretch.
    pub fn takes(&mut self, lsn: Lsn) -> bool {
        let stretch = lsn.0 >> STRETCH_BITS;
        let before = if self.stretch == stretch { self.count } else { 0 };
        *self = Few { stretch, count: before.saturating_add(1) };
        before < FEW
    }

    /// The same after what comes later.
    pub fn merge(&mut self, later: Few) {
        if later.count > 0 {
            *self = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_stretch_are_taken() {
        let mut few = Few::default();
        let taken = (0..3_u64 << STRETCH_BITS).step_by(128).filter(|lsn| few.takes(Lsn(*lsn)));
        let taken: Vec<u64> = taken.collect();
        assert_eq!(taken.len(), 3 * FEW as usize);
        assert!(taken.contains(&(1 << STRETCH_BITS)) && taken.contains(&(2 << STRETCH_BITS)));
        let (mut other, before) = (Few::default(), few);
        few.merge(other);
        assert_eq!(few, before);
        other.takes(Lsn(9));
        few.merge(other);
        assert_eq!(few, other);
    }
}
