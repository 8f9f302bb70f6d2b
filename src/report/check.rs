//! Checks: the report held against what was asked of it. Budgets come in, verdicts go out; what
//! a verdict looks like is the renderers' affair.

use super::advice::RULES;
use super::annotation::{self, Places};
use super::baseline::Baseline;
use super::budget::{Budgets, MAX_GROWTH, MIN_VOLUME};
use super::model::checked::{Bound, Check, Checked, Kind, Unit, Verdict, Verified};
use super::model::{Report, Severity};
use super::segment_group::groups;
use std::collections::BTreeMap;

/// What a report is held against.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The limits.
    pub budgets: &'a Budgets,
    /// The earlier report, if growth is to be judged.
    pub baseline: Option<&'a Baseline>,
    /// The verdict on a restore, if one was asked for.
    pub restore: Option<Check>,
    /// Where the files are.
    pub places: &'a Places,
    /// The names of the segments read, ascending.
    pub segments: &'a [String],
}

/// Judges `report` and puts the result into it.
pub fn judge(report: &mut Report, asked: Asked<'_>) {
    let Asked { budgets, baseline, restore, places, segments } = asked;
    let mut checks = vec![integrity(report)];
    checks.extend(restore);
    checks.extend(ratio_budgets(report, budgets));
    checks.extend(byte_budgets(report, budgets));
    checks.extend(baseline.map(|baseline| growth(report, baseline, budgets)));
    if let Some(fail_on) = budgets.fail_on {
        checks.extend(rules(report, fail_on));
    }
    report.checked = Some(Checked {
        annotations: annotation::annotations(report, &checks, places),
        segment_groups: groups(segments, &report.problems),
        verified: verified(report),
        checks,
    });
}

fn verified(report: &Report) -> Verified {
    let bytes = report.books.input_bytes;
    let seconds = report.elapsed_seconds;
    Verified {
        segments: report.input.segments,
        bytes,
        records: report.totals.count,
        checksums: report.input.checksums_verified,
        seconds,
        bytes_per_second: (seconds > 0.0).then(|| bytes as f64 / seconds),
        finished: jiff::Timestamp::now().as_microsecond(),
    }
}

fn integrity(report: &Report) -> Check {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in &report.problems {
        *kinds.entry(problem.kind.name()).or_default() += 1;
    }
    let count = report.problems.len();
    let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let checksums = match report.input.checksums_verified {
        true => "every checksum verified",
        false => "checksums not verified",
    };
    let text = match count {
        0 => format!("contiguous and intact, {checksums}"),
        _ => format!("{}; {} bytes damaged", kinds.join(", "), report.books.damaged_bytes),
    };
    Check {
        check: "integrity".into(),
        kind: Kind::Integrity,
        verdict: if count == 0 { Verdict::Pass } else { Verdict::Fail },
        severity: Severity::Critical,
        value: Some(count as f64),
        limit: Some(0.0),
        unit: Unit::Problems,
        bound: Some(Bound::Max),
        text,
    }
}

/// A number, its limit, and how to speak of them.
struct Budget {
    name: &'static str,
    unit: Unit,
    bound: Bound,
    what: &'static str,
    /// Why there may be no number.
    without: &'static str,
    value: Option<f64>,
    limit: f64,
}

impl Budget {
    fn judge(self) -> Check {
        let holds = |value: f64| match self.bound {
            Bound::Max => value <= self.limit,
            Bound::Min => value >= self.limit,
        };
        let verdict = match self.value.map(holds) {
            Some(true) => Verdict::Pass,
            Some(false) => Verdict::Fail,
            None => Verdict::Skipped,
        };
        let text = match self.value {
            None => format!("nothing to judge: {}", self.without),
            Some(value) => {
                let side = if self.bound == Bound::Max { "at most" } else { "at least" };
                let (value, limit) = (self.unit.amount(value), self.unit.amount(self.limit));
                format!("{} {value}, {side} {limit} allowed", self.what)
            }
        };
        Check {
            check: self.name.into(),
            kind: Kind::Budget,
            verdict,
            severity: Severity::Warning,
            value: self.value,
            limit: Some(self.limit),
            unit: self.unit,
            bound: Some(self.bound),
            text,
        }
    }
}

impl Unit {
    /// A number of this unit, exact enough to tell a value from its limit.
    fn amount(self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{:.2} %", value * 100.0),
            Unit::Bytes => format!("{value:.0} bytes"),
            Unit::Problems | Unit::None => value.to_string(),
        }
    }
}

fn ratio_budgets(report: &Report, budgets: &Budgets) -> Vec<Check> {
    let ratios = &report.ratios;
    let max_fpi = budgets.max_fpi_ratio.map(|limit| Budget {
        name: "max-fpi-ratio",
        unit: Unit::Ratio,
        bound: Bound::Max,
        what: "share of full page images in all bytes:",
        without: "no record",
        value: ratios.fpi_ratio,
        limit: limit.0,
    });
    let min_hot = budgets.min_hot_ratio.map(|limit| Budget {
        name: "min-hot-ratio",
        unit: Unit::Ratio,
        bound: Bound::Min,
        what: "share of HOT updates in all updates:",
        without: "no update",
        value: ratios.hot_ratio,
        limit: limit.0,
    });
    let checks = max_fpi.into_iter().chain(min_hot).map(Budget::judge);
    let volume = report.totals.total_bytes;
    let gate = budgets.min_volume.unwrap_or(MIN_VOLUME).0;
    checks
        .map(|check| if volume < gate { below_gate(check, volume, gate) } else { check })
        .collect()
}

/// A ratio of too little WAL to say anything.
fn below_gate(check: Check, volume: u64, gate: u64) -> Check {
    let text = format!("not judged: {volume} bytes of records are less than --min-volume {gate}");
    Check { verdict: Verdict::Skipped, text, ..check }
}

fn byte_budgets(report: &Report, budgets: &Budgets) -> Vec<Check> {
    let per_commit = budgets.max_bytes_per_commit.map(|limit| Budget {
        name: "max-bytes-per-commit",
        unit: Unit::Bytes,
        bound: Bound::Max,
        what: "WAL per commit:",
        without: "no commit",
        value: report.ratios.bytes_per_commit,
        limit: limit.0 as f64,
    });
    let wal = budgets.max_wal_bytes.map(|limit| Budget {
        name: "max-wal-bytes",
        unit: Unit::Bytes,
        bound: Bound::Max,
        what: "records in all:",
        without: "no record",
        value: Some(report.totals.total_bytes as f64),
        limit: limit.0 as f64,
    });
    per_commit.into_iter().chain(wal).map(Budget::judge).collect()
}

/// The bytes per commit against those of an earlier report.
fn growth(report: &Report, baseline: &Baseline, budgets: &Budgets) -> Check {
    let now = report.ratios.bytes_per_commit;
    let then = baseline.bytes_per_commit.filter(|bytes| *bytes > 0.0);
    let budget = Budget {
        name: "max-growth",
        unit: Unit::Ratio,
        bound: Bound::Max,
        what: "growth of WAL per commit:",
        without: if now.is_none() { "no commit" } else { "no commit in the baseline" },
        value: now.zip(then).map(|(now, then)| now / then - 1.0),
        limit: budgets.max_growth.unwrap_or(MAX_GROWTH).0,
    };
    let check = budget.judge();
    let text = match now.zip(then) {
        Some((now, then)) => {
            format!("{} ({now:.0} bytes, {then:.0} in {})", check.text, baseline.path.display())
        }
        None => check.text,
    };
    Check { text, ..check }
}

/// One check a rule: broken by a finding as bad as `fail_on` or worse.
fn rules(report: &Report, fail_on: Severity) -> Vec<Check> {
    let findings = report.findings.as_deref().unwrap_or_default();
    let check = |id: &str| {
        let finding = findings.iter().find(|finding| finding.rule == id);
        let broken = finding.is_some_and(|finding| finding.severity >= fail_on);
        Check {
            check: id.to_owned(),
            kind: Kind::Rule,
            verdict: if broken { Verdict::Fail } else { Verdict::Pass },
            severity: finding.map_or(fail_on, |finding| finding.severity),
            value: None,
            limit: None,
            unit: Unit::None,
            bound: None,
            text: finding.map_or("nothing found".into(), |finding| finding.title.clone()),
        }
    };
    RULES.iter().map(|rule| check(rule.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::budget::{Growth, Ratio, Size};
    use crate::report::model::sample;

    fn judged(mut report: Report, budgets: Budgets, before: Option<f64>) -> Vec<Check> {
        let baseline = before
            .map(|bytes| Baseline { path: "before.json".into(), bytes_per_commit: Some(bytes) });
        let asked = Asked {
            budgets: &budgets,
            baseline: baseline.as_ref(),
            restore: None,
            places: &Places::default(),
            segments: &[],
        };
        judge(&mut report, asked);
        report.checked.map(|checked| checked.checks).unwrap_or_default()
    }

    fn verdict(checks: &[Check], name: &str) -> Option<Verdict> {
        checks.iter().find(|check| check.check == name).map(|check| check.verdict)
    }

    #[test]
    fn a_limit_may_be_reached_but_not_passed() {
        for (limit, want) in [(0.8, Verdict::Pass), (0.79, Verdict::Fail)] {
            let budgets = Budgets { max_fpi_ratio: Some(Ratio(limit)), ..Budgets::default() };
            let checks = judged(sample::report(80 << 20, 100 << 20), budgets, None);
            assert_eq!(verdict(&checks, "max-fpi-ratio"), Some(want), "{limit}");
        }
    }

    #[test]
    fn a_ratio_of_little_wal_is_not_judged() {
        let limit = Some(Ratio(0.1));
        let budgets =
            |min_volume| Budgets { max_fpi_ratio: limit, min_volume, ..Budgets::default() };
        let report = || sample::report(8 << 20, 10 << 20);
        let checks = judged(report(), budgets(None), None);
        assert_eq!(verdict(&checks, "max-fpi-ratio"), Some(Verdict::Skipped));
        let checks = judged(report(), budgets(Some(Size(10 << 20))), None);
        assert_eq!(verdict(&checks, "max-fpi-ratio"), Some(Verdict::Fail));
    }

    #[test]
    fn what_is_no_number_is_not_judged() {
        let budgets = Budgets {
            min_hot_ratio: Some(Ratio(0.5)),
            max_bytes_per_commit: Some(Size(1)),
            ..Budgets::default()
        };
        let checks = judged(sample::report(0, 100 << 20), budgets, Some(100.0));
        for name in ["min-hot-ratio", "max-bytes-per-commit", "max-growth"] {
            assert_eq!(verdict(&checks, name), Some(Verdict::Skipped), "{name}");
        }
    }

    #[test]
    fn growth_is_measured_on_the_baseline() {
        for (before, want) in [(1000.0, Verdict::Pass), (999.0, Verdict::Fail)] {
            let mut report = sample::report(0, 1);
            report.ratios.bytes_per_commit = Some(1250.0);
            let budgets = Budgets { max_growth: Some(Growth(0.25)), ..Budgets::default() };
            let checks = judged(report, budgets, Some(before));
            assert_eq!(verdict(&checks, "max-growth"), Some(want), "{before}");
        }
    }

    #[test]
    fn rules_break_from_their_severity_on() {
        let verdict_at = |fail_on| {
            let mut report = sample::report(80 << 20, 100 << 20);
            report.findings = Some(crate::report::advice::findings(&report));
            let budgets = Budgets { fail_on: Some(fail_on), ..Budgets::default() };
            verdict(&judged(report, budgets, None), "fpi-ratio")
        };
        assert_eq!(verdict_at(Severity::Warning), Some(Verdict::Fail));
        assert_eq!(verdict_at(Severity::Critical), Some(Verdict::Pass));
    }
}
