//! Why there is so much WAL: every byte of the counted records by its cause.

use super::totals::{RecordTable, Totals};
use crate::wal::rmgr::{RecordType, XLOG};

/// What made WAL. Each byte of a record has one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Images of pages touched for the first time after a checkpoint.
    CheckpointImages,
    /// Images for hint bits (`FPI_FOR_HINT`).
    HintImages,
    /// Whole pages logged at once: index builds, table rewrites, copied databases.
    NewPageImages,
    /// Images stored for consistency checking only.
    CheckImages,
    /// Heap records.
    Rows,
    /// Records of the index types.
    Indexes,
    /// Everything else.
    Other,
}

impl Cause {
    /// In the order in which ties are shown.
    pub const ALL: [Cause; 7] = [
        Cause::CheckpointImages,
        Cause::HintImages,
        Cause::NewPageImages,
        Cause::CheckImages,
        Cause::Rows,
        Cause::Indexes,
        Cause::Other,
    ];

    /// The cause in a few words.
    pub fn label(self) -> &'static str {
        match self {
            Cause::CheckpointImages => "page images after a checkpoint",
            Cause::HintImages => "page images for hint bits",
            Cause::NewPageImages => "page images of new pages",
            Cause::CheckImages => "page images for checking only",
            Cause::Rows => "row data",
            Cause::Indexes => "index entries",
            Cause::Other => "commits, vacuum, other",
        }
    }

    /// The key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Cause::CheckpointImages => "checkpoint_images",
            Cause::HintImages => "hint_images",
            Cause::NewPageImages => "new_page_images",
            Cause::CheckImages => "check_images",
            Cause::Rows => "rows",
            Cause::Indexes => "indexes",
            Cause::Other => "other",
        }
    }
}

const FPI_FOR_HINT: u8 = 0xA;
const FPI: u8 = 0xB;
const FPI_MULTI: u8 = 0xC;

/// Which cause the images of a record type have.
fn image_cause(record: RecordType) -> Cause {
    match (record.rmgr, record.slot) {
        (XLOG, FPI_FOR_HINT) => Cause::HintImages,
        (XLOG, FPI | FPI_MULTI) => Cause::NewPageImages,
        _ => Cause::CheckpointImages,
    }
}

/// Which cause the rest of a record has.
fn record_cause(record: RecordType) -> Cause {
    match (record.rmgr, record.slot & 7) {
        // Heap2: only MULTI_INSERT carries rows, the rest is vacuum and locking.
        (9, 5) => Cause::Rows,
        // Heap: locks carry no rows.
        (10, 6) => Cause::Other,
        (10, _) => Cause::Rows,
        (11..=14 | 16 | 17, _) => Cause::Indexes,
        _ => Cause::Other,
    }
}

/// Bytes by cause, in the order of [`Cause::ALL`]; they add up to all bytes of the records.
pub fn causes(table: &RecordTable) -> [(Cause, u64); 7] {
    let mut sums = Cause::ALL.map(|cause| (cause, 0));
    let mut add = |cause: Cause, bytes: u64| sums[cause as usize].1 += bytes;
    for (record, totals) in table.rows() {
        let Totals { fpi_bytes, fpi_check_bytes, .. } = *totals;
        add(Cause::CheckImages, fpi_check_bytes);
        add(image_cause(record), fpi_bytes - fpi_check_bytes);
        add(record_cause(record), totals.record_bytes());
    }
    sums
}
