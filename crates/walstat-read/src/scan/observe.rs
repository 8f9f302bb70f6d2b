//! What a dimension is: something that counts records; and which records are counted.

use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;

/// A record, as it is shown to dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Whether the filters let it pass.
    pub selected: bool,
}

/// A dimension of the statistics: sees every selected record once, in LSN order within a run;
/// runs are merged in WAL order.
///
/// It is made from a prototype, configured and empty: each run is counted by a copy of it. What is
/// merged must not depend on how the WAL was divided into runs.
pub trait Observe: Send + Clone + 'static {
    /// Whether it needs all bytes of every record. Otherwise only the first bytes are kept of records
    /// that lie in several windows or runs.
    const WHOLE: bool = false;

    /// Whether it stores records, or much of what they say, until everything before them was counted. Runs
    /// are shorter then, to save memory, but for the first, of which it stores little.
    const KEEPS: bool = false;

    /// Takes note of a record.
    fn observe(&mut self, record: &Record<'_>);

    /// Takes note of a record that the filters left out.
    #[inline(always)]
    fn passed_over(&mut self, _record: &Record<'_>) {}

    /// Takes note of records, one after the other. Only a dimension that is made of several overrides
    /// it: each of those goes over the records in a loop of its own, which is faster.
    #[inline]
    fn observe_all(&mut self, records: &[Shown<'_>]) {
        for shown in records {
            if shown.selected {
                self.observe(&shown.record);
            } else {
                self.passed_over(&shown.record);
            }
        }
    }

    /// Whether it needs all bytes of every record: [`Observe::WHOLE`], or what one of the dimensions
    /// needs that it is made of.
    fn needs_whole(&self) -> bool {
        Self::WHOLE
    }

    /// Whether it stores records: [`Observe::KEEPS`], or what one of the dimensions does that it is
    /// made of.
    fn keeps(&self) -> bool {
        Self::KEEPS
    }

    /// Called for the prototype of a scan all of whose runs will be merged, before it is copied: copies may
    /// tell each other what saves them work, as long as what is merged stays the same.
    fn share(&mut self) {}

    /// Takes note that records are missing here, after what it has seen: damage, or missing segments.
    /// It is not called for what lies before the first record. The range is empty where nothing is
    /// known but that a record does not link to the one before it (`xl_prev`).
    fn lost(&mut self, _range: Range<Lsn>) {}

    /// Takes note that nothing was written here, after what it has seen: the rest of a segment after a
    /// switch to the next one.
    fn unused(&mut self, _range: Range<Lsn>) {}

    /// Adds what the run after this one has seen.
    fn merge(&mut self, later: Self);

    /// Called now and then for the dimension that has seen all records from the scan's first one on:
    /// nothing earlier can come any more. So it may pass on results in WAL order and free their memory.
    /// (If a server was writing meanwhile, the scan starts again from the prototype; what was passed on
    /// is void.)
    fn settle(&mut self) {}

    /// Frees what memory it can until it is merged: many copies may be waiting.
    fn shrink(&mut self) {}
}

/// Counts nothing: to find out only whether the WAL is undamaged.
impl Observe for () {
    #[inline(always)]
    fn observe(&mut self, _: &Record<'_>) {}

    fn merge(&mut self, _later: ()) {}
}

/// Two dimensions make one, so that the set of dimensions is a type.
impl<A: Observe, B: Observe> Observe for (A, B) {
    const WHOLE: bool = A::WHOLE || B::WHOLE;
    const KEEPS: bool = A::KEEPS || B::KEEPS;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.0.observe(record);
        self.1.observe(record);
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.0.passed_over(record);
        self.1.passed_over(record);
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        self.0.observe_all(records);
        self.1.observe_all(records);
    }

    fn needs_whole(&self) -> bool {
        self.0.needs_whole() || self.1.needs_whole()
    }

    fn keeps(&self) -> bool {
        self.0.keeps() || self.1.keeps()
    }

    fn share(&mut self) {
        self.0.share();
        self.1.share();
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range.clone());
        self.1.lost(range);
    }

    fn unused(&mut self, range: Range<Lsn>) {
        self.0.unused(range.clone());
        self.1.unused(range);
    }

    fn merge(&mut self, later: Self) {
        self.0.merge(later.0);
        self.1.merge(later.1);
    }

    fn settle(&mut self) {
        self.0.settle();
        self.1.settle();
    }

    fn shrink(&mut self) {
        self.0.shrink();
        self.1.shrink();
    }
}

/// A dimension that is counted or not: the same in all runs of a scan.
impl<O: Observe> Observe for Option<O> {
    const WHOLE: bool = O::WHOLE;
    const KEEPS: bool = O::KEEPS;

    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        if let Some(dimension) = self {
            dimension.observe(record);
        }
    }

    #[inline(always)]
    fn passed_over(&mut self, record: &Record<'_>) {
        if let Some(dimension) = self {
            dimension.passed_over(record);
        }
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        if let Some(dimension) = self {
            dimension.observe_all(records);
        }
    }

    fn needs_whole(&self) -> bool {
        self.as_ref().is_some_and(O::needs_whole)
    }

    fn keeps(&self) -> bool {
        O::KEEPS
    }

    fn share(&mut self) {
        if let Some(dimension) = self {
            dimension.share();
        }
    }

    fn lost(&mut self, range: Range<Lsn>) {
        if let Some(dimension) = self {
            dimension.lost(range);
        }
    }

    fn unused(&mut self, range: Range<Lsn>) {
        if let Some(dimension) = self {
            dimension.unused(range);
        }
    }

    fn merge(&mut self, later: Self) {
        if let (Some(dimension), Some(later)) = (self, later) {
            dimension.merge(later);
        }
    }

    fn settle(&mut self) {
        if let Some(dimension) = self {
            dimension.settle();
        }
    }

    fn shrink(&mut self) {
        if let Some(dimension) = self {
            dimension.shrink();
        }
    }
}

/// Which records are counted.
pub trait Select: std::fmt::Debug + Send + Sync {
    /// Whether the filters let the record pass.
    fn accepts(&self, record: &Record<'_>) -> bool;
}
