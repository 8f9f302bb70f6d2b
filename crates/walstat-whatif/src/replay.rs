//! Simulated runs that need nothing but the trace, since how long images are is known.

use super::base::Base;
use super::outcome::RunOutcome;
use super::plan::ImageBytes;
use super::range_walk::RangeWalk;
use super::settings::Settings;
use super::simulated_run::SimulatedRun;
use super::trace::{PlainLength, Trace, TracedBlock, TracedRecord};

/// How long images are.
pub(crate) trait Lengths {
    /// The next image.
    fn of(&mut self, reference: &TracedBlock) -> ImageBytes;
}

/// As in the base, or not compressed where it has none.
struct AsBase {
    /// None is compressed.
    is_raw: bool,
}

impl Lengths for AsBase {
    fn of(&mut self, reference: &TracedBlock) -> ImageBytes {
        if self.is_raw { ImageBytes::raw(reference) } else { ImageBytes::as_base(reference) }
    }
}

/// Simulates several runs, side by side: the trace is read once.
pub(crate) fn replay(trace: &Trace, base: &Base, runs: &[Settings]) -> Vec<RunOutcome> {
    let plain = |settings: &Settings| PlainRun {
        run: SimulatedRun::new(trace, base, settings),
        lengths: AsBase { is_raw: settings.compression == Some(None) },
    };
    let runs = simulate(trace, base, runs.iter().map(plain).collect());
    runs.into_iter().map(|(outcome, _)| outcome).collect()
}

/// Simulates one run with images of other lengths.
pub(crate) fn replay_one<L: Lengths + Default>(
    trace: &Trace,
    base: &Base,
    settings: &Settings,
    lengths: L,
) -> (RunOutcome, L) {
    let run = PlainRun { run: SimulatedRun::new(trace, base, settings), lengths };
    simulate(trace, base, vec![run]).pop().unwrap_or_default()
}

fn simulate<L: Lengths>(
    trace: &Trace,
    base: &Base,
    mut runs: Vec<PlainRun<'_, L>>,
) -> Vec<(RunOutcome, L)> {
    let mut walk = RangeWalk::new(base);
    let mut plain = Vec::new();
    let mut reader = trace.read();
    while let Some(group) = reader.group().filter(|group| group.first < base.last) {
        // Before the first record of the range anything may be.
        let is_inside = base.first < group.first && group.end() <= base.last;
        if is_inside && runs.iter().all(|run| run.run.skips(&group)) {
            runs.iter_mut().for_each(|run| run.run.skip(&group));
            walk.pass(group.bytes);
            reader.pass(&group);
            continue;
        }
        let records: Vec<TracedRecord<'_>> = reader.records(&group).records().collect();
        plain.clear();
        let own = records.iter().filter(|traced| base.contains(traced.ordinal));
        plain.extend(own.map(|traced| walk.next(traced)));
        for run in &mut runs {
            if is_inside && run.run.skips(&group) {
                run.run.skip(&group);
            } else {
                run.take(base, &records, &plain);
            }
        }
    }
    let rest = walk.rest();
    runs.into_iter().map(|run| (run.run.finish(rest), run.lengths)).collect()
}

struct PlainRun<'t, L> {
    run: SimulatedRun<'t>,
    lengths: L,
}

impl<L: Lengths> PlainRun<'_, L> {
    fn take(&mut self, base: &Base, records: &[TracedRecord<'_>], walk: &[PlainLength]) {
        let mut walk = walk.iter();
        for traced in records {
            if traced.ordinal < base.first {
                self.run.warm_up(traced);
                continue;
            }
            let Some(plain) = walk.next() else { break };
            self.run.take(traced, plain, |_, reference| self.lengths.of(reference));
        }
    }
}

#[cfg(test)]
mod tests;
