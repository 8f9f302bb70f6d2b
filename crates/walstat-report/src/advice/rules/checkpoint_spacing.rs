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

use super::{
    CHECKPOINT_TIMEOUT, FAR_APART, Line, MAX_WAL_SIZE, evidence, plain_finding, recovery_price,
    saves_nothing_apart, says_little, times_apart, worth_apart,
};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::estimate::WORTH_A_WORD;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange, Severity};
use crate::model::size::megabytes_setting;
use crate::model::threshold::{Speaks, Threshold, Unit};
use crate::model::when::{Causes, Overview, Spacing, how};
use walstat_analyse::checkpoint::SHORTEST_TIMEOUT;
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

/// What to do about checkpoints that come mostly for one reason, or nobody knows for which.
fn advice(report: &Report, when: &Overview, spacing: &Spacing, mostly: Option<Cause>) -> Vec<Line> {
    let (volume, time) = (volume(report, when), time(report));
    let databases = of_databases(when);
    let lines = match mostly {
        Some(Cause::Wal) => return vec![volume],
        Some(Cause::Time) => return vec![time],
        Some(_) if are_all_of_databases(when) => Vec::new(),
        Some(_) => vec![WHO.into()],
        // No server begins checkpoints by time so close to each other.
        None if max_wal_size_now(report, when).is_some() => vec![volume, WHO.into()],
        // Nobody knows which: the log does.
        None if spacing.median < SHORTEST_TIMEOUT as u64 => {
            let size = larger(MAX_WAL_SIZE);
            let when = "if the server log (log_checkpoints) gives \"wal\" as the cause";
            vec![Line { text: format!("{WHO}; or {size}, {when}"), settings: vec![size] }]
        }
        None => {
            let size = larger(MAX_WAL_SIZE);
            let text = format!("{WHO}; or {size} or {CHECKPOINT_TIMEOUT}");
            vec![Line { text, settings: vec![size] }, time]
        }
    };
    databases.into_iter().map(Line::from).chain(lines).collect()
}

/// Who asks for checkpoints (`RequestCheckpoint` in `dbcommands.c` and `tablespace.c`).
const WHO: &str = "find out who asks for checkpoints: CHECKPOINT, backups, DROP DATABASE, DROP TABLESPACE, \
                   ALTER DATABASE … SET TABLESPACE, CREATE DATABASE by copying files";

/// Whether the WAL tells of all that somebody asked for that they belong to databases that were dropped or
/// copied.
fn are_all_of_databases(when: &Overview) -> bool {
    let told = when.before_drops + when.beside_copies;
    told > 0 && told >= when.causes.requested
}

/// What to say of checkpoints that were asked for since a database was dropped or copied.
fn of_databases(when: &Overview) -> Vec<String> {
    let asked = when.causes.requested;
    let drops = format!(
        "{} of the {asked} that were asked for came right before a database was dropped: DROP DATABASE asks \
         for one each time; drop several in a row, when little is written, or keep the database and drop \
         what is in it",
        when.before_drops
    );
    let copies = format!(
        "{} of the {asked} that were asked for came right before or after a database was copied: CREATE \
         DATABASE that copies files asks for two each time, from 15 on STRATEGY = WAL_LOG for none, and \
         ALTER DATABASE … SET TABLESPACE for two",
        when.beside_copies
    );
    let told = [(when.before_drops, drops), (when.beside_copies, copies)];
    told.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}

/// A setting that is to be larger by nobody knows how much.
pub(super) fn larger(name: &str) -> AdvisedSetting {
    AdvisedSetting::somewhat(SettingChange::Raise, name)
}

/// What to say of max_wal_size.
pub(super) fn volume(report: &Report, when: &Overview) -> Line {
    if saves_nothing_apart(report) {
        return "a larger max_wal_size saves writes to table files, but less than 1 % of the WAL"
            .into();
    }
    let Some((low, high)) = max_wal_size_now(report, when) else {
        let times = times_of_use(report);
        return Line::set(larger(MAX_WAL_SIZE), &format!(" to about {times} times what it is"));
    };
    let now = if low == high {
        format!("it is {} now", megabytes_setting(high))
    } else {
        format!("it is between {} and {} now", megabytes_setting(low), megabytes_setting(high))
    };
    match useful_size(report, when, high) {
        Some(size) => {
            let size =
                AdvisedSetting::to(SettingChange::Raise, MAX_WAL_SIZE, megabytes_setting(size));
            Line::set(size, &format!(": {now}"))
        }
        None => Line::set(
            larger(MAX_WAL_SIZE),
            &format!(" somewhat: {now}, and this WAL is too short to say by how much"),
        ),
    }
}

/// The least and the most that max_wal_size is: as the server's files have it, or as the distances show it.
fn max_wal_size_now(report: &Report, when: &Overview) -> Option<(u64, u64)> {
    let set = report.settings.as_ref().and_then(|settings| settings.values.max_wal_size);
    set.map(|bytes| (bytes, bytes)).or(when.max_wal_size_low.zip(when.max_wal_size_high))
}

/// The same of checkpoint_timeout, in seconds.
pub(crate) fn checkpoint_timeout_now(report: &Report) -> Option<u64> {
    let set = report.settings.as_ref().and_then(|settings| settings.values.checkpoint_timeout);
    set.or(report.when.as_ref()?.checkpoint_timeout_seconds)
}

/// How many times as far apart they make a difference in this WAL.
fn times_of_use(report: &Report) -> u64 {
    let aim = times_apart(report).min(MOST_TIMES);
    match worth_apart(report).map(|row| row.checkpoints_apart) {
        Some(Some(times)) => times.into(),
        // None of those in this WAL: so many are enough for that.
        Some(None) => {
            let moving = report.estimates.as_ref().map_or(0, |tried| tried.moving_redo_points);
            aim.min(moving + 1)
        }
        None => aim,
    }
}

/// The max_wal_size that makes a difference, where it is at most `high` now. `None` where that is no more
/// than now.
fn useful_size(report: &Report, when: &Overview, high: u64) -> Option<u64> {
    let needed = high.saturating_mul(times_of_use(report));
    // What is written in that time, and once more what is kept meanwhile.
    let sustained = when.running_rate.map_or(u64::MAX, |rate| (rate * 2.0) as u64 * FAR_APART);
    let seen = 2 * report.totals.total_bytes;
    let size = needed.min(sustained).min(seen);
    let step = if size >= 1 << 30 { 256 << 20 } else { 16 << 20 };
    Some(size - size % step).filter(|size| *size > high)
}

/// What to say of checkpoint_timeout.
pub(super) fn time(report: &Report) -> Line {
    let Some(now) = checkpoint_timeout_now(report) else {
        return Line::set(timeout(FAR_APART), "");
    };
    if saves_nothing_apart(report) {
        return format!(
            "checkpoint_timeout is {now}s: a longer one saves writes to table files, but less than 1 % of \
             the WAL"
        )
        .into();
    }
    let times = worth_apart(report).and_then(|row| row.checkpoints_apart);
    let wanted = times.map_or(FAR_APART, |times| {
        now.saturating_mul(times.into()).max(without_any(report, times)).min(FAR_APART)
    });
    Line::set(timeout(wanted), &format!(": it is {now}s now"))
}

/// The least checkpoint_timeout with which as little is written as with checkpoints so many times as far
/// apart, where that leaves none of them but one before this WAL: the time of this WAL, and no less than the
/// default.
fn without_any(report: &Report, times: u32) -> u64 {
    let moving = report.estimates.as_ref().map_or(0, |tried| tried.moving_redo_points);
    if u64::from(times) < moving {
        return 0;
    }
    let when = report.when.as_ref();
    let seconds = when.map_or(0, |when| when.growth_seconds * when.growth.len() as u64);
    seconds.next_multiple_of(60).max(DEFAULT_CHECKPOINT_TIMEOUT)
}

/// A checkpoint_timeout of so many seconds.
fn timeout(seconds: u64) -> AdvisedSetting {
    let told = match seconds % 60 {
        0 => format!("{}min", seconds / 60),
        _ => format!("{seconds}s"),
    };
    AdvisedSetting::to(SettingChange::Raise, CHECKPOINT_TIMEOUT, told)
}

/// What it costs to have them further apart; to ask for fewer costs nothing.
fn side_effects(mostly: Option<Cause>) -> Vec<String> {
    match mostly {
        Some(Cause::Requested) => Vec::new(),
        _ => vec![recovery_price(), "pg_wal takes up to max_wal_size of disk".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimate::{EstimateRow, Estimates, Predicted};
    use crate::model::sample;
    use crate::model::settings::{SettingValues, Settings};

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

    #[test]
    fn advice_is_about_what_begins_the_checkpoints() {
        let told =
            |causes| found(20, 5, 100 << 20, causes).map(|finding| finding.advice.join("; "));
        let by_wal = told(Causes { wal: 4, requested: 1, ..Causes::default() }).expect("a finding");
        assert!(
            by_wal.starts_with("raise max_wal_size") && !by_wal.contains("timeout"),
            "{by_wal}"
        );
        let asked = told(Causes { requested: 4, time: 1, ..Causes::default() }).expect("a finding");
        assert!(asked.starts_with("find out who"), "{asked}");
        let causes = Causes { requested: 4, ..Causes::default() };
        assert!(
            found(0, 5, 100 << 20, causes).is_some_and(|finding| finding.side_effects.is_empty())
        );
    }

    /// A report on which checkpoints come by volume every 10 s, with what wider distances save.
    fn by_volume(saved: &[(Option<u32>, f64)], total: u64, rate: f64) -> Report {
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
    fn the_size_is_what_makes_a_difference_in_this_wal() {
        let told = |saved: &[(Option<u32>, f64)], total: u64, rate| {
            check(&by_volume(saved, total << 20, rate)).expect("a finding").advice[0].clone()
        };
        let now = "it is between 100MB and 128MB now";
        let curve = [(Some(1), 0.0), (Some(2), 0.3), (Some(4), 0.4), (Some(8), 0.405)];
        // Eight times as far apart saves half a point more than four times.
        assert_eq!(told(&curve, 4000, 1e8), format!("max_wal_size = 512MB: {now}"));
        // At 100 kB a second half an hour needs 343 MB.
        assert_eq!(told(&curve, 4000, 1e5), format!("max_wal_size = 336MB: {now}"));
        // Twice what was read.
        assert_eq!(told(&curve, 100, 1e8), format!("max_wal_size = 192MB: {now}"));
        let steep = [(Some(1), 0.0), (Some(2), 0.3), (Some(64), 0.9)];
        assert_eq!(told(&steep, 402, 1e8), format!("max_wal_size = 800MB: {now}"));
    }

    #[test]
    fn what_to_set_stands_beside_the_sentence() {
        let mut report = by_volume(&[(Some(1), 0.0), (Some(4), 0.4)], 4000 << 20, 1e8);
        let set = |report: &Report| check(report).expect("a finding").advised_settings;
        let size = AdvisedSetting::to(SettingChange::Raise, MAX_WAL_SIZE, "512MB");
        assert_eq!(set(&report), [size]);
        report.when.iter_mut().for_each(|when| when.max_wal_size_high = None);
        assert_eq!(set(&report), [larger(MAX_WAL_SIZE)]);
        report.when.iter_mut().for_each(|when| {
            when.wal_by_cause = Causes { requested: 9, ..Causes::default() };
        });
        assert_eq!(set(&report), []);
    }

    #[test]
    fn far_from_max_wal_size_the_timeout_is_to_be_raised() {
        let mut report = by_volume(&[(Some(1), 0.0), (None, 0.5)], 400 << 20, 1e8);
        let mut settings = crate::model::settings::Settings::default();
        settings.values.checkpoint_timeout = Some(30);
        settings.values.max_wal_size = Some(4 << 30);
        report.settings = Some(settings);
        let distance = |max| Some(Spacing { count: 1, max, ..Spacing::default() });
        report.when.iter_mut().for_each(|when| {
            // Of the first one nothing is known: it began before this WAL.
            when.wal_by_cause = Causes { time: 113, unknown: 118, ..Causes::default() };
            when.spacing_cause = Some(Cause::Time);
            when.spacing_bytes = distance(120 << 20);
        });
        let finding = check(&report).expect("a finding");
        assert_eq!(finding.advice, ["checkpoint_timeout = 30min: it is 30s now"]);
        assert!(finding.title.ends_with("mostly by time"), "{}", finding.title);
        report.when.iter_mut().for_each(|when| when.spacing_bytes = distance(2 << 30));
        assert!(check(&report).expect("a finding").advice[0].contains("max_wal_size"));
    }

    #[test]
    fn where_none_by_volume_is_left_more_makes_no_difference() {
        let none = [(Some(1), 0.0), (Some(2), 0.15), (None, 0.28)];
        let mut report = by_volume(&none, 400 << 20, 1e8);
        report.estimates.iter_mut().for_each(|tried| tried.moving_redo_points = 3);
        let told = |report: &Report| check(report).expect("a finding").advice[0].clone();
        assert!(told(&report).starts_with("max_wal_size = 512MB"), "{}", told(&report));
        report.when.iter_mut().for_each(|when| when.max_wal_size_high = None);
        assert_eq!(told(&report), "raise max_wal_size to about 4 times what it is");
    }

    /// One checkpoint by the clock of 30 s in 84 s of WAL: with 1min there would be one as well, which saved
    /// 15 % where none saves 32 %.
    #[test]
    fn a_timeout_that_leaves_no_checkpoint_is_longer_than_the_wal() {
        let told = |moving: u64, seconds: u64| {
            let mut report = by_volume(&[(Some(1), 0.0), (Some(2), 0.32)], 160 << 20, 2e6);
            report.estimates.iter_mut().for_each(|tried| tried.moving_redo_points = moving);
            let when = report.when.iter_mut();
            when.for_each(|when| {
                (when.growth_seconds, when.growth) = (1, vec![1; seconds as usize])
            });
            let values = SettingValues { checkpoint_timeout: Some(30), ..SettingValues::default() };
            report.settings = Some(Settings { values, ..Settings::default() });
            time(&report).text
        };
        assert_eq!(told(1, 84), "checkpoint_timeout = 5min: it is 30s now");
        assert_eq!(told(1, 601), "checkpoint_timeout = 11min: it is 30s now");
        assert_eq!(told(2, 84), "checkpoint_timeout = 5min: it is 30s now");
        assert_eq!(told(3, 84), "checkpoint_timeout = 1min: it is 30s now");
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

    /// Three were asked for by DROP DATABASE: its records lie right after them. It was not among who asks.
    #[test]
    fn databases_that_were_dropped_or_copied_are_told() {
        let mut report = by_volume(&[(Some(1), 0.0)], 400 << 20, 1e8);
        let asked = Causes { requested: 3, ..Causes::default() };
        report.when.iter_mut().for_each(|when| when.wal_by_cause = asked.clone());
        report.when.iter_mut().for_each(|when| when.causes = asked.clone());
        let told = |report: &Report| check(report).expect("a finding").advice;
        assert_eq!(told(&report), [WHO]);
        assert!(WHO.contains("DROP DATABASE") && WHO.contains("DROP TABLESPACE"));
        report.when.iter_mut().for_each(|when| when.before_drops = 2);
        let advice = told(&report);
        assert!(
            advice[0].starts_with("2 of the 3 that were asked for came right before a database")
        );
        assert_eq!((advice.len(), &*advice[1]), (2, WHO));
        // Nobody else asked: there is nothing to find out.
        report.when.iter_mut().for_each(|when| when.beside_copies = 1);
        let advice = told(&report);
        assert!(advice[1].contains("STRATEGY = WAL_LOG") && advice.len() == 2, "{advice:?}");
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
