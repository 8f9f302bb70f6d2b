//! How page images are spread over a checkpoint's cycle: many at its beginning, when each page is
//! touched for the first time, and fewer and fewer after that.

use crate::unused;
use std::ops::Range;
use walstat_format::lsn::Lsn;

/// So many places with images are kept; then two neighbours become one.
const PLACES: usize = 1 << 17;
/// Exponents are looked for between 1/32 and 32.
const EXPONENTS: (f64, f64) = (-5.0, 5.0);
/// Halvings of that range: as exact as is shown.
const STEPS: u32 = 60;
/// The logarithms of a tenth to nine tenths, to base 2.
const LOGS_OF_TENTHS: [f64; 9] = [
    -std::f64::consts::LOG2_10,
    -2.321928094887362,
    -1.7369655941662063,
    -1.3219280948873622,
    -1.0,
    -0.7369655941662062,
    -0.5145731728297583,
    -0.3219280948873623,
    -0.15200309344504995,
];
/// So many terms of its series make a power of two as exact as a number can be.
const TERMS: u32 = 18;

/// Images of a cycle that is not over: where, and how many bytes. Every record for itself up to
/// 131,072 of them, then neighbours together, at the place of the first.
#[derive(Debug, Clone, Default)]
pub(super) struct ImagePlaces {
    places: Vec<u64>,
    bytes: Vec<u64>,
    /// So many records share a place, as a power of two.
    shared: u32,
    /// How many records the last place has.
    in_last: u64,
}

impl ImagePlaces {
    /// Adds the images of a record, after all others.
    pub(super) fn add(&mut self, lsn: Lsn, bytes: u64) {
        if let Some(last) = self.bytes.last_mut()
            && self.in_last < 1 << self.shared
        {
            *last += bytes;
            self.in_last += 1;
            return;
        }
        if self.places.len() == PLACES {
            self.halve();
        }
        self.places.push(lsn.0);
        self.bytes.push(bytes);
        self.in_last = 1;
    }

    fn halve(&mut self) {
        self.shared += 1;
        self.places = self.places.chunks(2).filter_map(|pair| pair.first().copied()).collect();
        self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
    }

    /// Adds those of a later stretch.
    pub(super) fn append(&mut self, later: ImagePlaces) {
        for (place, bytes) in later.places.into_iter().zip(later.bytes) {
            self.add(Lsn(place), bytes);
        }
    }

    /// Which share of their bytes lies before a place; `None` if there are none.
    pub(super) fn share_before(&self, lsn: Lsn) -> Option<f64> {
        let all: u64 = self.bytes.iter().sum();
        let count = self.places.partition_point(|place| *place < lsn.0);
        let first: u64 = self.bytes.iter().take(count).sum();
        (all > 0).then(|| first as f64 / all as f64)
    }

    /// How much was written from `start` to each place.
    fn distances(&self, start: Lsn, unused: &[Range<Lsn>]) -> Vec<u128> {
        let after_start = unused.partition_point(|unused| unused.end <= start);
        let mut ahead = unused.iter().skip(after_start).peekable();
        let mut passed = 0;
        let mut distance = |place: u64| {
            while let Some(unused) = ahead.next_if(|unused| unused.end.0 <= place) {
                passed += unused.end.0 - unused.start.0.max(start.0);
            }
            u128::from(place.saturating_sub(start.0).saturating_sub(passed))
        };
        self.places.iter().map(|place| distance(*place)).collect()
    }

    /// How the images are spread over `[start, end)`, leaving out the ranges in `unused` (ascending), where
    /// nothing was written; `None` without images.
    pub(super) fn decay(&self, start: Lsn, end: Lsn, unused: &[Range<Lsn>]) -> Option<Decay> {
        let all: u64 = self.bytes.iter().sum();
        let length = u128::from(unused::written(unused, start..end));
        if all == 0 || length == 0 {
            return None;
        }
        let share = |bytes: u64| bytes as f64 / all as f64;
        let distances = self.distances(start, unused);
        let pairs = || distances.iter().zip(&self.bytes);
        let first_of = |parts: u128| {
            let first = pairs().filter(|(distance, _)| **distance * parts < length);
            share(first.map(|(_, bytes)| *bytes).sum())
        };
        let mut tenths = [0; 10];
        for (distance, bytes) in pairs() {
            let tenth = (distance * 10 / length).min(9) as usize;
            if let Some(sum) = tenths.get_mut(tenth) {
                *sum += bytes;
            }
        }
        let tenths = tenths.map(share);
        let mut sum = 0.0;
        let mut cumulated = [0.0; 9];
        for (cumulated, share) in cumulated.iter_mut().zip(&tenths) {
            sum += share;
            *cumulated = sum;
        }
        Some(Decay {
            first_tenth: first_of(10),
            first_quarter: first_of(4),
            first_half: first_of(2),
            tenths,
            exponent: exponent(&cumulated),
        })
    }
}

/// Shares of a cycle's image bytes, by place in its WAL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    /// In the first tenth.
    pub first_tenth: f64,
    /// In the first quarter.
    pub first_quarter: f64,
    /// In the first half.
    pub first_half: f64,
    /// In each tenth.
    pub tenths: [f64; 10],
    /// The exponent e for which the share in the first part x of the cycle is closest to x^e, by
    /// least squares over nine tenths: 1 is evenly spread, less is a burst at the beginning.
    pub exponent: f64,
}

/// The exponent e for which x^e is closest to the shares that are reached at each tenth x, by least
/// squares.
pub(super) fn exponent(shares: &[f64; 9]) -> f64 {
    let error = |log: f64| -> f64 {
        let power = power_of_two(log);
        let off = |(log, sum): (&f64, &f64)| power_of_two(log * power) - sum;
        LOGS_OF_TENTHS.iter().zip(shares).map(off).map(|off| off * off).sum()
    };
    let (mut low, mut high) = EXPONENTS;
    for _ in 0..STEPS {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if error(left) <= error(right) { high = right } else { low = left }
    }
    power_of_two((low + high) / 2.0)
}

/// Two to the power of `log`, the same to the last bit on every machine: that of the standard library is
/// as each machine's own library of mathematics has it, and reports would differ. Products and sums alone
/// do not.
pub fn power_of_two(log: f64) -> f64 {
    // What is smaller or larger is beyond what is asked for here.
    let log = log.clamp(-1022.0, 1023.0);
    let whole = log.round();
    let rest = (log - whole) * std::f64::consts::LN_2;
    let series = (1..=TERMS).rev().fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    // A power of two is a number with nothing but an exponent.
    let scale = f64::from_bits(((whole as i64 + 1023) as u64) << 52);
    series * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_place() {
        let mut images = ImagePlaces::default();
        for (lsn, bytes) in [(1000, 40), (1099, 10), (1100, 20), (1249, 5), (1250, 5), (1500, 20)] {
            images.add(Lsn(lsn), bytes);
        }
        let decay = images.decay(Lsn(1000), Lsn(2000), &[]).expect("images");
        assert_eq!(decay.tenths, [0.5, 0.2, 0.1, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((decay.first_tenth, decay.first_quarter, decay.first_half), (0.5, 0.75, 0.8));
        assert!(decay.exponent < 0.5, "{}", decay.exponent);
        assert_eq!(ImagePlaces::default().decay(Lsn(0), Lsn(10), &[]), None);
    }

    /// A segment that was closed early: its rest is no part of the cycle's WAL.
    #[test]
    fn what_a_switch_leaves_empty_moves_no_share() {
        let mut images = ImagePlaces::default();
        for lsn in [1000, 1050, 5100, 5150] {
            images.add(Lsn(lsn), 25);
        }
        let unused = [Lsn(100)..Lsn(200), Lsn(1100)..Lsn(5100), Lsn(5200)..Lsn(9000)];
        let decay = images.decay(Lsn(1000), Lsn(9000), &unused).expect("images");
        assert_eq!((decay.first_quarter, decay.first_half), (0.25, 0.5));
    }

    #[test]
    fn the_exponent_is_that_of_the_curve() {
        for power in [0.25, 0.5, 1.0, 2.0] {
            let at = |tenth: usize| (tenth as f64 / 10.0).powf(power);
            let shares = std::array::from_fn(|i| at(i + 1));
            assert!((exponent(&shares) - power).abs() < 1e-6, "{power}");
        }
    }

    #[test]
    fn powers_of_two_are_those_of_mathematics() {
        for step in -4000..=400 {
            let log = f64::from(step) / 37.0;
            let (found, expected) = (power_of_two(log), log.exp2());
            assert!((found / expected - 1.0).abs() < 1e-14, "{log}: {found}, not {expected}");
        }
        assert_eq!([-3.0, 0.0, 5.0].map(power_of_two), [0.125, 1.0, 32.0]);
        for (log, tenth) in LOGS_OF_TENTHS.into_iter().zip(1..) {
            assert!((power_of_two(log) - f64::from(tenth) / 10.0).abs() < 1e-15, "{tenth}");
        }
        // As it is written, so that each machine is held against the others.
        assert_eq!(power_of_two(0.3).to_bits(), 0x3FF3_B2C4_7BFF_8329);
    }

    #[test]
    fn many_images_keep_their_sum() {
        let mut images = ImagePlaces::default();
        (0..400_000).for_each(|i| images.add(Lsn(i * 8), 3));
        assert!(images.places.len() <= PLACES);
        let decay = images.decay(Lsn(0), Lsn(3_200_000), &[]).expect("images");
        assert!(decay.tenths.iter().all(|share| (share - 0.1).abs() < 1e-4), "{decay:?}");
    }
}
