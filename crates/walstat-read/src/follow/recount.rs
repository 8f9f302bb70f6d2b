//! WAL that was passed before, or lies before the start, read once more between two places.

use super::begin::Taken;
use super::shelf::Shelf;
use super::{Follower, Look};
use crate::scan::observe::Observe;
use crate::scan::scope::Scope;
use std::ops::Range;
use std::time::Instant;
use walstat_format::lsn::Lsn;

/// Reads what lies between two places.
pub struct Recount {
    range: Range<Lsn>,
    beside: Option<Follower>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recounted<O> {
    /// All of it.
    Whole(O),
    /// It is not all there any more.
    Gone,
    /// The time was up.
    GoesOn,
}

impl Follower {
    /// Begins to read once more what lies between two places where records begin or end; `counted` counts it.
    pub fn recount(&self, range: Range<Lsn>, counted: impl Observe) -> Recount {
        let root = self.files.shelf.root();
        let mut shelf = Shelf::new(root, self.scope.geometry.segment_bytes);
        let is_listed = shelf.list(range.start.0 / self.segment_bytes()).is_ok();
        let scope = Scope { end: range.end, ..self.scope.clone() };
        let taken = Taken { kind: self.kind, scope, lineage: self.lineage.clone() };
        let mut beside = Follower::at(range.start, shelf, taken);
        beside.count(counted);
        Recount { range, beside: Some(beside).filter(|_| is_listed) }
    }
}

impl Recount {
    /// From where to where.
    pub fn range(&self) -> &Range<Lsn> {
        &self.range
    }

    /// Reads until all was read or the time is up.
    pub fn go_on<O: Observe + Default>(&mut self, until: Instant) -> Recounted<O> {
        let Some(beside) = &mut self.beside else { return Recounted::Gone };
        loop {
            let stretch = beside.read_stretch(until, false);
            let (is_whole, is_at_end) = (stretch.run.range_end.is_some(), stretch.is_at_end);
            let moved = beside.take(stretch, &mut Look::default());
            if is_whole {
                let counted = beside.counted(|counted: &mut O| std::mem::take(counted));
                return counted.map_or(Recounted::Gone, Recounted::Whole);
            }
            if !is_at_end {
                return Recounted::GoesOn;
            }
            if !moved || beside.trouble.unread.is_some() {
                return Recounted::Gone;
            }
        }
    }
}
