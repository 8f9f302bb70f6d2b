//! What only renderers need, beside the report: it is not part of the JSON and does not read back.

use super::Report;

/// A report to be rendered.
#[derive(Debug, Clone)]
pub struct View {
    /// The report.
    pub report: Report,
    /// What the official tool would print around its table.
    pub official: Official,
    /// How long reading took; only people are told.
    pub elapsed_seconds: f64,
    /// When it was done, microseconds since 1970-01-01 UTC.
    pub finished: i64,
    /// What a check found broken, worst first, each with the file it is about.
    pub annotations: Vec<Annotation>,
    /// The gaps that were accepted, in the same form.
    pub gaps: Vec<Annotation>,
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

/// How much was verified, and how fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verified {
    /// Segments read.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Records counted.
    pub records: u64,
    /// Whether the checksum of each was verified.
    pub checksums: bool,
    /// How long it took.
    pub seconds: f64,
    /// Bytes by seconds.
    pub bytes_per_second: Option<f64>,
}

/// How loud an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Breaks the run.
    Error,
    /// An advice rule's warning.
    Warning,
    /// Nothing that is broken.
    Note,
}

/// Something that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// A kind of problem, or the name of a check.
    pub rule: String,
    /// The rule in one sentence.
    pub rule_text: String,
    /// How loud.
    pub level: Level,
    /// Whether it is about the WAL itself rather than a limit.
    pub damage: bool,
    /// What is wrong, in one line, without the rule's name.
    pub message: String,
    /// The file, relative and with `/` between names.
    pub path: String,
    /// Where in the segment, bytes.
    pub offset: Option<u64>,
    /// 32 hexadecimal digits: rule, segment and LSN, not the numbers found.
    pub fingerprint: String,
}

impl View {
    /// A view of `report` that was just made.
    pub(crate) fn of(report: Report, official: Official) -> View {
        let finished = jiff::Timestamp::now().as_microsecond();
        View {
            report,
            official,
            elapsed_seconds: 0.0,
            finished,
            annotations: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// How much was verified.
    pub fn verified(&self) -> Verified {
        let bytes = self.report.books.input_bytes;
        let seconds = self.elapsed_seconds;
        Verified {
            segments: self.report.input.segments,
            bytes,
            records: self.report.totals.count,
            checksums: self.report.input.checksums_verified,
            seconds,
            bytes_per_second: (seconds > 0.0).then(|| bytes as f64 / seconds),
        }
    }
}
