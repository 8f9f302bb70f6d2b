//! When WAL was written, in a few numbers: for the first screen and for the advice.

use super::span::asked_for;
use super::{Origin, REPLAY_RATES, at_second};
use crate::model::when::{Causes, Overview, Range, Spacing};
use walstat_analyse::checkpoint::cause::{Cause, Confidence, Verdict, judge};
use walstat_analyse::checkpoint::{Cycle, Cycles};
use walstat_analyse::commit::SYNC_TIME;
use walstat_analyse::when::WhenFound;
use walstat_format::payload::SECOND;

/// Stretches of time, at most: cells of a line of bars.
const STRETCHES: usize = 48;

/// The numbers.
pub fn overview(found: &WhenFound, origin: Origin) -> Overview {
    let mut overview = Overview::default();
    if let Some(curve) = &found.curve {
        let peak = curve.peak_second();
        (overview.growth_seconds, overview.growth) = curve.stretches(STRETCHES);
        overview.mean_rate = curve.mean_rate();
        overview.peak_rate = peak.map(|(bytes, _)| bytes);
        overview.peak_time = peak.and_then(|(_, second)| at_second(second));
        let lag = curve.backlog(REPLAY_RATES.0).peak_bytes as f64 / REPLAY_RATES.0 as f64;
        overview.slow_replay_lag_seconds = curve.peak_rate().map(|_| lag);
    }
    if let Some(pressure) = &found.pressure {
        overview.peak_commits = pressure.per_second.map(|found| found.peak);
        overview.mean_commits = pressure.per_second.map(|found| found.mean);
        let syncs_most = (SECOND / i64::from(SYNC_TIME)) as u64;
        overview.peak_syncs = pressure.per_second.map(|found| found.peak.min(syncs_most));
    }
    if let Some(cycles) = &found.cycles {
        let segment_bytes = u64::from(origin.segment_bytes);
        let (verdicts, settings) =
            judge(&cycles.cycles, segment_bytes, &found.clock, origin.version);
        let (cycles, verdicts) = asked_for(found, cycles, verdicts);
        let cycles = &*cycles;
        let backups = || cycles.cycles.iter().filter(|cycle| cycle.began_backup);
        overview.backups = backups().count() as u64;
        overview.backup_fpi_bytes = backups().map(|cycle| cycle.tally.fpi_bytes).sum();
        overview.checkpoints = cycles.checkpoints;
        overview.causes = causes(&cycles.cycles, &verdicts);
        overview.wal_by_cause = wal_by_cause(&cycles.cycles, &verdicts);
        overview.spacing_seconds = weighted(seconds_and_bytes(cycles));
        overview.spacing_bytes = spacing(distances(cycles));
        overview.checkpoint_timeout_seconds = settings.timeout_seconds;
        overview.max_wal_size_low = settings.max_wal_size.map(|size| size.least_bytes);
        overview.max_wal_size_high = settings.max_wal_size.map(|size| size.most_bytes);
        overview.fpi_first_quarter_ratio = first_quarter(&cycles.cycles);
        let replays = cycles.replays.iter().filter(|replay| cycles.has_all(replay.from, replay.to));
        let distances = replays.map(|replay| replay.to.0.saturating_sub(replay.from.0));
        overview.worst_recovery_bytes = distances.max();
        let (slow, fast) = REPLAY_RATES;
        let seconds =
            |rate: u64| overview.worst_recovery_bytes.map(|bytes| bytes as f64 / rate as f64);
        let range = seconds(fast).zip(seconds(slow));
        overview.worst_recovery_seconds = range.map(|(low, high)| Range { low, high });
    }
    overview
}

/// Checkpoints by their causes, as far as these are likely.
pub fn causes(cycles: &[Cycle], verdicts: &[Option<Verdict>]) -> Causes {
    let mut causes = Causes::default();
    for (_, verdict) in cycles.iter().zip(verdicts).filter(|(cycle, _)| cycle.checkpoint.is_some())
    {
        let sure = verdict.as_ref().filter(|verdict| verdict.confidence > Confidence::Possible);
        *match sure.map(|verdict| verdict.cause) {
            Some(Cause::Time) => &mut causes.time,
            Some(Cause::Wal) => &mut causes.wal,
            Some(Cause::Requested) => &mut causes.requested,
            Some(Cause::Shutdown) => &mut causes.shutdown,
            Some(Cause::EndOfRecovery) => &mut causes.end_of_recovery,
            None => &mut causes.unknown,
        } += 1;
    }
    causes
}

/// Bytes of WAL before the checkpoints, by what began them: a few that somebody asked for on an idle
/// server, or that initdb wrote, say little of why the others began.
fn wal_by_cause(cycles: &[Cycle], verdicts: &[Option<Verdict>]) -> Causes {
    let mut sums = Causes::default();
    for (pair, verdict) in cycles.windows(2).zip(verdicts.iter().skip(1)) {
        let [before, cycle] = pair else { continue };
        let one = causes(std::slice::from_ref(cycle), std::slice::from_ref(verdict));
        let bytes = before.end.0 - before.start.0;
        for (sum, count) in [
            (&mut sums.time, one.time),
            (&mut sums.wal, one.wal),
            (&mut sums.requested, one.requested),
            (&mut sums.shutdown, one.shutdown),
            (&mut sums.end_of_recovery, one.end_of_recovery),
            (&mut sums.unknown, one.unknown),
        ] {
            *sum += count * bytes;
        }
    }
    sums
}

/// Seconds from one checkpoint to the next, while the server went on.
pub fn seconds(cycles: &Cycles) -> Vec<u64> {
    seconds_and_bytes(cycles).into_iter().map(|(seconds, _)| seconds).collect()
}

/// The same, with the WAL between.
fn seconds_and_bytes(cycles: &Cycles) -> Vec<(u64, u64)> {
    let online = |cycle: &Cycle| {
        // What initdb did says nothing of how the server runs.
        let ended = cycle.checkpoint.as_ref().filter(|ended| !ended.seen.says.is_of_initdb())?;
        Some((ended.seen.says.time.second(), ended.seen.is_shutdown))
    };
    let distance = |pair: &[Cycle]| match pair {
        [a, b] if cycles.has_all(a.start, b.end) => match (online(a)?, online(b)?) {
            ((from, false), (to, false)) => {
                let seconds = u64::try_from(to.checked_sub(from)?).ok()?;
                Some((seconds, a.end.0 - a.start.0))
            }
            _ => None,
        },
        _ => None,
    };
    cycles.cycles.windows(2).filter_map(distance).collect()
}

/// Those that begin and end with a checkpoint.
pub fn whole(cycles: &[Cycle]) -> impl Iterator<Item = &Cycle> {
    let all_but_last = cycles.len().saturating_sub(1);
    cycles.iter().take(all_but_last).filter(|cycle| cycle.redo.is_some())
}

/// Bytes of whole cycles.
pub fn distances(cycles: &Cycles) -> Vec<u64> {
    let known = whole(&cycles.cycles).filter(|cycle| cycles.has_all(cycle.start, cycle.end));
    known.map(|cycle| cycle.end.0 - cycle.start.0).collect()
}

/// What is worth telling of distances, each as often as there is WAL in it; `None` without any. Where
/// most of the WAL was written counts, not what an idle server did.
fn weighted(mut distances: Vec<(u64, u64)>) -> Option<Spacing> {
    distances.sort_unstable();
    // Nothing lies between two checkpoints of which the second one did nothing.
    let weight = |bytes: u64| u128::from(bytes.max(1));
    let all: u128 = distances.iter().map(|(_, bytes)| weight(*bytes)).sum();
    let rank = |percent: u128| {
        let mut below = 0;
        distances.iter().find_map(|(seconds, bytes)| {
            below += weight(*bytes);
            (below * 100 >= all * percent).then_some(*seconds)
        })
    };
    let sum: u128 = distances.iter().map(|(s, bytes)| u128::from(*s) * weight(*bytes)).sum();
    Some(Spacing {
        count: distances.len() as u64,
        min: distances.first()?.0,
        mean: sum as f64 / all as f64,
        median: rank(50)?,
        p90: rank(90)?,
        max: distances.last()?.0,
    })
}

/// What is worth telling of distances; `None` without any.
pub fn spacing(mut distances: Vec<u64>) -> Option<Spacing> {
    distances.sort_unstable();
    let rank = |percent: usize| (percent * distances.len()).div_ceil(100).saturating_sub(1);
    Some(Spacing {
        count: distances.len() as u64,
        min: *distances.first()?,
        mean: distances.iter().map(|distance| *distance as f64).sum::<f64>()
            / distances.len() as f64,
        median: *distances.get(rank(50))?,
        p90: *distances.get(rank(90))?,
        max: *distances.last()?,
    })
}

/// Share of the images of whole cycles in their first quarters.
fn first_quarter(cycles: &[Cycle]) -> Option<f64> {
    let (mut first, mut all) = (0.0, 0.0);
    for cycle in whole(cycles) {
        let bytes = cycle.tally.fpi_bytes as f64;
        first += bytes * cycle.decay.map_or(0.0, |decay| decay.first_quarter);
        all += bytes;
    }
    (all > 0.0).then(|| first / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_as_often_as_there_is_wal_in_them() {
        // Many close to each other as a server is set up, two under load.
        let mut distances = vec![(0, 1000); 20];
        distances.extend([(60, 50_000_000), (65, 55_000_000)]);
        let spacing = weighted(distances).expect("distances");
        assert_eq!((spacing.count, spacing.min, spacing.median, spacing.max), (22, 0, 65, 65));
        assert!(weighted(Vec::new()).is_none());
        assert_eq!(weighted(vec![(7, 0)]).map(|spacing| spacing.median), Some(7));
    }
}
