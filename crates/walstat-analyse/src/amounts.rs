//! What a share of records adds up to: the sums that every row of every table has.

use super::sums::Numbers;
use serde::{Deserialize, Serialize};

/// Sums over records, or over the parts of records that are charged to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// Records.
    pub count: u64,
    /// Bytes without images.
    pub record_bytes: u64,
    /// Bytes of images.
    pub fpi_bytes: u64,
    /// Images.
    pub fpi_count: u64,
}

impl Amounts {
    /// The sums as a row shows them.
    pub fn numbers(&self) -> Numbers {
        let Amounts { count, record_bytes, fpi_bytes, fpi_count } = *self;
        Numbers { count, record_bytes, fpi_bytes, total_bytes: self.total_bytes(), fpi_count }
    }

    /// Bytes with images.
    pub fn total_bytes(&self) -> u64 {
        self.record_bytes + self.fpi_bytes
    }

    /// What is left of it without `part`.
    pub fn less(&self, part: &Amounts) -> Amounts {
        Amounts {
            count: self.count - part.count,
            record_bytes: self.record_bytes - part.record_bytes,
            fpi_bytes: self.fpi_bytes - part.fpi_bytes,
            fpi_count: self.fpi_count - part.fpi_count,
        }
    }

    /// Adds `other`.
    #[inline(always)]
    pub fn add(&mut self, other: &Amounts) {
        self.count += other.count;
        self.record_bytes += other.record_bytes;
        self.fpi_bytes += other.fpi_bytes;
        self.fpi_count += other.fpi_count;
    }
}
