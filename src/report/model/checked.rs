//! The model of a check: verdicts, what is broken, what was verified. Filled by
//! [`super::super::check`].

use super::Severity;
use serde::Serialize;

/// Everything that was checked.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// One verdict each.
    pub checks: Vec<Check>,
    /// Integrity by group of segments, as archives group them in directories.
    pub segment_groups: Vec<SegmentGroup>,
    /// What was broken, worst first, each with the file it is about.
    #[serde(skip)]
    pub annotations: Vec<Annotation>,
    /// How much was verified, and how fast.
    #[serde(skip)]
    pub verified: Verified,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Its name: that of the option, of the rule, `integrity` or `restore`.
    pub check: String,
    /// What kind it is.
    pub kind: Kind,
    /// How it went.
    pub verdict: Verdict,
    /// How bad it is if it is broken.
    pub severity: Severity,
    /// What was found; `null` where it is no number.
    pub value: Option<f64>,
    /// What was asked for.
    pub limit: Option<f64>,
    /// What the two are.
    pub unit: Unit,
    /// Which side of the limit is good.
    pub bound: Option<Bound>,
    /// One sentence.
    pub text: String,
}

/// Kinds of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The WAL is whole.
    Integrity,
    /// The WAL is enough to restore from.
    Restore,
    /// A number and its limit.
    Budget,
    /// An advice rule.
    Rule,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It is broken.
    Fail,
    /// It was not judged; the text says why.
    Skipped,
}

/// What the numbers of a check are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A fraction.
    Ratio,
    /// Problems in the WAL.
    Problems,
    /// No number.
    None,
}

/// Which side of a limit is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The value may reach the limit, not pass it.
    Max,
    /// The value must reach the limit.
    Min,
}

/// How much was verified, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// When it was done, microseconds since 1970-01-01 UTC.
    pub finished: i64,
}

/// A group of segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentGroup {
    /// The digits that the names share.
    pub group: String,
    /// Segments of it that were read.
    pub segments: usize,
    /// The first one read.
    pub first: Option<String>,
    /// The last one read.
    pub last: Option<String>,
    /// Indexes into the report's problems.
    pub problems: Vec<usize>,
}

/// How loud an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Breaks the run.
    Error,
    /// An advice rule's warning.
    Warning,
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
    /// What is wrong, in one line.
    pub message: String,
    /// The file, relative and with `/` between names.
    pub path: String,
    /// Where in the segment, bytes.
    pub offset: Option<u64>,
    /// 32 hexadecimal digits: rule, segment and LSN, not the numbers found.
    pub fingerprint: String,
}

impl Checked {
    /// Whether a check is broken.
    pub fn is_broken(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == Verdict::Fail)
    }

    /// The worst severity of the broken checks.
    pub fn worst(&self) -> Option<Severity> {
        let broken = self.checks.iter().filter(|check| check.verdict == Verdict::Fail);
        broken.map(|check| check.severity).max()
    }

    /// How many checks have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}
