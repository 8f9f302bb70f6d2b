//! Less WAL means fewer checkpoints by volume, and these fewer images: what a change saves beside its own.

use crate::model::Report;
use crate::model::estimate::{Estimates, Predicted, Spared, WORTH_A_WORD};
use crate::model::finding::{Certainty, Finding};
use crate::model::percent::percent;
use crate::settled::settled;

/// A finding that knows only what its own change saves, with what fewer checkpoints save in addition. How
/// many images they spare depends on which pages are left, of which the sample of all images tells little: so
/// that is part of what is saved at most, and beside a rule's figure it is a range.
pub(super) fn counted(report: &Report, finding: Finding) -> Finding {
    let total = report.totals.total_bytes;
    let has_own = matches!(finding.certainty, Certainty::Computed | Certainty::Possible);
    let own = finding.estimate.filter(|saved| has_own && (1..total).contains(saved));
    let Some(own) = own.filter(|_| finding.predicted.is_none()) else { return finding };
    let Some(less) = LessWal::of(report, own, &finding) else { return finding };
    let most = less.most();
    let likely = less.likely().min(most);
    if most < WORTH_A_WORD {
        return finding;
    }
    let bytes = |share: f64| (share * total as f64) as u64;
    let (own_share, mut advice) = (percent(less.own, 0), finding.advice);
    if finding.certainty == Certainty::Possible {
        advice.push(format!(
            "by itself it saves {own_share} of the bytes at most; the rest are images that fewer checkpoints \
             by volume spare"
        ));
        let spared = bytes(most);
        return Finding {
            advice,
            estimate: Some(own + spared),
            fewer_checkpoints_bytes: Some(spared),
            ..finding
        };
    }
    advice.push(format!(
        "by itself it saves {own_share} of the bytes; the rest are images that fewer checkpoints by volume \
         spare, since there is less WAL: up to {}",
        percent(most, 0)
    ));
    let saved = own + bytes(likely);
    let predicted = Predicted {
        predicted_bytes: total - saved.min(total),
        change_ratio: -(less.own + likely),
        low_bytes: total.saturating_sub(own + bytes(most)),
        high_bytes: total - own,
    };
    Finding {
        advice,
        estimate: Some(saved),
        fewer_checkpoints_bytes: Some(bytes(likely)),
        predicted: Some(predicted),
        ..finding
    }
}

/// WAL that a change makes less, all in shares of the bytes.
struct LessWal<'r> {
    /// What less WAL spares, as far as that was tried.
    spared: &'r [Spared],
    /// What the change saves by itself.
    own: f64,
    /// How many of the images it leaves.
    left: f64,
    /// What switches leave empty of segments: volume counts that too.
    empty: f64,
}

impl<'r> LessWal<'r> {
    /// `None` where volume began no checkpoint, or there is no image left to be spared.
    fn of(report: &'r Report, own: u64, finding: &Finding) -> Option<LessWal<'r>> {
        let Estimates { spared, .. } = report.estimates.as_ref()?;
        let total = report.totals.total_bytes;
        let all = report.totals.fpi_bytes;
        let images = match (finding.estimate_fpi_bytes, finding.certainty) {
            (Some(images), _) => images,
            // What is only an upper bound may save no image at all, unless nothing else would be left; a
            // figure that follows from the rule is assumed to save images and nothing else.
            (None, Certainty::Possible) => (own + all).saturating_sub(total),
            (None, _) => own,
        };
        let left = all.saturating_sub(images);
        let share = |bytes: u64| bytes as f64 / total.max(1) as f64;
        let is_any = !spared.is_empty() && left > 0;
        is_any.then(|| LessWal {
            spared,
            own: share(own),
            left: left as f64 / all as f64,
            empty: share(report.books.switch_bytes),
        })
    }

    /// How many times as much WAL there is now, where so much more than its own is saved.
    fn times(&self, more: f64) -> f64 {
        (1.0 + self.empty) / (1.0 - self.own - more + self.empty).max(f64::MIN_POSITIVE)
    }

    /// What fewer checkpoints are likely to spare.
    fn likely(&self) -> f64 {
        settled(0.0, |more| self.left * likely_spared(self.spared, self.times(more)))
    }

    /// What they may spare.
    fn most(&self) -> f64 {
        settled(0.0, |more| self.left * most_spared(self.spared, self.times(more)))
            .min(1.0 - self.own)
    }
}

/// What is likely to be spared between what was tried: in equal steps for equal ratios; beyond it, that of
/// the last one.
fn likely_spared(spared: &[Spared], times: f64) -> f64 {
    let next = spared.partition_point(|tried| tried.times < times);
    let Some(beyond) = spared.get(next).or(spared.last()) else { return 0.0 };
    // As it is, nothing is spared.
    let (before, least) = next
        .checked_sub(1)
        .and_then(|at| spared.get(at))
        .map_or((1.0, 0.0), |tried| (tried.times, tried.likely));
    if beyond.times.is_infinite() || before >= beyond.times {
        return beyond.likely;
    }
    least + (beyond.likely - least) * (times / before).ln() / (beyond.times / before).ln()
}

/// The most that may be: that of the next one that was tried.
fn most_spared(spared: &[Spared], times: f64) -> f64 {
    let next = spared.iter().find(|tried| tried.times >= times).or(spared.last());
    next.map_or(0.0, |tried| tried.most)
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::finding_of;
    use super::*;
    use crate::model::sample;

    const TOTAL: u64 = 1000 << 20;

    fn spared() -> Vec<Spared> {
        let tried = [(2.0, 0.1, 0.15), (4.0, 0.2, 0.25), (f64::INFINITY, 0.3, 0.35)];
        tried.map(|(times, likely, most)| Spared { times, likely, most }).into()
    }

    /// Half of the WAL spares a tenth, a fourth of it a fifth, none at all three tenths.
    fn report(spared: Vec<Spared>) -> Report {
        Report {
            estimates: Some(Estimates { spared, ..Estimates::default() }),
            // Four fifths are images.
            ..sample::report(TOTAL / 5 * 4, TOTAL)
        }
    }

    fn half(certainty: Certainty) -> Finding {
        Finding { estimate: Some(TOTAL / 2), certainty, ..finding_of("random-index") }
    }

    /// In thousandths of all bytes.
    fn thousandths(bytes: u64) -> f64 {
        (bytes as f64 / TOTAL as f64 * 1000.0).round()
    }

    #[test]
    fn where_no_checkpoint_came_by_volume_a_change_saves_its_own() {
        for certainty in [Certainty::Computed, Certainty::Possible] {
            assert_eq!(counted(&report(Vec::new()), half(certainty)), half(certainty));
        }
        let mut without_images = report(spared());
        without_images.totals.fpi_bytes = 0;
        let found = counted(&without_images, half(Certainty::Computed));
        assert_eq!((found.estimate, found.predicted), (Some(TOTAL / 2), None));
        let unknown = Finding { estimate: None, ..half(Certainty::Possible) };
        assert_eq!(counted(&report(spared()), unknown).estimate, None);
    }

    /// 25 % were said of random keys, and 41 and 49 % were saved: the checkpoint by volume that was under way
    /// did not come any more.
    #[test]
    fn a_figure_of_a_rule_becomes_a_range() {
        let found = counted(&report(spared()), half(Certainty::Computed));
        let predicted = found.predicted.expect("a range");
        // Of the images that are left, three of eight, a tenth is likely to go where there is half as much
        // WAL; with that a little more. At most a fourth of them, as where there is a fourth of it.
        assert_eq!(thousandths(predicted.predicted_bytes), 458.0);
        let range = [predicted.low_bytes, predicted.high_bytes].map(thousandths);
        assert_eq!(range, [406.0, 500.0]);
        assert_eq!(thousandths(found.estimate.unwrap_or_default()), 542.0);
        assert!(found.settings.is_empty() && found.certainty == Certainty::Computed);
        let told = "by itself it saves 50 % of the bytes; the rest are images that fewer checkpoints by \
                    volume spare, since there is less WAL: up to 9 %";
        assert_eq!(found.advice, [told]);
        // Where it saves no image, all of them are left.
        let of_records = Finding { estimate_fpi_bytes: Some(0), ..half(Certainty::Computed) };
        let found = counted(&report(spared()), of_records);
        assert_eq!(found.predicted.map(|found| thousandths(found.low_bytes)), Some(250.0));
    }

    #[test]
    fn what_is_saved_at_most_has_what_fewer_checkpoints_save_at_most() {
        // If the half has no more images than it must, five of eight are left.
        let found = counted(&report(spared()), half(Certainty::Possible));
        assert_eq!(thousandths(found.estimate.unwrap_or_default()), 656.0);
        let more = found.estimate.map(|bytes| bytes - TOTAL / 2);
        assert_eq!(found.fewer_checkpoints_bytes, more);
        // The figure beside the finding is more than the finding says of itself: both are told.
        let told = found.advice.concat();
        assert!(told.starts_with("by itself it saves 50 % of the bytes at most"), "{told}");
    }

    /// Volume counts segments: where most of them were closed before they were full, as many are with less.
    #[test]
    fn what_switches_leave_empty_stays() {
        let mut report = report(spared());
        report.books.switch_bytes = 99 * TOTAL;
        let found = counted(&report, half(Certainty::Computed));
        let spared = found.fewer_checkpoints_bytes.unwrap_or_default();
        assert!(thousandths(spared) < 1.0, "{spared}");
    }

    #[test]
    fn between_those_that_were_tried_it_is_estimated() {
        let tried = spared();
        let likely = |times| (likely_spared(&tried, times) * 1000.0).round();
        assert_eq!([1.0, 2.0, 4.0].map(likely), [0.0, 100.0, 200.0]);
        assert_eq!((likely(2.0_f64.sqrt()), likely(5.0)), (50.0, 300.0));
        let most = |times| most_spared(&tried, times);
        assert_eq!([1.5, 2.0, 2.1, 5.0].map(most), [0.15, 0.15, 0.25, 0.35]);
        assert_eq!((likely_spared(&[], 2.0), most_spared(&[], 2.0)), (0.0, 0.0));
    }
}
