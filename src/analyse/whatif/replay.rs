//! Simulated runs that need nothing but the trace: all but those with another codec.

use super::base::Base;
use super::lane::Lane;
use super::outcome::Outcome;
use super::plan::ImageBytes;
use super::settings::Settings;
use super::trace::{Chunk, Trace};

/// Simulates several runs, side by side: the trace is read once.
pub fn replay(trace: &Trace, base: &Base, runs: &[Settings]) -> Vec<Outcome> {
    let mut lanes: Vec<PlainLane<'_>> =
        runs.iter().map(|settings| PlainLane::new(trace, base, settings)).collect();
    let mut reader = trace.read();
    while let Some(chunk) = reader.next_chunk() {
        if chunk.first >= base.last {
            break;
        }
        lanes.iter_mut().for_each(|lane| lane.take(chunk));
    }
    lanes.into_iter().map(|lane| lane.lane.finish()).collect()
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

    fn take(&mut self, chunk: &Chunk) {
        for noted in chunk.records() {
            if noted.ordinal < self.base.first {
                self.lane.warm_up(&noted);
            } else if noted.ordinal < self.base.last {
                let plan = self.lane.plan(&noted);
                let is_raw = self.is_raw;
                self.lane.write(&noted, plan, |_, reference| match is_raw {
                    true => ImageBytes::raw(reference),
                    false => ImageBytes::as_base(reference),
                });
            }
        }
    }
}
