//! The model of a check: verdicts, and integrity by group of segments. Filled by
//! `report::check`.

use super::Report;
use super::finding::Severity;
use serde::{Deserialize, Serialize};

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Its name: that of the option, of the rule, `integrity` or `restore`.
    pub check: String,
    /// What kind it is.
    pub kind: CheckKind,
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

impl Default for Check {
    /// One that judged nothing.
    fn default() -> Check {
        Check {
            check: String::new(),
            kind: CheckKind::Integrity,
            verdict: Verdict::Skipped,
            severity: Severity::Info,
            value: None,
            limit: None,
            unit: Unit::None,
            bound: None,
            text: String::new(),
        }
    }
}

named! {
    /// Kinds of checks.
    pub enum CheckKind {
        Integrity "integrity" "The WAL is whole";
        Restore "restore" "The WAL is enough to restore from";
        Budget "budget" "A number and its limit";
        Rule "rule" "An advice rule";
        Gap "gap" "A gap in the WAL that was accepted";
    }
}

named! {
    /// How a check went.
    pub enum Verdict {
        Pass "pass" "It holds";
        Fail "fail" "It is broken";
        Skipped "skipped" "It was not judged; the text says why";
    }
}

named! {
    /// What the numbers of a check are.
    pub enum Unit {
        Bytes "bytes" "Bytes";
        Ratio "ratio" "A fraction";
        Problems "problems" "Problems in the WAL";
        None "none" "No number";
    }
}

named! {
    /// Which side of a limit is good.
    pub enum Bound {
        Max "max" "The value may reach the limit, not pass it";
        Min "min" "The value must reach the limit";
    }
}

/// A gap in the WAL that was accepted: segments that may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceptedGap {
    /// Where the first of them begins.
    pub start_lsn: String,
    /// Where the last of them ends.
    pub end_lsn: String,
    /// Why the segments of this gap may be missing.
    pub because: String,
    /// Whether any of them is.
    pub used: bool,
}

/// What a round with a state has read, and what it knew before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateSummary {
    /// Segments that are as they were when an earlier round read them.
    pub known_segments: u64,
    /// Segments that are new, or were changed.
    pub read_segments: u64,
    /// Of those that are known, how many were read again.
    pub rechecked_segments: u64,
    /// Bytes of segments that were read, uncompressed.
    pub read_bytes: u64,
    /// Up to where the WAL is without a problem.
    pub verified_to: String,
}

/// A group of segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Report {
    /// The checks; none if nothing was checked.
    pub fn checks(&self) -> &[Check] {
        self.checks.as_deref().unwrap_or_default()
    }

    /// The checks with this verdict.
    pub fn checks_that(&self, verdict: Verdict) -> impl Iterator<Item = &Check> {
        self.checks().iter().filter(move |check| check.verdict == verdict)
    }

    /// The worst severity of the broken checks; `None` if none is broken.
    pub fn worst(&self) -> Option<Severity> {
        self.checks_that(Verdict::Fail).map(|check| check.severity).max()
    }
}
