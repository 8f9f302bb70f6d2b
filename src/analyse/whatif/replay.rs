//! Simulated runs that need nothing but the trace, since how long images are is known.

use super::base::Base;
use super::lane::Lane;
use super::outcome::Outcome;
use super::outline::{Outline, Outliner};
use super::plan::ImageBytes;
use super::settings::Settings;
use super::trace::{Chunk, Ref, Trace};

/// How long images are.
pub trait Lengths {
    /// The next image.
    fn of(&mut self, reference: &Ref) -> ImageBytes;
}

/// As in the base, or not compressed where it has none.
struct AsBase {
    /// None is compressed.
    is_raw: bool,
}

impl Lengths for AsBase {
    fn of(&mut self, reference: &Ref) -> ImageBytes {
        if self.is_raw { ImageBytes::raw(reference) } else { ImageBytes::as_base(reference) }
    }
}

/// Simulates several runs, side by side: the trace is read once.
pub fn replay(trace: &Trace, base: &Base, runs: &[Settings]) -> Vec<Outcome> {
    let plain = |settings: &Settings| PlainLane {
        lane: Lane::new(trace, base, settings),
        lengths: AsBase { is_raw: settings.compression == Some(None) },
    };
    let lanes = run(trace, base, runs.iter().map(plain).collect());
    lanes.into_iter().map(|(outcome, _)| outcome).collect()
}

/// Simulates one run with images of other lengths.
pub fn replay_one<L: Lengths + Default>(
    trace: &Trace,
    base: &Base,
    settings: &Settings,
    lengths: L,
) -> (Outcome, L) {
    let lane = PlainLane { lane: Lane::new(trace, base, settings), lengths };
    run(trace, base, vec![lane]).pop().unwrap_or_default()
}

fn run<L: Lengths>(
    trace: &Trace,
    base: &Base,
    mut lanes: Vec<PlainLane<'_, L>>,
) -> Vec<(Outcome, L)> {
    let mut outliner = Outliner::new(base);
    let mut outlines = Vec::new();
    let mut reader = trace.read();
    while let Some(chunk) = reader.next_chunk() {
        if chunk.first >= base.last {
            break;
        }
        outlines.clear();
        let own = chunk.records().filter(|noted| base.contains(noted.ordinal));
        outlines.extend(own.map(|noted| outliner.next(&noted)));
        lanes.iter_mut().for_each(|lane| lane.take(base, chunk, &outlines));
    }
    let rest = outliner.rest();
    lanes.into_iter().map(|lane| (lane.lane.finish(rest), lane.lengths)).collect()
}

struct PlainLane<'t, L> {
    lane: Lane<'t>,
    lengths: L,
}

impl<L: Lengths> PlainLane<'_, L> {
    fn take(&mut self, base: &Base, chunk: &Chunk, outlines: &[Outline]) {
        let mut outlines = outlines.iter();
        for noted in chunk.records() {
            if noted.ordinal < base.first {
                self.lane.warm_up(&noted);
                continue;
            }
            let Some(outline) = outlines.next() else { break };
            self.lane.take(&noted, outline, |_, reference| self.lengths.of(reference));
        }
    }
}
