//! What it looks at: the time from one checkpoint to the next, while the server goes on.
//!
//! Why it matters: after each checkpoint every page that is changed is written into the WAL once
//! more as a whole, and every page changed since the last one is written to its file. Below 300
//! seconds, the default of `checkpoint_timeout`, that happens more often than any server needs;
//! below 60 seconds it is critical.
//!
//! What to do: where checkpoints come by volume, raise `max_wal_size`; where they come by time, raise
//! `checkpoint_timeout`; where they are asked for, find out who does.
//!
//! When to ignore it: while data is loaded once, or in tests.
//!
//! Reference: `checkpoint_timeout`, `max_wal_size` and `checkpoint_warning` in the PostgreSQL manual.

use super::{evidence, further_apart, megabytes, plain_finding, recovery_price, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::threshold::{Speaks, Threshold, Unit};
use crate::model::when::{Overview, Spacing};

/// Below so many seconds checkpoints are close to each other: the default of checkpoint_timeout.
const CLOSE: Threshold = Threshold {
    speaks: Speaks::Below,
    chen: 300.0,
    strict: 600.0,
    relaxed: 120.0,
    unit: Unit::Seconds,
};
/// Below so many they are very close.
const VERY_CLOSE: u64 = 60;
/// Fewer distances are no habit.
const DISTANCES: u64 = 3;
/// The least checkpoint_timeout, in seconds.
const SHORTEST_TIMEOUT: u64 = 30;
/// A distance worth aiming at, in seconds.
const AIM: u64 = 1800;
/// No setting is told to be raised to more than so many times what it is: a short load that writes
/// at full speed says little of the day.
const MOST_TIMES: u64 = 100;

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
    if spacing.median >= threshold || spacing.count < DISTANCES || says_little(report) {
        return None;
    }
    let by = [
        ("by volume", when.wal_by_cause.wal),
        ("by time", when.wal_by_cause.time),
        ("asked for", when.wal_by_cause.requested),
    ];
    let most = by.into_iter().rev().max_by_key(|(_, count)| *count);
    // Those of unknown cause may be anything; what counts is how much WAL came before them.
    let known: u64 = by.iter().map(|(_, count)| count).sum();
    let is_most = |count: u64| count * 2 > known && count > 0 && count >= when.wal_by_cause.unknown;
    let most = most.filter(|(_, count)| is_most(*count));
    let told = most.map_or(String::new(), |(how, _)| format!(", mostly {how}"));
    let finding = Finding {
        severity: if spacing.median < VERY_CLOSE { Severity::Critical } else { Severity::Warning },
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
        advice: advice(when, spacing, most.map(|(how, _)| how)),
        side_effects: side_effects(most.map(|(how, _)| how)),
        ignore_when: "data is loaded once, or the server is a test's".into(),
        source: "PostgreSQL manual, WAL configuration".into(),
        ..plain_finding(
            &RULE,
            match spacing.median {
                0 => format!("checkpoints less than a second apart{told}"),
                seconds => format!("a checkpoint every {seconds} s{told}"),
            },
        )
    };
    Some(finding.quoting(report, further_apart(report, None)))
}

fn advice(when: &Overview, spacing: &Spacing, mostly: Option<&str>) -> Vec<String> {
    let times = AIM.div_ceil(spacing.median.max(1)).min(MOST_TIMES);
    let volume = when.max_wal_size_low.zip(when.max_wal_size_high).map_or_else(
        || format!("max_wal_size: about {times} times what it is"),
        |(low, high)| {
            // What is written in that time, and once more what is kept meanwhile.
            let written = when.mean_rate.map_or(u64::MAX, |rate| (rate * 2.0) as u64 * AIM);
            format!(
                "max_wal_size = {}: it is between {} and {} now",
                megabytes((high * times).min(written).max(2 * high)),
                megabytes(low),
                megabytes(high)
            )
        },
    );
    let time = when.checkpoint_timeout_seconds.map_or_else(
        || "checkpoint_timeout = 30min".to_owned(),
        |seconds| format!("checkpoint_timeout = 30min: it is {seconds}s now"),
    );
    let who =
        "find out who asks for checkpoints: CHECKPOINT, backups, CREATE DATABASE by copying files";
    match mostly {
        Some("by volume") => vec![volume],
        Some("by time") => vec![time],
        Some(_) => vec![who.to_owned()],
        // No server begins checkpoints by time so close to each other.
        None if when.max_wal_size_high.is_some() => vec![volume, who.to_owned()],
        // Nobody knows which: the log does.
        None if spacing.median < SHORTEST_TIMEOUT => {
            vec![format!("{who}; or raise max_wal_size, if log_checkpoints says wal")]
        }
        None => vec![format!("{who}; or raise max_wal_size or checkpoint_timeout"), time],
    }
}

/// What it costs to have them further apart; to ask for fewer costs nothing.
fn side_effects(mostly: Option<&str>) -> Vec<String> {
    match mostly {
        Some("asked for") => Vec::new(),
        _ => vec![recovery_price(), "pg_wal takes up to max_wal_size of disk".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::when::Causes;

    fn found(median: u64, count: u64, total: u64, causes: Causes) -> Option<Finding> {
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
    fn advice_is_about_what_begins_the_checkpoints() {
        let told =
            |causes| found(20, 5, 100 << 20, causes).map(|finding| finding.advice.join("; "));
        let by_wal = told(Causes { wal: 4, requested: 1, ..Causes::default() }).expect("a finding");
        assert!(by_wal.starts_with("max_wal_size") && !by_wal.contains("timeout"), "{by_wal}");
        let asked = told(Causes { requested: 4, time: 1, ..Causes::default() }).expect("a finding");
        assert!(asked.starts_with("find out who"), "{asked}");
        let causes = Causes { requested: 4, ..Causes::default() };
        assert!(
            found(0, 5, 100 << 20, causes).is_some_and(|finding| finding.side_effects.is_empty())
        );
    }
}
