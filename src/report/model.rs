//! Everything that is printed, as one typed model: its JSON form is the contract. Keys may be
//! added within a major version of the schema, never renamed or retyped.

pub mod checked;

pub use crate::input::problem::ProblemKind;
pub use crate::scan::ending::EndingKind;
use checked::Checked;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the JSON schema.
pub const SCHEMA: &str = "1.0";

/// A report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The program's version.
    pub walstat: &'static str,
    /// The version of this schema.
    pub schema: &'static str,
    /// What was asked for: `report`, `stats`, `check`.
    pub command: &'static str,
    /// What was read.
    pub input: Input,
    /// From where to where.
    pub range: Range,
    /// Every byte under one heading.
    pub books: Books,
    /// Sums over all counted records.
    pub totals: Row,
    /// Ratios over all counted records.
    pub ratios: Ratios,
    /// Bytes by cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Vec<Why>>,
    /// Sums by resource manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmgrs: Option<Vec<RmgrRow>>,
    /// Sums by record type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<RecordRow>>,
    /// How the WAL ends.
    pub ending: Ending,
    /// What is wrong in the WAL.
    pub problems: Vec<Problem>,
    /// What could be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// What a reader of the numbers should know.
    pub notes: Vec<String>,
    /// What was checked; `None` for commands that check nothing.
    #[serde(flatten)]
    pub checked: Option<Checked>,
    /// Resource managers that `--top` left out.
    #[serde(skip)]
    pub more_rmgrs: Option<More>,
    /// Record types that `--top` left out.
    #[serde(skip)]
    pub more_records: Option<More>,
    /// What the official tool would print around its table; not part of the contract.
    #[serde(skip)]
    pub official: Official,
    /// How long it took; only people are told.
    #[serde(skip)]
    pub elapsed_seconds: f64,
}

/// What was read.
#[derive(Debug, Clone, Serialize)]
pub struct Input {
    /// As given.
    pub paths: Vec<String>,
    /// Segments read.
    pub segments: usize,
    /// Their timelines.
    pub timelines: Vec<u32>,
    /// The cluster.
    pub system_identifier: String,
    /// The release that wrote the WAL.
    pub postgres: &'static str,
    /// The page magic.
    pub magic: String,
    /// Segment size.
    pub segment_bytes: u32,
    /// WAL page size.
    pub page_bytes: u32,
    /// Whether every record's checksum was verified.
    pub checksums_verified: bool,
    /// Files that are no segments of this history.
    pub other_files: Vec<String>,
}

/// From where to where.
#[derive(Debug, Clone, Serialize)]
pub struct Range {
    /// The first record.
    pub start: String,
    /// Behind the last one.
    pub end: String,
    /// The WAL's own clock, RFC 3339.
    pub first_time: Option<String>,
    /// The same at the end.
    pub last_time: Option<String>,
}

/// Every byte of the input under one heading; all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's, which defines them")]
pub struct Books {
    pub input_bytes: u64,
    pub record_bytes: u64,
    pub fpi_bytes: u64,
    pub filtered_bytes: u64,
    pub padding_bytes: u64,
    pub page_header_bytes: u64,
    pub continuation_bytes: u64,
    pub switch_bytes: u64,
    pub overwritten_bytes: u64,
    pub incomplete_bytes: u64,
    pub stale_bytes: u64,
    pub zero_bytes: u64,
    pub duplicate_bytes: u64,
    pub damaged_bytes: u64,
    /// Signed, so that a mistake in either direction shows; 0 always.
    pub unaccounted_bytes: i64,
}

/// Sums over a set of records, as the contract defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's, which defines them")]
pub struct Row {
    pub count: u64,
    pub record_bytes: u64,
    pub fpi_bytes: u64,
    pub total_bytes: u64,
    pub main_data_bytes: u64,
    pub block_data_bytes: u64,
    pub header_bytes: u64,
    pub fpi_count: u64,
    pub fpi_records: u64,
    pub fpi_apply_count: u64,
    pub fpi_check_count: u64,
    pub uncompressed_fpi_bytes: u64,
}

impl Row {
    /// Main data and record header: what the official tool called the record's size before
    /// BUG #14687 was fixed.
    pub fn main_data_only_bytes(&self) -> u64 {
        self.main_data_bytes + 24 * self.count
    }
}

/// Ratios, fractions; `null`: nothing to divide by.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's, which defines them")]
pub struct Ratios {
    pub fpi_ratio: Option<f64>,
    pub fpi_record_ratio: Option<f64>,
    pub hot_ratio: Option<f64>,
    pub write_amplification: Option<f64>,
    pub bytes_per_commit: Option<f64>,
    pub compression_ratio: Option<f64>,
    /// `COMMIT` and `COMMIT_PREPARED` records.
    pub commits: u64,
}

/// Rows of a table that are not shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct More {
    /// How many.
    pub rows: usize,
    /// Their sums.
    pub row: Row,
    /// Their part of the table.
    pub shares: Shares,
}

/// A row's part of the whole table, in percent; 0 where the table's sum is 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Of all records.
    pub count: f64,
    /// Of all record bytes.
    pub record: f64,
    /// Of all image bytes.
    pub fpi: f64,
    /// Of all bytes.
    pub total: f64,
}

impl Shares {
    /// The shares of `row` in `all`, by the arithmetic of `pg_waldump`.
    pub fn of(row: &Row, all: &Row) -> Shares {
        Shares {
            count: percent(row.count, all.count),
            record: percent(row.record_bytes, all.record_bytes),
            fpi: percent(row.fpi_bytes, all.fpi_bytes),
            total: percent(row.total_bytes, all.total_bytes),
        }
    }
}

/// `100 × a / b`, 0 if there is nothing to divide by.
pub fn percent(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { 100.0 * a as f64 / b as f64 }
}

/// Bytes of one cause.
#[derive(Debug, Clone, Serialize)]
pub struct Why {
    /// The cause, for programs.
    pub cause: &'static str,
    /// The cause, for people.
    pub label: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Of all bytes of the counted records.
    pub share: Option<f64>,
}

/// Sums of one resource manager.
#[derive(Debug, Clone, Serialize)]
pub struct RmgrRow {
    /// Its name.
    pub rmgr: String,
    /// Its id.
    pub id: u8,
    /// The sums.
    #[serde(flatten)]
    pub row: Row,
    /// Its part of the table.
    #[serde(skip)]
    pub shares: Shares,
}

/// Sums of one record type.
#[derive(Debug, Clone, Serialize)]
pub struct RecordRow {
    /// The resource manager's name.
    pub rmgr: String,
    /// The record's name.
    pub record: String,
    /// `xl_info & 0xF0`.
    pub info: String,
    /// The sums.
    #[serde(flatten)]
    pub row: Row,
    /// Its part of the table.
    #[serde(skip)]
    pub shares: Shares,
}

/// How the WAL ends.
#[derive(Debug, Clone, Serialize)]
pub struct Ending {
    /// How.
    pub kind: EndingKind,
    /// Where the next record would start.
    pub lsn: String,
    /// The segment of that place.
    pub segment: String,
    /// One sentence.
    pub text: String,
}

/// Something wrong in the WAL.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// The kind.
    pub kind: ProblemKind,
    /// Segment file.
    pub segment: String,
    /// Where; `null` if it is about the whole file.
    pub lsn: Option<String>,
    /// The same as an offset in the segment.
    pub offset: Option<u64>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Bytes that were left out for it.
    pub skipped_bytes: u64,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a change.
    Warning,
    /// Worth a change today.
    Critical,
}

/// What an advice rule found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// The numbers compared.
    pub evidence: BTreeMap<&'static str, f64>,
    /// What to look at.
    pub advice: Vec<String>,
    /// What that costs.
    pub side_effects: Vec<String>,
    /// When it does not matter.
    pub ignore_when: &'static str,
    /// What a change would give, in bytes, once it can be computed.
    pub estimate: Option<u64>,
    /// Where the rule comes from.
    pub source: &'static str,
}

/// What the official tool of the same release prints around its table.
#[derive(Debug, Clone, Default)]
pub struct Official {
    /// The line above the table.
    pub range_line: Option<String>,
    /// The line about what was skipped, and whether it goes to standard error.
    pub skip_line: Option<(String, bool)>,
    /// Prints nothing if no record was counted.
    pub silent_if_empty: bool,
}

/// A report for the tests of what reads one.
#[cfg(test)]
pub mod sample {
    use super::*;

    /// A report with so many image bytes of so many bytes in all.
    pub fn report(fpi_bytes: u64, total_bytes: u64) -> Report {
        let record_bytes = total_bytes - fpi_bytes;
        Report {
            walstat: "0",
            schema: SCHEMA,
            command: "report",
            input: Input {
                paths: vec![],
                segments: 1,
                timelines: vec![1],
                system_identifier: "1".into(),
                postgres: "15",
                magic: "0xD110".into(),
                segment_bytes: 16 << 20,
                page_bytes: 8192,
                checksums_verified: true,
                other_files: vec![],
            },
            range: Range {
                start: "0/01000028".into(),
                end: "0/02000000".into(),
                first_time: None,
                last_time: None,
            },
            books: Books { record_bytes, fpi_bytes, ..Books::default() },
            totals: Row { record_bytes, fpi_bytes, total_bytes, ..Row::default() },
            ratios: Ratios {
                fpi_ratio: crate::analyse::ratios::ratio(fpi_bytes, total_bytes),
                compression_ratio: Some(1.0),
                ..Ratios::default()
            },
            why: None,
            rmgrs: None,
            records: None,
            ending: Ending {
                kind: EndingKind::Zeroed,
                lsn: "0/0".into(),
                segment: "".into(),
                text: "".into(),
            },
            problems: vec![],
            findings: None,
            notes: vec![],
            checked: None,
            more_rmgrs: None,
            more_records: None,
            official: Official::default(),
            elapsed_seconds: 0.0,
        }
    }
}
