//! What is noted of records that are verified and not counted: where timelines begin, against which
//! history files are checked, and a sum that differs where two copies of a segment have other records.

use crate::scan::observe::Observe;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::payload::timeline::Switch;
use walstat_format::payload::xlog;
use walstat_format::record::Record;
use walstat_format::rmgr::XLOG;
use walstat_format::scatter::scattered;

/// The records with which timelines begin, those that a server may write before them, and a sum over all
/// records.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct TimelineSwitches {
    beginnings: Vec<BeginningRecord>,
    /// Where records are missing.
    lost: Vec<Range<Lsn>>,
    /// Over places and checksums of all records.
    sum: u64,
}

/// One of the first records of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct BeginningRecord {
    lsn: Lsn,
    /// Where the record before starts.
    previous: Lsn,
    /// The timeline that is left and the one that begins; `None`: a record that a server writes before
    /// the one that says so.
    switch: Option<Switch>,
}

impl Observe for TimelineSwitches {
    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        self.note(record);
    }

    /// Filters make no difference to where timelines begin.
    #[inline]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.note(record);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.lost.push(range);
    }

    fn merge(&mut self, later: TimelineSwitches) {
        self.beginnings.extend(later.beginnings);
        self.lost.extend(later.lost);
        self.sum = self.sum.wrapping_add(later.sum);
    }
}

impl TimelineSwitches {
    #[inline]
    fn note(&mut self, record: &Record<'_>) {
        let place = scattered(record.lsn.0) ^ u64::from(record.header.crc);
        self.sum = self.sum.wrapping_add(scattered(place));
        if record.header.rmgr != XLOG {
            return;
        }
        let switch = match record.header.rmgr_info() {
            xlog::CHECKPOINT_SHUTDOWN | xlog::END_OF_RECOVERY => {
                let data = record.main_data();
                let switch = data.and_then(|data| data.first_chunk().copied()).map(Switch::parse);
                let Some(switch) = switch.filter(|switch| switch.from != switch.to) else { return };
                Some(switch)
            }
            xlog::FPW_CHANGE | xlog::OVERWRITE_CONTRECORD => None,
            _ => return,
        };
        let previous = record.header.previous;
        self.beginnings.push(BeginningRecord { lsn: record.lsn, previous, switch });
    }

    /// The same for the same records at the same places.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// Whether records are missing at a place, so that nobody knows what stood there.
    pub(super) fn has_lost(&self, lsn: Lsn) -> bool {
        self.lost.iter().any(|range| range.contains(&lsn))
    }

    /// Which timeline is left where timeline `to` begins, and where its first record is.
    pub(super) fn begin_of(&self, to: u32) -> Option<(u32, Lsn)> {
        let begins = |record: &&BeginningRecord| record.switch.is_some_and(|it| it.to == to);
        let record = self.beginnings.iter().find(begins)?;
        Some((record.switch?.from, self.first_record(record)))
    }

    /// Whether timeline `to` begins at `at`, leaving timeline `from`, as a history file says; else what
    /// was found.
    pub(super) fn check(
        &self,
        from: u32,
        to: u32,
        at: Lsn,
        geometry: &Geometry,
    ) -> Result<(), String> {
        let begins = |record: &BeginningRecord| record.switch.is_some_and(|switch| switch.to == to);
        let mut switches = self.beginnings.iter().filter(|record| begins(record)).peekable();
        let Some(first) = switches.peek().copied() else {
            return Err(format!("no record there that begins timeline {to}"));
        };
        let at = geometry.first_byte(at);
        let is_as_said = |record: &BeginningRecord| {
            record.switch.is_some_and(|switch| switch.from == from)
                && self.first_record(record) == at
        };
        if switches.any(is_as_said) {
            return Ok(());
        }
        let left = first.switch.map_or(0, |switch| switch.from);
        let lsn = self.first_record(first);
        Err(format!("timeline {to} leaves timeline {left} with the record at {lsn}"))
    }

    /// Where the first record of the timeline starts that `switch` names.
    fn first_record(&self, switch: &BeginningRecord) -> Lsn {
        let mut first = *switch;
        // They are in WAL order, and there can be very many: so each is looked up.
        let before = |record: &BeginningRecord| {
            let place = self.beginnings.binary_search_by_key(&record.previous, |other| other.lsn);
            self.beginnings.get(place.ok()?).copied().filter(|other| other.switch.is_none())
        };
        // Only ever backwards, whatever a damaged record says.
        while let Some(record) = before(&first).filter(|record| record.lsn < first.lsn) {
            first = record;
        }
        first.lsn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::version::VERSIONS;

    const GEOMETRY: Geometry = Geometry {
        version: &VERSIONS[7],
        system_identifier: 42,
        segment_bytes: 1 << 20,
        page_bytes: 8192,
    };

    fn switches() -> TimelineSwitches {
        let record = |lsn, previous, switch| BeginningRecord {
            lsn: Lsn(lsn),
            previous: Lsn(previous),
            switch,
        };
        let beginnings = vec![
            record(0x100, 0x80, None),
            record(0x5018, 0x4FE0, None),
            record(0x5040, 0x5018, None),
            record(0x5080, 0x5040, Some(Switch { from: 1, to: 2 })),
            record(0x20_0028, 0x1F_FFD0, Some(Switch { from: 2, to: 3 })),
        ];
        TimelineSwitches { beginnings, ..TimelineSwitches::default() }
    }

    fn check(from: u32, to: u32, at: u64) -> Result<(), String> {
        switches().check(from, to, Lsn(at), &GEOMETRY)
    }

    #[test]
    fn a_timeline_begins_where_its_first_record_is() {
        assert_eq!(check(1, 2, 0x5018), Ok(()));
        assert_eq!(check(2, 3, 0x20_0000), Ok(()), "at a segment's first byte");
        for (from, to, at) in [(1, 2, 0x5080), (3, 2, 0x5018), (2, 3, 0x20_2000), (1, 4, 0x5018)] {
            assert!(check(from, to, at).is_err(), "{from} to {to} at {at:X}");
        }
    }

    /// Each is looked up; looking through all of them for each would take hours.
    #[test]
    fn many_records_may_stand_before_a_switch() {
        let lsn = |index: u64| Lsn(0x5018 + index * 0x28);
        let record = |index: u64, switch| BeginningRecord {
            lsn: lsn(index),
            previous: Lsn(lsn(index).0 - 0x28),
            switch,
        };
        let last = 1_000_000;
        let before = (0..last).map(|index| record(index, None));
        let switch = record(last, Some(Switch { from: 1, to: 2 }));
        let beginnings = before.chain([switch]).collect();
        let switches = TimelineSwitches { beginnings, ..TimelineSwitches::default() };
        assert_eq!(switches.check(1, 2, Lsn(0x5018), &GEOMETRY), Ok(()));
    }
}
