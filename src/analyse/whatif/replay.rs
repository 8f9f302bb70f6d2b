//! Simulated runs that need nothing but the trace: all but those with another codec.

use super::base::Base;
use super::blocks::FIRST;
use super::lane::Lane;
use super::outcome::Outcome;
use super::plan::ImageBytes;
use super::settings::Settings;
use super::trace::Trace;

/// Simulates one run.
pub fn replay(trace: &Trace, base: &Base, settings: &Settings) -> Outcome {
    let mut lane = Lane::new(trace, base, settings);
    let raw = settings.compression == Some(None);
    let mut refs = trace.refs.as_slice();
    for (ordinal, entry) in (FIRST..).zip(&trace.entries) {
        let (own, rest) = refs.split_at_checked(entry.refs.into()).unwrap_or_default();
        refs = rest;
        if ordinal < base.first {
            lane.warm_up(ordinal, entry);
            continue;
        }
        if ordinal >= base.last {
            break;
        }
        let mark = trace.mark(ordinal, entry);
        let plan = lane.plan(ordinal, entry, mark, own);
        lane.write((ordinal, entry), mark, (own, plan), |_, reference| {
            if raw { ImageBytes::raw(reference) } else { ImageBytes::as_base(reference) }
        });
    }
    lane.finish()
}
