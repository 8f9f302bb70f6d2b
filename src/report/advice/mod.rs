//! Advice: rules that look at a report and may find something worth a change.
//!
//! A rule is one file in `rules/`: what it looks at, its threshold, the volume below which it
//! is silent, its evidence, what to do and at what price, when to ignore it, its source.

mod rules;

use super::model::finding::Finding;
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
}

/// What all rules find in `report`, worst first.
fn findings(report: &Report) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| (rule.check)(report)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
