//! The segments of one history, in order.

use super::unfilled::Unfilled;
use crate::segment::Segment;
use crate::timeline::Lineage;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::SegmentName;

/// Segments of one history, some of which may be missing.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'p> {
    /// Release, cluster and sizes.
    pub geometry: &'p Geometry,
    /// Ascending by number, each number once.
    pub segments: &'p [Segment],
    /// The history.
    pub lineage: &'p Lineage,
    /// Segments that may be missing.
    pub accepted_gaps: &'p [Range<Lsn>],
    /// Segments that a server has recycled, or never archived.
    pub unfilled: &'p [Unfilled],
    /// Whether it is a server's own WAL, with which it recovers from a crash.
    pub is_for_crash: bool,
    /// Whether it ends in WAL that a standby receives.
    pub is_standbys: bool,
}

impl<'p> Chain<'p> {
    /// Where a segment begins and ends.
    pub fn span(&self, segment: &Segment) -> Range<Lsn> {
        let bytes = u64::from(self.geometry.segment_bytes);
        Lsn(segment.number * bytes)..Lsn((segment.number + 1) * bytes)
    }

    /// The segment in which `lsn` lies.
    pub fn segment_at(&self, lsn: Lsn) -> Option<&'p Segment> {
        let number = lsn.0 / u64::from(self.geometry.segment_bytes);
        let index = self.segments.binary_search_by_key(&number, |segment| segment.number);
        index.ok().and_then(|index| self.segments.get(index))
    }

    /// The name of the segment in which `lsn` lies, whether it is there or not.
    pub fn segment_name(&self, lsn: Lsn) -> String {
        let bytes = self.geometry.segment_bytes;
        let number = lsn.0 / u64::from(bytes);
        let timeline = match self.segment_at(lsn) {
            Some(segment) => segment.timeline,
            None => self.lineage.of_file(number, bytes),
        };
        SegmentName::new(timeline, number, bytes).to_string()
    }
}
