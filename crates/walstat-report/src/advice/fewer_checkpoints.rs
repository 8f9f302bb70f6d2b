//! Less WAL means fewer checkpoints by volume, and these fewer images: what a change saves beside its own.

use crate::model::Report;
use crate::model::estimate::{Estimates, WORTH_A_WORD};
use crate::model::finding::{Certainty, Finding};
use crate::model::percent::percent;
use crate::settled::settled;

/// A finding that knows only what its own change saves, with what fewer checkpoints save in addition. How
/// many images they spare depends on which pages are left, of which the sample of all images tells little: so
/// that is part of what is saved at most, and beside a rule's figure it is a sentence.
pub(super) fn counted(report: &Report, finding: Finding) -> Finding {
    let total = report.totals.total_bytes;
    let has_own = matches!(finding.certainty, Certainty::Computed | Certainty::Possible);
    let own = finding.estimate.filter(|saved| has_own && (1..total).contains(saved));
    let Some(own) = own.filter(|_| finding.predicted.is_none()) else { return finding };
    let own = own as f64 / total as f64;
    let images = report.totals.fpi_bytes as f64 / total as f64;
    // A figure that is only an upper bound (`Possible`) may save no image at all; a figure that follows from
    // the rule (`Computed`) is assumed to save images and nothing else.
    let left = match finding.certainty {
        Certainty::Possible => images.min(1.0 - own),
        _ => images - own,
    };
    let together = own + more(report, own, left);
    if together - own < WORTH_A_WORD {
        return finding;
    }
    let mut advice = finding.advice;
    if finding.certainty == Certainty::Possible {
        let estimate = (together * total as f64) as u64;
        let spared = estimate.saturating_sub((own * total as f64) as u64);
        advice.push(format!(
            "by itself it saves {} of the bytes at most; the rest are images that fewer checkpoints by \
             volume spare",
            percent(own, 0)
        ));
        return Finding {
            advice,
            estimate: Some(estimate),
            fewer_checkpoints_bytes: Some(spared),
            ..finding
        };
    }
    advice.push(format!(
        "less WAL also means fewer checkpoints by volume: up to −{} with what they save",
        percent(together, 0)
    ));
    Finding { advice, ..finding }
}

/// The share that fewer checkpoints save where a change saves `own`, and leaves images of the share `left`.
fn more(report: &Report, own: f64, left: f64) -> f64 {
    let has_volume = report.when.as_ref().is_some_and(|when| when.causes.wal > 0);
    let estimates = report.estimates.as_ref().filter(|_| has_volume && left > 0.0);
    let Some(estimates) = estimates else { return 0.0 };
    let curve = curve(estimates);
    let images = report.totals.fpi_bytes as f64 / report.totals.total_bytes.max(1) as f64;
    let spared = |all: f64| left * saved_apart(&curve, 1.0 / (1.0 - all)) / images;
    settled(0.0, |more| spared(own + more))
}

/// What checkpoints so many times as far apart save, as far as that was tried, by the times; at the end, what
/// none at all save.
fn curve(estimates: &Estimates) -> Vec<(f64, f64)> {
    let plain = estimates.scenarios.iter().filter(|row| row.wal_compression.is_none());
    let times = |times: Option<u32>| times.map_or(f64::INFINITY, f64::from);
    let mut curve: Vec<(f64, f64)> = plain
        .map(|row| (times(row.checkpoints_apart), (-row.predicted.change_ratio).max(0.0)))
        .collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve
}

/// The same between those that were tried: in equal steps for equal ratios; beyond them, that of none at all.
fn saved_apart(curve: &[(f64, f64)], times: f64) -> f64 {
    let next = curve.partition_point(|(tried, _)| *tried < times);
    let Some((beyond, most)) = curve.get(next).or(curve.last()) else { return 0.0 };
    let Some((before, least)) = next.checked_sub(1).and_then(|at| curve.get(at)) else {
        return 0.0;
    };
    if beyond.is_infinite() || before >= beyond {
        return *most;
    }
    least + (most - least) * (times / before).ln() / (beyond / before).ln()
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::finding_of;
    use super::*;
    use crate::model::estimate::{EstimateRow, Predicted};
    use crate::model::sample;
    use crate::model::when::{Causes, Overview};

    const TOTAL: u64 = 1000 << 20;

    /// Twice as far apart save a tenth, four times a fifth, none three tenths.
    fn report(wal: u64) -> Report {
        let tried = [(Some(1), 0.0), (Some(2), 0.1), (Some(4), 0.2), (None, 0.3)];
        let row = |(checkpoints_apart, saved): (Option<u32>, f64)| EstimateRow {
            checkpoints_apart,
            wal_compression: None,
            predicted: Predicted {
                predicted_bytes: ((1.0 - saved) * TOTAL as f64) as u64,
                change_ratio: -saved,
                low_bytes: 0,
                high_bytes: 0,
            },
        };
        let scenarios = tried.map(row).into();
        let causes = Causes { wal, ..Causes::default() };
        Report {
            estimates: Some(Estimates { scenarios, ..Estimates::default() }),
            when: Some(Overview { causes, ..Overview::default() }),
            // Four fifths are images.
            ..sample::report(TOTAL / 5 * 4, TOTAL)
        }
    }

    fn half(certainty: Certainty) -> Finding {
        Finding { estimate: Some(TOTAL / 2), certainty, ..finding_of("random-index") }
    }

    #[test]
    fn what_is_saved_has_what_fewer_checkpoints_save() {
        let saved = |wal, certainty| {
            let found = counted(&report(wal), half(certainty));
            (found.estimate.expect("a figure") as f64 / TOTAL as f64, found.advice)
        };
        for certainty in [Certainty::Computed, Certainty::Possible] {
            let (share, advice) = saved(0, certainty);
            assert_eq!((share, advice.len()), (0.5, 0), "none is by volume");
        }
        // Of the images that are left, three of eight, an eighth goes twice as far apart; with that a little
        // more. They may be of pages that are changed once, so the figure of a rule is without that.
        let (rule, advice) = saved(9, Certainty::Computed);
        let told =
            "less WAL also means fewer checkpoints by volume: up to −54 % with what they save";
        assert_eq!((rule, advice), (0.5, vec![told.to_owned()]));
        // If the half has no images, five of eight are left.
        let (most, advice) = saved(9, Certainty::Possible);
        assert!((0.5625..0.58).contains(&most), "{most}");
        // The figure beside the finding is more than the finding says of itself: both are told.
        assert!(
            advice.concat().starts_with("by itself it saves 50 % of the bytes at most"),
            "{advice:?}"
        );
        let found = counted(&report(9), half(Certainty::Possible));
        let spared = found.estimate.map(|bytes| bytes - TOTAL / 2);
        assert_eq!(found.fewer_checkpoints_bytes, spared);
        let mut without_images = report(9);
        without_images.totals.fpi_bytes = 0;
        assert_eq!(counted(&without_images, half(Certainty::Computed)).estimate, Some(TOTAL / 2));
        let unknown = Finding { estimate: None, ..half(Certainty::Possible) };
        assert_eq!(counted(&report(9), unknown).estimate, None);
    }

    #[test]
    fn between_those_that_were_tried_it_is_estimated() {
        let curve = [(1.0, 0.0), (2.0, 0.1), (4.0, 0.2), (f64::INFINITY, 0.3)];
        let saved = |times| (saved_apart(&curve, times) * 1000.0).round();
        assert_eq!([1.0, 2.0, 4.0].map(saved), [0.0, 100.0, 200.0]);
        assert_eq!((saved(2.0_f64.sqrt()), saved(5.0)), (50.0, 300.0));
        assert_eq!(saved_apart(&[], 2.0), 0.0);
    }
}
