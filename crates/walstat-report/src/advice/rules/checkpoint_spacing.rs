//! What it looks at: the time from one checkpoint to the next, while the server goes on.
//!
//! Why it matters: after each checkpoint every page that is changed is written into the WAL once
//! more as a whole, and every page changed since the last one is written to its file. Below 300
//! seconds, the default of `checkpoint_timeout`, that happens more often than any server needs;
//! below 60 seconds it is critical.
//!
//! What to do: where checkpoints come by volume, raise `max_wal_size`; where they come by time, raise
//! `checkpoint_timeout`; where they are asked for, find out who does: CHECKPOINT and base backups do, and
//! what handles the files of whole databases. DROP DATABASE asks for one each time, CREATE DATABASE by
//! copying files (until 14 always, from 15 on with `STRATEGY = FILE_COPY`) for two, so does ALTER DATABASE …
//! SET TABLESPACE, and DROP TABLESPACE does where files are left. The WAL tells of databases that were
//! dropped or copied. The size recommended is what half an hour needs at the average rate; but no more than
//! twice the WAL that was read, and no more than the distance beyond which a wider one saves less than 1 % of
//! the bytes.
//!
//! When to ignore it: while data is loaded once, or in tests.
//!
//! Reference: `checkpoint_timeout`, `max_wal_size` and `checkpoint_warning` in the PostgreSQL manual.

use super::{evidence, plain_finding, saves_nothing_apart, says_little, worth_apart};
use crate::advice::Rule;
use crate::advice::cures::of_checkpoints::{advice, side_effects};
use crate::model::Report;
use crate::model::estimate::WORTH_A_WORD;
use crate::model::finding::{Finding, Severity};
use crate::model::threshold::{Speaks, Threshold, Unit};
use crate::model::when::{Causes, Overview, how};
use walstat_analyse::checkpoint::cause::Cause;
use walstat_names::server_settings::DEFAULT_CHECKPOINT_TIMEOUT;

/// Below so many seconds checkpoints are close to each other: the default of checkpoint_timeout.
const CLOSE: Threshold = Threshold {
    speaks: Speaks::Below,
    chen: DEFAULT_CHECKPOINT_TIMEOUT as f64,
    strict: 600.0,
    relaxed: 120.0,
    unit: Unit::Seconds,
};
/// Below so many they are very close.
const VERY_CLOSE: u64 = 60;
/// Fewer distances are no habit.
const DISTANCES: u64 = 3;
/// Volume begins a checkpoint at about half of max_wal_size: below a third of it none.
const FAR_FROM_FULL: u64 = 3;
/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "checkpoint-spacing",
    summary: "checkpoints are less than 300 s apart; below 60 s it is critical",
    text: include_str!("checkpoint_spacing.rs"),
    threshold: CLOSE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let when = report.when.as_ref()?;
    let spacing = when.spacing_seconds.as_ref()?;
    let threshold = RULE.whole_limit(report);
    let is_habit = spacing.count >= DISTANCES || is_set(report, when, threshold);
    if spacing.median >= threshold || !is_habit || says_little(report) {
        return None;
    }
    let most = mostly(when).or_else(|| by_the_clock(report, when));
    let asked = most == Some(Cause::Requested);
    let by_backups = asked && are_of_backups(report, when);
    let told = most.map_or(String::new(), |cause| format!(", mostly {}", how(cause)));
    let finding = Finding {
        severity: match spacing.median {
            _ if by_backups || saves_nothing_apart(report) && !asked => Severity::Info,
            seconds if seconds < VERY_CLOSE => Severity::Critical,
            _ => Severity::Warning,
        },
        evidence: evidence([
            ("spacing_seconds_median", spacing.median.into()),
            ("spacing_seconds_min", spacing.min.into()),
            ("spacing_seconds_max", spacing.max.into()),
            ("threshold", threshold.into()),
            ("critical", VERY_CLOSE.into()),
            ("checkpoints", when.checkpoints.into()),
            ("by_time", when.causes.time.into()),
            ("by_wal", when.causes.wal.into()),
            ("requested", when.causes.requested.into()),
        ]),
        side_effects: side_effects(most),
        source: "PostgreSQL manual, WAL configuration".into(),
        ..plain_finding(
            &RULE,
            match spacing.median {
                0 => format!("checkpoints come less than a second apart{told}"),
                seconds => format!("checkpoints come every {seconds} s{told}"),
            },
        )
    };
    let finding = match by_backups {
        true => finding.advising([BACKUPS.into()]),
        false => finding.advising(advice(report, when, spacing, most)),
    };
    let unasked = report.estimates.as_ref().and_then(|estimates| estimates.unasked);
    Some(match (unasked.filter(|_| asked), worth_apart(report)) {
        _ if by_backups => finding,
        (Some(predicted), _) => finding.predicting(report, predicted),
        (None, None) if asked => finding.explaining(images_after_asked(report, when)),
        (None, row) => finding.quoting(report, row),
    })
}

/// What to say of those that only base backups ask for.
const BACKUPS: &str = "base backups asked for them, and their checkpoints stay: fewer backups, or when \
                       little is written";

/// Whether base backups asked for most of those that somebody asked for: without the others as much is
/// written.
fn are_of_backups(report: &Report, when: &Overview) -> bool {
    let Some(estimates) = report.estimates.as_ref().filter(|_| when.backups > 0) else {
        return false;
    };
    match estimates.unasked {
        Some(predicted) => predicted.best_change_ratio() > -WORTH_A_WORD,
        None => estimates.asked_redo_points == 0,
    }
}

/// Whether the setting is known that brings them: max_wal_size, or a checkpoint_timeout that is that short.
/// No more of them need be seen.
fn is_set(report: &Report, when: &Overview, threshold: u64) -> bool {
    let Some(settings) = report.settings.as_ref().map(|settings| &settings.values) else {
        return false;
    };
    match when.spacing_cause {
        Some(Cause::Time) => settings.checkpoint_timeout.is_some_and(|seconds| seconds < threshold),
        Some(Cause::Wal) => settings.max_wal_size.is_some(),
        _ => false,
    }
}

/// What began the checkpoints before which most of the WAL was written, if that is known of most.
fn mostly(when: &Overview) -> Option<Cause> {
    let by = [
        (Cause::Wal, when.wal_by_cause.wal),
        (Cause::Time, when.wal_by_cause.time),
        (Cause::Requested, when.wal_by_cause.requested),
    ];
    // Those of unknown cause may be anything; what counts is how much WAL came before them.
    let known: u64 = by.iter().map(|(_, count)| count).sum();
    let is_most = |count: u64| count * 2 > known && count > 0 && count >= when.wal_by_cause.unknown;
    let most = by.into_iter().rev().max_by_key(|(_, count)| *count);
    most.filter(|(_, count)| is_most(*count)).map(|(cause, _)| cause)
}

/// Where the settings are known, and the WAL never came near max_wal_size, what is not known to be asked for
/// was begun by the clock, if that began what is known.
fn by_the_clock(report: &Report, when: &Overview) -> Option<Cause> {
    let settings = &report.settings.as_ref()?.values;
    settings.checkpoint_timeout?;
    let others = when.wal_by_cause.wal + when.wal_by_cause.requested;
    let is_by_time = others == 0 && when.spacing_cause == Some(Cause::Time);
    (is_by_time && is_far_from_full(report, when)).then_some(Cause::Time)
}

/// Whether max_wal_size is known, and the WAL never came near it.
pub(super) fn is_far_from_full(report: &Report, when: &Overview) -> bool {
    let farthest = when.spacing_bytes.as_ref().map_or(0, |spacing| spacing.max);
    let longest = farthest.max(when.worst_recovery_bytes.unwrap_or(0));
    let set = report.settings.as_ref().and_then(|settings| settings.values.max_wal_size);
    set.is_some_and(|bytes| longest.saturating_mul(FAR_FROM_FULL) < bytes)
}

/// Whether most checkpoints were asked for, which no setting makes fewer.
pub(crate) fn are_asked_for(report: &Report) -> bool {
    report.when.as_ref().and_then(mostly) == Some(Cause::Requested)
}

/// Images of the cycles that somebody's request began, taken for as many of all images as those have of the
/// WAL.
fn images_after_asked(report: &Report, when: &Overview) -> u64 {
    let Causes { time, wal, requested, .. } = when.wal_by_cause;
    let Causes { shutdown, end_of_recovery, shutdown_or_recovery, unknown, .. } = when.wal_by_cause;
    let stopped = shutdown + end_of_recovery + shutdown_or_recovery;
    let all = time + wal + requested + stopped + unknown;
    (report.totals.fpi_bytes as f64 * requested as f64 / all.max(1) as f64) as u64
}

#[cfg(test)]
pub(in crate::advice) mod tests {
    use super::*;
    use crate::model::estimate::{EstimateRow, Estimates, Predicted};
    use crate::model::sample;
    use crate::model::settings::{SettingValues, Settings};
    use crate::model::when::Spacing;

    pub(crate) fn found(median: u64, count: u64, total: u64, causes: Causes) -> Option<Finding> {
        let mut report = sample::report(0, total);
        let spacing = Spacing { count, min: median, median, max: median, ..Spacing::default() };
        report.when = Some(Overview {
            spacing_seconds: Some(spacing),
            wal_by_cause: causes,
            ..Overview::default()
        });
        check(&report)
    }

    #[test]
    fn it_speaks_below_the_default_timeout_and_above_the_volume_only() {
        let severity = |median, count, total| {
            found(median, count, total, Causes::default()).map(|finding| finding.severity)
        };
        assert_eq!(severity(1, 3, 100 << 20), Some(Severity::Critical));
        assert_eq!(severity(59, 3, 100 << 20), Some(Severity::Critical));
        assert_eq!(severity(60, 3, 100 << 20), Some(Severity::Warning));
        assert_eq!(severity(299, 3, 100 << 20), Some(Severity::Warning));
        assert_eq!(severity(300, 3, 100 << 20), None);
        assert_eq!(severity(1, 2, 100 << 20), None);
        assert_eq!(severity(1, 3, 15 << 20), None);
    }

    #[test]
    fn a_setting_that_is_known_is_a_habit() {
        let told = |values: SettingValues, cause| {
            let mut report = sample::report(0, 100 << 20);
            let spacing = Spacing { count: 1, median: 30, ..Spacing::default() };
            let wal_by_cause = match cause {
                Some(Cause::Wal) => Causes { wal: 9, ..Causes::default() },
                _ => Causes { time: 9, ..Causes::default() },
            };
            report.when = Some(Overview {
                spacing_seconds: Some(spacing),
                spacing_cause: cause,
                wal_by_cause,
                ..Overview::default()
            });
            report.settings = Some(Settings { values, ..Settings::default() });
            check(&report).map(|finding| finding.title)
        };
        let timeout =
            |checkpoint_timeout| SettingValues { checkpoint_timeout, ..SettingValues::default() };
        let volume = |max_wal_size| SettingValues { max_wal_size, ..SettingValues::default() };
        let every_30_s = |why: &str| Some(format!("checkpoints come every 30 s, mostly {why}"));
        let (time, wal) = (Some(Cause::Time), Some(Cause::Wal));
        assert_eq!(told(timeout(Some(30)), time), every_30_s("by time"));
        assert_eq!(told(timeout(Some(300)), time), None);
        assert_eq!(told(timeout(Some(30)), None), None);
        assert_eq!(told(timeout(None), time), None);
        assert_eq!(told(volume(Some(64 << 20)), wal), every_30_s("by volume"));
        assert_eq!(told(volume(None), wal), None);
        assert_eq!(told(volume(Some(64 << 20)), time), None);
    }

    /// A report on which checkpoints come by volume every 10 s, with what wider distances save.
    pub(crate) fn by_volume(saved: &[(Option<u32>, f64)], total: u64, rate: f64) -> Report {
        let mut report = sample::report(total / 2, total);
        let row = |(times, saved): &(Option<u32>, f64)| EstimateRow {
            checkpoints_apart: *times,
            wal_compression: None,
            predicted: Predicted {
                predicted_bytes: ((1.0 - saved) * total as f64) as u64,
                change_ratio: -saved,
                low_bytes: 0,
                high_bytes: 0,
            },
        };
        let scenarios = saved.iter().map(row).collect();
        report.estimates = Some(Estimates { scenarios, redo_points: 100, ..Estimates::default() });
        let spacing = Spacing { count: 9, min: 10, median: 10, max: 10, ..Spacing::default() };
        report.when = Some(Overview {
            spacing_seconds: Some(spacing),
            wal_by_cause: Causes { wal: 9, ..Causes::default() },
            max_wal_size_low: Some(100 << 20),
            max_wal_size_high: Some(128 << 20),
            running_rate: Some(rate),
            ..Overview::default()
        });
        report
    }

    #[test]
    fn where_nothing_is_saved_it_is_for_information() {
        let report = by_volume(&[(Some(1), 0.0), (Some(2), 0.002)], 400 << 20, 1e8);
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.severity, finding.estimate), (Severity::Info, None));
        assert!(finding.advice[0].contains("less than 1 %"), "{:?}", finding.advice);
    }

    #[test]
    fn those_that_were_asked_for_save_what_the_sample_says() {
        let mut report = by_volume(&[(Some(1), 0.0)], 400 << 20, 1e8);
        let asked = Causes { requested: 3, unknown: 1, ..Causes::default() };
        report.when.iter_mut().for_each(|when| when.wal_by_cause = asked.clone());
        let predicted = Predicted {
            predicted_bytes: 300 << 20,
            change_ratio: -0.25,
            low_bytes: 290 << 20,
            high_bytes: 310 << 20,
        };
        report.estimates.iter_mut().for_each(|tried| tried.unasked = Some(predicted));
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.predicted, finding.estimate), (Some(predicted), Some(100 << 20)));
    }

    /// Of ten base backups it said "+0 % most", critical.
    #[test]
    fn those_of_base_backups_stay() {
        let mut report = by_volume(&[(Some(1), 0.0)], 400 << 20, 1e8);
        let asked = Causes { requested: 12, ..Causes::default() };
        report.when.iter_mut().for_each(|when| when.wal_by_cause = asked.clone());
        let predicted = Predicted {
            predicted_bytes: 400 << 20,
            change_ratio: 0.0,
            low_bytes: 400 << 20,
            high_bytes: 400 << 20,
        };
        let told = |report: &Report| check(report).expect("a finding");
        for unasked in [Some(predicted), None] {
            report.estimates.iter_mut().for_each(|tried| tried.unasked = unasked);
            report.when.iter_mut().for_each(|when| when.backups = 10);
            let finding = told(&report);
            assert_eq!((finding.severity, finding.estimate), (Severity::Info, None));
            assert_eq!((finding.predicted, finding.advice), (None, vec![BACKUPS.to_owned()]));
        }
        // Of others that save nothing there is no figure either.
        report.estimates.iter_mut().for_each(|tried| tried.unasked = Some(predicted));
        report.when.iter_mut().for_each(|when| when.backups = 0);
        assert_eq!((told(&report).severity, told(&report).predicted), (Severity::Info, None));
    }

    #[test]
    fn those_that_were_asked_for_explain_the_images_after_them() {
        let mut report = by_volume(&[(Some(1), 0.0)], 400 << 20, 1e8);
        let asked = Causes { requested: 3, unknown: 1, ..Causes::default() };
        report.when.iter_mut().for_each(|when| when.wal_by_cause = asked.clone());
        let finding = check(&report).expect("a finding");
        assert!(finding.title.ends_with("mostly asked for"), "{}", finding.title);
        assert_eq!(finding.explains, Some(150 << 20));
        // That wider distances of the others save nothing says nothing of these.
        report.estimates = by_volume(&[(Some(1), 0.0), (Some(2), 0.0)], 400 << 20, 1e8).estimates;
        let finding = check(&report).expect("a finding");
        assert_eq!((finding.severity, finding.explains), (Severity::Critical, Some(150 << 20)));
    }
}
