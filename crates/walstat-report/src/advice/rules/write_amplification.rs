//! What it looks at: all bytes of the records by those that are not images.
//!
//! Why it matters: it says how many times over the changes themselves were written. 20 is
//! common on a server that was never tuned, below 3 was reached with longer checkpoint
//! distances, fillfactor and compression together.
//!
//! What to do: as for `fpi-ratio`, all measures together.
//!
//! When to ignore it: where the server writes little, or the range begins right after a checkpoint.
//!
//! Reference: Chen 2017.

use super::checkpoint_spacing::are_asked_for;
use super::wal_compression::better_codec;
use super::{
    CHECKPOINT_TIMEOUT, CHEN_2017, Line, MAX_WAL_SIZE, UNTUNED_AMPLIFICATION, evidence,
    further_apart, is_far_apart, is_for_checking, plain_finding, recovery_price,
    saves_nothing_apart, says_little,
};
use crate::advice::Rule;
use crate::advice::cures::of_checkpoints::larger;
use crate::model::Report;
use crate::model::finding::{Finding, Severity};
use crate::model::threshold::{Speaks, Threshold, Unit};

/// Below this, little is left to win.
const REACHABLE: Threshold =
    Threshold { speaks: Speaks::From, chen: 3.0, strict: 2.0, relaxed: 6.0, unit: Unit::Times };

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "write-amplification",
    summary: "images multiply the bytes of the changes: 20 is common untuned, below 3 reachable",
    text: include_str!("write_amplification.rs"),
    threshold: REACHABLE,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let times = report.ratios.write_amplification?;
    let threshold = RULE.limit(report);
    if times < threshold || says_little(report) || is_for_checking(report) {
        return None;
    }
    let codec = better_codec(report).map(|(codec, _)| codec);
    let has_use = !is_far_apart(report) && !saves_nothing_apart(report) && !are_asked_for(report);
    // What is left to do another rule says.
    if !has_use {
        return None;
    }
    let both = [CHECKPOINT_TIMEOUT, MAX_WAL_SIZE];
    let text =
        format!("space checkpoints out ({} together), and compress images", both.join(" and "));
    let advice = Line { text, settings: both.map(larger).to_vec() };
    let finding = Finding {
        severity: if times < UNTUNED_AMPLIFICATION { Severity::Info } else { Severity::Warning },
        evidence: evidence([
            ("write_amplification", times.into()),
            ("untuned", UNTUNED_AMPLIFICATION.into()),
            ("reachable", threshold.into()),
        ]),
        side_effects: vec![recovery_price()],
        source: CHEN_2017.into(),
        ..plain_finding(&RULE, format!("{times:.1} bytes are written for each byte of change"))
    };
    let both = further_apart(report, codec);
    Some(
        finding
            .advising([advice])
            .quoting(report, both.or(better_codec(report).and_then(|(_, row)| row))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::model::when::{Overview, Spacing};

    #[test]
    fn it_speaks_from_three_on_and_warns_from_twenty_on() {
        let found = |times, total| {
            let mut report = sample::report(0, total);
            report.ratios.write_amplification = Some(times);
            check(&report).map(|finding| finding.severity)
        };
        assert_eq!(found(20.0, 100 << 20), Some(Severity::Warning));
        assert_eq!(found(3.0, 100 << 20), Some(Severity::Info));
        assert_eq!(found(2.9, 100 << 20), None);
        assert_eq!(found(20.0, 1 << 20), None);
    }

    #[test]
    fn it_does_not_advise_what_is_done_already_or_by_another_rule() {
        let mut report = sample::report(0, 100 << 20);
        report.ratios.write_amplification = Some(20.0);
        let spacing = Spacing { count: 4, median: 1800, ..Spacing::default() };
        report.when = Some(Overview { spacing_seconds: Some(spacing), ..Overview::default() });
        assert!(better_codec(&report).is_some() && check(&report).is_none());
    }
}
