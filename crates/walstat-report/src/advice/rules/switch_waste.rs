//! What it looks at: which share of the WAL is the rest of segments that a switch left empty.
//!
//! Why it matters: `archive_timeout`, backups and `pg_switch_wal()` end a segment early. Its rest is
//! archived and sent all the same, and takes the space of a whole segment. From 20 % on it is worth
//! a look.
//!
//! What to do: raise `archive_timeout`; or let a standby or `pg_receivewal` stream the WAL, which
//! needs no switches; compress archived segments, whose rest then takes next to nothing.
//!
//! When to ignore it: where archived segments are compressed and the disk is large enough.
//!
//! Reference: `archive_timeout` in the PostgreSQL manual.

use super::{Line, evidence, plain_finding};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::percent::percent;
use crate::model::size::megabytes_setting;
use crate::model::threshold::{MIN_VOLUME_BYTES, Threshold};

/// From this share of the input on it is worth a look.
const WASTE: Threshold = Threshold::from_share(0.2, 0.1, 0.4);

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "switch-waste",
    summary: "20 % of the WAL is the empty rest of segments that were closed early",
    text: include_str!("switch_waste.rs"),
    threshold: WASTE,
    check,
};

/// The setting.
const ARCHIVE_TIMEOUT: &str = "archive_timeout";
/// A minute is as often as the manual calls reasonable.
const REASONABLE: u64 = 60;

fn check(report: &Report) -> Option<Finding> {
    let books = &report.books;
    let share = books.switch_ratio()?;
    // A segment or two that a backup ended early are no habit.
    let threshold = RULE.limit(report);
    if share < threshold || books.switch_bytes < MIN_VOLUME_BYTES || report.input.segments < 4 {
        return None;
    }
    let settings = report.settings.as_ref();
    let timeout = settings.and_then(|settings| settings.values.archive_timeout);
    let is_off = timeout == Some(0);
    let finding = Finding {
        evidence: evidence([
            ("switch_bytes", books.switch_bytes.into()),
            ("input_bytes", books.input_bytes.into()),
            ("threshold", threshold.into()),
        ]),
        side_effects: if is_off {
            Vec::new()
        } else {
            let text = "with a longer archive_timeout, losing the server loses more WAL that was not \
                        archived yet";
            vec![text.into()]
        },
        source: "PostgreSQL manual, archive_timeout".into(),
        ..plain_finding(
            &RULE,
            format!(
                "{} of the WAL is the empty rest of segments that were closed early",
                percent(share, 0)
            ),
        )
    };
    // Which of the switches somebody needs, nobody knows here.
    let compressed = format!(
        "compress archived segments: {} of their bytes are empty, and at most that is saved",
        megabytes_setting(books.switch_bytes)
    );
    let of_timeout = report.when.as_ref().and_then(|when| when.archive_timeout_bytes);
    let of_timeout = of_timeout.filter(|bytes| *bytes > 0 && !is_off).map(|bytes| {
        let megabytes = megabytes_setting(bytes);
        format!("archive_timeout left {megabytes} of them empty: a longer one saves at most that")
    });
    let advice = [Some(fewer_switches(report, timeout)), of_timeout.map(Line::from)];
    let advice = advice.into_iter().flatten().chain([compressed.into()]);
    Some(finding.advising(advice).explaining(books.switch_bytes))
}

/// What to do about them, where archive_timeout is so many seconds; 0 is off.
fn fewer_switches(report: &Report, timeout: Option<u64>) -> Line {
    let larger = || AdvisedSetting::somewhat(SettingChange::Raise, ARCHIVE_TIMEOUT);
    match timeout {
        None => Line::set(larger(), ", or stream the WAL instead"),
        Some(0) => {
            let backups = report.when.as_ref().map_or(0, |when| when.backups);
            let who = closed_by(backups);
            format!("archive_timeout is off: {who}").into()
        }
        Some(now) if is_of_others(report) => {
            let who = closed_by(report.when.as_ref().map_or(0, |when| when.backups));
            format!("archive_timeout = {now}s closed none or few of them: {who}").into()
        }
        Some(now) if now < REASONABLE => {
            let reasonable = format!("{REASONABLE}s");
            let to = AdvisedSetting::to(SettingChange::Raise, ARCHIVE_TIMEOUT, reasonable);
            Line::set(to, &format!(": it is {now}s now; or stream the WAL instead"))
        }
        Some(now) => Line::set(larger(), &format!(": it is {now}s now; or stream the WAL instead")),
    }
}

/// Whether somebody else than archive_timeout left most of it empty, as far as that is known.
fn is_of_others(report: &Report) -> bool {
    let of_timeout = report.when.as_ref().and_then(|when| when.archive_timeout_bytes);
    of_timeout.is_some_and(|bytes| bytes * 2 < report.books.switch_bytes)
}

/// Who closes segments beside archive_timeout.
fn closed_by(backups: u64) -> String {
    match backups {
        0 => "find out who closes segments, base backups, restarts or pg_switch_wal()".to_owned(),
        1 => {
            "segments were closed by the base backup in this WAL, by restarts or by pg_switch_wal()"
                .to_owned()
        }
        _ => format!(
            "segments were closed by the {backups} base backups in this WAL, by restarts or by \
             pg_switch_wal()"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    #[test]
    fn it_speaks_from_a_fifth_of_the_input_on() {
        let found = |switch: u64, input: u64, segments| {
            let mut report = sample::report(0, 1 << 20);
            report.books.switch_bytes = switch << 20;
            report.books.input_bytes = input << 20;
            report.input.segments = segments;
            check(&report).is_some()
        };
        assert!(found(20, 100, 7));
        assert!(!found(19, 100, 7));
        assert!(!found(15, 48, 4));
        assert!(!found(20, 48, 3));
    }

    #[test]
    fn a_timeout_that_is_off_is_not_to_be_raised() {
        let mut report = sample::report(0, 0);
        (report.books.switch_bytes, report.books.input_bytes) = (60 << 20, 100 << 20);
        report.input.segments = 7;
        let advice = |report: &Report| check(report).expect("a finding").advice[0].clone();
        assert!(advice(&report).starts_with("raise archive_timeout"));
        let mut set = |seconds| {
            let mut settings = crate::model::settings::Settings::default();
            settings.values.archive_timeout = Some(seconds);
            report.settings = Some(settings);
            advice(&report)
        };
        assert!(set(0).contains("who closes segments"));
        assert!(set(5).starts_with("archive_timeout = 60s: it is 5s now"));
        assert!(set(60).starts_with("raise archive_timeout: it is 60s now"));
        let when = crate::model::when::Overview { backups: 3, ..Default::default() };
        report.when = Some(when);
        assert!(fewer_switches(&report, Some(0)).text.contains("the 3 base backups"));
    }

    #[test]
    fn what_the_timeout_left_empty_is_said() {
        let mut report = sample::report(0, 0);
        (report.books.switch_bytes, report.books.input_bytes) = (60 << 20, 100 << 20);
        report.input.segments = 7;
        let archive_timeout_bytes = Some(37 << 20);
        report.when =
            Some(crate::model::when::Overview { archive_timeout_bytes, ..Default::default() });
        let advice = check(&report).expect("a finding").advice;
        assert!(advice[1].starts_with("archive_timeout left 37MB of them empty"), "{advice:?}");
    }

    #[test]
    fn what_backups_and_restarts_leave_empty_is_not_the_timeout_s() {
        let mut report = sample::report(0, 0);
        report.books.switch_bytes = 37 << 20;
        let told = |bytes| {
            let when = crate::model::when::Overview {
                backups: 1,
                archive_timeout_bytes: bytes,
                ..Default::default()
            };
            let mut report = report.clone();
            report.when = Some(when);
            fewer_switches(&report, Some(5)).text
        };
        assert!(told(Some(0)).contains("by the base backup in this WAL"));
        assert!(told(Some(30 << 20)).starts_with("archive_timeout = 60s"));
        assert!(told(None).starts_with("archive_timeout = 60s"));
    }
}
