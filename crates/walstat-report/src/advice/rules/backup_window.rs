//! What it looks at: images in checkpoint cycles that a base backup began.
//!
//! Why it matters: a base backup asks for a checkpoint, after which every page that is changed brings an
//! image once more; and while it runs images are written even where full_page_writes is off. From 20 % of
//! all bytes on it is worth a look.
//!
//! Most of these pages would have had an image after another checkpoint anyway, so this share is not what is
//! saved. What the WAL would come to without any base backup is estimated from a sample of the images: no
//! more than that is saved by fewer of them.
//!
//! What to do: back up when little is written, and less often. An incremental backup (17 and later) begins
//! with a checkpoint, too; a snapshot of the file system does not.
//!
//! When to ignore it: where the range is little more than a backup.
//!
//! Reference: continuous archiving in the PostgreSQL manual.

use super::{evidence, plain_finding};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the bytes on it is worth a look.
const SHARE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "backup-window",
    summary: "images after the checkpoints of base backups are 20 % of the bytes",
    text: include_str!("backup_window.rs"),
    threshold: SHARE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let when = report.when.as_ref().filter(|when| when.backups > 0)?;
    let found = RULE.share(report, when.backup_fpi_bytes, report.totals.total_bytes)?;
    let finding = Finding {
        evidence: evidence([
            ("backup_fpi_ratio", found.share.into()),
            ("threshold", found.threshold.into()),
            ("backup_fpi_bytes", when.backup_fpi_bytes.into()),
            ("backups", when.backups.into()),
        ]),
        advice: vec![
            "back up when little is written".into(),
            "fewer base backups: each begins with a checkpoint, an incremental one too; a snapshot of the \
             file system does not"
                .into(),
        ],
        source: "PostgreSQL manual, continuous archiving".into(),
        ..plain_finding(
            &RULE,
            format!(
                "images after the checkpoints of base backups are {} of the bytes",
                percent(found.share, 0)
            ),
        )
    };
    let estimates = report.estimates.as_ref();
    let without = estimates.and_then(|estimates| estimates.without_backups);
    // Most of these images would have come after the checkpoint before. Nobody does without any backup.
    let most = without.map(|without| report.totals.total_bytes.saturating_sub(without.low_bytes));
    let finding = finding.explaining(when.backup_fpi_bytes);
    Some(Finding { estimate: most.map(|most| most.min(when.backup_fpi_bytes)), ..finding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimate::{Estimates, Predicted};
    use crate::model::sample;
    use crate::model::when::Overview;

    #[test]
    fn images_after_a_backup_are_not_what_it_brought() {
        let mut report = sample::report(80 << 20, 100 << 20);
        let (backups, backup_fpi_bytes) = (3, 65 << 20);
        report.when = Some(Overview { backups, backup_fpi_bytes, ..Overview::default() });
        let finding = check(&report).expect("a finding");
        assert!(finding.title.ends_with("of base backups are 65 % of the bytes"));
        assert_eq!((finding.estimate, finding.explains), (None, Some(65 << 20)));
        let predicted = Predicted {
            predicted_bytes: 90 << 20,
            change_ratio: -0.1,
            low_bytes: 88 << 20,
            high_bytes: 92 << 20,
        };
        let without_backups = Some(predicted);
        report.estimates = Some(Estimates { without_backups, ..Estimates::default() });
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.estimate, finding.explains), (Some(12 << 20), Some(65 << 20)));
    }

    #[test]
    fn it_speaks_from_a_fifth_of_the_bytes_on() {
        let found = |bytes: u64, total: u64, backups| {
            let mut report = sample::report(0, total << 20);
            let backup_fpi_bytes = bytes << 20;
            report.when = Some(Overview { backup_fpi_bytes, backups, ..Overview::default() });
            check(&report).is_some()
        };
        assert!(found(20, 100, 1));
        assert!(!found(19, 100, 1));
        assert!(!found(20, 100, 0));
        assert!(!found(10, 15, 1));
    }
}
