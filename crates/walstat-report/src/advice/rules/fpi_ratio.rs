//! What it looks at: the share of full page images in all bytes of the records.
//!
//! Why it matters: an image of 8 kB is written when a page is touched for the first time after
//! a checkpoint. Above 70 % most of the WAL repeats pages rather than telling changes. From 95 %
//! on it is critical: twenty bytes are written for each byte of change, what Chen measured on a
//! server that was never tuned.
//!
//! What to do: space checkpoints out, so that a page is imaged less often. `wal-compression` is about the
//! size of the images. Where they are compressed, and checkpoints as far apart as is of use, nothing is left
//! to do: the rule is silent.
//!
//! When to ignore it: where the server writes little, or the range begins right after a checkpoint.
//!
//! Reference: Chen 2017; `full_page_writes`, `checkpoint_timeout`, `max_wal_size` and
//! `wal_compression` in the PostgreSQL manual.

use super::checkpoint_spacing::{are_asked_for, is_far_from_full};
use super::wal_compression::{HARDLY_COMPRESSED, better_codec};
use super::{
    CHEN_2017, FAR_APART, Line, MAX_WAL_SIZE, UNTUNED_AMPLIFICATION, evidence, further_apart,
    is_far_apart, is_for_checking, label, plain_finding, recovery_price, saves_nothing_apart,
    says_little, worst_tables,
};
use crate::advice::Rule;
use crate::advice::cures::of_checkpoints::{checkpoint_timeout_now, larger, time, volume};
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::percent::percent;
use crate::model::threshold::FPI_RATIO;
use crate::model::when::Overview;
use crate::model::who::WholeTableRow;
use serde_json::{Value, json};

/// From this share on it is critical: 95 %.
const CRITICAL: f64 = 1.0 - 1.0 / UNTUNED_AMPLIFICATION;

/// What to do where no setting begins the checkpoints.
const FEWER_REQUESTS: &str = "ask for fewer checkpoints: most were asked for (CHECKPOINT, backups, DROP \
     DATABASE and others)";

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "fpi-ratio",
    summary: "full page images are more than 70 % of the bytes; 95 % is critical",
    text: include_str!("fpi_ratio.rs"),
    threshold: FPI_RATIO,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let ratio = report.ratios.fpi_ratio?;
    let threshold = RULE.limit(report);
    if ratio <= threshold || says_little(report) || is_for_checking(report) {
        return None;
    }
    let tables = worst_tables(report, |row| row.numbers.fpi_bytes);
    let mut advice: Vec<Line> = Vec::new();
    let mut side_effects = Vec::new();
    let saves_nothing = saves_nothing_apart(report) && !are_asked_for(report);
    let has_use = !is_far_apart(report) && !saves_nothing;
    if !has_use && is_compressed(report) {
        return None;
    }
    if saves_nothing {
        advice.push(ONCE_EACH.into());
    } else if has_use {
        advice = spacing_advice(report);
        if !are_asked_for(report) {
            side_effects = vec![recovery_price(), "pg_wal takes up to max_wal_size of disk".into()];
        }
    }
    advice.extend(where_they_are(report, &tables));
    let finding = Finding {
        severity: match ratio {
            _ if !has_use => Severity::Info,
            ratio if ratio < CRITICAL => Severity::Warning,
            _ => Severity::Critical,
        },
        evidence: evidence([
            ("fpi_ratio", ratio.into()),
            ("threshold", threshold.into()),
            ("critical", CRITICAL.into()),
            ("fpi_bytes", report.totals.fpi_bytes.into()),
            ("fpi_count", report.totals.fpi_count.into()),
            ("tables", tables.iter().map(|(row, bytes, _)| named(report, row, *bytes)).collect()),
        ]),
        side_effects,
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, format!("{} of the bytes are full page images", percent(ratio, 1)))
    };
    Some(quoted(report, finding.advising(advice), has_use))
}

/// What fewer checkpoints come to: of those that were asked for, the same work without them.
fn quoted(report: &Report, finding: Finding, has_use: bool) -> Finding {
    if are_asked_for(report) {
        let unasked = report.estimates.as_ref().and_then(|estimates| estimates.unasked);
        return match unasked.filter(|_| has_use) {
            Some(predicted) => finding.predicting(report, predicted),
            None => finding,
        };
    }
    let further = further_apart(report, None).filter(|_| has_use);
    finding.quoting(report, further)
}

/// Whether all images that can be compressed are.
fn is_compressed(report: &Report) -> bool {
    let stored = report.ratios.compression_ratio;
    stored.is_some_and(|ratio| ratio < HARDLY_COMPRESSED) && better_codec(report).is_none()
}

fn named(report: &Report, row: &WholeTableRow, fpi_bytes: u64) -> Value {
    json!({"table": label(report, row), "fpi_bytes": fpi_bytes})
}

/// Whose pages the images are.
fn where_they_are(report: &Report, tables: &[(&WholeTableRow, u64, f64)]) -> Option<Line> {
    let words = |(row, _, share): &(&WholeTableRow, u64, f64)| {
        format!("{} ({})", label(report, row), percent(*share, 0))
    };
    let list: Vec<String> = tables.iter().map(words).collect();
    let told = || format!("images, with those of indexes: {}", list.join(", ")).into();
    (!list.is_empty()).then(told)
}

/// What to say where no page has a second image that checkpoints further apart would spare.
const ONCE_EACH: &str = "checkpoints further apart would spare next to none of them: most pages have one \
                         image in this WAL; compression makes them smaller";

/// What to say of checkpoints that may be further apart.
fn spacing_advice(report: &Report) -> Vec<Line> {
    if are_asked_for(report) {
        return vec![FEWER_REQUESTS.into()];
    }
    let when = report.when.as_ref();
    let timeout = checkpoint_timeout_now(report);
    let mut advice = Vec::new();
    if timeout.is_none_or(|seconds| seconds < FAR_APART) {
        advice.push(time(report));
    }
    // By time alone, or far from max_wal_size, the volume was never the limit.
    let by_volume = |when: &Overview| {
        let may_be = when.causes.time == 0 && when.checkpoints > 0;
        when.causes.wal > 0 || may_be && !is_far_from_full(report, when)
    };
    if when.is_none_or(by_volume) {
        let why = ", so that checkpoints come by time and not by volume";
        let unknown = || Line::set(larger(MAX_WAL_SIZE), why);
        advice.push(when.map_or_else(unknown, |when| volume(report, when)));
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimate::{EstimateRow, Estimates, Predicted};
    use crate::model::sample;
    use crate::model::settings::{SettingValues, Settings};
    use crate::model::when::{Causes, Spacing};

    #[test]
    fn it_speaks_above_the_threshold_and_the_volume_only() {
        let found = |fpi, total| check(&sample::report(fpi, total)).map(|finding| finding.severity);
        assert_eq!(found(80 << 20, 100 << 20), Some(Severity::Warning));
        assert_eq!(found(70 << 20, 100 << 20), None);
        assert_eq!(found(8 << 20, 10 << 20), None);
    }

    #[test]
    fn it_leaves_images_for_checking_to_their_own_rule() {
        let mut report = sample::report(80 << 20, 100 << 20);
        (report.totals.fpi_count, report.totals.fpi_check_count) = (100, 50);
        assert!(check(&report).is_none());
        report.totals.fpi_check_count = 49;
        assert!(check(&report).is_some());
    }

    #[test]
    fn it_is_critical_from_95_percent_on() {
        let severity = |fpi, total| check(&sample::report(fpi, total)).map(|f| f.severity);
        assert_eq!(severity(950 << 20, 1000 << 20), Some(Severity::Critical));
        assert_eq!(severity(949 << 20, 1000 << 20), Some(Severity::Warning));
    }

    #[test]
    fn what_the_wal_shows_already_is_not_advised() {
        let told = |median, timeout| {
            let mut report = sample::report(80 << 20, 100 << 20);
            let spacing = Spacing { count: 4, median, ..Spacing::default() };
            report.when = Some(Overview {
                spacing_seconds: Some(spacing),
                checkpoint_timeout_seconds: timeout,
                causes: Causes { time: 4, ..Causes::default() },
                ..Overview::default()
            });
            check(&report).expect("a finding").advice.join("\n")
        };
        let half_an_hour = told(1800, Some(1800));
        assert!(!half_an_hour.contains("checkpoint_timeout"), "{half_an_hour}");
        assert!(!half_an_hour.contains("max_wal_size"), "{half_an_hour}");
        let five_minutes = told(300, Some(300));
        assert!(five_minutes.contains("checkpoint_timeout"), "{five_minutes}");
        assert!(!five_minutes.contains("max_wal_size"), "{five_minutes}");
    }

    /// 163 MB of WAL, and max_wal_size = 4GB was to be raised.
    #[test]
    fn far_from_max_wal_size_it_is_not_to_be_raised() {
        let told = |max_wal_size| {
            let mut report = sample::report(80 << 20, 100 << 20);
            report.when = Some(Overview {
                checkpoints: 1,
                causes: Causes { unknown: 1, ..Causes::default() },
                worst_recovery_bytes: Some(98 << 20),
                ..Overview::default()
            });
            let max_wal_size = Some(max_wal_size);
            let values = SettingValues { max_wal_size, ..SettingValues::default() };
            report.settings = Some(Settings { values, ..Settings::default() });
            check(&report).expect("a finding").advice.concat().contains(MAX_WAL_SIZE)
        };
        assert!(!told(4 << 30) && told(200 << 20));
    }

    #[test]
    fn where_no_checkpoint_can_be_moved_nothing_is_advised_about_them() {
        let mut report = sample::report(80 << 20, 100 << 20);
        let of = |moving_redo_points| Estimates { moving_redo_points, ..Estimates::default() };
        report.estimates = Some(of(0));
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.severity, finding.advice.len()), (Severity::Info, 1));
        assert!(
            finding.advice[0].starts_with("checkpoints further apart would spare next to none")
        );
        report.estimates = Some(of(1));
        assert!(check(&report).is_some_and(|finding| finding.severity == Severity::Warning));
    }

    #[test]
    fn no_setting_is_advised_where_checkpoints_were_asked_for() {
        let mut report = sample::report(80 << 20, 100 << 20);
        let wal_by_cause = Causes { requested: 4, time: 1, ..Causes::default() };
        report.when = Some(Overview { wal_by_cause, ..Overview::default() });
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.advice, [FEWER_REQUESTS]);
        assert!(finding.side_effects.is_empty());
    }

    #[test]
    fn of_checkpoints_that_were_asked_for_the_figure_is_that_without_them() {
        let mut report = sample::report(80 << 20, 100 << 20);
        let wal_by_cause = Causes { requested: 4, time: 1, ..Causes::default() };
        report.when = Some(Overview { wal_by_cause, ..Overview::default() });
        let saving = |share: f64| Predicted {
            predicted_bytes: ((1.0 - share) * f64::from(100 << 20)) as u64,
            change_ratio: -share,
            low_bytes: 0,
            high_bytes: 0,
        };
        let twice = EstimateRow {
            checkpoints_apart: Some(2),
            wal_compression: None,
            predicted: saving(0.15),
        };
        let tried = |unasked| Estimates {
            scenarios: vec![twice.clone()],
            moving_redo_points: 9,
            unasked,
            ..Estimates::default()
        };
        report.estimates = Some(tried(Some(saving(0.28))));
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.predicted, Some(saving(0.28)));
        assert!(finding.settings.is_empty());
        report.estimates = Some(tried(None));
        assert_eq!(check(&report).expect("a finding").predicted, None);
    }
}
