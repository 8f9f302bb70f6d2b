//! How page images are spread over a checkpoint's cycle: many at its beginning, when each page is
//! touched for the first time, and fewer and fewer after that.

use crate::wal::lsn::Lsn;

/// So many places with images are kept; then two neighbours become one.
const PLACES: usize = 1 << 17;
/// Exponents are looked for between 1/32 and 32.
const EXPONENTS: (f64, f64) = (-5.0, 5.0);
/// Halvings of that range: as exact as is shown.
const STEPS: u32 = 60;

/// Images of a cycle that is not over: where, and how many bytes. Every record for itself up to
/// 131,072 of them, then neighbours together, at the place of the first.
#[derive(Debug, Clone, Default)]
pub struct Images {
    places: Vec<u64>,
    bytes: Vec<u64>,
    /// So many records share a place, as a power of two.
    shared: u32,
    /// How many records the last place has.
    in_last: u64,
}

impl Images {
    /// Adds the images of a record, after all others.
    pub fn add(&mut self, lsn: Lsn, bytes: u64) {
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
    pub fn append(&mut self, later: Images) {
        for (place, bytes) in later.places.into_iter().zip(later.bytes) {
            self.add(Lsn(place), bytes);
        }
    }

    /// Which share of their bytes lies before a place; `None` if there are none.
    pub fn share_before(&self, lsn: Lsn) -> Option<f64> {
        let all: u64 = self.bytes.iter().sum();
        let count = self.places.partition_point(|place| *place < lsn.0);
        let first: u64 = self.bytes.iter().take(count).sum();
        (all > 0).then(|| first as f64 / all as f64)
    }

    /// How they are spread over `[start, end)`; `None` if there are none.
    pub fn decay(&self, start: Lsn, end: Lsn) -> Option<Decay> {
        let all: u64 = self.bytes.iter().sum();
        if all == 0 || end <= start {
            return None;
        }
        let length = u128::from(end.0 - start.0);
        let share = |bytes: u64| bytes as f64 / all as f64;
        let distance = |place: u64| u128::from(place.saturating_sub(start.0));
        let pairs = || self.places.iter().zip(&self.bytes);
        let first_of = |parts: u128| {
            let first = pairs().filter(|(place, _)| distance(**place) * parts < length);
            share(first.map(|(_, bytes)| *bytes).sum())
        };
        let mut tenths = [0; 10];
        for (place, bytes) in pairs() {
            let tenth = (distance(*place) * 10 / length).min(9) as usize;
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
pub fn exponent(shares: &[f64; 9]) -> f64 {
    let error = |log: f64| -> f64 {
        let power = log.exp2();
        let parts = (1..10).map(|tenth| f64::from(tenth) / 10.0);
        parts.zip(shares).map(|(part, sum)| (part.powf(power) - sum).powi(2)).sum()
    };
    let (mut low, mut high) = EXPONENTS;
    for _ in 0..STEPS {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        match error(left) <= error(right) {
            true => high = right,
            false => low = left,
        }
    }
    ((low + high) / 2.0).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_place() {
        let mut images = Images::default();
        for (lsn, bytes) in [(1000, 40), (1099, 10), (1100, 20), (1249, 5), (1250, 5), (1500, 20)] {
            images.add(Lsn(lsn), bytes);
        }
        let decay = images.decay(Lsn(1000), Lsn(2000)).expect("images");
        assert_eq!(decay.tenths, [0.5, 0.2, 0.1, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((decay.first_tenth, decay.first_quarter, decay.first_half), (0.5, 0.75, 0.8));
        assert!(decay.exponent < 0.5, "{}", decay.exponent);
        assert_eq!(Images::default().decay(Lsn(0), Lsn(10)), None);
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
    fn many_images_keep_their_sum() {
        let mut images = Images::default();
        (0..400_000).for_each(|i| images.add(Lsn(i * 8), 3));
        assert!(images.places.len() <= PLACES);
        let decay = images.decay(Lsn(0), Lsn(3_200_000)).expect("images");
        assert!(decay.tenths.iter().all(|share| (share - 0.1).abs() < 1e-4), "{decay:?}");
    }
}
