//! What it looks at: the share of HOT updates in all heap updates, from 1,000 updates on.
//!
//! Why it matters: an update that is not HOT writes an entry into every index of the table,
//! each of them a record and, after a checkpoint, an image.
//!
//! What to do: leave room in the pages (`fillfactor`), so that the new row finds place beside
//! the old one; do not index columns that are updated often.
//!
//! When to ignore it: the updated columns have to be indexed. It is never critical, because that
//! may be the case.
//!
//! Reference: Chen 2017: 44 % at fillfactor 100, 81 % at 90.

use super::{CHEN_2017, evidence, says_little};
use crate::report::advice::Rule;
use crate::report::model::Report;
use crate::report::model::finding::{Finding, Severity};
use crate::report::model::threshold::MIN_UPDATES;

/// Below this share of HOT updates, index maintenance is worth a look.
const THRESHOLD: f64 = 0.70;

/// The rule.
pub const RULE: Rule = Rule {
    id: "hot-ratio",
    summary: "less than 70 % of the updates are HOT",
    text: include_str!("hot_ratio.rs"),
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let ratio = report.ratios.hot_ratio?;
    let updates = report.ratios.updates;
    if ratio >= THRESHOLD || says_little(report) || updates < MIN_UPDATES {
        return None;
    }
    Some(Finding {
        rule: RULE.id.into(),
        severity: Severity::Warning,
        title: format!("only {:.1} % of the updates are HOT", ratio * 100.0),
        evidence: evidence([
            ("hot_ratio", ratio.into()),
            ("threshold", THRESHOLD.into()),
            ("updates", updates.into()),
        ]),
        advice: vec![
            "fillfactor: 90 on tables that are updated a lot (then rewrite them once)".into(),
            "indexes on columns that updates change: each keeps an update from being HOT".into(),
        ],
        side_effects: vec![
            "tables with fillfactor 90 take about a tenth more space and cache".into(),
            "the rewrite (VACUUM FULL, CLUSTER) locks the table and writes WAL itself".into(),
        ],
        ignore_when: "the updated columns have to be indexed".into(),
        estimate: None,
        source: CHEN_2017.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::sample;

    #[test]
    fn it_speaks_below_the_threshold_and_above_the_least_volume_only() {
        let found = |hot, updates, total| {
            let mut report = sample::report(0, total);
            report.ratios.hot_ratio = hot;
            report.ratios.updates = updates;
            check(&report).is_some()
        };
        assert!(found(Some(0.44), 1000, 100 << 20));
        assert!(!found(Some(0.44), 999, 100 << 20));
        assert!(!found(Some(0.70), 1000, 100 << 20));
        assert!(!found(Some(0.44), 1000, 10 << 20));
        assert!(!found(None, 0, 100 << 20));
    }
}
