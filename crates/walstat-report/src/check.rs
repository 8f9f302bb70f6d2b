//! Checks: the report held against what was asked of it. Budgets come in, verdicts go out; what
//! a verdict looks like is the renderers' affair.

use super::advice::RULES;
use super::annotation::{self, Places};
use super::baseline::Baseline;
use super::budget::{Budgets, MAX_GROWTH, OPTIONS, Words, hold};
use super::model::Report;
use super::model::checked::{AcceptedGap, Bound, Check, CheckKind, Unit, Verdict};
use super::model::finding::Severity;
use super::model::view::View;
use super::segment_group::groups;
use super::table_budget::TableBudget;
use std::collections::BTreeMap;

/// What a report is held against.
#[derive(Debug)]
pub struct Criteria<'a> {
    /// The limits.
    pub budgets: &'a Budgets,
    /// What is asked of single tables.
    pub tables: &'a [TableBudget],
    /// The earlier report, if growth is to be judged.
    pub baseline: Option<&'a Baseline>,
    /// The verdict on a restore, if one was asked for.
    pub restore: Option<Check>,
    /// Where the files are.
    pub places: &'a Places,
    /// The names of the segments read, ascending.
    pub segments: &'a [String],
}

/// Judges a report and puts the result into it, and what renderers need of that beside it.
pub fn judge(view: &mut View, criteria: Criteria<'_>) {
    let Criteria { budgets, tables, baseline, restore, places, segments } = criteria;
    let report = &mut view.report;
    let mut checks = vec![integrity(report)];
    checks.extend(report.accepted_gaps.iter().flatten().map(gap));
    checks.extend(restore);
    checks.extend(limits(report, budgets));
    checks.extend(tables.iter().flat_map(|table| table.checks(report)));
    checks.extend(baseline.map(|baseline| growth(report, baseline, budgets)));
    if let Some(fail_on) = budgets.fail_on {
        checks.extend(rules(report, fail_on));
    }
    report.segment_groups = Some(groups(segments, &report.problems));
    view.annotations = annotation::annotations(report, &checks, places);
    view.gaps = annotation::gaps(&checks, places);
    report.checks = Some(checks);
}

fn integrity(report: &Report) -> Check {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in &report.problems {
        *kinds.entry(problem.kind.name()).or_default() += 1;
    }
    let count = report.problems.len();
    let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let checksums = if report.input.checksums_verified {
        "every checksum verified"
    } else {
        "checksums not verified"
    };
    let gaps = report.accepted_gaps.iter().flatten().filter(|gap| gap.used).count();
    let contiguous = match gaps {
        0 => "contiguous and intact".to_owned(),
        1 => "intact, and contiguous but for 1 accepted gap".to_owned(),
        _ => format!("intact, and contiguous but for {gaps} accepted gaps"),
    };
    let text = match count {
        0 => format!("{contiguous}, {checksums}"),
        _ => format!("{}; {} bytes damaged", kinds.join(", "), report.books.damaged_bytes),
    };
    Check {
        check: "integrity".into(),
        kind: CheckKind::Integrity,
        verdict: if count == 0 { Verdict::Pass } else { Verdict::Fail },
        severity: Severity::Critical,
        value: Some(count as f64),
        limit: Some(0.0),
        unit: Unit::Problems,
        bound: Some(Bound::Max),
        text,
    }
}

/// A gap that was accepted: it breaks nothing, and is told wherever checks are.
fn gap(gap: &AcceptedGap) -> Check {
    let AcceptedGap { start_lsn, end_lsn, because, used } = gap;
    let used = if *used { "used" } else { "not used: no segment of it is missing" };
    Check {
        check: format!("accepted-gap {start_lsn}..{end_lsn}"),
        kind: CheckKind::Gap,
        verdict: Verdict::Pass,
        severity: Severity::Info,
        text: format!("{because} ({used})"),
        ..Check::default()
    }
}

/// Every limit on a number of the report that was asked for.
fn limits(report: &Report, budgets: &Budgets) -> Vec<Check> {
    let asked = OPTIONS.iter().filter_map(|option| {
        let limit = option.limit.as_ref()?;
        Some((option.name, limit, (limit.limit)(budgets)?))
    });
    let checks = asked.map(|(name, limit, wanted)| {
        let value = (limit.value)(report);
        let check = hold(name, &limit.words, value, wanted);
        match value.and_then(|_| (limit.gate)(report, budgets)) {
            Some(why) => {
                Check { verdict: Verdict::Skipped, text: format!("not judged: {why}"), ..check }
            }
            None => check,
        }
    });
    checks.collect()
}

/// The bytes per commit against those of an earlier report.
fn growth(report: &Report, baseline: &Baseline, budgets: &Budgets) -> Check {
    let now = report.ratios.bytes_per_commit;
    let then = baseline.bytes_per_commit.filter(|bytes| *bytes > 0.0);
    let words = Words {
        unit: Unit::Ratio,
        bound: Bound::Max,
        what: "growth of WAL per commit:",
        without: if now.is_none() { "no commit" } else { "no commit in the baseline" },
    };
    let grown = now.zip(then).map(|(now, then)| now / then - 1.0);
    let check = hold("max-growth", &words, grown, budgets.max_growth.unwrap_or(MAX_GROWTH).0);
    let text = match now.zip(then) {
        Some((now, then)) => {
            format!("{} ({now:.0} bytes, {then:.0} in {})", check.text, baseline.path.display())
        }
        None => check.text,
    };
    Check { text, ..check }
}

/// One check a rule that is on: broken by a finding as bad as `fail_on` or worse.
fn rules(report: &Report, fail_on: Severity) -> Vec<Check> {
    let findings = report.findings.as_deref().unwrap_or_default();
    let check = |id: &str| {
        let finding = findings.iter().find(|finding| finding.rule == id);
        let broken = finding.is_some_and(|finding| finding.severity >= fail_on);
        Check {
            check: id.to_owned(),
            kind: CheckKind::Rule,
            verdict: if broken { Verdict::Fail } else { Verdict::Pass },
            severity: finding.map_or(fail_on, |finding| finding.severity),
            value: None,
            limit: None,
            unit: Unit::None,
            bound: None,
            text: finding.map_or("nothing found".into(), |finding| finding.title.clone()),
        }
    };
    let on = RULES.iter().filter(|rule| !report.thresholds.is_off(rule.id));
    on.map(|rule| check(rule.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Growth, Ratio, Size};
    use crate::model::sample;
    use crate::model::view::Official;

    fn judged(report: Report, budgets: Budgets, before: Option<f64>) -> Vec<Check> {
        let baseline = before
            .map(|bytes| Baseline { path: "before.json".into(), bytes_per_commit: Some(bytes) });
        let criteria = Criteria {
            budgets: &budgets,
            tables: &[],
            baseline: baseline.as_ref(),
            restore: None,
            places: &Places::default(),
            segments: &[],
        };
        let mut view = View::of(report, Official::default());
        judge(&mut view, criteria);
        view.report.checks.unwrap_or_default()
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
    fn a_ratio_of_few_updates_is_not_judged() {
        let budgets = |min_updates| Budgets {
            min_hot_ratio: Some(Ratio(0.5)),
            min_updates,
            ..Budgets::default()
        };
        let report = |updates| {
            let mut report = sample::report(0, 100 << 20);
            (report.ratios.hot_ratio, report.ratios.updates) = (Some(0.1), updates);
            report
        };
        for (updates, least, want) in [
            (999, None, Verdict::Skipped),
            (1000, None, Verdict::Fail),
            (999, Some(999), Verdict::Fail),
            (999, Some(0), Verdict::Fail),
        ] {
            let checks = judged(report(updates), budgets(least), None);
            assert_eq!(verdict(&checks, "min-hot-ratio"), Some(want), "{updates} {least:?}");
        }
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
        let verdict_at = |fail_on, images: u64| {
            let mut report = sample::report(images << 20, 100 << 20);
            crate::advice::advise(&mut report);
            let budgets = Budgets { fail_on: Some(fail_on), ..Budgets::default() };
            verdict(&judged(report, budgets, None), "fpi-ratio")
        };
        assert_eq!(verdict_at(Severity::Warning, 80), Some(Verdict::Fail));
        assert_eq!(verdict_at(Severity::Critical, 80), Some(Verdict::Pass));
        assert_eq!(verdict_at(Severity::Critical, 96), Some(Verdict::Fail));
    }
}
