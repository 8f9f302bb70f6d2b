//! Whether one max_wal_size explains the checkpoints of the range: then their causes are certain.
//!
//! A server begins a checkpoint by volume when a number of segments is full, counted from the one with the
//! last redo point, and not before. So those that volume began lie that many apart, each near the beginning
//! of a segment, and all others less; one that lies farther apart would contradict it.

use super::Base;
use crate::base_checkpoint::BaseCheckpoint;
use std::collections::BTreeMap;
use walstat_analyse::checkpoint::SOONEST_BY_CLOCK;
use walstat_analyse::checkpoint::cause::Cause;
use walstat_format::lsn::Lsn;
use walstat_format::payload::SECOND;

/// So many have to lie that far apart.
const AGREE: usize = 2;
/// How far into their segments these lie at most, in the mean, as a part of the segment: those that somebody
/// asks for lie anywhere.
const BEGINNING: f64 = 0.2;
/// How likely it may be at most that so many lie as near to the beginnings by chance: one in eighteen,
/// however many there are. The product of two may be up to 0.01 then, that of three 0.002.
const CHANCE: f64 = 0.056;

/// How much later than asked for one by volume begins: as much as is written until the checkpointer wakes up,
/// or a segment. (Where 65 MB a second were written, up to 1.8 MB.)
const LATE_BYTES: u64 = 2 << 20;

/// How far a checkpoint lies from the one before.
struct Distance {
    /// Its place among the checkpoints.
    index: usize,
    segments: u64,
    /// The same of the end of the one before: what is asked for while that runs begins afterwards.
    after_running: u64,
    /// By how many it may be late.
    late: u64,
    /// How far into its segment it lies, as a part of that.
    into_segment: f64,
    is_too_soon_for_the_clock: bool,
}

/// Marks causes as certain where a single distance in segments explains the checkpoints.
pub(crate) fn settle(base: &mut Base) {
    let distances = distances(base);
    let Some(segments) = common(base, &distances) else {
        base.segments = shortest(base, &distances);
        return;
    };
    for distance in distances {
        let Some(checkpoint) = base.checkpoints.get_mut(distance.index) else { continue };
        if may_be_by_volume(checkpoint) && distance.is_of_or_late(segments) {
            checkpoint.settle(Cause::Wal);
        } else if checkpoint.is_doubtful()
            && !(checkpoint.is_sure() && checkpoint.cause == Some(Cause::Wal))
            && distance.segments < segments
            && distance.is_too_soon_for_the_clock
        {
            checkpoint.settle(Cause::Requested);
        }
    }
    base.segments = Some(segments);
}

impl Distance {
    /// Whether it is so many segments, and not late because another one ran.
    fn is_of(&self, segments: u64) -> bool {
        (segments..=segments + self.late).contains(&self.segments)
    }

    /// Whether it is so many segments, or as many as a server comes late.
    fn is_of_or_late(&self, segments: u64) -> bool {
        self.segments >= segments && !self.is_farther(segments)
    }

    /// Whether it is more than that.
    fn is_farther(&self, segments: u64) -> bool {
        self.segments > segments.max(self.after_running) + self.late
    }
}

/// Whether nothing says for certain that something else began it.
fn may_be_by_volume(checkpoint: &BaseCheckpoint) -> bool {
    let is_asked = checkpoint.is_sure() && checkpoint.cause != Some(Cause::Wal);
    checkpoint.online && !is_asked
}

fn distances(base: &Base) -> Vec<Distance> {
    let segment = base.geometry.segment;
    let pairs = base.checkpoints.windows(2).enumerate();
    let distance = |(index, pair): (usize, &[BaseCheckpoint])| {
        let [before, own] = pair else { return None };
        let is_own = own.redo > base.start && own.redo <= base.end;
        is_own.then(|| Distance {
            index: index + 1,
            segments: segments_between(before.redo, own.redo, segment),
            after_running: before
                .ended
                .map_or(0, |end| segments_between(before.redo, end, segment)),
            late: late_segments(segment),
            into_segment: (own.redo.0 % segment) as f64 / segment as f64,
            is_too_soon_for_the_clock: own.time.0.saturating_sub(before.time.0)
                < SOONEST_BY_CLOCK * SECOND,
        })
    };
    pairs.filter_map(distance).collect()
}

fn segments_between(from: Lsn, to: Lsn, segment: u64) -> u64 {
    (to.0 / segment).saturating_sub(from.0 / segment)
}

fn late_segments(segment: u64) -> u64 {
    (LATE_BYTES / segment.max(1)).max(1)
}

/// The shortest distance of those that volume began for certain: the others came late.
fn shortest(base: &Base, distances: &[Distance]) -> Option<u64> {
    let is_certain = |distance: &&Distance| {
        let checkpoint = base.checkpoints.get(distance.index);
        checkpoint.is_some_and(|own| own.is_sure() && own.cause == Some(Cause::Wal))
    };
    distances.iter().filter(is_certain).map(|distance| distance.segments).min()
}

/// The distance of those that volume began, if none is farther apart.
fn common(base: &Base, distances: &[Distance]) -> Option<u64> {
    let checkpoint = |distance: &Distance| base.checkpoints.get(distance.index);
    let may_be = |distance: &&Distance| checkpoint(distance).is_some_and(may_be_by_volume);
    let found: Vec<&Distance> = distances.iter().filter(may_be).collect();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    found.iter().for_each(|found| *counts.entry(found.segments).or_default() += 1);
    // Of those that are as many, the longest.
    let (segments, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let agreeing = found.iter().filter(|found| found.is_of(segments));
    let parts: Vec<f64> = agreeing.map(|found| found.into_segment).collect();
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let is_regular = parts.len() >= AGREE && mean <= BEGINNING && by_chance(&parts) <= CHANCE;
    (segments > 0 && is_regular && is_nothing_farther(base, distances, segments))
        .then_some(segments)
}

/// Whether nothing contradicts that volume begins a checkpoint after so many segments at the latest: between
/// no two of them, and after the last one, were more written than a server is late.
fn is_nothing_farther(base: &Base, distances: &[Distance], segments: u64) -> bool {
    let segment = base.geometry.segment;
    let last = base.checkpoints.iter().rfind(|checkpoint| checkpoint.redo <= base.end);
    let rest = segments_between(last.map_or(base.start, |last| last.redo), base.end, segment);
    let ran = last.and_then(|last| Some(segments_between(last.redo, last.ended?, segment)));
    let most = segments.max(ran.unwrap_or(0)) + late_segments(segment);
    // Before a crash another one may have begun, which never ended.
    let mut ended = distances.iter().filter(|distance| {
        let checkpoint = base.checkpoints.get(distance.index);
        checkpoint.is_some_and(|checkpoint| !checkpoint.ends_recovery())
    });
    rest <= most && ended.all(|distance| !distance.is_farther(segments))
}

/// Whether volume may begin a checkpoint after so many segments: it did so, or nothing in the range lies
/// farther apart.
pub(crate) fn allows(base: &Base, segments: u64) -> bool {
    base.has_checkpoints_by(Cause::Wal) || is_nothing_farther(base, &distances(base), segments)
}

/// Whether nothing in the range contradicts that volume begins a checkpoint after so many segments, neither
/// later nor sooner.
pub(crate) fn is_in_force(base: &Base, segments: u64) -> bool {
    let distances = distances(base);
    let is_sooner = shortest(base, &distances).is_some_and(|shortest| shortest < segments);
    !is_sooner && is_nothing_farther(base, &distances, segments)
}

/// How likely it is that as many parts come to as small a product where each lies anywhere from 0 to 1
/// (Fisher's combined probability): product * sum of (-ln product)^k / k! for each k below their number.
fn by_chance(parts: &[f64]) -> f64 {
    let log: f64 = parts.iter().map(|part| -part.max(f64::MIN_POSITIVE).ln()).sum();
    // By logarithms: the product of many is too small for a number.
    let mut term = -log;
    let terms = (1..=parts.len()).map(|next| {
        let own = term.exp();
        term += log.ln() - (next as f64).ln();
        own
    });
    terms.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Ordinal;
    use crate::made_up;
    use walstat_analyse::checkpoint::cause::Confidence;
    use walstat_format::payload::Time;

    const SEGMENT: u64 = 1 << 20;

    /// A base whose checkpoints begin at these places, in segments, a second apart; the first one before the
    /// range.
    fn settled(places: &[f64], cause: impl Fn(usize) -> (Option<Cause>, Confidence)) -> Base {
        let (_, mut base) = made_up::base(&[]);
        let lsn = |place: f64| Lsn((place * SEGMENT as f64) as u64);
        base.checkpoints = places
            .iter()
            .enumerate()
            .map(|(index, place)| {
                let (cause, confidence) = cause(index);
                let time = Time(index as i64 * SECOND);
                let begun = BaseCheckpoint::begun(lsn(*place), 1 + index as Ordinal, time);
                BaseCheckpoint { cause, confidence, ..begun }
            })
            .collect();
        (base.start, base.end) = (lsn(places[0]), lsn(places[places.len() - 1] + 1.0));
        settle(&mut base);
        base
    }

    fn causes(base: &Base) -> Vec<Option<Cause>> {
        base.checkpoints.iter().skip(1).map(|own| own.cause.filter(|_| own.is_certain())).collect()
    }

    #[test]
    fn equal_distances_from_beginning_to_beginning_are_of_volume() {
        let base = settled(&[10.5, 20.01, 23.4, 33.02, 43.1], |_| (None, Confidence::Possible));
        assert_eq!(base.segments, Some(10));
        let [wal, asked] = [Cause::Wal, Cause::Requested].map(Some);
        assert_eq!(causes(&base), [wal, asked, wal, wal]);
    }

    #[test]
    fn places_anywhere_in_a_segment_are_of_nobodys_volume() {
        let base = settled(&[10.5, 20.4, 30.6, 40.3], |_| (None, Confidence::Possible));
        assert_eq!((base.segments, causes(&base)), (None, vec![None; 3]));
    }

    #[test]
    fn more_of_them_have_to_lie_nearer_in_all() {
        let chance = |parts: &[f64]| (by_chance(parts) * 1e4).round() / 1e4;
        assert_eq!(chance(&[0.02]), 0.02);
        assert_eq!(chance(&[0.1, 0.1]), 0.0561);
        assert_eq!(chance(&[0.1, 0.1, 1.0]), 0.1621);
        assert_eq!((chance(&[1.0; 3]), chance(&[0.0, 0.5])), (1.0, 0.0));
        let many = by_chance(&[0.37; 1000]);
        assert!((0.3..0.7).contains(&many), "as far as in the mean: {many}");
        let segments = |places: &[f64]| settled(places, |_| (None, Confidence::Possible)).segments;
        assert_eq!(segments(&[10.5, 20.09, 30.1]), Some(10));
        // Whose product is less, but of three it is so by chance every ninth time.
        assert_eq!(segments(&[10.5, 20.1, 30.2, 40.3]), None);
        assert_eq!(segments(&[10.5, 20.1, 30.1, 40.2]), Some(10));
    }

    #[test]
    fn what_lies_farther_apart_contradicts_it() {
        let base = settled(&[10.5, 20.01, 30.01, 45.5], |_| (None, Confidence::Possible));
        assert_eq!(base.segments, None);
    }

    #[test]
    fn a_setting_of_now_need_not_be_that_of_then() {
        let base = |places: &[f64]| settled(places, |_| (None, Confidence::Possible));
        let allowed = |places: &[f64]| allows(&base(places), 4);
        assert_eq!([allowed(&[10.5, 13.4]), allowed(&[10.5, 16.4])], [true, true]);
        assert!(!allowed(&[10.5, 17.4]), "no checkpoint for three segments longer");
    }

    #[test]
    fn what_is_asked_for_while_one_runs_begins_after_it() {
        let settled = |ended: f64| {
            let places = [10.5, 20.01, 30.01, 44.9, 54.01];
            let mut base = settled(&places, |_| (None, Confidence::Possible));
            base.checkpoints[2].ended = Some(Lsn((ended * SEGMENT as f64) as u64));
            settle(&mut base);
            base
        };
        assert_eq!(settled(40.01).segments, None, "14 segments, where two others have ten");
        let base = settled(43.1);
        assert_eq!((base.segments, causes(&base)), (Some(10), vec![Some(Cause::Wal); 4]));
    }

    #[test]
    fn what_is_written_down_is_believed() {
        let confidence = |index| if index == 2 { Confidence::Likely } else { Confidence::Possible };
        let asked = |index| (Some(Cause::Requested), confidence(index));
        let base = settled(&[10.5, 20.01, 30.01, 40.02], asked);
        assert_eq!(base.checkpoints[2].cause, Some(Cause::Requested));
        assert!(base.checkpoints[2].is_doubtful(), "and read both ways all the same");
    }
}
