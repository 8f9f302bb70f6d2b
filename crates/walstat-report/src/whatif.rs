//! Predictions → the model.

mod remark;
mod uncertainty;

use super::model::whatif::{NARROW, RecordDifference, Scenario, SelfCheck, WhatIf};
use super::when::REPLAY_RATES;
use walstat_analyse::ratios::ratio;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::rmgr;
use walstat_format::version::Version;
use walstat_whatif::base::Base;
use walstat_whatif::outcome::RunOutcome;
use walstat_whatif::predict::Prediction;
use walstat_whatif::scenario;
use walstat_whatif::settings::{Checkpoints, Settings};

/// Fills the model; the first scenario is the base itself.
pub fn build(base: &Base, predicted: &[(scenario::Scenario, Prediction)]) -> WhatIf {
    let base_bytes = base.bytes();
    let nothing = RunOutcome::default();
    let own = predicted.first().map_or(&nothing, |(_, prediction)| &prediction.outcome);
    WhatIf {
        base_bytes,
        self_check: self_check(base, own),
        scenarios: scenarios(base, predicted, own),
    }
}

/// From here on twice the distance is worth less than this part of the base.
const KNEE_RATIO: f64 = 0.05;

fn scenarios(
    base: &Base,
    predicted: &[(scenario::Scenario, Prediction)],
    own: &RunOutcome,
) -> Vec<Scenario> {
    let made = predicted.iter().map(|(asked, done)| scenario(base, asked, done, own));
    let mut scenarios: Vec<Scenario> = made.collect();
    if let Some(knee) = knee(base, predicted).and_then(|index| scenarios.get_mut(index)) {
        let text = "the knee: twice that distance saves less than 5 % of what there is now";
        knee.notes.push(text.to_owned());
    }
    scenarios
}

/// The place of the scenario at the knee of the curve over distances of checkpoints.
fn knee(base: &Base, predicted: &[(scenario::Scenario, Prediction)]) -> Option<usize> {
    let distance = |asked: &scenario::Scenario| match asked.settings() {
        settings if settings == Settings::default() => Some(1.0),
        Settings { checkpoints: Checkpoints::Factor(factor), .. } if asked.asked.len() == 1 => {
            Some(factor)
        }
        _ => None,
    };
    let points = predicted.iter().enumerate().filter_map(|(index, (asked, done))| {
        Some((distance(asked)?, index, done.outcome.written_bytes()))
    });
    let mut curve: Vec<(f64, usize, u64)> = points.collect();
    curve.order_by(|a, b| a.0.total_cmp(&b.0));
    let worth = base.written_bytes() as f64 * KNEE_RATIO;
    let flat = |pair: &&[(f64, usize, u64)]| match pair {
        [(near, _, more), (far, _, less)] => {
            *near * 2.0 == *far && *more as f64 - (*less as f64) < worth
        }
        _ => false,
    };
    curve.windows(2).find(flat).and_then(|pair| pair.first()).map(|(_, index, _)| *index)
}

/// What a reader of all predictions should know of the base.
pub fn notes(base: &Base) -> Vec<String> {
    remark::of_base(base, base.sees_cycle())
}

fn self_check(base: &Base, own: &RunOutcome) -> SelfCheck {
    let (replayed, real) = (own.written_bytes(), base.written_bytes());
    SelfCheck {
        difference_bytes: replayed.cast_signed() - real.cast_signed(),
        by_record: by_record(own, base.version),
    }
}

/// The largest differences first.
fn by_record(outcome: &RunOutcome, version: &Version) -> Vec<RecordDifference> {
    let rows = outcome.differences.iter().map(|(kind, difference)| RecordDifference {
        record: format!("{}/{}", rmgr::name(kind.rmgr), kind.name(version)),
        difference_bytes: difference.bytes,
        records: difference.records,
        difference_images: difference.images,
    });
    let differs = |row: &RecordDifference| row.difference_bytes != 0 || row.difference_images != 0;
    let mut rows: Vec<RecordDifference> = rows.filter(differs).collect();
    rows.order_by_key(|row| std::cmp::Reverse(row.difference_bytes.unsigned_abs()));
    rows
}

/// What recovery replays at most. Simulated checkpoints that come after a distance are complete at once;
/// a server's take their time, and recovery begins at the one before as long. So that part of the
/// distance is added that the base's took.
fn recovery(base: &Base, settings: &Settings, outcome: &RunOutcome, own: &RunOutcome) -> u64 {
    let completes_at_once = matches!(
        settings.checkpoints,
        Checkpoints::Factor(_) | Checkpoints::Bytes(_) | Checkpoints::Time(_)
    );
    if !completes_at_once || outcome.redo_points.is_empty() {
        return outcome.recovery_bytes;
    }
    let before = base.checkpoint_before().map_or(base.start, |checkpoint| checkpoint.redo);
    let simulated = own.redo_points.iter().map(|point| point.simulated);
    let places: Vec<Lsn> = std::iter::once(before).chain(simulated).collect();
    let gaps = places.windows(2).filter_map(|pair| Some(pair.get(1)?.0 - pair.first()?.0));
    let widest = gaps.max().unwrap_or(0).max(1);
    let spread = (own.recovery_bytes as f64 / widest as f64).clamp(1.0, 2.0);
    (outcome.recovery_bytes as f64 * spread) as u64
}

fn scenario(
    base: &Base,
    asked: &scenario::Scenario,
    done: &Prediction,
    own: &RunOutcome,
) -> Scenario {
    let settings = asked.settings();
    let outcome = &done.outcome;
    let recovery_bytes = recovery(base, &settings, outcome, own);
    let named = asked.asked.iter().map(|a| (a.option.replace('-', "_"), a.value.clone()));
    let redo_points = outcome.redo_points.iter().map(|point| point.base.to_string());
    // What depends on the way that a server goes is not certain, nor is as much as the truth may be off.
    let other_ways = outcome.bytes.saturating_sub(done.low_other);
    let (less, more) =
        (outcome.bytes.saturating_sub(done.low), done.high.saturating_sub(outcome.bytes));
    let is_narrow = less.max(more) as f64 <= outcome.bytes as f64 * NARROW;
    let off = if is_narrow { 0 } else { less.max(more) };
    let not_certain = other_ways.max(off).min(outcome.exact_bytes());
    let change =
        |now: u64, before: u64| ratio(1, before).map(|part| (now as f64 - before as f64) * part);
    Scenario {
        id: asked.id(),
        settings: named.collect(),
        predicted_bytes: outcome.bytes,
        change_ratio: change(outcome.bytes, base.bytes()),
        switch_bytes: outcome.switch_bytes(),
        written_bytes: outcome.written_bytes(),
        written_change_ratio: change(outcome.written_bytes(), base.written_bytes()),
        exact_bytes: outcome.exact_bytes() - not_certain,
        estimated_bytes: outcome.estimated() + not_certain,
        unknown_bytes: outcome.unknown(),
        low_bytes: done.low,
        high_bytes: done.high,
        fpi_count: outcome.images,
        by_record: by_record(outcome, base.version),
        redo_points: redo_points.collect(),
        recovery_bytes,
        recovery_seconds_low: recovery_bytes as f64 / REPLAY_RATES.1 as f64,
        recovery_seconds_high: recovery_bytes as f64 / REPLAY_RATES.0 as f64,
        cpu_seconds: done.codec_time.map(|time| time.as_secs_f64()),
        side_effects: remark::side_effects(&settings, done, recovery_bytes, own),
        notes: remark::notes(&settings, done, base),
    }
}
