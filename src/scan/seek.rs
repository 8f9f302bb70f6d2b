//! Looking into single segments: how it begins, or a short stretch, without reading all. For finding
//! times by bisection; judges nothing, and books nothing.

use super::pages::Progress;
use super::parallel;
use super::record::{Everything, Observe};
use super::streamed::Wanted;
use crate::input::plan::{Plan, Segment};
use crate::wal::lsn::Lsn;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Counts the records of a stretch of segments, up to `end`.
pub fn look<O: Observe>(plan: &Plan, segments: &[Segment], end: Lsn, prototype: &O) -> O {
    let range = (Lsn(0), end);
    let wanted = Wanted { crc: None, range, limit: None, timeline: None, select: Everything };
    let scope = wanted.scope(plan.geometry);
    let (threads, progress) = (NonZeroUsize::MIN, Progress::default());
    let ready = BTreeMap::new();
    let runs = parallel::scan(segments, ready, &scope, threads, &progress, prototype);
    let mut found = prototype.clone();
    runs.into_iter().for_each(|run| found.merge(run.observer));
    found
}
