//! What it looks at: the share of page images written for hint bits alone (`FPI_FOR_HINT`).
//!
//! Why it matters: with data checksums or `wal_log_hints`, the first reader of a page that was changed
//! before the last checkpoint writes all of it into the WAL, only to note that its rows are
//! committed. From 30 % of the bytes on, reading writes more than it should.
//!
//! What to do: VACUUM after loading and after large changes, before the next checkpoint, or load with
//! `COPY … FREEZE`; space checkpoints out; without `wal_log_hints`, if nothing needs it (pg_rewind
//! does, unless there are checksums).
//!
//! When to ignore it: where it follows a load that is over.
//!
//! Reference: `wal_log_hints` and data checksums in the PostgreSQL manual.

use super::{Line, evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange, Severity};
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share of the bytes on it is worth a look.
const HINTS: Threshold = Threshold::from_share(0.3, 0.15, 0.5);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "hint-images",
    summary: "30 % of the bytes are page images for hint bits",
    text: include_str!("hint_images.rs"),
    threshold: HINTS,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let threshold = RULE.limit(report);
    let share = report.ratios.hint_fpi_ratio.filter(|share| *share >= threshold)?;
    if says_little(report) {
        return None;
    }
    let finding = Finding {
        severity: Severity::Warning,
        evidence: evidence([("hint_fpi_ratio", share.into()), ("threshold", threshold.into())]),
        source: "PostgreSQL manual, wal_log_hints".into(),
        ..plain_finding(
            &RULE,
            format!("{} of the bytes are page images for hint bits", percent(share, 1)),
        )
    };
    let advice = [
        "VACUUM after large changes and before the next checkpoint; COPY … FREEZE for loads".into(),
        "space checkpoints out: each page is imaged once a cycle at most".into(),
        why_they_are_there(report),
    ];
    Some(finding.advising(advice).at_most((share * report.totals.total_bytes as f64) as u64))
}

/// What has hint bits logged, as far as the settings of the server are known.
fn why_they_are_there(report: &Report) -> Line {
    let values = report.settings.as_ref().map(|settings| &settings.values);
    match values.map(|values| (values.data_checksums, values.wal_log_hints)) {
        Some((true, true)) => {
            "data checksums are on and need these images; wal_log_hints is on too, and adds none"
                .into()
        }
        Some((true, false)) => "data checksums are on and need these images".into(),
        Some((false, true)) => {
            let off = AdvisedSetting::to(SettingChange::Set, "wal_log_hints", "off");
            Line::set(
                off,
                ", unless pg_rewind is needed: it is on, and there are no data checksums",
            )
        }
        _ => "data checksums or wal_log_hints are on, or were when this WAL was written; if only \
             wal_log_hints is on, turn it off unless pg_rewind is needed"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Certainty;
    use crate::model::settings::{SettingValues, Settings};

    #[test]
    fn it_says_what_has_hint_bits_logged() {
        let told = |data_checksums, wal_log_hints| {
            let mut report = sample::report(50 << 20, 100 << 20);
            report.ratios.hint_fpi_ratio = Some(0.4);
            let values = SettingValues { data_checksums, wal_log_hints, ..Default::default() };
            report.settings = Some(Settings { values, ..Settings::default() });
            check(&report).map_or_else(String::new, |finding| finding.advice.concat())
        };
        assert!(
            told(true, false).contains("checksums are on")
                && !told(true, false).contains("wal_log")
        );
        assert!(told(false, true).contains("wal_log_hints = off, unless"));
        assert!(told(false, false).contains("data checksums or wal_log_hints"));
    }
    use crate::model::sample;

    #[test]
    fn it_saves_those_images_at_most() {
        let mut report = sample::report(0, 100 << 20);
        report.ratios.hint_fpi_ratio = Some(0.5);
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.estimate, finding.certainty), (Some(50 << 20), Certainty::Possible));
    }

    #[test]
    fn it_speaks_from_three_tenths_and_above_the_volume_only() {
        let found = |share, total| {
            let mut report = sample::report(0, total);
            report.ratios.hint_fpi_ratio = Some(share);
            check(&report).is_some()
        };
        assert!(found(0.3, 100 << 20));
        assert!(!found(0.29, 100 << 20));
        assert!(!found(0.9, 15 << 20));
    }
}
