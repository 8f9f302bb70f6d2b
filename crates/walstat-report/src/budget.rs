//! Budgets: what a check is asked to hold. Each is one row of [`OPTIONS`], which the command line,
//! `walstat.toml` and [`super::check`] read.

use super::amount::{AmountError, Growth, Ratio, Size};
use super::model::Report;
use super::model::checked::{Bound, Check, CheckKind, Unit, Verdict};
use super::model::finding::Severity;
use super::model::percent::percent;
use super::model::threshold::{MIN_UPDATES, MIN_VOLUME_BYTES};
use std::path::PathBuf;
use std::str::FromStr;

/// All budgets; `None` is not asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budgets {
    /// Most image bytes of all bytes.
    pub max_fpi_ratio: Option<Ratio>,
    /// Fewest HOT updates of all updates.
    pub min_hot_ratio: Option<Ratio>,
    /// Below so many bytes of records, the two ratios are not judged.
    pub min_volume: Option<Size>,
    /// Below so many updates, their HOT share is not judged.
    pub min_updates: Option<u64>,
    /// Most bytes of the range per commit.
    pub max_bytes_per_commit: Option<Size>,
    /// Most bytes of records, as `pg_stat_wal.wal_bytes` counts them.
    pub max_wal_bytes: Option<Size>,
    /// Advice of this severity or a worse one breaks the check.
    pub fail_on: Option<Severity>,
    /// An earlier report.
    pub baseline: Option<PathBuf>,
    /// Most growth of the bytes per commit over the baseline.
    pub max_growth: Option<Growth>,
}

/// How much the bytes per commit may grow over a baseline, if nothing else is said.
pub(crate) const MAX_GROWTH: Growth = Growth(0.10);

/// A budget as it is asked for: `--name VALUE`, or the key `name` in `walstat.toml`.
#[derive(Debug)]
pub struct BudgetOption {
    /// Its name.
    pub name: &'static str,
    /// What its value is called.
    pub value_name: &'static str,
    /// What its value may be; empty: whatever [`BudgetOption::set`] takes.
    pub values: &'static [&'static str],
    /// What it asks for.
    pub help: &'static str,
    /// Takes the value as it was written.
    pub set: fn(&mut Budgets, &str) -> Result<(), AmountError>,
    /// How a report is held against it, if it is a limit on one number of it.
    pub(crate) limit: Option<Limit>,
}

/// A limit on a number of the report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// How to speak of it.
    pub(crate) words: Words,
    /// The number.
    pub(crate) value: fn(&Report) -> Option<f64>,
    /// The limit, if it was asked for.
    pub(crate) limit: fn(&Budgets) -> Option<f64>,
    /// Why the number says too little to be judged.
    pub(crate) gate: fn(&Report, &Budgets) -> Option<String>,
}

/// What a number is, and how to speak of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    /// What the number is.
    pub(crate) unit: Unit,
    /// Which side of the limit is good.
    pub(crate) bound: Bound,
    /// What it is of.
    pub(crate) what: &'static str,
    /// Why there may be none.
    pub(crate) without: &'static str,
}

impl BudgetOption {
    /// Whether the value is a file, which counts from where the option stands.
    pub fn is_file(&self) -> bool {
        matches!(self.value_name, "FILE")
    }
}

/// All budgets, in the order of help and verdicts.
pub const OPTIONS: &[BudgetOption] = &[
    BudgetOption {
        name: "max-fpi-ratio",
        value_name: "RATIO",
        values: &[],
        help: "Highest allowed share of full page images in WAL record bytes, like 0.7 or 70%",
        set: |budgets, text| put(&mut budgets.max_fpi_ratio, text),
        limit: Some(Limit {
            words: Words {
                unit: Unit::Ratio,
                bound: Bound::Max,
                what: "share of full page images in all bytes:",
                without: "no record",
            },
            value: |report| report.ratios.fpi_ratio,
            limit: |budgets| budgets.max_fpi_ratio.map(|limit| limit.0),
            gate: little_volume,
        }),
    },
    BudgetOption {
        name: "min-hot-ratio",
        value_name: "RATIO",
        values: &[],
        help: "Lowest allowed share of HOT updates in all updates, like 0.5 or 50%",
        set: |budgets, text| put(&mut budgets.min_hot_ratio, text),
        limit: Some(Limit {
            words: Words {
                unit: Unit::Ratio,
                bound: Bound::Min,
                what: "share of HOT updates in all updates:",
                without: "no update",
            },
            value: |report| report.ratios.hot_ratio,
            limit: |budgets| budgets.min_hot_ratio.map(|limit| limit.0),
            gate: |report, budgets| {
                little_volume(report, budgets).or_else(|| few_updates(report, budgets))
            },
        }),
    },
    BudgetOption {
        name: "min-volume",
        value_name: "SIZE",
        values: &[],
        help: "Skip --max-fpi-ratio and --min-hot-ratio where there are fewer bytes of records: \
               an idle server writes almost nothing but images [default: 16MB]",
        set: |budgets, text| put(&mut budgets.min_volume, text),
        limit: None,
    },
    BudgetOption {
        name: "min-updates",
        value_name: "N",
        values: &[],
        help: "Skip --min-hot-ratio where there are fewer updates [default: 1000]",
        set: |budgets, text| {
            let number = text.trim().parse().map_err(|_| AmountError("a number like 1000"))?;
            budgets.min_updates = Some(number);
            Ok(())
        },
        limit: None,
    },
    BudgetOption {
        name: "max-bytes-per-commit",
        value_name: "SIZE",
        values: &[],
        help: "Highest allowed WAL bytes per commit; filters do not change it",
        set: |budgets, text| put(&mut budgets.max_bytes_per_commit, text),
        limit: Some(Limit {
            words: Words {
                unit: Unit::Bytes,
                bound: Bound::Max,
                what: "WAL per commit:",
                without: "no commit",
            },
            value: |report| report.ratios.bytes_per_commit,
            limit: |budgets| budgets.max_bytes_per_commit.map(|limit| limit.0 as f64),
            gate: |_, _| None,
        }),
    },
    BudgetOption {
        name: "max-wal-bytes",
        value_name: "SIZE",
        values: &[],
        help: "Highest allowed total of WAL record bytes, as pg_stat_wal.wal_bytes counts them, like 10GB",
        set: |budgets, text| put(&mut budgets.max_wal_bytes, text),
        limit: Some(Limit {
            words: Words {
                unit: Unit::Bytes,
                bound: Bound::Max,
                what: "records in all:",
                without: "no record",
            },
            value: |report| Some(report.totals.total_bytes as f64),
            limit: |budgets| budgets.max_wal_bytes.map(|limit| limit.0 as f64),
            gate: |_, _| None,
        }),
    },
    BudgetOption {
        name: "fail-on",
        value_name: "SEVERITY",
        values: &["warning", "critical"],
        help: "Advice of this severity or a worse one is a failure; walstat rules says which rule \
               is critical from where on",
        set: |budgets, text| {
            let severity = [Severity::Warning, Severity::Critical];
            let severity = severity.into_iter().find(|severity| severity.name() == text);
            budgets.fail_on = severity;
            severity.map(|_| ()).ok_or(AmountError("\"warning\" or \"critical\""))
        },
        limit: None,
    },
    BudgetOption {
        name: "baseline",
        value_name: "FILE",
        values: &[],
        help: "Compare bytes per commit with this earlier report (the output of --format json)",
        set: |budgets, text| {
            budgets.baseline = Some(PathBuf::from(text));
            Ok(())
        },
        limit: None,
    },
    BudgetOption {
        name: "max-growth",
        value_name: "PERCENT",
        values: &[],
        help: "Highest allowed growth over the baseline [default: 10%]",
        set: |budgets, text| put(&mut budgets.max_growth, text),
        limit: None,
    },
];

/// Holds `value` against the limit that was `wanted`.
pub(crate) fn hold(name: &str, words: &Words, value: Option<f64>, wanted: f64) -> Check {
    let Words { unit, bound, what, without } = *words;
    let holds = |value: f64| match bound {
        Bound::Max => value <= wanted,
        Bound::Min => value >= wanted,
    };
    let verdict = match value.map(holds) {
        Some(true) => Verdict::Pass,
        Some(false) => Verdict::Fail,
        None => Verdict::Skipped,
    };
    let text = match value {
        None => format!("nothing to judge: {without}"),
        Some(value) => {
            let (side, verb) = match bound {
                Bound::Max => ("at most", "allowed"),
                Bound::Min => ("at least", "required"),
            };
            format!("{what} {}, {side} {} {verb}", amount(unit, value), amount(unit, wanted))
        }
    };
    Check {
        check: name.to_owned(),
        kind: CheckKind::Budget,
        verdict,
        severity: Severity::Warning,
        value,
        limit: Some(wanted),
        unit,
        bound: Some(bound),
        text,
    }
}

/// A number, exact enough to tell a value from its limit.
fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => percent(value, 2),
        Unit::Bytes => format!("{value:.0} bytes"),
        Unit::Problems | Unit::None => value.to_string(),
    }
}

/// Reads `text` into `budget`.
fn put<T: FromStr<Err = AmountError>>(
    budget: &mut Option<T>,
    text: &str,
) -> Result<(), AmountError> {
    *budget = Some(text.parse()?);
    Ok(())
}

/// A ratio of too little WAL to say anything.
fn little_volume(report: &Report, budgets: &Budgets) -> Option<String> {
    let least = budgets.min_volume.map_or(MIN_VOLUME_BYTES, |size| size.0);
    let volume = report.totals.total_bytes;
    (volume < least)
        .then(|| format!("{volume} bytes of records are less than --min-volume {least}"))
}

/// A ratio of too few updates to say anything.
fn few_updates(report: &Report, budgets: &Budgets) -> Option<String> {
    let least = budgets.min_updates.unwrap_or(MIN_UPDATES);
    let updates = report.ratios.updates;
    (updates < least).then(|| format!("fewer updates ({updates}) than --min-updates {least}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str) -> &'static BudgetOption {
        OPTIONS.iter().find(|option| option.name == name).expect("an option")
    }

    /// Every option leaves its mark on the budgets, and every limit is the one that it asks for.
    #[test]
    fn options_set_what_limits_read() {
        for option in OPTIONS {
            let value = option.values.first().copied().unwrap_or("1");
            let mut budgets = Budgets::default();
            assert_eq!((option.set)(&mut budgets, value), Ok(()), "{}", option.name);
            assert_ne!(budgets, Budgets::default(), "{}", option.name);
            let limits: Vec<&str> = OPTIONS
                .iter()
                .filter(|o| o.limit.is_some_and(|limit| (limit.limit)(&budgets).is_some()))
                .map(|option| option.name)
                .collect();
            let own = option.limit.map(|_| option.name);
            assert_eq!(limits, own.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn defaults_are_those_that_the_help_tells() {
        assert!(option("min-volume").help.contains("[default: 16MB]"));
        assert_eq!("16MB".parse(), Ok(Size(MIN_VOLUME_BYTES)));
        assert!(option("min-updates").help.contains(&format!("[default: {MIN_UPDATES}]")));
        assert!(option("max-growth").help.contains("[default: 10%]"));
        assert_eq!("10%".parse(), Ok(MAX_GROWTH));
    }

    #[test]
    fn the_later_value_wins() {
        let mut budgets = Budgets::default();
        for text in ["0.9", "50%"] {
            assert_eq!((option("max-fpi-ratio").set)(&mut budgets, text), Ok(()));
        }
        assert_eq!(budgets.max_fpi_ratio, Some(Ratio(0.5)));
        assert!((option("fail-on").set)(&mut budgets, "info").is_err());
    }
}
