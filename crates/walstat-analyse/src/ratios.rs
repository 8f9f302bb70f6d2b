//! The contract's ratios, once: computed here, carried in the model, only formatted elsewhere.

use super::sums::Sums;
use super::totals::RecordTable;
use super::volume::Volume;
use serde::{Deserialize, Serialize};
use walstat_format::payload::heap;
use walstat_format::rmgr::HEAP;

/// `a / b`, or nothing if there is nothing to divide by.
pub fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// Ratios over a set of records: fractions where not said otherwise, `null` where there is
/// nothing to divide by; and what they are of where nothing else says that.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratios {
    /// Image bytes of all bytes.
    pub fpi_ratio: Option<f64>,
    /// Records with an image of all records.
    pub fpi_record_ratio: Option<f64>,
    /// HOT updates of all updates.
    pub hot_ratio: Option<f64>,
    /// All bytes by bytes that are not images (Chen 2017): 1 or more.
    pub write_amplification: Option<f64>,
    /// Bytes of all records in the range by their commits, whatever the filters say.
    #[serde(deserialize_with = "Option::deserialize")]
    pub bytes_per_commit: Option<f64>,
    /// Stored image bytes by what they would be uncompressed.
    pub compression_ratio: Option<f64>,
    /// Commits in the range, whatever the filters say.
    #[serde(default)]
    pub commits: u64,
    /// Heap updates, HOT or not.
    #[serde(default)]
    pub updates: u64,
    /// Bytes of images for hint bits, of all bytes.
    #[serde(default, deserialize_with = "Option::deserialize")]
    pub hint_fpi_ratio: Option<f64>,
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
        Updates { hot: count(heap::HOT_UPDATE), other: count(heap::UPDATE) }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.hot + self.other
    }
}

/// Bytes of images for hint bits.
fn hint_fpi_bytes(table: &RecordTable) -> u64 {
    table.sum(|record| record.is_hint_image()).fpi_bytes
}

impl Ratios {
    /// Computes all ratios of `table`; `all`: its sums, `range`: what there was before filters.
    pub fn of(table: &RecordTable, all: &Sums, range: Volume) -> Ratios {
        let updates = Updates::of(table);
        Ratios {
            fpi_ratio: ratio(all.fpi_bytes, all.total_bytes),
            fpi_record_ratio: ratio(all.fpi_records, all.count),
            hot_ratio: ratio(updates.hot, updates.all()),
            write_amplification: ratio(all.total_bytes, all.record_bytes),
            bytes_per_commit: ratio(range.total_bytes, range.commits),
            compression_ratio: ratio(all.fpi_bytes, all.uncompressed_fpi_bytes),
            commits: range.commits,
            updates: updates.all(),
            hint_fpi_ratio: ratio(hint_fpi_bytes(table), all.total_bytes),
        }
    }
}
