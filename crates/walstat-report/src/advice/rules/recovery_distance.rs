//! What it looks at: how much WAL a crash would make the server replay at the worst moment.
//!
//! Why it matters: until it is replayed nobody can work. At 50 MB/s, as on slow disks, more than 300
//! seconds are worth knowing before it happens.
//!
//! What to do: lower `max_wal_size` or `checkpoint_timeout`, at the price of more images; or have a
//! standby that takes over.
//!
//! When to ignore it: where a standby takes over anyway.
//!
//! Reference: `max_wal_size` in the PostgreSQL manual; rates as in the other rules.

use super::{CHECKPOINT_TIMEOUT, Line, MAX_WAL_SIZE, REPLAY_RATES, evidence, plain_finding};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::{AdvisedSetting, Finding, SettingChange};
use crate::model::size::megabytes_setting;
use crate::model::threshold::{Speaks, Threshold, Unit};

/// From so many seconds of slow replay on it is worth knowing.
const SECONDS: Threshold = Threshold {
    speaks: Speaks::From,
    chen: 300.0,
    strict: 120.0,
    relaxed: 900.0,
    unit: Unit::Seconds,
};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "recovery-distance",
    summary: "crash recovery could take 300 s or more",
    text: include_str!("recovery_distance.rs"),
    threshold: SECONDS,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let bytes = report.when.as_ref()?.worst_recovery_bytes?;
    let (slow, fast) = REPLAY_RATES;
    let (most, least) = (bytes / slow, bytes / fast);
    let threshold = RULE.whole_limit(report);
    if most < threshold {
        return None;
    }
    let lower = |name: &str| AdvisedSetting::somewhat(SettingChange::Lower, name);
    let settings = [MAX_WAL_SIZE, CHECKPOINT_TIMEOUT].map(lower).to_vec();
    let text = format!(
        "{} to replay: lower {MAX_WAL_SIZE} or {CHECKPOINT_TIMEOUT}",
        megabytes_setting(bytes)
    );
    let finding = Finding {
        evidence: evidence([
            ("wal_bytes", bytes.into()),
            ("seconds_low", least.into()),
            ("seconds_high", most.into()),
            ("threshold", threshold.into()),
        ]),
        side_effects: vec!["checkpoints closer to each other write more page images".into()],
        source: "PostgreSQL manual, WAL configuration".into(),
        ..plain_finding(
            &RULE,
            format!("a crash at the worst moment means {least} to {most} s of recovery"),
        )
    };
    Some(finding.advising([Line { text, settings }, "or have a standby take over".into()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::when::Overview;

    #[test]
    fn it_speaks_from_five_minutes_of_slow_replay_on() {
        let found = |bytes| {
            let mut report = sample::report(0, 100 << 20);
            let worst_recovery_bytes = Some(bytes);
            report.when = Some(Overview { worst_recovery_bytes, ..Overview::default() });
            check(&report).is_some()
        };
        assert!(found(300 * (50 << 20)));
        assert!(!found(300 * (50 << 20) - 1));
    }
}
