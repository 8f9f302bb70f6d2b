//! What is taken note of where records are only verified: where timelines begin, which histories are
//! held against, and what tells two copies of the same records from copies of different ones.

use super::record::{Observe, Record};
use crate::wal::lsn::Lsn;
use crate::wal::page::{Geometry, LONG_HEADER_BYTES, SHORT_HEADER_BYTES};
use crate::wal::payload::timeline::Switch;
use crate::wal::rmgr::{
    XLOG, XLOG_CHECKPOINT_SHUTDOWN, XLOG_END_OF_RECOVERY, XLOG_FPW_CHANGE,
    XLOG_OVERWRITE_CONTRECORD,
};
use serde::{Deserialize, Serialize};

/// The records with which timelines begin, and those that may stand before them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Turns {
    marks: Vec<Mark>,
    /// A sum over places and checksums of all records.
    sum: u64,
}

/// An odd number without pattern: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// A record at the beginning of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    lsn: Lsn,
    /// Where the record before starts.
    previous: Lsn,
    /// The timelines that it names; `None`: a server writes it before it names them.
    switch: Option<Switch>,
}

impl Observe for Turns {
    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        self.take(record);
    }

    /// Timelines begin and copies differ whatever is counted.
    #[inline]
    fn passed_over(&mut self, record: &Record<'_>) {
        self.take(record);
    }

    fn merge(&mut self, later: Turns) {
        self.marks.extend(later.marks);
        self.sum = self.sum.wrapping_add(later.sum);
    }
}

impl Turns {
    #[inline]
    fn take(&mut self, record: &Record<'_>) {
        let place = record.lsn.0.wrapping_mul(MIX) ^ u64::from(record.header.crc);
        self.sum = self.sum.wrapping_add(place.wrapping_mul(MIX));
        if record.header.rmgr != XLOG {
            return;
        }
        let switch = match record.header.info & 0xF0 {
            XLOG_CHECKPOINT_SHUTDOWN | XLOG_END_OF_RECOVERY => {
                let data = record.main_data();
                let switch = data.and_then(|data| data.first_chunk().copied()).map(Switch::parse);
                let Some(switch) = switch.filter(|switch| switch.from != switch.to) else { return };
                Some(switch)
            }
            XLOG_FPW_CHANGE | XLOG_OVERWRITE_CONTRECORD => None,
            _ => return,
        };
        self.marks.push(Mark { lsn: record.lsn, previous: record.header.previous, switch });
    }

    /// What all records come to: the same for the same records at the same places.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Whether timeline `to` begins at `at`, leaving timeline `from`; else what was found.
    pub fn hold(&self, from: u32, to: u32, at: Lsn, geometry: &Geometry) -> Result<(), String> {
        let begins = |mark: &Mark| mark.switch.is_some_and(|switch| switch.to == to);
        let mut turns = self.marks.iter().filter(|mark| begins(mark)).peekable();
        let Some(first) = turns.peek().copied() else {
            return Err(format!("no record there that begins timeline {to}"));
        };
        let at = first_byte(at, geometry);
        let holds = |mark: &&Mark| {
            mark.switch.is_some_and(|switch| switch.from == from) && self.beginning(mark) == at
        };
        if turns.any(|mark| holds(&mark)) {
            return Ok(());
        }
        let left = first.switch.map_or(0, |switch| switch.from);
        let lsn = self.beginning(first);
        Err(format!("timeline {to} leaves timeline {left} with the record at {lsn}"))
    }

    /// The first record of the timeline that begins with `turn`.
    fn beginning(&self, turn: &Mark) -> Lsn {
        let mut first = *turn;
        // They lie in the order of the WAL, and there can be very many.
        let before = |mark: &Mark| {
            let index = self.marks.binary_search_by_key(&mark.previous, |other| other.lsn).ok()?;
            self.marks.get(index).copied().filter(|other| other.switch.is_none())
        };
        // A step goes back at least a record.
        while let Some(mark) = before(&first).filter(|mark| mark.lsn < first.lsn) {
            first = mark;
        }
        first.lsn
    }
}

/// Where a record starts that begins at `lsn`: on a page's first byte its header is skipped.
fn first_byte(lsn: Lsn, geometry: &Geometry) -> Lsn {
    let header = match () {
        () if lsn.0.is_multiple_of(u64::from(geometry.segment_bytes)) => LONG_HEADER_BYTES,
        () if lsn.0.is_multiple_of(u64::from(geometry.page_bytes)) => SHORT_HEADER_BYTES,
        () => 0,
    };
    Lsn(lsn.0 + header as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::version::VERSIONS;

    const GEOMETRY: Geometry = Geometry {
        version: &VERSIONS[7],
        system_identifier: 42,
        segment_bytes: 1 << 20,
        page_bytes: 8192,
    };

    fn turns() -> Turns {
        let mark = |lsn, previous, switch| Mark { lsn: Lsn(lsn), previous: Lsn(previous), switch };
        let marks = vec![
            mark(0x100, 0x80, None),
            mark(0x5018, 0x4FE0, None),
            mark(0x5040, 0x5018, None),
            mark(0x5080, 0x5040, Some(Switch { from: 1, to: 2 })),
            mark(0x20_0028, 0x1F_FFD0, Some(Switch { from: 2, to: 3 })),
        ];
        Turns { marks, sum: 0 }
    }

    fn hold(from: u32, to: u32, at: u64) -> Result<(), String> {
        turns().hold(from, to, Lsn(at), &GEOMETRY)
    }

    #[test]
    fn a_timeline_begins_where_its_first_record_is() {
        assert_eq!(hold(1, 2, 0x5018), Ok(()));
        assert_eq!(hold(2, 3, 0x20_0000), Ok(()), "at a segment's first byte");
        for (from, to, at) in [(1, 2, 0x5080), (3, 2, 0x5018), (2, 3, 0x20_2000), (1, 4, 0x5018)] {
            assert!(hold(from, to, at).is_err(), "{from} to {to} at {at:X}");
        }
    }

    /// Each is looked up; looking through all of them for each would take hours.
    #[test]
    fn many_records_may_stand_before_a_turn() {
        let lsn = |index: u64| Lsn(0x5018 + index * 0x28);
        let mark = |index: u64, switch| Mark {
            lsn: lsn(index),
            previous: Lsn(lsn(index).0 - 0x28),
            switch,
        };
        let last = 1_000_000;
        let before = (0..last).map(|index| mark(index, None));
        let turn = mark(last, Some(Switch { from: 1, to: 2 }));
        let turns = Turns { marks: before.chain([turn]).collect(), sum: 0 };
        assert_eq!(turns.hold(1, 2, Lsn(0x5018), &GEOMETRY), Ok(()));
    }
}
