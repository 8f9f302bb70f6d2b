//! How far replay comes if the WAL ends at some place: where the last whole record before it ends, when the
//! last transaction before it ended, in the terms of a server that has recovered, and what is prepared there.

use super::two_phase::{Standing, TwoPhase};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::payload::{Time, xact, xlog};
use walstat_format::record::Record;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr::{TRANSACTION, XLOG};
use walstat_read::scan::few::{Few, STRETCH_BITS};
use walstat_read::scan::observe::Observe;

/// Where replay stands after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPoint {
    /// After the record, rounded up.
    pub end: Lsn,
    /// When the last transaction ended, if one did.
    pub time: Option<Time>,
    /// Whether the record closes its segment.
    pub switch: bool,
    /// What is prepared then.
    pub standing: Standing,
}

/// Where replay stands at the end of each segment, and before each hole and each record that recovery may
/// end at.
///
/// Of each 1 MB of WAL, two points are kept at most: after the last record that ends in it, and after the
/// last one that begins in it. No segment is smaller, so each has a point at its end; and a run has none of
/// its own where it ends, which would depend on how the WAL was divided. Of more records that recovery may
/// end at than few, those that follow have the point before them in common.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplayPoints {
    /// Ascending.
    points: Vec<ReplayPoint>,
    last: Option<ReplayPoint>,
    /// When the last transaction ended.
    time: Option<Time>,
    /// How many records there were that recovery may end at.
    ends: Few,
    two_phase: TwoPhase,
    /// The end of the stretch in which the last record lies; 0: it goes on into another one. A record that
    /// ends before it is not the first of its stretch.
    #[serde(skip)]
    stretch_end: Lsn,
}

/// Notes when a transaction ended, of a record of one. A call of its own, so that the loop over all records
/// keeps its registers.
#[inline(never)]
fn end_time(info: u8, main_data: &[u8], time: &mut Option<Time>) {
    *time = xact::end_time(info, main_data).or(*time);
}

/// Whether a record from `lsn` to `end`, after one from `previous` to `last`, is the first of its stretch.
fn is_next(last: Lsn, end: Lsn, previous: Lsn, lsn: Lsn) -> bool {
    let differ = ((last.0 - 1) ^ (end.0 - 1)) | (previous.0 ^ lsn.0);
    differ >> STRETCH_BITS != 0
}

/// Whether recovery may end at such a record, though it is whole: there is a point before it.
fn may_end_recovery(header: &RecordHeader) -> bool {
    let types = [
        xlog::CHECKPOINT_SHUTDOWN,
        xlog::CHECKPOINT_ONLINE,
        xlog::END_OF_RECOVERY,
        xlog::OVERWRITE_CONTRECORD,
        xlog::PARAMETER_CHANGE,
        xlog::SWITCH,
    ];
    header.rmgr == XLOG && types.contains(&header.rmgr_info())
}

impl Observe for ReplayPoints {
    fn observe(&mut self, record: &Record<'_>) {
        if !self.moves_on(record) {
            self.look_into(record);
        }
    }

    fn lost(&mut self, _: Range<Lsn>) {
        self.points.extend(self.last);
    }

    fn merge(&mut self, later: ReplayPoints) {
        let time = self.time;
        let mut inherited = self.two_phase.inherited(&later.two_phase);
        let known = |point: ReplayPoint| {
            let standing = inherited.known(point.end, point.standing);
            ReplayPoint { time: point.time.or(time), standing, ..point }
        };
        let of_later = later.points.iter().chain(&later.last).copied().map(known);
        let mut of_later: Vec<ReplayPoint> = of_later.collect();
        if later.last.is_some() {
            self.points.extend(self.last);
            self.last = of_later.pop();
            self.stretch_end = later.stretch_end;
        }
        self.points.append(&mut of_later);
        self.two_phase.merge(later.two_phase);
        self.time = later.time.or(self.time);
        self.ends.merge(later.ends);
    }
}

impl ReplayPoints {
    /// Takes note of a record that changes nothing but how far replay has come, and when; of another one it
    /// does not, and says `false`.
    #[inline(always)]
    pub(super) fn moves_on(&mut self, record: &Record<'_>) -> bool {
        let header = &record.header;
        let Some(last) = self.last.as_mut().filter(|_| record.end <= self.stretch_end) else {
            return false;
        };
        match header.rmgr {
            XLOG => return false,
            TRANSACTION if xact::ends_alone(header.info).is_none() => return false,
            TRANSACTION => {
                end_time(header.info, record.main_data_start(), &mut self.time);
                last.time = self.time;
            }
            _ => {}
        }
        last.end = Lsn((record.end.0 + 7) & !7);
        true
    }

    /// Takes note of a record that changes more than how far replay has come, or is the first of its stretch.
    fn look_into(&mut self, record: &Record<'_>) {
        let header = &record.header;
        let end = record.end.aligned();
        if header.rmgr == TRANSACTION {
            end_time(header.info, record.main_data_start(), &mut self.time);
        }
        let next = |last: ReplayPoint| is_next(last.end, end, header.previous, record.lsn);
        let is_end = may_end_recovery(header) && self.ends.takes(record.lsn);
        if is_end || self.last.is_some_and(next) {
            self.points.extend(self.last);
        }
        self.two_phase.take(record);
        let standing = self.two_phase.standing();
        let (time, switch) = (self.time, header.is_switch());
        self.last = Some(ReplayPoint { end, time, switch, standing });
        let stretch = |lsn: u64| lsn >> STRETCH_BITS;
        let lies_in_one = stretch(record.lsn.0) == stretch(end.0 - 1);
        self.stretch_end =
            Lsn(if lies_in_one { (stretch(end.0 - 1) + 1) << STRETCH_BITS } else { 0 });
    }

    /// Where a hot standby reads the states of prepared transactions.
    pub fn two_phase(&self) -> &TwoPhase {
        &self.two_phase
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
            let (time, standing) = (Some(Time(end as i64)), Standing::default());
            let point = ReplayPoint { end: Lsn(end), time, switch: false, standing };
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
    fn a_hole_has_a_point_before_it_and_time_goes_on() {
        let mut all = points(&[0x10_0100, 0x10_0200]);
        all.lost(Lsn(0x10_0200)..Lsn(0x10_0300));
        all.merge(ReplayPoints { time: None, ..points(&[]) });
        let mut later = points(&[0x10_0400]);
        let standing = Standing::default();
        let last = ReplayPoint { end: Lsn(0x10_0400), time: None, switch: true, standing };
        (later.time, later.last) = (None, Some(last));
        all.merge(later);
        assert_eq!(all.before(Lsn(0x10_02FF)).map(|point| point.end), Some(Lsn(0x10_0200)));
        let last = ReplayPoint { time: Some(Time(0x10_0200)), ..last };
        assert_eq!(all.before(Lsn::MAX), Some(last));
    }
}
