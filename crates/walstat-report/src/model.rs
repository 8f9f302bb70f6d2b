//! Everything that a program sees of a result, as one typed model: its serde form is the JSON of
//! the contract, and reads back. Keys may be added within a major version of the schema, never
//! renamed or retyped. What only people see is in [`view`].

pub mod checked;
pub mod diff;
pub mod estimate;
pub mod events;
pub mod filters;
pub mod finding;
pub mod follow;
pub mod kind;
pub mod large;
pub mod names;
pub mod percent;
pub mod records;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod settings;
pub mod size;
pub mod table;
pub mod threshold;
mod unfilled;
pub mod update;
pub mod view;
pub mod whatif;
pub mod when;
pub mod who;
pub mod window;

pub use table::{RecordRow, RmgrRow, Table};
pub use walstat_analyse::ratios::Ratios;
pub use walstat_analyse::sums::{Numbers, Sums};
pub use walstat_analyse::why::ByteCause;
pub use walstat_read::input::input_kind::InputKind;
pub use walstat_read::input::problem::ProblemKind;
pub use walstat_read::scan::ending::EndingKind;

use checked::{AcceptedGap, Check, SegmentGroup, StateSummary};
use filters::Filters;
use finding::Finding;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use threshold::Thresholds;
use walstat_analyse::ratios::ratio;
use walstat_format::data_page::DEFAULT_PAGE_BYTES;
use walstat_format::ordered::OrderBy;

/// The version of the JSON schema.
pub const SCHEMA: &str = "1.0";

/// What a file says of its schema, to be shown if it is a number: else the file may be any.
pub fn shown_schema(found: &str) -> &str {
    let is_number = found.len() <= 8 && found.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_number && !found.is_empty() { found } else { "without a number" }
}
/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

named! {
    /// Commands that have a result.
    pub enum CommandName {
        Report "report" "The report";
        Stats "stats" "Statistics only";
        Check "check" "Integrity and budgets";
        Names "names" "Names of relations";
        Events "events" "What was done to tables";
        WhatIf "whatif" "Predicted WAL under other settings";
        Diff "diff" "Two reports side by side";
        Window "window" "From where to where recovery can go";
    }
}

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The program's version.
    pub walstat: String,
    /// The version of this schema.
    pub schema: String,
    /// What was asked for.
    pub command: CommandName,
    /// What was read.
    pub input: Input,
    /// From where to where.
    pub range: Range,
    /// Every byte under one heading.
    pub books: Books,
    /// Sums over all counted records.
    pub totals: Sums,
    /// Ratios over all counted records.
    pub ratios: Ratios,
    /// Bytes by cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Vec<Why>>,
    /// What maintenance wrote, most first; what somebody else did meanwhile is not in it. Some bytes are
    /// in two rows: the images of an index that a refresh builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Vec<MaintenanceRow>>,
    /// Sums by resource manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmgrs: Option<Table<RmgrRow>>,
    /// Sums by record type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Table<RecordRow>>,
    /// Sums by fork of a relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relations: Option<Table<who::RelationRow>>,
    /// Which names of relations are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<who::NamesSummary>,
    /// Sums by table, with its indexes and TOAST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Table<who::WholeTableRow>>,
    /// Sums by database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub databases: Option<Table<who::DatabaseRow>>,
    /// Sums by tablespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tablespaces: Option<Table<who::TablespaceRow>>,
    /// Sums by fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<Table<who::ForkRow>>,
    /// The hottest blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<who::Blocks>,
    /// The largest transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<who::Transactions>,
    /// Sums by kind of transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Table<kind::KindRow>>,
    /// The largest kinds of a sample of transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_sample: Option<kind::KindSample>,
    /// When WAL was written, in a few numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<when::Overview>,
    /// Settings of the server, where its data directory is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<settings::Settings>,
    /// What lies in the server's `pg_wal`, and what keeps it there, where that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pg_wal: Option<follow::PgWal>,
    /// What other settings would have written, estimated from a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimates: Option<estimate::Estimates>,
    /// Transactions that wrote a good part of the WAL of their time, largest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_transactions: Option<Vec<large::LargeTransactionRow>>,
    /// The same by what they did to which table, with all refreshes of materialized views.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_work: Option<Vec<large::LargeWorkRow>>,
    /// WAL volume extrapolated to 24 hours in which the server runs, in bytes; absent if it ran for less than
    /// ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_a_day: Option<u64>,
    /// Where the advice rules speak, if that is not the default.
    #[serde(default, skip_serializing_if = "Thresholds::are_default")]
    pub thresholds: Thresholds,
    /// What all advice with settings comes to together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice_together: Option<finding::Together>,
    /// WAL over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<when::Timeline>,
    /// By checkpoint cycle, in WAL order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Table<when::CheckpointRow>>,
    /// What they come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_summary: Option<when::CheckpointSummary>,
    /// What a crash would make the server replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<when::Recovery>,
    /// How fast WAL grows, and what keeps up with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<when::Replication>,
    /// Commits, and what they ask of a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<when::Commits>,
    /// What the same workload would have written under other settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whatif: Option<whatif::WhatIf>,
    /// From where to where recovery can go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<window::Window>,
    /// How the WAL ends.
    pub ending: Ending,
    /// What is wrong in the WAL.
    pub problems: Vec<Problem>,
    /// What could be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// What a reader of the numbers should know.
    pub notes: Vec<String>,
    /// One verdict each, of `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<Check>>,
    /// What was remembered and what was read, of a round with a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSummary>,
    /// Segments that may be missing, as far as any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_gaps: Option<Vec<AcceptedGap>>,
    /// Integrity by group of segments, as archives group them in directories; of `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_groups: Option<Vec<SegmentGroup>>,
}

/// The answer where there is no report: the input cannot be read as WAL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unreadable {
    /// The program's version.
    pub walstat: String,
    /// The version of this schema.
    pub schema: String,
    /// What was asked for.
    pub command: CommandName,
    /// The line that stands on standard error too.
    pub error: String,
}

impl Unreadable {
    /// The answer to `command`: why there is no other one.
    pub fn new(command: CommandName, error: String) -> Unreadable {
        Unreadable { walstat: VERSION.to_owned(), schema: SCHEMA.to_owned(), command, error }
    }
}

/// Data pages if no image tells their size: the default of every release.
pub(crate) const DEFAULT_DATA_PAGE_BYTES: u32 = DEFAULT_PAGE_BYTES as u32;

impl Report {
    /// Size of data pages, as an image told it or by default.
    pub(crate) fn data_page_bytes(&self) -> u32 {
        self.input.data_page_bytes.unwrap_or(DEFAULT_DATA_PAGE_BYTES)
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    pub postgres: String,
    /// The page magic.
    pub magic: String,
    /// Segment size.
    pub segment_bytes: u32,
    /// WAL page size.
    pub page_bytes: u32,
    /// Size of data pages; absent where no image tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_page_bytes: Option<u32>,
    /// Whether every record's checksum was verified.
    pub checksums_verified: bool,
    /// What a segment's name promises here.
    pub taken_for: InputKind,
    /// The filters that were on.
    pub filters: Filters,
    /// Files that are no segments of this history.
    pub other_files: Vec<String>,
}

/// From where to where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Range {
    /// The first record.
    pub start: String,
    /// After the last one.
    pub end: String,
    /// The WAL's own clock, RFC 3339.
    pub first_time: Option<String>,
    /// The same at the end.
    pub last_time: Option<String>,
}

/// Every byte of the input under one heading; all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The unused rest of segments that were closed early is worth a word from this share of what was read on.
const CLOSED_EARLY_RATIO: f64 = 0.1;

impl Books {
    /// The share of what was read that is the unused rest of segments that were closed early.
    pub(crate) fn switch_ratio(&self) -> Option<f64> {
        ratio(self.switch_bytes, self.input_bytes)
    }

    /// The same, where it is worth a word.
    pub fn closed_early_ratio(&self) -> Option<f64> {
        self.switch_ratio().filter(|share| *share >= CLOSED_EARLY_RATIO)
    }
}

/// Bytes of one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// The cause, for programs.
    pub cause: ByteCause,
    /// The cause, for people.
    pub label: String,
    /// Bytes.
    pub bytes: u64,
    /// Images among them.
    #[serde(default)]
    pub fpi_bytes: u64,
    /// Of all bytes of the counted records.
    pub share: Option<f64>,
}

impl Why {
    /// Puts them in the order in which they are told, most first. What is left comes last, however much it
    /// is.
    pub(crate) fn sort(rows: &mut [Why]) {
        rows.order_by_key(|row| (row.cause == ByteCause::Other, Reverse(row.bytes)));
    }
}

named! {
    /// What keeps a server in order.
    pub enum Maintenance {
        Vacuum "vacuum" "vacuum";
        NewPages "new_pages" "index builds, rewrites, copies";
        Refresh "refresh" "refreshes of materialized views";
        Backup "backup" "base backups (images after them)";
    }
}

/// What one kind of maintenance wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaintenanceRow {
    /// The work, for programs.
    pub work: Maintenance,
    /// The work, for people.
    pub label: String,
    /// Bytes.
    pub bytes: u64,
    /// How much of them is images.
    pub fpi_bytes: u64,
    /// Of all bytes of the counted records.
    pub share: Option<f64>,
}

/// How the WAL ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
