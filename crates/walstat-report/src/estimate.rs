//! What other settings would have written, estimated from a sample of the images.
//!
//! Checkpoints k times as far apart: of the redo points that volume or clock brought every k-th stays, of the
//! others each (`redo_points`); an image that is due stays if a redo point that stays lies between the last
//! change of its page, which the page itself tells, and it. What the image had replaced comes back, taken for
//! as long as that of the record type's others. Images of pages that were changed before the last redo point
//! before the range stay. Another codec: those of the sampled images that stay compressed with it; less WAL
//! brings fewer checkpoints by volume.

mod codec;
mod redo_points;

use super::model::estimate::{EstimateRow, Estimates, Predicted, Spared};
use super::settled::settled;
use codec::ByAccessMethod;
use redo_points::{Apart, Due, RedoPoints, Without, before_range, earliest_before_range};
use std::collections::BTreeMap;
use walstat_analyse::checkpoint::cause::Verdict;
use walstat_analyse::checkpoint::{Cycle, Cycles};
use walstat_analyse::sample::{Lengths, Sampled, SampledImages};
use walstat_analyse::totals::RecordTable;
use walstat_format::image::{Compression, IMAGE_HEADER_BYTES};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::rmgr::RecordType;
use walstat_whatif::base_checkpoint::CauseReading;
use walstat_whatif::recode::RULE_OF_THREE;

/// How far apart checkpoints are tried, beside none at all.
const TIMES: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// The sample is divided into so many parts to see how much they differ.
const PARTS: usize = 16;
/// So many standard errors on each side hold 19 of 20 cases: Student's t, since the parts that tell the error
/// are few.
const ERRORS: f64 = 2.13;
/// Of fewer images than that, of a sample, nothing is concluded.
const IMAGES_MIN: usize = 30;

/// How far off the distance may be at which volume begins checkpoints, where WAL becomes less.
const PLACED_WITHIN: [f64; 2] = [0.8, 1.25];
/// How many times as much WAL as there would be is tried, to see what fewer checkpoints by volume spare.
const LESS: [f64; 12] = [1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0, f64::INFINITY];

/// Estimates for WAL with these cycles, of which the causes of checkpoints are known as far as these verdicts
/// go, and sums; `None` where no image was sampled.
pub(crate) fn estimates(
    found: &SampledImages,
    cycles: Option<&Cycles>,
    verdicts: &[Option<Verdict>],
    table: &RecordTable,
) -> Option<Estimates> {
    let all = table.sum(|_| true);
    if found.images.is_empty() || all.fpi_bytes == 0 {
        return None;
    }
    let unused: u64 = cycles
        .iter()
        .flat_map(|found| &found.unused)
        .map(|unused| unused.end.0.saturating_sub(unused.start.0))
        .sum();
    let (total, images) = (all.total_bytes as f64, all.fpi_bytes as f64);
    let base = Base { total, images, unused: unused as f64 };
    let cycles = cycles.map(|found| found.cycles.as_slice()).unwrap_or_default();
    let (likely, others) = readings(found, cycles, verdicts);
    let replaced = replaced(found, table);
    let tried = |(start, redo)| Tried {
        found,
        base: &base,
        saved: Saved { start, redo, replaced: &replaced, table },
    };
    let likely_tried = tried((likely.0, &likely.1));
    let others: Vec<Tried<'_>> = others.iter().map(|(start, redo)| tried((*start, redo))).collect();
    let likely = &likely.1;
    let moving = likely.moving();
    let mut apart: Vec<Option<u32>> = vec![Some(1)];
    let is_enough = found.is_whole || found.images.len() >= IMAGES_MIN;
    if is_enough {
        apart.extend(TIMES.iter().filter(|times| **times as usize <= moving).copied().map(Some));
        apart.extend((moving > 0).then_some(None));
    }
    let without = |which: Without, count: usize| {
        (count > 0 && is_enough).then(|| likely_tried.without(which)).flatten()
    };
    let scenarios = scenarios(&apart, &likely_tried, &others);
    let spared = if is_enough { spared(&likely_tried, &others) } else { Vec::new() };
    Some(Estimates {
        sampled_images: found.images.len() as u64,
        compressed_images: found.lengths.len() as u64,
        redo_points: likely.all() as u64,
        moving_redo_points: moving as u64,
        is_whole: found.is_whole && found.all_compressed,
        unasked: without(Without::Asked, likely.asked()),
        without_backups: without(Without::Backups, likely.of_backups()),
        asked_redo_points: likely.asked() as u64,
        spared,
        scenarios,
    })
}

/// The redo points as they are likely, after the one before the range, and as they may be as well.
fn readings(
    found: &SampledImages,
    cycles: &[Cycle],
    verdicts: &[Option<Verdict>],
) -> ((Lsn, RedoPoints), Vec<(Lsn, RedoPoints)>) {
    let due = found.images.iter().map(|(_, image)| image).filter(|image| image.is_due);
    let due: Vec<Due> = due.filter_map(|image| Some((image.changed?, image.lsn))).collect();
    let start = before_range(cycles);
    let read = |start, reading| (start, RedoPoints::of(cycles, verdicts, (start, &due), reading));
    let likely = read(start, CauseReading::Likely);
    let earliest = earliest_before_range(cycles, &due).into_iter();
    let mut others: Vec<(Lsn, RedoPoints)> = CauseReading::ENDS
        .into_iter()
        .map(|end| read(start, end))
        .chain(earliest.map(|start| read(start, CauseReading::Likely)))
        .collect();
    others.retain(|(_, other)| *other != likely.1);
    (likely, others)
}

/// Each of these distances with each codec; where checkpoints may be read in other ways too, all are in the
/// range.
fn scenarios(apart: &[Option<u32>], likely: &Tried<'_>, others: &[Tried<'_>]) -> Vec<EstimateRow> {
    let mut rows = Vec::new();
    for &times in apart {
        let codecs = Lengths::CODECS.iter().map(|codec| Some(*codec));
        for codec in std::iter::once(None).chain(codecs) {
            let Some(mut predicted) = likely.predicted(times, codec) else { continue };
            let is_tried = (times, codec) != (Some(1), None);
            let others = others.iter().filter(|_| is_tried);
            for other in others.filter_map(|other| other.predicted(times, codec)) {
                predicted = predicted.or(&other);
            }
            let wal_compression = codec.map(|codec| codec.name().to_owned());
            rows.push(EstimateRow { checkpoints_apart: times, wal_compression, predicted });
        }
    }
    rows
}

/// What less WAL spares, if volume began a checkpoint, or may have: one that is not complete yet is none the
/// less brought later, or not at all.
fn spared(likely: &Tried<'_>, others: &[Tried<'_>]) -> Vec<Spared> {
    let all = || std::iter::once(likely).chain(others);
    if !all().any(|tried| tried.saved.redo.has_any_by_volume()) {
        return Vec::new();
    }
    let share = |bytes: u64| 1.0 - bytes as f64 / likely.base.total;
    let of = |times: &f64| {
        let less =
            |tried: &Tried<'_>| tried.placed_within(Apart::times(Some(1)).by_volume(*times), None);
        let least = all().filter_map(less).map(|predicted| predicted.low_bytes).min()?;
        let likely = share(less(likely)?.predicted_bytes).max(0.0);
        Some(Spared { times: *times, likely, most: share(least).max(0.0) })
    };
    LESS.iter().filter_map(of).collect()
}

/// What is tried on the sample, with the causes of checkpoints read in one way.
struct Tried<'w> {
    found: &'w SampledImages,
    base: &'w Base,
    saved: Saved<'w>,
}

impl Tried<'_> {
    /// What checkpoints so many times as far apart, or none, and a codec come to; `None` where the codec
    /// cannot be tried.
    fn predicted(&self, times: Option<u32>, codec: Option<Compression>) -> Option<Predicted> {
        let apart = Apart::times(times);
        let plain = self.placed(apart, None)?;
        let Some(codec) = codec else { return Some(plain) };
        let alone = self.placed(apart, Some(codec))?;
        if !self.saved.redo.has_any_by_volume() || times.is_none() {
            return Some(alone);
        }
        // Volume counts whole segments: what switches leave empty in them stays.
        let filled = |of: &Predicted| of.predicted_bytes.max(1) as f64 + self.base.unused;
        let less = |now: &Predicted| filled(&plain) / filled(now);
        let less_again = |ratio| {
            let placed = self.placed(apart.by_volume(ratio), Some(codec));
            placed.map_or(ratio, |placed| less(&placed))
        };
        self.placed_within(apart.by_volume(settled(less(&alone), less_again)), Some(codec))
    }

    /// What checkpoints so far apart and a codec come to, with a range for how far apart those by volume are:
    /// where a part of that lies before this WAL, it may hold none of them.
    fn placed_within(&self, apart: Apart, codec: Option<Compression>) -> Option<Predicted> {
        let mut predicted = self.placed(apart, codec)?;
        let farthest = (!self.saved.redo.has_volume()).then_some(f64::INFINITY);
        for off in PLACED_WITHIN.into_iter().chain(farthest) {
            predicted = predicted.or(&self.placed(apart.by_volume(off), codec)?);
        }
        Some(predicted)
    }

    /// What it comes to if some checkpoints do not come: volume brings its own then.
    fn without(&self, which: Without) -> Option<Predicted> {
        let apart = Apart::without(which);
        if self.saved.redo.has_volume() {
            return self.placed_within(apart, None);
        }
        self.placed(apart, None)
    }

    fn placed(&self, apart: Apart, codec: Option<Compression>) -> Option<Predicted> {
        let parts = self.saved.parts(self.found, apart);
        let stored = match codec {
            Some(codec) => self.saved.compressed(self.found, apart, codec)?,
            None => Share { value: 1.0, error: 0.0 },
        };
        Some(self.base.predicted(&parts, self.found.images.len(), self.found.is_whole, stored))
    }
}

/// A share with its standard error.
#[derive(Debug, Clone, Copy)]
struct Share {
    value: f64,
    error: f64,
}

impl Share {
    /// The ratio of two sums over a sample in parts, and how much it differs where one part is left
    /// out (the jackknife); no error where the sample is everything.
    fn of(parts: &[(f64, f64); PARTS], is_whole: bool) -> Share {
        let sum = |without: Option<usize>| {
            let kept = parts.iter().enumerate().filter(|(place, _)| Some(*place) != without);
            kept.fold((0.0, 0.0), |(a, b), (_, (c, d))| (a + c, b + d))
        };
        let ratio = |(part, whole): (f64, f64)| if whole > 0.0 { part / whole } else { 0.0 };
        Share::jackknife(is_whole, |without| ratio(sum(without)))
    }

    /// A value of a sample in parts that can be told without one of them.
    fn jackknife(is_whole: bool, of: impl Fn(Option<usize>) -> f64) -> Share {
        let value = of(None);
        if is_whole {
            return Share { value, error: 0.0 };
        }
        let others: Vec<f64> = (0..PARTS).map(|place| of(Some(place))).collect();
        let mean = others.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = others.iter().map(|other| (other - mean).powi(2)).sum();
        Share { value, error: (squares * (PARTS as f64 - 1.0) / PARTS as f64).sqrt() }
    }
}

/// What is saved in one part of the sample.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Images that are not there any more, bytes.
    images: f64,
    /// Their headers and whole hint records, less what had been replaced and comes back; bytes.
    records: f64,
    /// All images, bytes.
    all: f64,
}

/// The WAL as it is, in bytes.
struct Base {
    total: f64,
    images: f64,
    /// What switches left empty.
    unused: f64,
}

impl Base {
    /// What it comes to if so much is saved, of a sample of so many images, and each image that is left
    /// is stored in such a share of its bytes.
    fn predicted(
        &self,
        parts: &[Part; PARTS],
        sampled: usize,
        is_whole: bool,
        stored: Share,
    ) -> Predicted {
        let with_codec = |part: &Part| (part.images * stored.value + part.records, part.all);
        let saved = Share::of(&parts.each_ref().map(with_codec), is_whole);
        let images = Share::of(&parts.each_ref().map(|part| (part.images, part.all)), true).value;
        let predicted = self.total - self.images * (1.0 - stored.value) - self.images * saved.value;
        // Where nothing is tried there is nothing to be wrong about.
        let is_tried = parts.iter().any(|part| part.images > 0.0) || saved.error > 0.0;
        let least = if is_whole || !is_tried || sampled == 0 {
            0.0
        } else {
            RULE_OF_THREE / ERRORS / sampled as f64
        };
        let error = saved.error.max(least).hypot((1.0 - images) * stored.error) * self.images;
        let bytes = |value: f64| value.max(0.0).round() as u64;
        Predicted {
            predicted_bytes: bytes(predicted),
            change_ratio: (predicted - self.total) / self.total,
            low_bytes: bytes(predicted - ERRORS * error),
            high_bytes: bytes(predicted + ERRORS * error),
        }
    }
}

fn part_of(hash: u32) -> usize {
    hash as usize % PARTS
}

/// Block data of a record without images, by type; of types of which each has one, the mean of all.
fn replaced(found: &SampledImages, table: &RecordTable) -> BTreeMap<RecordType, f64> {
    let without = |kind: RecordType| {
        let totals = table.sum(|record| record == kind);
        let imaged = found.imaged_data.get(&kind).copied().unwrap_or(0);
        let count = totals.count.saturating_sub(totals.fpi_records);
        (totals.block_data_bytes.saturating_sub(imaged) as f64, count as f64)
    };
    let kinds: Vec<(RecordType, (f64, f64))> =
        table.rows().map(|(kind, _)| (kind, without(kind))).collect();
    let (bytes, count) = kinds.iter().fold((0.0, 0.0), |(a, b), (_, (c, d))| (a + c, b + d));
    let usual = if count > 0.0 { bytes / count } else { 0.0 };
    let mean = |(kind, (bytes, count)): (RecordType, (f64, f64))| {
        (kind, if count > 0.0 { bytes / count } else { usual })
    };
    kinds.into_iter().map(mean).collect_map()
}

/// What images save that are not there.
struct Saved<'w> {
    /// The redo point before the range.
    start: Lsn,
    redo: &'w RedoPoints,
    replaced: &'w BTreeMap<RecordType, f64>,
    table: &'w RecordTable,
}

impl Saved<'_> {
    /// By parts of the sample, with checkpoints so many times as far apart.
    fn parts(&self, found: &SampledImages, apart: Apart) -> [Part; PARTS] {
        let mut parts = [Part::default(); PARTS];
        for (hash, image) in &found.images {
            let Some(part) = parts.get_mut(part_of(*hash)) else { continue };
            part.all += f64::from(image.bytes);
            if !self.stays(image, apart) {
                part.images += f64::from(image.bytes);
                part.records += self.record_bytes(image);
            }
        }
        parts
    }

    /// How much of their bytes images that stay take with a codec, as much as all where few stay; `None`
    /// where the release does not have it, or too few were compressed.
    fn compressed(&self, found: &SampledImages, apart: Apart, codec: Compression) -> Option<Share> {
        let share = |stays: &dyn Fn(&Sampled) -> bool| {
            let mut images = ByAccessMethod::default();
            for (hash, image) in found.images.iter().filter(|(_, image)| stays(image)) {
                images.add((*hash, image), found.lengths.get(hash), codec)?;
            }
            let is_enough = found.all_compressed || images.compressed >= IMAGES_MIN;
            is_enough.then(|| images.share(found.all_compressed))
        };
        share(&|image| self.stays(image, apart)).or_else(|| share(&|_| true))
    }

    /// Whether an image would be there.
    fn stays(&self, image: &Sampled, apart: Apart) -> bool {
        let Some(changed) = image.changed.filter(|_| image.is_due) else { return true };
        // A page that was changed before the redo point before the range has its image for that. With none
        // between, the image is there for another reason.
        changed <= self.start
            || !self.redo.has_any(changed, image.lsn)
            || self.redo.stays_any(changed, image.lsn, apart)
    }

    /// The image's header, less what it had replaced; of a hint bit's the whole record.
    fn record_bytes(&self, image: &Sampled) -> f64 {
        if image.record.is_hint_image() {
            let totals = self.table.sum(|record| record == image.record);
            return totals.record_bytes() as f64 / totals.count.max(1) as f64;
        }
        let replaced = if image.keeps_data {
            0.0
        } else {
            self.replaced.get(&image.record).copied().unwrap_or(0.0)
        };
        f64::from(IMAGE_HEADER_BYTES) - replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_analyse::checkpoint::cause::{Cause, Confidence};
    use walstat_analyse::checkpoint::evidence::Evidence;
    use walstat_analyse::sample::Stored;

    fn parts(part: Part) -> [Part; PARTS] {
        [part; PARTS]
    }

    #[test]
    fn what_comes_back_is_not_compressed() {
        let base = Base { total: 2000.0, images: 1600.0, unused: 0.0 };
        let part = Part { images: 50.0, records: -5.0, all: 100.0 };
        let stored = Share { value: 0.25, error: 0.0 };
        // Of 1,600 half is not there, a quarter of the rest is; and 80 come back as they are.
        let predicted = base.predicted(&parts(part), 160, true, stored);
        assert_eq!(predicted.predicted_bytes, 400 + 200 + 80);
        assert_eq!((predicted.low_bytes, predicted.high_bytes), (680, 680));
        let nothing = Part { all: 100.0, ..Part::default() };
        let own = Share { value: 1.0, error: 0.0 };
        let same = base.predicted(&parts(nothing), 160, false, own);
        assert_eq!((same.predicted_bytes, same.low_bytes, same.high_bytes), (2000, 2000, 2000));
    }

    #[test]
    fn a_sample_that_says_the_same_everywhere_may_be_wrong_all_the_same() {
        let base = Base { total: 2000.0, images: 1000.0, unused: 0.0 };
        let part = Part { images: 100.0, records: 0.0, all: 100.0 };
        let predicted = base.predicted(&parts(part), 100, false, Share { value: 1.0, error: 0.0 });
        assert_eq!((predicted.predicted_bytes, predicted.high_bytes), (1000, 1030));
    }

    #[test]
    fn the_jackknife_finds_the_error_of_a_mean() {
        let mut sums = [(0.0, 1.0); PARTS];
        sums.iter_mut().step_by(2).for_each(|(part, _)| *part = 1.0);
        let share = Share::of(&sums, false);
        assert!((share.value - 0.5).abs() < 1e-12);
        // Of sixteen values, half 0 and half 1: the standard error of their mean.
        let want = (0.25_f64 / 15.0).sqrt();
        assert!((share.error - want).abs() < 1e-3, "{} {want}", share.error);
        assert_eq!(Share::of(&sums, true).error, 0.0);
    }

    /// Images of 8,000 bytes, numbered 10 to 49, that take `packed` with pglz; of each where its page was
    /// changed before, and where it lies.
    fn forty_images(packed: u16, places: impl Fn(u32) -> Due) -> SampledImages {
        let image = |number: u32| {
            let (changed, lsn) = places(number);
            Sampled {
                lsn,
                changed: Some(changed),
                bytes: 8000,
                record: RecordType { rmgr: 10, slot: 0 },
                is_due: true,
                keeps_data: false,
                stored: Stored::Forgotten,
            }
        };
        let lengths = Lengths { stored: 8000, codecs: [Some(packed), None, None] };
        SampledImages {
            images: (10..50).map(|number| (number, image(number))).collect(),
            lengths: (10..50).map(|number| (number, lengths)).collect(),
            is_whole: true,
            all_compressed: true,
            imaged_data: BTreeMap::new(),
        }
    }

    /// Segments that switches close are as many with a codec: checkpoints by volume stay, and their images.
    #[test]
    fn what_switches_leave_empty_does_not_become_less() {
        let found = forty_images(2000, |number| {
            let redo = u64::from(number / 10) * 100;
            (Lsn(redo - 10), Lsn(redo + 10))
        });
        let cycle = |number: u64| Cycle { redo: Some(Lsn(100 * number)), ..Cycle::default() };
        let cycles: Vec<Cycle> =
            std::iter::once(Cycle::default()).chain((1..5).map(cycle)).collect();
        let (cause, confidence) = (Cause::Wal, Confidence::Likely);
        let by_volume = Some(Verdict { cause, confidence, evidence: Evidence::AfterSwitch });
        let redo = RedoPoints::of(&cycles, &[by_volume; 5], (Lsn(0), &[]), CauseReading::Likely);
        let (table, replaced) = (RecordTable::default(), BTreeMap::new());
        let predicted = |unused| {
            let base = Base { total: 330_000.0, images: 320_000.0, unused };
            let saved = Saved { start: Lsn(0), redo: &redo, replaced: &replaced, table: &table };
            let tried = Tried { found: &found, base: &base, saved };
            tried.predicted(Some(1), Some(Compression::Pglz)).expect("a codec").predicted_bytes
        };
        assert!(predicted(0.0) < 60_000, "a fourth of the WAL, a fourth of the checkpoints");
        assert_eq!(predicted(1e9), 10_000 + 80_000);
    }

    /// −50 % were said of a codec, and −64 % were saved: the checkpoint by volume that was under way did not
    /// come any more.
    #[test]
    fn less_wal_spares_the_images_of_a_checkpoint_that_is_not_complete() {
        let due_of = |number: u32| (Lsn(number.into()), Lsn(1000 + u64::from(number)));
        let found = forty_images(4000, due_of);
        let due: Vec<Due> = (10..50).map(due_of).collect();
        let redo = RedoPoints::of(&[], &[], (Lsn(0), &due), CauseReading::Likely);
        let (table, replaced) = (RecordTable::default(), BTreeMap::new());
        let base = Base { total: 400_000.0, images: 320_000.0, unused: 0.0 };
        let saved = Saved { start: Lsn(0), redo: &redo, replaced: &replaced, table: &table };
        let tried = Tried { found: &found, base: &base, saved };
        let predicted = tried.predicted(Some(1), Some(Compression::Pglz)).expect("a codec");
        // With what image headers take of them.
        assert_eq!(predicted.predicted_bytes, 80_000 - 40 * u64::from(IMAGE_HEADER_BYTES));
        let spared = spared(&tried, &[]);
        let half = spared.iter().find(|spared| spared.times >= 2.0).expect("a half");
        assert!((0.8..0.81).contains(&half.likely) && half.most >= half.likely, "{half:?}");
        let stay = RedoPoints::of(&[], &[], (Lsn(0), &due), CauseReading::Staying);
        let saved = Saved { redo: &stay, ..tried.saved };
        assert!(super::spared(&Tried { saved, ..tried }, &[]).is_empty());
    }

    /// Where too few of the compressed images stay to tell what those would take, all of them tell it.
    #[test]
    fn where_few_images_stay_all_say_what_a_codec_does() {
        let record = RecordType { rmgr: 10, slot: 0 };
        let image = |number: u32| Sampled {
            lsn: Lsn(1000),
            changed: Some(Lsn(u64::from(number))),
            bytes: 8000,
            record,
            is_due: true,
            keeps_data: false,
            stored: Stored::Forgotten,
        };
        let lengths = Lengths { stored: 8000, codecs: [Some(4000), Some(2000), None] };
        let found = SampledImages {
            images: (0..100).map(|number| (number, image(number))).collect(),
            lengths: (0..100).map(|number| (number, lengths)).collect(),
            is_whole: false,
            all_compressed: false,
            imaged_data: BTreeMap::new(),
        };
        // One redo point between all changes and the images, which does not come where there is none.
        let again =
            [(97, 500), (98, 500), (99, 500)].map(|(changed, lsn)| (Lsn(changed), Lsn(lsn)));
        let redo = RedoPoints::of(&[], &[], (Lsn(0), &again), CauseReading::Likely);
        let table = RecordTable::default();
        let replaced = BTreeMap::new();
        // Those that were changed before the last redo point before it stay: 20, too few for any conclusion.
        let saved = Saved { start: Lsn(19), redo: &redo, replaced: &replaced, table: &table };
        let stay = found.images.iter().filter(|(_, image)| saved.stays(image, Apart::times(None)));
        assert_eq!((redo.all(), stay.count()), (1, 20));
        let share = |codec| saved.compressed(&found, Apart::times(None), codec);
        assert_eq!(share(Compression::Pglz).map(|share| share.value), Some(0.5));
        assert_eq!(share(Compression::Lz4).map(|share| share.value), Some(0.25));
        assert!(share(Compression::Zstd).is_none(), "the release does not have it");
    }
}
