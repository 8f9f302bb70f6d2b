//! What it looks at: images that are stored for consistency checking only, among all images.
//!
//! Why it matters: `wal_consistency_checking` adds an image of every page that a record changes, so
//! that a standby can compare it with what replay makes of the page. It is made for the developers of
//! resource managers; a server pays for it with most of its WAL, whatever its checkpoints do.
//!
//! What to do: turn it off (a superuser's setting, from the next record on).
//!
//! When to ignore it: while replay is being tested on purpose.
//!
//! Reference: `wal_consistency_checking` in the PostgreSQL manual.

use super::{Line, MOSTLY, checking_share, evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange, Severity};
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the images on it is no accident.
const NOTICED: Threshold = Threshold::from_share(0.1, 0.01, 0.3);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "consistency-checking",
    summary: "10 % of the images are for checking only: wal_consistency_checking is on",
    text: include_str!("consistency_checking.rs"),
    threshold: NOTICED,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let threshold = RULE.limit(report);
    let share = checking_share(report).filter(|share| *share >= threshold)?;
    if says_little(report) {
        return None;
    }
    let finding = Finding {
        severity: if share < MOSTLY { Severity::Warning } else { Severity::Critical },
        evidence: evidence([
            ("fpi_check_count", report.totals.fpi_check_count.into()),
            ("fpi_count", report.totals.fpi_count.into()),
            ("threshold", threshold.into()),
        ]),
        source: "PostgreSQL manual, wal_consistency_checking".into(),
        ..plain_finding(
            &RULE,
            format!(
                "{} of the images are for checking only: wal_consistency_checking is on",
                percent(share, 1)
            ),
        )
    };
    let off = AdvisedSetting::to(SettingChange::Set, "wal_consistency_checking", "''");
    let advice = Line::set(off, ": it is for testing replay, not for service");
    Some(finding.advising([advice]).saving((share * report.totals.fpi_bytes as f64) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    #[test]
    fn it_speaks_from_a_tenth_of_the_images_and_above_the_volume_only() {
        let found = |checks, total| {
            let mut report = sample::report(total / 2, total);
            report.totals.fpi_count = 1000;
            report.totals.fpi_check_count = checks;
            check(&report).map(|finding| finding.severity)
        };
        assert_eq!(found(500, 100 << 20), Some(Severity::Critical));
        assert_eq!(found(100, 100 << 20), Some(Severity::Warning));
        assert_eq!(found(99, 100 << 20), None);
        assert_eq!(found(1000, 15 << 20), None);
    }
}
