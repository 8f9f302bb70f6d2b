//! Compressing some images rather than all: how long the others become follows from those of the same
//! relation, and how far that may be off from how much these differ.
//!
//! A ratio estimator in strata (Cochran, Sampling Techniques, 6.2 and 6.10): the strata are relations and
//! forks. Each image takes the ratio of one of those of its stratum that were compressed by then, by chance;
//! with the mean of all, records would end at other remainders of 8, to which they are padded. The errors of
//! a stratum add up over the run rather than in squares, since what was compressed first tells of all later.

use crate::analyse::whatif::blocks::{BlockNumber, Ordinal};
use crate::wal::block::{BlockRef, RelFileLocator};
use hashbrown::HashMap;

/// So many images of a relation are compressed in any case.
const FIRST_IMAGES: u64 = 8;
/// So many standard errors on each side: 99 of 100.
const ERRORS: f64 = 2.576;

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// All images.
    pub const ALL: Share = Share(1.0);

    /// A part of them; `None` where it is none.
    pub fn new(part: f64) -> Option<Share> {
        (part > 0.0 && part <= 1.0).then_some(Share(part))
    }

    /// The part.
    pub fn part(self) -> f64 {
        self.0
    }

    /// Whether the image of a block at a record is one of them: as good as by chance, and always the same.
    fn takes(self, block: BlockNumber, ordinal: Ordinal) -> bool {
        let chance = mixed(u64::from(block) << 32 | u64::from(ordinal)) as u32;
        f64::from(chance) < self.0 * 4_294_967_296.0
    }
}

/// Sums over the compressed images of a stratum: lengths before (x) and after (y).
#[derive(Debug, Clone, Default)]
struct Sums {
    /// Images that came, compressed or not.
    came: u64,
    /// Those that were compressed.
    pairs: Vec<(u16, u16)>,
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
    /// Standard error of what was guessed so far, bytes.
    error: f64,
}

impl Sums {
    fn add(&mut self, before: u64, after: u64) {
        self.pairs.extend(u16::try_from(before).ok().zip(u16::try_from(after).ok()));
        let (x, y) = (before as f64, after as f64);
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.yy += y * y;
        self.xy += x * y;
    }

    fn ratio(&self) -> f64 {
        if self.x > 0.0 { self.y / self.x } else { 1.0 }
    }

    /// Variance of what an image is off from the ratio, bytes squared.
    fn variance(&self) -> f64 {
        let ratio = self.ratio();
        let squares = self.yy - 2.0 * ratio * self.xy + ratio * ratio * self.xx;
        // Of one image alone nothing is known: it may be as far off as it is long.
        if self.count < 2.0 { self.xx.max(1.0) } else { squares.max(0.0) / (self.count - 1.0) }
    }

    /// Standard error of the ratio.
    fn ratio_error(&self) -> f64 {
        let mean = self.x / self.count.max(1.0);
        (self.variance() / self.count.max(1.0)).sqrt() / mean.max(1.0)
    }
}

/// The number of a stratum.
pub type Stratum = u32;

/// All strata of a run.
#[derive(Debug, Default)]
pub struct Strata {
    numbers: HashMap<(RelFileLocator, u8), Stratum>,
    sums: Vec<Sums>,
    /// Variance of single images that were guessed, bytes squared.
    scatter: f64,
    guessed: u64,
    /// Bytes before compression of those that were guessed, and of the others.
    guessed_before: u64,
    compressed_before: u64,
}

impl Strata {
    /// The stratum of a block, and whether its image at a record is compressed.
    pub fn choose(
        &mut self,
        share: Share,
        block: &BlockRef,
        (number, ordinal): (BlockNumber, Ordinal),
    ) -> (Stratum, bool) {
        let next = self.sums.len() as Stratum;
        let stratum = *self.numbers.entry((block.relation, block.fork)).or_insert(next);
        if stratum == next {
            self.sums.push(Sums::default());
        }
        let Some(sums) = self.sums.get_mut(stratum as usize) else { return (stratum, true) };
        sums.came += 1;
        (stratum, sums.came <= FIRST_IMAGES || share.takes(number, ordinal))
    }

    /// An image was compressed.
    pub fn add(&mut self, stratum: Stratum, (before, after): (u64, u64)) {
        self.compressed_before += before;
        if let Some(sums) = self.sums.get_mut(stratum as usize) {
            sums.add(before, after);
        }
    }

    /// How long an image becomes that was not.
    pub fn guess(&mut self, stratum: Stratum, before: u64) -> u64 {
        self.guessed += 1;
        self.guessed_before += before;
        let Some(sums) = self.sums.get_mut(stratum as usize) else { return before };
        sums.error += sums.ratio_error() * before as f64;
        // That of the image, and that of the one whose ratio it takes.
        self.scatter += 2.0 * sums.variance();
        let chosen = mixed(self.guessed).checked_rem(sums.pairs.len() as u64).unwrap_or(0);
        match sums.pairs.get(chosen as usize) {
            Some((own, after)) => before * u64::from(*after) / u64::from(*own).max(1),
            None => before,
        }
    }

    /// How far off the sum of what was guessed may be, bytes.
    pub fn error(&self) -> u64 {
        let strata: f64 = self.sums.iter().map(|sums| sums.error * sums.error).sum();
        (ERRORS * (strata + self.scatter).sqrt()).ceil() as u64
    }

    /// Images that were guessed.
    pub fn guessed(&self) -> u64 {
        self.guessed
    }

    /// By how much the work for all images is more than that for those that were compressed.
    pub fn expansion(&self) -> f64 {
        match self.compressed_before {
            0 => 1.0,
            compressed => 1.0 + self.guessed_before as f64 / compressed as f64,
        }
    }
}

/// Numbers that follow each other, as good as by chance.
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(relfilenode: u32) -> BlockRef {
        BlockRef {
            id: 0,
            fork: 0,
            will_init: false,
            relation: RelFileLocator { tablespace: 1663, database: 5, relfilenode },
            block: 0,
            data_bytes: 0,
            payload_at: 0,
            image: None,
        }
    }

    /// Images of two relations, one of which compresses well: sum of all that became of them, and of
    /// what was said.
    fn run(share: Share, seed: u32) -> (u64, u64, Strata) {
        let (mut truth, mut said, mut strata) = (0, 0, Strata::default());
        let mut random = seed;
        for ordinal in 0..4000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let relation = 1 + ordinal % 2;
            let before = 7000 + u64::from(random >> 22);
            let after = before / if relation == 1 { 2 } else { 8 } + u64::from(random >> 24);
            truth += after;
            let own = (ordinal, ordinal + seed);
            let (stratum, taken) = strata.choose(share, &block(relation), own);
            if taken {
                strata.add(stratum, (before, after));
                said += after;
            } else {
                said += strata.guess(stratum, before);
            }
        }
        (truth, said, strata)
    }

    #[test]
    fn the_interval_holds_the_truth() {
        let share = Share::new(0.05).expect("a share");
        let held = (0..100u32).filter(|seed| {
            let (truth, said, strata) = run(share, seed * 7919);
            assert!(strata.guessed() > 3600 && strata.guessed() < 3900, "{}", strata.guessed());
            assert!(strata.error() * 20 < truth, "{} of {truth}", strata.error());
            truth.abs_diff(said) <= strata.error()
        });
        assert!(held.count() >= 97);
    }

    #[test]
    fn all_is_no_estimate() {
        let (truth, said, strata) = run(Share::ALL, 1);
        assert_eq!((truth, strata.guessed(), strata.error()), (said, 0, 0));
        assert_eq!((Share::new(0.0), Share::new(1.01)), (None, None));
    }
}
