//! How far replay comes if the WAL ends at some place: where the last whole record before it ends, and
//! when the last transaction before it ended, in the terms of a server that has recovered.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::xlog::{self, OverwriteContrecord};
use walstat_format::payload::{Time, xact};
use walstat_format::record::Record;
use walstat_format::rmgr::{TRANSACTION, XLOG};
use walstat_read::scan::observe::Observe;

/// Of each 1 MB of WAL, two points are kept at most: after the last record that ends in it, and after the
/// last one that begins in it. No segment is smaller, so each has a point at its end; and a run has none of
/// its own where it ends, which would depend on how the WAL was divided.
const STEP_BITS: u32 = 20;

/// Where replay stands after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPoint {
    /// After the record, rounded up.
    pub end: Lsn,
    /// When the last transaction ended, if one did.
    pub time: Option<Time>,
    /// Whether the record closes its segment.
    pub switch: bool,
}

/// Where replay stands at the end of each segment, and before each hole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplayPoints {
    /// Ascending.
    points: Vec<ReplayPoint>,
    last: Option<ReplayPoint>,
    /// When the last transaction ended.
    time: Option<Time>,
    /// Records that replace torn ones.
    replacing: Vec<Replacing>,
}

/// A record that replaces one that a crash tore (`XLOG_OVERWRITE_CONTRECORD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacing {
    /// Where it lies.
    pub lsn: Lsn,
    /// Where the torn one began, as it says.
    pub says: Lsn,
    /// Where it did begin: where the record before it ended. `None`: that one was not read.
    pub torn: Option<Lsn>,
}

impl Replacing {
    /// Whether it names another record than the torn one: a server stops there
    /// (`VerifyOverwriteContrecord` in `src/backend/access/transam/xlogrecovery.c`). Where a page begins,
    /// its header comes first.
    pub fn is_mismatched(&self, page_bytes: u32) -> bool {
        let first = |torn: Lsn| torn.0.is_multiple_of(u64::from(page_bytes));
        self.torn.is_some_and(|torn| {
            let header = self.says.0.checked_sub(torn.0);
            let header = header.filter(|bytes| PAGE_HEADERS.contains(bytes) && first(torn));
            self.says != torn && header.is_none()
        })
    }
}

/// Bytes of page headers, within a segment and at its beginning.
const PAGE_HEADERS: [u64; 2] = [24, 40];

impl Observe for ReplayPoints {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let header = &record.header;
        if header.rmgr == TRANSACTION || header.rmgr == XLOG {
            // A copy: the record itself then stays in registers.
            let record = *record;
            self.look_into(&record);
        }
        let end = record.end.aligned();
        let step = |lsn: Lsn| lsn.0 >> STEP_BITS;
        let ends_in = |end: Lsn| step(Lsn(end.0 - 1));
        let is_next = |last: ReplayPoint| {
            ends_in(last.end) != ends_in(end) || step(header.previous) != step(record.lsn)
        };
        if self.last.is_some_and(is_next) {
            self.points.extend(self.last);
        }
        self.last = Some(ReplayPoint { end, time: self.time, switch: header.is_switch() });
    }

    fn lost(&mut self, _: Range<Lsn>) {
        self.points.extend(self.last);
    }

    fn merge(&mut self, later: ReplayPoints) {
        let time = self.time;
        let known = |point: ReplayPoint| ReplayPoint { time: point.time.or(time), ..point };
        if later.last.is_some() {
            self.points.extend(self.last);
        }
        self.points.extend(later.points.into_iter().map(known));
        let before = self.last.map(|last| last.end);
        let joined = |it: Replacing| Replacing { torn: it.torn.or(before), ..it };
        self.replacing.extend(later.replacing.into_iter().map(joined));
        self.last = later.last.map(known).or(self.last);
        self.time = later.time.or(self.time);
    }
}

impl ReplayPoints {
    /// Takes note of what a record says of times and torn records.
    #[inline(never)]
    fn look_into(&mut self, record: &Record<'_>) {
        let header = &record.header;
        if header.rmgr == TRANSACTION {
            let ended = xact::end_time(header.info, record.main_data_start());
            self.time = ended.or(self.time);
        } else if header.rmgr_info() == xlog::OVERWRITE_CONTRECORD {
            let says = OverwriteContrecord::parse(record.main_data_start());
            let torn = self.last.map(|last| last.end);
            let replacing =
                |it: OverwriteContrecord| Replacing { lsn: record.lsn, says: it.overwritten, torn };
            self.replacing.extend(says.map(replacing));
        }
    }

    /// Records that replace torn ones, ascending.
    pub fn replacing(&self) -> &[Replacing] {
        &self.replacing
    }

    /// Where replay stands after the last record that ends at `lsn` or before.
    pub fn before(&self, lsn: Lsn) -> Option<ReplayPoint> {
        let all = self.points.iter().chain(&self.last);
        all.filter(|point| point.end <= lsn).max_by_key(|point| point.end).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(ends: &[u64]) -> ReplayPoints {
        let mut points = ReplayPoints::default();
        for &end in ends {
            let point = ReplayPoint { end: Lsn(end), time: Some(Time(end as i64)), switch: false };
            if points.last.is_some_and(|last| (last.end.0 - 1) >> 20 != (end - 1) >> 20) {
                points.points.extend(points.last);
            }
            (points.last, points.time) = (Some(point), point.time);
        }
        points
    }

    #[test]
    fn each_segment_has_a_point_at_its_end() {
        let mut all = points(&[0x10_0100, 0x1F_FFF0, 0x20_0010, 0x2F_0000, 0x30_0000]);
        all.merge(points(&[0x30_0050, 0x35_0000]));
        let before = |lsn| all.before(Lsn(lsn)).map(|point| point.end.0);
        assert_eq!(before(0x20_0000), Some(0x1F_FFF0));
        assert_eq!(before(0x30_0000), Some(0x30_0000));
        assert_eq!(before(0x40_0000), Some(0x35_0000));
        assert_eq!(before(0x10_0000), None);
    }

    #[test]
    fn a_record_replaces_the_one_that_began_where_the_last_one_ended() {
        let replacing = |says, torn: Option<u64>| Replacing {
            lsn: Lsn(0x10_4018),
            says: Lsn(says),
            torn: torn.map(Lsn),
        };
        assert!(!replacing(0x10_3FF0, Some(0x10_3FF0)).is_mismatched(8192));
        assert!(!replacing(0x10_2018, Some(0x10_2000)).is_mismatched(8192));
        assert!(!replacing(0x10_3FF0, None).is_mismatched(8192));
        assert!(replacing(0x10_3FE8, Some(0x10_3FF0)).is_mismatched(8192));
        assert!(replacing(0x10_3FF0 + 24, Some(0x10_3FF0)).is_mismatched(8192));
        let mut all = points(&[0x10_0100]);
        let later = ReplayPoints { replacing: vec![replacing(0x10_0108, None)], ..points(&[]) };
        all.merge(later);
        assert!(all.replacing().iter().all(|it| it.is_mismatched(8192)));
    }

    #[test]
    fn a_hole_has_a_point_before_it_and_time_goes_on() {
        let mut all = points(&[0x10_0100, 0x10_0200]);
        all.lost(Lsn(0x10_0200)..Lsn(0x10_0300));
        all.merge(ReplayPoints { time: None, ..points(&[]) });
        let mut later = points(&[0x10_0400]);
        (later.time, later.last) =
            (None, Some(ReplayPoint { end: Lsn(0x10_0400), time: None, switch: true }));
        all.merge(later);
        assert_eq!(all.before(Lsn(0x10_02FF)).map(|point| point.end), Some(Lsn(0x10_0200)));
        let last = ReplayPoint { end: Lsn(0x10_0400), time: Some(Time(0x10_0200)), switch: true };
        assert_eq!(all.before(Lsn::MAX), Some(last));
    }
}
