//! What a codec makes of images, by the access method that logged them: pages of tables and of indexes come
//! to very different lengths. How many there are of each, all sampled images tell; how long each becomes, the
//! few of them that were compressed. Of how many kinds those few are is chance, and does not count.

use super::{PARTS, Share, part_of};
use std::collections::BTreeMap;
use walstat_analyse::sample::{Lengths, Sampled};
use walstat_format::image::Compression;

/// Images of one access method in one part of the sample, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// All of them.
    all: f64,
    /// Those that were compressed, as they are stored.
    stored: f64,
    /// The same with the codec.
    compressed: f64,
}

/// Sampled images by access method and part.
#[derive(Debug, Default)]
pub(super) struct ByAccessMethod {
    sums: BTreeMap<u8, [Sums; PARTS]>,
    /// How many were compressed.
    pub(super) compressed: usize,
}

impl ByAccessMethod {
    /// Adds an image, and how long it would be, if that was tried; `None` where the release does not have the
    /// codec.
    pub(super) fn add(
        &mut self,
        (hash, image): (u32, &Sampled),
        lengths: Option<&Lengths>,
        codec: Compression,
    ) -> Option<()> {
        let sums = self.sums.entry(image.record.rmgr).or_default().get_mut(part_of(hash))?;
        sums.all += f64::from(image.bytes);
        if let Some(lengths) = lengths {
            sums.stored += f64::from(lengths.stored);
            sums.compressed += f64::from(lengths.with(codec)?);
            self.compressed += 1;
        }
        Some(())
    }

    /// How much of their bytes they take with the codec; no error where all of them were compressed.
    pub(super) fn share(&self, is_whole: bool) -> Share {
        Share::jackknife(is_whole, |without| {
            let kept = |parts: &[Sums; PARTS]| {
                let kept = parts.iter().enumerate().filter(|(place, _)| Some(*place) != without);
                kept.fold(Sums::default(), |sum, (_, part)| sum.plus(part))
            };
            let by: Vec<Sums> = self.sums.values().map(kept).collect();
            let together = by.iter().fold(Sums::default(), Sums::plus);
            let usual = together.ratio().unwrap_or(0.0);
            if is_whole || together.all <= 0.0 {
                return usual;
            }
            by.iter().map(|own| own.all * own.ratio().unwrap_or(usual)).sum::<f64>() / together.all
        })
    }
}

impl Sums {
    fn plus(self, other: &Sums) -> Sums {
        Sums {
            all: self.all + other.all,
            stored: self.stored + other.stored,
            compressed: self.compressed + other.compressed,
        }
    }

    fn ratio(&self) -> Option<f64> {
        (self.stored > 0.0).then(|| self.compressed / self.stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_analyse::sample::Stored;
    use walstat_format::lsn::Lsn;
    use walstat_format::rmgr::{BTREE, HEAP, RecordType};

    /// Of 2,000 images half are of indexes, which a codec makes nothing of; of those that were compressed it
    /// is a fifth.
    #[test]
    fn of_which_kind_the_compressed_ones_are_is_chance() {
        let mut images = ByAccessMethod::default();
        for number in 0..2000u32 {
            let is_index = number % 2 == 1;
            let rmgr = if is_index { BTREE } else { HEAP };
            let image = Sampled {
                lsn: Lsn(0),
                changed: None,
                bytes: 8000,
                record: RecordType { rmgr, slot: 0 },
                is_due: true,
                keeps_data: false,
                stored: Stored::Forgotten,
            };
            let short = if is_index { 8000 } else { 800 };
            let lengths = Lengths { stored: 8000, codecs: [Some(short), None, None] };
            let is_tried = if is_index { number % 80 == 1 } else { number % 20 == 0 };
            let lengths = Some(&lengths).filter(|_| is_tried);
            images
                .add((number / 2, &image), lengths, Compression::Pglz)
                .expect("a release with pglz");
        }
        assert_eq!(images.compressed, 125);
        let share = images.share(false);
        assert!((share.value - 0.55).abs() < 1e-9, "{share:?}");
        assert!(share.error < 0.01, "{share:?}");
        // Where all were compressed, it is what they came to.
        assert!((images.share(true).value - (0.1 * 0.8 + 0.2)).abs() < 1e-9);
    }
}
