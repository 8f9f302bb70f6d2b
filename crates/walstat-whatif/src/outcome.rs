//! What a simulated run comes to.

use super::uncertainty::Tally;
use std::collections::BTreeMap;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::RecordType;

/// Records of one type whose simulated length is not that of the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Records.
    pub records: u64,
    /// Simulated minus base, bytes.
    pub bytes: i64,
    /// Images simulated minus base.
    pub images: i64,
}

/// A redo point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoPoint {
    /// The record before which it lies, in the base.
    pub base: Lsn,
    /// Where it lies in the simulated WAL.
    pub simulated: Lsn,
}

/// A switch to the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    /// What it leaves empty of its segment, bytes.
    pub(crate) left: u64,
    /// Redo points before it, and those of them that are not the base's.
    pub(crate) redo_points: u64,
    pub(crate) placed: u64,
    /// Whether its segment began after a switch, too: with less before it, it does not fall into an earlier
    /// one.
    pub(crate) is_own: bool,
    /// Whether it lies elsewhere each time, so that it may leave anything of its segment.
    pub(crate) moves: bool,
    /// What of the run before it is not certain.
    pub(crate) uncertain: Tally,
}

/// A simulated run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunOutcome {
    /// LSN distance from start to end.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// Images.
    pub images: u64,
    /// Their bytes as stored.
    pub image_bytes: u64,
    /// Segments that archive_timeout closes.
    pub switches: u64,
    /// The switches, those of the base too.
    pub(crate) left_empty: Vec<Switch>,
    /// Switches of the base that are left out: somebody may have asked for them.
    pub switches_dropped: u64,
    /// What of it is not certain.
    pub(crate) uncertain: Tally,
    /// Redo points after the start.
    pub redo_points: Vec<RedoPoint>,
    /// Those of them that are not the base's.
    pub(crate) placed: u64,
    /// The least time between two that the server times one after the other, microseconds.
    pub(crate) closest_micros: Option<i64>,
    /// Longest way from a redo point to the end of the next checkpoint: what recovery would have
    /// had to replay; bytes.
    pub recovery_bytes: u64,
    /// Where records differ from the base's.
    pub differences: BTreeMap<RecordType, Difference>,
}

impl RunOutcome {
    /// What switches leave empty, bytes.
    pub fn switch_bytes(&self) -> u64 {
        self.left_empty.iter().map(|switch| switch.left).sum::<u64>().min(self.bytes)
    }

    /// What is written, beside that; bytes.
    pub fn written_bytes(&self) -> u64 {
        self.bytes - self.switch_bytes()
    }

    /// Bytes that are certain: neither estimated nor unknown.
    pub fn exact_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.estimated() + self.unknown())
    }

    /// Bytes whose length is an estimate, or follows from a sample.
    pub fn estimated(&self) -> u64 {
        self.uncertain.estimated_bytes + self.uncertain.sampled_bytes
    }

    /// Bytes that nothing in the base tells of.
    pub fn unknown(&self) -> u64 {
        self.uncertain.unknown_bytes + self.uncertain.unseen_bytes
    }

    /// Notes how a record compares with the base's: lengths with their padding.
    pub(super) fn differ(&mut self, kind: RecordType, bytes: i64, images: i64) {
        if bytes != 0 || images != 0 {
            let row = self.differences.entry(kind).or_default();
            row.records += 1;
            row.bytes += bytes;
            row.images += images;
        }
    }
}
