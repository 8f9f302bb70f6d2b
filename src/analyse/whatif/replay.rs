//! Simulated runs that need nothing but the trace: all but those with another codec.

use super::base::Base;
use super::lane::Lane;
use super::outcome::Outcome;
use super::outline::{Outline, Outliner};
use super::plan::ImageBytes;
use super::settings::Settings;
use super::trace::{Chunk, Trace};

/// Simulates several runs, side by side: the trace is read once.
pub fn replay(trace: &Trace, base: &Base, runs: &[Settings]) -> Vec<Outcome> {
    let mut lanes: Vec<PlainLane<'_>> =
        runs.iter().map(|settings| PlainLane::new(trace, base, settings)).collect();
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
        lanes.iter_mut().for_each(|lane| lane.take(chunk, &outlines));
    }
    let rest = outliner.rest();
    lanes.into_iter().map(|lane| lane.lane.finish(rest)).collect()
}

struct PlainLane<'t> {
    base: &'t Base,
    lane: Lane<'t>,
    /// Whether images that are compressed in the base are not.
    is_raw: bool,
}

impl<'t> PlainLane<'t> {
    fn new(trace: &'t Trace, base: &'t Base, settings: &Settings) -> PlainLane<'t> {
        let is_raw = settings.compression == Some(None);
        PlainLane { base, lane: Lane::new(trace, base, settings), is_raw }
    }

    fn take(&mut self, chunk: &Chunk, outlines: &[Outline]) {
        let mut outlines = outlines.iter();
        let is_raw = self.is_raw;
        for noted in chunk.records() {
            if noted.ordinal < self.base.first {
                self.lane.warm_up(&noted);
                continue;
            }
            let Some(outline) = outlines.next() else { break };
            self.lane.take(&noted, outline, |_, reference| match is_raw {
                true => ImageBytes::raw(reference),
                false => ImageBytes::as_base(reference),
            });
        }
    }
}
