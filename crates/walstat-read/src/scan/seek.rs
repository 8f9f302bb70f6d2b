//! Looks into single segments without reading all: for finding times by bisection. Reports no problems.

use super::observe::Observe;
use super::observer::Observer;
use super::parallel;
use super::progress::Progress;
use super::streamed::Wanted;
use crate::input::plan::Plan;
use crate::input::segment::Segment;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use walstat_format::lsn::Lsn;

/// Counts the records of some segments that lie in a range.
pub fn look<O: Observe>(plan: &Plan, segments: &[Segment], range: Range<Lsn>, prototype: &O) -> O {
    let wanted = Wanted { crc: None, range, ..Wanted::default() };
    let scope = wanted.scope_of(plan);
    let (threads, progress) = (NonZeroUsize::MIN, Progress::default());
    let ready = BTreeMap::new();
    let observer = Observer::new(prototype.clone());
    let runs = parallel::scan(segments, ready, &scope, threads, &progress, &observer);
    let mut found = prototype.clone();
    let counted = runs.into_iter().filter_map(|run| run.observer.into_inner::<O>().ok());
    counted.for_each(|counted| found.merge(counted));
    found
}
