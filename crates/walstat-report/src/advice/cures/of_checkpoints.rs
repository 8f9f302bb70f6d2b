//! What to do about checkpoints that are close to each other, by what begins them: which setting is to be
//! raised, and to what, or who asks for them.

use crate::advice::rules::{
    CHECKPOINT_TIMEOUT, FAR_APART, Line, MAX_WAL_SIZE, recovery_price, saves_nothing_apart,
    times_apart, worth_apart,
};
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, SettingChange};
use crate::model::size::megabytes_setting;
use crate::model::when::{Overview, Spacing};
use walstat_analyse::checkpoint::SHORTEST_TIMEOUT;
use walstat_analyse::checkpoint::cause::Cause;
use walstat_names::server_settings::DEFAULT_CHECKPOINT_TIMEOUT;

/// No setting is told to be raised to more than so many times what it is: a short load that writes
/// at full speed says little of the day.
const MOST_TIMES: u64 = 100;

/// What to do about checkpoints that come mostly for one reason, or nobody knows for which.
pub(in crate::advice) fn advice(
    report: &Report,
    when: &Overview,
    spacing: &Spacing,
    mostly: Option<Cause>,
) -> Vec<Line> {
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
pub(in crate::advice) fn larger(name: &str) -> AdvisedSetting {
    AdvisedSetting::somewhat(SettingChange::Raise, name)
}

/// What to say of max_wal_size.
pub(in crate::advice) fn volume(report: &Report, when: &Overview) -> Line {
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
pub(in crate::advice) fn checkpoint_timeout_now(report: &Report) -> Option<u64> {
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
pub(in crate::advice) fn time(report: &Report) -> Line {
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
pub(in crate::advice) fn side_effects(mostly: Option<Cause>) -> Vec<String> {
    match mostly {
        Some(Cause::Requested) => Vec::new(),
        _ => vec![recovery_price(), "pg_wal takes up to max_wal_size of disk".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rules::checkpoint_spacing::RULE;
    use crate::advice::rules::checkpoint_spacing::tests::{by_volume, found};
    use crate::model::finding::Finding;
    use crate::model::settings::{SettingValues, Settings};
    use crate::model::when::Causes;

    fn check(report: &Report) -> Option<Finding> {
        (RULE.check)(report)
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
}
