//! The contract's ratios, once: computed here, carried in the model, only formatted elsewhere.

use super::totals::{RecordTable, Totals};
use crate::wal::payload::xact;
use crate::wal::rmgr::{HEAP, HEAP_HOT_UPDATE, HEAP_UPDATE, TRANSACTION};

/// `a / b`, or nothing if there is nothing to divide by.
pub fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// Ratios over a set of records; fractions where not said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ratios {
    /// Image bytes of all bytes.
    pub fpi_ratio: Option<f64>,
    /// Records with an image of all records.
    pub fpi_record_ratio: Option<f64>,
    /// HOT updates of all updates.
    pub hot_ratio: Option<f64>,
    /// All bytes by bytes that are not images (Chen 2017): 1 or more.
    pub write_amplification: Option<f64>,
    /// Stored image bytes by what they would be uncompressed.
    pub compression_ratio: Option<f64>,
}

/// Heap updates, by whether their index entries could stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Updates {
    /// HOT updates.
    pub hot: u64,
    /// Other updates.
    pub other: u64,
}

impl Updates {
    /// Counts the updates in `table`, `+INIT` variants included.
    pub fn of(table: &RecordTable) -> Updates {
        let count =
            |opcode| table.sum(|record| record.rmgr == HEAP && record.opcode() == opcode).count;
        Updates { hot: count(HEAP_HOT_UPDATE), other: count(HEAP_UPDATE) }
    }

    /// HOT updates of all updates.
    pub fn hot_ratio(&self) -> Option<f64> {
        ratio(self.hot, self.hot + self.other)
    }
}

/// Commits in `table`: `COMMIT` and `COMMIT_PREPARED`.
pub fn commits(table: &RecordTable) -> u64 {
    let is_commit = |opcode| [xact::COMMIT, xact::COMMIT_PREPARED].contains(&opcode);
    table.sum(|record| record.rmgr == TRANSACTION && is_commit(record.opcode())).count
}

impl Ratios {
    /// Computes all ratios of `table`; `page_bytes`: the size of data pages.
    pub fn of(table: &RecordTable, totals: &Totals, page_bytes: u32) -> Ratios {
        Ratios {
            fpi_ratio: ratio(totals.fpi_bytes, totals.total_bytes),
            fpi_record_ratio: ratio(totals.fpi_records, totals.count),
            hot_ratio: Updates::of(table).hot_ratio(),
            write_amplification: ratio(totals.total_bytes, totals.record_bytes()),
            compression_ratio: ratio(totals.fpi_bytes, totals.uncompressed_fpi_bytes(page_bytes)),
        }
    }
}
