//! What it looks at: the share of page images written for hint bits alone (`FPI_FOR_HINT`).
//!
//! Why it matters: with data checksums or `wal_log_hints`, the first reader of a page that was changed
//! before the last checkpoint writes all of it into the WAL, only to note that its rows are
//! committed. From 20 % of the bytes on, reading writes more than it should; from half of that on where it is
//! known that `wal_log_hints` alone has them written. No more than these images with their records is saved:
//! a page that is changed later has its image then.
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
const HINTS: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

/// From one of so many parts of it on where a setting that few need has them written.
const PARTS_NEEDLESS: f64 = 2.0;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "hint-images",
    summary: "20 % of the bytes are page images for hint bits",
    text: include_str!("hint_images.rs"),
    threshold: HINTS,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let needless = needless(report);
    let parts = if needless.is_some() { PARTS_NEEDLESS } else { 1.0 };
    let threshold = RULE.limit(report) / parts;
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
    let is_needless = needless.is_some();
    let mut advice = vec![
        "VACUUM after large changes and before the next checkpoint; COPY … FREEZE for loads".into(),
        "space checkpoints out: each page is imaged once a cycle at most".into(),
    ];
    let why = needless.unwrap_or_else(|| why_they_are_there(report));
    // What needs nothing but a setting comes first.
    advice.insert(if is_needless { 0 } else { advice.len() }, why);
    let images = (share * report.totals.total_bytes as f64) as u64;
    let most = (images + beside_images(report)).min(report.totals.total_bytes);
    Some(Finding { estimate: Some(most), ..finding.advising(advice).explaining(images) })
}

/// What the records with these images have beside them.
fn beside_images(report: &Report) -> u64 {
    let rows = report.records.iter().flat_map(|records| &records.rows);
    let of_hints = rows.filter(|row| row.rmgr == "XLOG" && row.record == "FPI_FOR_HINT");
    of_hints.map(|row| row.sums.record_bytes).sum()
}

/// What to do where `wal_log_hints` alone has them written, as the settings of the server say.
fn needless(report: &Report) -> Option<Line> {
    let values = &report.settings.as_ref()?.values;
    let off = AdvisedSetting::to(SettingChange::Set, "wal_log_hints", "off");
    let why = ", unless pg_rewind is needed: it is on, and there are no data checksums";
    (values.wal_log_hints && !values.data_checksums).then(|| Line::set(off, why))
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
        _ => "data checksums or wal_log_hints are on, or were when this WAL was written; if only \
             wal_log_hints is on, turn it off unless pg_rewind is needed"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::tests::with_record;
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

    /// −34.4 % were saved where −34 % were promised at most.
    #[test]
    fn records_go_with_their_images() {
        let mut report = with_record("XLOG", "FPI_FOR_HINT", 250_000, 100 << 20);
        report.ratios.hint_fpi_ratio = Some(0.5);
        let finding = check(&report).expect("a finding");
        assert_eq!(
            (finding.explains, finding.estimate),
            (Some(50 << 20), Some((50 << 20) + 250_000))
        );
    }

    #[test]
    fn it_speaks_from_a_fifth_and_above_the_volume_only() {
        let found = |share, total| {
            let mut report = sample::report(0, total);
            report.ratios.hint_fpi_ratio = Some(share);
            check(&report).is_some()
        };
        assert!(found(0.2, 100 << 20));
        assert!(!found(0.19, 100 << 20));
        assert!(!found(0.9, 15 << 20));
    }

    #[test]
    fn of_a_setting_that_few_need_it_speaks_earlier() {
        let found = |share, data_checksums| {
            let mut report = sample::report(0, 100 << 20);
            report.ratios.hint_fpi_ratio = Some(share);
            let values =
                SettingValues { data_checksums, wal_log_hints: true, ..Default::default() };
            report.settings = Some(Settings { values, ..Settings::default() });
            check(&report).map(|finding| finding.advice[0].clone())
        };
        assert!(found(0.1, false).is_some_and(|first| first.starts_with("wal_log_hints = off")));
        assert_eq!((found(0.09, false), found(0.19, true)), (None, None));
    }
}
