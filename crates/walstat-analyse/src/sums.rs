//! Sums over a set of records, by the names and definitions of the contract: what JSON, CSV and
//! every table show. What is added up a record is in [`super::totals`].

use serde::{Deserialize, Serialize};
use walstat_format::record_header::RECORD_HEADER_BYTES;

sums! {
    /// Sums over a set of records; bytes are stored bytes where not said otherwise.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Sums {
        /// Records.
        count,
        /// Total length without images.
        record_bytes,
        /// Images.
        fpi_bytes,
        /// Both.
        total_bytes,
        /// Main data, a part of `record_bytes`.
        main_data_bytes,
        /// Block data, a part of `record_bytes`.
        block_data_bytes,
        /// The rest of `record_bytes`: record, block and image headers.
        header_bytes,
        /// Images.
        fpi_count,
        /// Records with at least one image.
        fpi_records,
        /// Images that are replayed.
        fpi_apply_count,
        /// Images that are stored for consistency checking only.
        fpi_check_count,
        /// What the images would be uncompressed: page size without the hole; for pages of 8192 bytes where
        /// `data_page_bytes` is null.
        uncompressed_fpi_bytes,
    }
}

sums! {
    /// The sums that every row of every table has.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Numbers {
        /// Records.
        count,
        /// Total length without images.
        record_bytes,
        /// Images.
        fpi_bytes,
        /// Both.
        total_bytes,
        /// Images.
        fpi_count,
    }
}

impl Sums {
    /// Those of them that every row has.
    pub fn numbers(&self) -> Numbers {
        let Sums { count, record_bytes, fpi_bytes, total_bytes, fpi_count, .. } = *self;
        Numbers { count, record_bytes, fpi_bytes, total_bytes, fpi_count }
    }

    /// Main data and record header: what the official tool called the record's size before
    /// BUG #14687 was fixed.
    pub fn main_data_only_bytes(&self) -> u64 {
        self.main_data_bytes + RECORD_HEADER_BYTES as u64 * self.count
    }
}
