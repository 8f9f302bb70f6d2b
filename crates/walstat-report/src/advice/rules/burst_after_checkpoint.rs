//! What it looks at: which share of the page images lies in the first quarter of their checkpoint
//! cycle's WAL, of the cycles that have ended. Where these have less than half of the images, it is silent.
//!
//! Why it matters: right after a checkpoint most pages are touched for the first time, and each is
//! written as a whole. From 50 % on the images come as a burst: sessions wait for WAL then, and
//! standbys fall behind.
//!
//! What to do: compress images; space checkpoints out, so that there are fewer bursts.
//!
//! When to ignore it: where nobody notices slower answers after a checkpoint.
//!
//! Reference: `full_page_writes` and `wal_compression` in the PostgreSQL manual.

use super::wal_compression::better_codec;
use super::{evidence, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::finding::Finding;
use crate::model::percent::percent;
use crate::model::threshold::Threshold;

/// From this share in the first quarter on it is a burst.
const BURST: Threshold = Threshold::from_share(0.5, 0.4, 0.7);
/// Below this share of all bytes, images are no load, whenever they come.
const IMAGES: f64 = 0.3;
/// Fewer cycles are no habit.
const CHECKPOINTS: u64 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "burst-after-checkpoint",
    summary: "50 % of the page images come in the first quarter of a checkpoint cycle",
    text: include_str!("burst_after_checkpoint.rs"),
    threshold: BURST,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let when = report.when.as_ref()?;
    let threshold = RULE.limit(report);
    let share = when.fpi_first_quarter_ratio.filter(|share| *share >= threshold)?;
    let images = report.ratios.fpi_ratio.filter(|images| *images >= IMAGES)?;
    if when.checkpoints < CHECKPOINTS || says_little(report) {
        return None;
    }
    let compression =
        better_codec(report).map(|_| "compress images: wal-compression says how".to_owned());
    Some(Finding {
        evidence: evidence([
            ("fpi_first_quarter_ratio", share.into()),
            ("threshold", threshold.into()),
            ("fpi_ratio", images.into()),
            ("fpi_ratio_least", IMAGES.into()),
            ("checkpoints", when.checkpoints.into()),
        ]),
        advice: compression
            .into_iter()
            .chain([
                "checkpoints further apart: fewer bursts, each hardly higher than now".to_owned()
            ])
            .collect(),
        source: "PostgreSQL manual, WAL configuration".into(),
        ..plain_finding(
            &RULE,
            format!(
                "{} of the images of cycles that have ended came in their first quarter",
                percent(share, 0)
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
    fn it_speaks_of_bursts_of_many_images_only() {
        let found = |share, fpi: u64, checkpoints, total: u64| {
            let mut report = sample::report(fpi << 20, total << 20);
            let fpi_first_quarter_ratio = Some(share);
            report.when =
                Some(Overview { fpi_first_quarter_ratio, checkpoints, ..Overview::default() });
            check(&report).is_some()
        };
        assert!(found(0.5, 30, 3, 100));
        assert!(!found(0.49, 30, 3, 100));
        assert!(!found(0.5, 29, 3, 100));
        assert!(!found(0.5, 30, 2, 100));
        assert!(!found(0.5, 5, 3, 15));
    }
}
