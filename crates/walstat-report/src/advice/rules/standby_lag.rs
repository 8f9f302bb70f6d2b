//! What it looks at: how late a standby gets that replays 50 MB a second, as on slow disks.
//!
//! Why it matters: a standby replays in one process. Where WAL comes faster than that for a while,
//! reads on the standby are old, and a switch-over has to wait: from 30 seconds on somebody notices.
//!
//! What to do: write less WAL at once (compress images, space checkpoints out, load in smaller
//! parts); `recovery_prefetch` (15 and later) and faster disks for the standby.
//!
//! When to ignore it: where there is no standby, or where they are known to replay faster.
//!
//! Reference: `walstat --stats=replication --replay-rate RATE` for other rates.

use super::{REPLAY_RATES, evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::size::megabytes_setting;
use crate::model::threshold::{Speaks, Threshold, Unit};

/// From so many seconds of delay on somebody notices.
const SECONDS: Threshold = Threshold {
    speaks: Speaks::From,
    chen: 30.0,
    strict: 10.0,
    relaxed: 120.0,
    unit: Unit::Seconds,
};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "standby-lag",
    summary: "a standby that replays 50 MB/s would be 30 s late",
    text: include_str!("standby_lag.rs"),
    threshold: SECONDS,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let when = report.when.as_ref()?;
    let threshold = RULE.limit(report);
    let lag = when.slow_replay_lag_seconds.filter(|lag| *lag >= threshold)?;
    if says_little(report) {
        return None;
    }
    let rate = REPLAY_RATES.0;
    Some(Finding {
        evidence: evidence([
            ("lag_seconds", lag.into()),
            ("threshold", threshold.into()),
            ("replay_rate", rate.into()),
            ("peak_rate", when.peak_rate.into()),
        ]),
        advice: vec![
            "write less WAL at once: compress images, space checkpoints out, load in smaller parts"
                .into(),
            "recovery_prefetch (15 and later) and fast disks for the standby".into(),
        ],
        source: "walstat --stats=replication".into(),
        ..plain_finding(
            &RULE,
            format!(
                "a standby that replays {}/s would be {lag:.0} s late",
                megabytes_setting(rate)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::when::Overview;

    #[test]
    fn it_speaks_from_half_a_minute_on() {
        let found = |lag, total| {
            let mut report = sample::report(0, total);
            let slow_replay_lag_seconds = Some(lag);
            report.when = Some(Overview { slow_replay_lag_seconds, ..Overview::default() });
            check(&report).is_some()
        };
        assert!(found(30.0, 100 << 20));
        assert!(!found(29.9, 100 << 20));
        assert!(!found(30.0, 15 << 20));
    }
}
