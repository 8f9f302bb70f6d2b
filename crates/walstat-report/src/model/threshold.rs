//! Thresholds: below what volume ratios say nothing, and from where on the advice rules speak.
//! Those of one rule alone are in its file; here are those that more than one place speaks of.

use crate::amount::{AmountError, Ratio, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of records below which shares say little: an idle server writes almost nothing but
/// images after each checkpoint.
pub(crate) const MIN_VOLUME_BYTES: u64 = 16 << 20;
/// Updates below which their HOT share says little: a few, of one table, are no habit.
pub(crate) const MIN_UPDATES: u64 = 1000;
/// A share of at least this counts as "mostly".
pub(crate) const MOSTLY: f64 = 0.5;
/// Above this share of the bytes, images are worth a look. (The rule `fpi-ratio`.)
pub const FPI_RATIO: Threshold =
    Threshold { speaks: Speaks::Above, chen: 0.70, strict: 0.50, relaxed: 0.85, unit: Unit::Ratio };

named! {
    /// Presets of the thresholds of all advice rules.
    pub enum Ruleset {
        Chen "chen" "After Chen 2017, where the first rules come from";
        Strict "strict" "Speaks earlier: for servers that should have nothing to improve";
        Relaxed "relaxed" "Speaks later: of what is worth a change soon";
    }
}

/// What a threshold counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A fraction.
    Ratio,
    /// Whole seconds.
    Seconds,
    /// So many times something else.
    Times,
    /// A whole number in each second.
    PerSecond,
}

/// On which side of its threshold a rule speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// At it and above.
    From,
    /// Above it alone.
    Above,
    /// Below it.
    Below,
}

/// The threshold of an advice rule, in each of the presets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// On which side of it the rule speaks.
    pub speaks: Speaks,
    /// The default.
    pub chen: f64,
    /// Where the rule speaks earlier.
    pub strict: f64,
    /// Where it speaks later.
    pub relaxed: f64,
    /// What the numbers are.
    pub unit: Unit,
}

impl Threshold {
    /// A share from which on a rule speaks, in each of the presets.
    pub(crate) const fn from_share(chen: f64, strict: f64, relaxed: f64) -> Threshold {
        Threshold { speaks: Speaks::From, chen, strict, relaxed, unit: Unit::Ratio }
    }

    /// Its number in a preset.
    pub fn of(&self, ruleset: Ruleset) -> f64 {
        match ruleset {
            Ruleset::Chen => self.chen,
            Ruleset::Strict => self.strict,
            Ruleset::Relaxed => self.relaxed,
        }
    }

    /// When the rule speaks with this number as its threshold: `from 20 % on`.
    pub fn told(&self, number: f64) -> String {
        let number = self.unit.told(number);
        match self.speaks {
            Speaks::From => format!("from {number} on"),
            Speaks::Above => format!("above {number}"),
            Speaks::Below => format!("below {number}"),
        }
    }

    /// The presets in one sentence.
    pub fn presets(&self) -> String {
        let told = |ruleset| self.unit.told(self.of(ruleset));
        let chen = self.told(self.chen);
        let (strict, relaxed) = (told(Ruleset::Strict), told(Ruleset::Relaxed));
        format!("It speaks {chen} (chen, the default), {strict} (strict) or {relaxed} (relaxed).")
    }
}

impl Unit {
    /// Reads a threshold; none is 0, which could mean always or never.
    pub fn read(self, text: &str) -> Result<f64, AmountError> {
        let above_zero = |number: f64, expected| {
            if number.is_finite() && number > 0.0 { Ok(number) } else { Err(AmountError(expected)) }
        };
        match self {
            Unit::Ratio => above_zero(text.parse::<Ratio>()?.0, "a ratio above 0, like 30%"),
            Unit::Seconds => {
                let span = text.parse::<Span>()?;
                let seconds = if span.is_whole_seconds() { span.seconds() } else { 0 };
                above_zero(seconds as f64, "whole seconds above 0, like 30s or 10min")
            }
            Unit::Times => {
                above_zero(text.trim().parse().unwrap_or(0.0), "a number above 0, like 2.5")
            }
            Unit::PerSecond => {
                let number = text.trim().parse::<u32>().unwrap_or(0);
                above_zero(number.into(), "a whole number above 0, like 500")
            }
        }
    }

    /// A number of it in words, with no more digits than it has: `2.5 %`.
    fn told(self, number: f64) -> String {
        // A fraction in percent has digits that nobody wrote: 0.07 * 100.
        let percent = (number * 1e8).round() / 1e6;
        match self {
            Unit::Ratio => format!("{percent} %"),
            Unit::Seconds => format!("{number} s"),
            Unit::Times => format!("{number} times"),
            Unit::PerSecond => format!("{number} a second"),
        }
    }
}

/// The thresholds in force: those of a preset, but for the rules that have one of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thresholds {
    /// The preset.
    pub ruleset: Ruleset,
    /// Thresholds by the id of their rule: a fraction, seconds, times or a number a second.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, f64>,
    /// Rules that are switched off.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub off: BTreeSet<String>,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { ruleset: Ruleset::Chen, set: BTreeMap::new(), off: BTreeSet::new() }
    }
}

impl Thresholds {
    /// Whether nothing else was asked for.
    pub fn are_default(&self) -> bool {
        *self == Thresholds::default()
    }

    /// The number in force for the rule of this id.
    pub fn of(&self, id: &str, threshold: &Threshold) -> f64 {
        self.set.get(id).copied().unwrap_or_else(|| threshold.of(self.ruleset))
    }

    /// Whether a rule is switched off.
    pub fn is_off(&self, id: &str) -> bool {
        self.off.contains(id)
    }
}
