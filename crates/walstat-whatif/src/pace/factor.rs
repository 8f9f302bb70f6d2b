//! Checkpoints so many times as far apart as in the base. The distance is counted in commits, the
//! work that was done, so that half of a distance lies where the workload is half through it.

use super::super::base::Base;
use super::super::blocks::Ordinal;
use super::super::settings::Checkpoints;
use super::super::trace::Trace;
use super::staying;

/// Two places nearer than that to each other, in distances, are one.
const NEAR: f64 = 1e-9;

/// What of the base is moved is the same for all factors.
const EVERY: Checkpoints = Checkpoints::Factor(1.0);

/// The records between two redo points of the base.
struct Cycle {
    /// The first record after it.
    end: Ordinal,
    /// Records after which a checkpoint can begin.
    steps: Vec<Ordinal>,
    /// How many steps make a whole distance: more than there are, if the range ends before.
    length: f64,
}

/// Before which records checkpoints begin.
pub(crate) fn places(trace: &Trace, base: &Base, factor: f64) -> Vec<Ordinal> {
    let mut places = Vec::new();
    if factor.is_nan() || factor <= 0.0 {
        return places;
    }
    let factor = factor.max(NEAR);
    let mut next = factor;
    for (index, cycle) in (0u32..).zip(cycles(trace, base)) {
        let begin = f64::from(index);
        for (step, ordinal) in (1u32..).zip(&cycle.steps) {
            let at = begin + f64::from(step) / cycle.length;
            let is_end = f64::from(step) >= cycle.length - NEAR;
            if !is_end && at >= next - NEAR {
                places.push(ordinal + 1);
                next = next_after(at, next, factor);
            }
        }
        let whole = cycle.steps.len() as f64 >= cycle.length - NEAR || cycle.steps.is_empty();
        if whole && cycle.end < base.last && begin + 1.0 >= next - NEAR {
            places.push(cycle.end);
            next = next_after(begin + 1.0, next, factor);
        }
    }
    places.dedup();
    places
}

/// The first of the places `next`, `next + factor`, … that lies after `at`: however many lie before it, a
/// record has one checkpoint.
fn next_after(at: f64, next: f64, factor: f64) -> f64 {
    next + factor * (((at + NEAR - next) / factor).floor() + 1.0)
}

fn cycles(trace: &Trace, base: &Base) -> Vec<Cycle> {
    let steps = steps(trace, base);
    let moved = base.own_checkpoints().filter(|own| !staying::stays(base, &EVERY, own));
    let mut ends: Vec<Ordinal> = moved.map(|own| own.first).collect();
    ends.retain(|end| base.contains(*end));
    ends.dedup();
    let whole = ends.len();
    ends.push(base.last);
    let mut from = 0;
    let mut cycles: Vec<Cycle> = Vec::with_capacity(ends.len());
    for end in ends {
        let to = steps.partition_point(|step| *step < end);
        let own = steps.get(from..to).unwrap_or_default().to_vec();
        let length = own.len() as f64;
        cycles.push(Cycle { end, steps: own, length });
        from = to;
    }
    // The last one is cut off by the end of the range: it is taken to be as long as the others.
    let lengths: f64 = cycles.iter().take(whole).map(|cycle| cycle.length).sum();
    if let Some(last) = cycles.last_mut()
        && whole > 0
    {
        last.length = (lengths / whole as f64).max(last.length);
    }
    cycles
}

/// Commits; where there are none, all records.
fn steps(trace: &Trace, base: &Base) -> Vec<Ordinal> {
    if !base.commits.is_empty() {
        return base.commits.iter().map(|(ordinal, _)| *ordinal).collect();
    }
    let end = base.last.min(trace.records.next_ordinal());
    (base.first..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Kind, Made, base};

    #[test]
    fn a_record_has_one_checkpoint_however_small_the_factor() {
        let cycle = [Kind::Redo, Kind::CheckpointEnd, Kind::Commit, Kind::Commit, Kind::Commit];
        let records: Vec<Made> =
            cycle.repeat(3).into_iter().map(|kind| Made::new(kind, 0)).collect();
        let (trace, base) = base(&records);
        let some = places(&trace, &base, 0.001);
        assert!((6..=9).contains(&some.len()) && some.is_sorted(), "{some:?}");
        assert_eq!(places(&trace, &base, f64::MIN_POSITIVE), some);
        let half = places(&trace, &base, 0.5);
        assert!(
            half.len() < some.len() && half.iter().all(|place| some.contains(place)),
            "{half:?}"
        );
    }
}
