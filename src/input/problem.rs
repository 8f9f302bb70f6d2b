//! What is wrong with the WAL is not an error but a problem: it is reported, and reading goes
//! on.

use crate::wal::lsn::Lsn;

/// Something wrong in the WAL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind, as the contract names it.
    pub kind: &'static str,
    /// Segment file; empty: to be found by the LSN.
    pub segment: String,
    /// Where.
    pub lsn: Option<Lsn>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Bytes that were left out for it.
    pub skipped_bytes: u64,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(kind: &'static str, file: &str, expected: String, found: String) -> Problem {
        Problem { kind, segment: file.to_owned(), lsn: None, expected, found, skipped_bytes: 0 }
    }

    /// More bytes in a file than the segment's own header says.
    pub fn trailing_bytes(file: &str, segment_bytes: u64) -> Problem {
        let found = "more bytes than the segment's own header says".to_owned();
        Problem::of_file("trailing_bytes", file, format!("{segment_bytes} bytes"), found)
    }
}
