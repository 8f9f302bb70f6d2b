//! Walks over the records of the range, as they lie in the base: says of each how long it is without images,
//! and what lies between it and the record before.

use super::base::Base;
use super::position::{Geometry, padded};
use super::trace::{PlainLength, RecordEffect, TracedRecord};
use walstat_format::lsn::Lsn;

/// Outlines one record of the range after the other.
pub(crate) struct RangeWalk {
    geometry: Geometry,
    end: Lsn,
    /// Where the next record lies if nothing is between.
    usable: u64,
    /// The record before: where it lies, and that without page headers.
    before: Option<(Lsn, u64)>,
}

impl RangeWalk {
    /// At the start of the range.
    pub(crate) fn new(base: &Base) -> RangeWalk {
        let (geometry, end) = (base.geometry, base.end);
        let usable = geometry.usable(base.start);
        RangeWalk { geometry, end, usable, before: Some((base.start, usable)) }
    }

    /// The next record.
    pub(crate) fn next(&mut self, traced: &TracedRecord<'_>) -> PlainLength {
        let gap = self.gap(traced);
        let plain = PlainLength::of(traced.entry, traced.refs);
        let is_plain = plain.is_plain && traced.effect.is_none();
        PlainLength { gap, is_plain, ..plain }
    }

    /// Goes on after records with so many bytes, padded, between which is nothing.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.usable += bytes;
        self.before = None;
    }

    fn gap(&mut self, traced: &TracedRecord<'_>) -> u64 {
        let lsn = traced.entry.lsn;
        let page = |lsn: Lsn| lsn.0 / self.geometry.page;
        let near = self.before.filter(|(before, _)| page(lsn) == page(*before) && lsn >= *before);
        let here = near.map_or_else(
            || self.geometry.usable(lsn),
            |(before, usable)| usable + (lsn.0 - before.0),
        );
        let gap = here.saturating_sub(self.usable);
        self.before = Some((lsn, here));
        self.usable = here + padded(u64::from(traced.entry.bytes));
        if traced.effect == Some(RecordEffect::Switch) {
            self.usable = self.geometry.next_segment(self.usable);
        }
        gap
    }

    /// What is left of the range after its last record.
    pub(crate) fn rest(&self) -> u64 {
        self.geometry.usable(self.end).saturating_sub(self.usable)
    }
}
