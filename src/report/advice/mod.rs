//! Advice: rules that look at a report and may find something worth a change.
//!
//! A rule is one file in `rules/`: what it looks at, its threshold, the volume below which it
//! is silent, its evidence, what to do and at what price, when to ignore it, its source.

mod rules;

use super::model::finding::{Finding, Together};
use super::model::{CommandName, Report};

/// An advice rule.
#[derive(Debug)]
pub struct Rule {
    /// Its id: also its file's name.
    pub id: &'static str,
    /// What it looks at, in one sentence.
    pub summary: &'static str,
    /// Its file: the doc comment at the top explains it.
    pub text: &'static str,
    /// Looks at a report.
    pub check: fn(&Report) -> Option<Finding>,
}

/// All rules, in the order in which their findings are told.
pub const RULES: &[Rule] = &[
    rules::consistency_checking::RULE,
    rules::checkpoint_spacing::RULE,
    rules::wal_compression::RULE,
    rules::fpi_ratio::RULE,
    rules::hint_images::RULE,
    rules::burst_after_checkpoint::RULE,
    rules::hot_ratio::RULE,
    rules::write_amplification::RULE,
    rules::recovery_distance::RULE,
    rules::standby_lag::RULE,
    rules::commit_pressure::RULE,
    rules::switch_waste::RULE,
];

/// Looks at a report that has all that was counted; the report and the check have advice.
pub fn advise(report: &mut Report) {
    let advises = [CommandName::Report, CommandName::Check].contains(&report.command);
    report.findings = advises.then(|| findings(report));
    report.advice_together = together(report);
}

/// What all that is advised comes to, which is not the sum of what each advice saves.
fn together(report: &Report) -> Option<Together> {
    let findings = report.findings.as_ref()?;
    let quoting = findings.iter().filter(|finding| !finding.settings.is_empty());
    let setting = |name: &str| quoting.clone().find_map(|finding| finding.settings.get(name));
    let (apart, codec) = (setting("checkpoints_apart")?, setting("wal_compression")?);
    let apart = apart.as_u64().map(|times| u32::try_from(times).unwrap_or(u32::MAX));
    let row = report.estimates.as_ref()?.of(apart, codec.as_str())?;
    Some(Together {
        rules: quoting.clone().map(|finding| finding.rule.clone()).collect(),
        settings: quoting.clone().flat_map(|finding| finding.settings.clone()).collect(),
        predicted: row.predicted,
    })
}

/// What all rules find in `report`, worst first.
fn findings(report: &Report) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| (rule.check)(report)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
