//! Compressing some images rather than all: the lengths of the others are estimated from those of the same
//! relation, and the error of the estimate from how much these differ.
//!
//! A ratio estimator in strata (Cochran, Sampling Techniques, 6.2 and 6.10): the strata are relations and
//! forks, of which the first images are all compressed, and of the rest a share by chance. Then the run is
//! simulated once more: the first images are as long as they were, each of the rest takes the ratio of one
//! of the sample that was about as long before, by chance. (With the mean of all, records would end at
//! other remainders of 8, to which they are padded.)

use crate::blocks::{BlockNumber, Ordinal};
use hashbrown::HashMap;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::scatter::scattered;

/// So many images of a relation are compressed in any case.
const FIRST_IMAGES: u64 = 8;
/// Of n images none may be of a kind of which up to 3/n of all are (the rule of three).
pub const RULE_OF_THREE: f64 = 3.0;
/// So far off the ratio such a kind may be.
const OTHER_KIND: f64 = 0.5;
/// How many neighbours in length, on each side, serve as well as an image of the same length.
const NEIGHBOURS: usize = 4;
/// So many standard errors lie on each side of an estimate: the truth is inside in about 19 of 20 cases
/// (1.96 for a normal distribution), as for every range that comes from a sample.
pub const STANDARD_ERRORS: f64 = 2.0;

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

impl Share {
    /// All images.
    pub(crate) const ALL: Share = Share(1.0);

    /// A part of them; `None` where it is none.
    pub fn new(part: f64) -> Option<Share> {
        (part > 0.0 && part <= 1.0).then_some(Share(part))
    }

    /// Whether the image of a block at a record is one of them: as good as by chance, and always the same.
    fn takes(self, block: BlockNumber, ordinal: Ordinal) -> bool {
        let chance = mixed(u64::from(block) << 32 | u64::from(ordinal)) as u32;
        f64::from(chance) < self.0 * 4_294_967_296.0
    }
}

/// Lengths of compressed images, before and after.
#[derive(Debug, Clone, Default)]
struct Sample {
    pairs: Vec<(u16, u16)>,
    before: u64,
    after: u64,
}

impl Sample {
    fn add(&mut self, (before, after): (u64, u64)) {
        self.pairs.extend(u16::try_from(before).ok().zip(u16::try_from(after).ok()));
        self.before += before;
        self.after += after;
    }

    fn count(&self) -> f64 {
        self.pairs.len() as f64
    }

    fn sort(&mut self) {
        self.pairs.sort_unstable();
    }

    /// One of those that were about as long before, by chance; they are sorted.
    fn pick(&self, before: u64, number: u64) -> Option<(u16, u16)> {
        let from = self.pairs.partition_point(|pair| u64::from(pair.0) < before);
        let to = self.pairs.partition_point(|pair| u64::from(pair.0) <= before);
        let alike = from.saturating_sub(NEIGHBOURS)..(to + NEIGHBOURS).min(self.pairs.len());
        let alike = self.pairs.get(alike)?;
        let chosen = mixed(number).checked_rem(alike.len() as u64)?;
        alike.get(chosen as usize).copied()
    }

    /// Variance of what an image is off from the ratio of all, bytes squared.
    fn variance(&self) -> f64 {
        let ratio = self.after as f64 / self.before.max(1) as f64;
        let off = |(before, after): &(u16, u16)| f64::from(*after) - ratio * f64::from(*before);
        let squares: f64 = self.pairs.iter().map(off).map(|off| off * off).sum();
        squares / (self.count() - 1.0).max(1.0)
    }

    fn mean_before(&self) -> f64 {
        (self.before as f64 / self.count().max(1.0)).max(1.0)
    }
}

/// A relation's fork.
#[derive(Debug, Clone, Default)]
struct Stratum {
    first: Vec<(u16, u16)>,
    rest: Sample,
    /// Images that came, compressed or not.
    came: u64,
    /// Of the rest: images that were guessed, and their bytes before compression.
    guessed: u64,
    guessed_before: u64,
}

/// What images were compressed, and what that tells of the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strata {
    numbers: HashMap<(RelFileLocator, u8), u32>,
    strata: Vec<Stratum>,
    /// By block number: its stratum, from 1; 0 where no image was known.
    of_blocks: Vec<u32>,
    /// The rest of all strata.
    all: Sample,
    compressed: u64,
    compressed_before: u64,
}

/// What becomes of an image: its stratum, and whether it is one of the first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chosen {
    stratum: usize,
    is_first: bool,
    /// Whether it is compressed.
    pub(crate) is_taken: bool,
}

impl Strata {
    /// Whether the image of a block at a record is compressed.
    pub(crate) fn choose(
        &mut self,
        share: Share,
        block: &BlockRef,
        number: BlockNumber,
        ordinal: Ordinal,
    ) -> Chosen {
        let next = self.strata.len() as u32;
        let place = *self.numbers.entry((block.relation, block.fork)).or_insert(next);
        if place == next {
            self.strata.push(Stratum::default());
        }
        let index = number as usize;
        if self.of_blocks.len() <= index {
            self.of_blocks.resize(index + 1, 0);
        }
        if let Some(of_block) = self.of_blocks.get_mut(index) {
            *of_block = place + 1;
        }
        let stratum = place as usize;
        let came = self.strata.get_mut(stratum).map_or(0, |stratum| {
            stratum.came += 1;
            stratum.came
        });
        let is_first = came <= FIRST_IMAGES;
        Chosen { stratum, is_first, is_taken: is_first || share.takes(number, ordinal) }
    }

    /// An image was compressed.
    pub(crate) fn add(&mut self, chosen: Chosen, lengths: (u64, u64)) {
        self.compressed += 1;
        self.compressed_before += lengths.0;
        let Some(stratum) = self.strata.get_mut(chosen.stratum) else { return };
        if chosen.is_first {
            let pair = u16::try_from(lengths.0).ok().zip(u16::try_from(lengths.1).ok());
            stratum.first.extend(pair);
        } else {
            stratum.rest.add(lengths);
            self.all.add(lengths);
        }
    }

    /// Before all are told: about how long an image becomes.
    pub(crate) fn about(&self, before: u64) -> u64 {
        match self.all.before {
            0 => before,
            all => before * self.all.after / all,
        }
    }

    /// Images come once more, from the first one on.
    pub(crate) fn begin_anew(&mut self) {
        self.all.sort();
        for stratum in &mut self.strata {
            stratum.rest.sort();
            stratum.came = 0;
        }
    }

    /// How long the next image of a block becomes; `None` where nothing is known of it.
    pub(crate) fn next(&mut self, block: BlockNumber, before: u64) -> Option<u64> {
        let place = self.of_blocks.get(block as usize)?.checked_sub(1)?;
        let stratum = self.strata.get_mut(place as usize)?;
        let known = stratum.first.get(stratum.came as usize);
        stratum.came += 1;
        let pair = match known {
            Some(pair) => Some(*pair),
            None => {
                stratum.guessed += 1;
                stratum.guessed_before += before;
                let number = u64::from(place) << 40 | stratum.came;
                stratum.rest.pick(before, number).or_else(|| self.all.pick(before, number))
            }
        };
        let (own, after) = pair?;
        Some((before * u64::from(after) / u64::from(own).max(1)).min(before))
    }

    /// How far off the sum of what was guessed may be, bytes.
    pub(crate) fn error(&self) -> u64 {
        let variance = (self.all.count() > 1.0).then(|| self.all.variance());
        let all = (variance, self.all.mean_before());
        let squares: f64 = self.strata.iter().map(|stratum| stratum.error(all).powi(2)).sum();
        squares.sqrt().ceil() as u64
    }

    /// Images that were compressed.
    pub(crate) fn compressed(&self) -> u64 {
        self.compressed
    }

    /// By how much the work for all images is more than that for those that were compressed.
    pub(crate) fn expansion(&self) -> f64 {
        let all: f64 = self.strata.iter().map(|stratum| stratum.guessed_before as f64).sum();
        let rest = self.all.before as f64;
        let compressed = self.compressed_before.max(1) as f64;
        ((compressed - rest + all) / compressed).max(1.0)
    }
}

impl Stratum {
    /// How far off what was guessed of it may be, bytes; `all`: variance and mean length of all strata.
    fn error(&self, (all_variance, all_mean): (Option<f64>, f64)) -> f64 {
        if self.guessed == 0 {
            return 0.0;
        }
        let (count, before) = (self.rest.count(), self.guessed_before as f64);
        if count < 2.0 {
            // It may be as other than the others as one image is; or anything, where there is none.
            let off = STANDARD_ERRORS * all_variance.map_or(f64::INFINITY, f64::sqrt) / all_mean;
            return before * off.min(1.0);
        }
        let variance = self.rest.variance();
        let ratio_error = (variance / count).sqrt() / self.rest.mean_before();
        let of_ratio = before * ratio_error;
        // Of few images the variance itself is not certain.
        let few = 1.0 + 3.0 / count;
        let by_chance = (of_ratio * of_ratio + 2.0 * self.guessed as f64 * variance).sqrt();
        STANDARD_ERRORS * few * by_chance + before * OTHER_KIND * (RULE_OF_THREE / count).min(1.0)
    }
}

/// Numbers that follow each other, as good as by chance.
fn mixed(number: u64) -> u64 {
    let mixed = scattered(number);
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

    /// Images of three relations, of which one compresses well, one worse and worse, and one is small: sum of
    /// all that became of them, and of what was said.
    fn run(share: Share, seed: u32) -> (u64, u64, Strata) {
        let (mut truth, mut said, mut strata) = (0, 0, Strata::default());
        let mut random = seed;
        let mut images = Vec::new();
        for ordinal in 0..4000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let relation = if ordinal % 400 == 7 { 3 } else { 1 + ordinal % 2 };
            let before = 7000 + u64::from(random >> 22);
            let after = match relation {
                1 => before / 2,
                2 => before / 8 + u64::from(ordinal),
                _ => before - 300,
            };
            let lengths = (before, after.min(before) - u64::from(random >> 25));
            truth += lengths.1;
            let chosen = strata.choose(share, &block(relation), ordinal, ordinal + seed);
            if chosen.is_taken {
                strata.add(chosen, lengths);
            }
            images.push((ordinal, before));
        }
        strata.begin_anew();
        for (number, before) in images {
            said += strata.next(number, before).expect("every block is known");
        }
        (truth, said, strata)
    }

    #[test]
    fn the_interval_holds_the_truth() {
        let share = Share::new(0.05).expect("a share");
        let held = (0..100u32).filter(|seed| {
            let (truth, said, strata) = run(share, seed * 7919);
            assert!((150..350).contains(&strata.compressed()), "{}", strata.compressed());
            assert!(strata.error() * 10 < truth, "{} of {truth}", strata.error());
            truth.abs_diff(said) <= strata.error()
        });
        assert!(held.count() >= 97);
    }

    #[test]
    fn the_more_are_compressed_the_nearer_it_is() {
        let error = |part| run(Share::new(part).expect("a share"), 3).2.error();
        assert!(error(0.02) > error(0.1) && error(0.1) > error(0.5));
        assert_eq!((Share::new(0.0), Share::new(1.01)), (None, None));
    }
}
