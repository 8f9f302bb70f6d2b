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
    rules::random_index::RULE,
    rules::index_cost::RULE,
    rules::replica_identity_full::RULE,
    rules::logical_overhead::RULE,
    rules::toast_rewrites::RULE,
    rules::ddl_churn::RULE,
    rules::vacuum_freeze_share::RULE,
    rules::lock_traffic::RULE,
    rules::backup_window::RULE,
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
    // What another one says already comes after what is new.
    let mut seen = Vec::new();
    let (new, known): (Vec<Finding>, Vec<Finding>) = findings.into_iter().partition(|finding| {
        let is_new = finding.settings.is_empty() || !seen.contains(&finding.settings);
        seen.push(finding.settings.clone());
        is_new
    });
    new.into_iter().chain(known).collect()
}

/// All rules as a paper: `docs/advice.md`.
pub fn paper() -> String {
    let mut text = String::from(
        "# Advice\n\nThe rules behind WHAT TO DO, from their own files (`walstat rules ID` prints one). \
         Shares say little of little WAL:\nmost rules begin at 16 MB. What a change saves is estimated \
         from a sample of the images where settings are\nnamed, and follows from a stated rule \
         elsewhere.\n",
    );
    for rule in RULES {
        text.push_str(&format!(
            "\n## {}\n\n*{}*\n\n{}\n",
            rule.id,
            rule.summary,
            rule.explanation()
        ));
    }
    text
}

impl Rule {
    /// The doc comment of its file.
    pub fn explanation(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}
